"""Adaptive rounds: within the budget, the same after an interruption, sensible in odd tables and with large noise."""

import itertools
import json
import math
import shutil
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.accounting.budget import Budget
from mechanisms.accounting.events import Exponential, Gaussian
from mechanisms.accounting.ledger import BudgetExceeded, Ledger
from mechanisms.accounting.plan import Reservation
from mechanisms.public.coded_table import CodedTable, count_cliques
from mechanisms.public.designs.pair_view import pairs
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.queries.adaptive_grid import GridQuery
from mechanisms.public.queries.cell_sums import MergedQuery
from mechanisms.public.queries.query_matrices import Identity, sensitivity
from mechanisms.public.schema.table_schema import parse_schema
from mechanisms.public.units import Neighbouring
from mechanisms.public.workload import closure
from mechanisms.selection.aim import Aim, AimSettings, in_turn
from mechanisms.selection.auto import Auto
from mechanisms.selection.base import Facts, Schedule
from mechanisms.selection.fixed import Merge, given_slots
from mechanisms.selection.mst import Mst, MstSettings, grown_views
from mechanisms.selection.papers.adagrid import Adagrid
from mechanisms.selection.papers.indif import Indif
from mechanisms.selection.papers.mwem import Mwem
from mechanisms.selection.papers.privbasis import PrivBasis
from mechanisms.selection.papers.priview import PriView, covering
from mechanisms.selection.questions import capped_noise
from mechanisms.selection.selections import method_of, registered_methods
from mechanisms.sensitive.noise import SeededNoise
from pipeline.measuring.attempts import measure_plan
from pipeline.measuring.selection_context import AdaptiveRun
from synthesis.pgm.graphical_model import fit_model
from synthesis.pgm.junction_tree import model_cells
from synthesis.pgm.pgm_settings import PgmSpec
from tests.public.table_worlds import coded

TOWN = Domain(tuple(Attribute(n, s) for n, s in (("a", 6), ("b", 5), ("c", 4), ("d", 3))))
EVERY = pairs(TOWN, TOWN.names, 1000)


def test_no_method_is_left_out():
    assert {type(entry[0]) for entry in METHODS.values()} == set(registered_methods().values())


@dataclass(frozen=True)
class Table:
    """Stands for a private table of these rows, one of each unit."""

    coded: CodedTable
    max_records: int = 1

    def public_rows(self, neighbouring):
        return self.coded.rows if neighbouring is Neighbouring.REPLACE else None


def town(domain: Domain = TOWN) -> Table:
    """3,000 rows in which a, b and c depend on each other and d on nothing."""
    rng = np.random.default_rng(8)
    a = np.minimum(rng.geometric(0.4, 3000) - 1, 5)
    b = np.where(rng.random(3000) < 0.8, a % 5, rng.integers(0, 5, 3000))
    c = np.where(rng.random(3000) < 0.6, b % 4, rng.integers(0, 4, 3000))
    return Table(coded(domain, (a, b, c, rng.integers(0, 3, 3000))[: len(domain)]))


def plan_of(*schedule, accountant="gdp", noise="gaussian", epsilon=1.0, neighbouring=Neighbouring.ADD_REMOVE):
    return Schedule(*schedule).plan(Budget(epsilon, 1e-6, accountant, neighbouring, max_records=1), noise=noise)


def given_marginals(method, *marginals):
    """A method over the downward closure of given marginals."""
    return method, given_slots(TOWN, closure(TOWN, marginals, max_cells=10**4))


def tree(method, *split):
    """A method whose slots are all that it has."""
    return method, method.slots(TOWN, split)


def reserving(method, *arguments):
    return method, *method.slots(*arguments)


