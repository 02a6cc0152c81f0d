"""`check` says what a schema would do to a table; `run` looks the same way first, and refuses before any charge."""

import itertools
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from mechanisms.public.schema.table_schema import parse_schema
from mechanisms.public.tables.codec import encode_columns
from mechanisms.public.tables.losses import declared_texts, losses_of, percent
from mechanisms.public.tables.text_forms import NumberForm
from tests.pipeline.conftest import TOWN, command, edit, people, reply, worded
from tests.pipeline.looks import checked, drafted
from tests.pipeline.messy_hospital import write_messy_hospital
from tests.public.table_worlds import csv, source

FAST = [*TOWN, "evaluation.enabled=false", "synthesis=independent", "hydra.run.dir=out", "console=always"]
NAIVE = """name: hospital
confirmed_public: true
columns:
  admission_date: {kind: date, min: 2022-01-01, max: 2025-12-31, bins: month, missing: false}
  age: {kind: integer, min: 0, max: 110, bins: {count: 11}}
  sex: {kind: categorical, values: [F, M, "-999"]}
  ward: {kind: categorical, values: [surgery, medicine, cardiology, oncology, icu, maternity, paediatrics]}
  ward_code: {kind: categorical, values: [W01, W02, W03, W04, W05, W06, W07], missing: false}
  emergency: {kind: flag, "true": ["yes"], "false": ["no"]}
  triage: {kind: integer, min: 1, max: 5}
  total_charges: {kind: float, bins: {edges: [0, 500, 1000, 2000, 4000, 8000, 16000, 32000, 200000]}}
  paid: {kind: float, min: 0, max: 100000}
  fax: {kind: categorical, values: [value]}
  hospital: {kind: categorical, values: [General Hospital]}
  insurance: {kind: categorical, values: [public], other: other}
leave_out: [patient_id, emial]
"""


@pytest.fixture
def hospital(folder: Path) -> Path:
    """A folder with a messy table of 1,500 rows and a schema that expects a clean one."""
    write_messy_hospital(folder / "messy.csv", 1500)
    (folder / "naive.yaml").write_text(NAIVE, encoding="utf-8")
    return folder


CHECK = ["data.path=messy.csv", "data.schema=naive.yaml"]


def test_check_names_what_each_column_loses_and_the_cure_and_leaves_nothing(hospital, capsys):
    before = sorted(hospital.iterdir())
    facts = json.loads(reply(capsys, "check", *CHECK, "format=json", code=1).out)
    assert sorted(hospital.iterdir()) == before and facts["private"] is False
    table = pd.read_csv(hospital / "messy.csv", dtype=str, keep_default_na=False)
    columns = facts["columns"]
    assert columns["admission_date"]["lost"] == table["admission_date"].str.contains("/").sum()
    assert columns["admission_date"]["fate"] == "count as the first value, '2022-01'"
    assert columns["triage"]["lost"] == (table["triage"] == "NA").sum()
    assert columns["age"]["beyond_bounds"] == (table["age"] == "-999").sum() == columns["age"]["lost"] > 0
    assert columns["insurance"]["lost"] == 0 and columns["insurance"]["other"] == (table["insurance"] != "public").sum()
    assert facts["refused"] == ["admission_date", "emergency", "total_charges", "paid"]
    cures = {
        "admission_date": 'look like %d/%m/%Y: formats: ["ISO", "%d/%m/%Y"]',
        "age": "-999 (",
        "sex": 'missing: ["-999"]',
        "emergency": "spellings: common",
        "triage": 'missing: ["NA"]',
        "total_charges": 'strip: ["$", "€", ","]',
        "paid": 'decimal: ","',
        "fax": "kind: constant",
        "hospital": 'kind: constant, value: "General Hospital"',
    }
    for name, cure in cures.items():
        assert any(cure in hint for hint in columns[name]["hints"]), (name, columns[name]["hints"])
    assert any("the last bin, 32000 to 200000" in hint for hint in columns["total_charges"]["hints"])
    said = "\n".join(facts["hints"])
    assert "'ward' and 'ward_code' tell each other" in said and "'emial'" in said and "'note'" in said
    assert "'patient_id' looks like an id" in said and "privacy.unit=patient_id" in said


