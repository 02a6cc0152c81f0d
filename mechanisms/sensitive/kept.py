"""A PrivateTable kept on disk for several runs on the same rows: raw data, for the owner alone."""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.codec import EncodingReport, mapped
from mechanisms.public.engine import Progress, Source, private_folder
from mechanisms.public.files import write_whole
from mechanisms.public.schema import Schema
from mechanisms.public.table import CodedTable
from mechanisms.sensitive.contribution import PrivacyUnit
from mechanisms.sensitive.table import PrivateTable, load_private


def kept_private(
    folder: Path,
    source: Source,
    schema: Schema,
    unit: PrivacyUnit,
    *,
    data: str,
    key: bytes,
    histogram: bool = False,
    progress: Progress | None = None,
) -> PrivateTable:
    """As `load_private`, but encoded and clipped once for all who ask with the same data, schema and unit.

    Guarantee: as of `load_private`. Where the key chooses what is kept (privacy.clip=truncate), only those who bring
        the same key share a table.
    Args:
        folder: of mode 0700, on a disk of its owner; whoever made it deletes it.
        data: what the file's content is known by (see `fingerprint`).
        histogram: whether records per unit are counted too.
    """
    chosen = key.hex() if unit.column is not None and unit.clip == "truncate" else ""
    facts = [data, schema.to_yaml(), asdict(unit), source_name(source), chosen, histogram]
    name = hashlib.blake2b(json.dumps(facts, sort_keys=True).encode(), digest_size=16).hexdigest()
    place = folder / name
    with only_one(folder, name):
        if not (place / "table.json").exists():
            shutil.rmtree(place, ignore_errors=True)
            private_folder(place)
            private = load_private(source, schema, unit, workdir=place, key=key, histogram=histogram, progress=progress)
            _write(place, private)
    return _read(place, schema, unit)


@contextmanager
def only_one(folder: Path, name: str) -> Iterator[None]:
    """One process at a time does what has this name; the others wait."""
    private_folder(folder)
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def source_name(source: Source) -> str:
    """The columns as the engine read them: a changed delimiter makes other columns of the same file."""
    return "|".join(source.names)


def _write(place: Path, private: PrivateTable) -> None:
    """The list of the column files, last: a table without it is not whole."""

    def file_of(values: NDArray[Any], name: str) -> list[str]:
        if isinstance(values, np.memmap) and values.filename is not None:
            return [str(Path(values.filename).relative_to(place.resolve())), values.dtype.str]
        with (place / name).open("wb") as file:
            file.write(np.ascontiguousarray(values).data)
        return [name, values.dtype.str]

    coded, report = private.coded, private.encoding
    facts = {
        "columns": [file_of(c, f"plain-{i:04}") for i, c in enumerate(coded.columns)],
        "weights": None if coded.weights is None else file_of(coded.weights, "plain-weights"),
        "complete": private.complete,
        "encoding": [report.rows, dict(report.outside), dict(report.unplaced), dict(report.conflicts)],
        "sizes": None if private.sizes is None else [private.sizes.tolist(), private.sizes.dtype.str],
        "histogram": None if private.histogram is None else private.histogram.tolist(),
    }
    write_whole(place / "table.json", json.dumps(facts), mode=0o600)


def _read(place: Path, schema: Schema, unit: PrivacyUnit) -> PrivateTable:
    facts = json.loads((place / "table.json").read_text(encoding="utf-8"))
    columns = tuple(mapped(place / name, np.dtype(dtype)) for name, dtype in facts["columns"])
    weights = None if facts["weights"] is None else mapped(place / facts["weights"][0], np.dtype(facts["weights"][1]))
    sizes = None if facts["sizes"] is None else np.array(facts["sizes"][0], np.dtype(facts["sizes"][1]))
    histogram = None if facts["histogram"] is None else np.array(facts["histogram"], np.int64)
    rows, outside, unplaced, conflicts = facts["encoding"]
    coded = CodedTable(schema.measured, columns, weights)
    report = EncodingReport(rows, outside, unplaced, conflicts)
    return PrivateTable(coded, unit, report, complete=facts["complete"], sizes=sizes, histogram=histogram)
