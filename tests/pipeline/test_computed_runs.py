"""A column that is computed from others, through every command: written, scored, verified, never measured."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pipeline
from mechanisms.public.errors import UserError
from pipeline.release_folder import read_release
from tests.pipeline.conftest import PAIRS, command, done_in, reply

SCHEMA = """
name: stays
confirmed_public: true
columns:
  ward: {kind: categorical, values: [icu, surgery], missing: false}
  admitted: {kind: date, min: 2024-01-01, max: 2024-12-31, bins: month, missing: false}
  nights: {kind: integer, min: 0, max: 30, bins: {count: 6}}
  discharged: {kind: date, min: 2024-01-01, max: 2025-01-31, bins: month}
derive: {discharged: {expression: admitted + nights}}
"""
SETTINGS = ["data=table", "data.path=stays.csv", "data.schema=stays.yaml"]


def stays(rows: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    admitted = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 366, rows), unit="D")
    nights = rng.integers(0, 31, rows)
    ward = np.where(nights > 9, "icu", "surgery")
    left = admitted + pd.to_timedelta(nights, unit="D")
    return pd.DataFrame({"ward": ward, "admitted": admitted, "nights": nights, "discharged": left})


def kept(table: pd.DataFrame) -> bool:
    days = (pd.to_datetime(table.discharged) - pd.to_datetime(table.admitted)).dt.days
    return bool((days.fillna(-1) == table.nights.fillna(-1)).all())


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stays")
    table = stays()
    table.loc[:59, "discharged"] = pd.Timestamp("2024-12-31")
    table.to_csv(folder / "stays.csv", index=False)
    (folder / "stays.yaml").write_text(SCHEMA, encoding="utf-8")
    own = ["privacy.epsilon=5", "evaluation.metrics=[anita_1way]", "hydra.run.dir=out"]
    return done_in(folder, "run", *SETTINGS, *PAIRS, *own)


@pytest.fixture
def folder(done: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(done)
    return done


def test_the_release_keeps_to_the_rule_nothing_of_the_column_was_measured_and_scores_know_its_values(folder) -> None:
    assert kept(pd.read_csv("out/release/synthetic.csv"))
    _, _, measurements = read_release(Path("out/release"))
    assert not any("discharged" in a.clique for a in measurements.answers)
    assert command("verify", "from=out/release") == 0
    numbers = {n["column"]: n for n in json.loads(Path("out/internal/scores.json").read_text())["numbers"]}
    assert numbers["discharged"]["synthetic"]["mean"] > numbers["admitted"]["synthetic"]["mean"]
    assert "discharged" in Path("out/internal/figures.json").read_text()


def test_check_counts_the_rows_that_break_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = reply(capsys, "check", *SETTINGS[1:]).out
    assert "derive 'discharged': " in said and "of the rows hold another value than it says" in said


def test_new_rows_keep_to_it_and_a_condition_on_it_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("synth", "from=out/release", "rows=40", "where={ward: icu}", "output=more") == 0
    assert kept(pd.read_csv("more/release/synthetic.csv"))
    assert command("synth", "from=out/release", "where={discharged: '2024-02-01'}", "output=none") == 1
    assert "conditions on admitted, nights" in capsys.readouterr().err
    assert command("query", "from=out/release", "marginal=[discharged]") == 1
    assert "ask about the columns that it is made from" in capsys.readouterr().err


def test_frames_go_in_and_come_out(folder: Path) -> None:
    settings = {"epsilon": 5, "quiet": True, "selection": "oneway"}
    release = pipeline.fit(stays(), "stays.yaml", **settings)
    release.save("saved")
    for own in (release, pipeline.load("saved")):
        made = own.sample(60)
        assert len(made) == 60 and kept(made) and list(made) == list(stays())
        with pytest.raises(UserError, match="computed after rows are drawn"):
            own.sample(5, where={"discharged": "2024-02-01"})


def test_a_rehearsal_keeps_to_it(folder: Path) -> None:
    own = ["plan.rows=50", "evaluation.enabled=false", "hydra.run.dir=again"]
    assert command("rehearse", SETTINGS[0], SETTINGS[2], *PAIRS, *own) == 0
    assert kept(pd.read_csv("again/rehearsal.csv"))
