"""Record and replay: what a run drew, and the same run on another table with the same answers."""

import itertools
import json
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np

from mechanisms.public.arrays import Floats, Ints
from mechanisms.public.units import WEIGHT_BITS
from tests.audit.hooks import Broken, numbers, swapped


@dataclass
class Draw:
    """One event's answers.

    Attributes:
        event: as charged.
        bits: by how many the answers' lattice is finer than that of the counts.
        whole, rest: the answers before the noise, (whole + rest · 2**-bits) · 2**-WEIGHT_BITS records.
        answer: what left, in records.
        texts: of a set of values, what each answer stands for; both tables hold their own. None: the same answers.
    """

    event: Any
    bits: int
    whole: Ints
    rest: Ints
    answer: Floats
    texts: tuple[str, ...] | None = None

    @property
    def exact(self) -> list[int]:
        """In units of 2**-(WEIGHT_BITS + bits) records."""
        return [(int(a) << self.bits) + int(b) for a, b in zip(self.whole, self.rest, strict=True)]


@dataclass
class Choice:
    """One private choice: the scores before the draw, their sensitivity, and what was chosen."""

    event: Any
    scores: list[int]
    sensitivity: int
    index: int


@dataclass
class Tape:
    """What happened in one run, in order.

    Attributes:
        steps: charges and draws with all their numbers.
        draws: by the event's id, after that of its try where there are several; `choices` likewise.
        charged: the events on disk by id, with the event whose cost was booked.
        questions: the class that each event's answer left as, by the event's id.
        most: how many tries the secret coin allows; None: it was not thrown.
        prefix: of the try that is at work; `texts` of the set of values whose weights are drawn now.
    """

    steps: list[tuple[Any, ...]] = field(default_factory=list)
    draws: dict[str, Draw] = field(default_factory=dict)
    choices: dict[str, Choice] = field(default_factory=dict)
    charged: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    questions: dict[str, str] = field(default_factory=dict)
    most: int | None = None
    prefix: str = ""
    texts: tuple[str, ...] | None = None


def _tell(tape: Tape, event: Any) -> str:
    """The event's name on the tape; it is on disk before its draw, with these very numbers, and is drawn once."""
    name = tape.prefix + event.id
    if name not in tape.charged:
        raise Broken(f"{name} is drawn before it is charged on disk")
    if tape.charged[name][0] != event:
        raise Broken(f"{name}: drawn as {event}, charged as {tape.charged[name][0]}")
    if name in tape.draws or name in tape.choices:
        raise Broken(f"{name} is drawn twice")
    return name


