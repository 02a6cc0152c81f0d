"""A table's look as JSON and as lines: NOT private, and nothing of it is spent or released."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from mechanisms.public.errors import shown
from mechanisms.public.json_values import JsonDict
from mechanisms.public.tables.losses import percent
from pipeline.look.table_look import TableLook, check
from pipeline.settings.config import CheckConfig


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


def as_lines(look: TableLook, table: str, schema: str) -> Sequence[str]:
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
            lines.append(f"    {c.loss.lost:,} values {c.loss.fate}, such as {few}")
        lines += [f"    → {hint}" for hint in (*c.warnings, *c.hints)]
    about = (*look.warnings, *look.hints)
    lines += ["", *(f"- {line}" for line in about)] if about else []
    bar = f"{100 * look.at_most:g} % of its values (data.max_unplaced)"
    if look.too_many:
        names = ", ".join(repr(loss.column) for loss in look.too_many)
        return [*lines, "", f"{names}: more than {bar} would be lost; run refuses, and spends nothing"]
    return [*lines, "", f"no column loses more than {bar}: run goes on"]


def show_look(config: CheckConfig) -> int:
    """Print the look; exit code 1 where a run would be refused."""
    look = check(config)
    if config.format == "json":
        print(json.dumps(as_facts(look), indent=1, ensure_ascii=False, allow_nan=False))
    else:
        print("\n".join(as_lines(look, config.data.table or Path(str(config.data.path)).name, str(config.data.schema))))
    return 1 if look.too_many else 0
