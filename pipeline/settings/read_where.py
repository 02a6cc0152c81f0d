"""Where settings are read: one table. A value of which nothing depends is refused, not taken and forgotten."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, TypeAlias

from mechanisms.public.discovery.scouting import questions_of
from mechanisms.public.errors import UserError
from mechanisms.public.persons.asked_of_persons import questions_of as person_questions
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.fetched import at_database
from mechanisms.public.tables.formats import FORMATS, format_of_name
from mechanisms.public.units import WORD
from pipeline.settings.inputs import DEMO, OWN

Read: TypeAlias = "Callable[[Any, Schema | None], bool]"
RECORD = "record"


def _by_schema(read: Callable[[Any, Schema], bool]) -> Read:
    """True as long as no schema is known."""
    return lambda c, schema: schema is None or read(c, schema)


def _has_unit(c: Any, schema: Schema) -> bool:
    return (c.privacy.unit or c.data.unit) != RECORD or schema.rules.unit is not None


def _asks_database(c: Any) -> bool:
    return any(at_database(str(place)) for place in (c.data.path, c.data.units.path))


def _in_csv(path: Any) -> bool:
    if not isinstance(path, str | Path):  # a frame
        return False
    form = format_of_name(str(path))
    return not at_database(str(path)) and (form is None or form.media != FORMATS["parquet"].media)


_OF_UNITS = ("clip", "missing_unit", "missing_unit_values", "unit_id_rules")
_DIALECT = ("delimiter", "encoding")
#: Settings, when something depends on them, and whether it does, by all settings and the schema.
TABLE: Sequence[tuple[Sequence[str], str, Read]] = (
    (("data.units.id",), "with data.units.path, a table of units", lambda c, _: bool(c.data.units.path)),
    (("units.id",), "with units.path, a table of units", lambda c, _: bool(c.units.path)),
    (("data.rows", "data.seed"), "with data=demo, which makes its own rows", lambda c, _: c.data.name == DEMO),
    (
        ("data.rows_of_one_unit",),
        "of a database: data.path=postgresql://… or sqlite:///FILE",
        lambda c, _: c.data.path is None or _asks_database(c),
    ),
    ((*(f"data.{n}" for n in _DIALECT),), "of CSV files", lambda c, _: c.data.name != OWN or _in_csv(c.data.path)),
    (_DIALECT, "of CSV files", lambda c, _: any(map(_in_csv, _tables(c)))),
    (
        ("data.max_records",),
        "with data.unit=COLUMN (privacy.max_records goes with privacy.unit)",
        _by_schema(lambda c, s: c.data.unit != RECORD or s.rules.unit is not None),
    ),
    (
        (*(f"privacy.{n}" for n in _OF_UNITS),),
        "with privacy.unit=COLUMN, or a schema with unit:",
        _by_schema(_has_unit),
    ),
    (
        ("privacy.max_records_cap",),
        f"with privacy.max_records={WORD}",
        lambda c, _: c.privacy.max_records == WORD,
    ),
    (
        ("privacy.unit_id_share",),
        "where the schema says unit_id: {records: measured}",
        _by_schema(lambda _, s: s.rules.unit_ids is not None and s.rules.unit_ids.measured),
    ),
    (
        ("privacy.person_share",),
        "where the schema asks something about persons: unit: {column: …}",
        _by_schema(lambda _, s: bool(person_questions(s))),
    ),
    (
        ("privacy.discovery_share",),
        "where something is left to be discovered: in the schema bounds: discover, bins: discover or values: discover; "
        f"or privacy.max_records={WORD}",
        _by_schema(lambda c, s: c.privacy.max_records == WORD or bool(questions_of(s))),
    ),
    (("accept_share", "accept_tries"), "with accept=[…]", lambda c, _: bool(c.accept)),
    (
        ("release.dialect",),
        "with release.format=csv or csv.gz",
        lambda c, _: FORMATS[c.release.format].media != FORMATS["parquet"].media,
    ),
    (("evaluation.holdout",), "in a run; score takes holdout=TABLE", lambda c, _: not hasattr(c, "real")),
    (("evaluation.enabled",), "in a run; score always scores", lambda c, _: not hasattr(c, "real")),
)


def _tables(c: Any) -> list[Any]:
    """The tables that `schema` or `score` reads."""
    if hasattr(c, "table"):
        return [c.table]
    return [c.real, *(c.synthetic if isinstance(c.synthetic, list) else [c.synthetic])]


def _part(settings: Any, name: str) -> Any:
    """None of another command's."""
    return getattr(settings, name, None)


def check_read(config: Any, schema: Schema | None = None) -> None:
    """Something depends on each value that is given.

    Args:
        config: the settings of a command, with the tables that it reads.
        schema: what it declares; None: what depends on it is left aside.
    Raises:
        UserError: names the setting, and where it is read.
    """
    if getattr(getattr(config, "experiment", None), "kind", None):
        return  # it brings settings of its own
    usual = type(config)()
    for names, when, read in TABLE:
        for name in names:
            given, default = (reduce(_part, name.split("."), of) for of in (config, usual))
            if given != default and not read(config, schema):
                raise UserError(
                    f"got {given!r}, and nothing here reads it", where=name, fix=f"it is read {when}; or leave it out"
                )
