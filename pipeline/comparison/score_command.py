"""`score`: one synthetic table, or several beside each other, on the console and in files."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from mechanisms.public.files import write_whole
from pipeline.comparison.tidy import is_csv, tidy_text
from pipeline.report import last_lines as report_run
from pipeline.scores import two_tables
from pipeline.settings.config import ScoreConfig


def score_command(config: ScoreConfig) -> int:
    """Score and write what the settings ask for; the exit code.

    Without `output` the scores go to standard output and all that people read to standard error.
    """
    out = sys.stdout if config.output else sys.stderr
    if isinstance(config.synthetic, list):
        from pipeline.comparison.compared_tables import named_tables, score_several

        several = score_several(config, named_tables([str(path) for path in config.synthetic]))
        print(repr(several), file=out)
        facts = several.to_json()
    else:
        card = two_tables.score(config)
        if config.detail != "none":
            from pipeline.report.deep_dive_tables import as_text  # slow to import

            print(as_text(card, config.detail, config.top), end="", file=out)
        print(report_run.summary(card), file=out)
        facts = card.to_json()
    text = tidy_text(facts) if is_csv(config.output) else json.dumps(facts, indent=1, allow_nan=False) + "\n"
    if config.output:
        write_whole(Path(config.output), text, mode=0o600)
        print(f"scores (NOT private): {config.output}")
    else:
        print(text, end="")
    if config.report:
        print(f"report (NOT private): {config.report}", file=out)
    return 0
