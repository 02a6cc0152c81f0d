"""The schema: what it says about codes, every form it may be written in, and the way back to YAML."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mechanisms.public.errors import UserError
from mechanisms.public.schema.table_schema import Schema, load_schema, parse_schema
from tests.public.table_worlds import schema

ADULT = """
name: adult
source: the codebook
confirmed_public: true
columns:
  age: {kind: integer, min: 17, max: 90, bins: {count: 32}}
  hours: {kind: integer, bins: {edges: [1, 20, 40, 41, 60, 100]}}
  fare: {kind: float, min: 0, max: 100, bins: {count: 20}, decimals: 2}
  workclass: {kind: categorical, values: [Private, State-gov], other: Other, missing: ["?"]}
  grade: {kind: categorical, values: [low, mid, high], ordinal: true, missing: false}
  received:
    kind: datetime
    format: "%Y-%m-%d %H:%M:%S"
    min: "2016-01-01"
    max: "2016-12-31 23:59:59"
    bins: {calendar: month}
  heroin: {kind: flag, true: ["Y"], false: [""]}
  zip: {kind: categorical, values: [02134, 10001]}
  answer: {kind: categorical, values: [yes, no, true]}
  PUMA: {kind: categorical, size: 181, ordinal: true}
  born: {kind: date, min: 1900-01-01, max: 2020-12-31}
