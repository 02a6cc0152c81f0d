"""Bins: how the range of an ordered column splits into codes; the SQL that encodes beside the draw that decodes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import TypeAlias

import numpy as np

from mechanisms.public.arrays import Codes, Floats, Ints
from mechanisms.public.errors import UserError

#: No attribute has more value codes than this.
MAX_CODES = 100_000
#: A cyclic calendar unit occurs at most so often between the bounds (a hundred years of hours).
MAX_RUNS = 1_000_000
DAY = 86_400
#: Calendar unit → the fewest seconds that it has.
LENGTHS = {"hour": 3600, "day": DAY, "week": 7 * DAY, "month": 28 * DAY, "year": 365 * DAY}
#: A value so near below an edge of cells, as a share of their width, counts as on it.
EDGE = 1e-6
ABSOLUTE = ("year", "month", "week", "day", "hour")
CYCLIC = {"month_of_year": 12, "day_of_week": 7, "hour_of_day": 24}
CALENDAR = (*ABSOLUTE, *CYCLIC)


@dataclass(frozen=True)
class Bins:
    """A declared discretization: exactly one of the first three is set; or, for leaves, the last one.

    Attributes:
        count: so many bins of equal width.
        edges: ascending, left-closed; the first and the last bound the column (the last is excluded for whole units).
        calendar: one of CALENDAR.
        cells: so many cells of equal width on the scale of asinh: linear around 0, in equal ratios far from it.
    """

    count: int | None = None
    edges: tuple[float, ...] | None = None
    calendar: str | None = None
    cells: int | None = None


def case_tree(x: str, edges: list[str]) -> str:
    """SQL for the number of inner edges at or below `x`, as a balanced tree of comparisons: exact, like the draw."""

    def node(low: int, high: int) -> str:
        if high - low == 1:
            return str(low)
        middle = (low + high) // 2
        return f"CASE WHEN {x} < {edges[middle]} THEN {node(low, middle)} ELSE {node(middle, high)} END"

    return node(0, len(edges) - 1)


def cell_sql(x: str, low: float, high: float, cells: int) -> str:
    """SQL for the cell of `x` among so many of equal width on the scale of asinh; one on an edge goes up."""
    first, rate = math.asinh(low), cells / (math.asinh(high) - math.asinh(low))
    place = f"floor(sign({x}) * asinh(abs({x})) * {double(rate)} + {double(EDGE - first * rate)})"
    return f"least(greatest(CAST({place} AS INTEGER), 0), {cells - 1})"


def cell_edges(low: float, high: float, cells: int) -> Floats:
    """Where these cells begin, and where the last one ends."""
    edges = np.sinh(np.linspace(math.asinh(low), math.asinh(high), cells + 1))
    edges[0], edges[-1] = low, high
    return np.asarray(edges, np.float64)


@dataclass(frozen=True, eq=False)
class FloatGrid:
    """Bins of a float column; edges are exact doubles.

    Attributes:
        edges: size + 1 ascending doubles; the last bin includes its upper edge.
        width: the common width of equal bins (then edge i is low + i·width, in double arithmetic), or None.
        decimals: drawn values are rounded to so many, where that stays inside the bin.
        even: the bins are cells on the scale of asinh, whose edges were rounded to few digits.
    """

    edges: Floats
    width: float | None = None
    decimals: int | None = None
    even: bool = False

    @property
    def size(self) -> int:
        return len(self.edges) - 1

    def sql(self, x: str) -> str:
        """SQL for the code of `x`, which lies inside the bounds (a DOUBLE, or a TIMESTAMP for calendar kinds)."""
        if self.even:
            return cell_sql(x, float(self.edges[0]), float(self.edges[-1]), self.size)
        if self.width is None:
            return case_tree(x, [double(e) for e in self.edges])
        low, width, last = double(self.edges[0]), double(self.width), self.size - 1
        guess = f"least(greatest(floor(({x} - {low}) / {width}), 0), {last})"
        # One comparison on either side mends the rounding of the division, so that the edges alone decide.
        down = f"CASE WHEN {x} < {low} + {guess} * {width} THEN 1 ELSE 0 END"
        up = f"CASE WHEN {guess} < {last} AND {x} >= {low} + ({guess} + 1) * {width} THEN 1 ELSE 0 END"
        return f"CAST({guess} - {down} + {up} AS INTEGER)"

    def value_sql(self, x: str) -> str:
        """SQL for `x` itself in the column's unit: a number, or days or seconds from 1970-01-01."""
        return x

    def at_multiples(self, step: float) -> FloatGrid:
        """The grid with inner edges that are multiples but for rounding written so: 0.15, not 0.15000000000000002."""
        near = np.array([self.edges[0], *multiple(steps_to(self.edges[1:-1], step), step), self.edges[-1]])
        rounding = 16 * np.spacing(np.abs(self.edges[[0, -1]]).max())
        edges = np.where(np.abs(near - self.edges) <= rounding, near, self.edges)
        return self if self.even or np.array_equal(edges, self.edges) else FloatGrid(edges, None, self.decimals)

    @property
    def spans(self) -> tuple[Floats, Floats]:
        """Where each bin begins, and where it ends: of whole units its least and its largest value."""
        return self.edges[:-1], self.edges[1:]

    def draw(self, codes: Codes, rng: np.random.Generator) -> Floats:
        """A value inside the bin of each code, uniform over it."""
        low, high = self.edges[codes], self.edges[codes.astype(np.int64) + 1]
        return self.nearest(codes, low + (high - low) * rng.random(len(codes)))

    def nearest(self, codes: Codes, places: Floats) -> Floats:
        """The value at a place inside the bin of each code; with the column's decimals where it has some."""
        low, high = self.edges[codes], self.edges[codes.astype(np.int64) + 1]
        below = np.where(codes == self.size - 1, high, np.nextafter(high, low))
        exact = np.clip(places, low, below)
        if self.decimals is None:
            return exact
        best = exact
        first = np.ceil(low * 10.0**self.decimals)  # may lie below an edge such as 6.800000000000001
        for grid in ((first + 1) / 10.0**self.decimals, first / 10.0**self.decimals, exact):
            rounded = np.round(grid, self.decimals)
            best = np.where((rounded >= low) & (rounded <= below), rounded, best)
        return best


