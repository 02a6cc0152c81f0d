"""Draws the demo's calls and writes them: Parquet or CSV, chunk by chunk in constant memory, whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from mechanisms.public.arrays import Flags
from mechanisms.public.errors import UserError
from mechanisms.public.files import whole_file
from mechanisms.public.progress import Progress
from mechanisms.public.schema.column import DAYS
from pipeline.demo.city import (
    BLOCKS,
    CHANNELS,
    GROUPS,
    LONGEST,
    PRIORITIES,
    QUARTERS,
    YEAR,
    City,
    Codes,
    build_city,
    draw,
    weekday_of_day,
)

SUFFIXES = (".parquet", ".csv", ".csv.gz")
#: Beyond this, two callers would get one id.
MOST_ROWS = 10**12
#: Columns with few values.
REPEATED = (
    "weekday", "hour", "neighbourhood", "longitude", "latitude", "incident_group", "incident_type", "priority",
    "response_minutes", "channel",
)  # fmt: skip


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


def _write(
    writer: pa.parquet.ParquetWriter | pa.csv.CSVWriter,
    city: City,
    rows: int,
    seed: int,
    progress: Progress | None,
    *,
    text: bool,
) -> None:
    for number, start in enumerate(range(0, rows, CHUNK)):  # no caller appears in two chunks
        rng = np.random.default_rng([seed, number])
        calls = _make_calls(city, size=min(CHUNK, rows - start), first_caller=start, rng=rng)
        writer.write(pa.table(calls, schema=_schema(text=False)).cast(_schema(text=text)))
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


def _labels(codes: Codes, names: Sequence[str], mask: np.ndarray | None = None) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int16), mask=mask), pa.array(names))


#: Rows made at once.
CHUNK = 1 << 18
#: Odd, so that numbering callers in steps of it is one-to-one: ids in no order, and never the same twice.
STEP, IDS = 0x5851F42D4D, 1 << 40
NEIGHBOURLY = 0.72  # share of calls made at home
WEEKEND = 5  # the first of weekday's codes


def _make_calls(city: City, *, size: int, first_caller: int, rng: np.random.Generator) -> dict[str, pa.Array]:
    """One chunk of calls, in no order: the columns of the table, with a gap where nobody wrote it down."""
    # A caller makes at least one call, so as many callers as rows are enough; the last one may lose a few calls.
    kinds = draw(city.kind, 0, size, rng)
    calls = draw(city.calls, kinds, size, rng).astype(np.int64) + 1
    used = int(np.searchsorted(np.cumsum(calls), size)) + 1
    caller = np.repeat(np.arange(used, dtype=np.uint32), calls[:used])[:size]
    rng.shuffle(caller)
    homes = draw(city.home, kinds[:used], used, rng)
    kind, home = kinds[caller], homes[caller]

    elsewhere = draw(city.away, home, size, rng)
    neighbourhood = np.where(_happens(NEIGHBOURLY, size, rng), home, elsewhere)
    group = draw(city.group, kind * np.uint8(len(QUARTERS)) + city.quarter[neighbourhood], size, rng)
    place = group * np.uint16(len(city.neighbourhoods)) + neighbourhood
    incident = draw(city.incident, place, size, rng)
    day = draw(city.day, group, size, rng)
    weekday = weekday_of_day()[day]
    hour = draw(city.hour, incident * np.uint16(2) + (weekday >= WEEKEND), size, rng)
    second = hour * np.int32(3600) + rng.integers(0, 3600, size, dtype=np.uint16)
    urgency = draw(city.priority, incident, size, rng)
    channel = draw(city.channel, kind * np.uint8(len(GROUPS)) + group, size, rng)
    route = (urgency * np.int32(len(city.neighbourhoods)) + neighbourhood) * np.int32(24) + hour
    minutes = city.minutes[route] * city.spread[rng.integers(0, len(city.spread), size, dtype=np.uint16)]
    mobile = np.where(np.arange(len(CHANNELS)) == CHANNELS.index("Mobile"), 0.06, 0.01)
    corner = neighbourhood * np.uint16(BLOCKS) + rng.integers(0, BLOCKS, size, dtype=np.uint8)
    no_minutes = _happens(city.no_help[group * np.uint8(PRIORITIES) + urgency], size, rng)
    no_place = _happens(mobile.astype(np.float32)[channel], size, rng)
    no_channel = _happens(0.02, size, rng)
    seconds = np.datetime64(f"{YEAR}-01-01", "s").astype(np.int64) + day * np.int64(86_400) + second
    longitude, latitude = city.corners.reshape(-1, 2)[corner].T
    tenths = np.rint(np.clip(minutes, 0.5, LONGEST) * 10).astype(np.int16)
    return {
        "caller_id": pa.array((first_caller + caller.astype(np.int64)) * STEP % IDS),
        "received": pa.array((seconds * 1000).view("datetime64[ms]")),
        "weekday": _labels(weekday, DAYS),
        "hour": pa.array(hour.astype(np.int8)),
        "neighbourhood": _labels(neighbourhood, city.neighbourhoods),
        "longitude": pa.array(longitude, mask=no_place),
        "latitude": pa.array(latitude, mask=no_place),
        "incident_group": _labels(group, GROUPS),
        "incident_type": _labels(incident, city.types),
        "priority": pa.array((urgency + np.uint8(1)).astype(np.int8)),
        "response_minutes": pa.array(tenths / 10, mask=no_minutes),
        "channel": _labels(channel, CHANNELS, mask=no_channel),
    }


def _happens(probability: float | NDArray[np.float32], size: int, rng: np.random.Generator) -> Flags:
    return rng.random(size, dtype=np.float32) < probability
