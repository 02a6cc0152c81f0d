"""A steward's way from a table to a release: what the draft gets right, and what it and `check` ask of odd values."""

import json
import re
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pandas as pd
import pytest

from evaluation.readings.reading import Ends, reading
from mechanisms.public.persons.person_questions import questions_of
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements, NoisyMarginal
from mechanisms.public.schema.table_schema import load_schema
from mechanisms.public.tables.doubts import two_shapes
from mechanisms.public.tables.listed_gaps import listed_gaps
from pipeline.inference.decided import decided
from pipeline.report.answer_noise import coverage
from pipeline.report.last_lines import discovered_names
from tests.pipeline.conftest import TOWN, command, done_in, edit, reply, statement_of
from tests.pipeline.looks import FORM, checked, drafted, guess_of
from tests.pipeline.messy_hospital import CODES, messy_hospital, write_messy_hospital

ROWS = 3000
#: What a person changes in the draft: line → lines. Bounds and lists from what is public.
BY_HAND = {
    "source: a draft from the table itself": ["source: the hospital's codebook and price list"],
    "confirmed_public: false": ["confirmed_public: true"],
    "    max: '2024-": ["    max: '2025-12-31'"],
}
QUICK = ["selection=oneway", "evaluation.enabled=false"]
UNIT = ["privacy.unit=patient_id", "privacy.max_records=3"]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the table, and a draft of its schema with a person's changes."""
    folder = tmp_path_factory.mktemp("hospital")
    write_messy_hospital(folder / "messy.csv", ROWS)
    assert command("schema", str(folder / "messy.csv"), f"output={folder / 'draft.yaml'}") == 0
    lines = (folder / "draft.yaml").read_text(encoding="utf-8").splitlines(keepends=True)
    mended = []
    for line in lines:
        start = next((s for s in BY_HAND if line.startswith(s)), None)
        mended += [f"{new}\n" for new in BY_HAND[start]] if start else [line]
    derive = {"ward_code": {"from": "ward", "map": CODES}}
    mended.append(f"derive: {json.dumps(derive)}\n")
    (folder / "my.yaml").write_text("".join(mended), encoding="utf-8")
    return folder


def test_the_draft_reads_what_is_there_and_gives_the_right_reasons(home):
    text, facts = (home / "draft.yaml").read_text(encoding="utf-8"), load_schema(home / "draft.yaml")
    kinds = {c.name: "constant" if c.constant else "zip" if c.width else c.kind for c in facts.columns}
    assert kinds == {
        **dict.fromkeys(("admission_date", "discharge_date", "birth_date"), "date"),
        **dict.fromkeys(("age", "triage", "length_of_stay"), "integer"),
        **dict.fromkeys(("sex", "city", "ward", "ward_code", "diagnosis_code", "insurance"), "categorical"),
        **dict.fromkeys(("total_charges", "paid", "lab_crp"), "float"),
        **dict.fromkeys(("fax", "hospital"), "constant"),
        "emergency": "flag",
        "zip": "zip",
    }
    assert facts.leave_out == ("patient_id", "email", "note") and facts["diagnosis_code"].beginning == 3
    assert facts["admission_date"].more_formats == ("%d/%m/%Y",) and facts["discharge_date"].missing_texts == ("n/a",)
    assert set(facts["total_charges"].strip) == {"$", "€", ","} and facts["paid"].decimal == ","
    for name in ("age", "length_of_stay", "lab_crp", "sex", "insurance", "zip"):
        assert facts[name].missing_texts == ("-999",), name
    assert (facts["age"].low, facts["length_of_stay"].low) == (0, 1), "the bounds are those of values, not of gaps"
    assert "-999" not in facts["sex"].values and "yes and no in 17 spellings" in text
    table = messy_hospital(ROWS)
    share = 100 * table["admission_date"].str.contains("-").mean()
    assert f"dates or times ({share:.1f} % ISO, {100 - share:.1f} % %d/%m/%Y)" in text


def test_the_check_is_content_and_a_rehearsal_goes_the_whole_way(home, capsys, monkeypatch):
    monkeypatch.chdir(home)
    facts = json.loads(reply(capsys, "check", "data.path=messy.csv", "data.schema=my.yaml", *UNIT, "format=json").out)
    assert {n: c["lost"] for n, c in facts["columns"].items() if c["lost"]} == {}
    ledger = ["budget.ledger=book.json", "budget.limit={epsilon: 1, delta: 1e-6}", "budget.accountant=zcdp"]
    said = reply(capsys, "rehearse", "data.schema=my.yaml", *UNIT, *QUICK, *ledger, "hydra.run.dir=rehearsal").out
    assert said.startswith("a rehearsal on 1,000 made-up rows: it tries the path, and says nothing about quality")
    assert "the path works: every column was read and written" in said
    assert "NOT PRIVATE" in said and not (home / "book.json").exists()
    rows = pd.read_csv(home / "rehearsal" / "rehearsal.csv", dtype=str, keep_default_na=False)
    assert len(rows) == 1000 and rows["patient_id"].value_counts().max() <= 3
    assert (rows["ward_code"] == rows["ward"].map(CODES)).all(), "made-up rows break no rule"
    assert 0 < (rows["sex"] == "-999").mean() < 0.15 and set(rows["sex"]) == {"F", "M", "-999"}
    assert statement_of(home / "rehearsal")["private"] is False
    assert command("rehearse", "data.schema=my.yaml", *UNIT, *QUICK, "hydra.run.dir=rehearsal") == 1
    assert command("rehearse", "data.schema=my.yaml", "data.path=messy.csv") == 1


