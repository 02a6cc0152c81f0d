"""Tables of values: nothing is binned or clipped, and metrics of values read them; pictures of two tables."""

import datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evaluation.accuracy.anita_accuracy import apart_edges
from evaluation.correlation import cramers_v
from evaluation.papers.anita.anita_privacy import matches
from evaluation.papers.challenges.match_2018 import gini_score
from evaluation.pictures.pair_maps import ASKED, CELLS, chosen_pairs, pair_maps
from evaluation.pictures.pictures import DRAWN, POINTS, densities, principal_axes
from evaluation.pictures.validity import broken_rules, valid_columns
from evaluation.values.value_kinds import kind_of
from evaluation.values.value_tables import BUCKETS, NOBODY, ValueColumn, Values, bucketed, numbered
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.schema.table_schema import parse_schema
from mechanisms.public.tables.value_dictionaries import dictionaries, raw_expressions
from pipeline import score
from pipeline.scores.first_look import value_look
from pipeline.scores.table_sources import opened
from tests.evaluation.worlds import result_of, values_of


def read(folder: Path, real: pd.DataFrame, synthetic: pd.DataFrame, schema: dict | None = None):
    return values_of(folder, real, synthetic, schema and parse_schema(schema, where="test"))


CODES = {"CITY": range(20), "SEX": (1, 2)}


def incomes(rows: int, seed: int) -> pd.DataFrame:
    """People of twenty cities, a fifth of them with an income that is not available (999,998)."""
    rng = np.random.default_rng(seed)
    income = np.round(rng.lognormal(7, 1, rows))
    income[rng.random(rows) < 0.2] = 999_998
    return pd.DataFrame({"CITY": rng.integers(0, 20, rows), "SEX": rng.integers(1, 3, rows), "INCWAGE": income})


def incomes_in(*, top: int, bins: int) -> dict:
    """Their schema, with incomes up to `top` in so many bins."""
    texts = {name: {"kind": "categorical", "values": [str(v) for v in own]} for name, own in CODES.items()}
    return {"columns": texts | {"INCWAGE": {"kind": "integer", "min": 0, "max": top, "bins": {"count": bins}}}}


def workers(rows: int, seed: int, tie: float = 0.1) -> pd.DataFrame:
    """Nineteen in twenty have no loss; those who have one are richer by `tie`."""
    rng = np.random.default_rng(seed)
    loss = np.where(rng.random(rows) < 0.05, rng.integers(100, 4000, rows), 0)
    rich = rng.random(rows) < np.where(loss > 0, 0.25 + tie, 0.25)
    return pd.DataFrame({"capital_loss": loss, "income": np.where(rich, ">50K", "<=50K")})


#: Columns by their kind.
KINDS = {
    "number": ["1", "2.5", "-3", "1e3", ""],
    "number ($)": ["$1,200.50", "$3.00", "$12,000.00", "$7.25", "$1.10"],
    "date": ["2020-01-31", "2021-02-28", "2022-03-01", "?", "2020-01-31"],
    "date (American)": ["01/31/2020", "02/28/2021", "12/24/2022", "06/15/2019", "01/31/2020"],
    "flag": ["yes", "no", "yes", "no", "NA"],
    "flag (bits)": ["0", "1", "1", "0", "1"],
    "category": ["ape", "bear", "ape", "cat", "ape"],
    "category (zip)": ["01234", "99999", "01234", "20000", "01234"],
}


def test_the_mean_of_days_without_a_schema_is_a_day_beside_a_deviation_in_days(tmp_path):
    days = pd.Series(pd.to_datetime(["2024-01-01", "2024-01-02", "2024-03-01"]))
    frame = pd.DataFrame({"day": days.dt.strftime("%d.%m.%Y")})
    schema = parse_schema({"columns": {"x": {"kind": "flag"}}}, where="test")
    look = value_look(read(tmp_path, frame, frame), schema, [])
    (own,) = [line["real"] for line in look.numbers]
    assert own["mean"] == "2024-01-21" and own["stddev"] == pytest.approx(days.std().total_seconds() / 86_400)


@pytest.mark.parametrize("name", KINDS)
def test_the_kind_of_a_column_is_that_of_its_values(tmp_path, name):
    pd.DataFrame({"x": KINDS[name]}).to_csv(tmp_path / "table.csv", index=False)
    with opened({"real": tmp_path / "table.csv"}) as sources:
        source = sources["real"]
        assert kind_of("x", dictionaries(source, raw_expressions(source, ["x"]))["x"]).kind == name.split()[0]


def test_ids_are_left_out_and_named(tmp_path):
    rows = 200
    frame = pd.DataFrame({"row": range(rows), "code": [f"x{i}" for i in range(rows)], "age": np.arange(rows) % 70})
    found = without_ids = read(tmp_path, frame, frame.sample(frac=1, random_state=1))
    assert [c.name for c in without_ids.columns] == ["age"]
    assert found.notices == ("left out as ids: 'row', 'code'",)


