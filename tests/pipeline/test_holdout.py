"""Units set aside before anything is counted, by secret coins, in runs and challenges; and scores with a holdout."""

import json

import numpy as np
import pandas as pd
import pytest

import pipeline
from mechanisms.public.release_files import load_measurements
from mechanisms.public.schema.table_schema import load_schema
from mechanisms.public.tables.scan import open_table
from mechanisms.public.units import Neighbouring
from mechanisms.sensitive.contribution import Aside, PrivacyUnit
from mechanisms.sensitive.engines.duckdb_engine import aside_rows
from mechanisms.sensitive.private_table import load_private
from pipeline.conf_folder import CONF
from pipeline.settings.config import load_config, schema_path
from pipeline.settings.scoring import build_scores, known_role_names
from tests.pipeline.conftest import TOWN, command, people, reply, statement_of, worded

UNIT = ["privacy.unit=person", "privacy.max_records=2"]
KEY = b"k" * 32


def private(folder, unit, *, key=KEY, share=0.3, name="w"):
    work = folder / name
    work.mkdir(mode=0o700)
    source = open_table(folder / "town.csv", workdir=work, memory_limit_bytes=1 << 30, threads=1)
    return load_private(source, load_schema(folder / "town.yaml"), unit, workdir=work, key=key, holdout=share)


def test_whole_units_are_set_aside_by_coins_of_their_id_and_the_key_alone_and_none_of_their_records_count(town):
    ids = people(600)["person"]
    first = private(town, PrivacyUnit("person", 20))
    aside = set(ids[first.aside])
    assert not aside & set(ids[~first.aside])
    assert first.coded.rows == (~first.aside).sum()
    assert 0.15 < len(aside) / ids.nunique() < 0.45
    people(600).iloc[::-1].iloc[:400].to_csv(town / "town.csv", index=False)
    again = private(town, PrivacyUnit("person", 20), name="w2")
    other = ids.iloc[::-1].iloc[:400]
    assert set(other[again.aside]) == set(other) & aside
    third = private(town, PrivacyUnit("person", 20), key=b"z" * 32, name="w3")
    assert set(other[third.aside]) != set(other[again.aside])


def test_records_have_coins_of_their_own_where_a_record_is_the_unit_and_their_number_is_no_public_fact(town):
    """A record in another's place has a coin of its own: were the number public, it would tell the two tables apart."""
    table = private(town, PrivacyUnit(), share=0.5)
    assert 220 < table.aside.sum() < 380
    assert table.coded.rows == 600 - table.aside.sum()
    assert np.abs(np.diff(table.aside.astype(int))).sum() > 200  # no runs
    assert table.public_rows(Neighbouring.REPLACE) is None
    assert private(town, PrivacyUnit(), share=None, name="w2").public_rows(Neighbouring.REPLACE) == 600


def test_a_row_without_an_id_is_set_aside_alone_or_never(town):
    people(600).assign(person=None).to_csv(town / "town.csv", index=False)
    own = private(town, PrivacyUnit("person", 1, missing="own"), share=0.5)
    assert 220 < own.aside.sum() < 380
    dropped = private(town, PrivacyUnit("person", 1, missing="drop"), name="w2")
    assert not dropped.aside.any()
    assert dropped.coded.rows == 0


