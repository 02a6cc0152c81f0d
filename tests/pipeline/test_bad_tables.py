"""Tables that do not fit: scoring never clips, says what it saw, and a metric that cannot be computed says why."""

import json
from pathlib import Path

import pandas as pd
import pytest

from tests.pipeline.conftest import TOWN, command, people

SCORE = ["real=town.csv", "synthetic=made.csv", "schema=town.yaml", "output=scores.json"]
CHEAP = "metrics=[mgd,tvd,density,sprint2,anita_1way]"
ROLES = ["evaluation.time=sex", "evaluation.segment=job"]


def score(real: pd.DataFrame, made: pd.DataFrame, *settings: str) -> dict:
    """Both frames as files, scored."""
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
    assert command("run", *TOWN, *settings) == 0
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
    said = json.dumps(found["metrics"]["anita_privacy"]["details"])
    assert "overlap" in said
    assert "overlap" in capsys.readouterr().out
    assert found["metrics"]["tvd"]["score"] is not None


def test_metrics_without_the_columns_they_need_say_which_and_touch_no_other(town):
    found = score(all_alike(), all_alike(), "metrics=[ncript,sprint3,gini,anita_sequences,anita_privacy,tvd]")[
        "metrics"
    ]
    assert "evaluation.time=COLUMN" in found["ncript"]["reason"]
    assert "evaluation.to=COLUMN" in found["sprint3"]["reason"]
    assert "evaluation.income=COLUMN" in found["gini"]["reason"]
    assert "evaluation.subject=COLUMN" in found["anita_sequences"]["reason"]
    assert "holdout=TABLE" in found["anita_privacy"]["reason"]
    assert found["tvd"]["score"] == 0
