"""Table 2 and Figures 1 to 3 of the N-CRiPT paper for the noisy maps of an experiment. NOT private."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evaluation.cube import cubes_from_arrays
from evaluation.papers.ncript.combined_loss import ncript
from evaluation.papers.ncript.ncript_rows import heavy_hitters, jsd
from evaluation.score import BANNER
from mechanisms.public.arrays import Floats
from mechanisms.public.errors import UserError
from mechanisms.public.files import Json, JsonDict, write_whole
from mechanisms.public.text_table import markdown
from pipeline.experiments.experiment_settings import save, write_rows
from pipeline.experiments.gallery.published import Beside, shown

#: The losses of Table 2, and of Figure 2 (the source leaves the horizontal correlation out for its cost).
LOSSES = ("JSD", "BP", "JD", "HH", "HC", "VC", "Total")
PANELS = ("JSD", "BP", "JD", "HH", "HC", "VC")
#: Figure 3: Δ and h, and bins of the loss.
DELTAS, H, BINS = (0.1, 0.2, 0.4), 0.01, 20
#: The example of 2.2.3 (Figure 1): E1 to E5 of 1000 records, with k, Δ and h; what it prints as JSD and penalty.
EXAMPLE = {"H": (400, 150, 150, 150, 150), "H'": (1000, 0, 0, 0, 0), "H~": (0, 250, 250, 250, 250)}
EXAMPLE_K, EXAMPLE_DELTA, EXAMPLE_H = 250, 0.2, 0.2
EXAMPLE_SAYS = {"H'": (0.46, 0.0), "H~": (0.16, 1.0)}


@dataclass(frozen=True)
class Table2:
    """What Table 2 is to show.

    Attributes:
        printed: its rows: place (a number from 1 on), time (likewise), epsilon, and the LOSSES.
        names: of the places of the map.
    """

    printed: Sequence[Json]
    names: Sequence[str]

    def __post_init__(self) -> None:
        fields = {"place", "time", "epsilon", *LOSSES}
        for row in self.printed:
            numbers = all(isinstance(v, int | float) for v in row.values())
            if set(row) != fields or not numbers or row["place"] < 1 or row["time"] < 1:
                fix = f"rows with the fields {', '.join(sorted(fields))}, all numbers"
                raise UserError(f"got {dict(row)}", where="experiment.table2", fix=fix)


def facts_of(truth: Floats, noisy: Floats, table: Table2) -> JsonDict:
    """All that table and figures need of one noisy map, as JSON values.

    Args:
        truth, noisy: times × places × types, in records.
    """
    result = ncript(cubes_from_arrays(truth, np.round(noisy)))
    losses = result.losses
    places = {(int(row["place"]), int(row["time"])) for row in table.printed}
    rows = [
        {"place": place, "time": time, **{n: float(v[time - 1, place - 1]) for n, v in losses.items()}}
        for place, time in sorted(places)
        if place <= truth.shape[1] and time <= truth.shape[0]
    ]
    spread = {}
    for delta in DELTAS:
        values = heavy_hitters(truth, np.round(noisy), delta=delta, h=H)
        spread[f"{delta:g}"] = np.histogram(values, bins=BINS, range=(0.0, 1.0))[0].tolist()
    sums = {name: losses[name].sum(axis=0).tolist() for name in PANELS}
    order = float(result.order[-1])
    return {
        "table2": rows,
        "sums": sums,
        "heavy_hitters": spread,
        "whole_year_and_area": result.heavy_whole,
        "order_of_frequent_types": None if np.isnan(order) else order,
        "types": result.types.head(10).to_dict(orient="records"),
    }


def write_figures(maps: Mapping[float, Json], table: Table2, inside: Path, title: str) -> None:
    """Table 2 and the three figures, each with its numbers.

    Args:
        maps: ε → as of `facts_of`.
    """
    write_whole(inside / "table2.md", _table2(maps, table, title), mode=0o600)
    write_rows(
        inside / "table2.csv",
        ("epsilon", "place", "name", "time", *LOSSES, *(f"source_{n}" for n in LOSSES)),
        table2_rows(maps, table),
    )
    with matplotlib.rc_context({"svg.hashsalt": "ncript", "font.size": 9, "axes.spines.top": False}):
        _figure1(inside)
        _figure2(maps, table, inside, title)
        _figure3(maps, inside, title)


def table2_rows(maps: Mapping[float, Json], table: Table2) -> list[list[Any]]:
    """Every place and time of Table 2 at every ε, and what is printed for it."""
    printed = {(float(r["epsilon"]), int(r["place"]), int(r["time"])): r for r in table.printed}
    rows: list[list[Any]] = []
    for epsilon, facts in sorted(maps.items(), reverse=True):
        for row in facts["table2"]:
            says = printed.get((epsilon, row["place"], row["time"]), {})
            name = table.names[row["place"] - 1]
            rows.append(
                [epsilon, row["place"], name, row["time"], *(row[n] for n in LOSSES), *(says.get(n) for n in LOSSES)]
            )
    return rows


def beside_table2(maps: Mapping[float, Json], table: Table2) -> tuple[Beside, ...]:
    """Each printed cell of Table 2 beside ours, at the place of the same number."""
    pairs = []
    for epsilon, place, name, time, *values in table2_rows(maps, table):
        for loss, ours, says in zip(LOSSES, values, values[len(LOSSES) :], strict=False):
            label = f"{loss} of place {place} ({name}) in month {time}, ε = {epsilon:g}"
            pairs += [] if says is None else [Beside(label, ours, says, f"Table 2, {place}, month {time}")]
    return tuple(pairs)


def _table2(maps: Mapping[float, Json], table: Table2, title: str) -> str:
    """Neighbourhood × month, each loss as ours and as the source prints it."""
    rows = []
    for epsilon, place, name, time, *values in table2_rows(maps, table):
        ours, says = values[: len(LOSSES)], values[len(LOSSES) :]
        cells = [f"{shown(a)} ({shown(b)})" for a, b in zip(ours, says, strict=True)]
        rows.append([f"{epsilon:g}", f"{place} ({name})", str(time), *cells])
    lines = [f"# {title}: Table 2", "", f"**{BANNER}**", "", "Each loss as we get it (as the source prints it)."]
    return "\n".join([*lines, "", *markdown(("ε", "Neighborhood", "Month", *LOSSES), rows)]) + "\n"


def _figure1(inside: Path) -> None:
    """The histograms of the example, and what the definitions say of them. No data was read."""
    truth = np.array(EXAMPLE["H"])
    rows: list[list[Any]] = []
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    for i, (name, counts) in enumerate(EXAMPLE.items()):
        axes = figure.add_subplot(1, 3, i + 1)
        axes.bar([f"E{j + 1}" for j in range(5)], [c / 1000 for c in counts], color="#0072b2")
        axes.set_ylim(0, 1.02)
        noisy = np.array(counts)
        penalty = float(heavy_hitters(truth, noisy, k=EXAMPLE_K / sum(EXAMPLE["H"]), delta=EXAMPLE_DELTA, h=EXAMPLE_H))
        distance = float(jsd(truth, noisy))
        says = EXAMPLE_SAYS.get(name, (None, None))
        rows.append([name, *(c / 1000 for c in counts), distance, says[0], penalty, says[1]])
        words = (
            "the truth" if name == "H" else f"JSD {distance:.3f} (source: {says[0]:g}), HH {penalty:g} ({says[1]:g})"
        )
        axes.set_title(f"{name}: {words}", fontsize=9)
    heads = ("histogram", *(f"E{j + 1}" for j in range(5)), "jsd", "source_jsd", "hh", "source_hh")
    write_rows(inside / "figure1.csv", heads, rows)
    save(figure, inside, "figure1")


def _figure2(maps: Mapping[float, Json], table: Table2, inside: Path, title: str) -> None:
    """The sum of each loss over the times, place by place, poor and moderate quality in two colours."""
    rows = [
        [epsilon, i + 1, name, *(facts["sums"][n][i] for n in PANELS)]
        for epsilon, facts in sorted(maps.items())
        for i, name in enumerate(table.names)
    ]
    write_rows(inside / "figure2.csv", ("epsilon", "place", "name", *PANELS), rows)
    figure = Figure(figsize=(12, 6.4), layout="constrained")
    for i, name in enumerate(PANELS):
        axes = figure.add_subplot(2, 3, i + 1)
        for (epsilon, facts), colour in zip(
            sorted(maps.items()), ("#d55e00", "#0072b2", "#009e73", "#555555"), strict=False
        ):
            values = facts["sums"][name]
            axes.plot(range(1, len(values) + 1), values, ".", color=colour, markersize=4, label=f"ε = {epsilon:g}")
        axes.set_title(name, fontsize=9)
        axes.set_xlabel("neighbourhood")
        axes.set_ylabel("sum over the months")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7, frameon=False)
    figure.suptitle(f"{title}. NOT private.", fontsize=10)
    save(figure, inside, "figure2")


def _figure3(maps: Mapping[float, Json], inside: Path, title: str) -> None:
    """How the heavy hitters' penalty of the poorest map is spread for three Δ."""
    epsilon, facts = min(maps.items())
    edges = np.linspace(0, 1, BINS + 1)
    spread: Mapping[str, Sequence[int]] = facts["heavy_hitters"]
    rows = [
        [delta, *pair, count]
        for delta, counts in spread.items()
        for *pair, count in zip(edges, edges[1:], counts, strict=False)
    ]
    write_rows(inside / "figure3.csv", ("delta", "from", "to", "rows"), rows)
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    axes: Axes | None = None
    for i, (delta, counts) in enumerate(spread.items()):
        axes = figure.add_subplot(1, len(spread), i + 1, sharey=axes)
        axes.bar(edges[:-1], counts, width=1 / BINS, align="edge", color="#0072b2")
        axes.set_title(f"Δ = {delta}", fontsize=9)
        axes.set_xlabel(f"HH of a neighbourhood and month, h = {H:g}")
    figure.suptitle(f"{title}, ε = {epsilon:g}. NOT private.", fontsize=10)
    save(figure, inside, "figure3")
