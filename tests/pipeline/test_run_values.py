"""Metrics of values read in a run what they read of the same files in `score`: the values, not the schema's bins."""

import json

import numpy as np
import pandas as pd
import pytest

from evaluation.metric import Options
from evaluation.metrics import METRICS, ScoreSpec
from evaluation.outcome import compute
from evaluation.references import two_samples
from mechanisms.public.schema.table_schema import load_schema
from mechanisms.public.tables.scan import open_table
from pipeline.scores import score_run
from pipeline.scores.read_values import with_schema
from pipeline.scores.scored_tables import measure_floors
from pipeline.scores.two_tables import encoded
from pipeline.stage_bars import Stages
from tests.pipeline.conftest import command

#: Three bins of the ages; incomes whose largest value means that there is none.
SCHEMA = """
name: town
source: invented for the tests
confirmed_public: true
columns:
  age: {kind: integer, min: 0, max: 99, bins: {count: 3}, missing: false}
  sex: {kind: categorical, values: [f, m], missing: false}
  job: {kind: categorical, values: [baker, smith, clerk], missing: false}
  income: {kind: integer, min: 0, max: 999999, bins: {count: 2}}
"""
METRICS_OF_VALUES = "evaluation.metrics=[tvd,anita_1way,anita_2way,anita_3way,correlation,gini]"
ROLES = ["evaluation.group=job", "evaluation.sex=sex", "evaluation.income=income"]
RUN = ["run", "data=table", "data.path=town.csv", "data.schema=town.yaml", "hydra.run.dir=out", "privacy.epsilon=100"]
RUN += ["selection=oneway", "synthesis=independent"]  # cheap


def people(rows, seed):
    rng = np.random.default_rng(seed)
    sex = np.where(rng.random(rows) < 0.4, "f", "m")
    age = np.minimum(rng.integers(0, 100, rows), 99 - 20 * (sex == "f"))
    income = np.where(rng.random(rows) < 0.2, 999_998, (rng.exponential(500, rows) * (1 + age)).astype(int))
    job = rng.choice(["baker", "smith", "clerk"], rows)
    return pd.DataFrame({"age": age, "sex": sex, "job": job, "income": income})


@pytest.fixture
def town(folder):
    people(800, 1).to_csv("town.csv", index=False)
    (folder / "town.yaml").write_text(SCHEMA, encoding="utf-8")
    return folder


def scores_of(path):
    return json.loads(path.read_text(encoding="utf-8"))


def of_metrics(card):
    return {name: metric["score"] for name, metric in card["metrics"].items()}


def test_a_run_and_score_agree_about_the_same_files(town):
    assert command(*RUN, METRICS_OF_VALUES, *ROLES) == 0
    files = ["real=town.csv", "synthetic=out/release/synthetic.csv", "schema=out/release/schema.yaml"]
    assert command("score", *files, "output=again.json", METRICS_OF_VALUES, *ROLES) == 0
    own, again = scores_of(town / "out" / "internal" / "scores.json"), scores_of(town / "again.json")
    assert None not in of_metrics(own).values()
    assert of_metrics(own) == of_metrics(again)
    # A fifth of the incomes are one value; the release spreads them over the bin that it lies in.
    worst = own["metrics"]["anita_1way"]["details"]["worst"][0]
    assert worst["attributes"] == ["income"] and worst["tvd"] > 0.15


def test_with_a_holdout_both_parts_of_the_real_rows_are_values(town):
    asked = "evaluation.metrics=[anita_1way,anita_privacy]"
    assert command(*RUN, asked, "evaluation.holdout=0.5") == 0
    card = scores_of(town / "out" / "internal" / "scores.json")
    own = pd.read_csv(town / "town.csv")
    shares = card["privacy"]["training_rows_in_the_synthetic_table"]
    made = set(map(tuple, pd.read_csv(town / "out" / "release" / "synthetic.csv")[list(own)].to_numpy().tolist()))
    matched = sum(row in made for row in map(tuple, own.to_numpy().tolist()))
    theirs = card["privacy"]["holdout_rows_in_the_synthetic_table"]
    assert shares["count"] + theirs["count"] == matched
    assert card["metrics"]["anita_privacy"]["score"] is not None


def test_so_many_cells_that_metrics_read_codes_are_said(town, monkeypatch):
    monkeypatch.setattr(score_run, "MOST_CELLS", 800)
    assert command(*RUN, METRICS_OF_VALUES, *ROLES) == 0
    card = scores_of(town / "out" / "internal" / "scores.json")
    assert card["first"][0] == f"{score_run.ON_CODES}the tables have more than 800 cells"
    assert [line.partition(":")[0] for line in card["first"][1:]] == ["means, and so totals, far from the real ones"]
    assert card["metrics"]["correlation"]["score"] is not None
    assert "read the schema" in (town / "out" / "internal" / "report.html").read_text(encoding="utf-8")


def test_floors_of_a_sweep_are_those_of_the_values(town):
    schema = load_schema(town / "town.yaml")
    source = open_table(town / "town.csv", workdir=town, memory_limit_bytes=1 << 30, threads=1)
    values = with_schema({"real": source}, schema, lambda *_: None)
    spec = ScoreSpec(metrics=("tvd", "anita_1way", "correlation"))
    with encoded({"real": town / "town.csv"}, schema, Stages(quiet=True)) as (coded, tables):
        floors = measure_floors(tables["real"], coded, spec, 300, values)
        in_bins = measure_floors(tables["real"], coded, spec, 300)
        for name, real in (("tvd", tables["real"]), ("anita_1way", values.tables["real"])):
            pair = two_samples(real, 300, np.random.default_rng(0))
            expected = compute(METRICS[name], *pair, None, Options()).score
            assert floors["2-way TVD" if name == "tvd" else name] == pytest.approx(expected)
    assert floors["anita_1way"] < in_bins["anita_1way"]
    assert floors["2-way TVD"] == in_bins["2-way TVD"]
