"""The ledger of several runs: one file for one table and one unit, written whole under a lock before any charge."""

from __future__ import annotations

import getpass
import hashlib
import json
import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path

from mechanisms.accounting.filters import USUAL, Filter, Limit, Spend
from mechanisms.accounting.ledger import NONE, Mark, forget, locked, place_of, record, recorded
from mechanisms.public.errors import UserError
from mechanisms.public.files import Json, JsonDict, as_declared, cannot_write, sync_folder, write_whole
from mechanisms.public.plain_files import json_mapping

FORMAT = "budget-ledger/3"
#: Older formats, and whether a booking that says nothing of it has charged; which charges they were, nobody can tell.
OLDER, SOME = {"budget-ledger/1": True, "budget-ledger/2": False}, Mark(1, "unknown")
SETTING = "budget.ledger"


@dataclass(frozen=True)
class Scope:
    """Whose budget a file holds.

    Neighbouring tables must be the same in all runs, or their costs do not add up to one promise: so the unit with all
    that decides which rows make one, and the relation, are fixed. C and the way of clipping are not: a unit may have
    any number of records in the neighbouring tables, whatever a run lets count (under clip=none a run is refused where
    its declared bound does not hold). Nothing in it depends on rows: a table that changed keeps its file, because the
    people in it are the same.

    Attributes:
        table: its declared name (budget.table, else the data's name), whichever file a run reads.
        unit: what makes rows one unit, as JSON values.
        neighbouring: add_remove or replace.
    """

    table: str
    unit: Json
    neighbouring: str


@dataclass(frozen=True)
class Booking:
    """What one run booked.

    Attributes:
        id: a random name that the run's folder knows.
        run: where the run is or was, for people.
        spend: its worst case.
        private: whether its release may say so; one that is not private is booked too, but protects nobody.
        time, by: when and by whom, for people.
        others: whether its cost rests on parts of plugins, which our audit does not cover.
        charged: how far the run is with its charges: each is noted before its noise is drawn.
    """

    id: str
    run: str
    spend: Spend
    private: bool
    time: str = ""
    by: str = ""
    others: bool = False
    charged: Mark = NONE


@dataclass(frozen=True)
class LimitChange:
    """A limit that was set, and why."""

    limit: Limit
    reason: str
    time: str
    by: str


@dataclass(frozen=True)
class Book:
    """All that a file says.

    Attributes:
        scope: whose budget it is.
        filter: its accountant, and the part of δ for slack; fixed when the file was made.
        limits: every limit so far; the last one is in force.
        bookings: in the order in which they were made.
    """

    scope: Scope
    filter: Filter
    limits: tuple[LimitChange, ...]
    bookings: tuple[Booking, ...] = ()

    @property
    def limit(self) -> Limit:
        return self.limits[-1].limit

    @property
    def largest(self) -> Limit:
        """What all limits so far keep to together: a lower one, set after releases were seen, promises nothing less."""
        return Limit(max(c.limit.epsilon for c in self.limits), max(c.limit.delta for c in self.limits))

    @property
    def spends(self) -> tuple[Spend, ...]:
        return tuple(b.spend for b in self.bookings)

    def admits(self, spends: Sequence[Spend]) -> bool:
        """Whether all of these could be booked beside what is booked already."""
        return self.filter.admits([*self.spends, *spends], self.limit)

    @property
    def entries(self) -> int:
        """How many limits, bookings and notes of charges it holds: a number that only grows."""
        return len(self.limits) + len(self.bookings) + sum(b.charged.charges for b in self.bookings)

    def booked(self, name: str) -> Booking | None:
        return next((b for b in self.bookings if b.id == name), None)

    def until(self, name: str) -> Book:
        """The book as it was right after that booking: what its run may say, whenever it says it."""
        places = [i for i, b in enumerate(self.bookings) if b.id == name]
        return replace(self, bookings=self.bookings[: places[0] + 1]) if places else self