def test_statement_and_ledger_say_who_was_set_aside_and_no_budget_changes(town, capsys):
    assert command("run", *TOWN, *UNIT, "evaluation.holdout=0.25", "hydra.run.dir=out") == 0
    said = worded(town / "out" / "release")
    assert "probability 0.25" in said["holdout"] and "no amplification" in said["holdout"]
    assert said["spent"]["epsilon"] > 0.999
    assert [e["sensitivity"] for e in said["events"] if ":given:" in e["id"]] == [2.0, 2.0, 2.0]
    assert command("verify", "out/release") == 0  # those of residuals, which may be below C, from their matrices
    first = json.loads((town / "out" / "internal" / "ledger.jsonl").read_text().splitlines()[0])
    assert first["holdout"] == said["holdout"]
    assert "0.25 of the units were set aside" in capsys.readouterr().out
    release, factor = pipeline.load("out/release"), "1/(1 − 0.25) = 1.333 times as large"
    answers = [
        release.count({"job": "baker"}),
        release.marginal("job"),
        release.estimate("count", "job", value="baker"),
        release.bounds(["job"]),
        pipeline.query("out/release", where={"job": "baker"}),
        pipeline.bounds("out/release", marginal=["job"]),
    ]
    assert all(factor in answer.attrs["notes"][-1] for answer in answers)
    clipped = "of the records as clipping left them: at most 2 of a unit count"
    assert all(answer.attrs["notes"].count(clipped) == 1 for answer in answers)
    printed = reply(capsys, "query", "from=out/release", "marginal=[job]", "format=json")
    assert factor in json.loads(printed.out)["notes"][-1] and factor in printed.err
    scores = json.loads((town / "out" / "internal" / "scores.json").read_text())
    assert scores["rows"]["real"] < 600


@pytest.mark.parametrize(("unit", "drawn"), [(UNIT, "whole units"), ([], "real records with replacement")])
def test_the_floor_of_a_run_draws_whole_units_where_a_person_is_the_unit(town, unit, drawn):
    asked = ["evaluation.metrics=[anita_1way]", "evaluation.references=true", "evaluation.holdout=0.3"]
    assert command("run", *TOWN, *unit, *asked, "hydra.run.dir=out") == 0
    scores = json.loads((town / "out" / "internal" / "scores.json").read_text())
    assert drawn in scores["metrics"]["anita_1way"]["floor"]["note"]


TABLES = ["real=town.csv", "synthetic=made.csv", "schema=town.yaml", "output=scores.json"]


def scored(town):
    return json.loads((town / "scores.json").read_text())["metrics"]


def test_score_computes_the_metrics_that_are_named_and_each_has_the_documented_form(town):
    people(500, seed=2).to_csv("made.csv", index=False)
    people(300, seed=3).to_csv("held.csv", index=False)
    settings = ["metrics=[anita_privacy,tstr,anita_2way]", "holdout=held.csv", "evaluation.predict=[sex]"]
    assert command("score", *TABLES, *settings, "evaluation.references=true") == 0
    found = scored(town)
    assert list(found) == ["anita_privacy", "tstr", "anita_2way"]
    for metric in found.values():
        assert {"score", "title", "goal", "range", "perfect", "reference", "source", "details"} <= metric.keys()
        assert metric["score"] is not None
    assert 0.9 < found["anita_2way"]["floor"]["value"] <= 1
    assert "sample of the real rows" in found["anita_2way"]["as_good_as"]
    assert found["anita_privacy"]["details"]["rows"]["holdout"] == 300


def test_subjects_are_read_from_both_files_and_their_absence_is_said(town):
    people(500, seed=2).to_csv("made.csv", index=False)
    settings = ["metrics=[anita_sequences]", "evaluation.subject=person"]
    assert command("score", *TABLES, *settings) == 0
    assert scored(town)["anita_sequences"]["score"] > 0.5
    people(500, seed=2).drop(columns="person").to_csv("made.csv", index=False)
    assert command("score", *TABLES, *settings) == 0
    assert "synthetic table has no column 'person'" in scored(town)["anita_sequences"]["reason"]


def test_the_ready_tables_declare_roles_that_their_schemas_know():
    for name in sorted(p.stem for p in (CONF / "data").glob("*.yaml") if p.stem != "table"):
        config = load_config([f"data={name}"])
        schema = load_schema(schema_path(config.data.schema))
        spec = build_scores(config.evaluation, schema, config.data.roles)
        for role, column in (config.data.roles or {}).items():
            assert role == "subject" or column in schema.domain, (name, role)
            assert role in known_role_names()
        assert ("pie_chart" in spec.metrics) == {"time", "segment", "kind"}.issubset(config.data.roles or {})