def test_check_prints_a_line_per_column_marked_not_private_and_counts_rows_without_a_unit(hospital, capsys):
    out = reply(capsys, "check", *CHECK, "privacy.unit=patient_id", "privacy.max_records=1", "data.max_unplaced=1").out
    lines = out.splitlines()
    assert "NOT private" in lines[1]
    assert all(sum(line.startswith(f"{n} ") for line in lines) == 1 for n in ("age", "sex", "paid"))
    without = (pd.read_csv(hospital / "messy.csv", dtype=str, keep_default_na=False)["patient_id"] == "").sum()
    assert f"{without:,} rows without an id, which do not count" in out
    assert "have more than privacy.max_records=1 records" in out and "looks like an id" not in out
    own = ["privacy.unit=patient_id", "privacy.max_records=1", "privacy.missing_unit=own", "data.max_unplaced=1"]
    out = reply(capsys, "check", *CHECK, *own).out
    assert "are a unit each: do none belong to the id above, as of merged cells?" in out


def test_check_names_what_a_schema_leaves_out_and_says_where_nobody_has_confirmed_it(town, capsys):
    look = ["check", "data.path=town.csv", "data.schema=town.yaml"]
    said = reply(capsys, *look).out
    assert "left out by the schema, and not released: 'note'" in said and "confirmed" not in said
    edit(town / "town.yaml", "confirmed_public: true", "confirmed_public: false")
    assert "nobody has confirmed that this schema is public" in reply(capsys, *look).out
    assert command(*look, "data.confirmed_public=true") == 0 and "nobody" not in capsys.readouterr().out


def test_a_list_that_takes_hardly_any_value_of_its_column_is_warned_of(town, capsys):
    edit(town / "town.yaml", "values: [baker, smith, clerk]", "values: [Baker, Smith, Clerk]")
    said = reply(capsys, "check", "data.path=town.csv", "data.schema=town.yaml", code=1).out
    assert re.search(r"job +categorical LOSES 100.0 % +100.0 % other", said)
    assert "is the list that of this column?" in said
    assert "3 spellings differ from a listed value in capitals, spaces, zeros" in said and "empty" not in said
    edit(town / "town.yaml", "values: [Baker, Smith, Clerk]", "values: [baker, smith]")
    table = pd.read_csv("town.csv")
    table.loc[table["job"] == "clerk", "job"] = np.where(np.arange((table["job"] == "clerk").sum()) < 30, "x", "smith")
    table.to_csv("town.csv", index=False)
    assert command("check", "data.path=town.csv", "data.schema=town.yaml") == 0
    assert re.search(r"job +categorical ok +5.0 % other", capsys.readouterr().out), "below data.max_unplaced"


def test_check_says_how_many_rows_break_a_rule_about_combinations(folder, capsys):
    table = people(600)[["sex", "job"]]
    listed = {"sex": ["f", "m"], "job": ["baker", "smith", "clerk"]}
    columns = {name: {"kind": "categorical", "values": texts} for name, texts in listed.items()}
    rule = {"columns": ["sex", "job"], "possible": [["f", "smith"], ["f", "baker"], ["m", "clerk"], ["m", "baker"]]}
    for swapped in (False, True):  # as if two names had changed places
        cells = table.assign(sex=table["sex"].map({"f": "m", "m": "f"})) if swapped else table
        said = str(checked(capsys, cells, columns, impossible=[rule])["hints"])
        assert ("of the rows break it" in said) is swapped
    assert f"sex × job: {percent((table['job'] != 'baker').mean())} of the rows break it" in said


def test_the_cures_cure(hospital, capsys):
    mended = NAIVE
    for old, new in (
        ("bins: month, missing: false}", 'bins: month, formats: ["ISO", "%d/%m/%Y"], missing: false}'),
        ("bins: {count: 11}}", 'bins: {count: 11}, missing: ["-999"]}'),
        ('values: [F, M, "-999"]}', 'values: [F, M], missing: ["-999"]}'),
        ('{kind: flag, "true": ["yes"], "false": ["no"]}', "{kind: flag, spellings: common}"),
        ("max: 5}", "max: 5, missing: [NA]}"),
        ("32000, 200000]}}", '32000, 200000]}, strip: ["$", "€", ","]}'),
        ("max: 100000}", 'max: 100000, decimal: ","}'),
        ("{kind: categorical, values: [value]}", "{kind: constant}"),
        ("{kind: categorical, values: [General Hospital]}", "{kind: constant, value: General Hospital}"),
    ):  # fmt: skip
        assert old in mended
        mended = mended.replace(old, new)
    (hospital / "naive.yaml").write_text(mended, encoding="utf-8")
    columns = json.loads(reply(capsys, "check", *CHECK, "format=json").out)["columns"]
    assert {n: c["lost"] for n, c in columns.items() if c["lost"]} == {}
    table = pd.read_csv(hospital / "messy.csv", dtype=str, keep_default_na=False)
    assert columns["age"]["beyond_bounds"] == 0 and columns["age"]["missing"] == (table["age"] == "-999").sum()


