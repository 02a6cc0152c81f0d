"""One release that a command is going to make: what it books, and whether its folder may draw on what was booked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from mechanisms.accounting.bookings import SETTING, Book, Booking, LedgerTerms, load_book, note_charge
from mechanisms.accounting.charge_marks import Mark, marks_of
from mechanisms.accounting.spend import Spend
from mechanisms.public.errors import UserError
from mechanisms.public.json_values import Json
from pipeline.folders import BOOKING, WHERE, changes

#: Where a release keeps what it charged, below its folder.
CHARGES = ("internal/ledger.jsonl", "internal/tries/*/ledger.jsonl", "ledger.jsonl")


@dataclass(frozen=True)
class PlannedRelease:
    """One release that a command is going to make, and what it books.

    Attributes:
        root: its folder, whose internal/ keeps the booking's name.
        terms: the ledger and what the settings say about it.
        spend: its worst case.
        unprotected: the settings for which its release will not be private; empty where it may say that it is.
        resume: whether it goes on with something that may have charged already.
        others: whether its cost rests on parts of plugins.
        settings: as the folder's manifest keeps them, for the message of one that began with others.
    """

    root: Path
    terms: LedgerTerms
    spend: Spend
    unprotected: tuple[str, ...]
    resume: bool
    others: bool = False
    settings: Json = field(default_factory=dict)

    @property
    def name_file(self) -> Path:
        return self.root / "internal" / BOOKING

    @property
    def marks(self) -> list[Mark]:
        """How far the folder's own record says that the release is with its charges: at first, and after each."""
        ledgers = [path for p in CHARGES for path in sorted(self.root.glob(p), key=lambda f: (len(str(f)), f))]
        return marks_of(ledgers)

    def noting(self) -> Callable[[bytes], None]:
        """What notes each charge in the ledger, before its noise is drawn.

        Raises:
            UserError: the booking is gone, or was drawn on by something that the folder knows nothing of.
        """
        booking, book, marks = self.booking(), load_book(self.terms.path), self.marks
        entry = None if booking is None or book is None else book.booked(booking.id)
        if booking is None or entry is None:
            raise _not_booked(self)
        at, charged = marks[-1], entry.charged
        if charged not in marks:
            raise _behind(self)

        def note(line: bytes) -> None:
            nonlocal at, charged
            at = at.after(line)
            note_charge(self.terms.path, booking.id, charged, at)
            charged = at

        return note

    def named(self) -> str | None:
        """The random name that the folder has for its bookings; None before the first one."""
        try:
            return str(json.loads(self.name_file.read_text(encoding="utf-8"))["id"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, LookupError, TypeError) as error:
            fix = "a new run, in another folder; what was booked stays booked"
            raise UserError("the name of its booking is damaged", where=str(self.name_file), fix=fix) from error

    def booking(self) -> Booking | None:
        """What is booked, under a name that changes with its cost; None before the folder has a name for it."""
        if (named := self.named()) is None:
            return None
        cost = json.dumps([asdict(self.spend), asdict(self.terms.scope)], sort_keys=True)
        name = f"{named}-{hashlib.blake2b(cost.encode(), digest_size=6).hexdigest()}"
        return Booking(name, str(self.root.resolve()), self.spend, not self.unprotected, others=self.others)


def fresh_of(releases: Sequence[PlannedRelease], book: Book) -> list[PlannedRelease]:
    """Those that are not booked yet, or whose booking was drawn on by something that their folder knows nothing of.

    Raises:
        UserError: one of them has charged already, but its booking is gone; or its own record of that is.
    """
    fresh = []
    for release in releases:
        _only_one(release, book)
        booking = release.booking()
        if booking is not None and (mine := book.booked(booking.id)) is not None:
            if mine.charged in release.marks:
                continue
            if release.resume and (release.root / "internal" / "manifest.json").exists():
                raise _behind(release)
        elif release.resume and len(release.marks) > 1:
            raise _booked_otherwise(release) if _of_folder(release, book) else _not_booked(release)
        fresh.append(release)
    return fresh


def _of_folder(release: PlannedRelease, book: Book) -> Booking | None:
    """The first booking under the folder's name, whatever its cost."""
    named = release.named()
    return next((b for b in book.bookings if named is not None and b.id.startswith(f"{named}-")), None)


def _not_booked(release: PlannedRelease) -> UserError:
    fix = f"the ledger that it booked in ({release.terms.path} is another one, or an older copy)"
    return UserError(f"{release.root} holds a run, and this ledger holds no booking of it", where=SETTING, fix=fix)


def _booked_otherwise(release: PlannedRelease) -> UserError:
    """Its booking is for another cost: these settings are not those with which it began."""
    problem = f"the run in {release.root} booked another cost"
    with suppress(OSError, ValueError, LookupError):
        first = json.loads((release.root / "internal" / "manifest.json").read_text(encoding="utf-8"))["settings"]
        if changed := changes(first, json.loads(json.dumps(release.settings))):
            settings = ", ".join(f"{name} (was {was}, is {now})" for name, (was, now) in sorted(changed.items())[:4])
            problem += f"; changed since it began: {settings}"
    fix = "the old values with resume=true, at no further cost; or another hydra.run.dir: a new run, which books its "
    return UserError(f"{problem}. Nothing was booked", where=WHERE, fix=f"{fix}own budget")


def _behind(release: PlannedRelease) -> UserError:
    gone = "its record of that (internal/ledger.jsonl) is gone, or older, or was cut"
    problem = f"the run in {release.root} was measured, but {gone}"
    fix = "a new run, in another folder, which books its own budget; what was booked stays booked"
    return UserError(problem, where=WHERE, fix=fix)


def _only_one(release: PlannedRelease, book: Book) -> None:
    """UserError where a folder is a copy of the run that booked: both would draw noise, and one of them pays."""
    if (booked := _of_folder(release, book)) is None:
        return
    first = Path(booked.run)
    name = first / "internal" / BOOKING
    if first == release.root.resolve() or not name.is_file() or name.read_bytes() != release.name_file.read_bytes():
        return
    problem = f"{release.root} is a copy of the run in {first}, which booked once"
    fix = f"hydra.run.dir={first} resume=true; or an empty folder: a new run, which books its own budget"
    raise UserError(problem, where=WHERE, fix=fix)
