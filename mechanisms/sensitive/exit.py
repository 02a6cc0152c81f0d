"""The one exit: kept? → charged? → compute → charge → draw → keep. Whatever leaves the private side leaves by it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from mechanisms.accounting.events import Event
from mechanisms.accounting.ledger import Ledger
from mechanisms.public.errors import UserError
from mechanisms.public.files import Json, JsonDict, write_whole
from mechanisms.public.progress import Progress
from mechanisms.sensitive.noise import NoiseSource

V = TypeVar("V")
A = TypeVar("A")


@dataclass(frozen=True, eq=False)
class Exact(Generic[V]):
    """What is about to leave, before the draw. NOT private: the repr shows none of it.

    Attributes:
        value: what the draw is made from.
        sensitivity: the most by which it moves when one unit changes, computed from what was asked; in the event's norm
            and unit (of a choice: in the scores' own unit, which its draw divides by).
    """

    value: V
    sensitivity: int | float  # of scores a whole number, which may be too large for a float

    def __repr__(self) -> str:
        return f"Exact(sensitivity={self.sensitivity:g})"


class Question(Protocol[V, A]):
    """Something that may leave: what pays for it, where its answer is kept, and how it is drawn."""

    @property
    def event(self) -> Event:
        """The charge, from the very numbers that the draw uses."""
        ...

    @property
    def path(self) -> Path:
        """The file of the answer, in a folder of its owner."""
        ...

    @property
    def label(self) -> str:
        """What is asked, in words, for messages."""
        ...

    def load(self) -> A:
        """The answer in the file.

        Raises:
            UserError: the file is damaged.
        """
        ...

    def fits(self, answer: A) -> bool:
        """Whether an answer from the file is one to this question."""
        ...

    def check(self) -> None:
        """Refuse what no draw could be made for, before the charge.

        Raises:
            UserError: numbers beyond what the draw supports.
        """
        ...

    def draw(self, exact: Exact[V], source: NoiseSource) -> A:
        """The answer that leaves. By now nothing can fail."""
        ...

    def save(self, answer: A) -> None:
        """Write the answer to the file, whole or not at all."""
        ...


Q = TypeVar("Q", bound=Question[Any, Any])


def leave(
    questions: Sequence[Q],
    exact: Callable[[Sequence[Q]], Iterable[Exact[Any]]],
    ledger: Ledger,
    source: NoiseSource,
    *,
    progress: Progress | None = None,
) -> list[Any]:
    """The answers, in the order asked; None where one was charged and lost: it stays spent and is never drawn again.

    An answer that is kept is taken as it is, once the ledger knows its charge and it answers this very question. All
    other answers are computed first, so that what fails there costs nothing; then each is charged on disk, drawn, and
    kept.

    Guarantee: each answer that leaves is a draw of its event's mechanism, which was booked before the draw, on a value
        whose sensitivity is no more than the event pays for.
    Args:
        exact: the exact values of the questions that are drawn now, one after the other; asked for only where a draw is
            due, and each before its charge.
        progress: called after each answer that was drawn.
    Raises:
        UserError: an answer in a file that was not charged, or is to another question.
        BudgetExceeded: the plan has no place for a charge, or the budget none.
        RuntimeError: a value that moves further than its event pays for.
    """
    answers = [_stored_answer(q, ledger) for q in questions]
    left = [i for i, q in enumerate(questions) if answers[i] is None and q.event.id not in ledger.events]
    if not left:
        return answers
    drawn = [questions[i] for i in left]
    for number, (i, value) in enumerate(zip(left, exact(drawn), strict=True)):
        answers[i] = _released(questions[i], value, ledger, source)
        if progress is not None:
            progress(number + 1, len(left), questions[i].label)
    return answers


def _stored_answer(question: Q, ledger: Ledger) -> Any:
    """The answer in the file, if there is one and it is to this question."""
    if not question.path.exists():
        return None
    answer = question.load()
    if ledger.events.get(question.event.id) != question.event or not question.fits(answer):
        fault = f"{question.label}: not what the ledger was charged for, or does not follow from the answers before it"
        raise UserError(fault, where=str(question.path), fix="a new run, with its own budget")
    return answer


def _released(question: Q, exact: Exact[Any], ledger: Ledger, source: NoiseSource) -> Any:
    """Refuse, charge, draw, keep: nothing that can fail stands between the charge and the draw."""
    event = question.event
    if not event.pays_for(exact.sensitivity):
        raise RuntimeError(f"{event.id}: sensitivity {exact.sensitivity} is above the planned one: {event}")
    question.check()
    question.path.parent.mkdir(mode=0o700, exist_ok=True)
    ledger.charge(event)
    answer = question.draw(exact, source)
    question.save(answer)
    return answer


@dataclass(frozen=True)
class JsonAnswer:
    """What questions share whose answers are JSON values in a file.

    Attributes:
        path: the file.
    """

    path: Path

    def load(self) -> JsonDict:
        """The values in the file.

        Raises:
            UserError: the file is damaged.
        """
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            fix = "take it away: it stays spent and is not drawn again"
            raise UserError("this saved answer is damaged", where=str(self.path), fix=fix) from error
        return content if isinstance(content, dict) else {}

    def save(self, answer: Json) -> None:
        write_whole(self.path, json.dumps(answer) + "\n", mode=0o600)
