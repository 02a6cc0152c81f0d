"""Writes the demo's table: Parquet or CSV, chunk by chunk in constant memory, whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from mechanisms.public.errors import UserError
from mechanisms.public.files import whole_file
from mechanisms.public.progress import Progress
from pipeline.demo.calls import CHUNK, Calls, chunks_of_calls
from pipeline.demo.city import YEAR, City, Codes, build_city
from pipeline.demo.names import CHANNELS, GROUPS, NEIGHBOURHOODS, TYPES, WEEKDAYS

SUFFIXES = (".parquet", ".csv", ".csv.gz")
#: Beyond this, two callers would get one id.
MOST_ROWS = 10**12
#: Columns with few values.
REPEATED = (
    "weekday", "hour", "neighbourhood", "longitude", "latitude", "incident_group", "incident_type", "priority",
    "response_minutes", "channel",
)  # fmt: skip


class _Writer(Protocol):
    def write(self, table: pa.Table) -> None: ...


def write_demo(path: Path, *, rows: int, seed: int, progress: Progress | None = None) -> None:
    """Generate the demo city's calls into a file; the same rows and seed give the same file.

    Args:
        path: ends in .parquet, .csv or .csv.gz.
        rows: how many calls, exactly; every caller has 1 … 20 of them, most have one or two.
        seed: of the calls; the city and its schema are the same for all seeds.
        progress: called with the rows written so far and all rows.

    Raises:
        UserError: another suffix, a negative number of rows or seed, or a disk that cannot be written.
    """
    suffix = next((s for s in SUFFIXES if path.name.endswith(s)), None)
    if suffix is None:
        raise UserError(f"cannot write {path.name}", where="demo", fix=f"a name that ends in {', '.join(SUFFIXES)}")
    if not 0 <= rows <= MOST_ROWS:
        raise UserError(f"got {rows}", where="data.rows", fix="how many calls to generate: 0 or more")
    if seed < 0:
        raise UserError(f"got {seed}", where="data.seed", fix="a whole number of at least 0")
    city = build_city()
    with whole_file(path) as part:
        if suffix == ".parquet":
            options = {"compression": "snappy", "use_dictionary": list(REPEATED), "write_statistics": False}
            with pa.parquet.ParquetWriter(part, _schema(text=False), **options) as writer:
                _write(writer, city, rows, seed, progress, text=False)
        else:
            squeeze = "gzip" if suffix.endswith(".gz") else None
            with pa.output_stream(part, compression=squeeze) as out, pa.csv.CSVWriter(out, _schema(text=True)) as lines:
                _write(lines, city, rows, seed, progress, text=True)


def _write(writer: _Writer, city: City, rows: int, seed: int, progress: Progress | None, *, text: bool) -> None:
    for number, calls in enumerate(chunks_of_calls(city, rows=rows, seed=seed)):
        writer.write(pa.table(_columns(calls, city), schema=_schema(text=False)).cast(_schema(text=text)))
        if progress is not None:
            progress(min((number + 1) * CHUNK, rows), rows)


def _schema(*, text: bool) -> pa.Schema:
    """Names and types of the columns; labels as plain text, or as codes with a dictionary."""
    label = pa.string() if text else pa.dictionary(pa.int16(), pa.string())
    types = {
        "caller_id": pa.int64(),
        "received": pa.timestamp("s") if text else pa.timestamp("ms"),
        "weekday": label,
        "hour": pa.int8(),
        "neighbourhood": label,
        "longitude": pa.float64(),
        "latitude": pa.float64(),
        "incident_group": label,
        "incident_type": label,
        "priority": pa.int8(),
        "response_minutes": pa.float64(),
        "channel": label,
    }
    return pa.schema(list(types.items()))


def _columns(calls: Calls, city: City) -> dict[str, pa.Array]:
    start = np.datetime64(f"{YEAR}-01-01", "s").astype(np.int64)
    seconds = start + calls.day * np.int64(86_400) + calls.second
    corners = city.corners.reshape(-1, 2)
    return {
        "caller_id": pa.array(calls.caller_id),
        "received": pa.array((seconds * 1000).view("datetime64[ms]")),
        "weekday": _labels(calls.weekday, WEEKDAYS),
        "hour": pa.array(calls.hour.astype(np.int8)),
        "neighbourhood": _labels(calls.neighbourhood, NEIGHBOURHOODS),
        "longitude": pa.array(corners[calls.block, 0], mask=calls.no_place),
        "latitude": pa.array(corners[calls.block, 1], mask=calls.no_place),
        "incident_group": _labels(calls.group, GROUPS),
        "incident_type": _labels(calls.incident, TYPES),
        "priority": pa.array(calls.priority.astype(np.int8)),
        "response_minutes": pa.array(calls.minutes / 10, mask=calls.no_minutes),
        "channel": _labels(calls.channel, CHANNELS, mask=calls.no_channel),
    }


def _labels(codes: Codes, names: Sequence[str], mask: np.ndarray | None = None) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int16), mask=mask), pa.array(names))
