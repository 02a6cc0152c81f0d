"""The clipper: who is protected, and how much of one unit's records may count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.arrays import Flags, Ints
from mechanisms.public.errors import UserError, check_names, one_of
from mechanisms.public.tables.scan import DATES, DURATION, INTEGERS, UTC, UTC_NS, Source, literal
from mechanisms.public.units import ID_RULES, MAX_RECORDS, NO_UNIT, WEIGHT_BITS, Clip, MissingUnit
from mechanisms.sensitive.engines import coins
from mechanisms.sensitive.id_rules import normal_form, same_unit

#: Types of which equal values have one text, which is empty for none of them but an empty text.
OF_IDS = INTEGERS | DATES | {UTC, UTC_NS, "TIME", "TIME_NS", "TIME WITH TIME ZONE", "BOOLEAN", "UUID", '"NULL"'}
OF_IDS |= {"VARCHAR", "BLOB", "FLOAT", "DOUBLE", "DECIMAL", "HUGEINT", "UHUGEINT", DURATION}


@dataclass(frozen=True)
class PrivacyUnit:
    """Who is protected, and the bound C on what one unit contributes.

    Guarantee: after clipping, the weights of the records of one unit sum to at most C records, exactly.

    Attributes:
        column: the column that holds the unit's id, or None: each record is a unit.
        max_records: C, in records.
        clip: weight (each record of a unit with R records counts min(1, C/R)), truncate (C of them, chosen at random),
            or none (a declared public bound: a unit above it refuses the run).
        missing: what happens to records without an id; they are never pooled.
        missing_values: texts that mean that there is no id; blank text, NULL and NaN always do.
        rules: which texts mean the same unit (see `ID_RULES`); those of `missing_values` are read under them too.
    """

    column: str | None = None
    max_records: int = 1
    clip: Clip = "weight"
    missing: MissingUnit = "drop"
    missing_values: tuple[str, ...] = NO_UNIT
    rules: tuple[str, ...] = tuple(ID_RULES)

    def __post_init__(self) -> None:
        c = self.max_records
        if isinstance(c, bool) or not isinstance(c, int) or not 1 <= c <= MAX_RECORDS:
            fix = f"a whole number from 1 to {MAX_RECORDS:,}, from what is publicly known"
            raise UserError(f"got {c!r}", where="privacy.max_records", fix=fix)
        if self.column is None and c != 1:
            fix = "privacy.max_records=1; or privacy.unit=COLUMN with the unit's id"
            raise UserError(f"one record is the unit, so it cannot hold {c}", where="privacy.max_records", fix=fix)
        fix = f"a list of: {', '.join(ID_RULES)}"
        check_names(self.rules, ID_RULES, "no rule", where="privacy.unit_id_rules", fix=fix)
        if self.column == "":
            raise UserError(
                "got an empty name", where="privacy.unit", fix="privacy.unit=record, or the name of a column"
            )
        one_of(self.clip, get_args(Clip), "privacy.clip")
        one_of(self.missing, get_args(MissingUnit), "privacy.missing_unit")


@dataclass(frozen=True)
class UnitRows:
    """The rows of a table, and whose they are.

    Attributes:
        workdir: where private copies go; a folder with mode 0700.
    """

    source: Source
    unit: PrivacyUnit
    workdir: Path


def unit_id(source: Source, unit: PrivacyUnit) -> str:
    """SQL for the text of each record's unit id, as it stands in the table; `unit_forms` says which mean the same.

    Raises:
        UserError: the table has no such column; suggests one. It holds lists or records, which have no one text, or
            numbers that share one.
    """
    index = source.index(str(unit.column), where="privacy.unit")
    if source.types[index].split("(")[0] not in OF_IDS:
        problem = f"the column {unit.column!r} holds lists, records or the like, or numbers of more than 38 digits: "
        problem += "equal ones may be written in several ways, or others in one"
        raise UserError(problem, where="privacy.unit", fix="a column of texts or numbers, one for each unit")
    return source.text(index)


def unit_forms(texts: Any, source: Source, unit: PrivacyUnit) -> Any:
    """A batch of ids, equal for all texts that mean the same unit; null where there is none.

    Args:
        texts: an Arrow array of what `unit_id` says; so is what comes back.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    index = source.index(str(unit.column), where="privacy.unit")
    texts = texts.cast(pa.string())
    forms = same_unit(texts, source, index, unit.rules)
    absent = dict.fromkeys(normal_form(text, unit.rules) for text in ("", *(v.strip() for v in unit.missing_values)))
    shown = pc.utf8_trim(forms, characters=_BLANKS)
    missing = pc.is_in(shown, value_set=pa.array(list(absent), pa.string()))
    if source.types[index] == "BLOB":  # bytes that show nothing are a number, and not blank: 0001, and 20 as well
        unseen = pc.and_(pc.equal(shown, ""), pc.not_equal(texts, ""))
        forms, missing = pc.if_else(unseen, texts, forms), pc.and_not(missing, unseen)
    return pc.if_else(missing, pa.scalar(None, pa.string()), forms)


