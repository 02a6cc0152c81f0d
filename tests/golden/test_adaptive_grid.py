"""McKenna 2021, section Adaptive Granularity Example: 4 × 3 cells, 6 of them fine, 7 aggregates."""

import numpy as np
import pytest

from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.queries.adaptive_grid import GridQuery, grid_query
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import NoisyMarginal

PAIR = Domain((Attribute("letter", 4), Attribute("digit", 3)))
KNOWN = [
    NoisyMarginal(("letter",), Identity(4), np.array([10000.0, 300.0, 5000.0, 6000.0]), "gaussian", 100.0, "0"),
    NoisyMarginal(("digit",), Identity(3), np.array([15000.0, 6100.0, 200.0]), "gaussian", 100.0, "1"),
]


@pytest.mark.parametrize(("norm", "aggregate"), [("l2", 0.5**0.5), ("l1", 0.5)])
def test_the_query_matrix_of_the_example(norm, aggregate):
    query = grid_query(PAIR, ("letter", "digit"), KNOWN, threshold=5.0, norm=norm)
    assert isinstance(query, GridQuery)
    matrix = np.column_stack([query.answer(column) for column in np.eye(12)])
    expected = np.zeros((13, 12))
    for row, cell in enumerate([0, 1, 6, 7, 9, 10]):  # {W, Y, Z} × {1, 2}
        expected[row, cell] = 1
    coarse = [2, 3, 4, 5, 8, 11]  # everything of X, everything of 3
    for row, cells in enumerate([[2], [3, 4, 5], [8], [11], [3], [4], [2, 5, 8, 11]]):
        assert set(cells) <= set(coarse)
        expected[6 + row, cells] = aggregate
    assert matrix == pytest.approx(expected, abs=2**-16)
    norms = np.linalg.norm(matrix, 2 if norm == "l2" else 1, axis=0)
    assert (norms <= 1).all()
    assert norms == pytest.approx(np.ones(12), abs=2**-15)
    assert query.largest_column_norm(norm) == 1
