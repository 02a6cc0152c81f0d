"""What a schema file declares, and who is protected: by the settings, by the schema's unit, or by both."""

from __future__ import annotations

from dataclasses import replace

from mechanisms.public.errors import UserError
from mechanisms.public.persons.person_unit import PersonUnit
from mechanisms.public.schema.sources import check_source
from mechanisms.public.schema.table_schema import Schema, load_schema
from mechanisms.public.units import WORD
from pipeline.settings.config import Config, DataConfig, PrivacyConfig, schema_path

RECORD = "record"
#: The engine that follows the records of a person.
ENGINE = "duckdb"


def declared_schema(data: DataConfig) -> Schema:
    """The schema as its file says it.

    Raises:
        UserError: a mistake in it; one that is confirmed and names the table itself as its source.
    """
    schema = load_schema(schema_path(data.schema))
    confirmed, table = schema.confirmed_public or data.confirmed_public, () if data.path is None else (str(data.path),)
    check_source(schema.source, schema.name, *table, confirmed=confirmed, where=str(data.schema))
    return schema


def settled(config: Config, schema: Schema | None = None) -> Config:
    """The settings with the unit that they and the schema name together.

    Args:
        schema: as its file says it; None: it is read, where the settings name one.
    Raises:
        UserError: as of `settled_privacy`; settings that whole persons cannot have.
    """
    if schema is None and config.data.schema is not None:
        schema = declared_schema(config.data)
    unit = None if schema is None else schema.rules.unit
    config = replace(config, privacy=settled_privacy(config.privacy, config.data, unit))
    if unit is None:
        return config
    persons = f"the schema has a unit ({unit.column!r}), and whole persons"
    if config.engine.kind != ENGINE:
        problem = f"{persons} need engine={ENGINE}"
        raise UserError(problem, where="engine", fix=f"engine={ENGINE}; or a schema without unit, for records alone")
    if config.accept:
        fix = "accept=[]; or a schema without unit, for records alone"
        raise UserError(f"{persons} are not tried several times", where="accept", fix=fix)
    return config


def settled_privacy(privacy: PrivacyConfig, data: DataConfig, unit: PersonUnit | None) -> PrivacyConfig:
    """The settings of privacy with a unit: what they say, else what the schema says, else `data.unit`.

    Args:
        unit: of the schema.
    Raises:
        UserError: settings that contradict the schema's unit; names both places.
    """
    if unit is None:
        return replace(privacy, unit=data.unit if privacy.unit is None else privacy.unit)
    if privacy.max_records == WORD:
        fix = f"declare it: records: {{max: C}} in the schema, which says {unit.max_records:,}; max_records={WORD} "
        fix += "needs a schema without unit"
        problem = f"got {WORD}, but the schema's unit says how many records count"
        raise UserError(problem, where="privacy.max_records", fix=fix)
    own = None if data.unit == RECORD else data.unit
    for where, said in (("privacy.unit", privacy.unit), ("data.unit", own)):
        if said not in (None, unit.column):
            problem = f"got {said!r}, but the schema says unit: {{column: {unit.column}}}"
            raise UserError(problem, where=where, fix=f"{where}={unit.column}, or null; or another unit in the schema")
    for where, count in (("privacy.max_records", privacy.max_records), ("data.max_records", data.max_records)):
        if count not in (None, unit.max_records):
            problem = f"got {count}, but the schema says unit: {{records: {{max: {unit.max_records}}}}}"
            fix = f"{where}={unit.max_records}, or null; or another number in the schema"
            raise UserError(problem, where=where, fix=fix)
    return replace(privacy, unit=unit.column, max_records=unit.max_records)
