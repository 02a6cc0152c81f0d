"""Column: the public facts about one column of the table, and what each of its codes means."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, cast

import numpy as np

from mechanisms.public.arrays import Codes, Floats
from mechanisms.public.domain import Attribute
from mechanisms.public.schema.bins import CYCLIC, DAY, Bins, FloatGrid, Grid, float_grid, integer_grid
from mechanisms.public.schema.discover_fields import Discover
from mechanisms.public.schema.hierarchy import Distances, Hierarchy
from mechanisms.public.schema.places import Places

Kind = Literal["categorical", "integer", "float", "date", "datetime", "flag"]
Outside = Literal["clip", "other", "missing", "refuse"]
ORDERED_KINDS = ("integer", "float", "date", "datetime")
DATE_KINDS = ("date", "datetime")
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
          "December")  # fmt: skip
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
#: Calendar unit → how a moment in it is written.
CALENDAR_FORMATS = {"year": "%Y", "month": "%Y-%m", "day": "%Y-%m-%d", "hour": "%Y-%m-%d %H"}


@dataclass(frozen=True)
class Column:
    """One column. Codes: its values, *other* if declared, *missing* if it may be missing, then *outside* for scores.

    Attributes:
        name: as in the table's header.
        kind: what the values are.
        values: categorical, flag (no, then yes): the texts as they are written, in the order of their codes.
        whole: categorical: the values are whole numbers and are decoded as such.
        codes: categorical: the values are the whole numbers 0 … codes − 1, instead of `values`.
        ordinal: categorical: the codes lie on a line.
        spellings: further texts that stand for a value, and its code.
        loose: texts: what is none of these is read but for capitals and spaces around it.
        beginning: categorical: of what is none of these, so many characters count; 0: all.
        low, high: ordered kinds: bounds, both included; days or seconds from 1970-01-01 for dates and times.
        bins: ordered kinds: the discretization; None for one code per whole number.
        decimals: float: decimals of decoded values.
        fixed: integer, float: at least so many decimals stand in texts, zeros too: 60.00.
        multiple_of: integer, float, datetime (in seconds): decoded values are multiples of it, where the bin holds one.
        format: date kinds: strftime format of the text; None for ISO.
        more_formats: date kinds: further formats that are read, in this order; "ISO" among them.
        strip: numbers: texts that are taken out before a number is read.
        decimal: numbers: the decimal mark.
        width: integer: written with leading zeros, in so many digits (a postal code); None: as it is.
        constant: categorical: the same value in all rows, which is neither measured nor synthesized; "" for no value.
        other: the label of the *other* code, or None.
        missing: whether there is a *missing* code.
        missing_texts: further texts that mean missing (NULL and empty text always do, unless they are listed values).
        outside: what happens to a value outside the domain.
        tree: the hierarchy over the value codes, if one is declared.
        distances: the distances between the value codes, if they are declared (then there is no `tree`).
        places: where the value codes lie on a map, if that is declared.
        joint_bins: coarse bins for joint marginals: ("count", n), ("level", name) or ("starts", codes), or None.
        one_way_only: the column stands in no joint marginal.
        unmeasured: categorical: no answer is bought for the column; its synthetic values are drawn uniformly.
        discover: what a run finds out with noise; until then the column is as a plan assumes it.
        discovered: what of it was found out so: bounds, bins or values.
        fine: ordered kinds: about so many fine cells are measured beside the bins, alone; 0 or None: none.
        shape: how values lie inside the bins, from noisy answers; None: evenly.
        within: of rows given a condition: ranges, both ends included, from which alone values are drawn; or None.
        apart: values outside the domain have a code of their own, the last one: for scores, which never clip.
        cell_of: a part of a date or time, or its length: the table's column whose cells it is read from, and which is
            written alone.
        between: of a length, the two columns that it lies between; read from the cells of both.
    """

    name: str
    kind: Kind
    values: tuple[str, ...] = ()
    whole: bool = False
    codes: int | None = None
    ordinal: bool = False
    spellings: tuple[tuple[str, int], ...] = ()
    loose: bool = False
    beginning: int = 0
    low: float = 0
    high: float = 0
    bins: Bins | None = None
    decimals: int | None = None
    fixed: int | None = None
    multiple_of: float | None = None
    format: str | None = None
    more_formats: tuple[str, ...] = ()
    strip: tuple[str, ...] = ()
    decimal: str = "."
    width: int | None = None
    constant: bool = False
    other: str | None = None
    missing: bool = True
    missing_texts: tuple[str, ...] = ()
    outside: Outside = "clip"
    tree: Hierarchy | None = field(default=None, repr=False)
    distances: Distances | None = field(default=None, repr=False)
    places: Places | None = field(default=None, repr=False)
    joint_bins: tuple[str, object] | None = None
    one_way_only: bool = False
    unmeasured: bool = False
    discover: Discover | None = None
    discovered: tuple[str, ...] = ()
    fine: int | None = None
    shape: Shape | None = field(default=None, repr=False)
    apart: bool = False
    cell_of: str = ""
    between: Between | None = None
    within: tuple[tuple[float, float], ...] | None = None

    @property
    def numeric(self) -> bool:
        """Read as a number."""
        return self.kind in {"integer", "float"} or self.codes is not None

    @property
    def cell(self) -> str:
        """The table's column whose cells are read."""
        return self.cell_of or self.name

    @property
    def gridded(self) -> bool:
        """Read as a number, a day or a time, which has its code by the grid; others are texts."""
        return self.numeric or self.kind in DATE_KINDS

    @property
    def spelled(self) -> tuple[tuple[str, int], ...]:
        """Every text that stands for a value code of a categorical column or a flag, and that code."""
        return (*((t, code) for code, t in enumerate(self.values)), *self.spellings)

    @property
    def listed(self) -> bool:
        """Whether a person has listed its values, text by text."""
        return (
            self.kind == "categorical" and bool(self.values) and not self.constant and "values" not in self.discovered
        )

    @property
    def value_codes(self) -> int:
        """How many codes stand for values."""
        return len(self.values) or self.codes or self.grid.size

    @property
    def other_code(self) -> int | None:
        return None if self.other is None else self.value_codes

    @property
    def missing_code(self) -> int | None:
        return self.value_codes + (self.other is not None) if self.missing else None

    @property
    def size(self) -> int:
        return self.value_codes + (self.other is not None) + self.missing + self.apart

    @property
    def attribute(self) -> Attribute:
        """The column as an attribute of the domain."""
        return Attribute(self.name, self.size, self.value_codes if self.on_a_line else 0)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """A name for each value code, all distinct: the text, number or day, or `first to last` for a bin.

        Bins of floats are named by their edges. Calendar units are 2016, 2016-12, 2016-12-31 or 2016-12-31 23; cyclic
        ones January, Monday or the hour 0 … 23. The special codes (*other*, *missing*) are not among them.
        """
        if self.values:
            return self.values
        grid = self.grid
        if isinstance(grid, FloatGrid):
            return _float_bins(grid.edges)
        calendar = None if self.bins is None else self.bins.calendar
        if calendar in CYCLIC:
            return {"month_of_year": MONTHS, "day_of_week": DAYS}.get(calendar, tuple(map(str, range(24))))
        starts, last = grid.starts[grid.first[:-1]], grid.ends[grid.first[:-1]] - 1
        if self.kind not in DATE_KINDS:
            digits = self.width or 0
            return tuple(_run(str(a).zfill(digits), str(b).zfill(digits)) for a, b in zip(starts, last, strict=True))
        unit = DAY if self.kind == "date" else 1
        if calendar in CALENDAR_FORMATS:
            form = CALENDAR_FORMATS[calendar]
            return tuple(_moment(int(a) * unit, form) for a in starts)
        form = "%Y-%m-%d" if self.kind == "date" else "%Y-%m-%d %H:%M:%S"
        return tuple(
            _run(_moment(int(a) * unit, form), _moment(int(b) * unit, form)) for a, b in zip(starts, last, strict=True)
        )

    @property
    def exact_codes(self) -> dict[str, int]:
        """Text → code: each value and its spellings, the label of *other*, and what means missing."""
        codes = dict(self.spelled)
        if self.other is not None and self.other_code is not None:
            codes[self.other] = self.other_code
        if self.missing_code is not None:
            codes |= {text: self.missing_code for text in ("", *self.missing_texts) if text not in codes}
        return codes

    @cached_property
    def codes_by_label(self) -> Mapping[str, int]:
        """Every text that names a code: the labels of the values, *other*, and the texts that mean missing."""
        codes = {label: code for code, label in enumerate(self.labels)}
        return codes | {text: code for text, code in self.exact_codes.items() if text not in codes}

    @property
    def specials(self) -> tuple[str, ...]:
        """What the codes behind the value codes are called."""
        other = () if self.other is None else (self.other,)
        return (*other, *(("missing",) if self.missing else ()), *(("outside the schema",) if self.apart else ()))

    @cached_property
    def hierarchy(self) -> Hierarchy:
        """The hierarchy over the value codes: as declared, else one root over the leaves."""
        return self.tree or Hierarchy.default(self.labels, ordered=self.on_a_line)

    @property
    def on_a_line(self) -> bool:
        """Whether the value codes are ordinal."""
        return self.kind in ORDERED_KINDS or self.ordinal

    @cached_property
    def grid(self) -> Grid:
        """The value codes of an ordered column, or of whole-number codes."""
        if self.kind == "float":
            grid = float_grid(self.low, self.high, cast(Bins, self.bins), decimals=self.decimals, where=self.name)
            return grid if self.multiple_of is None else grid.at_multiples(self.multiple_of)
        low, high = self.bounds
        return integer_grid(int(low), int(high), self.bins, kind=self.kind, where=self.name)

    @property
    def step(self) -> float:
        """How far the decoded values of an ordered column lie apart; 0: floats of any digits."""
        least = 1.0 if self.kind != "float" else 0.0 if self.decimals is None else 10.0**-self.decimals
        return self.multiple_of or least

    @property
    def bounds(self) -> tuple[float, float]:
        """The bounds that values are clipped to: in the column's unit, both included."""
        return (0, self.codes - 1) if self.codes is not None else (self.low, self.high)