def test_a_run_that_would_lose_too_much_is_refused_before_any_charge_and_its_folder_stays_free(town, capsys):
    table = people(600)
    table.loc[: 0.3 * 600, "sex"] = "?"
    table.to_csv(town / "town.csv", index=False)
    said = reply(capsys, "run", *FAST, "budget.ledger=book.json", "budget.limit={epsilon: 3, delta: 1e-6}", code=1).err
    assert "column 'sex' loses 30.2 % of its values (181 of 600), which would count as the first value, 'f'" in said
    assert "data.max_unplaced=0.2" in said and "nothing was spent" in said and "'?'" not in said
    inside = town / "out" / "internal"
    assert not (town / "out" / "release").exists() and not (inside / "ledger.jsonl").exists()
    assert not (inside / "answers").exists() and not (town / "book.json").exists()
    assert command("run", *FAST, "data.max_unplaced=1") == 0  # in the same folder
    (stop,) = worded(town / "out/release")["outside"]
    assert stop == "no column refuses the run for values that the schema cannot place (data.max_unplaced=1)"
    last = capsys.readouterr().out
    assert "lost      column 'sex' loses 30.2 % of its values (181 of 600); they count as" in last


def test_below_the_threshold_the_loss_stands_in_the_last_lines_and_on_top_of_the_report(town, capsys, monkeypatch):
    monkeypatch.setattr("pipeline.console.LINES", 12)
    table = people(600)
    table.loc[:59, "sex"] = "?"
    table.to_csv(town / "town.csv", index=False)
    asked = ["synthesis=independent", "evaluation.metrics=[tvd]", "hydra.run.dir=out", "console=always"]
    assert command("run", *TOWN, *asked) == 0
    line = "column 'sex' loses 10.0 % of its values (60 of 600); they count as the first value, 'f'"
    said, whole = capsys.readouterr().out, (town / "out/internal/summary.txt").read_text(encoding="utf-8")
    assert f"lost {line} (NOT private)" in " ".join(whole.split())
    *shown, rest = said.strip("\n").splitlines()
    assert whole.splitlines()[: len(shown)] == shown and len(whole.splitlines()) == len(shown) + int(rest.split()[0])
    assert rest.endswith("more lines: out/internal/summary.txt (NOT private)")
    page = (town / "out/internal/report.html").read_text(encoding="utf-8")
    assert ">protected<" in page and ">one unit<" not in page, "a record is one by itself: nothing is compared"
    assert line.replace("'", "&#39;") in page.partition("<nav")[0]
    statement = worded(town / "out/release")
    assert len(statement["outside"]) == 1 and "data.max_unplaced=0.2" in statement["outside"][0]
    assert "loses" not in (town / "out/release/privacy.json").read_text()


def test_what_a_column_may_lose_is_a_share_of_its_filled_cells(town, capsys):
    """Of a column that is 92 % empty no filled cell can be read: of all rows these are 8 %."""
    table = people(600)
    table["remark"] = ["" if i % 12 else "soon" for i in range(600)]
    table.to_csv(town / "town.csv", index=False)
    day = "  remark: {kind: date, min: 2020-01-01, max: 2020-12-31, bins: month}\n"
    edit(town / "town.yaml", "leave_out", f"{day}leave_out")
    facts = json.loads(reply(capsys, "check", *TOWN[1:], "format=json", code=1).out)
    assert facts["refused"] == ["remark"] and facts["columns"]["remark"]["share"] == 1
    assert "column 'remark' loses 100.0 % of its values (50 of 50)" in reply(capsys, "run", *FAST, code=1).err


