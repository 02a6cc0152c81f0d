"""The wall and its exit under attack: nothing leaves unpaid, and what leaves has the noise that was paid for."""

import ast
import itertools
import json
import math
import sys
import threading
import time
import types
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from mechanisms.accounting.accountants.registered import ACCOUNTANTS
from mechanisms.accounting.budget import Budget
from mechanisms.accounting.events import Exponential, Gaussian
from mechanisms.accounting.ledger import BudgetExceeded, Ledger
from mechanisms.accounting.plan import Plan, PlannedMeasurement
from mechanisms.accounting.planning import Request, make_plan
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.queries.adaptive_grid import GridQuery
from mechanisms.public.queries.cell_sums import MergedQuery
from mechanisms.public.queries.query_matrices import MATRIX_BITS, Identity, QueryMatrix, SparseQuery
from mechanisms.public.release import Measurements
from mechanisms.public.units import WEIGHT_BITS, Neighbouring
from mechanisms.sensitive import exit as the_exit
from mechanisms.sensitive.exact_answers import exact_marginals
from mechanisms.sensitive.exit import leave
from mechanisms.sensitive.measurement import marginal_question, measure_some
from mechanisms.sensitive.noise import SecureNoise, SeededNoise
from mechanisms.sensitive.private_choice import PrivateScores, choose

ROOT = Path(__file__).parents[2]
PAIR = Domain((Attribute("a", 4), Attribute("b", 3)))
CLIQUES = (("a",), ("b",), ("a", "b"))


@dataclass(frozen=True)
class Rows:
    """A private table of random rows, each of the weight 1 or as given."""

    domain: Domain = PAIR
    rows: int = 60
    seed: int = 2
    max_records: int = 1
    weight: int | None = None

    @property
    def coded(self) -> CodedTable:
        rng = np.random.default_rng(self.seed)
        columns = tuple(rng.integers(0, a.size, self.rows).astype(np.uint8) for a in self.domain.attributes)
        weights = None if self.weight is None else np.full(self.rows, self.weight, np.uint32)
        return CodedTable(self.domain, columns, weights)


class Watched:
    """A seeded source that looks at the ledger on disk before each draw."""

    def __init__(self, path: Path):
        self.path, self.source, self.drawn = path, SeededNoise(3), []

    def stream(self, event_id: str):
        lines = [json.loads(line) for line in self.path.read_text().splitlines()[1:]]
        assert event_id in {line["event"]["id"] for line in lines}, "drawn before its charge was on disk"
        self.drawn.append(event_id)
        return self.source.stream(event_id)


class World:
    """Three questions about one table, a ledger on disk, and an exit that may be faulty."""

    def __init__(self, folder: Path, leave):
        self.folder, self.leave = folder, leave
        budget = Budget(1.0, 1e-6, "gdp", Neighbouring.ADD_REMOVE, 1)
        self.plan = make_plan(PAIR, [Request(c) for c in CLIQUES], budget, mechanism="gaussian")
        folder.mkdir()
        self.open()

    def open(self):
        """As if the run was started again."""
        self.ledger = Ledger.open(self.folder / "ledger.jsonl", self.plan)
        self.source = Watched(self.folder / "ledger.jsonl")

    @property
    def questions(self):
        places = enumerate(self.plan.measurements)
        return [marginal_question(m, self.plan.budget, self.folder / "answers" / f"{i}.npz") for i, m in places]

    def counts(self, due):
        exact = exact_marginals(Rows().coded, [q.planned.clique for q in due], batch_cells=100)
        return (q.exact(c) for q, c in zip(due, exact, strict=True))

    def ask(self, questions=None, counts=None):
        return self.leave(questions or self.questions, counts or self.counts, self.ledger, self.source)


def each_charge_is_on_disk_before_its_draw(world):
    answers = world.ask()
    events = [q.event.id for q in world.questions]
    assert world.source.drawn == list(world.ledger.events) == events
    assert [a.event for a in answers] == events


