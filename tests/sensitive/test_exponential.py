"""The exponential mechanism: its odds on every pair of neighbours, its draws against its odds, its edges."""

import itertools
import math
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats

from mechanisms.accounting.accountants.registered import accountant_class
from mechanisms.accounting.events import Exponential
from mechanisms.public.errors import UserError
from mechanisms.public.queries.merged_cells import MergedQuery
from mechanisms.public.queries.query_matrices import Identity, SparseQuery
from mechanisms.public.units import WEIGHT_BITS, Delta, Neighbouring
from mechanisms.sensitive.exponential import choice_weights, choose_index
from mechanisms.sensitive.noise import SecureNoise, SeededNoise
from mechanisms.sensitive.private_choice import Candidate, PrivateCounts, PrivateScores, choose, distance_scores
from tests.sensitive.lattice import Rows

PAIRS = [("a", "b"), ("a", "c"), ("b", "c")]
EPSILON = 0.7


def odds(scores: PrivateScores, epsilon=EPSILON) -> list[Fraction]:
    weights = choice_weights(list(scores.values.values()), scores.sensitivity, epsilon)
    return [Fraction(w, sum(weights)) for w in weights]


def model(clique):
    return np.array([1.0, 0.3, 3.0, 4.5])


def units(bound: int):
    """Everything that one unit may add: R records in any cells, each weighing min(1, C/R)."""
    cells = list(itertools.product(range(2), repeat=3))
    for n in range(bound + 2):
        for rows in itertools.combinations_with_replacement(cells, n):
            yield list(rows), [min(1 << WEIGHT_BITS, (bound << WEIGHT_BITS) // n)] * n if n else []


OTHERS = [([], []), ([(0, 0, 0), (1, 1, 1), (1, 0, 1)], [1 << WEIGHT_BITS] * 3)]
CELL = SparseQuery(sparse.csr_array(([1], ([0], [3])), shape=(1, 4), dtype=np.int64), bits=0)
CANDIDATES = {
    "plain": [Candidate(c) for c in PAIRS],
    "weighted": [Candidate(c, weight=w, penalty=0.4) for c, w in zip(PAIRS, (1.0, 2.5, 0.3), strict=True)],
    "beyond a level": [Candidate(c, below=0.4) for c in PAIRS],
    "merged": [Candidate(c, MergedQuery((np.array([0, 1]), np.array([0, 0])))) for c in PAIRS],
    "itemsets": [Candidate(c, CELL) for c in PAIRS],
}


@pytest.mark.parametrize("bound", [1, 2])
@pytest.mark.parametrize("neighbouring", list(Neighbouring))
@pytest.mark.parametrize("kind", CANDIDATES)
def test_on_every_pair_of_neighbours_no_odds_change_by_more_than_the_claim(kind, neighbouring, bound):
    """Enumeration: the table of others with any one unit, or without, or with another; exact fractions."""
    attained = 0.0
    for rows, weights in OTHERS:
        worlds = []
        for mine, own in units(bound):
            table = Rows(tuple(zip([*rows, *mine], [*weights, *own], strict=True)), bound)
            scores = distance_scores(PrivateCounts(table, 10**6), CANDIDATES[kind], model, neighbouring=neighbouring)
            worlds.append((list(scores.values.values()), scores.sensitivity))
        probabilities = [odds(PrivateScores(dict(zip(PAIRS, v, strict=True)), s)) for v, s in worlds]
        logs = np.array([[math.log(p) for p in own] for own in probabilities])
        values = np.array([v for v, _ in worlds], float)
        others = range(len(worlds)) if neighbouring is Neighbouring.REPLACE else [0]
        for other in others:
            ratios = logs - logs[other]
            assert np.abs(ratios).max() <= EPSILON
            assert (ratios.max(axis=1) - ratios.min(axis=1)).max() <= EPSILON, "bounded range"
            attained = max(attained, np.abs(values - values[other]).max() / worlds[0][1])
    assert attained <= 1
    assert attained > 0.9 or kind == "merged", "the sensitivity is attained: no budget is wasted"


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-(10**12), 10**12), st.integers(-1000, 1000)), min_size=2, max_size=6),
    st.sampled_from([1e-6, 0.1, 1.0, 30.0, 500.0]),
)
def test_any_scores_within_the_sensitivity_stay_within_epsilon(scores, epsilon):
    """Also far beyond the reach of floats, where weights would vanish."""
    one, two = [s for s, _ in scores], [s + d for s, d in scores]
    p, q = choice_weights(one, 1000, epsilon), choice_weights(two, 1000, epsilon)
    assert min(p) > 0 < min(q)
    ratios = [math.log(Fraction(a, sum(p)) / Fraction(b, sum(q))) for a, b in zip(p, q, strict=True)]
    assert max(map(abs, ratios)) <= epsilon + 1e-15  # the logarithm's own rounding
    assert max(ratios) - min(ratios) <= epsilon + 1e-15


