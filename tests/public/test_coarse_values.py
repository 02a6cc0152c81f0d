"""Values that are merged, and ranges within bins."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.public.domain import Attribute
from mechanisms.public.queries.merged_cells import coarse_groups
from mechanisms.public.schema.bins import Bins, FloatGrid, float_grid, integer_grid, within


@given(st.integers(1, 60), st.integers(0, 3), st.integers(2, 20), st.integers(0, 2**32 - 1), st.booleans())
def test_groups_are_numbered_without_gaps_and_are_no_more_than_asked(line, behind, groups, seed, ordered):
    size = line + behind
    attribute = Attribute("x", size, line if ordered else 0)
    labels = coarse_groups(attribute, np.random.default_rng(seed).exponential(5, size), groups)
    assert labels.shape == (size,)
    assert set(labels.tolist()) == set(range(int(labels.max()) + 1))
    assert labels.max() + 1 <= max(groups, 2)
    if size <= groups:
        assert np.array_equal(labels, np.arange(size)), "nothing is merged where there is room for every code"


@given(st.integers(5, 60), st.integers(0, 2), st.integers(5, 20), st.integers(0, 2**32 - 1))
def test_codes_on_a_line_are_merged_with_their_neighbours_and_those_behind_stay_alone(line, behind, groups, seed):
    labels = coarse_groups(
        Attribute("x", line + behind, line), np.random.default_rng(seed).exponential(5, line + behind), groups
    )
    assert (np.diff(labels[:line]) >= 0).all() and (np.diff(labels[:line]) <= 1).all()
    assert len(set(labels[line:].tolist()) - set(labels[:line].tolist())) == behind


def test_groups_on_a_line_have_about_equal_mass():
    mass = np.random.default_rng(0).exponential(1, 400)
    labels = coarse_groups(Attribute("x", 400, 400), mass, 20)
    sums = np.bincount(labels, mass)
    assert sums.size == 20 and sums.max() < 1.5 * sums.mean() and sums.min() > 0.5 * sums.mean()


def test_the_most_frequent_values_of_a_category_stay_alone():
    labels = coarse_groups(Attribute("x", 6), np.array([5.0, 50.0, 1.0, 70.0, -3.0, 2.0]), 3)
    assert labels[1] != labels[3] and len({labels[i] for i in (0, 2, 4, 5)}) == 1
    assert len(set(labels.tolist())) == 3


@settings(max_examples=60, deadline=None)
@given(low=st.integers(-50, 50), width=st.integers(1, 60), count=st.integers(1, 9), data=st.data())
def test_whole_numbers_lie_in_the_ranges_and_in_their_bins(low, width, count, data):
    grid = integer_grid(low, low + width, Bins(count=min(count, width + 1)), unit="integer", where="x")
    first = data.draw(st.integers(low, low + width))
    last = data.draw(st.integers(first, low + width))
    ranges = [(first, last)] if data.draw(st.booleans()) else sorted({(first, first), (last, last)})
    allowed = {v for a, b in ranges for v in range(a, b + 1)}
    codes = {v: int(np.searchsorted(grid.starts, v, side="right")) - 1 for v in allowed}
    drawn_codes = np.array(sorted(codes.values()) * 40, dtype=np.uint8)
    values = within(grid, ranges).draw(drawn_codes, np.random.default_rng(1))
    assert {int(v) for v in values} <= allowed
    assert [codes[int(v)] for v in values] == drawn_codes.tolist()


def test_days_of_the_week_in_one_week_keep_their_dates():
    """Every code has one day left, of the many that it had: the day inside the range is drawn."""
    grid = integer_grid(0, 69, Bins(calendar="day_of_week"), unit="day", where="x")
    codes = np.arange(7, dtype=np.uint8)
    days = within(grid, [(14, 20)]).draw(codes, np.random.default_rng(1))
    assert sorted(days) == list(range(14, 21)) and ((days + 3) % 7).tolist() == codes.tolist()


def test_floats_are_uniform_in_what_is_left_of_a_bin():
    grid = float_grid(0, 100, Bins(count=4), decimals=1, where="x")
    cut = within(grid, [(30.0, 60.0)])
    assert isinstance(cut, FloatGrid)
    values = cut.draw(np.repeat(np.array([1, 2], np.uint8), 2000), np.random.default_rng(1))
    assert values[:2000].min() >= 30 and values[:2000].max() < 50 <= values[2000:].min() and values.max() <= 60
    assert values[:2000].mean() == pytest.approx(40, abs=0.5) and values[2000:].mean() == pytest.approx(55, abs=0.3)
    assert (values == values.round(1)).all()