@dataclass(frozen=True)
class LedgerTerms:
    """What a command says about the file that it wants to book in.

    Attributes:
        accountant, slack: of a new file (gdp and 0 where None); must be those of an old one.
        limit: of a new file; for an old one at most its limit, which it lowers; None: the file's.
    """

    path: Path
    scope: Scope
    accountant: str | None = None
    slack: float | None = None
    limit: Limit | None = None


class Refused(RuntimeError):
    """What was to be booked does not fit; nothing was written.

    Attributes:
        book: the file's content, with the limit that was judged.
    """

    def __init__(self, book: Book) -> None:
        super().__init__("beyond the limit")
        self.book = book


def opened(terms: LedgerTerms) -> Book:
    """The book as it stands, with the limit that is wanted; an empty one where there is no file. Writes nothing.

    Raises:
        UserError: a file that is damaged or belongs to something else; no limit for a new one; a limit above its own.
    """
    asked = Filter(terms.accountant or USUAL, terms.slack or 0.0)
    book = load_book(terms.path)
    if book is None:
        if terms.limit is None:
            fix = "budget.limit='{epsilon: 3, delta: 1e-6}'; or the path of a ledger that exists"
            raise UserError(f"{terms.path} is a new ledger, and has no limit yet", where="budget.limit", fix=fix)
        first_change = LimitChange(terms.limit, "the ledger was made", *_now())
        return Book(terms.scope, asked, (first_change,))
    _same(book, terms)
    if terms.limit is None or terms.limit == book.limit:
        return book
    if terms.limit.above(book.limit):
        now = f"ε = {book.limit.epsilon:g}, δ = {book.limit.delta:g}"
        fix = "leave budget.limit out; raising it is a command of its own, which leaves a record: "
        fix += f"python -m pipeline budget {terms.path} limit='{{epsilon: …, delta: …}}' reason='…'"
        raise UserError(f"above the limit of the ledger, {now}", where="budget.limit", fix=fix)
    return replace(book, limits=(*book.limits, LimitChange(terms.limit, "lowered by a run", *_now())))


def _same(book: Book, terms: LedgerTerms) -> None:
    """UserError where the file is about something else."""
    mine, other, kind, slack = book.scope, terms.scope, book.filter.kind, book.filter.slack
    units = [(f"privacy unit ({k})", mine.unit.get(k), other.unit.get(k)) for k in {**mine.unit, **other.unit}]
    for fact, booked, asked, fix in (
        ("table", mine.table, other.table, f"budget.table={mine.table} if it holds the same people, or another ledger"),
        *((*fact, "the same privacy unit, or another ledger") for fact in units),
        ("neighbouring relation", mine.neighbouring, other.neighbouring, f"privacy.neighbouring={mine.neighbouring}"),
        ("accountant", kind, terms.accountant or kind, f"budget.accountant={kind}"),
        ("slack", slack, slack if terms.slack is None else terms.slack, f"budget.slack={slack:g}"),
    ):
        if booked != asked:
            booked, asked = _in_words(booked, asked), _in_words(asked, booked)
            raise UserError(f"its {fact} is {booked}, not {asked}", where=str(terms.path), fix=fix)


def _in_words(value: object, other: object) -> str:
    """A fact in words; of two lists what the other has not."""
    apart = [t for t in value if t not in other] if isinstance(value, list) and isinstance(other, list) else []
    return "one record" if value is None else repr(apart or value)


