"""The section about what the release tells of its own errors: what was decided about pairs, and a bound for each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.release import Measurements
from pipeline.inference.decided import decided
from pipeline.inference.release_bounds import bounds
from pipeline.pages.page import Cell, Gauge, Table

#: Marginals shown before the rest is folded away.
SHOWN = 15


@dataclass(frozen=True)
class BoundsSection:
    """How wrong each column and pair of the synthetic table is at most, the worst first.

    Attributes:
        decided: what became of the pairs, and `related` the strongest relations, a sentence each.
        notes: what the bounds hold against.
    """

    name: ClassVar[str] = "bounds"
    title: ClassVar[str] = "How wrong a marginal is at most"
    template: ClassVar[str] = "sections/bounds.html.j2"
    decided: str
    related: str
    notes: tuple[str, ...]
    worst: Table
    rest: Table


def bounds_section(release: Path, measurements: Measurements, synthetic: CodedTable | None) -> BoundsSection:
    """From the release alone: its noisy answers and its synthetic table, which is read where it is not at hand."""
    table = bounds(release, synthetic=synthetic)
    shown = table.iloc[::-1][["marginal", "how", "cells", "error_tvd"]].to_dict("split")["data"]
    rows: list[tuple[Cell, ...]] = [(*line, Gauge(float(line[-1]))) for line in shown]
    head = ("marginal", "how", "cells", "total variation distance, at most", "")
    notes = tuple(f"{n[0].upper()}{n[1:]}." for n in table.attrs["notes"])
    return BoundsSection(
        decided(measurements).in_words, table.attrs["related"], notes, *Table(head, rows).parted(SHOWN)
    )
