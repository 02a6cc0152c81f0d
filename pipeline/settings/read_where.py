"""Where settings are read: one table. A value of which nothing depends is refused, not taken and forgotten."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from pathlib import Path
from typing import Any, TypeAlias

from evaluation.metric import MAP
from evaluation.metrics import METRICS, declared_settings, users
from mechanisms.public.discovery.discovered_columns import questions_of
from mechanisms.public.errors import UserError, one_of
from mechanisms.public.persons.person_questions import questions_of as person_questions
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.fetched import at_database
from mechanisms.public.tables.formats import FORMATS, format_of_name
from mechanisms.public.tables.scan import Source
from mechanisms.public.units import WORD
from pipeline.settings.config import schema_path
from pipeline.settings.inputs import DEMO, OWN
from pipeline.settings.scoring import asked_metrics, ready_roles, roles_of

Read: TypeAlias = "Callable[[Any, Schema | None], bool]"
RECORD = "record"


def _by_schema(read: Callable[[Any, Schema], bool]) -> Read:
    """True as long as no schema is known."""
    return lambda c, schema: schema is None or read(c, schema)


def _in_csv(path: Any) -> bool:
    if not isinstance(path, str | Path):  # a frame
        return False
    form = format_of_name(str(path))
    return not at_database(str(path)) and (form is None or form.media != FORMATS["parquet"].media)


def _roles(c: Any, schema: Schema | None) -> Mapping[str, str]:
    """Role → column of what is scored; where the subject is known otherwise, that of the unit."""
    if hasattr(c, "real"):
        return roles_of(c.evaluation, ready_roles(schema, schema_path(c.schema)) if schema else None, schema)
    unit = c.privacy.unit or c.data.unit
    return ({} if unit == RECORD else {"subject": unit}) | roles_of(c.evaluation, c.data.roles, schema)


def _metrics(c: Any, schema: Schema | None) -> set[str]:
    """The metrics that are asked for, as far as their columns are known."""
    own, chosen = c.evaluation, getattr(c, "metrics", None) or c.evaluation.metrics
    met = {*_roles(c, schema), "subject", *(["holdout"] if getattr(c, "holdout", None) or own.holdout else [])}
    return {*asked_metrics(chosen, met, report=bool(getattr(c, "report", None)))}


def _of_metrics(names: Iterable[str]) -> Iterator[tuple[str, str, Read]]:
    """What metrics declare, as lines of the table; three columns make a map."""
    for name in names:
        others = " and ".join(f"evaluation.{n}" for n in MAP if n != name) + ", or " if name in MAP else ""
        when = f"with {others}evaluation.metrics=[{','.join(users(name))}]"
        yield f"evaluation.{name}", when, partial(_in_metric, name)


def _in_metric(name: str, c: Any, schema: Schema | None) -> bool:
    on_map = name in MAP and {*MAP} <= _roles(c, schema).keys()
    return on_map or not _metrics(c, schema).isdisjoint(users(name))


_BOOK = "with budget.ledger=FILE, which all runs on the table share"
#: Groups of settings that an experiment brings none of.
_SHARED = ("accept", "budget")
#: Settings, when something depends on them, and whether it does, by all settings and the schema.
TABLE: Sequence[tuple[str, str, Read]] = (
    ("data.units.id", "with data.units.path, a table of units", lambda c, _: bool(c.data.units.path)),
    ("units.id", "with units.path, a table of units", lambda c, _: bool(c.units.path)),
    ("data.rows data.seed", "with data=demo, which makes its own rows", lambda c, _: c.data.name == DEMO),
    (
        "data.rows_of_one_unit",
        "of a database: data.path=postgresql://… or sqlite:///FILE",
        lambda c, _: c.data.path is None or any(at_database(str(p)) for p in (c.data.path, c.data.units.path)),
    ),
    ("data.delimiter data.encoding", "of CSV files", lambda c, _: c.data.name != OWN or _in_csv(c.data.path)),
    ("delimiter encoding", "of CSV files", lambda c, _: any(map(_in_csv, _tables(c)))),
    (
        "data.max_records",
        "with data.unit=COLUMN (privacy.max_records goes with privacy.unit)",
        _by_schema(lambda c, s: c.data.unit != RECORD or s.rules.unit is not None),
    ),
    (
        "privacy.clip privacy.missing_unit privacy.missing_unit_values privacy.unit_id_rules",
        "with privacy.unit=COLUMN, or a schema with unit:",
        _by_schema(lambda c, s: (c.privacy.unit or c.data.unit) != RECORD or s.rules.unit is not None),
    ),
    ("privacy.max_records_cap", f"with privacy.max_records={WORD}", lambda c, _: c.privacy.max_records == WORD),
    (
        "privacy.unit_id_share",
        "where the schema says unit_id: {records: measured}",
        _by_schema(lambda _, s: s.rules.unit_ids is not None and s.rules.unit_ids.measured),
    ),
    (
        "privacy.person_share",
        "where the schema asks something about persons: unit: {column: …}",
        _by_schema(lambda _, s: bool(person_questions(s))),
    ),
    (
        "privacy.discovery_share",
        "where something is left to be discovered: in the schema bounds: discover, bins: discover or values: discover; "
        f"or privacy.max_records={WORD}",
        _by_schema(lambda c, s: c.privacy.max_records == WORD or bool(questions_of(s))),
    ),
    ("accept_share accept_tries", "with accept=[…]", lambda c, _: bool(c.accept)),
    ("budget.limit budget.accountant budget.slack", _BOOK, lambda c, _: c.budget.ledger is not None),
    ("budget.table", _BOOK, lambda c, _: c.budget.ledger is not None or c.budget.table == c.data.name),
    (
        "release.dialect",
        "with release.format=csv or csv.gz",
        lambda c, _: FORMATS[c.release.format].media != FORMATS["parquet"].media,
    ),
    (
        "evaluation.subject",
        "where it names a column of the schema, or of ids of the unit",
        _by_schema(
            lambda c, s: hasattr(c, "real") or c.evaluation.subject in {*s.domain.names, c.privacy.unit} - {RECORD}
        ),
    ),
    (
        "evaluation.order",
        "with evaluation.subject=COLUMN or a unit, by evaluation.metrics=[persons,anita_sequences]",
        lambda c, s: "subject" in _roles(c, s) and any("subject" in METRICS[n].needs for n in _metrics(c, s)),
    ),
    (
        "evaluation.longitude evaluation.latitude",
        "with both evaluation.longitude and evaluation.latitude",
        lambda c, s: {"longitude", "latitude"} <= _roles(c, s).keys(),
    ),
    (
        "evaluation.holdout evaluation.enabled",
        "in a run; score always scores, and takes holdout=TABLE",
        lambda c, _: not hasattr(c, "real"),
    ),
)


def _tables(c: Any) -> list[Any]:
    """The tables that `schema` or `score` reads."""
    if hasattr(c, "table"):
        return [c.table]
    return [c.real, *(c.synthetic if isinstance(c.synthetic, list) else [c.synthetic])]


def _part(settings: Any, name: str) -> Any:
    """None of another command's; what metrics bring travels in `options`."""
    return getattr(settings, name, getattr(settings, "options", {}).get(name))


