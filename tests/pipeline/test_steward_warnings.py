"""What a draft and `check` ask of ids, days, per cents and signs, before anybody publishes what was read wrongly."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from mechanisms.public.tables.doubts import listed_gaps, two_shapes
from tests.pipeline.conftest import TOWN, command, people
from tests.pipeline.looks import checked, drafted


def test_ids_that_look_like_none_and_records_that_do_not_count_are_warned_of(town, capsys):
    """A third of the records share the id "unknown", as of one person, whose weight is bounded as that of one."""
    table = people(600)
    table.insert(0, "who", ["unknown" if i % 3 == 0 else "" if i % 10 == 1 else f"p{i // 6}" for i in range(600)])
    table.to_csv(town / "town.csv", index=False)
    schema = (town / "town.yaml").read_text().replace("leave_out: [", "leave_out: [who, ")
    (town / "town.yaml").write_text(schema)
    unit = ["privacy.unit=who", "privacy.max_records=4"]
    assert command("check", *TOWN[1:], *unit) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "unit 'who': 'unknown' is the id of 200 records, as of one person: is it none?" in said
    none = re.search(r"privacy\.missing_unit_values=(\[[^]]*\"unknown\"\])", said)
    assert none, said
    lost = 200 - 4 + (table["who"] == "").sum()
    assert f"{100 * lost / 600:.1f} % of the records have no id or lie beyond the bound: their weight is lost" in said
    assert command("check", *TOWN[1:], *unit, f"privacy.missing_unit_values={none[1]}") == 0
    assert "as of one person" not in capsys.readouterr().out


def test_ids_of_nobody_are_asked_about_on_one_line_and_ids_of_two_shapes(town, capsys):
    """Zeros, nines and words that thirty records share each; and persons who have an id of either shape."""
    rows = [(f"S-{i // 2:05}" if i % 2 else f"2021/{i // 2:05}") for i in range(480)]
    rows += [junk for junk in ("0", "999", "P99999", "nobody here") for _ in range(30)]
    table = people(600)
    table["job"] = ["baker", "smith"] * 300
    table.loc[3, "job"] = table.loc[599, "job"] = "clerk"
    table.insert(0, "who", rows)
    table.to_csv(town / "town.csv", index=False)
    schema = (town / "town.yaml").read_text().replace("leave_out: [", "leave_out: [who, ")
    (town / "town.yaml").write_text(schema)
    assert command("check", *TOWN[1:], "privacy.unit=who", "privacy.max_records=4") == 0
    said = " ".join(capsys.readouterr().out.split())
    none = re.search(r"as of one person: is it none\? privacy\.missing_unit_values=(\[[^]]*\])", said)
    assert none and {"0", "999", "p99999", "nobody here"} <= {*json.loads(none[1])}, said
    assert "ids come in two shapes (0000/00000, A-00000): does one person have both?" in " ".join(said.split())
    assert "1 of the listed texts are held by one unit ('who') alone" in said, "rows of nobody are no unit"
    unit = ["privacy.unit=who", "privacy.max_records=4", f"privacy.missing_unit_values={none[1]}"]
    assert command("check", *TOWN[1:], *unit) == 0
    assert "as of one person" not in capsys.readouterr().out
    assert not two_shapes([f"{i:x}" for i in range(4000)]) and not two_shapes([f"A{i}" for i in range(900)])


def test_units_that_are_one_but_for_marks_hold_a_text_as_one_and_a_draft_asks_of_two_shapes(folder, capsys):
    ids = [f"{i // 3:04} {i // 3 + 10:04}" if i % 3 else f"{i // 3:04}{i // 3 + 10:04}" for i in range(900)]
    cells = {"who": ids, "nation": ["TUV" if i < 3 else "DEAT"[i % 2 * 2 :][:2] for i in range(900)]}
    declared = "nation: {kind: categorical, values: [DE, AT, TUV], missing: false}"
    look = checked(capsys, cells, declared, "privacy.unit=who", "privacy.max_records=3")
    assert look["columns"]["nation"]["lone"] == 1
    assert command("schema", "t.csv", "output=s.yaml", "privacy.unit=who") == 0
    assert "ids come in two shapes (0000 0000, 00000000): does one person have both?" in Path("s.yaml").read_text()


@pytest.mark.parametrize(("days", "asked"), [(range(1, 13), True), (range(1, 29), False)])
def test_days_that_may_be_months_are_asked_about(days, asked, folder, capsys):
    cells = {"day": [f"{d:02}/{m:02}/2021" for d in days for m in (1, 5, 12)] * 20}
    question = "which comes first, the day or the month?"
    assert (question in drafted(cells)[1]) == asked
    declared = 'day: {kind: date, min: 2021-01-01, max: 2021-12-31, bins: month, format: "%d/%m/%Y"}'
    assert (question in str(checked(capsys, cells, declared)["columns"]["day"]["hints"])) == asked


def test_numbers_with_and_without_a_per_cent_sign_are_told_and_a_typesetters_minus_is_a_minus(folder, capsys):
    cells = {"share": [f"{i % 90}.5%" if i % 3 else f"0.{i % 90 + 10}" for i in range(900)]}
    cells |= {"balance": [f"\u2212{i}.25" if i % 2 else f"{i}.75" for i in range(900)]}
    found, draft = drafted(cells)
    assert "300 rows have no %: are they per cent too?" in draft
    column = found["balance"]
    assert (column["kind"], column["min"], column["max"]) == ("float", -900, 900), draft
    columns = checked(capsys, cells)["columns"]
    assert columns["balance"]["lost"] == 0
    assert columns["share"]["status"] == "warning"
    assert "300 of 900 numbers have no %: are they per cent too?" in columns["share"]["hints"]


def test_codes_that_are_read_as_numbers_or_as_gaps_and_numbers_that_are_rounded_are_asked_about(folder, capsys):
    """Racks called 2E2, sodium called NA, and 41.476 for 41476 in a column that is declared to be whole."""
    cells = {"rack": [f"{i % 9 + 1}E{i % 3}" for i in range(900)], "salt": ["NA", "K", "Ca"] * 300}
    cells |= {"pay": [f"{i % 40 + 1}.476" if i % 2 else "912" for i in range(900)]}
    draft = drafted(cells)[1]
    assert "900 are written as 2E2, and read as 200: are they codes?" in draft and "NA taken for a gap: is it?" in draft
    pay = checked(capsys, cells, "pay: {kind: integer, min: 0, max: 1000, bins: {count: 5}}")["columns"]["pay"]
    assert pay["status"] == "warning" and "50.0 % of the numbers are rounded to whole ones" in pay["hints"][1]


def test_values_that_descend_within_one_bin_break_a_rule_that_orders_them(tmp_path, monkeypatch, capsys):
    """The two dates changed places under their names; both lie in one month nearly always."""
    monkeypatch.chdir(tmp_path)
    days = pd.date_range("2021-01-02", periods=900, freq="D").strftime("%Y-%m-%d")
    before = pd.date_range("2021-01-01", periods=900, freq="D").strftime("%Y-%m-%d")
    pd.DataFrame({"start": days, "end": before}).to_csv("t.csv", index=False)
    day = "{kind: date, min: 2021-01-01, max: 2023-12-31, bins: month}"
    columns = f"columns: {{start: {day}, end: {day}}}\nordered: [[start, end]]\n"
    Path("t.yaml").write_text(f"source: a form\nconfirmed_public: true\n{columns}")
    assert command("check", "data.path=t.csv", "data.schema=t.yaml") == 0
    assert "start ≤ end: 100.0 % of the rows break it" in capsys.readouterr().out


def test_brackets_and_units_that_are_taken_out_of_some_numbers_alone_are_warned_of(folder, capsys):
    """(12.50) in accounts is below 0; 70 kg and 154 lb are one weight."""
    cells = {"paid": [f"({i}.50)" if i % 3 == 0 else f"€{i}.50" if i % 3 == 1 else f"{i}.50" for i in range(900)]}
    cells |= {"weight": [f"{i % 90} kg" if i % 2 else f"{i % 90 * 2} lb" for i in range(900)]}
    cells |= {"pay": [f"{i % 9}k" if i % 3 else f"{i}000" for i in range(900)]}
    cells |= {"fee": [f"{i}.50 EUR" if i % 2 else f"{i}.50" for i in range(900)]}
    number = "kind: float, min: 0, max: 900000, bins: {count: 5}"
    signs = {"paid": '["(", ")", "€"]', "weight": "[kg, lb]", "pay": "[k]", "fee": "[EUR]"}
    declared = ", ".join(f"{c}: {{{number}, strip: {s}}}" for c, s in signs.items())
    columns = checked(capsys, cells, declared)["columns"]
    assert [columns[c]["status"] for c in signs] == ["warning", "warning", "warning", "ok"]
    assert "300 of 900 numbers stand in brackets, and are read without a minus" in columns["paid"]["hints"][0]
    assert "some numbers alone: 'kg' (450 times), 'lb' (450 times)" in columns["weight"]["hints"][0]
    assert "300 of 900 numbers have no k: do they mean the same?" in columns["pay"]["hints"]


@pytest.mark.parametrize(
    ("scale", "codes", "declared", "asked"),
    [
        (range(1, 6), ["8", "9"], "min: 1, max: 9", ["8", "9"]),
        (range(1, 6), ["8", "9"], 'min: 1, max: 9, missing: ["9"]', ["9", "8"]),
        (range(11), ["77", "88", "99"], "min: 0, max: 99", ["77", "88", "99"]),
        (range(1, 6), ["9"], "min: 1, max: 9", ["9"]),
        *((scale, ["9"], "min: 0, max: 9", ["9"]) for scale in ("01", "12", "1234567")),
        ("128", ["9"], "min: 0, max: 9", ["8", "9"]),
        *((held, [], "min: 0, max: 9", []) for held in ("1234567", "159", "012")),
        (range(1, 8), ["8", "9"], "min: 1, max: 9", []),
        (range(70, 99), ["99"], "min: 70, max: 99", []),
        (range(11), ["-8", "-5", "-2", "-1"], "min: -8, max: 10", ["-8", "-5", "-2", "-1"]),
        (range(1, 6), ["-9", "-8", "-7"], "min: -9, max: 5", ["-9", "-8", "-7"]),
        (range(-3, 11), [], "min: -3, max: 10", []),
        (range(-2, 3), [], "min: -2, max: 2", []),
    ],
)
def test_codes_of_no_answer_above_a_scale_are_asked_about(scale, codes, declared, asked, folder, capsys):
    cells = {"agree": [*map(str, scale), *codes] * 30}
    column = checked(capsys, cells, f"agree: {{kind: integer, {declared}}}")["columns"]["agree"]
    hints = " ".join(column["hints"])
    assert column["status"] == ("warning" if asked else "ok"), column
    assert (f"a gap? missing: {json.dumps(asked)}" in hints) if asked else "a gap?" not in hints


@pytest.mark.parametrize(
    ("values", "asked"),
    [
        (["1", "2", "3", "99", "k.A.", "x"], ["99", "k.A.", "x"]),
        (["ledig", "keine Angabe", "unbekannt"], ["keine Angabe", "unbekannt"]),
        (["ja", "nein", "weiß nicht", "verweigert", "99"], ["weiß nicht", "verweigert", "99"]),
        (["AOK", "TK", "000", "9999", "--", "entf."], ["000", "9999", "--", "entf."]),
        (["1", "2", "98", "99", "-9"], ["99", "-9"]),
        (["0000", "1900", *map(str, range(1940, 2006)), "2099", "9999"], ["0000", "1900", "2099", "9999"]),
        ([*map(str, range(97, 102)), *map(str, range(1898, 1903)), "00", "01", "x1"], []),
        (["0", "-1"], []),
        (["s", "m", "x"], []),
    ],
)
def test_listed_values_that_may_mean_a_gap_are_asked_about(values, asked):
    assert listed_gaps(values) == asked


def test_a_draft_and_check_ask_the_same_of_listed_values_that_may_mean_a_gap(folder, capsys):
    cells = {"care": ["1", "2", "3", "99", "k.A.", "x"] * 60}
    assert "'99', 'k.A.', 'x' among the values: a gap?" in drafted(cells)[1]
    (hint,) = checked(capsys, cells)["columns"]["care"]["hints"]
    assert hint == "'99', 'k.A.', 'x' among the values: a gap? missing: [\"99\", \"k.A.\", \"x\"]"


def test_days_that_stand_for_gaps_years_of_two_digits_and_offsets_are_warned_of(folder, capsys):
    days = [f"{d:%Y-%m-%d}" for d in pd.date_range("1960-01-01", periods=900, freq="11D")]
    cells = {"born": [day if i % 9 else "1900-01-01" for i, day in enumerate(days)]}
    cells |= {"known": [day if i % 9 else "9999-12-31" for i, day in enumerate(days)]}
    cells |= {"short": [f"{i % 28 + 1:02}.05.{31 if i % 2 else 75}" for i in range(900)]}
    cells |= {"taken": [f"2024-05-{i % 28 + 1:02}T10:00:00{'Z' if i % 2 else '+02:00'}" for i in range(900)]}
    cells |= {"plain": [day + "T10:00:00Z" for day in days]}
    span = "min: 1900-01-01, max: 2024-12-31, bins: year"
    columns = checked(
        capsys,
        cells,
        f'born: {{kind: date, {span}}}, known: {{kind: date, {span}, missing: ["9999-12-31"]}}, '
        'short: {kind: date, format: "%d.%m.%y", min: 1969-01-01, max: 2068-12-31, bins: year}, '
        f"taken: {{kind: datetime, {span}}}, plain: {{kind: datetime, {span}}}",
    )["columns"]
    assert '1900-01-01 (100 times): a gap? missing: ["1900-01-01"]' in columns["born"]["hints"]
    assert "450 of 900 days lie after" in columns["short"]["hints"][0]
    assert "are not read, and differ: +02:00 (450 times), Z (450 times)" in columns["taken"]["hints"][0]
    assert [c["status"] for c in columns.values()] == ["warning", "ok", "warning", "warning", "ok"]
