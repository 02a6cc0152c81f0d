"""What needs no private run: new rows from a release, a draft of a schema."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from mechanisms.public.drafts.draft import draft_schema
from mechanisms.public.drafts.metadata.metadata_files import is_metadata, metadata_draft
from mechanisms.public.drafts.unit_guess import GUESS, RECORD
from mechanisms.public.errors import UserError
from mechanisms.public.files import Json, no_empty_folders, write_whole
from mechanisms.public.schema.cluster import cluster_from_settings, places_from_settings
from mechanisms.public.tables.engine_instances import shared_engine
from mechanisms.public.tables.format_trial import released_format
from mechanisms.sensitive.contribution import PrivacyUnit
from pipeline.folders import RunFolder, not_in_release, unwritable
from pipeline.measuring.public_tables import ready_again
from pipeline.plugins.origins import statement_of_new_rows
from pipeline.release_folder import read_release, write_release
from pipeline.row_maker import RowMaker, build_condition
from pipeline.scores.table_sources import joined, local_units, opened_as_written
from pipeline.settings.config import DraftConfig, SynthConfig
from pipeline.settings.memory import check_rows
from pipeline.settings.read_where import check_read
from pipeline.settings.specs import as_released, two_tables
from pipeline.stage_bars import Stages
from pipeline.statement.signing import load_signer
from pipeline.statement.words import condition_in_words
from pipeline.version import __version__


def synthesize(release: Path, config: SynthConfig, root: Path, *, quiet: bool = False) -> tuple[Path, int, Json | None]:
    """A new synthetic table from a release, in `root`/release: its file, rows, and what they satisfy (see `Manifest`).

    Guarantee: post-processing of the release: no new privacy cost. Its privacy.json is passed on as it is, but for
        parts of plugins that make or write the table, which it names; what binds the new files is made anew, and says
        what their rows were asked to satisfy.
    Raises:
        UserError: no release there; the folder holds a release already; an impossible setting or condition.
    """
    check_read(config)
    signer = load_signer(config.statement.key)
    schema, statement, measurements = read_release(release)
    rows, own = config.rows, config.synthesis.rows
    if rows is not None and own is not None and rows != own:
        raise UserError("rows and synthesis.rows differ", where="rows", fix="one of the two")
    rows = own if rows is None else rows
    spec = ready_again(config.synthesis, schema, statement)
    form, two = released_format(config.release.format), two_tables(config.release, schema)
    dialect = as_released(config.release, schema)
    statement = dict(statement_of_new_rows(statement, config.synthesis.kind, type(spec), form))
    condition = build_condition(schema, config.where)
    not_in_release(root, "output")
    folder = RunFolder(root)
    if folder.release.exists():
        raise UserError(f"{folder.release} is there already", where="output", fix="another folder, or move it away")
    fixed = [c for c, _ in schema.zeros]
    check_rows(schema, measurements, spec, rows, config.limits, fixed=fixed)
    show = Stages(quiet=quiet)
    rng = np.random.default_rng(config.synthesis.seed)
    maker = RowMaker(schema, measurements, spec, rng, show)
    for note in maker.notes(condition):
        show.note(note)
    new = maker.draw(rows, condition)
    with show.stage("release") as report, _workdir(root) as work:
        new = replace(new, two=two, drawn_by=replace(new.drawn_by, dialect=dialect))
        measured = replace(schema, dialect=dialect), statement, measurements
        path = write_release(folder, measured, new, form, signer=signer, workdir=work, progress=report)
    return path, new.rows.coded.rows, new.given


def draft(
    table: str, config: DraftConfig, orders: Mapping[str, Sequence[str]] | None = None, name: str | None = None
) -> str:
    """A commented draft of a schema: from a table, at which it looked, and says so; or from metadata alone.

    Args:
        config: `cluster` says how hierarchies are built by clustering (see `cluster_from_settings`).
        orders: column → its values in the order that a frame declares.
        name: of the schema; None: as the file is called.
    """
    check_read(replace(config, table=table))
    if is_metadata(table):
        asked = {"cluster": config.cluster, "units": config.units.files, "privacy.unit": config.privacy.unit != GUESS}
        asked |= {"delimiter": config.delimiter is not None, "encoding": config.encoding is not None}
        for where in [name for name, value in asked.items() if value]:
            raise UserError(
                "a draft from metadata looks at no rows", where=where, fix="leave it out, or give the table"
            )
        return metadata_draft(Path(table))
    given = {c: (s, f"cluster: column {c!r}") for c, s in (config.cluster or {}).items()}
    trees = {c: cluster_from_settings(s, where=where) for c, (s, where) in given.items()}
    places = {c: places_from_settings(s, trees[c], where=where) for c, (s, where) in given.items()}
    with tempfile.TemporaryDirectory(prefix="schema-") as folder, shared_engine(Path(folder) / "engine"):
        source = opened_as_written(table, config, Path(folder))
        name = source.path.name.split(".")[0] if name is None else name
        if config.units.files:
            unit = PrivacyUnit(config.privacy.unit)
            if unit.column in (None, GUESS, RECORD):
                fix = "privacy.unit=COLUMN: the records' column of ids"
                raise UserError("no column to join by", where="units", fix=fix)
            units = local_units(config.units, config.limits, Path(folder))
            source = joined(source, units, unit, config.limits, where="units")
        return draft_schema(source, name, trees, places, config.privacy.unit or GUESS, orders)


@contextmanager
def _workdir(root: Path) -> Iterator[Path]:
    """A folder on the same file system as `root`, for parts of the release."""
    try:
        with no_empty_folders(root):
            root.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".parts-", dir=root) as folder:
                yield Path(folder)
    except OSError as error:
        raise unwritable(root, error, "output") from error


def show_draft(table: str, config: DraftConfig) -> int:
    """Print the draft, or write it."""
    text = draft(table, config)
    if config.output:
        mode, read = (0o644, "it read no rows") if is_metadata(table) else (0o600, "it looked at the data")
        write_whole(Path(config.output), text, mode=mode)
        todo = "check it, name its source, then set confirmed_public: true"
        print(f"a draft ({read}; {todo}): {config.output}")
    else:
        print(text, end="")
    return 0


def make_table(release: Path, config: SynthConfig) -> int:
    """Make the table, and print where it lies."""
    output = Path(config.output or f"outputs/synth/{time.strftime('%Y-%m-%d_%H-%M-%S')}")
    path, count, given = synthesize(release, config, output)
    if config.format == "json":
        facts = {"version": __version__, "table": str(path.absolute()), "rows": count, "given": given}
        print(json.dumps(facts, ensure_ascii=False, allow_nan=False))
    elif given is None:
        print(f"a new synthetic table, at no new privacy cost: {path} ({count:,} rows)")
    else:
        rows = f"{condition_in_words(given['where'])} ({given['rows']})"
        print(f"a table of rows with {rows}, at no new privacy cost: {path}")
        print(f"as good as {given['effective_rows']:,g} independent rows; its manifest and statement say what it holds")
    return 0