def check_read(config: Any, schema: Schema | None = None) -> None:
    """Something depends on each value that is given; where a run makes no scores, those of scores are left aside.

    Args:
        config: the settings of a command, with the tables that it reads.
        schema: what it declares; None: what depends on it is left aside.
    Raises:
        UserError: names the setting, and where it is read; no such metric or format.
    """
    usual, brings = type(config)(), reduce(_part, ("experiment", "kind"), config) is not None
    off = not hasattr(config, "real") and reduce(_part, ("evaluation", "enabled"), config) is False
    if off:
        asked_metrics(config.evaluation.metrics)
    if hasattr(config, "release"):
        one_of(config.release.format, FORMATS, "release.format")
    own = declared_settings() if hasattr(config, "evaluation") else {}
    defaults = {f"evaluation.{name}": each.default for name, each in own.items()}
    for names, when, read in (*TABLE, *_of_metrics(own)):
        for name in names.split():
            given, default = (reduce(_part, name.split("."), of) for of in (config, usual))
            if given in (None, defaults.get(name, default)) or (brings and not name.startswith(_SHARED)):
                continue
            if not (off and name.startswith("evaluation.")) and not read(config, schema):
                raise _unread(name, given, when)


def check_tables_read(config: Any, tables: Mapping[str, Source]) -> None:
    """The same of what `score` says of its tables, which are open now; raises as of `check_read`."""
    subject, mark = config.evaluation.subject, config.delimiter
    if subject is not None and subject not in tables["real"].names:
        raise _unread("evaluation.subject", subject, "where it names a column of the real table")
    if mark is not None and all(mark != source.dialect.delimiter for source in tables.values()):
        raise _unread("delimiter", mark, "of tables in which it stands")


def _unread(name: str, given: Any, when: str) -> UserError:
    return UserError(f"got {given!r}, and nothing here reads it", where=name, fix=f"it is read {when}; or leave it out")
