"""Scores of marginals and of tables, and the exponential mechanism: sensitivities, odds, noise, charges."""

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats

from mechanisms.accounting.accountants.registered import accountant_class
from mechanisms.accounting.budget import Budget
from mechanisms.accounting.events import Exponential
from mechanisms.accounting.ledger import Ledger
from mechanisms.accounting.plan import Plan
from mechanisms.accounting.planning import Request, make_plan, reserve
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.queries.cell_sums import MergedQuery
from mechanisms.public.queries.query_matrices import Identity, SparseQuery
from mechanisms.public.release import Criterion
from mechanisms.public.schema.table_schema import parse_schema
from mechanisms.public.units import WEIGHT_BITS, Delta, Neighbouring
from mechanisms.selection.base import SCORES
from mechanisms.selection.papers.indif import Indif
from mechanisms.sensitive import exponential
from mechanisms.sensitive.contribution import PrivacyUnit
from mechanisms.sensitive.exponential import choice_weights, choose_index
from mechanisms.sensitive.noise import SecureNoise, SeededNoise
from mechanisms.sensitive.private_choice import (
    SCORE_BITS,
    Candidate,
    PrivateCounts,
    PrivateScores,
    choose,
    distance_scores,
    exact_distance,
    noisy_distance,
    noisy_scores,
)
from mechanisms.sensitive.private_table import PrivateTable, load_private
from tests.public.table_worlds import csv, source
from tests.sensitive.lattice import CUBE, Rows

SCHEMA = parse_schema({"x": 2, "y": 2, "z": 2}, where="test")
DOMAIN = Domain(tuple(Attribute(n, 2) for n in "xyz"))
PAIRS = (("x", "y"), ("x", "z"), ("y", "z"))
CELLS = list(itertools.product(range(2), repeat=3))


def criterion(over="mean", cliques=PAIRS, at_most=None) -> Criterion:
    return Criterion(0, len(cliques[0]), cliques, 0, over, at_most, 0.05)


def synthetic(rows: list[tuple[int, ...]]) -> CodedTable:
    return CodedTable(DOMAIN, tuple(np.array(rows, np.uint8).reshape(-1, 3).T.copy()))


def loaded(folder: Path, rows: list[tuple[str, int, int, int]], bound: int) -> PrivateTable:
    folder.mkdir(exist_ok=True)
    table = source(csv(folder, "id,x,y,z\n" + "".join(f"{i},{x},{y},{z}\n" for i, x, y, z in rows)))
    unit = PrivacyUnit(column="id", max_records=bound, clip="weight")
    return load_private(table, SCHEMA, unit, workdir=folder / "w", key=b"k" * 32)


def plan_of(wanted: Criterion, neighbouring=Neighbouring.ADD_REMOVE, *, mechanism="gaussian", bound=1):
    budget = Budget(1.0, 1e-6, "gdp" if mechanism == "gaussian" else "basic", neighbouring, bound)
    return make_plan(DOMAIN, [Request(p) for p in PAIRS], budget, mechanism=mechanism, beside=[wanted])


@pytest.mark.parametrize("bound", [1, 2])
def test_no_unit_moves_the_distance_by_more_than_the_sensitivity(tmp_path, bound):
    """The unit `p` has up to 3 records of any kind; `q` and rows without an id stay; weights are broken for C < R."""
    others = [("q", 0, 0, 0), ("q", 1, 0, 1), ("q", 1, 1, 1), ("", 0, 1, 1)]
    made = [synthetic([]), synthetic([(0, 0, 0)] * 3), synthetic([(0, 0, 0), (1, 1, 0), (0, 1, 1)])]
    tables = []
    for n in range(4):
        for mine in itertools.combinations_with_replacement([CELLS[0], CELLS[7]], n):
            tables.append(loaded(tmp_path / f"{len(tables)}", [*others, *(("p", *row) for row in mine)], bound))
    for over, neighbouring in itertools.product(("mean", "largest"), Neighbouring):
        worlds = [[exact_distance(t.coded, m, criterion(over)) for m in made] for t in tables]
        claimed = criterion(over).sensitivity(norm="l1", neighbouring=neighbouring, max_records=bound) * 2**WEIGHT_BITS
        theirs = worlds if neighbouring is Neighbouring.REPLACE else worlds[:1]
        pairs = itertools.product(worlds, theirs)
        largest = max(abs(a - b) for one, two in pairs for a, b in zip(one, two, strict=True))
        assert largest <= claimed
        assert largest > 0.99 * claimed, "attained: no budget is wasted"


