"""What a run asks about the persons of its schema, and the part of the budget that it takes."""

from __future__ import annotations

from dataclasses import replace

from mechanisms.public.persons.person_questions import PersonQuestion, every_code, person_questions, records_per_unit
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.table_schema import Schema

#: The part of the budget for what is asked about persons at ε = 1; how it falls as ε grows; and its bounds.
SHARE, FALL, LEAST_SHARE, MOST_SHARE = 0.1, 0.25, 0.05, 0.15


def questions_of(schema: Schema) -> tuple[PersonQuestion, ...]:
    """The questions about the persons of a schema; none where it declares no unit. They follow from it alone."""
    unit = schema.rules.unit
    return () if unit is None else person_questions(unit, asked_columns(schema))


def questions_about_units(schema: Schema, most: int) -> tuple[PersonQuestion, ...]:
    """The same, or the one question that a unit_id of `most` records per unit asks."""
    ids = schema.rules.unit_ids
    return questions_of(schema) if ids is None or not ids.measured else (records_per_unit(ids.name, most),)


def counted_questions(schema: Schema) -> tuple[PersonQuestion, ...]:
    """What persons are counted for: `questions_of`; while columns are open, the leaves of the constants among them."""
    unit, open_columns = schema.rules.unit, schema.to_discover
    if unit is None or not open_columns:
        return questions_of(schema)
    asked = [c for c in open_columns if c.name in unit.constant and c.discover is not None and not c.discover.values]
    return tuple(PersonQuestion("persons", (every_code(c),)) for c in asked)


def asked_columns(schema: Schema) -> list[Column]:
    """The columns that questions about persons speak of: all but those that rules write from others."""
    unit = schema.rules.unit
    own = set() if unit is None else {*unit.constant, *unit.order}
    written = {name for step in schema.rules.steps if not step.gives for name in step.takes} - own
    return [c for c in schema.columns if c.name not in written]


def with_shares(questions: tuple[PersonQuestion, ...], share: float | None, epsilon: float) -> list[PersonQuestion]:
    """The questions, each with its part of the budget.

    Args:
        share: of all of them together; None: 0.1 / ε^¼, from 0.15 down to 0.05: where the records' own answers are
            precise, a person's are more so, and pairs of columns lose 2 % by it, 5 % at a tenth of ε = 1.
    """
    whole = min(MOST_SHARE, max(LEAST_SHARE, SHARE / epsilon**FALL)) if share is None else share
    parts = sum(q.part for q in questions)
    return [replace(q, share=whole * q.part / parts) for q in questions]
