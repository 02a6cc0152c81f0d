"""The clipper: who is protected, and how much of one unit's records may count."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.errors import UserError
from mechanisms.public.tables.scan import Source, literal, stream
from mechanisms.public.units import ID_RULES, NO_UNIT, WEIGHT_BITS
from mechanisms.sensitive.id_rules import check_rules, normal_form, same_unit

Clip = Literal["weight", "truncate", "none"]
MissingUnit = Literal["drop", "own", "refuse"]
#: The largest C: the weights of one unit, in units of 2**-WEIGHT_BITS records, stay exact in 63 bits.
MAX_RECORDS = 2**32
#: Coins drawn from one hash.
COINS = 1 << 20


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
        check_rules(self.rules)
        if self.column == "":
            raise UserError(
                "got an empty name", where="privacy.unit", fix="privacy.unit=record, or the name of a column"
            )
        for setting, value, allowed in (
            ("privacy.clip", self.clip, ("weight", "truncate", "none")),
            ("privacy.missing_unit", self.missing, ("drop", "own", "refuse")),
        ):
            if value not in allowed:
                raise UserError(f"got {value!r}", where=setting, fix=f"one of {', '.join(allowed)}")


def unit_id(source: Source, unit: PrivacyUnit) -> str:
    """SQL for the text of each record's unit id, as it stands in the table; `unit_forms` says which mean the same.

    Raises:
        UserError: the table has no such column; suggests one. It holds lists or records, which have no one text.
    """
    index = source.index(str(unit.column), where="privacy.unit")
    if source.types[index].endswith("]") or source.types[index].startswith(("STRUCT", "MAP", "UNION")):
        what = f"the column {unit.column!r} holds lists or records: equal ones may be written in several ways"
        raise UserError(what, where="privacy.unit", fix="a column of texts or numbers, one for each unit")
    if source.types[index] == "BLOB":  # text that its file does not call text; other bytes as the engine writes them
        return f"coalesce(TRY(decode(c{index})), CAST(c{index} AS VARCHAR), '')"
    return source.text(index)


def unit_forms(texts: Any, source: Source, unit: PrivacyUnit) -> Any:
    """A batch of ids, equal for all texts that mean the same unit; null where there is none.

    Args:
        texts: an Arrow array of what `unit_id` says; so is what comes back.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    index = source.index(str(unit.column), where="privacy.unit")
    forms = same_unit(texts.cast(pa.string()), source, index, unit.rules)
    absent = dict.fromkeys(normal_form(text, unit.rules) for text in ("", *(v.strip() for v in unit.missing_values)))
    missing = pc.is_in(pc.utf8_trim(forms, characters=_BLANKS), value_set=pa.array(list(absent), pa.string()))
    return pc.if_else(missing, pa.scalar(None, pa.string()), forms)


_BLANKS = " \t\n\v\f\r\xa0"


