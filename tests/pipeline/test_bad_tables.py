"""Scores of tables that do not fit or hold next to nothing, and of values: nothing is clipped, and a run agrees."""

import json
import resource
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pipeline
from mechanisms.public.errors import UserError
from pipeline.scores import scored_tables
from tests.pipeline.conftest import TOWN, command, people, reply

SCORE = ["real=town.csv", "synthetic=made.csv", "schema=town.yaml", "output=scores.json"]
CHEAP = "metrics=[mgd,tvd,density,sprint2,anita_1way]"
ROLES = ["evaluation.time=sex", "evaluation.segment=job"]


def score(real: pd.DataFrame, made: pd.DataFrame, *settings: str) -> dict:
    real.to_csv("town.csv", index=False)
    made.to_csv("made.csv", index=False)
    assert command("score", *SCORE, *(settings or (CHEAP, *ROLES))) == 0
    return json.loads(Path("scores.json").read_text())


def all_alike(rows: int = 100, **columns: object) -> pd.DataFrame:
    return pd.DataFrame({"age": [95] * rows, "sex": "f", "job": "baker"}).assign(**columns)


def one_way(found: dict, name: str) -> float:
    return next(m["aemc"] for m in found["mgd"]["marginals"] if m["attributes"] == [name])


def test_a_value_outside_the_schema_is_a_cell_of_its_own_that_no_mass_reaches(town):
    found = score(all_alike(), all_alike(age=140), "metrics=[mgd,tvd]")
    assert one_way(found, "age") == pytest.approx(2 * (100 - 2) / 100)  # clipped it were 0, moved at most 1
    assert found["tvd"]["1-way"]["max"] == 1
    same = score(all_alike(age=140), all_alike(age=140), "metrics=[mgd,tvd]")
    assert one_way(same, "age") == 0 and same["tvd"]["1-way"]["max"] == 0


def test_what_the_schema_does_not_place_is_counted_and_listed(town, capsys):
    made = pd.concat([all_alike(50), all_alike(5, age=140), all_alike(2, age="old"), all_alike(1, sex="x")])
    found = score(all_alike(), made, "metrics=tvd", "report=report.html")
    said = found["unplaced"]["synthetic"]
    assert said["outside"] == {"age": 5, "sex": 1} and said["no_value"] == {"age": 2}
    assert said["values"] == {"age": {"140": 5, "old": 2}, "sex": {"x": 1}}
    assert found["unplaced"]["real"]["values"] == {}
    assert "synthetic: column 'age': 5 of 58 values are outside the schema" in " ".join(capsys.readouterr().err.split())
    report = Path("report.html").read_text()
    assert "outside the schema" in report and "140" in report


def test_other_is_the_cell_that_a_schema_declares_for_values_outside(town):
    found = score(all_alike(job="nun"), all_alike(job="other"), "metrics=tvd")
    assert found["tvd"]["1-way"]["max"] == 0
    assert found["unplaced"]["real"]["outside"] == {"job": 100}


def test_a_column_that_refuses_is_scored_all_the_same(town):
    schema = town / "town.yaml"
    schema.write_text(schema.read_text().replace("max: 99,", "max: 99, outside: refuse,"))
    assert score(all_alike(), all_alike(age=140), "metrics=tvd")["tvd"]["1-way"]["max"] == 1


def test_a_run_scores_its_table_against_the_values_that_it_clipped(town):
    people(600).assign(age=140).to_csv("town.csv", index=False)
    settings = ["hydra.run.dir=out", "evaluation.metrics=[tvd]", "evaluation.holdout=0.2", "data.max_unplaced=1"]
    assert command("run", *TOWN, *settings, "selection=oneway", "synthesis=independent") == 0
    found = json.loads((town / "out" / "internal" / "scores.json").read_text())
    assert found["tvd"]["1-way"]["max"] == 1


def test_tables_without_a_common_value_get_the_worst_scores(town):
    found = score(all_alike(), all_alike(age=5, sex="m", job="clerk"))
    scores = {name: m["score"] for name, m in found["metrics"].items()}
    assert scores["tvd"] == 1 and scores["sprint2"] == 0 and scores["density"] == pytest.approx(0, abs=1e-6)
    assert scores["mgd"] > 0.9
    # Quantiles of a constant column are one bucket that holds every number (Platzer 2020).
    assert scores["anita_1way"] == pytest.approx(1 / 3)


