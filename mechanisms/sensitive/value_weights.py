"""Which values the units of a table hold, and what each counts: each unit counts once per value. NOT private."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mechanisms.accounting.thresholds import weight_of
from mechanisms.public.schema.column import Column
from mechanisms.public.tables.scan import Source, literal, mapped_errors, private_folder, stream
from mechanisms.public.units import Norm
from mechanisms.sensitive.contribution import PrivacyUnit, unit_forms, unit_id
from mechanisms.sensitive.private_table import aside_rows

#: Longer texts are not listed, nor are texts with characters that cannot be printed.
MAX_TEXT = 200


@dataclass(frozen=True, eq=False)
class ValueWeights:
    """The texts of one column, and the sum of their weights over all units; the repr shows none.

    Attributes:
        texts: distinct.
        units: per text, in units of 2**-WEIGHT_BITS: a unit that holds t of them counts w_t for each of these.
    """

    texts: tuple[str, ...]
    units: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"ValueWeights({len(self.texts)} values)"


def value_weights(
    source: Source,
    columns: Sequence[Column],
    unit: PrivacyUnit,
    *,
    rows: int,
    key: bytes,
    norm: Norm,
    holdout: float | None,
    workdir: Path,
) -> dict[str, ValueWeights]:
    """The weights of the values of some columns, by column.

    Guarantee: what one unit adds to the weights of a column is a vector without negative entries of norm at most 1,
        which depends on no other unit: t of its distinct values count, at most C, chosen at random where it has more
        (by a keyed hash of the unit and the value); each weighs w_t, however many records hold it. Missing values,
        those that mean *other* and those that no list can hold do not count; nor does a unit that is set aside.
    Args:
        rows: of the table.
        key, holdout: as of `load_private`: the same units are set aside.
        workdir: for a copy of ids and texts, deleted again; a folder with mode 0700.
    Raises:
        UserError: a malformed file.
    """
    path = workdir / "values.parquet"
    with mapped_errors(source):
        private_folder(workdir)
    aside = None if holdout is None else aside_rows(source, unit, rows, key, holdout, workdir=workdir)
    _copy(source, columns, unit, aside, path)
    table = f"read_parquet({literal(str(path))}, hive_partitioning = false)"
    found = {}
    with source.connect() as engine:
        for i, column in enumerate(columns):
            sums: dict[str, int] = {}
            for sql in _counts(table, f"v{i}", column, unit, key):
                for text, values, count in engine.execute(sql).fetchall():
                    if may_be_listed(text):
                        sums[text] = sums.get(text, 0) + count * weight_of(values, norm)
            texts = tuple(sorted(sums))
            found[column.name] = ValueWeights(texts, np.array([sums[t] for t in texts], np.int64))
    path.unlink()
    return found


def may_be_listed(text: str) -> bool:
    """Whether a schema's file can hold the text: a rule about the text alone, whoever holds it."""
    return len(text) <= MAX_TEXT and text.isprintable() and text.strip() == text != ""


def _copy(
    source: Source, columns: Sequence[Column], unit: PrivacyUnit, aside: NDArray[np.bool_] | None, path: Path
) -> None:
    """The ids and the texts of the rows that were not set aside, as a file."""
    names = [f"v{i}" for i in range(len(columns))]
    texts = [source.text(source.index(c.name, where=f"schema: column {c.name!r}")) for c in columns]
    wanted = [*texts, "''" if unit.column is None else unit_id(source, unit)]
    fields = pa.schema([(name, pa.string()) for name in (*names, "unit")])
    start = 0
    with source.connect() as engine, pq.ParquetWriter(path, fields, compression="zstd", write_statistics=False) as file:
        named = ", ".join(f"{sql} AS {name}" for sql, name in zip(wanted, fields.names, strict=True))
        for batch in stream(source, engine, f"SELECT {named} FROM {source.relation}"):
            arrays: list[Any] = [batch.column(i).cast(pa.string()) for i in range(len(names))]
            ids = batch.column(len(names))
            arrays.append(ids.cast(pa.string()) if unit.column is None else unit_forms(ids, source, unit))
            part = pa.Table.from_arrays(arrays, schema=fields)
            stop = start + batch.num_rows
            file.write_table(part if aside is None else part.filter(pa.array(~aside[start:stop])))
            start = stop


def _counts(table: str, value: str, column: Column, unit: PrivacyUnit, key: bytes) -> list[str]:
    """SQL for (text, t, how many units count it among t values), for units with an id and for those without."""
    skipped = ["", *column.missing_texts, *([] if column.other is None else [column.other])]
    mine = f"{value} NOT IN ({', '.join(map(literal, skipped))})"
    alone = f"SELECT {value}, 1, count(*) FROM {table} WHERE {mine}"
    if unit.column is None:
        return [f"{alone} GROUP BY {value}"]
    distinct = f"SELECT DISTINCT unit, {value} AS v FROM {table} WHERE unit IS NOT NULL AND {mine}"
    coin = f"left(sha256({literal(key.hex() + ':values:' + column.name + ':')} || unit || chr(0) || v), 16)"
    held = f"least(count(*) OVER (PARTITION BY unit), {unit.max_records})"
    place = f"row_number() OVER (PARTITION BY unit ORDER BY {coin}, v)"
    ranked = f"SELECT v, {held} AS t, {place} AS place FROM ({distinct})"
    queries = [f"SELECT v, t, count(*) FROM ({ranked}) WHERE place <= t GROUP BY v, t"]
    return [*queries, f"{alone} AND unit IS NULL GROUP BY {value}"] if unit.missing == "own" else queries
