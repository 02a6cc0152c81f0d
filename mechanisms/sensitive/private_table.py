"""PrivateTable: codes and weights of raw rows, already clipped; its repr shows columns, never rows."""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.arrays import Flags, Floats, Ints
from mechanisms.public.coded_table import AnyTable, CodedTable, CountedTable
from mechanisms.public.errors import UserError
from mechanisms.public.persons.person_questions import counted_questions, times_of
from mechanisms.public.persons.tally import Persons, Sheet, sheet_of, stacked, tally
from mechanisms.public.progress import Progress
from mechanisms.public.rules.fine_columns import without_fine
from mechanisms.public.schema.column import DATE_KINDS, ORDERED_KINDS, Column
from mechanisms.public.schema.spellings import folded, reader
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.codec import EncodingReport, encode_columns
from mechanisms.public.tables.doubts import LOOKED_AT, USUAL, ids_of_nobody
from mechanisms.public.tables.encode import value_parts
from mechanisms.public.tables.inspect_file import check_unchanged, table_parts
from mechanisms.public.tables.losses import declared_texts
from mechanisms.public.tables.scan import Source, literal
from mechanisms.public.units import MAX_RECORDS, Neighbouring
from mechanisms.sensitive.contribution import (
    Aside,
    PrivacyUnit,
    UnitRows,
    check_sizes,
    counted_units,
    needs_content,
    numbers_of,
    unit_forms,
    unit_id,
)
from mechanisms.sensitive.engines.duckdb_engine import DuckdbEngine
from mechanisms.sensitive.engines.engine import Engine

#: The number of a row without an id; shares of units below this may be one unit's, as sums of 1/3 are rounded.
NOBODY, ONE_UNIT = -1, 1.01


def person_counts(
    table: UnitRows, schema: Schema, plain: CodedTable, *, key: bytes, aside: Flags | None = None
) -> Ints:
    """(cells,) the exact counts of all questions about persons (`counted_questions`), one after the other.

    Guarantee: what a unit adds follows from its own rows, their order among each other and the key alone, has no
        negative entry, and sums to one person at most in each question, however many records it has.
    Args:
        plain: the table's rows as codes of the schema's columns, in the order of the file.
        key: secret; chooses among the values of a constant that contradict each other within a unit.
        aside: which rows belong to units that are set aside.
    Cost: one pass over ids and order, a sort, and a pass over the rows for each feature; memory: 4 bytes per row and
        column that is asked about, and 40 per row.
    """
    declared = schema.rules.unit
    assert declared is not None, "the schema declares a unit"
    by_name, sheet = {c.name: c for c in schema.columns}, sheet_of(counted_questions(schema))
    numbers = [by_name[n] for n in declared.order if by_name[n].kind in ORDERED_KINDS and by_name[n].width is None]
    owners, values = _owners_and_values(table, numbers)  # of other columns the codes are in order
    keys = [values[n] if n in values else np.asarray(plain.column(n), np.float64) for n in reversed(declared.order)]
    counted = owners != NOBODY if aside is None else (owners != NOBODY) & ~aside
    rows = np.flatnonzero(counted)
    # what has no value stands behind all that has one; equal ones keep the order of the file
    ranked = [np.where(np.isnan(k[rows]), np.inf, k[rows]) for k in keys]
    members = rows[np.lexsort((*ranked, owners[rows]))].astype(np.int64)
    changes = np.flatnonzero(np.diff(owners[members], prepend=NOBODY - 1))
    starts = np.append(changes, members.size).astype(np.int64)
    time = declared.times(by_name)
    times = np.full(plain.rows, -1, np.int64) if time is None else times_of(values[time.name], time)
    constants = _constants(plain, schema, sheet, members, starts, key)
    codes = stacked([plain.column(n) for n in sheet.columns], plain.rows)
    return tally(Persons(codes, times, constants, members, starts), sheet)


