"""Synthetic rows from what crossed the wall: all, or those that satisfy a condition; linked, in the order written."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from mechanisms.public.arrays import Floats, Ints
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.errors import UserError, require_columns
from mechanisms.public.files import Json, JsonDict
from mechanisms.public.progress import Progress
from mechanisms.public.release import Measurements
from mechanisms.public.schema.table_schema import Schema, as_a_column
from mechanisms.public.tables.decode import Owned, with_units
from pipeline.inference.conditions import asked_ranges, code_weights, left_out
from pipeline.inference.marginal_estimates import count_estimate
from pipeline.inference.ratio_intervals import errors_of_interval
from pipeline.release_folder import NewRows
from pipeline.settings.memory import no_room
from pipeline.stage_bars import Stages
from synthesis.consistency.agree import default_rows
from synthesis.contract import RowModel, Synthesizer, rows_of_model, synthesize
from synthesis.given_rows import POOL, GivenRows, Wish, rows_given
from synthesis.impossible import check_condition
from synthesis.numbers.value_shapes import as_columns, as_written, for_synthesis


@dataclass(frozen=True, eq=False)
class Condition:
    """What rows shall satisfy, all of it.

    Attributes:
        asked: column → a value, a list of values, or [low, high], as JSON values.
        weights: column → how much of each of its codes satisfies it, by the schema of the release.
        drawn_by: the schema by which values are drawn inside bins that the condition cuts.
    """

    schema: Schema
    asked: Json
    weights: Mapping[str, Floats]
    drawn_by: Schema

    @property
    def of_persons(self) -> bool:
        """Whether it asks for what is constant in a person, which is written when records are linked."""
        unit = self.schema.rules.unit
        return unit is not None and any(name in unit.constant for name in self.weights)


def build_condition(schema: Schema, where: Json | None) -> Condition | None:
    """The condition; None where nothing is asked.

    Raises:
        UserError: an unknown column or value; what a rule forbids; a range that holds nothing, or that cuts a bin of
            columns that the schema orders, whose values are exchanged inside a bin.
    """
    if not where:
        return None
    require_columns(where, schema.domain.names, where="where", of="")
    for name in where:
        if name in {s.target for s in schema.rules.computed}:
            fix = f"conditions on {', '.join(schema.rules.sources(name))}; or more rows, of which you keep those"
            raise UserError(f"{name!r} is computed after rows are drawn, by derive", where="where", fix=fix)
    weights = {name: code_weights(schema, name, value) for name, value in where.items()}
    # before a model is fitted; `rows_given` also knows what the schema's steps rule out, but no rule of persons
    check_condition(schema.domain, schema.rules.zeros, weights)
    columns = list(schema.columns)
    for name, weight in weights.items():
        cut = (weight > 0) & (weight < 1)
        if not cut.any():
            continue
        if any(name in group.columns for group in schema.rules.ordered):
            fix = f"whole bins, also by their names; this cuts {schema[name].labels[int(np.flatnonzero(cut)[0])]!r}"
            raise UserError(f"the schema orders the values of {name!r} inside its bins", where="where", fix=fix)
        place = schema.domain.index(name)
        ranges = asked_ranges(schema[name], where[name], name)
        columns[place] = replace(columns[place], within=None if ranges is None else tuple(ranges))
    asked = {name: _plain(value) for name, value in where.items()}
    return Condition(schema, asked, weights, replace(schema, columns=tuple(columns)))


def _satisfying(owned: Owned, condition: Condition, rng: np.random.Generator) -> Ints:
    """The places of linked rows that satisfy the condition; of a bin that it cuts as many as its part of the bin holds.

    What is constant in a person is decided once for all of its records.
    """
    schema, coded = condition.schema, owned.coded
    constant = () if schema.rules.unit is None else schema.rules.unit.constant
    if owned.ids is None:
        fix = "conditions on other columns; the run was charged for them, and they were lost"
        raise UserError("there are no answers about persons", where="where", fix=fix)
    of_row, of_person = np.ones(coded.rows), np.ones(coded.rows)
    for name, weights in condition.weights.items():
        codes, values = np.asarray(coded.column(name)), owned.values.get(name)
        ranges = None if values is None else asked_ranges(schema[name], condition.asked[name], name)
        chances = weights[codes]
        if ranges is not None and values is not None:  # its values are drawn already
            inside = np.any([(low <= values) & (values <= high) for low, high in ranges], axis=0)
            chances = np.where(codes < schema[name].value_codes, inside, chances)
        (of_person if name in constant else of_row)[:] *= chances
    coins = rng.random(int(owned.ids.max(initial=0)) + 1)[owned.ids]
    return np.flatnonzero((rng.random(coded.rows) < of_row) & (coins < of_person))


def facts_of(condition: Condition, rows: GivenRows) -> JsonDict:
    """What the manifest of a conditioned table says."""
    how = "drawn from the conditioned model, exact for it" if rows.exact else "chosen among synthetic rows by weight"
    return {"where": dict(condition.asked), "rows": how, "effective_rows": round(rows.effective, 1)}


def _plain(value: Any) -> Any:
    """The value in JSON's types: dates and times as texts."""
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


#: Among so many rows of persons rare ones are looked for, or so many times those of a release, or those asked for.
LINKED, TIMES = 200_000, 4
#: What the manifest says of rows that were chosen by what is constant in their persons.
OF_PERSONS = "the records that satisfy it, of whole synthetic persons; effective_rows counts the persons"


def linked(coded: CodedTable, written: Schema, rng: np.random.Generator, show: Stages) -> Owned:
    """Rows in the order in which they are written; linking them into persons is a stage of its own.

    Args:
        coded: rows of the table's columns (see `undo`).
        written: of `as_written`.
    """
    if written.rules.arranged is None:
        return with_units(coded, written, rng)
    with show.stage("link") as report:
        owned = with_units(coded, written, rng, report)
    show.warn(owned.notes)
    return owned