def book_runs(terms: LedgerTerms, bookings: Sequence[Booking]) -> Book:
    """Book all of these, or none; those whose id the file holds are not booked again. Charges come after this.

    The file is replaced by a whole new one, synced with its folder, under a lock: a crash leaves the old one or the new
    one, and two processes book one after the other.

    Returns:
        the book with these bookings in it, as it is on disk.
    Raises:
        Refused: all together do not fit; the file is as it was.
        UserError: as `opened`, or the file cannot be written.
    """
    with locked(terms.path) as path:
        book = opened(terms)
        if not (fresh := [b for b in bookings if book.booked(b.id) is None]):
            return load_book(path) or book
        if not book.admits([b.spend for b in fresh]):
            raise Refused(book)
        time, by = _now()
        stamped = tuple(replace(b, time=time, by=by) for b in fresh)
        book = replace(book, bookings=(*book.bookings, *stamped))
        _save(path, book)
    return book


def note_charge(path: Path, name: str, before: Mark, now: Mark) -> None:
    """Note on disk how far the run with this booking is: whoever is behind that draws on it no more.

    Args:
        before: how far the run knows that the file takes it to be.
        now: how far it is, with the charge whose noise is drawn next.
    Raises:
        UserError: the file holds no such booking any more, takes the run to be elsewhere (another process draws on
            the booking), or cannot be written; nothing may be drawn then.
    """
    with locked(path) as target:
        book = load_book(target)
        mine = None if book is None else book.booked(name)
        if book is None or mine is None:
            fix = "the newest copy of it, then the same command with resume=true; nothing was drawn"
            raise UserError("the booking of this run is gone from the ledger", where=str(path), fix=fix)
        if mine.charged != before:
            fix = "one of them alone; what was charged here stays spent, and nothing was drawn for it"
            raise UserError("another process draws on the booking of this run", where=str(path), fix=fix)
        noted = tuple(replace(b, charged=now) if b.id == name else b for b in book.bookings)
        _save(target, replace(book, bookings=noted), named=False)


def set_limit(path: Path, limit: Limit, reason: str) -> Book:
    """Another limit for a file, with a record of it.

    A raise that was decided by looking at releases is outside of what the filters promise: then the limit that would
    have been reached at the most is the one that counts (Rogers et al. 2016, on odometers).

    Raises:
        UserError: no file there, no reason, the same limit, or the file cannot be written.
    """
    if not reason.strip():
        raise UserError("a new limit needs a reason, which stays on record", where="reason", fix="reason='…'")
    with locked(path) as target:
        book = load_book(target)
        if book is None:
            raise UserError("no such ledger", where=str(path), fix="a run with budget.ledger and budget.limit makes it")
        if limit == book.limit:
            raise UserError("this is its limit already", where="limit", fix="another one, or none")
        book = replace(book, limits=(*book.limits, LimitChange(limit, reason.strip(), *_now())))
        _save(target, book)
    return book


