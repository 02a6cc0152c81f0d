"""The optional extra `synthesis=mbi`: a clear error where the library is absent, its rows where it is there."""

import importlib.util

import numpy as np
import pytest

from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.queries.query_matrices import Identity, SparseQuery
from mechanisms.public.release import Measurements, NoisyMarginal
from synthesis.papers.mbi_extra import MbiSpec, mbi_rows

THERE = importlib.util.find_spec("mbi") is not None
TOWN = Domain((Attribute("a", 2), Attribute("b", 3)))
TRUTH = np.array([[40.0, 10.0, 0.0], [0.0, 10.0, 40.0]])


def known() -> Measurements:
    halves = SparseQuery.of(np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]))
    return Measurements(
        TOWN,
        (
            NoisyMarginal(("a", "b"), Identity(6), TRUTH.ravel(), "gaussian", 1.0, "0"),
            NoisyMarginal(("b",), halves, halves.answer(TRUTH.sum(axis=0)), "gaussian", 1.0, "1"),
        ),
    )


@pytest.mark.skipif(THERE, reason="the library is installed")
def test_without_the_library_the_error_says_how_to_get_it():
    with pytest.raises(UserError, match="pip install mbi"):
        mbi_rows(known(), MbiSpec(), rows=10, rng=np.random.default_rng(0))


@pytest.mark.skipif(not THERE, reason="needs the optional library mbi")
def test_its_rows_have_the_measured_marginals_and_follow_the_seed():
    made = [mbi_rows(known(), MbiSpec(500), rows=1000, rng=np.random.default_rng(3)) for _ in range(2)]
    counts = np.zeros((2, 3))
    np.add.at(counts, tuple(made[0].columns), 0.1)
    assert np.abs(counts - TRUTH).max() < 1
    assert all(np.array_equal(x, y) for x, y in zip(made[0].columns, made[1].columns, strict=True))
