"""What means over pairs of columns should be read against: correlations, and the dependence that is kept."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from evaluation.products import times
from evaluation.readings.distance_ends import DRAWS, sampled
from evaluation.readings.reading import Ends, ends_around
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Clique

Floats = NDArray[np.float64]
#: a, b, kind, and the correlation in the real and in the synthetic table.
Correlated = tuple[str, str, str, float, float]

#: Pairs, a random choice, that tell how far a mean moves.
PAIRS = 100


class Multipliers:
    """Random rows of two tables with random weights, as of `DistanceEnds`: what an influence of rows adds up to.

    Args:
        sizes: records of the real and of the synthetic table.
    """

    def __init__(self, real: CodedTable, synthetic: CodedTable, sizes: tuple[int, int]) -> None:
        rng = np.random.default_rng(0)
        self.tables = tuple(sampled(t, rng) for t in (real, synthetic))
        self._sizes = sizes
        self._weights = [rng.standard_normal((DRAWS, t.rows)) for t, _ in self.tables]

    def of_score(self, influences: Sequence[Floats]) -> Floats:
        """(draws, statistics) by how much synthetic less real statistics move; influences are (rows, statistics)."""
        parts = [self._sum(i, influence, 1 / self._sizes[i]) for i, influence in enumerate(influences)]
        return np.asarray(parts[1] - parts[0])

    def of_honest(self, influence: Floats) -> Floats:
        """The same for two samples of the real rows."""
        return self._sum(0, influence, 1 / self._sizes[0] + 1 / self._sizes[1])

    def _sum(self, side: int, influence: Floats, share: float) -> Floats:
        centred = influence - influence.mean(axis=0)
        return np.asarray(times(self._weights[side], centred) * math.sqrt(share / len(centred)))


def correlation_ends(
    real: CodedTable,
    synthetic: CodedTable,
    coarse: Sequence[CodedTable],
    numbers: Mapping[str, Floats],
    correlations: Sequence[Correlated],
) -> Ends:
    """Of the mean |difference| of correlations.

    Args:
        coarse: both tables in buckets, for Cramér's V.
        numbers: column on a line → the number of each code, NaN where there is none.
        correlations: of every pair.
    """
    drawn = Multipliers(real, synthetic, (real.rows, synthetic.rows))
    picked = np.random.default_rng(0).permutation(len(correlations))[:PAIRS]
    pairs = [correlations[int(i)] for i in picked]
    parts = [
        np.stack([_influence(pair, table, buckets, rows, numbers) for pair in pairs], axis=1)
        for (table, rows), buckets in zip(drawn.tables, coarse, strict=True)
    ]
    apart = np.array([two - one for _, _, _, one, two in pairs])
    moved = np.abs(apart + drawn.of_score(parts)).mean(axis=1)
    held = {n: int(np.count_nonzero(np.bincount(coarse[0].column(n)))) for n in coarse[0].domain.names}
    honest = np.abs(drawn.of_honest(parts[0]) + _bias(pairs, held, real.rows, synthetic.rows)).mean(axis=1)
    score = math.fsum(abs(two - one) for _, _, _, one, two in correlations) / len(correlations)
    lost = [one - _noise(a, b, kind, held, synthetic.rows) for a, b, kind, one, _ in correlations]
    own, poor = (float(honest.mean()), float(honest.std(ddof=1))), math.fsum(map(abs, lost)) / len(correlations)
    return ends_around(score, float(moved.std(ddof=1)), own, poor, most=math.inf)


def _influence(
    pair: Correlated,
    table: CodedTable,
    buckets: CodedTable,
    rows: NDArray[np.int64],
    numbers: Mapping[str, Floats],
) -> Floats:
    """By how much each row moves the pair's correlation, as of the sample."""
    a, b, kind, *_ = pair
    if kind == "pearson":
        return _of_pearson(*(numbers[n][table.column(n)] for n in (a, b)))
    domain = buckets.domain
    one, two = (np.asarray(buckets.column(n)[rows]).astype(np.int64) for n in (a, b))
    return _of_cramer(one, two, domain.shape((a, b)))


