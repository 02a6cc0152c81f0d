"""The privacy statement of a run: what was promised, to whom, what it cost, and what the promise does not cover."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mechanisms.accounting.accountants.accountant import PrivacyLoss
from mechanisms.accounting.ledger import Ledger
from mechanisms.accounting.plan import Plan
from mechanisms.accounting.restatements import (
    DELTAS,
    GROUPS,
    epsilon_at,
    group_loss,
    guarantee,
    original,
    worst_case,
)
from mechanisms.public.criterion import ACCEPT
from mechanisms.public.release import Measurements, NoisyMarginal, PrivacyStatement
from mechanisms.public.schema.sources import names_the_table
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.units import Neighbouring
from mechanisms.sensitive.contribution import PrivacyUnit
from mechanisms.sensitive.id_rules import said_rules
from pipeline.settings.config import Config
from pipeline.settings.policy import budget_warnings, unit_warnings
from pipeline.settings.selecting import selection_of
from pipeline.statement.publication import Publication
from pipeline.statement.start_words import Start
from pipeline.version import __version__

LIBRARIES = ("autodp", "duckdb", "numba", "numpy", "scipy")

CLIPS = {
    "weight": "each record of a unit with R records weighs min(1, C/R), rounded down to a multiple of 2^-20",
    "truncate": "C records of each unit are kept, chosen at random with a secret key",
    "none": "the bound is declared as a public fact; a unit beyond it refuses the run",
}
MISSING = {
    "drop": "rows without a unit id are dropped",
    "own": "each row without a unit id is a unit of its own",
    "refuse": "a row without a unit id refuses the run",
}

#: What a private release says of its noise.
SECURE = "the operating system's secure source"
#: δ of the points of the curve.
CURVE = tuple(10.0**-k for k in range(2, 14))

#: In the public fact about the schema, before what of it stems from noisy answers.
DISCOVERED = "; not declared, but discovered: "

NOT_CONFIRMED = "nobody has confirmed that the schema is public knowledge (confirmed_public: true in its file, or "
NOT_CONFIRMED += "data.confirmed_public=true): its bounds and categories may come from the rows"


@dataclass(frozen=True)
class Declared:
    """What the settings, not the schema, take as public.

    Attributes:
        confirmed: whether a person confirmed the schema as public on the command line.
        public_table: name of the public table that chose the marginals, or None.
        start: the public table whose rows were changed into the synthetic ones, or None.
        synthetic_rows, selection_rows: synthesis.rows and selection.rows, where they are set.
        max_unplaced: the share of a column's values that it may lose before the run is refused; 1: it never is.
    """

    confirmed: bool = False
    public_table: str | None = None
    start: Start | None = None
    synthetic_rows: int | None = None
    selection_rows: int | None = None
    max_unplaced: float = 1.0

    def facts(self) -> list[str]:
        """A sentence for each fact beside the confirmation."""
        facts = []
        if self.public_table is not None:
            facts.append(f"the table {self.public_table!r} (selection.public), which chose the marginals")
        if self.start is not None:
            facts.append(self.start.sentence)
        if self.synthetic_rows is not None:
            facts.append(f"the number of synthetic rows, {self.synthetic_rows:,} (synthesis.rows)")
        if self.selection_rows is not None:
            facts.append(f"the number of records, about {self.selection_rows:,} (selection.rows)")
        return facts


def declared(config: Config, start: Start | None = None) -> Declared:
    """What the settings of a run take as public, with the table that its rows start from."""
    selection = selection_of(config.selection)
    table = selection.public_table
    return Declared(
        confirmed=config.data.confirmed_public,
        public_table=None if table is None else Path(table).name,
        start=start,
        synthetic_rows=config.synthesis.rows,
        selection_rows=selection.public_rows,
        max_unplaced=config.data.max_unplaced,
    )


def make_statement(
    schema: Schema,
    unit: PrivacyUnit,
    plan: Plan,
    ledger: Ledger,
    measurements: Measurements,
    noise_seed: int | None,
    holdout: float | None = None,
    *,
    taken: Declared,
    chosen: Collection[str] = (),
    scores: Sequence[float | None] = (),
    found_bound: Mapping[str, Any] | None = None,
    publication: Publication | None = None,
    running_total: Mapping[str, Any] | None = None,
    not_ours: Sequence[Mapping[str, Any]] = (),
) -> PrivacyStatement:
    """The statement, from the objects that were used, not from the settings.

    Args:
        taken: what the settings take as public.
        chosen: events of the choices and scores that were kept; those of the others were lost.
        scores: the noisy scores by which it was accepted, in records; None where one was charged and lost.
        found_bound: noisy counts of units, and the C that they speak for; None: C was declared.
        publication: who releases, and when; None: left to fill in.
        running_total: what a budget ledger says about all releases of the table; None: none is kept.
        not_ours: what the promise rests on and came from plugins.
    """
    histogram = [] if measurements.histogram is None else [measurements.histogram]
    answered = {a.event: a for a in (*measurements.answers, *histogram)}

    def receipt(charge: dict[str, Any]) -> dict[str, Any]:
        return _with_score(_with_bound(_answered(charge, answered, chosen), found_bound), scores)

    reasons = why_not_private(schema, noise_seed, confirmed=taken.confirmed)
    spent, budget = ledger.spent, PrivacyLoss(plan.epsilon, plan.delta)
    conversion, selection = plan.accountant.conversion, None
    if plan.selection.tries > 1:  # whatever this try spent, the others may have spent all
        selection, one = plan.selection.to_json(budget), PrivacyLoss(plan.epsilon, plan.loss.delta)
        conversion = f"one try: {conversion}; all tries: {selection['conversion']}"
        spent, budget = plan.selection.total(one), plan.selection.total(budget)
    return PrivacyStatement(
        private=not reasons,
        reasons_not_private=tuple(reasons),
        budget={"epsilon": budget.epsilon, "delta": budget.delta},
        spent={"epsilon": spent.epsilon, "delta": spent.delta},
        accountant=plan.accountant.kind,
        conversion=conversion,
        neighbouring=str(plan.neighbouring),
        unit=who_is_protected(unit),
        max_records=unit.max_records,
        unit_ids="" if unit.column is None else said_rules(unit.rules, unit.missing_values),
        clip="one record per unit" if unit.column is None else CLIPS[unit.clip],
        missing_unit="every row is a unit" if unit.column is None else MISSING[unit.missing],
        holdout=held_out(holdout),
        noise_source=SECURE if noise_seed is None else "a fixed seed",
        public_facts=public_facts(schema, plan.neighbouring, unit, holdout, taken, *discovered_here(plan)),
        outside=tuple(outside(schema, unit, taken)),
        events=tuple(receipt(r) for r in plan.receipts(ledger.events)),
        selection=selection,
        warnings=(*budget_warnings(budget.epsilon, budget.delta), *unit_warnings(unit)),
        versions={"pipeline": __version__, **{name: version(name) for name in LIBRARIES}},
        guarantee=asdict(guarantee(plan)),
        slots=plan.accountant.slots,
        **_in_other_terms(plan),
        table=schema.name,
        published=asdict(publication or Publication()),
        running_total=running_total,
        not_ours=tuple(not_ours),
    )


def discovered_here(plan: Plan) -> tuple[tuple[str, ...], int | None]:
    """Columns of which the plan's own charges discovered something; and the largest C that they might, or None."""
    if plan.discovery is None:
        return (), None
    return tuple(s.wanted.column for s in plan.discovery.slots), plan.discovery.cap


