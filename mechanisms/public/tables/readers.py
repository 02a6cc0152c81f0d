"""The readers of formats: files → a `Source`."""

from __future__ import annotations

from dataclasses import replace

from mechanisms.public.tables import inspect_file
from mechanisms.public.tables.open_quotes import check_quotes
from mechanisms.public.tables.parts import check_same
from mechanisms.public.tables.scan import DURATION, Opening, Source, listed, literal


def open_csv(opening: Opening) -> Source:
    """CSV files, plain or compressed as gzip or zstd."""
    parts, delimiter = opening.parts, opening.delimiter
    pressed = [inspect_file.compression(part) for part in parts]
    check_same(parts, pressed, "compression does")
    headers = [inspect_file.read_header(part, pressed[0], delimiter, setting=opening.setting) for part in parts]
    check_same(parts, [names for names, _ in headers], "columns do")
    for part in parts:
        check_quotes(part, pressed[0], delimiter)
    names, header = headers[0]
    columns = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(len(names)))
    # parallel: readers that begin within a quoted text take its lines for rows, and then give up on the file
    relation = (
        f"read_csv({listed(parts)}, auto_detect = false, parallel = false, hive_partitioning = false, header = true, "
        f"delim = {literal(delimiter)}, "
        f"quote = '\"', escape = '\"', compression = '{pressed[0]}', columns = {{{columns}}})"
    )
    return opening.source(names, ("VARCHAR",) * len(names), relation, header)


def open_parquet(opening: Opening) -> Source:
    """Parquet files."""
    schemas = [inspect_file.parquet_schema(part) for part in opening.parts]
    check_same(opening.parts, schemas, "columns do")
    names = tuple(name for name, _ in schemas[0])
    aliases = ", ".join(f"c{i}" for i in range(len(names)))
    relation = f"read_parquet({listed(opening.parts)}, hive_partitioning = false) AS t({aliases})"
    bare = opening.source(names, ("VARCHAR",) * len(names), relation)
    with bare.connect() as connection:
        described = connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
    lengths = [kind.startswith("duration") for _, kind in schemas[0]]
    known = (DURATION if long else str(row[1]) for long, row in zip(lengths, described, strict=True))
    return replace(bare, types=tuple(known))