def what_is_kept_is_taken_as_it_is(world):
    first = world.ask()
    world.open()
    again = world.ask(counts=lambda due: pytest.fail("nothing is to be counted"))
    assert world.source.drawn == []
    assert len(world.ledger.events) == 3
    assert all(np.array_equal(a.values, b.values) for a, b in zip(first, again, strict=True))


def what_was_charged_and_lost_stays_lost(world):
    world.ask()
    world.questions[1].path.unlink()
    world.open()
    answers = world.ask()
    assert answers[1] is None
    assert world.source.drawn == []
    assert not world.questions[1].path.exists()


def an_error_while_counting_costs_nothing(world):
    def fails(due):
        yield next(iter(world.counts(due)))
        raise MemoryError

    with pytest.raises(MemoryError):
        world.ask(counts=fails)
    assert list(world.ledger.events) == [world.questions[0].event.id]
    assert world.source.drawn == list(world.ledger.events)


def an_answer_to_another_question_is_refused(world):
    one, two = world.questions[:2]
    world.ask()
    one.path.write_bytes(two.path.read_bytes())
    world.open()
    with pytest.raises(UserError, match="does not follow"):
        world.ask()
    assert world.source.drawn == []


def an_answer_that_was_never_charged_is_refused(world):
    world.ask()
    lines = (world.folder / "ledger.jsonl").read_text().splitlines(keepends=True)
    (world.folder / "ledger.jsonl").write_text("".join(lines[:2]))
    world.open()
    with pytest.raises(UserError, match="charged for"):
        world.ask()


def an_answer_whose_charge_was_another_one_is_refused(world):
    """The same id, but the ledger booked less noise than the question says."""
    world.ask()
    asked = world.questions[0]
    louder = replace(asked.event, l2_sensitivity=asked.event.l2_sensitivity / 2)
    world.ledger.events[asked.event.id] = louder
    with pytest.raises(UserError, match="charged for"):
        world.ask()


def a_sensitivity_above_what_is_paid_is_refused_uncharged(world):
    asked = world.questions[0]
    with pytest.raises(RuntimeError, match="sensitivity"):
        world.ask([replace(asked, needed=asked.needed * 1.01)])
    assert list(world.ledger.events) == world.source.drawn == []


def noise_beyond_the_range_is_refused_uncharged(world):
    asked = world.questions[0]
    loud = replace(asked.planned, event=replace(asked.event, sigma=1e12))
    with pytest.raises(UserError, match=r"privacy\.epsilon"):
        world.ask([replace(asked, planned=loud)])
    assert list(world.ledger.events) == world.source.drawn == []


def no_question_is_drawn_twice(world):
    world.ask()
    for question in world.questions:
        question.path.unlink()
    assert world.ask() == [None] * 3
    with pytest.raises(BudgetExceeded, match="charged before"):
        world.ledger.charge(world.questions[0].event)


