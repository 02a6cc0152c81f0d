"""Schemas: what they make of a column, how they survive the way through YAML, and what is no schema."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mechanisms.public.errors import UserError
from mechanisms.public.schema.bins import Bins
from mechanisms.public.schema.code_labels import code_names, code_values
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.table_schema import Schema, load_schema, parse_schema
from tests.public.table_worlds import refusal, schema

ADULT = """
name: adult
source: the codebook
confirmed_public: true
columns:
  age: {kind: integer, min: 17, max: 90, bins: {count: 32}}
  hours: {kind: integer, bins: {edges: [1, 20, 40, 41, 60, 100]}, multiple_of: 5}
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
    ordered = {"age": (33, 32), "hours": (6, 5), "fare": (21, 20), "received": (13, 12), "born": (101, 100)}
    ordered |= {"grade": (3, 3), "PUMA": (181, 181)}
    assert sizes == ordered | {"workclass": (4, 0), "heroin": (2, 0), "zip": (3, 0), "answer": (4, 0)}
    assert (adult["workclass"].other_code, adult["workclass"].missing_code) == (2, 3)
    assert adult.leave_out == ("Other Significant Conditions ",)


def test_each_code_of_a_flag_stands_for_the_text_that_is_written() -> None:
    paid = parse_schema({"columns": {"paid": {"kind": "flag"}}}, where="t")["paid"]
    assert code_values(paid) == code_names(paid) == ("false", "true", "missing")


def test_texts_of_yaml_stay_texts(adult: Schema) -> None:
    assert adult["zip"].values == ("02134", "10001")
    assert adult["answer"].values == ("yes", "no", "true")
    assert adult["hours"].low == 1 and adult["hours"].high == 99


AWKWARD = ["yes", "012", "2016-01-01", "a: b", "#x", "", " lead", "new\nline", "null", "1e5", "~", "é\u2028", "levels"]


@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_texts_survive_the_way_through_yaml(name: str, tmp_path: Path) -> None:
    flat = {"kind": "categorical", "values": [name, "tree"], "missing": ["gap"]}
    tree = {"levels": ["a", "b"], "tree": {name: [name], "tree": ["tree"]}}
    awkward = schema(**{f"column {name}": flat, "nodes and leaves": {**flat, "hierarchy": tree}})
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


INTEGER = {"kind": "integer", "min": 0, "max": 9}
DATE = {"kind": "date", "min": "2016-01-01", "max": "2016-12-31"}
VALUES = {"kind": "categorical", "values": ["x", "y"]}

