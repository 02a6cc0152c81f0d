"""The ledger, on disk before any noise is drawn, raises rather than overspend; and the lock of one of several runs."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from mechanisms.accounting.accountants.accountant import PrivacyLoss
from mechanisms.accounting.events import Event, event_of
from mechanisms.accounting.plan import Plan
from mechanisms.public.errors import UserError
from mechanisms.public.files import Json, JsonDict, cannot_write
from mechanisms.public.posix import fcntl


class BudgetExceeded(RuntimeError):
    """A charge that is not in the plan, was made before, or would exceed (ε, δ); nothing was drawn."""


@dataclass
class Ledger:
    """The charges of one run, in order.

    Attributes:
        path: the JSON lines on disk: the plan's digest, then one event per line.
        plan: what may be charged.
        events: the events charged so far by id, in order, each from the very numbers that were used.
        later: of a file that a second plan goes on with (`continued`): the lines from that plan's digest on.
        note: called with the line of each charge once it is on disk, before its noise may be drawn: a shared budget
            notes how far the run is.
    """

    path: Path
    plan: Plan
    events: dict[str, Event] = field(default_factory=dict)
    later: list[JsonDict] = field(default_factory=list, repr=False)
    note: Callable[[bytes], None] | None = field(default=None, repr=False)
    _alone: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    @classmethod
    def open(
        cls,
        path: Path,
        plan: Plan,
        facts: Json | None = None,
        *,
        note: Callable[[bytes], None] | None = None,
    ) -> Ledger:
        """The ledger at `path`, new or as it was left.

        Args:
            facts: JSON values that the first line states beside the plan: what was done before anything was charged.
            note: as of the class.

        A last line that was cut off by a crash counts as spent if it names an event at all: the charge is written whole
        before the draw, so that an unreadable last line means that nothing was drawn, and it is removed.

        Raises:
            UserError: the file belongs to another plan.
        """
        ledger, first = cls(path, plan, note=note), {"plan": digest(plan), **(facts or {})}
        if not path.exists():
            ledger._append(first)
            return ledger
        lines = path.read_bytes().split(b"\n")
        if lines[-1]:  # no newline at the end: the line was never synced, so its noise was never drawn
            os.truncate(path, path.stat().st_size - len(lines[-1]))
        try:
            records = [json.loads(line) for line in lines[:-1]]
        except ValueError as error:
            fix = "a new run, with its own budget"
            raise UserError("the ledger is damaged: what was spent is not known", where=str(path), fix=fix) from error
        if not records:
            ledger._append(first)
        elif records[0] != first:
            raise UserError("this ledger belongs to another plan", where=str(path), fix="resume with the same settings")
        second = next((i for i, r in enumerate(records) if i and "plan" in r), len(records))
        ledger.later = records[second:]
        ledger._take(records[1:second])
        return ledger

    def continued(self, plan: Plan) -> Ledger:
        """The same ledger under the plan of the rest, which admits what was charged so far and counts it.

        The file says where it begins: the plan of the rest follows from the answers to what was charged before.

        Raises:
            UserError: the file goes on with another plan.
        """
        ledger = Ledger(self.path, plan, dict(self.events), note=self.note)
        first: dict[str, object] = {"plan": digest(plan)}
        if not self.later:
            ledger._append(first)
        elif self.later[0] != first:
            fix = "resume with the same settings"
            raise UserError("this ledger goes on with another plan", where=str(self.path), fix=fix)
        ledger._take(self.later[1:])
        return ledger

    def _take(self, records: list[JsonDict]) -> None:
        for record in records:
            event = event_of(record["event"])
            self.events[event.id] = event

    def charge(self, event: Event) -> None:
        """Book the event on disk; only then may its noise be drawn.

        Raises:
            BudgetExceeded: the event is not in the plan, was charged before, or would exceed (ε, δ).
            UserError: it cannot be written, or a shared budget cannot note it; it stays spent, and nothing is drawn.
        """
        with self._alone:  # threads of a plugin ask one after the other: no two find room for what only one has
            if self.plan.reserved(event) is None:
                raise BudgetExceeded(f"{event} is not in the plan")
            if event.id in self.events:
                raise BudgetExceeded(f"{event.id} was charged before")
            after, most = self._loss([*self.events.values(), event]), self.plan.budget
            if not (after.epsilon <= most.epsilon and after.delta <= most.delta):  # NaN is no total either
                raise BudgetExceeded(f"{event.id} would spend {after}, more than ({most.epsilon}, {most.delta})")
            line = self._append({"event": event.to_json()})
            self.events[event.id] = event
            if self.note is not None:  # after the line: a crash between loses an answer, and leaves no draw unknown
                self.note(line)

    @property
    def spent(self) -> PrivacyLoss:
        """The composition of all charges, answered or not."""
        return self._loss(list(self.events.values()))

    def _loss(self, events: list[Event]) -> PrivacyLoss:
        booked = [self.plan.reserved(e) for e in events]
        if None in booked:
            raise BudgetExceeded("the ledger holds a charge that is not in the plan")
        return self.plan.accountant.loss([e for e in booked if e is not None])

    def _append(self, record: dict[str, object]) -> bytes:
        line = json.dumps(record).encode()
        try:
            with self.path.open("ab") as file:
                file.write(line + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise cannot_write(self.path, error) from error
        return line


def digest(plan: Plan) -> str:
    """A name for the plan that changes with any of its numbers."""
    return hashlib.blake2b(json.dumps(plan.to_json(), sort_keys=True).encode(), digest_size=16).hexdigest()


#: How the line of a charge begins in a run's own ledger.
CHARGE = b'{"event"'


@dataclass(frozen=True)
class Mark:
    """A number of charges, and which they were.

    Attributes:
        charges: how many.
        digest: a chain over their lines, in the order of the charges.
    """

    charges: int = 0
    digest: str = ""

    def after(self, line: bytes) -> Mark:
        """The mark once this charge was added."""
        chain = hashlib.blake2b(self.digest.encode() + line, digest_size=16)
        return Mark(self.charges + 1, chain.hexdigest())


NONE = Mark()


def marks_of(ledgers: Iterable[Path]) -> list[Mark]:
    """The mark before a run's first charge, and after each.

    Args:
        ledgers: the run's own ledgers, in the order in which they were charged. A last line that was cut off by a crash
            is no charge: its noise was never drawn.
    """
    marks = [NONE]
    for path in ledgers:
        for line in path.read_bytes().split(b"\n")[:-1]:
            if line.startswith(CHARGE):
                marks.append(marks[-1].after(line))
    return marks


WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


def place_of(given: Path) -> Path:
    """The one path of a ledger: `absent/../people.json` is people.json to who reads it as to who writes it."""
    return Path(os.path.realpath(given))  # `resolve` fails on links in a circle


def _lock_of(path: Path) -> Path:
    return path.parent / f".{path.name}.lock"


@contextmanager
def locked(given: Path) -> Iterator[Path]:
    """The ledger's own path, for one process at a time; the lock lies beside it, for it is itself replaced.

    Raises:
        UserError: nothing can be written there; a ledger that somebody closed, as a read-only file.
    """
    path = place_of(given)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.stat().st_mode & WRITABLE:
            raise PermissionError(errno.EACCES, "the file is read-only")
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
        _lock_of(path).touch(mode=mode)  # as the ledger's: how many charges there were tells how many tries
        lock = _lock_of(path).open("a")
    except OSError as error:
        raise cannot_write(path, error) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield path


def recorded(path: Path) -> tuple[int, str] | None:
    """The entries and the digest of the ledger that was last written under this path; None where nobody knows."""
    try:
        entries, digest = _lock_of(place_of(path)).read_text(encoding="utf-8").split()
        return int(entries), digest
    except (OSError, ValueError):
        return None


def record(path: Path, entries: int, digest: str) -> None:
    """Keep what was written: after the ledger itself, so that no crash leaves a record of something that is not there.

    Raises:
        OSError: it cannot be written.
    """
    with _lock_of(path).open("r+") as file:  # as long as the one before: nobody reads half of it
        file.write(f"{entries:012} {digest}\n")


def forget(path: Path) -> None:
    """Of a ledger that is gone: a new one of its name begins with no record.

    Raises:
        OSError: it cannot be written.
    """
    with _lock_of(path).open("r+") as file:
        file.truncate(0)
