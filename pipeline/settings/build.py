"""Specs → the public schema, the marginals and the plan: the one place that knows both the settings and the rooms."""

from __future__ import annotations

import dataclasses

from mechanisms.accounting.plan import Plan
from mechanisms.accounting.planned_discovery import DiscoveryPlan
from mechanisms.accounting.planning import Request, make_plan
from mechanisms.public.errors import UserError
from mechanisms.public.rules.fine_columns import with_fine_columns
from mechanisms.public.rules.unit_histogram import RecordsPerUnit
from mechanisms.public.schema.sources import check_source
from mechanisms.public.schema.table_schema import Schema, load_schema
from mechanisms.public.workload import Workload
from mechanisms.selection.base import check_mapped
from pipeline.measuring.adaptive_plans import build_adaptive
from pipeline.settings.config import DataConfig, schema_path
from pipeline.settings.criteria import build_criteria, build_selection
from pipeline.settings.discovering_settings import build_discovery
from pipeline.settings.inputs import check_roles
from pipeline.settings.machine_limits import threads
from pipeline.settings.specs import Specs
from synthesis.contract import Synthesizer
from synthesis.pgm.junction_tree import fit_cliques

#: The largest C whose histogram of records per unit is measured.
MAX_RECORDS_MEASURED = 10_000


def build_schema(specs: Specs) -> Schema:
    """The public schema that the run discretizes against, with fine columns where the selection measures them."""
    return with_fine(specs, declared_schema(specs.config.data))


def declared_schema(data: DataConfig) -> Schema:
    """The schema as its file says it.

    Raises:
        UserError: a mistake in it; one that is confirmed and names the table itself as its source.
    """
    schema = load_schema(schema_path(data.schema))
    confirmed, table = schema.confirmed_public or data.confirmed_public, () if data.path is None else (str(data.path),)
    check_source(schema.source, schema.name, *table, confirmed=confirmed, where=str(data.schema))
    return schema


def with_fine(specs: Specs, schema: Schema) -> Schema:
    """The schema with fine columns where the selection measures them."""
    return with_fine_columns(schema, specs.selection.fine_cells_of(specs.with_bound(1).facts(schema)))


def build_histogram(specs: Specs, schema: Schema) -> RecordsPerUnit | None:
    """The histogram of records per unit, where the schema's unit_id asks for it.

    Raises:
        UserError: a record is the unit; a share out of range; more cells than make sense.
    """
    ids, unit, share = schema.rules.unit_ids, specs.unit, specs.config.privacy.unit_id_share
    if not 0.001 <= share <= 0.999:
        raise UserError(f"got {share}", where="privacy.unit_id_share", fix="a part of the budget, 0.001 to 0.999")
    if ids is None or not ids.measured:
        return None
    public = f"declare shares in the schema, as in unit_id: {{name: {ids.name}, records: {{1: 0.7, 2: 0.3}}}}"
    if unit.column is None:
        fix = f"privacy.unit=COLUMN with the unit's id, and privacy.max_records=C; or {public}"
        what = "the schema says unit_id: {records: measured}, but one record is the unit"
        raise UserError(what, where="privacy.unit", fix=fix)
    if unit.max_records > MAX_RECORDS_MEASURED:
        fix = f"at most {MAX_RECORDS_MEASURED:,} with unit_id: {{records: measured}}; or {public}"
        raise UserError(f"got {unit.max_records:,}", where="privacy.max_records", fix=fix)
    return RecordsPerUnit(ids.name, unit.max_records, share)


def build_workload(specs: Specs, schema: Schema) -> Workload:
    """The marginals to measure, or to choose from, by public facts alone."""
    selection, spec, facts = specs.selection, specs.synthesizer, specs.facts(schema)
    workload = selection.workload(facts)
    workload = dataclasses.replace(workload, left_out=(*workload.left_out, *selection.passed_over(facts)))
    if schema.rules.mapped:
        check_mapped(selection)
    return _fitted(schema, workload, spec) if selection.fits(spec.max_model_cells is not None) else workload


def said_limit(specs: Specs, schema: Schema) -> str:
    """The most cells of a marginal that is not left out for its size, in words."""
    return specs.selection.limit(specs.facts(schema))