def test_columns_of_another_type_are_values_outside_and_gaps_are_no_values(town):
    made = all_alike(age=None, sex=1.5)
    found = score(all_alike(), made)
    assert found["unplaced"]["synthetic"]["no_value"] == {"age": 100}
    assert found["unplaced"]["synthetic"]["outside"] == {"sex": 100}
    assert found["tvd"]["1-way"]["max"] == 1
    assert all(m["score"] is not None or m["reason"] for m in found["metrics"].values())


def test_a_holdout_that_overlaps_the_training_records_is_warned_about(town, capsys):
    unlike = people(600).assign(age=range(600))
    (town / "town.yaml").write_text((town / "town.yaml").read_text().replace("max: 99, bins: {count: 10}", "max: 599"))
    unlike.tail(200).to_csv("held.csv", index=False)
    found = score(unlike, people(300, seed=2), "metrics=[anita_privacy,tvd]", "holdout=held.csv")
    assert "overlap" in json.dumps(found["metrics"]["anita_privacy"]["details"])
    assert "overlap" in capsys.readouterr().out
    assert found["metrics"]["tvd"]["score"] is not None


def test_metrics_without_the_columns_they_need_say_which_and_touch_no_other(town):
    needs = {"ncript": "evaluation.time=COLUMN", "sprint3": "evaluation.to=COLUMN", "gini": "evaluation.income=COLUMN"}
    needs |= {"anita_sequences": "evaluation.subject=COLUMN", "anita_privacy": "holdout=TABLE"}
    found = score(all_alike(), all_alike(), f"metrics=[{','.join(needs)},tvd]")["metrics"]
    assert all(words in found[name]["reason"] for name, words in needs.items()), found
    assert found["tvd"]["score"] == 0


def plain(rows: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"x": rng.normal(size=rows), "n": rng.integers(0, 50, rows), "t": rng.choice(["a", "b"], rows)})


def with_column(column: object, rows: int = 60) -> pd.DataFrame:
    return plain(rows).assign(odd=column)


#: No ids: they do not count the rows.
HALVES = np.arange(60) / 2

ODD = {
    "one row": (plain(50), plain(1)),
    "one real row": (plain(1), plain(50)),
    "one row each": (plain(1), plain(1, 1)),
    "no rows": (plain(50), plain(0)),
    "no real rows": (plain(0), plain(50)),
    "no rows at all": (plain(0), plain(0)),
    "all missing": (with_column(None), with_column(None)),
    "all missing in one": (with_column(HALVES), with_column(None)),
    "constant": (with_column(7), with_column(7)),
    "constant in one": (with_column(7), with_column(HALVES)),
    "everything constant": (plain(60).assign(x=1, n=2, t="a"), plain(60).assign(x=1, n=2, t="a")),
    "numbers and words": (with_column(HALVES), with_column(["word"] * 60)),
    "words and numbers": (with_column(["word", "other"] * 30), with_column(HALVES)),
    "dates and numbers": (with_column(pd.date_range("2020-01-01", periods=60)), with_column(HALVES)),
    "infinite": (with_column([np.inf, -np.inf, 1.0] * 20), with_column([np.nan, 1e308, -1e308] * 20)),
    "flags and words": (with_column([True, False] * 30), with_column(["yes", "maybe"] * 30)),
}


@pytest.mark.some(3)
@pytest.mark.parametrize("kind", ODD)
def test_odd_tables_get_a_score_or_a_reason_and_values_of_another_kind_are_said(kind):
    scored = pipeline.score(*ODD[kind])
    assert kind != "numbers and words" or any("'odd'" in line and "100%" in line for line in scored.notices)
    card = scored.to_json()
    json.dumps(card, allow_nan=False)  # no NaN, nor an infinite one
    for name, metric in card["metrics"].items():
        assert metric["score"] is not None or metric["reason"], name
        assert "failed:" not in metric.get("reason", ""), (name, metric["reason"])


def test_tables_are_scored_on_what_they_share_and_what_is_missing_comes_first(town):
    real = people(300)
    made = people(200, seed=2).drop(columns="job").assign(invented=1)
    made.to_csv("made.csv", index=False)
    for schema in (None, "town.yaml"):
        card = pipeline.score(real, "made.csv", schema)
        assert "'job' is not in synthetic" in card.notices[0]
        assert card.to_json()["first"] == list(card.notices)
        assert card.outcomes["tvd"].score is not None
    assert str(card).index("'job'") < str(card).index("metric")
    alone = made.drop(columns=["sex", "note"])
    assert pipeline.score(real, alone).notices[0] == "not in synthetic, and not scored: 'sex', 'job', 'note'"