_BLANKS = " \t\n\v\f\r\xa0"


@dataclass(frozen=True)
class Aside:
    """Which units are set aside: each with this probability, by its own keyed coin.

    Attributes:
        key: secret; the same key, the same choice.
        share: the probability, between 0 and 1.
    """

    key: bytes = field(repr=False)
    share: float

    def __post_init__(self) -> None:
        coins.below(self.share)


@dataclass(frozen=True, eq=False)
class UnitSizes:
    """How many records the units of a table have, before clipping. NOT private.

    Attributes:
        sizes: two columns, ascending: so many records, and how many units have them.
        alone: rows without an id.
    """

    sizes: Ints
    alone: int

    @property
    def largest(self) -> int:
        return int(self.sizes[:, 0].max(initial=0))


def needs_content(unit: PrivacyUnit, aside: Aside | None) -> bool:
    """Whether coins are of single records, so that the contents of rows are wanted."""
    lone = unit.column is None or unit.missing == "own"
    return (unit.column is not None and unit.clip == "truncate") or (aside is not None and lone)


def check_sizes(unit: PrivacyUnit, sizes: UnitSizes) -> None:
    """Refuse what the settings say is to be refused.

    Raises:
        UserError: privacy.missing_unit=refuse and an id is missing; privacy.clip=none and a unit is above its bound.
    """
    if sizes.alone and unit.missing == "refuse":
        fix = "privacy.missing_unit=drop or own, or mend the table"
        raise UserError("a record has no unit id", where="privacy.missing_unit", fix=fix)
    if unit.clip == "none" and sizes.largest > unit.max_records:
        fix = "a larger privacy.max_records, or privacy.clip=weight or truncate"
        problem = f"privacy.clip=none, but a unit has more than {unit.max_records} records"
        raise UserError(problem, where="privacy.max_records", fix=fix)


def clip_records(
    units: Path, source: Source, unit: PrivacyUnit, rows: int, key: bytes
) -> tuple[Flags | None, NDArray[np.uint32] | None]:
    """Which records count, and how much.

    Args:
        units: a Parquet file with a row per record, in the order of the table: its `unit`, and its `content` where
            `needs_content` says so.
        rows: how many.
        key: secret; chooses the records that truncation keeps, independently for each unit.

    Returns:
        Which rows to keep (None: all), and their weights in units of 2**-WEIGHT_BITS records, one per row of the table
        (None: each counts 1). For clip=weight a record of a unit with R > C records counts floor(2**WEIGHT_BITS · C/R).
    """
    away = np.zeros(rows, np.bool_)
    weights: NDArray[np.uint32] | None = None
    table = numbered_rows(units)
    if unit.missing == "drop":
        away |= _marked(source, f"SELECT file_row_number FROM {table} WHERE unit IS NULL", rows)
    large = f"SELECT unit, count(*) AS n FROM {table} WHERE unit IS NOT NULL GROUP BY unit"
    first = [f"CREATE TEMP TABLE large AS {large} HAVING count(*) > {unit.max_records}"]
    rest = f"{table} JOIN large USING (unit)"
    if unit.clip == "weight":
        for row, count in _columns(source, f"SELECT file_row_number, n FROM {rest}", first):
            weights = np.full(rows, 1 << WEIGHT_BITS, dtype=np.uint32) if weights is None else weights
            weights[row] = (unit.max_records << WEIGHT_BITS) // count
    else:
        away |= _marked(source, _surplus(rest, unit.max_records, key), rows, first)
    return ~away if away.any() else None, weights