COLUMN_MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"kind": "categoric", "values": ["x"]}, "did you mean 'categorical'?"),
    ({"values": ["x"]}, "kind: is absent"),
    ({**INTEGER, "bin": {"count": 2}}, "unknown field 'bin'\n  fix: did you mean 'bins'?"),
    ({**INTEGER, "values": [1]}, "unknown field 'values'"),
    ({"kind": "categorical"}, "needs either values or size"),
    ({"kind": "categorical", "values": ["x"], "size": 2}, "needs either values or size"),
    ({"kind": "categorical", "values": []}, "values: got []"),
    ({"kind": "categorical", "values": "x"}, "values: got 'x'"),
    ({"kind": "categorical", "values": ["x", None]}, "values: got None"),
    ({"kind": "categorical", "values": ["x", "x"]}, "given twice: 'x'"),
    ({"kind": "categorical", "size": 0}, "size: got 0"),
    ({"kind": "categorical", "size": True}, "size: got True"),
    ({**VALUES, "ordinal": "yes"}, "ordinal: got 'yes'"),
    ({**VALUES, "other": "x"}, "given twice: 'x'"),
    ({**VALUES, "other": ""}, "other: the label is empty"),
    ({**VALUES, "missing": ["x"]}, "given twice: 'x'"),
    ({**VALUES, "missing": "?"}, "missing: got '?'"),
    ({"kind": "categorical", "values": ["x", ""], "missing": True}, "the empty text is a listed value"),
    ({"kind": "flag", "true": ["Y"], "false": ["Y"]}, "given twice: 'Y'"),
    ({**VALUES, "outside": "clip"}, "outside: clip needs numbers"),
    ({**VALUES, "outside": "other"}, "outside: other, but the column has no such code"),
    ({**VALUES, "missing": False, "outside": "missing"}, "outside: missing, but the column has no such code"),
    ({**VALUES, "outside": "refused"}, "did you mean 'refuse'?"),
    ({"kind": "integer", "min": 0}, "integer needs min and max"),
    ({"kind": "float", "min": 1, "max": 1}, "min must lie below max"),
    ({"kind": "integer", "min": "zero", "max": 9}, "min: got 'zero'"),
    ({"kind": "integer", "min": 0.5, "max": 9}, "min: got 0.5"),
    ({"kind": "integer", "min": 0, "max": 2**60}, "a whole number below 2^53"),
    ({"kind": "integer", "min": 2**53 - 9, "max": 2**53}, "a whole number below 2^53"),  # no number ends its last bin
    ({"kind": "float", "min": float("-inf"), "max": 9}, "a number up to 1e20"),
    ({"kind": "float", "min": 0, "max": 1e32}, "a number up to 1e20"),  # it ended runs after all charges
    ({"kind": "integer", "min": 0, "max": 1_000_000}, "1,000,001 codes"),
    ({**INTEGER, "bins": {"count": 11}}, "11 bins for 10 values"),
    ({**INTEGER, "bins": {"count": 0}}, "bins: count: got 0"),
    ({"kind": "integer", "min": 0, "max": 2**52, "bins": {"count": 100_000}}, "too wide for so many bins"),
    ({**INTEGER, "bins": 5}, "bins: got 5"),
    ({**INTEGER, "bins": {"edge": [1, 2]}}, "did you mean 'edges'?"),
    ({**INTEGER, "bins": {"calendar": "month"}}, "bins: got 'calendar'"),
    ({**INTEGER, "bins": {"edges": [1]}}, "at least two ascending edges"),
    ({"kind": "integer", "bins": {"edges": [1, 5, 5]}}, "edges must ascend"),
    ({**INTEGER, "bins": {"edges": [1, 5, 10]}}, "edges do not fit min and max"),
    ({"kind": "float", "min": 0, "max": 9, "bins": {"edges": [0, 5, 8]}}, "edges do not fit min and max"),
    ({"kind": "float", "min": 1e15, "max": 1e15 + 1, "bins": {"count": 20}}, "the bins are too narrow"),
    ({"kind": "float", "min": 0, "max": 9, "decimals": -1}, "decimals: got -1"),
    ({"kind": "float", "min": 0, "max": 9, "fixed": -1}, "fixed: got -1"),
    ({"kind": "float", "min": 0, "max": 9, "fine": -3}, "fine: got -3"),
    ({"kind": "float", "min": 0, "max": 9, "multiple_of": 0}, "multiple_of: got 0"),
    ({**INTEGER, "multiple_of": 2.5}, "multiple_of: got 2.5"),
    ({"kind": "float", "min": 0, "max": 9, "multiple_of": 0.5, "decimals": 1}, "decimals and multiple_of"),
    ({"kind": "float", "min": 0, "max": 9, "decimal": [","]}, "decimal: got [',']"),
    ({"kind": "float", "min": 0, "max": 9, "other": "12"}, "other: '12' reads as a value"),
    ({**DATE, "other": "2016-02-02"}, "other: '2016-02-02' reads as a value"),
    ({**DATE, "min": "soon"}, "min: got 'soon', which is no date"),
    ({**DATE, "format": "yyyy"}, "format: got 'yyyy'"),
    ({**DATE, "bins": {"calendar": "hour_of_day"}}, "needs a time of day"),
    ({**DATE, "bins": {"calendar": "months"}}, "did you mean 'month'?"),
    (
        {**DATE, "max": "2016-03-01", "bins": {"calendar": "month_of_year"}},
        "9 of the 12 codes of month_of_year never occur",
    ),
    ({**DATE, "format": "%Y-%m", "bins": {"calendar": "day"}}, "loses what the bins need"),
    ({**DATE, "min": "1931-01-01", "format": "%d.%m.%y"}, "as 1969 to 2068: bounds within"),
    ({**INTEGER, "joint_bins": {"count": 99}}, "joint_bins: count: got 99"),
    ({**INTEGER, "joint_bins": {"starts": [1, 5]}}, "joint_bins: starts: got (1, 5)"),
    ({**INTEGER, "joint_bins": {"level": "city"}}, "the column has no hierarchy"),
    ({**INTEGER, "joint_bins": 5}, "joint_bins: got 5"),
    ({**INTEGER, "joint_bins": {"count": 2}, "one_way_only": True}, "both joint_bins and one_way_only"),
    ({**INTEGER, "joint_bins": {"count": 2}, "fine": 64}, "both joint_bins and fine"),
    ({"kind": "constant", "values": ["x"]}, "constant knows"),
    ({"kind": "categorical", "values": ["F"], "spellings": {"Q": ["q"]}}, "spellings: 'Q' is none of the values"),
    ({"kind": "categorical", "values": ["F"], "spellings": ["f"]}, "spellings: got"),
    ({"kind": "categorical", "values": ["F", "M"], "spellings": {"F": ["M"]}}, "given twice: 'M'"),
    ({"kind": "categorical", "values": ["F"], "spellings": {"F": ["x"]}, "missing": ["x"]}, "given twice: 'x'"),
    ({"kind": "categorical", "size": 3, "spellings": "common"}, "spellings or prefix without values"),
    ({"kind": "categorical", "values": ["F"], "prefix": 0}, "prefix: got 0"),
    ({"kind": "categorical", "values": "discover", "spellings": "common"}, "spellings beside values: discover"),
    ({"kind": "integer", "bounds": "discover", "min": 0}, "min beside bounds"),
    ({"kind": "integer", "bounds": "guess"}, "bounds: got"),
    ({"kind": "integer", "within": [0, 9], "min": 0, "max": 9}, "within: without"),
    ({"kind": "integer", "bounds": "discover", "within": [0]}, "within: got"),
    ({"kind": "integer", "bounds": "discover", "within": [9, 0]}, "min must lie below max"),
    ({"kind": "integer", "bounds": "discover", "bins": {"edges": [0, 1]}}, "bins: edges beside"),
    ({"kind": "integer", "min": 0, "max": 9, "bins": {"discover": 1}}, "bins: discover"),
    ({"kind": "integer", "bounds": "discover", "joint_bins": {"starts": [0, 2]}}, "joint_bins beside"),
    ({"kind": "categorical", "values": "discover", "ordinal": True}, "ordinal beside"),
    ({"kind": "categorical", "values": "discover", "outside": "missing"}, "outside: missing with"),
    ({"kind": "categorical", "values": "discover", "missing": ["other"]}, "means missing"),
    ({"kind": "categorical", "values": "discover", "other": ["Other"]}, "other: got ['Other']"),
    ({"kind": "categorical", "values": "discover", "hierarchy": {"groups": {}}}, "hierarchy beside"),
    ({"kind": "flag", "values": "discover"}, "unknown field"),
    ({"kind": "integer", "min": 0, "max": 9, "discovered": ["all"]}, "discovered: got"),
]


