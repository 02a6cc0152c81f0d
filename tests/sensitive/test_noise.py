"""Noise is the rounded continuous law: steps, parity and digits far out, probabilities, ties, refinement and range."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from mechanisms.accounting.events import Gaussian, Laplace
from mechanisms.public.errors import UserError
from mechanisms.public.queries.query_matrices import Identity, SparseQuery
from mechanisms.public.units import MAX_UNITS, WEIGHT_BITS
from mechanisms.sensitive import deviates, noise
from mechanisms.sensitive.deviates import SATURATED, Dyadic, Reader, exponential, half_normal, signed
from mechanisms.sensitive.exact_answers import LARGEST, LIMIT, ExactAnswers, noisy
from mechanisms.sensitive.noise import SecureNoise, SeededNoise, noise_source
from tests.sensitive.lattice import lattice_noise

LAWS = {Gaussian: stats.norm, Laplace: stats.laplace}
TOP = 2**32 - 1


def uniform_digits(draws, modulus: int) -> float:
    """The p-value of all remainders coming equally often."""
    return stats.chisquare(np.bincount(np.asarray(draws) % modulus, minlength=modulus)).pvalue


def against_the_law(draws, event, units: float, reach: int = 4) -> float:
    """The p-value of whole draws against the probabilities of the rounded law, for a scale in lattice units."""
    law = LAWS[type(event)](scale=units)
    ends = np.arange(-math.ceil(reach * units), math.ceil(reach * units) + 1)
    expected = np.diff(np.concatenate([[0.0], law.cdf(ends + 0.5), [1.0]]))
    places = np.clip(np.asarray(draws) - ends[0], 0, ends.size)
    seen = np.bincount(places, minlength=ends.size + 1)
    common = expected * seen.sum() > 5
    expected, seen = (np.append(a[common], a[~common].sum()) for a in (expected * seen.sum(), seen))
    return stats.chisquare(seen[expected > 0], expected[expected > 0]).pvalue


class Given:
    """A source of given pieces of 32 digits, then of a seeded stream."""

    def __init__(self, pieces, seed=0):
        self.pieces, self.rest = list(pieces), np.random.default_rng(seed)

    def stream(self, event_id):
        def words(size):
            mine, self.pieces = self.pieces[: 2 * size], self.pieces[2 * size :]
            more = self.rest.integers(0, 2**32, 2 * size - len(mine), dtype=np.uint32)
            return np.concatenate([np.array(mine, np.uint32), more]).view(np.uint64)

        return words


def test_noise_of_a_kind_without_a_sampler_is_not_drawn_as_another(monkeypatch):
    monkeypatch.delitem(noise.SAMPLERS, "gaussian")
    with pytest.raises(KeyError, match="gaussian"):
        lattice_noise(Gaussian("none", 1.0, 7.0), 3, SeededNoise(3))


def test_laplace_noise_beyond_8_scales_has_every_parity_and_step():
    """On so fine a lattice a float has no halves there: rounding it once gave even numbers alone."""
    units = 8190 * 2.0**36
    draws = lattice_noise(Laplace("x", 1.0, 8190.0), 6_000_000, SeededNoise(8), bits=36)
    far = draws[np.abs(draws) > 8 * units]
    assert abs(far.size - 6_000_000 * math.exp(-8)) < 5 * math.sqrt(6_000_000 * math.exp(-8))
    for modulus in (2, 3, 10, 16):
        assert uniform_digits(far, modulus) > 1e-3
    assert (far < 0).any()
    assert stats.binomtest(int((far < 0).sum()), far.size).pvalue > 1e-3


@pytest.mark.parametrize("law", LAWS)
def test_noise_has_no_parity_at_the_largest_scale(law):
    draws = lattice_noise(law("x", 1.0, MAX_UNITS), 400_000, SeededNoise(4), bits=0)
    for modulus in (2, 3, 4, 16, 1 << 10):
        assert uniform_digits(draws, modulus) > 1e-3


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("units", [0.2, 0.7, 3.0, 12.5])
def test_small_noise_has_the_probabilities_of_the_rounded_law(law, units):
    draws = lattice_noise(law("x", 1.0, units), 300_000, SeededNoise(5), bits=0)
    event = law("x", 1.0, units)
    assert against_the_law(draws, event, units) > 1e-3
    for wrong in (0.7, 1.3):
        assert against_the_law(draws, event, units * wrong) < 1e-6


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("scale", "bits"), [(8190.0, 36), (0.37, 20), (2.0**54, 0)])
def test_large_noise_follows_the_continuous_law(law, scale, bits):
    draws = lattice_noise(law("x", 1.0, scale), 200_000, SeededNoise(6), bits=bits) / (scale * 2.0**bits)
    assert stats.kstest(draws, LAWS[law].cdf).pvalue > 1e-3
    for wrong in (0.7, 1.3):
        assert stats.kstest(draws * wrong, LAWS[law].cdf).pvalue < 1e-6
    for far in (2.0, 3.0, 4.0):
        expected = 200_000 * 2 * LAWS[law].sf(far)
        assert abs((np.abs(draws) > far).sum() - expected) < 5 * math.sqrt(expected)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("units", [1e-6, 2.0**-10.5, 2.0**-9.5, 0.3, 1.5, 1000.1, 2.0**30 / 3, 2.0**54])
@pytest.mark.parametrize("split", [0, 16])
def test_compiled_draws_are_those_of_the_proof_word_for_word(law, units, split):
    scale, normal = Dyadic.of(units, split), law is Gaussian
    fast, slow = (Reader(SeededNoise(7).stream("x")) for _ in range(2))
    whole, rest = noise.drawn(fast, 1500, scale, normal=normal, split=split)
    half = half_normal if normal else exponential
    one_by_one = [signed(slow, half, scale, split=split) for _ in range(1500)]
    assert list(zip(whole.tolist(), rest.tolist(), strict=True)) == one_by_one
    assert fast.refined == slow.refined
    if units > 2.0**50 and split:
        assert slow.refined > 0


X, Y = 0x9000_0000, 0x1234_5678


@pytest.mark.parametrize(
    ("further", "k", "x", "refined"),
    [
        ([Y + 1, TOP], 0, X << 32 | Y, 1),  # the number is above x in its second piece: x is accepted
        ([Y - 1, TOP, 5, 7, TOP], 1, 5 << 32 | 7, 1),  # below: one number descends, x is thrown away
        ([Y, 9, 3], 0, X << 32 | Y, 3),  # equal again: a third piece of each decides, 9 against the 3 of x
        ([Y, 3, 9, TOP, 5, 7, TOP], 1, 5 << 32 | 7, 3),
    ],
)
def test_a_tie_of_two_numbers_is_resolved_by_further_digits(further, k, x, refined):
    """Laplace: a sign, x of two pieces, then a number that begins with x's first piece."""
    reader = Reader(Given([0, X, Y, X, *further]).stream("x"))
    scale = Dyadic.of(2.0**40, 0)
    whole, _ = noise.drawn(reader, 1, scale, normal=False, split=0)
    assert reader.refined == refined
    assert whole[0] == math.floor(2**40 * (k + Fraction(x, 2**64)) + Fraction(1, 2))


