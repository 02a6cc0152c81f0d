"""Whether a format of others can be released: tried on a small table before any row is read, at no cost."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.errors import UserError, one_of
from mechanisms.public.plain_files import open_plain
from mechanisms.public.schema.table_schema import parse_schema
from mechanisms.public.tables.engine_instances import shared_engine
from mechanisms.public.tables.formats import FORMATS, TableFormat
from mechanisms.public.tables.scan import open_table

WHERE = "release.format"
#: A column of every kind; texts with marks of a CSV file, and gaps.
COLUMNS = {
    "a text": {"kind": "categorical", "values": ['a, "b"', "c"], "missing": [""]},
    "number": {"kind": "integer", "min": 0, "max": 9},
    "share": {"kind": "float", "min": 0, "max": 1, "bins": {"count": 3}},
    "day": {"kind": "date", "min": "2000-01-01", "max": "2000-01-03"},
    "moment": {"kind": "datetime", "min": "2000-01-01", "max": "2000-01-02", "bins": {"count": 4}},
}


def released_format(name: str) -> TableFormat:
    """The format of that name, which writes a table and reads the same one.

    Raises:
        UserError: there is no such format; what it wrote reads as another table, or a plugin's code failed.
    """
    form = FORMATS[one_of(name, FORMATS, WHERE)]
    if form.own:
        return form
    fix = f"another: {', '.join(n for n in FORMATS if n != name)}"
    try:
        keeps = _keeps(form)
    except UserError:
        raise
    except Exception as error:  # its words quote the small table alone
        problem = f"{name} fails on a small table of ours: {type(error).__name__}: {error}"
        raise UserError(problem, where=WHERE, fix=fix) from error
    if not keeps:
        raise UserError(f"{name} does not read the table that it wrote", where=WHERE, fix=fix)
    return form


def check_rows(form: TableFormat, path: Path, rows: int) -> None:
    """A format of others wrote all rows, of a table that is larger than the one that it was tried on.

    Raises:
        UserError: it did not; nothing is there yet, and what was measured can be written in another format.
    """
    with tempfile.TemporaryDirectory(prefix="format-") as folder, shared_engine(Path(folder) / "engine"):
        source = open_table(path, workdir=Path(folder), memory_limit_bytes=1 << 28, threads=1)
        read = int(source.lines(f"SELECT count(*) FROM {source.relation}")[0][0])
    if read != rows:
        fix = "another; a run goes on with resume=true release.format=csv, at no further cost"
        raise UserError(f"{form.name} keeps {read:,} of {rows:,} rows", where=WHERE, fix=fix)


@cache
def _keeps(form: TableFormat) -> bool:
    from mechanisms.public.tables.codec import encode_columns  # slow to load
    from mechanisms.public.tables.write_table import write_table

    schema = parse_schema({"name": "trial", "source": "made here", "columns": COLUMNS}, where="trial")
    rows = [np.arange(6).astype(code_dtype(a.size)) % a.size for a in schema.domain.attributes]
    written = CodedTable(schema.domain, tuple(rows))
    with tempfile.TemporaryDirectory(prefix="format-") as folder, shared_engine(Path(folder) / "engine"):
        path = Path(folder) / form.released
        write_table(path, written, schema, np.random.default_rng(0), chunk=2)
        with open_plain(path) as file:
            names = form.function("head")(file, schema.dialect)
        source = open_table(path, workdir=Path(folder), memory_limit_bytes=1 << 27, threads=1)
        again = encode_columns(source, schema, workdir=Path(folder))[0]
        same = all(np.array_equal(*pair) for pair in zip(again.columns, written.columns, strict=True))
    return same and names == [*COLUMNS]
