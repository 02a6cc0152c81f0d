"""Settings → frozen specs, built once: who is protected, what is measured, how rows are made; and the warnings."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from shlex import quote
from typing import Any

from mechanisms.accounting.accountants.basic import Basic
from mechanisms.accounting.budget import Budget
from mechanisms.accounting.plan import Plan
from mechanisms.public.discovery.discovery_questions import ASSUMED
from mechanisms.public.errors import UserError
from mechanisms.public.persons.person_questions import questions_of
from mechanisms.public.persons.person_unit import PersonUnit
from mechanisms.public.schema.dialect import PLAIN, Dialect, parse_dialect
from mechanisms.public.schema.schema_text import check_source
from mechanisms.public.schema.table_schema import Schema, load_schema
from mechanisms.public.tables.formats import CSV, FORMATS
from mechanisms.public.tables.text_forms import ID_NAME, PERSON_ID_COLUMN
from mechanisms.public.units import ID_RULES, WORD, Neighbouring
from mechanisms.selection.auto import AutoSettings
from mechanisms.selection.base import Facts, Selection
from mechanisms.sensitive.contribution import PrivacyUnit
from mechanisms.sensitive.engines.engine import EngineSettings
from pipeline.settings.config import CheckConfig, Config, DataConfig, PrivacyConfig, ReleaseConfig, schema_path
from pipeline.settings.inputs import generated
from pipeline.settings.methods import asked_accountant, build_synthesizer, engine_of, selection_of
from pipeline.settings.read_where import check_read
from synthesis.contract import Synthesizer

RECORD = "record"
#: The engine that joins a table of units to the records.
ENGINE = "duckdb"
#: Settings of selections that hold lists of marginals, or of columns.
MARGINALS, COLUMNS = ("marginals", "closure", "weights"), ("important",)
#: Letters of many alphabets: what a table holds may be discovered.
ANY_LETTERS = "ŁΩЖ字"


@dataclass(frozen=True, eq=False)
class Specs:
    """What a run is made of. What is discovered makes other specs; the settings stay as they were given.

    Attributes:
        config: the settings; the unit among them is that of the schema, where it has one.
        declared: the schema as its file says it; None: the settings name no file.
        unit: who is protected; C is an assumed one until it is discovered, and `discovers_bound` is true.
        budget: the terms of the whole promise; its accountant, by name, may be auto, as `mechanism` may.
    """

    config: Config
    declared: Schema | None
    unit: PrivacyUnit
    selection: Selection
    synthesizer: Synthesizer
    engine: EngineSettings
    budget: Budget
    mechanism: str
    discovers_bound: bool

    def columns_read(self, schema: Schema) -> tuple[str, ...]:
        """The columns that rows are read by: those of a schema, and the unit's ids."""
        return (*(c.name for c in schema.held), *([] if self.unit.column is None else [self.unit.column]))

    def facts(self, schema: Schema) -> Facts:
        """What the selection decides from before any row is read."""
        return Facts(schema, self.mechanism, self.budget)

    def with_bound(self, max_records: int | None) -> Specs:
        """With C as it was discovered; None: it was declared."""
        if max_records is None:
            return self
        unit = replace(self.unit, max_records=max_records)
        return replace(self, unit=unit, budget=replace(self.budget, max_records=max_records), discovers_bound=False)

    def after(self, discovery: Plan | None) -> Specs:
        """Those of the plan of the rest: its accountant is that of what was discovered, and so is pure noise."""
        if discovery is None:
            return self
        kind = discovery.accountant.kind
        mechanism = discovery.noise if kind == Basic.kind else self.mechanism
        return replace(self, budget=replace(self.budget, accountant=kind), mechanism=mechanism)

    def without_columns(self, names: Collection[str]) -> Specs:
        """With a selection that names none of these columns; a marginal of such columns alone is left out."""
        own = vars(self.selection) if names else {}
        changed = {s: _without(own[s], names) for s in MARGINALS if own.get(s)}
        changed |= {s: [n for n in own[s] if n not in names] for s in COLUMNS if own.get(s)}
        return replace(self, selection=replace(self.selection, **changed))


