"""`check`: what a schema would do to a table."""

from __future__ import annotations

import json
from pathlib import Path

from pipeline.look.look_words import as_facts, as_lines
from pipeline.look.table_look import check
from pipeline.settings.config import CheckConfig


def show_look(config: CheckConfig) -> int:
    """Print the look; exit code 1 where a run would be refused."""
    look = check(config)
    if config.format == "json":
        print(json.dumps(as_facts(look), indent=1, ensure_ascii=False, allow_nan=False))
    else:
        print("\n".join(as_lines(look, config.data.table or Path(str(config.data.path)).name, str(config.data.schema))))
    return 1 if look.too_many else 0
