"""A PrivateTable, kept on disk for several runs on the same rows: raw data, for the owner alone."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, astuple, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.files import Json, JsonDict, stored_values
from mechanisms.public.posix import fcntl
from mechanisms.public.progress import Progress
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.codec import EncodingReport, encode_columns, mapped, with_apart
from mechanisms.public.tables.scan import Source, private_folder
from mechanisms.sensitive.contribution import PrivacyUnit
from mechanisms.sensitive.private_table import PrivateTable, load_private

#: Of a kept table the facts, which name its column files: they are written last, and a table without them is not whole.
FACTS = "table.json"


@contextmanager
def only_one(folder: Path, name: str) -> Iterator[None]:
    """One process at a time does what has this name; the others wait."""
    private_folder(folder)
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def shared_private(
    folder: Path,
    source: Source,
    schema: Schema,
    unit: PrivacyUnit,
    *,
    data: str,
    key: bytes,
    histogram: int | None = None,
    progress: Progress | None = None,
) -> PrivateTable:
    """As `load_private`, but encoded and clipped once for all who ask with the same data, schema and unit.

    Guarantee: as of `load_private`. Where the key chooses (what privacy.clip=truncate keeps, constants of persons),
        only those who bring the same key share a table.
    Args:
        folder: of mode 0700, on a disk of its owner; whoever made it deletes it.
        data: what the file's content is known by (see `fingerprint`).
        histogram: records per unit are counted too, up to so many; None: they are not.
    """
    by_key = unit.column is not None and (unit.clip == "truncate" or schema.rules.unit is not None)
    chosen = key.hex() if by_key else ""
    # the same bytes, read in another dialect, are other rows
    read = [source.names, source.types, asdict(source.dialect)]
    facts = [data, schema.to_yaml(), asdict(unit), read, chosen, histogram]
    name = hashlib.blake2b(json.dumps(facts, sort_keys=True).encode(), digest_size=16).hexdigest()
    place = folder / name

    def make() -> JsonDict:
        work = _emptied(place)
        private = load_private(source, schema, unit, workdir=work, key=key, histogram=histogram, progress=progress)
        return _facts(place, private)

    with only_one(folder, name):
        return _read(place, stored_values(place / FACTS, make), schema, unit)


def shared_truth(private: PrivateTable, source: Source, schema: Schema) -> CodedTable:
    """All rows of the table, with all values and without the schema's steps, encoded once; NOT private."""
    place = private.folder
    if place is None:
        raise ValueError("the table is not kept")
    if (plain := private.as_read(schema)) is not None:
        return plain
    whole = place / "whole"

    def make() -> tuple[list[list[str]], list[str]]:
        coded, report = encode_columns(source, schema, workdir=_emptied(whole), apart=True)
        return [_file_of(whole, c, f"plain-{i:04}") for i, c in enumerate(coded.columns)], report.apart(schema)

    with only_one(place, "whole"):
        files, apart = stored_values(whole / FACTS, make)
    domain = with_apart(schema, apart).domain
    return CodedTable(domain, _mapped(whole, files))


def _emptied(place: Path) -> Path:
    """The folder, without what a process left that was ended."""
    shutil.rmtree(place, ignore_errors=True)
    private_folder(place)
    return place


def _file_of(place: Path, values: NDArray[Any], name: str) -> list[str]:
    """The file that holds an array, and its type; written where it has none."""
    if isinstance(values, np.memmap) and values.filename is not None:
        return [str(Path(values.filename).relative_to(place.resolve())), values.dtype.str]
    with (place / name).open("wb") as file:
        file.write(np.ascontiguousarray(values).data)
    return [name, values.dtype.str]


def _mapped(place: Path, files: list[list[str]]) -> tuple[NDArray[Any], ...]:
    return tuple(mapped(place / name, np.dtype(dtype)) for name, dtype in files)


def _facts(place: Path, private: PrivateTable) -> JsonDict:
    """The files of the columns, and all that is no column."""
    coded, report = private.coded, private.encoding
    assert isinstance(coded, CodedTable)
    return {
        "columns": [_file_of(place, c, f"plain-{i:04}") for i, c in enumerate(coded.columns)],
        "weights": None if coded.weights is None else _file_of(place, coded.weights, "plain-weights"),
        "complete": private.complete,
        "encoding": astuple(report),
        "sizes": None if private.sizes is None else [private.sizes.tolist(), private.sizes.dtype.str],
        "histogram": None if private.histogram is None else private.histogram.tolist(),
        "persons": None if private.persons is None else private.persons.tolist(),
    }


def _read(place: Path, facts: Json, schema: Schema, unit: PrivacyUnit) -> PrivateTable:
    weights = None if facts["weights"] is None else _mapped(place, [facts["weights"]])[0]
    sizes = None if facts["sizes"] is None else np.array(facts["sizes"][0], np.dtype(facts["sizes"][1]))
    histogram, persons = (None if facts[n] is None else np.array(facts[n], np.int64) for n in ("histogram", "persons"))
    coded = CodedTable(schema.measured, _mapped(place, facts["columns"]), weights)
    report = EncodingReport(*facts["encoding"])
    private = PrivateTable(coded, unit, report, complete=facts["complete"], folder=place)
    return replace(private, sizes=sizes, histogram=histogram, persons=persons)
