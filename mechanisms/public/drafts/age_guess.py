"""Births beside ages, of which one nearly tells the other. NOT private."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np

from mechanisms.public.arrays import Floats
from mechanisms.public.drafts.metadata.metadata_files import as_json
from mechanisms.public.drafts.rule_guess import FEWEST_ROWS, MOST, ByName, amounts, times_among
from mechanisms.public.drafts.seen import YEARS
from mechanisms.public.drafts.sum_guess import marked
from mechanisms.public.rules.computed import value_types
from mechanisms.public.rules.expressions import parse_expression
from mechanisms.public.schema.bins import DAY
from mechanisms.public.schema.column import DATE_KINDS, Column
from mechanisms.public.tables.scan import Source
from mechanisms.public.tables.value_summaries import first_rows

#: Whole numbers up to this one may be ages.
OLDEST = 130
#: So many rows are read. Years tell ages where what both make varies, in all but 1 % of the rows at either end, by this
#: share of what the ages do at most; ages vary by so many years at least.
AGE_ROWS, APART, VARIED = 2_000, 0.25, 8
#: Who has had no birthday yet is a year younger.
BIRTHDAY = 1


def are_years(column: Column) -> bool:
    """Whether the numbers of a column may be years."""
    return YEARS[0] <= column.low and column.high <= YEARS[1]


def guess_ages(source: Source, columns: ByName) -> dict[str, str]:
    """Column of births, by days or years → with which age it says the same, perhaps with a third column's year.

    Args:
        columns: of which no other rule computes one.
    """
    columns = {n: c for n, c in columns.items() if n and "`" not in n}  # others no expression names
    whole = amounts(columns, ("integer",))
    years, ages = [c for c in whole if are_years(c)], [c for c in whole if c.low >= 0 and c.high <= OLDEST]
    births = [*years, *times_among(columns)][:MOST]
    if not births or not ages:
        return {}
    rows = first_rows(source, [*births, *ages], AGE_ROWS).T
    values = {c.name: own for own, c in zip(rows, [*births, *ages], strict=True)}
    held, types = {c.name: _years(values[c.name], c) for c in (*births, *ages)}, value_types(columns)

    def fits(text: str, age: Column) -> int:
        return int((parse_expression(text, types, "the draft").values(values) == values[age.name]).sum())

    varied, remarks = [c for c in ages if _spread(held[c.name]) >= VARIED], dict[str, str]()
    for born, age in itertools.product(births, varied):
        both = held[born.name] + held[age.name]
        if np.count_nonzero(~np.isnan(both)) < FEWEST_ROWS:
            continue
        near = [c for c in births if c is not born and _spread(held[c.name] - both) <= BIRTHDAY]
        if not near and _spread(both) > APART * _spread(held[age.name]):
            continue
        words = f"it nearly follows from {age.name!r}, and drawn apart the two contradict each other: leave one out"
        # a person's age differs between its records where their years do, and its birth does not
        target, tells = (age, _year_of(born)) if near or born not in years else (born, marked(age))
        days = [c for c in near if {born.kind, c.kind} <= {*DATE_KINDS}]
        texts = [f"years({marked(born)}, {marked(c)})" for c in days]  # first, where they fit as well
        texts += [f"{year} - {tells}" for year in [*map(_year_of, near)] or [f"{int(np.nanmedian(both))}"]]
        rule = as_json({target.name: {"expression": max(texts, key=partial(fits, age=age))}})
        more = f", or derive: {rule}" if near or _spread(both) <= BIRTHDAY else ""
        remarks.setdefault(born.name, words + more)
    return remarks


def _year_of(column: Column) -> str:
    """The year that a column holds, as an expression has it."""
    return f"year({marked(column)})" if column.kind in DATE_KINDS else marked(column)


def _years(values: Floats, column: Column) -> Floats:
    """The years of days and times; numbers as they are."""
    if column.kind not in DATE_KINDS:
        return values
    days = np.nan_to_num(values // (1 if column.kind == "date" else DAY)).astype("datetime64[D]")
    return np.where(np.isnan(values), np.nan, days.astype("datetime64[Y]").astype(np.float64) + 1970)


def _spread(values: Floats) -> float:
    """The range of all but 1 % of the values at either end; none of no values."""
    present = values[~np.isnan(values)]
    low, high = np.quantile(present, [0.01, 0.99]) if present.size else (0.0, np.inf)
    return float(high - low)
