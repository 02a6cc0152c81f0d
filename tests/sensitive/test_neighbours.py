"""Every claim of sensitivity, by enumeration: all small tables and all their neighbours, through the real loader."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from mechanisms.public.marginals import count_cliques
from mechanisms.public.queries.query_matrices import Identity, sensitivity
from mechanisms.public.schema.table_schema import parse_schema
from mechanisms.public.tables.scan import open_table
from mechanisms.public.units import WEIGHT_BITS, Neighbouring
from mechanisms.sensitive.contribution import PrivacyUnit
from mechanisms.sensitive.private_table import load_private

SCHEMA = parse_schema({"x": 2, "y": 2}, where="test")
CLIQUE = ("x", "y")
ROWS = [(0, 0), (0, 1), (1, 1)]


def exact(folder: Path, rows: list[tuple[str, int, int]], bound: int) -> np.ndarray:
    """The weighted marginal of a table (in records), read from a real file."""
    path = folder / "t.csv"
    path.write_text("id,x,y\n" + "".join(f"{i},{x},{y}\n" for i, x, y in rows))
    source = open_table(path, workdir=folder, memory_limit_bytes=10**9, threads=1)
    unit = PrivacyUnit(column="id", max_records=bound, clip="weight")
    table = load_private(source, SCHEMA, unit, workdir=folder / "w", key=b"k" * 32).coded
    scale = 1.0 if table.weights is None else 2.0**-WEIGHT_BITS
    return count_cliques(table, [CLIQUE])[0] * scale


@pytest.mark.parametrize("bound", [1, 2])
def test_no_unit_changes_a_marginal_by_more_than_the_sensitivity(tmp_path, bound):
    """`p` has up to one record more than the bound; `q` and rows without an id stay as they are in all tables."""
    others = [("q", 0, 0), ("q", 1, 0), ("q", 1, 1), ("", 0, 1), ("", 1, 1)]
    worlds = {}
    for n in range(bound + 2):
        for mine in itertools.combinations_with_replacement(ROWS, n):
            worlds[mine] = exact(tmp_path, [*others, *(("p", *row) for row in mine)], bound)
    for neighbouring in Neighbouring:
        pairs = itertools.product(worlds, worlds) if neighbouring is Neighbouring.REPLACE else ((w, ()) for w in worlds)
        changes = [worlds[a] - worlds[b] for a, b in pairs]
        for norm, order in (("l1", 1), ("l2", 2)):
            claimed = sensitivity(Identity(4), norm=norm, neighbouring=neighbouring, max_records=bound)
            found = max(float(np.linalg.norm(c, order)) for c in changes)
            assert found <= claimed
            assert found > 0.99 * claimed, "the claim is attained: no budget is wasted"


def test_a_bound_that_is_not_enforced_would_be_found(tmp_path):
    """The check above can fail: against the claim for half of the bound, it does."""
    with_p = exact(tmp_path, [("p", 0, 0), ("p", 0, 0)], 2)
    without = exact(tmp_path, [], 2)
    assert np.abs(with_p - without).sum() > sensitivity(
        Identity(4), norm="l1", neighbouring=Neighbouring.ADD_REMOVE, max_records=1
    )
