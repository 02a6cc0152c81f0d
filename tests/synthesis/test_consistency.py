"""The parts of consistency: overlaps, projections and softening; `test_evidence.py` holds the whole."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements, NoisyMarginal
from synthesis.consistency.agree import consistent, overlaps_of
from synthesis.consistency.projection import fit, norm_sub, product, soften, soften_alike

ABC = Domain((Attribute("a", 3), Attribute("b", 2), Attribute("c", 4), Attribute("one", 1)))


def test_overlaps_are_the_intersections_in_the_order_of_inclusion():
    cliques = [("a", "b", "c"), ("a", "b"), ("b", "c"), ("c", "one")]
    assert overlaps_of(ABC, cliques) == {("b",): [0, 1, 2], ("c",): [0, 2, 3], ("a", "b"): [0, 1], ("b", "c"): [0, 2]}
    assert overlaps_of(ABC, [("a", "one"), ("b", "one")]) == {}


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), total=st.floats(0, 100))
def test_norm_sub_is_the_closest_point_never_further_from_a_truth_of_that_total(seed, total):
    rng = np.random.default_rng(seed)
    values = rng.normal(total / 6, 20, (2, 3))
    found = norm_sub(values, total)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(total, abs=1e-9)
    assert found.shape == (2, 3)
    truth = rng.dirichlet(np.ones(6)).reshape(2, 3) * total
    assert ((found - truth) ** 2).sum() <= ((values - truth) ** 2).sum() + 1e-9
    assert ((found - values) ** 2).sum() <= ((truth - values) ** 2).sum() + 1e-9
    assert norm_sub(found, total) == pytest.approx(found, abs=1e-9)


@pytest.mark.parametrize("shape", [(4, 5, 2), (400, 300)], ids=["small", "a hundred thousand cells"])
@settings(max_examples=20)
@given(seed=st.integers(0, 10**6))
def test_a_fitted_marginal_has_exactly_its_sides_and_no_negative_cell(shape, seed):
    rng = np.random.default_rng(seed)
    sides = [rng.dirichlet(np.full(k, 0.3)) * 50 for k in shape]
    found = fit(rng.normal(2, 9, shape), 50.0, {(axis,): side for axis, side in enumerate(sides)})
    assert found.min() >= 0
    for axis, side in enumerate(sides):
        assert found.sum(axis=tuple({*range(len(shape))} - {axis})) == pytest.approx(side, abs=1e-8)


def test_softening_removes_pure_noise_keeps_strong_signal_and_lowers_the_error_between():
    rng = np.random.default_rng(1)
    base = product([np.full(20, 50.0), np.full(30, 1000 / 30)], 1000.0)
    noise = rng.normal(0, 5, base.shape)
    assert np.abs(soften(base + noise, base, 5.0) - base).mean() < 0.2 * np.abs(noise).mean()
    signal = rng.normal(0, 500, base.shape)
    strong = soften(base + signal + noise, base, 5.0)
    assert np.abs(strong - (base + signal + noise)).max() < 5
    rare = np.where(rng.random(base.shape) < 0.05, 60.0, 0.0)
    kept = soften(base + rare + noise, base, 5.0)
    assert ((kept - base - rare) ** 2).sum() < 0.5 * (noise**2).sum()


def test_few_strong_cells_among_many_noisy_ones_are_told_from_noise():
    """With Stein's threshold alone as much noise passes as the signal has; with √(2 ln n) hardly any."""
    base, signal = np.full(3600, 10.0), np.zeros(3600)
    signal[:3] = 60.0  # six times the noise; the squares of all cells together tell little
    plain, sparse, kept = [], [], []
    for seed in range(40):
        noise = np.random.default_rng(seed).normal(0, 10.0, 3600)
        free, cut = (soften(base + signal + noise, base, 10.0, sparse=s) - base for s in (False, True))
        plain.append(np.abs(free[3:]).sum())
        sparse.append(np.abs(cut[3:]).sum())
        kept.append(cut[:3].sum() / signal.sum())
    assert np.mean(plain) > 0.5 * signal.sum() and np.mean(sparse) < 0.02 * signal.sum()
    assert np.mean(kept) > 0.25
    dense = np.where(np.arange(3600) % 2, 25.0, -25.0)
    same = [soften(base + dense + noise, base, 10.0, sparse=s) for s in (False, True)]
    assert np.array_equal(*same)  # where squares tell of signal, nothing changes


def test_full_cells_keep_their_differences_beside_many_empty_ones():
    base = np.concatenate([np.full(100, 400.0), np.full(2000, 0.01)])
    truth = base + np.concatenate([np.where(np.arange(100) % 2, 5.0, -5.0), np.zeros(2000)])
    errors = []
    for seed in range(20):
        values = truth + np.random.default_rng(seed).normal(size=truth.size)
        errors.append([((v - truth) ** 2).sum() for v in (soften_alike(values, base), soften(values, base, 1.0))])
    alike, alone = np.mean(errors, axis=0)
    assert alike < 0.6 * alone


def test_an_answer_that_is_not_finite_is_refused_by_name():
    broken = NoisyMarginal(("a",), Identity(3), np.array([1.0, np.nan, 2.0]), "gaussian", 1.0, "0")
    with pytest.raises(UserError, match="answers to a are not all finite"):
        consistent(Measurements(ABC, (broken,)))
