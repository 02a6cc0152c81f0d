"""Merged values and trees: products against the matrix written out, groups from noisy counts, forests."""

import numpy as np
import pytest

from mechanisms.public.designs.tree import forest_edges, joining, pairs
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.queries.merged_cells import MergedQuery, merged_query, rare_groups
from mechanisms.public.queries.query_matrices import Identity, sensitivity
from mechanisms.public.queries.stored_queries import query_of
from mechanisms.public.release import NoisyMarginal
from mechanisms.public.units import Neighbouring

BOX = Domain((Attribute("a", 4), Attribute("b", 3), Attribute("c", 2)))
COUNTS = NoisyMarginal(("a",), Identity(4), np.array([50.0, 2.0, 40.0, -7.0]), "gaussian", 2.0, "0")


def test_rare_codes_are_one_group_and_the_last():
    groups = rare_groups(BOX, [COUNTS], 3.0)
    assert groups["a"].tolist() == [0, 2, 1, 2]
    assert groups["b"].tolist() == [0, 1, 2], "not measured: all apart"


def test_all_codes_rare_are_a_single_group():
    assert rare_groups(BOX, [COUNTS], 1e6)["a"].tolist() == [0, 0, 0, 0]


def test_products_are_those_of_the_matrix_and_every_column_has_one_1():
    query = merged_query(BOX, ("a", "b"), rare_groups(BOX, [COUNTS], 3.0))
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
    assert merged_query(BOX, ("b", "c"), rare_groups(BOX, [COUNTS], 3.0)) == Identity(6)
    with pytest.raises(ValueError, match="no merged"):
        query_of("MergedQuery", {"labels_0": np.array([0, 2])})


def test_a_forest_has_the_same_number_of_edges_whatever_is_chosen():
    every = pairs(BOX, BOX.names, 100)
    assert forest_edges(every) == 2
    assert forest_edges([("a", "b")]) == 1
    assert forest_edges([]) == 0
    assert joining(every, [("a", "b")]) == [("a", "c"), ("b", "c")]
    assert joining(every, [("a", "b"), ("b", "c")]) == []
    assert pairs(BOX, BOX.names, 6) == (("b", "c"),)
    assert pairs(BOX, ("a", "b"), 12, ("c",)) == ()
