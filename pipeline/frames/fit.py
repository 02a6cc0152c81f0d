"""`fit`: a frame in, a release out, by the very stages of `run`; nothing is left behind."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mechanisms.public.errors import UserError, did_you_mean
from mechanisms.public.files import as_path
from mechanisms.public.schema.table_schema import Schema, load_schema
from mechanisms.public.tables.fetched import check_no_secret
from mechanisms.public.tables.losses import SETTING
from pipeline.folders import WHERE
from pipeline.frames.frame_files import AnySchema, Frame, Kinds, Table, named_as_given, schema_file, write_frame
from pipeline.frames.frame_kinds import form_of, keep_kinds
from pipeline.frames.release_object import Release, read
from pipeline.report.last_lines import release_warnings
from pipeline.settings.config import Config, load_config
from pipeline.settings.overrides import overrides_of
from pipeline.settings.specs import RECORD, settled_privacy
from pipeline.stage_bars import Stages
from pipeline.stages import run

#: Settings of a run that are arguments here, or have no meaning here.
REFUSED = {
    "data": "the frame is the table; single settings: **{'data.max_unplaced': 0.1}",
    "data.path": "the frame is the table",
    "data.units": "units=FRAME; its column of ids: **{'data.units.id': 'id'}",
    "data.units.path": "units=FRAME",
    "data.schema": "the second argument",
    "data.rows": "only the demo generates rows",
    "privacy.epsilon": "epsilon=",
    "privacy.delta": "delta=",
    "privacy.unit": "unit=",
    "privacy.max_records": "max_records=",
    "experiment": "run(load_config(['experiment=…']), folder)",
    "smoke": "run(load_config(['experiment=…', 'smoke=true']), folder)",
    "resume": "run(load_config([…, 'resume=true']), folder): only a run on a file can go on",
    "format": "only the command prints",
    "hydra": "folder=, where the run's two folders are wanted",
}
#: Arguments that a misspelt keyword may stand for.
KEYWORDS = ("epsilon", "delta", "unit", "max_records", "units", "folder", "quiet")
#: What helps where a column loses too much: a frame has no path for `check`.
LOST = (
    "were codes (0012, 1E5) read as numbers? pd.read_csv(PATH, dtype=str) keeps them as they are written; "
    "pipeline.check(frame, schema) shows why, and a likely cure; "
    f"**{{'{SETTING}': 1}} goes on all the same; nothing was spent"
)


def fit(
    frame: Table,
    schema: AnySchema,
    *,
    epsilon: float = 1,
    delta: float = 1e-9,
    unit: str | None = None,
    max_records: int | str | None = None,
    units: Frame | None = None,
    folder: Path | str | None = None,
    quiet: bool = False,
    **settings: Any,
) -> Release:
    """A differentially private release of a data frame, by the very stages of the command `run`.

    Guarantee: the release is (ε, δ)-differentially private for the unit and the neighbouring relation of its
        statement, unless it says that it is not private. Every call spends a budget of its own; `budget={"ledger":
        FILE, "limit": {...}}` holds all of them to one. The kinds of the frame's columns are taken as public.
    Args:
        frame: of pandas, polars, pyarrow, or anything with `__arrow_c_stream__`; or where a table lies, as `data.path`
            says it: "postgresql:///clinic", **{"data.table": "admissions"}.
        schema: a path, the name of a ready schema, or a mapping as in YAML: {"columns": {...}, "confirmed_public":
            True}. Columns of the frame that it does not name are not read.
        unit: the column that says to whom a record belongs; None: that of the schema's unit, else each record is one.
        max_records: C: how many records of one unit count, or "discover"; None: of the schema's unit, or 1 where a
            record is the unit.
        units: another frame with one row per unit, whose columns are joined to the records by the unit's id; its column
            of ids, where it has another name: **{"data.units.id": "id"}.
        folder: where the run's `release` and `internal` (NOT private) are kept, with scores and report; None: they are
            gone when this returns, and nothing is scored.
        quiet: show no progress, and no warning.
        settings: those of the command: selection="pairs", mechanism="laplace", privacy={"accountant": "zcdp"},
            **{"synthesis.max_cells": 10_000}, seed=1 (which makes the release say that it is not private).
    Raises:
        UserError: any mistake of the settings, the schema or the frame; no release is left.
    """
    config = run_settings(settings, epsilon=epsilon, delta=delta, unit=unit, max_records=max_records)
    if folder is None and config.evaluation.enabled and any(name.startswith("evaluation") for name in settings):
        fix = "folder=PATH, where scores are kept; or release.score(frame), which reads it again"
        raise UserError("scores are NOT private, and are lost without a folder", where="evaluation", fix=fix)
    config.evaluation.enabled &= folder is not None
    with tempfile.TemporaryDirectory(prefix="fit-") as place:  # mode 0700: rows lie there for a while
        path, other = Path(place) / "frame.parquet", Path(place) / "units.parquet"
        config.data.schema = str(schema_file(schema, Path(place)))
        facts = load_schema(Path(config.data.schema))
        further = columns_beside(config, facts)
        beside = {} if units is None else _write_units(units, other, facts, config)
        if isinstance(frame, Path | str):
            kinds, config.data.path = {}, str(frame)
        else:
            kinds = {**write_frame(frame, path, facts, further | dict.fromkeys(beside)), **beside}
            config.data.path = str(path)
        root = Path(place) / "run" if folder is None else as_path(folder, "folder")
        try:
            with named_as_given({path: "the frame", other: "the frame of units"}):
                done = run(config, root, quiet=quiet, has_folder=folder is not None)
        except UserError as error:
            if error.where == WHERE:
                raise UserError(error.what, where="folder", fix="another folder, or move it away") from None
            if not (error.where or "").startswith(f"{SETTING}="):
                raise
            raise UserError(error.what, where=error.where, fix=LOST) from None
        # no Python warning: a filter that makes it an error would lose what was paid for
        Stages(quiet=quiet or config.quiet, console=config.console).warn(release_warnings(done))
        if folder is not None:
            keep_kinds(done.folder.release, kinds, form_of(frame))
        return read(done.folder.release, config.synthesis, kinds, form_of(frame))


def run_settings(settings: Mapping[str, Any], **own: Any) -> Config:
    """The settings of a run on a frame.

    Args:
        own: those of the promise that are arguments.
    Raises:
        UserError: as of the command, also of an address with a secret; a keyword near to an argument, or of `fit`
            alone.
    """
    run_fields = vars(Config())
    for name in settings:
        if name in KEYWORDS and name not in run_fields:
            raise UserError("nothing is kept or read here that needs it", where=f"{name}=", fix="leave it out")
        if (
            not {".", "/"} & set(name)
            and name not in run_fields
            and (near := did_you_mean(name, [*KEYWORDS, *run_fields]))
        ):
            raise UserError("no such keyword", where=f"{name}=", fix=near)
    overrides = [*overrides_of(settings, REFUSED), *overrides_of({"privacy": own})]
    for override in overrides:
        check_no_secret(override, override.partition("=")[0])
    return load_config(["data=table", *overrides])


def _write_units(units: Frame, path: Path, schema: Schema, config: Config) -> Kinds:
    """The frame of units as a file that the settings name; the kinds of its columns, without that of the ids."""
    data = config.data
    ids = data.units.id or settled_privacy(config.privacy, data, schema.rules.unit).unit
    named = {} if ids in (None, RECORD) else {ids: "data.units.id"}  # without a unit the run is refused
    kinds = write_frame(units, path, schema, {**{c.name: None for c in schema.held}, **named})
    data.units.path = str(path)
    return {name: kind for name, kind in kinds.items() if name != ids}


def columns_beside(config: Config, schema: Schema) -> dict[str, str | None]:
    """The columns that settings read beside those of the schema, as of `write_frame`."""
    unit = settled_privacy(config.privacy, config.data, schema.rules.unit).unit
    maybe = (RECORD, config.evaluation.subject, schema.rules.id_column)
    return {n: None for n in maybe if n} | ({} if unit in (None, RECORD) else {unit: "privacy.unit"})
