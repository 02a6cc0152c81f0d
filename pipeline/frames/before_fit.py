"""What comes before a release, on data frames: a draft of the schema, a look, a plan and a rehearsal."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sized
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from mechanisms.public.files import as_path
from mechanisms.public.schema.table_schema import load_schema
from pipeline import synth_again
from pipeline.frames.fit import REFUSED, columns_beside, run_settings
from pipeline.frames.frame_files import (
    AnySchema,
    Frame,
    Kinds,
    Table,
    schema_file,
    table_files,
    write_frame,
    zoned_objects,
)
from pipeline.frames.frame_kinds import declared_orders, form_of
from pipeline.frames.release_object import Release, read
from pipeline.look import rehearse as rehearsal
from pipeline.look.reading_look import ZONED
from pipeline.look.run_look import as_facts, as_lines
from pipeline.look.table_look import check as look_at_table
from pipeline.report.plan_tables import as_text, planned
from pipeline.settings.compose import compose_config
from pipeline.settings.config import CheckConfig, Config, DraftConfig, typed
from pipeline.settings.overrides import overrides_of, quoted
from pipeline.settings.units_config import UnitsConfig

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


def _leave_out(units: Frame | None, config: Config) -> None:
    """No row of a frame of units is read, so that no setting of such a table is needed."""
    if units is not None:
        config.data.units = UnitsConfig()


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
    config = run_settings(settings, epsilon=epsilon, delta=delta, unit=unit, max_records=max_records)
    _leave_out(units, config)
    if config.plan.rows is None and isinstance(frame, Sized):
        config.plan.rows = len(frame) or None
    with tempfile.TemporaryDirectory(prefix="plan-") as place:
        config.data.schema = str(schema_file(schema, Path(place)))
        facts = planned(config)
    return CommandResult(facts, as_text(facts, config.plan.details))


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
    config = run_settings(settings, epsilon=epsilon, delta=delta, unit=unit, max_records=max_records)
    _leave_out(units, config)
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
