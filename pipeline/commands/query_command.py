"""`query`: a marginal, a range, an estimate or bounds from a release, as CSV or JSON."""

from __future__ import annotations

import sys
from pathlib import Path

from mechanisms.public.files import write_whole
from pipeline.folders import ANSWER, check_output
from pipeline.inference.asked import as_text, asked
from pipeline.settings.config import QueryConfig


def answer(release: Path, config: QueryConfig) -> int:
    """Print the answer or write it; what it holds is said on standard error."""
    answers = asked(release, config)
    text = as_text(answers, config.format)
    if config.output:
        start = text[: text.index("\n") + 1] if config.format == "csv" else ANSWER
        check_output(Path(config.output), "output", own=[start])  # the same answer, again
        write_whole(Path(config.output), text)
        print(f"{len(answers):,} answers, at no privacy cost: {config.output}")
    else:
        print(text, end="")
    for line in answers.attrs["notes"]:
        print(line, file=sys.stderr)
    return 0