def _in_other_terms(plan: Plan) -> dict[str, Any]:
    """The guarantee before any δ is chosen, at other δ, and for groups of units."""
    accountant, worst, selection = plan.accountant, worst_case(plan), plan.selection
    curve = tuple((at, _finite(epsilon_at(accountant, worst, at, selection))) for at in CURVE)
    groups = ((k, group_loss(accountant, worst, k, selection)) for k in GROUPS)
    return {
        "original": original(accountant, worst) if selection.tries == 1 else {},
        "epsilon_at": {f"{at:g}": _finite(epsilon_at(accountant, worst, at, selection)) for at in DELTAS},
        "curve": curve,
        "group_privacy": tuple({"units": k, "epsilon": _finite(g.epsilon), "delta": g.delta} for k, g in groups),
    }


def _finite(value: float) -> float | None:
    """JSON knows no infinity: None stands for no bound."""
    return value if math.isfinite(value) else None


def why_not_private(schema: Schema, noise_seed: int | None, *, confirmed: bool) -> list[str]:
    """What takes the promise away, in sentences.

    Args:
        confirmed: whether a person confirmed the schema on the command line.
    """
    reasons = []
    if noise_seed is not None:
        reasons.append("the noise seed is fixed (privacy.noise_seed or seed): whoever knows it can subtract the noise")
    if not (schema.confirmed_public or confirmed) or names_the_table(schema.source, schema.name):
        reasons.append(NOT_CONFIRMED)
    return reasons


def who_is_protected(unit: PrivacyUnit) -> str:
    """The privacy unit, in words."""
    return "one record" if unit.column is None else f"all records with the same value of {unit.column!r}"


def held_out(share: float | None) -> str:
    """Who was set aside, in words; the same for every unit, and no part of the claim."""
    if share is None:
        return "none: every unit counts"
    return (
        f"each unit was set aside with probability {share:g}, by its own secret coin, before anything was counted; "
        "no amplification is claimed for it"
    )


