"""The exit under attack: every fault that could let a value out unpaid makes one of these checks fail."""

import ast
import itertools
import json
import sys
import types
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from mechanisms.accounting.budget import Budget
from mechanisms.accounting.events import Exponential
from mechanisms.accounting.ledger import BudgetExceeded, Ledger
from mechanisms.accounting.planning import Request, make_plan
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.units import Neighbouring
from mechanisms.sensitive import exit as the_exit
from mechanisms.sensitive.counting import exact_marginals
from mechanisms.sensitive.measurement import marginal_question
from mechanisms.sensitive.noise import SeededNoise
from mechanisms.sensitive.private_choice import PrivateScores, choose

ROOT = Path(__file__).parents[2]
PAIR = Domain((Attribute("a", 4), Attribute("b", 3)))
CLIQUES = (("a",), ("b",), ("a", "b"))


@dataclass(frozen=True)
class Rows:
    """Sixty rows."""

    max_records: int = 1

    @property
    def coded(self) -> CodedTable:
        rng = np.random.default_rng(2)
        return CodedTable(PAIR, tuple(rng.integers(0, a.size, 60).astype(np.uint8) for a in PAIR.attributes))


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
        exact = exact_marginals(Rows(), [q.planned.clique for q in due], batch_cells=100)
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
        functions = [n for n in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(n, ast.FunctionDef)]
        for function in functions:
            for call in [n for n in ast.walk(function) if isinstance(n, ast.Call)]:
                name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
                where = f"{path.relative_to(ROOT)}:{call.lineno}"
                assert name != "charge" or path.name == "exit.py", where
                assert name not in draws or path.name in homes or function.name in ("draw", "released_values"), where


def test_what_is_about_to_leave_shows_nothing_of_itself():
    assert "12345" not in repr((the_exit.Exact([12345], 1.0), PrivateScores({("a", "b"): 12345}, 1)))


@pytest.mark.parametrize("text", ["{", "[1, 2]", '{"event": 3}', '"x"', '{"choice": 7}'])
def test_a_damaged_choice_is_refused_with_a_clear_error(text, tmp_path):
    path, event = tmp_path / "choice.json", Exponential("c", 1.0)
    path.write_text(text)
    ledger = type("Booked", (), {"events": {"c": event}})()
    with pytest.raises(UserError, match=r"damaged|does not follow"):
        choose(CLIQUES, lambda: pytest.fail("no scores are due"), event, ledger, SeededNoise(1), path=path)