def test_a_mean_over_many_marginals_moves_no_further_after_it_is_rounded_down(tmp_path):
    """Seven marginals of mixed size: the sum of the distances does not divide evenly."""
    several = (*PAIRS, ("x",), ("y",), ("z",), ("x", "y", "z"))
    wanted = replace(criterion(), cliques=several)
    rows = [("a", 0, 0, 1), ("a", 0, 1, 1), ("a", 1, 1, 1), ("b", 1, 0, 0)]
    made = synthetic([(0, 0, 0), (1, 1, 1)])
    one, two = (exact_distance(loaded(tmp_path, r, 1).coded, made, wanted) for r in (rows, rows[:3]))
    assert abs(one - two) <= 2**WEIGHT_BITS


def test_the_distance_is_the_mean_or_the_largest_l1_distance_in_records(tmp_path):
    table = loaded(tmp_path, [(f"u{i}", *c) for i, c in enumerate([(0, 0, 0), (0, 0, 1), (1, 1, 1)])], 1)
    made = synthetic([(0, 0, 0), (1, 0, 0)])
    each = [2 + 1 - 2 * 1 + 2, 3, 3]  # by hand: xy: |2-1| + |0-0| + |0-1| + |1-0|; xz and yz as below
    by_hand = []
    for a, b in ((0, 1), (0, 2), (1, 2)):
        real, fake = np.zeros((2, 2)), np.zeros((2, 2))
        for row in [(0, 0, 0), (0, 0, 1), (1, 1, 1)]:
            real[row[a], row[b]] += 1
        for row in [(0, 0, 0), (1, 0, 0)]:
            fake[row[a], row[b]] += 1
        by_hand.append(np.abs(real - fake).sum())
    assert by_hand == each
    assert exact_distance(table.coded, made, criterion("mean")) == math.floor(sum(by_hand) / 3 * 2**WEIGHT_BITS)
    assert exact_distance(table.coded, made, criterion("largest")) == max(by_hand) * 2**WEIGHT_BITS
    scaled = exact_distance(table.coded, synthetic([(0, 0, 0), (0, 0, 1), (1, 1, 1)] * 2), criterion(), scale=0.5)
    assert scaled == 0, "twice the rows at half the weight are the same table"


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_the_noise_is_that_of_the_event(tmp_path, mechanism):
    wanted = criterion()
    plan = plan_of(wanted, mechanism=mechanism)
    (planned,) = plan.scores
    exact, drawn = 7 << WEIGHT_BITS, []
    for seed in range(150):
        ledger = Ledger(tmp_path / f"{seed}.jsonl", plan)
        drawn.append(asked(planned, lambda: exact, ledger, SeededNoise(seed), tmp_path / f"{seed}.json"))
    values = np.array(drawn)
    assert values.mean() == pytest.approx(7, abs=5 * planned.event.stddev / math.sqrt(values.size))
    assert values.std() == pytest.approx(planned.event.stddev, rel=0.2)
    alone = wanted.sensitivity(norm=planned.event.norm, neighbouring=Neighbouring.ADD_REMOVE, max_records=1)
    assert planned.event.stddev > 4 * alone


def asked(planned, distance, ledger, source, path, bound=1):
    budget = replace(ledger.plan.budget, max_records=bound)
    return noisy_distance(planned, distance, ledger, source, budget=budget, path=path)


def is_kept_and_charged_once(again, another, path, ledger, spoilt) -> None:
    """Another question, a spoilt file and a lost one get no answer."""
    assert np.array_equal(again(), again()) and len(ledger.events) == 1
    with pytest.raises(UserError, match="does not follow"):
        another()
    path.write_text(json.dumps({**json.loads(path.read_text()), **spoilt}))
    with pytest.raises(UserError, match="does not follow"):
        again()
    path.unlink()
    assert again() is None, "charged and lost: never drawn again"


def test_a_distance_is_kept_charged_once_and_never_drawn_again(tmp_path):
    plan = plan_of(criterion(at_most=5.0))
    (planned,), path = plan.scores, tmp_path / "s.json"
    ledger = Ledger.open(tmp_path / "l.jsonl", plan)
    again = lambda p=planned: asked(p, lambda: 0, ledger, SeededNoise(1), path)  # noqa: E731
    other = replace(planned, asked=criterion(at_most=6.0))
    is_kept_and_charged_once(again, lambda: again(other), path, ledger, {"values": [None]})
    assert list(ledger.events) == ["accept:0"]


