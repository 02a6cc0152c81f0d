"""Queries that bring their own products (merged values, grids): the model is that of the same matrix written out."""

import numpy as np
import pytest
from scipy import sparse

from mechanisms.public.queries.adaptive_grid import grid_query
from mechanisms.public.queries.merged_cells import MergedQuery
from mechanisms.public.queries.query_matrices import QueryMatrix, SparseQuery
from mechanisms.public.release import Measurements, NoisyMarginal
from synthesis.pgm.graphical_model import fit_model
from synthesis.pgm.pgm_settings import PgmSpec
from synthesis.pgm.terms import QueryTerm, sufficient
from tests.synthesis.pgm_worlds import world

CLIQUE = ("b", "c")
SPEC = PgmSpec(stop="least", iterations=3000, tolerance=1e-12)


def written_out(query: QueryMatrix) -> SparseQuery:
    """The same matrix, entry by entry."""
    matrix = np.stack([query.answer(cell) for cell in np.eye(query.columns)], axis=1)
    return SparseQuery.of(sparse.csr_array(matrix), bits=query.bits)


def queries() -> list[QueryMatrix]:
    merged = MergedQuery((np.array([0, 1, 1]), np.array([0, 1, 2, 2])))
    known = [answer(merged, c, np.array(v)) for c, v in ((("b",), [90.0, 2, 1]), (("c",), [60.0, 30, 2, 1]))]
    whole = [NoisyMarginal(a.clique, _identity(a.values.size), a.values, "gaussian", 1.0, a.event) for a in known]
    return [merged, grid_query(world(), CLIQUE, whole, threshold=5.0, norm="l2", bits=12)]


def _identity(cells: int) -> QueryMatrix:
    from mechanisms.public.queries.query_matrices import Identity

    return Identity(cells)


def answer(query: QueryMatrix, clique: tuple[str, ...], values: np.ndarray) -> NoisyMarginal:
    return NoisyMarginal(clique, query, values, "gaussian", 3.0, "x")


@pytest.mark.parametrize("number", [0, 1])
def test_a_model_of_structured_queries_is_that_of_the_matrix_written_out(number):
    query, rng = queries()[number], np.random.default_rng(3)
    values = query.answer(rng.uniform(0, 60, 12)) + rng.normal(0, 3, query.rows)
    first = NoisyMarginal(("a",), _identity(2), np.array([150.0, 200.0]), "gaussian", 3.0, "a")
    known = answer(query, CLIQUE, values)
    plain = answer(written_out(query), CLIQUE, values)
    assert isinstance(sufficient(world(), [known])[0].terms[0], QueryTerm)
    assert not isinstance(sufficient(world(), [plain])[0].terms[0], QueryTerm)
    found = [fit_model(Measurements(world(), (first, a)), SPEC) for a in (known, plain)]
    assert found[0].fit.loss == pytest.approx(found[1].fit.loss, abs=1e-3)
    both = [query.answer(m.marginal(CLIQUE)) for m in found]
    assert np.abs(both[0] - both[1]).max() < 0.5


def test_its_slope_is_that_of_its_value_and_its_halves_have_the_noise_that_they_say():
    query, rng = queries()[0], np.random.default_rng(5)
    term = QueryTerm(rng.uniform(0, 60, query.rows), 0.25, query)
    cells, step = rng.dirichlet(np.ones(query.columns)), 1e-6
    slope = np.zeros(query.columns)
    term.evaluate(cells, 100.0, slope)
    for cell in range(query.columns):
        moved = [cells + sign * step * np.eye(query.columns)[cell] for sign in (1, -1)]
        up, down = (term.evaluate(m, 100.0, np.zeros(query.columns)) for m in moved)
        assert (up - down) / (2 * step * 100) == pytest.approx(slope[cell], rel=1e-4)
    assert term.size == query.rows
    halves = [term.split(0.5, rng) for _ in range(3000)]
    more, less = (np.stack([h[i].mean for h in halves]) - term.mean for i in (0, 1))  # type: ignore[attr-defined]
    assert more.std() == pytest.approx(0.5 * 2.0, rel=0.05) and less.std() == pytest.approx(2.0 / 0.5, rel=0.05)
    assert np.allclose(more / 0.5, -less * 0.5)
