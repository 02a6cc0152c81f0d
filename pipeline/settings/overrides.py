"""Settings as the shell hands them over → as Hydra's grammar wants them.

The grammar knows no letters beyond ASCII, no `;` and no brackets outside quotes; file names and columns have them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

from mechanisms.public.tables.fetched import SELECT


def spelled(override: str) -> str:
    """An override with what the grammar cannot read in quotes; what is beyond help comes back as it is.

    `delimiter=tab` stands for a tab. A mapping whose keys need quotes becomes its own text: `typed` reads it again.
    """
    key, sign, value = override.partition("=")
    if value and (key == "data.query" or SELECT.match(value.partition("#")[2])):  # commas part columns, and no jobs
        return f"{key}={quoted(value)}" if value[0] not in "'\"" else override
    if key in {"delimiter", "data.delimiter"} and sign and value[:1] not in {"'", '"'}:
        return f'{key}="{chr(9) if value in {"tab", chr(92) + "t"} else value}"'
    if not value or readable(override):
        return override
    if value[0] in "[{":
        structure = _structure(value)
    elif "," in value and not Path(value).expanduser().exists():
        structure = ",".join(part if readable(f"a={part}") else quoted(part) for part in value.split(","))  # a sweep
    else:
        structure = quoted(value)
    override_text = f"{key}={structure}"
    return override_text if readable(override_text) else override


def readable(override: str) -> bool:
    """Whether Hydra's grammar takes the override as it stands."""
    try:
        OverridesParser.create().parse_override(override)
    except HydraException:
        return False
    return True


def quoted(value: str) -> str:
    """A string in quotes, letters as they are."""
    tail = len(value) - len(value.rstrip("\\"))
    return '"' + value.replace('\\"', '\\\\"').replace('"', '\\"') + "\\" * tail + '"'


def _structure(value: str) -> str:
    """A list or a mapping, read as YAML, in Hydra's grammar; as it is where it cannot be read."""
    try:
        parts = yaml.safe_load(value)
        text = encoded(parts)
    except yaml.YAMLError:
        return value
    return text if readable(f"a={text}") else quoted(value)


def encoded(part: Any) -> str:
    """A value of YAML in the grammar: texts in quotes."""
    if isinstance(part, list):
        return "[" + ",".join(map(encoded, part)) + "]"
    if isinstance(part, dict):
        return "{" + ",".join(f"{k}:{encoded(v)}" for k, v in part.items()) + "}"
    if isinstance(part, bool) or part is None:
        return "null" if part is None else str(part).lower()
    return repr(part) if isinstance(part, int | float) else quoted(str(part))
