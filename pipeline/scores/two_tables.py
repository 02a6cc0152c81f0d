"""Any two tables, scored: over one schema or as they are, with a holdout and subjects where they are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evaluation.metrics import ScoreSpec
from evaluation.score import Scorecard
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.files import Json, write_whole
from mechanisms.public.progress import Progress
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.codec import encode_columns, values_outside
from mechanisms.public.tables.scan import Source
from mechanisms.sensitive.contribution import PrivacyUnit
from pipeline.scores.first_look import first_look, value_look
from pipeline.scores.release_beside import ReleaseFacts, release_beside, schema_of, units_of, with_own_schema
from pipeline.scores.scored_tables import UNITS, ScoredTables, over_one_schema
from pipeline.scores.table_sources import (
    declared_dialect,
    file_facts,
    opened,
    scored_whole,
    shared_schema,
    subject_texts,
    units_table_look,
    with_schema,
    without_schema,
)
from pipeline.settings.config import ScoreConfig, schema_path
from pipeline.settings.inputs import check_tables
from pipeline.settings.read_where import check_read, check_tables_read
from pipeline.settings.scoring import build_places, build_scores, ready_roles, roles_of, with_subjects
from pipeline.stage_bars import Stages, unplaced_lines

#: The tables to score, the text of each row's subject where a table has the column, what to score, and the roles.
Read = tuple[ScoredTables, Mapping[str, NDArray[np.object_]], ScoreSpec, Mapping[str, str]]


def score(config: ScoreConfig, *, quiet: bool = False) -> Scorecard:
    """Score a synthetic table against a real one; the numbers are NOT private. Writes the report, if one is asked for.

    Without a schema, a release's own is taken; where there is none, the kinds of the columns are read from the tables.

    Raises:
        UserError: a table or the schema is missing or does not fit.
    """
    given = check_tables(config)
    config, own = with_own_schema(config, [given["synthetic"]])
    whole = None if config.schema is None else schema_of(schema_path(config.schema, "schema"))
    check_read(config, whole)
    if config.metrics is not None:
        config.evaluation.metrics = config.metrics
    show = Stages(quiet=quiet, console="always")
    written = declared_dialect(config) if (config.delimiter, config.encoding) != (None, None) else None
    with opened(given, declared=written, limits=config.limits) as files:
        check_tables_read(config, files)
        sources = scored_whole(files, config, None if whole is None else whole.rules.unit)
        release, stated = release_beside(Path(sources["synthetic"].path))
        both = release is not None and all(release.of.column in sources[n].names for n in ("real", "synthetic"))
        read = _as_they_are if config.schema is None else _with_schema
        tables, subjects, spec, roles = read(config, sources, release.of if release and both else None, show)
        show.warn_privately(list(tables.notices))
        tables.add_subjects(subjects, roles)
        if tables.options.subject is not None:
            spec = with_subjects(spec, config.evaluation.metrics)
        fits = [
            line for name, s in sources.items() if name != "synthetic" for line in units_table_look(s, config.units)
        ]
        tables.notices = (*([stated] if stated else []), *fits, *tables.notices)
        if release is not None:
            _add_release(tables, release, sources, roles)
        spec = replace(spec, detail=config.detail, worst=config.worst, top=config.top, dive=config.report is not None)
        with show.stage("score") as progress:
            card = tables.score(spec, progress)
        if config.report:
            with show.stage("report"):
                _write_report(config, Path(config.report), sources, tables, card, roles)
    return replace(card, notices=(*card.notices, own)) if own else card


def _with_schema(config: ScoreConfig, sources: Mapping[str, Source], unit: PrivacyUnit | None, show: Stages) -> Read:
    path = schema_path(config.schema, "schema")
    whole = schema_of(path)
    schema, notices = shared_schema(sources, whole)
    roles = ready_roles(whole, path)
    spec = build_scores(config.evaluation, schema, roles, report=_for_report(config))
    used = ({"subject": str(unit.column)} if unit else {}) | roles_of(config.evaluation, roles, schema)
    with show.stage("load") as progress:
        coded = {name: _encode(name, s, schema, show, progress) for name, s in sources.items()}
        subjects = subject_texts(sources, used.get("subject"), unit)
    with show.stage("values") as progress:
        values = with_schema(sources, schema, progress)
    with show.stage("look"):
        look = first_look(sources["real"], sources["synthetic"], schema, spec.groups)
    more = {"unplaced": {name: lost for name, (_, lost) in coded.items()}, "notices": (*notices, *values.notices)}
    codes = {name: table for name, (table, _) in coded.items()}
    tables = over_one_schema(schema, codes, lambda: look, replace(spec.options, values=values), **more)
    return tables, subjects, spec, used


def _as_they_are(config: ScoreConfig, sources: Mapping[str, Source], unit: PrivacyUnit | None, show: Stages) -> Read:
    name = Path(sources["real"].path).name.split(".")[0]
    subject = config.evaluation.subject
    with show.stage("load") as progress:
        subjects = subject_texts(sources, subject, unit)
        values, schema, coded, keys = without_schema(sources, name, progress, subject=subject)
        spec = build_scores(config.evaluation, schema, report=_for_report(config))
        look = value_look(values, schema, [coded[n] for n in ("real", "synthetic")], spec.groups)
    more = {"notices": values.notices, "keys": keys}
    tables = over_one_schema(schema, coded, lambda: look, replace(spec.options, values=values), **more)
    return tables, subjects, spec, roles_of(config.evaluation, None, schema)


def _for_report(config: ScoreConfig) -> tuple[str, ...] | None:
    """What the tables meet of the needs of those metrics that a report adds; None without a report."""
    if config.report is None:
        return None
    return () if config.holdout is None else ("holdout",)


def _write_report(
    config: ScoreConfig,
    path: Path,
    sources: Mapping[str, Source],
    tables: ScoredTables,
    card: Scorecard,
    roles: Mapping[str, str],
) -> None:
    from pipeline.report.run_page import render_scores  # slow to import

    drawn = tables.drawings(card, build_places(config.evaluation, roles, tables.schema))
    drawn |= {"keys": list(tables.keys)} if tables.keys else {}
    schema = config.schema and Path(config.schema).name
    drawn |= {"files": file_facts(sources, {n: t.rows for n, t in tables.tables.items()}, schema)}
    write_whole(path, render_scores(tables.schema.name, card.to_json(), drawn), mode=0o600)


def _add_release(
    tables: ScoredTables, release: ReleaseFacts, sources: Mapping[str, Source], roles: Mapping[str, str]
) -> None:
    """What the release says of itself, and what it promises where attacks act on the very unit that it is about.

    Attacks on subjects that are not the statement's unit have no bound: it speaks of something else.
    """
    tables.release = release.to_json()
    tables.add(private=release.private)
    if release.aside and "holdout" not in sources:
        line = f"the release was made without a share {release.aside:g} of the units (evaluation.holdout)"
        tables.notices = (*tables.notices, f"{line}: where the real rows hold these too, it has fewer rows than they")
    if release.promise is None:
        return
    column, held = release.of.column, sources.get("holdout")
    if column is None:
        tables.add(promise=None if "subject" in roles else release.promise)
    elif held is not None and roles.get("subject", column) == column:
        units = units_of(release, [sources["real"], held])
        if units is not None:
            tables.add(**dict(zip(UNITS, units, strict=True)), promise=release.promise)
    if tables.options.promise is not None and held is not None:
        line = "what ε allows an attack is for a holdout whose units were left out by a coin of their own each"
        tables.notices = (*tables.notices, line)


def _encode(name: str, source: Source, schema: Schema, show: Stages, report: Progress) -> tuple[CodedTable, Json]:
    """A table as codes of the schema, and what the schema does not place of it.

    The columns are memory maps in the folder of the source.
    """
    table, losses = encode_columns(source, schema, workdir=source.workdir, progress=report, apart=True)
    show.warn_privately([f"{name}: {line}" for line in unplaced_lines(losses)])
    unplaced = {
        "outside": {column: n for column, n in losses.outside.items() if n},
        "no_value": {column: n for column, n in losses.unplaced.items() if n},
        "values": {column: dict(values_outside(source, schema, column)) for column in losses.marked},
    }
    return table, unplaced
