"""The look of `check` in words, and at the table that a run has read, before the run spends anything."""

from __future__ import annotations

import json
import logging
import tempfile
from dataclasses import replace
from pathlib import Path

import duckdb

from mechanisms.public.errors import shown
from mechanisms.public.files import JsonDict, stored_values, table_name, write_whole
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.losses import ColumnLoss, lone_lines, losses_of, percent, refuse_losses
from mechanisms.public.tables.scan import Source
from mechanisms.sensitive.private_table import PrivateTable
from mechanisms.sensitive.shared_table import only_one
from pipeline.folders import REHEARSAL, RunFolder
from pipeline.look.column_look import ONE_SIDED
from pipeline.look.table_look import TableLook, check, look_at
from pipeline.look.unit_look import LossBar
from pipeline.settings.config import CheckConfig, Config
from pipeline.settings.memory import scores_memory_texts
from pipeline.settings.specs import asks_for_records
from pipeline.stage_bars import Stages, unplaced_lines

LOG = logging.getLogger("pipeline")
#: A run looks at tables of at most so many rows: a look holds the ids of all units in memory.
MOST_ROWS = 20_000_000
#: What stands for a look that was not made, or could not be.
TOO_LARGE = f"more than {MOST_ROWS:,} rows: python -m pipeline check data.path=… data.schema=… looks at them"
NO_FOLDER = 'console="always" shows the warnings (lost values, texts of one person), folder=PATH keeps them in '
NO_FOLDER += "internal/check.txt (both NOT private)"
FAILED = "the table could not be looked at (run.log says why): python -m pipeline check data.path=… data.schema=…"


def look_before_spending(
    private: PrivateTable,
    source: Source,
    schema: Schema,
    config: Config,
    folder: RunFolder,
    show: Stages,
) -> tuple[ColumnLoss, ...]:
    """What the columns lose; the warnings of `check` on a terminal, and its whole look in `internal/check.txt`.

    Another engine than the embedded one looks at losses alone. A look reads columns too that the schema leaves out: one
    that fails stops no run.

    Guarantee: none; what stands in a log follows from settings alone, a refusal aside.
    Raises:
        UserError: a column loses a larger share than `data.max_unplaced`; nothing was charged.
    """
    encoding = private.encoding
    unknown = [c.name for c in schema.columns if c.discover is not None and c.discover.values]
    placing = replace(encoding, outside={n: k for n, k in encoding.outside.items() if n not in unknown})
    each = (
        ("outside", placing.outside),
        ("unplaced", encoding.unplaced),
        ("contradict it", encoding.conflicts),
    )
    placed = [f"{name}: {n} {words}" for words, counts in each for name, n in counts.items() if n]
    placed += [f"{n}: its values are discovered" for n in unknown]
    LOG.info("%r; values that the schema does not place: %s", private, "; ".join(placed) or "nothing")
    losses = losses_of(encoding, schema)
    refuse_losses(losses, config.data.max_unplaced, figures=show.tells)
    show.warn_privately(scores_memory_texts(config, schema, encoding.rows))
    warned = lone_lines(encoding.lone, private.unit.column)
    if config.engine.kind == "duckdb":
        try:
            large = encoding.rows > MOST_ROWS
            lines, more = ([TOO_LARGE], []) if large else _look(private, source, schema, config, folder)
        except duckdb.InterruptException:
            raise
        except Exception as error:
            lines = more = failure_lines(error)
        write_whole(folder.look, "\n".join(lines) + "\n", mode=0o600)
        warned += more
        one_sided = [m for m in more if ONE_SIDED in m]
        skewed = [x for x in losses if any(m.startswith(f"column {x.column!r}: ") for m in one_sided)]
        losses = tuple(replace(x, fate=f"{x.fate}: {ONE_SIDED}") if x in skewed else x for x in losses)
    for line in warned:
        LOG.warning(line)
    rehearsed = "made-up rows: " * (source.path == folder.root / REHEARSAL)
    show.warn_privately([f"{rehearsed}{line}" for line in (*warned, *unplaced_lines(placing))])
    return losses


def tell_place(folder: RunFolder, show: Stages, has_folder: bool) -> None:
    """Say where a look is kept whose warnings are not shown; `has_folder`: as of `run`."""
    if folder.look.exists() and not show.tells:
        where = f"{folder.look} (NOT private)" if has_folder else NO_FOLDER
        show.note(f"what the schema does to the rows: {where}")