@pytest.mark.parametrize(("fields", "says"), COLUMN_MISTAKES)
def test_a_mistake_in_a_column_is_named(fields: dict[str, Any], says: str) -> None:
    words = refusal({"columns": {"a": fields}})
    assert words.startswith("t.yaml: column 'a'") and says in words


@pytest.mark.parametrize(
    ("high", "bins", "says"),
    [
        (9, Bins(count=11), "11 bins for 10 values"),
        (2**52, Bins(count=100_000), "too wide for so many bins"),
        (2**52, None, "codes, but at most"),
        (9, Bins(calendar="hour"), "needs a time of day"),
    ],
)
def test_a_column_that_no_file_declares_is_named_by_what_its_bins_cannot_be(
    high: int, bins: Bins | None, says: str
) -> None:
    with pytest.raises(UserError, match=says) as caught:
        assert Column("a", "date", low=0, high=high, bins=bins).grid
    assert caught.value.where == "a"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({"columns": {"a": VALUES}, "leaveout": ["b"]}, "did you mean 'leave_out'?"),
        ({"columns": {"a": VALUES}, "confirmed_public": "no"}, "confirmed_public: got 'no'"),
        ({"columns": {"a": VALUES}, "leave_out": "b"}, "leave_out: got 'b'"),
        ({"columns": {"a": VALUES}, "leave_out": ["a"]}, "both kept and left out"),
        ({"columns": {}}, "no columns"),
        ({"columns": {"a": 3}}, "got 3"),
        ({}, "no columns"),
        ({"a": 3, "b": "x"}, "field 'b' is neither a size nor a column"),
        ({"a": 0}, "size: got 0"),
    ],
)
def test_a_mistake_beside_the_columns_is_named(content: dict[str, Any], says: str) -> None:
    assert says in refusal(content)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.yaml", b"columns: {a: [", "not well formed"),
        (
            "a.yaml",
            b"columns:\n  a: {kind: flag}\n  b: x\n  a: {kind: flag}",
            "'a' is given twice, in line 2 and in line 4",
        ),
        ("a.json", b'{"a": 1, "a": 2}', "'a' is given twice"),
        ("a.json", b"{", "not well formed"),
        ("a.yaml", b"- a", "the file holds no mapping"),
        ("a.yaml", b"", "the file holds no mapping"),
        ("a.yaml", b"name: \xff\xfe", "not UTF-8 text"),
        ("a.yaml", b"columns: {a: &same {kind: flag}, b: *same}", "write out what it stands for"),
        ("a.yaml", b"columns: " + b"[" * 400_000, "nested deeper"),
        ("a.json", b'{"columns": ' + b"[" * 65 + b"]" * 65 + b"}", "nested deeper"),
    ],
)
def test_a_file_that_is_no_schema_is_named(name: str, text: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(text)
    with pytest.raises(UserError, match=says) as caught:
        load_schema(path)
    assert str(path) in str(caught.value)


def test_all_columns_of_a_schema_that_are_wrong_are_named_at_once() -> None:
    columns = {f"c{i}": {"kind": "integer", "min": 9, "max": i} for i in range(12)} | {"sex": {"kind": "flagg"}, "n": 3}
    with pytest.raises(UserError) as error:
        parse_schema({"columns": columns}, where="s.yaml")
    lines = str(error.value).splitlines()
    assert error.value.where == "s.yaml: column 'c0'"
    assert lines.count("  fix: exchange them, or widen the range") == 8 and lines[-1] == "and 3 more"


LETTERS = {"kind": "categorical", "values": ["a", "b"]}


@pytest.mark.parametrize("name", ["a\0b", "\ud800.csv", "~no-such-person/x"])
@pytest.mark.parametrize(
    ("field", "rules"),
    [
        *(({rule: None}, {}) for rule in ("hierarchy", "distances", "coordinates")),
        ({"geojson": {"key": "name", "file": None}}, {}),
        ({}, {"derive": {"q": {"from": "p", "map": None}}}),
        ({}, {"unit_id": {"name": "u", "units": None}}),
        ({}, {"impossible": [{"columns": ["p", "q"], "possible": None}]}),
    ],
)
def test_a_file_of_a_schema_with_a_name_that_the_system_does_not_take_is_named(field, rules, name):
    """The names ended in errors of Python's: a byte of zero, half a letter, the home of nobody."""
    given = json.dumps({"columns": {"p": LETTERS | field, "q": LETTERS}, **rules}).replace("null", json.dumps(name))
    with pytest.raises(UserError, match="is no name that the system takes"):
        parse_schema(json.loads(given), where="t")


@pytest.mark.parametrize(
    ("field", "form"),
    [
        ("bins", {"kind": "integer", "min": 0, "max": 9, "bins": np.array([0, 5, 9])}),
        ("bounds", {"kind": "integer", "bounds": np.array([0, 9]), "bins": "discover"}),
        ("values", {"kind": "categorical", "values": np.array(["a", "b"])}),
    ],
)
def test_an_array_in_a_mapping_of_python_is_refused_in_words(field: str, form: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=f"{field}: got"):
        parse_schema({"columns": {"a": form}}, where="schema")
