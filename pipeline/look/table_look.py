"""`check`: what a schema would do to a table, column by column; reads the rows, spends and releases nothing."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.discovery.found_columns import scouting_schema
from mechanisms.public.progress import Progress
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.codec import EncodingReport, encode_columns
from mechanisms.public.tables.doubts import TOTALS, cut_short, totals
from mechanisms.public.tables.encode import OUTSIDE, UNPLACED, by_column, read_sql
from mechanisms.public.tables.engine_instances import shared_engine
from mechanisms.public.tables.losses import ColumnLoss, beyond, declared_texts, fate, loss_of
from mechanisms.public.tables.out_of_schema import values_outside
from mechanisms.public.tables.persons import said_persons
from mechanisms.public.tables.scan import Source, literal
from mechanisms.public.tables.text_forms import CODES_OF_GAPS, ID_NAME, may_be_id
from mechanisms.sensitive.contribution import PrivacyUnit
from mechanisms.sensitive.private_table import EMBEDDED, lone_texts, readings_of_ids
from pipeline.look.column_look import (
    ONE_SIDED,
    ColumnLook,
    Seen,
    cures_of_lost,
    far_bounds,
    hints_on_values,
    lone_hint,
    moved,
    unlisted_hint,
)
from pipeline.look.reading_look import (
    found_apart,
    frequent_texts,
    gaps_among_numbers,
    joined_cells,
    other_words,
    read_wrongly,
    shapes_of,
)
from pipeline.look.relation_look import broken, conflicts, kept_without_a_rule, one_to_one
from pipeline.look.unit_look import LossBar, units_look
from pipeline.scores.table_sources import joined, local, open_records, units_table_look
from pipeline.settings.config import CheckConfig
from pipeline.settings.specs import (
    IDS_MEASURED,
    RECORD,
    asks_for_records,
    build_unit,
    check_settings,
    check_unit,
    declared_schema,
    settled_privacy,
)
from pipeline.stage_bars import Stages

#: Said of columns in `leave_out` that the look did not meet.
NOT_READ = "in leave_out, and no column of what was read (misspelt, or left out of a frame by fit)"
#: Lost values that are looked at, and that are shown.
LOOKED_AT, SHOWN = 1000, 3


@dataclass(frozen=True)
class TableLook:
    """A table under a schema. NOT private.

    Attributes:
        columns: in the order of the schema.
        warnings: about the table as a whole: rules that rows break.
        hints: other things about it.
        at_most: the share of its values that a column may lose before a run is refused.
    """

    rows: int
    names: tuple[str, ...]
    columns: tuple[ColumnLook, ...]
    warnings: tuple[str, ...]
    hints: tuple[str, ...]
    at_most: float

    @property
    def too_many(self) -> tuple[ColumnLoss, ...]:
        """Columns that lose more than that."""
        return beyond([c.loss for c in self.columns], self.at_most)

    @property
    def warned(self) -> list[str]:
        """All warnings, a line each."""
        return [*(f"column {c.name!r}: {line}" for c in self.columns for line in c.warnings), *self.warnings]


def check(config: CheckConfig) -> TableLook:
    """The look that a command line asks for.

    Raises:
        UserError: a mistake of the settings, the schema or the file.
    """
    schema = declared_schema(config.data)
    schema = replace(schema, confirmed_public=schema.confirmed_public or config.data.confirmed_public)
    privacy = settled_privacy(config.privacy, config.data, schema.rules.unit)
    bound = None if asks_for_records(privacy) else privacy.max_records or config.data.max_records
    privacy = privacy if privacy.unit == RECORD else replace(privacy, max_records=bound or 1)
    unit = build_unit(privacy, config.data)
    check_settings(config, unit, schema)
    # mode 0700
    with tempfile.TemporaryDirectory(prefix="check-") as folder, shared_engine(Path(folder) / "engine"):
        work = Path(folder)
        data = local(config.data, config.limits, work, promised=True)
        records = open_records(data, schema, config.limits, work)
        check_unit(unit, records.names)
        source = joined(records, data.units, unit, config.limits)
        bar = LossBar(config.data.max_unplaced, bound is not None)
        with Stages().stage("look") as report:
            look = look_at(source, schema, unit, bar=bar, workdir=work, progress=report)
        return replace(look, hints=(*look.hints, *units_table_look(source, data.units)))


def look_at(
    source: Source,
    schema: Schema,
    unit: PrivacyUnit,
    *,
    bar: LossBar,
    read: tuple[CodedTable, EncodingReport] | None = None,
    workdir: Path,
    progress: Progress | None = None,
) -> TableLook:
    """What encoding does, from the codes that a run makes, and what some of the lost values look like.

    Guarantee: none; it is for the operator alone.
    Args:
        read: all rows under the schema, and what encoding them could not take, where they are encoded already.
        workdir: for copies of the rows, as texts and as codes; a folder with mode 0700.

    Raises:
        UserError: as of a run: a malformed file, a column that the table has not.
    """
    source = by_column(source, workdir)
    schema = scouting_schema(schema) if schema.to_discover else schema
    total = replace(schema, columns=tuple(_total(c) for c in schema.columns))
    coded, report = read or encode_columns(source, total, workdir=workdir, progress=progress)
    if read is None:
        values = partial(EMBEDDED.values, key=b"", aside=None, workdir=workdir)
        most, readings = 1 if unit.column is None else report.rows, partial(readings_of_ids, source, unit)
        report = lone_texts(total, unit, report, largest=most, readings=readings, values=values)
    seen = _seen(source, schema)
    encoded, at_most = (coded, report), bar.at_most
    with ThreadPoolExecutor(1) as pool:
        of_units = pool.submit(copy_context().run, units_look, source, schema, unit, seen, coded, bar)
        columns = tuple(_column(source, total, c, encoded, seen[c.name], unit.column, at_most) for c in total.held)
        units, warned = of_units.result()
    hints = (*one_to_one(total, coded), *kept_without_a_rule(source, schema, coded), *_unlisted(source, schema), *units)
    hints += (*conflicts(source, coded, schema, workdir),)
    of_totals = ((name, totals(own.totals)) for name, own in seen.items())
    warned = [*broken(source, schema, coded), *(f"column {n!r}: {said}" for n, said in of_totals if said), *warned]
    return TableLook(report.rows, source.names, columns, tuple(warned), hints, at_most)


def _total(column: Column) -> Column:
    """The column without a refusal: a look goes on, and counts."""
    if column.outside != "refuse":
        return column
    return replace(column, outside="clip" if column.gridded or column.missing_code is None else "missing")


def _column(
    source: Source,
    schema: Schema,
    column: Column,
    encoded: tuple[CodedTable, EncodingReport],
    seen: Seen,
    unit: str | None,
    at_most: float,
) -> ColumnLook:
    coded, report = encoded
    outside = report.outside[column.name]
    loss = loss_of(column, report)
    counts = np.bincount(np.asarray(coded.column(column.name)), minlength=column.size).astype(np.int64)
    missing = 0 if column.missing_code is None else int(counts[column.missing_code])
    if column.missing_code is not None and fate(column) == "become missing":
        missing -= loss.unread
    if column.gridded and column.outside == "missing":
        missing -= outside
    other = 0 if column.other_code is None else int(counts[column.other_code])
    examples: list[tuple[str, int]] = []
    warnings = [f"it {IDS_MEASURED}; leave_out: [{unit}]"] if column.name == unit else []
    warnings += _persons_released(source, column, seen, report.rows, unit)
    warnings += read_wrongly(source, column, seen, report)
    if column.discover is None and outside > at_most * max(report.rows - missing, 1) and other:
        examples = values_outside(source, schema, column.name, most=LOOKED_AT, mark=OUTSIDE, spread=True)
        warnings += unlisted_hint(column, dict(examples), other / report.rows)
    if column.discover is None:
        warnings += far_bounds(column, seen) + gaps_among_numbers(source, column, counts, seen)
    if column.values:
        warnings += cut_short(dict(zip(column.values, counts.tolist(), strict=False)), column.name, names=False)
    hints = lone_hint(report.lone.get(column.name, 0), unit)
    hints += other_words(source, column) if column.kind == "flag" else joined_cells(source, schema, column)
    if loss.lost:
        mark = UNPLACED if column.gridded and loss.unread else OUTSIDE
        examples = values_outside(source, schema, column.name, most=LOOKED_AT, mark=mark, spread=True)
        unread = replace(loss, lost=loss.unread, clipped=0)
        shapes = shapes_of(source, column) if unread.lost and column.numeric and column.width is None else {}
        cures = cures_of_lost(column, dict(examples), unread, shapes) if unread.lost else []
        warnings += [cure for cure in cures if ONE_SIDED in cure]
        hints += [cure for cure in cures if cure not in warnings]
    if column.discover is None:
        hints += hints_on_values(column, counts, seen, report.rows, loss.lost)
    else:
        other = 0 if column.discover.values else other  # the list is not known yet
        hints.append(f"{' and '.join(column.discover.what)}: a run discovers them with noise")
        warnings += found_apart(source, column) if column.discover.values else []
    return ColumnLook(
        column.name,
        "constant" if column.constant else "zip" if column.width is not None else column.kind,
        loss,
        outside if column.gridded else 0,
        moved(column),
        other,
        missing,
        report.lone.get(column.name, 0),
        tuple(examples[:SHOWN]),
        tuple(warnings),
        tuple(hints),
    )


def _persons_released(source: Source, column: Column, seen: Seen, rows: int, unit: str | None) -> list[str]:
    """That names or addresses of persons are listed, or would be found; or ids, where a row is the unit.

    Those of persons with many rows would be released.
    """
    to_find = column.discover is not None and column.discover.values
    each = {"frequent": frequent_texts(source, column) if to_find else [], "listed": declared_texts(column)}
    for which, texts in each.items():
        if said := said_persons(column.name, texts, which):
            return [f"{said}; leave_out: [{column.name}]"]
    asked = unit is None and to_find
    if not asked or not (ID_NAME.search(column.name) or may_be_id(column.name, seen.distinct, rows)):
        return []
    ids = f"about {seen.distinct:,} values in {rows:,} rows: does it name persons? Each row is protected alone, so that"
    return [f"{ids} a value of many rows, which may be one person's, is released as it is: leave_out, or privacy.unit"]


def _seen(source: Source, schema: Schema) -> dict[str, Seen]:
    """Of every column distinct values, texts of totals, and codes of gaps among its numbers, in one pass."""
    codes = ", ".join(f"{c}::DOUBLE" for c in CODES_OF_GAPS)
    parts = []
    for index, name in enumerate(source.names):
        text, named = source.text(index), source.types[index] in {"VARCHAR", "BLOB"}
        total = f"histogram({text}) FILTER (regexp_full_match(lower(trim({text})), {literal(TOTALS)}))"
        parts += [f"approx_count_distinct({text})", total if named else "NULL"]
        column = schema[name] if name in schema.domain.names else None
        if column is None or column.kind not in {"integer", "float"}:
            parts += ["NULL"] * 4
            continue
        number = read_sql(source, index, column)
        gaps = ", ".join(map(literal, ("", *column.missing_texts)))
        inside = f"FILTER (isfinite({number}) AND {number} NOT IN ({codes}) AND {text} NOT IN ({gaps}))"
        parts += [f"min({number}) {inside}", f"max({number}) {inside}", f"quantile_cont(abs({number}), 0.99) {inside}"]
        parts.append(f"histogram({number}) FILTER ({number} IN ({codes}))")
    row = source.lines(f"SELECT {', '.join(parts)} FROM {source.relation}")[0]
    each = {name: row[6 * i : 6 * i + 6] for i, name in enumerate(source.names)}
    return {
        n: Seen(low, high, codes=gaps or {}, distinct=int(distinct or 0), totals=of_totals or {}, most=most)
        for n, (distinct, of_totals, low, high, most, gaps) in each.items()
    }


def _unlisted(source: Source, schema: Schema) -> list[str]:
    named, hints = {*(c.name for c in schema.held), *schema.leave_out, schema.rules.id_column}, []
    if neither := [n for n in source.names if n not in named]:
        hints.append(f"in neither columns nor leave_out, and not released: {', '.join(map(repr, neither))}")
    if left := [n for n in schema.leave_out if n in source.names]:
        hints.append(f"left out by the schema, and not released: {', '.join(map(repr, left))}")
    if absent := [n for n in schema.leave_out if n not in source.names]:
        hints.append(f"{NOT_READ}: {', '.join(map(repr, absent))}")
    if not schema.confirmed_public:
        hints.append("nobody has confirmed that this schema is public (confirmed_public): no release will be private")
    return hints