@pytest.mark.slow
def test_frames_csv_and_parquet_give_the_same_scores(tmp_path):
    rng = np.random.default_rng(0)

    def table(seed: int) -> pd.DataFrame:
        return pd.DataFrame(
            {
                "height": rng.normal(size=300).round(2),
                "born": [datetime.date(1990, 1, 1) + datetime.timedelta(int(d)) for d in rng.integers(0, 900, 300)],
                "owns": rng.random(300) < 0.3,
                "town": rng.choice(["Ulm", "Bonn", "Köln"], 300),
            }
        )

    real, made = table(1), table(2)
    for frame, name in ((real, "real"), (made, "made")):
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
        frame.to_parquet(tmp_path / f"{name}.parquet")
    frames = score(real, made).to_json()
    for end in ("csv", "parquet"):
        paths = score(str(tmp_path / f"real.{end}"), str(tmp_path / f"made.{end}")).to_json()
        assert paths["metrics"] == frames["metrics"]
        assert paths["numbers"] == frames["numbers"]
    assert score(real, real).frame().query("goal == 'low'")["score"].max() == 0


def test_values_are_those_of_the_file_whatever_the_schema_bins_and_bounds(tmp_path):
    real, made = incomes(500, 1), incomes(400, 2)
    schema = incomes_in(top=5000, bins=8)
    values = read(tmp_path, real, made, schema)
    for table, frame in (("real", real), ("synthetic", made)):
        back = values.frame(values.tables[table], ["CITY", "SEX", "INCWAGE"])
        assert (back["INCWAGE"] == frame["INCWAGE"]).all()
        assert (back["CITY"] == frame["CITY"].astype(str)).all()


def test_numbers_of_a_file_that_knows_them_are_the_listed_texts(tmp_path):
    """A list of 380.00 and 0012 beside decimals and whole numbers of Parquet: all records counted as misplaced."""
    made = pd.DataFrame({"basic": ["380.00", "1031.50", "1031.50"], "code": ["0012", "0012", "0007"]})
    real = pd.DataFrame({"basic": [Decimal(b) for b in made["basic"]], "code": [12, 12, 7]})
    columns = {name: {"kind": "categorical", "values": sorted(set(made[name]))} for name in made}
    real.to_parquet(tmp_path / "real.parquet")
    made.to_csv(tmp_path / "made.csv", index=False)
    paths = (str(tmp_path / "real.parquet"), str(tmp_path / "made.csv"))
    card = score(*paths, {"columns": columns, "confirmed_public": True}, metrics=["anita_1way", "anita_2way"])
    assert card.frame()["score"].tolist() == [1, 1]


def test_gini_reads_incomes_not_bins_so_that_what_is_not_available_is_no_income():
    real, made = incomes(4000, 1), incomes(4000, 2)
    schema = incomes_in(top=1_000_000, bins=32)
    roles = {"evaluation.group": "CITY", "evaluation.sex": "SEX", "evaluation.income": "INCWAGE"}
    wanted = gini_score(real, made).score
    assert wanted is not None
    for given_schema in (schema, None):
        card = score(real, made, given_schema, metrics=["gini"], **roles)
        assert card.outcomes["gini"].score == pytest.approx(wanted, abs=1e-6)


def test_a_column_that_is_mostly_zero_still_tells_by_its_other_values(tmp_path):
    real, made = workers(20_000, 1, tie=0.4), workers(20_000, 2, tie=0.0)
    wanted = [cramers_v(pd.crosstab(t["capital_loss"] > 0, t["income"]).to_numpy()) for t in (real, made)]
    assert wanted[0] > 0.15 > 0.02 > wanted[1]
    both = read(tmp_path, real, made)
    frame = result_of("correlation", both.tables["real"], both.tables["synthetic"]).frame
    row = frame.iloc[0]
    assert (row["kind"], row["a"]) == ("cramers_v", "capital_loss")
    assert row["real"] >= wanted[0]  # finer buckets tell no less
    assert row["synthetic"] == pytest.approx(wanted[1], abs=0.04)


def test_pearson_is_that_of_the_values(tmp_path):
    rng = np.random.default_rng(3)
    x = rng.lognormal(0, 2, 2000)
    real = pd.DataFrame({"x": x, "y": x + rng.normal(size=2000)})
    made = pd.DataFrame({"x": x[::-1], "y": real["y"]})
    values = read(tmp_path, real, made)
    tables = values.tables
    row = result_of("correlation", tables["real"], tables["synthetic"], values=values).frame.iloc[0]
    assert row["real"] == pytest.approx(real.corr().iloc[0, 1], abs=1e-9)
    assert row["synthetic"] == pytest.approx(made.corr().iloc[0, 1], abs=1e-9)
    real.loc[0, "x"] = 9_999_999_999  # beside it what varies in the other rows is next to nothing
    made = real.iloc[1:101]
    tables = (values := read(tmp_path, real, made)).tables
    row = result_of("correlation", tables["real"], tables["synthetic"], values=values).frame.iloc[0]
    assert row["synthetic"] == pytest.approx(made.corr().iloc[0, 1], abs=1e-6) and row["synthetic"] > 0.9


