"""What people look at first in two tables, from their files: numbers, numbers by group, values for correlations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from evaluation.correlation import RECORDS, correlation_maps
from evaluation.learning.features import some_rows
from evaluation.score import Scorecard
from evaluation.values.value_tables import DAY, ValueColumn, Values, shown
from mechanisms.public.arrays import Codes, Floats
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.files import Json, JsonDict
from mechanisms.public.release import Measurements
from mechanisms.public.schema.code_labels import code_names
from mechanisms.public.schema.column import DATE_KINDS
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.scan import Source
from mechanisms.public.tables.value_summaries import (
    QUANTILES,
    group_summaries,
    numbers_of,
    summaries,
    summary,
    value_sample,
)
from mechanisms.public.units import plain_digits
from synthesis.numbers.noise_errors import NoiseError, group_errors, noise_errors

#: A mean is far off by more than this share of the real one, or of the standard deviation, and so many standard errors.
OFF, CHANCE = 0.1, 2.0
#: A standard deviation is far off by more than this factor.
WIDER = 2.0
#: Few rows hold a total where so large a share of them holds so large a share of it; columns that one sentence names.
TOP, HEAVY, MOST = 0.01, 0.2, 3


@dataclass(frozen=True, eq=False)
class FirstLook:
    """What the files of two tables show; NOT private.

    Attributes:
        numbers: a row per column of numbers or dates, see `_side_by_side`.
        groups: a row per such column and group.
        names, values: those columns, and the values of some records of both tables.
        moments: columns of dates → the seconds of one of their unit.
    """

    numbers: Sequence[Json]
    groups: Sequence[Json]
    names: tuple[str, ...]
    values: tuple[Floats, Floats] | None
    moments: Mapping[str, int] = field(default_factory=dict)

    def added_to(self, card: Scorecard, real: CodedTable, synthetic: CodedTable) -> Scorecard:
        """The scores with all this, and with the correlations of both tables."""
        nothing = (np.zeros((real.rows, 0)), np.zeros((synthetic.rows, 0)))
        maps = correlation_maps(self.names, self.values or nothing, (real, synthetic))
        theirs, own = card.rows["synthetic"], card.rows["real"]
        as_many = abs(theirs - own) <= OFF * own
        far = [] if as_many else [f"rows, and so totals, far from the real ones: {theirs:,} (real {own:,})"]
        if self.values is not None:
            far += _far_figures(self.numbers, self.names, self.values[0], as_many=as_many)
        return replace(card, numbers=self.numbers, groups=self.groups, correlations=maps, notices=(*card.notices, *far))


def _far_figures(numbers: Sequence[Json], names: Sequence[str], real: Floats, *, as_many: bool) -> list[str]:
    """Sentences on columns of numbers whose means or standard deviations are far off, the farthest first."""
    # A reader of amounts takes mean and total in per cent of the real ones; of numbers on both sides of 0, whose mean
    # may be next to nothing, in standard deviations. None is blamed for what drawing so many rows does by chance.
    far, wide = [], []
    for each in numbers:
        own, theirs, values = each["real"], each["synthetic"], real[:, names.index(each["column"])]
        if not isinstance(own["mean"], float) or not isinstance(theirs["mean"], float) or not own["stddev"]:
            continue
        off, both_sides = abs(theirs["mean"] - own["mean"]), own["quantiles"][0] < 0 < own["quantiles"][-1]
        by_chance = CHANCE * own["stddev"] / math.sqrt(theirs["count"])
        if off > max(OFF * abs(own["mean"]), OFF * own["stddev"] * both_sides, by_chance):
            ordered = np.sort(values[~np.isnan(values)])
            total = 0.0 if both_sides else float(ordered.sum())
            held = float(ordered[-max(int(TOP * ordered.size), 1) :].sum()) / total if total else 0.0
            rows = f"; {TOP:.0%} of the real rows hold {held:.0%} of the total" if held >= HEAVY else ""
            line = f"{each['column']} {plain_digits(theirs['mean'])} (real {plain_digits(own['mean'])}{rows})"
            far.append((off / max(abs(own["mean"]), 1e-300), line))
            continue
        ratio = 1.0 if theirs["stddev"] is None else theirs["stddev"] / own["stddev"]  # one row has none
        fourth = float(np.nanmean(((values - own["mean"]) / own["stddev"]) ** 4))
        if not 1 / WIDER <= ratio <= WIDER and abs(ratio - 1) > CHANCE * math.sqrt(fourth / theirs["count"]) / 2:
            line = f"{each['column']} {plain_digits(theirs['stddev'])} (real {plain_digits(own['stddev'])})"
            wide.append((max(ratio, 1 / max(ratio, 1e-300)), line))
    means = "means, and so totals," if as_many else "means"
    return [*_farthest(means, far), *_farthest("standard deviations,", wide)]


def _farthest(figures: str, far: Sequence[tuple[float, str]]) -> list[str]:
    few = [line for _, line in sorted(far, reverse=True)]
    more = f"; and {len(few) - MOST} more columns" if len(few) > MOST else ""
    return [f"{figures} far from the real ones: {', '.join(few[:MOST])}{more}"] if few else []


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
    errors = None if measurements is None else noise_errors(schema, measurements, QUANTILES)
    numbers = _side_by_side(summaries(real, schema), summaries(synthetic, schema), errors)
    names, rows = tuple(c.name for c in numbers_of(schema)), list[JsonDict]()
    for by in groups:
        rows += _grouped([group_summaries(s, schema, by) for s in (real, synthetic)], schema, by, names, measurements)
    values = (value_sample(real, schema, RECORDS), value_sample(synthetic, schema, RECORDS)) if names else None
    moments = {c.name: DAY if c.kind == "date" else 1 for c in numbers_of(schema) if c.kind in DATE_KINDS}
    return FirstLook(numbers, rows, names, values, moments)


def _side_by_side(
    real: Mapping[str, Json],
    synthetic: Mapping[str, Json],
    errors: Mapping[str, NoiseError] | None = None,
) -> list[JsonDict]:
    """One row per column: both summaries, and the standard errors that noise gives to mean and quantiles, if known."""
    rows = []
    for name in real:
        error = (errors or {}).get(name)
        noise = {"mean_standard_error": error and error.mean, "quantile_standard_errors": error and [*error.quantiles]}
        rows.append({"column": name, "real": real[name], "synthetic": synthetic[name], **noise})
    return rows


def _grouped(
    both: Sequence[Mapping[int, Mapping[str, Json]]],
    schema: Schema,
    by: str,
    names: Sequence[str],
    measurements: Measurements | None = None,
) -> list[JsonDict]:
    """Rows of `FirstLook.groups`: a column's figures in both tables, of the records with one value of another.

    Args:
        both: of each table, code of `by` → column → its figures.
    """
    rows, groups = [], code_names(schema[by])
    for column in (name for name in names if name != by):
        has_errors = measurements is not None and column in schema.shaped
        errors = group_errors(schema, measurements, column, by) if measurements is not None and has_errors else None
        for code in sorted(both[0].keys() | both[1].keys()):
            real, synthetic = (table[code][column] if code in table else None for table in both)
            error = math.nan if errors is None else float(errors[code])
            row = {"by": by, "group": groups[code], "column": column, "real": real, "synthetic": synthetic}
            rows.append(row | {"mean_standard_error": None if math.isnan(error) else error})
    return rows


def value_look(values: Values, schema: Schema, coded: Sequence[CodedTable], groups: Sequence[str] = ()) -> FirstLook:
    """The figures of both tables, from their values.

    Args:
        schema, coded: the real and the synthetic table in the buckets of that schema, which tell the groups.
        groups: columns of the schema.
    """
    columns = [c for c in values.columns if c.on_a_line]
    tables = [values.tables[name] for name in ("real", "synthetic")]
    real, synthetic = ({c.name: _summary(c, t.column(c.name)) for c in columns} for t in tables)
    numbers = _side_by_side(real, synthetic)
    names, rows = tuple(c.name for c in columns), list[JsonDict]()
    for by in groups:
        both = [_groups(columns, table, codes.column(by)) for table, codes in zip(tables, coded, strict=True)]
        rows += _grouped(both, schema, by, names)
    sample = (_sample(columns, tables[0]), _sample(columns, tables[1])) if names else None
    return FirstLook(numbers, rows, names, sample, moments={c.name: 1 for c in columns if c.kind == "date"})


def _groups(columns: Sequence[ValueColumn], table: CodedTable, groups: Codes) -> dict[int, dict[str, JsonDict]]:
    """Each code of the rows' groups → column → its figures."""
    inside = {int(code): groups == code for code in np.unique(groups)}
    return {code: {c.name: _summary(c, table.column(c.name)[rows]) for c in columns} for code, rows in inside.items()}


