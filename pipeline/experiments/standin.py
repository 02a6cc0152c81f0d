"""A generated stand-in for a published table: its schema's columns, dependent through latent classes, nobody's rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.files import whole_file
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.decode import decode_table

#: Kinds of records; each has its own distribution of every column.
CLASSES = 12
#: How far the kinds lie apart: the standard deviation of the log-odds of a value.
SPREAD = 1.5
#: Part of every column that is uniform, so that every value occurs.
UNIFORM = 0.1


def stand_in(schema: Schema, rows: int, seed: int) -> CodedTable:
    """Rows whose columns depend on each other through a hidden kind of record; the same seed, the same rows."""
    rng = np.random.default_rng(seed)
    kinds = rng.choice(CLASSES, size=rows, p=rng.dirichlet(np.full(CLASSES, 2.0)))
    columns = []
    for attribute in schema.domain.attributes:
        n = attribute.size
        base = rng.permutation(1.0 / np.arange(1, n + 1))
        weights = base * np.exp(SPREAD * rng.standard_normal((CLASSES, n)))
        shares = (1 - UNIFORM) * weights / weights.sum(axis=1, keepdims=True) + UNIFORM / n
        ladder = np.cumsum(shares, axis=1)
        codes = np.empty(rows, code_dtype(n))
        place = rng.random(rows)
        for kind in range(CLASSES):
            mine = kinds == kind
            codes[mine] = np.minimum(np.searchsorted(ladder[kind], place[mine], side="right"), n - 1)
        columns.append(codes)
    return CodedTable(schema.domain, tuple(columns))


def write_coded(table: CodedTable, schema: Schema, path: Path, seed: int, unit: str | None, most: int) -> None:
    """A table of codes as values in a Parquet file, with ids of 1 to `most` records each where a unit is named."""
    rng = np.random.default_rng(seed)
    frame = decode_table(table, schema, rng)
    if unit is not None and unit not in frame.columns:
        frame[unit] = subjects(table.rows, most, rng)
    with whole_file(path, mode=0o600) as part:
        frame.to_parquet(part, index=False)


def subjects(rows: int, most: int, rng: np.random.Generator) -> np.ndarray:
    """An id per row, in runs of 1 to `most` rows."""
    sizes = rng.integers(1, most + 1, size=rows)
    return np.repeat(np.arange(rows), sizes)[:rows]
