"""The sections about how good the table is: scores beside their floors, columns, pairs, MGD, the map, distances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from pipeline.report.page import Section, card, legend, number, table
from pipeline.report.svg import bars, curves, heat

#: Columns that a matrix shows; a wider one is cut to those with the largest values.
MOST = 36


def scores_section(scores: Mapping[str, Any]) -> Section:
    """Every metric: score, floor, where it lies between the worst and the perfect, and why one has none."""
    rows, failed = [], []
    for name, m in scores["metrics"].items():
        if m["score"] is None:
            failed.append((f"{m['title']} ({name})", m.get("reason", "")))
            continue
        floor = (m.get("floor") or {}).get("value")
        goal = f"{'0' if m['perfect'] == 0 else number(m['perfect'])} is perfect"
        rows.append((m["title"], m["score"], floor, m.get("as_good_as", ""), goal, _gauge(m, floor), m["source"]))
    head: tuple[str, ...] = ("metric", "score", "floor", "reads as", "goal", "worst to perfect", "source")
    body = table(head, rows, html=(5,))
    if not any(r[2] is not None for r in rows):
        head = tuple(h for i, h in enumerate(head) if i not in (2, 3))
        body = table(head, [tuple(v for i, v in enumerate(r) if i not in (2, 3)) for r in rows], html=(3,))
        body += (
            '<p class="soft">evaluation.references=true measures the floor of each score (what two samples of the real '
            "table score against each other), independent columns and the ladder of subsamples.</p>"
        )
    body = f'<div class="wide">{body}</div>'
    body += _unplaced(scores.get("unplaced", {}))
    if failed:
        body += f"<h3>Not computed</h3>{table(('metric', 'why'), failed)}"
    return Section("scores", "Scores", body)


def _unplaced(tables: Mapping[str, Any]) -> str:
    """The values that the schema has no place for: how many, and the most frequent ones."""
    rows = []
    for name, said in tables.items():
        for column, values in said.get("values", {}).items():
            count = said["outside"].get(column, 0) + said["no_value"].get(column, 0)
            rows.append((name, column, count, ", ".join(f"{v or '(empty)'}: {n:,}" for v, n in values.items())))
    if not rows:
        return ""
    told = (
        "<h3>Values outside the schema</h3><p>Nothing is clipped: in each column they are a cell of their own, or "
        "<i>other</i> where the schema declares it for them.</p>"
    )
    return told + table(("table", "column", "values", "the most frequent"), rows)


def _gauge(m: Mapping[str, Any], floor: float | None) -> str:
    """The place of a score between the worst and the perfect one; a mark where the floor lies."""
    low, high = m["range"]
    if low is None or high is None or m["perfect"] not in (low, high):
        return ""

    def place(value: float) -> float:
        share = (value - low) / (high - low)
        return 100.0 * float(min(max(share if m["perfect"] == high else 1 - share, 0.0), 1.0))

    mark = "" if floor is None else f'<u style="left:{place(floor):.1f}%"></u>'
    return f'<div class="gauge"><i style="width:{place(m["score"]):.1f}%"></i>{mark}</div>'


def columns_section(columns: Sequence[Mapping[str, Any]]) -> Section:
    """The distribution of every column in both tables, the worst first."""
    ordered = sorted(columns, key=lambda c: -(c["tvd"] or 0.0))
    cards = []
    for column in ordered:
        distance = "no records" if column["tvd"] is None else f"{column['tvd']:.3f}"
        note = f"{column['kind']}, {column['values']:,} values; total variation distance {distance}"
        picture = bars(column["labels"], column["real"], column["synthetic"])
        cards.append(card(column["name"], f'<div class="fit">{picture}</div>', note))
    text = "<p>Shares of records, the column with the largest distance first. Many values are drawn together.</p>"
    return Section(
        "columns", "Distributions of the columns", text + legend() + f'<div class="grid">{"".join(cards)}</div>'
    )


def pairs_section(pairs: Mapping[str, Any]) -> Section:
    """The distance of every pair of columns, and of every column on the diagonal."""
    names, values = _cut(pairs["names"], pairs["tvd"])
    high = max((v for line in values for v in line if v is not None), default=1.0)
    picture = heat(names, names, values, high=high, said="Total variation distance of pairs of columns")
    cut = "" if len(names) == len(pairs["names"]) else f" The {len(names)} worst of {len(pairs['names'])} columns."
    text = (
        f"<p>Total variation distance of every pair of columns; single columns on the diagonal. 0 is perfect.{cut}</p>"
    )
    return Section("pairs", "Errors of pairs", f'{text}<div class="scroll card">{picture}</div>')


def _cut(names: Sequence[str], matrix: Sequence[Sequence[float | None]]) -> tuple[list[str], list[list[float | None]]]:
    worst = sorted(range(len(names)), key=lambda i: -sum(v or 0.0 for v in matrix[i]))[:MOST]
    kept = sorted(worst)
    return [names[i] for i in kept], [[matrix[i][j] for j in kept] for i in kept]


def correlation_section(found: Mapping[str, Any]) -> Section:
    """How strong the dependence of every two columns is, in both tables, and how far they are apart."""
    said = {"real": "Real", "synthetic": "Synthetic", "difference": "Absolute difference"}
    cards = []
    for kind, title in said.items():
        names, values = _cut(found["names"], [[None if v is None else abs(v) for v in line] for line in found[kind]])
        picture = heat(names, names, values, high=1.0, cell=34, said=f"{title} correlations")
        cards.append(f'<div class="card"><h3>{title}</h3><div class="scroll">{picture}</div></div>')
    text = "<p>Pearson's |r| of two ordered columns, Cramér's V of any other two: 0 is independent, 1 determined.</p>"
    return Section("correlation", "Correlations", f'{text}<div class="side">{"".join(cards)}</div>')


def mgd_section(scores: Mapping[str, Any]) -> Section:
    """The worst marginals, and what their cost is made of."""
    marginals = sorted(scores["mgd"]["marginals"], key=lambda m: -(m["aemc"] or 0.0))
    rows = [(" × ".join(m["attributes"]), m["cells"], m["aemc"], m["weight"]) for m in marginals[:12]]
    body = (
        "<p>MGD is the mean cost, per true record, of turning the synthetic table's marginals into the real ones by "
        "moving, adding and removing records. These marginals cost most:</p>"
    )
    body += table(("marginal", "cells", "cost", "weight"), rows)
    for dive in scores.get("deep_dive", []):
        body += f'<div class="card" style="margin-top:1rem"><h3>{escape(dive["marginal"])}</h3>{_dive(dive)}</div>'
    return Section("mgd", "Inside MGD", body)


def _dive(dive: Mapping[str, Any]) -> str:
    if dive["aemc"] is None:
        return "<p>no true records</p>"
    parts = [(a["part"], a["cost"], f"{a['share']:.0%}") for a in dive["attributes"] if a["cost"]]
    slices = sorted(dive["slices"], key=lambda s: -s["cost"])[:8]
    lines = [
        (f"{s['attribute']} = {s['value']}", round(s["real"]), round(s["synthetic"]), s["cost"], f"{s['share']:.0%}")
        for s in slices
        if s["cost"]
    ]
    known = ("real", "synthetic", "added", "removed", "moved_out", "moved_in", "cost", "share")
    cells = [
        (
            ", ".join(str(v) for k, v in b.items() if k not in known),
            *(round(b[k]) for k in known[:6]),
            f"{b['share']:.1%}",
        )
        for b in dive["bins"][:8]
    ]
    head = ("cell", "real", "synthetic", "added", "removed", "moved out", "moved in", "share")
    return (
        f'<p class="soft">cost {number(dive["aemc"])} per true record</p>'
        + table(("part", "cost", "share"), parts)
        + f"<h3>Values that cost most</h3>{table(('value', 'real', 'synthetic', 'cost', 'share'), lines)}"
        + f"<details><summary>Cells that cost most</summary>{table(head, cells)}</details>"
    )


def distances_section(found: Mapping[str, Any]) -> Section:
    """DCR and NNDR of synthetic and of holdout records against the training records."""
    verdict = {
        True: "The synthetic records are not systematically nearer to the training records than unseen real ones are.",
        False: "The synthetic records ARE systematically nearer to the training records than unseen real ones.",
        None: "Without a holdout there is no verdict (evaluation.holdout=0.2, or holdout=TABLE).",
    }[found.get("passed")]
    titles = {"dcr": "Distance to the closest record", "nndr": "Nearest over second nearest"}
    cards = []
    for name, title in titles.items():
        if name not in found:
            continue
        curve = found[name]
        picture = curves(curve["quantile"], curve["holdout"], curve["synthetic"], label=title)
        note = f"in columns that differ, of {found['columns']}" if name == "dcr" else "1: neither stands out"
        cards.append(card(title, f'<div class="fit">{picture}</div>', f"{note}; quantiles over the records"))
    text = f"<p>{verdict} The whole line is the holdout, the dashed one the synthetic table.</p>"
    return Section("distances", "Distances to the training records", f'{text}<div class="grid">{"".join(cards)}</div>')
