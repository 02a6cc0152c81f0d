"""No unit changes a marginal by more than the sensitivity, whatever its values."""

import itertools
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mechanisms.public.marginals import count_cliques
from mechanisms.public.queries.query_matrices import Identity, sensitivity
from mechanisms.public.schema.table_schema import parse_schema
from mechanisms.public.units import WEIGHT_BITS, Neighbouring
from mechanisms.sensitive.contribution import PrivacyUnit
from mechanisms.sensitive.counting import exact_marginals
from mechanisms.sensitive.private_table import load_private
from tests.public.table_worlds import csv, schema, source

SCHEMA = parse_schema({"x": 2, "y": 2}, where="test")
CLIQUE = ("x", "y")
ROWS = [(0, 0), (0, 1), (1, 1)]


def exact(folder: Path, rows: list[tuple[str, int, int]], bound: int) -> np.ndarray:
    """The weighted marginal of a table (in records), read from a real file."""
    read = source(csv(folder, "id,x,y\n" + "".join(f"{i},{x},{y}\n" for i, x, y in rows)))
    unit = PrivacyUnit(column="id", max_records=bound, clip="weight")
    table = load_private(read, SCHEMA, unit, workdir=folder / "w", key=b"k" * 32).coded
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


KEY = b"k" * 32
FACTS = schema(
    listed={"kind": "categorical", "values": ["1", "2"], "other": "other"},
    whole={"kind": "integer", "min": 0, "max": 9},
    real={"kind": "float", "min": 0, "max": 9, "bins": {"count": 3}},
)
GAPS = 40
#: One more record of somebody: with each, a file states another least or largest value.
MORE = (math.inf, -math.inf, 1e16, -0.0, 0.5, 7.0)


def counts(path: Path, values: list[float], kind: pa.DataType, unit: PrivacyUnit) -> list[np.ndarray]:
    """The counts (records) of a table whose columns, the id too, all hold these numbers."""
    numbers = pa.array(np.array(values, kind.to_pandas_dtype()), kind)
    pq.write_table(pa.table(dict.fromkeys(("id", *FACTS.domain.names), numbers)), path)
    private = load_private(source(path), FACTS, unit, workdir=path.parent / path.stem, key=KEY)
    asked = exact_marginals(private, [(name,) for name in FACTS.domain.names], batch_cells=10**6)
    return [c / 2.0**WEIGHT_BITS for c in asked]


BY_ID = PrivacyUnit("id", 1, missing="own", missing_values=())


@pytest.mark.parametrize(
    ("kind", "unit"),
    [
        pytest.param(pa.float64(), PrivacyUnit(), id="double, records"),
        pytest.param(pa.float32(), BY_ID, id="float, ids"),
        pytest.param(pa.float32(), PrivacyUnit(), id="float, records", marks=pytest.mark.slow),
        pytest.param(pa.float64(), BY_ID, id="double, ids", marks=pytest.mark.slow),
    ],
)
def test_one_record_more_moves_no_other_record_that_holds_nan(kind, unit, tmp_path) -> None:
    rows = [0.25, 2.0, *[math.nan] * GAPS]
    without = counts(tmp_path / "without.parquet", rows, kind, unit)
    assert [c[a.missing_code] for c, a in zip(without, FACTS.columns, strict=True)] == [GAPS] * 3, "gaps are gaps"
    for place, value in enumerate(MORE):
        with_one = counts(tmp_path / f"{place}.parquet", [*rows, value], kind, unit)
        assert max(np.abs(a - b).sum() for a, b in zip(with_one, without, strict=True)) <= 1, value