def test_a_rehearsal_frightens_nobody_and_scores_nothing_unless_asked(town, capsys):
    fast = ["rehearse", "data.schema=town.yaml", "selection=oneway", "synthesis=independent", "plan.rows=50"]
    said = reply(capsys, *fast, "hydra.run.dir=plain")
    assert not [word for word in ("weak", "MGD", "drowns", "warning", "wrong cells") if word in said.out]
    assert "score " not in said.err and not (town / "plain/internal/scores.json").exists()
    assert len(said.out.splitlines()) <= 14 and "50 made-up rows" in said.out
    assert command(*fast, "evaluation.enabled=true", "evaluation.metrics=[tvd]", "hydra.run.dir=scored") == 0
    assert "made up   mean total variation distance (0 to 1): 1-way" in capsys.readouterr().out


def test_a_rehearsal_that_is_refused_leaves_no_rows(town, capsys):
    rehearsal = ["rehearse", "data.schema=town.yaml", *QUICK]
    assert command("run", *TOWN, *QUICK, "hydra.run.dir=real") == 0
    real, other = "hydra.run.dir=real", "hydra.run.dir=other"
    for wrong in ([real], [real, "resume=true"], [f"{real}/release"], [other, "privacy.epsilon=-1"]):
        before = sorted(town.rglob("*"))
        assert "error: " in reply(capsys, *rehearsal, *wrong, code=1).err
        assert [p for p in sorted(town.rglob("*")) if p not in before and p.is_file()] == [], wrong


def test_the_release_holds_what_the_table_held(home, capsys, monkeypatch):
    monkeypatch.chdir(home)
    given = ["data=table", "data.path=messy.csv", "data.schema=my.yaml", *UNIT, *QUICK, "synthesis=independent"]
    last = reply(capsys, "run", *given, "privacy.epsilon=4", "privacy.delta=1e-6", "hydra.run.dir=out").out
    assert "private: ε = 4" in last and "lost " not in last
    synthetic = pd.read_csv(home / "out/release/synthetic.csv", dtype=str, keep_default_na=False)
    assert len(synthetic) > ROWS / 2 and list(synthetic.columns) == list(load_schema(home / "my.yaml").domain.names)
    assert (synthetic["fax"] == "").all() and (synthetic["hospital"] == "General Hospital").all()
    assert synthetic["zip"].isin(["-999", ""]).mean() < 0.1 and synthetic["zip"].str.fullmatch("[0-9]{5}|-999|").all()
    assert synthetic["admission_date"].str.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}").all()
    assert (synthetic["admission_date"].str[:7] == "2022-01").mean() < 0.1, "no pile at the first value"
    assert (synthetic["total_charges"] == "").mean() < 0.15
    assert set(synthetic["emergency"]) <= {"Yes", "No"}, "the most frequent spelling of the table, and its opposite"
    assert synthetic["paid"].str.fullmatch("[0-9]+(,[0-9]{1,2})?").all()
    assert (synthetic["ward_code"] == synthetic["ward"].map(CODES)).all()
    held = {e["clique"][0] for e in statement_of(home / "out")["events"]}
    assert not held & {"fax", "hospital", "ward_code"}


def test_ids_that_look_like_none_and_records_that_do_not_count_are_warned_of(folder, capsys):
    ids = ["unknown" if i % 3 == 0 else "" if i % 10 == 1 else f"p{i // 6}" for i in range(600)]
    cells, declared = {"who": ids, "sex": ["f", "m"] * 300}, "sex: {kind: categorical, values: [f, m], missing: false}"
    unit = ["privacy.unit=who", "privacy.max_records=4"]
    look = checked(capsys, cells, declared, *unit)
    said = " ".join([*look["hints"], *look.get("warnings", [])])
    assert "unit 'who': 'unknown' is the id of 200 records, as of one person: is it none?" in said
    lost = 200 - 4 + ids.count("")
    assert f"{100 * lost / 600:.1f} % of the records have no id or lie beyond the bound: their weight is lost" in said
    look = checked(capsys, cells, declared, *unit, "privacy.missing_unit=own")
    assert any(f"{100 * (200 - 4) / 600:.1f} % of the records lie beyond the bound" in w for w in look["hints"])


def test_ids_of_nobody_are_asked_about_on_one_line_and_ids_of_two_shapes(folder, capsys):
    rows = [(f"S-{i // 2:05}" if i % 2 else f"2021/{i // 2:05}") for i in range(480)]
    rows += [junk for junk in ("0", "999", "P99999", "nobody here") for _ in range(30)]
    cells = {"who": rows, "job": ["clerk" if i in (3, 599) else "baker" if i % 2 else "smith" for i in range(600)]}
    declared = "job: {kind: categorical, values: [baker, smith, clerk]}"
    unit = ["privacy.unit=who", "privacy.max_records=4"]
    look = checked(capsys, cells, declared, *unit)
    said = " ".join(look["hints"])
    none = re.search(r"as of one person: is it none\? privacy\.missing_unit_values=(\[[^]]*\])", said)
    assert none and {"0", "999", "p99999", "nobody here"} <= {*json.loads(none[1])}, said
    assert "ids come in two shapes (0000/00000, A-00000): does one person have both?" in said
    assert "1 of the listed texts are held by one unit ('who') alone" in str(look), "rows of nobody are no unit"
    again = checked(capsys, cells, declared, *unit, f"privacy.missing_unit_values={none[1]}")
    assert "as of one person" not in str(again)
    assert not two_shapes([f"{i:x}" for i in range(4000)]) and not two_shapes([f"A{i}" for i in range(900)])


