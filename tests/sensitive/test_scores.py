"""Noisy distances from independence: every claim of sensitivity by enumeration, noise by statistics, refusals."""

import itertools
import json
import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from mechanisms.accounting.budget import Budget
from mechanisms.accounting.ledger import Ledger
from mechanisms.accounting.plan import Plan
from mechanisms.accounting.planning import reserve
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.queries.merged_cells import MergedQuery
from mechanisms.public.queries.query_matrices import Identity, SparseQuery
from mechanisms.public.units import WEIGHT_BITS, Neighbouring
from mechanisms.selection.base import SCORES
from mechanisms.selection.papers.indif import Indif
from mechanisms.sensitive.noise import SeededNoise
from mechanisms.sensitive.noisy_distances import noisy_scores
from mechanisms.sensitive.private_choice import SCORE_BITS, Candidate, PrivateCounts, distance_scores

SMALL = Domain(tuple(Attribute(n, 2) for n in "abc"))
PAIRS = (("a", "b"), ("a", "c"), ("b", "c"))
CELLS = list(itertools.product(range(2), repeat=3))
ONE = 1 << WEIGHT_BITS


@dataclass(frozen=True)
class Rows:
    """Weighted rows over three binary columns; weights in lattice units."""

    rows: tuple[tuple[tuple[int, ...], int], ...]
    max_records: int = 1

    @property
    def coded(self) -> CodedTable:
        codes = np.array([r for r, _ in self.rows], np.uint8).reshape(-1, 3)
        weights = np.array([w for _, w in self.rows], np.uint32)
        return CodedTable(SMALL, tuple(codes.T.copy()), weights)


def scores(table, expected, neighbouring):
    found = distance_scores(
        PrivateCounts(table, 10**6), [Candidate(p) for p in PAIRS], expected, neighbouring=neighbouring
    )
    return np.array([found.values[p] for p in PAIRS]) * 2.0 ** -(WEIGHT_BITS + SCORE_BITS), found


def plan_of(neighbouring, *, noise="gaussian", bound=1, epsilon=1.0) -> Plan:
    method = Indif(PAIRS)
    slots, share = method.slots(SMALL, [1, 1, 8])
    budget = Budget(epsilon, 1e-6, "gdp" if noise == "gaussian" else "basic", neighbouring, bound)
    return reserve(slots, budget, method=method.description, noise=noise, filter_share=share)


def slot(plan):
    (place,) = plan.places(SCORES)
    return plan.slots[place].event


