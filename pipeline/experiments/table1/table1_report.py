"""Table 1 as CSV, as readable Markdown and as JSON, with the paper's own values beside ours."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from evaluation.score import BANNER
from mechanisms.public.text_table import lined_up, markdown
from pipeline.experiments.findings import runs_in_words
from pipeline.experiments.gallery.published import SMOKE, TOO_SMALL, Beside, of_smoke
from pipeline.experiments.gallery.published import as_json as beside_json
from pipeline.experiments.repeats import mean_beside, mean_of
from pipeline.experiments.table1.claim import SCORES, Claim, check, sentence
from pipeline.experiments.table1.paper_table1 import MARGINALS, PAPER, SOURCE
from pipeline.json_types import Json, JsonDict

METHODS = {
    "dpsyn": "GUM on one- and two-way marginals",
    "lap": "Laplace on the 3-way histogram",
    "sample": "random samples",
}


@dataclass(frozen=True)
class Table1Report:
    """The findings of one experiment.

    Attributes:
        runs: the rows of each run, as of `score_row`, with dataset, method, value, promise and seconds.
        setting: data, seeds and settings.
    """

    runs: tuple[tuple[JsonDict, ...], ...]
    setting: JsonDict

    @cached_property
    def rows(self) -> tuple[JsonDict, ...]:
        """The means over the runs; promise and seconds are those of the first one."""
        return tuple(_mean(group) for group in zip(*self.runs, strict=True))

    @cached_property
    def errors(self) -> dict[str, dict[str, float]]:
        """Dataset → score of the figure → its standard error; 0 for one run."""
        scores = ("range_query", "inverse_pie", "mgd")
        errors = {}
        for group in zip(*self.runs, strict=True):
            values = {n: [r[n] for r in group] for n in scores} | {"aemc_3way": [r["aemc"]["3-way"] for r in group]}
            errors[group[0]["dataset"]] = {name: mean_of(each).error or 0.0 for name, each in values.items()}
        return errors

    @property
    def smoke(self) -> bool:
        """Whether this is the small version, whose figures say nothing about the method."""
        return bool(self.setting["smoke"])

    @property
    def claim(self) -> Claim:
        return check(self.rows)

    @property
    def claims(self) -> dict[str, Claim]:
        """On all rows, without the Laplace rows (which lie far off), and on the rows that the paper printed.

        A smoke run's rows are too few and too small to tell.
        """
        if self.smoke:
            return {"in the paper's Table 1": paper_claim()}
        without = [r for r in self.rows if r["method"] != "lap"]
        return {"here": self.claim, "here, without Laplace": check(without), "in the paper's Table 1": paper_claim()}


def _mean(group: Sequence[Any]) -> Any:
    """The mean of numbers, and of those in dictionaries of the same keys; of all else the first."""
    first = group[0]
    if isinstance(first, dict):
        same = ("promise", "seconds", "value")
        return {k: v if k in same else _mean([g[k] for g in group]) for k, v in first.items()}
    number = all(g is None or (isinstance(g, int | float) and not isinstance(g, bool)) for g in group)
    return mean_of(group).value if number else first


def paper_claim() -> Claim:
    """The same check on the values that the paper printed."""
    rows = [
        {"range_query": r.range_query, "mgd": r.mgd, "aemc": r.aemc, "inverse_pie": r.inverse_pie}
        for r in PAPER.values()
    ]
    return check(rows)


def notes(report: Table1Report) -> list[str]:
    """What a reader must know to read the table rightly."""
    setting = report.setting
    data, unit, settings = setting["data"], setting["privacy_unit"], setting["settings"]
    size = settings["sensitivity"]
    shape = " × ".join(map(str, data["shape"]))
    columns = " × ".join(data["columns"])
    lap = (
        f"here the unit is one record, whose sensitivity is 1: the noise is that of ε / {size} for one record, and "
        f"the ε of the row holds for any {size} records together (group privacy)"
        if unit == "record"
        else f"here it is enforced: at most {size} records with the same value of {unit!r} count, and ε is the unit's"
    )
    counted = "one record is the unit" if unit == "record" else f"at most {settings['max_records']} records per {unit}"
    return [
        runs_in_words([len(report.runs)]),
        f"Data: {data['name']}, {data['kind']}, {data['records']:,} records; {shape} ({columns}; a date counts as the "
        "month of the year).",
        f"dpsyn-ε: one- and two-way marginals through the pipeline, rows by {setting['synthesis']['kind']}; {counted}. "
        "What this drops is made good as for the samples: rows count so much that the totals agree (the paper's small "
        "AEMC of its truncated tables are only possible so).",
        f"lap-ε: Laplace noise of scale {size} / ε on every cell, rounded, clamped at 0. Sensitivity {size} is the "
        f"paper's figure; {lap}.",
        "sample-x: a random share x of the records, each counted 1 / x times (the paper's small AEMC of sample-0.01 is "
        "only possible with totals that agree). Not private at all.",
        "The paper's files `mediocre` and `very-poor` are the challenge's examples, which are not published: they are "
        "its baseline at ε = 4 and 0.5 (N-CRiPT 2021, 3.1.1), and their printed AEMC are those of lap-4 and lap-0.5 "
        "within 0.3 %. The data of the other rows are not ours: compare shapes, not digits.",
        f"Inv Pie = 1 − S / segments, S the pie chart score of sprint 1. RQ: mean relative error of "
        f"{setting['range_queries']} range queries on {settings['share']:.0%} of the values of each attribute (a range "
        f"of months, random subsets of the rest), seed {setting['seeds']['range queries']}; each holds a true record. "
        f"AEMC with Δ = {settings['delta']:g}; months finite, the others ∞. MGD: weights 1/9 for each 1- and 2-way "
        "marginal, 1/3 for the 3-way one.",
        "Every private row spent its own budget on the same people: published together, their ε add up.",
        *([TOO_SMALL] if report.smoke else []),
    ]


def as_csv(report: Table1Report) -> str:
    """One line per row; the paper's values of the same name in columns of their own, empty where it has none."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    ours = ["inverse_pie", "range_query", *(f"aemc_{m}" for m in MARGINALS), "mgd"]
    heads = ["dataset", "method", "value", "records", *ours, *(f"paper_{n}" for n in ours), "promise", SMOKE]
    writer.writerow(heads)
    for row in report.rows:
        paper = None if report.smoke else PAPER.get(row["dataset"])
        theirs = [""] * len(ours)
        if paper is not None:
            numbers = [paper.inverse_pie, paper.range_query, *(paper.aemc[m] for m in MARGINALS), round(paper.mgd, 4)]
            theirs = [repr(n) for n in numbers]
        mine = [row["inverse_pie"], row["range_query"], *(row["aemc"][m] for m in MARGINALS), row["mgd"]]
        facts = [row["dataset"], row["method"], f"{row['value']:g}", row["records"]]
        writer.writerow([*facts, *mine, *theirs, row["promise"], report.smoke or ""])
    return out.getvalue()


