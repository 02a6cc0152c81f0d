"""Synthetic rows from what crossed the wall: all, or those that satisfy a condition; linked, in the order written."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.errors import UserError
from mechanisms.public.progress import Progress
from mechanisms.public.release import Measurements
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.decode import Owned, with_units
from pipeline.conditions import Condition, facts_of, satisfying
from pipeline.marginal_files import as_a_column
from pipeline.release_folder import NewRows
from pipeline.stage_bars import Stages
from synthesis.consistency.total import default_rows
from synthesis.contract import RowModel, Synthesizer
from synthesis.given_rows import POOL, GivenRows, Wish, rows_given
from synthesis.numbers.value_shapes import as_columns, as_written, for_synthesis
from synthesis.synthesize import rows_of_model, synthesize

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
    show.warn(owned.told)
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

    def made(self, rows: int | None, condition: Condition | None = None) -> NewRows:
        """New rows, which keep to the rules of the schema.

        Args:
            rows: how many; None: as many as the noisy answers say.
        Raises:
            UserError: no row, or hardly any, satisfies the condition.
        """
        if condition is not None and condition.of_persons:
            return self._of_persons(condition, rows)
        facts, drawn_by = None, self.schema
        with self.show.stage("synthesize") as report:
            if condition is None:
                coded = self._coded(rows, report)
            else:
                chosen = self._given(condition, rows, report)
                coded, facts, drawn_by = chosen.table, facts_of(condition, chosen), condition.drawn_by
        written = as_written(drawn_by, self.measurements)
        return NewRows(linked(coded, written, self.rng, self.show), written, self.rng, rows, facts)

    def _coded(self, rows: int | None, report: Progress) -> CodedTable:
        """Rows of the table's columns."""
        coarse, zeros = for_synthesis(self.measurements, self.schema), self.schema.zeros
        if self.model is None:
            coded = synthesize(coarse, self.synthesizer, rows=rows, rng=self.rng, zeros=zeros, progress=report)
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
        wish = Wish(condition.weights, measured, finish, rows, partial(finish, allowed=allowed))
        return rows_given(coarse, self.synthesizer, model, wish, rng=self.rng, zeros=zeros, progress=report)

    def _of_persons(self, condition: Condition, rows: int | None) -> NewRows:
        """The records that satisfy it, of persons who do; more persons are made where these are few."""
        written, most = as_written(self.schema, self.measurements), max(default_rows(self.measurements), rows or 0)
        while True:
            with self.show.stage("synthesize") as report:
                coded = self._coded(most, report)
            owned = linked(coded, written, self.rng, self.show)
            places = satisfying(owned, condition, self.rng)
            if rows is None or places.size >= rows or most >= POOL:
                break
            most = min(POOL, max(2 * most, math.ceil(1.2 * most * rows / max(places.size, 1))))
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
