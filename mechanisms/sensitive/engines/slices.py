"""Slices: parts of a table that are read on their own, so that several readers share its rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mechanisms.public.errors import UserError
from mechanisms.public.tables.scan import DATES, UTC, UTC_NS, Source, listed

#: Rows of a Parquet file that are read together, about.
SLICE_ROWS = 1 << 21
#: What the reader calls the number of a row, and how a relation ends that has none.
NUMBER, UNNUMBERED = "file_row_number", "hive_partitioning = false)"
#: Types of which parts of one table may have another one each, since Arrow calls several by one name.
OF_TIME = DATES | {UTC, UTC_NS, "TIME", "TIME WITH TIME ZONE"}


def slices(source: Source, *, rows: int | None = None) -> list[tuple[str, str]]:
    """File and relation of slices that together yield each row once: ranges of rows of Parquet, whole files of CSV.

    The reader is the engine's own, with the same types: a slice is read as the table is.

    Args:
        rows: of a slice of Parquet, about; SLICE_ROWS if None.
    """
    if listed(source.parts) not in source.relation:  # a format of others may read all parts as one
        return [(str(source.path), source.relation)]
    return [pair for part in source.parts for pair in _of_file(source, part, rows or SLICE_ROWS)]


def _of_file(source: Source, part: Path, rows: int) -> Iterator[tuple[str, str]]:
    absolute = listed([part.absolute()])  # readers have folders of their own
    relation = source.relation.replace(listed(source.parts), absolute, 1)
    groups: list[int] = []
    if "read_parquet(" in relation and NUMBER not in source.names:
        groups = _row_groups(part)
    if sum(groups) <= rows:
        yield str(part), _as_opened(source, relation)
        return
    start = end = 0
    for place, group in enumerate(groups):  # a slice ends where a row group does, so that none is read twice
        end += group
        if end - start >= rows or (place == len(groups) - 1 and end > start):
            yield str(part), _as_opened(source, _range(relation, len(source.names), start, end))
            start = end


def _as_opened(source: Source, relation: str) -> str:
    """SQL for the rows with times of the table's types: of several parts each may have types of its own."""
    if len(source.parts) == 1 or not {*source.types} & OF_TIME:
        return relation
    columns = [f"CAST(c{i} AS {k}) AS c{i}" if k in OF_TIME else f"c{i}" for i, k in enumerate(source.types)]
    return f"(SELECT {', '.join(columns)} FROM {relation})"


def _row_groups(part: Path) -> list[int]:
    """The rows of each group of a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(part) as file:
            return [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
    except (OSError, pa.ArrowException) as error:
        fix = "leave the table alone while it is read; fetch this part again"
        raise UserError("this part is gone, or is no whole Parquet file any more", where=str(part), fix=fix) from error


def _range(relation: str, names: int, start: int, end: int) -> str:
    """SQL for the rows from one number to another."""
    columns = ", ".join(f"c{i}" for i in range(names))
    numbered = relation.replace(UNNUMBERED, f"{UNNUMBERED[:-1]}, {NUMBER} = true)")
    numbered = numbered.replace(f"({columns})", f"({columns}, place)")
    return f"(SELECT {columns} FROM {numbered} WHERE place >= {start} AND place < {end})"