def as_markdown(report: Table1Report) -> str:
    """Our table, the paper's beside it, the check of the claim, and the notes."""
    heads = ["dataset", "records", "Inv Pie", "RQ", *MARGINALS, "MGD"]
    rows = [
        [_named(report, r), f"{r['records']:,.0f}", *map(_four, [r["inverse_pie"], r["range_query"]])]
        + [_four(r["aemc"][m]) for m in MARGINALS]
        + [_four(r["mgd"])]
        for r in report.rows
    ]
    columns = report.setting["data"]["columns"]
    names = ", ".join(f"{letter}: {name}" for letter, name in zip("MNI", columns, strict=True))
    lines = [f"# Table 1 on {report.setting['data']['name']}", "", BANNER, "", f"AEMC per marginal ({names})."]
    lines += [
        "",
        *markdown(heads, rows),
        "",
        "## Beside the paper",
        "",
        f"Paper: {SOURCE}. MGD from its AEMC columns.",
        "",
    ]
    beside = ["dataset", *(f"{n} {w}" for n in _BESIDE for w in ("we get", "source says"))]
    lines += [TOO_SMALL] if report.smoke else markdown(beside, _beside(report))
    lines += ["", "## The paper's claim", "", *(f"- {sentence(c, w)}" for w, c in report.claims.items())]
    lines += ["", "## MGD over Δ", "", *_over_delta(report)]
    lines += ["", "## Notes", "", *(f"- {n}" for n in notes(report))]
    lines += ["", "## What each row promises", "", *(f"- {r['dataset']}: {r['promise']}" for r in report.rows)]
    return "\n".join(lines) + "\n"


