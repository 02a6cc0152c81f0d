"""MGD: the weighted mean of the AEMC of many marginals (Li et al. 2021a, Equation 3)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evaluation.counts import Cells, paired_cells
from evaluation.mgd.aemc import Aemc, marginal_cost
from evaluation.mgd.targets import TargetMarginal, Targets, at_levels, axis_at
from evaluation.readings.reading import Ends, Z
from mechanisms.public.arrays import Floats, Ints
from mechanisms.public.coded_table import AnyTable, CodedTable
from mechanisms.public.domain import Clique
from mechanisms.public.errors import UserError
from mechanisms.public.files import JsonDict
from mechanisms.public.progress import Progress
from mechanisms.public.schema.table_schema import Schema

#: A cell of at most so many true records (or Δ) is low; nearly all cells of a marginal are where these shares of its
#: cells and of its records are exceeded. The source names no number.
LOW, LOW_CELLS, LOW_RECORDS, LOW_NAMED = 2, 0.9, 0.5, 3


@dataclass(frozen=True)
class MarginalScore:
    """One target marginal's score.

    Attributes:
        target: the marginal.
        label: its attributes and levels in words.
        cells: how many cells it has.
        aemc: its cost per true record, and which solver found it.
        low: the share of its cells, and of the true records, that are in cells of at most LOW (or Δ) true records.
        over: Δ → its cost at other tolerances.
    """

    target: TargetMarginal
    label: str
    cells: int
    aemc: Aemc
    low: tuple[float, float] = (0.0, 0.0)
    over: Mapping[float, Aemc] = field(default_factory=dict)

    @property
    def nearly_all_low(self) -> bool:
        """Whether nearly all cells are low and they hold most records: little can be known of it (section 4.4)."""
        return self.low[0] >= LOW_CELLS and self.low[1] > LOW_RECORDS

    def to_json(self) -> JsonDict:
        """JSON values; the AEMC first."""
        weights = ["inf" if w is None else float(w) for w in self.target.weights]
        notes = {"reason": self.aemc.reason, "note": self.aemc.note, "error_bound": self.aemc.error}
        return {
            "attributes": list(self.target.attributes),
            "aemc": self.aemc.value,
            "levels": list(self.target.levels),
            "weights": dict(zip(self.target.attributes, weights, strict=True)),
            "delta": self.target.delta,
            "weight": self.target.weight,
            "cells": self.cells,
            "low_cells": self.low[0],
            "low_records": self.low[1],
            "solver": self.aemc.solver,
            **{k: v for k, v in notes.items() if v},
        }


@dataclass(frozen=True)
class MGDResult:
    """The score and the AEMC of every marginal; computed from raw rows, NOT private.

    Attributes:
        score: weighted mean of the AEMC of all marginals, 0 is perfect; None where it is not defined.
        marginals: each target marginal with its AEMC.
        alpha: cost of adding or removing one record.
        note: how the marginals were chosen, and which of them tell little.
        reason: why there is no score.
        over_delta: Δ → the score at other tolerances (section 5.1).
        ends: what the score may be read against, and its interval.
    """

    score: float | None
    marginals: tuple[MarginalScore, ...]
    alpha: float = 1.0
    note: tuple[str, ...] = ()
    reason: str = ""
    over_delta: Mapping[float, float | None] = field(default_factory=dict)
    ends: Ends | None = None

    def to_json(self) -> JsonDict:
        """JSON values; the score first."""
        over = [{"delta": delta, "score": score} for delta, score in sorted(self.over_delta.items())]
        return {
            "score": self.score,
            **({"reason": self.reason} if self.reason else {}),
            "alpha": self.alpha,
            **({"over_delta": over} if over else {}),
            "chosen": list(self.note),
            "marginals": [m.to_json() for m in self.marginals],
        }

    def frame(self) -> pd.DataFrame:
        """One row per marginal, the worst first: marginal, aemc, weight ω, its share of the score, cells, solver."""
        total = math.fsum(m.target.weight for m in self.marginals)
        rows = [
            {
                "marginal": m.label,
                "aemc": m.aemc.value,
                "weight": m.target.weight,
                "share": (m.aemc.value or 0.0) * m.target.weight / (total * self.score) if self.score else 0.0,
                "cells": m.cells,
                "solver": m.aemc.solver,
            }
            for m in self.marginals
        ]
        columns = ["marginal", "aemc", "weight", "share", "cells", "solver"]
        return pd.DataFrame(rows, columns=columns).sort_values("share", ascending=False, ignore_index=True)


def mgd(
    real: AnyTable,
    synthetic: CodedTable,
    schema: Schema,
    targets: Targets,
    *,
    alpha: float = 1.0,
    deltas: Sequence[float] = (),
    progress: Progress | None = None,
) -> MGDResult:
    """MGD of a synthetic table against the truth; 0 is perfect, and there is no upper bound.

    Cost: counting takes a pass over the rows of both tables per batch of marginals; see `marginal_cost` for solving.

    Args:
        real: a table over the schema's domain; may be weighted.
        synthetic: the other table, likewise.
        targets: which marginals, at which levels, with which weights.
        alpha: cost of adding or removing one record (Appendix A.1), above 0.
        deltas: further tolerances of all marginals, at which the score is computed too; each takes as long again.
    Raises:
        UserError: tables over another domain than the schema's; a marginal too large for its solver.
    """
    for name, table in (("real", real), ("synthetic", synthetic)):
        if table.domain != schema.domain:
            fix = "encode both tables with this schema"
            raise UserError(f"the {name} table does not have the schema's columns", where="mgd", fix=fix)
    real, synthetic = at_levels(real, schema, targets.marginals), at_levels(synthetic, schema, targets.marginals)
    cliques = [t.columns(schema) for t in targets.marginals]
    scored = []
    whole = real.rows and synthetic.rows and not (real.weighted or synthetic.weighted)
    ends = MgdEnds(real, synthetic, cliques) if whole else None
    counted, axis = paired_cells(real, synthetic, cliques, progress), cache(partial(axis_at, schema))
    for place, (target, clique, cells) in enumerate(zip(targets.marginals, cliques, counted, strict=True)):
        axes = tuple(map(axis, target.attributes, target.levels, target.weights))
        cost = partial(marginal_cost, axes=axes, alpha=alpha)
        size = real.domain.cells(clique)
        over = {float(delta): cost(cells, delta=delta) for delta in deltas}
        low, own_cost = _low(cells.q, size, target.delta), cost(cells, delta=target.delta)
        scored.append(MarginalScore(target, target.label(schema), size, own_cost, low, over))
        if ends is not None:
            ends.add(place, target.weight, cells, own_cost, partial(cost, delta=target.delta))
    note = (*targets.note, *_low_note(scored))
    reasons = sorted({m.aemc.reason for m in scored if m.aemc.value is None})
    if reasons or not scored:
        return MGDResult(None, tuple(scored), alpha, note, "; ".join(reasons) or "no marginals")
    score = _weighted(scored, [m.aemc for m in scored])
    over_delta = {d: _weighted(scored, [m.over[d] for m in scored]) for d in over}
    read = None if ends is None else ends.ends(score)
    return MGDResult(score, tuple(scored), alpha, note, over_delta=over_delta, ends=read)


def _weighted(marginals: Sequence[MarginalScore], costs: Sequence[Aemc]) -> float:
    """Equation 3."""
    weights = [m.target.weight for m in marginals]
    return math.fsum(w * (c.value or 0.0) for w, c in zip(weights, costs, strict=True)) / math.fsum(weights)


def _low(counts: NDArray[np.number], size: int, delta: float) -> tuple[float, float]:
    """The shares of all cells and of all true records that are in cells of few of them.

    Args:
        counts: true records of the cells that occur; all others of the `size` cells are empty.
    """
    low = counts <= max(delta, LOW)
    return 1 - float(np.count_nonzero(~low)) / max(size, 1), float(counts[low].sum()) / max(float(counts.sum()), 1e-300)


def _low_note(scored: Sequence[MarginalScore]) -> tuple[str, ...]:
    """Section 4.4 advises against marginals whose true cells are nearly all low."""
    sparse = sorted((m for m in scored if m.nearly_all_low), key=lambda m: -m.low[1])
    if not sparse:
        return ()
    named = "; ".join(m.label for m in sparse[:LOW_NAMED]) + (" …" if len(sparse) > LOW_NAMED else "")
    return (
        f"{len(sparse)} of {len(scored)} marginals have nearly only cells of very few true records, which tell little "
        f"under differential privacy (coarser levels or fewer columns tell more): {named}",
    )


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
        real: at the levels of the marginals.
        synthetic: likewise.
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
            self._alone: dict[str, Ints] = {}

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