class _Recorder:
    """In the place of what a run draws by: each method takes the original and gives what stands for it."""

    def __init__(self, tape: Tape, frozen: Tape | None, seed: int) -> None:
        self.tape, self.frozen, self.seed = tape, frozen, seed
        self.made, self.streams = itertools.count(), list[Any]()

    def source(self, original: Any) -> Any:
        """Streams from seeds that count up: no seed that somebody may know is given."""

        def opened(given: int | None) -> Any:
            if given is not None:
                raise Broken(f"noise is drawn from the seed {given}, which nobody set for it")
            seed = 1_000 * self.seed + next(self.made)  # the coins of both tables are the same
            return _Listed(original(seed), self.streams)

        return opened

    def most(self, original: Any) -> Any:
        def tries(selection: Any, words: Any) -> int:
            if not any(words is s for s in self.streams):
                raise Broken("the coins that stop the tries are not from the source of the noise")
            thrown = original(selection, words)
            self.tape.most = thrown if self.frozen is None or self.frozen.most is None else self.frozen.most
            return self.tape.most

        return tries

    def charge(self, original: Any) -> Any:
        """Charges, as they stand on disk afterwards."""

        def charged(ledger: Any, event: Any) -> None:
            original(ledger, event)
            self.tape.prefix = f"{ledger.path.parent.name}/" if ledger.path.parent.parent.name == "tries" else ""
            last = ledger.path.read_bytes().splitlines()[-1]
            if json.loads(last).get("event") == event.to_json():
                self.tape.charged[self.tape.prefix + event.id] = (event, ledger.plan.reserved(event))
            self.tape.steps.append(("charge", self.tape.prefix, event))

        return charged

    def noisy(self, original: Any) -> Any:
        """Noisy answers: drawn, or those of the frozen run."""

        def drawn(exact: Any, event: Any, given: Any) -> Floats:
            size = exact.whole.size
            shape = (size, exact.bits) if self.tape.texts is None else ("values",)
            self.tape.steps.append(("draw", self.tape.prefix, event, *shape))
            name = _tell(self.tape, event)
            if self.frozen is None:
                answer = np.asarray(original(exact, event, given))
                _on_lattice(event, answer, exact.bits)
            else:
                kept = self.frozen.draws.get(name)
                if kept is None or (self.tape.texts is None and kept.answer.shape != (size,)):
                    raise Broken(f"{name} is asked on one table, and not on its neighbour")
                answer = kept.answer if self.tape.texts is None else _of_texts(kept, self.tape.texts)
            counts = (exact.whole.copy(), exact.rest.copy())
            self.tape.draws[name] = Draw(event, exact.bits, *counts, answer, self.tape.texts)
            return answer.copy()

        return drawn

    def choice(self, original: Any) -> Any:
        """Private choices: drawn, or those of the frozen run."""

        def chosen(scores: Any, sensitivity: int, event: Any, given: Any) -> int:
            self.tape.steps.append(("choose", self.tape.prefix, event, len(scores)))
            name = _tell(self.tape, event)
            if self.frozen is None:
                index = original(scores, sensitivity, event, given)
            else:
                kept = self.frozen.choices.get(name)
                if kept is None or len(kept.scores) != len(scores):
                    raise Broken(f"{name} is chosen on one table, and not on its neighbour")
                index = kept.index
            self.tape.choices[name] = Choice(event, list(map(int, scores)), int(sensitivity), index)
            return index

        return chosen

    def values(self, original: Any) -> Any:
        """The texts whose weights are drawn."""

        def released(weights: Any, *args: Any) -> Any:
            self.tape.texts = weights.texts
            try:
                return original(weights, *args)
            finally:
                self.tape.texts = None

        return released

    def leave(self, original: Any) -> Any:
        """Which question each event's answer left as."""

        def left(questions: Any, *args: Any, **named: Any) -> Any:
            self.tape.questions |= {q.event.id: type(q).__name__ for q in questions}
            return original(questions, *args, **named)

        return left


@contextmanager
def recording(tape: Tape, frozen: Tape | None = None, *, seed: int = 0) -> Iterator[None]:
    """Everything that a run draws is written on the tape; with `frozen`, its answers are given instead of new ones.

    Raises:
        Broken: a draw before its charge, or one that the frozen run has not; noise that is not whole lattice units;
            noise or coins from a seed that somebody may know.
    """
    to = _Recorder(tape, frozen, seed)
    key = mock.patch.object(secrets, "token_bytes", lambda n=32: bytes(range(n)))  # both tables: the same secret coins
    swaps = {"charge": to.charge, "noisy": to.noisy, "choice": to.choice, "leave": to.leave, "source": to.source}
    swaps |= {"most tries": to.most, "released values": to.values}
    with key, ExitStack() as stack:
        for name, make in swaps.items():
            stack.enter_context(swapped(name, make))
        yield


def _of_texts(kept: Draw, texts: tuple[str, ...]) -> Floats:
    """The frozen answer of each text; of one that this table alone holds, what the threshold keeps back."""
    answers = dict(zip(kept.texts or (), kept.answer.tolist(), strict=True))
    return np.array([answers.get(t, 0.0) for t in texts], np.float64)


class _Listed:
    """A source of noise, and the streams that it gave."""

    def __init__(self, of: Any, streams: list[Any]) -> None:
        self.of, self.streams = of, streams

    def stream(self, event_id: str) -> Any:
        self.streams.append(self.of.stream(event_id))
        return self.streams[-1]


