"""Numbers that only the report needs: signal beside noise of each released answer, and what a bound C loses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mechanisms.public.domain import Clique
from mechanisms.public.noise_kinds import NOISE_KINDS
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements
from synthesis.consistency.total import estimate_total

#: Bounds C that the report compares, besides that of the run.
BOUNDS = (1, 2, 3, 5, 10, 20, 50, 100)
#: Up to so many records of a unit, each number has a bar of its own; then one for each doubling.
SINGLE = 24


@dataclass(frozen=True)
class SignalToNoise:
    """A released answer beside its noise.

    Attributes:
        clique: the marginal's columns.
        cells: how many counts were asked for.
        merged: whether cells of the marginal were asked for together.
        stddev: of the noise of a count, in records.
        mean: count of a cell, in records; negative ones count as 0.
        above: share of the counts above two standard deviations.
    """

    clique: Clique
    cells: int
    merged: bool
    stddev: float
    mean: float
    above: float


def signal_to_noise(measurements: Measurements) -> list[SignalToNoise]:
    """Every answer of a release, the weakest first; computed from the release alone."""
    rows = []
    for answer in measurements.answers:
        values, stddev = answer.values, answer.stddev
        mean = float(np.clip(values, 0, None).mean()) if values.size else 0.0
        above = float((values > 2 * stddev).mean()) if values.size else 0.0
        merged = not isinstance(answer.query, Identity)
        rows.append(SignalToNoise(answer.clique, answer.query.columns, merged, stddev, mean, above))
    return sorted(rows, key=lambda r: r.above)


def said_drowned(measurements: Measurements) -> list[str]:
    """A sentence where half of the answers or more tell next to nothing; computed from the release alone.

    An answer drowns where its expected Σ |noise| is at least twice the noisy number of records: more than two tables
    without anything in common are apart. `plan` counts the same with `plan.rows`.
    """
    answers, total = measurements.answers, estimate_total(measurements)
    lost = [a for a in answers if a.query.rows * NOISE_KINDS[a.noise].mean_abs * a.scale >= 2 * total]
    if not answers or 2 * len(lost) < len(answers):
        return []
    about = f"about {round(total):,} records by the noisy answers"
    return [
        f"noise drowns {len(lost)} of the {len(answers)} marginals measured (expected Σ |noise| at least twice the "
        f"{about}): the synthetic table shows little but noise there. A larger privacy.epsilon, fewer marginals "
        f"(selection=oneway) or coarser bins; plan plan.rows={max(round(total), 1)} tells before anything is spent"
    ]


@dataclass(frozen=True)
class BoundLoss:
    """What a bound C loses: shares of the records' weight, and of the units that have more."""

    bound: int
    weight: float
    units: float


def losses_of_bounds(sizes: Sequence[tuple[int, int]], own: int) -> list[BoundLoss]:
    """What each of BOUNDS, and the run's own, loses.

    Args:
        sizes: (records of a unit, units with so many). Exact: NOT private.
    """
    records, units = sum(n * k for n, k in sizes), sum(k for _, k in sizes)
    return [
        BoundLoss(
            bound,
            1 - sum(min(n, bound) * k for n, k in sizes) / max(records, 1),
            sum(k for n, k in sizes if n > bound) / max(units, 1),
        )
        for bound in sorted({*BOUNDS, own})
    ]


def size_bars(sizes: Sequence[tuple[int, int]]) -> dict[str, float]:
    """The name of a bar → units: one bar per number of records up to SINGLE, then one for each doubling."""
    heights: dict[str, float] = {}
    for n, units in sizes:
        first = SINGLE + 1
        name = str(n) if n <= SINGLE else f"{first * 2 ** int(np.log2(n / first))}+"
        heights[name] = heights.get(name, 0.0) + units
    return heights