@dataclass(frozen=True, eq=False)
class RowMaker:
    """What makes new rows of a release.

    Guarantee: post-processing; costs no privacy.
    Attributes:
        model: `synthesizer.model(…)`, where it is fitted already; None: rows are made from the measurements.
    """

    schema: Schema
    measurements: Measurements
    synthesizer: Synthesizer
    rng: np.random.Generator
    show: Stages = field(default_factory=lambda: Stages(quiet=True))
    model: RowModel | None = None

    def draw(self, rows: int | None, condition: Condition | None = None) -> NewRows:
        """New rows, which keep to the rules of the schema.

        Args:
            rows: how many; None: as many as the noisy answers say.
        Raises:
            UserError: no row, or hardly any, satisfies the condition.
        """
        if condition is not None and condition.of_persons:
            return self._of_persons(condition, rows)
        facts, drawn_by = None, self.schema
        if self.model is None:
            fixed = [c for c, _ in self.schema.zeros]
            self.show.warn(no_room(self.synthesizer, for_synthesis(self.measurements, self.schema), fixed))
        with self.show.stage("synthesize") as report:
            if condition is None:
                coded = self._coded(rows, report)
            else:
                chosen = self._given(condition, rows, report)
                coded, facts, drawn_by = chosen.table, facts_of(condition, chosen), condition.drawn_by
        written = as_written(drawn_by, self.measurements)
        return NewRows(linked(coded, written, self.rng, self.show), written, self.rng, rows, facts)

    def notes(self, condition: Condition | None) -> list[str]:
        """What a condition leaves out although a reader may think that it holds it; that nobody may satisfy it."""
        if condition is None:
            return []
        notes = [note for name, value in condition.asked.items() for note in left_out(self.schema[name], value)]
        of_records = condition.weights if condition.weights.keys() <= {*self.measurements.domain.names} else {}
        counted = count_estimate(self.measurements, of_records) if of_records else None
        far = errors_of_interval(self.measurements)
        if counted is not None and counted.value <= far * counted.error:  # a model gives rows to whatever can be
            answer = f"{counted.value:,.0f} ± {far * counted.error:,.0f} records"
            notes.append(f"where: by the answers {answer} satisfy it, so that there may be none: its rows are guesses")
        return notes

    def _coded(self, rows: int | None, report: Progress) -> CodedTable:
        """Rows of the table's columns."""
        coarse, zeros = for_synthesis(self.measurements, self.schema), self.schema.zeros
        if self.model is None:
            coded = synthesize(coarse, self.synthesizer, rows=rows, rng=self.rng, zeros=zeros, progress=report).table
        else:
            coded = rows_of_model(coarse, self.model, rows=rows, rng=self.rng, zeros=zeros, progress=report)
        return as_columns(coded, self.schema, self.measurements, self.rng)

    def _given(self, condition: Condition, rows: int | None, report: Progress) -> GivenRows:
        """Rows of the table's columns that satisfy what is asked of columns of records; see `rows_given`."""
        schema, zeros = self.schema, self.schema.zeros
        coarse, model = for_synthesis(self.measurements, schema), self.model
        if model is None:
            model = self.synthesizer.model(coarse, zeros=zeros, progress=report)
        targets = {m.target for m in schema.rules.mapped}
        measured = [n for n in condition.weights if as_a_column(schema, n) and n not in targets]
        allowed = {name: weight > 0 for name, weight in condition.weights.items()}
        finish = partial(as_columns, schema=schema, measurements=self.measurements, rng=self.rng)
        wish = Wish(condition.weights, measured, finish, rows, partial(finish, allowed=allowed), self._rare)
        return rows_given(coarse, self.synthesizer, model, wish, rng=self.rng, zeros=zeros, progress=report)

    def _of_persons(self, condition: Condition, rows: int | None) -> NewRows:
        """The records that satisfy it, of persons who do; more persons are made where these are few."""
        written, most = as_written(self.schema, self.measurements), max(default_rows(self.measurements), rows or 0)
        pool = min(POOL, max(LINKED, TIMES * most))
        while True:
            with self.show.stage("synthesize") as report:
                coded = self._coded(most, report)
            owned = linked(coded, written, self.rng, self.show)
            places = _satisfying(owned, condition, self.rng)
            if rows is None or places.size >= rows or most >= pool:
                break
            most = min(pool, max(2 * most, math.ceil(1.2 * most * rows / max(places.size, 1))))
            self._rare(most)
        if places.size < (1 if rows is None else rows):
            fix = "a wider condition, or fewer rows"
            raise UserError(f"{places.size:,} of {most:,} made rows satisfy the conditions", where="where", fix=fix)
        assert owned.ids is not None, "the schema declares persons"
        if rows is not None:  # of persons taken at random
            rank = self.rng.permutation(int(owned.ids.max(initial=0)) + 1)[owned.ids[places]]
            places = np.sort(places[np.argsort(rank, kind="stable")][:rows])
        ids = np.cumsum(np.diff(owned.ids[places], prepend=0) != 0)
        chosen = Owned(owned.coded.at(places), ids, {n: v[places] for n, v in owned.values.items()})
        facts = {"where": dict(condition.asked), "rows": OF_PERSONS, "effective_rows": int(ids.max(initial=0))}
        return NewRows(chosen, as_written(condition.drawn_by, self.measurements), self.rng, rows, facts)

    def _rare(self, rows: int) -> None:
        self.show.note(f"where: few rows satisfy it, so {rows:,} rows are made and most of them left out")
