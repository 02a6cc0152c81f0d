"""The release folder: the synthetic table, the noisy measurements, the schema, the statement and what binds them.

The marginals lie there as CSV files too: one per marginal, and an index.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from mechanisms.public.domain import Clique
from mechanisms.public.errors import UserError, first_few, require_columns
from mechanisms.public.files import Json, JsonDict, write_whole
from mechanisms.public.plain_files import check_plain, read_mapping
from mechanisms.public.progress import Progress
from mechanisms.public.release import STATEMENT_VERSION, Measurements
from mechanisms.public.release_files import load_measurements, load_released_schema, save_measurements
from mechanisms.public.schema.code_labels import code_names
from mechanisms.public.schema.table_schema import Schema, as_a_column
from mechanisms.public.tables.decode import Owned
from mechanisms.public.tables.format_trial import check_rows
from mechanisms.public.tables.formats import TableFormat
from mechanisms.public.tables.write_table import write_table
from mechanisms.public.text_table import apart
from pipeline.folders import RunFolder, whole_folder
from pipeline.plugins.origins import check_loaded
from pipeline.settings.inputs import check_release
from pipeline.statement.papers import check_papers, write_papers
from pipeline.statement.signing import Signer, check_files, check_signature, file_digests, read_manifest
from synthesis.marginal_tables import marginal_tables

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
        if not form.own:
            check_rows(form, parts / form.released, rows.rows.coded.rows)
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


def read_release(folder: Path | str) -> tuple[Schema, dict[str, Any], Measurements]:
    """Schema, privacy statement and measurements of a release.

    Raises:
        UserError: the folder is no release; a file in it was edited, is missing or is foreign; a false signature;
            noise or a query of a module that is not loaded; a statement that no run wrote.
    """
    check_plain(folder := check_release(folder))
    statement = _bound_statement(folder)
    check_loaded(statement, str(folder), ("mechanism", "query"))
    schema = load_released_schema(folder / "schema.yaml")
    measurements = load_measurements(folder / "measurements")
    if measurements.domain != schema.measured:
        fix = "take the release folder of a run, whole"
        raise UserError("schema.yaml and measurements do not belong together", where=str(folder), fix=fix)
    check_papers(statement, schema, folder)
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


#: Columns that are made by synthesis and by draws: another version of a library may round them in another way.
ESTIMATED = ("consistent", "consistent_standard_error")
INDEX = "index.csv"


def marginal_frames(schema: Schema, measurements: Measurements) -> dict[str, pd.DataFrame]:
    """File → every marginal that was measured whole: a line per cell, noisy and consistent counts with standard errors.

    The index is the last one.

    Guarantee: post-processing of the measurements; costs no privacy.
    """
    frames, rows = {}, []
    for number, table in enumerate(marginal_tables(measurements)):
        safe = re.sub(r"[^A-Za-z0-9_-]+", "-", "_".join(table.clique))[:60] or "marginal"
        name = f"{number:04d}_{safe}.csv"
        frame = cells_frame(schema, table.clique)
        frames[name] = add_figures(
            frame,
            noisy=np.round(table.noisy.ravel(), 3),
            noisy_standard_error=round(table.noisy_error, 3),
            consistent=np.round(table.consistent.ravel(), 3),
            consistent_standard_error=np.round(table.consistent_error.ravel(), 3),
        )
        rows.append((name, " × ".join(table.clique), len(frame), round(table.noisy_error, 3)))
    frames[INDEX] = pd.DataFrame(rows, columns=["file", "marginal", "cells", "noisy_standard_error"])
    return frames


def cells_frame(schema: Schema, clique: Clique) -> pd.DataFrame:
    """One row per cell of a marginal, in C order: the label of each attribute's code."""
    codes = np.unravel_index(np.arange(schema.measured.cells(clique)), schema.measured.shape(clique))
    # each label once: a value that is itself called *missing* keeps its name, the code gets another
    labels = [np.array(apart(attribute_labels(schema, n)), object) for n in clique]
    return pd.DataFrame({n: own[c] for n, own, c in zip(clique, labels, codes, strict=True)})


def names_asked(given: object, where: str) -> tuple[str, ...]:
    """The names of columns in an argument: a list of them, or one.

    Raises:
        UserError: something else.
    """
    names = (given,) if isinstance(given, str) or not isinstance(given, Iterable) else tuple(given)
    if wrong := [n for n in names if not isinstance(n, str)]:
        raise UserError(f"{wrong[0]!r} is no name of a column", where=where, fix=f"{where}=[a,b]")
    return names


def check_columns(schema: Schema, where: str, names: Collection[str], of: str = "") -> None:
    """UserError for names that are no columns of the table, or of which records were not counted as they stand.

    Args:
        of: in what there is none, for messages.
    """
    require_columns(names, schema.domain.names, where=where, of=of)
    for name in (n for n in names if not as_a_column(schema, n)):
        sources = schema.rules.sources(name)
        own = f": {first_few(sources)}" if sources else ""
        fix = f"count in the synthetic table, or ask about the columns that it is made from{own}"
        problem = f"{name!r} was not measured as it stands: a rule of the schema made it"
        if schema.rules.unit is not None and name in schema.rules.unit.constant:
            fix = "level=persons, with constants and `records` alone; or count in the synthetic table"
            problem = f"{name!r} is constant in a person: counts of persons were measured, not of records"
        raise UserError(problem, where=where, fix=fix)


def attribute_labels(schema: Schema, name: str) -> list[str]:
    """What each code of a measured attribute is called; one that a rule of the schema made has numbers alone."""
    fine = next((column for column, own in schema.fine.items() if own.name == name), None)
    if fine is not None:
        return [*code_names(schema.finest[fine])]
    if not as_a_column(schema, name):
        return [f"code {i}" for i in range(schema.measured[name].size)]
    return [*code_names(schema[name])]


def add_figures(frame: pd.DataFrame, **figures: Any) -> pd.DataFrame:
    """Cells with figures beside them; a column of the table that is called like one of these stands in brackets."""
    return frame.set_axis(apart(frame.columns, figures), axis=1).assign(**figures)