def _run(first: str, last: str) -> str:
    return first if first == last else f"{first} to {last}"


def _moment(seconds: int, form: str) -> str:
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)
    return moment.strftime(form.replace("%Y", f"{moment.year:04d}"))


def _float_bins(edges: Floats) -> tuple[str, ...]:
    """`0 to 2.5`: edges in ten digits, or in all where ten cannot tell them apart."""
    short = [f"{e:.10g}" for e in edges]
    texts = short if len(set(short)) == len(short) else [repr(float(e)) for e in edges]
    return tuple(f"{a} to {b}" for a, b in itertools.pairwise(texts))


@dataclass(frozen=True)
class Between:
    """Two columns of dates or of times, or a time and a day, and the seconds of one unit of the length between them."""

    earlier: Column
    later: Column
    unit: int


@dataclass(frozen=True, eq=False)
class Shape:
    """A distribution function of the values, in records; from noisy answers and public facts alone.

    Attributes:
        places: values in the column's unit, ascending; a place that stands twice is a peak.
        below: records below each place, never falling; linear in between.
        edges: (codes + 1,) where the bins begin and end; `at_edges` the records below each.
    """

    places: Floats
    below: Floats
    edges: Floats
    at_edges: Floats

    @property
    def counts(self) -> Floats:
        """Records in each bin."""
        return np.diff(self.at_edges)

    def inside(self, codes: Codes, rng: np.random.Generator, *, limits: tuple[float, float] | None = None) -> Floats:
        """A place inside the bin of each code, by the distribution given the bin; even where that holds no record.

        Args:
            limits: places from the first to the last of them alone; every code's bin has some.
        """
        edges, below = self.edges, self.at_edges
        if limits is not None:
            ends = np.interp(
                [np.nextafter(limits[0], -np.inf), np.nextafter(limits[1], np.inf)], self.places, self.below
            )
            edges, below = np.clip(edges, *limits), np.clip(below, *ends)
        low, high = edges[codes], edges[codes.astype(np.int64) + 1]
        start, size = below[codes], np.diff(below)[codes]
        part = rng.random(len(codes))
        drawn = np.interp(start + part * size, self.below, self.places)
        return np.clip(np.where(size > 0, drawn, low + part * (high - low)), low, high)
