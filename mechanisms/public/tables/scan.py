"""The one SQL seam: tables on disk through an embedded DuckDB that streams, within a memory limit."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import duckdb

from mechanisms.public.errors import UserError, check_head, require_columns
from mechanisms.public.files import table_name
from mechanisms.public.schema.dialect import PLAIN, Dialect
from mechanisms.public.tables.engine_instances import connection
from mechanisms.public.tables.formats import CSV, format_of_file
from mechanisms.public.tables.inspect_file import (
    DAMAGED,
    SEVERAL_TEXTS,
    State,
    check_same,
    likely_header,
    states,
    table_parts,
)
from mechanisms.public.tables.sniffed_dialect import with_all_faults
from mechanisms.public.tables.text_forms import AS_THEY_ARE, MINUS, SIGN_APART, SPACES, NumberForm

#: Rows per streamed batch.
BATCH_ROWS = 1 << 18
INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}
DATES = {"DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"}
UTC, UTC_NS = "TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS"
#: How texts end that show UTC's clock, as those of a database do, whatever clock its sessions show.
OF_UTC = ("+00", "+00:00", "+0000", "UTC", "GMT")
#: A copy by columns; small groups of rows take little memory.
COPIED = "COMPRESSION lz4_raw, ROW_GROUP_SIZE 30720"
#: Lengths of time, which the engine takes for whole numbers.
DURATION = "DURATION"
#: Decimals of more than 38 digits, which the engine takes for floats: two of them may have one text.
LONG_DECIMAL = "LONG_DECIMAL"
#: What the engine raises for the file's or the disk's faults; all else is a fault of ours and keeps its traceback.
FILE_FAULTS = (
    duckdb.InvalidInputException,
    duckdb.IOException,
    duckdb.ConversionException,
    duckdb.OutOfRangeException,
    duckdb.SerializationException,
)


@dataclass(frozen=True)
class Opening:
    """A table's files, and how they are to be read: what a format's reader takes.

    Attributes:
        path: the file, or the folder or pattern of several.
        parts: the files, by name.
        dialect: of a CSV file; `expected` as of `open_table`.
        workdir: where the engine may spill; created by the caller, mode 0700.
        memory_limit_bytes, threads: what the engine may use.
        setting: the name of the delimiter's setting, for messages.
    """

    path: Path
    parts: tuple[Path, ...]
    workdir: Path
    memory_limit_bytes: int
    threads: int
    dialect: Dialect = PLAIN
    setting: str = "data.delimiter"
    expected: Collection[str] = ()

    def read_as(self, dialect: Dialect) -> None:
        """Every row of a text in another dialect; UserError where it cannot be read."""
        source = CSV.function("reader")(replace(self, dialect=dialect))
        source.lines(f"SELECT count(*) FROM {source.relation}")

    def source(self, names: tuple[str, ...], types: tuple[str, ...], relation: str, header: str = "") -> Source:
        """What was opened; UserError as of `check_head`."""
        path = "ADDRESS" if self.workdir in self.path.parents else self.path  # fetched rows are gone by then
        look = f"python -m pipeline check data=table data.path={path} data.schema=FILE"
        line = likely_header(self.parts[0], self.dialect) if header and names.count("") > 1 else ""
        check_head(names, self.expected, where=str(self.path), look=look, once=line)
        opened = {f.name: getattr(self, f.name) for f in fields(Opening)}
        return Source(**opened, names=names, types=types, relation=relation, header=header)


@dataclass(frozen=True)
class Source(Opening):
    """A table on disk that can be streamed; its columns are c0, c1, … in SQL, whatever their names.

    Attributes:
        names: the columns, as in the file.
        types: DuckDB's type of each, or DURATION, LONG_DECIMAL or SEVERAL_TEXTS; CSV text is VARCHAR throughout.
        relation: SQL that yields the rows in file order.
        header: the raw header line of a CSV file.
        states: how each of the table's files stood when it was opened.
    """

    names: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    relation: str = ""
    header: str = field(default="", repr=False)
    states: tuple[State, ...] = ()

    def index(self, name: str, *, where: str) -> int:
        """Position of a column.

        Raises:
            UserError: the table has no such column; suggests one.
        """
        require_columns([name], self.names, where=where, of=f" in {table_name(self.path)}", have="the table has:")
        return self.names.index(name)

    def declared(self, name: str) -> int:
        """Position of a column of the schema.

        Raises:
            UserError: the table has no such column; it holds lengths of time, whose ticks no schema knows.
        """
        where = f"schema: column {name!r}"
        index = self.index(name, where=where)
        if self.types[index] == DURATION:
            fix = f"seconds as numbers, for example frame[{name!r}].dt.total_seconds()"
            raise UserError(f"{name!r} holds lengths of time (timedelta), which are not read", where=where, fix=fix)
        return index

    def text(self, index: int) -> str:
        """SQL for the text form of a column, as a CSV file would hold it; the empty text is NULL, NaN or empty itself.

        All times that the engine cannot write have one text. Bytes that are text are read as it.
        """
        c, kind = f"c{index}", self.types[index]
        if kind == "VARCHAR":
            return f"coalesce({c}, '')"
        if kind in {"FLOAT", "DOUBLE", LONG_DECIMAL}:
            whole = f"CAST(TRY_CAST({c} AS BIGINT) AS VARCHAR)"
            return (
                f"CASE WHEN {c} IS NULL OR isnan({c}) THEN '' WHEN abs({c}) < 1e15 AND {c} = trunc({c}) THEN {whole} "
                f"ELSE CAST({c} AS VARCHAR) END"
            )
        if kind.startswith("DECIMAL") and not kind.endswith(",0)"):
            digits = f"regexp_replace(CAST({c} AS VARCHAR), '^(-?)[.]', '\\10.')"  # the engine writes .50, and .00
            return f"coalesce(rtrim(rtrim({digits}, '0'), '.'), '')"
        if kind in {UTC, UTC_NS, "TIMESTAMP"}:
            return f"coalesce(CAST({self._clock(index)} AS VARCHAR), CASE WHEN {c} IS NULL THEN '' ELSE 'infinity' END)"
        if kind == "BLOB":
            return f"coalesce(TRY(decode({c})), CAST({c} AS VARCHAR), '')"
        return f"coalesce(CAST({c} AS VARCHAR), '')"

    def number(self, index: int, reading: NumberForm = AS_THEY_ARE) -> str:
        """SQL for a column as DOUBLE; NULL for what is none so read, and for inf, NaN, 1e400 and 1_000."""
        if self.types[index] in INTEGERS:
            return f"CAST(c{index} AS DOUBLE)"
        if self.typed(index):
            number = f"TRY_CAST({self.text(index)} AS DOUBLE)" if self.types[index] != "DOUBLE" else f"c{index}"
            return f"CASE WHEN isfinite({number}) THEN {number} END"
        text = f"replace({self.text(index)}, {literal(MINUS)}, '-')"
        for sign in reading.signs:
            text = f"replace({text}, {literal(sign)}, '')"
        text = f"trim({text}, {literal(SPACES)})" if not reading.plain else text
        text = f"regexp_replace({text}, {literal(SIGN_APART)}, '\\1\\2')"
        if reading.marks:
            bare = f"translate({text}, {literal(''.join(reading.marks))}, '')"
            text = f"CASE WHEN {text} = {bare} OR regexp_full_match({text}, {literal(reading.parted)}) THEN {bare} END"
        point = text if reading.decimal == "." else f"replace(replace({text}, '.', '_'), ',', '.')"
        number = f"TRY_CAST({point} AS DOUBLE)"  # what stands here twice the engine computes once
        return f"CASE WHEN isfinite({number}) AND NOT contains({point}, '_') THEN {number} END"  # 1_000 is one for it

    def shape(self, index: int) -> str:
        """SQL for what the text form of a column looks like as a number: each digit is 9, but a 0 in front stays.

        So does the digit of a unit behind it, as of m2.
        """
        unit = f"regexp_extract({self.text(index)}, '[0-9]([^0-9]*m[23])\\s*$', 1)"
        number = f"regexp_replace({self.text(index)}, '([0-9])[^0-9]*m[23]\\s*$', '\\1')"
        front = f"regexp_replace({number}, '^([^0-9]*)0', '\\1' || chr(1))"
        return f"translate({front}, '012345678' || chr(1), '9999999990') || {unit}"

    def digits(self, index: int, most: int) -> str:
        """SQL for a code of at most so many digits as DOUBLE; NULL where it is none. Of 02134-1234, it is 02134."""
        pattern = f"^([0-9]{{1,{most}}})(-[0-9]{{4}}|\\.0+)?$"
        return f"TRY_CAST(regexp_extract(trim({self.text(index)}), {literal(pattern)}, 1) AS DOUBLE)"

    def moment(self, index: int, form: str | None, *more: str | None) -> str:
        """SQL for a column as TIMESTAMP; NULL where it is none. Text is read in the format, or as ISO without one.

        Args:
            more: further formats, for texts that the ones before do not read.
        """
        if more and not self.typed(index):
            return f"coalesce({', '.join(self.moment(index, f) for f in (form, *more))})"
        if self.types[index] in DATES | {UTC, UTC_NS}:
            return f"TRY_CAST({self._clock(index)} AS TIMESTAMP)"
        text = self.text(index)
        if form is None:  # the engine takes 02/03/24 for the 24th of March of the year 2, 01:30 PM for the morning,
            # epoch for the first day of 1970, and infinity for a time beyond all
            other = f"regexp_matches({text}, '(?i)^ *[0-9]{{1,3}}[-/]|^[^0-9]*[a-z]|[ap]m *$')"
            return f"TRY_CAST(CASE WHEN NOT {other} THEN {text} END AS TIMESTAMP)"
        moment = f"CAST(TRY_STRPTIME(trim({text}), {literal(form)}) AS TIMESTAMP)"
        if "%Y" not in form:
            return moment  # else the engine takes 01.02.65 for a day of the year 65
        shown = f"contains({text}, lpad(CAST(year({moment}) AS VARCHAR), 4, '0'))"
        return f"CASE WHEN year({moment}) >= 1000 OR {shown} THEN {moment} END"

    def _clock(self, index: int) -> str:
        """SQL for a date or time, as UTC's clock shows it; NULL where a time is infinite, or cannot be written."""
        moment, kind = f"c{index}", self.types[index]
        if kind == UTC_NS:
            return f"make_timestamp_ns(epoch_ns({moment}))"
        if kind not in {UTC, "TIMESTAMP"}:
            return moment
        zone, clock = ("TZ", f"make_timestamp(epoch_us({moment}))") if kind == UTC else ("", moment)
        least, most = (f"TIMESTAMP{zone} '290000-01-01{era} 00:00:00+00'" for era in (" (BC)", ""))
        return f"CASE WHEN {moment} BETWEEN {least} AND {most} THEN {clock} END"

    def typed(self, index: int) -> bool:
        """Whether the file knows its numbers, days or moments: clocks and a database's odd types are texts."""
        return self.types[index] not in {"VARCHAR", "TIME", "TIME_NS", SEVERAL_TEXTS}

    @contextmanager
    def connect(self, first: Sequence[str] = ()) -> Iterator[Any]:
        """An engine in memory, that spills below the workdir or where the command's does; `first`: what runs before."""
        with mapped_errors(self):
            spill = self.workdir / "spill"
            private_folder(spill)
            engine = connection(spill, self.memory_limit_bytes, self.threads)
            try:
                for statement in ("SET enable_progress_bar = false", *first):  # progress is the caller's to show
                    engine.execute(statement)
                yield engine
            finally:
                engine.close()

    def batches(self, sql: str, *, first: Sequence[str] = ()) -> Iterator[Any]:
        """The result of a query as Arrow record batches, in order, never whole in memory."""
        with self.connect(first) as engine:
            yield from engine.sql(sql).to_arrow_reader(BATCH_ROWS)

    def lines(self, sql: str, *, first: Sequence[str] = ()) -> list[Any]:
        """The lines of a query's result, all of them."""
        with self.connect(first) as engine:
            return list(engine.execute(sql).fetchall())


