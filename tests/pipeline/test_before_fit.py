"""The Python functions beside `fit`: drafts, plans, rehearsals and scores of frames; what `sample` and `save` take."""

from __future__ import annotations

import datetime
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import pipeline
from evaluation.mgd.geometry import Axis
from mechanisms.public.errors import UserError
from mechanisms.public.schema.table_schema import load_schema
from pipeline import aemc, deep_dive, mgd
from pipeline.frames.frame_kinds import kinds_file
from pipeline.settings.config import EvaluationConfig, schema_path
from pipeline.settings.scoring import MANY_ROWS, affordable, build_scores
from tests.pipeline.conftest import people

ROWS = 400
COLUMNS = {
    "age": {"kind": "integer", "min": 0, "max": 99, "bins": {"count": 10}, "missing": False},
    "sex": {"kind": "categorical", "values": ["f", "m"], "missing": False},
    "ward": {"kind": "categorical", "values": ["a", "b", "c"]},
    "insured": {"kind": "flag", "missing": False},
    "smoker": {"kind": "flag", "true": ["yes"], "false": ["no"], "missing": False},
    "born": {"kind": "date", "min": "1980-01-01", "max": "1980-12-31", "missing": False},
}
SCHEMA = {"name": "clinic", "columns": COLUMNS, "confirmed_public": True}


def clinic() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "patient": np.arange(ROWS) // 2,
            "age": pd.array(rng.integers(0, 100, ROWS), dtype="Int16"),
            "sex": pd.Categorical(rng.choice(["f", "m"], ROWS)),
            "ward": pd.array(rng.choice(["a", "b", "c"], ROWS), dtype="string"),
            "insured": rng.random(ROWS) < 0.5,
            "smoker": rng.choice(["yes", "no"], ROWS),
            "born": [datetime.date(1980, 1 + i % 12, 1 + i % 28) for i in range(ROWS)],
        }
    )


def two_tables() -> tuple[pd.DataFrame, pd.DataFrame, dict[str, object]]:
    """Visits without the ages, the patients' ages, and these under another name of the id, as settings say it."""
    people = clinic()[["patient", "age"]].drop_duplicates("patient")
    by_no = {"units": people.rename(columns={"patient": "no"}), "data.units.id": "no"}
    return clinic().drop(columns="age"), people, by_no


@pytest.fixture(scope="module")
def release() -> pipeline.Release:
    return pipeline.fit(clinic(), SCHEMA, epsilon=100, selection="pairs", synthesis="pgm", quiet=True)


def test_calls_from_several_threads_have_their_own_settings():
    at_once = threading.Barrier(4)

    def epsilon(wanted: int) -> float:
        at_once.wait(30)
        return float(pipeline.plan(clinic(), SCHEMA, epsilon=wanted, selection="oneway")["budget"]["epsilon"])

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(epsilon, range(1, 5))) == [1, 2, 3, 4]


def test_a_draft_is_a_mapping_that_fit_takes_and_a_text_to_be_corrected():
    drafted = pipeline.draft(clinic(), name="clinic", unit="patient")
    assert drafted["name"] == "clinic" and set(drafted["columns"]) >= {"age", "sex", "ward"}
    assert drafted["confirmed_public"] is False and str(drafted) == drafted.text
    assert "confirmed_public: false" in drafted.text and "#" in drafted.text
    assert drafted["unit"]["column"] == "patient"
    drafted = pipeline.draft(clinic(), name="clinic")  # persons are another test's
    made = pipeline.fit(clinic(), drafted, selection="oneway", synthesis="independent", quiet=True)
    assert not made.private
    with pytest.raises(UserError, match="did you mean 'units'"):
        pipeline.draft(clinic(), unitz="people.csv")
    with pytest.raises(UserError, match=r"cluster: column 'ward'.*\n"):
        pipeline.draft(clinic(), cluster={"ward": {"coordinates": "none.csv", "levels": [2]}})


