"""`synth`: a new synthetic table from a release."""

from __future__ import annotations

import time
from pathlib import Path

from pipeline.settings.config import SynthConfig
from pipeline.statement.condition_words import condition_in_words
from pipeline.synth_again import synthesize


def make_table(release: Path, config: SynthConfig) -> int:
    """Make the table, and print where it lies."""
    output = Path(config.output or f"outputs/synth/{time.strftime('%Y-%m-%d_%H-%M-%S')}")
    table = synthesize(release, config, output)
    if table.given is None:
        print(f"a new synthetic table, at no new privacy cost: {table.path}")
        return 0
    rows = f"{condition_in_words(table.given['where'])} ({table.given['rows']})"
    print(f"a table of rows with {rows}, at no new privacy cost: {table.path}")
    print(
        f"as good as {table.given['effective_rows']:,g} independent rows; its manifest and statement say what it holds"
    )
    return 0
