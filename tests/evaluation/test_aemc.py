"""AEMC is Equation 1 of Li et al. 2021a: every solver agrees with the linear programme; the deep dive and movements."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest

from evaluation.counts import Cells
from evaluation.mgd.aemc import aemc, marginal_cost
from evaluation.mgd.aemc_graph import Axis
from evaluation.mgd.deep_dive import deep_dive, dive_worst
from evaluation.mgd.marginal_difference import mgd
from evaluation.mgd.movements import movements
from evaluation.mgd.targets import Targets, target
from evaluation.papers.challenges.kmarginal import k_marginal
from mechanisms.public.errors import UserError
from mechanisms.public.schema.table_schema import parse_schema
from tests.evaluation.test_scores import STATES
from tests.evaluation.worlds import (
    ALPHAS,
    DEEP,
    DELTAS,
    HALF,
    PAIRS,
    THIRD,
    distance_matrix,
    each_solver,
    equation_1,
    random_matrix,
    star,
    world,
)
from tests.public.table_worlds import coded, uniform

CASES = 110  # of each shape: above 2,000 in all
SHAPES = {
    "all fixed": (Axis.fixed(3), Axis.fixed(4)),
    "path": (Axis.path(9, 9, 1.0),),
    "path of two": (Axis.path(2, 2, Fraction(1)), Axis.fixed(3)),
    "paths with missing and other": (Axis.fixed(2), Axis.path(7, 5, Fraction(1))),
    "star": (star(7, Fraction(1)),),
    "stars with missing": (Axis.fixed(2), star(5, Fraction(1), 1)),
    "tree of pairs": (Axis.tree(5, PAIRS, Fraction(1)), Axis.fixed(2)),
    "deep tree": (Axis.tree(7, DEEP, Fraction(1)),),
    "deep trees": (Axis.tree(6, DEEP, 0.77), Axis.fixed(3)),
    "weights of 0": (Axis.path(4, 4, Fraction(0)), Axis.tree(5, PAIRS, Fraction(1))),
    "a tree of weight 0": (Axis.tree(6, DEEP, 0.0), Axis.fixed(2)),
    "a path of weight 0": (Axis.path(5, 5, 0.0), Axis.fixed(2)),
    "grid": (Axis.path(4, 4, HALF), Axis.path(5, 5, HALF)),
    "grid with missing": (Axis.path(4, 3, HALF), Axis.path(4, 4, HALF), Axis.fixed(2)),
    "cube": (Axis.path(3, 3, THIRD), Axis.path(3, 3, THIRD), Axis.path(3, 3, THIRD)),
    "path × star × star": (Axis.path(3, 3, THIRD), star(3, THIRD), star(4, THIRD, 1)),
    "path × tree": (Axis.path(4, 4, 0.3), Axis.tree(6, PAIRS, 0.7)),
    "path of one value": (Axis.path(1, 1, HALF), Axis.path(5, 5, HALF)),
}
MATRICES = {
    "metric": (True,),
    "no metric": (False,),
    "no metric × path": (False, Axis.path(4, 3, HALF)),
    "metric × tree": (True, Axis.tree(5, PAIRS, HALF)),
    "no metric × no metric": (False, False),
}


def settings(rng):
    kind = str(rng.choice(["whole", "weights", "reals"]))
    return kind, float(rng.choice(DELTAS)), float(rng.choice(ALPHAS))


def axes_of(plan, rng):
    return tuple(
        a if isinstance(a, Axis) else Axis.matrix(5, random_matrix(rng, 4, metric=a), Fraction(1, len(plan)))
        for a in plan
    )


@pytest.mark.some(3)
@pytest.mark.parametrize("shape", SHAPES | MATRICES)
def test_every_solver_agrees_with_the_linear_programme(shape, monkeypatch):
    check_agreement(shape, range(CASES), monkeypatch)


def check_agreement(shape, seeds, monkeypatch):
    for seed in seeds:
        rng = np.random.default_rng(seed)
        axes = axes_of((SHAPES | MATRICES)[shape], rng)
        kind, delta, alpha = settings(rng)
        cells = world(rng, axes, kind)
        exact = equation_1(cells, axes, delta, alpha)
        for solver in each_solver(monkeypatch):
            result = marginal_cost(cells, axes, delta=delta, alpha=alpha)
            assert result.error < 1e-5
            assert result.value == pytest.approx(exact, rel=0, abs=1e-9 + result.error), (seed, solver, result)


def test_merging_the_nodes_of_a_matrix_that_breaks_the_triangle_inequality_would_change_the_answer():
    """From 0 to 2 is dear, but 0 → 1 → 2 is cheap: one movement per record may not use it."""
    matrix = np.array([[0.0, 0.1, 1.0], [0.1, 0.0, 0.1], [1.0, 0.1, 0.0]])
    p, q = np.array([10.0, 0.0, 0.0]), np.array([0.0, 0.0, 10.0])
    assert not Axis.matrix(3, matrix).is_metric
    assert aemc(p, q, matrix, 0).value == pytest.approx(1.0)
    merged = Axis.path(3, 3, 0.2)
    assert aemc(p, q, merged, 0).value == pytest.approx(0.2)
    assert aemc(p, q, np.where(np.eye(3), 0, np.inf), 0).value == pytest.approx(2.0), "nothing may move"


def test_moving_all_records_by_one_month_costs_an_eleventh():
    """Li et al. 2021a, Figure 2a: the distance of two months is their difference over 11."""
    p, q = np.eye(12)[3] * 100, np.eye(12)[4] * 100
    result = aemc(p, q, Axis.path(12, 12, 1.0), 0)
    assert result.value == pytest.approx(1 / 11)
    assert result.solver == "simplex"


def test_cities_of_one_state_are_half_as_far_as_those_of_two():
    """Li et al. 2021a, Figure 1b."""
    cities = Axis.tree(5, PAIRS, 1.0)
    for place, cost in ((1, 0.5), (2, 1.0)):
        result = aemc(np.eye(5)[0] * 100, np.eye(5)[place] * 100, cities, 0)
        assert result.value == pytest.approx(cost)
        assert result.solver == "simplex"


@pytest.mark.some(2)
@pytest.mark.parametrize("noise", [0.0, 20.0])
def test_the_network_simplex_agrees_with_or_tools_beyond_small_worlds(noise, monkeypatch):
    rng = np.random.default_rng(0)
    axes = (Axis.path(12, 12, THIRD), star(30, THIRD), Axis.tree(30, [np.arange(30) // 5, [0] * 6], THIRD))
    rate = np.multiply.outer(np.ones(12), np.multiply.outer(rng.pareto(1.2, 30), rng.pareto(0.8, 30)))
    q = rng.poisson(rate)
    p = np.maximum(np.rint(q + rng.laplace(0, noise, q.shape)), 0) if noise else rng.permuted(rng.poisson(rate), axis=1)
    first, second = (aemc(p, q, axes) for _ in each_solver(monkeypatch))
    assert (first.solver, second.solver) == ("simplex", "flow")
    assert first.value == pytest.approx(second.value, rel=1e-12)


@pytest.mark.parametrize("shape", [(3000,), (120, 30)])
def test_the_network_simplex_agrees_with_or_tools_on_sparse_tables_that_are_unlike(shape, monkeypatch):
    """The mass moves along long chains."""
    rng = np.random.default_rng(0)
    p, q = (rng.multinomial(9_000, rng.dirichlet(np.full(math.prod(shape), 0.02))).reshape(shape) for _ in range(2))
    axes = [Axis.path(n, n, Fraction(1, len(shape))) for n in shape]
    first, second = (aemc(p, q, axes) for _ in each_solver(monkeypatch))
    assert (first.solver, second.solver) == ("simplex", "flow")
    assert first.value == pytest.approx(second.value, rel=1e-12)


def test_it_is_said_where_moving_costs_more_than_removing_and_adding():
    p, q = np.eye(3)[0] * 10, np.eye(3)[2] * 10
    assert aemc(p, q, Axis.path(3, 3, 1.0), 0).note == ""
    result = aemc(p, q, Axis.path(3, 3, 1.0), 0, 0.25)
    assert result.value == pytest.approx(0.5)
    assert "never used" in result.note


def test_an_empty_truth_gives_a_reason_and_no_number():
    result = aemc([3.0, 0.0], [0.0, 0.0], Axis.fixed(2))
    assert result.value is None
    assert "empty" in result.reason


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf])
def test_bad_counts_are_refused(bad):
    for p, q in (([bad, 1.0], [1.0, 1.0]), ([1.0, 1.0], [1.0, bad])):
        with pytest.raises(UserError, match="counts in the"):
            aemc(p, q, Axis.fixed(2))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"delta": -1}, "Δ"),
        ({"delta": math.nan}, "Δ"),
        ({"alpha": 0}, "α"),
        ({"distance": Axis.fixed(3)}, "codes"),
        ({"distance": np.ones((2, 2))}, "diagonal"),
        ({"distance": np.zeros((2, 3))}, "square"),
        ({"distance": np.array([[0, -1.0], [1.0, 0]])}, "negative"),
    ],
)
def test_bad_settings_are_refused_in_words(change, words):
    with pytest.raises(UserError, match=words):
        aemc(**({"p": [1.0, 9.0], "q": [9.0, 1.0], "distance": Axis.path(2, 2, 1.0)} | change))


def test_a_graph_beyond_memory_is_refused():
    wide = (Axis.path(10_000, 10_000, HALF), Axis.path(10_000, 10_000, HALF))
    with pytest.raises(UserError, match="too large"):
        marginal_cost(Cells((10_000, 10_000), np.array([5]), np.array([9.0]), np.array([1.0])), wide)


WEIGHTS = ({"month": 1}, {"city": 1}, {"month": "1/2", "city": "1/2"}, {})


@pytest.mark.parametrize("weights", WEIGHTS)
def test_every_frame_adds_up_to_the_aemc(weights):
    real, synthetic = uniform(STATES.domain, 900, 1), uniform(STATES.domain, 700, 2)
    wanted = target(STATES, ["month", "city", "sex"], weights=weights, delta=1.0)
    value = mgd(real, synthetic, STATES, Targets((wanted,))).score
    dive = deep_dive(real, synthetic, STATES, wanted, top=1000)
    assert dive.aemc == pytest.approx(value, abs=1e-9)
    assert dive.attributes["cost"].sum() == pytest.approx(value, abs=1e-9)
    assert dive.bins["cost"].sum() == pytest.approx(value, abs=1e-9)
    for _, rows in dive.slices.groupby("attribute"):
        assert rows["cost"].sum() == pytest.approx(value, abs=1e-9)
        assert (rows["real"].sum(), rows["synthetic"].sum()) == (900, 700)
    assert dive.slices["value"].tolist()[15:18] == ["bridgeport", "elsewhere", "missing"]


def test_a_shifted_month_is_seen_as_movement_along_month():
    real, synthetic = (coded(STATES, [np.full(100, month), *np.zeros((3, 100))]) for month in (0, 2))
    dive = deep_dive(real, synthetic, STATES, target(STATES, ["month", "city"], delta=0.0))
    assert dive.aemc == pytest.approx(2 / 11)
    shares = dive.attributes.set_index("part")["share"]
    assert shares["moving along month"] == pytest.approx(1)
    (moved,) = dive.movements.to_dict("records")
    assert (moved["from month"], moved["to month"], moved["records"]) == ("3", "1", 100)
    assert moved["from city"] == moved["to city"] == "boston"
    first = dive.bins.iloc[0]
    assert {first["real"], first["synthetic"]} == {0, 100}


def test_columns_called_as_figures_are_keep_their_values_in_brackets():
    flag = {"kind": "categorical", "values": ["p", "q"], "missing": False}
    schema = parse_schema({"columns": dict.fromkeys(["cost", "real"], flag)}, where="s")
    real, made = (coded(schema, [[own] * 4, [1] * 4]) for own in (0, 1))
    bins = deep_dive(real, made, schema, target(schema, ["cost", "real"], delta=0.0)).bins
    groups = k_marginal(real, made, ["real"], [("cost",)]).frame
    assert sorted(bins["(cost)"]) == ["p", "q"] and set(bins["(real)"]) == {"q"} and bins["real"].sum() == 4
    assert groups["(real)"].tolist() == [1] and groups["real"].tolist() == [4]


def test_only_the_worst_marginals_are_dived_into():
    real, synthetic = uniform(STATES.domain, 900, 1), uniform(STATES.domain, 700, 2)
    targets = Targets(tuple(target(STATES, [n], delta=0.0) for n in ("month", "city", "sex")))
    result = mgd(real, synthetic, STATES, targets)
    dives = dive_worst(result, real, synthetic, STATES, worst=2)
    assert [d.label for d in dives] == result.frame()["marginal"].tolist()[:2]
    json.dumps([d.to_json() for d in dives], allow_nan=False)


def test_an_empty_truth_has_no_dive():
    dive = deep_dive(uniform(STATES.domain, 0, 1), uniform(STATES.domain, 5, 2), STATES, target(STATES, ["sex"]))
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