def open_table(
    path: Path,
    *,
    dialect: Dialect = PLAIN,
    workdir: Path,
    memory_limit_bytes: int,
    threads: int,
    setting: str = "data.delimiter",
    expected: Collection[str] = (),
) -> Source:
    """A table on disk, of any format of `FORMATS`; a file, or a folder or a pattern of parts.

    Nothing is guessed from the rows: CSV is text of the given dialect with a header and double quotes. A file
    that is not well formed (rows of another length, stray quotes, other encodings, mixed line ends) is refused, which
    lies outside of the guarantee; the message quotes no row.

    Args:
        workdir: where the engine may spill; a folder with mode 0700.
        expected: columns, of which a header names some; empty: for a command that exists to print what stands there.

    Raises:
        UserError: no such file, an empty file, a wrong delimiter, twice the same column, parts that differ.
    """
    path = Path(path)
    dialect.checked(setting.removesuffix("delimiter"))
    parts = table_parts(path)
    before = states(parts)
    forms = [format_of_file(part) for part in parts]
    check_same(parts, [form.reader for form in forms], "format does")
    opened = Opening(path, parts, workdir, memory_limit_bytes, threads, dialect, setting, expected)
    source: Source = forms[0].function("reader")(opened)
    return replace(source, states=before)


def listed(parts: Sequence[Path]) -> str:
    """The files of a table, as SQL."""
    files = [literal(no_glob(part)) for part in parts]
    return files[0] if len(files) == 1 else f"[{', '.join(files)}]"


