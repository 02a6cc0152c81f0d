"""What `check` warns of before anybody is protected as several persons, or a number published for a day or a cent."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import pipeline
from tests.pipeline.conftest import reply
from tests.pipeline.looks import FORM, checked, drafted


@pytest.mark.parametrize(
    ("ids", "says"),
    [
        (["1000014", "ID-1000014", "100 0014", "1000015"], "3 ids are 1 but for marks"),
        (["x-0071", "71", "72"], "2 ids are 1 but for marks"),
        (["12-3", "1-23", "A100", "B100", "1.0", "01", "1"], ""),
        (["anna@a.org", "bob@a.org", "7a", "7b", "-", "--"], ""),
    ],
)
def test_ids_of_one_person_in_several_forms_are_warned_of(ids, says, folder, capsys):
    cells = {"who": ids * 20, "sex": ["F", "M"] * (10 * len(ids))}
    columns = "columns: {sex: {kind: categorical, values: [F, M], missing: false}}\nleave_out: [who]"
    looked = checked(capsys, cells, columns, "privacy.unit=who", "privacy.max_records=20")
    said = "\n".join(looked["hints"] + looked.get("warnings", []))
    assert (says in said) if says else "one person?" not in said, said


def test_words_and_one_digit_again_and_again_are_asked_about_as_no_id_and_no_day(folder, capsys):
    """73 patients whose number was not known, or called TBC, were one person, and 00000000 was an unreadable day."""
    cells = {"who": [f"7{i % 90:09}" for i in range(300)] + ["NOT KNOWN", "9999999999", "TBC"] * 40}
    cells["day"] = [f"2021{1 + i % 12:02}{1 + i % 28:02}" if i % 9 else "00000000" for i in range(420)]
    columns = 'columns: {day: {kind: date, format: "%Y%m%d", min: 2021-01-01, max: 2021-12-31}}\nleave_out: [who]'
    unit = ("privacy.unit=who", "privacy.max_records=5")
    looked = checked(capsys, cells, columns, *unit)
    said = "\n".join(looked["hints"]).casefold()
    assert all(f"'{word}' is the id of 40 records" in said for word in ("not known", "9999999999", "tbc")), said
    names = cells | {"who": [("anna", "bob", "a1")[i % 3] for i in range(420)]}
    assert "is it none?" not in str(checked(capsys, names, columns, *unit)["hints"])
    assert "'00000000': a gap? missing: [\"00000000\"]" in looked["columns"]["day"]["hints"][0]


IN_DIGITS = {
    "%Y%m%d": (8, 'kind: date, format: "%Y%m%d"'),
    "%Y%m": (6, 'kind: date, format: "%Y%m"'),
    "%d%m%Y": (8, 'kind: date, format: "%d%m%Y"'),
    "%m%d%Y": (8, 'kind: date, format: "%m%d%Y"'),
    "%y%m%d": (6, 'kind: date, format: "%y%m%d" or "%d%m%y"'),
    "%d%m%y": (6, 'kind: date, format: "%d%m%y" or "%y%m%d"'),  # 1 to 31 are days and years
    "%Y%m%d%H%M": (12, 'kind: datetime, format: "%Y%m%d%H%M"'),
    "%Y%m%d%H%M%S": (14, 'kind: datetime, format: "%Y%m%d%H%M%S"'),
}


def test_days_and_times_in_digits_of_any_form_are_warned_of_and_plain_ones_are_drafted_as_such(folder, capsys):
    times = pd.date_range("2003-01-31 07:10:05", "2031-11-20", 900)
    cells, wide, codes, said = {}, {}, {}, {}
    for i, (form, (width, words)) in enumerate(IN_DIGITS.items()):
        cells[f"at{i}"], said[f"at{i}"] = [f"{t:{form}}" for t in times], words
        cells[f"pay{i}"] = [str(10 ** (width - 1) + 7 * k * 10 ** (width - 5)) for k in range(900)]
        number = {"kind": "integer", "min": 0, "max": 10**width - 1, "bins": {"count": 5}, "missing": False}
        wide |= {f"at{i}": number, f"pay{i}": number}
        if width < 9:
            codes[f"at{i}"] = {"kind": "zip", "digits": width, "prefix": 2, "missing": False}
    found = drafted(cells)[0]
    assert (found["at0"]["kind"], found["at0"]["format"]) == ("date", "%Y%m%d") and found["pay0"]["kind"] == "integer"
    for declared in (wide, wide | codes):
        columns = checked(capsys, cells, declared)["columns"]
        for name, look in columns.items():
            assert look["status"] == ("warning" if name in said else "ok"), (name, look)
            assert name not in said or look["hints"][0].endswith(said[name]), look


def test_an_end_of_the_numbers_that_lies_apart_and_that_many_rows_hold_is_asked_about(folder, capsys):
    """A mean income of 25,000 was released as 1,159,276, and the column was called ok."""
    ends = {
        "pay": (lambda i: 20_000 + 37 * (i * i % 1000), "9999999", True),
        "low": (lambda i: f"{34 + i % 50 / 10:.1f}", "0", True),
        "high": (lambda i: f"{15 + i % 250 / 10:.1f}", "99.9", True),
        "near": (lambda i: i % 60, "75", False),
        "age": (lambda i: 18 + i % 70, "0", False),
        "steps": (lambda i: 5 * (i % 12), "100", False),
    }
    field = {"kind": "float", "bins": {"edges": [0, 50, 100, 1000, 99999, 10000001]}}
    for every in (10, 500):
        cells = {n: [odd if i % every == 0 else usual(i) for i in range(2000)] for n, (usual, odd, _) in ends.items()}
        columns = checked(capsys, cells, dict.fromkeys(ends, field))["columns"]
        for name, (_, odd, gap) in ends.items():
            asked = [f'{odd} (200 times): a gap? missing: ["{odd}"]'] if gap and every == 10 else []
            assert [h for h in columns[name]["hints"] if "a gap?" in h] == asked, "one of a thousand may be a tail"


def test_numbers_below_zero_as_accounts_write_them_are_told_with_their_cure(folder, capsys):
    cells = {"due": [("7.50-", "€3.20-", "(4.10)", "12.30")[i % 4] for i in range(400)]}
    cells["code"] = ["-" if i % 4 else "(a)" for i in range(400)]
    number = "{kind: float, min: -50, max: 50, bins: {count: 5}, strip: [€]}"
    columns = checked(capsys, cells, f"columns: {{due: {number}, code: {number}}}", "data.max_unplaced=1")["columns"]
    assert columns["due"]["hints"][0].startswith("100.0 % of what cannot be read are numbers below 0, with the minus")
    assert "below 0" not in str(columns["code"]["hints"])


def test_times_with_a_zone_are_warned_of_since_the_clock_of_utc_is_read(folder, capsys):
    """An evening in Los Angeles stood in a release as 23 o'clock, and on the next day."""
    at = pd.to_datetime(["2024-01-31 15:30", "2024-06-30 16:30"] * 50)
    schema = {"columns": {"at": {"kind": "datetime", "min": "2024-01-01", "max": "2024-12-31", "bins": "hour_of_day"}}}
    for zone, status in (("America/Los_Angeles", "warning"), (None, "ok")):
        column = pipeline.check(pd.DataFrame({"at": at.tz_localize(zone)}), schema)["columns"]["at"]
        told = "as UTC's clock shows them" in str(column["hints"])
        assert (column["status"], told) == (status, zone is not None)


