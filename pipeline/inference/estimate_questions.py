"""What an analyst asks of a release: a question, checked, the cells that it is about, and their values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechanisms.public.arrays import Floats, Ints
from mechanisms.public.domain import Clique
from mechanisms.public.errors import UserError, one_of, require_columns
from mechanisms.public.files import is_number
from mechanisms.public.schema.code_labels import drawn_ends
from mechanisms.public.schema.column import DATE_KINDS, Column
from mechanisms.public.schema.table_schema import Schema
from pipeline.inference.conditions import code_weights
from pipeline.inference.person_level import LEVELS, of_level
from pipeline.release_folder import check_columns, names_asked

#: What may be estimated.
KINDS = ("count", "proportion", "mean", "median", "quantile", "equal_means", "correlation", "odds_ratio")
#: Of these, what is asked about two columns.
OF_TWO = ("correlation", "odds_ratio")
#: What is done with values inside bins: any value of the bin may be the true one, or its middle is taken for it.
WORST, MIDPOINT = "worst", "midpoint"
#: What is done where no answer tells: nothing, or limits from the marginals inside (Fréchet).
REFUSE, BOUNDS = "refuse", "bounds"


@dataclass(frozen=True)
class EstimateQuestion:
    """What is asked.

    Attributes:
        what: one of KINDS.
        column: the column that it is about; a count needs none.
        other: of a correlation or an odds ratio: the second column.
        by: columns, or one: an estimate for each group of their values.
        value: of a count or proportion: a value, a list of values, or [low, high] of an ordered column; of an odds
            ratio: column → such a value, needed for columns of more than two values.
        quantile: of a quantile: between 0 and 1; of all else None.
        within_bin: WORST or MIDPOINT.
        sampling: whether the interval is about the population from which the records are independent draws; else it is
            about the records themselves.
        unmeasured: REFUSE or BOUNDS.
        level: what counts once, records or persons (see `at_level`).
    """

    what: str
    column: str | None = None
    other: str | None = None
    by: str | Sequence[str] = ()
    value: Any = None
    quantile: float | None = None
    within_bin: str = WORST
    sampling: bool = False
    unmeasured: str = REFUSE
    level: str = LEVELS[0]

    def __post_init__(self) -> None:
        object.__setattr__(self, "by", names_asked(self.by, "by"))
        for where, name in (("column", self.column), ("other", self.other)):
            if not isinstance(name, str | None):
                raise UserError(f"{name!r} is no name of a column", where=where, fix=f"{where}=COLUMN")

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that it takes to answer, in the order asked."""
        return tuple(n for n in (*self.by, self.column, self.other) if n is not None)

    @property
    def part(self) -> float | None:
        """The part of the records below; None where no quantile is asked for."""
        return 0.5 if self.what == "median" else self.quantile


def check_question(schema: Schema, question: EstimateQuestion) -> None:
    """UserError for an impossible question."""
    one_of(question.what, KINDS, "estimate")
    one_of(question.within_bin, (WORST, MIDPOINT), "within_bin")
    one_of(question.unmeasured, (REFUSE, BOUNDS), "unmeasured")
    if not isinstance(question.sampling, bool | np.bool_):
        raise UserError(f"got {question.sampling!r}", where="sampling", fix="true or false")
    asked = {"column": [question.column], "other": [question.other], "by": question.by}
    named = {where: [name for name in names if name is not None] for where, names in asked.items()}
    wrong = {where: [n for n in names if n not in schema.domain] for where, names in named.items()}
    settings = ", ".join(where for where, names in wrong.items() if names)
    unknown = [n for names in wrong.values() for n in names]
    require_columns(unknown, schema.domain.names, where=settings, of=of_level(question.level))
    for where, names in named.items():
        check_columns(schema, where, names)
    if len(set(question.columns)) < len(question.columns):
        raise UserError("a column is named twice", where="by", fix="each column once")
    if question.column is None and question.what != "count":
        raise UserError(f"a {question.what} of which column?", where="column", fix="column=COLUMN")
    two = question.what in OF_TWO
    if (question.what == "quantile") != (question.quantile is not None):
        has_none = question.what != "quantile"
        fix = "leave it out, or estimate=quantile" if has_none else "quantile=0.9; or estimate=median"
        problem = f"a {question.what} has none" if has_none else "below which lies which part of the records?"
        raise UserError(problem, where="quantile", fix=fix)
    if two != (question.other is not None):
        fix = "other=COLUMN" if two else f"leave other away; estimate={' or '.join(OF_TWO)} takes it"
        raise UserError(f"{question.what} of {question.column} and which other column?", where="other", fix=fix)
    if question.what == "odds_ratio":
        _check_values(question)
        return
    asks = question.what in {"count", "proportion"} and question.column is not None
    if asks != (question.value is not None):
        fix = "value=VALUE, value=[A,B] or value=[low,high]" if asks else "leave value away"
        of = f"which value of {question.column}?" if asks else f"{question.column or 'records'} takes no value"
        raise UserError(f"a {question.what} of {of}", where="value", fix=fix)
    if question.quantile is not None and not (is_number(question.quantile) and 0 < question.quantile < 1):
        raise UserError(f"got {question.quantile}", where="quantile", fix="a number between 0 and 1; 0.5 is the median")


