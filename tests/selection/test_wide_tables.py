"""Tables of hundreds of columns: which pairs the default looks at, what plan says of it, and what is refused."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.tvd import tvd_cliques
from mechanisms.public.designs import tree
from mechanisms.public.designs.tree import MOST_PAIRS, pairs_looked_at
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.workload import MOST_LISTED, all_k_way
from pipeline.report.plan_tables import as_text, describe
from pipeline.settings import build
from pipeline.settings.config import load_config
from pipeline.settings.specs import build_specs
from synthesis.pgm.elimination import maximal

WIDE = 320


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A schema with 320 columns of two values: 51,040 pairs."""
    path = tmp_path_factory.mktemp("wide") / "wide.yaml"
    columns = "".join(f"  c{i}: {{kind: categorical, size: 2, missing: false}}\n" for i in range(WIDE))
    path.write_text(f"name: wide\nsource: invented\nconfirmed_public: true\ncolumns:\n{columns}")
    return ["data=table", f"data.schema={path}"]


def plan_text(*overrides: str, details: bool = False) -> str:
    config = load_config(list(overrides))
    specs = build_specs(config)
    schema = build.build_schema(specs)
    workload = build.build_workload(specs, schema)
    return as_text(describe(specs, schema, workload, build.build_plan(specs, workload, schema)), details)


@given(st.integers(2, 12), st.sets(st.integers(0, 11)), st.integers(0, 70))
def test_pairs_are_all_or_those_of_important_columns_and_never_too_many(columns, marked, most):
    names = [f"c{i:02}" for i in range(columns)]
    important = {n for i, n in enumerate(names) if i in marked}
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(tree, "MOST_PAIRS", most)
        looked_at = pairs_looked_at(names, important)
    every = list(itertools.combinations(names, 2))
    held = [[p for p in every if len(important & set(p)) >= least] for least in (0, 1, 2)]
    assert list(looked_at) == next((pairs for pairs in held if len(pairs) <= most), [])


def test_the_default_measures_columns_alone_where_pairs_are_too_many_and_says_so(wide: list[str]) -> None:
    assert math.comb(WIDE, 2) > MOST_PAIRS
    text = plan_text(*wide)
    assert "51,040 pairs are too many: columns alone are measured" in text and "selection.important" in text
    assert "look at distances" not in text


def test_pairs_of_important_columns_are_looked_at_in_a_wide_table(wide: list[str]) -> None:
    text = plan_text(*wide, "selection.important=[c7,c300]", details=True)
    assert f"{2 * (WIDE - 1) - 1} distances from independence" in text
    assert f"{math.comb(WIDE, 2) - 2 * (WIDE - 1) + 1:,} pairs are too many" in text


def test_marginals_too_many_to_list_are_refused_with_a_way_out() -> None:
    domain = Domain(tuple(Attribute(f"c{i}", 2) for i in range(10_000)))
    with pytest.raises(UserError, match=r"49,995,000 2-way marginals of 10,000 columns.*") as refused:
        all_k_way(domain, [1, 2], max_cells=100)
    assert "selection.marginals=" in refused.value.fix
    assert math.comb(10_000, 2) > MOST_LISTED >= len(all_k_way(domain, [1], max_cells=100).cliques)


def test_a_plan_of_many_charges_shows_a_thousand_and_the_totals(tmp_path: Path) -> None:
    columns = "".join(f"  c{i}: {{kind: categorical, size: 2, missing: false}}\n" for i in range(1_500))
    (tmp_path / "wide.yaml").write_text(f"name: w\nsource: invented\nconfirmed_public: true\ncolumns:\n{columns}")
    text = plan_text("data=table", f"data.schema={tmp_path / 'wide.yaml'}", details=True)
    assert "… and 500 more charges" in text and "rounds, in all" in text
    assert "1500 measurements of 3,000 cells" in text


def test_three_way_marginals_are_drawn_as_from_the_list_of_all() -> None:
    names = [f"c{i}" for i in range(9)]
    triples = list(itertools.combinations(names, 3))
    picked = np.sort(np.random.default_rng(0).choice(len(triples), min(100, len(triples)), replace=False))
    drawn = tvd_cliques(Domain(tuple(Attribute(n, 2) for n in names)))["3-way"]
    assert drawn == [triples[i] for i in picked]
    assert len(tvd_cliques(Domain(tuple(Attribute(f"c{i}", 2) for i in range(500))))["3-way"]) == 100


@given(st.lists(st.integers(0, 127), max_size=12))
def test_maximal_cliques_lie_in_no_other(cliques: list[int]) -> None:
    distinct = set(cliques)
    lonely = [c for c in distinct if not any(c != o and c & o == c for o in distinct)]
    assert maximal(cliques) == sorted(lonely)