def _answered(
    receipt: dict[str, Any], answered: Mapping[str, NoisyMarginal], chosen: Collection[str]
) -> dict[str, Any]:
    """A charge with what it bought; what a choice or scores chose shows in the marginals measured after it."""
    answer = answered.get(receipt["id"])
    if answer is None:
        return {**receipt, "answered": receipt["id"] in chosen}
    bought = {"clique": list(answer.clique), "cells": answer.query.columns, "answers": answer.query.rows}
    return {**receipt, **bought, "answered": True}


def _with_bound(receipt: dict[str, Any], found: Mapping[str, Any] | None) -> dict[str, Any]:
    """The charge for counts of units, with these counts and what follows from them."""
    if found is None or "cap" not in receipt.get("discovery", {}):
        return receipt
    return {**receipt, "discovery": {**receipt["discovery"], **found}}


def _with_score(receipt: dict[str, Any], scores: Sequence[float | None]) -> dict[str, Any]:
    """The charge for a noisy score with what it said, and by how much that may be off."""
    if "accept" not in receipt:
        return receipt
    score = scores[int(receipt["id"].removeprefix(ACCEPT))]
    return {**receipt, "answered": score is not None, "noisy": score, "standard_error": receipt["stddev"]}


def public_facts(
    schema: Schema,
    neighbouring: Neighbouring,
    unit: PrivacyUnit,
    holdout: float | None,
    taken: Declared,
    discovered: Collection[str] = (),
    cap: int | None = None,
) -> tuple[str, ...]:
    """What is taken as public, a sentence each.

    Args:
        discovered: columns of which this very run discovered something.
        cap: the largest C that might be discovered; None where C was declared.
    """
    source = f"(source: {schema.source or 'not named'}); {_who(schema, taken.confirmed)}{_noisy(schema, discovered)}"
    facts = [f"the schema {schema.name!r}: columns, bounds, bins and categories {source}"]
    if schema.rules.declared:
        facts.append(f"the rules of the schema: {', '.join(schema.rules.declared)}")
    if neighbouring is Neighbouring.REPLACE:
        counted = "" if holdout is None else " (before any were set aside)"
        facts.append(("the number of records" if unit.column is None else "the number of units") + counted)
    if unit.column is not None and unit.clip == "none":
        facts.append(f"no unit has more than {unit.max_records:,} records (privacy.clip=none)")
    if cap is not None:
        largest = f"the largest C that might be discovered, {cap:,} (privacy.max_records_cap)"
        facts.append(f"{largest}; C = {unit.max_records:,} is not declared, but follows from noisy counts of this run")
    return (*facts, *taken.facts())


def _noisy(schema: Schema, here: Collection[str]) -> str:
    """What of the schema stems from noisy answers, of this run or of an earlier release, and needs no confirmation."""
    parts = []
    for mine, source in ((True, "this run"), (False, "an earlier release")):
        columns = [c for c in schema.columns if c.discovered and (c.name in here) is mine]
        names = ", ".join(f"{c.name} ({' and '.join(c.discovered)})" for c in columns)
        parts += [f"{names}, from noisy answers of {source}"] if columns else []
    return f"{DISCOVERED}{'; '.join(parts)}" if parts else ""


def _who(schema: Schema, confirmed: bool) -> str:
    """Who says that the schema is public knowledge."""
    if schema.confirmed_public:
        return "confirmed as public in the schema's file"
    if confirmed:
        return "confirmed as public on the command line (data.confirmed_public=true), not in the schema's file"
    return "confirmed by nobody"


def outside(schema: Schema, unit: PrivacyUnit, taken: Declared) -> list[str]:
    """What may stop a run, and so tell something by stopping; see PRIVACY.md."""
    refusals = [f"column {name!r} refuses values outside its domain" for name in schema.refusals]
    refusals += [f"{rule} refuses rows that contradict it" for rule in schema.refusing_rules]
    if unit.column is not None and unit.missing == "refuse":
        refusals.append("rows without a unit id refuse the run")
    if unit.column is not None and unit.clip == "none":
        refusals.append("a unit with more records than declared refuses the run")
    if taken.public_table is not None or taken.start is not None:
        refusals.append("a public table with the very rows of the private one refuses the run")
    setting = f"(data.max_unplaced={taken.max_unplaced:g})"  # said at any value: a list without it was cut
    if taken.max_unplaced < 1:
        share = f"more than {100 * taken.max_unplaced:g} % of its cells that are not declared missing {setting}"
        return [*refusals, f"a column of which the schema cannot place {share} refuses the run, before any charge"]
    return [*refusals, f"no column refuses the run for values that the schema cannot place {setting}"]
