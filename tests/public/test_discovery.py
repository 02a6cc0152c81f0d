"""What a schema leaves open: declarations, leaves, trees of counts, and the schema that follows from noisy answers."""

import math
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.public.discovery.discovered_columns import (
    bounds_of,
    discovered_schema,
    equal_mass,
    questions_of,
    scouting_schema,
)
from mechanisms.public.discovery.discovery_questions import LeafTree
from mechanisms.public.errors import UserError
from mechanisms.public.noise_kinds import of_each, upper_quantile
from mechanisms.public.schema.bins import Bins, cell_edges, float_grid, integer_grid
from mechanisms.public.schema.table_schema import load_schema, parse_schema

COLUMNS = {
    "age": {"kind": "integer", "bounds": "discover", "within": [0, 200]},
    "hours": {"kind": "integer", "bounds": "discover", "bins": "discover", "missing": False},
    "gain": {"kind": "float", "bounds": "discover", "bins": {"discover": 12}, "decimals": 2},
    "wage": {"kind": "float", "min": 0, "max": 10**6, "bins": "discover", "joint_bins": {"count": 5}},
    "day": {"kind": "date", "bounds": "discover", "bins": "month", "format": "%d.%m.%Y"},
    "called": {"kind": "datetime", "bounds": "discover", "within": ["2020-01-01", "2021-12-31"]},
    "job": {"kind": "categorical", "values": "discover", "missing": ["?"]},
}
ODD = ["a", "b, c: #", "17", "yes", "null", "ñandú", "'quoted'", "- x", "2020-01-01", "[1]"]


def schema(**columns):
    return parse_schema({"name": "t", "confirmed_public": True, "columns": columns or COLUMNS}, where="t")


def answers_of(facts, data, noise=0.0, seed=0):
    """Noisy leaf counts of columns of numbers, by the edges of the leaves; the odd texts for values."""
    rng, scout, answers, scales = np.random.default_rng(seed), scouting_schema(facts), {}, {}
    for wanted in questions_of(facts):
        scales[wanted.column] = max(noise, 1e-9)
        if wanted.tree is None:
            answers[wanted.column] = ODD
            continue
        counts = np.histogram(data[wanted.column], scout[wanted.column].grid.edges)[0]
        exact = wanted.tree.query.answer(np.concatenate([counts, np.zeros(wanted.tree.specials)]))
        answers[wanted.column] = exact + rng.normal(0, noise, exact.size) if noise else exact
    return answers, scales


def town(rows=20_000, seed=1):
    rng = np.random.default_rng(seed)
    return {
        "age": rng.integers(18, 90, rows),
        "hours": np.minimum(rng.poisson(40, rows), 99),
        "gain": np.where(rng.random(rows) < 0.9, 0, np.exp(rng.normal(8, 1, rows))),
        "wage": np.exp(rng.normal(10, 1, rows)),
        "day": rng.integers(18_000, 18_365, rows),
        "called": rng.integers(18_300 * 86_400, 18_400 * 86_400, rows),
    }


def test_a_schema_with_open_ends_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    facts = schema()
    assert [c.name for c in facts.to_discover] == list(COLUMNS)
    (tmp_path / "t.yaml").write_text(facts.to_yaml(), encoding="utf-8")
    assert load_schema(tmp_path / "t.yaml") == facts
    assert "bounds: discover" in facts.to_yaml() and "1900" not in facts.to_yaml()


