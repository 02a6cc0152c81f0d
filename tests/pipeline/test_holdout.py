"""Units set aside by secret coins before anything is counted; verdicts and attacks with a holdout tell copies apart."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pipeline
from mechanisms.public.release_files import load_measurements
from mechanisms.public.schema.table_schema import load_schema
from mechanisms.public.tables.scan import open_table
from mechanisms.public.units import Neighbouring
from mechanisms.sensitive.contribution import Aside, PrivacyUnit, UnitRows
from mechanisms.sensitive.engines.duckdb_engine import aside_rows
from mechanisms.sensitive.private_table import load_private
from pipeline.conf_folder import CONF
from pipeline.load_stage import run_facts
from pipeline.settings.config import load_config, schema_path
from pipeline.settings.scoring import build_scores, role_names
from tests.pipeline.conftest import TOWN, command, people, reply, statement_of, worded

UNIT = ["privacy.unit=person", "privacy.max_records=2"]
KEY = b"k" * 32


def private(folder, unit, *, key=KEY, share=0.3, name="w"):
    work = folder / name
    work.mkdir(mode=0o700)
    source = open_table(folder / "town.csv", workdir=work, memory_limit_bytes=1 << 30, threads=1)
    return load_private(source, load_schema(folder / "town.yaml"), unit, workdir=work, key=key, holdout=share)


def test_each_run_has_a_secret_key_of_its_own_unless_its_noise_is_fixed(town):
    """Who knew the key of another run would know who is set aside, and which records truncation keeps."""

    def key(*settings):
        config = load_config([*TOWN, *settings])
        facts = run_facts(config, load_schema(town / "town.yaml"), config.data)
        return bytes.fromhex(facts["once"]["key"])

    keys = [key() for _ in range(3)]
    assert len({*keys}) == 3 and {len(k) for k in keys} == {32} and bytes(32) not in keys
    assert key("privacy.noise_seed=1") == key("privacy.noise_seed=1") != key("privacy.noise_seed=2")


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
    assert {each["real"]["rows"] for each in scores["numbers"]} == {scores["rows"]["real"]}  # without those set aside
    assert scores["correlations"]["rows"] == scores["rows"]


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
    assert found["anita_privacy"]["details"]["rows"]["holdout"] == 300


def test_subjects_are_read_from_both_files_and_their_absence_is_said(town):
    people(500, seed=2).to_csv("made.csv", index=False)
    settings = ["metrics=[anita_sequences]", "evaluation.subject=person"]
    assert command("score", *TABLES, *settings) == 0
    assert scored(town)["anita_sequences"]["score"] > 0.5
    people(500, seed=2).drop(columns="person").to_csv("made.csv", index=False)
    assert command("score", *TABLES, *settings) == 0
    assert "synthetic table has no column 'person'" in scored(town)["anita_sequences"]["reason"]


@pytest.mark.slow
def test_the_ready_tables_declare_roles_that_their_schemas_know():
    for name in sorted(p.stem for p in (CONF / "data").glob("*.yaml") if p.stem != "table"):
        config = load_config([f"data={name}"])
        schema = load_schema(schema_path(config.data.schema))
        spec = build_scores(config.evaluation, schema, config.data.roles)
        for role, column in (config.data.roles or {}).items():
            assert role == "subject" or column in schema.domain, (name, role)
            assert role in role_names()
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


@pytest.mark.some(2)
@pytest.mark.parametrize("neighbouring", ["add_remove", "replace"])
def test_one_row_more_moves_every_answer_of_a_challenge_by_one_at_most(neighbouring, town):
    tight = ["experiment.epsilons=[3000]", "seed=5", f"privacy.neighbouring={neighbouring}"]
    assert command("run", *OWN, *tight, "hydra.run.dir=without") == 0
    people(600).iloc[:-1].to_csv(town / "town.csv", index=False)
    assert command("run", *OWN, *tight, "hydra.run.dir=with") == 0
    one, other = (noisy_counts(town / name / "epsilon-3000") for name in ("without", "with"))
    assert np.abs(one - other).max() < 1.5  # noise far below one record


@pytest.mark.slow
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


@pytest.mark.slow
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
    again = aside_rows(UnitRows(source, unit, town / "w"), Aside(KEY, 0.4))
    assert thrown is not None and (again == thrown).all()
    if column is not None:
        shares = pd.Series(again).groupby(frame["person"]).mean()
        assert set(shares) == {0.0, 1.0}


ROWS = 3000
ATTACKS = "[tvd,singling_out,linkage,attribute_inference,membership_inference]"


def mixed(rows: int, seed: int) -> pd.DataFrame:
    """Numbers and words that hang together through what nobody sees."""
    rng = np.random.default_rng(seed)
    hidden = rng.random(rows)
    frame = {"wage": np.round(20_000 * np.exp(hidden + rng.normal(0, 0.4, rows))).astype(int)}
    frame["age"] = np.clip(18 + 60 * hidden + rng.normal(0, 8, rows), 18, 90).astype(int)
    for i, values in enumerate((12, 30, 5, 8)):
        noisy = np.clip(hidden + rng.normal(0, 0.25, rows), 0, 0.999)
        frame[f"word{i}"] = [f"w{int(v * values)}" for v in noisy]
    frame["code"] = [f"c{v}" for v in rng.integers(0, 40, rows)]
    return pd.DataFrame(frame)


def clustered(rows: int, seed: int) -> pd.DataFrame:
    """Nine groups, alike inside, with outliers."""
    rng = np.random.default_rng(seed)
    middles = np.random.default_rng(99).integers(0, 100, (9, 8))
    values = middles[rng.integers(0, 9, rows)] + np.round(rng.standard_t(3, (rows, 8)) * 4).astype(int)
    return pd.DataFrame(np.clip(values, -30, 130), columns=[f"v{i}" for i in range(8)])


SCHEMAS = {
    "mixed": {
        "wage": {"kind": "integer", "min": 0, "max": 500_000, "bins": {"count": 50}},
        "age": {"kind": "integer", "min": 18, "max": 90, "bins": {"count": 12}},
        **{
            f"word{i}": {"kind": "categorical", "values": [f"w{v}" for v in range(n)]}
            for i, n in enumerate((12, 30, 5, 8))
        },
        "code": {"kind": "categorical", "values": [f"c{v}" for v in range(40)]},
    },
    "clustered": {f"v{i}": {"kind": "integer", "min": -30, "max": 130, "bins": {"count": 80}} for i in range(8)},
}


def write_schema(columns: dict) -> None:
    facts = {"name": "made", "source": "invented", "confirmed_public": True, "columns": columns}
    Path("made.yaml").write_text(json.dumps(facts), encoding="utf-8")


def with_one_value_changed(real: pd.DataFrame) -> pd.DataFrame:
    """What overfits: each row a training row but for one value, which is another row's."""
    rng = np.random.default_rng(1)
    made, place = real.copy(), rng.integers(0, real.shape[1], len(real))
    for i, name in enumerate(real.columns):
        made[name] = np.where(place == i, rng.permutation(real[name].to_numpy()), real[name])
    return made


