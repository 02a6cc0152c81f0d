"""Tables and figures of an experiment as files, for the owner alone."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from mechanisms.public.files import whole_file, write_whole


def write_rows(path: Path, heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table as CSV, for the owner alone."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([heads, *rows])
    write_whole(path, text.getvalue(), mode=0o600)


def save(figure: Figure, inside: Path, name: str) -> None:
    """PNG and SVG, for the owner alone; the words of the SVG are text."""
    for suffix, extra in (("png", {"dpi": 150}), ("svg", {"metadata": {"Date": None}})):
        words = matplotlib.rc_context({"svg.fonttype": "none"})
        with words, whole_file(inside / f"{name}.{suffix}", mode=0o600) as part:
            figure.savefig(part, format=suffix, **extra)
