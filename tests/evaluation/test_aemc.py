"""AEMC is Equation 1 of paper 000: every solver agrees with the linear programme on small worlds."""

import itertools
import math

import numpy as np
import pytest

from evaluation.aemc import Cells, aemc
from evaluation.aemc_lp import lp_cost
from mechanisms.public.domain import Attribute

DELTAS = (0.0, 0.5, 2.0, 10.0)


def world(rng: np.random.Generator, attributes: tuple[Attribute, ...], *, real: bool = False) -> Cells:
    """A small marginal of two tables of unequal totals, sparse as real ones are."""
    codes = np.array(list(itertools.product(*(range(a.size) for a in attributes)))).T

    def masses() -> np.ndarray:
        counts = rng.poisson(rng.choice([0.3, 3.0, 12.0]), codes.shape[1]).astype(float)
        return counts * rng.random(counts.size) if real else counts

    p, q = masses(), masses()
    q[0] += 1
    kept = (p > 0) | (q > 0)
    return Cells(attributes, codes[:, kept], p[kept], q[kept])


def equation_1(cells: Cells, delta: float, alpha: float) -> float:
    """Brute force: the whole distance matrix of Equation 2, the linear programme of Equation 1, over all cells."""
    attributes = cells.attributes
    every = list(itertools.product(*(range(a.size) for a in attributes)))
    finite = [i for i, a in enumerate(attributes) if a.ordered >= 2]
    distance = np.zeros((len(every), len(every)))
    for (i, a), (j, b) in itertools.product(enumerate(every), repeat=2):
        for axis, attribute in enumerate(attributes):
            if a[axis] == b[axis]:
                continue
            inside = max(a[axis], b[axis]) < attribute.ordered
            if axis in finite and inside:
                distance[i, j] += abs(a[axis] - b[axis]) / (attribute.ordered - 1) / len(finite)
            else:
                distance[i, j] = math.inf
    p, q = np.zeros(len(every)), np.zeros(len(every))
    for codes, left, right in zip(cells.codes.T, cells.p, cells.q, strict=True):
        p[every.index(tuple(codes))], q[every.index(tuple(codes))] = left, right
    return lp_cost(p, q, distance, delta, alpha) / q.sum()


SHAPES = {
    "categorical": (Attribute("a", 3), Attribute("b", 4)),
    "one path": (Attribute("a", 9, 9),),
    "paths in parts": (Attribute("a", 3), Attribute("b", 6, 6)),
    "path with missing and other": (Attribute("a", 2), Attribute("b", 7, 5)),
    "grid": (Attribute("a", 4, 4), Attribute("b", 5, 5)),
    "grid with missing": (Attribute("a", 4, 3), Attribute("b", 4, 4), Attribute("c", 2)),
    "cube": (Attribute("a", 3, 3), Attribute("b", 3, 3), Attribute("c", 3, 3)),
    "an ordinal attribute of one value": (Attribute("a", 1, 1), Attribute("b", 5, 5)),
}


def check_agreement(shape: str, seeds: range) -> None:
    for seed in seeds:
        rng = np.random.default_rng(seed)
        cells = world(rng, SHAPES[shape])
        delta, alpha = float(rng.choice(DELTAS)), float(rng.choice([1.0, 0.25, 2.0]))
        exact = equation_1(cells, delta, alpha)
        assert aemc(cells, delta=delta, alpha=alpha).value == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
def test_every_solver_agrees_with_the_linear_programme(shape):
    check_agreement(shape, range(25))


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_every_solver_agrees_with_the_linear_programme_on_thousands_of_cases(shape):
    check_agreement(shape, range(100, 400))


@pytest.mark.parametrize("shape", ["categorical", "one path", "paths in parts", "path with missing and other"])
def test_real_counts_are_exact_where_no_flow_is_needed(shape):
    for seed in range(25):
        cells = world(np.random.default_rng(seed), SHAPES[shape], real=True)
        assert aemc(cells).value == pytest.approx(equation_1(cells, 2.0, 1.0), abs=1e-9)


def test_with_no_tolerance_and_infinite_weights_it_is_the_l1_distance_per_true_record():
    cells = world(np.random.default_rng(0), SHAPES["categorical"])
    assert aemc(cells, delta=0).value == pytest.approx(np.abs(cells.p - cells.q).sum() / cells.q.sum())


def test_it_is_0_where_no_cell_differs_by_more_than_the_tolerance():
    cells = world(np.random.default_rng(0), SHAPES["grid"])
    assert aemc(Cells(cells.attributes, cells.codes, cells.q, cells.q)).value == 0
    near = Cells(cells.attributes, cells.codes, cells.q + 2, cells.q)
    assert aemc(near).value == 0


def test_tolerance_never_creates_mass():
    """A cell of 1 record may be short of 1, not of 2: with Δ = 2 the surplus of 3 elsewhere costs 1 at most."""
    months = (Attribute("month", 12, 12),)
    cells = Cells(months, np.array([[0, 1]]), np.array([3.0, 0.0]), np.array([0.0, 1.0]))
    assert aemc(cells).value == pytest.approx(equation_1(cells, 2.0, 1.0))


def test_moving_all_records_by_one_month_costs_an_eleventh():
    """Paper 000, Figure 2a: the distance of two months is their difference over 11."""
    months = (Attribute("month", 12, 12),)
    cells = Cells(months, np.array([[3, 4]]), np.array([100.0, 0.0]), np.array([0.0, 100.0]))
    assert aemc(cells, delta=0).value == pytest.approx(1 / 11)
    assert aemc(cells, delta=0).solver == "path"


def test_an_empty_truth_gives_a_reason_and_no_number():
    cells = Cells((Attribute("a", 2),), np.array([[0]]), np.array([3.0]), np.array([0.0]))
    result = aemc(cells)
    assert result.value is None
    assert "empty" in result.reason
