"""Encoding: one SQL expression per column, from the table's text or types to codes; total unless a column refuses."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mechanisms.public.errors import UserError, require_columns
from mechanisms.public.files import table_name
from mechanisms.public.schema.bins import DAY, double, timestamp
from mechanisms.public.schema.column import DATE_KINDS, Column
from mechanisms.public.schema.spellings import ISO, loose_codes
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.scan import COPIED, Source, listed, literal
from mechanisms.public.tables.text_forms import NumberForm

#: A raw code is code + size · mark: the mark says what happened to the value, and is counted. No raw code carries the
#: last one: it counts the plain codes that mean missing.
PLAIN, ROUNDED, OUTSIDE, UNPLACED, GAP = MARKS = range(5)
WHOLE = re.compile(r"-?[0-9]+")


@dataclass(frozen=True)
class Encoding:
    """The statements that encode a table.

    Attributes:
        types: statements that define the engine's types, to run first.
        select: yields one raw code per column, named v0, v1, …; the values of columns with fine cells, clipped, in the
            order of `schema.fine`, where they are asked for; then the further expressions, named as given.
    """

    types: tuple[str, ...]
    select: str


def encoding(source: Source, schema: Schema, further: dict[str, str] | None = None, *, fine: bool = False) -> Encoding:
    """The SQL that encodes a table, row by row and in the order of the file.

    Args:
        fine: for measuring: the values of columns with fine cells are wanted beside their codes, and columns that are
            computed from others are not read: their codes are 0.
        further: name → SQL over the source's columns, passed through beside the codes.

    Raises:
        UserError: a column of the schema is not in the table, or is nested.
    """
    types, inner, clipped, outer, values = [], [], ["*"], [], []
    unread = {step.target for step in schema.rules.computed} if fine else set()
    absent = [c.name for c in schema.held if c.name not in source.names]
    unit = schema.rules.unit
    if absent and unit is not None and {*absent} <= {*unit.constant}:
        fix = "data.units.path=TABLE (Python: units=FRAME), where a table with one row per person holds them; or take "
        fix += "them out of the schema"
        problem = f"no column of constants of persons, {', '.join(map(repr, absent))}, in {table_name(source.path)}"
        raise UserError(problem, where="schema", fix=fix)
    if len(absent) > 1:
        require_columns(
            absent, source.names, where="schema", of=f" in {table_name(source.path)}", have="the table has:"
        )
    for i, column in enumerate(schema.columns):
        text = text_sql(source, column)
        if column.name in unread:
            outer.append(f"CAST(0 AS UINTEGER) AS v{i}")
            continue
        if column.gridded:
            inner += [f"{read_sql(source, column)} AS p{i}", f"{text} AS t{i}"]
            clipped.append(f"{_clipped(column, f'p{i}')} AS x{i}")
            expression = _ordered(column, f"p{i}", f"t{i}", column.grid.sql(f"x{i}"))
            if fine and column.name in schema.fine:
                value = column.grid.value_sql(f"x{i}")
                values.append(f"CAST(coalesce({value}, {column.low}) AS DOUBLE) AS f{i}")
        else:
            inner.append(f"{text} AS t{i}")
            exact = _Lookup.of(f"e{i}", _exact(column, typed=source.typed(source.declared(column.cell))))
            loose = _Lookup.of(f"l{i}", folds) if (folds := loose_codes(column)) else None
            lookups = [own for own in (exact, loose) if own is not None]
            types += [f"CREATE TEMP TYPE {e.name} AS ENUM ({', '.join(map(literal, e.texts))})" for e in lookups]
            expression = _texts(column, f"t{i}", exact, loose)
        outer.append(f"CAST({expression} AS UINTEGER) AS v{i}")
    outer += values
    for name, sql in (further or {}).items():
        inner.append(f"{sql} AS {name}")
        outer.append(name)
    read = f"SELECT {', '.join(clipped)} FROM (SELECT {', '.join(inner)} FROM {source.relation})"
    select = f"SELECT {', '.join(outer)} FROM ({read})"
    return Encoding(tuple(types), select)


def value_expressions(source: Source, columns: Sequence[Column]) -> tuple[str, list[str]]:
    """An inner SELECT, and SQL over what it names for the values of ordered columns, as of `value_parts`."""
    inner, values = value_parts(source, columns)
    named = ", ".join(f"{sql} AS {name}" for name, sql in inner.items())
    return f"SELECT {named} FROM {source.relation}", values


def value_parts(source: Source, columns: Sequence[Column]) -> tuple[dict[str, str], list[str]]:
    """SQL for the values of ordered columns, as their schema reads them, over what an inner SELECT names.

    Returns:
        name → SQL over the source's columns, and one expression of these names per column: a number, or days or seconds
        from 1970-01-01; NULL where the cell is none of a value. No name is one of `encoding`.
    """
    inner: dict[str, str] = {}
    values = []
    for i, column in enumerate(columns):
        inner |= {f"q{i}": read_sql(source, column), f"u{i}": text_sql(source, column)}
        raw, value = _ordered(column, f"q{i}", f"u{i}", "0"), column.grid.value_sql(_clipped(column, f"q{i}"))
        placed = f"({raw}) % {column.size} < {column.value_codes} AND q{i} IS NOT NULL"
        values.append(f"CASE WHEN {placed} THEN CAST({value} AS DOUBLE) END")
    return inner, values


def text_sql(source: Source, column: Column) -> str:
    """SQL for the text form of a column, as of `Source.text`; UserError as of `Source.declared`."""
    return source.text(source.declared(column.cell))


def read_sql(source: Source, column: Column) -> str:
    """SQL for a column as its schema reads it: numbers as DOUBLE, dates and times as TIMESTAMP; NULL for none."""
    index = source.declared(column.cell)
    if (between := column.between) is not None:
        start, end = (
            f"CASE WHEN NOT ({declared_gap(c, '', text_sql(source, c))}) THEN {read_sql(source, c)} END"
            for c in (between.earlier, between.later)
        )
        if between.later.kind == "date":  # which may be written with times of the day
            return f"CAST(date_diff('day', {start}, {end}) AS DOUBLE)"
        return f"((epoch({end}) - epoch({start})) / {between.unit})"
    if column.kind in DATE_KINDS:
        return source.moment(index, column.format, *(None if f == ISO else f for f in column.more_formats))
    if column.width is not None:
        return source.digits(index, column.width)
    return source.number(index, NumberForm(column.strip, column.decimal))


def _exact(column: Column, *, typed: bool) -> dict[str, int]:
    """Text → code, as the table holds the text."""
    codes = column.exact_codes
    return codes | {number: codes[t] for number, t in listed_numbers(column).items()} if typed else codes


def listed_numbers(column: Column) -> dict[str, str]:
    """What the engine writes for a number of a typed column → its listed text; of several (2, 02) one has it."""
    values = [t for t, _ in column.spelled]
    whose = {_canonical(t): t for t in reversed(values)} | {t: t for t in (*values, *column.missing_texts)}
    return {c: t for t in values if whose[c := _canonical(t)] == t}


def _canonical(text: str) -> str:
    """The text that the engine writes for this number, for columns whose file knows that they are numbers."""
    match = re.fullmatch(r"(-?)0*([0-9]+)(?:\.([0-9]*?)0*)?", text)
    return text if match is None else f"{match[1]}{match[2]}{'.' + match[3] if match[3] else ''}"


@dataclass(frozen=True)
class _Lookup:
    """Texts and their codes: an enumeration of the engine, whose positions are the codes as far as that goes.

    Attributes:
        name: of the type; texts, codes: in the order of the positions.
    """

    name: str
    texts: tuple[str, ...]
    codes: tuple[int, ...]

    @staticmethod
    def of(name: str, codes: Mapping[str, int]) -> _Lookup:
        first = {code: text for text, code in reversed([*codes.items()])}
        order = [*(first[c] for c in sorted(first)), *(t for t, c in codes.items() if first[c] != t)]
        return _Lookup(name, tuple(order), tuple(codes[t] for t in order))

    def place(self, text: str) -> str:
        """SQL for the code of a text; NULL where it is none of them."""
        position = f"enum_code(TRY_CAST({text} AS {self.name}))"
        return (
            position if self.codes == tuple(range(len(self.codes))) else f"{list(self.codes)}[{position}::INTEGER + 1]"
        )


def _texts(column: Column, text: str, exact: _Lookup, loose: _Lookup | None) -> str:
    """Categorical values and flags: the code of the first attempt that finds the text, as of `spellings.reader`."""
    attempts = [exact.place(text)]
    if any(WHOLE.fullmatch(t) for t, _ in column.spelled) and column.kind == "categorical":
        # 2.0 is the listed 2: other tools write whole numbers so beside gaps.
        attempts.append(exact.place(f"regexp_replace({text}, '\\.0+$', '')"))
    bare = f"trim({text})"
    for begun in (bare, f"left({bare}, {column.beginning})") if column.beginning else (bare,):
        attempts += [exact.place(begun)] if loose or column.beginning or column.kind == "flag" else []
        attempts += [loose.place(f"lower({begun})")] if loose else []
    places = {"other": column.other_code, "missing": column.missing_code}
    elsewhere = places.get(column.outside) or 0  # the first code where there is no other place
    last = str(elsewhere + column.size * OUTSIDE)
    if column.missing_code is None:
        # Only the log tells an empty cell, where the column has no code for it, from a text outside of the domain.
        last = f"CASE WHEN {text} = '' THEN {elsewhere + column.size * UNPLACED} ELSE {last} END"
    return f"coalesce({', '.join(attempts)}, {last})"


def _bounds_sql(column: Column) -> tuple[str, str]:
    """The bounds of an ordered column, as SQL."""
    if column.kind not in DATE_KINDS:
        return double(column.bounds[0]), double(column.bounds[1])
    unit = DAY if column.kind == "date" else 1
    return timestamp(int(column.bounds[0]) * unit), timestamp(int(column.bounds[1]) * unit)


def _clipped(column: Column, p: str) -> str:
    """SQL for the value that counts: rounded where the column is of whole numbers, and inside the bounds."""
    low, high = _bounds_sql(column)
    value = p if column.kind in {"float", *DATE_KINDS} else f"round({p})"
    return f"least(greatest({value}, {low}), {high})"


def _ordered(column: Column, p: str, text: str, code: str) -> str:
    """Numbers, dates and times: the bin of the clipped value; `p` is NULL where the text is no such value.

    Args:
        code: SQL for that bin; of whom it is enough to know whether there is one, any.
    """
    size, beyond = column.size, beyond_sql(column, p)
    broken = "" if column.kind in {"float", *DATE_KINDS} else f"WHEN {p} <> round({p}) THEN "
    gap = column.missing_code if column.missing_code is not None else column.other_code or 0
    gap_mark = PLAIN if column.missing_code is not None else UNPLACED
    blank = f"trim({text}) IN ({', '.join(map(literal, ('', *column.missing_texts)))})"
    is_other = "" if column.other is None else f"WHEN {text} = {literal(column.other)} THEN {column.other_code} "
    out = {
        "clip": f"{code} + {size * OUTSIDE}",
        "other": str((column.other_code or 0) + size * OUTSIDE),
        "missing": str((column.missing_code or 0) + size * OUTSIDE),
        "refuse": str(size * OUTSIDE),
    }[column.outside]
    rounded = f"{code} + {size * ROUNDED}" if column.outside == "clip" else out
    declared = declared_gap(column, p, text)
    return (
        f"CASE WHEN {declared} THEN {gap} WHEN {p} IS NULL THEN CASE WHEN {blank} THEN {gap + size * gap_mark} "
        f"{is_other}ELSE {gap + size * UNPLACED} END "
        f"WHEN {beyond} THEN {out} {broken and broken + rounded} ELSE {code} END"
    )


def beyond_sql(column: Column, p: str) -> str:
    """SQL for whether a value, read as `p`, lies below or above the bounds."""
    low, high = _bounds_sql(column)
    if column.kind in DATE_KINDS:
        return f"{p} < {low} OR {p} >= {high} + INTERVAL {DAY if column.kind == 'date' else 1} SECOND"
    return f"{p} < {low} OR {p} > {high}"


def declared_gap(column: Column, p: str, text: str) -> str:
    """SQL for whether a text means missing; of numbers, also when they are written otherwise (-999.0)."""
    if not column.missing_texts:
        return "false"
    listed = f"{text} IN ({', '.join(map(literal, column.missing_texts))})"
    if numbers := _gap_numbers(column):
        listed += f" OR {p} IN ({', '.join(double(float(t)) for t in numbers)})"
    return listed


def _gap_numbers(column: Column) -> list[str]:
    """The listed gaps of a column of numbers that are numbers."""
    plain = column.kind in {"integer", "float"} and column.width is None and column.between is None
    return [t for t in column.missing_texts if re.fullmatch(r"-?[0-9]{1,15}(\.[0-9]+)?", t)] if plain else []


def as_listed_sql(source: Source, column: Column) -> str:
    """SQL for the text form of a column; a number that is a listed gap is as the list has it: 9.999 kg is 9999."""
    text, numbers = text_sql(source, column), _gap_numbers(column)
    listed = "".join(f" WHEN {double(float(t))} THEN {literal(t)}" for t in numbers)
    return f"CASE {read_sql(source, column)}{listed} ELSE {text} END" if listed else text


def by_column(source: Source, workdir: Path) -> Source:
    """The same rows, of which a column can be read without the others: a CSV file is parsed once, and its texts copied.

    Args:
        workdir: for the copy; a folder with mode 0700.
    Raises:
        UserError: a malformed file, a full disk.
    """
    if not source.header:
        return source
    path = workdir / "texts.parquet"
    with source.connect() as engine:
        engine.execute(f"COPY (FROM {source.relation}) TO {literal(str(path))} (FORMAT parquet, {COPIED})")
    return replace(source, relation=f"read_parquet({listed([path])}, hive_partitioning = false)")