def _owners_and_values(table: UnitRows, columns: Sequence[Column]) -> tuple[Ints, dict[str, Floats]]:
    """(rows,) a number for each row's unit, NOBODY where none counts; and the values of some columns, NaN for none."""
    import pyarrow as pa

    source, unit = table.source, table.unit
    inner, values = value_parts(source, columns)
    parts = {"unit": unit_id(source, unit), **inner}
    named = ", ".join(f"{sql} AS {name}" for name, sql in parts.items())
    outer = ", ".join(["unit", *(f"{sql} AS x{i}" for i, sql in enumerate(values))])
    ids, read = [], [[np.zeros(0)] for _ in columns]
    for batch in source.batches(f"SELECT {outer} FROM (SELECT {named} FROM {source.relation})"):
        ids.append(unit_forms(batch.column(0), source, unit).cast(pa.large_string()))
        for target, column in zip(read, batch.columns[1:], strict=True):
            target.append(column.cast(pa.float64()).fill_null(np.nan).to_numpy(zero_copy_only=False))
    owners = numbers_of(pa.chunked_array(ids, pa.large_string()), alone=unit.missing == "own")
    return owners, {c.name: np.concatenate(v) for c, v in zip(columns, read, strict=True)}


def _constants(
    plain: CodedTable, schema: Schema, sheet: Sheet, members: Ints, starts: Ints, key: bytes
) -> NDArray[np.int32]:
    """(constants, persons) codes: of several of one person the first in a secret order, values before gaps.

    The order is the same for all persons, so that nobody's choice follows from another's rows.
    """
    chosen = np.empty((len(sheet.constants), starts.size - 1), np.int32)
    for place, name in enumerate(sheet.constants):
        column = schema[name]
        order = _secret_order(column, key)
        rank = np.empty(column.size, np.int64)
        rank[order] = np.arange(column.size)
        if starts.size > 1:
            chosen[place] = order[np.minimum.reduceat(rank[plain.column(name)[members]], starts[:-1])]
    return chosen


def _secret_order(column: Column, key: bytes) -> Ints:
    """The codes of a column in an order that follows from the key: values first, then *other* and *missing*."""
    seed = hashlib.blake2b(b"constant:" + column.name.encode(), key=key[:64], digest_size=16).digest()
    order = np.random.Generator(np.random.Philox(key=int.from_bytes(seed))).permutation(column.size)
    return np.concatenate([order[order < column.value_codes], order[order >= column.value_codes]]).astype(np.int64)


EMBEDDED = DuckdbEngine()


@dataclass(frozen=True, eq=False)
class PrivateTable:
    """Raw rows as codes, clipped; NOT private, and nothing of it may be released without noise.

    Attributes:
        coded: codes of the schema's measured domain, and weights; those of one unit sum to at most `max_records`
            records. Where another engine holds the rows, the table that it counts.
        unit: who is protected.
        encoding: what encoding could not take as it was; for the internal log alone.
        complete: whether every row of the table is in it.
        aside: which rows of the file belong to units that were set aside; None where none were.
        folder: the one in which the runs of a sweep keep it and its counts; None for a run's own.
        sizes: records and units: how many units have so many records, before clipping; None where a record is a unit.
        histogram: how many units have R = 1 … records, a unit with more counted in the last cell, without those that
            were set aside; None where it was not asked for.
        persons: exact counts of all questions about persons (`person_counts`); None where the schema declares no unit.
    """

    coded: AnyTable
    unit: PrivacyUnit
    encoding: EncodingReport
    complete: bool
    aside: Flags | None = None
    sizes: Ints | None = None
    histogram: Ints | None = None
    folder: Path | None = None
    persons: Ints | None = None

    @property
    def max_records(self) -> int:
        """C: the most that one unit contributes, in records."""
        return self.unit.max_records

    def public_rows(self, neighbouring: Neighbouring) -> int | None:
        """The number of rows where it is a public fact: under `replace`, with one record per unit; else None.

        Where records were set aside it is none: a record that replaces another one has a coin of its own.
        """
        public = neighbouring is Neighbouring.REPLACE and self.unit.column is None and self.complete
        return self.coded.rows if public else None

    def as_read(self, schema: Schema) -> CodedTable | None:
        """All rows of the table under the schema itself; None where they are elsewhere or were changed."""
        rows = self.coded
        if isinstance(rows, CountedTable) or not self.complete:
            return None
        if schema.engineering.steps or self.encoding.apart(schema):
            return None
        return replace(without_fine(rows, schema), weights=None)

    def __repr__(self) -> str:
        columns = ", ".join(f"{a.name!r}: {a.size}" for a in self.coded.domain.attributes)
        return f"PrivateTable({{{columns}}}, unit={self.unit.column or 'record'!r}, max_records={self.max_records})"


