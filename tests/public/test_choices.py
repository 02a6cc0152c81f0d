"""DenseMarg, combining, groups, covering designs and bases: laws on small and on random cases."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.public.designs.dense import combined, dense, noise_error
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements, NoisyMarginal
from mechanisms.selection.papers.groups import grouped, within
from mechanisms.selection.papers.privbasis import bases, frequent_itemsets
from mechanisms.selection.papers.priview import FIELDS, covering, lines, random_views


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


@settings(max_examples=50, deadline=None)
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


@settings(max_examples=50, deadline=None)
@given(sizes=st.lists(st.integers(1, 6), min_size=2, max_size=7), data=st.data())
def test_combining_keeps_every_pair_and_the_limit(sizes, data):
    d = domain(*sizes)
    pairs = data.draw(st.lists(st.sampled_from(list(itertools.combinations(d.names, 2))), unique=True, min_size=1))
    found = combined(d, pairs, 50)
    assert all(any(set(p) <= set(c) for c in found) for p in pairs)
    assert all(d.cells(c) <= 50 for c in found if len(c) > 2)
    assert {q for c in found for q in itertools.combinations(c, 2)} == set(pairs)


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


@settings(max_examples=40, deadline=None)
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


@settings(max_examples=60, deadline=None)
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
