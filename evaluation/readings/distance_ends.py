"""What means over marginals should be read against (distances, correlations, dependence), and how far they move."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.special import erf

from evaluation.products import times
from evaluation.readings.reading import Ends, ends_around
from mechanisms.public.arrays import Floats, Ints
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Clique
from mechanisms.public.jit import compiled

#: Random rows of each table and draws of their weights that tell how far a mean distance moves; and so many marginals.
ROWS, DRAWS, MARGINALS = 1_000, 40, 100
#: Sums are held for all cells of a marginal of so few.
FEW_CELLS = 2_000


#: Of a mean over single columns: independent columns keep these, so that the other end is no overlap at all.
SINGLE_LIMITS = (0.02, 0.05)


#: Of the records that a sample is expected to have alone in their cells, about the part by which `expected_tvd` is off.
DOUBT = 0.05


def expected_tvd(shares: Floats, rows: int, other_rows: int) -> float:
    """The expected TVD of a table and another sample of the same distribution, about.

    As large a part of the sample as is alone in its cell lies where the table has no record (Good 1953), and each cell
    of the table gives up as much of that as another. Beyond it counts vary as those of two samples do, nearly normally.
    """
    counts = shares[shares > 0] * rows
    lost = float(np.isclose(counts, 1).sum()) / max(counts.size, 1)
    spread = np.sqrt(np.maximum(counts - lost, 0) * (1 - counts / rows) * (1 + rows / other_rows))
    off = lost / np.maximum(spread, 1e-9)
    apart = spread * math.sqrt(2 / math.pi) * np.exp(-(off**2) / 2) + lost * erf(off / math.sqrt(2))
    return min(1.0, 0.5 * float(apart.sum() + lost * counts.size) / rows)


def independent_tvd(shape: Sequence[int], ids: Ints, shares: Floats, rows: int) -> float:
    """About the TVD of `rows` records with independent columns against the real ones.

    A cell's |deviation + noise| is taken as the root of deviation² + 2/π · variance: exact without either. Where no
    real record lies it is the cell's own share.

    Args:
        ids, shares: the cells that real records occupy (others may be among them) and their shares.
    """
    product = np.ones(ids.size)
    for codes, size in zip(np.unravel_index(ids, tuple(shape)), shape, strict=True):
        product *= np.bincount(codes, shares, size)[codes]
    noise = 2 / math.pi * product * (1 - product) / rows * (shares > 0)
    inside = float(np.sqrt((product - shares) ** 2 + noise).sum())
    return min(0.5 * (inside + max(1 - float(product.sum()), 0.0)), 1.0)


class DistanceEnds:
    """Collects, marginal by marginal, what a mean TVD is read against.

    Both standard deviations are those of a multiplier bootstrap: rows get random weights of mean 0 and variance 1, the
    same for all marginals, so that marginals with columns in common move together (van der Vaart & Wellner 1996,
    section 2.9). They come from at most ROWS rows of each table and MARGINALS marginals.

    Args:
        real: records of the real table, or a sample of them; the distances may count others (`sizes`).
        cliques: the marginals whose mean is the score.
        sizes: records of the real and of the synthetic table.
    """

    def __init__(
        self,
        real: CodedTable,
        synthetic: CodedTable,
        cliques: Sequence[Clique],
        sizes: tuple[int, int],
        *,
        seed: int = 0,
    ) -> None:
        rng = np.random.default_rng(seed)
        self.sizes, self.width = sizes, len(cliques[0]) if cliques else 0
        drawn = rng.choice(len(cliques), MARGINALS, replace=False) if len(cliques) > MARGINALS else range(len(cliques))
        self.chosen = {cliques[int(i)] for i in drawn}
        self.expected: list[float] = []
        self.rare: list[float] = []
        self.poor: list[float] = []
        self._tables = tuple(sampled(t, rng)[0] for t in (real, synthetic))
        rows = [t.rows for t in self._tables]
        weights = [rng.standard_normal((DRAWS, n)) for n in rows]
        weights = [w - w.mean(axis=1, keepdims=True) for w in weights]
        n, m = sizes
        scale = [1 / math.sqrt(r * size) for r, size in zip(rows, sizes, strict=True)]
        drawn = np.concatenate([weights[0] * scale[0], weights[1] * scale[1]], axis=1)
        self._drawn: Floats = np.ascontiguousarray(drawn.T)
        self._honest: Floats = np.ascontiguousarray(weights[0].T * math.sqrt((1 / n + 1 / m) / rows[0]))
        self._sums = np.zeros((2, DRAWS))

    def add(self, clique: Clique, shape: Sequence[int], ids: Ints, p: Floats, q: Floats) -> None:
        """A marginal of which real (q) and synthetic (p) shares are known, at cells that are sorted."""
        self.expected.append(expected_tvd(q, *self.sizes))
        self.rare.append(float((q * np.exp(-min(self.sizes) * q)).sum()))
        if clique not in self.chosen:
            return
        self.poor.append(independent_tvd(shape, ids, q, self.sizes[1]))
        places = [_cells(table, clique, shape, ids) for table in self._tables]
        at, moved = _summed(np.concatenate(places), self._drawn, ids.size)
        apart = np.asarray(p - q)[at]
        self._sums[0] += 0.5 * np.abs(apart[:, None] + moved).sum(axis=0)
        self._sums[1] += 0.5 * np.abs(_summed(places[0], self._honest, ids.size)[1]).sum(axis=0)

    def ends(self, score: float) -> Ends:
        """For a mean distance."""
        if not self.expected:
            return Ends()
        honest = math.fsum(self.expected) / len(self.expected)
        spreads = self._sums.std(axis=1, ddof=1) / max(len(self.chosen), 1)
        poor = math.fsum(self.poor) / len(self.poor) if self.width > 1 else 1.0
        doubt = math.hypot(float(spreads[1]), DOUBT * math.fsum(self.rare) / len(self.rare))
        ends = ends_around(score, float(spreads[0]), (honest, doubt), poor)
        return ends if self.width > 1 else replace(ends, limits=SINGLE_LIMITS, poor_is="no overlap")


def sampled(table: CodedTable, rng: np.random.Generator) -> tuple[CodedTable, Ints]:
    """At most ROWS random rows, and where they stand."""
    rows = np.sort(rng.choice(table.rows, min(ROWS, table.rows), replace=False))
    return table.at(rows), rows


def _cells(table: CodedTable, clique: Clique, shape: Sequence[int], ids: Ints) -> Ints:
    """Where each row's cell stands among the ids."""
    codes = tuple(table.column(name).astype(np.int64) for name in clique)
    return np.searchsorted(ids, np.ravel_multi_index(codes, tuple(shape)))


def _summed(places: Ints, weights: Floats, cells: int) -> tuple[Ints | slice, Floats]:
    """Cells, among them all that occur, and (cells, draws) sums of the (rows, draws) weights of their rows."""
    at: Ints | slice = slice(None)
    if cells > FEW_CELLS:
        at, places = np.unique(places, return_inverse=True)
        cells = at.size
    sums = np.zeros((cells, weights.shape[1]))
    _add_up(places, weights, sums)
    return at, sums


@compiled
def _add_up(places: Ints, weights: Floats, sums: Floats) -> None:
    for i in range(places.size):
        for draw in range(weights.shape[1]):
            sums[places[i], draw] += weights[i, draw]


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
    pair: Correlated, table: CodedTable, buckets: CodedTable, rows: Ints, numbers: Mapping[str, Floats]
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


def _of_cramer(one: Ints, two: Ints, shape: tuple[int, ...]) -> Floats:
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
