"""Distances from what is expected: their law against draws from it, and what a forest explains against brute force."""

import itertools

import numpy as np
import pytest

from mechanisms.public.designs.deviations import STRENGTHS, PairCells
from mechanisms.public.designs.tree_model import TreeModel, followed
from mechanisms.public.queries.merged_cells import MergedQuery
from mechanisms.public.queries.query_matrices import Identity

EXPECTED = np.array([0.3, 2.0, 7.0, 30.0, 120.0, 400.0])
CELLS = PairCells.of(EXPECTED, np.zeros(6), float(EXPECTED.sum()))


@pytest.mark.parametrize("strength", [0.0, 0.4, 3.0])
@pytest.mark.parametrize("level", [0.0, 4.0, 25.0])
def test_what_is_beyond_a_level_is_the_mean_over_draws(strength, level):
    rng = np.random.default_rng(7)
    variance = EXPECTED + (strength * EXPECTED) ** 2
    drawn = rng.gamma(EXPECTED**2 / variance, variance / EXPECTED, (200_000, 6))
    off = np.maximum(np.abs(drawn - EXPECTED) - level, 0.0).sum(axis=1)
    within = 5 * off.std() / np.sqrt(off.size) + 1e-9
    assert float(CELLS.beyond(strength, level)) == pytest.approx(off.mean(), abs=within)
    more = drawn > level
    assert CELLS.shown(strength, level) == pytest.approx(more.sum(axis=1).mean(), rel=0.01)


def test_by_chance_alone_counts_lie_as_far_as_those_of_a_poisson_law():
    rng = np.random.default_rng(7)
    off = np.maximum(np.abs(rng.poisson(EXPECTED[3:], (200_000, 3)) - EXPECTED[3:]) - 4.0, 0.0).sum(axis=1).mean()
    large = PairCells.of(EXPECTED[3:], np.zeros(3), 550.0)
    assert large.base(4.0) == pytest.approx(off, rel=0.05)


def test_a_strength_is_told_from_what_is_beyond_a_level():
    for strength in STRENGTHS[1:30:4].tolist():
        assert CELLS.strength(float(CELLS.beyond(strength, 10.0)), 10.0) == pytest.approx(strength, rel=1e-6)
    assert CELLS.strength(-5.0, 10.0) == 0.0


def test_the_errors_of_columns_are_no_dependence():
    noisy = PairCells.of(EXPECTED, np.full(6, 50.0**2), float(EXPECTED.sum()))
    assert noisy.base(20.0) > 3 * CELLS.base(20.0)
    assert noisy.distance(0.5) == CELLS.distance(0.5)


def test_less_noise_leaves_less_and_none_leaves_nothing():
    for strength in (0.0, 0.5, 5.0):
        left = CELLS.left(strength, np.geomspace(1e-6, 1e7, 64))
        assert (np.diff(left) >= -1e-9).all()
        assert left[0] == pytest.approx(0, abs=1e-3) and left[-1] == pytest.approx(CELLS.distance(strength), rel=1e-6)


def test_many_cells_of_like_size_count_as_one():
    rng = np.random.default_rng(1)
    cells = rng.gamma(0.5, 40.0, 5_000)
    exact = PairCells(np.ones(cells.size), cells, np.zeros(cells.size), float(cells.sum()))
    grouped = PairCells.of(cells, np.zeros(cells.size), float(cells.sum()))
    assert grouped.count.size <= 24 and grouped.distance(0.7) == pytest.approx(exact.distance(0.7), rel=0.03)


def test_pairs_follow_from_a_chain_as_from_its_joint_law():
    rng = np.random.default_rng(3)
    a_b, b_c = rng.dirichlet(np.ones(6)).reshape(2, 3), rng.dirichlet(np.ones(4), 3)
    joint = 90 * a_b[:, :, None] * b_c[None, :, :]
    sides = {n: joint.sum(axis=tuple(i for i in range(3) if i != k)) for k, n in enumerate("abc")}
    edges = {("a", "b"): joint.sum(axis=2), ("b", "c"): joint.sum(axis=0)}
    tree = TreeModel({**sides, "d": np.array([40.0, 50.0])}, edges)
    assert tree.marginal(("a", "c")) == pytest.approx(joint.sum(axis=1).ravel())
    assert tree.marginal(("c", "a")) == pytest.approx(joint.sum(axis=1).T.ravel())
    assert tree.path(("a", "c")) == ("a", "b", "c") and tree.path(("a", "d")) == ()
    assert tree.marginal(("a", "d")) == pytest.approx(np.outer(sides["a"], [40.0, 50.0]).ravel() / 90)


def test_answers_are_followed_where_they_differ_by_more_than_noise_and_columns_stay():
    expected = np.outer([30.0, 70.0], [20.0, 80.0]) / 1.0 / 100
    truth = np.array([[18.0, 12.0], [2.0, 68.0]])
    exact = followed(expected, Identity(4), truth.ravel(), 1e-6)
    assert exact == pytest.approx(truth, rel=1e-3)
    assert followed(expected, Identity(4), truth.ravel(), 20.0) == pytest.approx(expected, rel=1e-6)
    halves = MergedQuery((np.array([0, 1]), np.array([0, 0])))
    assert followed(expected, halves, halves.answer(truth.ravel()), 1e-6) == pytest.approx(expected, rel=1e-6)
    for sigma, query in itertools.product((1e-6, 1.0, 9.0), (Identity(4), halves)):
        cells = followed(expected, query, query.answer(truth.ravel()), sigma)
        assert cells.sum(axis=0) == pytest.approx(expected.sum(axis=0))