def set_aside_units(units: Path, source: Source, unit: PrivacyUnit, rows: int, key: bytes, share: float) -> Flags:
    """Which rows belong to units that are set aside: each unit by its own coin, a keyed hash of its id.

    Guarantee: the coins are secret, independent of each other and of the data; whatever is computed from the other
        units alone is as private as it is without the coins. No amplification by this sampling is claimed.
    Args:
        units: as of `clip_records`; a row without an id is a unit of its own where privacy.missing_unit=own, and is
            never set aside otherwise.
        key: secret; the same key, the same choice.
        share: the probability of each unit, between 0 and 1.
    """
    if unit.column is None:
        return set_aside_rows(units, source, rows, key, share)
    sql = f"SELECT file_row_number FROM {numbered_rows(units)} WHERE unit IS NOT NULL AND {_aside(key, share)}"
    held = _marked(source, sql, rows)
    if unit.missing == "own":
        held |= set_aside_rows(units, source, rows, key, share)
    return held


def set_aside_rows(units: Path, source: Source, rows: int, key: bytes, share: float) -> Flags:
    """Which of the rows without an id are set aside, each by its own coin: of its content, and its number among equals.

    Guarantee: as of `set_aside_units`; of equal rows the last number comes or goes where one of them does, so that one
        row more or less changes no other's coin.
    """
    copies = "row_number() OVER (PARTITION BY content ORDER BY file_row_number)"
    alone = f"{numbered_rows(units)} WHERE unit IS NULL"
    numbered = f"SELECT file_row_number AS row, content, {copies} AS copy FROM {alone}"
    mine = _coin(coins.of_row_aside(key), "content", "':'", "copy")
    return _marked(source, f"SELECT row FROM ({numbered}) WHERE {mine} < {literal(coins.below(share))}", rows)


def numbered_rows(units: Path) -> str:
    """SQL for the rows of a Parquet file, with their numbers."""
    return f"read_parquet({literal(str(units))}, file_row_number = true, hive_partitioning = false)"


def _coin(start: str, *parts: str) -> str:
    """SQL for a coin."""
    return f"left(sha256(concat({', '.join((literal(start), *parts))})), {coins.DIGITS})"


def _aside(key: bytes, share: float) -> str:
    """SQL for a unit's own coin."""
    return f"{_coin(coins.of_unit_aside(key), 'unit')} < {literal(coins.below(share))}"


def _surplus(records: str, bound: int, key: bytes) -> str:
    """SQL for the rows beyond the `bound` first of each unit, in the order of their coins."""
    copies = "row_number() OVER (PARTITION BY unit, content ORDER BY file_row_number)"
    numbered = f"SELECT file_row_number AS row, unit, content, {copies} AS copy FROM {records}"
    order = _coin(coins.of_truncation(key), "content", "':'", "copy", "':'", "unit")
    ranked = f"row_number() OVER (PARTITION BY unit ORDER BY {order}, content, copy)"
    return f"SELECT row FROM (SELECT row, {ranked} AS place FROM ({numbered})) WHERE place > {bound}"


