"""Computed columns: an expression means what Python's dates and numbers mean, and every written row keeps to it."""

import datetime
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.public.drafts.draft import draft_schema
from mechanisms.public.drafts.sum_guess import guess_products
from mechanisms.public.errors import UserError
from mechanisms.public.rules.expressions import Type, parse_expression
from mechanisms.public.rules.fine_columns import with_fine_columns
from mechanisms.public.schema.table_schema import Schema, load_schema, parse_schema
from mechanisms.public.tables.codec import encode_columns
from mechanisms.public.tables.value_summaries import rows_clipped, rows_that_differ
from pipeline.look.rehearse import write_rows
from pipeline.release_folder import check_columns
from tests.public.table_worlds import csv, refusal, source

TYPES: dict[str, Type] = {"a": "date", "b": "date", "t": "datetime", "x": "number", "y": "number", "my col": "number"}
DAY0 = datetime.date(1970, 1, 1)
STAY = {
    "born": {"kind": "date", "min": "1920-01-01", "max": "2023-12-31", "bins": "year"},
    "admitted": {"kind": "date", "min": "2024-01-01", "max": "2024-12-31", "bins": "month", "missing": False},
    "stay": {"kind": "integer", "min": 0, "max": 60, "bins": {"count": 6}, "missing": False},
    "discharged": {"kind": "date", "min": "2024-01-01", "max": "2025-03-31", "missing": False},
    "age": {"kind": "integer", "min": 0, "max": 110},
    "cost": {"kind": "float", "min": 0, "max": 900, "decimals": 2, "bins": {"count": 2}},
}
RULES = {
    "discharged": {"expression": "admitted + stay"},
    "age": {"expression": "years(born, discharged)"},
    "cost": {"expression": "100 / stay * 7 if stay > 3 else 10"},
}


def facts(columns: dict[str, Any] = STAY, derive: dict[str, Any] = RULES, **more: Any) -> Schema:
    return parse_schema({"columns": columns, "derive": derive, **more}, where="s.yaml")


def value(text: str, **sources: float) -> float:
    expression = parse_expression(text, TYPES, "here")
    return float(expression.values({n: np.array([v]) for n, v in sources.items()})[0])


def number(day: datetime.date) -> int:
    return (day - DAY0).days


days = st.dates(datetime.date(1900, 1, 1), datetime.date(2100, 12, 31))


@settings(max_examples=200)
@given(a=days, b=days)
def test_days_months_and_years_are_those_of_the_calendar(a: datetime.date, b: datetime.date) -> None:
    sources = {"a": number(a), "b": number(b)}
    whole = (b.year - a.year) * 12 + b.month - a.month - (b.day < a.day)
    expected = {
        "days(a, b)": (b - a).days,
        "b - a": (b - a).days,
        "months(a, b)": whole,
        "years(a, b)": whole // 12,
        "year(a) * 10000 + month(a) * 100 + day(a)": a.year * 10000 + a.month * 100 + a.day,
        "max(a, b) - min(a, b)": abs((b - a).days),
        "1 if a < b else 2 if a == b else 3": 1 if a < b else 2 if a == b else 3,
        "years('2000-02-29', a)": a.year - 2000 - ((a.month, a.day) < (2, 29)),
    }
    for text, meant in expected.items():
        assert value(text, **{n: v for n, v in sources.items() if n in text.replace("max", "")}) == meant, text


@settings(max_examples=100)
@given(x=st.integers(-1000, 1000), y=st.integers(-1000, 1000))
def test_arithmetic_is_that_of_numbers(x: int, y: int) -> None:
    assert value("x + y * 2 - -x", x=x, y=y) == x + y * 2 + x
    assert value("floor(x / 7) + ceil(y / 7) + abs(x)", x=x, y=y) == x // 7 + -(-y // 7) + abs(x)
    assert value("1 if x < y <= 500 and not x == 3 or y == 7 else 0", x=x, y=y) == ((x < y <= 500 and x != 3) or y == 7)
    ratio = value("x / y", x=x, y=y)
    assert math.isnan(ratio) if y == 0 else ratio == x / y
    assert value("round(`my col` / 2)", **{"my col": x}) == math.floor(x / 2 + 0.5)


def test_times_differ_in_days_and_count_as_midnight_beside_dates() -> None:
    noon = 86_400 * 10 + 43_200
    assert value("t - a", t=noon, a=8) == 2.5 and value("hours(a, t)", t=noon, a=8) == 60
    assert value("hour(t)", t=noon) == 12 and value("t + 0.5", t=noon) == 86_400 * 11
    assert value("1 if t > a else 0", t=noon, a=10) == 1 and math.isnan(value("x * 0 if x > 1 else y", x=1, y=math.nan))


