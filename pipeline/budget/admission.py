"""Settings → bookings: a command's releases are checked early, and booked together before the first charge.

A planned release is one of these bookings: its receipts ahead, by folder.
"""

from __future__ import annotations

import hashlib
import json
import math
import secrets
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from mechanisms.accounting.bookings import (
    SETTING,
    Book,
    Booking,
    LedgerTerms,
    Refused,
    Scope,
    book_runs,
    load_book,
    note_charge,
    opened,
)
from mechanisms.accounting.filters import Limit, Spend, spend_of_plan
from mechanisms.accounting.ledger import Mark, locked, marks_of, place_of, recorded
from mechanisms.accounting.plan import Plan
from mechanisms.accounting.running_total import RunningTotal, running_total
from mechanisms.public.errors import UserError
from mechanisms.public.files import Json, JsonDict, as_path, write_whole
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.units import bound_in_words, rounded_down, rounded_up
from mechanisms.sensitive.contribution import PrivacyUnit
from pipeline.folders import BOOKING, WHERE, changes, not_in_release
from pipeline.plugins.origins import rests_on_others
from pipeline.settings.config import Config
from pipeline.settings.design import bound_settings
from pipeline.settings.specs import Specs
from pipeline.statement.statement import why_not_private
from pipeline.statement.words import reasons_in_words


def planned_release(specs: Specs, schema: Schema, plan: Plan, root: Path) -> tuple[PlannedRelease, ...]:
    """The booking of one ordinary run; empty where no ledger is set.

    Raises:
        UserError: an impossible setting of the ledger.
    """
    config, others = specs.config, rests_on_others(specs, plan)  # what fails in code of others fails before any charge
    terms = _ledger_terms(config, str(plan.budget.neighbouring), specs.unit, root)
    if terms is None:
        return ()
    unprotected = tuple(why_not_private(schema, config.privacy.noise_seed, confirmed=config.data.confirmed_public))
    resume, settings = config.resume, bound_settings(config)
    return (PlannedRelease(root, terms, spend_of_plan(plan), unprotected, resume, others, settings),)


def _ledger_terms(config: Config, neighbouring: str, unit: PrivacyUnit, root: Path) -> LedgerTerms | None:
    """What the settings say about the ledger; None where none is set."""
    settings = config.budget
    if settings.ledger is None:
        return None
    path = as_path(settings.ledger, SETTING, "a file outside of all runs")
    not_in_release(path, SETTING)
    if place_of(path).is_relative_to(root.resolve()):
        fix = "a place outside: a ledger outlives its runs, and is no part of a release"
        raise UserError(f"{path} lies in the folder of the run", where=SETTING, fix=fix)
    limit = None if settings.limit is None else Limit.of(settings.limit, "budget.limit")
    table = str(settings.table or config.data.name)
    scope = Scope(table, _unit_json(unit), neighbouring)
    return LedgerTerms(path, scope, settings.accountant, settings.slack, limit)


def _unit_json(unit: PrivacyUnit) -> JsonDict:
    """All that decides which rows are one unit; neither how many of them count nor how they are clipped."""
    if unit.column is None:
        return {"column": None}
    facts: JsonDict = json.loads(json.dumps(asdict(unit)))
    return {k: v for k, v in facts.items() if k not in ("max_records", "clip")}


def check(releases: Sequence[PlannedRelease]) -> Book | None:
    """Refuse early what would be refused later; writes nothing. Returns the ledger as it stands, without the releases.

    Raises:
        UserError: they do not fit, or the ledger cannot be used; nothing is booked.
    """
    if not releases:
        return None
    ledger = _one_ledger(releases)
    if (current := load_book(ledger.path)) is not None and not _fresh_of(releases, current):
        return current  # all of it is booked: a limit that changed since is no matter of theirs
    book = opened(ledger)
    fresh = _fresh_of(releases, book)
    if not book.admits([r.spend for r in fresh]):
        raise _refused(fresh, book)
    return book


def book(releases: Sequence[PlannedRelease]) -> Book | None:
    """Book all of them or none, each once, whatever was interrupted: only after this may anything be charged.

    A release's name is on disk before its booking is, and the booking before its first charge. So a crash in between
    leaves either no booking and no charge, or a booking that the release finds again by its name.

    Raises:
        UserError: they do not fit (another run was faster), or the ledger cannot be written; nothing is booked.
    """
    if (book := check(releases)) is None:
        return None
    ledger, fresh = _one_ledger(releases), _fresh_of(releases, book)
    if not fresh:
        return book
    with locked(ledger.path):  # a place that cannot be written is refused before a name is left
        for release in fresh:
            if (old := release.booking()) is None or book.booked(old.id) is not None:
                release.name_file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                write_whole(release.name_file, json.dumps({"id": secrets.token_hex(12)}) + "\n", mode=0o600)
    if warning := _unprotected_words(fresh):
        print(f"  {warning}", file=sys.stderr)
    bookings = [b for r in fresh if (b := r.booking()) is not None]
    gone = recorded(ledger.path)
    try:
        book = book_runs(ledger, bookings)
    except Refused as refused:
        raise _refused(_fresh_of(releases, refused.book), refused.book) from refused
    if book.bookings[0].id == bookings[0].id:  # nobody else made it meanwhile
        lost = (
            f"; the one of this name before it is gone, with {gone[0]} entries: it counts none of them" if gone else ""
        )
        limit = bound_in_words(book.limit.epsilon, book.limit.delta)
        # a name that was mistyped would begin a second budget
        new_words = f"a NEW ledger for {book.scope.table!r} with a limit of its own, {limit}"
        print(f"  {SETTING}={ledger.path} is {new_words}{lost}", file=sys.stderr)
    return book


