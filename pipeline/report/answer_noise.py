"""Numbers that only the report needs: signal beside noise of each released answer, and what a bound C loses."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mechanisms.public.domain import Clique
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements, NoisyMarginal
from mechanisms.public.rules.fine_columns import varied_columns
from pipeline.inference.told import told as told_counts
from synthesis.consistency.residual_parts import completed
from synthesis.consistency.total import estimate_total

#: Bounds C that the report compares, besides that of the run.
BOUNDS = (1, 2, 3, 5, 10, 20, 50, 100)
#: Up to so many records of a unit, each number has a bar of its own; then one for each doubling.
SINGLE = 24
#: Columns that a sentence names; the rest is counted.
NAMED = 8
#: A column is nearly constant where one value holds so much of the records, and two standard deviations less so much.
CONSTANT, SURELY = 0.95, 0.9
#: What an empty cell's count above two standard deviations is expected to hold, in these: 0.054 of Gaussian noise, and
#: 0.08 of Laplace noise. Of ten thousand empty cells, that is as much as a small table.
ABOVE = 0.08


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
    """Every answer of a release, residuals made whole, the weakest first; computed from the release alone."""
    rows = []
    for answer in completed(measurements).answers:
        values, stddev = answer.values, answer.stddev
        mean = float(np.clip(values, 0, None).mean()) if values.size else 0.0
        above = float((values > 2 * stddev).mean()) if values.size else 0.0
        merged = not isinstance(answer.query, Identity)
        rows.append(SignalToNoise(answer.clique, answer.query.columns, merged, stddev, mean, above))
    return sorted(rows, key=lambda r: r.above)


def said_drowned(measurements: Measurements) -> list[str]:
    """A sentence where half of the marginals or more tell next to nothing; computed from the release alone.

    A marginal drowns where the expected Σ |noise| of its best answer is at least twice the noisy number of records:
    more than two tables without anything in common are apart. `plan` counts the same with `plan.rows`.
    """
    total = estimate_total(measurements)
    noise: dict[Clique, float] = {}  # of a marginal that was measured in several rounds: where it is least
    for a in completed(measurements).answers:
        own = a.query.rows * a.mean_abs
        noise[a.clique] = min(own, noise.get(a.clique, own))
    lost = [clique for clique, own in noise.items() if own >= 2 * total]
    if not noise or 2 * len(lost) < len(noise):
        return []
    about = f"about {round(total):,} records by the noisy answers"
    fewer = "fewer marginals (selection=oneway)" if any(len(c) > 1 for c in noise) else "fewer columns"
    return [
        f"noise drowns {len(lost)} of the {len(noise)} marginals measured (expected Σ |noise| at least twice the "
        f"{about}): the synthetic table shows little but noise there. A larger privacy.epsilon, {fewer} "
        f"or coarser bins; plan plan.rows={max(round(total), 1)} tells before anything is spent"
    ]


@dataclass(frozen=True)
class Coverage:
    """Which columns, and which pairs of them, the answers of a release tell about.

    Attributes:
        columns: how many columns there are to measure.
        pairs: how many pairs of them.
        told: pairs that lie in a measured marginal.
        unmeasured: columns that lie in none.
        noisy: columns of whose records fewer than half lie in counts above two standard deviations of their noise,
            less what noise alone puts there.
        constant: columns with one value (or bin) that holds CONSTANT of the records or more, and its share.
        start: the public table from whose rows the synthetic ones started, or None.
    """

    columns: int
    pairs: int
    told: int
    unmeasured: tuple[str, ...]
    noisy: tuple[str, ...] = ()
    constant: tuple[tuple[str, float], ...] = ()
    start: str | None = None

    @property
    def in_words(self) -> str:
        line = f"{self.columns - len(self.unmeasured):,} of {self.columns:,} measured"
        noisy = f"{len(self.noisy):,} mostly noise: {_named(self.noisy)}" if self.noisy else "none mostly noise"
        line += f", {noisy}"
        almost = [f"{name} ({share:.0%})" for name, share in self.constant]
        return line + (f"; one value or bin holds nearly all records of {_named(almost)}" if almost else "")

    @property
    def warnings(self) -> list[str]:
        """What the synthetic table cannot show, a sentence each."""
        lines = []
        if names := self.unmeasured:
            as_public = f", and stay as in {self.start!r}" if self.start else ""
            lines.append(
                f"nothing was measured of {_named(names)}: their synthetic values tell nothing about "
                f"the people{as_public}. Where selection.marginals is a list, add [COLUMN] for each"
            )
        if self.pairs and not self.told:
            known = f"what the public table {self.start!r} shows" if self.start else "no more than the schema says"
            lines.append(
                f"no pair of columns was measured: of how they depend on each other the synthetic table shows {known}. "
                "Pairs come with a larger privacy.epsilon, a smaller privacy.max_records, coarser bins, or a list in "
                "selection.marginals"
            )
        return lines


def coverage(measurements: Measurements, *, start: str | None = None) -> Coverage:
    """Columns of one value only need no measurement, and are not counted, and a column and its fine cells are one.

    Computed from the release alone.

    Args:
        start: the public table that its statement names as the start of the rows.
    """
    names = varied_columns(measurements.domain)
    cliques = {a.clique for a in measurements.answers}
    told = {pair for c in cliques for pair in itertools.combinations([n for n in names if n in c], 2)}
    columns = {n for c in cliques for n in c}
    every = len(names) * (len(names) - 1) // 2
    unmeasured = tuple(n for n in names if n not in columns)
    noisy, constant = _one_way(measurements, [n for n in names if n in columns])
    return Coverage(len(names), every, len(told), unmeasured, noisy, constant, start)


def _one_way(measurements: Measurements, names: Sequence[str]) -> tuple[tuple[str, ...], tuple[tuple[str, float], ...]]:
    """The columns that are mostly noise, and those that are nearly constant, by the most precise counts of each."""
    own: dict[Clique, NoisyMarginal] = {}
    for a in completed(measurements).answers:
        if isinstance(a.query, Identity) and (a.clique not in own or a.stddev < own[a.clique].stddev):
            own[a.clique] = a
    total = max(estimate_total(measurements), 1.0)
    noisy, constant = [], []
    for name in names:
        known = own.get((name,)) or told_counts(measurements, (name,))
        if known is None:
            continue
        error = known.stddev if isinstance(known, NoisyMarginal) else known.errors
        shown = np.where(known.values > 2 * error, known.values, 0.0)
        if shown.sum() - ABOVE * float(np.broadcast_to(error, shown.shape).sum()) < total / 2:
            noisy.append(name)
            continue
        most = int(np.argmax(shown))
        least = shown[most] - 2 * float(np.broadcast_to(error, shown.shape)[most])
        if shown[most] >= CONSTANT * total and least >= SURELY * total:
            constant.append((name, min(float(shown[most]) / total, 1.0)))
    return tuple(noisy), tuple(constant)


def _named(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    return ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED:,} more" if len(names) > NAMED else "")


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
