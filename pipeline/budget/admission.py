"""Settings → bookings: a command's releases are checked early, and booked together before the first charge."""

from __future__ import annotations

import json
import math
import secrets
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from mechanisms.accounting.bookings import SETTING, Book, LedgerTerms, Refused, Scope, book_runs, load_book, opened
from mechanisms.accounting.filters import Limit
from mechanisms.accounting.ledger_lock import recorded
from mechanisms.accounting.plan import Plan
from mechanisms.accounting.running_total import RunningTotal, running_total
from mechanisms.accounting.spend import spend_of_plan
from mechanisms.public.errors import UserError
from mechanisms.public.files import write_whole
from mechanisms.public.json_values import JsonDict
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.units import rounded_down, rounded_up, said_loss
from mechanisms.sensitive.contribution import PrivacyUnit
from pipeline.budget.planned_release import PlannedRelease, fresh_of
from pipeline.folders import not_in_release
from pipeline.plugins.origins import rests_on_others
from pipeline.settings.config import BudgetConfig, Config
from pipeline.settings.post_processing import bound_settings
from pipeline.settings.specs import Specs
from pipeline.statement.statement import why_not_private
from pipeline.statement.words import reasons_in_words


def planned_release(specs: Specs, schema: Schema, plan: Plan, root: Path) -> tuple[PlannedRelease, ...]:
    """The booking of one ordinary run; empty where no ledger is set.

    Raises:
        UserError: an impossible setting of the ledger.
    """
    config = specs.config
    terms = wanted_ledger(config, str(plan.budget.neighbouring), specs.unit, root)
    if terms is None:
        return ()
    unprotected = tuple(why_not_private(schema, config.privacy.noise_seed, confirmed=config.data.confirmed_public))
    others = rests_on_others(specs, plan)
    resume, settings = config.resume, bound_settings(config)
    return (PlannedRelease(root, terms, spend_of_plan(plan), unprotected, resume, others, settings),)


def wanted_ledger(config: Config, neighbouring: str, unit: PrivacyUnit, root: Path) -> LedgerTerms | None:
    """What the settings say about the ledger; None where none is set.

    Raises:
        UserError: settings of a ledger without one, an impossible limit, or a place that is published or deleted.
    """
    settings = config.budget
    if settings.ledger is None:
        _unused(settings)
        return None
    path = Path(settings.ledger).expanduser()
    not_in_release(path, SETTING)
    if path.resolve().is_relative_to(root.resolve()):
        fix = "a place outside: a ledger outlives its runs, and is no part of a release"
        raise UserError(f"{path} lies in the folder of the run", where=SETTING, fix=fix)
    limit = None if settings.limit is None else Limit.of(settings.limit, "budget.limit")
    table = str(settings.table or config.data.name)
    scope = Scope(table, _unit_json(unit), neighbouring)
    return LedgerTerms(path, scope, settings.accountant, settings.slack, limit)


def _unused(settings: BudgetConfig) -> None:
    for name in ("limit", "accountant", "slack"):
        if getattr(settings, name) is not None:
            fix = "budget.ledger=FILE, which all runs on the table share"
            raise UserError("is set, but there is no ledger", where=f"budget.{name}", fix=fix)


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
    if (current := load_book(ledger.path)) is not None and not fresh_of(releases, current):
        return current  # all of it is booked: a limit that changed since is no matter of theirs
    book = opened(ledger)
    fresh = fresh_of(releases, book)
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
    ledger, fresh = _one_ledger(releases), fresh_of(releases, book)
    if not fresh:
        return book
    for release in fresh:
        if (old := release.booking()) is None or book.booked(old.id) is not None:
            release.name_file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_whole(release.name_file, json.dumps({"id": secrets.token_hex(12)}) + "\n", mode=0o600)
    if warning := _unprotected_words(fresh):
        print(f"  {warning}", file=sys.stderr)
    bookings = [b for r in fresh if (b := r.booking()) is not None]
    new, gone = not ledger.path.exists(), recorded(ledger.path)
    try:
        book = book_runs(ledger, bookings)
    except Refused as refused:
        raise _refused(fresh_of(releases, refused.book), refused.book) from refused
    if new:
        lost = (
            f"; the one of this name before it is gone, with {gone[0]} entries: it counts none of them" if gone else ""
        )
        print(f"  {new_words(ledger, book)}{lost}", file=sys.stderr)
    return book


def _unprotected_words(fresh: Sequence[PlannedRelease]) -> str:
    """That releases which promise nothing book all the same: the noisy answers are given away, whoever they protect."""
    if not (lost := [r for r in fresh if r.unprotected]):
        return ""
    many = f"{len(lost)} of {len(fresh)} releases" if len(fresh) > 1 else "the release"
    spent = f"ε = {math.fsum(r.spend.epsilon for r in lost):g}"
    why = "; ".join(reasons_in_words(lost[0].unprotected))
    return f"{many} will be NOT private, and {spent} is booked all the same: {why}"


def new_words(terms: LedgerTerms, book: Book) -> str:
    """That a ledger is new: a name that was mistyped would begin a second budget."""
    limit = said_loss(book.limit.epsilon, book.limit.delta)
    return f"{SETTING}={terms.path} is a NEW ledger for {book.scope.table!r} with a limit of its own, {limit}"


def entered(releases: Sequence[PlannedRelease]) -> tuple[RunningTotal | None, Callable[[bytes], None] | None]:
    """Book one run's release: what the ledger held right after that, and what notes each charge."""
    if (current := book(releases)) is None or (last := releases[-1].booking()) is None:
        return None, None
    return running_total(current, last.id), releases[-1].noting()


def _one_ledger(releases: Sequence[PlannedRelease]) -> LedgerTerms:
    first = releases[0].terms
    if any(r.terms.path.resolve() != first.path.resolve() or r.terms.limit != first.limit for r in releases):
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
    words = f"{total.runs} booked, {said_loss(total.totals.epsilon, total.totals.delta)} by the plain sums"
    if book.filter.currency is not None and math.isfinite(total.totals.composed):
        composed = f"ε = {rounded_up(total.totals.composed, 6)} at δ = {rounded_up(total.delta_composed, 3)}"
        words += f" and {composed} by {book.filter.kind}"
    return f"{words}, of {said_loss(total.limit.epsilon, total.limit.delta)}"


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