def _over_delta(report: Table1Report) -> list[str]:
    """MGD of each row at each tolerance, and its rank correlation with the error of range queries (section 5.1)."""
    deltas = list(report.rows[0]["mgd_over_delta"])
    rows = [[_named(report, r), *(_four(r["mgd_over_delta"][d]) for d in deltas)] for r in report.rows]
    rho = [check([{**r, "mgd": r["mgd_over_delta"][d]} for r in report.rows]).rho["mgd"] for d in deltas]
    rows.append(["Spearman with RQ" + f" ({SMOKE})" * report.smoke, *(_four(value) for value in rho)])
    return markdown(["dataset", *(f"Δ = {d}" for d in deltas)], rows)


_BESIDE = ("Inv Pie", "RQ", "3-way", "MGD")


def _beside(report: Table1Report) -> list[list[str]]:
    """Every row of either table, ours first."""
    ours = {r["dataset"]: r for r in report.rows}
    rows = []
    for name in [*ours, *(n for n in PAPER if n not in ours)]:
        row, paper = ours.get(name), PAPER.get(name)
        mine = [row["inverse_pie"], row["range_query"], row["aemc"]["3-way"], row["mgd"]] if row else [None] * 4
        theirs = [paper.inverse_pie, paper.range_query, paper.aemc["3-way"], paper.mgd] if paper else [None] * 4
        shown = [
            text
            for a, b in zip(mine, theirs, strict=True)
            for text in (_four(a) if row else "–", _four(b) if paper else "–")
        ]
        rows.append([name, *shown])
    return rows


def beside(report: Table1Report) -> tuple[Beside, ...]:
    """Three scores of every row that the paper has too, and the rank correlations, which are those of single runs."""
    return of_smoke(mean_beside([_beside_run(rows) for rows in report.runs]), report.smoke)


def _beside_run(rows: Sequence[JsonDict]) -> list[Beside]:
    pairs = []
    for name, ours in check(rows).rho.items():
        place = "from the 20 rows of Table 1; no correlation is printed"
        pairs.append(Beside(f"Spearman with RQ, {SCORES[name]}", ours, paper_claim().rho[name], place))
    for row in rows:
        paper = PAPER.get(row["dataset"])
        if paper is not None:
            for label, ours, theirs in (
                ("Inv Pie", row["inverse_pie"], paper.inverse_pie),
                ("RQ", row["range_query"], paper.range_query),
                ("MGD", row["mgd"], round(paper.mgd, 4)),
            ):
                place = "Table 1" if label != "MGD" else "Table 1, from its AEMC columns"
                pairs.append(Beside(f"{label}, {row['dataset']}", ours, theirs, f"{place}, {row['dataset']}"))
    return pairs


def as_json(report: Table1Report) -> JsonDict:
    """Everything, for programs."""
    return {
        "format": "experiment/1",
        "not_private": BANNER,
        **report.setting,
        "claims": {where: asdict(claim) for where, claim in report.claims.items()},
        "notes": notes(report),
        "rows": list(report.rows),
        "runs": [list(rows) for rows in report.runs],
        "beside": beside_json(beside(report)),
        "paper": {"source": SOURCE, "rows": {k: asdict(v) | {"mgd": round(v.mgd, 6)} for k, v in PAPER.items()}},
    }


def summary(report: Table1Report) -> str:
    """What a person reads at the end: the short table and the check of the claim."""
    heads = ("dataset", "Inv Pie", "RQ", "3-way", "MGD")
    rows = [
        (_named(report, r), *map(_four, (r["inverse_pie"], r["range_query"], r["aemc"]["3-way"], r["mgd"])))
        for r in report.rows
    ]
    notes_below = [*([TOO_SMALL] if report.smoke else []), *(sentence(c, w) for w, c in report.claims.items())]
    return "\n".join([*lined_up([heads, *rows]), "", *notes_below])


def _named(report: Table1Report, row: Json) -> str:
    """The row's name, with a mark where its figures say nothing."""
    return str(row["dataset"]) + f" ({SMOKE})" * report.smoke


def _four(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.4f}"
