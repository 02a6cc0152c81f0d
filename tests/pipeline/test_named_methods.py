"""What the named methods do with tables that a plain tree, or a full penalty for noise, serves badly."""

import itertools
import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.accounting.budget import Budget
from mechanisms.accounting.ledger import Ledger
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.marginals import count_cliques
from mechanisms.public.schema.table_schema import parse_schema
from mechanisms.public.units import Neighbouring
from mechanisms.selection.aim import Aim, AimSettings, in_turn
from mechanisms.selection.base import Facts, Schedule
from mechanisms.selection.mst import Mst, grown_views
from mechanisms.selection.questions import capped_noise
from mechanisms.sensitive.noise import SeededNoise
from pipeline.measuring.attempts import measure_plan
from pipeline.measuring.fitted_models import build_fit
from pipeline.measuring.selection_context import AdaptiveRun
from synthesis.pgm.graphical_model import fit_model
from synthesis.pgm.pgm_settings import PgmSpec


@dataclass(frozen=True)
class Table:
    """Rows of codes, one record a unit."""

    coded: CodedTable
    max_records: int = 1

    def public_rows(self, neighbouring):
        return None


def table_of(columns, sizes):
    domain = Domain(tuple(Attribute(f"c{i}", n) for i, n in enumerate(sizes)))
    return Table(CodedTable(domain, tuple(np.asarray(c).astype(np.uint8) for c in columns)))


def measured(folder, table, method, slots, reserve, *, epsilon):
    folder.mkdir()
    budget = Budget(epsilon, 1e-6, "gdp", Neighbouring.ADD_REMOVE, max_records=1)
    plan = Schedule(method, slots, reserve).plan(budget, noise="gaussian")
    ledger = Ledger.open(folder / "ledger.jsonl", plan)
    fit = build_fit(PgmSpec(), plan)
    known = measure_plan(AdaptiveRun(table, ledger, SeededNoise(3), folder / "answers", fit))
    assert ledger.spent.epsilon <= epsilon
    return known


@given(expected=st.lists(st.floats(-5, 1e6), min_size=1, max_size=30), noise=st.floats(0.1, 1e5))
def test_a_capped_penalty_is_at_most_the_full_one_and_at_least_that_of_privsyn(expected, noise):
    values = np.array(expected)
    capped = capped_noise(values, noise)
    floor = float(np.minimum(noise, np.maximum(values, 0)).sum())
    assert floor * (1 - 1e-12) <= capped <= noise * len(expected) * (1 + 1e-12)
    assert capped <= capped_noise(values + 1, noise)
    assert capped <= capped_noise(values, noise + 1)


@pytest.mark.parametrize("mean", [0.01, 0.3, 0.5, 1.0, 2.5, 20.0, 300.0])
def test_chance_adds_no_more_than_the_penalty_holds_for_it(mean):
    """The mean absolute deviation of a Poisson number is 2 e^(⌊m⌋ + 1) e^(−e) / ⌊e⌋!."""
    floor = math.floor(mean)
    deviation = 2 * math.exp((floor + 1) * math.log(mean) - mean - math.lgamma(floor + 1))
    assert mean + deviation <= capped_noise(np.array([mean]), 1e9) * (1 + 1e-12)


def test_a_sparse_dependence_is_chosen_where_the_penalty_is_capped(tmp_path):
    """60 × 60 cells with all records near the diagonal: the noise of 3,600 cells is more than all records."""
    rng = np.random.default_rng(1)
    a = rng.integers(0, 60, 20_000)
    table = table_of([a, (a + rng.integers(0, 2, 20_000)) % 60, rng.integers(0, 2, 20_000)], (60, 60, 2))
    domain, chosen = table.coded.domain, {}
    cliques = tuple(c for k in (1, 2) for c in itertools.combinations(domain.names, k))
    for penalty in ("noise", "capped"):
        method = Aim(cliques, (1.0,) * len(cliques), 0.9, 6, 10**6, penalty)
        known = measured(tmp_path / penalty, table, method, *method.slots(domain), epsilon=0.3)
        chosen[penalty] = {a.clique for a in known.answers[3:]}
    assert ("c0", "c1") in chosen["capped"]
    assert ("c0", "c1") not in chosen["noise"]