CHECKS = (
    each_charge_is_on_disk_before_its_draw,
    what_is_kept_is_taken_as_it_is,
    what_was_charged_and_lost_stays_lost,
    an_error_while_counting_costs_nothing,
    an_answer_to_another_question_is_refused,
    an_answer_that_was_never_charged_is_refused,
    an_answer_whose_charge_was_another_one_is_refused,
    a_sensitivity_above_what_is_paid_is_refused_uncharged,
    noise_beyond_the_range_is_refused_uncharged,
    no_question_is_drawn_twice,
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_the_exit(check, tmp_path):
    check(World(tmp_path / "w", the_exit.leave))


CHARGE = "    ledger.charge(event)\n"
DRAW = "    answer = question.draw(exact, source)\n"
SAVE = "    question.save(answer)\n"
BOOKED = "ledger.events.get(question.event.id) != question.event"
NOT_LOST = " and q.event.id not in ledger.events"
MUTANTS = {
    "the charge comes after the draw": (CHARGE + DRAW, DRAW + CHARGE),
    "the charge is skipped": (CHARGE, ""),
    "the sensitivity is not checked": ("if not event.pays_for(exact.sensitivity):", "if False:"),
    "the draw is not checked before the charge": ("    question.check()\n", ""),
    "what cannot be drawn is found after the charge": (
        "    question.check()\n    question.path.parent.mkdir(mode=0o700, exist_ok=True)\n" + CHARGE,
        "    question.path.parent.mkdir(mode=0o700, exist_ok=True)\n" + CHARGE + "    question.check()\n",
    ),
    "any kept answer is accepted": (" or not question.fits(answer)", ""),
    "a kept answer needs no charge": (BOOKED + " or ", ""),
    "a kept answer needs a charge of its id alone": (BOOKED, "question.event.id not in ledger.events"),
    "what was lost is drawn again, and charged again": (NOT_LOST, ""),
    "what was lost is drawn again, for nothing": (
        NOT_LOST + "]",
        "]\n    charged, ledger = ledger, type('', (), {'charge': lambda _, e: e.id in charged.events or "
        "charged.charge(e)})()",
    ),
    "all is charged before anything is counted": (
        "    drawn = [questions[i] for i in left]\n",
        "    drawn = [questions[i] for i in left]\n    for q in drawn:\n        ledger.charge(q.event)\n"
        "    ledger = type('', (), {'charge': lambda _, e: None})()\n",
    ),
    "nothing is kept": (SAVE, ""),
    "kept answers are drawn anew": ("    if not question.path.exists():\n        return None\n", "    return None\n"),
}


def faulty(old: str, new: str):
    """The exit's own text with one fault."""
    text = Path(the_exit.__file__).read_text(encoding="utf-8")
    assert text.count(old) == 1, "the fault fits the exit as it stands"
    module = types.ModuleType("faulty_exit")
    sys.modules[module.__name__] = module
    exec(compile(text.replace(old, new), "faulty_exit", "exec"), module.__dict__)
    return module.leave


@pytest.mark.parametrize("fault", MUTANTS)
def test_no_fault_of_the_exit_passes_unseen(fault, tmp_path):
    leave, failed = faulty(*MUTANTS[fault]), []
    for check, number in zip(CHECKS, itertools.count()):
        try:
            check(World(tmp_path / str(number), leave))
        except (Exception, pytest.fail.Exception):
            failed.append(check.__name__)
    assert failed, fault


def test_nothing_else_charges_a_ledger_or_draws():
    """Charges are made in the exit alone; noise and choices are drawn in a question's `draw` alone, or for it."""
    draws = {"noisy", "choose_index", "split_noise", "released_values"}
    homes = {"exact_answers.py", "noise.py", "exponential.py"}
    for path in [*(ROOT / "mechanisms").rglob("*.py"), *(ROOT / "pipeline").rglob("*.py")]:
        text = path.read_text(encoding="utf-8")
        named = any(name in text for name in ("charge", *draws))
        functions = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)] if named else []
        for function in functions:
            for call in [n for n in ast.walk(function) if isinstance(n, ast.Call)]:
                name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
                where = f"{path.relative_to(ROOT)}:{call.lineno}"
                assert name != "charge" or path.name == "exit.py", where
                assert name not in draws or path.name in homes or function.name in ("draw", "released_values"), where


#: What draws the answers that leave → the words of PRIVACY.md.
LEAVES = {
    "MarginalQuestion": "noisy counts of rows and of units",
    "ValuesQuestion": "[discovered](#what-is-discovered) values",
    "_Choice": "names of chosen marginals",
    "NoisyNumbers": "noisy distances, noisy closeness",
}


def test_every_kind_of_value_that_leaves_stands_in_privacy_md():
    classes = [
        node
        for path in (ROOT / "mechanisms" / "sensitive").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and not any("Protocol" in ast.unparse(base) for base in node.bases)
    ]
    drawing = {c.name for c in classes if any(isinstance(n, ast.FunctionDef) and n.name == "draw" for n in c.body)}
    said = " ".join((ROOT / "PRIVACY.md").read_text(encoding="utf-8").split())
    assert drawing == LEAVES.keys() and all(words in said for words in LEAVES.values())
    assert "Five kinds of values leave it" in said, "distances and closeness are two"