leave_out: ["Other Significant Conditions "]
"""


@pytest.fixture
def adult(tmp_path: Path) -> Schema:
    path = tmp_path / "adult.yaml"
    path.write_text(ADULT)
    return load_schema(path)


def test_sizes_are_values_then_other_then_missing(adult: Schema) -> None:
    sizes = {a.name: (a.size, a.ordered) for a in adult.domain.attributes}
    assert sizes == {
        "age": (33, 32),
        "hours": (6, 5),
        "fare": (21, 20),
        "workclass": (4, 0),
        "grade": (3, 3),
        "received": (13, 12),
        "heroin": (2, 0),
        "zip": (3, 0),
        "answer": (4, 0),
        "PUMA": (181, 181),
        "born": (101, 100),
    }
    assert (adult["workclass"].other_code, adult["workclass"].missing_code) == (2, 3)
    assert adult.leave_out == ("Other Significant Conditions ",)


def test_texts_of_yaml_stay_texts(adult: Schema) -> None:
    assert adult["zip"].values == ("02134", "10001")
    assert adult["answer"].values == ("yes", "no", "true")
    assert adult["hours"].low == 1 and adult["hours"].high == 99


@pytest.mark.parametrize(
    "name", ["yes", "012", "2016-01-01", "a: b", "#x", "", " lead", "new\nline", "null", "1e5", "~", "é\u2028"]
)
def test_awkward_texts_survive_the_way_through_yaml(name: str, tmp_path: Path) -> None:
    awkward = schema(**{f"column {name}": {"kind": "categorical", "values": [name, "b"], "missing": ["gap"]}})
    path = tmp_path / "tiny.yaml"
    path.write_text(awkward.to_yaml(), encoding="utf-8")
    assert load_schema(path) == awkward


def test_a_plain_domain_file_is_categorical_without_further_codes(tmp_path: Path) -> None:
    path = tmp_path / "codes.domain.json"
    path.write_text(json.dumps({"SEX": 2, "AGE": 18}))
    plain = load_schema(path)
    assert [(a.name, a.size, a.ordered) for a in plain.domain.attributes] == [("SEX", 2, 0), ("AGE", 18, 0)]
    assert plain.name == "codes" and not plain.confirmed_public
    again = tmp_path / "codes.yaml"
    again.write_text(plain.to_yaml())
    assert load_schema(again) == plain


def test_a_domain_file_with_kinds_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "fire.domain.json"
    facts = {
        "City": {"kind": "categorical", "values": ["San Francisco", ""]},
        "On Scene": {"kind": "datetime", "min": "2015-12-31 23:08:05", "max": "2017-01-01 23:06:30", "optional": True},
        "Lat": {"kind": "float", "min": 37.6, "max": 37.8, "optional": False},
        "Alarms": {"kind": "integer", "min": 1, "max": 5, "optional": False},
    }
    path.write_text(json.dumps(facts))
    assert [a.size for a in load_schema(path).domain.attributes] == [2, 54, 20, 5]


def test_refusals_are_listed() -> None:
    strict = schema(a={"kind": "integer", "min": 0, "max": 3, "outside": "refuse"}, b={"kind": "flag"})
    assert strict.refusals == ("a",)


@pytest.mark.parametrize(
    ("span", "unit", "size"),
    [
        (("2016-01-01", "2016-01-31"), "day", 31),
        (("2016-01-01", "2016-12-31"), "week", 53),
        (("2010-01-01", "2016-12-31"), "month", 84),
        (("1950-01-01", "2016-12-31"), "year", 67),
        (("1800-01-01", "2016-12-31"), None, 100),
    ],
)
def test_dates_without_bins_get_a_sensible_calendar_unit(span: tuple[str, str], unit: str | None, size: int) -> None:
    column = schema(d={"kind": "date", "min": span[0], "max": span[1]}).columns[0]
    assert column.bins is not None and column.bins.calendar == unit
    assert column.value_codes == size


def test_cyclic_calendar_units_have_a_code_for_each_part() -> None:
    year = {"kind": "datetime", "min": "2016-01-01", "max": "2016-12-31"}
    for name, size in (("month_of_year", 12), ("day_of_week", 7), ("hour_of_day", 24), ("hour", 366 * 24)):
        assert schema(t={**year, "bins": {"calendar": name}}).columns[0].value_codes == size


def test_a_day_as_the_upper_bound_of_a_time_means_the_whole_day() -> None:
    column = schema(t={"kind": "datetime", "min": "2016-01-01", "max": "2016-01-02"}).columns[0]
    assert column.high - column.low == 2 * 86_400 - 1


def test_parse_schema_names_the_file_when_the_name_is_absent() -> None:
    assert parse_schema({"columns": {"a": {"kind": "flag"}}}, where="dir/mine.yaml").name == "mine"


def test_a_schema_that_starts_from_another_takes_its_columns_and_says_all_of_it_again(tmp_path: Path) -> None:
    (tmp_path / "whole.yaml").write_text(ADULT)
    changed = "base: whole.yaml\nname: part\ncolumns: {PUMA: {one_way_only: true}, new: {kind: categorical, size: 3}}\n"
    (tmp_path / "part.yaml").write_text(changed)
    whole, part = load_schema(tmp_path / "whole.yaml"), load_schema(tmp_path / "part.yaml")
    assert part.name == "part" and part.source == whole.source
    assert part.domain.names == (*whole.domain.names, "new")
    assert part["PUMA"].size == 181 and part["PUMA"].one_way_only and part["age"] == whole["age"]
    (tmp_path / "whole.yaml").unlink()
    (tmp_path / "again.yaml").write_text(part.to_yaml())
    assert load_schema(tmp_path / "again.yaml").columns == part.columns


@pytest.mark.parametrize("own", ["", "confirmed_public: true\n", "confirmed_public: false\n"])
@pytest.mark.parametrize("base", ["", "confirmed_public: true\n", "confirmed_public: false\n"])
def test_what_is_added_to_a_base_is_public_only_if_both_files_say_so(tmp_path: Path, own: str, base: str) -> None:
    (tmp_path / "whole.yaml").write_text("columns: {a: {kind: flag}}\n" + base)
    (tmp_path / "part.yaml").write_text("base: whole.yaml\ncolumns: {b: {kind: integer, min: 0, max: 7}}\n" + own)
    assert load_schema(tmp_path / "part.yaml").confirmed_public == ("true" in own and "true" in base)


def test_texts_that_readers_of_yaml_take_for_numbers_or_answers_have_quotes():
    """0099 of a release's schema.yaml was 99 for readers of YAML 1.2, 1e5 a number, and y and n were yes and no."""
    texts = ["0099", "1e5", "0o17", "1_000", "12:30", "0x1F", ".5", "y", "N", "08"]
    columns = {t: {"kind": "categorical", "values": [t, "a1", "1st ward"], "other": "0"} for t in texts}
    written = parse_schema({"columns": columns}, where="x").to_yaml()
    for text in texts:
        assert f"  '{text}':\n" in written and f"values: ['{text}', a1, 1st ward]" in written
    assert written.count("other: '0'") == len(texts)


@pytest.mark.parametrize("base", ["part.yaml", "sizes.json", "absent.yaml"])
def test_a_base_is_a_schema_with_columns_of_its_own(tmp_path: Path, base: str) -> None:
    (tmp_path / "sizes.json").write_text('{"a": 2}')
    (tmp_path / "part.yaml").write_text(f"base: {base}\nname: part\ncolumns: {{}}\n")
    with pytest.raises(UserError, match=r"base: got|cannot read"):
        load_schema(tmp_path / "part.yaml")