def unit_sizes(units: Path, source: Source, unit: PrivacyUnit, aside: Aside | None = None) -> UnitSizes:
    """How many units have so many records, those apart that are set aside. NOT private: for internal/ alone.

    Args:
        units: as of `clip_records`.
    """
    others = "" if aside is None else f" AND NOT {_aside(aside.key, aside.share)}"
    table = numbered_rows(units)
    each = f"SELECT count(*) AS n FROM {table} WHERE unit IS NOT NULL{others} GROUP BY unit"
    sizes = source.lines(f"SELECT n, count(*) FROM ({each}) GROUP BY n ORDER BY n")
    rows, ids = source.lines(f"SELECT count(*), count(unit) FROM {table}")[0]
    alone = rows - ids
    if aside is not None and unit.missing == "own":
        alone -= int(set_aside_rows(units, source, rows, aside.key, aside.share).sum())
    return UnitSizes(np.array(sizes, np.int64).reshape(-1, 2), alone)


def unit_numbers(source: Source, unit: PrivacyUnit) -> Ints:
    """A number per row of the table for its unit, a fresh one without an id. NOT private: for internal/ alone.

    Cost: one pass over the column; memory: its texts.

    Raises:
        UserError: the table has no such column.
    """
    return numbers_of_units([source], unit)[0]


def unit_texts(source: Source, unit: PrivacyUnit) -> NDArray[np.object_]:
    """A text per row of the table for its unit, None without an id. NOT private: for internal/ alone."""
    return np.asarray(_forms(source, unit).to_numpy(), object)


def _forms(source: Source, unit: PrivacyUnit) -> Any:
    import pyarrow as pa

    sql = f"SELECT {unit_id(source, unit)} AS unit FROM {source.relation}"
    forms = [unit_forms(b.column(0), source, unit).cast(pa.large_string()) for b in source.batches(sql)]
    return pa.chunked_array(forms, pa.large_string())


def numbers_of_units(sources: Sequence[Source], unit: PrivacyUnit) -> list[Ints]:
    """As `unit_numbers`, for tables of real rows one after the other: a unit has the same number in all of them."""
    import pyarrow as pa

    forms = [_forms(source, unit) for source in sources]
    numbers = numbers_of(pa.chunked_array([c for f in forms for c in f.chunks], pa.large_string()), alone=True)
    return np.split(numbers, np.cumsum([*map(len, forms)])[:-1])


def numbers_of(forms: Any, *, alone: bool) -> Ints:
    """A number for each of the ids, as of `unit_forms`; for a row without one a fresh number if `alone`, else −1."""
    codes = forms.combine_chunks().dictionary_encode().indices
    numbers = np.array(codes.cast("int64").fill_null(-1), np.int64)
    absent = np.flatnonzero(numbers < 0) if alone else np.zeros(0, np.int64)
    numbers[absent] = numbers.max(initial=-1) + 1 + np.arange(absent.size)
    return numbers


def counted_units(sizes: UnitSizes, unit: PrivacyUnit, most: int) -> Ints:
    """How many units have R records, R = 1 … `most`; a unit with more counts under the last. NOT private.

    Guarantee: a unit counts in one cell, or in none (it has no record, or was set aside), whatever the others are.
    Args:
        sizes: without the units that were set aside; a row without an id is a unit of one record where
            privacy.missing_unit=own, and counts nowhere otherwise.
    """
    histogram = np.zeros(most, np.int64)
    np.add.at(histogram, np.minimum(sizes.sizes[:, 0], most) - 1, sizes.sizes[:, 1])
    if unit.missing == "own":
        histogram[0] += sizes.alone
    return histogram


def _marked(source: Source, sql: str, rows: int, first: Sequence[str] = ()) -> Flags:
    """(rows,) true for those whose numbers a query gives."""
    marked = np.zeros(rows, np.bool_)
    for (row,) in _columns(source, sql, first):
        marked[row] = True
    return marked


def _columns(source: Source, sql: str, first: Sequence[str] = ()) -> Iterator[tuple[Ints, ...]]:
    for batch in source.batches(sql, first=first):
        yield tuple(column.to_numpy(zero_copy_only=False).astype(np.int64) for column in batch.columns)
