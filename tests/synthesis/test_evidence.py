"""Answers to any linear query in consistency: against dense generalised least squares, and its laws."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg

from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.queries.adaptive_grid import grid_query
from mechanisms.public.queries.merged_cells import MergedQuery
from mechanisms.public.queries.query_matrices import Identity, SparseQuery
from mechanisms.public.release import Measurements, NoisyMarginal
from synthesis.consistency.agree import consistent, estimated, overlaps_of
from synthesis.consistency.evidence import FLOOR, gathered, lifted

ABC = Domain((Attribute("a", 3), Attribute("b", 2), Attribute("c", 4)))
RNG = np.random.default_rng(0)
MERGED = MergedQuery((np.array([0, 1, 1]), np.array([0, 1, 2, 2])))
ROUGH = SparseQuery.of(np.round(RNG.random((4, 6)), 2))
SETS = {
    "merged": [(("a",), Identity(3), 1.0), (("a", "b"), Identity(6), 2.0), (("a", "c"), MERGED, 3.0)],
    "sparse": [(("a", "b"), ROUGH, 1.0), (("b", "c"), Identity(8), 2.0), (("a", "c"), MERGED, 1.5)],
    "both": [(("a", "b"), Identity(6), 1.0), (("a", "b"), ROUGH, 0.5), (("b",), Identity(2), 2.0)],
    "one part": [(("a",), SparseQuery.of(np.array([[1.0, 1.0, 0.0]])), 1.0)],
}


def sums(joint, clique):
    return joint.sum(axis=tuple(i for i, n in enumerate(ABC.names) if n not in clique)).ravel()


def answers(asked, joint, rng):
    made = []
    for clique, query, sigma in asked:
        exact = query.answer(sums(joint, clique))
        made.append(NoisyMarginal(clique, query, exact + rng.normal(0, sigma, exact.size), "gaussian", sigma, "0"))
    return Measurements(ABC, tuple(made), public_total=int(joint.sum()))


def step(measurements):
    """The linear step; the marginals by clique."""
    evidence = gathered(ABC, measurements.answers)
    overlaps = overlaps_of(ABC, [e.clique for e in evidence])
    found = estimated(evidence, float(measurements.public_total or 0), overlaps)
    return {t.clique: t.values.ravel() for t in found}


def dense(measurements):
    """Least squares over all joints: each marginal's best estimate where it is told, and its covariance."""
    rows, values, cliques = [], [], {a.clique for a in measurements.answers}
    onto = {c: np.stack([sums(e.reshape(3, 2, 4), c) for e in np.eye(24)], axis=1) for c in cliques}
    for a in measurements.answers:
        matrix = np.stack([a.query.answer(e) for e in np.eye(a.query.columns)], axis=1)
        rows.append(matrix @ onto[a.clique] / a.stddev)
        values.append(a.values / a.stddev)
    free = linalg.null_space(np.ones((1, 24)))
    uniform = np.full(24, measurements.public_total / 24)
    matrix = np.concatenate(rows) @ free
    gap = np.concatenate(values) - np.concatenate(rows) @ uniform
    joint = uniform + free @ np.linalg.pinv(matrix, 1e-10) @ gap
    null = free @ linalg.null_space(matrix, 1e-10)
    return {c: (onto[c] @ joint, onto[c] @ null) for c in cliques}


@pytest.mark.parametrize("asked", SETS.values(), ids=SETS)
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_linear_step_is_generalised_least_squares_over_all_answers(asked, seed):
    """What the answers tell is the best linear unbiased estimate (Gauss-Markov), so no expected error can rise."""
    rng = np.random.default_rng(seed)
    known = answers(asked, rng.multinomial(1000, np.full(24, 1 / 24)).reshape(3, 2, 4).astype(float), rng)
    found = step(known)
    for clique, (expected, untold) in dense(known).items():
        told = linalg.null_space(untold.T, 1e-9) if untold.size else np.eye(expected.size)
        assert told.T @ found[clique] == pytest.approx(told.T @ expected, abs=1e-3)
        assert found[clique].sum() == pytest.approx(1000)
    for one, two in itertools.combinations(found, 2):
        shared = [n for n in one if n in two]
        if shared:
            shaped = [found[c].reshape(ABC.shape(c)) for c in (one, two)]
            own = [
                x.sum(axis=tuple(i for i, n in enumerate(c) if n not in shared))
                for c, x in zip((one, two), shaped, strict=True)
            ]
            assert own[0] == pytest.approx(own[1], abs=1e-6)


