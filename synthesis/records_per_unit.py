"""Records per unit from a noisy histogram: post-processing, and the schema that rows are written by."""

from __future__ import annotations

from dataclasses import replace

from mechanisms.public.release import Measurements, NoisyMarginal
from mechanisms.public.schema.table_schema import Schema
from synthesis.consistency.projection import norm_sub


def records_shares(histogram: NoisyMarginal) -> tuple[tuple[int, float], ...]:
    """(number of records, share of the units with so many), from the closest non-negative histogram of the same sum.

    Edge cases: a noisy number of units that is not above 0 tells nothing: every row is a unit of its own.
    """
    cells = norm_sub(histogram.values, float(histogram.values.sum()))
    if not cells.sum() > 0:
        return ((1, 1.0),)
    shares = cells / cells.sum()
    return tuple((n, float(p)) for n, p in enumerate(shares, start=1) if p > 0)


def with_records(schema: Schema, measurements: Measurements) -> Schema:
    """The schema, with the measured records per unit where it asks for them; as it is where they were lost."""
    ids = schema.rules.unit_ids
    if ids is None or not ids.measured or measurements.histogram is None:
        return schema
    filled = replace(ids, records=records_shares(measurements.histogram))
    return replace(schema, rules=replace(schema.rules, unit_ids=filled))
