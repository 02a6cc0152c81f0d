"""Li et al. 2021b, section 3.2: a marginal that stands in no view, against brute force over all of its cells."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, nnls

from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements, NoisyMarginal
from pipeline.settings.config import load_config
from pipeline.settings.methods import build_synthesizer
from synthesis.consistency.agree import ConsistentTargets, Target, consistent
from synthesis.contract import synthesize
from synthesis.papers.maxent import SOLUTIONS, MaxentSpec, ViewModel, largest_entropy, least_norm, linear_programme

SHAPE = (2, 3, 2)
SIDES = [(0, 1), (1, 2), (0, 2)]
ALL = np.ones(SHAPE, bool)
WORLDS = st.integers(0, 10**6)


def world(seed: int, sides=SIDES) -> tuple[np.ndarray, dict[tuple[int, ...], np.ndarray]]:
    """A marginal of 1,000 records, some cells of which are all but empty, and its sides."""
    values = np.random.default_rng(seed).dirichlet(np.full(SHAPE, 0.4).ravel()).reshape(SHAPE) * 990 + 10 / 12
    return values, {axes: values.sum(axis=tuple({0, 1, 2} - set(axes))) for axes in sides}


def constraints(sides) -> np.ndarray:
    """A row per cell of each side: which cells of the marginal it sums."""
    cells = np.arange(12).reshape(SHAPE)
    rows = []
    for axes, side in sides.items():
        for cell in np.ndindex(side.shape):
            where = [slice(None)] * 3
            for axis, code in zip(axes, cell, strict=True):
                where[axis] = code
            rows.append(np.isin(np.arange(12), cells[tuple(where)].ravel()).astype(float))
    return np.array(rows)


def known(sides) -> np.ndarray:
    return np.concatenate([side.ravel() for side in sides.values()])


@settings(max_examples=25)
@given(seed=WORLDS, count=st.integers(1, 3))
def test_the_largest_entropy_is_the_fixed_point_of_proportional_fitting(seed, count):
    """It has the sides, and its logarithm is a sum of functions of them: where entropy is stationary (Lagrange)."""
    _, sides = world(seed, SIDES[:count])
    answer = largest_entropy(ALL, 1000.0, sides).ravel()
    matrix = constraints(sides)
    assert matrix @ answer == pytest.approx(known(sides), abs=0.01)
    multipliers = np.linalg.lstsq(matrix.T, np.log(answer), rcond=None)[0]
    assert matrix.T @ multipliers == pytest.approx(np.log(answer), abs=1e-3)


@settings(max_examples=25)
@given(seed=WORLDS, count=st.integers(1, 3))
def test_the_least_norm_is_that_of_least_squares_with_no_negative_cell(seed, count):
    """numpy's least-norm solution where that has no negative cell; else least squares with the sides held by force."""
    _, sides = world(seed, SIDES[:count])
    matrix, goal = constraints(sides), known(sides)
    answer = least_norm(ALL, 1000.0, sides).ravel()
    free = np.linalg.lstsq(matrix, goal, rcond=None)[0]
    force = 1e4
    held, _ = nnls(
        np.vstack([force * matrix, np.eye(12)]), np.concatenate([force * goal, np.zeros(12)]), maxiter=10_000
    )
    if free.min() >= 0:
        assert answer == pytest.approx(free, abs=0.05)
    assert answer.min() >= 0
    assert matrix @ answer == pytest.approx(goal, abs=1.0)
    assert np.linalg.norm(answer) == pytest.approx(np.linalg.norm(held), rel=2e-3)


@settings(max_examples=25)
@given(seed=WORLDS, noise=st.sampled_from([0.0, 30.0]))
def test_the_linear_programme_is_feasible_and_off_by_the_least_that_any_marginal_is(seed, noise):
    _, sides = world(seed)
    rng = np.random.default_rng(seed)
    noisy = {a: np.maximum(s + noise * rng.standard_normal(s.shape), 0.0) for a, s in sides.items()}
    noisy = {a: s * (1000.0 / s.sum()) for a, s in noisy.items()}
    answer = linear_programme(ALL, 1000.0, noisy).ravel()
    matrix, goal = constraints(noisy), known(noisy)
    ones = np.ones((len(goal), 1))
    best = linprog(
        [0.0] * 12 + [1.0],
        A_ub=np.block([[matrix, -ones], [-matrix, -ones]]),
        b_ub=np.concatenate([goal, -goal]),
        A_eq=[[1.0] * 12 + [0.0]],
        b_eq=[1000.0],
    ).fun
    assert answer.min() >= 0 and answer.sum() == pytest.approx(1000.0)
    assert np.abs(matrix @ answer - goal).max() == pytest.approx(best, abs=0.01)
    assert best == pytest.approx(0, abs=1e-6) or noise


