"""The ledger: append-only, on disk before any noise is drawn; it raises rather than overspend."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

from mechanisms.accounting.accountants import PrivacyLoss
from mechanisms.accounting.events import Event
from mechanisms.accounting.plan import Plan
from mechanisms.public.errors import UserError
from mechanisms.public.files import cannot_write


class BudgetExceeded(RuntimeError):
    """A charge that is not in the plan, was made before, or would exceed (ε, δ); nothing was drawn."""


@dataclass
class Ledger:
    """The charges of one run, in order.

    Attributes:
        path: the JSON lines on disk: the plan's digest, then one event per line.
        plan: what may be charged.
        charged: ids of the events charged so far.
    """

    path: Path
    plan: Plan
    charged: list[str] = field(default_factory=list)

    @classmethod
    def open(cls, path: Path, plan: Plan) -> Ledger:
        """The ledger at `path`, new or as it was left.

        A last line that was cut off by a crash counts as spent if it names an event at all: the charge is written whole
        before the draw, so that an unreadable last line means that nothing was drawn, and it is removed.

        Raises:
            UserError: the file belongs to another plan.
        """
        ledger = cls(path, plan)
        if not path.exists():
            ledger._append({"plan": digest(plan)})
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
            ledger._append({"plan": digest(plan)})
        elif records[0] != {"plan": digest(plan)}:
            raise UserError("this ledger belongs to another plan", where=str(path), fix="resume with the same settings")
        ledger.charged = [r["event"]["id"] for r in records[1:]]
        return ledger

    def charge(self, event: Event) -> None:
        """Book the event on disk; only then may its noise be drawn.

        Raises:
            BudgetExceeded: the event is not in the plan, was charged before, or would exceed (ε, δ).
        """
        if event not in self.plan.events:
            raise BudgetExceeded(f"{event} is not in the plan")
        if event.id in self.charged:
            raise BudgetExceeded(f"{event.id} was charged before")
        after = self.loss([*self.charged, event.id])
        if after.epsilon > self.plan.epsilon or after.delta > self.plan.delta:
            raise BudgetExceeded(f"{event.id} would spend {after}, more than ({self.plan.epsilon}, {self.plan.delta})")
        self._append({"event": {"kind": type(event).__name__, **asdict(event)}})
        self.charged.append(event.id)

    @property
    def spent(self) -> PrivacyLoss:
        """The composition of all charges, answered or not."""
        return self.loss(self.charged)

    def loss(self, ids: list[str]) -> PrivacyLoss:
        chosen = set(ids)
        return self.plan.accountant.loss([e for e in self.plan.events if e.id in chosen])

    def _append(self, record: dict[str, object]) -> None:
        try:
            with self.path.open("ab") as file:
                file.write(json.dumps(record).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise cannot_write(self.path, error) from error


def digest(plan: Plan) -> str:
    """A name for the plan that changes with any of its numbers."""
    return hashlib.blake2b(json.dumps(plan.to_json(), sort_keys=True).encode(), digest_size=16).hexdigest()