@pytest.mark.parametrize(("last", "expected"), [(0, 0), (TOP, 1)])
def test_digits_that_do_not_decide_the_rounding_are_followed_by_more(last, expected):
    """At scale 1.5 the halfway point lies at x = 1/3 = 0.010101…: as many pieces as it takes."""
    third = 0x5555_5555
    reader = Reader(Given([0, third, third, TOP, third, third, last]).stream("x"))
    whole, _ = noise.drawn(reader, 1, Dyadic.of(1.5, 0), normal=False, split=0)
    assert (whole[0], reader.refined) == (expected, 3)


def far_out(k: int, sign: int) -> list[int]:
    """Pieces of an exponential draw whose whole part is k: so many trials fail."""
    return [sign * TOP] + [X, Y, 1, TOP] * k + [X, Y, TOP]


@pytest.mark.parametrize("sign", [0, 1])
@pytest.mark.parametrize("k", [0, 100, 127, 128, 129, 255, 256, 300, 4000])
def test_a_draw_has_any_whole_part_and_is_exact_until_it_saturates(k, sign):
    scale = 2.0**54 * (1 - 2.0**-53)
    (found,) = lattice_noise(Laplace("x", 1.0, scale), 1, Given(far_out(k, sign)), bits=0)
    x = Fraction(X << 32 | Y, 2**64)
    low, high = (math.floor(Fraction(scale) * (k + x + e) + Fraction(1, 2)) for e in (0, Fraction(1, 2**64)))
    assert low == high
    assert found == (-1) ** sign * min(low, SATURATED)
    assert (k >= 256) == (abs(int(found)) == SATURATED)