def declared_schema(data: DataConfig) -> Schema:
    """The schema as its file says it.

    Raises:
        UserError: a mistake in it; one that is confirmed and names the table itself as its source; two questions about
            persons of one name.
    """
    schema = load_schema(schema_path(data.schema))
    questions_of(schema)
    confirmed, table = schema.confirmed_public or data.confirmed_public, () if data.path is None else (str(data.path),)
    check_source(schema.source, schema.name, *table, confirmed=confirmed, where="data.schema")
    return schema


def settled(config: Config, schema: Schema | None = None) -> Config:
    """The settings with the unit that they and the schema name together.

    Args:
        schema: as its file says it; None: it is read, where the settings name one.
    Raises:
        UserError: as of `settled_privacy`.
    """
    if schema is None and config.data.schema is not None:
        schema = declared_schema(config.data)
    unit = None if schema is None else schema.rules.unit
    return replace(config, privacy=settled_privacy(config.privacy, config.data, unit))


def settled_privacy(privacy: PrivacyConfig, data: DataConfig, unit: PersonUnit | None) -> PrivacyConfig:
    """The settings of privacy with a unit: what they say, else what the schema says, else `data.unit`.

    Args:
        unit: of the schema.
    Raises:
        UserError: settings that contradict the schema's unit; names both places.
    """
    if unit is None:
        return replace(privacy, unit=data.unit if privacy.unit is None else privacy.unit)
    if unit.column == RECORD:
        fix = "another name for the column, in the table and in the schema"
        problem = f"the schema says unit: {{column: {RECORD}}}, which means one row"
        raise UserError(problem, where="privacy.unit", fix=fix)
    discovered = privacy.max_records == WORD
    if discovered and (unit.counted is not None or unit.max_records == 1):
        fix = "leave max_records out; or take counted out of the schema, with records: {max: 2} or more"
        problem = f"got {WORD}, but the schema's unit says that {unit.bound} of a unit's records count"
        raise UserError(problem, where="privacy.max_records", fix=fix)
    own = None if data.unit == RECORD else data.unit
    for where, value, other in (("privacy.unit", privacy.unit, ""), ("data.unit", own, "; or data=table")):
        if value not in (None, unit.column):
            problem = f"got {value!r}, but the schema says unit: {{column: {unit.column}}}"
            fix = f"{where}={unit.column}, or null; or another unit in the schema{other}"
            raise UserError(problem, where=where, fix=fix)
    most, counted = unit.max_records, unit.counted
    records = f"{{max: {most}}}" if counted is None else f"{{max: {most}, counted: {counted}}}"
    for where, count in (("privacy.max_records", privacy.max_records), ("data.max_records", data.max_records)):
        least = unit.bound if counted is not None or where == "data.max_records" else 1
        if isinstance(count, int) and not least <= count <= unit.bound:
            right = f"={unit.bound}" if least == unit.bound else f": at most {most}"
            problem = f"got {count}, but the schema says unit: {{records: {records}}}"
            raise UserError(problem, where=where, fix=f"{where}{right}, or null; or another number in the schema")
    if discovered:
        return replace(privacy, unit=unit.column, max_records_cap=min(privacy.max_records_cap, most))
    return replace(privacy, unit=unit.column, max_records=privacy.max_records or unit.bound)


def build_specs(config: Config) -> Specs:
    """The specs of a run.

    Raises:
        UserError: a mistake of the schema; a setting that is none, cannot be, is read by nothing, or contradicts the
            schema.
    """
    declared = None if config.data.schema is None else declared_schema(config.data)
    config = settled(config, declared)
    if declared is not None and isinstance(config.privacy.max_records, int):
        declared = replace(declared, rules=declared.rules.counting(config.privacy.max_records))
    if config.synthesis.rows == 0:
        fix = "a whole number of at least 1, or null"
        raise UserError("got 0: a run would spend its budget on no row", where="synthesis.rows", fix=fix)
    privacy, unit = config.privacy, build_unit(config.privacy, config.data)
    check_settings(config, unit, declared)
    relation = Neighbouring(privacy.neighbouring)
    return Specs(
        config,
        declared=declared,
        unit=unit,
        selection=selection_of(config.selection),
        synthesizer=build_synthesizer(config.synthesis),
        engine=engine_of(config.engine),
        budget=Budget(privacy.epsilon, privacy.delta, asked_accountant(config), relation, unit.max_records),
        mechanism=config.mechanism.kind,
        discovers_bound=asks_for_records(privacy),
    )