def _on_lattice(event: Any, answer: Floats, bits: int) -> None:
    """Released answers are whole multiples of the lattice's unit, as far as floats can tell."""
    units = answer * 2.0 ** (WEIGHT_BITS + bits)
    units = units[np.abs(units) < 2.0**53]
    if (units != np.floor(units)).any():
        raise Broken(f"{event.id}: answers that are not on the lattice")


def check_seen(tape: Tape) -> None:
    """Whatever was charged in a whole run was drawn where the audit looks."""
    if left := tape.charged.keys() - tape.draws.keys() - tape.choices.keys():
        raise Broken(f"charged, and drawn by nothing that the audit knows: {', '.join(sorted(left))}")


def noise_of(tape: Tape) -> dict[str, Floats]:
    """Each draw's noise as a share of its scale, by its name, exact up to the answers' floats; no two are the same."""
    found, seen = {}, dict[tuple[str, bytes], str]()
    for name, draw in tape.draws.items():
        exact = np.ldexp(draw.whole + np.ldexp(draw.rest.astype(np.float64), -draw.bits), -WEIGHT_BITS)
        found[name] = (draw.answer - exact) / numbers(draw.event).scale
        other = seen.setdefault((draw.event.id, found[name].tobytes()), name)
        if other != name and found[name].size:
            raise Broken(f"{name} and {other} have the same noise")
    return found


def compared(one: Tape, two: Tape) -> dict[str, float]:
    """The largest true difference as a share of what was charged for it, by the class that left; no step differs."""
    if one.steps != two.steps:
        place = next((i for i, (a, b) in enumerate(zip(one.steps, two.steps, strict=False)) if a != b), -1)
        raise Broken(f"the neighbour takes other steps, from step {place} on: {one.steps[place]}, {two.steps[-1:]}")
    largest: dict[str, float] = {}
    for name, draw in one.draws.items():
        kind = one.questions[draw.event.id]
        largest[kind] = max(largest.get(kind, 0.0), _moved(name, draw, two.draws[name]))
    for name, choice in one.choices.items():
        other = two.choices[name]
        moved = max(abs(a - b) for a, b in zip(choice.scores, other.scores, strict=True))
        if choice.sensitivity != other.sensitivity or moved > choice.sensitivity:
            raise Broken(f"{name}: a score moves by {moved}, drawn at a sensitivity of {choice.sensitivity}")
        kind = one.questions[choice.event.id]
        largest[kind] = max(largest.get(kind, 0.0), moved / choice.sensitivity)
    for event, booked in one.charged.values():
        own, paid = numbers(event), numbers(booked)
        if own.kind != paid.kind or own.sensitivity / own.scale > paid.sensitivity / paid.scale * (1 + 1e-12):
            raise Broken(f"{event} is booked as {booked}, which is cheaper")
    return largest


def _moved(name: str, one: Draw, two: Draw) -> float:
    """How far the exact answers move, in whole numbers, as a share of the charged sensitivity."""
    if one.texts is None or two.texts is None:
        gaps = [abs(a - b) for a, b in zip(one.exact, two.exact, strict=True)]
    else:  # what a table does not hold weighs nothing there
        left, right = (dict(zip(d.texts or (), d.exact, strict=True)) for d in (one, two))
        gaps = [abs(left.get(t, 0) - right.get(t, 0)) for t in left.keys() | right.keys()]
    said, unit = numbers(one.event), WEIGHT_BITS + one.bits
    bound = Fraction(said.sensitivity) * 2**unit
    power = 1 if said.norm == "l1" else 2
    moved = sum(g**power for g in gaps)
    if moved > bound**power:
        what = f"{name}: the exact answers move by {float(moved) ** (1 / power) * 2.0**-unit:.6g} records"
        raise Broken(f"{what} in {said.norm}, charged {said.sensitivity:.6g}")
    return float(Fraction(moved) / bound**power) ** (1 / power) if bound else 0.0