@settings(max_examples=150)
@given(
    answer=st.integers(-LARGEST, LARGEST - 1) | st.integers(-(2**20), 2**20),
    fraction=st.integers(0, 2**16 - 1),
    bits=st.sampled_from([0, 16]),
    k=st.integers(0, 600),
    sign=st.integers(0, 1),
    scale=st.floats(1e-9, 2.0**34),
)
def test_clipped_answers_are_those_of_noise_without_any_bound(answer, fraction, bits, k, sign, scale):
    """Whole numbers of any size: saturated noise leads to the same released answer as the draw itself."""
    rest = fraction & ((1 << bits) - 1)
    exact = ExactAnswers(np.array([answer]), np.array([rest]), bits)
    (found,) = noisy(exact, Laplace("x", 1.0, scale), Given(far_out(k, sign), seed=1))
    reader = Reader(Given(far_out(k, sign), seed=1).stream("x"))
    negative, (whole, x) = reader.piece(), deviates.exponential(reader)
    size = deviates.rounded(whole, x, Dyadic.of(scale, WEIGHT_BITS + bits))
    total = (answer << bits) + rest + (-size if negative else size)
    total = max(min(total, LIMIT << bits), -LIMIT << bits)
    high, low = total >> bits, total & ((1 << bits) - 1)
    assert found == (np.float64(high) + low * 2.0**-bits) * 2.0**-WEIGHT_BITS


def test_answers_beyond_the_range_are_no_exact_answers():
    for value in (LARGEST, -LARGEST - 1):
        with pytest.raises(UserError, match=r"beyond 3\.3e\+12 records"):
            ExactAnswers(np.array([value]), np.array([0]), 0)


@settings(max_examples=50)
@given(st.lists(st.integers(0, 2**60 - 1), min_size=3, max_size=3), st.integers(0, 10**6))
def test_exact_answers_of_fractional_queries_hold_a_million_million_records(counts, seed):
    entries = np.random.default_rng(seed).integers(0, 2**16 + 1, (4, 3))
    counts = [c // 3 for c in counts]
    answers = ExactAnswers.of(SparseQuery.of(entries * 2.0**-16), np.array(counts))
    for row, whole, rest in zip(entries.tolist(), answers.whole, answers.rest, strict=True):
        assert (int(whole) << 16) + int(rest) == sum(e * c for e, c in zip(row, counts, strict=True))
    assert repr(answers) == "ExactAnswers(4 answers)"
    assert ExactAnswers.of(Identity(3), np.array(counts)).whole.tolist() == counts


def test_no_stream_serves_two_events():
    for source in (SecureNoise(), SeededNoise(3)):
        source.stream("a")
        with pytest.raises(RuntimeError, match="no stream serves two"):
            source.stream("a")

    def words(seed, event):
        return SeededNoise(seed).stream(event)(4)

    assert not np.array_equal(words(3, "a"), words(3, "b"))
    assert np.array_equal(words(3, "b"), words(3, "b"))
    assert not np.array_equal(words(4, "b"), words(3, "b"))


def test_a_stream_goes_on_where_it_was():
    whole, parts = SeededNoise(3).stream("a")(1000), SeededNoise(3).stream("a")
    assert np.array_equal(whole, np.concatenate([parts(1), parts(299), parts(700)]))


def test_without_a_seed_the_source_is_the_secure_one():
    assert isinstance(noise_source(None), SecureNoise)
    one, two = (lattice_noise(Gaussian("x", 1.0, 9.0), 50, noise_source(None)) for _ in range(2))
    assert not np.array_equal(one, two)


@pytest.mark.parametrize("scale", [MAX_UNITS * 2.0**-WEIGHT_BITS * 1.001, 1e12, math.inf, math.nan, 0.0, -1.0])
def test_a_scale_beyond_the_range_is_a_clear_error(scale):
    with pytest.raises(UserError, match=r"noise scale .* exceeds the supported maximum 1\.72e\+10 records") as error:
        lattice_noise(Laplace("x", 1.0, scale), 1, SecureNoise())
    assert error.value.where == "privacy.epsilon"
