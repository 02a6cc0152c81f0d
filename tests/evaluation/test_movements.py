"""The deep dive is an optimum of Equation 1: from one table to the other, within tolerance, at the least cost."""

import numpy as np
import pytest

from evaluation.cells import Cells
from evaluation.mgd.aemc import marginal_cost
from evaluation.mgd.geometry import Axis
from evaluation.mgd.movements import movements
from tests.evaluation.test_aemc import MATRICES, SHAPES, axes_of, settings
from tests.evaluation.worlds import distance_matrix, world


@pytest.mark.parametrize("shape", SHAPES | MATRICES)
def test_movements_are_an_optimum(shape):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        axes = axes_of((SHAPES | MATRICES)[shape], rng)
        kind, delta, alpha = settings(rng)
        cells = world(rng, axes, kind)
        found = movements(cells, axes, delta=delta, alpha=alpha)
        least = marginal_cost(cells, axes, delta=delta, alpha=alpha)
        bound = 1e-7 + found.error + least.error * cells.q.sum()
        assert found.total == pytest.approx(least.value * cells.q.sum(), rel=0, abs=bound)
        assert found.contribution.sum() == pytest.approx(found.total, rel=0, abs=bound)
        distance = distance_matrix(axes)[found.source, found.target]
        assert found.cost == pytest.approx(distance * found.mass, rel=0, abs=bound)
        assert found.cost.sum() == pytest.approx(sum(found.along), rel=0, abs=bound)
        mass, q = np.zeros((2, distance_matrix(axes).shape[0]))
        mass[cells.ids], q[cells.ids] = cells.p, cells.q
        np.subtract.at(mass, found.source, found.mass)
        assert mass.min() >= -1e-6
        np.add.at(mass, found.target, found.mass)
        mass[found.ids] += found.added - found.removed
        assert np.abs(mass - q).max() <= delta + 1e-6


def test_the_bins_that_contribute_most_name_their_movements():
    p, q = np.zeros((2, 12, 3))
    p[3, 1], q[4, 1], q[0, 0] = 100, 100, 7
    axes = (Axis.path(12, 12, 1.0), Axis.fixed(3))
    found = movements(Cells.dense(p, q), axes)
    assert found.along == pytest.approx((98 / 11, 0.0))
    assert found.adding == 5
    top = found.ids[found.top(1)]
    assert top[0] == 0
    assert set(found.ids[found.top(3)]) == {0, 3 * 3 + 1, 4 * 3 + 1}
    [move] = found.of_cells(np.array([3 * 3 + 1]))
    assert (found.source[move], found.target[move], found.mass[move]) == (10, 13, 98)