EVERY_SET = tuple((n,) for n in TOWN.names) + EVERY
RESERVES = ("auto", "auto coarse", "mst views", "indif", "groups", "priview", "privbasis")
METHODS = {
    "given": given_marginals(Adagrid(2.0), ["a", "b", "c"], ["c", "d"]),
    "tree": tree(Adagrid(2.0, EVERY), 1, 1, 8),
    "targets": tree(Adagrid(2.0, tuple(p for p in EVERY if "d" not in p), ("d",)), 1, 1, 8),
    "merge": given_marginals(Merge(3.0, 200.0), ["a", "b"], ["c", "d"]),
    "mst": reserving(Mst(EVERY), TOWN, [1, 1, 1]),
    "mst views": reserving(Mst(EVERY, view_cells=100), TOWN, [1, 1, 1]),
    "aim": reserving(Aim(EVERY_SET, (1.0,) * len(EVERY_SET), 0.9, 30, 10**6), TOWN),
    "aim capped": reserving(Aim(EVERY_SET, (1.0,) * len(EVERY_SET), 0.9, 30, 10**6, "capped"), TOWN),
    "auto": reserving(Auto(EVERY, 100), TOWN, [2, 0.2, 7.8]),
    "auto coarse": reserving(Auto(EVERY, 0, 9), TOWN, [2, 0.2, 7.8]),
    "indif": reserving(Indif(EVERY, 100), TOWN, [1, 0.5, 8.5]),
    "groups": reserving(Indif(EVERY, 100, groups=2), TOWN, [1, 0.5, 8.5]),
    "priview": reserving(PriView((covering(TOWN, 2, view_cells=30, max_cells=100),)), TOWN, [1, 9]),
    "privbasis": reserving(PrivBasis(TOWN.names, 3, 2, 200), [1, 4, 5]),
    "mwem": tree(Mwem(EVERY, 3, 10**6), 1, 1, 1),
}


def run(folder, plan, *, seed=5, table=None):
    folder.mkdir(exist_ok=True)
    ledger = Ledger.open(folder / "ledger.jsonl", plan)
    return measure_plan(AdaptiveRun(table or town(), ledger, SeededNoise(seed), folder / "answers", PgmSpec())), ledger


def forget(folder, plan, name):
    places = {s.event.id: f"{i:05d}.*" for i, s in enumerate(plan.slots)}
    if name not in places:
        _, number, kind = name.split(":")
        places[name] = f"choice-{number}.json" if kind == "choose" else f"{len(plan.slots) + int(number):05d}.*"
    for kept in (folder / "answers").glob(places[name]):
        kept.unlink()


@pytest.mark.some(5)
@pytest.mark.parametrize("neighbouring", list(Neighbouring))
@pytest.mark.parametrize(
    ("accountant", "noise"),
    [("gdp", "gaussian"), ("zcdp", "gaussian"), ("basic", "laplace"), ("basic", "gaussian"), ("advanced", "laplace")],
)
@pytest.mark.parametrize("name", METHODS)
def test_rounds_spend_the_budget_and_never_more(tmp_path, name, accountant, noise, neighbouring):
    adds_up = {("gdp", "gaussian"), ("zcdp", "gaussian"), *([("basic", "laplace")] if name in RESERVES else [])}
    if (name in RESERVES or name.startswith("aim")) and (accountant, noise) not in adds_up:
        with pytest.raises(UserError, match=r"privacy\.accountant"):
            plan_of(*METHODS[name], accountant=accountant, noise=noise)
        return
    plan = plan_of(*METHODS[name], accountant=accountant, noise=noise, neighbouring=neighbouring)
    assert 0.9999 < plan.loss.epsilon <= 1.0
    known, ledger = run(tmp_path, plan)
    assert ledger.spent.epsilon <= 1.0
    assert ledger.spent.epsilon > 0.95  # what could be chosen only one way costs nothing
    norm = "l2" if noise == "gaussian" else "l1"
    for answer in known.answers:
        event = ledger.events[answer.event]
        found = sensitivity(answer.query, norm=norm, neighbouring=neighbouring, max_records=1)
        assert found == event.sensitivity
        assert plan.reserved(event) is not None
        assert answer.scale == event.scale


@pytest.mark.some(4)
@pytest.mark.parametrize("name", METHODS)
def test_an_interrupted_run_goes_on_with_the_same_choices(tmp_path, name):
    plan = plan_of(*METHODS[name], epsilon=3.0)
    whole, ledger = run(tmp_path / "whole", plan)
    for cut in range(0, len(ledger.events), 3 if len(ledger.events) < 30 else 11):
        part = shutil.copytree(tmp_path / "whole", tmp_path / f"part{cut}")
        lines = (part / "ledger.jsonl").read_text().splitlines(keepends=True)
        (part / "ledger.jsonl").write_text("".join(lines[: 1 + cut]))
        for event in list(ledger.events)[cut:]:
            forget(part, plan, event)
        again, resumed = run(part, plan)
        assert list(resumed.events) == list(ledger.events)
        for left, right in zip(whole.answers, again.answers, strict=True):
            assert left.clique == right.clique
            assert np.array_equal(left.values, right.values)


