"""Columns as their noisy answers make them likeliest: nearer to the truth, by order where there is one."""

import numpy as np
import pytest

from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements, NoisyMarginal
from synthesis.auto_model import with_likely_columns
from synthesis.consistency.projection import norm_sub

CODES, ROWS = np.arange(40), 4_000.0
SHAPES = {
    "bell": np.exp(-(((CODES - 15) / 6) ** 2)),
    "even": np.ones(40),
    "decay": 0.8**CODES,
    "one code": np.where(CODES == 7, 1.0, 0.0),
    "a few codes": np.where(CODES % 9 == 0, 1.0, 0.0),
}


def told(shape, stddev, seed, ordered=40):
    """Noisy answers about one column of that shape; and the truth."""
    truth = ROWS * SHAPES[shape] / SHAPES[shape].sum()
    values = truth + np.random.default_rng(seed).normal(0, stddev, 40)
    answer = NoisyMarginal(("a",), Identity(40), values, "gaussian", stddev, "e")
    return Measurements(Domain((Attribute("a", 40, ordered),)), (answer,), ROWS), truth


def off(shape, stddev, ordered=40):
    """Total variation distance to the truth: of what is likely, and of the answers without negative counts."""
    found = []
    for seed in range(20):
        known, truth = told(shape, stddev, seed, ordered)
        likely, plain = with_likely_columns(known).answers[0].values, norm_sub(known.answers[0].values, ROWS)
        assert likely.min() >= 0 and likely.sum() == pytest.approx(ROWS)
        found.append([np.abs(v - truth).sum() / 2 / ROWS for v in (likely, plain)])
    return np.mean(found, axis=0)


@pytest.mark.parametrize("stddev", [50.0, 200.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_likely_is_nearer_than_answers_and_never_much_farther(shape, stddev):
    likely, plain = off(shape, stddev)
    assert likely < (0.85 if shape in ("bell", "even", "decay") else 1.05) * plain


def test_an_order_that_is_declared_tells_more_of_a_smooth_column():
    assert off("bell", 200.0)[0] < 0.8 * off("bell", 200.0, ordered=0)[0]


def test_precise_answers_stay_as_they_are_and_keep_their_noise():
    known, _ = told("bell", 0.5, 1)
    (answer,) = with_likely_columns(known).answers
    assert np.abs(answer.values - known.answers[0].values).max() < 3 and 0.3 < answer.stddev / 0.5 <= 1


def test_the_noise_that_is_left_is_how_far_they_are_off():
    known = [told("bell", 100.0, seed) for seed in range(20)]
    likely = [with_likely_columns(k).answers[0] for k, _ in known]
    actual = np.sqrt(np.mean([np.mean((a.values - t) ** 2) for a, (_, t) in zip(likely, known, strict=True)]))
    assert 0.7 < np.mean([a.stddev for a in likely]) / actual < 1.3


def test_several_answers_about_a_column_are_one():
    known, _ = told("decay", 100.0, 1)
    again, _ = told("decay", 50.0, 2)
    both = with_likely_columns(Measurements(known.domain, (*known.answers, *again.answers), ROWS)).answers
    assert np.array_equal(both[0].values, both[1].values)
    assert both[0].stddev / 100 == pytest.approx(both[1].stddev / 50), "the second one still weighs four times as much"


def test_answers_that_leave_no_record_stay():
    known, _ = told("even", 1.0, 1)
    nothing = Measurements(known.domain, known.answers, 0.0)
    assert with_likely_columns(nothing) is nothing