def failure_lines(error: Exception) -> list[str]:
    """The lines of a look that failed, by whatever fault."""
    LOG.error("the look at the table failed", exc_info=error)
    return [FAILED]


def _look(
    private: PrivateTable, source: Source, schema: Schema, config: Config, folder: RunFolder
) -> tuple[list[str], list[str]]:
    """The lines of `check`, and its warnings; the jobs of a sweep that share the encoded table share them too."""
    place = private.folder or folder.temporary / "look"
    place.mkdir(mode=0o700, exist_ok=True)

    def make() -> tuple[list[str], list[str]]:
        coded = private.as_read(schema)
        read = None if coded is None else (coded, private.encoding)
        bar = LossBar(config.data.max_unplaced, not asks_for_records(config.privacy))
        # in a folder of its own: the place holds the codes that other jobs read
        with tempfile.TemporaryDirectory(prefix="look-", dir=place) as own:
            look = look_at(source, schema, private.unit, bar=bar, read=read, workdir=Path(own))
        return as_lines(look, table_name(source.path), schema.name), look.warned

    with only_one(place, "look"):
        lines, warned = stored_values(place / f"look-{config.data.max_unplaced}.json", make)
    return lines, warned


def as_facts(look: TableLook) -> JsonDict:
    """The look as JSON. NOT private."""
    columns = {
        c.name: {
            "kind": c.kind,
            "status": c.status,
            "lost": c.loss.lost,
            "share": c.loss.share,
            "fate": c.loss.fate,
            "beyond_bounds": c.beyond,
            "beyond_are": c.moved,
            "other": c.other,
            "missing": c.missing,
            "lone": c.lone,
            "examples": [list(e) for e in c.examples],
            "hints": [*c.warnings, *c.hints],
        }
        for c in look.columns
    }
    return {
        "private": False,
        "rows": look.rows,
        "max_unplaced": look.at_most,
        "refused": [loss.column for loss in look.too_many],
        "columns": columns,
        "hints": [*look.warnings, *look.hints],
    }


def as_lines(look: TableLook, table: str, schema: str) -> list[str]:
    """A line per column, then what is the matter with it; then the table. NOT private.

    Values that are quoted neither write lines of a terminal nor clear it.
    """
    return [shown(line) for line in _lines(look, table, schema)]


def _lines(look: TableLook, table: str, schema: str) -> list[str]:
    head = f"{table}: {look.rows:,} rows, {len(look.names)} columns, under {schema} ({len(look.columns)} columns)"
    lines = [head, "NOT private: this saw the rows, and quotes values of them. Nothing was spent or released.", ""]
    width = max((len(c.name) for c in look.columns), default=0)
    for c in look.columns:
        status = c.status.replace("loses", "LOSES") if c.loss in look.too_many else c.status
        shares = ((c.beyond, c.moved), (c.other, "other"), (c.missing, "missing"))
        rest = ", ".join(f"{percent(n / max(look.rows, 1))} {word}" for n, word in shares if n)
        lines.append(f"{c.name:<{width}}  {c.kind:<11} {status:<14} {rest}".rstrip())
        if c.loss.lost:
            few = ", ".join(f"{t!r} ({n:,})" for t, n in c.examples)
            lines.append(f"    values that {c.loss.fate}: {c.loss.lost:,}, such as {few}")
        lines += [f"    → {hint}" for hint in (*c.warnings, *c.hints)]
    about = (*look.warnings, *look.hints)
    lines += ["", *(f"- {line}" for line in about)] if about else []
    bar = f"{100 * look.at_most:g} % of its values (data.max_unplaced)"
    if look.too_many:
        names = ", ".join(repr(loss.column) for loss in look.too_many)
        return [*lines, "", f"{names}: more than {bar} would be lost; run refuses, and spends nothing"]
    return [*lines, "", f"no column loses more than {bar} where a run reads it: run goes on"]


def show_look(config: CheckConfig) -> int:
    """Print the look; exit code 1 where a run would be refused."""
    look = check(config)
    if config.format == "json":
        print(json.dumps(as_facts(look), indent=1, ensure_ascii=False, allow_nan=False))
    else:
        table = config.data.table or ("data.query" if config.data.query else Path(str(config.data.path)).name)
        print("\n".join(as_lines(look, table, str(config.data.schema))))
    return 1 if look.too_many else 0
