"""The commands in one table: name, help and files of settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class Command:
    """One command of `python -m pipeline`.

    Attributes:
        summary: one line, for the list of all commands.
        about: the head of its help.
        examples: command lines, without the program.
        files: the files of conf/ whose settings it has, those of its choices aside.
        own: the groups whose choices have settings of their own.
        wordless: whether a word without `=` stands for no path: `--help WORD` finds settings then.
        first: the settings that its help shows, by title; empty: all of them.
    """

    summary: str
    about: str
    examples: Sequence[str]
    files: Sequence[str]
    own: Sequence[str] = ()
    wordless: bool = True
    first: Mapping[str, Sequence[str]] = field(default_factory=dict)


COMMANDS = {
    name: Command(**facts)
    for name, facts in yaml.safe_load(Path(__file__).with_name("commands.yaml").read_text(encoding="utf-8")).items()
}
