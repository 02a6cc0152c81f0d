"""What a report draws of two tables, against definitions written out on small worlds."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from evaluation.pictures.pair_maps import ASKED, CELLS, chosen_pairs, pair_maps
from evaluation.pictures.pictures import DRAWN, POINTS, densities, principal_axes
from evaluation.pictures.validity import broken_rules, valid_columns
from evaluation.values.value_tables import ValueColumn, Values
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.schema.table_schema import parse_schema


def table(domain: Domain, *columns) -> CodedTable:
    return CodedTable(domain, tuple(np.asarray(c, np.uint8) for c in columns))


def worlds(rows: int, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 12, rows)
    return [a, (a + rng.integers(0, 4, rows)) % 12, rng.integers(0, 3, rows)]


ORDERED = Domain((Attribute("a", 12, 12), Attribute("b", 12, 12), Attribute("c", 3)))


def places(text: str) -> np.ndarray:
    return np.array([[int(x) for x in p.split(",")] for p in text.split()])


def test_the_axes_are_the_two_first_principal_components_of_standardized_ranks():
    real = table(Domain(ORDERED.attributes[:2]), *worlds(400, 1)[:2])
    found = principal_axes({"real": real, "synthetic": real})
    ranks = np.stack([stats.rankdata(c) for c in real.columns], axis=1)
    ranks = (ranks - ranks.mean(axis=0)) / ranks.std(axis=0)
    variances = np.linalg.svd(ranks, compute_uv=False) ** 2
    assert found["explained"] == pytest.approx((variances / variances.sum()).tolist())
    assert (found["rows"]["real"], found["fitted"], found["columns"], found["of"]) == (400, 400, 2, 2)
    first = places(found["points"]["real"])[:, 0]
    component = ranks @ np.linalg.svd(ranks)[2][0]
    assert abs(np.corrcoef(first, component)[0, 1]) > 0.999
    assert found["points"]["real"] == found["points"]["synthetic"]


def test_tables_that_differ_lie_apart_and_what_lies_outside_lies_on_the_edge():
    real, other = table(ORDERED, *worlds(3000, 1)), table(ORDERED, *([11] * 50 for _ in range(2)), [0] * 50)
    found = principal_axes({"real": real, "synthetic": other, "holdout": table(ORDERED, *worlds(3000, 2))})
    clouds = {n: places(t) for n, t in found["points"].items()}
    assert {n: len(c) for n, c in clouds.items()} == {"real": DRAWN, "synthetic": 50, "holdout": DRAWN} == found["rows"]
    assert all(c.min() >= 0 and c.max() <= 1000 for c in clouds.values())
    middle = {n: c.mean(axis=0) for n, c in clouds.items()}
    assert np.abs(middle["real"] - middle["holdout"]).max() < 40 < np.abs(middle["real"] - middle["synthetic"]).max()


def test_without_rows_or_without_two_directions_there_are_no_axes():
    assert principal_axes({"real": table(ORDERED, [], [], []), "synthetic": table(ORDERED, [], [], [])}) is None
    flat = table(ORDERED, [1] * 9, [2] * 9, [0] * 9)
    assert principal_axes({"real": flat, "synthetic": flat}) is None
    one = Domain((ORDERED.attributes[0],))
    assert principal_axes({"real": table(one, [1, 2, 3]), "synthetic": table(one, [1, 2, 3])}) is None


def test_pairs_are_the_farthest_and_then_the_strongest_of_the_rest():
    far = [(("a", "b"), 0.1), (("c",), 0.9), (("a", "c"), 0.4), (("b", "d"), 0.3), (("c", "d"), 0.2), (("a", "d"), 0.0)]
    strong = [[None, 0.9, 0.1, 0.2], [0.9, None, 0.8, 0.3], [0.1, 0.8, None, 0.1], [0.2, 0.3, 0.1, None]]
    found = [(a, b) for a, b, _ in chosen_pairs(far, ["a", "b", "c", "d"], strong)]
    assert found == [("a", "c"), ("b", "d"), ("c", "d"), ("a", "b"), ("b", "c"), ("a", "d")]
    asked = chosen_pairs(far, ["a", "b", "c", "d"], strong, [("d", "a"), ("c", "a")])
    assert asked[:3] == [("d", "a", ASKED), ("c", "a", ASKED), ("b", "d", "farthest from the real table")]
    assert len(asked) == len({frozenset(p[:2]) for p in asked})


def test_cells_of_a_pair_are_the_shares_of_its_records_in_both_tables():
    schema = parse_schema(
        {
            "columns": {
                "x": {"kind": "integer", "min": 0, "max": 40},
                "y": {"kind": "categorical", "values": list("pqr")},
            }
        },
        where="here",
    )
    rng = np.random.default_rng(3)
    x = np.minimum(rng.integers(0, 41, 500), rng.integers(0, 41, 500))
    y = (x > 15).astype(int) + rng.integers(0, 2, 500)
    real = CodedTable(schema.domain, (x.astype(np.uint8), y.astype(np.uint8)))
    made = CodedTable(schema.domain, (rng.permutation(x).astype(np.uint8), y.astype(np.uint8)))
    (pair,) = pair_maps([("x", "y", "because")], real, made, schema)
    assert len(pair["rows"]) <= CELLS and pair["columns"][:3] == list("pqr")
    assert np.sum(pair["real"]) == pytest.approx(1) and np.sum(pair["synthetic"]) == pytest.approx(1)
    ends = [tuple(int(v) for v in (n.split(" … ") if " … " in n else (n, n))) for n in pair["rows"] if n != "missing"]
    assert (ends[0][0], ends[-1][1]) == (0, 40)
    for (low, high), line in zip(ends, pair["real"], strict=False):
        share = [((x >= low) & (x <= high) & (y == v)).mean() for v in range(3)]
        assert line[:3] == pytest.approx(share)
    both = [pd.crosstab(c, y).reindex(range(41), fill_value=0) / 500 for c in (x, made.columns[0])]
    assert pair["tvd"] == pytest.approx(float((both[0] - both[1]).abs().to_numpy().sum() / 2))


def test_a_curve_is_a_kernel_estimate_and_the_distance_that_of_kolmogorov_and_smirnov():
    rng = np.random.default_rng(5)
    real, made = rng.normal(10, 3, 4000), rng.normal(11, 3, 3000)
    (found,) = densities(["x"], (real[:, None], made[:, None]))
    assert found["distance"] == pytest.approx(stats.ks_2samp(real, made).statistic)
    at = np.linspace(*found["x"], POINTS)
    spread = min(real.std(), stats.iqr(real) / 1.34)
    width = 0.9 * spread * len(real) ** -0.2
    expected = [stats.gaussian_kde(v, width / v.std(ddof=1))(at) for v in (real, made)]
    top = max(e.max() for e in expected)
    for side, curve in zip(("real", "synthetic"), expected, strict=True):
        assert np.abs(np.array(found[side]) - curve / top).max() < 0.01


def test_a_frequent_value_is_said_and_left_out_of_the_curve():
    rng = np.random.default_rng(6)
    real = np.where(rng.random(2000) < 0.9, 0.0, rng.normal(500, 30, 2000))
    made = np.where(rng.random(2000) < 0.5, 0.0, rng.normal(500, 30, 2000))
    (found,) = densities(["loss"], (real[:, None], made[:, None]))
    assert [s["value"] for s in found["spikes"]] == [0.0]
    assert found["spikes"][0]["real"] == pytest.approx((real == 0).mean())
    assert found["x"][0] > 350
    assert max(found["synthetic"]) == 1.0 and 0.1 < max(found["real"]) < 0.4
    assert densities(["few"], (np.tile([[1.0], [2.0]], (50, 1)), made[:, None])) == []
    assert densities(["none"], (np.full((9, 1), np.nan), made[:, None])) == []


def test_values_are_valid_inside_the_real_range_or_among_the_real_ones():
    columns = (
        ValueColumn("n", "number", np.array([1.0, 2.0, 3.0, 9.0]), ("not a number", "missing")),
        ValueColumn("t", "category", np.array(["a", "b", "c"])),
        ValueColumn("same", "category", np.array(["z"])),
    )
    domain = Domain(tuple(c.attribute for c in columns))
    real = table(domain, [0, 0, 2, 5], [0, 0, 1, 1], [0] * 4)
    made = table(domain, [1, 3, 4, 5, 5], [0, 1, 2, 2, 2], [0] * 5)
    found = {c["column"]: c for c in valid_columns(Values(columns, {"real": real, "synthetic": made}))}
    assert list(found) == ["n", "t", "same"]
    assert found["n"]["allowed"] == pytest.approx(1 / 3) and found["n"]["missing"] == [0.25, 0.4]
    assert found["t"]["allowed"] == pytest.approx(2 / 5) and found["t"]["missing"] == [0, 0]
    assert found["same"]["allowed"] == 1


def test_a_rule_is_broken_by_the_rows_that_break_it_and_by_no_value_outside():
    schema = parse_schema(
        {
            "columns": {
                "start": {"kind": "integer", "min": 0, "max": 3},
                "end": {"kind": "integer", "min": 0, "max": 3},
                "kind": {"kind": "categorical", "values": ["p", "q"]},
            },
            "ordered": [["start", "end"]],
            "impossible": [{"kind": "q", "start": 0}],
        },
        where="here",
    )
    grown = Domain(tuple(Attribute(a.name, a.size + 1, a.ordered) for a in schema.domain.attributes))
    real = table(grown, [0, 1, 2, 2], [1, 1, 3, 3], [0, 1, 1, 0])
    made = table(grown, [3, 1, 0, 5], [1, 1, 3, 0], [0, 1, 1, 0])
    found = {r["rule"]: (r["real"], r["synthetic"]) for r in broken_rules(schema.rules, schema.domain, real, made)}
    assert found == {"start ≤ end": (0.0, 0.25), "impossible: start × kind": (0.0, 0.25)}