@dataclass(frozen=True, eq=False)
class IntegerGrid:
    """Bins of a column of whole units: integers, days (from 1970-01-01) or seconds.

    Attributes:
        formula: SQL with `{d}` for the units above the lower bound and `{t}` for the timestamp.
        low: the lower bound.
        kind: of the column: date (in days), datetime (in seconds); others are whole numbers.
        starts, ends: the runs of values, left-closed, sorted by code; a cyclic code has several.
        first: size + 1 positions: the runs of code c are first[c] … first[c + 1] − 1.
    """

    formula: str
    low: int
    kind: str
    starts: Ints
    ends: Ints
    first: Ints
    before: Ints = field(init=False)  # values in the runs before each run

    def __post_init__(self) -> None:
        object.__setattr__(self, "before", np.concatenate([[0], np.cumsum(self.ends - self.starts)]).astype(np.int64))

    @property
    def size(self) -> int:
        return len(self.first) - 1

    @cached_property
    def edges(self) -> Floats | None:
        """(size + 1,) where the bins begin and the last one ends; None where they lie on no line: cyclic units."""
        line = len(self.starts) == self.size and np.array_equal(self.starts[1:], self.ends[:-1])
        return np.append(self.starts, self.ends[-1]).astype(np.float64) if line else None

    @property
    def spans(self) -> tuple[Floats, Floats]:
        starts, last = self.starts[self.first[:-1]], self.ends[self.first[1:] - 1] - 1
        return starts.astype(np.float64), last.astype(np.float64)

    def sql(self, x: str) -> str:
        return f"CAST({self.formula.replace('{d}', self._above(x)).replace('{t}', x)} AS INTEGER)"

    def value_sql(self, x: str) -> str:
        return f"({self._above(x)} + {self.low})"

    def _above(self, x: str) -> str:
        """SQL for the units above the lower bound."""
        if self.kind == "date":
            return f"date_diff('day', {timestamp(self.low * DAY)}, {x})"
        if self.kind == "datetime":
            return f"((epoch_us({x}) - {self.low * 1_000_000}) // 1000000)"
        return f"(CAST({x} AS BIGINT) - {self.low})" if self.low >= 0 else f"(CAST({x} AS BIGINT) + {-self.low})"

    def draw(self, codes: Codes, rng: np.random.Generator) -> Ints:
        begin = self.before[self.first]
        width = np.diff(begin)
        if (width == 1).all():
            return self.starts[codes]
        place = begin[codes] + (rng.random(len(codes)) * width[codes]).astype(np.int64)
        run = codes if len(self.starts) == self.size else np.searchsorted(self.before, place, side="right") - 1
        return self.starts[run] + (place - self.before[run])

    def nearest(self, codes: Codes, places: Floats) -> Ints:
        return np.clip(np.floor(places).astype(np.int64), self.starts[codes], self.ends[codes] - 1)


#: The value codes of an ordered column.
Grid: TypeAlias = FloatGrid | IntegerGrid


