"""The deep dive into MGD, and the movements of its optimum."""

import json

import numpy as np
import pytest

from evaluation.counts import Cells
from evaluation.mgd.aemc import marginal_cost
from evaluation.mgd.deep_dive import deep_dive, dive_worst
from evaluation.mgd.geometry import Axis
from evaluation.mgd.marginal_difference import mgd
from evaluation.mgd.movements import movements
from evaluation.mgd.targets import Targets, target
from mechanisms.public.coded_table import CodedTable
from tests.evaluation.test_aemc import MATRICES, SHAPES, axes_of, settings
from tests.evaluation.test_targets import TOWN, table
from tests.evaluation.worlds import distance_matrix, world

WEIGHTS = ({"month": 1}, {"city": 1}, {"month": "1/2", "city": "1/2"}, {})


@pytest.mark.parametrize("weights", WEIGHTS)
def test_every_frame_adds_up_to_the_aemc(weights):
    real, synthetic = table(TOWN, 900, 1), table(TOWN, 700, 2)
    wanted = target(TOWN, ["month", "city", "sex"], weights=weights, delta=1.0)
    value = mgd(real, synthetic, TOWN, Targets((wanted,))).score
    dive = deep_dive(real, synthetic, TOWN, wanted, top=1000)
    assert dive.aemc == pytest.approx(value, abs=1e-9)
    assert dive.attributes["cost"].sum() == pytest.approx(value, abs=1e-9)
    assert dive.bins["cost"].sum() == pytest.approx(value, abs=1e-9)
    for _, rows in dive.slices.groupby("attribute"):
        assert rows["cost"].sum() == pytest.approx(value, abs=1e-9)
        assert (rows["real"].sum(), rows["synthetic"].sum()) == (900, 700)
    assert dive.slices["value"].tolist()[15:18] == ["bridgeport", "elsewhere", "missing"]


def test_a_shifted_month_is_seen_as_movement_along_month():
    rows = 100
    jan, mar = np.zeros(rows, np.uint8), np.full(rows, 2, np.uint8)
    rest = (np.zeros(rows, np.uint8),) * 3
    real, synthetic = CodedTable(TOWN.domain, (jan, *rest)), CodedTable(TOWN.domain, (mar, *rest))
    dive = deep_dive(real, synthetic, TOWN, target(TOWN, ["month", "city"], delta=0.0))
    assert dive.aemc == pytest.approx(2 / 11)
    shares = dive.attributes.set_index("part")["share"]
    assert shares["moving along month"] == pytest.approx(1)
    (moved,) = dive.movements.to_dict("records")
    assert (moved["from month"], moved["to month"], moved["records"]) == ("3", "1", 100)
    assert moved["from city"] == moved["to city"] == "boston"
    first = dive.bins.iloc[0]
    assert {first["real"], first["synthetic"]} == {0, 100}


def test_only_the_worst_marginals_are_dived_into():
    real, synthetic = table(TOWN, 900, 1), table(TOWN, 700, 2)
    targets = Targets(tuple(target(TOWN, [n], delta=0.0) for n in ("month", "city", "sex")))
    result = mgd(real, synthetic, TOWN, targets)
    dives = dive_worst(result, real, synthetic, TOWN, worst=2)
    assert [d.label for d in dives] == result.frame()["marginal"].tolist()[:2]
    json.dumps([d.to_json() for d in dives], allow_nan=False)


def test_an_empty_truth_has_no_dive():
    dive = deep_dive(table(TOWN, 0, 1), table(TOWN, 5, 2), TOWN, target(TOWN, ["sex"]))
    assert dive.aemc is None
    assert dive.bins.empty


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
