"""Slices: parts of a table that are read on their own, so that several readers share its rows."""

from __future__ import annotations

from dataclasses import replace

from mechanisms.public.tables.scan import Source, literal, no_glob

#: Rows of a Parquet file that are read together, about.
SLICE_ROWS = 1 << 21
#: What the reader calls the number of a row, and how a relation ends that has none.
NUMBER, UNNUMBERED = "file_row_number", "hive_partitioning = false)"


def slices(source: Source, *, rows: int = SLICE_ROWS) -> list[str]:
    """Relations that together yield each row of the table once: ranges of rows of Parquet, whole files of CSV.

    The reader is the engine's own, with the same types: a slice is read as the table is.
    """
    here, anywhere = (literal(no_glob(path)) for path in (source.path, source.path.absolute()))
    source = replace(source, relation=source.relation.replace(here, anywhere, 1))  # readers have folders of their own
    if "read_parquet(" not in source.relation:
        return [source.relation]
    import pyarrow.parquet as pq

    with pq.ParquetFile(source.path) as file:
        groups = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
    if NUMBER in source.names or sum(groups) <= rows:
        return [source.relation]
    ends, held, end = [], 0, 0
    for group in groups:  # a slice ends where a row group does, so that none is read twice
        held, end = held + group, end + group
        if held >= rows:
            ends.append(end)
            held = 0
    return [
        _range(source, start, end) for start, end in zip([0, *ends], [*ends, sum(groups)], strict=True) if start < end
    ]


def _range(source: Source, start: int, end: int) -> str:
    """SQL for the rows from one number to another."""
    columns = ", ".join(f"c{i}" for i in range(len(source.names)))
    numbered = source.relation.replace(UNNUMBERED, f"{UNNUMBERED[:-1]}, {NUMBER} = true)").replace(
        f"({columns})", f"({columns}, place)"
    )
    return f"(SELECT {columns} FROM {numbered} WHERE place >= {start} AND place < {end})"
