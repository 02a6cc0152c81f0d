"""Query matrices that merge cells: adaptive grids, merged values and forests."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.public.designs.tree import forest_edges, joining, pairs
from mechanisms.public.domain import Attribute, Domain, subsets
from mechanisms.public.queries.adaptive_grid import GridQuery, grid_query
from mechanisms.public.queries.merged_cells import MergedQuery, merged_query, rare_groups
from mechanisms.public.queries.query_matrices import Identity, sensitivity
from mechanisms.public.queries.stored_queries import query_of
from mechanisms.public.release import NoisyMarginal
from mechanisms.public.units import Neighbouring

BOX = Domain(tuple(Attribute(n, s) for n, s in zip("abcd", (3, 2, 4, 2), strict=True)))


def measured(seed: int, cliques, norm="l2", threshold=1.0, bits=16, level=2.0):
    """Answers drawn at random, round by round: about half of the cells pass."""
    rng = np.random.default_rng(seed)
    known: list[NoisyMarginal] = []
    for order in sorted({len(c) for c in cliques}):
        found = []
        for i in (i for i, c in enumerate(cliques) if len(c) == order):
            query = grid_query(BOX, cliques[i], known, threshold=threshold, norm=norm)
            query = replace(query, bits=bits) if isinstance(query, GridQuery) else query
            values = rng.exponential(level, query.rows)
            found.append(NoisyMarginal(cliques[i], query, values, "gaussian", 1.0, str(i)))
        known += found
    return known


def dense(query) -> np.ndarray:
    return np.column_stack([query.answer(column) for column in np.eye(query.columns)])


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["l1", "l2"]), st.sampled_from([6, 10, 16]), st.floats(0.1, 6))
def test_every_column_has_norm_1_and_products_are_those_of_the_matrix(seed, norm, bits, level):
    rng = np.random.default_rng(seed)
    for answer in measured(seed, subsets(("a", "b", "c", "d")), norm=norm, bits=bits, level=level):
        query, matrix = answer.query, dense(answer.query)
        norms = np.linalg.norm(matrix, 2 if norm == "l2" else 1, axis=0)
        assert norms.max() <= 1 + 1e-12
        assert norms.min() >= 1 - 24 * 2.0**-bits
        assert (np.abs(matrix).sum(axis=1) > 0).all(), "no row without a cell"
        for which, order in (("l1", 1), ("l2", 2)):
            exact = np.linalg.norm(matrix, order, axis=0).max()
            assert exact <= query.largest_column_norm(which) <= exact * (1 + 1e-9)
            pairs = itertools.combinations(matrix.T, 2)
            distance = max((float(np.linalg.norm(p - q, order)) for p, q in pairs), default=0.0)
            assert distance <= query.largest_column_distance(which) * (1 + 1e-12)
        counts, answers = rng.integers(0, 2**30, query.columns), rng.normal(size=query.rows)
        assert query.answer_exact(counts) * 2.0**-query.bits == pytest.approx(matrix @ counts)
        assert query.transpose(answers) == pytest.approx(matrix.T @ answers)
        again = query_of(type(query).__name__, query.arrays())
        assert np.array_equal(again.answer_exact(counts), query.answer_exact(counts))


def test_a_threshold_that_keeps_nothing_measures_the_parents_again():
    *_, whole = measured(1, subsets(("a", "b")), threshold=math.inf)
    assert isinstance(whole.query, GridQuery)
    assert whole.query.fine_cells.size == 0
    assert whole.query.rows == 3 + 2
    assert sensitivity(whole.query, norm="l2", neighbouring=Neighbouring.ADD_REMOVE, max_records=1) <= 1


def test_a_threshold_that_keeps_all_is_the_identity():
    *_, whole = measured(1, subsets(("a", "b")), threshold=-math.inf)
    assert whole.query == Identity(6)


def test_without_parents_a_marginal_is_measured_whole():
    assert grid_query(BOX, ("a", "b"), [], threshold=5, norm="l2") == Identity(6)


def test_a_lost_parent_leaves_the_others():
    known = [a for a in measured(3, [("a",), ("b",)]) if a.clique == ("a",)]
    query = grid_query(BOX, ("a", "b"), known, threshold=1.5, norm="l2")
    assert isinstance(query, GridQuery)
    assert query.largest_column_norm("l2") == 1.0
    assert dense(query).max() == 1.0


def test_repeated_answers_of_a_parent_count_together():
    weak = NoisyMarginal(("a",), Identity(3), np.array([4.0, 0.0, 9.0]), "gaussian", 1.0, "0")
    copies = [weak, NoisyMarginal(("a",), Identity(3), weak.values, "gaussian", 1.0, "1")]
    one = grid_query(BOX, ("a", "b"), [weak], threshold=5.0, norm="l2")
    two = grid_query(BOX, ("a", "b"), copies, threshold=5.0, norm="l2")
    assert one.fine_cells.tolist() == [4, 5]
    assert two.fine_cells.tolist() == [0, 1, 4, 5]


def test_a_broken_file_is_refused():
    *_, whole = measured(1, subsets(("a", "b")))
    arrays = whole.query.arrays()
    with pytest.raises(ValueError, match="outside"):
        query_of("GridQuery", {**arrays, "fine_0_1": np.array([7])})
    with pytest.raises(ValueError, match="no set"):
        query_of("GridQuery", {**arrays, "fine_0_2": np.array([7])})


CUBE = Domain((Attribute("a", 4), Attribute("b", 3), Attribute("c", 2)))
COUNTS = NoisyMarginal(("a",), Identity(4), np.array([50.0, 2.0, 40.0, -7.0]), "gaussian", 2.0, "0")


def test_products_are_those_of_the_matrix_and_every_column_has_one_1():
    query = merged_query(CUBE, ("a", "b"), rare_groups(CUBE, [COUNTS], 3.0))
    assert isinstance(query, MergedQuery)
    matrix = np.column_stack([query.answer(column) for column in np.eye(12)])
    assert matrix.shape == (9, 12)
    assert (matrix.sum(axis=0) == 1).all()
    assert (matrix.sum(axis=1) > 0).all()
    x, y = np.arange(12) * 7 + 1, np.arange(9.0) - 4
    assert query.answer_exact(x).tolist() == (matrix @ x).tolist()
    assert query.transpose(y) == pytest.approx(matrix.T @ y)
    again = query_of("MergedQuery", query.arrays())
    assert again.answer_exact(x).tolist() == query.answer_exact(x).tolist()
    for norm, apart in (("l1", 2), ("l2", 2**0.5)):
        assert sensitivity(query, norm=norm, neighbouring=Neighbouring.ADD_REMOVE, max_records=3) == 3
        assert sensitivity(query, norm=norm, neighbouring=Neighbouring.REPLACE, max_records=3) == pytest.approx(
            3 * apart
        )


def test_nothing_merged_is_the_identity_and_a_broken_file_is_refused():
    assert merged_query(CUBE, ("b", "c"), rare_groups(CUBE, [COUNTS], 3.0)) == Identity(6)
    with pytest.raises(ValueError, match="no merged"):
        query_of("MergedQuery", {"labels_0": np.array([0, 2])})


def test_a_forest_has_the_same_number_of_edges_whatever_is_chosen():
    every = pairs(CUBE, CUBE.names, 100)
    assert forest_edges(every) == 2
    assert forest_edges([("a", "b")]) == 1
    assert forest_edges([]) == 0
    assert joining(every, [("a", "b")]) == [("a", "c"), ("b", "c")]
    assert joining(every, [("a", "b"), ("b", "c")]) == []
    assert pairs(CUBE, CUBE.names, 6) == (("b", "c"),)
    assert pairs(CUBE, ("a", "b"), 12, ("c",)) == ()