def clip_records(
    units: Path, source: Source, unit: PrivacyUnit, rows: int, key: bytes
) -> tuple[NDArray[np.bool_] | None, NDArray[np.uint32] | None]:
    """Which records count, and how much.

    Args:
        units: a Parquet file with one column `unit`, a row per record, in the order of the table.
        rows: how many.
        key: secret; chooses the records that truncation keeps, independently for each unit.

    Returns:
        Which rows to keep (None: all), and their weights in units of 2**-WEIGHT_BITS records, one per row of the table
        (None: each counts 1). For clip=weight a record of a unit with R > C records counts floor(2**WEIGHT_BITS · C/R).

    Raises:
        UserError: privacy.missing_unit=refuse and an id is missing; privacy.clip=none and a unit is above its bound.
    """
    keep: NDArray[np.bool_] | None = None
    weights: NDArray[np.uint32] | None = None
    table = f"read_parquet({literal(str(units))}, file_row_number = true, hive_partitioning = false)"
    with source.connect() as engine:
        absent = engine.execute(f"SELECT count(*) FROM {table} WHERE unit IS NULL").fetchall()[0][0]
        if absent and unit.missing == "refuse":
            fix = "privacy.missing_unit=drop or own, or mend the table"
            raise UserError("a record has no unit id", where="privacy.missing_unit", fix=fix)
        if absent and unit.missing == "drop":
            keep = np.ones(rows, dtype=np.bool_)
            for (row,) in _columns(source, engine, f"SELECT file_row_number FROM {table} WHERE unit IS NULL"):
                keep[row] = False
        engine.execute(
            f"CREATE TEMP TABLE large AS SELECT unit, count(*) AS n FROM {table} WHERE unit IS NOT NULL "
            f"GROUP BY unit HAVING count(*) > {unit.max_records}"
        )
        if not engine.execute("SELECT count(*) FROM large").fetchall()[0][0]:
            return keep, None
        if unit.clip == "none":
            fix = "a larger privacy.max_records, or privacy.clip=weight or truncate"
            what = f"privacy.clip=none, but a unit has more than {unit.max_records} records"
            raise UserError(what, where="privacy.max_records", fix=fix)
        rest = f"{table} JOIN large USING (unit)"
        if unit.clip == "weight":
            weights = np.full(rows, 1 << WEIGHT_BITS, dtype=np.uint32)
            for row, count in _columns(source, engine, f"SELECT file_row_number, n FROM {rest}"):
                weights[row] = (unit.max_records << WEIGHT_BITS) // count
        else:
            keep = np.ones(rows, dtype=np.bool_) if keep is None else keep
            for (row,) in _columns(source, engine, _surplus(rest, unit.max_records, key)):
                keep[row] = False
    return keep, weights


def set_aside_units(
    units: Path, source: Source, unit: PrivacyUnit, rows: int, key: bytes, share: float
) -> NDArray[np.bool_]:
    """Which rows belong to units that are set aside: each unit by its own coin, a keyed hash of its id.

    Guarantee: the coins are secret, independent of each other and of the data; whatever is computed from the other
        units alone is as private as it is without the coins. No amplification by this sampling is claimed.
    Args:
        units: as of `clip_records`; a row without an id is a unit of its own where privacy.missing_unit=own, and is
            never set aside otherwise.
        key: secret; the same key, the same choice.
        share: the probability of each unit, between 0 and 1.
    """
    held = np.zeros(rows, np.bool_)
    table = f"read_parquet({literal(str(units))}, file_row_number = true, hive_partitioning = false)"
    with source.connect() as engine:
        sql = f"SELECT file_row_number FROM {table} WHERE unit IS NOT NULL AND {_aside(key, share)}"
        for (row,) in _columns(source, engine, sql):
            held[row] = True
        if unit.missing == "own":
            alone = set_aside_rows(rows, key, share)
            for (row,) in _columns(source, engine, f"SELECT file_row_number FROM {table} WHERE unit IS NULL"):
                held[row] = alone[row]
    return held


def set_aside_rows(rows: int, key: bytes, share: float) -> NDArray[np.bool_]:
    """Which rows are set aside where each row is a unit: each by its own coin, from a keyed hash of its place."""
    coins = []
    for start in range(0, rows, COINS):
        count = min(COINS, rows - start)
        digest = hashlib.shake_256(key + b":aside:" + str(start).encode()).digest(8 * count)
        coins.append(np.frombuffer(digest, np.uint64) < np.uint64(_threshold(share)))
    return np.concatenate(coins) if coins else np.zeros(0, np.bool_)


def _aside(key: bytes, share: float) -> str:
    """SQL for a unit's own coin."""
    coin = f"left(sha256({literal(key.hex() + ':aside:')} || unit), 16)"
    return f"{coin} < {literal(f'{_threshold(share):016x}')}"