def test_impossible_cells_stay_empty_in_every_solution():
    values, _ = world(3)
    possible = np.ones(SHAPE, bool)
    possible[0, 0, 0] = possible[1, 2, 1] = False
    values = values * possible
    values *= 1000 / values.sum()
    sides = {axes: values.sum(axis=tuple({0, 1, 2} - set(axes))) for axes in SIDES[:2]}
    for solve in SOLUTIONS.values():
        answer = solve(possible, 1000.0, sides)
        assert not answer[~possible].any()
        assert answer.sum() == pytest.approx(1000.0)


def test_example_1_a_triple_in_no_view_of_twelve_columns():
    """Views {1-8}, {1-4, 9-12}, {5-12}: the marginal of columns 1, 5 and 9 stands in none, its pairs in one each."""
    domain = Domain(tuple(Attribute(f"c{i}", 2) for i in range(1, 13)))
    joint = np.random.default_rng(0).dirichlet(np.full(2**12, 0.05)).reshape((2,) * 12) * 1000
    views = [(*range(8),), (*range(4), *range(8, 12)), (*range(4, 12),)]
    targets = tuple(
        Target(tuple(domain.names[i] for i in v), joint.sum(axis=tuple(set(range(12)) - set(v))), 1.0) for v in views
    )
    asked, places = ("c1", "c5", "c9"), (0, 4, 8)
    for name in ("maxent", "least_norm", "linear"):
        model = ViewModel(ConsistentTargets(domain, 1000.0, targets), MaxentSpec(solution=name))
        answer = model.marginal(asked).reshape(2, 2, 2)
        for one, two in itertools.combinations(range(3), 2):
            true = joint.sum(axis=tuple(set(range(12)) - {places[one], places[two]}))
            assert answer.sum(axis=3 - one - two) == pytest.approx(true, abs=0.1), name
        assert model.answered()[0].clique not in {t.clique for t in targets}


def test_the_solution_changes_the_rows_and_the_earlier_spelling_is_read():
    domain = Domain(tuple(Attribute(n, 4) for n in "abc"))
    rng = np.random.default_rng(1)
    joint = rng.dirichlet(np.full(64, 0.15)).reshape(4, 4, 4) * 4000
    pairs = [("a", "b"), ("b", "c"), ("a", "c")]
    sides = [joint.sum(axis=domain.names.index(({*"abc"} - set(p)).pop())) for p in pairs]
    answers = tuple(
        NoisyMarginal(p, Identity(16), s.ravel(), "gaussian", 1.0, "0") for p, s in zip(pairs, sides, strict=True)
    )
    measurements = Measurements(domain, answers)

    def rows(word: str) -> np.ndarray:
        spec = build_synthesizer(load_config(["synthesis=maxent", f"synthesis.solution={word}"]).synthesis)
        table = synthesize(measurements, spec, rows=4000, rng=np.random.default_rng(5)).table
        return np.bincount(np.ravel_multi_index(tuple(c.astype(int) for c in table.columns), (4, 4, 4)), minlength=64)

    made = {word: rows(word) for word in ("maxent", "least_norm", "leastnorm", "linear")}
    assert (made["least_norm"] == made["leastnorm"]).all()
    model = {w: ViewModel(consistent(measurements), MaxentSpec(solution=w)).marginal("abc") for w in made}
    for one in ("maxent", "least_norm", "linear"):
        gaps = {two: np.abs(made[one] - model[two]).sum() for two in ("maxent", "least_norm", "linear")}
        assert min(gaps, key=gaps.__getitem__) == one, gaps
