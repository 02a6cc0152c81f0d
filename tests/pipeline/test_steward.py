"""The way of a hospital's data steward, with a table as messy as they come: draft, check, rehearse, release."""

from __future__ import annotations

import difflib
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mechanisms.public.schema.table_schema import load_schema
from pipeline.look.rehearse import write_rows
from tests.pipeline.conftest import TOWN, command, statement_of
from tests.pipeline.messy_hospital import WARDS, messy_hospital, write_messy_hospital

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
    derive = {"ward_code": {"from": "ward", "map": dict(zip(WARDS, [f"W0{i}" for i in range(1, 8)], strict=True))}}
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


def test_a_person_changes_at_most_ten_lines(home):
    before, after = ((home / n).read_text(encoding="utf-8").splitlines() for n in ("draft.yaml", "my.yaml"))
    changed = [line for line in difflib.ndiff(before, after) if line.startswith("+ ")]
    assert 3 <= len(changed) <= 10


def test_the_check_is_content_and_a_rehearsal_goes_the_whole_way(home, capsys, monkeypatch):
    monkeypatch.chdir(home)
    assert command("check", "data.path=messy.csv", "data.schema=my.yaml", *UNIT, "format=json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert {n: c["lost"] for n, c in facts["columns"].items() if c["lost"]} == {}
    ledger = ["budget.ledger=book.json", "budget.limit={epsilon: 1, delta: 1e-6}", "budget.accountant=zcdp"]
    assert command("rehearse", "data.schema=my.yaml", *UNIT, *QUICK, *ledger, "hydra.run.dir=rehearsal") == 0
    said = capsys.readouterr().out
    assert said.startswith("a rehearsal on 1,000 made-up rows: it tries the path, and says nothing about quality")
    assert "the path works: every column was read and written" in said
    assert "NOT PRIVATE" in said and not (home / "book.json").exists()
    rows = pd.read_csv(home / "rehearsal" / "rehearsal.csv", dtype=str, keep_default_na=False)
    assert len(rows) == 1000 and rows["patient_id"].value_counts().max() <= 3
    assert statement_of(home / "rehearsal")["private"] is False
    assert command("rehearse", "data.schema=my.yaml", *UNIT, *QUICK, "hydra.run.dir=rehearsal") == 1
    assert command("rehearse", "data.schema=my.yaml", "data.path=messy.csv") == 1


def test_a_rehearsal_frightens_nobody_and_scores_nothing_unless_asked(town, capsys):
    fast = ["rehearse", "data.schema=town.yaml", "selection=oneway", "synthesis=independent", "plan.rows=50"]
    assert command(*fast, "hydra.run.dir=plain") == 0
    said = capsys.readouterr()
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
        assert command(*rehearsal, *wrong) == 1
        assert "error: " in capsys.readouterr().err
        assert [p for p in sorted(town.rglob("*")) if p not in before and p.is_file()] == [], wrong


def test_the_release_holds_what_the_table_held(home, capsys, monkeypatch):
    monkeypatch.chdir(home)
    given = ["data=table", "data.path=messy.csv", "data.schema=my.yaml", *UNIT, *QUICK, "synthesis=independent"]
    assert command("run", *given, "privacy.epsilon=4", "privacy.delta=1e-6", "hydra.run.dir=out") == 0
    last = capsys.readouterr().out
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
    codes = dict(zip(WARDS, [f"W0{i}" for i in range(1, 8)], strict=True))
    assert (synthetic["ward_code"] == synthetic["ward"].map(codes)).all()
    held = {e["clique"][0] for e in statement_of(home / "out")["events"]}
    assert not held & {"fax", "hospital", "ward_code"}


def test_rows_from_a_schema_break_no_rule(home, tmp_path):
    schema = load_schema(home / "my.yaml")
    write_rows(tmp_path / "rows.csv", schema, 500, column=None, most=1, rng=np.random.default_rng(2))
    rows = pd.read_csv(tmp_path / "rows.csv", dtype=str, keep_default_na=False)
    codes = dict(zip(WARDS, [f"W0{i}" for i in range(1, 8)], strict=True))
    assert (rows["ward_code"] == rows["ward"].map(codes)).all()
    assert 0 < (rows["sex"] == "-999").mean() < 0.15 and set(rows["sex"]) == {"F", "M", "-999"}