def build_unit(privacy: PrivacyConfig, data: DataConfig) -> PrivacyUnit:
    """Who is protected, and how much of them counts.

    Args:
        privacy: settled.
    Raises:
        UserError: a unit column without C, a C below 1, or a C with one record as the unit.
    """
    assert privacy.unit is not None, "settled with the schema before"
    column = None if privacy.unit == RECORD else privacy.unit
    bound = privacy.max_records
    if asks_for_records(privacy):
        bound = _assumed(column, privacy.clip)
    if bound is None and column is None:
        bound = 1
    elif bound is None and column == data.unit:
        bound = data.max_records
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


def as_released(release: ReleaseConfig, schema: Schema) -> Dialect:
    """How a release's table is written: as the table itself, unless the settings say otherwise.

    Raises:
        UserError: no dialect; one that cannot write a text of the schema, or that might be found; a name that no
            header of a CSV file holds.
    """
    where, dialect = "release.dialect", {"table": schema.dialect, "plain": PLAIN}.get(str(release.dialect))
    if dialect is None:
        dialect = parse_dialect(release.dialect, where)
    values = [t for c in schema.columns for t in c.values]  # as written
    texts = [*values, *(t for c in schema.columns for t in (c.name, c.other or ""))]
    if schema.to_discover and dialect.encoding != schema.dialect.encoding:
        texts.append(ANY_LETTERS)
    names = [*(c.name for c in schema.held), schema.rules.id_column]
    if FORMATS.get(release.format, CSV).reader == CSV.reader and (parted := [n for n in names if {*n} & {*"\r\n"}]):
        problem = f"a header of a CSV file has no place for the line break in {parted[0]!r}"
        raise UserError(problem, where="release.format", fix="parquet; or rename the column")
    for text in texts:
        try:
            text.encode(dialect.encoding)
        except UnicodeEncodeError as error:
            fix = "utf-8-sig, which spreadsheets read, and has all letters that may be listed or discovered"
            raise UserError(f"{dialect.encoding} has no letter for {text!r}", where=where, fix=fix) from error
    return dialect


def check_settings(config: Config | CheckConfig, unit: PrivacyUnit, schema: Schema | None) -> None:
    """Something reads each setting, and a table of units can be joined.

    That needs ids in the records and the engine that joins both, and it is no source of a schema's facts.

    Raises:
        UserError: as of `check_read`. With a table of units: a record is the unit; another engine; rows that are not
            read from a table of one's own; a confirmed schema that names the table of units as its source.
    """
    check_read(config, schema)
    if not config.data.units.files:
        return
    if unit.column is None:
        fix = "unit: {column: id, …} in the schema, or privacy.unit=COLUMN: the records' column of ids; or one table"
        raise UserError("each record is a unit: there is nothing to join by", where="data.units", fix=fix)
    if isinstance(config, Config) and config.engine.kind != ENGINE:
        fix = f"engine={ENGINE}; or join them before, and give one table"
        raise UserError(f"two tables are joined by engine={ENGINE} alone", where="engine", fix=fix)
    if isinstance(config, Config) and generated(config):
        fix = "data=table data.path=FILE; or data.units.path=null"
        raise UserError("a table of units stands beside records of one's own", where="data.units", fix=fix)
    if schema is not None:
        confirmed = schema.confirmed_public or config.data.confirmed_public
        names = (schema.name, str(config.data.units.path))
        check_source(schema.source, *names, confirmed=confirmed, where="data.schema")


def check_unit(unit: PrivacyUnit, columns: Sequence[str]) -> None:
    """`privacy.unit=record` means one row; refuse a table where it could mean a column.

    Raises:
        UserError: the table has a column of that name.
    """
    if unit.column is None and RECORD in columns:
        fix = f"rename the column {RECORD!r} in the table; then privacy.unit is its new name, or {RECORD} for one row"
        raise UserError(f"{RECORD!r} is a column of the table, and stands for one row", where="privacy.unit", fix=fix)


def asks_for_records(privacy: PrivacyConfig) -> bool:
    """Whether C is to be discovered."""
    return privacy.max_records == WORD