@pytest.mark.slow
@pytest.mark.parametrize("family", [mixed, clustered])
def test_copies_overfitting_and_epsilon_1_are_told_apart(family, folder):
    whole = family(3 * ROWS, 5)
    real, holdout, fresh = (whole.iloc[i * ROWS : (i + 1) * ROWS] for i in range(3))
    real.to_csv("real.csv", index=False)
    holdout.to_csv("holdout.csv", index=False)
    write_schema(SCHEMAS[family.__name__])
    data = ["data=table", "data.path=real.csv", "data.schema=made.yaml", "privacy.epsilon=1"]
    assert command("run", *data, "evaluation.enabled=false", "hydra.run.dir=out") == 0
    tables = {
        "copies": pd.concat([real.iloc[: ROWS // 50], fresh.iloc[ROWS // 50 :]]),
        "overfit": with_one_value_changed(real),
        "epsilon": pd.read_csv("out/release/synthetic.csv"),
        "fresh": fresh,
    }
    privacy, auc = {}, {}
    for name, table in tables.items():
        table.to_csv(f"{name}.csv", index=False)
        asked = ["real=real.csv", f"synthetic={name}.csv", "holdout=holdout.csv", "schema=made.yaml"]
        assert command("score", *asked, f"metrics={ATTACKS}", f"output={name}.json") == 0
        scores = json.loads((folder / f"{name}.json").read_text())
        privacy[name] = scores["privacy"]
        auc[name] = scores["metrics"]["membership_inference"]["details"]["attacks"]
    verdicts = {name: p["verdict"] for name, p in privacy.items()}
    assert verdicts.pop("epsilon") != "failed"  # its rows follow from noise, and may be too few matches to be judged
    assert verdicts == {"copies": "failed", "overfit": "failed", "fresh": "passed"}
    assert privacy["copies"]["why"] == "copies of training rows"
    assert auc["overfit"]["distance"]["auc"]["low"] > 0.6
    for name in ("epsilon", "fresh"):
        assert all(a["auc"]["low"] <= 0.55 and a["auc"]["high"] < 0.62 for a in auc[name].values())


@pytest.mark.slow
def test_a_run_shows_what_its_promise_allows_beside_the_attack(folder, capsys):
    mixed(600, 2).to_csv("real.csv", index=False)
    write_schema(SCHEMAS["mixed"])
    settings = ["data=table", "data.path=real.csv", "data.schema=made.yaml", "evaluation.holdout=0.4"]
    settings += ["privacy.epsilon=1", "evaluation.metrics=[membership_inference]", "console=always"]
    settings += ["selection=oneway", "synthesis=independent"]
    assert command("run", *settings, "hydra.run.dir=out") == 0
    scores = json.loads((folder / "out" / "internal" / "scores.json").read_text())
    bound = scores["metrics"]["membership_inference"]["details"]["bound"]
    assert bound["epsilon"] == pytest.approx(1, abs=0.01)
    assert 0.1 < bound["advantage"] <= 0.463 and 0.5 < bound["auc"] <= 0.732
    page = (folder / "out" / "internal" / "report.html").read_text(encoding="utf-8")
    assert 'id="attacks"' in page and "at most, by ε = 1" in page
    assert "attack, membership by" in capsys.readouterr().out
    assert command("run", *settings, "privacy.neighbouring=replace", "hydra.run.dir=other") == 0
    scores = json.loads((folder / "other" / "internal" / "scores.json").read_text())
    assert "bound" not in scores["metrics"]["membership_inference"]["details"]


def test_the_verdict_of_a_run_reads_values_and_not_bins(folder):
    rng = np.random.default_rng(0)
    pd.DataFrame({"a": rng.integers(0, 10_000, 900), "b": rng.integers(0, 10_000, 900)}).to_csv("real.csv", index=False)
    columns = {name: {"kind": "integer", "min": 0, "max": 9_999, "bins": {"count": 4}} for name in "ab"}
    write_schema(columns)
    settings = ["data=table", "data.path=real.csv", "data.schema=made.yaml", "evaluation.holdout=0.4"]
    settings += ["evaluation.metrics=[tvd]", "selection=oneway", "synthesis=independent"]
    assert command("run", *settings, "hydra.run.dir=out") == 0
    privacy = json.loads((folder / "out" / "internal" / "scores.json").read_text())["privacy"]
    assert privacy["rows"]["training"] + privacy["rows"]["holdout"] == 900
    assert privacy["holdout_rows_that_equal_a_training_row"]["share"] < 0.01