def test_tables_that_share_no_column_are_one_clear_error(town, capsys):
    people(20).rename(columns=str.upper).to_csv("other.csv", index=False)
    assert "no column in common" in reply(capsys, "score", "real=town.csv", "synthetic=other.csv", code=1).err
    with pytest.raises(UserError, match="every column is an id"):
        pipeline.score(pd.DataFrame({"id": range(100)}), pd.DataFrame({"id": range(100)}))


@pytest.mark.slow
def test_ten_thousand_columns_are_scored():
    rng = np.random.default_rng(0)
    real, made = (pd.DataFrame(rng.integers(0, 3, (30, 10_000))).add_prefix("c") for _ in range(2))
    most = max(3_000_000, 1 + resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)  # kB, of this process's life
    card = pipeline.score(real, made)
    assert card.outcomes["anita_1way"].score > 0.5
    json.dumps(card.to_json(), allow_nan=False)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < most, "all pairs of columns would take 19 GB"


#: Three bins of the ages; incomes whose largest value means that there is none.
EARNERS = """
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
OF_EARNERS = ["evaluation.group=job", "evaluation.sex=sex", "evaluation.income=income"]
RUN = ["run", "data=table", "data.path=town.csv", "data.schema=town.yaml", "hydra.run.dir=out", "privacy.epsilon=100"]
RUN += ["selection=oneway", "synthesis=independent"]  # cheap


def earners(rows, seed):
    rng = np.random.default_rng(seed)
    sex = np.where(rng.random(rows) < 0.4, "f", "m")
    age = np.minimum(rng.integers(0, 100, rows), 99 - 20 * (sex == "f"))
    income = np.where(rng.random(rows) < 0.2, 999_998, (rng.exponential(500, rows) * (1 + age)).astype(int))
    job = rng.choice(["baker", "smith", "clerk"], rows)
    return pd.DataFrame({"age": age, "sex": sex, "job": job, "income": income})


@pytest.fixture
def earning(folder):
    earners(800, 1).to_csv("town.csv", index=False)
    (folder / "town.yaml").write_text(EARNERS, encoding="utf-8")
    return folder


def scores_of(path):
    return json.loads(path.read_text(encoding="utf-8"))


def of_metrics(card):
    return {name: metric["score"] for name, metric in card["metrics"].items()}


@pytest.mark.slow
def test_a_run_and_score_agree_about_the_same_files(earning):
    assert command(*RUN, METRICS_OF_VALUES, *OF_EARNERS) == 0
    files = ["real=town.csv", "synthetic=out/release/synthetic.csv", "schema=out/release/schema.yaml"]
    assert command("score", *files, "output=again.json", METRICS_OF_VALUES, *OF_EARNERS) == 0
    own, again = scores_of(earning / "out" / "internal" / "scores.json"), scores_of(earning / "again.json")
    assert None not in of_metrics(own).values()
    assert of_metrics(own) == of_metrics(again)
    # A fifth of the incomes are one value; the release spreads them over the bin that it lies in.
    worst = own["metrics"]["anita_1way"]["details"]["worst"][0]
    assert worst["attributes"] == ["income"] and worst["tvd"] > 0.15


def test_with_a_holdout_both_parts_of_the_real_rows_are_values(earning):
    asked = "evaluation.metrics=[anita_1way,anita_privacy]"
    assert command(*RUN, asked, "evaluation.holdout=0.5") == 0
    card = scores_of(earning / "out" / "internal" / "scores.json")
    own = pd.read_csv(earning / "town.csv")
    shares = card["privacy"]["training_rows_in_the_synthetic_table"]
    made = set(map(tuple, pd.read_csv(earning / "out" / "release" / "synthetic.csv")[list(own)].to_numpy().tolist()))
    matched = sum(row in made for row in map(tuple, own.to_numpy().tolist()))
    theirs = card["privacy"]["holdout_rows_in_the_synthetic_table"]
    assert shares["count"] + theirs["count"] == matched
    assert card["metrics"]["anita_privacy"]["score"] is not None


def test_so_many_cells_that_metrics_read_codes_are_said(earning, monkeypatch):
    monkeypatch.setattr(scored_tables, "MOST_CELLS", 800)
    assert command(*RUN, METRICS_OF_VALUES, *OF_EARNERS) == 0
    card = scores_of(earning / "out" / "internal" / "scores.json")
    assert card["first"][0] == f"{scored_tables.ON_CODES}the tables have more than 800 cells"
    assert [line.partition(":")[0] for line in card["first"][1:]] == ["means, and so totals, far from the real ones"]
    assert card["metrics"]["correlation"]["score"] is not None
    assert "read the schema" in (earning / "out" / "internal" / "report.html").read_text(encoding="utf-8")
