"""Tables of values: codes are the ranks of the distinct values of all tables, so that nothing is binned or clipped.

For metrics that count cells: buckets made from the real table, with frequent values in buckets alone.
"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evaluation.accuracy.anita_accuracy import apart_edges, frequent
from evaluation.values.value_kinds import Kind, ValueKind, as_numbers, as_texts
from mechanisms.public.arrays import Codes, Flags, Floats, Ints
from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.value_dictionaries import Dictionary

DAY = 86_400
#: A table's values are said to be of another kind where more than this share of them cannot be read.
ODD = 0.05
#: Buckets of a column of numbers or dates, and values of any other column, at most.
BUCKETS, CATEGORIES = 20, 50
OTHERS = "other values"


@dataclass(frozen=True, eq=False)
class ValueColumn:
    """What the codes of a column stand for.

    Attributes:
        name: as in the header.
        kind: number, date, category, flag or id.
        values: of the codes in order: numbers ascending (dates: seconds from 1970-01-01), or texts in their order.
        specials: what the codes behind them mean: what cannot be read as the column's kind, and what is missing.
    """

    name: str
    kind: Kind
    values: NDArray[Any]
    specials: tuple[str, ...] = ()

    @property
    def on_a_line(self) -> bool:
        """Whether the values are numbers of some unit."""
        return self.kind in {"number", "date"}

    @property
    def attribute(self) -> Attribute:
        """The column in the domain of values."""
        k = len(self.values)
        return Attribute(self.name, max(k + len(self.specials), 1), k if self.on_a_line else 0)

    @property
    def numbers(self) -> Floats:
        """The number of each code; NaN for what has none."""
        numbers = np.full(self.attribute.size, np.nan)
        if self.on_a_line:
            numbers[: len(self.values)] = self.values
        return numbers

    def label(self, code: int) -> str:
        """What a code is called."""
        if code >= len(self.values):
            return self.specials[code - len(self.values)] if self.specials else "missing"
        return shown(self.kind, self.values[code])


def shown(kind: Kind, value: Any) -> str:
    """A value as people write it."""
    if kind == "number":
        return f"{value:.12g}"
    if kind != "date":
        return str(value)
    try:
        moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=float(value))
    except OverflowError:
        return f"{value:.12g} s"
    return moment.isoformat(sep=" ") if value % DAY else moment.date().isoformat()


@dataclass(frozen=True, eq=False)
class Values:
    """Several tables over the values that occur in any of them.

    Attributes:
        columns: what the codes mean.
        tables: by name: real, synthetic, and what else there is.
        notices: what a reader must know first, such as values of another kind in one of the tables.
    """

    columns: tuple[ValueColumn, ...]
    tables: Mapping[str, CodedTable]
    notices: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> ValueColumn:
        return next(c for c in self.columns if c.name == name)

    def set_aside(self, aside: Flags | None) -> Values:
        """With these rows of the real table as the holdout; None: nothing was set aside."""
        if aside is None:
            return self
        parts = zip(("real", "holdout"), self.tables["real"].parted(aside), strict=True)
        return replace(self, tables={**self.tables, **dict(parts)})

    def frame(self, table: CodedTable, names: Sequence[str]) -> pd.DataFrame:
        """Some columns of a table over this domain as values; NaN or None for none."""
        columns = {}
        for name in names:
            column = self[name]
            if column.on_a_line:
                columns[name] = column.numbers[table.column(name)]
                continue
            texts = np.append(column.values, [None] * (column.attribute.size - len(column.values)))
            columns[name] = texts[table.column(name)]
        return pd.DataFrame(columns)


def value_tables(
    kinds: Mapping[str, ValueKind], tables: Mapping[str, Mapping[str, Dictionary]], notices: Sequence[str] = ()
) -> Values:
    """The tables over their common values.

    Args:
        kinds: of each column; every table has all of them.
        tables: name → column → its values.
        notices: what is known already.
    """
    columns, lines = [], list(notices)
    codes: dict[str, list[Codes]] = {name: [] for name in tables}
    for name, kind in kinds.items():
        column, coded = _pooled(name, kind, {t: own[name] for t, own in tables.items()}, lines)
        columns.append(column)
        for table, each in coded.items():
            codes[table].append(each)
    domain = Domain(tuple(c.attribute for c in columns))
    return Values(tuple(columns), {t: CodedTable(domain, tuple(c)) for t, c in codes.items()}, tuple(lines))


def _pooled(
    name: str, kind: ValueKind, own: Mapping[str, Dictionary], lines: list[str]
) -> tuple[ValueColumn, dict[str, Codes]]:
    """One column of all tables over the values that occur in any of them."""
    read = {table: _read(d, kind) for table, d in own.items()}
    values, there = _distinct([v[~(odd | gap)] for v, odd, gap in read.values()], kind)
    odd_rows = {t: int(own[t].counts[odd].sum()) for t, (_, odd, _) in read.items()}
    rows = {t: len(d.codes) for t, d in own.items()}
    gaps = sum(int(own[t].counts[gap].sum()) + int((own[t].codes < 0).sum()) for t, (_, _, gap) in read.items())
    specials = [f"not a {kind.kind}"] if any(odd_rows.values()) else []
    specials += ["missing"] if gaps else []
    odds = [f"{n / rows[t]:.0%} of the {t}" for t, n in odd_rows.items() if n > ODD * rows[t]]
    lines += [f"column {name!r}: {odd} values are no {kind.kind}s: they count as one value" for odd in odds]
    column = ValueColumn(name, kind.kind, values, tuple(specials))
    size = column.attribute.size
    coded = {}
    for table, (each, odd, gap) in read.items():
        places = np.full(len(each) + 1, size - 1, np.int64)  # the last one: no value
        read_ones = np.flatnonzero(~(odd | gap))
        places[read_ones], there = there[: read_ones.size], there[read_ones.size :]
        places[:-1][odd] = len(values)
        coded[table] = places.astype(code_dtype(size))[own[table].codes]
    return column, coded


def _read(dictionary: Dictionary, kind: ValueKind) -> tuple[NDArray[Any], Flags, Flags]:
    """The values of a dictionary; which of them are of no such kind, and which mean that there is none."""
    if kind.on_a_line:
        numbers, gaps = as_numbers(dictionary.values, kind)
        return numbers, np.isnan(numbers) & ~gaps, gaps
    texts = as_texts(dictionary.values, kind)
    gaps = np.fromiter((t is None for t in texts), bool, len(texts))
    return texts, np.zeros(len(texts), bool), gaps


def _distinct(parts: Sequence[NDArray[Any]], kind: ValueKind) -> tuple[NDArray[Any], Ints]:
    """The distinct values of all parts in their order, and where each one of the parts stands among them."""
    every = np.concatenate(parts)
    if kind.on_a_line:
        return np.unique(every + 0.0, return_inverse=True)  # −0 is 0
    values = sorted(set(every))
    place = {text: i for i, text in enumerate(values)}
    return np.array([*values, None], object)[:-1], np.array([place[text] for text in every], np.int64)


def bucketed(values: Values, name: str) -> tuple[Schema, dict[str, CodedTable]]:
    """A schema for scoring alone, made from the values of the real table, and all tables as its codes.

    Numbers and dates: each value its own code where there are at most BUCKETS, else buckets [lo, hi) that hold about as
    many real records each; a value that many records have is a bucket alone. Others: the most frequent real values, and
    one code for the rest. Never confirmed as public: it tells about the rows.

    Args:
        name: of the table.
    """
    columns, mappings = [], []
    for i, column in enumerate(values.columns):
        counts = np.bincount(values.tables["real"].columns[i], minlength=column.attribute.size)[: len(column.values)]
        names, mapping = ["no value"], np.zeros(0, np.int64)
        if len(column.values):
            names, mapping = _on_line(column, counts) if column.on_a_line else _listed(column, counts)
        columns.append(_declared(column, names))
        mappings.append(_specials(column, mapping, len(names)).astype(code_dtype(columns[-1].size)))
    schema = Schema(name, tuple(columns))
    coded = {
        t: CodedTable(schema.domain, tuple(m[c] for m, c in zip(mappings, table.columns, strict=True)))
        for t, table in values.tables.items()
    }
    return schema, coded


def _on_line(column: ValueColumn, counts: Ints) -> tuple[list[str], Ints]:
    """Names of buckets, and the bucket of each value."""
    k = len(column.values)
    starts = np.arange(1, k) if k <= BUCKETS else apart_edges(counts, BUCKETS)
    ends = list(zip([0, *starts.tolist()], [*(starts - 1).tolist(), k - 1], strict=True))
    names = [column.label(a) if a == b else f"{column.label(a)} to {column.label(b)}" for a, b in ends]
    return names, np.searchsorted(starts, np.arange(k), side="right")


def _listed(column: ValueColumn, counts: Ints) -> tuple[list[str], Ints]:
    """Names of the most frequent values and of the rest, and the place of each value among them."""
    k = len(column.values)
    often = frequent(np.arange(k), counts, CATEGORIES)
    mapping = np.full(k, len(often))
    mapping[often] = np.arange(len(often))
    return [column.label(int(i)) for i in often] + ([OTHERS] if k > CATEGORIES else []), mapping


def _specials(column: ValueColumn, mapping: Ints, size: int) -> Ints:
    """The mapping of all codes: what is no value comes behind the values."""
    whole = np.concatenate([mapping, size + np.arange(len(column.specials))])
    return whole if len(whole) == column.attribute.size else np.zeros(column.attribute.size, np.int64)


def _declared(column: ValueColumn, names: list[str]) -> Column:
    odd = [s for s in column.specials if s != "missing"]
    return Column(
        column.name,
        "categorical",
        values=_unlike(names, odd),
        ordinal=column.on_a_line and len(names) > 1,
        other=odd[0] if odd else None,
        missing="missing" in column.specials,
    )


def _unlike(names: list[str], taken: list[str]) -> tuple[str, ...]:
    """The names, none twice, and none empty."""
    seen, unlike = set(taken), []
    for name in names:
        text = name or "(empty)"
        numbered = (f"{text} ({i})" for i in itertools.count(2))
        while text in seen:
            text = next(numbered)
        seen.add(text)
        unlike.append(text)
    return tuple(unlike)


#: The number of a row without a subject.
NOBODY = -1


def numbered(*tables: NDArray[np.object_]) -> list[Ints]:
    """A number for each row's subject, from 0 in the order of the subjects of all tables; NOBODY where there is none.

    Subjects that are all numbers are in the order of numbers, others in that of their texts, as pandas sorts them in
    the scorers of the contests.

    Args:
        tables: texts of each; None, NaN or an empty one for no subject.
    """
    both = pd.Series(np.concatenate(tables), dtype=object)
    both = both.mask(both == "")
    values = pd.to_numeric(both, errors="coerce")
    if values.notna().sum() == both.notna().sum():
        both = values
    codes, _ = pd.factorize(both, sort=True)
    return np.split(np.asarray(codes, np.int64), np.cumsum([len(t) for t in tables])[:-1])


def as_units(tables: list[Ints]) -> list[Ints]:
    """The same for privacy units: a row without a subject is a unit of its own."""
    whole = np.concatenate(tables)
    alone = whole == NOBODY
    whole = np.where(alone, whole.max(initial=0) + np.cumsum(alone), whole)
    return np.split(whole, np.cumsum([len(t) for t in tables])[:-1])
