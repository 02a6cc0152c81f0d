"""Who reads the console: a log keeps it for years, so that what saw rows goes to a terminal alone unless asked for."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Sequence
from typing import TextIO

#: Where `run` prints what saw rows (scores, lost values): on a terminal alone, on any stream, on none.
CONSOLE = ("terminal", "always", "never")
#: Said where they are not printed.
NOT_PRINTED = "what saw rows is not printed here (console=always prints it)"
#: What a run prints at its end, at most.
LINES, WIDTH = 14, 100


#: Where the words of a line begin.
INDENT = 12


def tells(stream: TextIO, console: str) -> bool:
    """Whether what saw rows may be printed there.

    Args:
        console: one of CONSOLE.
    """
    return console == "always" or (console == "terminal" and stream.isatty())


def labelled(label: str, words: str) -> str:
    """One of the last lines: a path is never folded."""
    return f"  {label:<{INDENT - 3}} {words}"


def folded(label: str, words: str) -> list[str]:
    """A line of the last lines, folded at WIDTH beneath its words."""
    wrapper = textwrap.TextWrapper(WIDTH, labelled(label, ""), " " * INDENT)
    wrapper.break_long_words = wrapper.break_on_hyphens = False
    return wrapper.wrap(words)


def at_most(sentences: Sequence[Sequence[str]], more: str) -> list[str]:
    """The lines of the first sentences, at most LINES, none cut; the last one says where those left out stand."""
    lines = [line for sentence in sentences for line in sentence]
    if len(lines) <= LINES:
        return lines
    ends = itertools.accumulate(map(len, sentences))
    cut = max((end for end in ends if end < LINES), default=0)
    return [*lines[:cut], f"{'':<{INDENT}}{len(lines) - cut} more lines: {more}"]
