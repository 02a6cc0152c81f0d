"""Progress per stage: a live bar on a terminal, a line that changes in a notebook, one plain line per stage elsewhere.

All but the notebook's go to standard error.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from mechanisms.public.progress import Progress
from mechanisms.public.tables.codec import EncodingReport
from pipeline.console import tells

LOG = logging.getLogger("pipeline")


def unplaced_lines(encoding: EncodingReport) -> list[str]:
    """One warning per column with values that the schema does not place, and per rule that rows contradict.

    For the operator's eyes: NOT private.
    """
    lines = []
    for lost, counts in (("outside the schema", encoding.outside), ("not readable as its kind", encoding.unplaced)):
        lines += [f"column {name!r}: {n:,} of {encoding.rows:,} values are {lost}" for name, n in counts.items() if n]
    mostly = [repr(n) for n, count in encoding.unplaced.items() if 2 * count > encoding.rows]
    if mostly:
        lines.append(f"most of {', '.join(mostly)} is lost: python -m pipeline check says why")
    conflicts = encoding.conflicts.items()
    lines += [
        f"{rule}: {n:,} of {encoding.rows:,} rows contradict it, and take what it says" for rule, n in conflicts if n
    ]
    return lines


#: A notebook is told at most so often, in seconds.
EVERY = 0.3


class NotebookLine:
    """One line below a notebook's cell, which says how far a stage is and in the end how long it took."""

    def __init__(self, text: str) -> None:
        from IPython.display import display  # only a notebook has it

        self._handle: Any = display(_plain(text), raw=True, display_id=True)
        self._said = time.perf_counter()

    def say(self, text: str, *, last: bool = False) -> None:
        """The line now says this, if it did not change a moment ago."""
        if last or time.perf_counter() - self._said >= EVERY:
            self._handle.update(_plain(text), raw=True)
            self._said = time.perf_counter()


def _plain(text: str) -> dict[str, str]:
    return {"text/plain": text}


class Stages:
    """Shows the stages of one command and keeps how long each took.

    Attributes:
        seconds: wall time of each finished stage, summed over its repetitions.
        tells: whether what saw rows may be said.
    """

    def __init__(self, *, quiet: bool = False, console: str = "terminal") -> None:
        """A bar a stage.

        Args:
            console: as the setting of that name; "always" for a command that exists to print what saw rows.
        """
        self.console = Console(stderr=True, quiet=quiet)
        self.seconds: dict[str, float] = {}
        self.tells = tells(sys.stderr, console)

    def warn_privately(self, lines: Sequence[str]) -> None:
        """Warnings that were counted on raw rows: for the operator's eyes, and no log's."""
        for line in lines if self.tells else ():
            self.note(f"warning (NOT private): {line}")

    def warn(self, lines: Sequence[str]) -> None:
        """Warnings that follow from noisy answers and settings alone; a run's log has them too."""
        for line in lines:
            LOG.info("warning: %s", line)
            self.note(f"warning: {line}")

    def note(self, line: str) -> None:
        """Something public that a person should know, in one line where a file keeps it; nothing if it is empty."""
        if line:
            unfolded = not self.console.is_terminal
            self.console.print(f"  {line}", highlight=False, markup=False, soft_wrap=unfolded)

    @contextmanager
    def stage(self, name: str) -> Iterator[Progress]:
        """One stage; yields the function to report progress with."""
        start = time.perf_counter()
        if self.console.is_jupyter and not self.console.quiet:
            line = NotebookLine(f"{name:<12} …")

            def tell(done: int, total: int, note: str = "", /) -> None:
                line.say(f"{name:<12} {f'{done / total:4.0%}' if total else '…'} {note}".rstrip())

            yield tell
            line.say(self._finished(name, start), last=True)
            return
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description:<12}"),
            BarColumn(),
            TextColumn("{task.fields[note]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        live = self.console.is_terminal and not self.console.quiet
        with Bars(*columns, console=self.console, transient=True, disable=not live) as bar:
            task = bar.add_task(name, total=None, note="")

            def report(done: int, total: int, note: str = "") -> None:
                bar.update(task, completed=done, total=total or None, note=note)

            yield report
        self.console.print(self._finished(name, start), highlight=False)

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """What happens meanwhile saw rows: no stage of it is said where that may not be told."""
        quiet, self.console.quiet = self.console.quiet, self.console.quiet or not self.tells
        try:
            yield
        finally:
            self.console.quiet = quiet

    def _finished(self, name: str, start: float) -> str:
        """What is said of a stage that began then; its time is added up."""
        spent = time.perf_counter() - start
        self.seconds[name] = self.seconds.get(name, 0.0) + spent
        LOG.info("%s: %.1f s", name, spent)
        return f"{name:<12} {spent:8.1f} s"