def _threshold(share: float) -> int:
    if not 0 < share < 1:
        raise UserError(f"got {share}", where="evaluation.holdout", fix="a share of the units between 0 and 1, or null")
    return int(share * 2**64)


def _surplus(records: str, bound: int, key: bytes) -> str:
    """SQL for the rows beyond the `bound` first of each unit, in the order of a keyed hash of the row's number."""
    order = f"sha256({literal(key.hex())} || CAST(file_row_number AS VARCHAR))"
    ranked = f"row_number() OVER (PARTITION BY unit ORDER BY left({order}, 16), file_row_number)"
    return f"SELECT row FROM (SELECT file_row_number AS row, {ranked} AS place FROM {records}) WHERE place > {bound}"


def unit_sizes(units: Path, source: Source) -> NDArray[np.int64]:
    """How many units have so many records: two columns, records and units. NOT private: for internal/ alone."""
    table = f"read_parquet({literal(str(units))}, hive_partitioning = false)"
    each = f"SELECT count(*) AS n FROM {table} WHERE unit IS NOT NULL GROUP BY unit"
    with source.connect() as engine:
        rows = engine.execute(f"SELECT n, count(*) FROM ({each}) GROUP BY n ORDER BY n").fetchall()
    return np.array(rows, np.int64).reshape(-1, 2)


def unit_numbers(source: Source, unit: PrivacyUnit) -> NDArray[np.int64]:
    """A number per row of the table for its unit, a fresh one without an id. NOT private: for internal/ alone.

    Cost: one pass over the column; memory: its texts.

    Raises:
        UserError: the table has no such column.
    """
    import pyarrow as pa

    sql = f"SELECT {unit_id(source, unit)} AS unit FROM {source.relation}"
    with source.connect() as engine:
        batches = stream(source, engine, sql)
        parts = [unit_forms(batch.column(0), source, unit).cast(pa.large_string()) for batch in batches]
    codes = pa.chunked_array(parts, pa.large_string()).combine_chunks().dictionary_encode().indices
    numbers = np.array(codes.cast(pa.int64()).fill_null(-1), np.int64)
    absent = np.flatnonzero(numbers < 0)
    numbers[absent] = numbers.max(initial=-1) + 1 + np.arange(absent.size)
    return numbers


def counted_units(
    units: Path, source: Source, unit: PrivacyUnit, rows: int, key: bytes, share: float | None
) -> NDArray[np.int64]:
    """How many units have R records, R = 1 … C; a unit with more counts under C. NOT private.

    Guarantee: a unit counts in one cell, or in none (it has no record, or was set aside), whatever the others are.
    Args:
        units, rows, key, share: as of `set_aside_units`; a row without an id is a unit of one record where
            privacy.missing_unit=own, and counts nowhere otherwise.
    """
    histogram = np.zeros(unit.max_records, np.int64)
    table = f"read_parquet({literal(str(units))}, file_row_number = true, hive_partitioning = false)"
    mine = "unit IS NOT NULL" + ("" if share is None else f" AND NOT {_aside(key, share)}")
    each = f"SELECT least(count(*), {unit.max_records}) AS n FROM {table} WHERE {mine} GROUP BY unit"
    with source.connect() as engine:
        for n, count in engine.execute(f"SELECT n, count(*) FROM ({each}) GROUP BY n").fetchall():
            histogram[n - 1] = count
        if unit.missing == "own":
            alone = np.zeros(rows, np.bool_) if share is None else set_aside_rows(rows, key, share)
            for (row,) in _columns(source, engine, f"SELECT file_row_number FROM {table} WHERE unit IS NULL"):
                histogram[0] += int((~alone[row]).sum())
    return histogram


def _columns(source: Source, engine: Any, sql: str) -> Iterator[tuple[NDArray[np.int64], ...]]:
    for batch in stream(source, engine, sql):
        yield tuple(column.to_numpy(zero_copy_only=False).astype(np.int64) for column in batch.columns)