def test_clocks_periods_and_intervals_are_drafted_as_they_are_read_and_come_back_as_written():
    ages = pd.Series(np.arange(300) % 90)
    frame = pd.DataFrame({"year": pd.PeriodIndex([str(1990 + i % 30) for i in range(300)], freq="Y")})
    frame["band"] = pd.cut(ages, [-1, 18, 65, 99])
    frame["span"] = pd.IntervalIndex.from_tuples([(0, 1.5)] * 300, "left")
    frame["at"] = pd.Series([datetime.time(i % 24, i % 59) for i in range(300)]).astype(pd.ArrowDtype(pa.time64("us")))
    draft = pipeline.draft(frame, name="kinds")
    assert (draft["columns"]["year"]["min"], draft["columns"]["at"]["format"]) == (1990, "%H:%M:%S")
    assert draft["columns"]["band"]["values"] == [str(band) for band in frame["band"].cat.categories]
    assert draft["columns"]["span"] == {"kind": "constant", "value": "[0, 1.5)"}  # equal numbers have one text
    look = pipeline.check(frame, draft)
    assert not look["refused"] and all(column["lost"] == 0 for column in look["columns"].values()), look
    forms = {"kind": "datetime", "min": "1900-01-01", "max": "1900-01-01", "formats": ["%H:%M", "%H:%M:%S"]}
    assert not pipeline.check(frame[["at"]], {"columns": {"at": forms}})["refused"]


def test_a_look_is_that_of_the_command_and_names_the_frame():
    frame = clinic().assign(smoker=["perhaps"] * 300 + ["no"] * 100)
    looked = pipeline.check(frame, SCHEMA, unit="patient", max_records=2)
    assert looked["rows"] == ROWS and looked["refused"] == ["smoker"] and not looked["private"]
    assert str(looked).startswith("the frame: 400 rows, 7 columns, under clinic (6 columns)")
    with pytest.raises(UserError, match="the frame") as refused:
        pipeline.check(frame, SCHEMA, unit="patent", max_records=2)
    assert ".parquet" not in str(refused.value) and "did you mean 'patient'" in str(refused.value)


def test_a_plan_takes_what_fit_takes_and_the_number_of_rows_from_the_frame():
    planned = pipeline.plan(clinic(), SCHEMA, epsilon=2, unit="patient", max_records=2, selection="oneway")
    assert (planned["rows"], planned["unit"], planned["max_records"]) == (ROWS, "patient", 2)
    assert len(planned["measurements"]) == len(COLUMNS) and "patient" in str(planned)
    assert pipeline.plan(None, SCHEMA)["rows"] is None
    with pytest.raises(UserError, match="did you mean 'epsilon'"):
        pipeline.plan(None, SCHEMA, epsilo=2)
    with pytest.raises(UserError, match="folder=: nothing is kept"):
        pipeline.plan(None, SCHEMA, folder="out")
    visits, people, by_no = two_tables()
    for units in ({"units": people}, by_no):
        assert pipeline.plan(visits, SCHEMA, unit="patient", max_records=2, **units)["rows"] == ROWS


def test_a_rehearsal_reads_no_row_and_gives_rows_in_the_kinds_of_the_frame():
    settings = {"selection": "oneway", "synthesis": "independent", "quiet": True, "plan": {"rows": 300}}
    made = pipeline.rehearse(clinic(), SCHEMA, unit="patient", max_records=2, **settings)
    assert not made.private and "noise_seed" in str(made.statement["reasons_not_private"])
    own = clinic().drop(columns="patient")
    assert made.sample(5).dtypes.to_dict().keys() == own.dtypes.to_dict().keys()
    assert made.sample(5)["age"].dtype == "Int16" and made.sample(5)["insured"].dtype == bool
    with pytest.raises(UserError, match="no column 'age' in the frame"):
        pipeline.rehearse(clinic().drop(columns="age"), SCHEMA, **settings)
    visits, _, by_no = two_tables()
    made = pipeline.rehearse(visits, SCHEMA, unit="patient", max_records=2, **by_no, **settings)
    assert list(made.sample(5).columns) == [*visits.columns[1:], "age"] and made.sample(5)["age"].dtype == "Int16"


