"""Data frames: `fit`, by the very stages of `run`; before it a draft of the schema, a look, a plan and a rehearsal."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sized
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from mechanisms.public.errors import UserError, did_you_mean
from mechanisms.public.files import as_path
from mechanisms.public.schema.table_schema import Schema, load_schema
from mechanisms.public.tables.fetched import check_no_secret
from mechanisms.public.tables.losses import SETTING
from pipeline import synth_again
from pipeline.folders import WHERE
from pipeline.frames.frame_files import (
    AnySchema,
    Frame,
    Kinds,
    Table,
    named_as_given,
    schema_file,
    table_files,
    write_frame,
    zoned_objects,
)
from pipeline.frames.frame_kinds import declared_orders, form_of, keep_kinds
from pipeline.frames.release_object import Release, read
from pipeline.look import rehearse as rehearsal
from pipeline.look.reading_look import ZONED
from pipeline.look.run_look import as_facts, as_lines
from pipeline.look.table_look import check as look_at_table
from pipeline.report.last_lines import release_warnings
from pipeline.report.plan_tables import as_text, planned
from pipeline.settings.compose import compose_config
from pipeline.settings.config import CheckConfig, Config, DraftConfig, load_config, typed
from pipeline.settings.overrides import overrides_of, quoted
from pipeline.settings.specs import RECORD, settled_privacy
from pipeline.settings.units_config import UnitsConfig
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
    given = settings | {"quiet": quiet}
    config = _run_settings(given, epsilon=epsilon, delta=delta, unit=unit, max_records=max_records)
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
                done = run(config, root, has_folder=folder is not None)
        except UserError as error:
            if error.where == WHERE:
                raise UserError(error.what, where="folder", fix="another folder, or move it away") from None
            if not (error.where or "").startswith(f"{SETTING}="):
                raise
            raise UserError(error.what, where=error.where, fix=LOST) from None
        # no Python warning: a filter that makes it an error would lose what was paid for
        Stages(quiet=config.quiet, console=config.console).warn(release_warnings(done))
        if folder is not None:
            keep_kinds(done.folder.release, kinds, form_of(frame))
        return read(done.folder.release, config.synthesis, kinds, form_of(frame))


def _run_settings(settings: Mapping[str, Any], **own: Any) -> Config:
    """The settings of a run on a frame; `own` are those of the promise that are arguments."""
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


#: Said above a plan for a frame.
COUNTED = "NOT private: the rows of the frame were counted (plan={'rows': N} takes a public number instead)"
#: Settings of `schema` that are arguments here.
DRAFTED = {"table": "the frame", "output": "Path(…).write_text(draft.text)", "units": "units=", "privacy": "unit="}


class CommandResult(dict[str, Any]):
    """What a command tells: a mapping with its facts, and in `text` the words that it prints."""

    def __init__(self, facts: Mapping[str, Any], text: str) -> None:
        super().__init__(facts)
        self.text = text

    def __str__(self) -> str:
        return self.text

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(self.text)


def draft(
    frame: Table,
    *,
    name: str = "table",
    unit: str | None = None,
    units: Table | None = None,
    cluster: Mapping[str, Any] | None = None,
    **settings: Any,
) -> CommandResult:
    """A commented draft of a schema, by the command `schema`: a mapping that `fit` takes, and in `text` the YAML.

    It looked at the data: check each line, name its source, then set `confirmed_public`. NOT private until then.

    Args:
        frame: or a table's path.
        name: of the schema; a path's is that of the file.
        unit: the column that says to whom a record belongs; None: it is guessed.
        units: another frame with one row per person, joined by `unit`.
        cluster: hierarchies by clustering: {"place": {"coordinates": "places.csv", "levels": [5, 25]}}.
        settings: of the command: **{"units.id": "id"}.
    """
    own = {} if unit is None else {"privacy.unit": unit}
    trees = [] if cluster is None else [f"cluster={quoted(json.dumps(cluster))}"]
    overrides = [*overrides_of(settings, DRAFTED), *overrides_of(own), *trees]
    config = typed(compose_config("schema_draft", overrides), DraftConfig)
    own_name = None if isinstance(frame, Path | str) else str(name)
    with table_files({"frame": frame, "units": units}) as paths:
        config.units.path = paths.get("units")
        text = synth_again.draft(paths["frame"], config, declared_orders(frame, units), own_name)
    return CommandResult(yaml.safe_load(text), text)


def check(
    frame: Table,
    schema: AnySchema,
    *,
    unit: str | None = None,
    max_records: int | str | None = None,
    units: Table | None = None,
    **settings: Any,
) -> CommandResult:
    """What a schema would do to a frame, column by column, as the command `check`: print it. NOT private.

    Args:
        frame, schema, unit, max_records, units: as of `fit`; tables may be paths.
        settings: of the command: **{"data.max_unplaced": 0.1}.
    """
    own = {"privacy": {"unit": unit, "max_records": max_records}}
    overrides = ["data=table", *overrides_of(settings, REFUSED), *overrides_of(own)]
    config = typed(compose_config("check", overrides), CheckConfig)
    with tempfile.TemporaryDirectory(prefix="schema-") as place:
        config.data.schema = str(schema_file(schema, Path(place)))
        facts = load_schema(Path(config.data.schema))
        with table_files({"frame": frame, "units": units}, facts) as paths:
            config.data.path, config.data.units.path = paths["frame"], paths.get("units")
            look = look_at_table(config)
    zoned = [f"column {name!r}: {ZONED}" for name in zoned_objects(frame) if name in facts.domain.names]
    look = replace(look, warnings=(*look.warnings, *zoned))
    table = Path(frame).name if isinstance(frame, Path | str) else "the frame"
    return CommandResult(as_facts(look), "\n".join(as_lines(look, table, facts.name)))


def plan(
    frame: Frame | None,
    schema: AnySchema,
    *,
    epsilon: float = 1,
    delta: float = 1e-9,
    unit: str | None = None,
    max_records: int | str | None = None,
    units: Frame | None = None,
    **settings: Any,
) -> CommandResult:
    """What `fit` would measure, and how noisy it would be, as the command `plan`; nothing is spent.

    Args:
        frame: only the number of its rows is looked at, for comparison with the noise; None: none is known.
        units: nothing of it is looked at: the schema says all that a plan needs.
        schema, epsilon, delta, unit, max_records, settings: as of `fit`.
    """
    config = _run_settings(settings, epsilon=epsilon, delta=delta, unit=unit, max_records=max_records)
    config.data.units = config.data.units if units is None else UnitsConfig()  # no row of it is read
    counted = len(frame) if config.plan.rows is None and isinstance(frame, Sized) else 0
    config.plan.rows = counted or config.plan.rows
    with tempfile.TemporaryDirectory(prefix="plan-") as place:
        config.data.schema = str(schema_file(schema, Path(place)))
        facts = planned(config)
    text = as_text(facts, config.plan.details)
    return CommandResult(facts, f"{COUNTED}\n{text}" if counted else text)


def rehearse(
    frame: Frame | None,
    schema: AnySchema,
    *,
    epsilon: float = 1,
    delta: float = 1e-9,
    unit: str | None = None,
    max_records: int | str | None = None,
    units: Frame | None = None,
    folder: Path | str | None = None,
    **settings: Any,
) -> Release:
    """The whole path of `fit` on rows that are made from the schema alone, as the command `rehearse`; NOT private.

    Args:
        frame, units: only their columns and kinds are looked at, for those of `sample`; no frame: the schema's.
        folder: where the rehearsal is kept; None: nowhere.
        schema, epsilon, delta, unit, max_records, settings: as of `fit`; plan={"rows": 20_000} says how many rows.
    """
    config = _run_settings(settings, epsilon=epsilon, delta=delta, unit=unit, max_records=max_records)
    config.data.units = config.data.units if units is None else UnitsConfig()  # no row of it is read
    config.evaluation.enabled = False
    with tempfile.TemporaryDirectory(prefix="rehearsal-") as place:
        config.data.schema = str(schema_file(schema, Path(place)))
        facts = load_schema(Path(config.data.schema))
        kinds: Kinds | None = None
        if frame is not None and (isinstance(frame, pd.DataFrame) or hasattr(frame, "slice")):
            own_columns: dict[str, str | None] = dict.fromkeys(c.name for c in facts.columns)
            beside = (
                {} if units is None else write_frame(_no_rows(units), Path(place) / "units.parquet", facts, own_columns)
            )
            further = columns_beside(config, facts) | dict.fromkeys(beside)
            kinds = write_frame(_no_rows(frame), Path(place) / "head.parquet", facts, further)
            kinds = {**kinds, **{name: kind for name, kind in beside.items() if name not in kinds}}
        root = Path(place) / "run" if folder is None else as_path(folder, "folder")
        done = rehearsal.rehearse(config, root, has_folder=folder is not None)
        return read(done.folder.release, config.synthesis, kinds, form_of(frame))


def _no_rows(frame: Frame) -> Any:
    """The columns of a frame; of one that cannot be cut, the frame."""
    if isinstance(frame, pd.DataFrame):
        return frame.iloc[:0]
    return frame.slice(0, 0) if hasattr(frame, "slice") else frame
