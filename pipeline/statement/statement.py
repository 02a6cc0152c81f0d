"""The privacy statement of a run: what was promised, to whom, what it cost, and what the promise does not cover."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from mechanisms.accounting.accountants.accountant import PrivacyLoss
from mechanisms.accounting.ledger import Ledger
from mechanisms.accounting.plan import Plan
from mechanisms.accounting.restatements import DELTAS, GROUPS, Composition, worst_case
from mechanisms.public.discovery.discovery_questions import OF_UNITS
from mechanisms.public.errors import UserError
from mechanisms.public.files import Json, JsonDict, as_path
from mechanisms.public.release import ACCEPT, Measurements, NoisyMarginal, PrivacyStatement
from mechanisms.public.schema.schema_text import names_the_table
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.units import ID_RULES, Neighbouring
from mechanisms.sensitive.contribution import PrivacyUnit
from pipeline.settings.config import SynthesisConfig
from pipeline.settings.inputs import asked_query
from pipeline.settings.specs import Specs, budget_warnings, unit_warnings
from pipeline.statement.signing import FIELDS, WhoPublishes, file_digest
from pipeline.version import __version__

#: The setting that names it.
START = "synthesis.public"


#: The table as its entry among the public facts of a statement: the name of its file, and the SHA-256 of its bytes.
Start = Json


def start_in(config: SynthesisConfig, *, discovering: bool = False) -> Start | None:
    """The table that the settings name.

    Args:
        discovering: whether bounds or values of the schema are open still.
    Raises:
        UserError: no file that can be read; a schema that is not whole before the run.
    """
    path = start_of(config)
    if path is None:
        return None
    if discovering:
        fix = "declare the bounds and values that are to be discovered, or leave it out"
        raise UserError("a public start needs a schema without discover", where=START, fix=fix)
    try:
        digest = file_digest(as_path(path, START))
    except OSError as error:
        fix = "a table of the same columns that is public; or leave it out"
        raise UserError(f"{path} cannot be read ({error.strerror})", where=START, fix=fix) from error
    return {"fact": "public_start", "name": Path(path).name, "sha256": digest}


def start_of(config: SynthesisConfig) -> str | None:
    """The file that the settings name, or None."""
    path = config.options.get("public")
    return str(path) if path else None


LIBRARIES = ("autodp", "duckdb", "numba", "numpy", "scipy")
#: Where the noise of a private release is from, and of one that anybody can repeat.
SECURE, FIXED = "system", "fixed_seed"
#: Of a run that set nobody aside.
NO_HOLDOUT = "none"
#: Public facts of settings, in their order: the kind → what it says.
OF_SETTINGS = {
    "public_table": ("name",),
    "public_start": ("name", "sha256"),
    "run_start": ("name", "sha256"),  # the run's own rows started from it, and these do not
    "query": ("rows_of_one_unit",),
    "synthetic_rows": ("rows",),
    "selection_rows": ("rows",),
}
#: δ of the points of the curve.
CURVE = tuple(10.0**-k for k in range(2, 14))


@dataclass(frozen=True)
class Declared:
    """What the settings, not the schema, say of a release.

    Attributes:
        unit: who is protected.
        holdout: the share of units that was set aside, or None.
        fixed: whether a seed makes the noise.
        confirmed: whether a person confirmed the schema as public on the command line.
        facts: the public facts of OF_SETTINGS that there are.
        max_unplaced: the share of a column's values that it may lose before the run is refused; 1: it never is.
        units_table: whether columns come from a second table, whose rows belong to units too.
    """

    unit: PrivacyUnit
    holdout: float | None = None
    fixed: bool = False
    confirmed: bool = False
    facts: Sequence[Json] = ()
    max_unplaced: float = 1.0
    units_table: bool = False

    @classmethod
    def stated(cls, statement: Json) -> Declared:
        """The same, back from the content of privacy.json.

        Raises:
            ValueError: a share of values, or of units set aside, that is none.
        """
        facts, most = {f["fact"]: f for f in statement["public_facts"]}, statement["outside"][-1]["max_unplaced"]
        if isinstance(most, bool) or not 0 <= most <= 1:
            raise ValueError(f"max_unplaced is {most!r}, and no share")
        of_kinds = ((kind, facts[kind], keys) for kind, keys in OF_SETTINGS.items() if kind in facts)
        own, holdout = [{"fact": kind, **{k: f[k] for k in keys}} for kind, f, keys in of_kinds], statement["holdout"]
        if holdout != NO_HOLDOUT and not 0 < holdout < 1:
            raise ValueError(f"holdout is {holdout!r}, and no share")
        return cls(
            unit_of(statement["unit"]),
            None if holdout == NO_HOLDOUT else float(holdout),
            statement["noise_source"] == FIXED,
            facts["schema"]["confirmed"] == "settings",
            [fact for fact in own if None not in fact.values()],
            max_unplaced=most,
            units_table=bool(statement["unit"].get("table")),
        )


def declared(specs: Specs, start: Start | None = None) -> Declared:
    """What the settings of a run say, with the table that its rows start from."""
    config, selection = specs.config, specs.selection
    table, query = selection.public_table, asked_query(config.data)
    facts: list[Json] = [] if table is None else [{"fact": "public_table", "name": Path(table).name}]
    facts += [] if start is None else [start]
    facts += [] if query is None else [{"fact": "query", "rows_of_one_unit": query}]
    rows = {"synthetic_rows": config.synthesis.rows, "selection_rows": selection.public_rows}
    facts += [{"fact": name, "rows": number} for name, number in rows.items() if number is not None]
    return Declared(
        specs.unit,
        config.evaluation.holdout,
        config.privacy.noise_seed is not None,
        confirmed=config.data.confirmed_public,
        facts=facts,
        max_unplaced=config.data.max_unplaced,
        units_table=bool(config.data.units.files),
    )


@dataclass(frozen=True, eq=False)
class Bought:
    """What was charged, and what it bought.

    Attributes:
        chosen: events of the choices and scores that were kept; those of the others were lost.
        scores: the noisy scores by which it was accepted, in records; None where one was charged and lost.
        bound: noisy counts of units, and the C that they speak for; None: C was declared.
    """

    ledger: Ledger
    measurements: Measurements
    chosen: Collection[str] = ()
    scores: Sequence[float | None] = ()
    bound: Json | None = None

    def receipts(self, plan: Plan) -> tuple[JsonDict, ...]:
        """Each charge with what it bought."""
        answered = {a.event: a for a in (*self.measurements.answers, *self.measurements.persons)}
        return tuple({**r, **self._bought(r, answered.get(r["id"]))} for r in plan.receipts(self.ledger.events))

    def _bought(self, receipt: JsonDict, answer: NoisyMarginal | None) -> JsonDict:
        """An answer; of a score what it said, and by how much that may be off; of counts of units these, and the C.

        What a choice or scores chose shows in the marginals measured after it.
        """
        if "accept" in receipt:
            score = self.scores[int(receipt["id"].removeprefix(ACCEPT))]
            return {"answered": score is not None, "noisy": score, "standard_error": receipt["stddev"]}
        if answer is not None:
            cells, answers = answer.query.columns, answer.query.rows
            return {"clique": list(answer.clique), "cells": cells, "answers": answers, "answered": True}
        released: JsonDict = {"answered": receipt["id"] in self.chosen}
        counted = self.bound is not None and "cap" in receipt.get("discovery", {})
        return released | {"discovery": {**receipt["discovery"], **(self.bound or {})}} if counted else released


def make_statement(
    schema: Schema,
    plan: Plan,
    own: Declared,
    bought: Bought,
    *,
    publication: WhoPublishes | None = None,
    running_total: Json | None = None,
    not_ours: Sequence[Json] = (),
) -> PrivacyStatement:
    """The statement, from the objects that were used.

    Args:
        own: what the settings say.
        publication: who releases, and when; None: left to fill in.
        running_total: what a budget ledger says about all releases of the table; None: none is kept.
        not_ours: what the promise rests on and came from plugins.
    """
    events = bought.receipts(plan)
    return PrivacyStatement(
        **declared_fields(schema, plan.budget.neighbouring, own, events),
        **promised_terms(worst_case(plan), plan.budget.whole, bought.ledger.spent, plan.loss.delta, own.unit),
        accountant=plan.accountant.kind,
        events=events,
        versions={"pipeline": __version__, **{name: version(name) for name in LIBRARIES}},
        published=publication or dict.fromkeys(FIELDS),
        running_total=None if running_total is None else total_fields(running_total),
        not_ours=tuple(not_ours),
    )


def declared_fields(schema: Schema, neighbouring: Neighbouring, own: Declared, events: Sequence[Json]) -> JsonDict:
    """All fields that follow from the schema and the settings: of a run, and of its release again.

    Args:
        events: each charge with what it bought; some discovered values, bounds or C.
    """
    reasons = why_not_private(schema, 0 if own.fixed else None, confirmed=own.confirmed)
    return {
        "private": not reasons,
        "reasons_not_private": tuple(reasons),
        "neighbouring": str(neighbouring),
        "unit": unit_fields(own.unit) | ({"table": True} if own.units_table else {}),
        "holdout": NO_HOLDOUT if own.holdout is None else own.holdout,
        "noise_source": FIXED if own.fixed else SECURE,
        "public_facts": tuple(public_facts(schema, neighbouring, own, events)),
        "outside": tuple(outside(schema, own)),
        "table": schema.name,
    }


def in_other_terms(promised: Composition, promise: PrivacyLoss) -> JsonDict:
    """The promise before any δ is chosen, at other δ, and for groups of units."""
    groups = ((k, promised.of_group(k)) for k in GROUPS)
    return {
        "original": promised.original,
        "epsilon_at": {f"{at:g}": _finite(promised.promised_at(at, promise)) for at in DELTAS},
        "curve": tuple((at, _finite(promised.promised_at(at, promise))) for at in CURVE),
        "group_privacy": tuple({"units": k, "epsilon": _finite(g.epsilon), "delta": g.delta} for k, g in groups),
    }


def promised_terms(
    composed: Composition, most: PrivacyLoss, spent: PrivacyLoss, delta: float, unit: PrivacyUnit
) -> JsonDict:
    """All fields that follow from the charges and the budget: of a run, and of its release again.

    Args:
        composed: what the promise composes.
        most: the budget of a try.
        spent: by the try that is released, and `delta` by any that charges all of its plan.
    """
    tries, accountant, promise = composed.tries, composed.accountant, composed.within(most)
    total = tries.total(most)
    weak = {"epsilon": budget_warnings(total.epsilon, 0.0), "delta": budget_warnings(0.0, total.delta)}
    weak["unit_id_rules"] = unit_warnings(unit)
    if tries.several:  # whatever this try spent, the others may have spent all
        spent = PrivacyLoss(most.epsilon, delta)
    selection = {  # what is public about tries: the expected number, never how many there were
        "tries_expected_at_most": tries.tries,
        "threshold": tries.threshold,
        "one_try": asdict(most),
        "total": asdict(total),
    }
    return {
        "conversion": accountant.conversion,
        "slots": accountant.slots,
        "budget": asdict(total),
        "spent": asdict(tries.total(spent)),
        "selection": selection if tries.several else None,
        "warnings": tuple(name for name, sentences in weak.items() if sentences),
        "guarantee": asdict(promise),
        **in_other_terms(composed, promise),
    }


def total_fields(running_total: Json) -> JsonDict:
    """What a budget ledger says, without its sentence."""
    return {name: value for name, value in running_total.items() if name != "sentence"}


def _finite(value: float) -> float | None:
    """JSON knows no infinity: None stands for no bound."""
    return value if math.isfinite(value) else None


def why_not_private(schema: Schema, noise_seed: int | None, *, confirmed: bool) -> list[str]:
    """The settings that take the promise away.

    Args:
        confirmed: whether a person confirmed the schema on the command line.
    """
    reasons = [] if noise_seed is None else ["noise_seed"]
    unconfirmed = not (schema.confirmed_public or confirmed) or names_the_table(schema.source, schema.name)
    return [*reasons, "confirmed_public"] if unconfirmed else reasons


def unit_fields(unit: PrivacyUnit) -> JsonDict:
    """Who is protected, and how much of a unit counts; None where a record is the unit."""
    if unit.column is None:
        return {"column": None, "max_records": 1, "clip": None, "missing": None, "ids": None}
    ids = {"rules": [rule for rule in ID_RULES if rule in unit.rules], "no_id": [*unit.missing_values]}
    facts = {"column": unit.column, "max_records": unit.max_records, "clip": unit.clip, "missing": unit.missing}
    return {**facts, "ids": ids}


def unit_of(fields: Json) -> PrivacyUnit:
    """The same, back from the content of privacy.json.

    Raises:
        UserError: no unit of a run.
    """
    column, ids = fields["column"], fields["ids"]
    if column is None:
        return PrivacyUnit()
    facts = {name: fields[name] for name in ("max_records", "clip", "missing")}
    return PrivacyUnit(column, **facts, missing_values=tuple(ids["no_id"]), rules=tuple(ids["rules"]))


def public_facts(schema: Schema, neighbouring: Neighbouring, own: Declared, events: Sequence[Json]) -> list[JsonDict]:
    """What is taken as public; arguments as of `declared_fields`."""
    unit, asked = own.unit, [e["discovery"] for e in events if e.get("discovery")]
    here, cap = {a["column"] for a in asked}, next((a["cap"] for a in asked if "cap" in a), None)
    discovered = [
        {"column": c.name, "what": [*c.discovered], "release": "this" if c.name in here else "earlier"}
        for c in schema.columns
        if c.discovered
    ]
    own_unit = schema.rules.unit
    if own_unit is not None and own_unit.discovered and cap is None:
        discovered.append({"column": OF_UNITS, "what": ["C"], "release": "earlier"})
    confirmed = "schema" if schema.confirmed_public else "settings" if own.confirmed else None
    named = {"fact": "schema", "name": schema.name, "source": schema.source}
    facts: list[JsonDict] = [{**named, "confirmed": confirmed, "discovered": discovered}]
    if schema.rules.declared:
        facts.append({"fact": "rules", "rules": [*schema.rules.declared]})
    if neighbouring is Neighbouring.REPLACE:
        of = "records" if unit.column is None else "units"
        facts.append({"fact": "number", "of": of, "before_holdout": own.holdout is not None})
    if unit.column is not None and unit.clip == "none":
        facts.append({"fact": "no_unit_above", "records": unit.max_records})
    if cap is not None:
        by: JsonDict = {"by": "schema"} if own_unit is not None and own_unit.max_records == cap else {}
        facts.append({"fact": "largest_bound", "cap": cap, "discovered": unit.max_records, **by})
    return [*facts, *map(dict, own.facts)]


def outside(schema: Schema, own: Declared) -> list[JsonDict]:
    """What may stop a run, and so tell something by stopping; see PRIVACY.md."""
    unit = own.unit
    stops: list[JsonDict] = [{"stop": "column", "column": c.name} for c in schema.columns if c.outside == "refuse"]
    stops += [{"stop": "rule", "rule": s.rule} for s in schema.rules.steps if s.conflict == "refuse"]
    if unit.column is not None and unit.missing == "refuse":
        stops.append({"stop": "missing_unit"})
    if unit.column is not None and unit.clip == "none":
        stops.append({"stop": "clip"})
    if {"public_table", "public_start", "run_start"} & {fact["fact"] for fact in own.facts}:
        stops.append({"stop": "public_table"})
    return [*stops, {"stop": "unplaced", "max_unplaced": own.max_unplaced}]  # at any value: a list without it was cut
