"""What a mean total variation distance should be read against, and how far it would move with other rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evaluation.readings.reading import Ends, ends_around
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Clique
from mechanisms.public.jit import compiled

Floats = NDArray[np.float64]

#: Random rows of each table and draws of their weights that tell how far a mean distance moves; and so many marginals.
ROWS, DRAWS, MARGINALS = 1_000, 40, 100
#: Sums are held for all cells of a marginal of so few.
FEW_CELLS = 2_000


#: Of a mean over single columns: independent columns keep these, so that the other end is no overlap at all.
SINGLE_LIMITS = (0.02, 0.05)


def expected_tvd(shares: Floats, rows: int, other_rows: int) -> float:
    """The expected TVD of two samples of one distribution: ½ Σ √(2/π · p(1 − p)(1/n + 1/n')).

    Nearly exact for cells of several records, and too large for rarer ones.
    """
    spread = math.sqrt(2 / math.pi * (1 / rows + 1 / other_rows))
    return min(1.0, 0.5 * spread * float(np.sqrt(shares * (1 - shares)).sum()))


def independent_tvd(shape: Sequence[int], ids: NDArray[np.int64], shares: Floats, rows: int) -> float:
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

    def add(self, clique: Clique, shape: Sequence[int], ids: NDArray[np.int64], p: Floats, q: Floats) -> None:
        """A marginal of which real (q) and synthetic (p) shares are known, at cells that are sorted."""
        self.expected.append(expected_tvd(q, *self.sizes))
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
        ends = ends_around(score, float(spreads[0]), (honest, float(spreads[1])), poor)
        return ends if self.width > 1 else replace(ends, limits=SINGLE_LIMITS, poor_is="no overlap")


def sampled(table: CodedTable, rng: np.random.Generator) -> tuple[CodedTable, NDArray[np.int64]]:
    """At most ROWS random rows, and where they stand."""
    rows = np.sort(rng.choice(table.rows, min(ROWS, table.rows), replace=False))
    return table.at(rows), rows


def _cells(table: CodedTable, clique: Clique, shape: Sequence[int], ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each row's cell stands among the ids."""
    codes = tuple(table.column(name).astype(np.int64) for name in clique)
    return np.searchsorted(ids, np.ravel_multi_index(codes, tuple(shape)))


def _summed(places: NDArray[np.int64], weights: Floats, cells: int) -> tuple[NDArray[np.int64] | slice, Floats]:
    """Cells, among them all that occur, and (cells, draws) sums of the (rows, draws) weights of their rows."""
    at: NDArray[np.int64] | slice = slice(None)
    if cells > FEW_CELLS:
        at, places = np.unique(places, return_inverse=True)
        cells = at.size
    sums = np.zeros((cells, weights.shape[1]))
    _add_up(places, weights, sums)
    return at, sums


@compiled
def _add_up(places: NDArray[np.int64], weights: Floats, sums: Floats) -> None:
    for i in range(places.size):
        for draw in range(weights.shape[1]):
            sums[places[i], draw] += weights[i, draw]
