"""`score`: one synthetic table, or several beside each other, on the console and in files."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pandas as pd

from evaluation.mgd.deep_dive import DETAILS
from evaluation.score import Scorecard
from mechanisms.public.files import write_whole
from mechanisms.public.text_table import lined_up
from pipeline.report import last_lines as report_run
from pipeline.report.page import number
from pipeline.scores import two_tables
from pipeline.scores.score_files import tidy_text
from pipeline.settings.config import ScoreConfig


def score_command(config: ScoreConfig) -> int:
    """Score and write what the settings ask for; the exit code.

    Without `output`, or with format=json, the scores go to standard output and all that people read to standard error.
    """
    in_json = config.format == "json"
    out = sys.stdout if config.output and not in_json else sys.stderr
    if isinstance(config.synthetic, list):
        from pipeline.comparison.compared_tables import named_tables, score_several

        several = score_several(config, named_tables([str(path) for path in config.synthetic]))
        print(repr(several), file=out)
        facts = several.to_json()
    else:
        card = two_tables.score(config)
        if config.detail != "none":
            print(deep_dives(card, config.detail, config.top), end="", file=out)
        print(report_run.summary(card), file=out)
        facts = card.to_json()
    in_csv = str(config.output).lower().endswith(".csv")
    text = tidy_text(facts) if in_csv else json.dumps(facts, indent=1, allow_nan=False) + "\n"
    if config.output:
        write_whole(Path(config.output), text, mode=0o600)
        print(f"scores (NOT private): {config.output}", file=out)
    if in_json:
        print(json.dumps(facts, allow_nan=False))
    elif not config.output:
        print(text, end="")
    if config.report:
        print(f"report (NOT private): {config.report}", file=out)
    return 0


def deep_dives(card: Scorecard, detail: str, top: int) -> str:
    """The tables that were asked for, `top` rows of each; an empty text for none."""
    details = list(DETAILS) if detail == "all" else [d for d in DETAILS if d == detail]
    out: list[str] = []
    if "marginals" in details:
        frame = card.mgd.frame()
        _add(out, f"MGD: {min(top, len(frame))} of {len(frame)} marginals, the worst first", frame.head(top))
    for dive in card.dives:
        for name in details:
            if name == "marginals":
                continue
            for title, frame in dive.frames(name).items():
                shown = frame.sort_values("cost", ascending=False) if title == "slices" else frame
                shown = shown if title == "attributes" else shown.head(top)
                _add(out, f"{dive.label} (AEMC {dive.aemc:.4g}): {title}", shown)
    ncript = card.outcomes.get("ncript")
    if detail == "all" and ncript is not None and ncript.score is not None:
        result = ncript.result
        _add(out, "N-CRiPT: the record types that cause most of the loss", result.types.head(top))
        for course in result.courses():
            title = f"N-CRiPT: the losses of {course.pop('segment')} over time"
            _add(out, title, pd.DataFrame({"time": list(result.times), **course}))
    return "".join(f"{line}\n" for line in out)


def _add(out: list[str], title: str, frame: pd.DataFrame) -> None:
    if not frame.empty:
        rows = [[*map(str, frame.columns)], *([*map(number, row)] for row in frame.itertuples(index=False))]
        out += [title, *lined_up(rows, left=len(rows[0])), ""]
