"""One page about one or several sweeps: curves over ε, the best method, error against time. NOT private."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from evaluation.metrics import METRICS
from mechanisms.public.errors import UserError, choices_fix
from mechanisms.public.files import write_whole
from pipeline.folders import PAGES, check_output, sweep_results
from pipeline.report.charts import COLOURS, Drawing, Line, add, lines, svg
from pipeline.report.page import Card, HeadCard, Page, Section, Table, chart_style
from pipeline.report.scale import ChartAxis, short
from pipeline.scores.score_files import damaged
from pipeline.sweeps.results import choice_warning, total

#: Panels in a row of a figure.
ACROSS = 3
#: Cards of best methods on top, one for each ε.
CARDS = 4
BANNER = "NOT PRIVATE. These numbers were computed from raw rows: do not publish them."


def render(folders: Sequence[Path], output: Path | None = None, metric: str | None = None) -> Path:
    """The page of one or several sweeps, from their results.parquet; returns its path.

    Args:
        output: where it goes; by default sweep.html (of several: sweeps.html) in the first one's internal/. A name that
            ends in .svg gets the curves over ε alone.
        metric: the curves and tables of scores show only this one; what was spent and what failed is that of all jobs.
    Raises:
        UserError: a folder without results; no curves of that metric; a place in a release.
    """
    files = [sweep_results(folder) or folder / "results.parquet" for folder in folders]
    page = output or files[0].parent / ("sweep.html" if len(folders) == 1 else "sweeps.html")
    if output is not None:
        check_output(output, "output", own=PAGES)
    frames = [_results(file) for file in files]
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


def _results(path: Path) -> pd.DataFrame:
    try:
        frame = pd.read_parquet(path)
    except (OSError, ValueError) as error:  # what pyarrow raises is one of them
        raise damaged(path) from error
    if missing := {"job", "status", "metric", "score", "epsilon"} - set(frame.columns):
        raise damaged(path) from KeyError(*missing)
    return frame


def _named(metric: str, names: Sequence[str]) -> str:
    """A metric of the results by its name in any case, or by that of the setting."""
    by_lower_name = {n.lower(): n for n in names}
    name = by_lower_name.get(metric.lower(), by_lower_name.get(f"2-way {metric.lower()}"))
    if name is None:
        problem = f"no scores of {metric!r} in this sweep"
        raise UserError(problem, where="metric", fix=choices_fix(metric, names))
    return name


def _drawing(frame: pd.DataFrame) -> str:
    """The curves over ε as an SVG file."""
    scored = frame[frame["score"].notna() & frame["epsilon"].notna()]
    if scored.empty:
        raise UserError("no scores over ε in this sweep", where="output", fix="a page: output=sweep.html")
    colours = method_colours(scored)
    whole = panels(curves(scored, colours), _legend(colours), across=ACROSS, label="Scores over ε")
    return whole.as_file(chart_style())


def best_methods(frame: pd.DataFrame) -> pd.DataFrame:
    """Per data, metric and ε: the best method by its median over seeds, the next one, and whether chance explains it.

    Chance can explain it if the ranges of both overlap; with one seed it is not known.
    """
    scored = frame[frame["score"].notna() & frame["epsilon"].notna() & frame["method"].notna()]
    rows = []
    for (data, metric, epsilon), group in scored.groupby(["data", "metric", "epsilon"], sort=False):
        over = group.groupby("method")["score"]
        low_is_good = group["goal"].iloc[0] != "high"
        ordered = over.median().sort_values(ascending=low_is_good)
        row = {"data": data, "metric": metric, "ε": epsilon, "best": ordered.index[0], "score": ordered.iloc[0]}
        if len(ordered) == 1:
            rows.append({**row, "next": "", "its score": math.nan, "seeds": len(group), "told apart": ""})
            continue
        first, second = (over.get_group(ordered.index[i]) for i in (0, 1))
        apart = first.max() < second.min() if low_is_good else first.min() > second.max()
        seeds = min(len(first), len(second))
        apart_in_words = "unknown: one seed" if seeds == 1 else "yes" if apart else "no: seeds overlap"
        row |= {"next": ordered.index[1], "its score": ordered.iloc[1], "seeds": seeds, "told apart": apart_in_words}
        rows.append(row)
    return pd.DataFrame(rows)


def head_cards(best: pd.DataFrame) -> list[HeadCard]:
    """Which method is best by the first metric at each ε, and how sure that is."""
    sure = {
        "yes": ("surely", "passed", "its seeds and those of the next method do not overlap"),
        "no: seeds overlap": ("unsure", "", "its seeds and those of the next method overlap: chance may explain it"),
        "unknown: one seed": ("one seed", "soft", "chance is not known: several seeds tell it (seed=1,2,3)"),
        "": ("alone", "soft", "no other method to compare with"),
    }
    rows = best[(best["metric"] == best["metric"].iloc[0]) & (best["data"] == best["data"].iloc[0])]
    metric = str(rows["metric"].iloc[0])
    title = METRICS[metric].title if metric in METRICS else metric
    cards = []
    for row in rows.head(CARDS).to_dict("records"):
        word, style, beneath = sure[row["told apart"]]
        beside = f"; next: {row['next']}, {row['its score']:.4g}" if row["next"] else ""
        words = f"{title} {row['score']:.4g}{beside}"
        cards.append(HeadCard(f"Best at ε = {row['ε']:g}", str(row["best"]), style, words, beneath, word=word))
    return cards


def table_section(name: str, title: str, table: Table, text: str = "") -> Section:
    """A table with a line above it, where there is something to say."""
    return Section(name, title, {"table": table, "text": text}, "one_table")


def _legend(colours: dict[str, str]) -> list[tuple[str, str]]:
    return [(style, method) for method, style in colours.items()]


def _page(frame: pd.DataFrame, shown: pd.DataFrame, folders: Sequence[str]) -> str:
    """The page of all jobs, with the scores that are shown."""
    warnings = [f"{text[0].upper()}{text[1:]}." for text in (total(frame), choice_warning(frame)) if text]
    scored = shown[shown["score"].notna()]
    over_epsilon = scored[scored["epsilon"].notna()]
    sections: list[Section] = []
    cards: list[HeadCard] = []
    if not over_epsilon.empty:
        colours = method_colours(over_epsilon)
        best = best_methods(shown)
        cards = head_cards(best)
        best = best if best["data"].nunique() > 1 else best.drop(columns="data")
        titled = best.assign(metric=[METRICS[m].title if m in METRICS else m for m in best["metric"]])
        sections.append(table_section("best", "Best method", _table(titled)))
        curved = {"legend": _legend(colours), "cards": curves(over_epsilon, colours)}
        curved["floors"] = bool(over_epsilon["floor"].notna().any())
        sections.append(Section("curves", "Scores over ε", curved))
        metric, chart = tradeoff(over_epsilon, colours)
        traded = {"metric": metric, "legend": _legend(colours), "chart": chart}
        sections.append(Section("tradeoff", "Error against time", traded))
    elif not scored.empty:
        sections.append(table_section("scores", "Scores", _table(scored[["job", "metric", "score", "floor"]])))
    jobs = frame.drop_duplicates("job")
    if len(failed := jobs[jobs["status"] == "failed"]):
        title = f"{len(failed)} of {len(jobs)} jobs failed"
        sections.append(table_section("failed", title, _table(failed[["job", "error"]])))
    withheld = jobs.loc[jobs["status"] == "withheld", "job"]
    names = ", ".join(map(str, withheld))
    text = f"{len(withheld)} of {len(jobs)} releases were not accepted, and are withheld: {names}." if names else ""
    sections.append(table_section("jobs", "Jobs", _table(_jobs(frame, shown)), text))
    return Page("Sweep", ", ".join(folders), sections, cards, warnings=warnings, banner=BANNER).as_html()


def _jobs(frame: pd.DataFrame, shown: pd.DataFrame) -> pd.DataFrame:
    """A line per job: its scores, its time and its memory."""
    jobs = frame.assign(method_seconds=method_seconds(frame)).drop_duplicates("job").set_index("job")
    jobs = jobs[["status", "method_seconds", "seconds", "memory_mb"]]
    scored = shown[shown["metric"].notna()]
    if scored.empty:
        return jobs.reset_index()
    wide = scored.pivot_table(index="job", columns="metric", values="score", sort=False)
    return jobs.join(wide).reset_index()


def _table(frame: pd.DataFrame) -> Table:
    """The frame; what is missing stays empty."""
    cells = frame.astype(object).where(frame.notna(), None)
    return Table([str(c) for c in cells.columns], [tuple(row) for row in cells.itertuples(index=False)])


#: The stages of a job that are its method's.
METHOD_STAGES = ("measure", "synthesize")


def method_colours(frame: pd.DataFrame) -> dict[str, str]:
    """Each method → the class of its colour, the same in all figures of a page."""
    return {str(m): f"c{i % COLOURS}" for i, m in enumerate(dict.fromkeys(frame["method"]))}


def curves(frame: pd.DataFrame, colours: dict[str, str]) -> list[Card]:
    """A picture per table and metric: the score over ε, a line per method.

    Lines are medians, error bars reach from the smallest to the largest, and the dotted line is the floor. The axis of
    scores is logarithmic where all are above 0 and 0 is the goal.
    """
    several = frame["data"].nunique() > 1
    drawn = []
    for (data, metric), group in frame.groupby(["data", "metric"], sort=False):
        shown = METRICS[str(metric)].title if metric in METRICS else str(metric)
        low = group["goal"].iloc[0] == "low"
        title, better = f"{shown} ({data})" if several else shown, f"{'lower' if low else 'higher'} is better"
        drawn.append(Card(title, _curve(group, colours, f"{title} over ε, {better}", low=low), better))
    return drawn


def _curve(group: pd.DataFrame, colours: dict[str, str], label: str, *, low: bool) -> Drawing:
    floor = float(group["floor"].median()) if group["floor"].notna().any() else None
    scores = [*group["score"], *([] if floor is None else [floor])]
    x = ChartAxis.logarithmic_over((), "ε", ticks=sorted(group["epsilon"].unique()))
    y = ChartAxis.logarithmic_over(scores) if low and min(scores) > 0 else ChartAxis.linear(scores, ground=low)
    methods = group.groupby("method", sort=False)
    return lines(
        [_line(m, part, colours) for m, part in methods], x, y, label=label, level=floor, width=360, height=250
    )


def _line(method: object, part: pd.DataFrame, colours: dict[str, str]) -> Line:
    over = part.groupby("epsilon")["score"]
    low, middle, high = over.min(), over.median(), over.max()
    several = over.size() > 1
    errors = [e for e, some in zip(zip(middle.index, low, high, strict=True), several, strict=True) if some]
    points = list(zip(middle.index, middle, strict=True))
    return Line(colours[str(method)], str(method), points, errors=errors, marked=True)


def panels(parts: Sequence[Card], legend: Sequence[tuple[str, str]], *, across: int, label: str) -> Drawing:
    """Several pictures of one size in one, `across` in a row, below the (class, name) of every line."""
    drawings = [part.body for part in parts if isinstance(part.body, Drawing)]
    wide, tall = drawings[0].size
    width, head, title = wide * min(across, len(parts)), 8.0, 34.0
    root = svg(width, 0, label)
    x = width
    for style, name in legend:
        room = 30 + 6.5 * len(short(name, 40))
        if x + room > width:
            x, head = 10.0, head + 18
        add(add(root, "g", class_=style), "circle", class_="mark", cx=x + 4, cy=head - 8, r=4)
        add(root, "text", short(name, 40), x=x + 13, y=head - 4)
        x += room
    for i, (part, drawing) in enumerate(zip(parts, drawings, strict=True)):
        left, top = wide * (i % across), head + (tall + title) * (i // across)
        add(root, "text", short(part.title, int(wide / 6.6)), class_="t", x=left + 12, y=top + 18)
        add(root, "text", part.note, class_="s", x=left + 12, y=top + 32)
        add(root, "svg", x=left, y=top + title, width=wide, height=tall).extend(drawing.root)
    height = head + (tall + title) * math.ceil(len(parts) / across)
    root.attrib |= {"height": f"{height:g}", "viewBox": f"0 0 {width:g} {height:g}"}
    return Drawing(root)


def tradeoff(frame: pd.DataFrame, colours: dict[str, str]) -> tuple[str, Drawing]:
    """The first metric, and its scores over the seconds of the method: a mark per job with its ε, a colour per method.

    The seconds are those that measuring and synthesizing took, where the jobs say them; else those of the whole job.
    """
    metric = str(frame["metric"].iloc[0])
    chosen = frame[frame["metric"] == metric]
    chosen = chosen.assign(seconds=method_seconds(chosen))
    scores, seconds = list(chosen["score"]), list(chosen["seconds"])
    marks = [_marks(m, part, colours) for m, part in chosen.groupby("method", sort=False)]
    y = ChartAxis.logarithmic_over(scores, metric) if min(scores) > 0 else ChartAxis.linear(scores, metric)
    x = ChartAxis.logarithmic_over(seconds, "seconds")
    return metric, lines(marks, x, y, label=f"{metric} over the seconds of each method", width=440, height=320)


def method_seconds(frame: pd.DataFrame) -> pd.Series:
    """What measuring and synthesizing took in each job: reading and scores are no cost of a method."""
    stages = [f"seconds_{stage}" for stage in METHOD_STAGES if f"seconds_{stage}" in frame]
    if not stages:
        return frame["seconds"]
    own = frame[stages].sum(axis=1, min_count=1)
    return own.where(own.notna(), frame["seconds"])


def _marks(method: object, part: pd.DataFrame, colours: dict[str, str]) -> Line:
    points = list(zip(part["seconds"], part["score"], strict=True))
    notes: Sequence[str] = [f"{e:g}" for e in part["epsilon"]]
    return Line(colours[str(method)], str(method), points, joined=False, notes=notes)