def test_a_marked_name_may_hold_the_end_of_a_line() -> None:
    """As the heads of sheets do."""
    assert parse_expression("`Sum\nin €`\n+ 1", {"Sum\nin €": "number"}, "here").sources == ("Sum\nin €",)


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ("x + __import__('os')", 5, "no such function"),
        ("x.real", 1, "not allowed"),
        ("x + [y][0]", 5, "not allowed"),
        ("(lambda: x)()", 1, "no such function"),
        ("x ** 9", 1, "operator is not allowed"),
        ("x + 'y'", 5, "got 'y'"),
        ("x + ärger", 5, "no column"),
        ("`my col` + `my cal`", 12, "did you mean 'my col'"),
        ("yers(a, b)", 1, "did you mean 'years'"),
        ("years(a)", 1, "got 1 arguments"),
        ("a + b", 1, "no meaning"),
        ("x if y else x", 6, "where a test belongs"),
        ("x < y", 1, "a test, not a value"),
        ("x + 1e300", 5, "got 1e+300"),
        ("x + f'{y}'", 5, "not allowed"),
        ("x := 3", None, "cannot be read"),
        ("3 + 4", None, "names no column"),
    ],
)
def test_what_is_not_allowed_is_refused_with_its_position_and_the_way_out(text, place, says):
    with pytest.raises(UserError) as error:
        parse_expression(text, TYPES, "s.yaml: derive 'z'")
    assert says in f"{error.value.what} {error.value.fix}" and error.value.where == "s.yaml: derive 'z'"
    assert place is None or f"position {place}:" in error.value.what
    assert error.value.fix


def read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, parse_dates=["born", "admitted", "discharged"])


def rows_of(schema: Schema, folder: Path, rows: int = 400) -> pd.DataFrame:
    write_rows(folder / "rows.csv", schema, rows, column=None, most=1, rng=np.random.default_rng(0))
    return read(folder / "rows.csv")


def test_every_written_row_keeps_to_the_rules_and_missing_sources_leave_gaps(tmp_path: Path) -> None:
    made = rows_of(facts(), tmp_path)
    assert ((made.discharged - made.admitted).dt.days == made.stay).all()
    born, left = made.born, made.discharged
    early = (left.dt.month * 100 + left.dt.day) < (born.dt.month * 100 + born.dt.day)
    age = (left.dt.year - born.dt.year - early).clip(lower=0)
    assert born.isna().any() and (made.age.isna() == born.isna()).all()
    assert (made.age[born.notna()] == age[born.notna()]).all()
    expected = np.where(made.stay > 3, (700 / made.stay.clip(lower=1)).round(2), 10.0)
    assert np.allclose(made.cost.fillna(-1), np.where(made.stay == 0, 10, expected), atol=0.0051)
    assert rows_that_differ(source(tmp_path / "rows.csv"), facts()) == dict.fromkeys(
        ["derive 'discharged'", "derive 'age'", "derive 'cost'"], 0
    )


@pytest.mark.parametrize(("outside", "negative"), [("clip", 0.0), ("missing", None)])
def test_a_result_beyond_the_bounds_is_clipped_or_missing(outside: str, negative: float | None, tmp_path: Path) -> None:
    dates = {n: {**STAY["admitted"]} for n in ("born", "admitted", "discharged")}
    stay = {"kind": "integer", "min": 0, "max": 400, "outside": outside}
    schema = facts({**dates, "stay": stay}, {"stay": {"expression": "discharged - admitted"}})
    made = rows_of(schema, tmp_path)
    real = (made.discharged - made.admitted).dt.days
    assert (real < 0).any() and (made.stay[real >= 0] == real[real >= 0]).all()
    wrong = made.stay[real < 0]
    assert wrong.isna().all() if negative is None else (wrong == negative).all()
    clipped = rows_clipped(source(tmp_path / "rows.csv"), schema)
    assert clipped == ({} if negative is None else {"derive 'stay'": int((real < 0).sum())})


def test_a_time_of_whole_minutes_beyond_the_last_day_is_its_last_minute(tmp_path: Path) -> None:
    """Of animals that left after the last day one in twenty left at 23:59:59, where all others left on the minute."""
    times = {"kind": "datetime", "min": "2024-01-01", "max": "2024-01-03", "multiple_of": 60, "missing": False}
    columns = {"came": times, "stay": {"kind": "integer", "min": 0, "max": 9, "missing": False}, "left": times}
    made = facts(columns, {"left": {"expression": "came + stay"}})
    write_rows(tmp_path / "rows.csv", made, 200, column=None, most=1, rng=np.random.default_rng(0))
    left = pd.read_csv(tmp_path / "rows.csv", parse_dates=["left"]).left
    assert (left.dt.second == 0).all() and left.max() == pd.Timestamp("2024-01-03 23:59")


def test_where_rows_are_measured_the_column_is_not_read(tmp_path: Path) -> None:
    schema = facts()
    rows_of(schema, tmp_path, 50)
    table = pd.read_csv(tmp_path / "rows.csv", dtype=str)
    codes = []
    for text in ("?", "1"):
        table.assign(age=text, cost=text, discharged=text).to_csv(tmp_path / "t.csv", index=False)
        coded, report = encode_columns(source(tmp_path / "t.csv"), schema, workdir=tmp_path / text, fine=True)
        assert report.outside["age"] == report.unplaced["age"] == 0
        codes.append([c.tolist() for c in coded.columns])
    assert codes[0] == codes[1]
    assert schema.measured.names == ("born", "admitted", "stay")