def test_views_hold_every_edge_and_keep_to_their_size():
    domain = Domain(tuple(Attribute(f"c{i}", n) for i, n in enumerate((2, 2, 3, 2, 9, 2, 4))))
    tree = [("c0", "c1"), ("c1", "c2"), ("c2", "c4"), ("c3", "c4"), ("c5", "c6")]
    for limit in (0, 4, 12, 60, 10**6):
        views = grown_views(domain, tree, limit)
        assert all(any(set(edge) <= set(view) for view in views) for edge in tree)
        assert all(domain.cells(v) <= limit or v in tree for v in views)
        again = itertools.combinations(views, 2)
        assert all(not set(v) & set(w) or domain.cells({*v, *w}) > limit for v, w in again)
    assert grown_views(domain, tree, 0) == sorted(tree, key=domain.axes)
    assert grown_views(domain, tree, 10**6) == [("c5", "c6"), ("c0", "c1", "c2", "c3", "c4")]


def test_views_find_what_many_equal_binary_columns_share(tmp_path):
    rng = np.random.default_rng(2)
    hidden = rng.random(20_000)
    table = table_of([rng.random(20_000) < hidden for _ in range(10)], [2] * 10)
    domain, error = table.coded.domain, {}
    pairs = tuple(itertools.combinations(domain.names, 2))
    for cells in (0, 256):
        method = Mst(pairs, view_cells=cells)
        known = measured(tmp_path / str(cells), table, method, *method.slots(domain, [1, 0.5, 2]), epsilon=1.0)
        model = fit_model(known)
        exact = count_cliques(table.coded, pairs)
        gaps = [np.abs(e - model.marginal(p)).sum() / 40_000 for p, e in zip(pairs, exact, strict=True)]
        error[cells] = float(np.mean(gaps))
    assert error[256] < 0.6 * error[0]


def facts_of(sizes):
    schema = parse_schema({f"c{i}": n for i, n in enumerate(sizes)}, where="t")
    return Facts(schema, "gaussian", Budget(1.0, 1e-9, "gdp", Neighbouring.ADD_REMOVE, 1))


def test_a_weight_of_aim_is_the_overlap_with_the_whole_workload():
    """Brute force over candidates × workload, as the paper writes it."""
    facts = facts_of(range(2, 8))
    weights = [{"marginal": ["c0", "c1", "c2"], "weight": 5}, {"marginal": ["c2", "c3", "c5"], "weight": 0.5}]
    selection = AimSettings(weights=weights)
    workload = selection.workload(facts)
    method = selection.schedule(facts, workload).method
    wanted = [(set(c), w) for c, w in zip(workload.cliques, workload.weights, strict=True)]
    plain = [sum(w * len(c & set(s)) for c, w in wanted) for s in method.candidates]
    assert method.weights == pytest.approx([p / max(plain) for p in plain], rel=1e-12)


def test_wide_tables_are_looked_at_in_turns_by_order():
    domain = facts_of([2] * 30).domain
    candidates = tuple(c for k in (1, 2, 3) for c in itertools.combinations(domain.names, k))
    assert in_turn(candidates, 7, None) == in_turn(candidates, 7, len(candidates)) == list(candidates)
    seen = Counter()
    for number in range(60):
        some = in_turn(candidates, number, 600)
        assert len(some) == len(set(some)) <= 600
        assert set(candidates[:30]) <= set(some)
        assert some == in_turn(candidates, number, 600) == sorted(some, key=candidates.index)
        seen.update(some)
    assert set(seen) == set(candidates)
    assert min(seen[c] for c in candidates if len(c) == 2) > max(seen[c] for c in candidates if len(c) == 3)


def test_aim_in_turns_asks_for_candidates_of_the_turn(tmp_path):
    rng = np.random.default_rng(4)
    hidden = rng.integers(0, 3, 5_000)
    table = table_of([np.where(rng.random(5_000) < 0.7, hidden, 0) for _ in range(6)], [3] * 6)
    domain = table.coded.domain
    cliques = tuple(c for k in (1, 2, 3) for c in itertools.combinations(domain.names, k))
    method = Aim(cliques, (1.0,) * len(cliques), 0.9, 12, 10**6, per_round=9)
    known = measured(tmp_path / "turns", table, method, *method.slots(domain), epsilon=2.0)
    turns = [set(in_turn(cliques, i, 9)) for i in range(len(known.answers))]
    rounds = [a.clique for a in known.answers[6:]]
    assert len(rounds) > 3
    assert all(clique in turn for clique, turn in zip(rounds, turns, strict=False))