def steps_to(edges: Floats, step: float) -> Floats:
    """How many steps the first multiple is that does not lie below each edge."""
    steps = edges / step
    return np.where(np.isclose(steps, np.rint(steps), 1e-14, 1e-9), np.rint(steps), np.ceil(steps))


def multiple(steps: Floats, step: float) -> Floats:
    """So many steps, in the digits in which a step is written: 3 of 0.05 are 0.15."""
    return np.round(steps * step, max(-int(Decimal(repr(step)).as_tuple().exponent), 0))


def within(grid: Grid, ranges: Sequence[tuple[float, float]]) -> Grid:
    """The same codes, their values drawn from what lies in one of the ranges (both ends included).

    A code of which nothing lies there must not be drawn.

    Args:
        ranges: ascending and apart; of a column of floats a single one.
    """
    if isinstance(grid, FloatGrid):
        ((low, high),) = ranges  # a bin does not hold its end
        return FloatGrid(np.clip(grid.edges, low, np.nextafter(high, np.inf)), None, grid.decimals)
    starts, ends, codes = [], [], []
    code_of_run = np.repeat(np.arange(grid.size), np.diff(grid.first))
    for low, high in ranges:
        begin, end = np.maximum(grid.starts, math.ceil(low)), np.minimum(grid.ends, math.floor(high) + 1)
        some = begin < end
        starts.append(begin[some])
        ends.append(end[some])
        codes.append(code_of_run[some])
    held = np.concatenate(codes)
    empty = np.setdiff1d(np.arange(grid.size), held)  # every code has a run, be it of no width
    first, last = (np.concatenate([*each, np.full(empty.size, grid.low)]) for each in (starts, ends))
    return _runs(grid.formula, grid.low, grid.kind, first, last, np.concatenate([held, empty]))


def float_grid(low: float, high: float, bins: Bins, *, decimals: int | None, where: str) -> FloatGrid:
    """The grid of a float column.

    Raises:
        UserError: edges that do not ascend, or bins narrower than doubles can tell apart.
    """
    if bins.cells is not None:
        width = None
        edges = _few_digits(cell_edges(low, high, bins.cells))
    elif bins.edges is not None:
        width = None
        edges = np.array(bins.edges, dtype=np.float64)
    else:
        count = bins.count or 1
        width = (high - low) / count
        edges = np.asarray(low + np.arange(count + 1) * width, dtype=np.float64)
        edges[-1] = high
    finest = 0.0 if bins.cells is not None else 16 * np.spacing(max(abs(edges[0]), abs(edges[-1])))
    if not (np.isfinite(edges).all() and (np.diff(edges) > finest).all()):
        raise UserError("the bins are too narrow, or do not ascend", where=where, fix="fewer bins, or other bounds")
    return FloatGrid(edges, width, decimals, bins.cells is not None)


def _few_digits(edges: Floats) -> Floats:
    """Inner edges in as many digits as tell them from their neighbours."""
    inner = [
        round(float(e), 1 - math.floor(math.log10(w))) for e, w in zip(edges[1:-1], np.diff(edges)[1:], strict=True)
    ]
    return np.array([edges[0], *inner, edges[-1]], np.float64)


