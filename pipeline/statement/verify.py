"""`verify`: is a release as it was published, does its arithmetic hold, and was its version ever wrong?"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from mechanisms.accounting.accountants.accountant import PrivacyLoss
from mechanisms.public.errors import UserError, shown
from mechanisms.public.files import Json, JsonDict
from mechanisms.public.plain_files import check_plain, holds, read_mapping
from mechanisms.public.release import not_ours_lines
from mechanisms.public.tables.formats import released_table
from mechanisms.public.units import bound_in_words, delta
from pipeline.plugins.origins import check_loaded
from pipeline.settings.config import VerifyConfig
from pipeline.statement.advisories import advisories_of
from pipeline.statement.other_files import other_files, written_with
from pipeline.statement.paid_answers import SLACK, Finding, accepted, receipts_of_answers, sensitivities
from pipeline.statement.papers import BROKEN, texts_of
from pipeline.statement.restated import FROM_RUN, restated
from pipeline.statement.signing import Manifest, check_files, check_signature, public_key, read_manifest
from pipeline.statement.stated_plan import accountant_of, shortfall, tries_of, worst_of, wrong_running
from pipeline.statement.statement import SECURE
from pipeline.statement.words import as_fields, condition_in_words, is_older, reasons_in_words, sentence
from pipeline.version import __version__

#: A loss that says nothing: of a large δ, ε near 0 follows from its original parameter no closer.
TINY = 1e-8
#: What is read before all else.
NAMES = ("privacy.json", "measurements/index.json")


@dataclass(frozen=True)
class Check:
    """One line of the verdict.

    Attributes:
        name: what was looked at.
        holds: None where it cannot be told.
        finding: the finding.
    """

    name: str
    holds: bool | None
    finding: str


@dataclass(frozen=True)
class Verification:
    """All checks of a release.

    Attributes:
        others: the other versions that made it, whose papers this one cannot make again; empty: all were compared.
    """

    checks: tuple[Check, ...]
    others: tuple[str, ...] = ()

    @property
    def contradicted(self) -> bool:
        return any(c.holds is False for c in self.checks)

    @property
    def sound(self) -> bool:
        return not self.contradicted and not self.others

    @property
    def exit_code(self) -> int:
        """0: sound; 1: not; 2: nothing speaks against it, but another version made it, and not all was compared."""
        return 1 if self.contradicted else 2 if self.others else 0

    def as_text(self) -> str:
        """One line per check, then the verdict."""
        marks = {True: "ok", False: "NO", None: "--"}
        lines = [f"  {marks[c.holds]}  {c.name:<12} {shown(c.finding)}" for c in self.checks]
        unlike = f"NOT compared: made by version {shown(' and '.join(self.others))}; install it, and verify again"
        return "\n".join([*lines, "NOT sound" if self.contradicted else unlike if self.others else "sound"])


def verify(release: Path, *, key: str | None = None) -> Verification:
    """Check a release from its files alone; no row and no key of the publisher's is needed.

    Args:
        release: the release folder of a run.
        key: the file of the public key (PEM) that must have signed it; None: any signature will do, or none.
    Raises:
        UserError: the folder is no release, or rests on noise or an accountant of a module that is not loaded; `key`
            is no public key.
    """
    if key is not None:
        public_key(key)  # a wrong path is the reader's mistake, and says nothing about the release
    for name in NAMES:
        _check_there(release, name)
    try:
        check_plain(release)
    except UserError as error:  # nothing of such a folder is opened
        return Verification((Check("files", False, error.what),))
    statement, index = (_content(release, name) for name in NAMES)
    check_loaded(statement, str(release), ("mechanism", "accountant", "format"))
    checks, others = [*_bound(release, statement, key)], _other_versions(release, statement)
    try:
        statement = dict(as_fields(statement))
    except BROKEN as error:
        return Verification((*checks, Check("statement", False, f"cannot be read: {type(error).__name__}: {error}")))
    for name, check in _CHECKS.items():
        checks.append(_guarded(name, check, statement, index))
    checks.append(_guarded("sensitivity", lambda s, i: sensitivities(release, s, i), statement, index))
    for name, compared in _COMPARED.items():
        if others:
            checks.append(Check(name, None, f"not compared: made by version {' and '.join(others)}, not {__version__}"))
        else:
            checks.append(_guarded(name, partial(compared, release), statement, index))
    checks += [] if others else [Check("told", None, f"by the run alone: {', '.join(FROM_RUN)}")]
    checks.append(_guarded("private", _private, statement, index))
    checks += [
        Check("parts", None, f"not covered by our audit: {part}") for part in not_ours_lines(statement.get("not_ours"))
    ]
    checks += _advisories(statement, index)
    return Verification(tuple(checks), others)


def _other_versions(release: Path, statement: Json) -> tuple[str, ...]:
    """The versions but this one that say that they measured the release, or wrote its papers; or an older format."""
    try:
        versions = statement.get("versions")
        named = [versions.get("pipeline") if isinstance(versions, Mapping) else None]
        manifest = read_manifest(release)
        named += [] if manifest is None else [manifest.pipeline]
    except UserError:  # damaged: `files` says so
        return ()
    others = dict.fromkeys(str(v or "unknown")[:40] for v in named if v != __version__)
    if is_older(statement) and not others:
        return (f"{__version__} in format {statement.get('version', 1)}",)
    return tuple(others)


def _check_there(release: Path, name: str) -> None:
    if os.path.lexists(release / name):
        return
    inner = release / "release"
    fix = f"python -m pipeline verify {inner if (inner / name).is_file() else 'RUN/release'}"
    raise UserError(f"{release} is not the release folder of a run (no {name})", where="from", fix=fix)


def _content(release: Path, name: str) -> JsonDict:
    try:
        return read_mapping(release / name)
    except (OSError, ValueError) as error:
        fix = "the release as it was published"
        raise UserError(f"{name} is damaged ({error})", where=str(release), fix=fix) from error


def _bound(release: Path, statement: Json, key: str | None) -> list[Check]:
    """Files and signature; who signed is told of an edited release too."""
    try:
        manifest = read_manifest(release)
        if manifest is None:
            absent = "was lost" if statement.get("version", 1) != 1 else "did not exist yet in its version"
            return [
                Check("files", False, f"not bound: a manifest {absent}, so that an edited file would not be noticed")
            ]
    except UserError as error:
        return [Check("files", False, error.what)]
    return [_files(release, manifest), _signature(release, manifest, key)]


def _files(release: Path, manifest: Manifest) -> Check:
    try:
        check_files(manifest, release)
    except UserError as error:
        return Check("files", False, error.what)
    return Check("files", True, f"{len(manifest.files)} files as manifest.json lists them, and no other")


def _signature(release: Path, manifest: Manifest, key: str | None) -> Check:
    if manifest.signer is None and key is None:
        return Check("signature", None, "not signed: digests show a mistake, not a forgery")
    try:
        signer = check_signature(release, manifest, key)
    except UserError as error:
        missing = manifest.signer is not None and key is None and "library" in error.what
        return Check("signature", None if missing else False, f"{error.what} ({error.fix})")
    by = f"manifest.json is signed by {key}" if key else "manifest.json is signed (key=PUBLICKEY checks by whom)"
    return Check("signature", True, f"{by}: {signer}")


def _guarded(name: str, check: Callable[[Json, Json], Finding], statement: Any, index: Any) -> Check:
    """A check that a made-up file cannot bring down."""
    try:
        return Check(name, *check(statement, index))
    except (*BROKEN, UserError) as error:
        return Check(name, False, f"cannot be read: {type(error).__name__}: {error}".replace("\n", " "))


def _receipts(statement: Json, index: Json) -> Finding:
    """The charges, added up again, are what is said to be spent, and within the budget."""
    accountant, events = accountant_of(statement)
    if len({e.id for e in events}) < len(events):
        return False, "a charge stands there twice"
    for receipt, event in zip(statement["events"], events, strict=True):
        for name, value in accountant.cost(event).items():
            if not math.isclose(value, receipt["cost"][name], rel_tol=SLACK) and value > receipt["cost"][name]:
                return False, f"{event.id} costs {name} = {value:.6g}, not {receipt['cost'][name]:.6g}"
    selection, one = tries_of(statement), accountant.loss(events)
    if selection.several and one.epsilon > statement["selection"]["one_try"]["epsilon"] * (1 + SLACK):
        return False, f"a try costs ε = {one.epsilon:.6g}, more than it may"
    loss, spent, budget = selection.total(one), statement["spent"], statement["budget"]
    for name, value in (("epsilon", loss.epsilon), ("delta", loss.delta)):
        if value > spent[name] * (1 + SLACK) or spent[name] > budget[name] * (1 + SLACK):
            figures = f"{name}: {value:.9g} by the receipts, {spent[name]:.9g} spent, {budget[name]:.9g} allowed"
            return False, figures
    return True, f"{len(events)} charges add up to {bound_in_words(loss.epsilon, loss.delta)} by {accountant.kind}"


def _promise(statement: Json, index: Json) -> Finding:
    """What is promised covers what was charged, stays within the budget, and says the same in all its terms."""
    if "guarantee" not in statement:
        lost = statement.get("version", 1) != 1
        return (False, "was lost") if lost else (None, "stated by its budget alone in its version")
    selection, promise, budget = tries_of(statement), statement["guarantee"], statement["budget"]
    if short := shortfall(statement):
        return False, short
    worst = worst_of(statement)
    promised, loss = worst.composition, selection.total(worst.loss)
    over = 1 + worst.slack
    if loss.epsilon > promise["epsilon"] * over or loss.delta > promise["delta"] * over:
        return False, f"ε = {promise['epsilon']:.6g} is promised, the charges add up to {loss.epsilon:.6g}"
    if promise["epsilon"] > budget["epsilon"] * (1 + SLACK) or promise["delta"] > budget["delta"] * (1 + SLACK):
        return False, "more than the budget"
    stated = PrivacyLoss(promise["epsilon"], promise["delta"])
    for at, value in (*statement["epsilon_at"].items(), *statement["curve"]):
        if value is not None and promised.promised_at(float(at), stated) > value * over:
            return False, f"ε at δ = {at} is more than {value:.6g}"
    for group in statement["group_privacy"]:
        least = promised.of_group(group["units"])
        value = group["epsilon"]
        if value is not None and least.epsilon > value * over:
            return False, f"a group of {group['units']} loses ε = {least.epsilon:.6g}, not {value:.6g}"
        # δ of a group is a sum of multiples by e^ε, whose exponents lie apart as far as ε may
        if value is not None and least.delta > group["delta"] * over * math.exp(min(worst.slack * value, 1.0)):
            return False, f"a group of {group['units']} has δ = {least.delta:.3g}, not {group['delta']:.3g}"
    for name, value in statement["original"].items():
        currency = promised.accountant.currency
        if currency is None or name != currency.name:
            return False, f"{promised.accountant.kind} has no original parameter {name}"
        if selection.several:
            return False, f"of several tries (ε, δ) alone is known, no {name}"
        again = currency.epsilon(value, delta(promise["delta"]))
        if not math.isclose(again, promise["epsilon"], rel_tol=1e-6, abs_tol=TINY):
            return False, f"its original parameter gives ε = {again:.6g}, not {promise['epsilon']:.6g}"
    if wrong := _totals(statement, loss) or wrong_running(statement):
        return False, wrong
    unit = statement["unit"]
    whom = "its unit" if unit["column"] == "" else sentence("unit", unit)
    return True, f"{bound_in_words(promise['epsilon'], promise['delta'])} for {whom} ({statement['neighbouring']})"


def _totals(statement: Json, loss: PrivacyLoss) -> str:
    """What other totals fall short of the charges: of all tries, and of all runs of a ledger; empty where none does."""
    chosen, running = statement.get("selection"), statement.get("running_total")
    totals = [] if chosen is None else [("all tries", chosen["total"]["epsilon"], chosen["total"]["delta"])]
    totals += [] if running is None else [("all runs of the ledger", running["epsilon_sum"], running["delta_sum"])]
    for name, eps, dlt in totals:
        if loss.epsilon > eps * (1 + SLACK) or loss.delta > dlt * (1 + SLACK):
            return f"{name} are said to cost ε = {eps:.6g}, δ = {dlt:.3g}, this one alone costs more"
    return ""


def _page(release: Path, statement: Json, index: Json) -> Finding:
    """statement.html, deployment.yaml and croissant.json say what privacy.json says."""
    manifest = read_manifest(release)
    if manifest is None:
        return None, "no statement.html is bound to this release"
    table = released_table(manifest.files, release)
    schema = written_with(release, statement)[0]
    for name, text in texts_of(statement, schema, table, manifest).items():
        if not holds(release / name, text):
            return False, f"{name} does not say what privacy.json says"
    if manifest.given is not None:
        return True, f"a table of rows with {condition_in_words(manifest.given['where'])} only, as statement.html says"
    return True, "statement.html says what privacy.json says"


#: What this version would have written, from the same receipts: of another version it is not known.
_COMPARED = {"terms": restated, "page": _page, "tables": other_files}
#: Checks of the statement against the list of its answers, whichever version made them.
_CHECKS = {"receipts": _receipts, "promise": _promise, "accepted": accepted, "answers": receipts_of_answers}


def _private(statement: Json, index: Json) -> Finding:
    if statement.get("private") is True and not statement.get("reasons_not_private"):
        if statement.get("noise_source") != SECURE and not is_older(statement):
            problem = f"the release says that it is private, but its noise is from {statement.get('noise_source')}"
            return False, problem
        return True, "the release says that it is private"
    reasons = "; ".join(reasons_in_words(statement.get("reasons_not_private") or ["no reason given"]))
    return False, f"the release says of itself that it is NOT private: {reasons}"


def _advisories(statement: Json, index: Json) -> list[Check]:
    """Known wrong claims of the version that measured."""
    try:
        version = statement.get("versions", {}).get("pipeline", "unknown")
        findings = advisories_of(statement, index["answers"])
    except BROKEN as error:
        return [Check("advisories", False, f"cannot be read: {error}")]
    if not findings:
        return [Check("advisories", True, f"none is known that concerns version {version}")]
    states = {True: "AFFECTED", False: "not affected", None: "cannot be told"}
    checks = []
    for advisory, affected, why in findings:
        line = f"{advisory['title']} (version {version}): {states[affected]}; {why}"
        checks.append(Check(advisory["id"], None if affected is None else not affected, line))
    return checks


def show_verdict(release: Path, config: VerifyConfig) -> int:
    """Print the verdict; its exit code."""
    verdict = verify(release, key=config.key)
    facts = {"release": str(release), "sound": verdict.sound, "exit_code": verdict.exit_code, **asdict(verdict)}
    print(json.dumps(facts, ensure_ascii=False) if config.format == "json" else verdict.as_text())
    return verdict.exit_code
