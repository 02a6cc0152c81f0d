"""Answers to the questions about persons, beside the cells that a person can be in."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.coded_table import Values
from mechanisms.public.persons.person_questions import PersonQuestion, Trait, by_label, is_ordered
from mechanisms.public.release import NoisyMarginal
from mechanisms.public.rules.structural_zeros import Zeros
from mechanisms.public.schema.column import Column

#: The features that are codes of a person or of one record.
CODED = (Trait.CONSTANT, Trait.FIRST, Trait.VALUE)


@dataclass(frozen=True, eq=False)
class Asked:
    """A question that was answered.

    Attributes:
        values: the noisy answers, in persons, in the shape of the question.
        stddev: of the noise of each.
        possible: which cells a person can be in.
        columns: of the schema, by name.
    """

    question: PersonQuestion
    values: Values
    stddev: float
    possible: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
    columns: Mapping[str, Column]

    def kinds(self) -> tuple[Trait, ...]:
        return tuple(f.kind for f in self.question.features)

    @property
    def by_size(self) -> bool:
        """Whether the rows are groups of sizes."""
        return self.question.features[0].kind is Trait.RECORDS and len(self.question.features) > 1

    def lines(self) -> list[int]:
        """Along each axis behind that of sizes, how many cells lie on a line."""
        lines = []
        for feature in self.question.features[self.by_size :]:
            column = self.columns.get(feature.column)
            if feature.kind in (Trait.SPAN, Trait.GAP, Trait.MEAN):
                lines.append(feature.size - 1)
            elif feature.kind is Trait.DISTINCT:
                lines.append(feature.size)
            else:
                special = 0 if column is None else column.size - column.value_codes
                lines.append(feature.size - special if column is not None and is_ordered(column) else 0)
        return lines


def answered(
    questions: Sequence[PersonQuestion], answers: Sequence[NoisyMarginal], columns: Mapping[str, Column],
    zeros: Sequence[Zeros] = (),
) -> list[Asked]:  # fmt: skip
    """The questions that have an answer, in their order, by what zeros leave possible; of several answers the last."""
    by_clique = {a.clique: a for a in answers}
    asked = []
    for label, question in by_label(questions).items():
        answer = by_clique.get(label)
        if answer is not None and answer.values.size == math.prod(question.shape):
            values = np.asarray(answer.values, np.float64).reshape(question.shape)
            asked.append(Asked(question, values, answer.stddev, _possible(question, columns, zeros), columns))
    return asked


def _possible(question: PersonQuestion, columns: Mapping[str, Column], zeros: Sequence[Zeros]) -> NDArray[np.bool_]:
    """The cells that a person can be in: one record has no next one, one value, and no time from first to last."""
    open_cells = np.ones(question.shape, np.bool_)
    sizes, coded = question.features[0], {f.column: i for i, f in enumerate(question.features) if f.kind in CODED}
    for names, cells in zeros:
        own, there = [n for n in names if n in coded], np.zeros(question.shape, np.bool_)
        gone = tuple(i for i, n in enumerate(names) if n not in coded)
        codes = np.nonzero(np.atleast_1d(~cells.reshape([columns[n].size for n in names]).all(axis=gone)))
        groups = {coded[n]: np.array(question.features[coded[n]].groups) for n in own}
        places = {axis: own_groups[c] for (axis, own_groups), c in zip(groups.items(), codes, strict=False)}
        there[tuple(places.get(axis, slice(None)) for axis in range(there.ndim))] = True
        open_cells &= there
    for axis, feature in enumerate(question.features):
        last = np.moveaxis(open_cells, axis, -1)
        if feature.kind in (Trait.SPAN, Trait.GAP) and not columns[feature.column].missing:
            last[..., -1] = False
        if feature.kind is Trait.MEAN and columns[feature.column].size == columns[feature.column].value_codes:
            last[..., -1] = False
        if sizes.kind is not Trait.RECORDS or axis == 0:
            continue
        for group in range(sizes.size):
            most = max(n for n, g in enumerate(sizes.groups, start=1) if g == group)
            row = np.moveaxis(open_cells[group], axis - 1, -1)
            if feature.kind is Trait.DISTINCT:
                row[..., most:] = False
            if feature.kind is Trait.SPAN and most == 1:
                row[..., 1:-1] = False
    if question.level == "steps" and sizes.kind is Trait.RECORDS:
        open_cells[[max(n for n, g in enumerate(sizes.groups, start=1) if g == i) == 1 for i in range(sizes.size)]] = (
            False
        )
    return open_cells