@pytest.mark.parametrize("unit", [[], ["privacy.unit=who", "privacy.max_records=2"]])
def test_check_counts_the_listed_texts_of_one_unit_and_a_run_warns_of_them_before_it_spends(town, capsys, unit):
    """A hangman of six rows is one person, three beekeepers are three; a row without an id is a person of its own."""
    table = people(600)
    table.insert(0, "who", [f"p{i // 2}" for i in range(600)])
    if unit:
        table.loc[:5, ["who", "job"]] = [["p0", "hangman"], ["P0 ", "hangman"]] * 3
        table.loc[[10, 20, 30], "job"] = "beekeeper"
        table.loc[[40, 41], ["who", "job"]] = [["", "astronaut"], ["p20", "miller"]]
    else:
        table.loc[:2, "job"] = ["beekeeper", "hangman", "astronaut"]
    table.to_csv(town / "town.csv", index=False)
    listed = "[baker, smith, clerk, beekeeper, hangman, astronaut, miller]"
    schema = (town / "town.yaml").read_text().replace("[baker, smith, clerk]", listed)
    (town / "town.yaml").write_text(schema.replace("leave_out: [", "leave_out: [who, "))
    columns = json.loads(reply(capsys, "check", *TOWN[1:], *unit, "format=json").out)["columns"]
    assert {n: c["lone"] for n, c in columns.items()} == {"age": 0, "sex": 0, "job": 3}
    alone = "one unit ('who') alone" if unit else "one row alone"
    assert f"3 of the listed texts are held by {alone}" in columns["job"]["hints"][0]
    assert (columns["job"]["status"], columns["age"]["status"]) == ("warning", "ok")
    said = " ".join(reply(capsys, "run", *FAST, *unit).err.split())
    warned = f"listed texts that {alone} holds: 3 of 'job': each betrays a person"
    assert warned in said and said.index(warned) < said.index("measure") and "hangman" not in said


def test_a_text_of_one_person_is_told_wherever_a_schema_lists_it(tmp_path, capsys):
    rows = [f"p{i},a,b,c,yes,{i % 9},2026-01-0{1 + i % 9},NA" for i in range(40)]
    rows.append('p40,rare,rare,rare,"ja, per Anwalt",refused,custody,-')
    (tmp_path / "t.csv").write_text("pid,gap,word,rest,paid,n,day,usual\n" + "\n".join([*rows, rows[-1]]) + "\n")
    (tmp_path / "t.yaml").write_text("""name: t
source: handbook
confirmed_public: true
columns:
  gap: {kind: categorical, values: [a], missing: [rare]}
  word: {kind: categorical, values: [b], spellings: {b: [Rare]}}
  rest: {kind: categorical, values: [c], other: rare}
  paid: {kind: flag, "true": ["yes", "ja, per Anwalt"], "false": ["no"]}
  n: {kind: integer, min: 0, max: 9, missing: [refused, "99"]}
  day: {kind: date, min: 2026-01-01, max: 2026-12-31, bins: month, missing: [custody]}
  usual: {kind: categorical, values: [x], missing: ["NA", "-", "call Dr. Rosa Zbinden, +41 44 123 45 67"]}
unit: {column: pid, records: {max: 2}}
""")
    assert command("check", f"data.path={tmp_path}/t.csv", f"data.schema={tmp_path}/t.yaml", "format=json") == 0
    looks = json.loads(capsys.readouterr().out)["columns"]
    assert {n: c["lone"] for n, c in looks.items()} == {n: int(n != "usual") for n in looks}
    assert "1 of the 2 listed texts hold names" in looks["usual"]["hints"][0]


def test_a_number_of_one_person_is_told_where_a_schema_lists_it_in_another_form_than_its_cells(tmp_path, capsys):
    rows = [f"p{i // 2};{5 + i % 9} kWh;{5 + i % 9},50;{5 + i % 9} kWh" for i in range(80)]
    rows += [
        "p40;7.654.321 kWh;88.888,88;5.432,10 kWh",
        "p40;7.654.321 kWh;88.888,880;p41",
        "p41;6 kWh;6,50;5.432,1 kWh",
    ]
    (tmp_path / "t.csv").write_text("pid;used;paid;shared\n" + "\n".join(rows) + "\n")
    (tmp_path / "t.yaml").write_text("""name: t
source: handbook
confirmed_public: true
dialect: {delimiter: ";"}
columns:
  used: {kind: integer, min: 0, max: 99, strip: [kWh, .], decimal: ",", missing: ["7654321"]}
  paid: {kind: float, min: 0, max: 99, bins: {count: 9}, strip: [.], decimal: ",", missing: ["88888.88"]}
  shared: {kind: float, min: 0, max: 99, bins: {count: 9}, strip: [kWh, .], decimal: ",", missing: ["5432.1", p41]}
unit: {column: pid, records: {max: 2}}
""")
    assert command("check", f"data.path={tmp_path}/t.csv", f"data.schema={tmp_path}/t.yaml", "format=json") == 0
    looks = json.loads(capsys.readouterr().out)["columns"]
    assert {n: (c["lone"], c["missing"]) for n, c in looks.items()} == {
        "used": (1, 2),
        "paid": (1, 2),
        "shared": (1, 3),
    }
    assert {c["status"] for c in looks.values()} == {"warning"}