@pytest.mark.some(4)
@pytest.mark.parametrize("name", METHODS)
def test_a_charge_without_its_answer_stays_spent_and_the_run_goes_on(tmp_path, name):
    plan = plan_of(*METHODS[name], epsilon=3.0)
    _, ledger = run(tmp_path, plan)
    lost = 4  # the first choice, or a measurement of the second round: it was charged, then the machine stopped
    lines = (tmp_path / "ledger.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "ledger.jsonl").write_text("".join(lines[: 2 + lost]))
    for event in list(ledger.events)[lost:]:
        forget(tmp_path, plan, event)
    first, after = run(tmp_path, plan)
    assert list(ledger.events)[lost] not in {a.event for a in first.answers}
    assert after.spent.epsilon <= 3.0
    second, _ = run(tmp_path, plan)
    assert [a.clique for a in first.answers] == [a.clique for a in second.answers]


@pytest.mark.parametrize("name", ["given", "mst"])
def test_answers_and_choices_that_do_not_follow_from_those_before_are_refused(tmp_path, name):
    plan, answers = plan_of(*METHODS[name], epsilon=3.0), tmp_path / "answers"
    run(tmp_path, plan)
    if name == "given":
        (answers / "00005.npz").replace(answers / "00006.npz")
    else:
        kept = min(answers.glob("*.json"))
        kept.write_text(json.dumps({**json.loads(kept.read_text()), "choice": ["a", "z"]}))
    with pytest.raises(UserError, match="does not follow"):
        run(tmp_path, plan)


def test_no_slot_takes_an_event_that_costs_more(tmp_path):
    plan = plan_of(*METHODS["tree"])
    ledger = Ledger.open(tmp_path / "ledger.jsonl", plan)
    measured = next(s.event for s in plan.slots if isinstance(s.event, Gaussian))
    chosen = next(s.event for s in plan.slots if isinstance(s.event, Exponential))
    for worse in (
        replace(measured, sigma=measured.sigma * 0.99),
        replace(measured, l2_sensitivity=measured.l2_sensitivity * 1.01),
        replace(chosen, epsilon=chosen.epsilon * 1.01),
        Exponential(measured.id, 1e-9),
        Gaussian("another", 1e-9, 1e9),
    ):
        with pytest.raises(BudgetExceeded, match="not in the plan"):
            ledger.charge(worse)
    ledger.charge(replace(measured, l2_sensitivity=measured.l2_sensitivity / 2))
    full = plan.accountant.loss([measured])
    assert ledger.spent == full, "the slot's worst case is booked: what was asked depends on the answers before"


def test_the_tree_finds_the_dependences(tmp_path):
    known, _ = run(tmp_path, plan_of(*METHODS["mst"], epsilon=10.0))
    edges = [a.clique for a in known.answers if len(a.clique) == 2]
    assert {("a", "b"), ("b", "c")} <= set(edges)
    assert len(edges) == 3


def test_rare_values_are_measured_as_one(tmp_path):
    known, _ = run(tmp_path, plan_of(*reserving(Mst(EVERY, rare=3.0), TOWN, [1, 1, 1]), epsilon=0.05))
    merged = [a for a in known.answers if isinstance(a.query, MergedQuery)]
    assert merged and all(a.query.rows < a.query.columns for a in merged)
    plain, _ = run(tmp_path / "p", plan_of(*reserving(Mst(EVERY, rare=0.0), TOWN, [1, 1, 1]), epsilon=0.05))
    assert all(isinstance(a.query, Identity) for a in plain.answers)


def test_adaptive_rounds_leave_small_cells_coarse(tmp_path):
    known, _ = run(tmp_path, plan_of(*METHODS["given"]))
    grids = [a for a in known.answers if isinstance(a.query, GridQuery)]
    assert grids
    assert all(0 < a.query.fine_cells.size < a.query.columns for a in grids)


@pytest.mark.parametrize("threshold", [0.0, 1e9])
def test_thresholds_that_keep_all_or_nothing_are_measured_all_the_same(tmp_path, threshold):
    known, ledger = run(tmp_path, plan_of(Adagrid(threshold), METHODS["given"][1]))
    assert len(known.answers) == len(ledger.events) == 9
    assert ledger.spent.epsilon > 0.9999


def test_two_columns_have_one_tree_which_costs_nothing_to_find(tmp_path):
    two = Domain(TOWN.attributes[:2])
    known, ledger = run(tmp_path, plan_of(*reserving(Mst((("a", "b"),)), two, [1, 1, 1])), table=town(two))
    assert [a.clique for a in known.answers] == [("a",), ("b",), ("a", "b")]
    assert not any(isinstance(e, Exponential) for e in ledger.events.values())


def test_a_round_without_a_budget_is_refused():
    with pytest.raises(UserError, match=r"selection\.split"):
        MstSettings(split=[1, 0, 1])
    with pytest.raises(UserError, match="a round has no budget"):
        plan_of(Adagrid(1.0), [Reservation("given", ("a",), 6, 0.0)])
    with pytest.raises(UserError, match="no marginals"):
        plan_of(Adagrid(1.0), [])


def test_the_plan_names_its_method_so_that_a_ledger_never_serves_another(tmp_path):
    wanted = METHODS["given"][1]
    one, two = plan_of(Adagrid(2.0), wanted), plan_of(Adagrid(3.0), wanted)
    Ledger.open(tmp_path / "ledger.jsonl", one)
    with pytest.raises(UserError, match="another plan"):
        Ledger.open(tmp_path / "ledger.jsonl", two)


def test_aim_spends_its_reserve_in_rounds_of_growing_size(tmp_path):
    plan = plan_of(*METHODS["aim"], epsilon=2.0)
    known, ledger = run(tmp_path, plan)
    assert 0.999 * 2 < ledger.spent.epsilon <= 2.0
    scales = [a.scale for a in known.answers[4:]]
    assert scales[-1] < scales[0]
    assert {("a", "b"), ("b", "c")} <= {a.clique for a in known.answers}
    receipts = plan.receipts(ledger.events)
    assert sum(r["share"] for r in receipts) == pytest.approx(1.0, abs=1e-4)
    with pytest.raises(BudgetExceeded, match="would spend"):
        ledger.charge(plan.measurement_event("9999:measure", 0.01))


def test_the_limit_on_the_model_keeps_candidates_out(tmp_path):
    method = Mwem(EVERY, 4, max_model_cells=60)
    known, _ = run(tmp_path, plan_of(*tree(method, 1, 1, 1), epsilon=5.0))
    assert model_cells(TOWN, [a.clique for a in known.answers]) <= 60


def test_what_the_model_cannot_answer_within_memory_is_not_a_candidate(tmp_path, monkeypatch):
    monkeypatch.setattr("synthesis.pgm.graphical_model.MAX_CELLS", 1)  # only marginals inside the model can be answered
    known, ledger = run(tmp_path, plan_of(*METHODS["aim"], epsilon=2.0))
    assert {len(a.clique) for a in known.answers} == {1}
    assert 0.999 * 2 < ledger.spent.epsilon <= 2.0


@pytest.mark.parametrize("name", METHODS)
def test_a_plan_holds_plain_values_that_lead_back_to_the_method(name):
    method = METHODS[name][0]
    assert method_of(method.description) == method and json.dumps(method.description)


def table_of(columns, sizes):
    domain = Domain(tuple(Attribute(f"c{i}", n) for i, n in enumerate(sizes)))
    return Table(coded(domain, columns))


def measured(folder, table, method, slots, reserve, *, epsilon):
    folder.mkdir()
    budget = Budget(epsilon, 1e-6, "gdp", Neighbouring.ADD_REMOVE, max_records=1)
    plan = Schedule(method, slots, reserve).plan(budget, noise="gaussian")
    ledger = Ledger.open(folder / "ledger.jsonl", plan)
    known = measure_plan(AdaptiveRun(table, ledger, SeededNoise(3), folder / "answers", PgmSpec()))
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


@pytest.mark.slow
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