def test_cents_beside_euros_thousands_beside_ones_and_gaps_among_answers_are_warned_of(folder, capsys):
    cells = {"paid": [f"{100 + i % 70}.50" if i % 3 else f"{100 + i % 70}50" for i in range(900)]}
    cells["fee"] = [f"{100 + i % 70}.50" if i % 3 else f"{100 + i % 70}" for i in range(900)]
    cells |= {"income": [f"{20 + i % 20}.5" if i % 9 == 0 else f"{20000 + 7 * i}" for i in range(900)]}
    cells |= {"trust": ["12345"[i % 5] if i % 9 else "9" for i in range(900)]}
    cells |= {"fair": ["01234"[i % 5] if i % 9 else "-1" for i in range(900)]}
    cells |= {"grade": ["123456789"[i % 9] for i in range(900)]}
    amount, answer = "{kind: float, min: 0, max: 20000, bins: {count: 5}}", "{kind: integer, min: -1, max: 9}"
    declared = {"paid": amount, "fee": amount.replace("20000", "500"), "income": amount.replace("20000", "50000")}
    declared |= dict.fromkeys(("trust", "fair", "grade"), answer)
    columns = checked(capsys, cells, f"columns: {{{', '.join(f'{k}: {v}' for k, v in declared.items())}}}")["columns"]
    assert [n for n, c in columns.items() if c["status"] == "warning"] == ["paid", "income", "trust", "fair"]
    assert "two units, thousands beside ones?" in columns["income"]["hints"][0]
    assert {columns[n]["status"] for n in ("fee", "grade")} == {"ok"}
    assert "300 numbers without decimals are about 100 times the 600 with" in columns["paid"]["hints"][0]
    assert 'missing: ["9"]' in columns["trust"]["hints"][0] and 'missing: ["-1"]' in columns["fair"]["hints"][0]
    assert drafted(cells)[1].count("is 9 a value, or a gap?") == 1


