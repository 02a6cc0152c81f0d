"""The one scoring: of a run's tables, and of tables that somebody gives, over one schema; NOT private.

And the scores of a card as rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.metric import Options
from evaluation.metrics import ON_TOP, ScoreSpec
from evaluation.pictures.pictures import pictures
from evaluation.score import Scorecard, score_tables
from evaluation.values.value_tables import DAY, Values, as_units, numbered
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.files import Json, JsonDict
from mechanisms.public.progress import Progress
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.codec import encode_columns, together
from mechanisms.public.tables.losses import loss_lines, losses_of
from mechanisms.public.tables.scan import Source
from mechanisms.public.tables.value_summaries import rows_of
from mechanisms.sensitive.contribution import unit_numbers
from mechanisms.sensitive.private_table import PrivateTable
from mechanisms.sensitive.shared_table import shared_truth
from pipeline.run_context import State, present
from pipeline.scores.first_look import FirstLook, first_look
from pipeline.scores.release_beside import facts_of
from pipeline.scores.score_files import write_scores
from pipeline.scores.table_sources import (
    file_facts,
    open_released,
    shared_schema,
    subject_texts,
    units_table_look,
    wants_values,
    with_schema,
)
from pipeline.settings.memory import MOST_CELLS
from pipeline.settings.scoring import affordable, roles_of, with_subjects

#: Fields of `Options`: the privacy unit of each real row, and of each of the holdout, in the same numbers.
UNITS = ("unit", "holdout_unit")


@dataclass(eq=False)
class ScoredTables:
    """A real and a synthetic table as they are scored, and a holdout where there is one.

    Attributes:
        declared: the schema as it was given.
        tables: real, synthetic and holdout, as codes of the schema.
        look: gives what the files of both tables show; it may be waited for.
        schema: as declared, with a code apart in the columns where a table has values that it has no place for.
        options: what was asked for, with what only the rows tell.
        unplaced: per table, how many values of which column the schema does not place, and which.
        notices: what a reader must know first.
        release: what a statement says of the synthetic table, for scores.json.
        keys: figures of columns of ids.
    """

    declared: Schema
    tables: dict[str, CodedTable]
    look: Callable[[], FirstLook]
    schema: Schema
    options: Options
    unplaced: Json = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    release: Json | None = None
    keys: Sequence[Json] = ()

    def add(self, **options: Any) -> None:
        """What only the rows tell: fields of `Options`."""
        self.options = replace(self.options, **options)

    def lack(self, need: str, why: str) -> None:
        """Why something that a metric may need is not there."""
        self.add(why={**self.options.why, need: why})

    def add_subjects(self, subjects: Mapping[str, NDArray[np.object_]], roles: Mapping[str, str]) -> None:
        """The subjects of the rows, whose records stay together, and the order of their events.

        Args:
            subjects: the text of each row's subject, of each table that has the column.
            roles: which column is the subject, and the order.
        """
        if "subject" not in roles:
            return
        names = [name for name in ("real", "synthetic", "holdout") if name in subjects]
        numbers = dict(zip(names, numbered(*(subjects[name] for name in names)), strict=True)) if names else {}
        if {"real", "holdout"} <= numbers.keys() and self.options.unit is None:
            self.add(**dict(zip(UNITS, as_units([numbers["real"], numbers["holdout"]]), strict=True)))
        absent = [name for name in ("real", "synthetic") if name not in subjects]
        if absent:
            self.lack("subject", f"the {absent[0]} table has no column {roles['subject']!r}")
            return
        self.add(subject=(numbers["real"], numbers["synthetic"]))
        if (order := roles.get("order")) is not None:
            self.add(order=(self._places("real", order), self._places("synthetic", order)))

    def _places(self, table: str, order: str) -> NDArray[np.float64]:
        """Where each row lies in the order: its number, days of a date, NaN for none; else its code."""
        values = self.options.values
        if values is None:
            return np.asarray(self.tables[table].column(order), np.float64)
        column, codes = values[order], values.tables[table].column(order)
        if not column.on_a_line:
            return np.asarray(codes, np.float64)
        return np.asarray(column.numbers[codes] / (DAY if column.kind == "date" else 1))

    @property
    def both(self) -> tuple[CodedTable, CodedTable]:
        """The real and the synthetic table."""
        return self.tables["real"], self.tables["synthetic"]

    def score(self, spec: ScoreSpec, progress: Progress | None = None) -> Scorecard:
        """The scores that the spec asks for."""
        card = score_tables(*self.both, self.schema, replace(spec, options=self.options), progress=progress)
        card = replace(card, unplaced=self.unplaced, notices=self.notices, release=self.release)
        return self.look().added_to(card, *self.both)

    def drawings(self, card: Scorecard, places: tuple[str, str] | None) -> JsonDict:
        """What the report draws, under its format's name.

        Args:
            card: of these tables.
            places: columns of longitude and latitude.
        """
        options, look = self.options, self.look()
        numbers = None if look.values is None else (look.names, look.values)
        drawn = pictures(card, self.both, self.schema, options, declared=self.declared, places=places, numbers=numbers)
        for column in drawn.get("densities", ()):
            column |= {"seconds": look.moments[column["column"]]} if column["column"] in look.moments else {}
        return {"format": "figures/1", **drawn}


def over_one_schema(
    schema: Schema, tables: Mapping[str, Any], look: Callable[[], FirstLook], options: Options, **more: Any
) -> ScoredTables:
    """Tables by name, coded with a schema: what it has no place for becomes a code of its own in all of them."""
    joined, coded = together(schema, {name: table for name, table in tables.items() if table is not None})
    whole = coded.pop("whole", None)
    options = replace(options, whole=whole, holdout=coded.get("holdout"))
    return ScoredTables(schema, coded, look, joined, options, **more)


def metric_rows(card: Json) -> list[JsonDict]:
    """Name, goal, score and floor of every metric in a scores.json; a score that is undefined has no row."""
    rows, metrics = [], card.get("metrics", {})
    mgd = card.get("mgd", {})
    if isinstance(mgd, dict):
        rows.append(_row("MGD", "low", mgd, metrics.get("mgd", {})))
    for name, family in card.get("tvd", {}).items():
        if isinstance(family, dict) and "mean" in family:
            references = metrics.get("tvd", {}) if name == "2-way" else {}
            rows.append(_row(f"{name} TVD", "low", {"score": family["mean"]}, references))
    for name, metric in metrics.items():
        if isinstance(metric, dict) and name not in ON_TOP:
            rows.append(_row(str(name), str(metric.get("goal", "low")), metric, metric))
    return [row for row in rows if row["score"] is not None]


def _row(name: str, goal: str, metric: Json, references: Json) -> JsonDict:
    """One metric; its floor was measured, or is what a second sample would score by a formula."""
    floor = (references.get("floor") or references.get("expected") or {}).get("value")
    return {"metric": name, "goal": goal, "score": metric.get("score"), "floor": floor}


ON_CODES = "metrics of values read the schema's codes, in place of the files' values: "


def score_run(state: State, progress: Progress | None = None) -> Scorecard:
    """Score a run's table, of the rows that were not set aside; leaves scores.json, scores.csv and figures.json.

    Where the engine holds more rows than scores may read, what follows from counts takes its counts, and all else a
    sample, but where units were set aside: these are known by reading all rows.
    """
    design, folder, private, source = state.design, state.folder, present(state.private), present(state.source)
    schema, file = design.schema, source
    synthetic = replace(present(state.synthetic), threads=source.threads)
    released = open_released(present(state.table), state.config.limits, folder.temporary)
    whole = None
    if private.aside is None:
        work = folder.temporary / "scored"
        seen = state.engine.scored(source, schema, private.encoding, workdir=work, progress=progress)
        source, whole = (source, None) if seen is None else (seen.sample, seen.whole)
    truth, aside = _truth(private, source, schema, folder.temporary)
    spec = replace(affordable(present(design.scoring), truth.rows), dive=True)
    answers = present(state.taken).measurements
    counted = source if private.aside is None else rows_of(source, ~private.aside, folder.temporary)
    with ThreadPoolExecutor(1) as pool:  # in the context of the run, whose one engine serves both threads
        look = pool.submit(copy_context().run, first_look, counted, released, schema, spec.groups, answers)
        values, notices = _values(private, (source, released), schema, (truth, synthetic, aside), spec)
        notices = (*units_table_look(file, state.config.data.units), *notices)
        whole_units = spec.references or aside is not None
        unit, unit_aside = _unit_of_rows(private, source) if whole_units else (None, None)
        coded = {"real": truth, "synthetic": synthetic, "holdout": aside, "whole": whole}
        tables = over_one_schema(schema, coded, look.result, spec.options, notices=notices)
        stated = facts_of(present(state.statement).to_json())
        tables.add(values=values, unit=unit, holdout_unit=unit_aside, promise=stated.promise, private=stated.private)
        if spec.metrics != ON_TOP:
            _add_subjects(state, tables, private, source, released)
        if tables.options.subject is not None:
            spec = with_subjects(spec, state.config.evaluation.metrics)
        card = tables.score(spec, progress)
    about = file_facts({"real": file, "synthetic": released}, card.rows, f"{schema.name}, in release/schema.yaml")
    if aside is not None:
        about["tables"].append({**about["tables"][0], "table": "set aside", "rows": aside.rows})
    lost = loss_lines(losses_of(private.encoding, schema))
    drawn = tables.drawings(card, design.places) | {"units": _units(private), "lost": lost, "files": about}
    write_scores(folder, card.to_json(), drawn)
    return card


def _add_subjects(state: State, tables: ScoredTables, private: PrivateTable, source: Source, released: Source) -> None:
    """Whose each row is, where the released table has the column that tells it under the name of the real one."""
    roles = roles_of(state.config.evaluation, state.config.data.roles, state.design.schema)  # with its unit
    column = roles.get("subject", private.unit.column)
    if column is None:
        return
    absent = [name for name, table in (("real", source), ("synthetic", released)) if column not in table.names]
    if absent:
        tables.lack("subject", f"the {absent[0]} table has no column {column!r}")
    elif tables.options.whole is not None:
        tables.lack("subject", "a sample of the real rows holds no whole subjects")
    else:
        texts = subject_texts({"real": source, "synthetic": released}, column, private.unit)
        texts["real"] = texts["real"] if private.aside is None else texts["real"][~private.aside]
        tables.add_subjects(texts, {**roles, "subject": column})


def _units(private: PrivateTable) -> JsonDict | None:
    """How many units have how many records; None where a record is a unit."""
    if private.sizes is None:
        return None
    unit = private.unit
    return {"column": unit.column, "max_records": unit.max_records, "clip": unit.clip, "sizes": private.sizes.tolist()}


def _unit_of_rows(private: PrivateTable, source: Source) -> tuple[NDArray[np.int64] | None, NDArray[np.int64] | None]:
    """The unit of each row of the truth, and of those set aside; None where a record is a unit."""
    if private.unit.column is None:
        return None, None
    numbers = unit_numbers(source, private.unit)
    return (numbers, None) if private.aside is None else (numbers[~private.aside], numbers[private.aside])


def _values(
    private: PrivateTable,
    sources: tuple[Source, Source],
    schema: Schema,
    tables: tuple[CodedTable, CodedTable, CodedTable | None],
    spec: ScoreSpec,
) -> tuple[Values | None, tuple[str, ...]]:
    """The rows that counted, the synthetic ones and those set aside as values, as `score` reads them; and what is said.

    None where nothing asks for values, or where they would be too many.

    Args:
        tables: real, synthetic and what was set aside, as codes.
    """
    aside = private.aside
    if aside is None and not wants_values(spec.metrics):
        return None, ()
    real, synthetic = tables[0].rows + (0 if tables[2] is None else tables[2].rows), tables[1].rows
    both = dict(zip(("real", "synthetic"), sources, strict=True))
    if (real + synthetic) * len(schema.columns) > MOST_CELLS:
        return None, (f"{ON_CODES}the tables have more than {MOST_CELLS:,} cells",)
    values = with_schema(both, shared_schema(both, schema)[0], lambda *_: None)
    if values.tables["real"].rows != real or values.tables["synthetic"].rows != synthetic:
        return None, (f"{ON_CODES}the file holds other rows than were counted",)
    return values.set_aside(aside), values.notices


def _truth(
    private: PrivateTable, source: Source, schema: Schema, temporary: Path
) -> tuple[CodedTable, CodedTable | None]:
    """All rows of the table, with all values: those that scores compare with, and those that were set aside."""
    if private.folder is not None:
        return shared_truth(private, source, schema), None
    if (plain := private.as_read(schema)) is not None:
        return plain, None
    whole, _ = encode_columns(source, schema, workdir=temporary / "truth", apart=True)
    return (whole, None) if private.aside is None else whole.parted(private.aside)