def test_a_person_of_many_records_is_named_and_never_offered_for_a_list_that_is_published(folder, capsys):
    ids = [f"K{i // 2:05}" for i in range(800)] + ["K00007"] * 60 + ["K00000"] * 60
    cells = {"who": ids, "town": ["north", "south"] * 460}
    declared = "town: {kind: categorical, values: [north, south], missing: false}"
    hints = " ".join(checked(capsys, cells, declared, "privacy.unit=who", "privacy.max_records=3")["hints"])
    assert "'k00007' is the id of 62 records, and hardly any has a tenth: is it one person's?" in hints
    (listed,) = re.findall(r"privacy\.missing_unit_values=(\[[^]]*\])", hints)
    assert "k00000" in json.loads(listed) and "k00007" not in json.loads(listed)


@pytest.mark.parametrize("odd", [["P0007"] * 40, ["PABCD"] * 4, ["P0000"] * 14, ["7007", "7007.0"] * 9])
def test_a_text_of_one_person_is_told_whatever_the_person_s_id_and_number_of_records(odd, folder, capsys):
    ids = [f"P{1000 + i // 2}" for i in range(600)] + odd
    cells = {"who": ids, "town": ["north", "south"] * 300 + ["rare"] * (len(odd) - 2) + ["north"] * 2}
    declared = "town: {kind: categorical, values: [north, south, rare], missing: false}"
    look = checked(capsys, cells, declared, "privacy.unit=who", "privacy.max_records=3")
    assert look["columns"]["town"]["lone"] == 1


def test_a_beginning_that_many_persons_share_is_nobody_s_though_each_of_its_texts_is_one_person_s(folder, capsys):
    cells = {"who": [f"P{1000 + i // 2}" for i in range(600)]}
    cells["code"] = [f"Z9{i}" if i < 2 else f"B2{i // 2}" if i % 2 else f"A1{i}" for i in range(600)]
    declared = "code: {kind: categorical, values: [A1, B2, Z9], prefix: 2, missing: false}"
    look = checked(capsys, cells, declared, "privacy.unit=who", "privacy.max_records=3")
    assert look["columns"]["code"]["lone"] == 1, "Z9 alone, of which one person holds both texts"


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


def test_a_typesetters_minus_is_a_minus(folder, capsys):
    cells = {"balance": [f"\u2212{i}.25" if i % 2 else f"{i}.75" for i in range(900)]}
    column = drafted(cells)[0]["balance"]
    assert (column["kind"], column["min"], column["max"]) == ("float", -900, 900), column
    assert checked(capsys, cells)["columns"]["balance"]["lost"] == 0


def test_a_minus_apart_from_its_amount_is_a_minus(folder, capsys):
    """Amounts below 0 were all lost: the draft was `integer, min: 0, max: 0`, and named no cure."""
    cells = {"balance": [f"- {i},71" if i % 10 == 0 else f"{i % 400},00" for i in range(900)]}
    column = drafted(cells)[0]["balance"]
    assert (column["kind"], column["decimal"], column["max"]) == ("float", ",", 400), column
    assert column["min"] <= -800 and checked(capsys, cells)["columns"]["balance"]["lost"] == 0


def test_codes_that_are_read_as_numbers_or_as_gaps_and_numbers_that_are_rounded_are_asked_about(folder, capsys):
    cells = {"rack": [f"{i % 9 + 1}E{i % 3}" for i in range(900)], "salt": ["NA", "K", "Ca"] * 300}
    cells |= {"pay": [f"{i % 40 + 1}.476" if i % 2 else "912" for i in range(900)]}
    draft = drafted(cells)[1]
    assert "900 are written as 2E2, and read as 200: are they codes?" in draft and "NA taken for a gap: is it?" in draft
    pay = checked(capsys, cells, "pay: {kind: integer, min: 0, max: 1000, bins: {count: 5}}")["columns"]["pay"]
    assert pay["status"] == "warning" and "50.0 % of the numbers are rounded to whole ones" in pay["hints"][1]


def test_values_that_descend_within_one_bin_break_a_rule_that_orders_them(folder, capsys):
    """The two dates changed places under their names; both lie in one month nearly always."""
    days = pd.date_range("2021-01-01", periods=901, freq="D").strftime("%Y-%m-%d")
    day = "{kind: date, min: 2021-01-01, max: 2023-12-31, bins: month}"
    columns = f"columns: {{start: {day}, end: {day}}}\nordered: [[start, end]]\n"
    said = checked(capsys, {"start": days[1:], "end": days[:-1]}, columns)["hints"]
    assert "start ≤ end: 100.0 % of the rows break it" in " ".join(said)


