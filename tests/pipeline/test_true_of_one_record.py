"""Questions of a draft and of `check` about records of persons, names, codes and units that nobody had asked."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

import numpy as np
import pandas as pd
import pytest

from evaluation.readings.reading import Ends, reading
from mechanisms.public.persons.asked_of_persons import questions_of
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements, NoisyMarginal
from mechanisms.public.schema.table_schema import load_schema
from mechanisms.public.tables.doubts import numbers_apart
from mechanisms.public.tables.persons import addresses, said_persons
from mechanisms.public.tables.text_forms import NumberForm
from pipeline.inference.decided import decided
from pipeline.report.answer_noise import coverage
from pipeline.report.last_lines import names_found
from tests.pipeline.conftest import command
from tests.pipeline.looks import FORM, checked

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
    """The text of a draft by patient, and of one by record."""
    folder = tmp_path_factory.mktemp("visits")
    with pytest.MonkeyPatch.context() as here:
        here.chdir(folder)
        _visits().to_csv("v.csv", index=False)
        assert command("schema", "v.csv", "privacy.unit=patient", "output=p.yaml") == 0
        _visits().drop(columns="patient").to_csv("r.csv", index=False)
        assert command("schema", "r.csv", "output=r.yaml") == 0
        return MappingProxyType({"patient": Path("p.yaml").read_text(), "record": Path("r.yaml").read_text()})


def _guess(text: str, column: str) -> str:
    """The comment about a column, above it or behind it."""
    lines = text.splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith((f"  {column}:", f'  - "{column}"')))
    return lines[place] if lines[place].startswith("  - ") else lines[place - 1]


def test_what_is_true_of_one_record_is_no_constant_of_its_person(drafts):
    """A fall of one visit stood in all visits of the patient: 13 % of the records became 40 %."""
    unit = drafts["patient"].partition("\nunit:\n")[2]
    (constant,) = [line for line in unit.splitlines() if line.startswith("  constant:")]
    assert "sex" in constant and "adverse_event" not in constant and "referral" not in constant
    assert "empty in others, and so not constant here: 'adverse_event', 'referral'" in unit


def test_zips_of_two_lengths_names_in_a_list_and_logins_are_asked_about(drafts):
    text = drafts["patient"]
    assert "600 of 900 codes have 4 digits or so, and are read as 04123 is: lost zeros, or another" in _guess(
        text, "plz"
    )
    assert "1 of the 5 frequent texts hold names" in _guess(text, "comment") and "discover" not in _guess(
        text, "comment"
    )
    assert "and the frequent texts would be released as they are" in _guess(text, "visum")


def test_values_of_persons_in_a_few_rows_each_are_asked_about_where_a_row_is_the_unit(drafts):
    text = drafts["record"]
    assert "30 values stand in two rows or more" in _guess(text, "nino")
    assert "does it name persons?" in _guess(text, "household")


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


def test_names_in_any_capitals_and_letters_are_seen_and_things_are_not():
    names = [
        *("MR J SMITH", "Mr J Smith", "DR PATEL", "DR. PATEL", "dr. keller", "FRAU HUBER", "HERR KELLER", "Fr. Huber"),
        *("MUDr. Šimek", "Dr. Šimek", "Dr Ørsted", "Dr Łukasz", "Hr. Žák", "Sr. Monika", "Schw. Monika", "PD Frei"),
        *("med. pract. Frei", "RN Jones", "Sister Mary", "Matron Jones", "Rev Smith", "Mme Dupont", "M. Dupont"),
        *("Dott. Rossi", "Sig. Rossi", "s/w daughter Priya Nair", "mother (Joan Whitlock)"),
    ]
    assert [n for n in names if not addresses([n])] == []
    things = [
        *("MR ANGIOGRAPHY", "MR Scan", "MRI", "OCEAN DR NORTH", "M. Crohn", "DR CONGO", "near MISS EVENT", "M. bovis"),
        *("Sister Ward", "mother", "Mother Tongue", "sr. cardiac", "FRAU", "dr.", "HR Manager"),
    ]
    assert addresses(things) == []
    assert said_persons("contact", ["phone", "e-mail"], "listed") and not said_persons("user", ["yes", "no"], "listed")


def test_two_units_and_codes_with_zeros_behind_are_asked_about_whatever_the_factor():
    rng = np.random.default_rng(5)
    old = rng.random(3000) < 0.3
    for small, large, spread in ((6, 108, 0.25), (13.5, 135, 0.1), (78, 172, 0.11), (5.6, 171, 0.05), (20, 600, 0.2)):
        numbers = np.where(old, large, small) * np.exp(rng.normal(0, spread, old.size))
        texts = pd.Series([f"{x:.1f}" for x in numbers]).value_counts().head(1000).to_dict()
        (said,) = numbers_apart(texts, NumberForm())
        assert ("kg beside lb?" if small == 78 else "two units?") in said, said
    for numbers in (
        rng.normal(50, 8, 3000),
        rng.uniform(1, 99, 3000),
        rng.lognormal(2, 1, 3000),
        rng.pareto(1.5, 3000),
    ):
        assert numbers_apart(dict.fromkeys((f"{x:.3f}" for x in numbers[:1000]), 1), NumberForm()) == []
    rooms = {f"{floor}.{room}": 9 for floor in range(1, 6) for room in range(1, 13)}
    assert "1.1 stands beside 1.10" in numbers_apart(rooms, NumberForm())[0]
    assert numbers_apart({f"{i / 100:.2f}": 3 for i in range(900)}, NumberForm()) == []


def test_pairs_with_a_constant_count_where_they_are_asked_and_are_named_where_not(tmp_path):
    """'No pair of columns was measured' stood above the answers about pairs with a constant."""
    wards = ", ".join(f"w{i}" for i in range(40))
    (tmp_path / "s.yaml").write_text(
        f"{FORM}columns: {{sex: {{kind: categorical, values: [F, M], missing: false}}, visit: {{kind: date, "
        f"min: 2019-01-01, max: 2021-12-31, bins: year}}, ward: {{kind: categorical, values: [{wards}]}}}}\n"
        "unit: {column: patient, constant: [sex], order: visit, records: {max: 3}}\n"
    )
    schema = load_schema(tmp_path / "s.yaml")
    asked = [
        NoisyMarginal(q.label, q.query, np.ones(q.query.rows), "gaussian", 1.0, q.event) for q in questions_of(schema)
    ]
    own = [("visit",), ("ward",)]
    answers = [
        NoisyMarginal(c, Identity(k), np.ones(k), "gaussian", 1.0, c[0]) for c in own if (k := schema.measured.cells(c))
    ]
    release = Measurements(schema.measured, tuple(answers), persons=tuple(asked))
    found = decided(release, schema)
    assert (found.pairs, found.measured, found.persons, found.never) == (3, 1, (("sex", "visit"),), (("sex", "ward"),))
    said = "1 of 3 measured, 1 of these as of persons: sex × visit; the other 1 follows from what was measured"
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
