"""Hints on bins: one with nearly all rows, frequent numbers among others, far ends with few rows. NOT private."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date

import numpy as np

from mechanisms.public.arrays import Ints
from mechanisms.public.drafts.bin_guess import FEW_CODES, guess_bins
from mechanisms.public.drafts.column_facts import Look
from mechanisms.public.drafts.column_guess import OTHERS, outwards
from mechanisms.public.drafts.seen import SPIKE, ColumnFacts, Numbers, Spread, few_units
from mechanisms.public.schema.bins import DAY
from mechanisms.public.schema.column import DATE_KINDS, Column
from mechanisms.public.schema.fine_cells import CROWDED, USUAL_FINE, bins_of_several, finest, log_cut
from mechanisms.public.schema.spellings import ISO
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.losses import percent
from mechanisms.public.tables.text_forms import NumberForm

#: A bin with between these shares of the rows and at least that share of the range hides its values.
FEWEST_ROWS, FEW_ROWS, WIDE = 0.003, 0.05, 0.5
#: So many limits such as <15 in a bin of larger numbers are told; and how these begin.
FEWEST_LIMITS, BELOW = 10, ("<", "≤")
#: Of fewer rows for each number, numbers between them may be there, too.
FEWEST_EACH = 50


def crowded_bin(column: Column, values: Ints, present: int) -> list[str]:
    """One bin of several values with nearly all rows, as a run says it once its budget is spent."""
    several, top = bins_of_several(column), int(values.argmax())
    as_it_stands = column.discover is None and log_cut(column) is column  # a run keeps these bins
    if several is None or not several[top] or values[top] < CROWDED * present or not as_it_stands:
        return []
    problem = f"one bin, {column.labels[top]}, holds {percent(float(values[top] / present))} of the rows"
    return [f"{problem}: inside it, pairs tell nothing apart. bins: {{edges: […]}} with several edges there tells more"]


def spikes(column: Column, seen: Numbers) -> list[str]:
    """Frequent numbers that share a bin: one that no fine cells keep, and 0, which pairs do not tell from others."""
    if bins_of_several(column) is None or column.grid.edges is None or not seen.count:
        return []
    cells, hints = finest(column if column.fine is not None else replace(column, fine=USUAL_FINE)), list[str]()
    for number in seen.frequent:
        share, place = seen.often.get(number, seen.zeros) / seen.count, _with_others(column, number)
        near = share >= SPIKE and _with_others(cells, number) is not None
        if place is not None and (near or (number == 0 and log_cut(column) is column)):  # a run keeps chosen bins
            why = "values near it are drawn in its place" if near else "no pair with another column tells it from them"
            where = f"{number:.15g} ({percent(share)} of the rows) lies with others in the bin {column.labels[place]}"
            hints.append(f"{where}, and {why}: bins: {{edges: […]}} with a bin for it")
    return hints


def limits_above(column: Column, texts: Mapping[str, int]) -> list[str]:
    """That limits such as <15, of which a sign is taken out, are counted with the numbers above them.

    Args:
        texts: the most frequent ones → in how many rows.
    """
    reading, edges = NumberForm(column.strip, column.decimal), column.grid.edges
    if not any(s.startswith(BELOW) for s in reading.signs) or edges is None or bins_of_several(column) is None:
        return []
    below = {t: x for t in texts if t.strip().startswith(BELOW) and (x := reading.number(t)) is not None}
    places = {t: place for t, x in below.items() if x in edges[1:] and (place := _with_others(column, x)) is not None}
    if (rows := sum(texts[t] for t in places)) < FEWEST_LIMITS:
        return []
    often = max(places, key=texts.__getitem__)
    at, bin_of = below[often], column.labels[places[often]]
    own = f"[…, {at:g}, {at + (column.step or 0.01):g}, …]"
    where = f"{rows:,} limits such as {often!r} are read as {at:g}, and count in the bin {bin_of}"
    return [f"{where}, above what they say: a bin of their own, edges: {own}, or another number in the table"]


def _with_others(column: Column, number: float) -> int | None:
    """The bin of a number that others may lie in too; None where it is alone."""
    several, edges = bins_of_several(column), column.grid.edges
    assert several is not None and edges is not None
    place = int(np.clip(np.searchsorted(edges, number, side="right") - 1, 0, several.size - 1))
    return place if several[place] else None


def empty_codes(column: Column) -> list[str]:
    """A code for each whole number, where the schema says that only its multiples are there."""
    step = column.multiple_of
    if column.kind != "integer" or column.bins is not None or not step or step < 2:
        return []
    first, last = (int(n) for n in (-(-column.low // step), column.high // step))
    if last <= first:
        return []
    ends, many = f"min: {first * step:.0f}, max: {last * step:.0f}", last - first + 1
    problem = f"a code for each of {column.value_codes:,} whole numbers, of which {many:,} are multiples of {step:g}"
    return [f"{problem}: noise falls into all; {ends}, bins: {{count: {many}}} has one for each multiple"]


def codes_between(schema: Schema, column: Column, counts: Ints) -> list[str]:
    """Few whole numbers that hold all rows, as 10, 20, 30 and 40 do: noise falls between them, too."""
    derived = any(column.name in step.takes for step in schema.rules.steps if not step.gives)
    if column.kind != "integer" or column.discover is not None or derived:
        return []
    values = counts[: column.value_codes]
    held = np.flatnonzero(values)
    if values.size != column.high - column.low + 1 or not 2 < held.size <= FEW_CODES:
        return []
    sparse = held[-1] - held[0] >= 2 * held.size - 1 and values.sum() >= FEWEST_EACH * held.size
    return [f"only {held.size} {OTHERS}"] if sparse else []


def wide_bins(column: Column, values: Ints, present: int) -> list[str]:
    """The first or the last bin with few rows over most of the range."""
    edges = column.grid.edges
    if column.bins is None or column.size < 3 or len(values) < 2 or edges is None:
        return []
    widths, hints = np.diff(edges), []
    for place, name in ((0, "first"), (len(values) - 1, "last")):
        share, span = values[place] / present, float(widths[place] / widths.sum())
        if FEWEST_ROWS <= share <= FEW_ROWS and span >= WIDE:
            problem = f"the {name} bin, {column.labels[place]}, holds {percent(float(share))} of the rows"
            fine = "by its fine cells, where a run measures them (selection.fine_cells), else " * (column.fine != 0)
            how = f"values inside a bin are drawn {fine}evenly; declare more edges there"
            hints.append(f"{problem} and spans {percent(span)} of the range: {how}")
    return hints


def ends_of_few(look: Look, index: int, column: Column, facts: ColumnFacts) -> list[str]:
    """That a bound is the table's own, and so few hold what drives it there that it may tell of one person."""
    if not facts.filled or column.discover is not None or column.kind not in {*DATE_KINDS, "integer", "float"}:
        return []
    days = column.kind in DATE_KINDS
    seen: Spread = look.moments(index, [column.format or ISO, *column.more_formats]) if days else facts.plain
    if (ends := seen.ends) is None or not seen.driven:
        return []
    if isinstance(seen, Numbers):
        fields, _ = guess_bins(seen, *ends)
        rounded, own = (fields["min"], fields["max"]), (column.low, column.high)
    else:
        low, high = (date.fromisoformat(text) - date(1970, 1, 1) for text in outwards(*map(str, ends)))
        unit = 1 if column.kind == "date" else DAY
        rounded, own = (low.days, high.days), (column.low // unit, column.high // unit)
    few = f"is the table's own, rounded, and {few_units(look.unit)} what drives it far out: take a public one"
    given = [e for e in seen.driven if rounded[e] == own[e] and (days or own[e])]  # 0 is anybody's bound
    return [f"{('min', 'max')[e]} {few}" for e in given]
