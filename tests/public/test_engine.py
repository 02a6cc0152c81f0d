"""Tables as the engine reads them: delimiters, types, quoted lines, and files that cannot be read."""

import gzip
import traceback
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mechanisms.public.errors import UserError
from mechanisms.public.schema.dialect import Dialect
from mechanisms.public.tables import engine_instances, readers
from mechanisms.public.tables.engine_instances import shared_engine
from mechanisms.public.tables.inspect_file import undamaged
from mechanisms.public.tables.scan import open_table
from mechanisms.public.tables.sniffed_dialect import dialect_of
from tests import started_once
from tests.public.table_worlds import codes as encode
from tests.public.table_worlds import csv, encoded, schema, source

ANY = {"kind": "categorical", "values": ["1", "2", "3", "4", "x"]}


def read(path: Path, **options: Any) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    table = source(path, **options)
    batches = table.batches(f"SELECT * FROM {table.relation}")
    return table.names, [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize(
    ("text", "names", "rows"),
    [
        (b"a,b\n1,2\n", ("a", "b"), [("1", "2")]),
        (b"a,b\n1,2", ("a", "b"), [("1", "2")]),
        (b"a,b\r\n1,2\r\n", ("a", "b"), [("1", "2")]),
        (b"\xef\xbb\xbfa,b\n1,2\n", ("a", "b"), [("1", "2")]),
        (b"a,b\n", ("a", "b"), []),
        (b"a,b", ("a", "b"), []),
        (b"a,A\n1,2\n", ("a", "A"), [("1", "2")]),
        (b'"say ""so"", x",b ,c;d\n1,2,3\n', ('say "so", x', "b ", "c;d"), [("1", "2", "3")]),
        (b'a,b\n" 1","2,\n""3"""\n', ("a", "b"), [(" 1", '2,\n"3"')]),
        (b"a,b\n#1,NA\n", ("a", "b"), [("#1", "NA")]),
    ],
)
def test_csv_is_text_with_a_header(text: bytes, names: tuple[str, ...], rows: list[Any], tmp_path: Path) -> None:
    assert read(csv(tmp_path, text)) == (names, rows)


def test_other_delimiters_and_compressed_files(tmp_path: Path) -> None:
    assert read(csv(tmp_path, "a;b\n1,5;2\n"), dialect=Dialect(";")) == (("a", "b"), [("1,5", "2")])
    assert read(csv(tmp_path, "a\tb\n1\t2\n", "t.tsv"), dialect=Dialect("\t")) == (("a", "b"), [("1", "2")])
    text = b"a,b\n" + b"1,2\n" * 1000
    assert len(read(csv(tmp_path, gzip.compress(text, mtime=0), "t.csv.gz"))[1]) == 1000
    assert len(read(csv(tmp_path, zstd(text), "t.csv.zst"))[1]) == 1000


def test_names_with_wildcards_are_names(tmp_path: Path) -> None:
    csv(tmp_path, "a\n2\n", "t1.csv")
    assert read(csv(tmp_path, "a\n1\n", "t[1]*?.csv"))[1] == [("1",)]


def test_parquet_keeps_its_types_and_its_awkward_names(tmp_path: Path) -> None:
    pq.write_table(
        pa.table([pa.array([1]), pa.array([2.5]), pa.array(["x"])], ["a", "A", 'b "q", ']), tmp_path / "t.parquet"
    )
    table = source(tmp_path / "t.parquet")
    assert (table.names, table.types) == (("a", "A", 'b "q", '), ("BIGINT", "DOUBLE", "VARCHAR"))
    assert read(tmp_path / "t.parquet")[1] == [(1, 2.5, "x")]


def parquet(notes: dict[str, str] | None = None, **columns: list[Any]) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns).replace_schema_metadata(notes), sink)
    return bytes(sink.getvalue())


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as packed:
        packed.write(data)
    return bytes(sink.getvalue())