def _summary(column: ValueColumn, codes: Codes) -> JsonDict:
    """Rows, count, share missing, mean, standard deviation and quantiles (between neighbours, linearly)."""
    k = len(column.values)
    counts = np.bincount(codes, minlength=column.attribute.size)[:k]
    count, numbers = int(counts.sum()), np.asarray(column.values, np.float64)
    if not count:
        return summary(len(codes), count)
    mean = math.fsum(counts * (numbers / count))
    unit = DAY if column.kind == "date" and not (numbers % DAY).any() else 1
    widest = float(np.abs(numbers - mean).max()) or 1.0  # so that no square overflows
    spread = float(np.sqrt(counts @ (((numbers - mean) / widest) ** 2 / max(count - 1, 1)))) * (widest / unit)
    above, places = np.cumsum(counts), np.array(QUANTILES) * (count - 1)
    low, high = (numbers[np.searchsorted(above, at, side="right")] for at in (np.floor(places), np.ceil(places)))
    part = places - np.floor(places)
    labels = [_value_as_text(column, q, unit) for q in low * (1 - part) + high * part]
    return summary(len(codes), count, _value_as_text(column, mean, unit), spread if count > 1 else None, labels)


def _value_as_text(column: ValueColumn, value: float, unit: int) -> float | str:
    """Days among days, whose deviation is in days."""
    return shown("date", round(value / unit) * unit) if column.kind == "date" else float(value)


def _sample(columns: Sequence[ValueColumn], table: CodedTable) -> Floats:
    """(rows, columns) values of at most RECORDS random rows."""
    some = some_rows(table, RECORDS, np.random.default_rng(0))
    return np.stack([c.numbers[some.column(c.name)] for c in columns], axis=1)
