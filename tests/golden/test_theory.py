"""Li et al. 2021b, sections 4 to 6: statements about n, n², δ and usefulness, in figures that follow from the text."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog

from mechanisms.accounting.currencies import Mu
from mechanisms.accounting.gaussian_curve import gaussian_epsilon, gaussian_mu
from pipeline.report.plan_theory import gaussian_marginals, least_epsilon, pure_marginals


def test_ten_times_the_rows_ten_times_the_pure_marginals_and_a_hundred_times_the_others():
    """Sections 4 and 6.1, with a cell's standard deviation of 10⁻³ of the rows at ε = 1, δ = 10⁻⁹."""
    mu = gaussian_mu(1.0, 1e-9)
    pure = [pure_marginals(1e-3 * n, 1.0, 1.0) for n in (10**5, 10**6, 10**7)]
    assert pure == [70, 707, 7071]
    other = [gaussian_marginals(1e-3 * n, mu, 1.0) for n in (10**5, 10**6, 10**7)]
    assert other[1] == pytest.approx(100 * other[0], rel=0.01) and other[2] == pytest.approx(100 * other[1], rel=0.01)
    tenth = [gaussian_marginals(100.0, gaussian_mu(e, 1e-9), 1.0) for e in (1.0, 0.1)]
    assert tenth[0] / tenth[1] == pytest.approx(100, rel=0.25), "a tenth of the budget: close to a hundredth of them"


@pytest.mark.parametrize("stddev", [40.0, 250.0])
def test_so_many_marginals_fit_and_one_more_does_not(stddev):
    count = pure_marginals(stddev, 1.0, 2.0)
    scale = stddev / math.sqrt(2)
    assert count * 2.0 / scale <= 1.0 < (count + 1) * 2.0 / scale
    count = gaussian_marginals(stddev, gaussian_mu(1.0, 1e-9), math.sqrt(2))
    spent = [gaussian_epsilon(Mu(math.sqrt(2 * k) / stddev), 1e-9) for k in (count, count + 1)]
    assert spent[0] <= 1.0 * (1 + 1e-9) < spent[1]


def best_failure(epsilon: float, *, rows: int, wrong: float) -> float:
    """The least η that any ε-DP method reaches for one candidate at θ = 1/2: a linear programme over all tables.

    A table is its count c of the candidate; p_c is the probability to put it out; neighbours differ by one.
    """
    counts, upper, right = np.arange(rows + 1), [], []

    def say(entries: dict[int, float], limit: float) -> None:
        row = np.zeros(rows + 2)  # the last is η
        for place, value in entries.items():
            row[place] += value
        upper.append(row)
        right.append(limit)

    for c in counts:
        if c > rows * (0.5 + wrong):
            say({c: -1.0, -1: -1.0}, -1.0)
        elif c < rows * (0.5 - wrong):
            say({c: 1.0, -1: -1.0}, 0.0)
    growth = math.exp(epsilon)
    for one, two in [*itertools.pairwise(counts), *itertools.pairwise(counts[::-1])]:
        say({one: 1.0, two: -growth}, 0.0)
        say({one: -1.0, two: growth}, growth - 1)
    found = linprog([0.0] * (rows + 1) + [1.0], A_ub=upper, b_ub=right, bounds=[(0, 1)] * (rows + 2))
    return float(found.fun)


@pytest.mark.parametrize(("rows", "wrong"), [(8, 0.25), (12, 0.25), (20, 0.1)])
def test_no_pure_method_of_all_is_useful_below_the_least_epsilon(rows, wrong):
    """Brute force: the bound holds for the best method that there is, and is no more than three times too small."""
    for eta in (0.05, 0.2):
        least = least_epsilon(wrong, eta, 1, rows, 1)
        assert best_failure(least, rows=rows, wrong=wrong) > eta
        assert best_failure(3 * least, rows=rows, wrong=wrong) < eta
