"""What MGD should be read against, and how far it would move with other rows: drawn anew on some of its marginals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from evaluation.cells import Cells
from evaluation.mgd.aemc import Aemc
from evaluation.readings.reading import Ends, Z
from mechanisms.public.coded_table import AnyTable, CodedTable
from mechanisms.public.domain import Clique

Floats = NDArray[np.float64]
#: The cost of a marginal's cells.
Cost = Callable[[Cells], Aemc]

#: Marginals that are drawn anew (of tables of fewer than FEW_ROWS rows twice as many), their cells, and the cells of
#: all of them: seconds are for the scores themselves.
MARGINALS, CELLS, ALL_CELLS, FEW_ROWS = 20, 10_000, 60_000, 5_000
#: Draws of both tables, and of an honest pair.
DRAWS = 4
#: Tables whose numbers of rows differ by more are not compared with an honest one: MGD charges the records that lack,
#: and how that adds up over sparse cells no redrawn counts tell.
ALIKE = 0.05


class MgdEnds:
    """Collects, marginal by marginal, what MGD is read against.

    Of some small marginals the counts of both tables are drawn anew: two samples of the real records (an honest table),
    a sample of each table (the score with other rows), and independent columns. Marginals have records in common: of
    tables of few rows they are counted in the same drawn rows, so that they move together as they do; of many rows each
    is drawn by itself, and their standard deviations are added as if all moved together.

    Args:
        real, synthetic: at the levels of the marginals.
        cliques: the marginals.
    """

    def __init__(self, real: AnyTable, synthetic: CodedTable, cliques: Sequence[Clique]) -> None:
        rng = np.random.default_rng(0)
        n, m = real.rows, synthetic.rows
        self._together = isinstance(real, CodedTable) and max(n, m) <= TOGETHER
        self._alike = abs(n - m) <= ALIKE * n
        self._cliques = cliques
        self._drawn: list[tuple[float, float, float, list[float], list[float]]] = []
        sizes = [real.domain.cells(c) for c in cliques]
        most = MARGINALS * (1 + (max(n, m) < FEW_ROWS))
        small = [int(i) for i in rng.permutation(len(sizes)) if sizes[i] <= CELLS][:most]
        whole = np.cumsum([sizes[i] for i in small])
        self._chosen = {i for i, cells in zip(small, whole, strict=True) if cells <= ALL_CELLS}
        self._real = [DrawnCounts(real, n, rng) for _ in range(DRAWS)]
        self._honest = [DrawnCounts(real, m, rng) for _ in range(DRAWS)]
        self._made = [DrawnCounts(synthetic, m, rng) for _ in range(DRAWS)]
        self._rows, self._rng = (n, m), rng

    def add(self, place: int, weight: float, cells: Cells, own: Aemc, cost: Cost) -> None:
        """A marginal of two tables with records, of whole records each, and what it costs."""
        if own.value is None or place not in self._chosen:
            return

        def costs(synthetic: Sequence[Floats]) -> list[float]:
            return [cost(Cells.dense(p, q)).value or 0.0 for p, q in zip(synthetic, truth, strict=False)]

        clique = self._cliques[place]
        truth = [d.counts(clique, cells, cells.q) for d in self._real]
        honest = costs([d.counts(clique, cells, cells.q) for d in self._honest])
        scores = costs([d.counts(clique, cells, cells.p) for d in self._made])
        middle = math.fsum(honest) / DRAWS
        # Of one column, independent columns are a second sample.
        lost = middle
        if np.count_nonzero(np.array(cells.shape) > 1) > 1:
            free = self._rng.multinomial(self._rows[1], product(cells, cells.q).ravel()).reshape(cells.shape)
            lost = max(costs([free.astype(np.float64)])[0], middle)
        self._drawn.append((weight, own.value, lost, honest, scores))

    def ends(self, score: float) -> Ends:
        """For the weighted mean of all costs."""
        if not self._drawn:
            return Ends()
        rows = np.array([row[:3] for row in self._drawn])
        weights, own, lost = rows[:, 0] / rows[:, 0].sum(), rows[:, 1], rows[:, 2]
        honest, scores = (np.array([row[i] for row in self._drawn]) for i in (3, 4))
        middle = honest.mean(axis=1)
        # What all marginals score to those that were drawn: of an honest table as of this one, as far as both go along.
        scale = score / cost if (cost := float(own @ weights)) and score else 1.0
        spread, moved = (scale * m for m in self._moved(honest, scores, weights))
        expected, poor = (scale * float(part @ weights) for part in (middle, lost))
        # Other marginals might have been drawn.
        other = scale * float(np.sqrt((weights**2) @ (middle - own * (expected / max(score, 1e-300))) ** 2))
        least = "" if self._together else " at least"
        by = f"95 %{least}, had other rows been drawn; from {len(rows)} marginals drawn anew"
        low, high = max(score - Z * moved, 0.0), score + Z * moved
        if not self._alike:
            return Ends(low=low, high=high, interval_is=by)
        return Ends(expected, math.hypot(spread, other), poor, low, high, interval_is=by)

    def _moved(self, honest: Floats, scores: Floats, weights: Floats) -> tuple[float, float]:
        """The standard deviations of two weighted means of (marginals, draws) costs.

        Of few rows: those of independent marginals, times how much further the means of the drawn rows moved in both;
        a few draws tell that badly, and it is taken to be as much larger as Student's distribution is wider.
        """
        each = [costs.std(axis=1, ddof=1) for costs in (honest, scores)]
        if not self._together:
            return float(each[0] @ weights), float(each[1] @ weights)
        alone = [float(np.sqrt(weights**2 @ e**2)) for e in each]
        moved = [float((weights @ costs).std(ddof=1)) for costs in (honest, scores)]
        ratios = [(m / a) ** 2 for m, a in zip(moved, alone, strict=True) if a]
        free = (DRAWS - 1) * len(ratios)
        further = math.sqrt(max(math.fsum(ratios) / max(len(ratios), 1), 1.0) * free / max(free - 2, 1))
        return alone[0] * further, alone[1] * further


#: Of more rows the counts of each marginal are drawn by themselves: that costs the cells and not the rows.
TOGETHER = 20_000


class DrawnCounts:
    """Counts of `rows` new records like those of a table, one draw for all marginals.

    A record is a row of the table with replacement; so large a share of new records as lies in cells that no row
    occupies (Good 1953: the rows that are alone in theirs tell) has independent columns in its place. Without it the
    counts of sparse cells would vary more when they are drawn again than they did at first.
    """

    def __init__(self, table: AnyTable, rows: int, rng: np.random.Generator) -> None:
        self._rows, self._rng = rows, rng
        self._table = table if isinstance(table, CodedTable) and max(table.rows, rows) <= TOGETHER else None
        if self._table is not None:
            self._drawn = rng.integers(0, table.rows, rows)
            self._mark = rng.random(rows)
            self._alone: dict[str, NDArray[np.int64]] = {}

    def counts(self, clique: Clique, cells: Cells, records: Floats) -> Floats:
        """Of one marginal, in its shape.

        Args:
            records: records of the table in the occupied cells.
        """
        alone = float((records == 1).sum()) / max(float(records.sum()), 1.0)
        if self._table is None:
            drawn = self._rng.multinomial(self._rows, smooth(cells, records, alone).ravel())
            return np.asarray(drawn.reshape(cells.shape), np.float64)
        apart = self._mark < alone
        codes = []
        for name in clique:
            column = self._table.column(name)
            if name not in self._alone:
                self._alone[name] = self._rng.integers(0, self._table.rows, self._rows)
            codes.append(column[np.where(apart, self._alone[name], self._drawn)].astype(np.int64))
        places = np.ravel_multi_index(tuple(codes), cells.shape)
        return np.asarray(np.bincount(places, minlength=math.prod(cells.shape)).reshape(cells.shape), np.float64)


def smooth(cells: Cells, counts: Floats, alone: float) -> Floats:
    """The shares of all cells; those that no record occupies get `alone`, spread as by independent columns."""
    whole = np.zeros(math.prod(cells.shape))
    whole[cells.ids] = counts / float(counts.sum())
    return np.asarray((1 - alone) * whole.reshape(cells.shape) + alone * product(cells, counts))


def product(cells: Cells, counts: Floats) -> Floats:
    """The shares of independent columns."""
    shares = np.ones(())
    for codes, size in zip(cells.codes, cells.shape, strict=True):
        shares = np.multiply.outer(shares, np.bincount(codes, counts, size) / counts.sum())
    return shares