def test_check_offers_nothing_as_a_gap_that_one_person_alone_holds(tmp_path, capsys):
    rows = [f"p{i // 2};{5 + 7 * i % 90} kWh;{i % 90}.5;2026-01-0{1 + i % 9};b" for i in range(600)]
    rows += [f"{{}};7.654.321 kWh;{word};{word};{word}" for word in ["notte"] for _ in range(24)]
    for whose, offered in (("p1", False), ("p{}", True)):
        cells = [row.format(whose.format(i)) for i, row in enumerate(rows)]
        (tmp_path / "t.csv").write_text("pid;used;hour;day;word\n" + "\n".join(cells) + "\n")
        (tmp_path / "t.yaml").write_text("""name: t
source: handbook
dialect: {delimiter: ";"}
columns:
  used: {kind: integer, min: 0, max: 10000000, bins: {count: 9}, strip: [kWh, .], decimal: ","}
  hour: {kind: float, min: 0, max: 99, bins: {count: 9}}
  day: {kind: date, min: 2026-01-01, max: 2026-12-31, bins: month}
  word: {kind: categorical, values: [b], missing: false}
unit: {column: pid, records: {max: 2}}
""")
        command("check", f"data.path={tmp_path}/t.csv", f"data.schema={tmp_path}/t.yaml", "format=json")
        looks = json.loads(capsys.readouterr().out)["columns"]
        asked = {n for n, c in looks.items() if ": a gap? missing: [" in str(c)}
        assert asked == ({"used", "hour", "day"} if offered else set()), (whose, looks)


@pytest.mark.usefixtures("folder")
def test_no_bound_follows_what_few_rows_drive_absurdly_far_and_others_are_told_until_a_public_one_stands_there(capsys):
    """A hearing in 2031, one person's, stood as max in a schema that was confirmed with one flag."""

    def cells(far: int) -> dict[str, list[object]]:
        return {
            "pay": [i % 83 / 10 for i in range(400)] + [400.5] * far,
            "day": [f"202{i % 4}-0{1 + i % 9}-02" for i in range(400)] + ["2031-07-14"] * far,
            "at": [f"202{i % 4}-0{1 + i % 9}-02 1{i % 10}:00" for i in range(400)] + ["2004-07-14 12:00"] * far,
        }

    def told(columns=None):
        said = checked(capsys, cells(1), columns)["columns"].items()
        own = {
            n: [h for h in c["hints"] if "the table's own, rounded, and fewer than 10 rows hold" in h] for n, c in said
        }
        return {n: h[0].split()[0] for n, h in own.items() if h}

    fields, _ = drafted(cells(1))
    assert (fields["pay"]["max"], fields["at"]["min"]) == (8, "2020-01-01") and fields["day"]["max"] == "2031-12-31"
    assert told() == {"day": "max"}
    raw, _ = drafted(cells(12))
    assert (raw["pay"]["max"], raw["at"]["min"]) == (500, "2004-01-01")
    assert told(raw) == {"pay": "max", "day": "max", "at": "min"}
    public = {"pay": {"max": 1000.0}, "day": {"max": "2040-12-31"}, "at": {"min": "2000-01-01"}}
    columns = {n: c | public[n] | {"bins": {"count": 5}} for n, c in raw.items()}
    assert told(columns) == {}
    assert checked(capsys, {name: [] for name in cells(0)}, columns)["rows"] == 0


CENTS = "  pay: {kind: float, min: 0, max: 90, bins: {count: 9}}\n  stay: {kind: integer, min: 0, max: 900}\n"