def test_a_form_with_day_and_month_changed_over_is_named_instead_of_the_declared_one(folder, capsys):
    """Both beside each other read 03/04 one way, whichever is meant, and nothing is lost any more."""
    days = [f"{m:02}/{d:02}/2021" for m in range(1, 13) for d in range(1, 29)]
    day = 'columns: {day: {kind: date, min: 2021-01-01, max: 2021-12-31, bins: month, format: "%d/%m/%Y"}}'
    hints = checked(capsys, {"day": days}, day, "data.max_unplaced=1")["columns"]["day"]["hints"]
    assert any('formats: ["%m/%d/%Y"] instead?' in hint for hint in hints), hints


def test_a_plan_names_an_id_that_is_left_out_the_person_s_before_a_case_s_where_rows_are_the_units(folder, capsys):
    columns = "columns: {sex: {kind: categorical, values: [F, M], missing: false}}\nleave_out: [case_no, client]"
    Path("t.yaml").write_text(f"{FORM}{columns}\n")
    plan = ["plan", "data=table", "data.schema=t.yaml"]
    out = reply(capsys, *plan).out
    assert "'client' looks like an id: privacy.unit=client" in out and "case_no" not in out
    assert "looks like an id" not in reply(capsys, *plan, "privacy.unit=client", "privacy.max_records=1").out


def test_fit_without_a_folder_names_no_file_that_is_gone_and_shows_the_look_where_asked(folder, capsys):
    frame = pd.DataFrame({"who": ["1000014", "ID-1000014", "7", "8"] * 50, "sex": ["F", "M"] * 100})
    columns = {"sex": {"kind": "categorical", "values": ["F", "M"], "missing": False}}
    schema = {"source": "a form", "confirmed_public": True, "columns": columns, "leave_out": ["who"]}
    for console, shown in (("terminal", False), ("always", True)):
        pipeline.fit(frame, schema, epsilon=1, unit="who", max_records=50, console=console)
        said = " ".join(capsys.readouterr().err.split())
        assert ("ids are 1 but for marks in them" in said) is shown, said
        assert ('console="always" shows the warnings' in said) is not shown, said
        assert "internal/check.txt (NOT private)" not in said