def test_brackets_and_units_that_are_taken_out_of_some_numbers_alone_are_warned_of(folder, capsys):
    cells = {"paid": [f"({i}.50)" if i % 3 == 0 else f"€{i}.50" if i % 3 == 1 else f"{i}.50" for i in range(900)]}
    cells |= {"weight": [f"{i % 90} kg" if i % 2 else f"{i % 90 * 2} lb" for i in range(900)]}
    cells |= {"pay": [f"{i % 9}k" if i % 3 else f"{i}000" for i in range(900)]}
    cells |= {"fee": [f"{i}.50 EUR" if i % 2 else f"{i}.50" for i in range(900)]}
    number = "kind: float, min: 0, max: 900000, bins: {count: 5}"
    signs = {"paid": '["(", ")", "€"]', "weight": "[kg, lb]", "pay": "[k]", "fee": "[EUR]"}
    declared = ", ".join(f"{c}: {{{number}, strip: {s}}}" for c, s in signs.items())
    declared = declared.replace("fee: {kind: float, min: 0, max: 900000", "fee: {kind: float, min: 0, max: 900")
    columns = checked(capsys, cells, declared)["columns"]
    assert [columns[c]["status"] for c in signs] == ["warning", "warning", "warning", "ok"]
    assert "300 of 900 numbers stand in brackets, and are read without a minus" in columns["paid"]["hints"][0]
    assert "some numbers alone: 'kg' (450 times), 'lb' (450 times)" in columns["weight"]["hints"][0]
    assert "300 of 900 numbers have no k: do they mean the same?" in columns["pay"]["hints"]


def test_limits_that_are_read_as_numbers_are_no_other_unit(folder, capsys):
    cells = {"rot": ["<0,5" if i % 4 == 0 else f"{i % 30},{i % 9}" for i in range(900)]}
    declared = 'rot: {kind: float, min: 0, max: 30, bins: {count: 5}, decimal: ",", strip: ["<"]}'
    assert checked(capsys, cells, declared)["columns"]["rot"]["status"] == "ok"


@pytest.mark.some(4)
@pytest.mark.parametrize(
    ("scale", "codes", "declared", "asked"),
    [
        (range(1, 6), ["8", "9"], "min: 1, max: 9", ["8", "9"]),
        (range(1, 6), ["8", "9"], 'min: 1, max: 9, missing: ["9"]', ["9", "8"]),
        (range(11), ["77", "88", "99"], "min: 0, max: 99", ["77", "88", "99"]),
        (range(1, 6), ["9"], "min: 1, max: 9", ["9"]),
        (range(1, 6), ["7", "8", "9"], "min: 1, max: 9", ["7", "8", "9"]),
        (range(1, 4), ["7", "9"], "min: 1, max: 9", ["7", "9"]),
        *((range(1, 7), [code], f"min: 1, max: {code}", [code]) for code in ("88", "96", "98", "9998")),
        (
            range(900, 90_000, 900),
            ["9999999", "9999998"],
            "min: 0, max: 10000000, bins: {count: 9}",
            ["9999999", "9999998"],
        ),
        (range(20, 99), [], "min: 0, max: 110", []),
        *((scale, ["9"], "min: 0, max: 9", ["9"]) for scale in ("01", "12", "1234567")),
        ("128", ["9"], "min: 0, max: 9", ["8", "9"]),
        *((held, [], "min: 0, max: 9", []) for held in ("1234567", "159", "012", "123456789")),
        (range(1, 8), ["8", "9"], "min: 1, max: 9", []),
        (range(70, 99), ["99"], "min: 70, max: 99", []),
        (range(11), ["-8", "-5", "-2", "-1"], "min: -8, max: 10", ["-8", "-5", "-2", "-1"]),
        (range(1, 6), ["-9", "-8", "-7"], "min: -9, max: 5", ["-9", "-8", "-7"]),
        (range(-3, 11), [], "min: -3, max: 10", []),
        (range(5), ["-1"], "min: -1, max: 9", ["-1"]),
        (range(-2, 3), [], "min: -2, max: 2", []),
    ],
)
def test_codes_of_no_answer_beside_a_scale_are_asked_about(scale, codes, declared, asked, folder, capsys):
    cells = {"agree": [*map(str, scale), *codes] * 30}
    column = checked(capsys, cells, f"agree: {{kind: integer, {declared}}}")["columns"]["agree"]
    hints = " ".join(column["hints"])
    assert column["status"] == ("warning" if asked else "ok"), column
    assert (f"a gap? missing: {json.dumps(asked)}" in hints) if asked else "a gap?" not in hints
    facts, draft = drafted(cells)
    if "9" in asked:
        own = ", ".join(sorted({*asked} - {"9"}))
        assert (f"are {own} and 9 values, or gaps?" if own else "is 9 a value, or a gap?") in draft
    if far := sorted((code for code in codes if int(code) > 9), key=int):
        assert f"{', '.join(far)} taken for a gap: is it?" in draft or far == ["99"]
        assert (facts["agree"]["missing"], facts["agree"]["max"] < int(far[0])) == (far, True) or far == ["99"]
    assert far or ("98 taken" not in draft and "is 98 a value" not in draft)


def test_days_that_stand_for_gaps_years_of_two_digits_and_offsets_are_warned_of(folder, capsys):
    days = [f"{d:%Y-%m-%d}" for d in pd.date_range("1960-01-01", periods=900, freq="11D")]
    cells = {"born": [day if i % 9 else "1900-01-01" for i, day in enumerate(days)]}
    cells |= {"known": [day if i % 9 else "9999-12-31" for i, day in enumerate(days)]}
    cells |= {"short": [f"{i % 28 + 1:02}.05.{68 if i % 2 else 75}" for i in range(900)]}
    cells |= {"taken": [f"2024-05-{i % 28 + 1:02}T10:00:00{'Z' if i % 2 else '+02:00'}" for i in range(900)]}
    cells |= {"zones": [f"2024-05-{i % 28 + 1:02} 10:00 {'CET' if i % 2 else 'CEST'}" for i in range(900)]}
    cells |= {"plain": [day + "T10:00:00Z" for day in days]}
    span = "min: 1900-01-01, max: 2024-12-31, bins: year"
    declared = f'born: {{kind: date, {span}}}, known: {{kind: date, {span}, missing: ["9999-12-31"]}}, '
    declared += 'short: {kind: date, format: "%d.%m.%y", min: 1969-01-01, max: 2068-12-31, bins: year}, '
    declared += ", ".join(f"{name}: {{kind: datetime, {span}}}" for name in ("taken", "zones", "plain"))
    columns = checked(capsys, cells, declared)["columns"]
    assert '1900-01-01 (100 times): a gap? missing: ["1900-01-01"]' in columns["born"]["hints"]
    assert "450 of 900 days lie after" in columns["short"]["hints"][0]
    assert "are not read, and differ: +02:00 (450 times), Z (450 times)" in columns["taken"]["hints"][0]
    assert "differ: CEST (450 times), CET (450 times)" in columns["zones"]["hints"][0]
    assert [c["status"] for c in columns.values()] == ["warning", "ok", "warning", "warning", "warning", "ok"]


