"""A table that is declared public, read as codes of what the private table's schema measures."""

from __future__ import annotations

from pathlib import Path

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.errors import UserError
from mechanisms.public.rules.engineering import engineer
from mechanisms.public.schema.dialect import Dialect
from mechanisms.public.schema.table_schema import Schema

#: Memory for reading a public table.
READING_BYTES = 1_000_000_000
#: A public table in which more than this part of a column's values has no place in the schema is of another schema.
MAX_OUTSIDE = 0.2


def read_public(
    path: str, delimiter: str, schema: Schema, folder: Path, *, where: str = "selection.public"
) -> CodedTable:
    """A public table as codes of what the private table's schema measures.

    Raises:
        UserError: it lacks a column, has no rows, or holds values for which the schema has no place.
    """
    from mechanisms.public.tables.codec import encode_columns
    from mechanisms.public.tables.scan import open_table

    try:
        source = open_table(
            Path(path).expanduser(),
            dialect=Dialect(delimiter),
            workdir=folder,
            memory_limit_bytes=READING_BYTES,
            threads=1,
        )
        table, report = encode_columns(source, schema, workdir=folder / "public")
    except UserError as error:
        raise UserError(f"{error.what} ({error.where})", where=where, fix=error.fix) from None
    if not table.rows:
        raise UserError("the public table has no rows", where=where, fix="another table, or leave it out")
    for column in schema.columns:
        outside = report.outside[column.name] + report.unplaced[column.name]
        if outside > MAX_OUTSIDE * table.rows:
            raise UserError(
                f"{outside / table.rows:.0%} of the values of {column.name!r} have no place in the schema",
                where=where,
                fix="a public table of the same schema, coded in the same way",
            )
    return engineer(table, schema.engineering)[0]