@pytest.mark.parametrize("bound", [1, 2])
@pytest.mark.parametrize("neighbouring", list(Neighbouring))
def test_no_unit_moves_the_distances_by_more_than_the_slots_pay_for(neighbouring, bound):
    """All units of up to two rows of whole and broken weights, beside tables on both sides of what is expected."""
    mine = [()] + [((c, w * ONE // 2),) for c in CELLS for w in (1, 2 * bound)]
    mine += [((c, ONE * bound // 2), (d, ONE * bound // 2)) for c, d in itertools.combinations(CELLS, 2)]
    claimed1 = slot(plan_of(neighbouring, noise="laplace", bound=bound)).l1_sensitivity
    claimed2 = slot(plan_of(neighbouring, bound=bound)).l2_sensitivity
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
    plan = plan_of(Neighbouring.REPLACE, noise="laplace")
    at = lambda c: np.array([1.0, 0, 0, 0])  # noqa: E731
    one, _ = scores(Rows((((0, 0, 0), ONE),)), at, Neighbouring.REPLACE)
    two, _ = scores(Rows((((1, 1, 1), ONE),)), at, Neighbouring.REPLACE)
    assert np.abs(one - two).sum() == slot(plan).l1_sensitivity == 6


@pytest.mark.parametrize("neighbouring", list(Neighbouring))
def test_counts_of_itemsets_move_by_no_more_than_a_unit_weighs(neighbouring):
    """The scores of PrivBasis, by enumeration: one cell of a marginal, C = 2."""
    cell = SparseQuery(sparse.csr_array(([1], ([0], [3])), shape=(1, 4), dtype=np.int64), bits=0)
    mine = [(), *(((c, ONE), (d, ONE)) for c, d in itertools.combinations_with_replacement(CELLS, 2))]
    rest = tuple((c, ONE) for c in CELLS[2:5])
    among = [Candidate(p, cell) for p in PAIRS]
    found, claimed = [], set()
    for m in mine:
        counted = PrivateCounts(Rows(rest + m, 2), 10**6)
        some = distance_scores(counted, among, lambda c: np.zeros(4), neighbouring=neighbouring)
        found.append([some.values[p] for p in PAIRS])
        claimed.add(some.sensitivity)
    others = found if neighbouring is Neighbouring.REPLACE else found[:1]
    assert claimed == {max(abs(a - b) for f in found for o in others for a, b in zip(f, o, strict=True))}


@settings(max_examples=60, deadline=None)
@given(
    rest=st.lists(st.tuples(st.sampled_from(CELLS), st.integers(1, ONE)), max_size=6),
    mine=st.tuples(st.sampled_from(CELLS), st.integers(1, ONE)),
    model=st.lists(st.floats(0, 9), min_size=4, max_size=4),
)
def test_any_weighted_row_moves_each_distance_by_no_more_than_its_weight(rest, mine, model):
    expected = lambda c: np.array(model)  # noqa: E731
    without, found = scores(Rows(tuple(rest)), expected, Neighbouring.ADD_REMOVE)
    with_, _ = scores(Rows((*rest, mine)), expected, Neighbouring.ADD_REMOVE)
    assert (np.abs(with_ - without) <= mine[1] / ONE + 1e-9).all()
    assert found.sensitivity == 1 << (WEIGHT_BITS + SCORE_BITS)


def indif(m, n=None):
    return float(np.abs(m - np.outer(m.sum(1), m.sum(0)) / (m.sum() if n is None else n)).sum()) if m.sum() else 0.0


def test_the_claims_about_other_forms_of_the_distance():
    """With the exact sides and n: at most 4C and 8C, nearly attained; with a constant n: above any bound."""
    tables = [np.array(t, float).reshape(2, 2) for t in itertools.product(range(5), repeat=4)]
    moves = [np.eye(4)[i].reshape(2, 2) for i in range(4)]
    add = max(abs(indif(t + m) - indif(t)) for t in tables for m in moves)
    swap = max(abs(indif(t + m) - indif(t + o)) for t in tables for m in moves for o in moves)
    assert 1 < add <= 4
    assert swap <= 8
    many = np.full((2, 2), 500.0)
    assert abs(indif(many + moves[0], n=10) - indif(many, n=10)) > 100


def test_the_noise_is_that_of_the_event_from_both_sides():
    plan = plan_of(Neighbouring.ADD_REMOVE)
    event, table = slot(plan), Rows(tuple((c, ONE) for c in CELLS))

    def drawn(folder, seed):
        folder.mkdir(exist_ok=True)
        ledger = Ledger(folder / f"{seed}.jsonl", plan)
        make = lambda: scores(table, lambda c: np.zeros(4), Neighbouring.ADD_REMOVE)[1]  # noqa: E731
        return noisy_scores(PAIRS, make, event, ledger, SeededNoise(seed), path=folder / f"{seed}.json")

    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        values = np.array([drawn(Path(folder), s) for s in range(400)])
    assert values.mean() == pytest.approx(8, abs=5 * event.sigma / math.sqrt(values.size))
    assert values.std() == pytest.approx(event.sigma, rel=0.1)
    assert event.sigma > event.l2_sensitivity, "a share of ε = 1"


def test_scores_are_kept_charged_once_and_refused_where_they_do_not_follow(tmp_path):
    plan = plan_of(Neighbouring.ADD_REMOVE)
    event, table, path = slot(plan), Rows(tuple((c, ONE) for c in CELLS)), tmp_path / "s.json"
    ledger = Ledger.open(tmp_path / "l.jsonl", plan)
    make = lambda: scores(table, lambda c: np.zeros(4), Neighbouring.ADD_REMOVE)[1]  # noqa: E731

    def again(cliques=PAIRS):
        return noisy_scores(cliques, make, event, ledger, SeededNoise(1), path=path)

    first = again()
    assert np.array_equal(first, again())
    assert len(ledger.events) == 1
    with pytest.raises(UserError, match="does not follow"):
        again(PAIRS[:2])
    kept = json.loads(path.read_text())
    path.write_text(json.dumps({**kept, "event": "another"}))
    with pytest.raises(UserError, match="does not follow"):
        again()
    path.unlink()
    assert again() is None, "charged and lost: never drawn again"


def test_an_event_that_pays_for_less_is_refused(tmp_path):
    plan = plan_of(Neighbouring.ADD_REMOVE)
    ledger = Ledger.open(tmp_path / "l.jsonl", plan)
    cheap = replace(slot(plan), l2_sensitivity=1.0)
    make = lambda: scores(Rows(((CELLS[0], ONE),)), lambda c: np.zeros(4), Neighbouring.ADD_REMOVE)[1]  # noqa: E731
    with pytest.raises(RuntimeError, match="sensitivity"):
        noisy_scores(PAIRS, make, cheap, ledger, SeededNoise(1), path=tmp_path / "s.json")
    assert not ledger.events


@pytest.mark.parametrize("query", [Identity(1), MergedQuery((np.zeros(8, np.int64),))])
def test_scores_by_a_matrix_over_a_marginal_of_another_size_are_refused(query):
    """Identity(1) of four cells was taken for a question that `replace` moves by C, and its distance moves by 2C."""
    counted = PrivateCounts(Rows((((0, 0, 0), ONE),)), 10**6)
    with pytest.raises(UserError, match="columns, and its marginal 4 cells"):
        distance_scores(counted, [Candidate(PAIRS[0], query)], lambda c: np.zeros(4), neighbouring=Neighbouring.REPLACE)
