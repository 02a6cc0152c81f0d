"""Any two tables, scored: encoded against one schema, with a holdout and subjects where they are given."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evaluation.metric import Options
from evaluation.score import Scorecard, score_tables
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.errors import UserError
from mechanisms.public.files import write_whole
from mechanisms.public.progress import Progress
from mechanisms.public.schema.table_schema import Schema, load_schema
from mechanisms.public.tables.codec import EncodingReport, encode_columns
from mechanisms.public.tables.inspect_file import shown
from mechanisms.public.tables.out_of_schema import together, values_outside
from mechanisms.public.tables.scan import Source, open_table
from pipeline.frames.frame_files import Table, table_files
from pipeline.report.run_page import render_scores
from pipeline.scores.first_look import first_look
from pipeline.scores.score_run import drawings
from pipeline.settings import build
from pipeline.settings.config import LimitsConfig, ScoreConfig, schema_path
from pipeline.settings.inputs import check_tables
from pipeline.settings.scoring import build_places, build_scores, known_roles, ready_roles
from pipeline.stage_bars import Stages, unplaced_lines


@dataclass(eq=False)
class Loaded:
    """Tables as codes of one schema.

    Attributes:
        schema: with a code apart in the columns where a table has values that the schema has no place for.
        tables: by name.
        reports: what encoding could not take as it was.
        subjects: the text of each row's subject, where the table has the column.
        values: per table and column, the most frequent values that the schema does not place.
        sources: per table its file.
    """

    schema: Schema
    tables: dict[str, CodedTable] = field(default_factory=dict)
    reports: dict[str, EncodingReport] = field(default_factory=dict)
    subjects: dict[str, NDArray[np.object_]] = field(default_factory=dict)
    values: dict[str, dict[str, list[tuple[str, int]]]] = field(default_factory=dict)
    sources: dict[str, Source] = field(default_factory=dict)


def score(config: ScoreConfig, *, quiet: bool = False) -> Scorecard:
    """Score a synthetic table against a real one; the numbers are NOT private. Writes the report, if one is asked for.

    Raises:
        UserError: a table or the schema is missing or does not fit.
    """
    given = check_tables(config)
    if config.evaluation.holdout is not None:
        fix = "holdout=TABLE with real records that were set aside"
        raise UserError("only a run can set units aside", where="evaluation.holdout", fix=fix)
    path = schema_path(config.schema, "schema")
    schema = load_schema(path)
    roles = ready_roles(schema, path)
    if config.metrics is not None:
        config.evaluation.metrics = config.metrics
    spec = build_scores(config.evaluation, schema, roles)
    spec = replace(spec, detail=config.detail, worst=config.worst, top=config.top, dive=config.report is not None)
    show = Stages(quiet=quiet)
    roles_used = known_roles(config.evaluation, roles, schema)
    reading = loaded(
        given, schema, show, delimiter=config.delimiter, limits=config.limits, subject=roles_used.get("subject")
    )
    with reading as tables:
        options = _with_rows(spec.options, tables, roles_used)
        spec = replace(spec, options=options)
        real, synthetic = tables.tables["real"], tables.tables["synthetic"]
        with show.stage("score") as report:
            card = score_tables(real, synthetic, tables.schema, spec, progress=report)
            look = first_look(tables.sources["real"], tables.sources["synthetic"], schema, spec.groups)
            card = look.added_to(replace(card, unplaced=_unplaced(tables)), real, synthetic)
        if config.report:
            with show.stage("report"):
                places = build_places(config.evaluation, roles, schema)
                drawn = drawings(card, real, synthetic, tables.schema, options, places)
                write_whole(Path(config.report), render_scores(schema.name, card.to_json(), drawn), mode=0o600)
    return card


def _with_rows(options: Options, tables: Loaded, roles: Mapping[str, str]) -> Options:
    """The options with what only the rows tell: the holdout, the subjects and their order."""
    if tables.tables["synthetic"].domain != tables.tables["real"].domain:
        return options
    options = replace(options, holdout=tables.tables.get("holdout"))
    if "subject" not in roles:
        return options
    absent = [name for name in ("real", "synthetic") if name not in tables.subjects]
    if absent:
        problem = f"the {absent[0]} table has no column {roles['subject']!r}"
        return replace(options, why={**options.why, "subject": problem})
    real, synthetic = (tables.subjects[name] for name in ("real", "synthetic"))
    codes, _ = pd.factorize(np.concatenate([real, synthetic]), use_na_sentinel=False)
    both = (codes[: len(real)], codes[len(real) :])
    order = roles.get("order")
    if order is None:
        return replace(options, subject=both)
    columns = tuple(tables.tables[name].column(order) for name in ("real", "synthetic"))
    return replace(options, subject=both, order=(columns[0], columns[1]))


def _unplaced(tables: Loaded) -> dict[str, Any]:
    """Per table: how many values of which column lie outside of the schema, or are none of its kind, and which."""
    return {
        name: {
            "outside": {column: n for column, n in report.outside.items() if n},
            "no_value": {column: n for column, n in report.unplaced.items() if n},
            "values": {column: dict(values) for column, values in tables.values[name].items()},
        }
        for name, report in tables.reports.items()
    }


@contextmanager
def loaded(
    given: Mapping[str, Table],
    schema: Schema,
    show: Stages,
    *,
    delimiter: str = ",",
    limits: LimitsConfig | None = None,
    subject: str | None = None,
) -> Iterator[Loaded]:
    """Tables as codes of the schema, while the block lasts; their columns are memory maps in a closed folder.

    Args:
        subject: a column whose texts are kept, where a table has it.
    """
    tables = Loaded(schema)
    with tempfile.TemporaryDirectory(prefix="score-") as folder:  # mode 0700
        with show.stage("load") as report, table_files(given) as paths:
            for name, path in paths.items():
                work = Path(folder) / name
                work.mkdir(mode=0o700)
                source = _opened(path, delimiter, limits or LimitsConfig(), work)
                _load(tables, name, source, schema, work, subject, report)
                tables.sources[name] = source
                marked = tables.reports[name].marked
                tables.values[name] = {column: values_outside(source, schema, column) for column in marked}
                show.warn([f"{name}: {line}" for line in unplaced_lines(tables.reports[name])])
        tables.schema, tables.tables = together(schema, tables.tables)
        yield tables


def _load(
    tables: Loaded, name: str, source: Source, schema: Schema, work: Path, subject: str | None, report: Progress
) -> None:
    texts: list[Any] = []
    if subject is None or subject not in source.names:
        coded = encode_columns(source, schema, workdir=work, progress=report, apart=True)
        tables.tables[name], tables.reports[name] = coded
        return
    tables.tables[name], tables.reports[name] = encode_columns(
        source,
        schema,
        workdir=work,
        progress=report,
        apart=True,
        further={"subject": source.text(source.index(subject, where="evaluation.subject"))},
        on_batch=lambda batch: texts.append(batch.column(batch.num_columns - 1).to_pandas().to_numpy(object)),
    )
    tables.subjects[name] = np.concatenate(texts) if texts else np.empty(0, object)


@contextmanager
def encoded(
    tables: Mapping[str, Table], schema: Schema, show: Stages
) -> Iterator[tuple[Schema, dict[str, CodedTable]]]:
    """The tables of `loaded`, and the schema of their codes."""
    with loaded(tables, schema, show) as both:
        yield both.schema, both.tables


def _opened(path: Path, delimiter: str, limits: LimitsConfig, workdir: Path) -> Source:
    """As `open_with`; a release has commas, whatever stands between the cells of the real table."""
    try:
        return open_with(path, delimiter, limits, workdir)
    except UserError as error:
        if error.fix != f"delimiter={shown(',')}":
            raise
        return open_with(path, ",", limits, workdir)


def open_with(path: Path, delimiter: str, limits: LimitsConfig, workdir: Path, *, setting: str = "delimiter") -> Source:
    """A table's file, within the limits of the settings."""
    return open_table(
        path.expanduser(),
        delimiter=delimiter,
        workdir=workdir,
        memory_limit_bytes=build.memory_limit_bytes(limits.memory_gb) // 2,
        threads=build.threads(limits.threads),
        setting=setting,
    )