@pytest.mark.parametrize("noise", [0.0, 40.0])
def test_noisy_answers_make_a_schema_without_open_ends_that_is_read_back(noise, tmp_path: Path) -> None:
    facts, data = schema(), town()
    answers, scales = answers_of(facts, data, noise)
    concrete = discovered_schema(facts, answers, kind="gaussian", scales=scales)
    assert not concrete.to_discover and concrete.confirmed_public
    assert {c.name: c.discovered for c in concrete.columns}["gain"] == ("bounds", "bins")
    assert concrete["job"].values == tuple(ODD) and concrete["job"].discovered == ("values",)
    (tmp_path / "t.yaml").write_text(concrete.to_yaml(), encoding="utf-8")
    assert load_schema(tmp_path / "t.yaml") == concrete
    for name, low, high in (("age", 18, 89), ("day", 18_000, 18_364)):
        assert abs(concrete[name].low - low) <= (0 if not noise else 40)
        assert abs(concrete[name].high - high) <= (0 if not noise else 40)
    edges = np.array(concrete["wage"].bins.edges)  # type: ignore[union-attr]
    shares = np.histogram(data["wage"], edges)[0] / len(data["wage"])
    assert len(shares) > 5 and shares.max() < (0.06 if not noise else 0.2)
    assert concrete["wage"].joint_bins == ("count", 5)
    gain = np.array(concrete["gain"].bins.edges)  # type: ignore[union-attr]
    assert 0 in gain and gain[gain > 0].min() < 1  # the peak has a bin of its own


def test_without_any_answer_the_public_range_stays_and_no_value_is_listed() -> None:
    facts = schema()
    nothing = discovered_schema(facts, dict.fromkeys(COLUMNS), kind="gaussian", scales=dict.fromkeys(COLUMNS, 1.0))
    assert (nothing["age"].low, nothing["age"].high) == (0, 200)
    assert nothing["job"].constant and nothing["job"].values == ("other",)
    assert nothing["hours"].value_codes > 1 and "job" not in nothing.measured.names


@pytest.mark.parametrize("answer", [1e-9, -1e9, 1e12])
@pytest.mark.parametrize("name", [n for n in COLUMNS if n != "job"])
def test_whatever_the_answers_are_a_schema_comes_out(name, answer) -> None:
    facts = schema(**{name: COLUMNS[name]})
    tree = questions_of(facts)[0].tree
    rng = np.random.default_rng(3)
    last = np.zeros(tree.query.rows)
    last[-1] = 9
    for noisy in (np.full(tree.query.rows, answer), rng.normal(0, 1e6, tree.query.rows), last):
        concrete = discovered_schema(facts, {name: noisy}, kind="laplace", scales={name: 1e-3})
        assert not concrete.to_discover and concrete[name].value_codes >= 1


@given(st.integers(1, 300), st.integers(0, 2), st.integers(0, 2**32))
@settings(max_examples=30)
def test_estimates_of_answers_without_noise_are_the_leaves(leaves, specials, seed) -> None:
    tree = LeafTree(leaves, specials)
    counts = np.random.default_rng(seed).integers(0, 50, leaves + specials)
    exact = tree.query.answer_exact(counts)
    assert exact.sum() == tree.levels * counts[:leaves].sum()
    assert np.allclose(tree.estimates(exact.astype(float)), counts[:leaves])
    for norm in ("l1", "l2"):
        assert tree.query.largest_column_norm(norm) == pytest.approx(tree.levels ** (1 if norm == "l1" else 0.5))


def test_estimates_that_agree_are_less_noisy_than_the_leaves() -> None:
    tree, rng = LeafTree(256), np.random.default_rng(0)
    sums, alone = [], []
    for _ in range(200):
        noise = rng.normal(0, 1, tree.query.rows)
        sums.append(tree.estimates(noise)[:100].sum())
        alone.append(noise[-256:][:100].sum())
    assert np.std(sums) < 0.5 * np.std(alone)


def codes_of(grid, numbers: np.ndarray) -> np.ndarray:
    """As the engine codes them."""
    engine = duckdb.connect()
    engine.register("t", pa.table({"x": numbers}))
    return np.asarray(engine.execute(f"SELECT {grid.sql('x')} AS c FROM t").fetchnumpy()["c"])