def no_glob(path: Path) -> str:
    """The path with the engine's wildcards taken literally."""
    return re.sub(r"([*?\[])", r"[\1]", str(path))


def private_folder(path: Path) -> None:
    """Make a folder, and those above it that are absent, for the owner alone."""
    for folder in reversed([p for p in (path, *path.parents) if not p.exists()]):
        folder.mkdir(mode=0o700, exist_ok=True)


def literal(text: str) -> str:
    """A SQL text literal."""
    return "'" + text.replace("'", "''") + "'"


def quoted_name(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def mapped_errors(source: Source) -> Iterator[None]:
    """The engine's complaints in the user's words; never with a row in them.

    Raises:
        UserError: a malformed file, a full or read-only disk, or too little memory.
    """
    try:
        yield
    except duckdb.OutOfMemoryException:
        raise _too_little_memory(source) from None
    except FILE_FAULTS as error:
        # `from None`: the engine's own message quotes the row.
        raise _explained(str(error), source) from None
    except duckdb.Error as error:
        if type(error) is not duckdb.Error:
            raise
        raise _explained(str(error), source) from None  # of a Parquet file whose inner marks are damaged
    except OSError as error:
        if error.errno is None:  # the engine's message, handed through by the Arrow stream
            raise _explained(str(error), source) from None
        fix = "free some space there, or choose a folder that can be written"
        raise UserError(f"cannot write: {error.strerror}", where=str(source.workdir), fix=fix) from error


def _too_little_memory(source: Source) -> UserError:
    needed = f"{source.memory_limit_bytes / 1e9:.1f} GB, or than the system grants, or more room in {source.workdir}"
    fix = "a higher limits.memory_gb (or `ulimit -v`, or limit of a container), or free space for spilling"
    return UserError(f"the engine needs more than {needed}", where="limits.memory_gb", fix=fix)


def _damaged(source: Source) -> UserError | None:
    """What is wrong with the first of several parts that cannot be read alone; None where there is none."""
    for part in source.parts if len(source.parts) > 1 else ():
        relation = source.relation.replace(listed(source.parts), listed([part]), 1)
        alone = replace(source, path=part, parts=(part,), relation=relation)
        try:
            for _ in alone.batches(f"SELECT * FROM {relation}"):
                continue
        except UserError as error:
            return error
    return None


def _explained(message: str, source: Source) -> UserError:
    if (error := _damaged(source)) is not None:
        return error
    where = str(source.path)
    if message.startswith("Out of Memory"):
        return _too_little_memory(source)
    line = re.search(r"CSV Error on Line: (\d+)", message)
    at = f" at line {line[1]}" if line else ""
    if "No space left" in message or "Failed to create directory" in message or "Read-only" in message:
        fix = "free some space there, or choose a folder that can be written"
        return UserError(
            "the engine cannot write there: the disk is full or read-only", where=str(source.workdir), fix=fix
        )
    fields = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", message)
    if fields:
        problem = f"malformed{at}: the header has {fields[1]} fields, this line {fields[2]}"
        fix = f"mend the file; fields with the delimiter in them need quotes ({source.setting})"
        return UserError(problem, where=where, fix=fix)
    if source.header and ("utf-8" in message or "unicode" in message):
        error = UserError("is not UTF-8 text" + at, where=where, fix="the encoding that it is written in")
        return with_all_faults(error, source.parts[0], source.dialect, source.setting, source.read_as)
    for sign, problem, fix in (
        ("Could not convert Timestamp", "holds a time beyond the years that can be read", "mend or drop that value"),
        ("nterminated quote", "malformed: a quote is not closed, or text follows a closing quote", 'write " as ""'),
        ("GZIP|gzip|ZSTD", "the compressed file is truncated or damaged", DAMAGED),
        ("line size", "malformed: a line is longer than 2 MB", "mend the file; perhaps a quote is not closed"),
        ("invalid state", "malformed: line ends are mixed, or quotes stray", "use one kind of line end throughout"),
    ):
        if re.search(sign, message):
            return UserError(problem + at, where=where, fix=fix)
    problem = f"cannot be read{at}: truncated or not well formed"
    return UserError(problem, where=where, fix="check the file, or fetch it again")