def load_private(
    source: Source,
    schema: Schema,
    unit: PrivacyUnit,
    *,
    workdir: Path,
    key: bytes,
    holdout: float | None = None,
    histogram: int | None = None,
    progress: Progress | None = None,
    engine: Engine = EMBEDDED,
) -> PrivateTable:
    """Encode a table, apply the schema's steps, and clip what each unit contributes; the file is parsed once.

    Guarantee: the weights of one unit sum to at most `unit.max_records` records, exactly. With the default handling no
        row can make it fail; outside=refuse, privacy.missing_unit=refuse and privacy.clip=none can, and lie outside of
        the guarantee, as does conflict: refuse of a rule.
    Args:
        workdir: where column files go; a folder with mode 0700.
        key: at least 16 secret bytes; chooses what privacy.clip=truncate keeps and who is set aside. The same key, the
            same choice.
        holdout: each unit is set aside with this probability, by its own coin, before anything is counted.
        histogram: records per unit are counted too, up to so many; None: they are not.
        engine: who reads the rows; all give the same counts.

    Returns:
        With the embedded engine: rows in the order of the file.

    Raises:
        UserError: as of `Engine.encode` and `check_sizes`; a unit column that the table has not; a table that changed
            since it was opened.
    """
    if len(key) < 16:
        raise ValueError("the key of the truncation needs at least 16 bytes")
    aside = None if holdout is None else Aside(key, holdout)
    contents = key if needs_content(unit, aside) else None
    given = UnitRows(source, unit, workdir)
    encoded = engine.encode(given, schema, contents=contents, progress=progress)
    sizes, counted, most = None, None, 1
    if unit.column is not None:
        sizes = encoded.unit_sizes()
        check_sizes(unit, sizes)
        most = 2 * max(sizes.largest, 1)  # one person may have two ids
        if histogram is not None:
            left = sizes if aside is None else encoded.unit_sizes(aside)
            counted = counted_units(left, unit, histogram)
    report = lone_texts(schema, given, encoded.report, largest=most, engine=engine)
    clipped, persons = encoded.clipped(key, aside), None
    if schema.rules.unit is not None:
        if unit.column is None:
            raise RuntimeError("persons are counted by the column of their ids")
        plain = encoded.plain
        if plain is None:  # rows elsewhere have no order: they are read once more, in that of the file
            coded, _ = encode_columns(source, schema, workdir=workdir / "persons", fine=True)
            plain = CodedTable(schema.domain, coded.columns[: len(schema.columns)])
        persons = person_counts(given, schema, plain, key=key, aside=clipped.aside)
    check_unchanged(source.states)
    return PrivateTable(
        clipped.rows,
        unit,
        report,
        complete=clipped.complete,
        aside=clipped.aside,
        sizes=None if sizes is None else sizes.sizes,
        histogram=counted,
        persons=persons,
    )