def said_left_out(specs: Specs, schema: Schema, workload: Workload) -> list[str]:
    """Which marginals are left out, and why, a sentence each; empty where nobody dropped anything."""
    lines, domain = [], schema.measured
    if large := sorted(domain.cells(c) for c in workload.left_out):
        lines.append(
            f"{len(large):,} marginal{'s' * (len(large) > 1)} left out: more than {said_limit(specs, schema)} "
            f"({large[0]:,} to {large[-1]:,}); see plan"
        )
    if count := len(workload.no_room):
        every = count + len(workload.cliques)
        lines.append(
            f"{count:,} of {every:,} marginals left out: no room in the graphical model of at most "
            f"synthesis.max_cells={specs.synthesizer.max_model_cells:,} cells; see plan"
        )
    return lines


def _fitted(schema: Schema, workload: Workload, spec: Synthesizer) -> Workload:
    """The workload without the marginals that a graphical model of at most synthesis.max_cells cannot hold.

    The schema's impossible combinations are in every model, and are counted.
    The marginals of least weight go first, and of equal weight the largest: public facts alone. Those of mapped columns
    stay: each is all that is measured of its column.
    """
    limit = spec.max_model_cells
    if limit is None:
        fix = "synthesis=pgm, or selection.fit=false"
        raise UserError("only a graphical model has a size to fit", where="selection.fit", fix=fix)
    domain, cliques, weights = schema.measured, workload.cliques, workload.weights
    pairs = {domain.canonical((m.target, m.source)) for m in schema.rules.mapped}
    order = sorted(range(len(cliques)), key=lambda i: (cliques[i] not in pairs, -weights[i], domain.cells(cliques[i])))
    useful = {i: -place for place, i in enumerate(order)}
    ranks = [useful[i] for i in range(len(cliques))]
    kept, dropped = fit_cliques(domain, cliques, ranks, limit, fixed=[c for c, _ in schema.zeros])
    if lost := sorted(pairs - set(kept)):
        fix = "raise it, or take mapped out of the schema"
        raise UserError(f"no room for {' × '.join(lost[0])}", where="synthesis.max_cells", fix=fix)
    weight_of = dict(zip(cliques, weights, strict=True))
    return Workload(kept, tuple(weight_of[c] for c in kept), workload.left_out, dropped)


def build_plan(specs: Specs, workload: Workload, schema: Schema, discovery: DiscoveryPlan | None = None) -> Plan:
    """Every charge that the run (of several tries: each) may make, calibrated before any row is read.

    Args:
        discovery: what was charged before, where the schema is one that noisy answers made concrete; None: whatever the
            schema leaves open is planned too.
    """
    config, bound, _ = specs.config, specs.unit.max_records, threads(specs.config.limits.threads)
    check_roles(config.data, schema)
    discovery = discovery or build_discovery(specs, schema)
    specs, histogram = specs.after(discovery), build_histogram(specs, schema)
    accept, tries = build_criteria(config, schema.synthesized), build_selection(config)
    epsilon, delta = tries.of_one_try(config.privacy.epsilon, config.privacy.delta)
    schedule = specs.selection.schedule(specs.facts(schema), workload)
    if schedule is not None:
        rounds = build_adaptive(
            schedule,
            schema.measured,
            mechanism=specs.mechanism,
            accountant=specs.accountant,
            neighbouring=specs.neighbouring,
            budget=(epsilon, delta),
            max_records=bound,
            histogram=histogram,
            mapped=schema.rules.mapped,
            accept=accept,
            discovery=discovery,
        )
        return dataclasses.replace(rounds, selection=tries)
    plan = make_plan(
        schema.measured,
        [Request(c, w) for c, w in zip(workload.cliques, workload.weights, strict=True)],
        mechanism=specs.mechanism,
        accountant=specs.accountant,
        epsilon=epsilon,
        delta=delta,
        neighbouring=specs.neighbouring,
        max_records=bound,
        histogram=histogram,
        accept=accept,
        discovery=discovery,
    )
    return dataclasses.replace(plan, selection=tries)
