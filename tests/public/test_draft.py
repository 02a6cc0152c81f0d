"""A drafted schema says that it looked, says what to check, loads, and encodes the table it came from."""

import itertools
import json
import re
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from mechanisms.public.drafts import column_facts, never_guess, rule_guess
from mechanisms.public.drafts.draft import draft_schema
from mechanisms.public.drafts.text_guess import classes_in_order, in_order
from mechanisms.public.errors import UserError
from mechanisms.public.schema.table_schema import Schema, load_schema, parse_schema
from tests.public.table_worlds import csv, encoded, loosened, source

ROWS = "".join(
    f"p{i},{20 + i % 50},{1000 + i * 37 % 401 * 7},{i / 8:.3f},{'xy'[i % 2]},{'Y' if i % 5 == 0 else ''},"
    f"{1 + i % 12:02}/{1 + i % 28:02}/2016,2016-01-{1 + i % 28:02} 0{i % 10}:00:00,0{i % 7},,"
    f"{'?' if i % 9 == 0 else i % 4}\n"
    for i in range(500)
)
TABLE = "id,age,income,score,sex,heroin,date,time,zip,empty,gap: #1\n" + ROWS


def drafted(path: Path) -> tuple[str, Schema]:
    text = draft_schema(source(path), "my table")
    target = path.parent / "draft.yaml"
    target.write_text(text, encoding="utf-8")
    return text, load_schema(target)


def taken(folder: Path, text: str) -> Schema:
    """The schema of a draft whose proposals a person took."""
    (folder / "own.yaml").write_text(loosened(text), encoding="utf-8")
    return load_schema(folder / "own.yaml")


def test_kinds_are_guessed_from_the_data_said_to_be_guesses_and_encode_the_table(tmp_path: Path) -> None:
    path = csv(tmp_path, TABLE)
    text, facts = drafted(path)
    kinds = dict.fromkeys(("age", "income", "gap: #1"), "integer") | {"score": "float", "heroin": "flag"}
    kinds |= dict.fromkeys(("sex", "zip", "empty"), "categorical") | {"date": "date", "time": "datetime"}
    assert {c.name: c.kind for c in facts.columns} == kinds
    assert facts.leave_out == ("id",)
    assert facts["gap: #1"].missing_texts == ("?",) and facts["date"].format == "%m/%d/%Y"
    assert facts["zip"].values == ("00", "01", "02", "03", "04", "05", "06")
    assert facts.confirmed_public is False and facts.name == "my table"
    assert text.startswith("# DRAFT, guessed by looking at the data: NOT private.")
    assert text.count("# guess: ") == len(facts.columns)
    table, report = encoded(path, facts)
    assert table.rows == 500 and not report.marked


