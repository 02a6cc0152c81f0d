"""`check`: what a schema would do to a table, column by column; reads the rows, spends and releases nothing."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.discovery.discovered_columns import scouting_schema
from mechanisms.public.drafts.column_facts import Look, looks
from mechanisms.public.drafts.seen import FEWEST_UNITS, ColumnFacts
from mechanisms.public.drafts.unit_guess import odd_rows
from mechanisms.public.progress import Progress
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.codec import EncodingReport, encode_columns, values_outside
from mechanisms.public.tables.doubts import cut_short
from mechanisms.public.tables.encode import OUTSIDE, UNPLACED, by_column
from mechanisms.public.tables.engine_instances import shared_engine
from mechanisms.public.tables.losses import ColumnLoss, beyond, fate, loss_of
from mechanisms.public.tables.scan import Source
from mechanisms.sensitive.contribution import PrivacyUnit, UnitRows
from mechanisms.sensitive.private_table import lone_texts
from pipeline.look.bin_look import codes_between, ends_of_few, limits_above, spikes
from pipeline.look.column_look import (
    ONE_SIDED,
    ColumnLook,
    cures_of_lost,
    hints_on_values,
    lone_hint,
    moved,
    persons_released,
    unlisted_hint,
)
from pipeline.look.reading_look import (
    differ_in_case,
    far_bounds,
    gaps_among_numbers,
    held_alone,
    joined_cells,
    other_words,
    read_wrongly,
)
from pipeline.look.relation_look import broken, conflicts, one_to_one, unruled_relations
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
#: A column of which a larger share cannot be read says nothing of when it is empty.
UNREAD = 0.01


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
        """Columns that lose more than that, of those that a run reads."""
        return beyond([c.loss for c in self.columns if c.read], self.at_most)

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
        most = 1 if unit.column is None else report.rows
        report = lone_texts(total, UnitRows(source, unit, workdir), report, largest=most)
    once = schema.rules.unit.constant if schema.rules.unit else ()  # of these no fine cells are asked
    held = {c.name: replace(c, fine=0) if c.name in once else c for c in total.held}
    seen = dict[str, ColumnFacts]()
    of_columns, of_totals, gaps = dict[str, ColumnLook](), list[str](), {n: c.missing_texts for n, c in held.items()}
    with source.connect() as engine, ThreadPoolExecutor(1) as pool:  # in the context of the engine that both use
        relations = pool.submit(copy_context().run, _relations, source, schema, total, (coded, report), workdir)
        for look, index in looks(source, engine, gaps=gaps):
            name = source.names[index]
            of_totals += [f"column {name!r}: {remark}" for remark in look.of_totals(index)]
            column, seen[name] = held.get(name), look.facts[index]
            if column is not None:
                seen[name] = look.under(index, column)
                of_columns[name] = _column(look, total, column, (coded, report), seen[name], unit.column, bar.at_most)
    units, warned = units_look(source, schema, unit, seen, coded, bar)
    related, against, odd = relations.result()
    hints = (*related, *_unlisted(source, schema), *units, *against)
    columns = tuple(of_columns[name] for name in held)
    return TableLook(report.rows, source.names, columns, (*odd, *of_totals, *warned), hints, bar.at_most)


def _relations(
    source: Source, schema: Schema, total: Schema, encoded: tuple[CodedTable, EncodingReport], workdir: Path
) -> tuple[list[str], list[str], list[str]]:
    """Hints on relations without a rule, on what contradicts rules, and warnings of rows that are no rows."""
    coded, report = encoded
    unread = {name for name, lost in report.unplaced.items() if lost > UNREAD * report.rows}
    related = [*one_to_one(total, coded), *unruled_relations(source, schema, coded, unread)]
    against = [*conflicts(source, coded, schema, workdir)]
    return related, against, [*broken(source, schema, coded), *odd_rows(source)]


def _total(column: Column) -> Column:
    """The column without a refusal: a look goes on, and counts."""
    if column.outside != "refuse":
        return column
    return replace(column, outside="clip" if column.gridded or column.missing_code is None else "missing")


def _column(
    look: Look,
    schema: Schema,
    column: Column,
    encoded: tuple[CodedTable, EncodingReport],
    facts: ColumnFacts,
    unit: str | None,
    at_most: float,
) -> ColumnLook:
    source, index, (coded, report) = look.source, look.source.names.index(column.name), encoded
    to_find = column.discover is not None and column.discover.values
    frequent = [t for t, n in look.trimmed(index).items() if n >= FEWEST_UNITS] if to_find else []
    outside, loss = report.outside[column.name], loss_of(column, report)
    counts = np.bincount(np.asarray(coded.column(column.name)), minlength=column.size).astype(np.int64)
    missing = 0 if column.missing_code is None else int(counts[column.missing_code])
    if column.missing_code is not None and fate(column) == "become missing":
        missing -= loss.unread
    if column.gridded and column.outside == "missing":
        missing -= outside
    other = 0 if column.other_code is None else int(counts[column.other_code])
    examples: list[tuple[str, int]] = []
    warnings = [f"it {IDS_MEASURED}; leave_out: [{unit}]"] if column.name == unit else []
    warnings += persons_released(column, facts, frequent, unit) + ends_of_few(look, index, column, facts)
    warnings += read_wrongly(look, column, facts, report) + limits_above(column, look.sample(index))
    if column.discover is None and outside > at_most * max(report.rows - missing, 1) and other:
        examples = values_outside(source, schema, column.name, most=LOOKED_AT, mark=OUTSIDE, spread=True)
        warnings += unlisted_hint(column, dict(examples), other / report.rows)
    if column.discover is None:
        warnings += far_bounds(source, column) + gaps_among_numbers(source, column, counts, facts.plain, unit)
    if column.values:
        warnings += cut_short(dict(zip(column.values, counts.tolist(), strict=False)), column.name, names=False)
    hints = lone_hint(report.lone.get(column.name, 0), unit) + codes_between(schema, column, counts)
    hints += other_words(column, look.trimmed(index)) if column.kind == "flag" else joined_cells(source, schema, column)
    if loss.lost:
        mark = UNPLACED if column.gridded and loss.unread else OUTSIDE
        examples = values_outside(source, schema, column.name, most=LOOKED_AT, mark=mark, spread=True)
        unread, alone = replace(loss, lost=loss.unread, clipped=0), held_alone(source, column, dict(examples), unit)
        shapes = look.shapes(index) if unread.lost and column.numeric and column.width is None else {}
        cures = cures_of_lost(column, dict(examples), unread, shapes, alone) if unread.lost else []
        warnings += [cure for cure in cures if ONE_SIDED in cure]
        hints += [cure for cure in cures if cure not in warnings]
    if column.discover is None:
        hints += hints_on_values(column, counts, facts, loss.lost) + spikes(column, facts.plain)
    else:
        other = 0 if column.discover.values else other  # the list is not known yet
        hints.append(f"{' and '.join(column.discover.what)}: a run discovers them with noise")
        warnings += differ_in_case(frequent)
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
        read=column.name not in {step.target for step in schema.rules.computed},
    )


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
