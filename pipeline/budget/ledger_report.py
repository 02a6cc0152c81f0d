"""What is left of a shared budget and who spent it, for people and for programs; what `plan` says about it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mechanisms.accounting.bookings import Book, Booking, booking_json, load_book, opened, set_limit
from mechanisms.accounting.filters import Limit
from mechanisms.accounting.running_total import running_total
from mechanisms.public.errors import UserError
from mechanisms.public.files import JsonDict
from mechanisms.public.text_table import lined_up
from pipeline.budget.admission import PlannedRelease, left_words, spent_words
from pipeline.folders import not_in_release
from pipeline.settings.config import BudgetFileConfig

#: δ at which the table says what one more run may cost.
DELTA = 1e-9


def show(config: BudgetFileConfig) -> str:
    """The command `budget`: the ledger as it stands, after its limit was changed where that is asked.

    Raises:
        UserError: no ledger there, or a change that cannot be.
    """
    if not config.file:
        raise UserError("no ledger given", where="file", fix="python -m pipeline budget FILE")
    path = Path(config.file).expanduser()
    if config.limit is None and config.reason is not None:
        raise UserError("a reason for nothing", where="reason", fix="limit='{epsilon: 5, delta: 1e-6}' with it")
    if (book := load_book(path)) is None:
        raise UserError("no such ledger", where=str(path), fix="a run with budget.ledger and budget.limit makes it")
    if config.limit is not None:
        not_in_release(path, "file")
        book = set_limit(path, Limit.of(config.limit, "limit"), config.reason or "")
    return json.dumps(as_json(book), indent=1, allow_nan=False) if config.format == "json" else as_text(book)


def as_json(book: Book) -> JsonDict:
    """The ledger as JSON values."""
    left = book.filter.room(book.spends, book.limit)
    return {
        "table": book.scope.table,
        "unit": dict(book.scope.unit),
        "neighbouring": book.scope.neighbouring,
        "total": running_total(book).to_json(),
        "left": {**left.to_json(), "epsilon_of_one_run": left.epsilon_at(DELTA), "delta_of_one_run": DELTA},
        "limits": [{**c.limit.to_json(), "reason": c.reason, "time": c.time, "by": c.by} for c in book.limits],
        "bookings": [booking_json(b) for b in book.bookings],
    }


def as_text(book: Book) -> str:
    """The ledger as a table for people."""
    kind, currency = book.filter.kind, book.filter.currency
    rows = [["when", "who", "run", "ε", "δ", *([currency.sign] if currency else []), "private"]]
    for b in book.bookings:
        costs = [b.spend.within(currency)] if currency else []  # without a bound, the plain sums alone count
        strength = [f"{cost:.4g}" if math.isfinite(cost) else "none" for cost in costs]
        private = "yes" if b.private else "NO"
        rows.append([b.time, b.by, b.run, f"{b.spend.epsilon:g}", f"{b.spend.delta:g}", *strength, private])
    column, declared = book.scope.unit.get("column"), f"declared table {book.scope.table!r}"
    unit = "one record" if column is None else repr(column)
    lines = [
        f"runs that named this ledger; {declared}, unit {unit}, {book.scope.neighbouring}; "
        f"accountant {kind}" + (f", slack {book.filter.slack:g}" if book.filter.slack else ""),
        "",
        *lined_up(rows, left=3),
        "",
        f"spent: {spent_words(book)}",
        f"left:  {left_words(book, DELTA)}",
    ]
    lost = sum(not b.private for b in book.bookings)
    if lost:
        lines.append(f"{lost} of the runs say that they are not private: no total holds for what these released")
    if others := sum(b.others for b in book.bookings):
        lines.append(f"{others} of the runs rest on parts of plugins: what they booked is as right as these")
    for c in book.limits[1:]:
        lines.append(f"limit ε = {c.limit.epsilon:g}, δ = {c.limit.delta:g} since {c.time}, by {c.by}: {c.reason}")
    return "\n".join(lines)


def planned_json(releases: Sequence[PlannedRelease]) -> JsonDict | None:
    """What a plan says about the shared ledger, without booking; None where none is set."""
    if not releases:
        return None
    ledger, spends = releases[0].terms, [r.spend for r in releases]
    book = opened(ledger)
    new = tuple(Booking("planned", str(r.root), r.spend, not r.unprotected) for r in releases)
    after = replace(book, bookings=(*book.bookings, *new))
    fits = book.admits(spends)
    return {
        "ledger": str(ledger.path),
        "fits": fits,
        "booked": running_total(book).to_json(),
        "left": book.filter.room(book.spends, book.limit).to_json(),
        "left_after": after.filter.room(after.spends, after.limit).to_json() if fits else None,
        "in_words": [
            f"shared budget {ledger.path}: {spent_words(book)}",
            f"  left before: {left_words(book, spends[0].delta)}",
            f"  left after:  {left_words(after, spends[0].delta)}" if fits else "  this run does NOT fit",
        ],
    }
