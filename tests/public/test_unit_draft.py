"""What a draft proposes about the unit, and how seldom it guesses wrong."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from mechanisms.public.drafts import unit_guess
from mechanisms.public.drafts.draft import GUESS, RECORD, draft_schema
from mechanisms.public.errors import UserError
from mechanisms.public.persons.person_unit import PersonUnit
from mechanisms.public.schema.dialect import Dialect
from mechanisms.public.schema.table_schema import load_schema
from tests.public.messy_tables import TABLES, Table, as_csv, wrong_guesses
from tests.public.table_worlds import csv, encoded, source

HEAD = "who,sex,born,visit,season,day,score,same\n"


def rows(persons: int = 60, each: int = 3) -> str:
    """Visits: sex and birth never change, once a sex is not told; ids have other forms of one number."""
    return "".join(
        f"{'0' * (k % 2)}{i},{'' if (i, k) == (7, 1) else 'fm'[i % 2]},{1940 + i % 50},{k},{2000 + i % 9 + k},"
        f"2021-0{1 + k}-{1 + i % 28:02},{(i * 7 + k * 3) % 40},x\n"
        for k in range(each)
        for i in range(persons)
    )


def drafted(folder: Path, text: str, unit: str = "who") -> str:
    return draft_schema(source(csv(folder, text)), "visits", unit=unit)


def test_a_named_unit_is_proposed_with_its_constants_and_its_order(tmp_path: Path) -> None:
    text = drafted(tmp_path, HEAD + rows())
    file = tmp_path / "visits.yaml"
    file.write_text(text)
    with pytest.raises(UserError, match=r"unit: records: got \{'max': None\}"):
        load_schema(file)
    assert "never the largest number of this table" in text
    assert "unit_id:" not in text and text.count("records: {max: }") == 1
    file.write_text(text.replace("{max: }", "{max: 5}"))
    schema = load_schema(file)
    assert schema.rules.unit == PersonUnit("who", 5, ("sex", "born"), ("day",))
    assert "who" not in schema.leave_out and schema.measured.names == ("visit", "season", "day", "score")


def test_a_code_of_gaps_makes_no_constant_vary(tmp_path: Path) -> None:
    """Of a birth year that is 9999 in one visit of four a person has one value, which that visit does not know."""
    years = [(i, k, 9999 if (i + k) % 4 == 0 else 1940 + i % 50) for i in range(60) for k in range(3)]
    text = drafted(tmp_path, HEAD + "".join(f"{i},{'fm'[i % 2]},{y},{k},2000,d,1,x\n" for i, k, y in years))
    assert "missing: ['9999']" in text and "constant: [sex, born]" in text and "empty in others" not in text


def test_one_value_in_two_forms_makes_no_constant_vary(tmp_path: Path) -> None:
    text = HEAD
    for i, k in ((i, k) for i in range(60) for k in range(3)):
        land, day = ("SYRIA ", f"2{i % 8}.05.1970") if k == i % 7 else ("Syria", f"1970-05-2{i % 8}")
        text += f"{i},{land},{day},{k},2000,d,1,x\n"
    assert "constant: [sex, born]" in drafted(tmp_path, text)


def test_of_constants_that_tell_each_other_pairs_are_proposed_and_no_map(tmp_path: Path) -> None:
    names = {0: ("n", "North"), 1: ("s", "South"), 2: ("w", "West")}
    lines = [f"p{i},{names[i % 3][0]},{names[i % 3][1]},{year}" for i in range(300) for year in (2020, 2021)]
    text = drafted(tmp_path, "\n".join(["who,region,called,year", *lines, ""]))
    assert "constant:" in text and "called" in text
    assert "{from:" not in text, "a unit's constants stand in no map"
    assert '{columns: ["region", "called"], possible: [["n", "North"], ["s", "South"], ["w", "West"]]}' in text


def test_constants_and_records_that_tell_each_other_are_proposed_as_rules_and_no_map(tmp_path: Path) -> None:
    """A student's programme follows from the code of each exam, and nobody of one sex is asked about births."""
    lines = [
        f"p{i},{'xyz'[i % 3]},{'fm'[i % 2]},{'xyz'[i % 3]}{k},{k if i % 2 else ''}" for i in range(300) for k in (1, 2)
    ]
    text = drafted(tmp_path, "\n".join(["who,programme,sex,exam,births", *lines, ""]))
    assert "constant: [programme, sex]" in text and "{from:" not in text
    assert '{columns: ["exam", "programme"], possible: [["x1", "x"], ["x2", "x"], ["y1", "y"]' in text
    assert '{"sex": ["f"], "births": {}}' in text


def test_a_year_orders_where_there_is_no_date(tmp_path: Path) -> None:
    lines = [",".join([*cells[:5], "d", *cells[6:]]) for cells in (r.split(",") for r in rows().splitlines())]
    assert "\n  order: season\n" in drafted(tmp_path, HEAD + "\n".join(lines) + "\n")


def test_nothing_is_proposed_where_no_id_repeats_nobody_is_named_or_rows_are_alike(tmp_path: Path) -> None:
    assert "\nunit:" not in drafted(tmp_path, HEAD + rows(each=1))
    assert "\nunit:" not in drafted(tmp_path, HEAD + rows(), RECORD)
    assert "\nunit:" not in drafted(tmp_path, HEAD.replace("who", "person_id") + rows(), GUESS)
    assert "\nunit:" not in drafted(tmp_path, "who,sex\n" + "1,f\n2,m\n3,f\n" * 40)


