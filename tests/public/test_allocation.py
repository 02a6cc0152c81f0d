"""How the budget is allocated to pairs, and what noisy distances tell of them."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from mechanisms.public.designs.allocation import LEAST_PROMISE, Known, PairOffer, Shares, _Work, allocate
from mechanisms.public.designs.dense import noise_error
from mechanisms.public.designs.deviations import STRENGTHS, PairCells
from mechanisms.public.designs.pair_view import TreeModel, followed
from mechanisms.public.queries.merged_cells import MergedQuery
from mechanisms.public.queries.query_matrices import Identity

POWER = 2 / 3


def noise_of(sigma):
    """Mean absolute noise by the part of a budget, where squares of strengths add up."""
    return lambda parts: sigma / np.sqrt(np.asarray(parts, np.float64))


def left(cells):
    return lambda place, levels: noise_error(cells[place], levels)


def shown(cells):
    return lambda place, level: float((cells[place] > level).sum())


def world(gaps, sizes=(4, 3, 5, 6), records=10_000.0, seed=0):
    rng = np.random.default_rng(seed)
    sides = [rng.dirichlet(np.full(n, 3.0)) * records for n in sizes]
    pairs = np.array(list(itertools.combinations(range(len(sizes)), 2)), np.intp)
    cells = [np.outer(sides[a], sides[b]).ravel() / records for a, b in pairs]
    known = Known(sides, np.full(len(sizes), 1e300), *np.ones((2, len(sizes))))
    sizes_of = np.array([c.size for c in cells], np.float64)
    wanted = PairOffer(left(cells), shown(cells), sizes_of, pairs, np.asarray(gaps, float), *np.ones((2, len(pairs))))
    return known, wanted


def promised(known, wanted, noise):
    return _Work.of(known, wanted, noise, POWER).error(allocate(known, wanted, noise, POWER))


def test_parts_sum_to_one():
    for sigma in (1.0, 30.0, 1000.0):
        shares = allocate(*world([9000, 10, 4000, 0, 700, 2500]), noise_of(sigma), POWER)
        assert shares.known.sum() + shares.parts.sum() == pytest.approx(1.0)


def test_without_dependence_columns_share_by_their_cells():
    plan = allocate(*world([0.0] * 6), noise_of(5.0), POWER)
    loads = np.array([4, 3, 5, 6]) ** POWER
    assert plan.chosen == () and plan.known == pytest.approx(loads / loads.sum())


def test_where_noise_drowns_every_pair_only_columns_are_measured():
    gaps = [5000, 4000, 3000, 3000, 2000, 1000]
    assert len(allocate(*world(gaps), noise_of(2.0), POWER).chosen) == 6
    assert allocate(*world(gaps), noise_of(20_000.0), POWER).chosen == ()


def test_the_strongest_pair_for_its_cells_is_taken_first():
    assert allocate(*world([100, 6000, 100, 100, 100, 300]), noise_of(20.0), POWER).chosen[0] == 1


def test_a_column_of_many_pairs_gets_a_larger_part_than_the_same_column_of_few():
    """Its error shows in every pair that has it: on a wide table columns need more of the budget than pairs."""
    few = allocate(*world([3000] * 3, sizes=(5, 5, 5)), noise_of(8.0), POWER)
    many = allocate(*world([3000] * 45, sizes=(5,) * 10), noise_of(8.0), POWER)
    pair_by_column = [s.parts.max() / s.known.max() for s in (few, many)]
    assert pair_by_column[1] < pair_by_column[0]


def test_a_pair_with_less_noise_gets_a_smaller_part_and_all_errors_fall():
    """Of two pairs alike, one has half the noise for the same part, as its residual has: loads count that once."""
    known, wanted = world([4000] * 3, sizes=(5, 5, 5), seed=2)
    wanted = replace(wanted, cells=np.full(3, 25.0))
    alike = allocate(known, wanted, noise_of(3.0), POWER)
    halved = replace(wanted, factor=np.array([0.5, 1.0, 1.0]))
    fewer = allocate(known, halved, noise_of(3.0), POWER)
    parts = dict(zip(fewer.chosen, fewer.parts.tolist(), strict=True))
    before = dict(zip(alike.chosen, alike.parts.tolist(), strict=True))
    assert set(parts) == set(before) == {0, 1, 2}
    assert promised(known, halved, noise_of(3.0)) < promised(known, wanted, noise_of(3.0))
    assert parts[0] / parts[1] == pytest.approx(0.5**POWER * before[0] / before[1], rel=0.05)


@pytest.mark.parametrize("seed", range(6))
def test_no_set_of_pairs_does_much_better_than_the_one_taken(seed):
    """Brute force over all sets of six pairs, shares by the same rule."""
    rng = np.random.default_rng(seed)
    known, wanted = world(rng.exponential(2500, 6), seed=seed)
    noise = noise_of(float(rng.uniform(5, 60)))
    plan = allocate(known, wanted, noise, POWER)
    work = _Work.of(known, wanted, noise, POWER)
    ones = np.array([4.0, 3.0, 5.0, 6.0])
    best = np.inf
    for chosen in itertools.chain.from_iterable(itertools.combinations(range(6), k) for k in range(7)):
        for weight in (1.0, 2.0, 3.0):
            loads = np.concatenate([(weight * ones) ** POWER, wanted.cells[list(chosen)] ** POWER])
            parts = loads / loads.sum()
            best = min(best, work.error(Shares(parts[:4], chosen, parts[4:])))
    assert work.error(plan) <= 1.05 * best


def test_pairs_that_depend_for_certain_are_measured_with_the_others():
    known, wanted = world([9000, 800, 0, 0, 0, 0])
    without = allocate(known, wanted, noise_of(40.0), POWER).chosen
    certain = replace(wanted, certain=(1,))
    assert 1 not in without and {0, 1} <= set(allocate(known, certain, noise_of(40.0), POWER).chosen)


def test_further_pairs_give_way_where_far_less_error_is_promised_without_them():
    known, wanted = world([9000, 800, 0, 0, 0, 0])
    further, firm = replace(wanted, certain=(0,), further=(1,)), replace(wanted, certain=(0, 1))
    little, much = noise_of(13.0), noise_of(20.0)
    assert allocate(known, wanted, little, POWER).chosen == (0,)  # it does not pay, by less than 2 %
    assert set(allocate(known, further, little, POWER).chosen) == {0, 1}
    assert allocate(known, further, much, POWER).chosen == (0,)
    assert promised(known, further, much) < (1 - LEAST_PROMISE) * promised(known, firm, much)


def test_a_pair_that_counts_more_gets_a_larger_part_and_its_columns_too():
    known, wanted = world([3000.0] * 6)
    alike = allocate(known, wanted, noise_of(20.0), POWER)
    place = 4  # of the second and the fourth column
    weights = np.where(np.arange(6) == place, 8.0, 1.0)
    more = allocate(known, replace(wanted, weights=weights), noise_of(20.0), POWER)

    def part(shares):
        return shares.parts[shares.chosen.index(place)]

    assert part(more) > 1.5 * part(alike)
    assert (more.known / alike.known)[[1, 3]].min() > (more.known / alike.known)[[0, 2]].max()


def test_weights_that_are_all_the_same_change_nothing():
    known, wanted = world([9000, 10, 4000, 0, 700, 2500])
    plain = allocate(known, wanted, noise_of(20.0), POWER)
    tripled = replace(known, weights=np.full(4, 3.0)), replace(wanted, weights=np.full(6, 3.0))
    again = allocate(*tripled, noise_of(20.0), POWER)
    assert again.chosen == plain.chosen
    assert again.parts == pytest.approx(plain.parts) and again.known == pytest.approx(plain.known)


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