@pytest.mark.parametrize(
    ("values", "asked"),
    [
        (["1", "2", "3", "99", "k.A.", "x"], ["99", "k.A.", "x"]),
        (["ledig", "keine Angabe", "unbekannt"], ["keine Angabe", "unbekannt"]),
        (["ja", "nein", "weiß nicht", "verweigert", "99"], ["weiß nicht", "verweigert", "99"]),
        (["AOK", "TK", "000", "9999", "--", "entf."], ["000", "9999", "--", "entf."]),
        (["1", "2", "98", "99", "-9"], ["98", "99", "-9"]),
        (["01", "02", "05", "97", "98", "99"], ["97", "98", "99"]),
        (["1110", "2221", "7777", "9998", "9999"], ["7777", "9998", "9999"]),
        ([*map(str, range(90, 100))], []),
        (["0000", "1900", *map(str, range(1940, 2006)), "2099", "9999"], ["0000", "1900", "2099", "9999"]),
        ([*map(str, range(97, 102)), *map(str, range(1898, 1903)), "00", "01", "x1"], []),
        (["0", "-1"], []),
        (["s", "m", "x"], []),
        (["ja", "nee", "onbekend"], ["onbekend"]),
        (["sì", "no", "n.d."], ["n.d."]),
        (["oui", "non", "N.C."], ["N.C."]),
        (["sí", "no", "no contesta", "tak", "brak", "okänt"], ["no contesta", "brak", "okänt"]),
        (["ND", "NC", "SD", "NY"], []),
        (["N.D.", "N.C.", "N.Y."], []),
        (["Mo", "Di", "So", "nd"], []),
        (["+", "-"], []),
        (["+", "++", "-"], []),
        (["(+)", "+/-", "--"], []),
        (["-"], ["-"]),
        (["+", "x", "-"], ["-"]),
    ],
)
def test_listed_values_that_may_mean_a_gap_are_asked_about(values, asked):
    assert listed_gaps(values) == asked


def test_a_draft_and_check_ask_the_same_of_listed_values_that_may_mean_a_gap(folder, capsys):
    cells = {"care": ["1", "2", "3", "99", "k.A.", "x"] * 60}
    assert "'99', 'k.A.', 'x' among the values: a gap?" in drafted(cells)[1]
    (hint,) = checked(capsys, cells)["columns"]["care"]["hints"]
    assert hint == "'99', 'k.A.', 'x' among the values: a gap? missing: [\"99\", \"k.A.\", \"x\"]"


def test_check_names_a_way_out_for_results_in_words_among_numbers(folder, capsys):
    """A run refuses such a column, and named `check` for a cure; `check` had none."""
    cells = {"result": ["4,1", "12", "7,5", "neg.", "positiv", "<3", "hemolytic", "late"] * 60}
    form = "result: {kind: float, min: 0, max: 20, bins: {count: 5}, decimal: ',', missing: true}"
    look = checked(capsys, cells, form, "data.max_unplaced=1")["columns"]["result"]
    assert "results in words? Write them into a column of their own" in look["hints"][0]


VISITS = 900


