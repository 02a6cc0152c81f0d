"""`schema`: a commented draft of a schema from a table, or from metadata."""

from __future__ import annotations

from pathlib import Path

from mechanisms.public.drafts.metadata.metadata_files import is_metadata
from mechanisms.public.files import write_whole
from pipeline.settings.config import DraftConfig
from pipeline.synth_again import draft


def show_draft(table: str, config: DraftConfig) -> int:
    """Print the draft, or write it."""
    text = draft(table, config)
    if config.output:
        write_whole(Path(config.output), text)
        todo = "check it, name its source, then set confirmed_public: true"
        read = "it read no rows" if is_metadata(table) else "it looked at the data"
        print(f"a draft ({read}; {todo}): {config.output}")
    else:
        print(text, end="")
    return 0
