"""Settings as the shell, or Python, hands them over → as Hydra's grammar wants them.

The grammar knows no letters beyond ASCII, no `;` and no brackets outside quotes; file names and columns have them.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

from mechanisms.public.errors import UserError
from mechanisms.public.tables.fetched import SELECT
from pipeline.conf_folder import CONF


def spelled(override: str) -> str:
    """An override with what the grammar cannot read in quotes; what is beyond help comes back as it is.

    `delimiter=tab` stands for a tab. A mapping whose keys need quotes becomes its own text: `typed` reads it again.

    Raises:
        UserError: bytes that are no UTF-8 text: no file that is written from it would hold them; a key that a mapping
            has twice.
    """
    key, sign, value = override.partition("=")
    if any("\ud800" <= letter <= "\udfff" for letter in override):
        fix = "a text in UTF-8, as of a terminal that is set to it; a file whose name is not: another name"
        raise UserError("a text that is no Unicode", where=key, fix=fix)
    if value and (key == "data.query" or SELECT.match(value.partition("#")[2])):  # commas part columns, and no jobs
        return f"{key}={quoted(value)}" if value[0] not in "'\"" else override
    if key in {"delimiter", "data.delimiter"} and sign and value[:1] not in {"'", '"'}:
        return f'{key}="{chr(9) if value in {"tab", chr(92) + "t"} else value}"'
    if value[:1] in {"[", "{"}:
        _check_keys(key, value)
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


def _check_keys(name: str, value: str) -> None:
    """UserError where a mapping has a key twice, as {age: [0, 9], age: [20, 29]}: the last one alone would count."""
    with suppress(yaml.YAMLError, RecursionError):
        nodes = [yaml.compose(re.sub(r":(?=\S)", ": ", value), Loader=yaml.SafeLoader)]
        for node in nodes:  # those inside of it are added
            pairs = node.value if isinstance(node, yaml.MappingNode) else []
            keys = Counter(key.value for key, _ in pairs if isinstance(key, yaml.ScalarNode))
            if twice := [key for key, n in keys.items() if n > 1]:
                raise UserError(f"given twice: {', '.join(twice)}", where=name, fix="each key once")
            nodes += [own for _, own in pairs] if pairs else node.value if isinstance(node, yaml.SequenceNode) else []


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


def encoded(part: Any, name: str = "settings") -> str:
    """A value of YAML, or of Python, in the grammar: texts in quotes.

    Args:
        name: of the setting, for messages.
    Raises:
        UserError: a value that no setting has.
    """
    numpy = sys.modules.get("numpy")  # a command does without
    if numpy is not None and isinstance(part, numpy.generic):
        part = part.item()
    if isinstance(part, list | tuple):
        return "[" + ",".join(encoded(p, name) for p in part) + "]"
    if isinstance(part, Mapping):
        return "{" + ",".join(f"{k}:{encoded(v, name)}" for k, v in part.items()) + "}"
    if isinstance(part, bool) or part is None:
        return "null" if part is None else str(part).lower()
    if isinstance(part, str | Path | date):
        return quoted(str(part))
    if isinstance(part, int | float):
        return repr(part)
    raise UserError(f"got {type(part).__name__}", where=f"{name}=", fix="a number, a text, a list or a mapping")


def literal(value: Any) -> Any:
    """Values that are settled already, so that a ${ in one of their texts stands for itself where they are merged."""
    if isinstance(value, str):
        return re.sub(r"(\\*)\$\{", r"\1\1\\${", value)
    if isinstance(value, Mapping):
        return {k: literal(v) for k, v in value.items()}
    return [literal(v) for v in value] if isinstance(value, list) else value


def overrides_of(settings: Mapping[str, Any], refused: Mapping[str, str] | None = None) -> list[str]:
    """Overrides such as ``selection=pairs`` and ``privacy.accountant="zcdp"``; choices of groups come first.

    Args:
        settings: name → value; of a group its choice, or a mapping of its settings: `privacy={"accountant": "zcdp"}`,
            `selection={"kind": "mst", "k": 2}`.
        refused: names that are no settings here → what to write instead.
    Raises:
        UserError: a refused name; a value that no setting has.
    """
    pairs = [pair for name, value in settings.items() for pair in _flat(str(name), value)]
    for name, _ in pairs:
        for root, fix in (refused or {}).items():
            if name == root or (name.startswith((f"{root}/", f"{root}.")) and root in {"hydra", "experiment"}):
                raise UserError("no setting of this function", where=f"{name}=", fix=fix)
    choices = [f"{n}={v}" for n, v in pairs if _is_group(n)]
    return choices + [f"{n}={encoded(literal(v), n)}" for n, v in pairs if not _is_group(n)]


def _is_group(name: str) -> bool:
    return (CONF / name).is_dir()


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """A mapping of a group's settings, one by one."""
    if "." in name or not isinstance(value, Mapping):
        yield name, value
        return
    for key, part in value.items():
        chosen = key == "kind" and name != "evaluation"  # whose `kind` is the column of the record types
        yield (name, part) if chosen else (f"{name}.{key}", part)
