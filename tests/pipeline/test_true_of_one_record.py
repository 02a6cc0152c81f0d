"""Questions of a draft and of `check` about persons: their ids among the columns, their records, names and codes."""

from __future__ import annotations

import json
from types import MappingProxyType

import numpy as np
import pandas as pd
import pytest

from evaluation.readings.reading import Ends, reading
from mechanisms.public.persons.person_questions import questions_of
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements, NoisyMarginal
from mechanisms.public.schema.table_schema import load_schema
from pipeline.inference.decided import decided
from pipeline.report.answer_noise import coverage
from pipeline.report.last_lines import names_found
from tests.pipeline.conftest import command, done_in, edit, reply
from tests.pipeline.looks import FORM, checked, drafted, guess_of

ROWS = 900


def _visits() -> pd.DataFrame:
    """Three visits a patient: one has an adverse event, the last a referral; 30 of 300 nationals stand twice."""
    visit = np.arange(ROWS) % 3
    return pd.DataFrame(
        {
            "patient": [f"p{i // 3}" for i in range(ROWS)],
            "case": [f"1{i:05}-1" for i in range(ROWS)],
            "nino": [f"QQ{(i if i >= 30 else i + 30):06}C" for i in range(ROWS)],
            "household": np.arange(ROWS) // 3 + 1,
            "sex": ["FM"[i // 3 % 2] for i in range(ROWS)],
            "visit": [f"{2019 + k}-03-{i % 28 + 1:02}" for i, k in enumerate(visit)],
            "ward": ["icu" if i % 5 else "surgery" for i in range(ROWS)],
            "adverse_event": ["fall" if k == i // 3 % 3 and i % 2 else "" for i, k in enumerate(visit)],
            "referral": ["cardiology" if k == 2 and i % 4 else "" for i, k in enumerate(visit)],
            "plz": [f"{4000 + i % 250}" if i % 3 else f"{79000 + i % 300}" for i in range(ROWS)],
            "comment": [["by Dr. Keller", "bed moved", "fed", "slept", "rang"][i % 5] for i in range(ROWS)],
            "visum": [["grafa", "vogtp", "hubera"][i % 3] for i in range(ROWS)],
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
    assert "1 of the 5 frequent texts hold names" in comment and "discover" not in comment
    assert "and the frequent texts would be released as they are" in visum


def test_values_of_persons_in_a_few_rows_each_are_asked_about_where_a_row_is_the_unit(drafts):
    text = drafts["record"]
    assert "30 values stand in two rows or more" in guess_of(text, "nino")
    assert "does it name persons?" in guess_of(text, "household")


UNIT = "unit: {column: patient, constant: [sex, adverse_event, referral], order: visit, records: {max: 3}}\n"


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
    said = checked(capsys, table, columns + UNIT)
    about = "\n".join(said["hints"])
    events = sum(text != "" for text in table["adverse_event"])
    assert f"'adverse_event' is filled in {events:,} of the {3 * events:,} records of the persons who have it" in about
    assert "'referral' is filled in 225 of the 675 records" in about and "'sex' is filled" not in about
    looks = said["columns"]
    assert "600 of 900 codes have 4 digits" in looks["plz"]["hints"][0] and looks["plz"]["status"] == "warning"
    assert "1 of the 5 frequent texts hold names" in looks["comment"]["hints"][0]
    assert looks["comment"]["status"] == "warning"
    alone = "\n".join(checked(capsys, table, columns, "privacy.unit=case", "privacy.max_records=1")["hints"])
    assert "'patient' looks like an id of persons, with about" in alone and "privacy.unit=patient" in alone
    del table["patient"]
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
        assert len(names_found(load_schema(tmp_path / "s.yaml"))) == n
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
def test_whole_numbers_that_are_all_as_long_as_each_other_may_be_persons_and_amounts_are_not(capsys):
    paid = [i % 400 * 7 for i in range(1200)]
    cells = {"patron": [50000 + n for n in paid], "paid": paid}
    draft = drafted(cells)[1]
    assert draft.count("does it name persons?") == 1 and "privacy.unit=patron" in draft
    said = " ".join(checked(capsys, cells)["hints"])
    assert "'patron' may be an id, with about" in said and "'paid' may be an id" not in said


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
    assert "3.1 rows each: does it name persons? then draft with privacy.unit=Visitor" in visitor
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