def _of_pearson(x: Floats, y: Floats) -> Floats:
    """z_x z_y − r (z_x² + z_y²) / 2 of the rows with both values."""
    there = np.isfinite(x) & np.isfinite(y)
    out = np.zeros(x.size)
    if there.sum() < 3 or np.ptp(x[there]) == 0 or np.ptp(y[there]) == 0:
        return out
    z, w = ((v[there] - v[there].mean()) / v[there].std() for v in (x, y))
    r = float((z * w).mean())
    out[there] = (z * w - 0.5 * r * (z * z + w * w)) / there.mean()
    return out


def _of_cramer(one: NDArray[np.int64], two: NDArray[np.int64], shape: tuple[int, ...]) -> Floats:
    """The derivative of √(φ² / k) with respect to the share of each row's cell.

    Near independence V is the length of a long random vector, which moves by a factor of √½ less than its derivative.
    """
    shares = np.bincount(one * shape[1] + two, minlength=shape[0] * shape[1]).reshape(shape) / one.size
    across, up = shares.sum(axis=1), shares.sum(axis=0)
    places = [(np.cumsum(part > 0) - 1)[codes] for part, codes in ((across, one), (up, two))]
    shares, across, up = shares[across > 0][:, up > 0], across[across > 0], up[up > 0]
    k = min(shares.shape) - 1
    if k < 1:
        return np.zeros(one.size)
    product = np.outer(across, up)
    square = float((shares * shares / product).sum()) - 1
    if square <= 1e-12:
        return np.zeros(one.size)
    left, right = ((shares * shares / product).sum(axis=i) / s for i, s in ((1, across), (0, up)))
    table = 2 * shares / product - left[:, None] - right[None, :]
    free = (shares.shape[0] - 1) * (shares.shape[1] - 1)
    factor = math.sqrt(max(1 - free / (2 * one.size * square), 0.5))
    return np.asarray(table[places[0], places[1]] * factor / (2 * math.sqrt(square * k)))


def _noise(a: str, b: str, kind: str, held: Mapping[str, int], rows: int) -> float:
    """The V that independent columns show among so many rows; Pearson's r has a sign, and shows none on the mean.

    Args:
        held: column → of how many buckets there are records; a column of one is independent of all, and shows no V.
    """
    few, many = sorted(held[n] - 1 for n in (a, b))
    return 0.0 if kind == "pearson" or few < 1 else min(math.sqrt(many / rows), 1.0)


def _bias(pairs: Sequence[Correlated], held: Mapping[str, int], rows: int, other: int) -> Floats:
    """How much larger V of the synthetic rows is than that of the real ones, as their numbers differ."""
    out = np.zeros(len(pairs))
    for i, (a, b, kind, one, _) in enumerate(pairs):
        if kind != "pearson":
            ours, theirs = (_noise(a, b, kind, held, n) ** 2 for n in (rows, other))
            out[i] = math.sqrt(max(one * one - ours, 0.0) + theirs) - one
    return out


class DependenceEnds:
    """Collects, pair by pair, what the mean of the dependence that is kept is read against.

    Args:
        real, synthetic: in the buckets that the pairs are counted in; some of the real rows are enough.
        sizes: how many rows there are, real and synthetic.
    """

    def __init__(self, real: CodedTable, synthetic: CodedTable, sizes: tuple[int, int]) -> None:
        self._drawn = Multipliers(real, synthetic, sizes)
        self._parts: list[tuple[float, float, Floats, Floats]] = []

    def add(self, pair: Clique, gradient: Floats, strength: float, slope: float) -> None:
        """A pair that depends.

        Args:
            gradient: by how much what is kept grows with the share of each cell.
        """
        if len(self._parts) < PAIRS:
            cells = [gradient[tuple(t.column(n) for n in pair)] for t, _ in self._drawn.tables]
            self._parts.append((strength, slope, cells[0], cells[1]))

    def ends(self, score: float) -> Ends | None:
        """Of the mean weighted by strength; None where nothing depends on anything."""
        if not self._parts:
            return None
        weights = np.array([p[0] for p in self._parts]) / math.fsum(p[0] for p in self._parts)
        shares = np.array([p[1] for p in self._parts])
        real, synthetic = (np.stack([p[i] for p in self._parts], axis=1) for i in (2, 3))
        honest = np.clip(1 + self._drawn.of_honest(real), 0, 1) @ weights
        moved = np.clip(shares + self._drawn.of_score([real, synthetic]), 0, 1) @ weights
        own = float(honest.mean()), float(honest.std(ddof=1))
        return ends_around(score, float(moved.std(ddof=1)), own, 0.0)