def test_rows_that_break_a_rule_are_counted(tmp_path: Path) -> None:
    rows_of(facts(), tmp_path, 100)
    table = pd.read_csv(tmp_path / "rows.csv")
    table.loc[:6, "discharged"] = "2024-02-30"
    table.loc[90:, "stay"] += 1
    table.to_csv(tmp_path / "t.csv", index=False)
    assert rows_that_differ(source(tmp_path / "t.csv"), facts())["derive 'discharged'"] == 17


def test_a_number_divided_by_a_constant_that_is_not_0_is_never_missing() -> None:
    never = {**STAY, "cost": {**STAY["cost"], "missing": False}}
    assert not facts(never, {**RULES, "cost": {"expression": "stay / 7"}})["cost"].missing
    for none in ("0", "1e-320"):
        derive = {**RULES, "cost": {"expression": f"stay / {none}"}}
        assert "a division by 0" in refusal({"columns": never, "derive": derive})


def test_the_rules_survive_saving(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(facts().to_yaml(), encoding="utf-8")
    again = load_schema(tmp_path / "s.yaml")
    assert again.to_yaml() == facts().to_yaml()
    pd.testing.assert_frame_equal(rows_of(again, tmp_path), rows_of(facts(), tmp_path))


def test_the_sources_of_a_column_are_those_that_no_rule_computes() -> None:
    """A question about a bill was sent to its net amount, from there to the charges, and from there to the calls."""
    whole, words = (
        {"kind": "integer", "min": 0, "max": 9, "missing": False},
        {"net": "calls * rate", "tax": "net * 0.2"},
    )
    derive = {n: {"expression": text} for n, text in {**words, "bill": "net + tax + fee"}.items()}
    columns = dict.fromkeys(["calls", "rate", "fee", "net", "tax", "bill"], whole)
    schema = parse_schema({"columns": columns, "derive": derive}, where="s.yaml")
    assert schema.rules.sources("bill") == ["calls", "rate", "fee"] and schema.rules.sources("fee") == []
    with pytest.raises(UserError, match="made from: calls, rate, fee"):
        check_columns(schema, "column", ["bill"])


def test_sources_may_have_bounds_that_are_to_be_discovered() -> None:
    born = {"kind": "date", "bounds": "discover"}
    assert [c.name for c in facts({**STAY, "born": born}).to_discover] == ["born"]


@pytest.mark.parametrize(
    ("columns", "rules", "says"),
    [
        ({}, {"impossible": [{"age": {"max": 3}, "stay": {"max": 9}}]}, "impossible: 'age' is computed"),
        ({}, {"ordered": [["admitted", "discharged"]]}, "discharged"),
        ({}, {"unit_id": {"name": "p", "records": {1: 1.0}, "order_by": ["age"]}}, "unit_id: 'age' is computed"),
        ({}, {"mapped": {"stay": {"from": "age"}}}, "age"),
        ({}, {"recode": {"r": {"columns": ["age", "stay"]}}}, "recode 'r': column 'age' is derived"),
        ({"w": {"kind": "integer", "min": 0, "max": 1}}, {"derive": {**RULES, "w": {"from": "age", "otherwise": 0,
          "map": {5: 1}}}}, "derive 'w': 'age' is computed"),
        ({}, {"derive": {**RULES, "stay": {"expression": "days(admitted, discharged)"}}}, "follow from each other"),
        ({"age": {"kind": "flag", "true": ["1"], "false": ["0"]}}, {}, "of kind flag"),
        ({"age": {"kind": "date", "min": "2000-01-01", "max": "2001-01-01"}}, {}, "the result is a number"),
        ({"age": {**STAY["age"], "missing": False}}, {}, "never missing, but 'born' may be"),
        ({"cost": {**STAY["cost"], "missing": False}}, {}, "a division by 0"),
        ({"age": {**STAY["age"], "other": "old"}}, {}, "other: the column is not measured"),
        ({"age": {**STAY["age"], "outside": "refuse"}}, {}, "outside: refuse"),
        ({}, {"derive": {"age": {"expression": "stay", "map": {}}}}, "map beside expression"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_when_the_schema_is_read(columns, rules, says):
    assert says in refusal({"columns": {**STAY, **columns}, "derive": RULES, **rules})


def drafted(folder: Path, table: pd.DataFrame) -> str:
    table.to_csv(folder / "t.csv", index=False)
    return draft_schema(source(folder / "t.csv"), "t")


def test_a_draft_proposes_what_nearly_no_row_breaks_and_nothing_else(tmp_path: Path) -> None:
    rows_of(facts(), tmp_path, 300)
    table = pd.read_csv(tmp_path / "rows.csv").rename(columns={"admitted": "day in"})
    text = drafted(tmp_path, table)
    assert '#   "discharged": {expression: "`day in` + stay"}  # in all 300 rows' in text
    assert '"stay": {expression' not in text, "the docs say: measure what is short and derive what is long"
    assert '"discharged"]' not in text, "no other rule names what is computed"
    table.loc[7, "stay"] += 1
    assert '`day in` + stay"}  # in 299 of the 300 rows' in drafted(tmp_path, table)
    table.loc[::20, "stay"] += 1
    text = drafted(tmp_path, table)
    assert 'stay"}' not in text and '"stay": {' not in text and '"age": {expression: "years(born, discharged)"}' in text
    assert "derive" not in draft_schema(source(csv(tmp_path, "a,b\n1,2\n", "u.csv")), "t")


@pytest.mark.slow
def test_a_draft_proposes_sums_of_many_answers_some_of_which_count_the_other_way_round(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    table = pd.DataFrame({f"i{k:02}": rng.integers(1, 6, 500) for k in range(60)})
    turned = [f"i{k:02}" for k in (3, 17)]
    for first in (0, 30):
        own = [f"i{k:02}" for k in range(first, first + 30)]
        table[f"scale{first}"] = sum((6 - table[n] if n in turned else table[n]) for n in own)
    text = drafted(tmp_path, table)
    for first in (0, 30):
        plain = [f"i{k:02}" for k in range(first, first + 30) if f"i{k:02}" not in turned]
        words = " + ".join([*plain, *(f"(6 - {n})" for n in turned if first == 0)])
        assert f'#   "scale{first}": {{expression: "{words}"}}' in text


def test_a_draft_proposes_a_sum_that_is_empty_where_a_part_is(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    table = pd.DataFrame(rng.integers(50, 300, (400, 3)) / 10, columns=["morning", "evening", "fat"])
    table.loc[::9, "evening"], table.loc[::2, "fat"] = np.nan, np.nan
    table["day"] = (table.morning + table.evening).round(1)
    assert '#   "day": {expression: "morning + evening"}  # in all 400 rows' in drafted(tmp_path, table)


def test_a_draft_measures_two_dates_whose_distance_is_longer_than_the_dates_reach(tmp_path: Path) -> None:
    """The later one as a sum of the others would mostly lie beyond its bounds, and be clipped to them."""
    rng = np.random.default_rng(7)
    milked = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 90, 400), "D")
    age = rng.integers(0, 400, 400)
    text = drafted(tmp_path, pd.DataFrame({"calved": milked - pd.to_timedelta(age, "D"), "milked": milked, "age": age}))
    assert '#   "age": {expression: "days(calved, milked)"}' in text and text.count("expression") == 1


@pytest.mark.parametrize(("part", "seconds"), [("", 86_400), (" / 24", 3_600), (" / 1440", 60), (" / 86400", 1)])
def test_a_draft_proposes_the_time_that_lies_a_length_after_another(tmp_path: Path, part, seconds) -> None:
    rng = np.random.default_rng(2)
    start = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 30_000_000, 400), "s")
    stay = rng.integers(0, 50, 400)
    table = pd.DataFrame({"came": start, "left": start + pd.to_timedelta(stay * seconds, "s"), "stay": stay})
    text = drafted(tmp_path, table)
    assert f'#   "left": {{expression: "came + stay{part}"}}  # in all 400 rows' in text and "# ordered:" not in text


def test_a_draft_says_how_an_age_is_measured_in_the_place_of_the_birth_that_it_follows_from(tmp_path: Path) -> None:
    """The retired of a release were of any age: two dates, each in bins of years, did not tell it together."""
    rng = np.random.default_rng(3)
    joined = pd.Timestamp("2010-01-01") + pd.to_timedelta(rng.integers(0, 4_000, 600), "D")
    born = joined - pd.to_timedelta(rng.integers(7_000, 30_000, 600), "D")
    early = joined.month * 100 + joined.day < born.month * 100 + born.day
    table = pd.DataFrame({"born": born, "joined": joined, "age": joined.year - born.year - early})
    text = drafted(tmp_path, table)
    (line,) = (one for one in text.splitlines() if "years(born, joined)" in one)
    declared = yaml.safe_load(text) | {"derive": yaml.safe_load(f"{{{line[line.index('rule: ') + 6 :]}}}")}
    declared["derive"]["age"] = {"expression": "years(born, joined)"}
    schema = parse_schema(declared, where="s.yaml")
    coded, report = encode_columns(source(tmp_path / "t.csv"), schema, workdir=tmp_path / "coded", fine=True)
    assert "born_length" in schema.measured.names and "born" not in schema.measured.names
    assert report.outside["born_length"] == 0 and coded.rows == 600


def test_a_draft_proposes_the_day_of_a_time_and_none_that_a_row_breaks(tmp_path: Path) -> None:
    """In a release the day of an appointment and the time of the same lay months apart, and nothing said so."""
    seen = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.random.default_rng(2).integers(0, 30_000, 400) * 900, "s")
    table = pd.DataFrame({"day": seen.strftime("%d.%m.%Y"), "seen": seen})
    assert '#   "day": {expression: "seen"}  # in all 400 rows' in drafted(tmp_path, table)
    table.loc[::20, "day"] = "01.01.2024"
    assert "expression" not in drafted(tmp_path, table)


@pytest.mark.slow
def test_a_draft_proposes_products_and_fixed_shares_that_nearly_no_row_breaks(tmp_path: Path) -> None:
    """Units came at any price, and euros at any rate; three rows in a hundred may differ, of those that could."""
    rng = np.random.default_rng(8)
    table = pd.DataFrame({"units": rng.integers(0, 9, 1_000), "price": rng.integers(100, 9_000, 1_000) / 100})
    table["fee"], table["feet"] = (table.units * table.price).round(2), rng.integers(20, 200, 1_000)
    table["tax"], table["size"] = (table.fee * 0.19).round(2), (table.feet * 0.0929).round(1)
    table.loc[5, "fee"] += 1
    text = drafted(tmp_path, table)
    assert '"fee": {expression: "units * price"}  # in 999 of the 1,000 rows' in text
    assert '"tax": {expression: "fee * 0.19"}  # in 999 of' in text and '{expression: "feet * 0.0929"}' in text
    table.loc[::25, "fee"] += 1
    assert "units * price" not in drafted(tmp_path, table)


def test_a_draft_proposes_products_to_which_a_column_is_added_and_shares_with_a_fixed_amount(tmp_path: Path) -> None:
    """Without the rule a bill had nothing to do with its rate and nights: each column was measured by itself."""
    rng = np.random.default_rng(8)
    table = pd.DataFrame({"nights": rng.integers(1, 9, 1_000), "rate": rng.integers(4_000, 30_000, 1_000) / 100})
    table["extras"] = np.where(rng.random(1_000) < 0.5, 0, rng.integers(500, 9_000, 1_000) / 100)
    table["hours"], table["wage"] = rng.integers(10, 99, 1_000) / 2, rng.integers(1_200, 4_000, 1_000) / 100
    table["discount"], table["weight"] = rng.integers(0, 40, 1_000) * 1.5, rng.integers(2_000, 90_000, 1_000)
    table["total"] = (table.nights * table.rate + table.extras).round(2)
    table["paid"] = (table.hours * table.wage - table.discount).round(2)
    table["fee"], table["tare"] = (120 + table.weight * 0.004).round(2), table.weight - 450
    text = drafted(tmp_path, table)
    assert '"total": {expression: "nights * rate + extras"}  # in all 1,000 rows' in text
    assert '"paid": {expression: "hours * wage - discount"}  # in all 1,000 rows' in text
    assert '"fee": {expression: "weight * 0.004 + 120"}  # in all 1,000 rows' in text
    assert (
        '"tare": {expression: "round(weight - 450)"}' in text or '"weight": {expression: "round(tare + 450)"}' in text
    )
    table["extras"] = rng.permutation(table.extras)
    assert "+ extras" not in drafted(tmp_path, table)


def test_a_draft_proposes_the_share_that_needs_no_rounding_and_no_product_that_rounding_hides(tmp_path: Path) -> None:
    """Of 7 y + 3 came y = round(0.142 z), also of other z; a rounded price was called rate * part + price."""
    rng = np.random.default_rng(8)
    table = pd.DataFrame({"y": rng.integers(2, 100, 300), "price": rng.integers(1_000, 90_000, 300) / 100})
    table["z"], table["whole"] = table.y * 7 + 3, table.price.round().astype(int)
    table["rate"], table["part"] = rng.integers(10, 90, 300) / 1_000, rng.integers(10, 90, 300) / 1_000
    text = drafted(tmp_path, table)
    assert '"z": {expression: "round(y * 7 + 3)"}  # in all 300 rows' in text
    assert text.count("expression") == 1


def test_a_draft_proposes_another_unit_whose_values_were_rounded(tmp_path: Path) -> None:
    """Degrees of one thermometer in both scales were drawn apart: the slope of rounded values is a few digits off."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"temp_f": np.round(rng.normal(55, 16, 3_000), 1), "kg": np.round(rng.normal(75, 12, 3_000), 1)}
    )
    table["temp_c"], table["lb"] = ((table.temp_f - 32) / 1.8).round(1), (table.kg * 2.20462).round(0)
    text = drafted(tmp_path, table)
    assert '"temp_c": {expression: "temp_f * 0.5556 - 17.78"}  # in all 3,000 rows' in text
    assert '"lb": {expression: "round(kg * 2.2046)"}  # in ' in text and text.count("expression") == 2


def test_a_draft_proposes_quotients_and_squares(tmp_path: Path) -> None:
    """A release had persons whose body mass index was another than their weight and height say."""
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"height": rng.normal(170, 9, 2_000).round().astype(int), "age": rng.integers(18, 90, 2_000)})
    table["weight"] = (rng.normal(75, 12, 2_000) + 0.8 * (table.height - 170)).round(1)
    table["km"], table["minutes"] = (rng.gamma(2, 10, 2_000) + 1).round(1), rng.integers(10, 200, 2_000)
    table["bmi"], table["speed"] = (
        (table.weight / (table.height / 100) ** 2).round(1),
        (table.km / table.minutes * 60).round(1),
    )
    table["agesq"] = table.age**2
    text = drafted(tmp_path, table)
    assert '"bmi": {expression: "weight / (height * height) * 10000"}  # in all 2,000 rows' in text
    assert '"speed": {expression: "km / minutes * 60"}' in text and '"agesq": {expression: "round(age * age)"}' in text
    assert text.count("expression") == 3
    table["height"], table["minutes"] = rng.permutation(table.height), rng.permutation(table.minutes)
    assert drafted(tmp_path, table).count("expression") == 1, "of the square alone"


def test_products_are_seen_behind_many_columns_of_0_and_1_and_where_a_factor_is_per_cent() -> None:
    """Of a wide table with sixty boxes to tick no product was proposed, and no discount in per cent of a price."""
    rng = np.random.default_rng(3)
    boxes, whole = rng.integers(0, 2, (400, 60)), {"kind": "integer", "min": 0, "max": 900}
    calls, rate, fee = rng.integers(2, 90, 400), rng.integers(5, 40, 400) / 100, rng.choice([9.9, 19.9, 44.5], 400)
    percent, price = rng.choice([0, 5, 10, 15], 400), rng.integers(900, 90_000, 400) / 100
    amounts = {"rate": rate, "fee": fee, "price": price}
    amounts |= {"bill": (calls * rate + fee).round(2), "off": (price * percent / 100).round(2)}
    declared = {f"b{i}": {**whole, "max": 1} for i in range(60)} | {"calls": whole, "percent": whole}
    declared |= {n: {"kind": "float", "min": 0, "max": 900, "bins": {"count": 9}, "decimals": 2} for n in amounts}
    rows = np.column_stack([boxes, calls, percent, *amounts.values()])
    proposed = {text for _, text, _ in guess_products(rows, parse_schema({"columns": declared}, where="t").columns)}
    assert proposed == {"calls * rate + fee", "percent * price / 100"}


def test_a_draft_proposes_amounts_with_a_rate_added_or_taken_off(tmp_path: Path) -> None:
    """Invoices: of gross = net * (1 + vat / 100) nothing was said, and a release had taxes below 0."""
    rng = np.random.default_rng(8)
    table = pd.DataFrame({"vat": rng.choice([0, 10, 20], 900), "net": rng.integers(900, 90_000, 900) / 100})
    table["gross"] = (table.net * (1 + table.vat / 100)).round(2)
    table["off"], table["list"] = rng.choice([0.0, 0.05, 0.1, 0.25], 900), rng.integers(900, 90_000, 900) / 100
    table["price"], table["tiny"] = (table.list * (1 - table.off)).round(2), rng.integers(10, 90, 900) / 100_000
    table["other"] = rng.integers(900, 90_000, 900) / 100
    table["whole"] = table.other.round().astype(int)
    text = drafted(tmp_path, table)
    assert '"gross": {expression: "net * (1 + vat / 100)"}  # in all 900 rows' in text
    assert '"price": {expression: "list * (1 - off)"}  # in all 900 rows' in text and text.count("expression") == 2
    table["net"] = rng.permutation(table.net)
    assert "vat / 100" not in drafted(tmp_path, table)


def test_numbers_with_an_exponent_keep_their_digits_and_small_ones_are_not_taken_for_shares(tmp_path: Path) -> None:
    """1.234E+00 was drafted with no decimals, and of two columns below 0.0001 one was called twice the other."""
    rng = np.random.default_rng(8)
    table = pd.DataFrame({"x": rng.integers(2, 100, 300) / 1e7, "y": rng.integers(2, 100, 300) / 1e11})
    table["level"] = [f"{v:.3E}" for v in rng.uniform(1, 5, 300)]
    text = drafted(tmp_path, table)
    columns = yaml.safe_load(text)["columns"]
    assert [columns[n]["decimals"] for n in ("x", "y", "level")] == [7, 11, 3]
    assert "expression" not in text


def test_a_draft_has_a_length_of_two_times_lost_where_one_is_and_invents_none(tmp_path: Path) -> None:
    """Calls that nobody answered waited, and one wait of -1 left all others without their times."""
    rng = np.random.default_rng(9)
    came = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 30_000_000, 1_000), "s")
    wait = rng.integers(0, 9_000, 1_000)
    table = pd.DataFrame({"came": came, "wait": wait, "answered": came + pd.to_timedelta(wait, "s")})
    table.loc[::40, "answered"], table.loc[7, "wait"] = pd.NaT, 9_999
    says = '"wait": {expression: "round((answered - came) * 86400)"}  # in 974 of the 1,000 rows; with '
    assert says + '"wait": {"missing": true}' in drafted(tmp_path, table)


@pytest.mark.slow
def test_a_draft_proposes_totals_of_totals_and_none_that_a_row_breaks(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    table = pd.DataFrame({name: rng.integers(0, 90_000, 600) / 100 for name in ("base", "bonus", "tax")})
    table["boys"], table["girls"], table["rooms"] = rng.integers(0, 5, (3, 600))
    table["net pay"] = (table.base + table.bonus).round(2)
    table["gross"], table["kids"] = (table["net pay"] + table.tax).round(2), table.boys + table.girls
    text = drafted(tmp_path, table)
    lines = {line.partition(": {expression: ")[::2] for line in text.splitlines() if "expression" in line}
    sums = {'"kids"': "boys + girls", '"net pay"': "base + bonus", '"gross"': "tax + `net pay`"}
    assert lines == {(f"#   {n}", f'"{e}"}}  # in all 600 rows') for n, e in sums.items()}
    assert "# with these rules the column is computed within its bounds, not measured;" in text, "sums beyond are cut"
    rules = "derive: " + str({n.strip('"'): {"expression": e} for n, e in sums.items()})
    (tmp_path / "own.yaml").write_text(f"{text}\n{rules}\n", encoding="utf-8")
    own = load_schema(tmp_path / "own.yaml")
    write_rows(tmp_path / "rows.csv", own, 50, column=None, most=1, rng=np.random.default_rng(0))
    made = pd.read_csv(tmp_path / "rows.csv")
    np.testing.assert_allclose(made.gross, made.tax + made.base + made.bonus, atol=0.011)
    table.loc[599, ["kids", "gross"]] += 1
    assert drafted(tmp_path, table).count("expression") == 1


def test_the_rest_of_a_sum_that_is_fixed_is_computed_and_not_the_sum(tmp_path: Path) -> None:
    """As the sum of days that are drawn apart, weekly hours of 38.5 or 30 would be any number."""
    rng = np.random.default_rng(0)
    parts = (rng.dirichlet([3, 2, 1], 400) * 100).round()
    parts[:, 0] = 100 - parts[:, 1:].sum(axis=1)
    hours, early = rng.choice([38.5, 30.0], 400), rng.integers(4, 12, 400)
    lines = [f"{h},{e},{h - e},{a:g},{b:g},{c:g}" for h, e, (a, b, c) in zip(hours, early, parts, strict=True)]
    text = draft_schema(source(csv(tmp_path, "\n".join(["hours,early,late,car,bus,bike", *lines]))), "t")
    assert '#   "car": {expression: "100 - bus - bike"}  # in all 400 rows' in text
    assert '#   "late": {expression: "hours - early"}  # in all 400 rows' in text and '"hours": {' not in text


LOANS = {
    "lent": {"kind": "datetime", "min": "2024-01-01", "max": "2024-12-31", "bins": "month", "missing": False},
    "back": {"kind": "datetime", "min": "2024-01-01", "max": "2025-02-28"},
}


def loans(unit: str = "hours", kind: str = "datetime", **length: Any) -> Schema:
    columns = {n: c | {"kind": kind} for n, c in LOANS.items()}
    rule = {"from": "lent", "length": {"max": 48, "unit": unit} | length}
    return parse_schema({"columns": columns, "derive": {"back": rule}}, where="s.yaml")


def test_a_rule_about_a_time_that_is_a_length_away_is_told_the_name_of_the_length() -> None:
    times = {n: {"kind": "date", "min": "2024-01-01", "max": "2024-12-31", "missing": True} for n in ("lent", "back")}
    paid = {"kind": "flag", "missing": False}
    facts = {"columns": {**times, "paid": paid}, "derive": {"back": {"from": "lent", "length": {"max": 48}}}}
    first, fix = refusal(facts | {"impossible": [{"paid": "false", "back": {}}]}).split("\n  fix: ")
    assert "'back' is computed from other columns" in first
    assert fix == "name back_length, which derive measures in its place"


@pytest.mark.parametrize(("unit", "codes"), [("hours", [0, 5, 48, 0, 49, 49]), ("minutes", [0, 48, 48, 0, 49, 49])])
def test_a_length_is_read_from_both_times_of_a_row_and_those_beyond_its_bounds_are_counted(tmp_path, unit, codes):
    """Equal, five hours, four days, before the first; no second time, and one that is none."""
    backs = ["2024-03-01 10:00", "2024-03-01 15:00", "2024-03-05 10:00", "2024-03-01 09:00", "", "soon"]
    table = csv(tmp_path, "lent,back\n" + "".join(f"2024-03-01 10:00,{back}\n" for back in backs))
    coded, report = encode_columns(source(table), loans(unit), workdir=tmp_path / "work")
    assert np.asarray(coded.column("back_length")).tolist() == codes
    assert report.outside["back_length"] == codes.count(48) + 1
    assert (report.unplaced["back_length"], report.gaps["back_length"]) == (1, 1)


def test_a_first_time_that_is_missing_as_declared_is_no_day_and_loses_the_second(tmp_path):
    """An empty cell, a word, and a day that stands for none, from which a length was read: 1,490 months, clipped."""
    columns = {n: c | {"missing": ["open", "1900-01-01"]} for n, c in LOANS.items()}
    schema = parse_schema({"columns": columns, "derive": loans().to_fields()["derive"]}, where="s.yaml")
    rows = ["2024-03-01,2024-03-02", ",2024-03-02", "open,2024-03-02", "1900-01-01,2024-03-02", "2024-03-01,1900-01-01"]
    table = csv(tmp_path, "\n".join(["lent,back", *rows]))
    coded, report = encode_columns(source(table), schema, workdir=tmp_path / "work")
    assert np.asarray(coded.column("back_length")).tolist() == [24, 49, 49, 49, 49]
    assert (report.outside["back_length"], report.unplaced["back_length"]) == (0, 3)


@settings(max_examples=20)
@given(unit=st.sampled_from(["days", "hours", "minutes", "seconds"]), seed=st.integers(0, 99))
def test_a_time_is_written_as_the_one_before_and_its_length_and_read_so_again(tmp_path_factory, unit, seed):
    """Codes of a written table are those that it was written from: in every unit, to the second."""
    folder, schema = tmp_path_factory.mktemp("loans"), loans(unit, min=1)
    write_rows(folder / "rows.csv", schema, 200, column=None, most=1, rng=np.random.default_rng(seed))
    made = pd.read_csv(folder / "rows.csv", parse_dates=["lent", "back"])
    steps = (made.back - made.lent).dropna() / pd.Timedelta(1, unit)
    assert list(made) == ["lent", "back"] and 0 < made.back.isna().sum() < 200
    assert steps.between(1, 48).all() and (steps == steps.round()).all() and steps.nunique() > 20
    assert rows_that_differ(source(folder / "rows.csv"), schema) == {"derive 'back'": 0}


ENDS = [("2024-12-31", "clip"), ("2024-12-31", "missing"), ("2026-01-31", "clip")]


@pytest.mark.parametrize(("end", "outside"), ENDS)
def test_a_time_that_its_length_takes_beyond_its_bounds_is_counted(tmp_path: Path, end: str, outside: str) -> None:
    """Many left on the last day of a release's period, for it was cut off there, and nothing had said so."""
    times = {n: c | {"kind": "date", "bins": "year"} for n, c in LOANS.items()}
    times["back"] |= {"max": end, "outside": outside}
    facts = {"columns": times, "derive": {"back": {"from": "lent", "length": {"min": 200, "max": 380}}}}
    schema = parse_schema(facts, where="s.yaml")
    write_rows(tmp_path / "rows.csv", schema, 400, column=None, most=1, rng=np.random.default_rng(0))
    at = int((pd.read_csv(tmp_path / "rows.csv").back == end).sum())
    clipped = rows_clipped(source(tmp_path / "rows.csv"), schema)
    assert clipped == ({} if outside == "missing" else {"derive 'back'": pytest.approx(at, abs=5)})
    assert at > 50 if (end, outside) == ("2024-12-31", "clip") else at <= 5


@pytest.mark.parametrize(("least", "most"), [(-30, 0), (0, 30)])
def test_a_day_is_written_as_a_time_and_its_length_in_days_before_or_after_it(tmp_path, least, most):
    columns = LOANS | {"day": {"kind": "date", "min": "2023-11-01", "max": "2025-02-28", "missing": False}}
    rule = {"from": "lent", "length": {"min": least, "max": most}}
    schema = parse_schema({"columns": columns, "derive": {"day": rule}}, where="s.yaml")
    write_rows(tmp_path / "rows.csv", schema, 500, column=None, most=1, rng=np.random.default_rng(0))
    made = pd.read_csv(tmp_path / "rows.csv", parse_dates=["lent", "day"])
    days = (made.day - made.lent.dt.normalize()).dt.days
    assert days.between(least, most).all() and days.nunique() > 20 and made.lent.dt.hour.nunique() > 20
    assert rows_that_differ(source(tmp_path / "rows.csv"), schema) == {"derive 'day'": 0}
    coded, report = encode_columns(source(tmp_path / "rows.csv"), schema, workdir=tmp_path / "work")
    assert (np.asarray(coded.column("day_length"), int) + least).tolist() == days.tolist() and not report.marked
    words = refusal({"columns": columns, "derive": {"lent": {"from": "day", "length": {"max": 9}}}})
    assert "no length between" in words and "a day from a time" in words.partition("fix: ")[2]


def test_a_length_its_declared_bins_and_the_fine_cells_that_a_run_gives_it_survive_saving() -> None:
    schema = loans(max=72, bins={"edges": [0, 6, 24, 72]})
    again = parse_schema(schema.to_fields(), where="again")
    assert again == schema and again["back_length"].value_codes == 3
    assert [c.name for c in again.held] == ["lent", "back"] and "back" not in again.measured
    fine = with_fine_columns(schema, 64)
    again = parse_schema(fine.to_fields(), where="again")
    assert again.measured == fine.measured and "back_length (fine)" in again.measured


def test_a_length_is_no_constant_of_persons() -> None:
    unit = {"column": "who", "constant": ["back_length"], "records": {"max": 3}}
    assert "'back_length' is no column of the table" in refusal(loans().to_fields() | {"unit": unit})


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ({"from": "lent", "length": {"max": 9, "unit": "weeks"}}, "one of: days, hours"),
        ({"from": "lent", "length": {"min": 0}}, "max"),
        ({"from": "lent", "length": 9}, "from: admitted"),
        ({"from": "back", "length": {"max": 9}}, "no length between"),
        ({"from": "lend", "length": {"max": 9}}, "did you mean 'lent'"),
        ({"length": {"max": 9}}, "from: admitted"),
        ({"from": "lent", "length": {"max": 9}, "map": {}}, "map"),
    ],
)
def test_what_is_no_length_is_refused_with_the_way_out(rule: dict[str, Any], says: str) -> None:
    words = refusal({"columns": LOANS, "derive": {"back": rule}})
    assert says in words and "back" in words.partition("\n")[0]