def _check_values(question: EstimateQuestion) -> None:
    """UserError where `value` of an odds ratio is no mapping of its two columns."""
    named = question.value or {}
    if not isinstance(named, Mapping) or not set(named) <= {question.column, question.other}:
        fix = f"value={{{question.column}: VALUE, {question.other}: VALUE}}; without it columns of two values"
        raise UserError(f"got {question.value}", where="value", fix=fix)


@dataclass(frozen=True, eq=False)
class BinValues:
    """The numbers that each code of a column, or each cell of a marginal, stands for.

    Attributes:
        counted: 1 where it stands for a number, and so counts in the denominator; 0 for *other* and *missing*.
        low, high: the least and the largest number of the bin; 0 where `counted` is 0.
    """

    counted: Floats
    low: Floats
    high: Floats

    @property
    def middle(self) -> Floats:
        return (self.low + self.high) / 2

    def at_midpoints(self) -> BinValues:
        """As if every value were its bin's middle."""
        return BinValues(self.counted, self.middle, self.middle)

    @property
    def widest(self) -> float:
        """The width of the widest bin, in the column's unit."""
        return float((self.high - self.low).max(initial=0.0))


@dataclass(frozen=True, eq=False)
class Groups(BinValues):
    """The cells of each group, with their values; flattened over the question's marginal.

    Attributes:
        group: per cell the number of its group, 0, 1, …
        count: how many groups there are.
        codes: the values of the column's codes; None where the question is about no values of one column.
    """

    group: Ints
    count: int
    codes: BinValues | None = None

    def of(self, place: int) -> Floats:
        """Per cell 1 where it belongs to a group, else 0."""
        return np.asarray(self.group == place, np.float64)

    @property
    def members(self) -> Iterator[Floats]:
        """The cells of each group; one at a time, for there may be many of both."""
        return (self.of(place) for place in range(self.count))


def groups_of(schema: Schema, question: EstimateQuestion, clique: Clique, own: Column | None = None) -> Groups:
    """The groups of a question, over the cells of the marginal of its columns.

    Args:
        own: its column with fine cells in the place of the bins; None: as the schema has it.
    """
    shape = [own.size if own and n == own.name else schema.measured[n].size for n in clique]
    codes = codes_of(shape, clique)
    by = schema.measured.canonical(question.by)
    sizes = schema.measured.shape(by)
    group = np.ravel_multi_index([codes[n] for n in by], sizes) if by else np.zeros(math.prod(shape), np.int64)
    count = math.prod(sizes)
    if question.column is None or question.what in OF_TWO:
        ones = np.ones(math.prod(shape))
        return Groups(ones, ones, ones, group, count)
    values, code = values_of(schema, question, own), codes[question.column]
    return Groups(values.counted[code], values.low[code], values.high[code], group, count, values)


def codes_of(shape: Sequence[int], clique: Clique) -> dict[str, Ints]:
    """Column → its code in each cell, flattened in C order."""
    flat = np.indices(tuple(shape)).reshape(len(shape), math.prod(shape))
    return dict(zip(clique, flat, strict=True))


def values_of(schema: Schema, question: EstimateQuestion, own: Column | None = None) -> BinValues:
    """What each code of the column counts: its number, or 1 for the value asked for; `own`: as of `groups_of`."""
    assert question.column is not None
    if question.value is None:
        values = bin_values(own or schema[question.column], question.what)
        return values.at_midpoints() if question.within_bin == MIDPOINT else values
    part = code_weights(schema, question.column, question.value)
    if question.within_bin == MIDPOINT:
        return BinValues(np.ones(part.size), part, part)
    return BinValues(np.ones(part.size), np.floor(part + 1e-12), np.ceil(part - 1e-12))


def bin_values(column: Column, what: str) -> BinValues:
    """The numbers behind the codes of a column of numbers.

    Raises:
        UserError: a column of texts, dates or times; `what` is the estimate that was asked for.
    """
    if column.kind in DATE_KINDS:
        raise UserError(f"{column.name!r} holds dates", where=what, fix="a column of numbers; or query where={…}")
    low, high = _ends(column, what)
    behind = np.zeros(column.size - column.value_codes)
    counted = np.concatenate([np.ones(column.value_codes), behind])
    return BinValues(counted, np.concatenate([low, behind]), np.concatenate([high, behind]))


def _ends(column: Column, what: str) -> tuple[Floats, Floats]:
    if column.values:
        try:
            numbers = np.array([float(t) for t in column.values])
        except ValueError as error:
            fix = "a column of numbers; of texts ask estimate=proportion value=TEXT"
            raise UserError(f"{column.name!r} holds texts, not numbers", where=what, fix=fix) from error
        return numbers, numbers
    return column.grid.spans if column.multiple_of is None else drawn_ends(column)
