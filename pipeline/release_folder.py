"""The release folder: the synthetic table, the noisy measurements, the schema, the statement and what binds them."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from mechanisms.public.errors import UserError
from mechanisms.public.files import write_whole
from mechanisms.public.json_values import Json, JsonDict
from mechanisms.public.plain_files import check_plain, read_mapping
from mechanisms.public.progress import Progress
from mechanisms.public.release import STATEMENT_VERSION, Measurements
from mechanisms.public.release_files import load_measurements, load_released_schema, save_measurements
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.codec import write_table
from mechanisms.public.tables.decode import Owned
from mechanisms.public.tables.formats import TableFormat
from pipeline.folders import RunFolder, whole_folder
from pipeline.marginal_files import marginal_frames
from pipeline.plugins.origins import check_known
from pipeline.settings.inputs import check_release
from pipeline.statement.digests import check_files, file_digests, read_manifest
from pipeline.statement.papers import write_papers
from pipeline.statement.signing import Signer, check_signature

#: Schema, content of privacy.json and measurements of a release. A statement of an older format is passed on without
#: papers; nothing binds one of format 1.
Measured: TypeAlias = tuple[Schema, JsonDict, Measurements]


@dataclass(frozen=True, eq=False)
class NewRows:
    """The synthetic rows of a release.

    Attributes:
        rows: of the table's columns, in the order in which they are written.
        drawn_by: the schema by which they are (`as_written`); `rng` draws the values inside bins.
        asked: how many the settings ask for; None: as many as the noisy total says.
        given: what the rows were asked to satisfy (see `Manifest`), or None.
        two: persons and their records are written as two tables, which join by the id.
    """

    rows: Owned
    drawn_by: Schema
    rng: np.random.Generator
    asked: int | None
    given: Json | None = None
    two: bool = False


def write_release(
    folder: RunFolder,
    measured: Measured,
    rows: NewRows,
    form: TableFormat,
    *,
    signer: Signer | None = None,
    workdir: Path | None = None,
    progress: Progress | None = None,
) -> Path:
    """Write `release/`, whole or not at all; returns the synthetic table's path.

    Args:
        form: of the table.
        signer: signs the manifest; None: not signed.
        workdir: for the parts, on the same file system; default: the temporary folder under internal/.
    """
    (schema, statement, measurements), given = measured, rows.given
    with whole_folder(folder.release, workdir or folder.temporary) as parts:
        second = parts / form.released_persons if rows.two and rows.rows.ids is not None else None
        write_table(parts / form.released, rows.rows, rows.drawn_by, rows.rng, persons=second, progress=progress)
        save_measurements(measurements, parts / "measurements")
        for file, frame in marginal_frames(schema, measurements).items():
            write_whole(parts / "marginals" / file, frame.to_csv(index=False, lineterminator="\n"))
        write_whole(parts / "schema.yaml", schema.to_yaml())
        write_whole(parts / "privacy.json", json.dumps(statement, indent=1, allow_nan=False, ensure_ascii=False) + "\n")
        if statement.get("version", 1) != 1:
            name = form.released
            write_papers(parts, statement, rows.drawn_by, table=name, rows_asked=rows.asked, signer=signer, given=given)
        elif given is not None:
            fix = "a release of this version, whose manifest says what was asked"
            raise UserError("nothing binds it, so that its rows may be taken for the whole", where="where", fix=fix)
        if folder.internal.is_dir():
            write_whole(folder.seal, json.dumps(file_digests(parts), indent=1), mode=0o600)
    return folder.release / form.released


def check_seal(folder: RunFolder) -> None:
    """`release/` is what this run wrote, and nothing else.

    Raises:
        UserError: a file was added, changed or taken away since.
    """
    try:
        sealed = json.loads(folder.seal.read_text())
    except (OSError, ValueError):
        sealed = {}
    digests = file_digests(folder.release)
    if sealed != digests:
        changed = sorted(k for k in sealed.keys() | digests.keys() if sealed.get(k) != digests.get(k))
        fix = "move release/ away and resume again: it is made anew from the saved measurements, at no further cost"
        problem = f"not as this run wrote it: {', '.join(changed)}"
        raise UserError(problem, where=str(folder.release), fix=fix)


def read_release(folder: Path) -> tuple[Schema, dict[str, Any], Measurements]:
    """Schema, privacy statement and measurements of a release.

    Raises:
        UserError: the folder is no release; a file in it was edited, is missing or is foreign; a false signature;
            noise or a query of a module that is not loaded.
    """
    check_release(folder)
    check_plain(folder)
    statement = _bound_statement(folder)
    check_known(statement, str(folder), ("mechanism", "query"))
    schema = load_released_schema(folder / "schema.yaml")
    measurements = load_measurements(folder / "measurements")
    if measurements.domain != schema.measured:
        fix = "take the release folder of a run, whole"
        raise UserError("schema.yaml and measurements do not belong together", where=str(folder), fix=fix)
    return schema, statement, measurements


def _bound_statement(folder: Path) -> JsonDict:
    """The content of privacy.json, after all that binds the release was checked; older versions get a warning."""
    fix = "take the release folder of a run, whole"
    manifest = read_manifest(folder)
    if manifest is not None:
        check_files(manifest, folder)
    try:
        statement = read_mapping(folder / "privacy.json")
    except (OSError, ValueError) as error:
        raise UserError(f"privacy.json is missing or broken ({error})", where=str(folder), fix=fix) from error
    version = statement.get("version", 1)
    if version not in range(1, STATEMENT_VERSION + 1):
        fix = "a newer pipeline, or a release that this one made"
        raise UserError(f"privacy.json is of version {version!r}", where=str(folder), fix=fix)
    if manifest is None and version != 1:
        raise UserError("manifest.json is missing: nothing binds the files", where=str(folder), fix=fix)
    if manifest is None:
        warning = "of an older version, and not bound: nobody would notice an edited file"
        print(f"warning: {folder} is {warning}", file=sys.stderr)
    elif manifest.signer is not None:
        try:
            check_signature(folder, manifest)
        except UserError as error:
            if "library" not in error.what:
                raise
            print(f"warning: the signature of {folder} was not checked: {error.what}", file=sys.stderr)
    return statement