def _without(marginals: Sequence[Any], names: Collection[str]) -> list[Any]:
    """Marginals, or mappings that hold one, without these columns; each once."""
    left: list[Any] = []
    for one in marginals:
        given = one["marginal"] if isinstance(one, Mapping) else one
        columns = [n for n in given if n not in names]
        new = {**one, "marginal": columns} if isinstance(one, Mapping) else columns
        if columns and new not in left:
            left.append(new)
    return left


#: Above this ε, one unit may change the odds of any event by more than e¹⁰ ≈ 22,000.
LARGEST_EPSILON = 10.0
#: δ is a probability that the promise fails altogether; it should be far below 1 / number of units.
LARGEST_DELTA = 1e-5

#: What is wrong with a schema that has the column of the unit among its own.
IDS_MEASURED = "names the unit of privacy, and the schema has its ids measured and released like any other values"


def budget_warnings(epsilon: float, delta: float) -> tuple[str, ...]:
    """What a person should know about a large budget, a sentence each; nothing for a usual one."""
    warnings = []
    if epsilon > LARGEST_EPSILON:
        warnings.append(
            f"ε = {epsilon:g} is above {LARGEST_EPSILON:g}: the formal promise is very weak; one unit may change the "
            "odds of what is released by a factor of e^ε"
        )
    if delta > LARGEST_DELTA:
        warnings.append(
            f"δ = {delta:g} is above {LARGEST_DELTA:g}: with that probability nothing is promised; δ should be far "
            "below 1 / number of units"
        )
    return tuple(warnings)


def _id_warnings(schema: Schema, unit: PrivacyUnit) -> tuple[str, ...]:
    """Sentences, by public facts, where ids of the unit are measured, or left out where a row is the unit."""
    if unit.column in [c.name for c in schema.columns]:
        return (f"the column {unit.column!r} {IDS_MEASURED}; instead, leave_out: [{unit.column}]",)
    ids = [n for n in schema.leave_out if ID_NAME.search(n)] if unit.column is None else []
    persons = sorted(ids, key=lambda n: not PERSON_ID_COLUMN.search(n))
    fixes = {n: f"{quote(f'privacy.unit={n}')} privacy.max_records=C protects all rows of one" for n in persons[:1]}
    return tuple(f"each row alone is protected; {n!r} looks like an id: {fix}" for n, fix in fixes.items())


def run_warnings(specs: Specs, schema: Schema) -> tuple[str, ...]:
    """What a person should know before a run spends, a sentence each; it follows from public facts."""
    privacy, fixed = specs.config.privacy, [c for c, _ in schema.zeros]
    own = *replaced_choice(specs, schema), *budget_warnings(privacy.epsilon, privacy.delta), *unit_warnings(specs.unit)
    return *own, *_id_warnings(schema, specs.unit), *specs.synthesizer.warnings(schema.synthesized, fixed)


def two_tables(release: ReleaseConfig, schema: Schema) -> bool:
    """Whether persons and their records are released as two tables.

    Raises:
        UserError: the schema declares nothing that is constant in a person.
    """
    two = release.tables == "two"
    if two and (schema.rules.unit is None or not schema.rules.unit.constant):
        fix = "release.tables=joined; or in the schema unit: {column: COLUMN, constant: [COLUMN], records: {max: C}}"
        raise UserError("the schema declares no constants of persons", where="release.tables", fix=fix)
    return two


def unit_warnings(unit: PrivacyUnit) -> tuple[str, ...]:
    """A sentence where a rule for ids was taken away: one person may then count as several units."""
    apart = [words for rule, words in ID_RULES.items() if rule not in unit.rules]
    if unit.column is None or not apart:
        return ()
    bound = "so that one person may have C records under each spelling (privacy.unit_id_rules)"
    return (f"ids that differ in {'; or '.join(apart)} count as different units, {bound}",)


def replaced_choice(specs: Specs, schema: Schema) -> tuple[str, ...]:
    """Where the accountant leaves the default selection no choices, a sentence that says so."""
    selection = specs.selection
    asked = [specs.config.selection.options.get(name) for name in ("marginals", "closure", "k", "weights", "merge")]
    if not isinstance(selection, AutoSettings) or any(value is not None for value in asked):
        return ()
    if selection.given(specs.facts(schema)) is None:
        return ()
    return (
        f"privacy.accountant={specs.budget.accountant} with mechanism={specs.mechanism} cannot count choices "
        "that follow from answers: all pairs are measured at once, as in selection=pairs; privacy.accountant=gdp can",
    )
