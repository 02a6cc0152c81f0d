"""The residual of a marginal: whole numbers, the exact sensitivity under both relations, and noise of its own size."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.queries.merged_cells import MergedQuery
from mechanisms.public.queries.query_matrices import Identity, sensitivity
from mechanisms.public.queries.residual_query import ResidualQuery, with_residuals
from mechanisms.public.queries.stored_queries import check_stored, query_of
from mechanisms.public.units import Neighbouring

SHAPES = [(2,), (5,), (2, 2), (2, 3), (4, 3), (2, 2, 3)]


def matrix_of(shape: tuple[int, ...]) -> np.ndarray:
    """⊗ (I − J/k), by its definition."""
    matrix = np.ones((1, 1))
    for k in shape:
        matrix = np.kron(matrix, np.eye(k) - np.full((k, k), 1 / k))
    return matrix


@pytest.mark.parametrize("shape", SHAPES)
def test_it_is_the_projection_onto_what_no_smaller_marginal_tells(shape):
    query, rng = ResidualQuery(shape), np.random.default_rng(0)
    counts = rng.integers(0, 50, query.columns)
    assert query.answer(counts.astype(float)) == pytest.approx(matrix_of(shape) @ counts * query.unit)
    assert query.answer_exact(counts).tolist() == np.rint(matrix_of(shape) @ counts * query.rows).tolist()
    assert query.answer_exact(counts) * 2.0**-query.bits == pytest.approx(query.answer(counts.astype(float)))
    assert query.residual(query.answer(counts.astype(float))).ravel() == pytest.approx(matrix_of(shape) @ counts)
    assert 0.5 < query.unit <= 1


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("neighbouring", list(Neighbouring))
@pytest.mark.parametrize("bound", [1, 3])
def test_its_sensitivity_is_the_largest_change_over_all_neighbouring_tables(shape, norm, neighbouring, bound):
    query, order = ResidualQuery(shape), 1 if norm == "l1" else 2
    columns = matrix_of(shape).T * query.unit  # what one record in each cell adds; a unit's weight is C at most
    moved = [*columns, *(-columns)]
    if neighbouring is Neighbouring.REPLACE:
        moved += [a - b for a, b in itertools.combinations(columns, 2)]
    exact = bound * max(float(np.linalg.norm(m, order)) for m in moved)
    claimed = sensitivity(query, norm=norm, neighbouring=neighbouring, max_records=bound)
    assert exact * (1 - 1e-12) <= claimed <= exact * (1 + 1e-9)


@given(st.lists(st.integers(2, 12), min_size=1, max_size=3).map(tuple))
@settings(max_examples=30, deadline=None)
def test_a_record_moves_it_by_less_than_all_cells(shape):
    query = ResidualQuery(shape)
    less = math.sqrt(math.prod(1 - 1 / k for k in shape))
    assert query.largest_column_norm("l2") / query.unit == pytest.approx(less)
    assert query.largest_column_norm("l2") < 1


def test_noise_outside_of_the_residual_is_taken_off():
    query, rng = ResidualQuery((3, 4)), np.random.default_rng(1)
    left = np.stack([query.residual(rng.normal(0, 6.0, 12)) for _ in range(4_000)])
    assert np.abs(left.sum(axis=1)).max() < 1e-9 and np.abs(left.sum(axis=2)).max() < 1e-9
    assert left.std() == pytest.approx(query.noise(6.0), rel=0.03)


def test_it_survives_being_saved_and_a_shape_without_residual_is_refused():
    query = ResidualQuery((3, 4))
    check_stored(query)
    assert query_of("ResidualQuery", query.arrays()) == query
    for shape in ([], [1, 3], [300, 300], [-2, -3]):
        with pytest.raises(ValueError, match="no residual"):
            query_of("ResidualQuery", {"shape": np.array(shape, np.int64)})


def test_answers_that_do_not_fit_are_an_error_and_not_a_wrong_number():
    with pytest.raises(UserError, match="63 bits"):
        ResidualQuery((200, 300)).answer_exact(np.full(60_000, 2**40))


@pytest.mark.parametrize("neighbouring", list(Neighbouring))
def test_residuals_are_asked_where_their_noise_is_less(neighbouring):
    sizes = {"a": 5, "b": 4, "c": 2, "d": 3, "e": 1}
    domain = Domain(tuple(Attribute(n, k) for n, k in sizes.items()))
    queries = {p: Identity(domain.cells(p)) for p in itertools.combinations(sizes, 2)}
    queries["a", "b"] = MergedQuery((np.array([0, 0, 1, 1, 1]), np.array([0, 0, 1, 1])))

    def bound(norm):
        return lambda query: sensitivity(query, norm=norm, neighbouring=neighbouring, max_records=2)

    asked, factor = with_residuals(domain, queries, bound("l2"))
    changed = {p for p in asked if asked[p] is not queries[p]}
    assert changed == {("a", "c"), ("a", "d"), ("b", "d")}  # not what is merged, tiny, or of one code
    assert {p for p in factor if factor[p] < 1} == changed
    if neighbouring is Neighbouring.ADD_REMOVE:
        assert factor["a", "d"] == pytest.approx(math.sqrt(4 / 5 * 2 / 3))
    assert with_residuals(domain, queries, bound("l1")) == (queries, dict.fromkeys(queries, 1.0))