class OneStream:
    """A source that goes on in one stream, for a new one per draw takes longer than the draw."""

    def __init__(self, source):
        self.words = source.stream("draws")

    def stream(self, event_id):
        return self.words


def test_draws_follow_the_odds_in_both_directions():
    scores, n = [0, 1000, 2500, 2500], 40_000
    expected = np.array([math.exp(0.8 * s / 2000) for s in scores])
    source, event = OneStream(SeededNoise(4)), Exponential("choice", 0.8)
    drawn = np.bincount([choose_index(scores, 1000, event, source) for _ in range(n)])
    assert stats.chisquare(drawn, n * expected / expected.sum()).pvalue > 1e-3
    for wrong in (0.7, 0.9):
        other = np.array([math.exp(wrong * s / 2000) for s in scores])
        assert stats.chisquare(drawn, n * other / other.sum()).pvalue < 1e-6


def test_every_place_can_be_drawn_and_a_single_one_always_is():
    class End:
        def __init__(self, word):
            self.word = word

        def stream(self, event_id):
            return lambda size: np.full(size, self.word, np.uint64)

    assert choose_index([5, -3, 0], 1, Exponential("x", 1.0), End(0)) == 0
    assert choose_index([5, -3, 0], 1, Exponential("x", 1.0), End(2**64 - 1)) == 2
    assert choose_index([7], 1, Exponential("x", 1.0), SecureNoise()) == 0


def test_a_choice_that_is_too_small_is_refused_before_its_charge(tmp_path):
    charged = []

    class Free:
        events: ClassVar = {}

        def charge(self, event):
            charged.append(event)

    scores = PrivateScores(dict.fromkeys(PAIRS, 5), 1)
    with pytest.raises(UserError, match="too small"):
        choose(PAIRS, lambda: scores, Exponential("x", 1e-13), Free(), SecureNoise(), path=tmp_path / "x.json")
    assert not charged
    assert (
        choose(PAIRS, lambda: scores, Exponential("y", 1.0), Free(), SecureNoise(), path=tmp_path / "y.json") in PAIRS
    )
    assert len(charged) == 1


def test_fractional_queries_and_models_of_another_shape_are_refused():
    rows = PrivateCounts(Rows((((0, 0, 0), 1 << WEIGHT_BITS),)), 9)
    for wrong in (np.ones(3), np.array([1.0, np.nan, 1.0, 1.0]), np.full(4, 1e300)):
        with pytest.raises(ValueError, match="marginal"):
            distance_scores(rows, [Candidate(("a", "b"))], lambda _, w=wrong: w, neighbouring="add_remove")
    with pytest.raises(ValueError, match="entries 0 and 1"):
        distance_scores(rows, [Candidate(("a", "b"), Identity(4, bits=3))], model, neighbouring="add_remove")


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 4.0, 12.0])
def test_a_bounded_range_costs_no_more_than_claimed_under_gdp_and_zcdp(epsilon):
    """Every two-point pair whose loss lies in [t − ε, t]: its corner against the curve of μ-GDP, its Rényi loss."""
    cost = accountant_class("gdp").of(Delta(1e-6), 0).cost(Exponential("", epsilon))["mu"]
    rho = accountant_class("zcdp").of(Delta(1e-6), 0).cost(Exponential("", epsilon))["rho"]
    t = np.linspace(1e-4, 1 - 1e-4, 4001) * epsilon
    alpha = -np.expm1(t - epsilon) / (np.exp(t) - np.exp(t - epsilon))  # Q of the outcome with loss t
    p = alpha * np.exp(t)
    assert (stats.norm.isf(alpha) + stats.norm.ppf(p)).max() <= cost * (1 + 1e-9)
    for order in (1.5, 2.0, 8.0, 40.0):
        moment = p * np.exp((order - 1) * t) + (1 - p) * np.exp((order - 1) * (t - epsilon))
        assert (np.log(moment) / (order - 1)).max() <= rho * order * (1 + 1e-9)
