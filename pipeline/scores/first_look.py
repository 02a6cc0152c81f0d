"""What people look at first in two tables, from their files: numbers, numbers by group, values for correlations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from evaluation.score import Scorecard
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.json_values import Json, JsonDict
from mechanisms.public.release import Measurements
from mechanisms.public.schema.code_labels import code_names
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.scan import Source
from mechanisms.public.tables.value_summaries import (
    QUANTILES,
    SECONDS,
    group_summaries,
    numbers_of,
    side_by_side,
    summaries,
    value_sample,
)
from synthesis.numbers.noise_errors import group_errors, noise_errors


@dataclass(frozen=True, eq=False)
class FirstLook:
    """What the files of two tables show; NOT private.

    Attributes:
        numbers: a row per column of numbers or dates, see `side_by_side`.
        groups: a row per such column and group.
        names, values: those columns, and the values of some records of both tables.
        moments: columns of dates → the seconds of one of their unit.
    """

    numbers: Sequence[Json]
    groups: Sequence[Json]
    names: tuple[str, ...]
    values: tuple[NDArray[np.float64], NDArray[np.float64]] | None
    moments: Mapping[str, int] = field(default_factory=dict)

    def added_to(self, card: Scorecard, real: CodedTable, synthetic: CodedTable) -> Scorecard:
        """The scores with all this, and with the correlations of both tables."""
        from evaluation.correlation import correlation_maps

        nothing = (np.zeros((real.rows, 0)), np.zeros((synthetic.rows, 0)))
        maps = correlation_maps(self.names, self.values or nothing, (real, synthetic))
        return replace(card, numbers=self.numbers, groups=self.groups, correlations=maps)


def first_look(
    real: Source,
    synthetic: Source,
    schema: Schema,
    groups: Sequence[str] = (),
    measurements: Measurements | None = None,
) -> FirstLook:
    """Both tables read twice, and once more for each column of groups.

    Args:
        schema: as both tables are read.
        groups: columns, with few values.
        measurements: the noisy answers, where the synthetic table comes from a run: they tell the noise's errors.
    """
    from evaluation.correlation import RECORDS

    errors = None if measurements is None else noise_errors(schema, measurements, QUANTILES)
    numbers = side_by_side(summaries(real, schema), summaries(synthetic, schema), errors)
    rows = [row for by in groups for row in _grouped(real, synthetic, schema, by, measurements)]
    names = tuple(c.name for c in numbers_of(schema))
    values = (value_sample(real, schema, RECORDS), value_sample(synthetic, schema, RECORDS)) if names else None
    moments = {c.name: SECONDS[c.kind] for c in numbers_of(schema) if c.kind in SECONDS}
    return FirstLook(numbers, rows, names, values, moments)


def _grouped(
    real: Source, synthetic: Source, schema: Schema, by: str, measurements: Measurements | None
) -> list[JsonDict]:
    both = [group_summaries(source, schema, by) for source in (real, synthetic)]
    labels, rows = list(code_names(schema[by])), []
    for column in numbers_of(schema):
        name = column.name
        if name == by:
            continue
        errors = (
            None if measurements is None or name not in schema.shaped else group_errors(schema, measurements, name, by)
        )
        for code in sorted(both[0].keys() | both[1].keys()):
            own = [table[code][name] if code in table else None for table in both]
            error = None if errors is None or np.isnan(errors[code]) else float(errors[code])
            rows.append(
                {"by": by, "group": labels[code], "column": name, "real": own[0], "synthetic": own[1]}
                | {"mean_standard_error": error}
            )
    return rows