def test_one_row_comes_out_for_each_row_of_conditions_in_their_order(release):
    rng = np.random.default_rng(2)
    asked = pd.DataFrame({"sex": rng.choice(["f", "m"], 40), "insured": rng.random(40) < 0.5, "age": 30})
    asked.loc[1::2, "age"] = rng.integers(0, 90, 20)
    for given in (asked, pl.from_pandas(asked), pa.Table.from_pandas(asked)):
        made = release.sample(given, seed=3)
        assert len(made) == 40 and list(made.columns) == list(clinic().columns[1:])
        assert made[list(asked)].astype(object).equals(asked.astype(object))
    assert made.attrs["given"]["effective_rows"] == 40 and made["ward"].nunique() > 1
    only = release.sample(asked[["sex"]], where={"ward": ["a", "b"]}, form="arrow")
    assert only["sex"].to_pylist() == asked["sex"].tolist() and set(only["ward"].to_pylist()) <= {"a", "b"}
    days = release.sample(pd.DataFrame({"born": [datetime.date(1980, 3, 4), datetime.date(1980, 7, 1)]}))
    assert days["born"].tolist() == [datetime.date(1980, 3, 4), datetime.date(1980, 7, 1)]
    gaps = release.sample(pd.DataFrame({"ward": ["a", None]}))
    assert gaps["ward"].isna().tolist() == [False, True]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (pd.DataFrame({"sax": ["f"]}), "sax"),
        (pd.DataFrame({"sex": ["x"]}), "no value 'x'"),
        (pd.DataFrame({"sex": []}), "no row"),
        (pd.DataFrame({"age": [[3, 4]]}), "one value in each cell"),
        (pd.Series(["f"], name="sex"), "one column|Series"),
        ("many", "got 'many'"),
        *((rows, "rows") for rows in (-1, 2.5, True)),
        (10**12, "1,000,000,000,000 synthetic rows are predicted to need"),
    ],
)
def test_rows_that_cannot_be_are_one_message(release, asked, said):
    with pytest.raises(UserError, match=said):
        release.sample(asked)


def test_save_and_load_keep_the_kinds_of_the_frame_and_the_file_beside_may_be_lost(release, tmp_path):
    saved = release.save(tmp_path / "kept")
    again = pipeline.load(saved, synthesis="pgm")
    pd.testing.assert_frame_equal(again.sample(30, seed=4), release.sample(30, seed=4))
    assert not [p for p in saved.rglob("*") if "frame" in p.name], "the release holds what a run's holds"
    beside = kinds_file(saved)
    facts = json.loads(beside.read_text())
    beside.write_text(json.dumps(facts | {"release": "0" * 64}))
    assert str(pipeline.load(saved).sample(5)["sex"].dtype) == "str", "of another release"
    beside.write_text("{")
    with pytest.raises(UserError, match=r"kept\.frame\.json"):
        pipeline.load(saved)
    beside.unlink()
    assert str(pipeline.load(saved).sample(5)["age"].dtype) == "int64"


def test_what_is_public_is_listed_and_nothing_else():
    assert {"draft", "check", "plan", "rehearse", "fit", "load", "score"} <= set(dir(pipeline))
    assert dir(pipeline) == sorted(pipeline.__all__) and not {"TYPE_CHECKING", "Any"} & set(dir(pipeline))
    assert all(getattr(pipeline, name) is not None for name in dir(pipeline))


def test_mgd_takes_frames_and_paths_alike_and_its_deep_dive_gives_frames(town):
    made = people(500, seed=2)
    made.to_csv("made.csv", index=False)
    one = mgd("town.csv", "made.csv", "town.yaml")
    two = mgd(people(600), made, "town.yaml")
    assert one.score == two.score > 0
    assert mgd(made, made, "town.yaml").score == 0
    listed = mgd(made, people(600), "town.yaml", [{"attributes": ["age"], "weights": {"age": 1}}], delta=0)
    assert listed.marginals[0].target.delta == 0
    assert list(listed.frame().columns) == ["marginal", "aemc", "weight", "share", "cells", "solver"]
    with pytest.raises(UserError, match="dleta"):
        mgd(made, made, "town.yaml", dleta=0)
    dive = deep_dive(people(600), made, "town.yaml", {"attributes": ["age", "job"]}, delta=0.0)
    assert dive.aemc > 0 and {"age", "job", "real", "synthetic", "cost"} <= set(dive.bins.columns)


def test_aemc_takes_arrays_and_a_distance_matrix_or_axes():
    p, q = np.array([0.0, 0.0, 10.0]), np.array([10.0, 0.0, 0.0])
    line = np.abs(np.subtract.outer(range(3), range(3))) / 2
    assert aemc(p, q, line, 0.0).value == pytest.approx(1.0)
    assert aemc(p, q, Axis.path(3, 3, 1), 0.0).value == pytest.approx(1.0)
    assert aemc(p, q, np.where(np.eye(3), 0, np.inf), 0.0).value == pytest.approx(2.0)


def test_on_very_many_rows_the_quick_metrics_are_those_on_top():
    spec = build_scores(EvaluationConfig(), load_schema(schema_path("demo")))
    assert affordable(spec, MANY_ROWS) == spec
    assert affordable(spec, MANY_ROWS + 1).metrics == ("mgd", "tvd")
    asked = build_scores(EvaluationConfig(metrics=["mgd", "density"]), load_schema(schema_path("demo")))
    assert affordable(asked, 10**9) == asked
