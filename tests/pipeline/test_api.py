"""The Python functions for notebooks: frames and paths in, results with data frames out."""

import numpy as np
import pytest

from evaluation.mgd.geometry import Axis
from mechanisms.public.errors import UserError
from mechanisms.public.schema.table_schema import load_schema
from pipeline import aemc, deep_dive, mgd
from pipeline.settings.config import EvaluationConfig, schema_path
from pipeline.settings.scoring import MANY_ROWS, affordable, build_scores
from tests.pipeline.conftest import people


def test_mgd_takes_frames_and_paths_alike(town):
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


def test_deep_dive_gives_frames(town):
    dive = deep_dive(people(600), people(500, seed=2), "town.yaml", {"attributes": ["age", "job"]}, delta=0.0)
    assert dive.aemc > 0
    assert {"age", "job", "real", "synthetic", "cost"} <= set(dive.bins.columns)


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
