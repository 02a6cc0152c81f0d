"""Li et al. 2021b, section 6.2: MWEM's basic version and the improved one, on tables of a few cells."""

import numpy as np
import pytest

from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements, NoisyMarginal
from synthesis.papers.multiplicative_weights import WeightsSpec, updated, weights_table
from synthesis.synthesize import synthesize

TWO = Domain((Attribute("a", 2), Attribute("b", 2)))


def measured(domain: Domain, *known: tuple[tuple[str, ...], list[float]]) -> Measurements:
    answers = [
        NoisyMarginal(c, Identity(len(v)), np.array(v), "laplace", 1.0, str(i)) for i, (c, v) in enumerate(known)
    ]
    return Measurements(domain, tuple(answers))


def test_one_update_is_that_of_multiplicative_weights():
    """A(x) exp(q(x) (m − q(A)) / 2n), normalised: a uniform table of 100 and an answer of 90 and 10 for two halves."""
    answer = measured(TWO, (("a",), [90.0, 10.0])).answers[0]
    changed = updated(TWO, np.full((2, 2), 25.0), answer, 100.0)
    weights = np.exp(np.array([40.0, -40.0]) / 200)
    assert changed == pytest.approx(np.outer(weights / weights.sum() * 50, [1.0, 1.0]))


def test_the_basic_version_is_the_mean_of_all_tables_with_one_update_each():
    """T + 1 = 3 approximations: the uniform one, and one after each of two answers."""
    known = measured(TWO, (("a",), [90.0, 10.0]), (("b",), [30.0, 70.0]))
    first = updated(TWO, np.full((2, 2), 25.0), known.answers[0], 100.0)
    second = updated(TWO, first, known.answers[1], 100.0)
    mean = (25.0 + first + second) / 3
    assert weights_table(known, WeightsSpec(version="basic")) == pytest.approx(mean)


def test_the_improved_version_agrees_with_all_answers_and_the_basic_one_is_far_from_them():
    """100 iterations over all pairs of query and answer: "a state that is consistent with all known" answers."""
    known = measured(TWO, (("a",), [90.0, 10.0]), (("b",), [30.0, 70.0]), (("a", "b"), [28.0, 62.0, 2.0, 8.0]))
    improved, basic = (weights_table(known, WeightsSpec(version=v)) for v in ("improved", "basic"))
    assert improved.sum(axis=1) == pytest.approx([90, 10], abs=0.5)
    assert improved.ravel() == pytest.approx([28, 62, 2, 8], abs=1.0)
    assert np.abs(basic.sum(axis=1) - [90, 10]).max() > 20


def test_rows_follow_the_table_and_a_domain_that_is_too_large_is_refused():
    known = measured(TWO, (("a", "b"), [280.0, 620.0, 20.0, 80.0]))
    table = synthesize(known, WeightsSpec(), rows=1000, rng=np.random.default_rng(0)).table
    counts = np.bincount(2 * table.columns[0].astype(int) + table.columns[1], minlength=4)
    assert counts == pytest.approx(weights_table(known, WeightsSpec()).ravel(), abs=2)
    large = Domain(tuple(Attribute(n, 200) for n in "abc"))
    with pytest.raises(UserError, match="every cell of the whole table"):
        weights_table(measured(large, (("a",), [1.0] * 200)), WeightsSpec())
    with pytest.raises(UserError, match=r"synthesis\.version"):
        WeightsSpec(version="best")