def test_rounded_amounts_are_drafted_as_multiples_in_bins_of_one_each_where_they_are_few(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    pay = 50 * rng.integers(0, 90, 3_000) + 13 * (rng.random(3_000) < 0.01)
    few, hours, cost = (
        250 * rng.integers(2, 27, 3_000),
        rng.integers(0, 90, 3_000) / 2,
        rng.integers(0, 9_000, 3_000) / 10,
    )
    part = rng.integers(0, 20, 3_000)
    rows = [
        f"{p},{f},{h},{c},{p + 1},{x * 0.05:.2f},{4 + x * 0.2:.2f},{60 * (x % 5)}.00,{15 * x}"
        for p, f, h, c, x in zip(pay, few, hours, cost, part, strict=True)
    ]
    text, facts = drafted(csv(tmp_path, "\n".join(["pay,few,hours,cost,odd,part,fee,deposit,minutes", *rows]) + "\n"))
    assert facts["part"].size == 20, "0 to 0.95 in steps of 0.05"
    assert [c.multiple_of for c in facts.columns] == [50, 250, 0.5, None, None, 0.05, 0.2, 20, 15]
    assert facts["cost"].decimals == 1
    assert [c.fixed for c in facts.columns] == [None, None, 1, 1, None, 2, 2, 2, None], "60.00 would be written as 60"
    assert "nearly all are multiples of 50" in text and facts["few"].size == 25
    low, high = facts["few"].grid.spans
    assert all(len([m for m in range(500, 6_750, 250) if a <= m <= b]) == 1 for a, b in zip(low, high, strict=True))


@pytest.mark.parametrize("few", [["nEiN"], ["nEiN", "Ja"], ["yes", "nEiN"]])
def test_a_spelling_of_one_person_is_not_quoted(tmp_path: Path, few: list[str]) -> None:
    many = [] if few[0] == "yes" else ["yes"] * 300
    text, facts = drafted(csv(tmp_path, "a\n" + "\n".join([*many, *few]) + "\n"))
    assert "nEiN" not in text and "Ja" not in text
    assert facts["a"].kind == "flag" and facts["a"].values == ("no", "yes")


def test_odd_tables_have_a_draft_that_knows_every_column_and_encodes_every_row(tmp_path: Path) -> None:
    unique = "only\n" + "".join(f"text {i}\n" for i in range(900))
    numbers = [("a\n1.5\n", 1, 1), ("a\n1e300\n-1e300\n", 1, 2), ("a\ninf\n", 1, 1)]
    empty = [("a,b\n", 2, 0), ("a\n\n\n", 1, 2), ("a,b\n1,\n", 2, 1)]
    for text, columns, rows in (*empty, *numbers, (unique, 1, 900), ('"a ""q"", #",b\nx,y\n', 2, 1)):
        path = csv(tmp_path, text)
        _, facts = drafted(path)
        table, _ = encoded(path, facts)
        assert len(facts.columns) + len(facts.leave_out) == columns
        assert table.rows == rows


def test_a_few_words_among_numbers_are_doubted_as_gaps_and_open_classes_are_not(tmp_path: Path) -> None:
    few = ["k.A.", "90+", "Not applicable", "zero"]
    shares = zip(few, (1, 1, 13, 13), strict=True)
    ages = zip(*([w if i % 20 < n else f"{18 + i // 9 % 60}" for i in range(1600)] for w, n in shares), strict=True)
    rows = "".join(f"{','.join(cells)}\n" for cells in ages)
    text, facts = drafted(csv(tmp_path, "age,open,hours,days\n" + rows))
    assert facts["age"].kind == "integer" and facts["age"].missing_texts == ("k.A.",)
    assert "do 'k.A.' mean a gap?" in text
    assert facts["hours"].kind == "integer" and facts["hours"].missing_texts == ("Not applicable",)
    assert "do 'Not applicable' mean a gap?" in text and facts["days"].kind == "categorical"
    assert facts["open"].kind == "categorical" and "90+" in facts["open"].values


def test_columns_of_gaps_and_rare_numbers_or_of_days_and_clocks_refuse_no_draft(tmp_path: Path) -> None:
    """Nothing of the first is left to list; a clock is read as no day, and a day as no clock."""
    cells = [
        (["none", "unknown"][i % 2] if i % 7 else f"{i}000", f"12:{i % 60:02}" if i % 3 else f"2020-01-{1 + i % 28:02}")
        for i in range(1500)
    ]
    text, facts = drafted(
        csv(tmp_path, "sex,loan,seen\n" + "".join(f"{'mf'[i % 2]},{a},{b}\n" for i, (a, b) in enumerate(cells)))
    )
    assert facts["seen"].format == "%H:%M" and not facts["seen"].more_formats and facts["seen"].missing
    assert '- "loan"  # 217 distinct texts' in text


def test_bad_cells_do_not_drop_a_column_and_a_long_list_keeps_its_most_frequent_texts(tmp_path: Path) -> None:
    """The reasons are those that hold: some unreadable dates, one percent of bad numbers, a code of many values."""
    rows = "".join(
        f"{'soon' if i % 10 == 0 else f'2016-{1 + i % 12:02}-{1 + i % 28:02}'},"
        f"{'12 or 13' if i % 50 == 0 else f'{i * 37 % 9973}.5'},"
        f"C{i * i % 1009 % 241},General,{i % 2}\n"
        for i in range(6000)
    )
    text, facts = drafted(csv(tmp_path, "day,lab,code,hospital,zero_one\n" + rows))
    assert facts["day"].kind == "date" and facts["day"].missing and "'soon'" not in facts["day"].missing_texts
    assert facts["lab"].kind == "float" and facts["lab"].missing and (facts["lab"].low, facts["lab"].high)[0] == 0
    assert "2.0 % of the values cannot be read so, such as '12 or 13': they become missing" in text
    assert facts["code"].other == "Other" and len(facts["code"].values) == 200 and "most frequent" in text
    assert facts["hospital"].constant and facts["zero_one"].kind == "integer"
    assert facts.leave_out == ()


def medical(rows: int = 1200) -> str:
    """A register with free text in few of its cells, a town of few people, and one odd word among the ages."""
    conditions = ["HYPERTENSION"] * 40 + [f"CASE {i} OF A RARE SYNDROME" for i in range(60)]
    lines = [
        f"{'declined' if i == 7 else 20 + i % 60},{conditions[i // 12] if i % 12 == 0 else ''},"
        f"{'Lone Hamlet' if i == 3 else ('North', 'South')[i % 2]},{'transplant' if i == 5 else ''},K{i % 40:02}"
        for i in range(rows)
    ]
    return "\n".join(["age,conditions,town,remark,patient_id", *lines, ""])


def test_a_text_that_few_rows_hold_is_never_in_a_draft_and_the_draft_says_so(tmp_path: Path) -> None:
    text, facts = drafted(csv(tmp_path, medical()))
    for betrayed in ("SYNDROME", "Lone Hamlet", "declined", "transplant", "K07"):
        assert betrayed not in text, betrayed
    assert facts.leave_out == ("conditions", "remark", "patient_id")
    few = "that fewer than 10 values of 'patient_id' hold"
    assert f"61 distinct texts, of them 60 {few}: free text" in text, "of the filled cells"
    assert facts["town"].values == ("North", "South") and facts["town"].other == "Other"
    assert f"3 distinct texts; not listed, but other: 1 {few}" in text
    assert text.count("{kind: categorical, values: discover, other: Other}") == 2
    assert (facts["age"].kind, facts["age"].missing_texts) == ("integer", ()) and facts["age"].missing
    assert "below 0.1 % of the values cannot be read so: they become missing" in text


def chronic(rows: int = 1200) -> str:
    """Two persons with a rare diagnosis come back again and again: twelve rows each hold it, and its remark."""
    lines = []
    for i in range(rows):
        rare = i % 50 == 7
        who, ill = (f"P0{i % 100 // 50}", "FATAL INSOMNIA") if rare else (f"P{100 + i // 2}", ("flu", "asthma")[i % 2])
        lines.append(f"{who},{ill},{'readmitted' if rare else ''},{i % 7}")
    return "\n".join(["patient_id,diagnosis,remark,day", *lines, ""])


def test_a_text_that_many_rows_of_few_persons_hold_is_never_in_a_draft(tmp_path: Path) -> None:
    text, facts = drafted(csv(tmp_path, chronic()))
    assert "INSOMNIA" not in text and facts["diagnosis"].values == ("asthma", "flu")
    assert "3 distinct texts; not listed, but other: 1 that fewer than 10 values of 'patient_id' hold" in text
    assert facts.leave_out == ("patient_id", "remark") and "readmitted" not in text
    assert "Counted by the column 'patient_id' (guessed to be the person; privacy.unit=COLUMN says another)" in text


def test_a_running_number_of_rows_is_not_taken_for_the_person(tmp_path: Path) -> None:
    head, *lines = chronic().replace("patient_id", "reader").splitlines()
    for first in (500_000, 545_600):  # a sketch counts a twentieth less of the latter
        rows = [f"{first + i},{line}" for i, line in enumerate(lines)]
        text, facts = drafted(csv(tmp_path, "\n".join([f"loan_no,{head}", *rows, ""])))
        assert "Rows were counted: no column is called a person's id." in text, "who is protected is still to be said"
        assert "loan_no" in facts.leave_out


def test_remarks_of_several_words_name_nobody_however_few_rows_share_one(tmp_path: Path) -> None:
    """`privacy.unit=remarks` was the advice for remarks that differ by their dates."""
    names = [f"Maria Jose Garcia Nr{i % 300},called on {1 + i % 28:02}.{1 + i % 11:02}.2024" for i in range(1200)]
    rows = [f"{own} again,a cake with {i % 1190} cherries" for i, own in enumerate(names)]
    text, _ = drafted(csv(tmp_path, "\n".join(["holder,remarks,dish", *rows, ""])))
    assert '"remarks"  # 308 distinct texts: free text' in text and "privacy.unit=remarks" not in text
    assert '"dish"  # 1,190 distinct texts: free text' in text and "privacy.unit=dish" not in text
    assert "does it name persons? then draft with privacy.unit=holder" in text, "names have several words too"


def test_a_draft_counts_by_the_unit_that_is_given_by_rows_where_it_is_a_record_and_says_so(tmp_path: Path) -> None:
    path = csv(tmp_path, chronic().replace("patient_id", "who"))
    assert "INSOMNIA" in draft_schema(source(path), "t"), "nothing tells that a person has several rows"
    assert "Rows were counted: no column is called a person's id." in draft_schema(source(path), "t")
    given = draft_schema(source(path), "t", unit="who")
    assert "INSOMNIA" not in given and "Counted by the column 'who' (privacy.unit)" in given
    path = csv(tmp_path, chronic())
    assert "INSOMNIA" in draft_schema(source(path), "t", unit="record")
    assert '"day"  # it may name persons' in draft_schema(source(path), "t", unit="day")
    with pytest.raises(UserError, match="no column 'patient' in"):
        draft_schema(source(path), "t", unit="patient")


def test_amounts_with_their_unit_are_numbers_and_two_units_are_never_one(tmp_path: Path) -> None:
    rows = "".join(
        f"{60 + i % 41}.{i % 10}{' kg' if i % 2 else ''},{i % 30 + 1}{' days' if i % 9 == 0 else ''},"
        f"{5 + i % 7}{' kg' if i % 3 else ' g'}\n"
        for i in range(900)
    )
    _, facts = drafted(csv(tmp_path, "weight,stay,dose\n" + rows))
    assert (facts["weight"].kind, facts["weight"].strip, facts["weight"].high) == ("float", ("kg",), 101)
    assert (facts["stay"].kind, facts["stay"].strip, facts["stay"].high) == ("integer", ("days",), 30)
    assert facts["dose"].kind == "categorical" and "5 g" in facts["dose"].values and "6 kg" in facts["dose"].values


def test_a_unit_with_a_digit_is_one_however_it_is_written(tmp_path: Path) -> None:
    """Of each digit of a text as m2 it was read as 9, and m² beside it was another unit: a list was drafted."""
    rows = "".join(f"{30 + i % 90} m2,{30 + i % 90} m{'2²'[i % 2]},{i % 40 + 1}.5 kg/m3,m{i % 4}\n" for i in range(900))
    _, facts = drafted(csv(tmp_path, "floor,flat,density,machine\n" + rows))
    assert [(facts[n].kind, facts[n].low, facts[n].high) for n in ("floor", "flat")] == [("integer", 30, 120)] * 2
    assert (facts["floor"].strip, {*facts["flat"].strip}) == (("m2",), {"m2", "m²"})
    assert (facts["density"].kind, facts["density"].strip) == ("float", ("kg/m3",))
    assert facts["machine"].values == ("m0", "m1", "m2", "m3")


@pytest.mark.parametrize(("form", "bins"), [("%m/%Y", "month"), ("%b %Y", "month"), ("%m.%Y", "year")])
def test_months_alone_are_dates_and_no_list_in_the_order_of_their_digits(tmp_path: Path, form, bins) -> None:
    """01/2020, 01/2021, 02/2020 …: more than 200 of them were cut off, and no rule said which comes first."""
    months = [date(2005 + k // 12, k % 12 + 1, 1).strftime(form) for k in range(60 if bins == "month" else 240)]
    text, facts = drafted(csv(tmp_path, "first,beside\n" + "".join(f"{m},1\n" for m in months * 9)))
    seen = facts["first"]
    assert (seen.kind, seen.format, seen.bins.calendar) == ("date", form, bins)
    assert "first of a month" not in text


def test_bounds_of_dates_are_whole_months_or_years_and_nobodys_birthday(tmp_path: Path) -> None:
    born = "".join(f"{1932 + i % 70}-{3 + i % 9:02}-{5 + i % 20:02}\n" for i in range(500))
    assert "min: '1903-01-01', max: '2001-12-31'" in drafted(csv(tmp_path, "born\n1903-03-03\n" + born))[0]
    seen = "".join(f"2024-0{2 + i % 3}-{5 + i % 20:02}\n" for i in range(500))
    text = drafted(csv(tmp_path, "seen\n" + seen))[0]
    assert "min: '2024-02-01', max: '2024-04-30'" in text and "first of a month" not in text
    months = "".join(f"01.0{1 + i % 9}.2024\n" for i in range(500))
    assert 'format: "01.%m.%Y" keeps that' in drafted(csv(tmp_path, "seen\n" + months))[0]
    years = "".join(f"{2000 + i % 15}-{1 + i % 12:02}-01\n" for i in range(600))  # 60 days, about 61 for DuckDB
    assert 'format: "%Y-%m-01" keeps that' in drafted(csv(tmp_path, "seen\n" + years))[0]


def test_years_of_two_digits_are_read_in_their_own_form_and_never_as_the_first_century(tmp_path: Path) -> None:
    rows = "".join(
        f"{1 + i % 28:02}.{1 + i % 12:02}.2023\n" if i % 3 else f"{1 + i % 12:02}/{1 + i % 28:02}/24\n"
        for i in range(600)
    )
    path = csv(tmp_path, "admitted\n" + rows)
    text, facts = drafted(path)
    assert (facts["admitted"].format, facts["admitted"].more_formats) == ("%d.%m.%Y", ("%m/%d/%y",))
    assert "min: '2023-0" in text and "max: '2024-1" in text
    iso = parse_schema({"columns": {"admitted": {"kind": "date", "min": "0001-01-01", "max": "2024-12-31"}}}, where="t")
    _, report = encoded(path, iso)
    assert report.unplaced["admitted"] == 600, "an ISO date begins with a whole year"


def test_days_in_a_form_that_no_frequent_text_has_are_read_and_other_texts_told(tmp_path: Path) -> None:
    days = [date(2021, 1, 1) + timedelta(i * 7 % 1_500) for i in range(15_000)]
    forms = ("%Y-%m-%d", "%d.%m.%y", *["%d.%m.%Y"] * 8)
    cells = [d.strftime(forms[i // 1_500]) for i, d in enumerate(days)] + ["soon"] * 12
    text, facts = drafted(csv(tmp_path, "seen\n" + "".join(f"{c}\n" for c in cells)))
    assert {facts["seen"].format, *facts["seen"].more_formats} == {"ISO", "%d.%m.%y", "%d.%m.%Y"}
    assert "cannot be read" not in text and "which comes first" not in text and "'soon' mean a gap?" in text


def test_a_running_number_and_numbers_that_are_called_ids_are_left_out(tmp_path: Path) -> None:
    rows = "".join(f"{i},{1000 + 3 * i},{70_000 + i % 90},{(i * 37) % 401},{i % 40}\n" for i in range(1, 801))
    rows += "Total,5,5,,\nExported on a day,,,,\n"  # below a list as people keep it
    text, facts = drafted(csv(tmp_path, "line,sheet,customer_no,weight,age\n" + rows))
    assert facts.leave_out == ("line", "sheet", "customer_no") and [c.name for c in facts.columns] == ["weight", "age"]
    assert text.count("whole numbers, no two alike: a running number, or an id") == 2
    assert "3400" not in text and "70000" not in text
    rows += "".join(f"{i},{1000 + 3 * i},{70_000 + i % 90},{(i * 37) % 401},{i % 40}\n" for i in range(1, 5))
    again, facts = drafted(csv(tmp_path, "line,sheet,customer_no,weight,age\n" + rows))  # four rows that stand twice
    assert facts.leave_out == ("line", "sheet", "customer_no") and "whole numbers, hardly two alike" in again


def test_numbers_in_a_column_of_places_are_a_list_without_order_and_amounts_are_not(tmp_path: Path) -> None:
    columns = {"country": [1 + i % 25 for i in range(1_000)], "school": [i % 19 for i in range(1_000)]}
    columns |= {"home_state": [(1, 6, 56)[i % 3] for i in range(1_000)]}
    columns |= {"year": [1 + i // 7 % 23 for i in range(1_000)], "region": [1 + min(i % 40, 8) for i in range(1_000)]}
    columns |= {"site": [100_000_000 + 7919 * (i % 40) for i in range(1_000)]}
    rows = "".join(f"{','.join(map(str, row))}\n" for row in zip(*columns.values(), strict=True))
    text, schema = drafted(csv(tmp_path, f"{','.join(columns)}\n{rows}"))
    assert [c.name for c in schema.columns if c.kind == "integer"] == ["school", "year"]
    assert schema["country"].values == tuple(str(n) for n in range(1, 26)) and not schema["country"].ordinal
    assert schema["home_state"].values == ("1", "56", "6") and schema["region"].values == tuple("123456789")
    assert text.count("numbers that stand for names") == 3 and schema.leave_out == ("site",)


@pytest.mark.parametrize("written", ["{} km", "+{}", " {}", "{},0"])
def test_numbers_in_a_column_of_places_that_are_written_otherwise_stay_amounts(written: str, tmp_path: Path) -> None:
    """Of zones as 1 km the list had 1, and all rows were lost."""
    zones = [f'"{written.format(1 + i % 6)}"' for i in range(600)]
    _, schema = drafted(csv(tmp_path, "zone,k\n" + "".join(f"{z},{i % 7}\n" for i, z in enumerate(zones))))
    assert (schema["zone"].kind, schema["zone"].low, schema["zone"].high) == ("integer", 1, 6)


@pytest.mark.parametrize(("most", "few", "mark"), [("{:,.2f}", "{:.2f}", "comma"), ("{:,.2f}", "{:,.2f}", "point")])
def test_amounts_that_are_written_the_other_way_are_told_and_never_read_larger(most, few, mark, tmp_path: Path) -> None:
    amounts = [round(3.17 * i * i + 7.49, 2) for i in range(1, 301)]
    german = str.maketrans(",.", ".,")
    texts = [
        few.format(a) if (i % 10 == 0) == (mark == "comma") else most.format(a).translate(german)
        for i, a in enumerate(amounts)
    ]
    text, facts = drafted(csv(tmp_path, "cost\n" + "".join(f'"{t} EUR"\n' for t in texts)))
    assert facts["cost"].decimal == ("," if mark == "comma" else ".")
    assert facts["cost"].high < 1.1 * max(amounts) and facts["cost"].low < 20
    lost = "10.0 % of the values cannot be read so: they become missing"
    assert f"{lost}; some of these are written the other way" in text


@pytest.mark.parametrize(
    ("cells", "strip", "unread"),
    [
        (["{:.2f}", "{:.2f}", "{:,.2f}!", "€{:.2f}"], ("€",), "25.0 %"),
        (["{:.2f}", "{:.2f}", "{:.2f}!"], (), "33.3 %"),
        (["{:.2f}", "{:.2f}!", "€{:.2f}"], ("€",), "33.3 %"),
    ],
)
@pytest.mark.parametrize("distinct", [8, 71])
def test_fees_in_mixed_notation_are_numbers_and_never_100_times_too_large(cells, strip, unread, distinct, tmp_path):
    """`!` marks a form whose point is a comma in the table."""
    forms = [cells[i % len(cells)] for i in range(1200)]
    fees = [2.5 + 0.25 * (i % distinct) for i in range(1200)]
    texts = [
        f[:-1].format(x).replace(".", ",") if f[-1] == "!" else f.format(x) for f, x in zip(forms, fees, strict=True)
    ]
    text, facts = drafted(csv(tmp_path, "fee\n" + "".join(f'"{t}"\n' for t in texts)))
    fee = facts["fee"]
    assert (fee.kind, fee.strip, fee.decimal, fee.missing) == ("float", strip, ".", True)
    assert fee.low <= 2.5 and fee.high < 1.5 * max(fees)
    assert f"{unread} of the values cannot be read so" in text and "with a decimal comma" in text
    _, report = encoded(tmp_path / "table.csv", facts)
    assert report.unplaced["fee"] == sum("," in t for t in texts)


FEW = ["€3.75", "4.25", "12.50", "2,50", "1,250", "€8,75"]  # 1,250 beside 2,50 may be 1.25: it is no number
MIXED = (f"{1 + i % 9}.{100 + i % 900}" if i % 2 else f"{100 + i % 900},{10 + i % 90}" for i in range(3_000))
RENTS = (f"{i},-" if i % 3 else f"{i},{10 + i % 90}" for i in range(200, 900))


@pytest.mark.parametrize(
    ("cells", "strip", "decimal", "high"),
    [
        ([*FEW * 60, *["7.20"] * 60], ("€",), ".", 20),
        ([*MIXED, "1.234,50"], (".",), ",", 10_000),
        ([*RENTS], (",-",), ",", 900),
    ],
    ids=["a comma that is mostly a decimal mark", "a mark of thousands without doubt", "a price without cents"],
)
def test_marks_of_amounts_are_drafted_as_the_column_shows_them(cells, strip, decimal, high, tmp_path: Path) -> None:
    text, facts = drafted(csv(tmp_path, "fee\n" + "".join(f'"{c}"\n' for c in cells)))
    assert (facts["fee"].strip, facts["fee"].decimal) == (strip, decimal) and "below 0" not in text
    assert high / 2 < facts["fee"].high <= high


def test_a_point_before_three_digits_parts_thousands_where_another_column_has_decimal_commas(tmp_path: Path) -> None:
    kilos = [f"{100 + i * 7 % 900}" if i % 3 else f"{1 + i % 4}.{100 + i % 700}" for i in range(600)]
    for mark, least, words in ((",", 4_500, "this reads 1234;"), (".", 999, "this reads 1.234,")):
        rows = "".join(f'{kilo},"0{mark}{i % 90 + 10}"\n' for i, kilo in enumerate(kilos))
        text, facts = drafted(csv(tmp_path, "kilos,price\n" + rows))
        assert least <= facts["kilos"].high <= 1.1 * least and words in text


@pytest.mark.parametrize("mark", [",", "."])
def test_limits_among_numbers_with_either_decimal_mark_are_read_and_no_gap_is(mark, tmp_path: Path) -> None:
    cells = [f"<0{mark}5" if i % 4 == 0 else "k.A." if i % 20 == 1 else f"{i % 30}{mark}{i % 9}" for i in range(800)]
    text, facts = drafted(csv(tmp_path, "rot\n" + "".join(f'"{c}"\n' for c in cells)))
    assert "<" in facts["rot"].strip and facts["rot"].decimal == mark and "cannot be read" not in text


@pytest.mark.parametrize("mark", [".", ","])
@pytest.mark.parametrize("shown", [0, 1])
def test_no_mark_of_thousands_is_drafted_that_a_column_shows_as_a_decimal_mark_too(mark, shown, tmp_path: Path) -> None:
    """28.500 beside 296,97 is 28 and a half or 28500; one cell of 12.5 among thousands forbids to say which."""
    comma = "," if mark == "." else "."
    cells = [f"{100 + i * 7919 % 900}{comma}{10 + i % 90}" if i % 6 else f"{10 + i % 990}{mark}{100 + i % 900}"
             for i in range(4_000)]  # fmt: skip
    cells += [f"1{mark}234{comma}50", f"12{mark}5"] * shown
    text, facts = drafted(csv(tmp_path, "fee\n" + "".join(f'"{c}"\n' for c in cells)))
    fee = facts["fee"]
    assert (fee.strip, fee.decimal, fee.high <= 1_010) == ((), comma, True)
    assert "667 rows hold numbers such as 1.234 or 1,234, which may mean 1.234 or 1234: none is read" in text
    _, report = encoded(tmp_path / "table.csv", facts)
    assert report.unplaced["fee"] == 667 + 2 * shown


def test_a_code_of_gaps_is_taken_for_one_only_apart_from_all_other_numbers(tmp_path: Path) -> None:
    rows = "".join(
        f"{-999 if i % 40 == 0 else i % 90},{i % 100},{-1 if i % 40 == 0 else i % 5 - 2}\n" for i in range(400)
    )
    _, facts = drafted(csv(tmp_path, "apart,inside,signed\n" + rows))
    assert facts["apart"].missing_texts == ("-999",) and facts["apart"].low == 0
    assert facts["inside"].missing_texts == () and facts["inside"].high == 99
    assert facts["signed"].missing_texts == () and facts["signed"].low == -2


def test_codes_that_lost_their_zeros_and_codes_of_no_answer_are_asked_about_in_lists(tmp_path: Path) -> None:
    """1067 stood beside 01067 as another place, and of 97, 98 and 99 the draft asked about the last alone, or none."""
    columns = {"plz": ["1067", "01067", "10115", "20095"], "zip": ["1067", "4109", "10115", "20095"]}
    columns |= {"room": ["106", "1067", "10115", "2009"], "answer": ["01", "02", "97", "98"]}
    columns |= {"question": ["01", "98", "99", "97"]}
    lines = [",".join(columns), *(",".join(row) for row in zip(*columns.values(), strict=True))]
    (tmp_path / "t.csv").write_text("\n".join([lines[0], *lines[1:] * 50]) + "\n")
    text, _ = drafted(tmp_path / "t.csv")
    asked = dict(zip(columns, [line for line in text.splitlines() if "# guess" in line], strict=True))
    assert "50 of 200 codes have 4 digits or so, and are listed beside those of 5: lost zeros" in asked["plz"]
    assert "100 of 200 codes have 4 digits" in asked["zip"] and "zeros" not in asked["room"]
    assert "'97', '98' among the values: a gap?" in asked["answer"]
    assert "'97', '98', '99' among the values: a gap?" in asked["question"]


@pytest.mark.slow
def test_columns_that_are_looked_at_together_are_drafted_as_each_alone(tmp_path, monkeypatch):
    money = "".join(
        f'"${i % 97},{100 + i % 900}.50",{i % 28 + 1:02}.{1 + i % 12:02}.2020,{i % 3}\n' for i in range(500)
    )
    rows = zip(ROWS.splitlines(), money.splitlines(), strict=True)
    table = csv(
        tmp_path,
        "id,age,income,score,sex,heroin,date,time,zip,empty,gap,cost,day,code\n"
        + "".join(f"{one},{two}\n" for one, two in rows),
    )
    together = draft_schema(source(table), "all")
    monkeypatch.setattr(column_facts, "BLOCK_COLUMNS", 1)
    assert draft_schema(source(table), "all") == together
    assert '"%d.%m.%Y"' in together.replace("'", '"') and "kind: float" in together


@pytest.mark.slow
def test_a_wide_table_is_looked_at_in_few_queries(tmp_path: Path) -> None:
    names = ",".join(f"c{i}" for i in range(1_200))
    table = csv(tmp_path, f"{names}\n" + "".join(f"{','.join([str(r % 7)] * 1_200)}\n" for r in range(30)))
    whole = source(table)
    with whole.connect() as engine:
        together = {look.columns: None for look, _ in column_facts.looks(whole, engine)}
    assert [*map(len, together)] == [500, 500, 200]


class Asked:
    """An engine, and what it was asked."""

    def __init__(self, engine: Any) -> None:
        self.engine, self.asked = engine, list[str]()

    def execute(self, sql: str) -> Any:
        self.asked.append(sql)
        return self.engine.execute(sql)


@pytest.mark.parametrize("blank", ["", " "])
def test_texts_are_read_as_numbers_once_and_sampled_once_where_none_has_blanks(tmp_path: Path, blank: str) -> None:
    whole = source(csv(tmp_path, "a,b,c\n" + "".join(f"{i % 3}{blank},{i},x\n" for i in range(90))))
    with whole.connect() as engine:
        asked = Asked(engine)
        look, _ = next(column_facts.looks(whole, asked))
        assert sum(sql.count("isfinite") for sql in asked.asked) == 1
        assert look.sample(0) == {f"{i}{blank}": 30 for i in range(3)}
        assert look.trimmed(0) == {f"{i}": 30 for i in range(3)}
        assert sum("unnest(min(" in sql for sql in asked.asked) == 1 + len(blank)


def test_the_texts_of_a_typed_column_are_its_numbers_to_the_last_digit(tmp_path: Path) -> None:
    numbers = [0.1, 1 / 3, 1e300, -5e-324, 123456789012345680.0, 4e15, -7.0, float("nan"), float("inf"), None]
    columns = {
        "float": pa.array(numbers),
        "single": pa.array(numbers, pa.float32()),
        "whole": pa.array([2**63 - 1, -(2**53) - 1, 0, *range(7)]),
        "decimal": pa.array([Decimal(k) / 64 for k in range(10)], pa.decimal128(20, 6)),
        "moment": pa.array(range(10), pa.timestamp("us")),
        "flag": pa.array([True, False] * 5),
    }
    pq.write_table(pa.table(columns), path := tmp_path / "typed.parquet")
    whole = source(path)
    with whole.connect() as engine:
        look, _ = next(column_facts.looks(whole, engine))
        for i in look.columns:
            cells = f"SELECT DISTINCT {whole.number(i)} AS x FROM {whole.relation} WHERE x IS NOT NULL ORDER BY x"
            texts = f"SELECT DISTINCT y FROM seen WHERE i = {i} AND y IS NOT NULL ORDER BY y"
            assert engine.execute(texts).fetchall() == engine.execute(cells).fetchall(), whole.names[i]


@pytest.mark.parametrize(("broken", "proposed"), [(0, True), (50, True), (80, False)])
def test_two_dates_that_nearly_always_ascend_are_proposed_as_ordered(tmp_path, broken, proposed):
    rows = [(f"20{10 + i % 9}-01-{1 + i % 20:02}", f"20{12 + i % 9}-02-{1 + i % 28:02}") for i in range(2000)]
    rows = [(b, a) if i < broken else (a, b) for i, (a, b) in enumerate(rows)]
    text, _ = drafted(csv(tmp_path, "start,end\n" + "".join(f"{a},{b}\n" for a, b in rows)))
    assert ('#   - ["start", "end"]' in text) == proposed
    if proposed:
        assert [g.columns for g in taken(tmp_path, text).rules.ordered] == [("start", "end")]


def test_days_that_nobody_can_write_are_no_bounds_and_infinite_ones_are_gaps(tmp_path: Path) -> None:
    days = ["20200-01-05", *(["infinity"] * 20), *(f"2020-01-{1 + i % 28:02}" for i in range(479))]
    text, facts = drafted(csv(tmp_path, "until\n" + "".join(f"{day}\n" for day in days)))
    assert facts["until"].missing_texts == ("infinity",) and "do 'infinity' mean a gap?" in text
    assert "max: '2020-01-31'" in text


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%Y-%m-%d 00:00:00", "%Y%m%d", "%d.%m.%Y", "%d/%m/%Y"])
def test_a_column_of_days_that_is_mostly_zeros_is_one_of_days(tmp_path: Path, form: str) -> None:
    zeros = date(2020, 1, 1).strftime(form).translate(dict.fromkeys(map(ord, "123456789"), "0"))
    days = [zeros if i % 8 else (date(2020, 1, 1) + timedelta(i)).strftime(form) for i in range(800)]
    facts = drafted(csv(tmp_path, "until\n" + "".join(f"{day}\n" for day in days)))[1]["until"]
    assert facts.kind in {"date", "datetime"} and facts.missing_texts == (zeros,)


def test_clocks_are_in_no_order_with_moments_and_no_firsts_of_a_month(tmp_path: Path) -> None:
    rows = "".join(
        f"{i % 24:02}:{i % 59:02},{1895 if i % 99 == 0 else 2015}-01-{1 + i % 28:02} 10:00\n" for i in range(990)
    )
    text, facts = drafted(csv(tmp_path, "at,seen\n28:10,2015-01-01 10:00\n" + rows))
    assert "ordered" not in text and "first of a month" not in text and facts["at"].format == "%H:%M"


@pytest.mark.parametrize("order", [("job", "wage", "hourly"), ("hourly", "wage", "job")])
def test_columns_that_are_empty_together_do_not_hide_the_answer_by_which_a_form_skips_both(order, tmp_path) -> None:
    """Each was said to be empty where the other is, and a release gave wages to people without a job."""
    rows = [
        {"job": job, "wage": wage, "hourly": f"{int(wage) * 7 % 41}.5" if wage else ""}
        for i in range(1200)
        for job in [["full", "part", "none"][i % 3]]
        for wage in [f"{20_000 + 97 * i}" if job != "none" and i % 7 else ""]
    ]
    table = "\n".join([",".join(order), *(",".join(row[n] for n in order) for row in rows), ""])
    text, _ = drafted(csv(tmp_path, table))
    (skipped,) = re.findall(r'\{"job": \["none"\], "(wage|hourly)": \{\}\}', text)
    other = {"wage": "hourly", "hourly": "wage"}[skipped]
    assert f'{{"{skipped}": [null], "{other}": {{}}}}' in text, "beside it the other one is empty too"


def test_dilutions_are_a_list_and_no_times_of_the_day(tmp_path: Path) -> None:
    """1:4 to 1:32 were times, 1:64 and 1:128 were lost, and a run refused the draft."""
    text, facts = drafted(csv(tmp_path, "titer\n" + "".join(f"1:{2 ** (2 + i % 6)}\n" for i in range(600))))
    assert facts["titer"].kind == "categorical" and len(facts["titer"].values) == 6, text


def test_three_dates_in_a_row_keep_bounds_of_their_own(tmp_path: Path) -> None:
    rows = "".join(f"2015-01-{1 + i % 9:02},2016-01-{1 + i % 28:02},2016-02-{1 + i % 28:02}\n" for i in range(300))
    rows += "2016-01-20,2016-02-10,2016-02-20\n" * 12
    text, facts = drafted(csv(tmp_path, "received,sent,seen\n" + rows))
    assert [g.columns for g in taken(tmp_path, text).rules.ordered] == [("received", "sent"), ("sent", "seen")]
    assert len({facts[n].labels for n in ("received", "sent", "seen")}) == 3


@pytest.mark.parametrize("others", [0, 40])
def test_what_follows_from_another_column_is_proposed_from_its_nearest_source(tmp_path: Path, others: int) -> None:
    asked = np.random.default_rng(0).integers(0, 5, (2_100, others)).astype(str)  # of a wide survey
    rows = (f"c{i % 30},s{i % 6},{i % 7},n{i % 7},{'yn'[i * 7919 % 13 > 5]}" for i in range(2_100))
    names = [f"q{k}" for k in range(others)] + ["city,state,code,name,flag"]
    lines = [names, *([*own, row] for own, row in zip(asked.tolist(), rows, strict=True))]
    text, _ = drafted(csv(tmp_path, "".join(f"{','.join(line)}\n" for line in lines)))
    assert '"state": {from: "city"' in text and '"name": {from: "code", map: {"0": "n0"' in text
    assert text.count("{from:") == 2 and "possible" not in text
    assert text.count("# in 2,100 of the 2,100 rows that tell") == 2
    own = taken(tmp_path, text)
    assert sorted(own.domain.names) == sorted((*own.synthesized.names, "state", "name"))


def test_a_text_that_follows_but_for_gaps_is_proposed_with_them(tmp_path: Path) -> None:
    """A tenth of the prescriptions lack the disease, and no rule tied the others: one row in 40 had another drug."""
    rows = "".join(f"drug{i % 9},{f'disease{i % 9 // 2}' if i * 7919 % 31 > 2 else ''},{i % 2}\n" for i in range(3_100))
    text, _ = drafted(csv(tmp_path, "drug,disease,sex\n" + rows))
    (line,) = [line for line in text.splitlines() if "possible: [[" in line]
    assert '["drug0", "disease0"], ["drug0", null], ["drug1", "disease0"]' in line and line.count("null") == 9
    assert "derive" not in text and line.endswith("rows that tell")
    ((clique, zeros),) = taken(tmp_path, text).zeros
    assert clique == ("drug", "disease") and (zeros.reshape(9, 6).sum(axis=1) == 4).all()


def test_a_flag_that_the_sign_of_an_amount_tells_is_proposed(tmp_path: Path) -> None:
    """Many synthetic refunds lay above 0: no rule said that they lie below."""
    rng = np.random.default_rng(5)
    amounts = np.where(rng.random(3_000) < 0.1, -1, 1) * rng.lognormal(3, 1, 3_000).round(2).clip(0.01)
    rows = [f"{amount:.2f},{str(amount < 0).lower()},{'abc'[i % 3]}" for i, amount in enumerate(amounts)]
    text, _ = drafted(csv(tmp_path, "\n".join(["amount,refund,shop", *rows, ""])))
    assert '- {columns: ["amount", "refund"], possible: [[' in text and text.count("possible: [[") == 1
    cliques = {clique for clique, _ in taken(tmp_path, text).rules.zeros}  # a schema takes the rule
    assert ("amount", "refund") in cliques


@pytest.mark.parametrize(("broken", "pairs"), [("", ["low", "mid"]), ("19,high\n", ["high", "low", "mid"])])
def test_a_rare_number_goes_with_what_its_neighbours_tell_where_each_text_has_one_stretch(broken, pairs, tmp_path):
    points = [p for p in range(10, 40) if p not in {15, 19, 25} for _ in range(12)] + [15] * 3 + [19] * 2 + [39] * 3
    rows = "".join(f"{p},{'low' if p < 20 else 'mid' if p < 30 else 'high'}\n" for p in points)
    text, _ = drafted(csv(tmp_path, "points,grade\n" + rows + broken))
    (line,) = [line for line in text.splitlines() if '"points", "grade"' in line]
    of = {p: re.findall(rf'\["{p}", "(\w+)"\]', line) for p in (15, 19, 25, 40)}
    assert (of[15], of[19], of[25], of[40]) == (["low"], pairs, ["mid"], ["high"])


@pytest.mark.parametrize(
    ("answers", "order"),
    [
        (["agree", "Disagree", "neutral", "strongly agree"], ["Disagree", "neutral", "agree", "strongly agree"]),
        (["immer", "nie", "oft", "selten"], ["nie", "selten", "oft", "immer"]),
        (["agree", "neutral", "purple"], None),
    ],
)
def test_answers_in_words_are_drafted_from_least_to_most(tmp_path: Path, answers, order) -> None:
    text, facts = drafted(csv(tmp_path, "\n".join(["q", *answers * 40, ""])))
    assert facts["q"].values == tuple(order or sorted(answers)) and facts["q"].ordinal == (order is not None)
    assert ("from least to most" in text) == (order is not None)


def test_a_list_of_pairs_is_proposed_where_some_texts_are_not_listed(tmp_path: Path) -> None:
    """Of 80 cities 40 are rare, and stand for any state together; one row in 300 is wrong."""
    cities = [i % 40 if i % 20 else 40 + i // 20 % 40 for i in range(3_000)]
    pairs = [(c, (c + (i % 300 == 7)) % 5) for i, c in enumerate(cities)]
    text, facts = drafted(csv(tmp_path, "city,state\n" + "".join(f"c{c},s{s}\n" for c, s in pairs)))
    assert facts["city"].other == "Other"
    assert '#   - {columns: ["city", "state"], possible: [["c1", "s1"]' in text and "derive" not in text
    ((clique, zeros),) = taken(tmp_path, text).zeros
    assert clique == ("city", "state") and not zeros.reshape(-1, 5)[facts["city"].other_code].any()


def test_an_answer_tells_what_is_skipped_before_another_question_that_is(tmp_path: Path) -> None:
    """Whoever has no wheelchair has no age of its first day; that it is empty beside a walk says nothing of these."""
    lines = [f"{'yes,40,' if i % 4 == 0 else f'no,,{300 + i % 50}'}\n" for i in range(800)]
    text, _ = drafted(csv(tmp_path, "wheelchair,since,walk\n" + "".join(lines)))
    assert '#   - {"wheelchair": ["no"], "since": {}}' in text and '#   - {"wheelchair": ["yes"], "walk": {}}' in text


def test_what_is_empty_in_a_few_rows_by_chance_is_no_skipped_question(tmp_path: Path) -> None:
    """Of 60 rows of a value 6 would hold it, and none does; of 600 it is a rule: a year of death of the living."""
    for alive, rules in ((60, 0), (600, 1)):
        lines = ["alive,\n"] * alive + [f"dead,{2000 + i % 9 if i % 10 == 0 else ''}\n" for i in range(600)]
        text, _ = drafted(csv(tmp_path, "status,year\n" + "".join(lines), f"{alive}.csv"))
        assert text.count('"status": ["alive"], "year": {}') == rules


def skipped(text: str) -> tuple[list[str], list[str]]:
    """Rules about what a form skips that a draft proposes, and what it says of each."""
    lines = [line.removeprefix("#   - ").partition("  # ")[::2] for line in text.splitlines() if "such rows" in line]
    return [rule for rule, _ in lines], [words for _, words in lines]


def test_questions_that_a_form_skips_are_proposed_and_gaps_by_chance_are_not(tmp_path: Path) -> None:
    """The jobless have no wage but one in 900, two columns are filled together, and one is empty in any third row.

    Stars are mostly missing, and of the jobless all are: a release had stars of the jobless, and nothing had said so.
    """
    jobs = [("jobless", "clerk", "nurse")[i % 3] for i in range(2_700)]
    lines = [
        f"{job},{'' if job == 'jobless' and i else 1000 + i % 70},{i % 9 if i % 5 else ''},"
        f"{f'2024-01-{i % 28 + 1:02}' if i % 5 else ''},{'' if i * 7919 % 1_009 % 3 else i % 4},"
        f"{'' if job == 'jobless' or i % 7 else 1 + i % 5}\n"
        for i, job in enumerate(jobs)
    ]
    text, _ = drafted(csv(tmp_path, "job,wage,visits,last,noise,stars\n" + "".join(lines)))
    rules, words = skipped(text)
    assert rules == [
        '{"job": ["jobless"], "wage": {}}',
        '{"last": [null], "visits": {}}',
        '{"visits": [null], "last": {}}',
        '{"job": ["jobless"], "stars": {}}',
    ]
    assert words[0] == "empty in 899 of 900 such rows: is it not asked there?"
    own = taken(tmp_path, text)
    wage = dict(own.zeros)["job", "wage"].reshape(3, -1)
    jobless, gap = own["job"].values.index("jobless"), own["wage"].missing_code
    assert wage[jobless].sum() == own["wage"].size - 1 and not wage[jobless, gap]
    assert wage[:, gap].sum() == wage.sum() - wage[jobless].sum() == 2, "the others have one in all rows"


def test_of_columns_that_are_empty_together_the_answer_beside_which_both_always_are_is_proposed(tmp_path: Path) -> None:
    """Milk and lactation of cows, of which most are too young: bulls, two in five of the gaps, were given milk."""
    sexes = [("cow", "bull", "cow")[i % 3] for i in range(1_800)]
    milk = [sex == "cow" and i % 4 > 2 for i, sex in enumerate(sexes)]
    lines = [
        f"{sex},{20 + i % 9 if own else ''},{i % 7 + 1 if own else ''}\n"
        for i, (sex, own) in enumerate(zip(sexes, milk, strict=True))
    ]
    rules, words = skipped(drafted(csv(tmp_path, "sex,milk,lactation\n" + "".join(lines)))[0])
    assert rules[-1] == '{"sex": ["bull"], "milk": {}}'
    assert words[-1] == "empty in 600 of 600 such rows: is it not asked there?"


def test_amounts_that_are_0_where_nothing_is_granted_are_proposed_as_a_rule(tmp_path: Path) -> None:
    """A release had grants of rejected applications, and nothing had said so. Visits are 0 by chance."""
    lines = []
    for i in range(3_000):
        status = ("granted", "rejected", "open")[i % 3]
        amount = f"{(i * 7919 % 5_000) ** 2 / 5e3 + 1:.2f}" if i % 3 == 0 else "0.00"
        lines.append(f"{status},{amount},{i % 7 if i * 7919 % 1_009 % 3 else 0},{i % 3 * (1 + i % 2)}\n")
    text, _ = drafted(csv(tmp_path, "status,amount,visits,letters\n" + "".join(lines)))
    rules, words = skipped(text)
    assert rules == [
        '{"status": ["open", "rejected"], "amount": {"min": 0.01}}',
        '{"status": ["granted"], "letters": {"min": 1}}',
    ]
    assert words[0] == "0 in 2,000 of 2,000 such rows: is it always 0 there?"
    own = taken(tmp_path, text)
    cells = dict(own.zeros)["status", "amount"].reshape(3, -1)
    granted = own["status"].values.index("granted")
    assert not cells[granted].any() and cells.sum() == 2 * (own["amount"].value_codes - 1) and not cells[:, 0].any()


def test_two_boxes_that_are_never_both_ticked_are_one_rule(tmp_path: Path) -> None:
    """`{none: 1, car: 1}` and `{car: 1, none: 1}` were proposed beside each other."""
    car, bus = np.random.default_rng(4).integers(0, 2, (2, 900))
    lines = [f"{c},{b},{int(c + b == 0)}" for c, b in zip(car, bus, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["car,bus,none", *lines]))
    text = draft_schema(source(tmp_path / "t.csv"), "t")
    rules = [{*yaml.safe_load(line[1:].strip())[0]} for line in text.splitlines() if line.startswith("#   - {")]
    assert sorted(map(sorted, rules)) == [["bus", "none"], ["car", "none"]]


def test_a_skipped_date_whose_length_is_measured_says_by_which_rule_it_has_that_name(tmp_path: Path) -> None:
    days = [np.datetime64("2023-01-01") + i * 7 % 500 for i in range(900)]
    lines = [f"{d},{['paid', 'open'][i % 3 > 0]},{'' if i % 3 else d + 20 + i % 90}\n" for i, d in enumerate(days)]
    text, _ = drafted(csv(tmp_path, "received,status,paid_on\n" + "".join(lines)))
    rules, (words,) = skipped(text)
    assert rules == ['{"status": ["open"], "paid_on_length": {}}']
    assert words.endswith("; a length stands for its date by the rule `derive` above")
    assert '#   "paid_on": {"from": "received", "length"' in text and taken(tmp_path, text)["paid_on_length"].missing


def test_a_day_before_a_time_is_proposed_as_days_before_it_in_bins_that_grow_backwards(tmp_path: Path) -> None:
    starts = [np.datetime64("2020-01-01T07:30") + np.timedelta64(i * 4_321 % 2_000_000, "m") for i in range(900)]
    soon = [f"{t.astype('M8[D]') - i % 3},{t}\n" for i, t in enumerate(starts)]
    assert "half take at most 1 day;" in drafted(csv(tmp_path, "booked,began\n" + "".join(soon)))[0]
    lines = [f"{t.astype('M8[D]') - i * i % 300},{t}\n" for i, t in enumerate(starts)]
    text, _ = drafted(csv(tmp_path, "booked,began\n" + "".join(lines)))
    edges = [-300, -199, -149, -99, -69, -49, -39, -29, -19, -14, -9, -6, -4, -3, -2, -1, 0, 1]
    rule = {"booked": {"from": "began", "length": {"min": -300, "max": 0, "bins": {"edges": edges}}}}
    assert f"#   {json.dumps(rule)[1:-1]}  # half take at most" in text and "by days" not in text
    ruled = parse_schema({"columns": yaml.safe_load(text)["columns"], "derive": rule}, where="it")
    assert ruled["booked_length"].value_codes == len(edges) - 1


def test_values_of_two_columns_that_exclude_each_other_are_proposed_and_none_that_chance_keeps_apart(tmp_path) -> None:
    rng = np.random.default_rng(0)
    new, free, rare = rng.random(3_000) < 0.3, rng.choice(["x", "y", "z"], 3_000), rng.random(3_000) < 0.003
    grade = np.where(new, rng.choice(["A", "B"], 3_000), rng.choice(["C", "D", "E"], 3_000))
    art = np.where(new, "built", rng.choice(["altered", "razed"], 3_000))
    area = np.where(new, rng.integers(0, 9, 3_000), -1)
    cells = zip(art, grade, free, np.where(rare, "r", "s"), area, strict=True)
    rows = "".join(f"{','.join(map(str, own))}\n" for own in cells).replace("-1", "")
    text, _ = drafted(csv(tmp_path, f"art,grade,free,rare,area\n{rows}"))
    rules = [line.split("  # ")[0] for line in text.splitlines() if "in no row; unrelated columns would have" in line]
    assert rules == [
        '#   - {"art": ["altered", "razed"], "grade": ["A", "B"]}',
        '#   - {"art": ["built"], "grade": ["C", "D", "E"]}',
        '#   - {"art": ["built"], "area": [null]}',
    ]
    zeros = dict(taken(tmp_path, text).zeros)
    assert zeros["art", "grade"].sum() == 2 * 2 + 3 and zeros["art", "area"].sum() > 1
    assert "in no row" not in drafted(csv(tmp_path, "a,b\n" + "".join(f"a{i % 4},b{i % 2}\n" for i in range(900))))[0]


def test_of_values_that_exclude_each_other_the_strongest_are_asked_about_none_twice_and_no_habits(tmp_path) -> None:
    """People of three towns never shop in two branches: such questions stood before those of what cannot be."""
    rng = np.random.default_rng(0)
    town, ended = rng.integers(0, 12, 6_000), rng.random(6_000) < 0.2
    branch = rng.integers(0, 10, 6_000)
    branch += 2 * (branch >= town // 3 * 2)
    columns = {"town": np.char.add("t", town.astype(str)), "branch": np.char.add("b", branch.astype(str))}
    columns |= {"why": np.where(ended, rng.choice(["moved", "died"], 6_000), ""), "on": np.where(ended, town, -1)}
    kinds = rng.integers(0, 7, 6_000)
    columns |= {f"k{k}": np.where(kinds == k, "none", rng.choice(["one", "two"], 6_000)) for k in range(7)}
    rows = "".join(f"{','.join(map(str, own))}\n" for own in zip(*columns.values(), strict=True)).replace(",-1", ",")
    text, _ = drafted(csv(tmp_path, f"{','.join(columns)}\n{rows}"))
    asked = [line for line in text.splitlines() if "in no row; unrelated columns would have" in line]
    assert len(asked) == 16 and not any('"branch"' in line or '"why"' in line for line in asked)
    rows_of = [int(line.split("would have ")[1].split(":")[0].replace(",", "")) for line in asked]
    assert rows_of == sorted(rows_of, reverse=True)
    assert {'{"on": [null], "why": {}}', '{"why": [null], "on": {}}'} <= {*skipped(text)[0]}


def test_numbers_beyond_a_sharp_bound_beside_a_text_are_asked_about_and_thin_ends_of_habits_are_not(tmp_path) -> None:
    """Three of four synthetic students were above 29, and a court of small claims had claims of any size."""
    rng = np.random.default_rng(0)
    student, rich = rng.random(6_000) < 0.1, rng.random(6_000) < 0.5
    claim = np.round(np.exp(rng.normal(8, 1.2, 6_000)), 2)
    court = 2 * (claim >= 5_000) + rng.integers(0, 2, 6_000)
    columns = {"fare": np.where(student, "student", "full"), "court": np.char.add("c", court.astype(str))}
    columns |= {"age": np.where(student, rng.integers(18, 30, 6_000), rng.integers(10, 90, 6_000)), "claim": claim}
    columns |= {"job": np.where(rich, "a", "b"), "wage": np.round(np.exp(rng.normal(7 + 2 * rich, 0.6)), 2)}
    rows = "".join(f"{','.join(map(str, own))}\n" for own in zip(*columns.values(), strict=True))
    text, _ = drafted(csv(tmp_path, f"{','.join(columns)}\n{rows}"))
    asked = [line.split("  # ")[0] for line in text.splitlines() if "in no row; unrelated columns would have" in line]
    assert {*asked} == {
        '#   - {"fare": ["student"], "age": {"min": 30}}',
        '#   - {"court": ["c0", "c1"], "claim": {"min": 5000}}',
        '#   - {"court": ["c2", "c3"], "claim": {"max": 4999.99}}',
    }
    zeros = dict(taken(tmp_path, text).zeros)
    assert zeros["fare", "age"].sum() == 61 and zeros["court", "claim"].any()


def test_many_rows_of_few_persons_propose_no_rule_whose_bound_is_a_value_of_one_of_them(tmp_path: Path) -> None:
    """Of 65 patients with 32 rows each a draft told the least weight of a man."""
    person = np.repeat(np.arange(65), 32)
    men, ill = person % 2 == 1, person % 5 == 0
    columns = {"patient_id": person, "sex": np.where(men, "m", "f"), "kg": person // 2 % 30 + np.where(men, 70, 50)}
    columns |= {"drug": np.where(ill, "a", "b"), "dose": np.where(ill, 0, 1 + person % 7)}
    rows = "".join(f"{','.join(map(str, own))}\n" for own in zip(*columns.values(), strict=True))
    table = source(csv(tmp_path, f"{','.join(columns)}\n{rows}"))
    text, others = draft_schema(table, "t"), draft_schema(table, "t", unit="record")
    assert "in no row" not in text and "always 0" not in text
    assert "it may name persons; without privacy.unit=patient_id each row is protected alone" in text
    assert '{"sex": ["m"], "kg": {"max": 69}}' in others and '{"drug": ["a"], "dose": {"min": 1}}' in others


def test_a_number_here_and_there_beside_which_another_is_0_proposes_no_rule_and_a_run_of_them_does(tmp_path) -> None:
    """Ages 20 and 59 of 3,382 workers had no child, and ages between them had some."""
    rng = np.random.default_rng(0)
    age, year = rng.integers(18, 60, 6_000), rng.integers(2015, 2023, 6_000)
    columns = {"age": age, "year": year, "child": np.where(np.isin(age, (20, 33, 59)), 0, rng.integers(0, 3, 6_000))}
    columns |= {"form": np.where(year < 2019, 0, rng.integers(0, 3, 6_000))}
    columns |= {"wave": np.where(year != 2019, 0, rng.integers(1, 3, 6_000))}
    rows = "".join(f"{','.join(map(str, own))}\n" for own in zip(*columns.values(), strict=True))
    rules, _ = skipped(drafted(csv(tmp_path, f"{','.join(columns)}\n{rows}"))[0])
    assert not any('"child"' in rule for rule in rules)
    assert '{"year": ["2015", "2016", "2017", "2018"], "form": {"min": 1}}' in rules
    assert '{"year": ["2015", "2016", "2017", "2018", "2020", "2021", "2022"], "wave": {"min": 1}}' in rules


def test_decimals_are_told_without_the_noise_of_binary_arithmetic(tmp_path: Path) -> None:
    """Incomes of two decimals in single precision were drafted with nine, and a release had all nine."""
    rng = np.random.default_rng(0)
    columns = {"single": np.round(rng.gamma(2, 9, 900), 2).astype(np.float32).astype(float)}
    columns |= {"double": np.round(10 + 80 * rng.random(900), 3) + 1e-12, "real": rng.random(900) / 3}
    columns |= {"sum": rng.integers(1, 3_000, 900) * 0.1 + 0.2}
    lines = "".join(f"{','.join(f'{x:.15g}' for x in own)}\n" for own in zip(*columns.values(), strict=True))
    _, schema = drafted(csv(tmp_path, f"{','.join(columns)}\n{lines}"))
    assert [schema[n].decimals for n in columns] == [2, 3, 10, 1]


def test_models_of_each_product_are_proposed_however_many_products_there_are(tmp_path) -> None:
    """A fifth of a release's scooters were of a maker of bicycles, as five products need five rules."""
    rng = np.random.default_rng(0)
    product = rng.integers(0, 6, 9_000)
    model = (3 * product + rng.integers(0, 5, 9_000)) % 18  # of which two belong to the next product as well
    rows = "".join(f"p{p},m{m}\n" for p, m in zip(product, model, strict=True))
    text, _ = drafted(csv(tmp_path, f"product,model\n{rows}"))
    zeros = dict(taken(tmp_path, text).zeros)
    assert text.count("can it not be?") == 6 and zeros["product", "model"].sum() == 6 * (18 - 5)


def test_a_list_of_what_stands_beside_a_number_in_bins_is_not_followed_by_a_part_of_it(tmp_path) -> None:
    lines = [f"{'yes' if i % 5 == 0 else 'no'},{0 if i % 5 == 0 else 50 + i * 7 % 900}.00\n" for i in range(2_000)]
    text, _ = drafted(csv(tmp_path, "cancelled,paid\n" + "".join(lines)))
    assert text.count('- {columns: ["paid", "cancelled"], possible: ') == 1 and not skipped(text)[0]


def test_each_column_that_tells_another_is_proposed_unless_two_others_say_so(tmp_path: Path) -> None:
    """A courier rides in one city, a kitchen stands in one district of one: a release had couriers everywhere."""
    places = [(i % 24, (i + 4 * (i % 7 % 3)) % 12) for i in range(4_800)]  # both of one city
    lines = [f"kitchen {k:02},district {k % 8},courier {c:02},city {k % 4}\n" for k, c in places]
    text, _ = drafted(csv(tmp_path, "kitchen,district,courier,city\n" + "".join(lines)))
    rules = [re.sub(r"(map|possible): .*}", "", line) for line in text.splitlines() if "rows that tell" in line]
    assert [line.split("  # ")[0] for line in rules] == [
        '#   "district": {from: "kitchen", ',
        '#   "city": {from: "district", ',
        '#   - {columns: ["courier", "city"], ',
    ]
    zeros = dict(taken(tmp_path, text).zeros)
    assert any("courier" in clique for clique in zeros)


@pytest.mark.parametrize("wrong", ["rare", "chance", "few"])
def test_a_rare_value_chance_and_few_rows_determine_nothing(tmp_path: Path, wrong: str) -> None:
    """A value of 99.5 % of the rows is right in nearly all of them, whatever the source."""
    second = {"rare": lambda i: i % 200 == 0, "chance": lambda i: i * 7919 % 1_009 % 2, "few": lambda i: i % 2}[wrong]
    count = 150 if wrong == "few" else 4_000
    text, _ = drafted(csv(tmp_path, "a,b\n" + "".join(f"a{i % 6},b{second(i) + 0}\n" for i in range(count))))
    assert "{from:" not in text and "possible" not in text


@pytest.mark.parametrize("names", ["start_year,end_year", "Min Fare,Max Fare", "paid_from,paid_to"])
def test_two_numbers_whose_names_say_which_comes_first_are_proposed_as_ordered(tmp_path: Path, names: str) -> None:
    rows = "".join(f"{1900 + i % 90},{1900 + i % 90 + i * 31 % 17}\n" for i in range(500))
    text, _ = drafted(csv(tmp_path, f"{names}\n{rows}"))
    low, high = names.split(",")
    assert f'#   - ["{low}", "{high}"]  # in 500 of the 500 rows that hold both' in text
    assert [g.columns for g in taken(tmp_path, text).rules.ordered] == [(low, high)]


@pytest.mark.parametrize(
    ("high", "proposed"),
    [
        (lambda i: i % 90 + i * 31 % 17, True),  # never below
        (lambda i: -1 if i == 7 else i % 90 + i * 31 % 17, False),
        (lambda i: 90 + i * 31 % 17, False),  # unrelated, and never below either
        (lambda i: 20 * (i % 90 + i * 31 % 17), False),  # of another unit
    ],
)
def test_two_numbers_that_ascend_where_unrelated_ones_would_not_are_proposed_as_ordered(tmp_path, high, proposed):
    """A release had cars slower than the limit that they broke: posted_speed and vehicle_speed."""
    text, facts = drafted(csv(tmp_path, "posted,speed\n" + "".join(f"{i % 90},{high(i)}\n" for i in range(500))))
    assert (
        ('#   - ["posted", "speed"]  # in 500 of the 500 rows that hold both' in text)
        == proposed
        == ("ordered" in text)
    )
    assert facts["posted"].high < 100, "each keeps bounds of its own"


@pytest.mark.parametrize(("form", "proposed"), [("{:.2f}", True), ("€ {:.2f}", False)])
def test_no_order_is_proposed_of_numbers_of_which_one_has_a_unit_beside_it(
    tmp_path: Path, form: str, proposed: bool
) -> None:
    rows = "".join(f"{i % 90 + 0.25:.2f},{form.format(i % 90 + i * 31 % 17 + 0.5)}\n" for i in range(500))
    text, facts = drafted(csv(tmp_path, f"area,fee\n{rows}"))
    assert facts["fee"].kind == facts["area"].kind == "float"
    assert ('#   - ["area", "fee"]  # in 500 of the 500' in text) == proposed == ("ordered" in text)


@pytest.mark.parametrize("name", ["", "if", "a`b", "Sum in €"])
def test_a_number_of_any_name_lets_a_draft_be_made_and_a_sum_of_it_is_proposed_where_it_can_be_named(tmp_path, name):
    rows = "".join(f"{i * 37 % 50},{i * 31 % 17},{i * 37 % 50 + i * 31 % 17}\n" for i in range(400))
    text, facts = drafted(csv(tmp_path, f'"{name}",part,both\n{rows}'))
    assert name in facts.domain.names and ("expression" in text) == (name in ("if", "Sum in €"))


def test_numbers_that_no_bins_tell_apart_are_left_out_and_the_others_drafted(tmp_path: Path) -> None:
    """The least double stands for no value in tables of maps; ids of twenty digits differ in their last ones."""
    rows = "".join(
        f"{-1.7976931348623157e308 if i % 9 == 0 else i / 4},{2**62 + i % 70},{i % 30}\n" for i in range(500)
    )
    text, facts = drafted(csv(tmp_path, f"height,far,age\n{rows}"))
    assert [*facts.domain.names] == ["age"] and text.count("numbers too large, or too close together") == 2


def test_whole_numbers_whose_bounds_would_be_rounded_beyond_all_whole_ones_are_drafted(tmp_path: Path) -> None:
    rows = "".join(f"{2**53 // 500 * i + i % 7}\n" for i in range(500))
    assert drafted(csv(tmp_path, f"bytes\n{rows}"))[1]["bytes"].kind == "float"


def test_of_columns_that_are_all_constant_one_is_drafted_as_measured_and_said_to_be(tmp_path: Path) -> None:
    text, facts = drafted(csv(tmp_path, "a,b\n" + "x,\n" * 30))
    assert [c.constant for c in facts.columns] == [False, True] and "measured, as no other column is; is it" in text


def test_listed_texts_are_texts_to_every_reader_of_yaml_and_the_lists_of_a_column_have_one_form(tmp_path: Path) -> None:
    postcodes = [f"{1000 + i:05}" for i in range(80)]
    words = ["no", "on", "North", "1e5", "0x1f", "12:30", "a: b", "-", "x # y", "~"]
    rows = "".join(f"{postcodes[i % 80]},{words[i % 10]},{'AB'[i % 2]}\n" for i in range(2_400))
    text, facts = drafted(csv(tmp_path, "postcode,word,plain\n" + rows))
    listed = {"postcode": postcodes, "word": sorted(w for w in words if w != "-"), "plain": ["A", "B"]}
    read = yaml.safe_load(text)["columns"]
    for name, texts in listed.items():
        assert sorted(read[name]["values"]) == texts == sorted(facts[name].values), name
    assert all(f"'{t}'" in text for t in (*postcodes, *listed["word"])) and "values: [A, B]" in text
    assert read["word"]["missing"] == ["-"] and "missing: ['-']" in text


def test_whole_numbers_that_are_called_codes_are_drafted_as_codes_and_no_amount_is_asked_to_name_persons(tmp_path):
    rows = "".join(
        f"{10_000 + i * 7919 % 70},{10_000 + i * 7919 % 600},{i % 9},{i * i * 7919 % 8_999}\n" for i in range(9_000)
    )
    text, facts = drafted(csv(tmp_path, "plz,zip,site_code,income\n" + rows))
    assert [facts[n].kind for n in ("plz", "site_code")] == ["categorical"] * 2 and facts["zip"].width == 5
    assert facts["income"].kind == "integer" and "privacy.unit=income" not in text


def test_numbers_that_may_be_whole_ones_with_points_between_their_thousands_are_doubted(tmp_path: Path) -> None:
    """503 and 4.277 are 503 and 4277 where all numbers with a point look alike, and no whole one reaches 1000."""
    cells = [100 + i * 7919 % 9_000 for i in range(2_000)]
    text, _ = drafted(csv(tmp_path, "fee\n" + "".join(f"{c:,}\n".replace(",", ".") for c in cells)))
    doubtful = sum(c >= 1_000 for c in cells)
    few = "and hardly any others 1000 or more: they may mean 1234"
    assert f"{doubtful:,} rows hold numbers such as 1.234, {few}" in text
    dotted = "".join(f"{c:,}\n".replace(",", ".") for c in cells)
    text, _ = drafted(csv(tmp_path, f"fee\n{dotted}1200\n"))
    assert "they may mean 1234" in text, "one cell says nothing of the others"
    text, _ = drafted(csv(tmp_path, "fee\n" + dotted + "1200\n" * 90))
    assert "they may mean 1234" not in text


NUMBERS_OF_PERSONS = ("codice_fiscale", "COD_FISC", "SSN", "MRN", "BSN", "patient_NIF", "ID")
ADDRESSES = ("email", "E-Mail", "e_mail_address")


@pytest.mark.parametrize("name", [*NUMBERS_OF_PERSONS, *ADDRESSES])
def test_persons_are_counted_where_a_column_is_called_as_their_numbers_or_addresses_in_any_letters(name, tmp_path):
    """The prescriptions of one person were taken for those of ten, and what that person alone has was listed."""
    rare, count = ({7, 8}, 3_000) if name in ADDRESSES else ({7}, 4_500)
    said = ["rare" if i % 300 in rare else ("flu", "cold")[i % 2] for i in range(count)]
    ids = [f"p{i}@x.org" if name in ADDRESSES else f"K{i * 7919 % 99991:05}X" for i in range(300)]
    rows = "".join(f"{ids[i % 300]},{text}\n" for i, text in enumerate(said))
    text, facts = drafted(csv(tmp_path, f"{name},diagnosis\n{rows}"))
    assert f"Counted by the column {name!r}" in text
    assert "rare" not in text and facts["diagnosis"].values == ("cold", "flu")


def test_spellings_are_drafted_where_enough_persons_have_them_and_rare_ones_are_joined_unseen(tmp_path: Path) -> None:
    """A rare spelling of a value is that value, and stands nowhere; a rare word for another one is not listed."""
    wards = ["icu"] * 300 + ["ICU "] * 40 + ["iCu"] * 3 + ["surgery"] * 250 + ["Morgue"] * 7
    sexes = (["F"] * 150 + ["M"] * 100 + ["Female"] * 25 + ["Male"] * 20 + ["m"] * 5) * 2
    codes = [f"{'ABC'[i % 3]}{10 + i // 3 % 10}.{i // 30 % 5}" for i in range(590)] + ["Q99.1"] * 10
    rows = zip([f"p{i // 2}" for i in range(600)], wards, sexes, codes, strict=True)
    text, facts = drafted(csv(tmp_path, "patient_id,ward,sex,code\n" + "".join(f"{','.join(r)}\n" for r in rows)))
    assert facts["ward"].values == ("icu", "surgery") and facts["ward"].loose and facts["ward"].spellings == ()
    assert facts["sex"].spellings == (("Female", 0), ("Male", 1)) and facts["sex"].values == ("F", "M")
    assert "iCu" not in text and "Morgue" not in text and "Q99" not in text
    assert facts["code"].beginning and facts["code"].other == "Other"
    table, report = encoded(tmp_path / "table.csv", facts)
    assert [int((np.asarray(table.column("ward")) == k).sum()) for k in range(3)] == [343, 250, 7]
    assert not any(report.unplaced.values())


def test_a_column_that_says_the_same_as_another_is_left_out(tmp_path: Path) -> None:
    rows = "".join(f"w{i % 5},W{i % 5} ,{i % 3},{i % 7}\n" for i in range(300))
    text, facts = drafted(csv(tmp_path, f"ward,again,n,m\n{rows}"))
    assert facts.leave_out == ("again",) and "the same as 'ward' in all rows" in text
    _, facts = drafted(csv(tmp_path, f"ward,again,n,m\n{rows}w0,w1,1,1\n"))
    assert facts.leave_out == ()


def test_bounds_have_few_digits_and_amounts_with_a_long_tail_have_bins_that_grow(tmp_path: Path) -> None:
    rows = "".join(
        f"{17 + i % 71},{-122.48399 + i % 90 / 1000:.5f},{1 + i / 1e3 + 9e3 * (i / 1e3) ** 12:.2f},{i % 500},"
        f"{i % 4 * 80.5},{1111 + i % 40 * 211},{(1 if i % 20 else -1) * (1.5 + i / 1e3 + 9e3 * (i / 1e3) ** 12):.2f}\n"
        for i in range(1_000)
    )
    header, days = "age,lng,cost,even,fee,isco,back,due", [f"2025-0{1 + i % 3}-15" for i in range(1_000)]
    rows = "\n".join(f"{row},{day}" for row, day in zip(rows.split(), days, strict=True))
    text, facts = drafted(csv(tmp_path, f"{header}\n{rows}\n"))
    others = "different ones: a release has others between"
    assert text.count("different ones") == sum(f"only {n} {others}" in text for n in ("4", "40", "3")) == 3
    assert (facts["age"].low, facts["age"].high) == (15, 90)
    assert (facts["lng"].low, facts["lng"].high) == (-122.484, -122.394)
    assert facts["cost"].bins.edges[:4] == (0, 1, 2, 5) and facts["cost"].high == 10_000
    assert facts["even"].bins.count == 32
    assert facts["back"].bins.edges == (*(-x for x in facts["cost"].bins.edges[:0:-1]), *facts["cost"].bins.edges)


def test_a_frequent_zero_has_a_bin_of_its_own(tmp_path: Path) -> None:
    """Of whom nobody was sent to prison many synthetic rows had months, since 0 shared a bin with 1 to 14."""
    rows = "".join(
        f"{max(0, i - 450) % 481},{max(0, i - 450) * 0.5:.2f},{max(0, i - 450) ** 3 / 4e4:.2f},"
        f"{max(0, i - 450) * 5},{i - 450 if abs(i - 450) > 99 else 0},{i % 500}\n"
        for i in range(1_000)
    )
    text, facts = drafted(csv(tmp_path, f"months,rent,fine,step,saldo,rare\n{rows}"))
    assert facts["months"].bins.edges == (0, 1, *range(20, 480, 20), 481) and text.count("0 in one of its own") == 5
    assert facts["rent"].bins.edges[:3] == (0, 0.5, 20) and facts["fine"].bins.edges[:2] == (0, 0.01)
    assert facts["step"].bins.edges[:3] == (0, 5, 100) and facts["rare"].bins.count == 32
    assert {-50, 0, 1, 50} <= {*facts["saldo"].bins.edges}


def test_a_frequent_number_has_a_bin_of_its_own_wherever_it_lies_but_one_person_s(tmp_path: Path) -> None:
    """Of a least fee of 35 many synthetic ones lay below it, and a correction of 0 shared a bin with small ones."""
    rows = "".join(
        f"P{i if i < 700 else 0},{max(35, i / 9):.2f},{-max(0, i - 800) / 7:.2f},{-max(0, i - 800)},"
        f"{min(i / 6.9, 100):.1f}%,{77.77 if i >= 700 else i / 9:.2f}\n"
        for i in range(1_000)
    )
    path = csv(tmp_path, f"who,fee,less,whole,part,one\n{rows}")
    text = draft_schema(source(path), "t", unit="who")
    facts = parse_schema(yaml.safe_load(text.replace("{max: }", "{max: 5}")), where="test")
    alone = {"fee": (35, 35.01), "less": (-0.005, 0), "whole": (0, 1), "part": (99.95, 100)}
    for name, pair in alone.items():
        assert pair in {*itertools.pairwise(facts[name].bins.edges)}, name
    assert facts["whole"].high == 0 and facts["one"].bins.count == 20 and "77.77" not in text


def test_a_frequent_zero_above_billions_below_it_has_a_bin_that_floats_can_tell(tmp_path: Path) -> None:
    rows = "".join(f"{0 if i % 3 else -(i**3.71):.6f}\n" for i in range(900))
    _, facts = drafted(csv(tmp_path, f"x\n{rows}"))
    assert facts["x"].low < -1e9 and -1 < facts["x"].bins.edges[-2] < facts["x"].high == 0


@pytest.mark.parametrize("unit", [0.05, 0.1, 0.25, 0.5, 15, 20])
def test_of_few_numbers_each_has_a_bin_and_bins_of_many_hold_as_many_each(tmp_path: Path, unit: float) -> None:
    """Marks of half points lay two and one in a bin by turns: 4.5, a failure, shared one with 5, a pass."""
    written = {f"x{n}": [f"{unit * (i % n):g}" for i in range(3_000)] for n in (31, 401)}
    lines = [",".join(cells) for cells in zip(*written.values(), strict=True)]
    _, facts = drafted(csv(tmp_path, "\n".join([",".join(written), *lines]) + "\n"))
    for column in facts.columns:
        values, edges = unit * np.arange(int(column.name[1:])), column.grid.edges
        starts = column.grid.spans[0] if edges is None else edges[:-1]
        held = np.bincount(np.searchsorted(starts - 1e-9, values) - 1, minlength=column.size)
        assert held.tolist() == [1] * 31 if column.name == "x31" else len({*held[:-1].tolist()}) == 1


def test_no_gap_and_no_bound_of_one_person_is_drafted(tmp_path: Path) -> None:
    """One person's -999, 99 and 1900-01-01 became gaps and a bound, though no such text is listed."""
    months = [f"2026-0{1 + i % 6}" for i in range(300)]
    rows = "".join(f"P{i},{1 + i % 8},{1 + i % 9},{m}-11,{i % 83 / 10},{m}-02\n" for i, m in enumerate(months))
    rows += "P0,9,-999,1900-01-01,400.5,2027-03-01\n" * 3 + "P1,99,5,2026-01-01,1,\n" + "P2,99,5,2026-01-01,1,\n" * 2
    rows += "".join(f"P{i},9,9999,2099-12-31,9.5,\n" for i in range(12))
    text = draft_schema(source(csv(tmp_path, f"pid,a,n,day,pay,due\n{rows}")), "t", unit="pid")
    columns = yaml.safe_load(text)["columns"]
    assert columns["a"] == {"kind": "integer", "min": 1, "max": 9, "missing": False}
    assert columns["n"] == {"kind": "integer", "min": 1, "max": 9, "missing": ["9999"]}
    assert columns["day"] == {"kind": "date", "min": "2026-01-01", "max": "2026-06-30", "missing": ["2099-12-31"]}
    told = {line.strip(): lines[i - 1] for lines in [text.splitlines()] for i, line in enumerate(lines)}
    head = {
        name: next(g for line, g in told.items() if line.startswith((f"{name}:", f"'{name}':"))) for name in columns
    }
    assert all("fewer than 10 values of 'pid' hold values far from all others" in head[n] for n in ("a", "n", "day"))
    assert "fewer than 10 values of 'pid' hold what drives the bounds far out" in head["due"]
    assert "hold values far beyond these bounds, and a run clips them" in head["pay"] and columns["pay"]["max"] == 9.5
    assert "-999" not in text and "1900" not in text


@pytest.mark.parametrize("sign", [", ", ";", " | "])
def test_a_draft_asks_for_columns_of_cells_that_hold_several_answers(tmp_path: Path, sign: str) -> None:
    """A form with boxes to tick: 63 of 109 combinations became "Other value", and nothing said what keeps them."""
    rng, ways = np.random.default_rng(5), np.array(["Radio", "Paper", "Friends", "Online", "Town hall"])
    table = pd.DataFrame({"news": [sign.join(ways[rng.random(5) < 0.4]) for _ in range(1_500)]})
    table.loc[7, "news"] = f"Radio{sign}my aunt"
    table["name"] = [f"Last{i % 60}{sign}First{i % 31}" for i in range(1_500)]
    table["staff"] = [f"Last{i % 4}{sign}First{i % 5}" for i in range(1_500)]
    table["income"] = rng.choice(["under 1,000 €", "1,000 - 1,999 €", "2,000 € or more"], 1_500)
    text, _ = drafted(csv(tmp_path, table.to_csv(index=False)))
    assert text.count("cells hold several of 5 answers") == text.count("cells hold several") == 1
    assert f"with {sign!r} between: a column of yes and no for each" in text and "aunt" not in text


DAYS = [date(1985, 1, 1) + timedelta(i * 7 % 9_000) for i in range(900)]


def test_years_of_two_digits_are_ordered_with_births_before_1969_and_the_draft_loads(tmp_path: Path) -> None:
    """The draft widened 03.05.19 to 1926, which %y does not read, and was refused by its own check."""
    lines = [f"{d.year - 6 - i % 50}-02-03,{d:%d.%m.%y},{d + timedelta(40):%d.%m.%y}\n" for i, d in enumerate(DAYS)]
    text, facts = drafted(csv(tmp_path, "born,joined,left\n" + "".join(lines)))
    rules = taken(tmp_path, text).rules
    assert [g.columns for g in rules.ordered] == [("born", "joined")] and [s.target for s in rules.computed] == ["left"]
    assert facts["joined"].labels != facts["born"].labels


@pytest.mark.parametrize("minutes", [True, False])
def test_clocks_are_compared_beside_years_of_two_digits_and_numbers_after_the_twelfth_are_lengths(tmp_path, minutes):
    """No clock was compared where a day was 03.05.19, and no length was tried after twelve answers."""
    begins = [480 + i * 7 % 700 for i in range(900)]
    lines = [
        f"{d:%d.%m.%y},{','.join(str(i * k % 997 % 5) for k in range(1, 14))},{m // 60:02}:{m % 60:02},{i % 50},"
        f"{(n := m + i % 50) // 60:02}:{n % 60:02}\n"
        for i, (d, m) in enumerate(zip(DAYS, begins, strict=True))
    ]
    head = f"day,{','.join(f'q{k}' for k in range(1, 14))},began,{'took' if minutes else 'pid'},ended\n"
    text, _ = drafted(csv(tmp_path, head + "".join(lines)))
    rule = '"ended": {expression: "began + took / 1440"}' if minutes else '"ended": {"from": "began", "length": {'
    assert f"#   {rule}" in text
    taken(tmp_path, text)


def test_no_rule_is_proposed_about_a_column_that_another_computes_and_the_whole_draft_loads(tmp_path: Path) -> None:
    """Who followed every proposal was refused: the sum of two numbers, empty together, was also said to be skipped."""
    rows = "".join(
        f"{a},{b},{a + b}\n" if i % 3 else ",,\n" for i in range(900) for a, b in [(200 + i * 7 % 601, i * 13 % 307)]
    )
    text, _ = drafted(csv(tmp_path, "rent,costs,warm\n" + rows))
    assert '"warm": {expression: "rent + costs"}' in text and '{"rent": [null], "costs": {}}' in text
    assert '"warm": {}' not in text and taken(tmp_path, text).rules.computed


@pytest.mark.parametrize("answers", [[-2, 1, 2, 3], [-2, -1, 0, 1, 2], [-1, -2, -2, 0, 7], [-2, -1, 0, 1, 7]])
def test_minus_two_is_a_gap_where_no_scale_goes_on_below_0(tmp_path: Path, answers: list[int]) -> None:
    """Questions that a filter skips (-2) were answers, and kilometres went from -100 on."""
    text, facts = drafted(csv(tmp_path, "answer\n" + "".join(f"{a}\n" for a in answers * 100)))
    gap = answers[1] > 0 or answers.count(-2) > 1
    assert ("taken for a gap: is it?" in text) is gap
    assert (facts["answer"].low < 0) is not gap and "is -2 a value" not in text


def test_of_several_texts_that_mean_a_gap_none_is_written(tmp_path: Path) -> None:
    """Whoever gave no answer (-9) was written as one who was not asked (-2)."""
    _, facts = drafted(csv(tmp_path, "job\n" + "".join(f"{t}\n" for t in ("01104", "23212", "-2", "-9") * 100)))
    assert facts["job"].missing_texts == ("", "-2", "-9")


def test_gaps_of_a_long_list_are_asked_about_and_leave_empty_cells_empty(tmp_path: Path) -> None:
    """Batches of vaccines: 178 empty cells came out as ?, and nobody was asked whether ? is a gap."""
    batches = [f"F{1000 + i % 45 if i % 8 else 2000 + i}" for i in range(6_000)]
    rows = "".join(f"{('', '?', 'unbek.')[i // 20 % 3] if i % 20 == 0 else b},{i % 7}\n" for i, b in enumerate(batches))
    text, facts = drafted(csv(tmp_path, "batch,k\n" + rows))
    assert facts["batch"].missing_texts == ("", "?", "unbek.") and len(facts["batch"].values) == 45
    assert "is there a public list? else values: discover; ?, unbek. taken for a gap: is it?" in text


def test_numbers_of_farms_of_which_most_are_small_are_ids_and_amounts_of_which_one_is_frequent_are_none(
    tmp_path: Path,
) -> None:
    """The largest of 400 farms had a bin of its own, 7000113, and each release named it."""
    farms = [i for i in range(400) for _ in range(max(2_000 // (i + 1) ** 2, 4 if i < 120 else 1))]
    rows = "".join(f"{7_000_113 + 113 * k},{1_234_567 if i % 3 else 2_000_001 + 7 * i}\n" for i, k in enumerate(farms))
    text, facts = drafted(csv(tmp_path, "holding,loan\n" + rows))
    assert [c.name for c in facts.columns] == ["loan"] and text.count("ids of others") == 1
    assert "1234567 in one of its own" in text


def test_no_length_is_proposed_under_a_name_that_a_column_has(tmp_path: Path) -> None:
    """Who took the rule over was refused: there is a column 'heard_length'."""
    rows = "".join(f"{d},{d + timedelta(i % 50)},{'sl'[i % 2]}\n" for i, d in enumerate(DAYS))
    text, _ = drafted(csv(tmp_path, "filed,heard,heard_length\n" + rows))
    assert '"length"' not in text and '- ["filed", "heard"]' in text


def test_rows_without_an_id_say_nothing_of_rules_where_the_unit_is_named(tmp_path: Path) -> None:
    """Beside a joined table of persons they lack all its columns: each was said to be not asked without the others."""
    rows = "".join(f"p{i % 200},{i % 3},{'fm'[i % 2]},{'xyz'[i * 7 % 200 % 3]}\n" for i in range(900))
    table = source(csv(tmp_path, "person,day,sex,town\n" + rows + ",1,,\n,2,,\n" * 20))
    assert '"sex": [null], "town": {}' not in draft_schema(table, "t", unit="person")
    assert '"sex": [null], "town": {}' in draft_schema(table, "t", unit="record")


def test_minus_beside_plus_alone_is_an_answer(tmp_path: Path) -> None:
    """Everybody without the factor had no Rhesus factor at all: - was taken for a gap."""
    text, facts = drafted(csv(tmp_path, "rhesus,job\n" + "+,x\n-,-\n+,y\n,+\n" * 50))
    assert facts["rhesus"].values == ("+", "-") and facts["rhesus"].missing_texts == ()
    assert facts["job"].missing_texts == ("-",) and text.count("taken for a gap") == 1


def test_minus_beside_signs_alone_is_an_answer(tmp_path: Path) -> None:
    """Results below their range were no results: of +, ++ and - the last was taken for a gap."""
    marks, reactions = ("+", "++", "-", "--", ""), ("(+)", "+/-", "-")
    rows = "".join(f"{marks[i % 5]},{reactions[i % 3]},{'+-x'[i % 3]}\n" for i in range(300))
    _, facts = drafted(csv(tmp_path, "mark,reaction,other\n" + rows))
    assert facts["mark"].values == ("+", "++", "-", "--") and facts["mark"].missing_texts == ()
    assert facts["reaction"].missing_code is None and facts["other"].missing_texts == ("-",)


def test_marks_in_halves_have_no_codes_that_nothing_has(tmp_path: Path) -> None:
    """Of 1 to 5 stars in halves 42 codes were drafted, a tenth apart; and others were said to come between halves."""
    rows = "".join(f"{1 + i % 9 / 2},{1 + i % 9 / 2 if i % 9 else 1.1}\n" for i in range(900))
    text, facts = drafted(csv(tmp_path, "stars,marks\n" + rows))
    assert (facts["stars"].multiple_of, facts["stars"].size) == (0.5, 9)
    assert facts["marks"].multiple_of is None and text.count("a release has others between") == 1


def test_one_day_written_in_two_ways_is_told(tmp_path: Path) -> None:
    rows = "".join(f"{d:%d.%m.%y},{d if i % 90 else ''}\n" for i, d in enumerate(DAYS))
    text, _ = drafted(csv(tmp_path, "joined,joined_iso\n" + rows))
    assert text.count("; the same as 'joined' in 890 of 890 rows: is one of the two enough?") == 1
    assert "# ordered" not in text


def test_sparse_codes_follow_from_the_names_that_they_stand_for_and_flags_from_their_group(tmp_path, monkeypatch):
    """Of codes 1 to 20 with holes only the way back was tried: a list of all pairs with codes that nothing has."""
    codes = [11, 13, 3, 20]
    rows = "".join(f"d{i % 4},{codes[i % 4]},{'ny'[i % 4 > 0]}\n" for i in range(800))
    text, _ = drafted(csv(tmp_path, "district,code,votes\n" + rows))
    assert '"code": {from: "district", map: {"d0": "11", "d1": "13", "d2": "3", "d3": "20"}}' in text
    assert '"votes": {from: "district"' in text and "possible" not in text
    assert taken(tmp_path, text).synthesized.names == ("district",)
    monkeypatch.setattr(rule_guess, "MOST_DETERMINED", 2)  # many flags leave room for the rest
    swapped = "".join(f"{'ny'[i % 4 > 0]},d{i % 4},{codes[i % 4]}\n" for i in range(800))
    assert '"code": {from: "district"' in drafted(csv(tmp_path, "votes,district,code\n" + swapped))[0]


def test_pairs_are_looked_for_in_the_columns_that_may_tell_alone(tmp_path, monkeypatch):
    read, encoding = list[str](), never_guess.encoding
    monkeypatch.setattr(
        never_guess,
        "encoding",
        lambda own, schema: read.extend(c.name for c in schema.columns) or encoding(own, schema),
    )
    rows = [f"{'ab'[i % 2]},{'xy'[i % 3 // 2] if i % 2 else ''},2020-01-{i % 28 + 1:02}\n" for i in range(300)]
    text, _ = drafted(csv(tmp_path, f"job,ward,day\n{''.join(rows)}"))
    assert {*read} == {"job", "ward"} and '- {"job": ["a"], "ward": {}}' in text


def test_two_numbers_in_one_text_are_told_as_such(tmp_path: Path) -> None:
    rows = "\n".join(f"{100 + i % 70}/{60 + i // 70},{i % 9}" for i in range(2_000))
    text = draft_schema(source(csv(tmp_path, f"pressure,n\n{rows}\n")), "t")
    assert "two numbers in each, as 120/80: write them in two columns" in text
    gaps = "\n".join(f"{f'{100 + i % 70}/{60 + i // 70}' if i % 12 else 'n.m.'},{i % 9}" for i in range(2_000))
    assert "two numbers in each, as 120/80" in draft_schema(source(csv(tmp_path, f"pressure,n\n{gaps}\n")), "t")
    entries = "".join(f"{1851 + i // 300}/{i % 300:04},{i % 9}\n" for i in range(2_000))
    assert "a year and a number, as in a register: an id" in drafted(csv(tmp_path, f"entry,n\n{entries}"))[0]


def test_ids_with_letters_and_many_digits_are_no_list_however_many_rows_each_has(tmp_path: Path) -> None:
    """Two hundred ear tags of cows were listed, and all else followed from them."""
    rows = "".join(f"DE 09 {300 + i % 60} {17 * (i % 60):05},EN 1090-{i % 30}\n" for i in range(2_400))
    text, facts = drafted(csv(tmp_path, f"tag,norm\n{rows}"))
    assert "tag" in facts.leave_out and "letters and many digits, each in several rows" in text
    assert len(facts["norm"].values) == 30, "a few digits are no id"
    forms = "".join(f"HL-{i:06}\n" for i in range(2_400))
    assert "most in one row alone" in drafted(csv(tmp_path, f"form\n{forms}"))[0]
    meters = "".join(f"MAC{i % 60:06},{i % 7}\n" for i in range(2_400))
    text, facts = drafted(csv(tmp_path, f"meter,kwh\n{meters}"))
    assert "meter" in facts.leave_out and "privacy.unit names the column" in text, "a running number behind letters"


def test_a_number_of_each_row_s_own_is_asked_about_and_left_out_where_it_is_called_a_telephone(tmp_path: Path) -> None:
    """Telephones were drafted as a range of numbers, and a release would have invented some that ring."""
    numbers = [1_510_000_000 + i * i * 137 % 280_000_003 for i in range(600)]
    for name in ("telefon", "mobile_no", "income"):
        text, facts = drafted(csv(tmp_path, f"{name},n\n" + "".join(f"{x},{x % 9}\n" for x in numbers)))
        assert (name in facts.leave_out) is (name != "income"), text
    for name, times, kind in (("debt", 7, "integer"), ("message", 50_000_009, "float")):  # no seconds since 1970
        text, facts = drafted(csv(tmp_path, f"{name},n\n" + "".join(f"{x * times},{x % 9}\n" for x in numbers)))
        assert facts[name].kind == kind and text.count("nearly every row has a value of its own: an id?") == 1


@pytest.mark.parametrize(
    ("classes", "ordered"),
    [
        (
            ["moins de 1 000 €", "de 1 000 à 1 500 €", "de 1 500 à 2 000 €", "de 2 000 à 10 000 €", "10 000 € et plus"],
            True,
        ),
        (["5-9", "10-19", "20-49", "50+"], True),
        (["0-17", "18-64", "65-99"], True),
        (["A00-B99", "C00-D48", "E00-E90"], False),
        (["1-5", "3-9", "10-12"], False),
        (["Haus 1", "Haus 2", "Haus 10"], False),
        (["5-9", "10-19", "20-49", "mixed"], False),
        (["5-9", "10-19", "20-49", "50+", "60+"], False),
        (["<1", *map(str, range(1, 90)), ">=90"], True),
        (["0", "1", "2", "3-5", ">5"], True),
        (["0", "1", "2", "3-5"], True),
        (["1", "2", "10"], False),  # numbers, or codes
        (["01", "02", "03", "10+"], False),
        (["1", "2", "3", "1-3"], False),
        (["1", "2", "3", "4", "trifft nicht zu"], False),
    ],
)
def test_classes_of_a_number_are_drafted_in_their_order(classes: list[str], ordered: bool) -> None:
    assert classes_in_order(sorted(classes)) == (classes if ordered else [])


SIZES = [words.split() for words in ("klein mittel groß", "small medium large", "S M L XL", "niedrig mittel hoch")]
STROKE = ["stimme gar nicht zu", "stimme eher nicht zu", "teils/teils", "stimme eher zu", "stimme voll zu"]


@pytest.mark.parametrize("scale", [*SIZES, STROKE], ids=lambda scale: " < ".join(scale))
def test_sizes_grades_and_answers_are_drafted_in_their_order(scale: list[str]) -> None:
    assert in_order(sorted(scale)) == scale


def test_salaries_name_no_persons_and_ids_are_asked_about_once(tmp_path: Path) -> None:
    lines = [f"c{i * 7919 % 2_000:06},{20_000 + i * 37 % 450 * 100}\n" for i in range(2_500)]
    text, _ = drafted(csv(tmp_path, "candidate,salary\n" + "".join(lines)))
    assert "multiples of 100" in text and text.count("privacy.unit=") == 1, "the head names it"
    assert text.count("Where they are persons', privacy.unit names the column") == 1


def test_any_mark_of_thousands_is_read(tmp_path: Path) -> None:
    """Of amounts as French and Swiss programs write them a third was drafted as gaps: all of 1,000 or more."""
    amounts = np.random.default_rng(1).lognormal(6.5, 1, 600)
    for mark in (".", " ", "\xa0", "\u202f", "'", "’"):
        written = (f"{x:,.2f} €".replace(",", "m").replace(".", ",").replace("m", mark) for x in amounts)
        rows = "".join(f'"{text}",{i % 9}\n' for i, text in enumerate(written))
        text, facts = drafted(csv(tmp_path, f"paid,n\n{rows}"))
        assert facts["paid"].kind == "float" and mark in facts["paid"].strip, mark
        assert facts["paid"].high >= amounts.max() and "cannot be read" not in text


def test_days_behind_a_weekday_are_days(tmp_path: Path) -> None:
    """Days such as Fri 19.05.2023 were a list of texts, and of those of a year a third became *other*."""
    days = [date(2023, 1, 1) + timedelta(i * 7 % 360) for i in range(3_000)]
    for form in ("%a %d.%m.%Y", "%a %d/%m/%Y", "%a, %d %b %Y"):
        rows = "".join(f'"{day.strftime(form)}",{i % 9}\n' for i, day in enumerate(days))
        path = csv(tmp_path, f"lent,n\n{rows}")
        _, facts = drafted(path)
        assert (facts["lent"].kind, facts["lent"].format) == ("date", form)
        assert not encoded(path, facts)[1].marked


def test_what_accounts_write_for_0_and_below_is_asked_about(tmp_path: Path) -> None:
    """A dash for no fee was a gap without a word; amounts in brackets might have been names of persons."""
    rows = "".join(
        f"{f'{i % 90 / 10 + 0.1:.2f} €' if i % 8 == 0 else '-'},({i * 7 % 3_001 / 100:.2f})\n" for i in range(2_400)
    )
    text, facts = drafted(csv(tmp_path, f"fee,amount\n{rows}"))
    assert facts["fee"].missing_texts == ("-",) and "'-' taken for a gap: is it one, or 0?" in text
    assert "100.0 % are numbers below 0, with the minus behind or in brackets; write it in front" in text
    assert "does it name persons" not in text


def test_what_belongs_to_an_age_is_proposed_though_it_needs_many_rules(tmp_path: Path) -> None:
    """Six bounds of age by status were too many to propose, and a release had pupils of 40 and workers of 90."""
    rng = np.random.default_rng(1)
    age, work = rng.integers(0, 100, 6_000), rng.choice(["works", "studies", "seeks"], 6_000, p=[0.7, 0.2, 0.1])
    status = np.select([age < 6, age < 18, age > 66], ["child", "pupil", "retired"], work)

    def text_of(told):
        return drafted(csv(tmp_path, "age,status\n" + "".join(f"{a},{s}\n" for a, s in zip(age, told, strict=True))))[0]

    text = text_of(status)
    bounds = [("child", '"min": 6'), ("pupil", '"min": 18'), ("retired", '"max": 66')]
    for value, bound in (*bounds, ("works", '"max": 17'), ("works", '"min": 67')):
        assert re.search(rf'{{"status": \[[^]]*"{value}"[^]]*\], "age": {{{bound}}}}}', text), (value, bound)
    assert '"age": {' not in text_of(rng.permutation(status)), "unrelated"


def test_times_of_the_day_past_midnight_are_told(tmp_path: Path) -> None:
    """Treated soon after arrival, in some rows on the next day: nothing was said, and waits of 12 hours came out."""
    rng = np.random.default_rng(1)
    came, waits = rng.integers(0, 1440, 3_000), rng.gamma(1.5, 30, 3_000).astype(int)
    clock = [f"{m % 1440 // 60:02}:{m % 60:02}" for m in (*came, *(came + waits))]
    other = rng.permutation(clock[:3_000])
    day = [f"2024-{1 + i % 12:02}-{1 + i % 28:02} {t}" for i, t in enumerate(clock[:3_000])]
    for names, first in (("came", clock[:3_000]), ("stamp", day)):
        rows = "".join(f"{a},{b},{c}\n" for a, b, c in zip(first, clock[3_000:], other, strict=True))
        text, _ = drafted(csv(tmp_path, f"{names},treated,left\n{rows}"))
        over = sum(b < a[-5:] for a, b in zip(first, clock[3_000:], strict=True))
        assert f"; 'treated' comes soon after '{names}', past midnight in {over:,} of 3,000 rows" in text
        assert text.count("past midnight") == 1
    text, _ = drafted(csv(tmp_path, "stamp,clock\n" + "".join(f"{d},{t}\n" for d, t in zip(day, clock, strict=False))))
    assert "'clock' is the time of 'stamp' in 3,000 of 3,000 rows: leave it out" in text and "soon after" not in text


def test_lengths_of_which_few_are_short_have_even_bins(tmp_path: Path) -> None:
    """Of a marathon's halves nearly all lay in three bins, since few lengths are many times the shortest."""
    rng = np.random.default_rng(3)
    halves = np.rint(np.exp(rng.normal(np.log(4_000), 0.17, 2_000))).astype(int)
    begun = pd.Timestamp("2024-05-05 09:00") + pd.to_timedelta(rng.integers(0, 3_600, 2_000), "s")
    frame = pd.DataFrame({"tenth": begun, "half": begun + pd.to_timedelta(halves, "s")})
    later = frame.iloc[:20] + pd.Timedelta(days=30)
    text, _ = drafted(csv(tmp_path, pd.concat([frame, later]).to_csv(index=False)))
    (listed,) = re.findall(r'"half": \{"from": "tenth", "length": .*?"edges": \[(.*?)\]', text)
    edges = [*map(int, listed.split(", "))]
    assert len({*np.diff(edges)}) == 1 and max(np.histogram(halves, edges)[0]) < 0.35 * halves.size


def test_periods_that_many_lengths_share_have_bins_of_their_own(tmp_path: Path) -> None:
    """Loans of 21 and of 28 days stood in one bin, and each medium of a release was lent for both."""
    rng = np.random.default_rng(1)
    lent = np.datetime64("2024-01-01") + rng.integers(0, 700, 3_000)
    due = lent + rng.choice([7, 21, 28, 119], 3_000, p=[0.3, 0.3, 0.395, 0.005])
    back = lent + np.minimum(rng.gamma(2, 14, 3_000), 140).astype(int)
    rows = "".join(f"{a},{b},{c}\n" for a, b, c in zip(lent, due, back, strict=True))
    text, _ = drafted(csv(tmp_path, f"lent,due,back\n{rows}"))
    edges = dict(re.findall(r'"(due|back)": \{"from": "lent", "length": .*?"edges": \[(.*?)\]', text))
    assert edges["due"] == "0, 1, 2, 3, 4, 5, 7, 8, 10, 15, 20, 21, 22, 28, 29, 30, 40, 50, 70, 100, 150", edges
    assert edges["back"] == "0, 1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 40, 50, 70, 100, 150", "none stands out"


def test_rules_of_households_are_proposed_as_far_as_they_can_be_taken_together(tmp_path: Path) -> None:
    """A run refused all of them: 100,000 combinations of constants, of which each is tried for each person."""
    rng, homes, names = np.random.default_rng(4), 6_000, "abcde"
    constants = [rng.integers(0, 10, homes)]
    for _ in names[1:]:
        own = rng.integers(0, 10, homes)
        constants.append(np.where((constants[-1] < 5) & (own < 3), own + 5, own))
    rows = "".join(
        f"{home},{','.join(f'{n}{c[home]}' for n, c in zip(names, constants, strict=True))},{rng.integers(9)}\n"
        for home in range(homes)
        for _ in range(2)
    )
    text = draft_schema(source(csv(tmp_path, f"household_id,{','.join(names)},n\n" + rows)), "t", unit="household_id")
    (left,) = [line for line in text.splitlines() if "left out, as together they speak of more than 20,000" in line]
    rules = taken(tmp_path, text.replace("records: {max: }", "records: {max: 2}")).rules
    assert sum(len(clique) - 1 for clique, _ in rules.linked) == 3 and left.count("[") == 1, left
