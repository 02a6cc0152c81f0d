"""Tables that contradict what their schema says of persons: runs are total, `check` tells, and nobody is pooled."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.pipeline.conftest import command

SCHEMA = """name: stays
source: invented for a test
confirmed_public: true
columns:
  sex: {kind: categorical, values: [f, m]}
  day: {kind: date, min: 2020-01-01, max: 2020-12-31, bins: {count: 4}}
  ward: {kind: categorical, values: [a, b, c], missing: false}
unit: {column: patient, constant: sex, order: day, records: {max: 4}}
"""
RUN = [
    *("data=table", "data.path=stays.csv", "data.schema=stays.yaml", "selection=oneway", "synthesis=independent"),
    *("privacy.delta=1e-6", "privacy.epsilon=20", "evaluation.enabled=false", "data.max_unplaced=1"),
]
TWO = ["data.units.path=patients.csv", "data.units.id=patient"]


def stays(**columns: object) -> pd.DataFrame:
    """400 rows of 200 persons, of whom each has two, with some columns in the place of the usual ones."""
    n = np.arange(400)
    days = pd.Series(pd.to_datetime("2020-01-01") + pd.to_timedelta(n % 365, unit="D")).dt.date
    usual = {"patient": [f"p{i // 2}" for i in n], "sex": np.where(n // 2 % 2, "f", "m"), "day": days}
    return pd.DataFrame({**usual, "ward": np.array(["a", "b", "c"])[n % 3], **columns})


N = np.arange(400)
#: A name → the table, and words that `check` says of it.
ODD: dict[str, tuple[pd.DataFrame, list[str]]] = {
    "ids that are null": (
        stays(patient=[["", "NA", "  ", f"p{i // 8}"][i % 4] for i in N]),
        ["50 units", "300 rows without an id, which do not count"],
    ),
    "constants that contradict everywhere": (
        stays(sex=np.where(N % 2, "f", "m")),
        ["'sex' has several values in 200 of the 200 persons", "is it constant? if not"],
    ),
    "an order that is missing": (stays(day=""), ["100.0 % of the rows (400) have no value of 'day'"]),
    "an order that is tied": (stays(day="2020-02-29"), ["rows with the same place as the one before, by day: 200"]),
    "persons beyond C": (stays(patient=[f"p{i // 40}" for i in N]), ["persons with more than 4 records: 10"]),
    "one record a person": (stays(patient=[f"p{i}" for i in N]), ["no id repeats: one record a person"]),
    "one person in all": (stays(patient="p"), ["all rows are one person's"]),
    "no id at all": (stays(patient=""), ["0 units", "400 rows without an id"]),
    "no row": (stays().head(0), []),
}


@pytest.fixture
def clinic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("stays.yaml").write_text(SCHEMA)
    return tmp_path


def check_whole(frame: pd.DataFrame) -> None:
    each = frame.groupby("patient", dropna=False)
    assert not len(frame) or (each.size().max() <= 4 and (each.sex.nunique() <= 1).all())


@pytest.mark.parametrize("name", ODD)
def test_a_run_takes_rows_as_they_are_and_check_tells(clinic: Path, name: str, capsys) -> None:
    frame, said = ODD[name]
    frame.to_csv("stays.csv", index=False)
    assert command("check", *RUN[1:3], "data.max_unplaced=1") == 0
    told = " ".join(capsys.readouterr().out.split())
    assert all(words in told for words in said), told
    for missing in ("drop", "own"):
        assert command("run", *RUN, f"privacy.missing_unit={missing}", f"hydra.run.dir={missing}") == 0
        made = pd.read_csv(Path(missing) / "release" / "synthetic.csv")
        check_whole(made)
    if name == "no id at all":  # never one pooled person: as many as there are rows
        assert made.patient.nunique() > 300


def test_ids_that_must_be_there_refuse_the_run_before_any_charge(clinic: Path, capsys) -> None:
    ODD["ids that are null"][0].to_csv("stays.csv", index=False)
    assert command("run", *RUN, "privacy.missing_unit=refuse", "hydra.run.dir=out") == 1
    assert "privacy.missing_unit" in capsys.readouterr().err and not list(Path().glob("out/**/ledger.jsonl"))


def test_a_table_of_units_may_lack_ids_hold_others_and_hold_some_twice(clinic: Path, capsys) -> None:
    stays().drop(columns="sex").to_csv("stays.csv", index=False)
    ids = [*(f"p{i}" for i in range(150)), *(f"p{i}" for i in range(20)), *(f"q{i}" for i in range(30)), "", " "]
    pd.DataFrame({"patient": ids, "sex": ["f"] * 150 + ["m"] * 52}).to_csv("patients.csv", index=False)
    assert command("check", *RUN[1:3], *TWO, "data.max_unplaced=1") == 0
    told = " ".join(capsys.readouterr().out.split())
    for words in (
        "50 units (100 records) have no row: its columns are missing",
        "30 units have a row and no record: they are not read",
        "20 units have several rows: the first one counts",
        "2 rows have no id: they are not read",
    ):
        assert words in told, told
    assert command("run", *RUN, *TWO, "hydra.run.dir=out") == 0
    made = pd.read_csv("out/release/synthetic.csv")
    check_whole(made)
    by_person = made.groupby("patient").sex.first()
    assert by_person.isna().mean() > 0.1 and (by_person == "f").mean() > 0.6  # 150 f, 50 in no table of units


def test_ids_of_others_are_told_whether_they_are_left_out_or_would_be_measured(clinic: Path, capsys) -> None:
    stays(mother=[f"p{i // 3}" for i in N]).to_csv("stays.csv", index=False)
    assert command("check", *RUN[1:3]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "'mother': 134 of its 134 values are ids of 'patient': who belongs to whom is not measured" in told
    listed = "columns:\n  mother: {kind: categorical, values: [p1, p2], other: other}"
    Path("stays.yaml").write_text(SCHEMA.replace("columns:", listed))
    command("check", *RUN[1:3])
    assert "are ids of 'patient', and it would be measured: leave_out: [mother]" in " ".join(
        capsys.readouterr().out.split()
    )
