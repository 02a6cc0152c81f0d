"""How the budget goes to pairs; DenseMarg, groups, covering designs and bases: laws on small and on random cases."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.public.designs.allocation import LEAST_PROMISE, BoughtBefore, PairOffer, Shares, _Work, allocate
from mechanisms.public.designs.dense import combined, dense, noise_error
from mechanisms.public.designs.deviations import STRENGTHS, PairCells
from mechanisms.public.designs.pair_view import TreeModel, followed
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.queries.cell_sums import MergedQuery
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements, NoisyMarginal
from mechanisms.selection.papers.privbasis import bases, frequent_itemsets
from mechanisms.selection.papers.priview import FIELDS, covering, lines, random_views
from mechanisms.selection.papers.public_table import grouped, within

POWER = 2 / 3


def noise_of(sigma):
    """Mean absolute noise by the part of a budget, where squares of strengths add up."""
    return lambda parts: sigma / np.sqrt(np.asarray(parts, np.float64))


def left(cells):
    return lambda place, levels: noise_error(cells[place], levels)


def shown(cells):
    return lambda place, level: float((cells[place] > level).sum())


def world(gaps, sizes=(4, 3, 5, 6), records=10_000.0, seed=0, whole=False):
    """Columns of these sizes, and all their pairs; `whole`: an answer to a pair tells of its sides."""
    rng = np.random.default_rng(seed)
    sides = [rng.dirichlet(np.full(n, 3.0)) * records for n in sizes]
    pairs = np.array(list(itertools.combinations(range(len(sizes)), 2)), np.intp)
    cells = [np.outer(sides[a], sides[b]).ravel() / records for a, b in pairs]
    known = BoughtBefore(sides, np.full(len(sizes), 1e300), *np.ones((2, len(sizes))))
    sizes_of = np.array([c.size for c in cells], np.float64)
    summed = np.array([(sizes[b], sizes[a]) if whole else (np.inf, np.inf) for a, b in pairs])
    once, gap = np.ones((2, len(pairs))), np.asarray(gaps, float)
    return known, PairOffer(left(cells), shown(cells), sizes_of, pairs, gap, *once, summed)


def promised(known, wanted, noise):
    return _Work.of(known, wanted, noise, POWER).error(allocate(known, wanted, noise, POWER))


def test_parts_sum_to_one():
    for sigma in (1.0, 30.0, 1000.0):
        shares = allocate(*world([9000, 10, 4000, 0, 700, 2500]), noise_of(sigma), POWER)
        assert shares.bought.sum() + shares.parts.sum() == pytest.approx(1.0)


def test_without_dependence_columns_share_by_their_cells():
    plan = allocate(*world([0.0] * 6), noise_of(5.0), POWER)
    loads = np.array([4, 3, 5, 6]) ** POWER
    assert plan.chosen == () and plan.bought == pytest.approx(loads / loads.sum())


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
    pair_by_column = [s.parts.max() / s.bought.max() for s in (few, many)]
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


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_no_set_of_pairs_does_much_better_than_the_one_taken(seed, whole):
    """Brute force over all sets of six pairs, shares by the same rule."""
    rng = np.random.default_rng(seed)
    known, wanted = world(rng.exponential(2500, 6), seed=seed, whole=whole)
    noise = noise_of(float(rng.uniform(5, 60)))
    plan = allocate(known, wanted, noise, POWER)
    work = _Work.of(known, wanted, noise, POWER)
    ones = np.array([4.0, 3.0, 5.0, 6.0])
    best = np.inf
    for chosen in itertools.chain.from_iterable(itertools.combinations(range(6), k) for k in range(7)):
        for weight in (1.0, 2.0, 3.0, *([1e-6] if whole and chosen else [])):
            loads = np.concatenate([(weight * ones) ** POWER, wanted.cells[list(chosen)] ** POWER])
            parts = loads / loads.sum()
            best = min(best, work.error(Shares(parts[:4], chosen, parts[4:])))
    assert work.error(plan) <= 1.05 * best


def test_answers_to_pairs_tell_of_their_columns_as_their_sums_do():
    """The mean of a column's own answers and of the sums of its pairs', each by its precision, over draws of noise."""
    rng, sizes = np.random.default_rng(2), (2, 3, 2)
    known, wanted = world([100] * 3, sizes=sizes, whole=True)
    known = replace(known, noise=np.array([5.0, 40.0, 1e300]))
    shares = Shares(np.zeros(3), (0, 2), np.array([0.3, 0.7]))  # (0, 1) and (1, 2)
    one, two = noise_of(6.0)(shares.parts)
    direct = [rng.normal(0, s, 200_000) for s in (5.0, 40.0)]
    sums = {(n, s): rng.normal(0, s, (200_000, n)).sum(axis=1) for n, s in ((3, one), (2, one), (2, two), (3, two))}
    told = ([direct[0], sums[3, one]], [direct[1], sums[2, one], sums[2, two]], [sums[3, two]])
    expected = []
    for answers in told:
        precise = np.array([1 / a.var() for a in answers])
        expected.append((precise @ np.array(answers) / precise.sum()).std())
    noise = _Work.of(known, wanted, noise_of(6.0), POWER).without_more(shares)
    assert noise == pytest.approx(expected, rel=0.01)


def test_columns_whose_pairs_tell_enough_of_them_get_nothing_more():
    """Five marks in 1,000 records: no pair alone is worth what it takes from the columns, and all together are."""
    marks = {"sizes": (2,) * 5, "records": 1000.0}
    alone, together = (allocate(*world([60.0] * 10, whole=w, **marks), noise_of(4.2), POWER) for w in (False, True))
    assert alone.chosen == () and len(together.chosen) == 10
    assert together.bought == pytest.approx(0, abs=1e-6)


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
    assert (more.bought / alike.bought)[[1, 3]].min() > (more.bought / alike.bought)[[0, 2]].max()


def test_weights_that_are_all_the_same_change_nothing():
    known, wanted = world([9000, 10, 4000, 0, 700, 2500])
    plain = allocate(known, wanted, noise_of(20.0), POWER)
    tripled = replace(known, weights=np.full(4, 3.0)), replace(wanted, weights=np.full(6, 3.0))
    again = allocate(*tripled, noise_of(20.0), POWER)
    assert again.chosen == plain.chosen
    assert again.parts == pytest.approx(plain.parts) and again.bought == pytest.approx(plain.bought)


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


def domain(*sizes):
    return Domain(tuple(Attribute(f"c{i:02d}", s) for i, s in enumerate(sizes)))


def root(scale):
    return lambda share: scale / np.sqrt(share)


def test_noise_costs_a_cell_no_more_than_what_it_should_hold():
    assert noise_error(np.array([100.0, 1.0]), np.array([0.5, 10.0, 1000.0])) == pytest.approx([1.0, 11.0, 101.0])


def test_the_trade_off_takes_far_pairs_and_leaves_near_ones():
    """A high distance is a high correlation: section 5.2 of Li et al. 2021b has it the other way round."""
    full = [np.full(4, 1000.0)] * 3
    assert sorted(dense(np.array([2000.0, 1.0, 900.0]), full, root(10.0))) == [0, 2]
    assert dense(np.zeros(3), full, root(10.0)) == []
    assert sorted(dense(np.full(3, 4000.0), full, root(1e-6))) == [0, 1, 2]


@settings(max_examples=50)
@given(
    gaps=st.lists(st.floats(0, 3000), min_size=2, max_size=6),
    cells=st.lists(st.integers(2, 60), min_size=6, max_size=6),
    scale=st.floats(0.1, 100),
)
def test_no_single_step_more_or_less_would_be_better(gaps, cells, scale):
    """Greedy: no candidate left out would lower the sum of both errors."""
    expected = [np.full(c, 3000.0 / c) for c in cells[: len(gaps)]]
    chosen = dense(np.array(gaps), expected, root(scale))

    def total(places):
        loads = {i: expected[i].size ** (2 / 3) for i in places}
        load = sum(loads.values())
        levels = {i: np.array([scale * np.sqrt(load / loads[i])]) for i in loads}
        noise = sum(float(noise_error(expected[i], levels[i])[0]) for i in loads)
        return noise + sum(g for i, g in enumerate(gaps) if i not in places)

    for i in set(range(len(gaps))) - set(chosen):
        assert total([*chosen, i]) >= total(chosen) - 0.02 * 3000


def test_overlapping_binary_pairs_become_one_marginal_and_large_ones_stay_pairs():
    binary, wide = domain(2, 2, 2, 2), domain(40, 40, 40)
    every = list(itertools.combinations(binary.names, 2))
    assert combined(binary, every, 1000) == [binary.names]
    assert combined(binary, every, 8) != [binary.names]
    assert combined(binary, every, 0) == sorted(every, key=binary.axes)
    wide_pairs = list(itertools.combinations(wide.names, 2))
    assert combined(wide, wide_pairs, 10**6) == wide_pairs


def test_merged_values_are_combined_where_the_values_of_the_rows_can_be_counted_too():
    """Rows are counted before values are merged: 2.7 · 10¹⁰ cells of them in the place of 8 do not fit into memory."""
    merged, every = domain(2, 2, 2), [("c00", "c01"), ("c00", "c02"), ("c01", "c02")]
    for sizes, whole in (((200, 200, 200), True), ((3000, 3000, 3000), False)):
        found = combined(merged, every, 1000, counted=domain(*sizes))
        assert found == ([merged.names] if whole else every), sizes


@settings(max_examples=50)
@given(sizes=st.lists(st.integers(1, 6), min_size=2, max_size=7), data=st.data())
def test_combining_keeps_every_pair_and_the_limit(sizes, data):
    d = domain(*sizes)
    pairs = data.draw(st.lists(st.sampled_from(list(itertools.combinations(d.names, 2))), unique=True, min_size=1))
    found = combined(d, pairs, 50)
    assert all(any(set(p) <= set(c) for c in found) for p in pairs)
    assert all(d.cells(c) <= 50 for c in found if len(c) > 2)
    assert {q for c in found for q in itertools.combinations(c, 2)} == set(pairs)


@settings(max_examples=50)
@given(sizes=st.lists(st.integers(1, 6), min_size=2, max_size=7), data=st.data())
def test_combining_takes_the_sets_that_a_try_of_every_set_takes(sizes, data):
    d = domain(*sizes)
    every = list(itertools.combinations(d.names, 2))
    pairs = data.draw(st.lists(st.sampled_from(every), unique=True, min_size=1))
    left, taken = set(pairs), []
    sets = [s for k in range(2, len(sizes) + 1) for s in itertools.combinations(d.names, k)]
    for clique in sorted(sets, key=lambda s: (-len(s), d.cells(s), d.axes(s))):
        held = set(itertools.combinations(clique, 2))
        if not held <= set(pairs) or not held & left or (len(clique) > 2 and d.cells(clique) > 200):
            continue
        cells = [d.cells(p) for p in held & left]
        if sum((d.cells(clique) * c) ** 0.5 for c in cells) <= sum(c ** (2 / 3) for c in cells) ** 1.5 * (1 + 1e-9):
            taken.append(clique)
            left -= held
    assert combined(d, pairs, 200) == sorted(taken, key=lambda c: (len(c), d.axes(c)))


def test_groups_are_those_that_depend_on_each_other():
    d = domain(2, 2, 2, 2, 2)
    pairs = list(itertools.combinations(d.names, 2))
    strong = {("c00", "c01"): 90.0, ("c02", "c03"): 80.0, ("c01", "c02"): 5.0}
    gaps = [strong.get(p, -1.0) for p in pairs]
    assert grouped(d.names, pairs, gaps, 2) == [["c00", "c01"], ["c02", "c03"], ["c04"]]
    assert grouped(d.names, pairs, gaps, 4) == [["c00", "c01", "c02", "c03"], ["c04"]]
    assert [pairs[i] for i in within(pairs, [["c00", "c01"], ["c02"], ["c03", "c04"]])] == [pairs[0], pairs[-1]]


@pytest.mark.parametrize(("columns", "count"), [(12, 3), (64, 72)])
def test_as_many_views_of_eight_cover_the_pairs_as_in_the_paper(columns, count):
    """Li et al. 2021b, Example 1; section 3.2: "one can choose 72 eight-way views", each pair in exactly one."""
    views = covering(domain(*[2] * columns), 2, view_cells=256, max_cells=1000)
    assert len(views) == count and {len(v) for v in views} == {8}
    pairs = [p for v in views for p in itertools.combinations(v, 2)]
    assert len(set(pairs)) == columns * (columns - 1) // 2 and (len(pairs) == len(set(pairs)) or columns == 12)


@pytest.mark.parametrize("q", FIELDS)
def test_any_two_points_of_a_plane_lie_on_exactly_one_line(q):
    """The affine plane has q² + q lines of q points, the whole plane q² + q + 1 of q + 1."""
    for points, count, size in ((q * q, q * q + q, q), (q * q + q + 1, q * q + q + 1, q + 1)):
        drawn = lines(q, points)
        assert len(drawn) == count and {len(line) for line in drawn} == {size}
        pairs = {frozenset(p) for line in drawn for p in itertools.combinations(line, 2)}
        assert len(pairs) == points * (points - 1) // 2 == count * size * (size - 1) // 2


@pytest.mark.parametrize(("sizes", "most"), [([2] * 57, 57), ([2] * 50, 57), ([3] * 25, 30), ([2] * 20 + [4] * 20, 85)])
def test_parts_of_planes_and_mixed_sizes_cover_the_pairs(sizes, most):
    d = domain(*sizes)
    views = covering(d, 2, view_cells=256, max_cells=1000)
    assert uncovered(d, views, 2, 1000) == []
    assert all(d.cells(v) <= 256 for v in views)
    assert len(views) <= most


def uncovered(d, views, t: int, max_cells: int) -> list[tuple[str, ...]]:
    """The sets of t attributes within max_cells that no view holds."""
    held = {s for v in views for s in itertools.combinations(v, t)}
    return [s for s in itertools.combinations(d.names, t) if s not in held and d.cells(s) <= max_cells]


@settings(max_examples=40)
@given(sizes=st.lists(st.integers(1, 9), min_size=3, max_size=9), t=st.integers(1, 3), limit=st.integers(2, 300))
def test_every_set_is_in_a_view_and_no_view_is_too_large(sizes, t, limit):
    d = domain(*sizes)
    views = covering(d, t, view_cells=limit, max_cells=10**6)
    assert uncovered(d, views, t, 10**6) == []
    assert all(d.cells(v) <= limit or len(v) == t for v in views)


def test_sets_that_are_too_large_are_left_out_and_if_all_are_it_is_an_error():
    d = domain(50, 50, 2)
    assert ("c00", "c01") not in covering(d, 2, view_cells=100, max_cells=200)
    with pytest.raises(UserError, match="max_cells"):
        covering(d, 2, view_cells=100, max_cells=10)
    with pytest.raises(UserError, match=r"selection\.t"):
        covering(d, 4, view_cells=100, max_cells=100)


def test_random_views_reach_every_column():
    d = domain(*[2] * 20)
    views = random_views(d, 3, view_cells=256)
    assert {n for v in views for n in v} == set(d.names)
    assert all(len(v) == 8 for v in views)
    assert views == random_views(d, 3, view_cells=256)


@settings(max_examples=60)
@given(count=st.integers(1, 7), limit=st.integers(4, 200), data=st.data())
def test_every_frequent_pair_and_item_lies_in_a_basis(count, limit, data):
    d = domain(*[2] * count)
    every = list(itertools.combinations(d.names, 2))
    pairs = data.draw(st.lists(st.sampled_from(every), unique=True)) if every else []
    found = bases(d, d.names, pairs, limit)
    assert {n for b in found for n in b} == set(d.names)
    assert all(any(set(p) <= set(b) for b in found) for p in pairs)
    assert all(d.cells(b) <= limit for b in found)


def test_the_bases_of_the_papers_example():
    """Section 3.1: its maximal itemsets lie in the two bases that it names, or in as few cells."""
    d = Domain(tuple(Attribute(n, 2) for n in "abcdegh"))
    pairs = [tuple(p) for p in ("ab", "ac", "bc", "bd", "ce", "ag", "bg", "gh")]
    found = bases(d, d.names, pairs, 256)
    for itemset in ("abc", "bd", "ce", "abg", "gh"):
        assert any(set(itemset) <= set(b) for b in found)


def test_itemsets_are_counted_from_every_marginal_that_holds_them():
    d = domain(2, 2, 2)
    cube = np.arange(8.0).reshape(2, 2, 2)
    answers = (
        NoisyMarginal(("c00", "c01"), Identity(4), cube.sum(2).ravel(), "gaussian", 1.0, "x"),
        NoisyMarginal(("c01", "c02"), Identity(4), cube.sum(0).ravel() + 2, "gaussian", 1.0, "y"),
    )
    found = {i.items: i for i in frequent_itemsets(Measurements(d, answers), d.names, least=0)}
    assert found["c00", "c01"].count == 13
    assert found["c01",].count == pytest.approx(cube[:, 1].sum() + 2)
    assert found["c01",].stddev == pytest.approx(1.0)
    assert ("c00", "c02") not in found
    assert frequent_itemsets(Measurements(d, answers), d.names, least=1e9) == []
