"""A challenge sets rows aside as every run does: each unit by its own secret coin, and the statement says so."""

import json

import numpy as np
import pandas as pd
import pytest

from mechanisms.public.release_files import load_measurements
from mechanisms.public.schema.table_schema import load_schema
from mechanisms.public.tables.scan import open_table
from mechanisms.sensitive.contribution import Aside, PrivacyUnit
from mechanisms.sensitive.engines.duckdb_engine import aside_rows
from mechanisms.sensitive.private_table import load_private
from tests.pipeline.conftest import TOWN, command, people, statement_of

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
    schema, key = load_schema(town / "town.yaml"), bytes(range(32))
    work = town / "work"
    work.mkdir(mode=0o700)
    source = open_table(town / "town.csv", workdir=work, memory_limit_bytes=10**9, threads=1)
    unit = PrivacyUnit(column, 1 if column is None else 5, missing=missing)
    private = load_private(source, schema, unit, workdir=work, key=key, holdout=0.4)
    again = aside_rows(source, unit, Aside(key, 0.4), workdir=work)
    assert private.aside is not None
    assert (again == private.aside).all()
    if column is not None:
        shares = pd.Series(again).groupby(frame["person"]).mean()
        assert set(shares) == {0.0, 1.0}