def test_a_score_that_pays_for_less_than_it_moves_is_refused_before_anything_is_charged(tmp_path):
    plan = plan_of(criterion())
    ledger = Ledger.open(tmp_path / "l.jsonl", plan)
    with pytest.raises(RuntimeError, match="sensitivity"):
        asked(plan.scores[0], lambda: 0, ledger, SeededNoise(1), tmp_path / "s.json", bound=2)
    assert not ledger.events


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_the_score_takes_its_share_of_the_budget_and_the_marginals_the_rest(mechanism):
    wanted = replace(criterion(), share=0.2)
    plan, without = plan_of(wanted, mechanism=mechanism), plan_of(replace(wanted, share=1e-4), mechanism=mechanism)
    assert plan.loss.epsilon <= 1.0
    assert plan.loss.epsilon > 0.999
    costs = [plan.accountant.cost(e) for e in plan.events]
    own = costs[-1]["mu"] ** 2 / sum(c["mu"] ** 2 for c in costs) if mechanism == "gaussian" else costs[-1]["epsilon"]
    assert own == pytest.approx(0.2, rel=1e-6)
    assert plan.measurements[0].event.scale > without.measurements[0].event.scale
    assert not plan.buys_answers(plan.scores[0].event)


CANDIDATES = (("a", "b"), ("a", "c"), ("b", "c"))
ONE = 1 << WEIGHT_BITS


def scores(table, expected, neighbouring):
    found = distance_scores(
        PrivateCounts(table, 10**6), [Candidate(p) for p in CANDIDATES], expected, neighbouring=neighbouring
    )
    return np.array([found.values[p] for p in CANDIDATES]) * 2.0 ** -(WEIGHT_BITS + SCORE_BITS), found


def plan_for(neighbouring, *, noise="gaussian", bound=1, epsilon=1.0) -> Plan:
    method = Indif(CANDIDATES)
    slots, share = method.slots(CUBE, [1, 1, 8])
    budget = Budget(epsilon, 1e-6, "gdp" if noise == "gaussian" else "basic", neighbouring, bound)
    return reserve(slots, budget, method=method.description, noise=noise, filter_share=share)


def slot(plan):
    (place,) = (i for i, s in enumerate(plan.slots) if s.reservation.stage == SCORES)
    return plan.slots[place].event