def _visits() -> pd.DataFrame:
    """Three visits a patient: one has an adverse event, the last a referral; 30 of 300 nationals stand twice."""
    visit = np.arange(VISITS) % 3
    return pd.DataFrame(
        {
            "patient": [f"p{i // 3}" for i in range(VISITS)],
            "case": [f"1{i:05}-1" for i in range(VISITS)],
            "nino": [f"QQ{(i if i >= 30 else i + 30):06}C" for i in range(VISITS)],
            "household": np.arange(VISITS) // 3 + 1,
            "sex": ["FM"[i // 3 % 2] for i in range(VISITS)],
            "visit": [f"{2019 + k}-03-{i % 28 + 1:02}" for i, k in enumerate(visit)],
            "ward": ["icu" if i % 5 else "surgery" for i in range(VISITS)],
            "adverse_event": ["fall" if k == i // 3 % 3 and i % 2 else "" for i, k in enumerate(visit)],
            "referral": ["cardiology" if k == 2 and i % 4 else "" for i, k in enumerate(visit)],
            "plz": [f"{4000 + i % 250}" if i % 3 else f"{79000 + i % 300}" for i in range(VISITS)],
            "comment": [["by Dr. Keller", "bed moved", "fed", "slept", "rang"][i % 5] for i in range(VISITS)],
            "visum": [["grafa", "vogtp", "hubera"][i % 3] for i in range(VISITS)],
        }
    )


@pytest.fixture(scope="module")
def drafts(tmp_path_factory: pytest.TempPathFactory) -> MappingProxyType[str, str]:
    folder = tmp_path_factory.mktemp("visits")
    _visits().to_csv(folder / "v.csv", index=False)
    _visits().drop(columns="patient").to_csv(folder / "r.csv", index=False)
    done_in(folder, "schema", "v.csv", "privacy.unit=patient", "output=p.yaml")
    done_in(folder, "schema", "r.csv", "output=r.yaml")
    return MappingProxyType({n: (folder / f"{n[0]}.yaml").read_text() for n in ("patient", "record")})


def test_what_is_true_of_one_record_is_no_constant_of_its_person(drafts):
    """A fall of one visit stood in all visits of the patient: 13 % of the records became 40 %."""
    unit = drafts["patient"].partition("\nunit:\n")[2]
    (constant,) = [line for line in unit.splitlines() if line.startswith("  constant:")]
    assert "sex" in constant and "adverse_event" not in constant and "referral" not in constant
    assert "empty in others, and so not constant here: 'adverse_event', 'referral'" in unit


def test_zips_of_two_lengths_names_in_a_list_and_logins_are_asked_about(drafts):
    plz, comment, visum = (guess_of(drafts["patient"], name) for name in ("plz", "comment", "visum"))
    assert "600 of 900 codes have 4 digits or so, and are read as 04123 is: lost zeros, or another" in plz
    assert "1 of the 5 frequent texts hold names" in comment and "values: discover" not in comment
    assert all("would be released where a schema lists or discovers them" in said for said in (comment, visum))
    assert "Keller" not in drafts["patient"], "it said that what it does not list would be released"


def test_values_of_persons_in_a_few_rows_each_are_asked_about_where_a_row_is_the_unit(drafts):
    text = drafts["record"]
    assert "30 values stand in two rows or more" in guess_of(text, "nino")
    assert "does it name persons?" in guess_of(text, "household")


OF_PATIENTS = "unit: {column: patient, constant: [sex, adverse_event, referral], order: visit, records: {max: 3}}\n"


@pytest.mark.usefixtures("folder")
def test_check_asks_the_same_and_about_a_unit_below_the_person(capsys):
    columns = (
        "columns: {sex: {kind: categorical, values: [F, M]}, "
        "visit: {kind: date, min: 2019-01-01, max: 2021-12-31, bins: year}, "
        "adverse_event: {kind: categorical, values: [fall], missing: true}, "
        'referral: {kind: flag, "true": [cardiology], "false": [""]}, '
        "household: {kind: integer, min: 1, max: 300, bins: {count: 30}}, "
        "plz: {kind: zip, digits: 5}, comment: {kind: categorical, values: discover, other: Other}}\n"
    )
    table = _visits().to_dict("list")
    said = checked(capsys, table, columns + OF_PATIENTS)
    about = "\n".join(said["hints"])
    events = sum(text != "" for text in table["adverse_event"])
    assert f"'adverse_event' is filled in {events:,} of the {3 * events:,} records of the persons who have it" in about
    assert "'referral' is filled in 225 of the 675 records" in about and "'sex' is filled" not in about
    looks = said["columns"]
    assert "600 of 900 codes have 4 digits" in looks["plz"]["hints"][0] and looks["plz"]["status"] == "warning"
    assert "1 of the 5 frequent texts hold names" in looks["comment"]["hints"][0]
    assert looks["comment"]["status"] == "warning"
    alone = "\n".join(checked(capsys, table, columns, "privacy.unit=case", "privacy.max_records=1")["hints"])
    assert "'patient' looks like an id of persons, with 300 values " in alone and "privacy.unit=patient" in alone
    table["email"] = [f"m{i}@b.org" if i % 3 else "" for i in range(VISITS)]  # each has their own
    alone = "\n".join(checked(capsys, table, columns, "privacy.unit=case", "privacy.max_records=1")["hints"])
    assert "'email' looks like an id of persons" not in alone
    del table["patient"], table["email"]
    rows = "\n".join(checked(capsys, table, columns, "privacy.unit=record")["hints"])
    assert "30 values of 'nino' stand in two rows or more" in rows and "'household' may be an id" in rows


@pytest.mark.usefixtures("folder")
def test_a_gap_in_a_few_of_a_persons_many_records_makes_no_constant_vary(capsys):
    """A birth year that one loan in a hundred lacked was no constant in a draft: synthetic members had several."""
    places = [(i, k) for k in range(30) for i in range(60)]
    table = {
        "member": [f"m{i}" for i, _ in places],
        "born": ["" if k == i % 30 else str(1940 + i) for i, k in places],
        "fined": ["yes" if k == i % 30 else "" for i, k in places],
        "day": [f"2024-01-{k + 1:02}" for _, k in places],
    }
    pd.DataFrame(table).to_csv("t.csv", index=False)
    text = reply(capsys, "schema", "t.csv", "privacy.unit=member").out
    assert "constant: [born]" in text and "empty in others, and so not constant here: 'fined'" in text
    columns = "columns: {born: {kind: integer, min: 1940, max: 1999}, fined: {kind: categorical, values: ['yes']}, "
    columns += "day: {kind: date, min: 2024-01-01, max: 2024-01-31}}\n"
    unit = "unit: {column: member, constant: [born, fined], order: day, records: {max: 30}}\n"
    said = "\n".join(checked(capsys, table, columns + unit)["hints"])
    assert "'fined' is filled in 60 of the 1,800 records" in said and "'born' is filled" not in said


def test_pairs_with_a_constant_count_where_they_are_asked_and_are_named_where_not(tmp_path):
    """'No pair of columns was measured' stood above the answers about pairs with a constant."""
    wards = ", ".join(f"w{i}" for i in range(40))
    (tmp_path / "s.yaml").write_text(
        f"{FORM}columns: {{sex: {{kind: categorical, values: [F, M], missing: false}}, visit: {{kind: date, "
        f"min: 2019-01-01, max: 2021-12-31, bins: year}}, ward: {{kind: categorical, values: [{wards}]}}}}\n"
        "unit: {column: patient, constant: [sex], order: visit, records: {max: 3}}\n"
    )
    schema = load_schema(tmp_path / "s.yaml")

    def answer(clique, query, event):
        return NoisyMarginal(clique, query, np.ones(query.rows), "gaussian", 1.0, event)

    asked = tuple(answer(q.label, q.query, q.event) for q in questions_of(schema))
    answers = tuple(answer((n,), Identity(schema.measured.cells((n,))), n) for n in ("visit", "ward"))
    release = Measurements(schema.measured, answers, persons=asked)
    found = decided(release, schema)
    assert (found.pairs, found.measured, found.persons, found.never) == (3, 1, (("sex", "visit"),), (("sex", "ward"),))
    said = "1 of 3 measured, 1 of these as of persons: sex × visit; no answer holds the other 1"
    assert found.in_words == f"{said}; never asked, and as unrelated: sex × ward"
    covered = coverage(release, schema)
    assert (covered.pairs, covered.pairs_measured) == (3, 1) and not any("no pair" in w for w in covered.warnings)


def test_discovered_texts_that_may_be_names_are_said_last_and_worse_than_unrelated_has_a_word(tmp_path):
    comment = "{kind: categorical, values: [Mr J Smith, paid], other: Other%s}"
    for discovered, n in ((", discovered: [values]", 1), ("", 0)):
        (tmp_path / "s.yaml").write_text(f"{FORM}columns: {{comment: {comment % discovered}}}")
        assert len(discovered_names(load_schema(tmp_path / "s.yaml"))) == n
    labels = [reading(s, Ends(0.9, 0.01, 0.8), "", low_is_good=False).label for s in (0.82, 0.798, 0.7)]
    assert labels == ["weak", "weak", "worse than unrelated columns"]


READER = "  reader: {kind: zip, digits: 5, prefix: 3, missing: false}\n"
TABLE = ["data.path=library.csv", "data.schema=library.yaml"]
LIBRARY = ["data=table", *TABLE, "selection=oneway", "synthesis=independent", "evaluation.enabled=false"]
SAID = "names the unit of privacy, and the schema has its ids measured and released like any other values"


@pytest.fixture
def library(folder):
    """A library whose readers, in a column that no program knows, borrow three times each; 00777 moved in alone."""
    lines = [f"{(i % 400) * 37 % 9000:05},{i % 90},{'00777' if i == 5 else f'0{i % 7}123'}" for i in range(1200)]
    (folder / "library.csv").write_text("\n".join(["reader,age,postcode", *lines, ""]))
    (folder / "library.yaml").write_text(
        "source: the form\nconfirmed_public: true\ncolumns:\n"
        f"{READER}  age: {{kind: integer, min: 0, max: 99, missing: false}}\nleave_out: [postcode]\n"
    )
    return folder


def test_a_draft_asks_whether_values_of_few_rows_each_are_persons(library):
    assert command("schema", "library.csv", "output=draft.yaml") == 0
    text = (library / "draft.yaml").read_text()
    reader = text[: text.index("  reader:")].splitlines()[-1]
    assert "3.0 rows each: does it name persons? then draft with privacy.unit=reader" in reader
    assert text.count("does it name persons?") == 1
    assert command("schema", "library.csv", "output=other.yaml", "privacy.unit=reader") == 0
    assert "does it name persons?" not in (library / "other.yaml").read_text()


@pytest.mark.usefixtures("folder")
def test_values_whose_rows_follow_each_other_may_be_persons_however_many_rows_they_have(capsys):
    """Sixty babies with fourteen visits each, by a name that says nothing: in the file anybody sees them."""
    babies = [f"B{b:02}" for b in range(60) for _ in range(14)]
    cells = {
        "child": babies,
        "visit": [v for _ in range(60) for v in range(14)],
        "year": sorted(1950 + i % 60 for i in range(840)),
    }
    draft = drafted(cells)[1]
    assert draft.count("does it name persons?") == 1
    assert (
        "60 values, 14.0 rows each, which follow each other: does it name persons? then draft with privacy.unit=child"
        in draft
    )
    said = " ".join(checked(capsys, cells)["hints"])
    assert (
        "'child' may be an id, with 60 values in 840 rows, which follow each other: a person may have several" in said
    )
    assert "'year' may be" not in said and "'visit' may be" not in said
    mixed = {"child": [f"B{b:02}" for _ in range(14) for b in range(60)], "visit": cells["visit"]}
    assert "does it name persons?" not in drafted(mixed)[1], "rows of one value stand apart: a ward, or a place"


@pytest.mark.usefixtures("folder")
def test_whole_numbers_that_are_all_as_long_as_each_other_may_be_persons_and_amounts_are_not(capsys):
    paid = [i % 400 * 7 for i in range(1200)]
    cells = {"patron": [50000 + n for n in paid], "paid": paid}
    draft = drafted(cells)[1]
    assert draft.count("does it name persons?") == 1 and "privacy.unit=patron" in draft
    said = " ".join(checked(capsys, cells)["hints"])
    assert "'patron' may be an id, with 400 values " in said and "'paid' may be an id" not in said


def test_ids_of_the_unit_among_the_columns_are_said_by_check_plan_and_a_run_before_it_spends(library, capsys):
    unit = ["privacy.unit=reader", "privacy.max_records=3"]
    said = reply(capsys, "check", *TABLE, *unit).out
    assert "\nreader  zip         warning" in said and f"→ it {SAID}; leave_out: [reader]" in said
    assert f"the column 'reader' {SAID}; instead, leave_out: [reader]" in reply(capsys, "plan", *LIBRARY, *unit).out
    log = reply(capsys, "run", *LIBRARY, *unit, "hydra.run.dir=out").err.splitlines()
    (line,) = [place for place, text in enumerate(log) if SAID in text]
    assert log[line].strip() == f"the column 'reader' {SAID}; instead, leave_out: [reader]", "one line in a file"
    assert line < next(place for place, text in enumerate(log) if text.startswith("measure"))


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("missing", "said"), [("true", True), ('["0999"]', False), ('["999"]', False)])
def test_a_hint_about_postal_codes_keeps_their_leading_zeros_and_takes_any_way_to_write_them(missing, said, capsys):
    cells = {"home": ["0123"] * 200 + ["0999"] * 9}
    look = checked(capsys, cells, f"home: {{kind: zip, digits: 4, prefix: 2, missing: {missing}}}")
    asked = ['0999 (9 times): a gap? missing: ["0999"]'] if said else []
    drawn = "the last 2 digits are drawn evenly: such codes need not exist"
    assert sorted(look["columns"]["home"]["hints"]) == sorted([*asked, drawn])


def test_a_list_that_a_run_discovers_is_not_said_to_place_nothing(library, capsys):
    column = "  postcode: {kind: categorical, values: discover, other: elsewhere}\n"
    schema = (library / "library.yaml").read_text().replace(READER, "").replace("[postcode]", "[reader]")
    (library / "library.yaml").write_text(schema.replace("leave_out", f"{column}leave_out"))
    said = reply(capsys, "check", *TABLE).out
    assert "\npostcode  categorical ok\n    → values: a run discovers them with noise" in said and "% other" not in said
    assert command("run", *LIBRARY, "privacy.delta=1e-6", "hydra.run.dir=out") == 0
    log = (library / "out/internal/run.log").read_text()
    assert "postcode: its values are discovered" in log and "postcode: 1200 outside" not in log


def test_a_left_out_column_of_texts_that_may_name_persons_is_asked_about(folder, capsys):
    """One visitor's remark stands in forty rows, and no column is called an id: rows are counted, and it is listed."""
    lines = [f"V-{i * 7 % 800:04},{('', 'ok', 'late')[i % 3]}" for i in range(2400)] + ["V-0077,Kaya: epilepsy"] * 40
    (folder / "t.csv").write_text("\n".join(["Visitor,Remark", *lines, ""]))
    assert command("schema", "t.csv", "output=t.yaml") == 0
    draft = (folder / "t.yaml").read_text()
    assert "Kaya" in draft and "no column is called a person's id" in draft
    (visitor,) = [line for line in draft.splitlines() if line.startswith('  - "Visitor"')]
    assert "3.0 rows each: does it name persons? then draft with privacy.unit=Visitor" in visitor
    assert "where a list is wanted, and privacy.unit names the person" in visitor
    looked = ["check", "data.path=t.csv", "data.schema=t.yaml", "format=json"]
    (hint,) = [h for h in json.loads(reply(capsys, *looked).out)["hints"] if "name persons" in h]
    assert "'Visitor': does one of them name persons?" in hint and "privacy.unit=COLUMN" in hint
    assert "name persons" not in reply(capsys, *looked, "privacy.unit=Visitor").out
    edit(folder / "t.csv", "Visitor,", "Patient No.,")
    (folder / "t.yaml").write_text(draft.replace("Visitor", "Patient No."))
    hints = reply(capsys, *looked).out
    assert "'Patient No.' looks like an id" in hints and "name persons" not in hints


@pytest.mark.usefixtures("folder")
def test_times_and_days_in_digits_are_not_advised_as_units(capsys):
    cells = {"stamp": [1_700_000_000 + 997 * i for i in range(2400)]}
    cells["day"] = [f"{1 + i % 28:02}{1 + i % 12:02}{2001 + i % 17}" for i in range(2400)]
    digits = "{kind: zip, digits: 8, prefix: 3, missing: false}"
    whole = "{kind: integer, min: 1700000000, max: 1710000000, bins: {count: 9}, missing: false}"
    looked = checked(capsys, cells, f"stamp: {whole}, day: {digits}")
    assert not [h for h in looked["hints"] if "privacy.unit" in h], looked["hints"]
    assert 'format: "%d%m%Y"' in looked["columns"]["day"]["hints"][0]


def test_ids_that_a_run_would_discover_are_warned_of_where_a_row_is_the_unit(library, capsys):
    """Of a reader with many loans the id would stand in the release, which says that it is private."""
    column = "  reader: {kind: categorical, values: discover, other: elsewhere}\n"
    edit(library / "library.yaml", READER, column)
    reader = json.loads(reply(capsys, "check", *TABLE, "format=json").out)["columns"]["reader"]
    assert reader["status"] == "warning" and "released as it is: leave_out, or privacy.unit" in reader["hints"][0]
    assert command("run", *LIBRARY, "privacy.delta=1e-6", "console=always", "hydra.run.dir=out") == 0
    assert "a value of many rows, which may be one person's" in " ".join(capsys.readouterr().err.split())