@pytest.mark.parametrize(("low", "high"), [(-1e9, 1e9), (0.0, 120.0), (1000.0, 1001.0), (0.0, 1e-6), (-50.0, 1e13)])
def test_a_number_falls_into_its_leaf(low, high) -> None:
    edges = cell_edges(low, high, 4096)
    inside = np.random.default_rng(0).uniform(math.asinh(low), math.asinh(high), 5000)
    numbers = np.concatenate([edges, np.sinh(inside)]).clip(low, high)
    grid = float_grid(low, high, Bins(cells=4096), decimals=None, where="")
    expected = (np.searchsorted(edges, numbers, side="right") - 1).clip(0, 4095)
    assert (codes_of(grid, numbers) != expected).mean() < 1e-3 and (np.diff(grid.edges) > 0).all()


@pytest.mark.parametrize(("low", "high"), [(-(10**9), 10**9), (0, 10**6), (-5000, 3)])
def test_a_whole_number_falls_into_its_leaf(low, high) -> None:
    grid = integer_grid(low, high, Bins(cells=4096), kind="integer", where="")
    numbers = np.concatenate([grid.starts, grid.ends - 1, np.arange(low, low + 9)]).astype(float)
    assert (codes_of(grid, numbers) == np.searchsorted(grid.starts, numbers, side="right") - 1).all()
    assert grid.starts[0] == low and grid.ends[-1] == high + 1


def test_noise_alone_hardly_ever_makes_bounds() -> None:
    tree, rng = LeafTree(4096), np.random.default_rng(0)
    found = [bounds_of(tree, rng.normal(0, 5, tree.query.rows), kind="gaussian", scale=5.0) for _ in range(400)]
    assert sum(f != (0, 4096) for f in found) <= 3


def test_a_leaf_that_stands_out_by_chance_cuts_off_no_values_of_few_records_each() -> None:
    tree, rng = LeafTree(1001), np.random.default_rng(0)
    exact = np.asarray(tree.query.answer(np.where(np.arange(1001) < 100, 5.0, 0.0)))
    noisy = [exact + rng.normal(0, 4.3, exact.size) for _ in range(1000)]
    ends = np.array([bounds_of(tree, answers, kind="gaussian", scale=4.3)[1] for answers in noisy])
    assert ends.min() > 80  # without looking at what lies beyond such a leaf, 1 of 200 ends at 65 to 80


def test_bins_of_equal_mass_are_fewer_where_noise_is_large_and_never_too_many() -> None:
    leaves = np.ones(1000)
    assert np.diff(equal_mass(leaves, 0, 1000, 10, least=1.0)).tolist() == [100] * 10
    assert len(equal_mass(leaves, 0, 1000, 10, least=400.0)) == 3
    assert equal_mass(-leaves, 0, 1000, 10, least=1.0).tolist() == [0, 1000]
    leaves[500] = 5000
    cuts = equal_mass(leaves, 0, 1000, 10, least=1.0)
    assert {500, 501} <= set(cuts.tolist()) and len(cuts) <= 11


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_the_tail_of_noise_is_no_heavier_than_said(kind) -> None:
    rng = np.random.default_rng(0)
    draws = rng.normal(size=400_000) if kind == "gaussian" else rng.laplace(size=400_000)
    x = upper_quantile(kind, 0.01)
    assert 0.9 < (draws > x).mean() / 0.01 < 1.1
    assert 1 - (1 - of_each(0.1, 7)) ** 7 == pytest.approx(0.1) and of_each(1e-20, 4) <= 2.5e-21


def test_a_rule_may_not_name_a_column_of_which_something_is_discovered() -> None:
    content = {"columns": {"a": {"kind": "flag"}, "b": COLUMNS["job"]}, "impossible": [{"a": "true", "b": "baker"}]}
    with pytest.raises(UserError, match="names 'b'"):
        parse_schema(content, where="t")


def test_where_no_column_has_a_value_the_message_says_that_nothing_was_found():
    facts = schema(
        job={"kind": "categorical", "values": "discover"}, town={"kind": "categorical", "values": "discover"}
    )
    with pytest.raises(UserError, match="no value of job, town was found beyond the noise: nothing is left to measure"):
        discovered_schema(facts, {"job": [], "town": None}, kind="gaussian", scales={"job": 1.0, "town": 1.0})