def _now() -> tuple[str, str]:
    """When, and by whom, for the people who read the file."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError):  # a container's user without a name
        name = str(os.getuid())
    return datetime.now(UTC).isoformat(timespec="seconds"), name


def _save(path: Path, book: Book, *, named: bool = True) -> None:
    """The whole file, or the one before.

    Args:
        named: whether its name is on disk before this returns. Not of a note: where a machine that stops loses one, the
            run's own ledger is ahead of it, and nothing is drawn twice.
    """
    content = _to_json(book)
    digest = _digest(content)
    text = _text({**content, "digest": digest})
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
    try:
        if not path.exists():
            forget(path)
        write_whole(path, text, mode=mode)
        if named:
            sync_folder(path.parent)
        record(path, book.entries, digest)
    except OSError as error:
        raise cannot_write(path, error) from error


def load_book(path: Path) -> Book | None:
    """The book in a file; None where there is none.

    Raises:
        UserError: it cannot be read, is damaged or was changed by hand, has a second name, or is an older copy.
    """
    file, fix = place_of(path), "the path of a ledger that `run` made, or a new name"
    if file.exists() and not file.is_file():  # a pipe, and many a device, would be read without end
        raise UserError("cannot be read (no plain file)", where=str(path), fix=fix)
    last = recorded(path)  # first: the file may be written meanwhile
    try:
        text, names = file.read_text(encoding="utf-8"), file.stat().st_nlink
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not a text"
        raise UserError(f"cannot be read ({why})", where=str(path), fix=fix) from error
    if names > 1:  # it is replaced as a whole: each name would go on as a ledger of its own
        fix = f"one name for it: cp '{path}' '{path}.one' && mv '{path}.one' '{path}', then only this name"
        raise UserError(
            f"the file has {names} names (hard links), and books under one of them", where=str(path), fix=fix
        )
    try:
        content = json_mapping(text)
        digest = content.pop("digest")
        if content["format"] not in (FORMAT, *OLDER) or digest != _digest(content):
            raise ValueError
        book = _of_json(content)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, UserError) as error:
        fault = "not a ledger, damaged, changed by hand, or of a later version: what was spent is not known"
        fix = f"the newest copy of it, or that version; or another path, if {path.name} is no ledger"
        raise UserError(fault, where=str(path), fix=fix) from error
    if last is not None and (book.entries < last[0] or (book.entries == last[0] and digest != last[1])):
        fault = f"an older or another copy, of {book.entries} entries: it held {last[0]} when it was last written here"
        fix = "the newest copy; if there is none, a ledger of another name whose limit is less by what is missing"
        raise UserError(fault, where=str(path), fix=fix)
    return book


def _text(content: Json) -> str:
    """JSON with one booking to a line, for people."""
    written = {k: json.dumps(v, ensure_ascii=False) for k, v in content.items() if k != "bookings"}
    rows = ",\n  ".join(json.dumps(b, ensure_ascii=False) for b in content["bookings"])
    written["bookings"] = f"[\n  {rows}\n ]"
    return "{\n" + ",\n".join(f' "{k}": {v}' for k, v in written.items()) + "\n}\n"


def _to_json(book: Book) -> JsonDict:
    return {
        "format": FORMAT,
        "about": "what the runs that named this file have spent; not part of any release",
        **asdict(book.scope),
        "accountant": book.filter.kind,
        "slack": book.filter.slack,
        "limits": [{**c.limit.to_json(), "reason": c.reason, "time": c.time, "by": c.by} for c in book.limits],
        "bookings": [booking_json(b) for b in book.bookings],
    }


def booking_json(booking: Booking) -> JsonDict:
    """A booking as JSON values; a cost without bound is null."""
    rare = {"others": booking.others or None, "charged": vars(booking.charged) if booking.charged.charges else None}
    facts = {k: v for k, v in (vars(booking) | rare).items() if v is not None and k != "spend"}
    return facts | {k: v if math.isfinite(v) else None for k, v in vars(booking.spend).items()}


def _of_json(content: Json) -> Book:
    set_to = [Limit.of({k: c[k] for k in ("epsilon", "delta")}, "limits") for c in content["limits"]]
    changes = zip(set_to, content["limits"], strict=True)
    limits = tuple(as_declared(LimitChange(limit, c["reason"], c["time"], c["by"])) for limit, c in changes)
    bookings = tuple(_booking(b, OLDER.get(content["format"])) for b in content["bookings"])
    scope = as_declared(Scope(content["table"], content["unit"], content["neighbouring"]))
    if not limits:
        raise ValueError
    return Book(scope, Filter(content["accountant"], content["slack"]), limits, bookings)


def _booking(entry: Json, older: bool | None) -> Booking:
    """One booking; in a file of an older format a run that charged knows no charges: it must book anew to draw."""
    facts = {f.name: entry[f.name] for f in fields(Booking) if f.name not in ("spend", "others", "charged")}
    some = SOME if entry.get("charged", older) else NONE
    charged = as_declared(Mark(**entry.get("charged", {}))) if older is None else some
    return as_declared(Booking(spend=Spend.of(entry), others=entry.get("others", False), charged=charged, **facts))


def _digest(content: Json) -> str:
    return hashlib.blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=16).hexdigest()