def test_what_is_about_to_leave_shows_nothing_of_itself():
    assert "12345" not in repr((the_exit.Exact([12345], 1.0), PrivateScores({("a", "b"): 12345}, 1)))


@pytest.mark.parametrize("text", ["{", "[1, 2]", '{"event": 3}', '"x"', '{"choice": 7}'])
def test_a_damaged_choice_is_refused_with_a_clear_error(text, tmp_path):
    path, event = tmp_path / "choice.json", Exponential("c", 1.0)
    path.write_text(text)
    ledger = type("Booked", (), {"events": {"c": event}})()
    with pytest.raises(UserError, match=r"damaged|does not follow"):
        choose(CLIQUES, lambda: pytest.fail("no scores are due"), event, ledger, SeededNoise(1), path=path)


TOWN = Domain((Attribute("a", 40), Attribute("b", 50)))
TWICE = Rows(TOWN, 300, seed=5, max_records=2, weight=2**19)


def plan(mechanism: str = "gaussian", accountant: str = "gdp", neighbouring=Neighbouring.ADD_REMOVE) -> Plan:
    budget = Budget(1.0, 1e-6, accountant, neighbouring, 2)
    return make_plan(TOWN, [Request(c) for c in CLIQUES], budget, mechanism=mechanism)


def measured(tmp_path, which: Plan, seed: int = 1):
    ledger = Ledger.open(tmp_path / "ledger.jsonl", which)
    return measure(TWICE, ledger, SeededNoise(seed), answers_dir=tmp_path / "answers"), ledger


def measure(town: Rows, ledger: Ledger, source, *, answers_dir) -> Measurements:
    planned = list(enumerate(ledger.plan.measurements))
    return Measurements(TOWN, tuple(measure_some(town, planned, ledger, source, answers_dir=answers_dir)))


def follows_its_law(noise, mechanism: str, off: float) -> None:
    """Noise in units of its scale, of one that is off by that share in neither direction."""
    mean, wide = (1.0, 1.0) if mechanism == "laplace" else (math.sqrt(2 / math.pi), math.sqrt(1 - 2 / math.pi))
    margin, spread = 4 * wide / math.sqrt(noise.size), np.abs(noise).mean()
    assert abs(spread - mean) < margin
    assert all(abs(spread * wrong - mean) > margin for wrong in (1 - off, 1 + off))
    law = stats.laplace if mechanism == "laplace" else stats.norm
    assert stats.kstest(noise, law.cdf).pvalue > 1e-3


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("neighbouring", list(Neighbouring))
def test_the_noise_added_has_the_scale_that_was_charged(tmp_path, accountant, mechanism, neighbouring):
    """Two-sided: the test fails when the scale is 30 % off in either direction."""
    which = plan(mechanism, accountant, neighbouring)
    known, ledger = measured(tmp_path, which)
    exact = np.zeros((40, 50))
    np.add.at(exact, tuple(TWICE.coded.columns), 0.5)
    answer = known.answers[2]
    noise = answer.values - exact.ravel()
    follows_its_law(noise / answer.scale, mechanism, off=0.3)
    assert ledger.spent.epsilon <= 1.0
    assert ledger.spent.epsilon > 0.9999
    assert answer.scale == which.measurements[2].event.scale


def test_no_bit_of_a_fractional_answer_stays_as_it_is(tmp_path):
    """Answers to entries in multiples of 2^-16 lie on a finer lattice: its lowest bits must be noise too."""
    query = SparseQuery.of(np.full((20_000, 1), 2.0**-MATRIX_BITS))  # each answer: one lowest bit
    planned = PlannedMeasurement(("a",), query, 1.0, Gaussian("x", 1.0, 5.0))
    which = replace(plan(), budget=replace(plan().budget, max_records=1))
    answer = answered(np.array([1]), planned, which, Free(), SeededNoise(1), tmp_path)
    lowest = np.rint(answer.values * 2.0 ** (WEIGHT_BITS + MATRIX_BITS)).astype(np.int64) % 16
    counts = np.bincount(lowest, minlength=16)
    assert stats.chisquare(counts).pvalue > 1e-3


