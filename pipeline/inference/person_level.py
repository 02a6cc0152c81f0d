"""A release's answers about persons as those of a table with one row per person: all questions can be asked of it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from mechanisms.public.domain import Clique
from mechanisms.public.errors import UserError, one_of
from mechanisms.public.noise_kinds import GAUSSIAN
from mechanisms.public.persons.person_questions import PERSONS, PersonQuestion, Trait, by_label, questions_about_units
from mechanisms.public.queries.cell_sums import MergedQuery
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements, NoisyMarginal
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.units import UNITS

#: What counts once in an answer.
LEVELS = ("records", "persons")
#: The column with a person's number of records, and what stands before that of the first record's time.
RECORDS, FIRST = "records", "first "
#: What is said of such an answer.
COUNTED = (
    "counts of persons, each once, by what is constant in them; the largest number of records also stands for more"
)
#: The features whose values are those of a column.
OF_PERSONS = frozenset({Trait.RECORDS, Trait.FIRST, Trait.CONSTANT})


def at_level(schema: Schema, measurements: Measurements, level: str) -> tuple[Schema, Measurements]:
    """What questions about records, or about persons, are answered from.

    Of persons the columns are the constants, the number of records, and the time of the first one.

    Guarantee: post-processing; costs no privacy.
    Raises:
        UserError: another level; nothing was counted of persons.
    """
    if one_of(level, LEVELS, "level") == "records":
        return schema, measurements
    most = 1 if measurements.histogram is None else measurements.histogram.values.size
    asked = by_label(questions_about_units(schema, most))
    pairs = [(asked[a.clique], a) for a in measurements.persons if a.clique in asked]
    of_persons_alone = [(q, a) for q, a in pairs if q.level == "persons" and {f.kind for f in q.features} <= OF_PERSONS]
    if not of_persons_alone:
        fix = "level=records; or a release whose schema declares a unit"
        raise UserError("nothing was counted of persons", where="level", fix=fix)
    columns = {name: c for q, _ in of_persons_alone for name, c in _columns(schema, q).items()}
    persons = Schema(schema.name, tuple(columns.values()))
    answers = (one for q, a in of_persons_alone for one in _answers(tuple(_columns(schema, q)), q, a))
    return persons, Measurements(persons.domain, tuple(answers))


def of_level(level: str) -> str:
    """Whose columns are asked about, for messages."""
    return " of persons" if level == LEVELS[1] else ""


def _columns(schema: Schema, question: PersonQuestion) -> dict[str, Column]:
    """The columns that a question's features are the values of, by name, in their order."""
    columns = []
    for feature in question.features:
        if feature.kind is Trait.RECORDS:
            name = RECORDS if RECORDS not in schema.domain else f"({RECORDS})"
            columns.append(Column(name, "integer", low=1, high=len(feature.groups), missing=False))
        elif feature.kind is Trait.FIRST:
            own = schema[feature.column]
            columns.append(replace(own, name=FIRST + own.name, fine=None, joint_bins=None, one_way_only=False))
        else:
            columns.append(schema[feature.column])
    return {c.name: c for c in columns}


def _answers(clique: Clique, question: PersonQuestion, answer: NoisyMarginal) -> list[NoisyMarginal]:
    """The answer as one about these columns.

    Where numbers of records stand in groups it is one over merged values, and its sum over them tells of the other
    column: the sum of Gaussian noise is Gaussian. Whoever asks for a column takes the sum, and for both the former.
    """
    labels, size = tuple(np.array(f.groups, np.int64) for f in question.features), question.features[0].size
    if all(own.size == f.size for own, f in zip(labels, question.features, strict=True)):
        return [replace(answer, clique=clique)]
    merged = replace(answer, clique=clique, query=MergedQuery(labels))
    if answer.noise != GAUSSIAN.name:
        return [merged]
    sums, scale = answer.values.reshape(size, -1).sum(axis=0), answer.scale * math.sqrt(size)
    return [merged, replace(answer, clique=clique[1:], query=Identity(sums.size), values=sums, scale=scale)]


def of_persons(measurements: Measurements) -> bool:
    """Whether the answers are those of `at_level` about persons."""
    return any(a.event.startswith((PERSONS, UNITS)) for a in measurements.answers)