LINES = b"".join(b"%d,%d\n" % (i, i * 7919 % 1000) for i in range(50_000))
MALFORMED: list[tuple[str, bytes, str]] = [
    ("t.csv", b"", "the file is empty"),
    ("t.csv", b"\n\n", "the file has no header"),
    ("t.csv", b"\xef\xbb\xbf", "the file has no header"),
    ("t.csv", b"a,b,a\n1,2,3\n", "columns named twice in the header: 'a'"),
    ("t.csv", b"a;b\n1;2\n", "fix: data.delimiter=';'"),
    ("t.csv", b"a\tb\n1\t2\n", "fix: data.delimiter='\\t'"),
    ("t.csv", b'"a\nb",c\n1,2\n', "a column name with a line break"),
    ("t.csv", b"a,\xff\n1,2\n", "is not UTF-8 text"),
    ("t.csv", b"a,b\n1,\xff\n", "fix: data.encoding=cp1252, or in the schema dialect"),
    ("t.csv", b"a,b\n1,\xff\n", "is not UTF-8 text at line 2"),
    ("t.csv", "a;b;a\n1;ü;3\n".encode("cp1252"), "columns named twice in the header: 'a'"),
    (
        "t.csv",
        "a;b;c\n1;ü;3\n4;5\n".encode("cp1252"),
        "delimiter ',' right?; is not UTF-8 text, but likely cp1252; malf",
    ),
    ("t.csv", "a;b;c\n1;ü;3\n4;5\n".encode("cp1252"), "data.delimiter=';' data.encoding=cp1252, or in the schema"),
    ("t.csv", b"a,b\n1,2\nSECRET\n", "malformed at line 3: the header has 2 fields, this line 1"),
    ("t.csv", b"a,b\n1,2\n1,2,SECRET\n", "malformed at line 3: the header has 2 fields, this line 3"),
    ("t.csv", b"a,b\n" + b"1,2\n" * 60_000 + b"SECRET\n", "malformed at line 60002: the header has 2 fields"),
    ("t.csv", b'a,b\n1,2\n3,"SECRET', "a quote is not closed"),
    ("t.csv", b'a,b\n1,"2" SECRET\n', "a quote is not closed, or text follows a closing quote"),
    ("t.csv", b"a,b\n1,2\r\n3,SECRET\n", "line ends are mixed"),
    *(("t.csv", b"a\n" + cells, "line ends are mixed") for cells in (b"\rSECRET\n", b"\r\n1\n", b"1\n \r\n")),
    ("t.csv.gz", gzip.compress(b"a,b\n" + LINES, mtime=0)[:-3], "truncated or damaged"),
    ("t.csv.gz", gzip.compress(b"a,b\n", mtime=0)[:9], "truncated or damaged"),
    ("t.csv.zst", zstd(b"a,b\n" + LINES)[:-1], "truncated or damaged"),
    ("t.parquet", b"a,b\n1,2\n", "is not a whole Parquet file"),
    ("t.parquet", parquet(a=list(range(1000)))[:-30], "is not a whole Parquet file"),
    ("t.parquet", parquet(notes={"SEVERAL_TEXTS": "SECRET"}, a=[1]), "is not a whole Parquet file"),
    ("t.parquet", parquet(notes={"SEVERAL_TEXTS": "5"}, a=[1]), "is not a whole Parquet file"),
    ("t.xlsx", b"PK\x03\x04rest", "is not read as it is: a zip archive or a spreadsheet"),
    ("t.dta", b"<stata_dta><header>", "pd.read_stata"),
    ("t.jsonl", b'{"a": 1, "b": "SECRET"}\n', "is not read as it is: JSON"),
    ("t.xls", b"<table border=1><tr><td>SECRET", "is not read as it is: a page"),
    ("t.sas7bdat", bytes(12) + b"\xc2\xea\x81\x60SECRET", "pd.read_sas"),
    ("t.duckdb", b"12345678DUCK\0\0rest", "fix: in DuckDB: COPY NAME TO 'x.parquet'"),
    ("t.csv", "a,b\n1,2\n".encode("utf-16"), "is not UTF-8 text, but likely utf-16"),
]


@pytest.mark.parametrize(("name", "content", "says"), MALFORMED)
def test_a_malformed_file_is_named_and_no_row_is_quoted(name: str, content: bytes, says: str, tmp_path: Path) -> None:
    path = csv(tmp_path, content, name)
    with pytest.raises(UserError) as caught:
        read(path)
    assert says in str(caught.value) and str(path) in str(caught.value) and "fix: " in str(caught.value)
    assert "SECRET" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("pack", [gzip.compress, zstd])
def test_a_damaged_file_is_named_where_its_dialect_is_looked_for(pack: Any, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="truncated or damaged"):
        dialect_of(csv(tmp_path, pack(b"a,b\n" + LINES)[:-2000], "t.csv.packed"))


@pytest.mark.parametrize(
    ("error", "kind", "says"),
    [
        (OSError("ZSTD decompress failed: Allocation error : not enough memory"), MemoryError, "memory"),
        (OSError("libllvmlite.so: failed to map segment from shared object"), MemoryError, "shared object"),
        (OSError(5, "Input/output error"), UserError, "cannot be read: Input/output error"),
        (OSError("Truncated compressed stream"), UserError, "truncated or damaged"),
    ],
)
def test_want_of_memory_or_a_sick_disk_is_not_called_a_damaged_file(error: OSError, kind: Any, says: str) -> None:
    with pytest.raises(kind, match=says), undamaged(Path("t.csv")):
        raise error