@pytest.mark.parametrize("asked", SETS.values(), ids=SETS)
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_targets_of_any_queries_are_not_negative_and_sum_to_the_total(asked, seed):
    rng = np.random.default_rng(seed)
    known = answers(asked, rng.multinomial(60, rng.dirichlet(np.full(24, 0.3))).reshape(3, 2, 4).astype(float), rng)
    for target in consistent(known).marginals:
        assert target.values.min() >= 0
        assert target.values.sum() == pytest.approx(60)


def test_an_adaptive_grid_knows_its_fine_cells_and_follows_its_parents_elsewhere():
    rng = np.random.default_rng(3)
    joint = rng.dirichlet(np.full(24, 0.2)).reshape(3, 2, 4) * 20_000
    ones = answers([((n,), Identity(k), 5.0) for n, k in zip("abc", (3, 2, 4), strict=True)], joint, rng).answers
    grid = grid_query(ABC, ("a", "c"), ones, threshold=900.0, norm="l2")
    assert type(grid).__name__ == "GridQuery"
    both = answers([(("a", "c"), grid, 5.0)], joint, rng).answers
    known = Measurements(ABC, (*ones, *both), public_total=20_000)
    target = next(t for t in consistent(known).marginals if len(t.clique) == 2)
    gap = np.abs(target.values.ravel() - sums(joint, ("a", "c")))
    assert gap[grid.fine_cells].max() < 25
    alone = consistent(Measurements(ABC, ones, 20_000))
    independent = np.outer(alone.one_way("a"), alone.one_way("c")).ravel() / 20_000
    assert gap.sum() < 0.7 * np.abs(independent - sums(joint, ("a", "c"))).sum()


def test_impossible_answers_are_named():
    zeros = [(("b", "a"), np.zeros((2, 3), bool))]
    with pytest.raises(UserError, match="impossible combinations of b × a"):
        consistent(Measurements(ABC, ()), zeros=zeros)


def test_impossible_cells_get_nothing_in_every_marginal_that_can_tell():
    rng = np.random.default_rng(1)
    cells = np.zeros((3, 2), bool)
    cells[2, :] = True
    cells[0, 1] = True
    known = answers([(("a", "b"), Identity(6), 9.0), (("a", "c"), Identity(12), 9.0)], np.full((3, 2, 4), 40.0), rng)
    targets = consistent(known, zeros=[(("a", "b"), cells)])
    assert (targets.marginals[0].values[cells] == 0).all()
    assert (targets.marginals[1].values[2] == 0).all()
    for target in targets.marginals:
        assert target.values.sum() == pytest.approx(960)


@pytest.mark.parametrize("seed", range(5))
def test_sums_that_do_not_meet_are_lifted_to_the_nearest_marginal_that_has_them(seed):
    """In closed form, as the pseudo-inverse of the weighted queries solves them."""
    rng = np.random.default_rng(seed)
    labels = (np.array([0, 0, 1, 1, 2]), np.array([0, 1, 1, 0]))
    domain = Domain((Attribute("a", 5), Attribute("b", 4)))
    query = MergedQuery(labels)
    (evidence,) = gathered(domain, [NoisyMarginal(("a", "b"), query, rng.random(6) * 50, "gaussian", 3.0, "1")])
    base = rng.random((5, 4)) * 10
    matrix = np.stack([query.answer(row) for row in np.eye(20)]).T / 3.0
    weights = np.sqrt(np.maximum(base, FLOOR * base.mean())).ravel()
    gap = evidence.standardized - matrix @ base.ravel()
    nearest = base.ravel() + weights * (linalg.pinv(matrix * weights) @ gap)
    assert evidence.disjoint
    np.testing.assert_allclose(lifted(evidence, evidence.standardized, base).ravel(), nearest, rtol=1e-9)
