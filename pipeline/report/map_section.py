"""The map: the score of every place at every time, on coordinates or areas where they are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from pipeline.report.page import Section, card, table
from pipeline.report.svg import areas, dots, heat

#: Places in the matrix, the worst ones.
WORST = 24
#: Times drawn as small maps.
TIMES = 24


def map_section(found: Mapping[str, Any]) -> Section:
    """Temporal scores per segment: the mean of each place, a small map per time, and the worst places as a matrix."""
    losses: Sequence[Sequence[float]] = found["losses"]
    means = [sum(line) / max(len(line), 1) for line in losses]
    known = [v for line in losses for v in line]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    text = (
        f"<p>{escape(found['score'])} of each {escape(found['segment'])} and {escape(found['time'])}: 0 is perfect; "
        f"here from {low:.3g} (pale) to {high:.3g} (strong).</p>"
    )
    names = found["segments"]
    if found.get("areas") or any(v is not None for v in found["x"]):
        text += _drawn(found, losses, means, low, high)
    order = sorted(range(len(names)), key=lambda i: -means[i])
    worst = [i for i in order if found["records"][i] != 0][:WORST]
    matrix = [[losses[i][t] for t in range(len(found["times"]))] for i in worst]
    picture = heat([names[i] for i in worst], found["times"], matrix, high=high, low=low, said="Worst places over time")
    text += f'<h3>The worst places</h3><div class="scroll card">{picture}</div>'
    rows = [(names[i], found["records"][i], means[i]) for i in worst[:10]]
    return Section("map", "Places over time", text + table((found["segment"], "records", "mean score"), rows))


def _drawn(
    found: Mapping[str, Any], losses: Sequence[Sequence[float]], means: Sequence[float], low: float, high: float
) -> str:
    names, times, rings = found["segments"], found["times"], found.get("areas")

    def drawn(values: Sequence[float], low: float, high: float, size: int, *, titles: bool, label: str) -> str:
        shared: dict[str, Any] = {"low": low, "high": high, "size": size, "titles": titles, "label": label}
        if rings:
            return areas(rings, values, names, **shared)
        return dots(found["x"], found["y"], values, names, **shared)

    spread = (min(means), max(means))
    whole = drawn(means, *spread, 420, titles=True, label="Mean score of each place")
    note = f"from {spread[0]:.3g} (pale) to {spread[1]:.3g} (strong)"
    out = card("All times", f'<div class="fit">{whole}</div>', note)
    small = []
    for t, time in enumerate(times[:TIMES]):
        column = [line[t] for line in losses]
        picture = drawn(column, low, high, 150, titles=False, label=f"Scores of {time}")
        small.append(f"<figure>{picture}<figcaption>{escape(time.split(' to ')[0])}</figcaption></figure>")
    return f'<div class="side">{out}<div class="small">{"".join(small)}</div></div>'