def test_identical_rows_are_identical_values_not_equal_bins(tmp_path):
    rng = np.random.default_rng(4)

    def players(rows: int) -> pd.DataFrame:
        return pd.DataFrame({"height": rng.normal(180, 8, rows).round(1), "weight": rng.normal(80, 9, rows).round(1)})

    real, fresh = players(3000), players(1500)
    made = pd.concat([real.iloc[:40], players(1460)], ignore_index=True)
    schema = {"columns": {n: {"kind": "float", "min": 40, "max": 240, "bins": {"count": 20}} for n in real}}
    rows = set(map(tuple, real.to_numpy()))
    for table in (made, fresh):
        wanted = sum(tuple(row) in rows for row in table.to_numpy())
        for given_schema in (schema, None):
            values = read(tmp_path, real, table, given_schema)
            assert matches(values.tables["synthetic"], values.tables["real"])["exact"] == wanted


def test_deciles_are_those_of_the_values():
    """Platzer 2020, section 2: buckets [lo, hi) between the deciles of the real values; 1 − mean TVD."""
    rng = np.random.default_rng(5)
    real, made = (pd.DataFrame({"x": rng.lognormal(m, 1, 2000), "y": rng.normal(m, 1, 2000)}) for m in (0, 0.4))
    distances = []
    for name in real:
        ordered = np.sort(real[name].to_numpy())
        edges = ordered[(len(ordered) * np.arange(1, 10)) // 10]
        shares = [np.bincount(np.searchsorted(edges, t[name], side="right"), minlength=10) / 2000 for t in (real, made)]
        distances.append(np.abs(shares[0] - shares[1]).sum() / 2)
    schema = {"columns": {n: {"kind": "float", "min": -50, "max": 500, "bins": {"count": 12}} for n in real}}
    for given_schema in (None, schema):
        card = score(real, made, given_schema, metrics=["anita_1way"])
        assert card.outcomes["anita_1way"].score == pytest.approx(1 - np.mean(distances), abs=1e-12)


@given(st.lists(st.integers(0, 40), min_size=1, max_size=60), st.integers(2, 20))
def test_a_frequent_value_is_a_bucket_alone(counts, m):
    counts = np.array(counts)
    edges = apart_edges(counts, m)
    buckets = np.searchsorted(edges, np.arange(len(counts)), side="right")
    assert buckets.max() + 1 == len(edges) + 1 <= m + 1
    for place in np.flatnonzero(counts * m > 2 * counts.sum()):
        assert (buckets == buckets[place]).sum() == 1


def test_buckets_hold_every_row_under_a_name_of_its_own(tmp_path):
    rng = np.random.default_rng(6)
    real = pd.DataFrame({"x": rng.normal(size=500), "town": rng.choice([f"t{i}" for i in range(80)], 500)})
    made = pd.DataFrame({"x": ["oops", *map(str, rng.normal(5, 1, 99))], "town": ["elsewhere"] * 100})
    found = read(tmp_path, real, made)
    schema, tables = bucketed(found, "made up")
    for column in schema.columns:
        assert len(set(column.labels)) == len(column.labels)
    assert schema["x"].value_codes <= BUCKETS + 1
    assert not schema.confirmed_public
    assert all(t.rows == n for t, n in zip(tables.values(), (500, 100), strict=True))
    assert schema["x"].other == "not a number"


def test_subjects_are_numbered_in_their_order_not_in_that_of_the_rows():
    real, made = np.array(["10", "9", "", "10"], object), np.array(["9", None, "100"], object)
    one, two = numbered(real, made)
    assert one.tolist() == [1, 0, NOBODY, 1]
    assert two.tolist() == [0, NOBODY, 2]
    words, _ = numbered(np.array(["b", "10", "9"], object), np.array([], object))
    assert words.tolist() == [2, 0, 1]


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
                "end": {"kind": "integer", "min": 0, "max": 3},
                "start": {"kind": "integer", "min": 0, "max": 3},
                "kind": {"kind": "categorical", "values": ["p", "q"]},
            },
            "ordered": [["start", "end"]],
            "impossible": [{"kind": "q", "start": 0}],
        },
        where="here",
    )
    grown = Domain(tuple(Attribute(a.name, a.size + 1, a.ordered) for a in schema.domain.attributes))
    real = table(grown, [1, 1, 3, 3], [0, 1, 2, 2], [0, 1, 1, 0])
    made = table(grown, [1, 1, 3, 0], [3, 1, 0, 5], [0, 1, 1, 0])
    found = {r["rule"]: (r["real"], r["synthetic"]) for r in broken_rules(schema.rules, schema.domain, real, made)}
    assert found == {"start ≤ end": (0.0, 0.25), "impossible: start × kind": (0.0, 0.25)}
