"""The one scoring: of a run's tables, and of tables that somebody gives, over one schema; NOT private."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.attacks.promise_bounds import AttackPromise
from evaluation.metric import Options
from evaluation.metrics import ScoreSpec
from evaluation.pictures.pictures import pictures
from evaluation.score import Scorecard, score_tables
from evaluation.values.subjects import as_units, numbered
from evaluation.values.value_tables import DAY, Values
from mechanisms.public.coded_table import CodedTable, CountedTable
from mechanisms.public.json_values import Json, JsonDict
from mechanisms.public.progress import Progress
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.out_of_schema import together
from pipeline.scores.first_look import FirstLook

Numbers = NDArray[np.integer]


@dataclass(eq=False)
class ScoredTables:
    """A real and a synthetic table as they are scored, and a holdout where there is one.

    Attributes:
        declared: the schema as it was given.
        tables: real, synthetic and holdout, as codes of the schema.
        look: what the files of both tables show.
        schema: as declared, with a code apart in the columns where a table has values that it has no place for.
        whole: all real records, where the real table is a sample of them.
        values: the tables' values, where they are wanted.
        unit, holdout_unit: the privacy unit of each row of the real table and of the holdout, in the same numbers.
        subject: a number per real and per synthetic row; order: what a subject's events are sorted by.
        promise: what the release promises about that unit; private: whether a statement says that it is private.
        why: why something that a metric may need is not there.
        unplaced: per table, how many values of which column the schema does not place, and which.
        notices: what a reader must know first.
        release: what a statement says of the synthetic table, for scores.json.
        keys: figures of columns of ids.
    """

    declared: Schema
    tables: dict[str, CodedTable]
    look: FirstLook
    schema: Schema
    whole: CountedTable | None = None
    values: Values | None = None
    unit: Numbers | None = None
    holdout_unit: Numbers | None = None
    subject: tuple[Numbers, Numbers] | None = None
    order: tuple[NDArray[Any], NDArray[Any]] | None = None
    promise: AttackPromise | None = None
    private: bool = False
    why: Mapping[str, str] = field(default_factory=dict)
    unplaced: Json = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    release: Json | None = None
    keys: Sequence[Json] = ()

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
        if {"real", "holdout"} <= numbers.keys() and self.unit is None:
            self.unit, self.holdout_unit = as_units([numbers["real"], numbers["holdout"]])
        absent = [name for name in ("real", "synthetic") if name not in subjects]
        if absent:
            self.why = {"subject": f"the {absent[0]} table has no column {roles['subject']!r}"}
            return
        self.subject = (numbers["real"], numbers["synthetic"])
        if (order := roles.get("order")) is not None:
            self.order = (self._places("real", order), self._places("synthetic", order))

    def _places(self, table: str, order: str) -> NDArray[np.float64]:
        """Where each row lies in the order: its number, days of a date, NaN for none; else its code."""
        values = self.values
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

    def options(self, asked: Options) -> Options:
        """What was asked for, with what only the rows tell."""
        return replace(
            asked,
            values=self.values,
            holdout=self.tables.get("holdout"),
            whole=self.whole,
            unit=self.unit,
            holdout_unit=self.holdout_unit,
            subject=self.subject,
            order=self.order,
            promise=self.promise,
            private=self.private,
            why={**asked.why, **self.why},
        )

    def score(self, spec: ScoreSpec, progress: Progress | None = None) -> Scorecard:
        """The scores that the spec asks for."""
        asked = replace(spec, options=self.options(spec.options))
        card = score_tables(*self.both, self.schema, asked, progress=progress)
        card = replace(card, unplaced=self.unplaced, notices=self.notices, release=self.release)
        return self.look.added_to(card, *self.both)

    def drawings(self, card: Scorecard, spec: ScoreSpec, places: tuple[str, str] | None) -> JsonDict:
        """What the report draws, under its format's name.

        Args:
            card: of these tables.
            places: columns of longitude and latitude.
        """
        options, look = self.options(spec.options), self.look
        numbers = None if look.values is None else (look.names, look.values)
        drawn = pictures(card, self.both, self.schema, options, declared=self.declared, places=places, numbers=numbers)
        for column in drawn.get("densities", ()):
            column |= {"seconds": look.moments[column["column"]]} if column["column"] in look.moments else {}
        return {"format": "figures/1", **drawn}


def over_one_schema(schema: Schema, tables: Mapping[str, Any], look: FirstLook, **more: Any) -> ScoredTables:
    """Tables by name, coded with a schema: what it has no place for becomes a code of its own in all of them."""
    joined, coded = together(schema, {name: table for name, table in tables.items() if table is not None})
    whole = coded.pop("whole", None)
    return ScoredTables(schema, coded, look, joined, whole=whole, **more)
