"""The release folder: the synthetic table, the privacy statement, the noisy measurements and the schema; no more."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from mechanisms.public.codec import write_table
from mechanisms.public.errors import UserError
from mechanisms.public.facts_file import alone
from mechanisms.public.files import write_whole
from mechanisms.public.release import Measurements, load_measurements
from mechanisms.public.schema import Schema, load_schema
from mechanisms.public.table import CodedTable
from pipeline.folders import RunFolder, whole_folder
from pipeline.inputs import check_release
from pipeline.marginals import write_marginals
from pipeline.progress import Report
from synthesis.unit_sizes import with_records


def write_release(
    folder: RunFolder,
    schema: Schema,
    statement: dict[str, Any],
    measurements: Measurements,
    synthetic: CodedTable,
    *,
    form: str,
    rng: np.random.Generator,
    workdir: Path | None = None,
    progress: Report | None = None,
) -> Path:
    """Write `release/`, whole or not at all; returns the synthetic table's path.

    Args:
        statement: the content of privacy.json.
        synthetic: rows of the table's columns (see `undo`).
        form: csv or parquet.
        rng: draws the values inside bins.
        workdir: for the parts, on the same file system; default: the temporary folder under internal/.
    """
    with whole_folder(folder.release, workdir or folder.temporary) as parts:
        written = with_records(schema, measurements)
        write_table(parts / f"synthetic.{form}", synthetic, written, rng, progress=progress)
        measurements.save(parts / "measurements")
        write_marginals(parts / "marginals", schema, measurements)
        write_whole(parts / "schema.yaml", schema.to_yaml())
        write_whole(parts / "privacy.json", json.dumps(statement, indent=1, allow_nan=False, ensure_ascii=False) + "\n")
        if folder.internal.is_dir():
            write_whole(folder.seal, json.dumps(_digests(parts), indent=1), mode=0o600)
    return folder.release / f"synthetic.{form}"


def check_seal(folder: RunFolder) -> None:
    """`release/` is what this run wrote, and nothing else.

    Raises:
        UserError: a file was added, changed or taken away since.
    """
    try:
        sealed = json.loads(folder.seal.read_text())
    except (OSError, ValueError):
        sealed = {}
    found = _digests(folder.release)
    if sealed != found:
        changed = sorted(k for k in sealed.keys() | found.keys() if sealed.get(k) != found.get(k))
        fix = "move release/ away and resume again: it is made anew from the saved measurements, at no further cost"
        what = f"not as this run wrote it: {', '.join(changed)}"
        raise UserError(what, where=str(folder.release), fix=fix)


def _digests(folder: Path) -> dict[str, str]:
    """Each file's path in the folder → its digest."""
    result = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        with path.open("rb") as file:
            result[str(path.relative_to(folder))] = hashlib.file_digest(file, "blake2b").hexdigest()
    return result


def _check_inside(folder: Path) -> None:
    """A release holds its own files: one that leads elsewhere is not opened."""
    inside = folder.resolve()
    for path in folder.rglob("*"):
        if path.is_symlink() and not path.resolve().is_relative_to(inside):
            fix = "take the release folder of a run, as it was written; do not trust this one"
            raise UserError(f"{path.relative_to(folder)} leads out of the release", where=str(folder), fix=fix)


def read_release(folder: Path) -> tuple[Schema, dict[str, Any], Measurements]:
    """Schema, privacy statement and measurements of a release.

    Raises:
        UserError: the folder is no release.
    """
    check_release(folder)
    _check_inside(folder)
    with alone():
        schema = load_schema(folder / "schema.yaml")
    try:
        statement: dict[str, Any] = json.loads((folder / "privacy.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        fix = "take the release folder of a run, whole"
        raise UserError("privacy.json is missing or broken", where=str(folder), fix=fix) from error
    measurements = load_measurements(folder / "measurements")
    if measurements.domain != schema.measured:
        fix = "take the release folder of a run, whole"
        raise UserError("schema.yaml and measurements do not belong together", where=str(folder), fix=fix)
    return schema, statement, measurements
