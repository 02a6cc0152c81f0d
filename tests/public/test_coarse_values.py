"""Coarser values: neighbours on a line, rare values in one group."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.public.domain import Attribute
from mechanisms.public.queries.merged_cells import coarse_groups


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
