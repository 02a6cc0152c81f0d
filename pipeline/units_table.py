"""A table of units beside the records: opened, joined to them by the id, and what `check` says of both."""

from __future__ import annotations

from collections.abc import Mapping

from mechanisms.public.errors import UserError
from mechanisms.public.persons.person_unit import PersonUnit
from mechanisms.public.schema.dialect import Dialect
from mechanisms.public.tables.scan import Source, private_folder
from mechanisms.sensitive.contribution import PrivacyUnit
from mechanisms.sensitive.joined_units import units_told, with_units
from pipeline.scores.table_sources import local_units, open_with
from pipeline.settings.config import LimitsConfig, ScoreConfig
from pipeline.settings.units_config import UnitsConfig

#: The folder in a working folder where both tables are joined.
FOLDER = "units"


def joined(
    records: Source,
    table: UnitsConfig,
    unit: PrivacyUnit,
    limits: LimitsConfig,
    dialect: Dialect,
    *,
    where: str = "data.units",
) -> Source:
    """The records with the columns of the table of units that the settings name; as they are where they name none.

    Args:
        unit: with a column where a table is named.
        where: the group of these settings, for messages.
    Raises:
        UserError: as of `open_table` and `with_units`.
    """
    workdir = records.workdir / FOLDER
    for path in table.files:
        private_folder(workdir)
        ids = table.id or str(unit.column)
        expected = records.expected and {*records.expected, ids}
        units = open_with(path, dialect, limits, workdir, setting=records.setting, expected=expected)
        return with_units(records, units, unit, ids=ids, where=where, workdir=workdir)
    return records


def scored_whole(
    tables: Mapping[str, Source], config: ScoreConfig, declared: PersonUnit | None
) -> Mapping[str, Source]:
    """Tables to score; real ones with the columns of their table of units, where the settings name one.

    Args:
        declared: the unit of their schema.
    Raises:
        UserError: no unit to join by; as of `joined`.
    """
    if not config.units.files:
        return tables
    column = config.evaluation.subject if declared is None else declared.column
    if column is None:
        fix = "evaluation.subject=COLUMN: the records' column of ids; or a schema with a unit"
        raise UserError("no column to join by", where="units", fix=fix)
    unit, real = PrivacyUnit(column), tables["real"]
    units = local_units(config.units, config.limits, real.workdir)
    return {
        name: source
        if name == "synthetic"
        else joined(source, units, unit, config.limits, source.dialect, where="units")
        for name, source in tables.items()
    }


def units_table_look(source: Source, table: UnitsConfig) -> list[str]:
    """What does not fit between the records and the table of units, a line each. NOT private.

    Args:
        source: as of `joined`.
    """
    if not table.files:
        return []
    name, told = table.files[0].name, units_told(source, source.workdir / FOLDER)
    of_units = f"table of units {name!r}"
    said = (
        (
            told.without_row,
            f"{told.without_row:,} units ({told.records:,} records) have no row: its columns are missing",
        ),
        (told.without_records, f"{told.without_records:,} units have a row and no record: they are not read"),
        (told.repeated, f"{told.repeated:,} units have several rows: the first one counts"),
        (told.nameless, f"{told.nameless:,} rows have no id: they are not read"),
    )
    return [f"{of_units}: {line}" for count, line in said if count]