def test_privacy_is_the_first_line_whatever_the_metrics_are(town, capsys):
    people(500, seed=2).to_csv("made.csv", index=False)
    people(300, seed=3).to_csv("held.csv", index=False)
    assert command("score", *TABLES, "metrics=[tvd]", "holdout=held.csv", "report=report.html") == 0
    assert capsys.readouterr().out.startswith("privacy: not judged: rows repeat by nature")
    privacy = json.loads((town / "scores.json").read_text())["privacy"]
    assert privacy["verdict"] == "not judged" and privacy["rows"] == {"training": 600, "synthetic": 500, "holdout": 300}
    page = (town / "report.html").read_text()
    assert page.index('id="privacy"') < page.index('id="scores"')
    assert "training rows that stand in the synthetic table" in page
    (town / "scores.json").unlink()
    (town / "report.html").unlink()
    assert reply(capsys, "score", *TABLES, "metrics=[tvd]").out.startswith("privacy: not judged: there is no holdout")


OWN = ["experiment=anita_tradeoff", *TOWN, "experiment.holdout=0.5", "selection=oneway", "synthesis=independent"]
OWN += ["experiment.metrics=[anita_1way]", "experiment.floors=false", "experiment.repeats=1"]


def noisy_counts(folder):
    return np.concatenate([a.values for a in load_measurements(folder / "release" / "measurements").answers])


@pytest.mark.parametrize("neighbouring", ["add_remove", "replace"])
def test_one_row_more_moves_every_answer_of_a_challenge_by_one_at_most(neighbouring, town):
    tight = ["experiment.epsilons=[3000]", "seed=5", f"privacy.neighbouring={neighbouring}"]
    assert command("run", *OWN, *tight, "hydra.run.dir=without") == 0
    people(600).iloc[:-1].to_csv(town / "town.csv", index=False)
    assert command("run", *OWN, *tight, "hydra.run.dir=with") == 0
    one, other = (noisy_counts(town / name / "epsilon-3000") for name in ("without", "with"))
    assert np.abs(one - other).max() < 1.5  # noise far below one record


def test_each_release_of_a_challenge_says_what_was_set_aside(town):
    assert command("run", *OWN, "experiment.epsilons=[1,2]", "hydra.run.dir=out") == 0
    for name in ("epsilon-1", "epsilon-2"):
        said = statement_of(town / "out" / name)
        assert said["private"] is True
        assert said["holdout"] == 0.5
    keys = {(town / "out" / n / "internal" / "manifest.json").read_text() for n in ("epsilon-1", "epsilon-2")}
    assert len(keys) == 2
    assert command("run", *OWN, "experiment.epsilons=[1]", "experiment.holdout=0", "hydra.run.dir=all") == 0
    assert statement_of(town / "all" / "epsilon-1")["holdout"] == "none"


def test_a_challenge_scores_against_the_rows_that_its_release_was_made_from(town):
    codes = ["experiment.metrics=[mgd]", "evaluation.k=[1]", "evaluation.delta=0"]  # values lie anywhere in their bins
    assert command("run", *OWN, *codes, "experiment.epsilons=[5000]", "hydra.run.dir=out") == 0
    rows = json.loads((town / "out" / "internal" / "experiment.json").read_text())["rows"]
    assert rows[0]["score"] < 0.02  # without noise, one-way marginals of the same half agree


@pytest.mark.parametrize("column", [None, "person"])
@pytest.mark.parametrize("missing", ["drop", "own"])
def test_the_coins_thrown_again_are_those_of_the_run(column, missing, town):
    frame = people(600)
    frame.loc[::7, "person"] = np.nan
    frame.to_csv("town.csv", index=False)
    unit = PrivacyUnit(column, 1 if column is None else 5, missing=missing)
    thrown = private(town, unit, share=0.4).aside
    source = open_table(town / "town.csv", workdir=town / "w", memory_limit_bytes=10**9, threads=1)
    again = aside_rows(source, unit, Aside(KEY, 0.4), workdir=town / "w")
    assert thrown is not None and (again == thrown).all()
    if column is not None:
        shares = pd.Series(again).groupby(frame["person"]).mean()
        assert set(shares) == {0.0, 1.0}
