"""The first stage of a run: the table is read and looked at."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from mechanisms.public.discovery.discovered_columns import scouting_schema
from mechanisms.public.files import JsonDict, write_whole
from mechanisms.public.progress import Progress
from mechanisms.public.release_files import check_readable
from mechanisms.public.schema.table_schema import Schema
from mechanisms.sensitive.private_table import EMBEDDED, PrivateTable, data_print, load_private
from mechanisms.sensitive.shared_table import only_one, shared_private
from pipeline.demo import DEMO_ROWS, write_demo
from pipeline.folders import RunFolder, bind
from pipeline.look.run_look import look_before_spending
from pipeline.measuring.public_tables import check_public, not_the_private, public_files, started
from pipeline.plugins.origins import origin
from pipeline.run_context import State, present
from pipeline.scores.table_sources import joined, local, open_records, open_with
from pipeline.settings.config import Config, DataConfig
from pipeline.settings.design import bound_settings, post_processing
from pipeline.settings.inputs import check_ready, generated
from pipeline.settings.specs import check_unit
from pipeline.statement.statement import start_in
from pipeline.version import __version__


def load(state: State) -> State:
    """The table's rows, encoded and clipped; the folder is bound to them and to the settings.

    Raises:
        UserError: a table that does not fit, or that changed since the run began; nothing was charged.
    """
    config, folder, design = state.config, state.folder, state.design
    specs, public = design.specs, public_files(design.specs.selection, config.synthesis)
    check_readable(design.schema)
    with state.show.stage("load") as report:
        data = _table(state, report)
        names = specs.columns_read(design.schema)
        records = open_records(data, design.schema, config.limits, folder.temporary, expected=names)
        check_ready(config, records.names)
        check_unit(specs.unit, records.names)
        now = not_the_private(public, run_facts(config, design.schema, data))
        facts = bind(folder, now, may_change=post_processing(config, design.plan, folder))
        keep_settings(folder, config, state.hydra_files)
        source = joined(records, data.units, specs.unit, config.limits)
        state = replace(state, source=source, facts=facts)
        schema = design.schema if design.plan.discovery is None else scouting_schema(design.schema)
        private = read_rows(state, schema, report)
        synthesizer = started(specs.synthesizer, config.synthesis, schema, state.start)
        opened = partial(open_with, limits=config.limits, workdir=folder.temporary)
        check_public(public, schema, source, private.encoding.rows, opened=opened, workdir=folder.temporary)
        losses = look_before_spending(private, source, schema, config, folder, state.show)
    design = replace(design, specs=replace(specs, synthesizer=synthesizer))
    return replace(state, design=design, private=private, losses=losses)


def read_rows(state: State, schema: Schema, report: Progress) -> PrivateTable:
    """The encoded and clipped rows: the run's own, or those that the jobs of a sweep share.

    Jobs share none if units go aside, if the schema follows from noisy answers, or if another engine than the embedded
    one holds the rows.

    Args:
        schema: by which they are read: the scouting one until what is open is discovered.
    """
    plan, unit, aside = state.design.plan, state.design.specs.unit, state.config.evaluation.holdout
    source, folder = present(state.source), state.folder.temporary
    counted = None if plan.histogram is None else unit.max_records
    if plan.discovery is not None and state.discovered is None:
        counted, folder = plan.discovery.cap, folder / "scout"
    if state.shared is None or aside is not None or plan.discovery is not None or state.engine != EMBEDDED:
        load = partial(load_private, source, schema, unit, key=state.key, progress=report, engine=state.engine)
        return load(workdir=folder, holdout=aside, histogram=counted)
    shared = partial(shared_private, state.shared, source, schema, unit, data=state.facts["data"], key=state.key)
    return shared(histogram=counted, progress=report)


def _table(state: State, report: Progress) -> DataConfig:
    """The tables to read, as files: those of addresses are fetched, and the demo's is generated, under internal/.

    The jobs of a sweep share them.
    """
    config, place = state.config, state.shared or state.folder.temporary
    if not generated(config):
        with only_one(place, "fetched"):
            return local(config.data, config.limits, place, promised=True)
    rows = DEMO_ROWS if config.data.rows is None else config.data.rows
    name = f"demo-{rows}-{config.data.seed}"
    path = place / f"{name}.parquet"
    with only_one(path.parent, name):
        if not path.exists():
            write_demo(path, rows=rows, seed=config.data.seed, progress=report)
    return replace(config.data, path=str(path))


def run_facts(config: Config, schema: Schema, data: DataConfig) -> JsonDict:
    """What a resumed run must share with its beginning: settings, schema, data, and the version that measured.

    Args:
        data: the files that are read.
    """
    seed = config.privacy.noise_seed
    start = start_in(config.synthesis)
    key = secrets.token_bytes(32) if seed is None else hashlib.blake2b(f"clip:{seed}".encode(), digest_size=32).digest()
    return {
        "start": None if start is None else start["sha256"],
        "settings": bound_settings(config),
        "pipeline": __version__,
        "schema": schema_print(schema),
        "data": data_print(Path(str(data.path)), *data.units.files),
        "plugins": [origin(name) for name in dict.fromkeys(config.plugins)],
        "once": {"key": key.hex()},
    }


def schema_print(schema: Schema) -> str:
    """What a schema with all that it takes from other files is known by."""
    return hashlib.blake2b(schema.to_yaml().encode(), digest_size=16).hexdigest()


def keep_settings(folder: RunFolder, config: Config, hydra_files: Mapping[str, str]) -> None:
    """The resolved settings and Hydra's own records, under internal/: they may name files and seeds."""
    write_whole(folder.internal / "config.json", json.dumps(asdict(config), indent=1), mode=0o600)
    for name, text in hydra_files.items():
        write_whole(folder.internal / "hydra" / name, text, mode=0o600)