def lone_texts(
    schema: Schema, table: UnitRows, report: EncodingReport, *, largest: int, engine: Engine = EMBEDDED
) -> EncodingReport:
    """The report with `lone` of units: a person of many rows betrays a text as a single row does. NOT private.

    Units that are set aside are among them, and each row without an id is one, whether it counts or not. A text is lone
    where one unit holds it in any of the readings of ids.

    Cost: a pass, for each reading, over the columns in which one unit may hold all rows of a text.

    Args:
        largest: no unit has more records.
        engine: who reads the rows; another than the embedded one reads the ids as they stand alone.
    """
    texts = {c.name: declared_texts(c) for c in schema.held}
    more = {c.name for c in schema.held if {*texts[c.name]} - {*(c.values if c.listed else ())}}
    asked = [c for c in schema.held if c.name in more or 0 < report.fewest.get(c.name, 0) <= largest]
    lone = {c.name: 0 for c in schema.held if c.listed or c.name in more}
    if not asked:
        return replace(report, lone=lone)
    unit = table.unit
    every = unit if unit.column is None else replace(unit, max_records=MAX_RECORDS, missing="own")
    plain = [c if c.numeric or c.kind in DATE_KINDS else replace(c, missing_texts=(), other=None) for c in asked]
    readings = readings_of_ids(table.source, unit) if isinstance(engine, DuckdbEngine) else [table.source]
    asking = [replace(table, source=source, unit=every) for source in readings]
    read = [engine.values(rows, plain, key=b"", aside=None) for rows in asking]  # each text counts: no coin decides
    for column in asked:
        code_of, declared, alone = reader(column), {*map(_bare, texts[column.name])}, set[str]()
        for counts in read:
            held, units = Counter[str](), Counter[str]()
            shares, parts = defaultdict[str, float](float), defaultdict[str, float](float)
            for text, several, n in counts[column.name]:
                units[text] += n
                parts[text] += n / several  # a unit of several texts is one in all of them together
            for text, n in units.items():  # one unit may hold several spellings
                code = code_of(text) if column.kind == "categorical" and column.values else None
                value = () if code is None else column.values[code : code + 1]
                for one in {*map(_bare, (text, *value))} & declared:
                    held[one] = max(held[one], n)
                    shares[one] += parts[text]
            alone |= {one for one, n in held.items() if n == 1 and shares[one] < ONE_UNIT}
        lone[column.name] = len(alone)
    return replace(report, lone=lone)


def readings_of_ids(source: Source, unit: PrivacyUnit) -> list[Source]:
    """Readings of the ids of texts: without marks, as 12 34 and 1234 are one; and without rows under ids of nobody."""
    if unit.column is None or source.types[index := source.index(unit.column, where="privacy.unit")] != "VARCHAR":
        return [source]
    text, table = source.text(index), source.relation
    is_nobody = f"trim({text}) IN ({', '.join(map(literal, ('', *unit.missing_values)))})"
    ids = f"SELECT {text} AS id, count(*) AS n FROM {table} WHERE NOT {is_nobody} GROUP BY id"
    often = f"SELECT id, n, quantile_cont(n, {USUAL}) OVER () FROM ({ids}) ORDER BY n DESC, id LIMIT {LOOKED_AT}"
    rows = source.lines(often)
    nobody = ids_of_nobody({t: n for t, n, _ in rows}, rows[0][2] if rows else 0.0)
    whole = f"regexp_replace({text}, '[.]0+$', '')"  # 7.0 is 7, not 70
    bare = f"coalesce(nullif(regexp_replace({whole}, '[^\\pL\\pN]+', '', 'g'), ''), {text})"
    bare = f"CASE WHEN {is_nobody} THEN {text} ELSE {bare} END AS c{index}"
    somebody = "".join(f" AND {text} <> {literal(t)}" for t in nobody)
    conditions = ("", somebody) if somebody else ("",)
    return [replace(source, relation=f"(SELECT * REPLACE ({bare}) FROM {table} WHERE true{k})") for k in conditions]


def _bare(text: str) -> str:
    """A text but for capitals, spaces around it, and zeros behind the point of a whole number."""
    return re.sub(r"\.0+$", "", folded(text))


def data_print(*paths: Path) -> str:
    """The content of all tables that a run reads, each as of `fingerprint`, in their order. Internal."""
    return "+".join(map(fingerprint, paths))


def fingerprint(path: Path) -> str:
    """The content of a file, or of a table's parts, as 32 hexadecimal digits of BLAKE2b.

    Internal: it depends on every row.

    Raises:
        UserError: a file cannot be read.
    """
    parts = table_parts(path)
    if len(parts) > 1:
        return hashlib.blake2b("".join(map(_fingerprint, parts)).encode(), digest_size=16).hexdigest()
    return _fingerprint(parts[0])


def _fingerprint(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, partial(hashlib.blake2b, digest_size=16)).hexdigest()
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", where=str(path), fix="check the path") from error
