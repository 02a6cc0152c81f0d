"""What kind of values a column holds, read from the table for scoring alone. NOT private."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from mechanisms.public.arrays import Flags, Floats, Ints
from mechanisms.public.schema.column import DATE_KINDS, Column
from mechanisms.public.schema.spellings import ISO, reader, spelled_yes_or_no
from mechanisms.public.tables.text_forms import (
    AS_THEY_ARE,
    GAPS,
    NumberForm,
    date_forms,
    far_flung,
    few_words,
    number_reading,
)
from mechanisms.public.tables.value_dictionaries import Dictionary

Kind = Literal["number", "date", "category", "flag", "id"]

#: A column of texts is of a kind where at least this share of its values can be read so.
MOSTLY = 0.95
#: Or this share, where the others are at most three different words.
WITH_WORDS = 0.8
#: So many of the most frequent texts tell what the others look like.
SAMPLED = 1000
#: Columns with fewer values are no ids.
FEW_ROWS = 20
#: A column of texts is an id where so large a part of its values differ from all others.
DIFFERENT = 0.9


@dataclass(frozen=True)
class ValueKind:
    """How a column's values are read.

    Attributes:
        kind: what they are.
        reading: of numbers that are texts.
        forms: of dates that are texts.
        column: the column of a schema that says how texts are read.
    """

    kind: Kind
    reading: NumberForm = AS_THEY_ARE
    forms: tuple[str, ...] = ()
    column: Column | None = None

    @property
    def on_a_line(self) -> bool:
        """Whether the values are numbers of some unit."""
        return self.kind in {"number", "date"}


def declared_kind(column: Column) -> ValueKind:
    """The kind of a column as its schema declares it; a weekday or an hour of a time is a number."""
    if column.kind in DATE_KINDS:
        return ValueKind("number") if column.cell_of else ValueKind("date", column=column)
    if column.width is None and column.numeric:
        return ValueKind("number", column=column)
    return ValueKind("flag" if column.kind == "flag" else "category", column=column)


def kind_of(name: str, dictionary: Dictionary) -> ValueKind:
    """The kind of a column: of what most of its values can be read as."""
    values, counts = dictionary.values, dictionary.counts
    if pa.types.is_boolean(values.type):
        return ValueKind("flag")
    if pa.types.is_date(values.type) or pa.types.is_timestamp(values.type):
        return ValueKind("date")
    if not pa.types.is_string(values.type):
        return ValueKind(_kind_of_numbers(name, np.asarray(values.cast(pa.float64(), safe=False)), counts))
    return _kind_of_texts(name, np.asarray(values.to_pandas(), object), counts)


def _kind_of_texts(name: str, texts: NDArray[np.object_], counts: Ints) -> ValueKind:
    filled = ~_gaps(texts)
    texts, counts = texts[filled], counts[filled]
    if not len(texts):
        return ValueKind("category")
    often = np.argsort(-counts, kind="stable")[:SAMPLED]
    sample = {str(texts[i]): int(counts[i]) for i in often}
    padded = any(re.match(r" *-?0[0-9]", t) for t in sample)
    numbers = _numbers(texts, AS_THEY_ARE)
    if not padded and _mostly(np.isfinite(numbers), texts, counts):
        return ValueKind("category" if _codes(numbers) else _kind_of_numbers(name, numbers, counts))
    digits = sum(n for t, n in sample.items() if any(c.isdigit() for c in t))
    if digits >= WITH_WORDS * sum(sample.values()):
        forms = tuple(form for form, _ in date_forms(sample))
        if forms and _mostly(np.isfinite(_moments(texts, forms)), texts, counts):
            return ValueKind("date", forms=forms)
        reading, share = number_reading(sample)
        if not padded and not reading.plain and share >= MOSTLY:
            return ValueKind("number", reading=reading)
    if len(texts) <= SAMPLED and spelled_yes_or_no(list(sample)):
        return ValueKind("flag")
    different = len(texts) >= DIFFERENT * counts.sum() and counts.sum() >= FEW_ROWS
    return ValueKind("id" if different else "category")


def _mostly(read: Flags, texts: NDArray[np.object_], counts: Ints) -> bool:
    share = counts[read].sum() / counts.sum()
    words = texts[~read]
    return bool(share >= (WITH_WORDS if few_words(words[:4].tolist()) else MOSTLY))


def _codes(numbers: Floats) -> bool:
    """A few far-flung whole numbers are codes of categories."""
    finite = numbers[np.isfinite(numbers)]
    return bool(len(finite) > 2 and far_flung(len(finite), np.ptp(finite)) and (finite == np.round(finite)).all())


def _kind_of_numbers(name: str, numbers: Floats, counts: Ints) -> Kind:
    """Zeros and ones are a flag; whole numbers that count the rows are an id."""
    if len(numbers) == 2 and set(numbers) == {0.0, 1.0}:
        return "flag"
    return "id" if _counted_on(name, numbers, counts) else "number"


def _counted_on(name: str, numbers: Floats, counts: Ints) -> bool:
    """Whether whole numbers that all differ count the rows, or are called an id."""
    rows = int(counts.sum())
    if rows < FEW_ROWS or len(numbers) < DIFFERENT * rows or not (numbers == np.round(numbers)).all():
        return False
    named = re.search(r"(?i)(^|[^a-z])(id|key|uuid|index)$", name) is not None or re.search(r"[a-z]I[dD]$", name)
    return bool(named or (len(numbers) == rows and np.ptp(numbers) < 1.02 * rows))


def _gaps(texts: NDArray[np.object_]) -> Flags:
    """Which texts mean that there is no value."""
    return np.fromiter((t.strip() in GAPS or not t.strip() for t in texts), bool, len(texts))


def _numbers(texts: NDArray[np.object_], reading: NumberForm) -> Floats:
    """The number that each text is; NaN where it is none."""
    if reading.plain:
        values = np.asarray(pd.to_numeric(pd.Series(texts, dtype=object), errors="coerce"), np.float64)
        return np.where(np.isfinite(values), values, np.nan)
    read = (reading.number(t) for t in texts)
    return np.fromiter((np.nan if x is None else x for x in read), np.float64, len(texts))


def _moments(texts: NDArray[np.object_], forms: tuple[str, ...]) -> Floats:
    """Seconds from 1970-01-01 in the first of the forms that reads each text; NaN where none does."""
    seconds = np.full(len(texts), np.nan)
    for form in forms:
        left = np.flatnonzero(np.isnan(seconds))
        how: Mapping[str, Any] = {"format": "ISO8601" if form == ISO else form}
        read = pd.to_datetime(pd.Series(texts[left], dtype=object).str.strip(), errors="coerce", utc=True, **how)
        moments = np.asarray(read.dt.tz_localize(None), "datetime64[s]")
        seconds[left] = np.where(np.isnat(moments), np.nan, moments.astype(np.int64))
    return seconds


def as_numbers(values: pa.Array, kind: ValueKind) -> tuple[Floats, Flags]:
    """The number behind each value (dates: seconds from 1970-01-01), NaN where it is none; and which are gaps."""
    if pa.types.is_date(values.type) or pa.types.is_timestamp(values.type):
        moments = np.asarray(values.cast(pa.timestamp("us")).to_numpy(zero_copy_only=False), "datetime64[s]")
        return moments.astype(np.float64), np.isnat(moments)
    if not pa.types.is_string(values.type):
        numbers = np.asarray(values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), np.float64)
        unit = 86_400 if kind.column is not None and kind.column.kind == "date" else 1
        return numbers * unit, np.isnan(numbers)
    texts = np.asarray(values.to_pandas(), object)
    gaps = _gaps(texts)
    read = _moments(texts, kind.forms or (ISO,)) if kind.kind == "date" else _numbers(texts, kind.reading)
    return np.where(gaps, np.nan, read), gaps


def as_texts(values: pa.Array, kind: ValueKind) -> NDArray[np.object_]:
    """The text behind each value in one spelling; None for a gap."""
    if pa.types.is_boolean(values.type):
        return np.array(["true" if v else "false" for v in values.to_pylist()], object)
    if pa.types.is_string(values.type):
        texts = [t.strip() for t in values.to_pylist()]
    elif pa.types.is_date(values.type) or pa.types.is_timestamp(values.type):
        texts = [str(v) for v in values.to_pylist()]
    else:
        texts = [f"{v:.15g}" for v in values.cast(pa.float64(), safe=False).to_pylist()]
    if kind.kind == "flag" and kind.column is None:
        texts = [t.lower() if t not in GAPS else t for t in texts]
    canonical = _declared(kind.column) if kind.column is not None else _usual
    return np.array([canonical(t) for t in texts] + [None], object)[:-1]


def _declared(column: Column) -> Callable[[str], str | None]:
    """Text → the one that stands for the same, and itself where the column lists none; None: missing."""
    code_of, first = reader(column), {code: text for text, code in reversed(column.spelled)}

    def canonical(text: str) -> str | None:
        code = code_of(text)
        missing = text == "" if code is None else code == column.missing_code
        return None if missing else first.get(-1 if code is None else code, _whole(text))

    return canonical


def _usual(text: str) -> str | None:
    """A text that no schema knows, without the zeros behind a whole number; None: it usually means a gap."""
    return None if text in {"", *GAPS} else _whole(text)


def _whole(text: str) -> str:
    """2.0 beside a 2 is the 2."""
    return re.sub(r"\.0+$", "", text) if text[:1].isdigit() or text[:1] == "-" else text
