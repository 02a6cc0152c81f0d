"""The scores that a run keeps, and the drawings of its report: written, and read again; NOT private."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from evaluation.outcome import plain
from mechanisms.public.errors import UserError
from mechanisms.public.files import write_whole
from mechanisms.public.json_values import Json, JsonDict
from pipeline.comparison.tidy import tidy_text
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
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise damaged(path) from error
    if not isinstance(content, dict):
        raise damaged(path)
    return content


def damaged(path: Path) -> UserError:
    """What a run or a sweep left can no longer be read."""
    fix = "a copy of it from before; or the run again, with resume=true, which spends nothing more"
    return UserError("damaged, or not what a run left there", where=str(path), fix=fix)