def test_a_number_beyond_the_bounds_is_lost_and_bounds_in_another_unit_are_said(town, capsys):
    table = people(600)
    table["pay"], table["stay"] = [[100 * (1 + i % 80) for i in range(600)], [i % 9 + 0.5 for i in range(600)]]
    table.to_csv(town / "town.csv", index=False)
    edit(town / "town.yaml", "leave_out", f"{CENTS}leave_out")
    facts = json.loads(reply(capsys, "check", *TOWN[1:], "format=json", code=1).out)
    assert facts["refused"] == ["pay"] and facts["columns"]["pay"]["fate"] == "count as the nearest bound"
    assert facts["columns"]["pay"]["lost"] == facts["columns"]["pay"]["beyond_bounds"] == 600
    far = "the numbers go 89 times as far as min and max: are the bounds in another"
    assert far in facts["columns"]["pay"]["hints"][0]
    assert facts["columns"]["stay"]["lost"] == 0, "what is only rounded is not lost"
    assert "    values that count as the nearest bound: 600, such as" in reply(capsys, "check", *TOWN[1:], code=1).out
    assert "min and max go 106 times as far as 99 % of the numbers" in facts["columns"]["stay"]["hints"][1]
    said = reply(capsys, "run", *FAST, code=1).err
    assert "column 'pay' loses 100.0 % of its values (600 of 600), which would count as the nearest bound" in said
    assert command("run", *FAST, "data.max_unplaced=1") == 0


GERMAN, ENGLISH = {"strip": ["."], "decimal": ","}, {"strip": [","]}
BOTH = ["1.234,50", "12,75", "1.234", "2.000", "702.49", "1,500.10"]


@pytest.mark.parametrize(
    ("declared", "cells", "lost", "says"),
    [
        (GERMAN, BOTH, 2, "60 of the 120 numbers with a point or a comma, such as 1.234, would be others"),
        (ENGLISH, BOTH[2:], 0, None),
        (ENGLISH, ["1.234,50", "1,234"], 1, "30 of the 30 numbers with a point or a comma, such as 1.234,"),
        (GERMAN, ["1.234", "2.000"], 0, "would be others with a decimal point: no cell shows which way is meant"),
        (GERMAN, BOTH[:4], 0, None),
        ({"strip": ["£", ","]}, ["£1,234", "£2,000"], 0, None),
        ({}, ["1.234", "72.125"], 0, "60 rows hold numbers such as 1.234, and hardly any others"),
        ({"decimals": 3}, ["1.234", "72.125"], 0, None),
        ({}, ["1.234", "72"], 0, "30 rows hold numbers such as 1.234, and hardly any others 1000 or more"),
        ({}, ["1.234", "72", "72.5"], 0, None),
        ({}, ["1.234", "72", "0.125"], 0, None),
        ({}, ["1.234", "1072"], 0, None),
        ({"strip": ["€", "EUR", "."], "decimal": ","}, ["12.34 EUR", "€ 12,34", "1.234,50 €"], 1, None),
        ({}, ["1.234", "1.234,50"], 1, "would be others with a decimal comma: others are written that way"),
    ],
)
def test_check_says_which_numbers_would_be_others_the_other_way(declared, cells, lost, says, folder, capsys):
    fields = {"kind": "float", "min": 0, "max": 10_000, "bins": {"count": 20}, **declared}
    cost = checked(capsys, {"cost": cells * 30}, {"cost": fields}, "data.max_unplaced=1")["columns"]["cost"]
    assert cost["lost"] == 30 * lost and cost["fate"] == "become missing"
    mixed = "100.0 % of what cannot be read are numbers written the other way, with a decimal" in str(cost["hints"])
    assert mixed == (lost > 0 and "decimal" in declared)
    said = [hint for hint in cost["hints"] if "would be others" in hint or "may mean" in hint]
    assert said == [] if says is None else says in said[0]
    if "1.234" in cells and declared == GERMAN:
        table, german = source(Path("t.csv")), NumberForm((".",), ",")
        with table.connect() as engine:
            numbers = engine.execute(f"SELECT DISTINCT {table.number(0, german)} FROM {table.relation}").fetchall()
        assert (1234.0,) in numbers and (1.234,) not in numbers