def integer_grid(low: int, high: int, bins: Bins | None, *, kind: str, where: str) -> IntegerGrid:
    """The grid of a column of whole units.

    Args:
        low, high: bounds, both included.
        bins: None for one code per unit.

    Raises:
        UserError: more bins than values, more than MAX_CODES codes, or a calendar code that no value has.
    """
    values = high - low + 1
    if bins is not None and bins.calendar is not None:
        return _calendar_grid(low, high, bins.calendar, kind=kind, where=where)
    if bins is None:
        _check_codes(values, where)
        starts = np.arange(low, high + 2, dtype=np.int64)
        formula = "{d}"
    elif bins.cells is not None:
        begin = np.linspace(math.asinh(low), math.asinh(high + 1), bins.cells + 1)
        first = np.ceil(np.sinh(begin - EDGE * (begin[1] - begin[0]))).astype(np.int64).clip(low, high + 1)
        starts = np.unique([low, *first[:-1].tolist(), high + 1])
        bin_of_cell = ", ".join(f"'{i}'" for i in np.searchsorted(starts[:-1], first[:-1], side="right") - 1)
        cell = cell_sql(f"CAST({{d}} + ({low}) AS DOUBLE)", low, high + 1, bins.cells)
        formula = f"list_extract(CAST([{bin_of_cell}] AS INTEGER[]), {cell} + 1)"
    elif bins.edges is not None:
        starts = np.array(bins.edges, dtype=np.int64)
        formula = case_tree("{d}", [str(int(e) - low) for e in starts])
    else:
        count = bins.count or 1
        _check_codes(count, where)
        if count > values:
            raise UserError(f"{count} bins for {values} values", where=where, fix=f"at most {{count: {values}}}")
        if count * (values + 1) >= 2**62:
            raise UserError("the range is too wide for so many bins", where=where, fix="fewer bins, or a kind: float")
        starts = np.array([low + i * values // count for i in range(count + 1)], dtype=np.int64)
        formula = f"((({{d}} + 1) * {count} - 1) // {values})"
    return _runs(formula, low, kind, starts[:-1], starts[1:], np.arange(len(starts) - 1))


def _calendar_grid(low: int, high: int, name: str, *, kind: str, where: str) -> IntegerGrid:
    day = 1 if kind == "date" else DAY
    base = {"month_of_year": "month", "day_of_week": "day", "hour_of_day": "hour"}.get(name, name)
    if base == "hour" and kind == "date":
        raise UserError(f"calendar: {name} needs a time of day", where=where, fix="kind: datetime, or calendar: day")
    first, last = low // day, high // day
    if base in {"year", "month"}:
        step = f"datetime64[{'Y' if base == 'year' else 'M'}]"
        index = np.arange(
            np.datetime64(first, "D").astype(step).astype(int), np.datetime64(last, "D").astype(step).astype(int) + 2
        )
        edges = index.astype(step).astype("datetime64[D]").astype(np.int64) * day
    else:
        length = LENGTHS[base] * day // DAY
        shift = 3 * day if base == "week" else 0  # 1970-01-01 was a Thursday
        if (high - low) // length > MAX_RUNS:
            raise UserError(f"the range holds too many of calendar: {name}", where=where, fix="a shorter range")
        index = np.arange((low + shift) // length, (high + shift) // length + 2)
        edges = index * length - shift
    starts, ends = np.maximum(edges[:-1], low), np.minimum(edges[1:], high + 1)
    if name in CYCLIC:
        codes = (index[:-1] + (3 if base == "day" else 0)) % CYCLIC[name]
        absent = CYCLIC[name] - len(np.unique(codes))
        if absent:
            fix = f"a wider range, or calendar: {base}"
            raise UserError(
                f"{absent} of the {CYCLIC[name]} codes of {name} never occur in the range", where=where, fix=fix
            )
    else:
        codes = np.arange(len(starts))
        _check_codes(len(codes), where)
    return _runs(_calendar_sql(name, int(index[0])), low, kind, starts, ends, codes)


def _calendar_sql(name: str, start: int) -> str:
    """SQL for the code of timestamp {t}; `start` is the first unit, counted from 1970."""
    days = "date_diff('day', TIMESTAMP '0001-01-01', {t})"
    return {
        "year": f"year({{t}}) - {1970 + start}",
        "month": f"year({{t}}) * 12 + month({{t}}) - {1970 * 12 + 1 + start}",
        "week": f"{days} // 7 - {719_162 // 7 + start}",
        "day": f"{days} - {719_162 + start}",
        "hour": f"{days} * 24 + hour({{t}}) - {719_162 * 24 + start}",
        "month_of_year": "month({t}) - 1",
        "day_of_week": "isodow({t}) - 1",
        "hour_of_day": "hour({t})",
    }[name]


def _runs(formula: str, low: int, kind: str, starts: Ints, ends: Ints, codes: Ints) -> IntegerGrid:
    order = np.argsort(codes, kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(codes))]).astype(np.int64)
    return IntegerGrid(formula, low, kind, starts[order].astype(np.int64), ends[order].astype(np.int64), first)


def _check_codes(count: int, where: str) -> None:
    if count > MAX_CODES:
        raise UserError(
            f"{count:,} codes, but at most {MAX_CODES:,} are allowed", where=where, fix="bins: {count: 100}"
        )


def double(value: float) -> str:
    """A SQL literal that is exactly this double."""
    return f"CAST('{float(value)!r}' AS DOUBLE)"


def timestamp(seconds: int) -> str:
    """A SQL literal for so many seconds from 1970-01-01."""
    return f"TIMESTAMP '{np.datetime64(seconds, 's').astype(object).isoformat(sep=' ')}'"


def default_calendar(low: int, high: int, *, kind: str) -> Bins:
    """The finest calendar unit with at most 100 codes, else (at most) 100 equal bins."""
    for name, length in LENGTHS.items():
        span = (high - low + 1) * (DAY if kind == "date" else 1)
        if (name != "hour" or kind == "datetime") and span / length <= 100:
            return Bins(calendar=name)
    return Bins(count=min(100, high - low + 1))
