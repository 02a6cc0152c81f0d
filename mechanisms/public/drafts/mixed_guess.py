"""Numbers of several things in one column, by a text beside them, as analytes, or by their units. NOT private."""

from __future__ import annotations

import itertools

import numpy as np

from mechanisms.public.drafts.rule_guess import FEWEST_ROWS, MOST, ByName, amounts, is_listed
from mechanisms.public.drafts.seen import FEWEST_UNITS
from mechanisms.public.schema.code_labels import bin_bounds
from mechanisms.public.schema.column import Column
from mechanisms.public.tables.doubts import LIMIT_SIGNS
from mechanisms.public.tables.encode import read_sql, text_sql
from mechanisms.public.tables.scan import Source
from mechanisms.public.tables.text_forms import CURRENCIES, NumberForm, Texts

#: So many rows are read. Things are told apart by so many texts, and lie in so many bins, that hold so many steps each.
MIXED_ROWS, FEWEST_THINGS, STEPS_EACH = 1 << 16, 3, 4
#: Things of this share of the rows have nine tenths of their numbers within so many bins, and medians that are so many
#: times as large as others. Where hardly two overlap, and none lies so many times as far as the one before, the text
#: only says where on one scale a number lies.
MOSTLY_NARROW, BINS_EACH, TIMES, FAR = 0.5, 2, 10, 3
#: What encloses numbers below 0 in accounts.
BRACKETS = ("(", ")", "[", "]")


def guess_mixed(source: Source, columns: ByName) -> dict[str, str]:
    """Column of numbers → that those of some texts beside them fill one bin or two, as where units differ."""
    numbers = [c for c in amounts(columns) if c.value_codes > FEWEST_THINGS and not is_listed(c)][:MOST]
    texts = [c for c in columns.values() if c.kind == "categorical" and is_listed(c)]
    things = [c for c in texts if 2 * sum(v.isdigit() for v in c.values) < len(c.values)]  # deciles are no things
    remarks = dict[str, str]()
    for number, thing in itertools.product(numbers, [c for c in things if c.value_codes >= FEWEST_THINGS][:MOST]):
        if number.name not in remarks and _mixed(source, number, thing):
            remarks[number.name] = (
                f"numbers of several things, by {thing.name!r}, most of which fill a bin or two: a release loses how "
                "they vary: a column for each in the table, or edges that are fine where each lies"
            )
    return remarks


def _mixed(source: Source, number: Column, thing: Column) -> bool:
    """Whether one set of bins hardly tells how the numbers of most rows vary around those of the same text."""
    cells = f"SELECT {text_sql(source, thing)} AS t, {read_sql(source, number)} AS x FROM {source.relation}"
    each = f"SELECT count(x), quantile_cont(x, [0.05, 0.5, 0.95]) FROM ({cells} LIMIT {MIXED_ROWS}) WHERE x IS NOT NULL"
    groups = [(n, *q) for n, q in source.lines(f"{each} GROUP BY t") if n >= FEWEST_UNITS]
    if len(groups) < FEWEST_THINGS or sum(n for n, *_ in groups) < FEWEST_ROWS:
        return False
    rows, low, middle, high = np.array(sorted(groups, key=lambda group: group[2]), np.float64).T
    first, last = bin_bounds(number)
    place = np.clip(np.searchsorted(first, middle, side="right") - 1, 0, first.size - 1)
    widths = np.asarray(last - first, np.float64)[place]
    narrow = (high > low) & (high - low <= BINS_EACH * widths) & (widths >= STEPS_EACH * (number.step or 0))
    sizes = np.abs(middle[middle != 0])
    apart = len(np.unique(place)) >= FEWEST_THINGS and sizes.size > 0 and sizes.max() >= TIMES * sizes.min()
    near = (low[1:] <= FAR * high[:-1]) | (high[:-1] <= 0)
    one_scale = ((low[1:] >= middle[:-1]) & near).all()  # cut into stretches, which may touch
    return bool(apart and not one_scale and rows[narrow].sum() >= MOSTLY_NARROW * rows.sum())


def what_is_stripped(reading: NumberForm, shapes: Texts) -> list[str]:
    """That a text which is taken out may change a number: brackets, and units or signs that some numbers alone have.

    Args:
        shapes: what the texts look like as numbers → in how many rows.
    """
    numbers = {t: n for t, n in shapes.items() if reading.reads(t)}
    signs = [s for s in reading.signs if s.strip() and s not in LIMIT_SIGNS] if numbers else []
    held = {sign: n for sign in signs if (n := sum(n for t, n in numbers.items() if sign in t))}
    bare = sum(n for t, n in numbers.items() if not any(s in t for s in signs if s not in BRACKETS))
    whole, warnings = sum(numbers.values()), []
    if enclosed := max((held.pop(b) for b in BRACKETS if b in held), default=0):
        in_brackets = f"{enclosed:,} of {whole:,} numbers stand in brackets, and are read without a minus"
        warnings.append(f"{in_brackets}: are they below 0? Write them with one in the table")
    if len(held) > 1 and min(held.values()) < whole:
        few = ", ".join(f"{sign!r} ({n:,} times)" for sign, n in held.items())
        warnings.append(f"taken out of some numbers alone: {few}: do all mean the same? One unit in the table")
    elif bare and (lone := [s for s in held if s == "%" or s not in CURRENCIES]):
        same = "are they per cent too?" if lone == ["%"] else "do they mean the same?"
        warnings.append(f"{bare:,} of {whole:,} numbers have no {lone[0]}: {same}")
    return warnings
