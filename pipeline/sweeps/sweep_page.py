"""One page about one or several sweeps: curves over ε, the best method, error against time. NOT private."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from mechanisms.public.errors import UserError, did_you_mean
from mechanisms.public.files import write_whole
from pipeline.folders import not_in_release
from pipeline.sweeps.figures import curves, tradeoff
from pipeline.sweeps.results import choice_warning, total

STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:#222}
table{border-collapse:collapse;margin:1rem 0}td,th{padding:.2rem .7rem;text-align:right;border-bottom:1px solid #ddd}
td:first-child,th:first-child{text-align:left}.banner{background:#fff3cd;border:1px solid #e0c060;padding:.6rem 1rem}
.failed{color:#a00}svg{max-width:100%;height:auto}"""


def render(folders: Sequence[Path], output: Path | None = None, *, metric: str | None = None) -> Path:
    """The page of one or several sweeps, from their results.parquet; returns its path.

    Args:
        output: where it goes; by default sweep.html (of several: sweeps.html) in the first one's internal/. A name that
            ends in .svg gets the curves over ε alone.
        metric: the curves and tables of scores show only this one; what was spent and what failed is that of all jobs.
    Raises:
        UserError: a folder without results; no curves of that metric; a place in a release.
    """
    insides = [_inside(folder) for folder in folders]
    page = output or insides[0] / ("sweep.html" if len(folders) == 1 else "sweeps.html")
    not_in_release(page, "output")
    frames = [pd.read_parquet(inside / "results.parquet") for inside in insides]
    if len(frames) > 1:
        names = [folder.resolve().name for folder in folders]
        names = names if len(set(names)) == len(names) else [str(folder) for folder in folders]
        frames = [f.assign(job=f"{n}: " + f["job"].astype(str)) for f, n in zip(frames, names, strict=True)]
    frame = pd.concat(frames, ignore_index=True)
    names = list(dict.fromkeys(frame["metric"].dropna()))
    shown = frame if metric is None else frame[frame["metric"] == _named(metric, names)]
    drawn = _drawing(shown) if page.suffix == ".svg" else _page(frame, shown, [str(f) for f in folders])
    write_whole(page, drawn, mode=0o600)
    return page


def _named(metric: str, names: Sequence[str]) -> str:
    """A metric of the results by its name in any case, or by that of the setting."""
    known = {n.lower(): n for n in names}
    found = known.get(metric.lower(), known.get(f"2-way {metric.lower()}"))
    if found is None:
        fix = f"{did_you_mean(metric, names)} one of: {', '.join(names)}".strip()
        raise UserError(f"no scores of {metric!r} in this sweep", where="metric", fix=fix)
    return found


def _drawing(frame: pd.DataFrame) -> str:
    """The curves over ε as an SVG file."""
    scored = frame[frame["score"].notna() & frame["epsilon"].notna()]
    if scored.empty:
        raise UserError("no scores over ε in this sweep", where="output", fix="a page: output=sweep.html")
    return curves(scored) + "\n"


def _inside(folder: Path) -> Path:
    for part in (folder / "internal", folder):
        if (part / "results.parquet").is_file():
            return part
    fix = "the folder of a finished sweep: hydra.sweep.dir of run -m"
    raise UserError(f"no results of a sweep in {folder}", where="report", fix=fix)


def best_methods(frame: pd.DataFrame) -> pd.DataFrame:
    """Per data, metric and ε: the method with the best median over its seeds, and how far the next one is."""
    scored = frame[frame["score"].notna() & frame["epsilon"].notna() & frame["method"].notna()]
    rows = []
    for (data, metric, epsilon), group in scored.groupby(["data", "metric", "epsilon"], sort=False):
        medians = group.groupby("method")["score"].median()
        ordered = medians.sort_values(ascending=group["goal"].iloc[0] != "high")
        row = {"data": data, "metric": metric, "ε": epsilon, "best": ordered.index[0], "score": ordered.iloc[0]}
        second = (ordered.index[1], ordered.iloc[1]) if len(ordered) > 1 else ("", math.nan)
        rows.append({**row, "next": second[0], "its score": second[1], "runs": len(group)})
    return pd.DataFrame(rows)


def _page(frame: pd.DataFrame, shown: pd.DataFrame, folders: Sequence[str]) -> str:
    """The page of all jobs, with the scores that are shown."""
    scored = shown[shown["score"].notna()]
    over_epsilon = scored[scored["epsilon"].notna()]
    parts = ["<h1>Sweep</h1>", f"<p>{html.escape(', '.join(folders))}</p>"]
    parts.append(
        f'<p class="banner">These numbers were computed from raw rows. They are NOT private: do not publish them. '
        f"{html.escape(total(frame))}.</p>"
    )
    if warning := choice_warning(frame):
        parts.append(f'<p class="banner">{html.escape(warning[0].upper() + warning[1:])}.</p>')
    if not over_epsilon.empty:
        parts += [
            "<h2>Scores over ε</h2>",
            "<p>Lines: medians; bands: from the smallest to the largest over seeds.</p>",
        ]
        parts += [curves(over_epsilon)]
        best = best_methods(shown)
        parts += ["<h2>Best method</h2>", _table(best)]
        parts += ["<h2>Error against time</h2>", tradeoff(over_epsilon)]
    elif not scored.empty:
        parts += ["<h2>Scores</h2>", _table(scored[["job", "metric", "score", "floor"]])]
    jobs = frame.drop_duplicates("job")
    withheld = jobs[jobs["status"] == "withheld"]
    if len(withheld):
        names = html.escape(", ".join(map(str, withheld["job"])))
        parts.append(f"<p>{len(withheld)} of {len(jobs)} releases were not accepted, and are withheld: {names}.</p>")
    failed = jobs[jobs["status"] == "failed"]
    if len(failed):
        parts.append(f"<h2>{len(failed)} of {len(jobs)} jobs failed</h2><ul>")
        parts += [
            f'<li class="failed">{html.escape(str(j))}: {html.escape(str(e))}</li>'
            for j, e in zip(failed["job"], failed["error"], strict=True)
        ]
        parts.append("</ul>")
    parts += ["<h2>Jobs</h2>", _table(_jobs(frame, shown))]
    body = "\n".join(parts)
    head = f'<meta charset="utf-8"><title>Sweep (NOT private)</title><style>{STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n{body}\n</body></html>\n'


def _jobs(frame: pd.DataFrame, shown: pd.DataFrame) -> pd.DataFrame:
    """A line per job: its scores, its time and its memory."""
    jobs = frame.drop_duplicates("job").set_index("job")[["status", "seconds", "memory_mb"]]
    scored = shown[shown["metric"].notna()]
    if scored.empty:
        return jobs.reset_index()
    wide = scored.pivot_table(index="job", columns="metric", values="score", sort=False)
    return jobs.join(wide).reset_index()


def _table(frame: pd.DataFrame) -> str:
    heads = "".join(f"<th>{html.escape(str(c))}</th>" for c in frame.columns)
    lines = [f"<tr>{''.join(f'<td>{html.escape(_cell(v))}</td>' for v in row)}</tr>" for row in frame.to_numpy()]
    return f"<table><tr>{heads}</tr>{''.join(lines)}</table>"


def _cell(value: object) -> str:
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"
    return str(value)
