"""How many columns of messy tables a draft declares as no person would: limits, table by table."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from mechanisms.public.drafts.draft import draft_schema
from mechanisms.public.schema.dialect import Dialect
from mechanisms.public.schema.table_schema import load_schema
from tests.public.messy_tables import TABLES, Table, as_csv, wrong_guesses
from tests.public.table_worlds import csv, encoded, source

#: Table → at most so many wrong guesses; of the hospital's seventeen columns eight were wrong once.
LIMITS = {"hospital": 0, "library": 0, "energy": 0, "school": 0}


#: Bounds of days are whole months, which may be days of somebody.
DAYS = {"Aufnahme", "Entlassung", "lent", "due", "born", "date_releve"}


@pytest.fixture(scope="module", params=sorted(LIMITS))
def drafted(request, tmp_path_factory) -> tuple[str, Table, str]:
    folder, name = tmp_path_factory.mktemp(request.param), request.param
    table = TABLES[name]()
    path = csv(folder, as_csv(table))
    text = draft_schema(source(path, dialect=Dialect(";")), name)
    (folder / "draft.yaml").write_text(text, encoding="utf-8")
    return name, table, str(path)


def test_few_columns_are_guessed_wrong(drafted):
    name, table, path = drafted
    text = Path(path).with_name("draft.yaml").read_text(encoding="utf-8")
    assert len(wrong := wrong_guesses(table, text)) <= LIMITS[name], wrong
    facts = load_schema(Path(path).with_name("draft.yaml"))
    _, report = encoded(Path(path), facts, dialect=Dialect(";"))
    lost = {c: n for c, n in report.unplaced.items() if n > 0.101 * report.rows}
    assert not lost and not facts.confirmed_public


def test_no_text_of_few_units_stands_in_a_draft(drafted):
    """Neither as a value, nor as a spelling, a gap or a quotation."""
    name, table, path = drafted
    text = Path(path).with_name("draft.yaml").read_text(encoding="utf-8")
    who = {"hospital": "Patient", "library": "email", "energy": "compteur_no", "school": "row_id"}[name]
    for column in [c for n, c in table.items() if n not in DAYS]:
        pairs = {(cell, unit) for cell, unit in zip(column.cells, table[who].cells, strict=True)}
        few = [c for c, n in Counter(cell for cell, _ in pairs).items() if n < 10 and len(c.strip()) > 6]
        assert not [c for c in few if f"'{c}'" in text or f" {c}," in text or f" {c}]" in text]
