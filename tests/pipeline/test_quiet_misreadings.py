"""Advice of a draft and of `check` that a careful steward follows, and values that nobody may see released."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
import yaml

from tests.pipeline.conftest import command

SCHEMA = "source: a form\nconfirmed_public: true\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def drafted(cells: dict[str, list[str]]) -> tuple[dict, str]:
    """The columns of a draft of these cells, and its text."""
    pd.DataFrame(cells).to_csv("t.csv", index=False)
    Path("s.yaml").unlink(missing_ok=True)
    assert command("schema", "t.csv", "output=s.yaml") == 0
    text = Path("s.yaml").read_text()
    return yaml.safe_load(text)["columns"], text


def checked(capsys, cells: dict[str, list[str]], declared: str | None = None, *more: str) -> dict:
    """The look of `check`, under these columns, or under the draft."""
    if declared is None:
        drafted(cells)
    else:
        pd.DataFrame(cells).to_csv("t.csv", index=False)
        Path("s.yaml").write_text(f"{SCHEMA}columns: {{{declared}}}\n")
    capsys.readouterr()
    assert command("check", "data.path=t.csv", "data.schema=s.yaml", "format=json", *more) == 0
    return json.loads(capsys.readouterr().out)


def test_addresses_among_other_words_are_not_drafted_and_are_warned_of_where_they_are_listed(capsys):
    """'call j.smith@mail.example', of ten persons, was listed, called ok, and released in schema.yaml."""
    notes = ["call j.smith@mail.example", "IBAN GB29NWBK60161331926819", "paid", "3 pcs @ 4.50", "2@3.50"]
    cells = {"note": [*notes, *notes[2:], *notes[2:]] * 60}
    columns, text = drafted(cells)
    assert sorted(columns["note"]["values"]) == sorted(notes[2:])
    assert "smith" not in text and "NWBK" not in text and "or that hold e-mail addresses" in text
    look = checked(capsys, cells, f"note: {{kind: categorical, values: {json.dumps(notes)}}}")["columns"]["note"]
    assert look["status"] == "warning" and look["hints"][0].startswith("2 of the 5 listed texts hold e-mail addresses")


def test_thousands_beside_ones_are_warned_of(capsys):
    """31.5 beside 31500: the mean income was wrong by a tenth, and the column was called ok."""
    cells = {"income": [f"{20 + i % 20}.5" if i % 9 == 0 else f"{20000 + 7 * i}" for i in range(900)]}
    declared = "income: {kind: float, min: 0, max: 50000, bins: {count: 5}}"
    look = checked(capsys, cells, declared)["columns"]["income"]
    assert look["status"] == "warning" and "two units, thousands beside ones?" in look["hints"][0]


@pytest.mark.parametrize(
    ("odd", "every", "asked"), [("31.12.99", 30, True), ("01.01.00", 30, True), ("31.12.99", 300, False)]
)
def test_an_end_of_the_days_that_lies_apart_and_that_many_rows_hold_is_asked_about(odd, every, asked, capsys):
    """31.12.99 of payments of 2024 is 1999: it was called ok, and the draft's bounds went back 25 years."""
    days = [f"{d:%d.%m.%y}" for d in pd.date_range("2024-01-01", periods=360)] * 4
    cells = {"paid": [odd if i % every == 0 else day for i, day in enumerate(days)]}
    hints = checked(capsys, cells)["columns"]["paid"]["hints"]
    n = sum(day == odd for day in cells["paid"])
    assert ([h for h in hints if "a gap?" in h] == [f'{odd} ({n} times): a gap? missing: ["{odd}"]']) is asked, hints


def test_a_word_among_ids_of_digits_is_asked_about_as_no_id(capsys):
    """220 owners called TBC were one person, of whom 12 records count; 9999999 was asked about."""
    cells = {"who": [f"7{i % 90:09}" for i in range(300)] + ["TBC"] * 40, "sex": ["F", "M"] * 170}
    own = ("privacy.unit=who", "privacy.max_records=5")
    said = "\n".join(checked(capsys, cells, "sex: {kind: categorical, values: [F, M]}", *own)["hints"])
    assert "'tbc' is the id of 40 records" in said
    names = cells | {"who": [("anna", "bob", "a1")[i % 3] for i in range(340)]}
    assert "is it none?" not in str(checked(capsys, names, "sex: {kind: categorical, values: [F, M]}", *own)["hints"])
