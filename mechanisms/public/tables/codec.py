"""Codec: a table on disk → codes in memory-mapped columns, and codes → a table, with their round-trip law.

Law: encoding what was written from codes gives the same codes, for every kind of column and every code.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.arrays import Ints
from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.domain import Domain
from mechanisms.public.errors import UserError
from mechanisms.public.files import as_path
from mechanisms.public.progress import Progress
from mechanisms.public.rules.engineering import engineer
from mechanisms.public.rules.table_rules import Rules
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.dialect import Dialect
from mechanisms.public.schema.fine_cells import fine_codes
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.encode import GAP, MARKS, OUTSIDE, PLAIN, ROUNDED, UNPLACED, encoding, text_sql
from mechanisms.public.tables.scan import Source, mapped_errors, open_table, private_folder


@dataclass(frozen=True)
class EncodingReport:
    """What encoding could not take as it was. NOT private: for the internal log alone.

    Attributes:
        rows: of the table, as read.
        outside: column → values outside its domain; those that were only rounded to whole numbers among them.
        unplaced: column → values that are none of its kind, or absent where the column has no code for that.
        conflicts: rule of the schema → rows that contradict it, and take what the rule says.
        rounded: column → values that were only rounded.
        lone: column → how many of the texts that it declares one unit alone holds; as of `lone_texts`.
        fewest: column of listed texts → in how many rows the one stands that fewest rows hold; 0: none is held.
        gaps: column → cells that are declared missing.
    """

    rows: int
    outside: Mapping[str, int]
    unplaced: Mapping[str, int]
    conflicts: Mapping[str, int] = field(default_factory=dict)
    rounded: Mapping[str, int] = field(default_factory=dict)
    lone: Mapping[str, int] = field(default_factory=dict)
    gaps: Mapping[str, int] = field(default_factory=dict)
    fewest: Mapping[str, int] = field(default_factory=dict)

    @property
    def marked(self) -> list[str]:
        """Columns with values outside the domain, or of another kind."""
        return [name for name in self.outside if self.outside[name] or self.unplaced[name]]

    def apart(self, schema: Schema) -> list[str]:
        """Columns with values that the domain has no place for, not even *other*."""
        marked = {c.name: self.unplaced[c.name] + (c.outside != "other") * self.outside[c.name] for c in schema.columns}
        return [name for name, n in marked.items() if n]


class Alongside(NamedTuple):
    """Expressions that are read with the codes, name → SQL; and who takes each batch: they are its last columns."""

    sql: dict[str, str]
    keep: Callable[[Any], None]


def encode_columns(
    source: Source,
    schema: Schema,
    *,
    workdir: Path,
    progress: Progress | None = None,
    beside: Alongside | None = None,
    apart: bool = False,
    fine: bool = False,
) -> tuple[CodedTable, EncodingReport]:
    """All rows of a table as codes, in the order of the file, with a report. Not private.

    Args:
        workdir: where the column files go (made with mode 0700); the table maps them.
        beside: what is read beside the codes.
        apart: for scores: what the domain has no place for gets a code of its own behind all others, in the columns
            where there is any (the table's domain is larger by it); nothing is clipped, and nothing refused.
        fine: for measuring: the fine columns of the schema stand behind its own; computed columns are not read.

    Raises:
        UserError: a malformed file, an absent column, a full disk, or a value that a column refuses (quoting none).
    """
    folder = workdir / "codes"
    plan = encoding(source, schema, None if beside is None else beside.sql, fine=fine)
    marks = np.zeros((len(schema.columns), len(MARKS)), np.int64)
    fine_columns = tuple(schema.fine.values()) if fine else ()
    paths = [folder / f"{i:04}.codes" for i in range(len(schema.columns) + len(fine_columns))]
    held = np.zeros(sum(c.value_codes for c in schema.columns if c.listed), np.int64)
    rows = 0
    with mapped_errors(source):
        private_folder(folder)
        for path in paths:
            path.write_bytes(b"")
        for batch in source.batches(plan.select, first=plan.types):
            columns, seen = coded_batch(batch, schema, apart=apart, fine=fine)
            marks += seen
            if not apart:
                refuse_marked(schema, seen)
            held += rows_per_text(columns, schema)
            for path, codes in zip(paths, columns, strict=True):
                with path.open("ab") as file:
                    file.write(codes.data)
            if beside is not None:
                beside.keep(batch)
            rows += batch.num_rows
            if progress is not None:
                progress(rows, 0, f"{rows:,} rows")
    sizes = [*(c.size + apart for c in schema.columns), *(a.size for a in fine_columns)]
    table = tuple(mapped(path, code_dtype(size)) for path, size in zip(paths, sizes, strict=True))
    report = report_of(rows, schema, marks, held)
    domain = with_apart(schema, report.apart(schema) if apart else ()).domain
    return CodedTable(Domain((*domain.attributes, *fine_columns)), table, threads=source.threads), report


def coded_batch(
    batch: Any, schema: Schema, *, apart: bool, fine: bool
) -> tuple[list[NDArray[np.unsignedinteger]], Ints]:
    """A batch of what `encoding` selects as codes, the fine columns behind the schema's own; and what was marked.

    Returns:
        the codes of each column, and per column of the schema how many values carry each mark.
    """
    columns: list[NDArray[np.unsignedinteger]] = []
    marks = np.zeros((len(schema.columns), len(MARKS)), np.int64)
    for i, column in enumerate(schema.columns):
        raw = batch.column(i).to_numpy(zero_copy_only=True)
        codes, seen = _split(raw, column, apart=apart)
        columns.append(codes)
        marks[i] = seen
        marks[i, GAP] = 0 if column.missing_code is None else np.count_nonzero(raw == column.missing_code)
    for i, name in enumerate(schema.fine if fine else ()):
        values = batch.column(len(schema.columns) + i).to_numpy(zero_copy_only=True)
        columns.append(fine_codes(schema[name], columns[schema.domain.index(name)], values))
    return columns, marks


def refuse_marked(schema: Schema, marks: Ints) -> None:
    """Refuse values outside of the domain of a column which refuses them.

    Raises:
        UserError: a column has some; quotes none.
    """
    for column, seen in zip(schema.columns, marks, strict=True):
        if column.outside == "refuse" and (seen[OUTSIDE] or seen[UNPLACED]):
            fix = "mend the table, widen the schema, or choose outside: clip, other or missing"
            raise UserError("a value lies outside the domain", where=f"column {column.name!r}", fix=fix)


def rows_per_text(columns: Sequence[NDArray[np.unsignedinteger]], schema: Schema) -> Ints:
    """How many rows hold each listed text, one listed column after the other."""
    listed = [(i, c.value_codes) for i, c in enumerate(schema.columns) if c.listed]
    counts = [np.bincount(columns[i], minlength=texts)[:texts] for i, texts in listed]
    return np.concatenate(counts) if counts else np.zeros(0, np.int64)


def report_of(rows: int, schema: Schema, marks: Ints, held: Ints) -> EncodingReport:
    """What encoding could not take as it was, from how many values of each column carry each mark.

    Args:
        held: as of `rows_per_text`.
    """
    names = schema.domain.names
    counts = (marks[:, OUTSIDE] + marks[:, ROUNDED], marks[:, UNPLACED], marks[:, ROUNDED], marks[:, GAP])
    outside, unplaced, rounded, gaps = (dict(zip(names, map(int, each), strict=True)) for each in counts)
    listed = [c for c in schema.columns if c.listed]
    each = np.split(held, np.cumsum([c.value_codes for c in listed])[:-1]) if listed else []
    fewest = {c.name: int(n[n > 0].min(initial=rows)) if n.any() else 0 for c, n in zip(listed, each, strict=True)}
    return EncodingReport(rows, outside, unplaced, rounded=rounded, gaps=gaps, fewest=fewest)


def _split(raw: NDArray[np.uint32], column: Column, *, apart: bool) -> tuple[NDArray[np.unsignedinteger], list[int]]:
    """Codes (apart: one behind all others for what has no place), and how many values carry each mark."""
    if not len(raw) or int(raw.max()) < column.size:
        return raw.astype(code_dtype(column.size + apart)), [len(raw), *[0] * (len(MARKS) - 1)]
    marks, codes = np.divmod(raw, np.uint32(column.size))
    if apart:  # `outside: other` is a place: such values have their own cell
        placed = (marks == PLAIN) | ((marks == OUTSIDE) & (column.outside == "other"))
        codes = np.where(placed, codes, column.size)
    return codes.astype(code_dtype(column.size + apart)), np.bincount(marks, minlength=len(MARKS)).tolist()


def mapped(path: Path, dtype: np.dtype[Any]) -> NDArray[Any]:
    """A column file as a read-only memory map."""
    if path.stat().st_size == 0:
        return np.zeros(0, dtype=dtype)
    return np.memmap(path, dtype=dtype, mode="r")


#: A grown schema's rules would speak of other codes; scores use none.
NO_RULES = Rules()


def with_apart(schema: Schema, names: Collection[str]) -> Schema:
    """The schema with a code for values outside in these columns; itself where there are none."""
    if not names:
        return schema
    columns = tuple(replace(c, apart=True) if c.name in names else c for c in schema.columns)
    return replace(schema, columns=columns, rules=NO_RULES)


def together(schema: Schema, tables: Mapping[str, Any]) -> tuple[Schema, dict[str, Any]]:
    """The schema with the codes apart that any of the tables needs, and all tables over its domain.

    Args:
        tables: from `encode_columns(…, apart=True)`, or over the schema's own domain; one that an engine counts must
            have all the codes apart.
    """
    needed = {n for t in tables.values() for n in schema.domain.names if t.domain[n].size > schema.domain[n].size}
    grown = with_apart(schema, needed)
    return grown, {n: t if t.domain == grown.domain else replace(t, domain=grown.domain) for n, t in tables.items()}


def values_outside(
    source: Source, schema: Schema, name: str, *, most: int = 10, mark: int = ROUNDED, spread: bool = False
) -> list[tuple[str, int]]:
    """The most frequent values of a column that encoding marks, with how often each occurs. NOT private.

    Args:
        mark: values with this mark or a higher one.
        spread: equally frequent ones come in the order of a hash, so that the first of them are like the others.
    """
    column = schema[name]
    plan = encoding(source, replace(schema, columns=(column,), rules=NO_RULES), {"cell": text_sql(source, column)})
    query = (
        f"SELECT cell, count(*) AS n FROM ({plan.select}) WHERE v0 >= {column.size * mark} "
        f"GROUP BY cell ORDER BY n DESC, {'hash(cell), ' if spread else ''}cell LIMIT {most}"
    )
    return [(str(value or ""), int(n)) for value, n in source.lines(query, first=plan.types)]


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
    file = as_path(path, where)
    try:
        source = open_table(
            file,
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