class Free:
    """A ledger that takes every charge."""

    def __init__(self):
        self.events = {}

    def charge(self, event):
        self.events[event.id] = event


def answered(counts, planned, which, ledger, source, folder):
    """One answer to given counts, by the exit."""
    question = marginal_question(planned, which.budget, folder / "answer.npz")
    return leave([question], lambda due: [q.exact(counts) for q in due], ledger, source)[0]


def test_an_interrupted_measurement_goes_on_and_equals_an_uninterrupted_one(tmp_path):
    whole, _ = measured(tmp_path, plan())
    (tmp_path / "answers" / "00001.npz").unlink()  # as if the machine had stopped before the second answer landed,
    lines = (tmp_path / "ledger.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "ledger.jsonl").write_text("".join(lines[:2] + lines[3:]))  # and before its charge
    again, ledger = measured(tmp_path, plan())
    assert len(ledger.events) == 3
    for left, right in zip(whole.answers, again.answers, strict=True):
        assert np.array_equal(left.values, right.values)


def test_the_ledger_raises_before_it_overspends(tmp_path):
    which = plan()
    ledger = Ledger.open(tmp_path / "ledger.jsonl", which)
    before = (tmp_path / "ledger.jsonl").read_bytes()
    with pytest.raises(BudgetExceeded, match="not in the plan"):
        ledger.charge(Gaussian("0000:a", 2.0, 1e-3))
    assert (tmp_path / "ledger.jsonl").read_bytes() == before, "a refused charge leaves nothing on disk"
    ledger.charge(which.events[0])
    with pytest.raises(BudgetExceeded, match="charged before"):
        ledger.charge(which.events[0])
    too_much = replace(which, budget=replace(which.budget, epsilon=0.01))
    poor = Ledger.open(tmp_path / "poor.jsonl", too_much)
    with pytest.raises(BudgetExceeded, match="would spend"):
        for event in too_much.events:
            poor.charge(event)
    assert poor.spent.epsilon <= 0.01


def test_a_ledger_survives_a_torn_last_line_and_refuses_another_plan(tmp_path):
    which = plan()
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger.open(path, which)
    ledger.charge(which.events[0])
    with path.open("ab") as file:
        file.write(b'{"event": {"id": "0001')
    assert list(Ledger.open(path, which).events) == [which.events[0].id]
    assert all(json.loads(line) for line in path.read_text().splitlines())
    with pytest.raises(UserError, match="another plan"):
        Ledger.open(path, plan("laplace", "basic"))


def test_another_bound_and_a_planned_sensitivity_below_that_of_the_matrix_never_reach_the_noise(tmp_path):
    honest = plan()
    event = replace(honest.measurements[0].event, l2_sensitivity=1.0)
    lying = replace(honest, charges=(replace(honest.charges[0], event=event), *honest.charges[1:]))
    other = replace(TWICE, max_records=3)
    for which, table, said in ((honest, other, "clipped to 3"), (lying, TWICE, "above the planned")):
        ledger = Ledger.open(tmp_path / f"{said}.jsonl", which)
        with pytest.raises(RuntimeError, match=said):
            measure(table, ledger, SecureNoise(), answers_dir=tmp_path / "answers")
        assert list(ledger.events) == []


def half_grid(shape=(40, 50)) -> GridQuery:
    """Every second cell one by one, the others in sums over either attribute."""
    cells = np.arange(math.prod(shape))
    return GridQuery(shape, {(0,): np.arange(shape[0]), (1,): np.arange(shape[1]), (0, 1): cells[cells % 2 == 0]}, "l2")


@pytest.mark.parametrize("records", [300, 67_200_000, 10**12])
def test_adaptive_grids_answer_a_million_million_records(records, tmp_path):
    """The product of counts and entries has more than 63 bits: it once failed, after the charge."""
    query = half_grid()
    planned = PlannedMeasurement(("a", "b"), query, 1.0, Gaussian("x", 2.0, 5.0))
    which = plan()
    exact = np.full(2000, records * 2**WEIGHT_BITS // 2000)
    answer = answered(exact, planned, which, Free(), SeededNoise(1), tmp_path)
    noise = answer.values - query.answer(exact * 2.0**-WEIGHT_BITS)
    assert np.abs(noise).max() < 5 * 6
    assert noise.std() == pytest.approx(5.0, rel=0.1)


def test_what_cannot_be_answered_is_refused_before_the_charge(tmp_path):
    """Counts that fit no table, and noise beyond the range."""
    which, ledger = plan(), Free()
    (first, *_), grid = which.measurements, half_grid()
    loud = replace(first, event=Gaussian("x", first.event.sensitivity, 1e11))
    huge = PlannedMeasurement(("a", "b"), grid, 1.0, Gaussian("x", 2.0, 5.0))
    for planned, exact in ((loud, np.zeros(40, np.int64)), (huge, np.full(2000, 2**60))):
        with pytest.raises((UserError, OverflowError)):
            answered(exact, planned, which, ledger, SecureNoise(), tmp_path)
    assert not ledger.events


@pytest.mark.parametrize(
    ("query", "cells"),
    [(Identity(1), 6), (Identity(3), 1), (MergedQuery((np.zeros(50, np.int64),)), 1), (half_grid((2, 3)), 3)],
)
def test_a_matrix_over_a_marginal_of_another_size_is_refused_before_the_charge(tmp_path, query: QueryMatrix, cells):
    """numpy spread the numbers until they fitted: 50 times the count left at the price of one."""
    planned, ledger = PlannedMeasurement(("a",), query, 1.0, Gaussian("x", 99.0, 5.0)), Free()
    with pytest.raises(UserError, match=f"{query.columns} columns, and its marginal {cells} cells"):
        answered(np.ones(cells, np.int64), planned, plan(), ledger, SecureNoise(), tmp_path)
    assert not ledger.events


@pytest.mark.parametrize("fine", [np.array([-1, 5]), np.array([0, 6]), np.array([0, 0])])
def test_a_grid_of_cells_outside_of_its_marginal_is_none(fine):
    with pytest.raises(ValueError, match="out of order or outside"):
        GridQuery((2, 3), {(0,): np.arange(2), (1,): np.arange(3), (0, 1): fine}, "l2")


def test_whoever_reads_a_noisy_answer_cannot_change_it(tmp_path):
    planned = PlannedMeasurement(("a",), Identity(3), 1.0, Gaussian("x", 2.0, 5.0))
    answer = answered(np.zeros(3, np.int64), planned, plan(), Free(), SecureNoise(), tmp_path)
    with pytest.raises(ValueError, match="read-only"):
        np.maximum(answer.values, 0, out=answer.values)


def test_threads_that_charge_the_same_at_once_charge_it_once(tmp_path, monkeypatch):
    """A plugin that asks from threads drew two answers for one charge: their mean has half the noise."""
    which = plan()
    ledger, event = Ledger.open(tmp_path / "ledger.jsonl", which), which.measurements[0].event
    slow, at_once = Ledger._loss, threading.Barrier(4)
    monkeypatch.setattr(Ledger, "_loss", lambda own, events: (time.sleep(0.05), slow(own, events))[1])

    def charged(_: int) -> bool:
        at_once.wait()
        try:
            ledger.charge(event)
        except BudgetExceeded:
            return False
        return True

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(charged, range(4))) == 1
    assert len((tmp_path / "ledger.jsonl").read_text().splitlines()) == 2
