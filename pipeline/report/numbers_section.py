"""The table that people look at first: numbers and dates of both tables, side by side, in all and by group."""

from __future__ import annotations

from collections.abc import Sequence

from mechanisms.public.json_values import Json
from mechanisms.public.text_table import lined_up
from pipeline.report.page import Section, Table, number

FIGURES = ("values", "missing", "mean", "std. dev.", "1 %", "25 %", "50 %", "75 %", "99 %")
HEAD = ("column", "table", *FIGURES)
GROUP_HEAD = ("column", "group", "table", *FIGURES)
NOISE = "± noise"
#: Columns that a page lists; all are in scores.json.
LISTED = 150


def numbers_section(numbers: Sequence[Json], groups: Sequence[Json] = ()) -> Section:
    """From the parts `numbers` and `groups` of scores.json."""
    by = dict.fromkeys(each["by"] for each in groups)
    listed_groups = {name: [e for e in groups if e["by"] == name][: 2 * LISTED] for name in by}
    parts = [(name, Table(GROUP_HEAD, _rows(own, "column", "group"))) for name, own in listed_groups.items()]
    listed = min(len(numbers), LISTED)
    shown = {
        "summaries": Table(HEAD, _rows(numbers[:LISTED], "column")),
        "groups": parts,
        "beyond": beyond_bounds(numbers),
    }
    return Section("numbers", "Numbers and dates", shown | {"listed": listed, "columns": len(numbers)})


def beyond_bounds(numbers: Sequence[Json]) -> list[str]:
    """Of which columns the real table holds values beyond the bounds, which the table shows as the bounds."""
    shares = {each["column"]: (each["real"] or {}).get("beyond") or 0.0 for each in numbers}
    return [
        f"{name}: {f'{share:.1%}' if share >= 0.001 else 'less than 0.1%'} of the real values lie beyond the schema's "
        "bounds, and count here as the bounds"
        for name, share in shares.items()
        if share
    ]


def _rows(parts: Sequence[Json], *names: str) -> list[tuple[str, ...]]:
    """Two or three rows of each part, as texts.

    Args:
        names: the keys of the first cells.
    """
    rows: list[tuple[str, ...]] = []
    for each in parts:
        first = tuple(str(each[name]) for name in names)
        rows += [(*first, side, *_figures(each[side])) for side in ("real", "synthetic") if each[side] is not None]
        if (mean := each["mean_standard_error"]) is not None:
            quantiles = each.get("quantile_standard_errors") or [None] * 5
            rows.append((*first, NOISE, "", "", number(mean), "", *map(number, quantiles)))
    return rows


def _figures(own: Json) -> tuple[str, ...]:
    missing = "" if own["missing"] is None else f"{own['missing']:.1%}"
    return (f"{own['count']:,}", missing, *map(number, [own["mean"], own["stddev"], *own["quantiles"]]))


def as_lines(numbers: Sequence[Json], groups: Sequence[Json] = ()) -> list[str]:
    """The same for a terminal; empty without columns of numbers."""
    lines = [*lined_up([HEAD, *_rows(numbers, "column")], left=0), *beyond_bounds(numbers)] if numbers else []
    for name in dict.fromkeys(each["by"] for each in groups):
        rows = _rows([e for e in groups if e["by"] == name], "column", "group")
        lines += [f"by {name}:", *lined_up([GROUP_HEAD, *rows], left=0)]
    return lines
