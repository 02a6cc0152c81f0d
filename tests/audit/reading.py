"""How a table is read: no value changes how those of others are read, or makes a well-formed file unreadable."""

import enum
import itertools
import math
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from mechanisms.public.errors import UserError
from mechanisms.public.tables.scan import FILE_FAULTS
from tests.audit.hooks import Broken, current
from tests.audit.worlds import fresh

#: Where readers that share a CSV file begin: each at so many bytes.
SHARE = 8_000_000
ROW = b"ann,x\n"


class Ward(str, enum.Enum):  # noqa: UP042 - a StrEnum writes itself as its value
    """Texts that write themselves otherwise than they are."""

    EAST = "east"
    WEST = "west"


def check_reading(folder: Path) -> int:
    """The rows of others are the same whatever one more row holds; how many such rows."""
    home = fresh(folder)
    return _objects() + _quoted_lines(home) + _gaps(home)


def _gaps(home: Path) -> int:
    """NaN in a Parquet file, beside numbers that are the least or the largest."""
    others = [math.inf, -math.inf, 1e16, 0.5, 7.0]
    for kind, value in itertools.product((pa.float32(), pa.float64()), others):
        pq.write_table(pa.table({"a": pa.array([0.25, 2.0, math.nan, math.nan, value], kind)}), home / "t.parquet")
        source = current("open table")(home / "t.parquet", workdir=home / "scan", memory_limit_bytes=1 << 30, threads=2)
        with source.connect() as engine:
            texts = engine.execute(f"SELECT {source.text(0)} FROM {source.relation}").fetchall()
        if [text for (text,) in texts[:4]] != ["0.25", "2", "", ""]:
            raise Broken(f"one row with {value} in it, and the others are read as {texts[:4]}")
    return 2 * len(others)


def _objects() -> int:
    others = [Ward.EAST, "west", 7, 2.5, True, b"a", None]
    alone = [[current("texts of objects")([value], None)[0].as_py()] for value in others]
    for some in (others, [Ward.EAST, Ward.WEST, "west"]):
        before = current("texts of objects")(some, None).to_pylist()
        for value in others:
            if current("texts of objects")([*some, value], None).to_pylist()[:-1] != before:
                raise Broken(f"a row with {value!r} changes how the values of other rows are read")
    if [[text] for text in current("texts of objects")(others, None).to_pylist()] != alone:
        raise Broken("an object is read otherwise where it stands alone")
    return 2 * len(others)


def _quoted_lines(home: Path) -> int:
    """A text with lines in it that look like rows, around the place where another reader would begin."""
    texts, places = (b'"\nbob,y\nbob,a"', b'"\nbob,y\n"', b'"\n"",""\n"",a"'), (SHARE - 12, SHARE - 8)
    for text, place in itertools.product(texts, places):
        rows = place // len(ROW)
        (home / "t.csv").write_bytes(b"id,note\n" + ROW * rows + b"eve," + text + b"\n" + ROW * 50_000)
        if (found := _ids(home / "t.csv", home)) != {"ann": rows + 50_000, "eve": 1}:
            raise Broken(f"one row with {text!r} in it, and the file is read as {found}")
    return len(texts) * len(places)


def _ids(path: Path, home: Path) -> Any:
    """How many rows each id has, or why the file cannot be read."""
    source = current("open table")(path, workdir=home / "scan", memory_limit_bytes=1 << 30, threads=2)
    try:
        with source.connect() as engine:
            rows = engine.execute(f"SELECT c0, count(*) FROM {source.relation} GROUP BY c0").fetchall()
    except (UserError, duckdb.NotImplementedException, *FILE_FAULTS) as error:
        return type(error).__name__
    return dict(rows)