def _unprotected_words(fresh: Sequence[PlannedRelease]) -> str:
    """That releases which promise nothing book all the same: the noisy answers are given away, whoever they protect."""
    if not (lost := [r for r in fresh if r.unprotected]):
        return ""
    many = f"{len(lost)} of {len(fresh)} releases" if len(fresh) > 1 else "the release"
    spent = f"ε = {math.fsum(r.spend.epsilon for r in lost):g}"
    why = "; ".join(reasons_in_words(lost[0].unprotected))
    return f"{many} will be NOT private, and {spent} is booked all the same: {why}"


def entered(releases: Sequence[PlannedRelease]) -> tuple[RunningTotal | None, Callable[[bytes], None] | None]:
    """Book one run's release: what the ledger held right after that, and what notes each charge."""
    if (current := book(releases)) is None or (last := releases[-1].booking()) is None:
        return None, None
    return running_total(current, last.id), releases[-1].noting()


def _one_ledger(releases: Sequence[PlannedRelease]) -> LedgerTerms:
    first = releases[0].terms
    if any(place_of(r.terms.path) != place_of(first.path) or r.terms.limit != first.limit for r in releases):
        fix = "one budget.ledger and one budget.limit for all jobs"
        raise UserError("jobs that are booked together need one ledger", where=SETTING, fix=fix)
    for release in releases[1:]:
        if release.terms.scope != first.scope:
            fix = "one sweep per table, privacy unit and relation, each with a ledger of its own"
            raise UserError("jobs of several tables, units or relations share no ledger", where=SETTING, fix=fix)
    return first


def _refused(fresh: Sequence[PlannedRelease], book: Book) -> UserError:
    """What was asked, what is left, and the way out."""
    path, first = fresh[0].terms.path, fresh[0]
    if len(fresh) == 1:
        asked = f"ε = {first.spend.epsilon:g}, δ = {first.spend.delta:g}"
    else:
        asked = f"{len(fresh)} releases of ε = {math.fsum(r.spend.epsilon for r in fresh):g} in all"
    problem = f"{asked} is more than the ledger has left: {left_words(book, first.spend.delta)}; {spent_words(book)}"
    several = "fewer of them, or a smaller ε: they are booked all together or not at all"
    way = several if len(fresh) > 1 else "a privacy.epsilon within what is left"
    way += f"; or a higher limit: python -m pipeline budget {path} limit='{{epsilon: …, delta: …}}' reason='…'"
    return UserError(f"{problem}. Nothing was booked", where=SETTING, fix=way)


def spent_words(book: Book) -> str:
    """How much is booked, beside the limit."""
    total = running_total(book)
    words = f"{total.runs} booked, {bound_in_words(total.totals.epsilon, total.totals.delta)} by the plain sums"
    if book.filter.currency is not None and math.isfinite(total.totals.composed):
        composed = f"ε = {rounded_up(total.totals.composed, 6)} at δ = {rounded_up(total.delta_composed, 3)}"
        words += f" and {composed} by {book.filter.kind}"
    return f"{words}, of {bound_in_words(total.limit.epsilon, total.limit.delta)}"


def left_words(book: Book, delta: float) -> str:
    """What one more run may cost, by each filter that has room."""
    left = book.filter.room(book.spends, book.limit)
    words = []
    if left.epsilon:
        words = [f"ε = {rounded_down(left.epsilon, 6)}, δ = {rounded_down(left.delta, 3)} by the plain sums"]
    if left.currency is not None and left.strength:
        at = f" (ε = {rounded_down(left.epsilon_at(delta), 4)} at δ = {delta:g})" if delta else ""
        words += [f"{left.currency.sign} = {rounded_down(left.strength, 4)} by {book.filter.kind}{at}"]
    return ", or ".join(words) or "nothing"


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
        """What is booked, under a name that changes with all that it says; None before the folder has a name for it."""
        if (named := self.named()) is None:
            return None
        remarks = [word for word, so in (("not private", self.unprotected), ("of plugins", self.others)) if so]
        cost = json.dumps([asdict(self.spend), asdict(self.terms.scope), *remarks], sort_keys=True)
        name = f"{named}-{hashlib.blake2b(cost.encode(), digest_size=6).hexdigest()}"
        return Booking(name, str(self.root.resolve()), self.spend, not self.unprotected, others=self.others)


def _fresh_of(releases: Sequence[PlannedRelease], book: Book) -> list[PlannedRelease]:
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