@pytest.mark.parametrize("bound", [1, 2])
@pytest.mark.parametrize("neighbouring", list(Neighbouring))
def test_no_unit_moves_the_distances_by_more_than_the_slots_pay_for(neighbouring, bound):
    """All units of up to two rows of whole and broken weights, beside tables on both sides of what is expected."""
    mine = [()] + [((c, w * ONE // 2),) for c in CELLS for w in (1, 2 * bound)]
    mine += [((c, ONE * bound // 2), (d, ONE * bound // 2)) for c, d in itertools.combinations(CELLS, 2)]
    claimed1 = slot(plan_for(neighbouring, noise="laplace", bound=bound)).l1_sensitivity
    claimed2 = slot(plan_for(neighbouring, bound=bound)).l2_sensitivity
    largest1 = largest2 = 0.0
    for level in (0.0, 7.25):
        rest = tuple((c, ONE) for c in CELLS[:3])
        at = lambda c, level=level: np.full(4, level)  # noqa: E731
        found = [scores(Rows(rest + m, bound), at, neighbouring)[0] for m in mine]
        others = found if neighbouring is Neighbouring.REPLACE else found[:1]
        gaps = np.abs(np.array(found)[:, None, :] - np.array(others)[None, :, :])
        largest1, largest2 = max(largest1, gaps.sum(-1).max()), max(largest2, np.sqrt((gaps**2).sum(-1)).max())
    assert largest1 <= claimed1
    assert largest2 <= claimed2
    if neighbouring is Neighbouring.ADD_REMOVE:  # attained by every pair at once: no budget is wasted
        assert largest1 == claimed1
        assert largest2 > 0.999999 * claimed2


def test_under_replace_the_bound_is_attained_where_both_rows_matter():
    """What is expected lies at one cell of every pair: moving a row from it to the opposite one costs 2 each."""
    plan = plan_for(Neighbouring.REPLACE, noise="laplace")
    at = lambda c: np.array([1.0, 0, 0, 0])  # noqa: E731
    one, _ = scores(Rows((((0, 0, 0), ONE),)), at, Neighbouring.REPLACE)
    two, _ = scores(Rows((((1, 1, 1), ONE),)), at, Neighbouring.REPLACE)
    assert np.abs(one - two).sum() == slot(plan).l1_sensitivity == 6


def test_the_noise_is_that_of_the_event_from_both_sides(tmp_path):
    plan = plan_for(Neighbouring.ADD_REMOVE)
    event, table = slot(plan), Rows(tuple((c, ONE) for c in CELLS))

    def drawn(seed):
        ledger = Ledger(tmp_path / f"{seed}.jsonl", plan)
        make = lambda: scores(table, lambda c: np.zeros(4), Neighbouring.ADD_REMOVE)[1]  # noqa: E731
        return noisy_scores(CANDIDATES, make, event, ledger, SeededNoise(seed), path=tmp_path / f"{seed}.json")

    values = np.array([drawn(seed) for seed in range(400)])
    assert values.mean() == pytest.approx(8, abs=5 * event.sigma / math.sqrt(values.size))
    assert values.std() == pytest.approx(event.sigma, rel=0.1)
    assert event.sigma > event.l2_sensitivity, "a share of ε = 1"


def test_scores_are_kept_charged_once_and_refused_where_they_do_not_follow(tmp_path):
    plan = plan_for(Neighbouring.ADD_REMOVE)
    event, table, path = slot(plan), Rows(tuple((c, ONE) for c in CELLS)), tmp_path / "s.json"
    ledger = Ledger.open(tmp_path / "l.jsonl", plan)
    make = lambda: scores(table, lambda c: np.zeros(4), Neighbouring.ADD_REMOVE)[1]  # noqa: E731

    def again(cliques=CANDIDATES):
        return noisy_scores(cliques, make, event, ledger, SeededNoise(1), path=path)

    is_kept_and_charged_once(again, lambda: again(CANDIDATES[:2]), path, ledger, {"event": "another"})


def test_an_event_that_pays_for_less_is_refused(tmp_path):
    plan = plan_for(Neighbouring.ADD_REMOVE)
    ledger = Ledger.open(tmp_path / "l.jsonl", plan)
    cheap = replace(slot(plan), l2_sensitivity=1.0)
    make = lambda: scores(Rows(((CELLS[0], ONE),)), lambda c: np.zeros(4), Neighbouring.ADD_REMOVE)[1]  # noqa: E731
    with pytest.raises(RuntimeError, match="sensitivity"):
        noisy_scores(CANDIDATES, make, cheap, ledger, SeededNoise(1), path=tmp_path / "s.json")
    assert not ledger.events


@pytest.mark.parametrize("query", [Identity(1), MergedQuery((np.zeros(8, np.int64),))])
def test_scores_by_a_matrix_over_a_marginal_of_another_size_are_refused(query):
    """Identity(1) of four cells was taken for a question that `replace` moves by C, and its distance moves by 2C."""
    counted = PrivateCounts(Rows((((0, 0, 0), ONE),)), 10**6)
    with pytest.raises(UserError, match="columns, and its marginal 4 cells"):
        distance_scores(
            counted, [Candidate(CANDIDATES[0], query)], lambda c: np.zeros(4), neighbouring=Neighbouring.REPLACE
        )


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
KINDS = {
    "plain": [Candidate(c) for c in CANDIDATES],
    "weighted": [Candidate(c, weight=w, penalty=0.4) for c, w in zip(CANDIDATES, (1.0, 2.5, 0.3), strict=True)],
    "beyond a level": [Candidate(c, below=0.4) for c in CANDIDATES],
    "merged": [Candidate(c, MergedQuery((np.array([0, 1]), np.array([0, 0])))) for c in CANDIDATES],
    "itemsets": [Candidate(c, CELL) for c in CANDIDATES],
}


@pytest.mark.parametrize("bound", [1, 2])
@pytest.mark.parametrize("neighbouring", list(Neighbouring))
@pytest.mark.parametrize("kind", KINDS)
def test_on_every_pair_of_neighbours_no_odds_change_by_more_than_the_claim(kind, neighbouring, bound):
    """Enumeration: the table of others with any one unit, or without, or with another; exact fractions."""
    attained = 0.0
    for rows, weights in OTHERS:
        worlds = []
        for mine, own in units(bound):
            table = Rows(tuple(zip([*rows, *mine], [*weights, *own], strict=True)), bound)
            scores = distance_scores(PrivateCounts(table, 10**6), KINDS[kind], model, neighbouring=neighbouring)
            worlds.append((list(scores.values.values()), scores.sensitivity))
        probabilities = [odds(PrivateScores(dict(zip(CANDIDATES, v, strict=True)), s)) for v, s in worlds]
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


@settings(max_examples=200)
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


def test_draws_follow_the_odds_in_both_directions(monkeypatch):
    monkeypatch.setattr(exponential, "choice_weights", cache(choice_weights))  # to 60 digits: most of a draw's time
    scores, n = (0, 1000, 2500, 2500), 40_000
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

    scores = PrivateScores(dict.fromkeys(CANDIDATES, 5), 1)
    with pytest.raises(UserError, match="too small"):
        choose(CANDIDATES, lambda: scores, Exponential("x", 1e-13), Free(), SecureNoise(), path=tmp_path / "x.json")
    assert not charged
    taken = choose(CANDIDATES, lambda: scores, Exponential("y", 1.0), Free(), SecureNoise(), path=tmp_path / "y.json")
    assert taken in CANDIDATES
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
