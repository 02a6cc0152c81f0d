"""What MGD should be read against, and how far it would move with other rows: drawn anew on some of its marginals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from evaluation.cells import Cells
from evaluation.mgd.aemc import Aemc
from evaluation.readings.reading import Ends, Z

Floats = NDArray[np.float64]
#: The cost of a marginal's cells.
Cost = Callable[[Cells], Aemc]

#: Marginals that are drawn anew, their cells, and the cells of all of them: seconds are for the scores themselves.
MARGINALS, CELLS, ALL_CELLS = 20, 10_000, 60_000
#: Tables whose numbers of rows differ by more are not compared with an honest one: MGD charges the records that lack,
#: and how that adds up over sparse cells no redrawn counts tell.
ALIKE = 0.05
#: The mean distance of two normal draws, in standard deviations.
APART = 2 / math.sqrt(math.pi)


class MgdEnds:
    """Collects, marginal by marginal, what MGD is read against.

    Of some small marginals the counts of both tables are drawn anew (multinomial), twice from the real shares (an
    honest table) and twice from each table's own (the score with other rows), and once with independent columns. MGD of
    all marginals is taken to be to these as it is on the marginals that were drawn. Marginals have records in common:
    standard deviations are added as if all moved together, which is more than they do.

    Args:
        sizes: the cells of every marginal.
    """

    def __init__(self, sizes: Sequence[int], *, seed: int = 0) -> None:
        self._rng = np.random.default_rng(seed)
        self._drawn: list[tuple[float, ...]] = []
        self._alike = True
        small = [int(i) for i in self._rng.permutation(len(sizes)) if sizes[i] <= CELLS][:MARGINALS]
        whole = np.cumsum([sizes[i] for i in small])
        self._chosen = {i for i, cells in zip(small, whole, strict=True) if cells <= ALL_CELLS}

    def add(self, place: int, weight: float, cells: Cells, found: Aemc, cost: Cost) -> None:
        """A marginal of two tables with records, of whole records each, and what it costs."""
        if found.value is None or place not in self._chosen:
            return
        n, m = int(cells.q.sum()), int(cells.p.sum())
        self._alike = abs(n - m) <= ALIKE * n
        p, q = (_smooth(cells, counts) for counts in (cells.p, cells.q))

        def cost_of(synthetic: Floats, real: Floats) -> float:
            drawn = (self._rng.multinomial(rows, part.ravel()) for rows, part in ((m, synthetic), (n, real)))
            return cost(Cells.dense(*(counts.reshape(cells.shape) for counts in drawn))).value or 0.0

        honest = [cost_of(q, q) for _ in range(2)]
        scores = [cost_of(p, q) for _ in range(2)]
        spreads = (abs(honest[0] - honest[1]) / APART, abs(scores[0] - scores[1]) / APART)
        # Of one column, independent columns are a second sample.
        one = np.count_nonzero(np.array(cells.shape) > 1) < 2
        middle = sum(honest) / 2
        lost = middle if one else max(cost_of(_product(cells, cells.q), q), middle)
        self._drawn.append((weight, found.value, middle, lost, *spreads))

    def ends(self, score: float) -> Ends:
        """For the weighted mean of all costs."""
        if not self._drawn:
            return Ends()
        rows = np.array(self._drawn)
        weights = rows[:, 0] / rows[:, 0].sum()
        found, middle, lost, spread, moved = (rows[:, i] for i in range(1, 6))
        cost = float(found @ weights)
        scale = score / cost if cost and score else 1.0
        honest, poor = (scale * float(part @ weights) for part in (middle, lost))
        # Other marginals might have been drawn.
        other = scale * float(np.sqrt((weights**2) @ (middle - found * (honest / max(score, 1e-300))) ** 2))
        error = Z * scale * float(moved @ weights)
        by = f"95 % at least, had other rows been drawn; from {len(rows)} marginals drawn anew"
        spread_of = math.hypot(scale * float(spread @ weights), other)
        low, high = max(score - error, 0.0), score + error
        if not self._alike:
            return Ends(low=low, high=high, interval_is=by)
        return Ends(honest, spread_of, poor, low, high, interval_is=by)


def _smooth(cells: Cells, counts: Floats) -> Floats:
    """The shares of all cells; those that no record occupies get what the records that are alone in theirs tell.

    So large a share of new records lies in such cells (Good 1953); it is spread as by independent columns. Without it
    the counts of sparse cells would vary more when they are drawn again than they did at first.
    """
    total = float(counts.sum())
    alone = float((counts == 1).sum()) / total
    whole = np.zeros(math.prod(cells.shape))
    whole[cells.ids] = counts / total
    return np.asarray((1 - alone) * whole.reshape(cells.shape) + alone * _product(cells, counts))


def _product(cells: Cells, counts: Floats) -> Floats:
    """The shares of independent columns."""
    product = np.ones(())
    for codes, size in zip(cells.codes, cells.shape, strict=True):
        product = np.multiply.outer(product, np.bincount(codes, counts, size) / counts.sum())
    return product
