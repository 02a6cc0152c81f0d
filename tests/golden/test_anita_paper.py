"""Platzer 2020 (ANITA D2.2), item by item: what its sections define, and what was out of reach before."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from evaluation.accuracy.anita_accuracy import bucket_tables, n_way
from evaluation.metric import Inputs, Options
from evaluation.metrics import METRICS
from evaluation.outcome import compute
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from pipeline.experiments.challenge import run
from pipeline.experiments.challenge_scores import generalized
from pipeline.experiments.challenge_settings import ChallengeSettings, anonymous_of
from pipeline.experiments.experiment_settings import settings_of
from pipeline.experiments.scores_against import pairs_of
from pipeline.settings.config import load_config
from tests.public.table_worlds import coded

DOMAIN = Domain(
    (Attribute("a", 3), Attribute("b", 40, 40), Attribute("c", 4), Attribute("d", 2), Attribute("e", 30, 29))
)


def people(rows: int, seed: int) -> CodedTable:
    rng = np.random.default_rng(seed)
    base = rng.integers(0, 40, rows)
    columns = [(base * (i + 1) // 7 + rng.integers(0, 9, rows)) % a.size for i, a in enumerate(DOMAIN.attributes)]
    return coded(DOMAIN, columns)


REAL, MADE, HELD = people(600, 1), people(500, 2), people(300, 3)


@pytest.mark.parametrize(
    ("name", "ways", "n"), [("anita_4way", None, 4), ("anita_nway", None, 5), ("anita_nway", 3, 3)]
)
def test_2_four_way_and_higher_interactions_have_a_name(name, ways, n):
    options = Options(settings={} if ways is None else {"ways": ways})
    outcome = compute(METRICS[name], REAL, MADE, None, options)
    assert outcome.score == n_way(*bucket_tables(REAL, [MADE]), n).accuracy
    assert outcome.result.n == n and outcome.result.possible == len(list(itertools.combinations(range(5), n)))
    assert not METRICS[name].quick, "computed where it is asked for"


@pytest.mark.parametrize(
    "settings",
    [
        {"distance_buckets": 5},
        {"distance": "mixed"},
        {"distance": "mixed", "distance_buckets": 8},
        {"distance_columns": ["b", "e"]},
    ],
)
def test_3_distances_of_buckets_and_of_mixed_types_are_settings(settings):
    """ "By bucketing each attribute into a maximum of m buckets, and counting matching attributes." """
    options = Options(settings=settings, holdout=HELD)
    found = compute(METRICS["anita_privacy"], REAL, MADE, None, options).result
    usual = compute(METRICS["anita_privacy"], REAL, MADE, None, Options(holdout=HELD)).result
    assert found.to_json() != usual.to_json() and found.kind == settings.get("distance", "hamming")
    assert list(found.columns) == settings.get("distance_columns", list("abcde"))
    wrong = compute(METRICS["anita_privacy"], REAL, MADE, None, replace(options, settings={"distance": "euclid"}))
    assert wrong.score is None and "evaluation.distance" in wrong.reason


def test_3_the_distance_on_buckets_by_hand():
    train, made = bucket_tables(REAL, [MADE], m=6)
    a, b = (np.stack([c.astype(int) for c in t.columns]) for t in (train, made))
    nearest = (a[:, None, :] != b[:, :, None]).sum(axis=0).min(axis=1)
    found = METRICS["anita_privacy"].computed(
        Inputs(METRICS["anita_privacy"], REAL, MADE, None, Options(settings={"distance_buckets": 6}, holdout=HELD))
    )[1]
    assert np.sort(found.dcr.synthetic).tolist() == np.sort(nearest).astype(float).tolist()


def test_1_accuracy_against_privacy_over_the_tables():
    """Figure 1: both numbers of every table as a point, and how far they agree on the order of the tables."""
    rows = [
        {
            "dataset": "gum",
            "epsilon": e,
            "metric": m,
            "goal": METRICS[m].goal,
            "score": s,
            "floor": 0.98 if m == "anita_1way" else None,
        }
        for e, share, accuracy in ((0.1, 0.499, 0.90), (1, 0.502, 0.95), (10, 0.507, 0.99))
        for m, s in (("anita_privacy", share), ("anita_1way", accuracy))
    ]
    (pair,) = pairs_of(rows, {"anita_privacy": ["anita_1way"]})
    assert pair.points == (("gum", 0.1, 0.499, 0.90), ("gum", 1, 0.502, 0.95), ("gum", 10, 0.507, 0.99))
    assert pair.floor == 0.98
    assert pair.rho == pytest.approx(-1), "here the nearer to training records, the more accurate"
    named = [r | ({"metric": "mgd", "goal": "low"} if r["metric"] == "anita_privacy" else {}) for r in rows]
    (alike,) = pairs_of(named, {"mgd": ["anita_1way"]})
    assert alike.rho == pytest.approx(-1), "a low MGD is good, a high accuracy too"


def test_1_a_pair_that_no_table_has_is_left_out():
    rows = [{"dataset": "gum", "epsilon": 1, "metric": "anita_1way", "score": 0.9, "floor": None}]
    assert pairs_of(rows, {"anita_privacy": ["anita_1way"]}) == ()


def test_1_classic_anonymization_stands_beside_synthetic_data():
    """Figure 1: k-anonymous tables by generalization; each row has the ranges of at least k rows."""
    far = []
    for k in (5, 50):
        made, again = (generalized(REAL, k, np.random.default_rng(seed)) for seed in (1, 2))
        assert made.rows == REAL.rows and (made.column("b") != again.column("b")).any()
        far.append(float(np.abs(made.column("b").astype(int) - REAL.column("b")).mean()))
    assert far[0] < far[1], "more privacy, less accuracy"
    whole = generalized(REAL, 301, np.random.default_rng(1))  # no split leaves so many rows on either side
    assert np.corrcoef(whole.column("b"), REAL.column("b"))[0, 1] == pytest.approx(0, abs=0.15)
    settings = settings_of(load_config(["experiment=anita_tradeoff"]), ChallengeSettings)
    assert anonymous_of(settings) == [2, 5, 20, 100] and settings.holdout == 0.5


@pytest.mark.parametrize("wrong", ["[1]", "[5,5]", "[5] experiment.holdout=0"])
def test_1_a_k_that_hides_nobody_is_one_clear_message(wrong, tmp_path):
    config = load_config(["experiment=anita_tradeoff", *f"experiment.anonymous={wrong}".split()])
    with pytest.raises(UserError, match=r"experiment\.anonymous"):
        run(config, tmp_path / "out")
    assert not (tmp_path / "out").exists()