def test_columns_are_looked_at_some_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = drafted(tmp_path, HEAD + rows())
    monkeypatch.setattr(unit_guess, "TOGETHER", 2)
    assert drafted(tmp_path, HEAD + rows()) == whole


@pytest.mark.parametrize("form", ["{0}/{1:02}", "{0}-Q{2}", "{0}/{3}"])
def test_school_years_and_quarters_are_in_order_and_order_where_there_is_no_date(tmp_path: Path, form: str) -> None:
    terms = [form.format(2018 + k, 19 + k, 1 + k % 4, 2019 + k) for k in range(4)]
    lines = [f"{i},{'fm'[i % 2]},{1940 + i % 50},{terms[k]},{(i * 7 + k) % 90}" for k in range(4) for i in range(90)]
    text = drafted(tmp_path, "who,sex,born,term,score\n" + "\n".join(lines) + "\n")
    assert "ordinal: true" in text and "in the order of years" in text and "\n  order: term\n" in text


def test_no_date_orders_that_differs_within_few_persons(tmp_path: Path) -> None:
    """A birth date with a typing error in one of sixty persons was the first date that varies: it ordered all."""
    lines = [
        f"{who},fm,{'1950-01-01' if (who, k) != ('7', '1') else '1905-01-01'},2021-0{1 + int(k)}-11,{k}"
        for who, _, _, k, *_ in (line.split(",") for line in rows().replace("\n0", "\n").splitlines())
    ]
    text = drafted(tmp_path, "who,sex,born,day,k\n" + "\n".join(lines) + "\n")
    assert "\n  order: day\n" in text
    alone = "".join(",".join([*line.split(",")[:3], "d", line[-1]]) + "\n" for line in lines)
    assert "order:" not in drafted(tmp_path, "who,sex,born,day,k\n" + alone)


def test_the_complete_id_of_one_row_each_is_taken_for_the_person_and_named_for_a_shell(tmp_path: Path) -> None:
    """The e-mail address, which one in ten lacks, had fewer values than the student's id."""
    each = [(f"S{i:04}", f"p{i}@school.org" if i % 10 else "", i % 4) for i in range(400)]
    text = drafted(tmp_path, "Email,Student ID,year\n" + "".join(f"{m},{s},{y}\n" for s, m, y in each), GUESS)
    assert "Counted by the column 'Student ID'" in text
    few = "".join(f"T{i % 150},{i % 4}\n" for i in range(600))
    assert "draft with 'privacy.unit=Reader Ticket'" in drafted(tmp_path, f"Reader Ticket,year\n{few}", GUESS)


def test_ids_of_other_persons_are_left_out_with_the_reason(tmp_path: Path) -> None:
    """Of patients with ids that lie close together a column of small numbers is no link, but by its name."""
    people = [f"P{i * 37:05}" for i in range(90)]
    lines = [(w, people[(i * 7) % 90] if i % 3 else f"X{i}", i % 80, k) for i, w in enumerate(people) for k in range(2)]
    text = drafted(tmp_path, "who,mother,age,day\n" + "".join(f"{w},{m},{a},{k}\n" for w, m, a, k in lines))
    assert "  - \"mother\"  # 60 of its 90 values are ids of 'who': who belongs to whom is not measured" in text
    assert "\n  age:" in text
    numbers = "".join(f"{w[1:]},{i},{a},{k}\n" for i, (w, _, a, k) in enumerate(lines))
    assert "belongs to whom" not in drafted(tmp_path, "who,mother_id,age,day\n" + numbers)
    close = "".join(f"{i // 2},{i // 4},{a},{k}\n" for i, (_, _, a, k) in enumerate(lines))
    text = drafted(tmp_path, "who,mother_id,age,day\n" + close)
    assert "45 of its 45 values are ids of 'who'" in text and "\n  age:" in text


#: Bounds of days are whole months, which may be days of somebody.
DAYS = {"Aufnahme", "Entlassung", "lent", "due", "born", "date_releve"}


@pytest.fixture(scope="module", params=TABLES)
def guessed(request, tmp_path_factory) -> tuple[str, Table, str]:
    folder, name = tmp_path_factory.mktemp(request.param), request.param
    table = TABLES[name]()
    path = csv(folder, as_csv(table))
    text = draft_schema(source(path, dialect=Dialect(";")), name)
    (folder / "draft.yaml").write_text(text, encoding="utf-8")
    return name, table, str(path)


def test_no_column_is_guessed_wrong(guessed):
    _, table, path = guessed
    text = Path(path).with_name("draft.yaml").read_text(encoding="utf-8")
    assert wrong_guesses(table, text) == [], "of the hospital's seventeen columns eight were once"
    facts = load_schema(Path(path).with_name("draft.yaml"))
    _, report = encoded(Path(path), facts, dialect=Dialect(";"))
    lost = {c: n for c, n in report.unplaced.items() if n > 0.101 * report.rows}
    assert not lost and not facts.confirmed_public


def test_no_text_of_few_units_stands_in_a_draft(guessed):
    """Neither as a value, nor as a spelling, a gap or a quotation."""
    name, table, path = guessed
    text = Path(path).with_name("draft.yaml").read_text(encoding="utf-8")
    who = {"hospital": "Patient", "library": "email", "energy": "compteur_no", "school": "row_id"}[name]
    for column in [c for n, c in table.items() if n not in DAYS]:
        pairs = {(cell, unit) for cell, unit in zip(column.cells, table[who].cells, strict=True)}
        few = [c for c, n in Counter(cell for cell, _ in pairs).items() if n < 10 and len(c.strip()) > 6]
        assert not [c for c in few if f"'{c}'" in text or f" {c}," in text or f" {c}]" in text]
