"""Settings → frozen specs: the one place that knows both the configuration and the rooms."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence

from mechanisms.accounting.plan import Plan
from mechanisms.accounting.planned_discovery import DiscoveryPlan
from mechanisms.accounting.planning import Request, make_plan
from mechanisms.public.discovery.unit_sizes import ASSUMED
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import UserError, did_you_mean, one_of
from mechanisms.public.extras import need_extra
from mechanisms.public.marginals import BATCH_CELLS
from mechanisms.public.release import Measurements
from mechanisms.public.rules.fine_columns import with_fine_columns
from mechanisms.public.rules.unit_histogram import RecordsPerUnit
from mechanisms.public.schema.sources import check_source
from mechanisms.public.schema.table_schema import Schema, load_schema
from mechanisms.public.units import Neighbouring
from mechanisms.public.workload import Workload
from mechanisms.selection.base import check_mapped
from mechanisms.sensitive.contribution import PrivacyUnit
from pipeline.measuring.adaptive_plans import build_adaptive
from pipeline.measuring.size_bounds import grown_cells, later_cells, limits_model
from pipeline.settings.config import Config, DataConfig, LimitsConfig, SynthesisConfig, schema_path
from pipeline.settings.criteria import build_criteria, build_selection
from pipeline.settings.discovering_settings import asks_for_records, build_discovery, of_the_rest
from pipeline.settings.inputs import check_roles
from pipeline.settings.machine_limits import memory_limit_bytes, threads
from pipeline.settings.selecting import asked_accountant, build_facts, selection_of
from pipeline.settings.ways_out import OF_ONE
from synthesis.consistency.total import default_rows
from synthesis.contract import CHUNK_ROWS, Synthesizer
from synthesis.pgm.junction_tree import fit_cliques, model_cells
from synthesis.synthesizers import SYNTHESIZERS

RECORD = "record"
#: The largest C whose histogram of records per unit is measured.
MAX_RECORDS_MEASURED = 10_000
#: What the interpreter and the libraries take before any work.
LIBRARIES_BYTES = 400_000_000


def build_schema(config: Config) -> Schema:
    """The public schema that the run discretizes against, with fine columns where the selection measures them."""
    return with_fine(config, declared_schema(config.data))


def declared_schema(data: DataConfig) -> Schema:
    """The schema as its file says it.

    Raises:
        UserError: a mistake in it; one that is confirmed and names the table itself as its source.
    """
    schema = load_schema(schema_path(data.schema))
    confirmed, table = schema.confirmed_public or data.confirmed_public, () if data.path is None else (str(data.path),)
    check_source(schema.source, schema.name, *table, confirmed=confirmed, where=str(data.schema))
    return schema


def with_fine(config: Config, schema: Schema) -> Schema:
    """The schema with fine columns where the selection measures them."""
    facts = build_facts(config, schema, max_records=1)
    return with_fine_columns(schema, selection_of(config.selection).fine_cells_of(facts))


def build_unit(config: Config) -> PrivacyUnit:
    """Who is protected, and how much of them counts.

    Raises:
        UserError: a unit column without C, a C below 1, or a C with one record as the unit.
    """
    privacy = config.privacy
    column = None if privacy.unit == RECORD else privacy.unit
    bound = privacy.max_records
    if asks_for_records(privacy):
        bound = _assumed(column, privacy.clip)
    if bound is None and column is None:
        bound = 1
    elif bound is None and column == config.data.unit:
        bound = config.data.max_records
    if bound is None:
        raise UserError(
            f"the unit is the column {column!r}, but how many records of one unit may count is not set",
            where="privacy.max_records",
            fix="a whole number C ≥ 1, from what is publicly known, for example privacy.max_records=20; or discover",
        )
    return PrivacyUnit(
        column=column,
        max_records=bound,  # type: ignore[arg-type]  # no text: checked above
        clip=privacy.clip,  # type: ignore[arg-type]  # one of the words: the settings check it
        missing=privacy.missing_unit,  # type: ignore[arg-type]
        missing_values=tuple(privacy.missing_unit_values),
        rules=tuple(privacy.unit_id_rules),
    )


def _assumed(column: str | None, clip: str) -> int:
    """C until it is discovered.

    Raises:
        UserError: a record is the unit; or C is declared to be a fact of the table.
    """
    if column is None:
        fix = "privacy.max_records=1; or privacy.unit=COLUMN with the unit's id"
        raise UserError("one record is the unit: there is nothing to discover", where="privacy.max_records", fix=fix)
    if clip == "none":
        fix = "privacy.clip=weight or truncate; or privacy.max_records=C, which no unit exceeds"
        raise UserError("clip=none takes C for a public fact", where="privacy.max_records", fix=fix)
    return ASSUMED


def check_unit(unit: PrivacyUnit, columns: Sequence[str]) -> None:
    """`privacy.unit=record` means one row; refuse a table where it could mean a column.

    Raises:
        UserError: the table has a column of that name.
    """
    if unit.column is None and RECORD in columns:
        fix = f"rename the column {RECORD!r} in the table; then privacy.unit is its new name, or {RECORD} for one row"
        raise UserError(f"{RECORD!r} is a column of the table, and stands for one row", where="privacy.unit", fix=fix)


def build_histogram(config: Config, schema: Schema) -> RecordsPerUnit | None:
    """The histogram of records per unit, where the schema's unit_id asks for it.

    Raises:
        UserError: a record is the unit; more cells than make sense.
    """
    ids, share = schema.rules.unit_ids, config.privacy.unit_id_share
    if ids is None or not ids.measured:
        return None
    unit = build_unit(config)
    public = f"declare shares in the schema, as in unit_id: {{name: {ids.name}, records: {{1: 0.7, 2: 0.3}}}}"
    if unit.column is None:
        fix = f"privacy.unit=COLUMN with the unit's id, and privacy.max_records=C; or {public}"
        what = "the schema says unit_id: {records: measured}, but one record is the unit"
        raise UserError(what, where="privacy.unit", fix=fix)
    if unit.max_records > MAX_RECORDS_MEASURED:
        fix = f"at most {MAX_RECORDS_MEASURED:,} with unit_id: {{records: measured}}; or {public}"
        raise UserError(f"got {unit.max_records:,}", where="privacy.max_records", fix=fix)
    return RecordsPerUnit(ids.name, unit.max_records, share)


def build_workload(config: Config, schema: Schema) -> Workload:
    """The marginals to measure, or to choose from, by public facts alone."""
    selection, facts = (
        selection_of(config.selection),
        build_facts(config, schema, max_records=build_unit(config).max_records),
    )
    workload = selection.workload(facts)
    workload = dataclasses.replace(workload, left_out=(*workload.left_out, *selection.passed_over(facts)))
    if schema.rules.mapped:
        check_mapped(selection)
    spec = build_synthesizer(config.synthesis)
    return _fitted(schema, workload, spec) if selection.fits(spec.max_model_cells is not None) else workload


def said_limit(config: Config, schema: Schema) -> str:
    """The most cells of a marginal that is not left out for its size, in words."""
    facts = build_facts(config, schema, max_records=build_unit(config).max_records)
    return selection_of(config.selection).limit(facts)


def said_left_out(config: Config, schema: Schema, workload: Workload) -> list[str]:
    """Which marginals are left out, and why, a sentence each; empty where nobody dropped anything."""
    lines, domain = [], schema.measured
    if large := sorted(domain.cells(c) for c in workload.left_out):
        lines.append(
            f"{len(large):,} marginal{'s' * (len(large) > 1)} left out: more than {said_limit(config, schema)} "
            f"({large[0]:,} to {large[-1]:,}); see plan"
        )
    if count := len(workload.no_room):
        every = count + len(workload.cliques)
        lines.append(
            f"{count:,} of {every:,} marginals left out: no room in the graphical model of at most "
            f"synthesis.max_cells={build_synthesizer(config.synthesis).max_model_cells:,} cells; see plan"
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


def build_plan(config: Config, workload: Workload, schema: Schema, discovery: DiscoveryPlan | None = None) -> Plan:
    """Every charge that the run (of several tries: each) may make, calibrated before any row is read.

    Args:
        discovery: what was charged before, where the schema is one that noisy answers made concrete; None: whatever the
            schema leaves open is planned too.
    """
    bound, _ = build_unit(config).max_records, threads(config.limits.threads)
    check_roles(config.data, schema)
    discovery = discovery or build_discovery(config, schema, max_records=bound)
    config = of_the_rest(config, discovery)
    privacy, histogram = config.privacy, build_histogram(config, schema)
    accept, tries = build_criteria(config, schema.synthesized), build_selection(config)
    epsilon, delta = tries.of_one_try(privacy.epsilon, privacy.delta)
    schedule = selection_of(config.selection).schedule(build_facts(config, schema, max_records=bound), workload)
    if schedule is not None:
        rounds = build_adaptive(
            config,
            schedule,
            schema.measured,
            accountant=asked_accountant(config),
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
        mechanism=config.mechanism.kind,
        accountant=asked_accountant(config),
        epsilon=epsilon,
        delta=delta,
        neighbouring=Neighbouring(privacy.neighbouring),
        max_records=bound,
        histogram=histogram,
        accept=accept,
        discovery=discovery,
    )
    return dataclasses.replace(plan, selection=tries)


def build_synthesizer(config: SynthesisConfig) -> Synthesizer:
    """The synthesizer and its settings."""
    kind = SYNTHESIZERS[one_of(config.kind, SYNTHESIZERS, "synthesis.kind")]
    names = [f.name for f in dataclasses.fields(kind)]
    for name in config.options:
        if name not in names:
            raise _no_setting(config.kind, name, names)
    return kind(**config.options)


def _no_setting(kind: str, name: str, names: Collection[str]) -> UserError:
    """The synthesizer has no such setting; synthesis.kind alone takes one with the settings of another."""
    own = f"synthesis={kind}, which brings its own: {', '.join(names) or 'none'}"
    said = "no such setting", did_you_mean(name, names) or own
    what, fix = OF_ONE.get(f"synthesis.{name}", said)
    return UserError(what, where=f"synthesis.{name}", fix=fix)


def usable_synthesizer(config: SynthesisConfig) -> Synthesizer:
    """The same, where rows are to be made: an optional library that it needs is there before anything is spent."""
    spec = build_synthesizer(config)
    if spec.library:
        need_extra(spec.library, f"synthesis={config.kind}")
    return spec


def planned_cells(plan: Plan, domain: Domain) -> list[tuple[str, int]]:
    """Name and cells of every marginal that the plan may measure; what is chosen later counts as the largest choice."""
    known = [(" × ".join(m.clique), m.query.columns) for m in plan.measurements]
    return known + later_cells(plan, domain)


def predicted_memory_bytes(config: Config, schema: Schema, plan: Plan) -> int:
    """An upper estimate of a run's peak, without opening the data: libraries, counts, answers, targets and rows.

    The rows of the private table are memory-mapped and not counted. Without synthesis.rows (nor the demo's data.rows)
    a million synthetic rows are assumed.
    """
    domain = schema.measured
    cells, later = (sum(n for _, n in sizes) for sizes in (planned_cells(plan, domain), later_cells(plan, domain)))
    cliques = [m.clique for m in plan.measurements]
    rows, most = config.synthesis.rows or config.data.rows or 1_000_000, rows_at_once(config, schema)
    rows = rows if most is None else min(rows, most)
    counting = 8 * (min(cells, BATCH_CELLS) + 2 * cells)
    spec = build_synthesizer(config.synthesis)
    fixed = [c for c, _ in schema.zeros]
    grown = grown_cells(plan, domain, spec.model_settings.max_cells)
    synthesis = spec.predicted_bytes(domain, cliques, rows, fixed=fixed, grown=grown)
    if spec.max_model_cells is None:  # the model between the rounds, where there is one
        synthesis += 7 * 8 * later + (14 * 8 * grown if limits_model(plan) else 0)
    return LIBRARIES_BYTES + counting + 3 * 8 * later + synthesis


def planned_model_cells(config: Config, schema: Schema, plan: Plan) -> int | None:
    """The size of the graphical model of the marginals known ahead, in cells of its junction tree; None for others."""
    if build_synthesizer(config.synthesis).max_model_cells is None:
        return None
    return model_cells(schema.measured, [*(m.clique for m in plan.measurements), *(c for c, _ in schema.zeros)])


def grown_model_cells(config: Config, schema: Schema, plan: Plan) -> int | None:
    """The most cells of the graphical model in the end, where marginals are chosen later; None for others."""
    limit = build_synthesizer(config.synthesis).max_model_cells
    return None if limit is None else grown_cells(plan, schema.measured, limit) or None


def rows_at_once(config: Config, schema: Schema) -> int | None:
    """The most synthetic rows that are held at a time; None: all of them.

    A model's rows are drawn in chunks, unless rows are given units, or noisy scores decide about all of them.
    """
    drawn = (
        build_synthesizer(config.synthesis).streams(schema.zeros)
        and schema.rules.unit_ids is None
        and not config.accept
    )
    return CHUNK_ROWS if drawn else None


def check_rows(
    domain: Domain,
    measurements: Measurements,
    spec: Synthesizer,
    rows: int | None,
    limits: LimitsConfig,
    *,
    fixed: Sequence[Clique] = (),
    at_once: int | None = None,
) -> None:
    """Refuse before synthesis what its rows are predicted to need beyond limits.memory_gb.

    Args:
        fixed: cliques of the schema's impossible combinations.
        at_once: the most rows that are held at a time; None: all of them.
    Raises:
        UserError: too many rows, asked for or by the noisy total.
    """
    count = default_rows(measurements) if rows is None else rows
    measured = [a.clique for a in measurements.answers]
    held = count if at_once is None else min(count, at_once)
    needed = LIBRARIES_BYTES + spec.predicted_bytes(domain, measured, held, fixed=fixed)
    limit = memory_limit_bytes(limits.memory_gb)
    if needed > limit:
        what = f"{count:,} synthetic rows are predicted to need {needed / 1e9:.3g} GB, more than {limit / 1e9:.3g}"
        raise UserError(what, where="synthesis.rows", fix="fewer synthesis.rows, or raise limits.memory_gb")


def check_memory(config: Config, schema: Schema, plan: Plan) -> None:
    """Refuse before the work starts what is predicted to need more than limits.memory_gb."""
    needed, limit = predicted_memory_bytes(config, schema, plan), memory_limit_bytes(config.limits.memory_gb)
    if needed > limit:
        name, largest = max(planned_cells(plan, schema.measured), key=lambda p: p[1])
        raise UserError(
            f"the run is predicted to need {needed / 1e9:.3g} GB, more than {limit / 1e9:.3g}; the largest marginal is "
            f"{name} with {largest:,} cells",
            where="limits.memory_gb",
            fix="lower selection.max_cells or synthesis.rows, or raise limits.memory_gb",
        )
