"""Any two tables, scored: over one schema or as they are, with a holdout and subjects where they are given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.metric import Options
from evaluation.metrics import ScoreSpec
from evaluation.score import Scorecard, score_tables
from evaluation.values.subjects import as_units, numbered
from evaluation.values.value_tables import Values
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.errors import UserError
from mechanisms.public.files import write_whole
from mechanisms.public.progress import Progress
from mechanisms.public.release_files import load_released_schema
from mechanisms.public.schema.table_schema import Schema, load_schema
from mechanisms.public.tables.codec import EncodingReport, encode_columns
from mechanisms.public.tables.out_of_schema import together, values_outside
from mechanisms.public.tables.scan import Source
from pipeline.frames.frame_files import Table
from pipeline.scores.file_facts import file_facts
from pipeline.scores.first_look import FirstLook, first_look
from pipeline.scores.read_values import shared_schema, with_schema, without_schema
from pipeline.scores.release_beside import STATEMENT, ReleaseFacts, release_beside, units_of, with_own_schema
from pipeline.scores.table_sources import opened
from pipeline.scores.value_look import value_look
from pipeline.settings.config import ScoreConfig, schema_path
from pipeline.settings.inputs import check_tables
from pipeline.settings.scoring import build_places, build_scores, known_roles, ready_roles
from pipeline.stage_bars import Stages, unplaced_lines
from pipeline.statement.digests import MANIFEST


@dataclass(eq=False)
class Loaded:
    """Tables as codes of one schema.

    Attributes:
        declared: the schema as it was given.
        schema: with a code apart in the columns where a table has values that the schema has no place for.
        tables: by name.
        reports: what encoding could not take as it was.
        subjects: the text of each row's subject, where the table has the column.
        outside: per table and column, the most frequent values that the schema does not place.
        values: the tables' values, where they are wanted.
        said: what a reader must know first: what the tables do not share.
        keys: figures of columns of ids.
        release: what the statement beside the synthetic table says, where there is one.
        units: the privacy unit of each row of the real table and the holdout, where that statement tells it.
    """

    declared: Schema
    schema: Schema
    tables: dict[str, CodedTable] = field(default_factory=dict)
    reports: dict[str, EncodingReport] = field(default_factory=dict)
    subjects: dict[str, NDArray[np.object_]] = field(default_factory=dict)
    outside: dict[str, dict[str, list[tuple[str, int]]]] = field(default_factory=dict)
    values: Values | None = None
    said: tuple[str, ...] = ()
    keys: Sequence[Mapping[str, Any]] = ()
    release: ReleaseFacts | None = None
    units: Sequence[NDArray[np.int64]] | None = None


def score(config: ScoreConfig, *, quiet: bool = False) -> Scorecard:
    """Score a synthetic table against a real one; the numbers are NOT private. Writes the report, if one is asked for.

    Without a schema, a release's own is taken; where there is none, the kinds of the columns are read from the tables.

    Raises:
        UserError: a table or the schema is missing or does not fit.
    """
    given = check_tables(config)
    config, own = with_own_schema(config, [given["synthetic"]])
    if config.evaluation.holdout is not None:
        fix = "holdout=TABLE with real records that were set aside"
        raise UserError("only a run can set units aside", where="evaluation.holdout", fix=fix)
    if config.metrics is not None:
        config.evaluation.metrics = config.metrics
    show = Stages(quiet=quiet, console="always")
    with opened(given, delimiter=config.delimiter, limits=config.limits) as sources:
        card = (_as_they_are if config.schema is None else _with_schema)(config, sources, show)
    return replace(card, said=(*card.said, own)) if own else card


def _with_schema(config: ScoreConfig, sources: Mapping[str, Source], show: Stages) -> Scorecard:
    path = schema_path(config.schema, "schema")
    in_release = (path.parent / MANIFEST).is_file() and (path.parent / STATEMENT).is_file()
    whole = load_released_schema(path) if in_release else load_schema(path)
    schema, said = shared_schema(sources, whole)
    roles = ready_roles(whole, path)
    spec = build_scores(config.evaluation, schema, roles, report=_for_report(config))
    used = known_roles(config.evaluation, roles, schema)
    tables = _encoded(sources, schema, show, subject=used.get("subject"))
    tables.said = tuple(said)
    with show.stage("values") as progress:
        tables.values = with_schema(sources, schema, progress)
    with show.stage("look"):
        look = first_look(sources["real"], sources["synthetic"], schema, spec.groups)
    return _scored(config, sources, tables, spec, used, look, show)


def _as_they_are(config: ScoreConfig, sources: Mapping[str, Source], show: Stages) -> Scorecard:
    name = Path(sources["real"].path).name.split(".")[0]
    with show.stage("load") as progress:
        subject = config.evaluation.subject
        read = without_schema(sources, name, progress, subject=subject)
        spec = build_scores(config.evaluation, read.schema, report=_for_report(config))
        tables = Loaded(read.schema, read.schema, dict(read.tables), subjects=dict(read.subjects), values=read.values)
        tables.keys = read.keys
        look = value_look(read.values, read.schema, [read.tables[n] for n in ("real", "synthetic")], spec.groups)
    return _scored(config, sources, tables, spec, known_roles(config.evaluation, None, read.schema), look, show)


def _for_report(config: ScoreConfig) -> tuple[str, ...] | None:
    """What the tables meet of the needs of those metrics that a report adds; None without a report."""
    if config.report is None:
        return None
    return () if config.holdout is None else ("holdout",)


def _scored(
    config: ScoreConfig,
    sources: Mapping[str, Source],
    tables: Loaded,
    spec: ScoreSpec,
    roles: Mapping[str, str],
    look: FirstLook,
    show: Stages,
) -> Scorecard:
    """The scores, and the report where one is asked for."""
    said = (*tables.said, *(tables.values.said if tables.values is not None else ()))
    show.warn_privately(list(said))
    tables.release, stated = release_beside(Path(sources["synthetic"].path))
    said = (stated, *said) if stated else said
    if tables.release is not None and "holdout" in sources:
        tables.units = units_of(tables.release, [sources["real"], sources["holdout"]])
    options = _with_promise(_with_rows(spec.options, tables, roles), tables, roles)
    if options.promise is not None and options.holdout is not None:
        said = (*said, "what ε allows an attack is for a holdout whose units were left out by a coin of their own each")
    dive = config.report is not None
    spec = replace(spec, detail=config.detail, worst=config.worst, top=config.top, dive=dive, options=options)
    real, synthetic = tables.tables["real"], tables.tables["synthetic"]
    with show.stage("score") as progress:
        card = score_tables(real, synthetic, tables.schema, spec, progress=progress)
        known = None if tables.release is None else tables.release.to_json()
        card = look.added_to(replace(card, unplaced=_unplaced(tables), said=said, release=known), real, synthetic)
    if config.report:
        from pipeline.report.run_page import render_scores  # slow to import
        from pipeline.scores.score_run import drawings

        with show.stage("report"):
            places = build_places(config.evaluation, roles, tables.schema)
            drawn = drawings(card, (real, synthetic), tables.schema, tables.declared, options, places, look)
            schema = config.schema and Path(config.schema).name
            drawn |= {"keys": list(tables.keys)} if tables.keys else {}
            drawn |= {"files": file_facts(sources, {n: t.rows for n, t in tables.tables.items()}, schema)}
            write_whole(Path(config.report), render_scores(tables.schema.name, card.to_json(), drawn), mode=0o600)
    return card


def _with_rows(options: Options, tables: Loaded, roles: Mapping[str, str]) -> Options:
    """The options with what only the rows tell: the values, the holdout, the subjects and their order."""
    options = replace(options, values=tables.values, holdout=tables.tables.get("holdout"))
    if "subject" not in roles:
        return options
    names = [name for name in ("real", "synthetic", "holdout") if name in tables.subjects]
    numbers = dict(zip(names, numbered(*(tables.subjects[name] for name in names)), strict=True)) if names else {}
    if {"real", "holdout"} <= numbers.keys():
        unit, aside = as_units([numbers["real"], numbers["holdout"]])
        options = replace(options, unit=unit, holdout_unit=aside)
    absent = [name for name in ("real", "synthetic") if name not in tables.subjects]
    if absent:
        problem = f"the {absent[0]} table has no column {roles['subject']!r}"
        return replace(options, why={**options.why, "subject": problem})
    both = (numbers["real"], numbers["synthetic"])
    order = roles.get("order")
    if order is None:
        return replace(options, subject=both)
    ordered = tables.tables if tables.values is None else tables.values.tables
    return replace(options, subject=both, order=(ordered["real"].column(order), ordered["synthetic"].column(order)))


def _with_promise(options: Options, tables: Loaded, roles: Mapping[str, str]) -> Options:
    """The options with what the release promises, where attacks act on the very unit that it is about.

    Attacks on subjects that are not the statement's unit have no bound: it speaks of something else.
    """
    release = tables.release
    if release is None:
        return options
    options = replace(options, private=release.private)
    if release.promise is None or release.of is None:
        return options
    if release.of.column is None:
        return options if "subject" in roles else replace(options, promise=release.promise)
    if tables.units is None or roles.get("subject", release.of.column) != release.of.column:
        return options
    return replace(options, unit=tables.units[0], holdout_unit=tables.units[1], promise=release.promise)


def _unplaced(tables: Loaded) -> dict[str, Any]:
    """Per table: how many values of which column lie outside of the schema, or are none of its kind, and which."""
    return {
        name: {
            "outside": {column: n for column, n in report.outside.items() if n},
            "no_value": {column: n for column, n in report.unplaced.items() if n},
            "values": {column: dict(values) for column, values in tables.outside[name].items()},
        }
        for name, report in tables.reports.items()
    }


def _encoded(sources: Mapping[str, Source], schema: Schema, show: Stages, *, subject: str | None = None) -> Loaded:
    """Tables as codes of the schema; their columns are memory maps in the folders of the sources.

    Args:
        subject: a column whose texts are kept, where a table has it.
    """
    tables = Loaded(schema, schema)
    with show.stage("load") as progress:
        for name, source in sources.items():
            _encode(tables, name, source, schema, subject, progress)
            marked = tables.reports[name].marked
            tables.outside[name] = {column: values_outside(source, schema, column) for column in marked}
            show.warn_privately([f"{name}: {line}" for line in unplaced_lines(tables.reports[name])])
    tables.schema, tables.tables = together(schema, tables.tables)
    return tables


def _encode(tables: Loaded, name: str, source: Source, schema: Schema, subject: str | None, report: Progress) -> None:
    texts: list[Any] = []
    further = {}
    if subject is not None and subject in source.names:
        further = {"subject": source.text(source.index(subject, where="evaluation.subject"))}
    tables.tables[name], tables.reports[name] = encode_columns(
        source,
        schema,
        workdir=source.workdir,
        progress=report,
        apart=True,
        further=further,
        on_batch=lambda batch: texts.append(batch.column(batch.num_columns - 1).to_pandas().to_numpy(object)),
    )
    if further:
        tables.subjects[name] = np.concatenate(texts) if texts else np.empty(0, object)


@contextmanager
def encoded(
    tables: Mapping[str, Table], schema: Schema, show: Stages
) -> Iterator[tuple[Schema, dict[str, CodedTable]]]:
    """The tables as codes of the schema, while the block lasts, and the schema of their codes."""
    with opened(tables) as sources:
        both = _encoded(sources, schema, show)
        yield both.schema, both.tables
