"""Scores as files: those that a run keeps with its drawings, read again, and all figures as one CSV; NOT private."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evaluation.outcome import plain
from mechanisms.public.errors import UserError
from mechanisms.public.files import Json, JsonDict, write_whole
from mechanisms.public.plain_files import json_mapping
from pipeline.folders import RunFolder

#: A longer scores.json has no scores.csv beside it: a row per figure takes some times as much.
MOST_FOR_CSV = 5_000_000


def write_scores(folder: RunFolder, facts: Json, drawn: Json) -> None:
    """Leave scores.json, scores.csv where it is not too long, and figures.json.

    Args:
        facts: of the scorecard; drawn: of its drawings.
    """
    write_whole(folder.scores, text := _as_text(facts), mode=0o600)
    if len(text) <= MOST_FOR_CSV:
        write_whole(folder.scores.with_suffix(".csv"), tidy_text(facts), mode=0o600)
    write_whole(folder.figures, _as_text(drawn), mode=0o600)


def _as_text(value: Any) -> str:
    """A JSON text without NaN."""
    return json.dumps(plain(value), indent=1, allow_nan=False) + "\n"


def report_files(path: Path) -> JsonDict:
    """A JSON file's content; empty where there is none.

    Raises:
        UserError: it is damaged.
    """
    if not path.is_file():
        return {}
    try:
        return json_mapping(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise damaged(path) from error


def damaged(path: Path) -> UserError:
    """What a run or a sweep left can no longer be read."""
    fix = "a copy of it from before; or the run again, with resume=true, which spends nothing more"
    return UserError("damaged, or not what a run left there", where=str(path), fix=fix)


#: The columns; also how such a file begins.
HEAD = ("not_private", "table", "part", "of", "figure", "value")
#: What names an entry of a list, in this order; else its place does.
NAMES = ("column", "marginal", "attributes", "metric", "name")


def tidy_text(scores: Json) -> str:
    """The CSV of a scores.json, of one table or of several; `of` is a metric, a column or a marginal."""
    tables = scores.get("tables", {"": scores})
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEAD)
    for table, card in tables.items():
        for part, content in card.items():
            if part not in ("format", "not_private"):
                writer.writerows(("NOT private", table, part, *row) for row in _figures(content))
    return text.getvalue()


def _figures(content: Any, *path: str) -> Iterator[tuple[str, str, Any]]:
    """(of, figure, value) of every number, text and truth value below a part."""
    if not isinstance(content, Mapping | list):
        yield path[0] if path else "", ".".join(path[1:]).rstrip("."), content
        return
    for name, inner in _entries(content):
        yield from _figures(inner, *path, name)


def _entries(content: Json | list[Any]) -> Iterator[tuple[str, Any]]:
    if isinstance(content, Mapping):
        yield from ((str(name), inner) for name, inner in content.items())
        return
    for place, inner in enumerate(content):
        named = [inner[n] for n in NAMES if isinstance(inner, Mapping) and inner.get(n) is not None][:1]
        name = named[0] if named else place
        yield (" × ".join(map(str, name)) if isinstance(name, list) else str(name)), inner