@pytest.mark.some(3)
@pytest.mark.parametrize("third", range(3))
def test_the_cure_for_a_fee_holds_all_that_it_needs_and_is_named_once(folder, capsys, third):
    """Every way to declare a fee, over fees of every kind: (cells, how many of them the cure cannot read)."""
    fees = [
        (["1,234.50", "702.49"], 0),
        (["1.234,50", "99,9"], 0),
        (["€12.50", "99.90", "€1,234.50"], 0),
        (["€12,50", "99,90", "€1.234,50"], 0),
        (["1,234", "17", "999", "12,500"], 0),
        (["€12.50", "12,75", "99.90"], 1),
        (["28.500", "296,97", "318,28"], 1),
    ]
    ways = [{}, {"decimal": ","}, GERMAN, ENGLISH, {"strip": ["€"]}, {"strip": ["€", "."], "decimal": ","}]
    rows, cells, fields, unread = 120, {}, {}, {}
    for (i, declared), (k, (texts, lost)) in itertools.product(enumerate(ways), enumerate(fees)):
        if (i + k) % 3 != third:
            continue
        name = f"c{i}{k}"
        cells[name], unread[name] = texts * (rows // len(texts)), lost * (rows // len(texts))
        fields[name] = {"kind": "float", "min": 0, "max": 500_000, "bins": {"edges": [0, 100, 500_000]}, **declared}

    def cures() -> tuple[dict, dict[str, list[str]]]:
        looks = checked(capsys, cells, fields, "data.max_unplaced=1")["columns"]
        own = {n: [h for h in c["hints"] if re.search(r" are numbers with [a-z ]+: ", h)] for n, c in looks.items()}
        return looks, {n: [h.partition(": ")[2] for h in hints] for n, hints in own.items()}

    before, named = cures()
    for name, found in named.items():
        for cure in found:
            fields[name] |= yaml.safe_load(f"{{{cure}}}")
    after, again = cures()
    assert not any(again.values()) and any(named.values())
    for name, own in after.items():
        assert own["lost"] in ({before[name]["lost"]} if not named[name] else {unread[name]}), name
        german = "." in (fields[name].get("strip") or []) and fields[name].get("decimal") == "," and not named[name]
        assert not unread[name] or german or any("mend the table" in hint for hint in own["hints"]), name


def test_what_counts_as_lost_is_what_is_neither_listed_readable_nor_declared_missing(tmp_path):
    texts, beyond = ["1", " 2", "9", "1.5", "x", "?", "", "-999", "-999.0"], {"9", "-999", "-999.0"}
    columns = {
        "plain": ({"kind": "integer", "min": 0, "max": 5}, {"x", "?", *beyond}),
        "strict": ({"kind": "integer", "min": 0, "max": 5, "missing": False}, {"x", "?", "", *beyond}),
        "gap": ({"kind": "integer", "min": 0, "max": 5, "missing": ["?", "-999"]}, {"x", "9"}),
        "other": ({"kind": "integer", "min": 0, "max": 5, "missing": False, "other": "o"}, beyond),
        "sent": ({"kind": "integer", "min": 0, "max": 5, "outside": "missing"}, {"x", "?"}),
        "both": ({"kind": "integer", "min": 0, "max": 5, "other": "o", "outside": "other"}, {"x", "?"}),
        "words": ({"kind": "categorical", "values": ["1", "x"]}, {" 2", "9", "1.5", "?", "-999", "-999.0"}),
        "rest": ({"kind": "categorical", "values": ["1", "x"], "other": "o", "missing": False}, {""}),
        "first": ({"kind": "categorical", "values": ["1", "x"], "missing": False}, {*texts} - {"1", "x"}),
        "sides": ({"kind": "flag", "true": ["1"], "false": ["x"]}, {" 2", "9", "1.5", "?", "-999", "-999.0"}),
    }
    schema = parse_schema({"columns": {n: fields for n, (fields, _) in columns.items()}}, where="test")
    for text in texts:
        row = ",".join([f'"{text}"'] * len(columns))
        given = source(csv(tmp_path, f"{','.join(columns)}\n{row}\n"))
        _, report = encode_columns(given, schema, workdir=tmp_path / "work" / str(texts.index(text)))
        lost = {loss.column for loss in losses_of(report, schema)}
        assert lost == {n for n, (_, gone) in columns.items() if text in gone}, text


def test_shares_never_read_as_nothing_or_all_where_they_are_not():
    assert [percent(s) for s in (0, 1e-6, 0.123, 0.99999, 1)] == ["0.0 %", "below 0.1 %", "12.3 %", "99.9 %", "100.0 %"]


def test_a_run_says_before_it_spends_all_that_check_warns_of_and_keeps_its_whole_look(town, capsys):
    table = people(600)
    table["fee"] = [*["1.234"] * 9, "1,5"] * 60
    table.loc[1:, "job"] = table["job"].str.upper()
    table.to_csv(town / "town.csv", index=False)
    fee = "  fee: {kind: float, min: 0, max: 2000, bins: {count: 4}}\n"
    schema = (town / "town.yaml").read_text()
    schema = schema.replace("columns:\n", f"columns:\n{fee}") + "impossible: [{job: other, sex: f}]\n"
    (town / "town.yaml").write_text(schema)
    looked = reply(capsys, "check", *TOWN[1:]).out
    said = " ".join(reply(capsys, "run", *FAST).err.split())
    warned = (
        "99.8 % of the values become 'other'",
        "540 of the 540 numbers with a point or a comma, such as 1.234, would be others",
        "of the rows break it (by their bins)",
    )
    for line in warned:
        assert line in said and said.index(line) < said.index("measure"), (line, said)
        assert line in looked
    kept = (town / "out/internal/check.txt").read_text()
    assert all(line in kept for line in warned) and (town / "out/internal/check.txt").stat().st_mode & 0o077 == 0
    quiet = [w for w in FAST if w not in {"console=always", "hydra.run.dir=out"}]
    said = " ".join(reply(capsys, "run", *quiet, "hydra.run.dir=log").err.split())
    assert "what the schema does to the rows: " in said and "log/internal/check.txt (NOT private)" in said
    assert not any(line in said for line in warned)


def test_an_amount_is_not_proposed_as_the_unit_and_a_code_declared_as_an_amount_is_warned_of(folder, capsys):
    rows, whole = range(2_400), "{kind: integer, min: 0, max: 20000, bins: {count: 20}}"
    table = {"income": [10 * (i * 7919 % 2_000) for i in rows], "plz": [10_000 + i % 90 for i in rows]}
    table |= {"district": [1 + i % 30 for i in rows], "school": [i % 19 for i in rows]}
    table["zone"] = [f"{1 + i % 6} km" for i in rows]
    numbers = "district: {kind: integer, min: 1, max: 30}, school: {kind: integer, min: 0, max: 18}"
    numbers += ", zone: {kind: integer, min: 1, max: 6, strip: [km]}"
    facts = checked(capsys, table, f"income: {whole}, plz: {whole}, {numbers}")
    assert not any("privacy.unit" in hint for hint in facts["hints"])
    assert facts["columns"]["plz"]["status"] == "warning" and "called a code" in facts["columns"]["plz"]["hints"][0]
    assert any("do its numbers stand for names" in hint for hint in facts["columns"]["district"]["hints"])
    assert {facts["columns"][name]["status"] for name in ("income", "school", "zone")} == {"ok"}


def test_listed_texts_one_edit_from_a_far_more_frequent_one_are_told_with_their_rows(folder, capsys):
    rows = {"Kent": 400, "kent": 20, "Kennt": 12, "Essex": 300, "Esesx": 11, "Sussex": 40, "A1": 300, "A2": 15}
    cells = {"county": [t for t, n in rows.items() for _ in range(n)]}
    listed = {"county": {"kind": "categorical", "values": list(rows)}}
    said = "'kent' (20 rows) for 'Kent' (400), 'Kennt' (12 rows) for 'Kent' (400), 'Esesx' (11 rows) for 'Essex' (300)"
    hints = checked(capsys, cells, listed)["columns"]["county"]["hints"]
    assert f"3 may be misspelt: {said}: one spelling of each in the table" in hints
    draft = drafted(cells)[1]
    assert "2 may be misspelt: " in draft and "'Esesx' (11 rows) for 'Essex' (300)" in draft
    assert "spellings: common" in draft and "kent" not in draft.partition("columns:")[2]


def test_cells_that_join_a_value_by_their_spelling_are_counted(folder, capsys):
    sexes = ["F"] * 90 + ["Female"] * 40 + [" f"] * 20 + ["M"] * 70 + ["x"] * 5
    cells = {"sex": sexes, "code": ["I21.4", "I21", "C18"] * 75}
    declared = {
        "sex": {"kind": "categorical", "values": ["F", "M"], "spellings": {"F": ["Female"]}, "other": "Rest"},
        "code": {"kind": "categorical", "values": ["I21", "C18"], "prefix": 3},
    }
    columns = checked(capsys, cells, declared)["columns"]
    assert "60 cells joined a value by their spelling: 'F' got 60 ('Female' 40, ' f' 20)" in columns["sex"]["hints"]
    assert "75 cells joined a value by their beginning: 'I21' got 75 ('I21.4' 75)" in columns["code"]["hints"]
    assert columns["sex"]["other"] == 5 and columns["sex"]["lost"] == 0


def test_texts_of_a_long_list_are_compared_with_themselves_alone():
    compared = 0

    class Text(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    listed = [f"ward {i}" for i in range(500)]
    (column,) = parse_schema({"columns": {"ward": {"kind": "categorical", "values": listed}}}, where="it").columns
    assert [t for t in declared_texts(replace(column, values=tuple(map(Text, listed)))) if t] == listed
    assert compared < 10 * len(listed)
