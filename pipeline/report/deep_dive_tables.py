"""The deep dives into MGD and N-CRiPT as tables for the terminal."""

from __future__ import annotations

import io

import pandas as pd
from rich.console import Console
from rich.table import Table

from evaluation.mgd.deep_dive import DETAILS
from evaluation.score import Scorecard


def as_text(card: Scorecard, detail: str, top: int) -> str:
    """The tables that were asked for, `top` rows of each; an empty text for none."""
    details = list(DETAILS) if detail == "all" else [d for d in DETAILS if d == detail]
    out = Console(file=io.StringIO(), width=160, highlight=False)
    if "marginals" in details:
        frame = card.mgd.frame()
        _print(out, f"MGD: {min(top, len(frame))} of {len(frame)} marginals, the worst first", frame.head(top))
    for dive in card.dives:
        for name in details:
            if name == "marginals":
                continue
            for title, frame in dive.frames(name).items():
                shown = frame.sort_values("cost", ascending=False) if title == "slices" else frame
                shown = shown if title == "attributes" else shown.head(top)
                _print(out, f"{dive.label} (AEMC {dive.aemc:.4g}): {title}", shown)
    ncript = card.outcomes.get("ncript")
    if detail == "all" and ncript is not None and ncript.score is not None:
        result = ncript.result
        _print(out, "N-CRiPT: the record types that cause most of the loss", result.types.head(top))
        for name in [course["segment"] for course in result.courses()]:
            _print(out, f"N-CRiPT: the losses of {name} over time", result.deep_dive(name).drop(columns="segment"))
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


def _print(out: Console, title: str, frame: pd.DataFrame) -> None:
    if frame.empty:
        return
    out.print(title, soft_wrap=True)
    table = Table(*map(str, frame.columns), box=None, header_style="bold")
    for row in frame.itertuples(index=False):
        table.add_row(*map(_shown, row))
    out.print(table)
    out.print()


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
