"""Two tables in: the columns of a table of units, one row for each, beside the records of every unit. NOT private."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.errors import UserError
from mechanisms.public.files import table_name
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.codec import encode_columns
from mechanisms.public.tables.encode import by_column
from mechanisms.public.tables.inspect_file import SEVERAL_TEXTS
from mechanisms.public.tables.scan import (
    COPIED,
    DURATION,
    LONG_DECIMAL,
    Source,
    listed,
    literal,
    mapped_errors,
    private_folder,
)
from mechanisms.sensitive.contribution import PrivacyUnit, UnitRows, numbered_rows, unit_id
from mechanisms.sensitive.engines.duckdb_engine import copy_units

#: Of the working folder: the ids of both tables in the forms by which units are told apart, and the joined records.
OF_RECORDS, OF_UNITS, JOINED = "record-ids.parquet", "unit-ids.parquet", "joined.parquet"


def with_units(records: Source, units: Source, unit: PrivacyUnit, *, ids: str, where: str, workdir: Path) -> Source:
    """The records in the order of their file, with the columns of their unit's row behind their own.

    Records without an id belong to nobody in the table of units: where they do not count (`unit.missing` is drop) they
    are left out, for whatever reads the joined table would take their empty columns for the unit's.

    Guarantee: a unit's records get the first row with its id, whose values follow from the rows of this unit in both
        tables alone; where there is none, or a record has no id, the columns are missing. Ids mean the same unit in
        both tables under `unit.rules`, so that a row belongs to one unit. No value makes it fail.
    Args:
        units: one row for each unit; rows of units without a record are left out.
        ids: the column of `units` that names the unit; it is not taken over.
        where: the setting that names `units`, for messages.
        workdir: for a copy of both; a folder with mode 0700, which lasts as long as the table is read.
    Raises:
        UserError: no such column of ids, or a column that both tables have, from their heads alone; a malformed file,
            a full disk.
    """
    _check_heads(records, units, ids, where)
    private_folder(workdir)
    units = by_column(units, workdir)
    copy_units(UnitRows(records, unit, workdir), workdir / OF_RECORDS, contents=None)
    copy_units(UnitRows(units, replace(unit, column=ids), workdir), workdir / OF_UNITS, contents=None)
    theirs = [i for i, name in enumerate(units.names) if name != ids]
    names = (*records.names, *(units.names[i] for i in theirs))
    joined, path = _joined(records, units, theirs, workdir, nameless=unit.missing != "drop"), workdir / JOINED
    with records.connect() as engine:
        engine.execute(f"COPY ({joined}) TO {literal(str(path))} (FORMAT parquet, {COPIED})")
    relation = f"read_parquet({listed([path])}, hive_partitioning = false)"
    types = (*records.types, *(units.types[i] for i in theirs))
    states = records.states + units.states
    both = replace(records, names=names, types=types, relation=relation, header="", parts=(), states=states)
    _check_types(both)
    return both


def misfits(source: Source, workdir: Path) -> list[str]:
    """What does not fit between the tables that were joined in a folder, a sentence each. NOT private.

    Args:
        source: what came of them; workdir: as of `with_units`.
    """
    records, units = (
        f"(SELECT unit, count(*) AS n FROM {numbered_rows(workdir / name)} WHERE unit IS NOT NULL GROUP BY unit)"
        for name in (OF_RECORDS, OF_UNITS)
    )
    lost = f"count(*), coalesce(sum(n), 0)::BIGINT FROM {records} ANTI JOIN {units} USING (unit)"
    idle = f"count(*) FROM {units} ANTI JOIN {records} USING (unit)"
    nameless = "count(*) FROM {} WHERE unit IS NULL"
    counted = {
        "{:,} units ({:,} records) have no row: its columns are missing": lost,
        "{:,} units have a row and no record: they are not read": idle,
        "{:,} units have several rows: the first one counts": f"count(*) FROM {units} WHERE n > 1",
        "{:,} rows have no id: they are not read": nameless.format(numbered_rows(workdir / OF_UNITS)),
        "{:,} records have no id: left out where these do not count, else its columns are missing there": (
            nameless.format(numbered_rows(workdir / OF_RECORDS))
        ),
    }
    return [words.format(*n) for words, sql in counted.items() for n in source.lines(f"SELECT {sql}") if n[0]]


def _joined(records: Source, units: Source, theirs: Sequence[int], workdir: Path, *, nameless: bool) -> str:
    """SQL for the records in their order, those without an id too where `nameless`; numbers are those of the files."""
    own = [f"c{i}" for i in range(len(records.names))]
    further = [f"c{len(own) + place}" for place in range(len(theirs))]
    number = "row_number() OVER () - 1"
    rows = f"SELECT {', '.join([*own, f'{number} AS place'])} FROM {records.relation}"
    taken = [f"c{i} AS {name}" for i, name in zip(theirs, further, strict=True)]
    persons = f"SELECT {', '.join([*taken, f'{number} AS first'])} FROM {units.relation}"
    firsts = f"SELECT unit, min(file_row_number) AS first FROM {numbered_rows(workdir / OF_UNITS)} "
    firsts += "WHERE unit IS NOT NULL GROUP BY unit"
    owners = f"SELECT file_row_number AS place, first FROM {numbered_rows(workdir / OF_RECORDS)} "
    owners += f"LEFT JOIN ({firsts}) USING (unit)" + ("" if nameless else " WHERE unit IS NOT NULL")
    both = f"({rows}) JOIN ({owners}) USING (place) LEFT JOIN ({persons}) USING (first)"
    return f"SELECT {', '.join([*own, *further])} FROM {both} ORDER BY place"


def _check_heads(records: Source, units: Source, ids: str, where: str) -> None:
    units.index(ids, where=f"{where}.id")
    unit_id(units, PrivacyUnit(ids))
    if both := [name for name in units.names if name != ids and name in records.names]:
        problem = f"the column {both[0]!r} stands in both {table_name(records.path)} and {table_name(units.path)}"
        fix = "a column in one of the two tables, besides the id: drop it from one, or rename it"
        raise UserError(problem, where=f"{where}.path", fix=fix)


def _check_types(both: Source) -> None:
    """A copy holds each column as the type that its table has; of one that is empty by its type, any will do."""
    copied = [str(row[1]) for row in both.lines(f"DESCRIBE SELECT * FROM {both.relation}")]
    for name, own, other in zip(both.names, both.types, copied, strict=True):
        if own not in (other, DURATION, LONG_DECIMAL, SEVERAL_TEXTS, '"NULL"'):
            fix = "the column as another type, for example text"
            raise UserError(f"{name!r} is of the type {own}, which is not copied", where=str(both.path), fix=fix)


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
