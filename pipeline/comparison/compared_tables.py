"""Several synthetic tables, scored one after the other and compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mechanisms.public.errors import UserError
from mechanisms.public.files import write_whole
from pipeline.comparison.several_tables import Comparison, rank, with_one_reference
from pipeline.report.comparison_page import comparison_page
from pipeline.scores import two_tables
from pipeline.scores.release_beside import with_own_schema
from pipeline.scores.table_sources import shown_name
from pipeline.settings.config import ScoreConfig
from pipeline.settings.inputs import NO_SCHEMA

#: Tables at most: each is scored by itself.
MOST = 100


def score_several(config: ScoreConfig, tables: Mapping[str, str], *, quiet: bool = False) -> Comparison:
    """Score each synthetic table as `score` does, and sort them; writes the report, if one is asked for.

    Args:
        tables: name → path.
    Raises:
        UserError: as of `score`; names the table.
    """
    if len(tables) > MOST:
        raise UserError(f"{len(tables)} tables", where="synthetic", fix=f"at most {MOST} at once")
    config, own = with_own_schema(config, list(tables.values()))
    config = replace(config, schema=config.schema or NO_SCHEMA)  # the same for all tables
    cards = {}
    for name, path in tables.items():
        evaluation = replace(config.evaluation)
        cards[name] = two_tables.score(replace(config, synthetic=path, report=None, evaluation=evaluation), quiet=quiet)
    cards = with_one_reference(cards)
    if own:
        cards = {name: replace(card, notices=(*card.notices, own)) for name, card in cards.items()}
    comparison = Comparison(
        shown_name(Path(str(config.real))), {name: cards[name] for name in sorted(cards, key=lambda n: rank(cards[n]))}
    )
    if config.report:
        write_whole(Path(config.report), comparison_page(comparison, tables).as_html(), mode=0o600)
    return comparison


def named_tables(paths: Sequence[str]) -> dict[str, str]:
    """Name → path: the file's name, or where some are equal what tells the paths apart.

    Raises:
        UserError: a table is given twice.
    """
    if len(set(paths)) < len(paths):
        raise UserError("a table is given twice", where="synthetic", fix="each table once")
    names = [Path(p).name for p in paths]
    if len(set(names)) == len(names):
        return dict(zip(names, paths, strict=True))
    parts = [list(Path(p).parts) for p in paths]
    while all(len(p) > 1 for p in parts) and len({p[0] for p in parts}) == 1:
        parts = [p[1:] for p in parts]
    while all(len(p) > 1 for p in parts) and len({p[-1] for p in parts}) == 1:
        parts = [p[:-1] for p in parts]
    return {"/".join(p): path for p, path in zip(parts, paths, strict=True)}


def tables_by_name(tables: Sequence[Any] | Mapping[str, Any]) -> dict[str, Any]:
    """Name → table: paths by their names, frames by their places.

    Raises:
        UserError: no table; a table given twice.
    """
    if isinstance(tables, Mapping):
        by_name = {str(name): table for name, table in tables.items()}
    else:
        paths = [str(t) for t in tables if isinstance(t, Path | str)]
        names = {path: name for name, path in named_tables(paths).items()}
        places = (names.get(str(t)) if isinstance(t, Path | str) else f"table {i}" for i, t in enumerate(tables, 1))
        by_name = dict(zip(map(str, places), tables, strict=True))
    if not by_name:
        raise UserError("no table given", where="synthetic", fix="a table, or several: [a, b]")
    return by_name
