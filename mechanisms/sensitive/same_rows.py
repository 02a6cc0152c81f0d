"""Whether a table that is called public holds the rows of the private one, however it was saved."""

from __future__ import annotations

import secrets
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.codec import encode_columns
from mechanisms.public.tables.scan import Source, mapped_errors, private_folder

#: Rows that are hashed at a time.
BLOCK = 1 << 18


def same_rows(private: Source, public: Source, schema: Schema, rows: int, *, workdir: Path) -> bool:
    """Whether both tables hold the same rows of the schema's codes, in any order. NOT private: it may only stop a run.

    Other rows are taken for the same with probability 2**-100 or less, over secret coins.

    Args:
        rows: of the private table; it is read again where the public one has as many.
        workdir: for copies of both; a folder with mode 0700.
    Raises:
        UserError: a table that cannot be read, or that the schema refuses.
    """
    coded = []
    for name, source in (("public", public), ("private", private)):
        with mapped_errors(source):
            private_folder(workdir / name)
        table, report = encode_columns(source, schema, workdir=workdir / name)
        if report.rows != rows:
            return False
        coded.append(table)
    key = int.from_bytes(secrets.token_bytes(32), "big")
    return _print(coded[0], key) == _print(coded[1], key)


def _print(table: CodedTable, key: int) -> tuple[int, int]:
    """Two sums over hashes of all rows, which the order of the rows does not change."""
    sums = []
    for half in range(2):
        rng = np.random.default_rng([half, key])
        words = [rng.integers(0, 2**64, a.size, np.uint64) for a in table.domain.attributes]
        total = 0
        for start in range(0, table.rows, BLOCK):
            mixed = np.zeros(min(BLOCK, table.rows - start), np.uint64)
            for column, word in zip(table.columns, words, strict=True):
                mixed = _mixed(mixed + word[column[start : start + BLOCK]])
            total += int(mixed.sum(dtype=np.uint64))
        sums.append(total % 2**64)
    return sums[0], sums[1]


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Each word by an invertible function that no sum commutes with (splitmix64's; Steele et al. 2014)."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        values = (values ^ (values >> np.uint64(shift))) * np.uint64(factor)
    return values ^ (values >> np.uint64(31))