def test_a_file_that_is_not_there_or_a_folder_is_named(tmp_path: Path) -> None:
    csv(tmp_path, "a\n1\n", "table.csv")
    with pytest.raises(UserError, match=r"no such file\n.*did you mean 'table.csv'") as caught:
        source(tmp_path / "tables.csv")
    assert "tables.csv" in str(caught.value)
    with pytest.raises(UserError, match="there is no folder"):
        source(tmp_path / "none" / "table.csv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="no files in this folder"):
        source(tmp_path / "empty")
    (tmp_path / "run" / "internal").mkdir(parents=True)
    (tmp_path / "run" / "release").mkdir()
    (tmp_path / "run" / "release" / "privacy.json").touch()
    csv(tmp_path / "run" / "release", "a\n1\n", "synthetic.csv")
    for folder in (tmp_path / "run", tmp_path / "run" / "release"):
        with pytest.raises(UserError, match=r"a release, not a table\n.*its table: .*/run/release/synthetic\.csv"):
            source(folder)


def test_a_column_of_the_schema_that_the_table_lacks_is_named(tmp_path: Path) -> None:
    path = csv(tmp_path, "age,city\n1,x\n")
    with pytest.raises(UserError, match=r"column 'ages': no column 'ages' in table.csv\n.*did you mean 'age'"):
        encode(path, schema(ages=ANY))
    with pytest.raises(UserError, match="the table has: age, city"):
        encode(path, schema(zzz=ANY))


def test_a_quoted_header_in_another_delimiter_is_suspected(tmp_path: Path) -> None:
    path = csv(tmp_path, '"x";age;city\n1;2;3\n')
    with pytest.raises(UserError, match=r"is the delimiter ',' right\?\n.*data\.delimiter=';'"):
        encode(path, schema(age=ANY))
    path = csv(tmp_path, "x,age,city\n1,2,3\n")
    with pytest.raises(UserError, match=r"fix: data\.delimiter=',', or in the schema no dialect$"):
        encode(path, schema(age=ANY), dialect=Dialect(";"))


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    path = csv(tmp_path, "a\n1\n")
    blocked = csv(tmp_path, "a file, no folder", "blocked")
    with pytest.raises(UserError, match="cannot write") as caught:
        table = open_table(path, workdir=blocked / "work", memory_limit_bytes=10**9, threads=1)
        with table.connect():
            pass
    assert str(blocked / "work") in str(caught.value) and "fix: free some space" in str(caught.value)


def test_too_little_memory_names_the_setting(tmp_path: Path) -> None:
    table = source(csv(tmp_path, "a\n1\n"))
    (tmp_path / "work").mkdir(mode=0o700)
    few = "SET max_temp_directory_size = '1MB'", "SET memory_limit = '60MB'"
    with pytest.raises(UserError, match=r"limits\.memory_gb"):
        sql = "SELECT i, row_number() OVER (ORDER BY hash(i)) AS r FROM range(20000000) t(i)"
        list(table.batches(sql, first=few))


def test_limits_that_a_question_sets_are_not_those_of_a_table_elsewhere(tmp_path: Path) -> None:
    asked = "SELECT current_setting('max_temp_directory_size')"
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    one, other = (source(csv(tmp_path / name, "a\n1\n")) for name in ("a", "b"))
    before = other.lines(asked)
    assert one.lines(asked, first=["SET max_temp_directory_size = '1MB'"]) != before == other.lines(asked)


def test_a_fault_of_our_own_keeps_its_own_message(tmp_path: Path) -> None:
    table = source(csv(tmp_path, "a\n1\n"))
    with pytest.raises(Exception, match="nonsense") as caught:
        list(table.batches(f"SELECT nonsense FROM {table.relation}"))
    assert not isinstance(caught.value, UserError)


def test_times_beyond_the_engines_years_are_unreadable(tmp_path):
    pq.write_table(pa.table({"t": pa.array([-(2**63) + 2, 0], pa.timestamp("us", tz="UTC"))}), tmp_path / "t.parquet")
    table = source(tmp_path / "t.parquet")
    with table.connect() as engine:
        rows = engine.execute(f"SELECT {table.moment(0, None)}, {table.text(0)} FROM {table.relation}").fetchall()
    assert rows[0] == (None, "infinity"), "no time of the years, and no absent one"
    assert rows[1][1] == "1970-01-01 00:00:00"
    pq.write_table(pa.table({"t": pa.array([10**17], pa.timestamp("ms"))}), tmp_path / "far.parquet")
    with (
        pytest.raises(UserError, match="a time beyond the years"),
        source(tmp_path / "far.parquet").connect() as engine,
    ):
        engine.execute(f"SELECT c0 FROM {source(tmp_path / 'far.parquet').relation}").fetchall()


TYPED = {
    "zero": (
        pa.array([Decimal("0.00"), Decimal("0.50"), None], pa.decimal128(2, 2)),
        {"kind": "float", "min": 0, "max": 1, "bins": {"count": 4}},
    ),
    "halves": (pa.array([Decimal("0.00"), Decimal("0.50"), None], pa.decimal128(2, 2)), {"values": [0, 0.5]}),
    "bytes": (pa.array(["ça".encode(), b"b", None]), {"values": ["ça", "b"]}),
    "late": (pa.array([-(2**63), 2**63 - 1, None]).cast(pa.timestamp("us")), {"kind": "datetime", "missing": True}),
    "zone": (pa.array([0, 10**18, None]).cast(pa.timestamp("ns", "UTC")), {"kind": "datetime", "format": "%d.%m.%Y"}),
}


@pytest.mark.parametrize(("kind", "lost"), [(kind, 2 * (kind == "late")) for kind in TYPED])
def test_of_typed_columns_nothing_is_missing_but_null_and_what_is_lost_is_counted(tmp_path, kind, lost):
    values, fields = TYPED[kind]
    dates = {"min": "1960-01-01", "max": "2010-01-01"} if fields.get("kind") == "datetime" else {}
    facts = schema(v={"kind": "categorical", **dates, **fields, "missing": True})
    pq.write_table(pa.table({"v": values}), tmp_path / "t.parquet")
    table, report = encoded(tmp_path / "t.parquet", facts)
    assert report.unplaced["v"] == lost and report.outside["v"] == 0
    assert [code == facts["v"].missing_code for code in table.columns[0]] == [bool(lost), bool(lost), True]
    assert lost or table.columns[0][0] != table.columns[0][1]


def test_tables_of_a_command_share_an_engine_that_ends_with_it_and_no_temporary_table(tmp_path, monkeypatch):
    monkeypatch.setattr(engine_instances, "_started", started_once._started)  # as commands of a user start it
    table = source(csv(tmp_path, b"a\n1\n2\n"))
    with shared_engine(tmp_path / "engine"), table.connect() as one, table.connect() as other:
        one.execute("CREATE TEMP TABLE own AS SELECT 1 AS n")
        with pytest.raises(duckdb.CatalogException, match="own"):
            other.execute("SELECT n FROM own")
        one.execute("CREATE TABLE common AS SELECT 1 AS n")
        assert other.execute("SELECT n FROM common").fetchone() == (1,)
    with table.connect() as alone, pytest.raises(duckdb.CatalogException, match="common"):
        alone.execute("SELECT n FROM common")


UNCLOSED = ['3,"SECRET', '3, "SECRET\n4,5\n', '3,"SECRET""\n4,5\n', '3,"a\n""b\n', '3,"a" "SECRET\n4,5']
UNCLOSED += ['  ","SECRET\n4,5', '"3"\r","SECRET\n', '"3"x\r","SECRET\n']
#: Closed, or within a text.
CLOSED = ('3,x"y\n', '3,"a"" b"\n', '3, "a\nb" \n4,5\n', '3,""\n', '"",""', '3,"a" "b"\n')


@pytest.mark.parametrize("mark", [",", "\t"])
@pytest.mark.parametrize("last", UNCLOSED)
def test_a_quote_that_is_not_closed_drops_no_rows_in_silence(last, mark, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(readers, "CHUNK", 7)  # in pieces that end anywhere
    own = Dialect(mark)
    with pytest.raises(UserError, match="a quote is not closed") as error:
        source(csv(tmp_path, ("id,note\n1,2\n" + last).replace(",", mark)), dialect=own)
    assert "SECRET" not in str(error.value)
    for sound in CLOSED:
        text = ("id,note\n1,2\n" + sound).replace(",", mark)
        assert len(read(csv(tmp_path, text), dialect=own)[1]) >= 2


@pytest.mark.parametrize("mark", ["¦", "→", "", ";;", '"', "\n"])
def test_a_delimiter_is_one_byte(mark, tmp_path) -> None:
    """Of one with several the engine drops what a quote opens, and reads cells otherwise at the ends of its buffers."""
    with pytest.raises(UserError, match=r"data\.delimiter: got .*\n.*one character of ASCII"):
        source(csv(tmp_path, f"a{mark}b\n"), dialect=Dialect(mark))
