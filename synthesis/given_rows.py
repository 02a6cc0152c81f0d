"""Rows given a condition: drawn from the conditioned distribution where there is one, else by weighing made rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.errors import UserError
from mechanisms.public.marginals import Values
from mechanisms.public.progress import Progress
from mechanisms.public.release import Measurements
from synthesis.consistency.total import default_rows
from synthesis.contract import RowModel, Synthesizer
from synthesis.impossible import Zeros
from synthesis.rounding import systematic
from synthesis.synthesize import synthesize

#: Rows that are tried for each requested row, and in all, before a condition counts as rare.
MOST_TIMES, MOST_ROWS = 200, 2_000_000
#: The most rows that are made to be weighed.
POOL = 1_000_000

Finish = Callable[[CodedTable], CodedTable]


@dataclass(frozen=True, eq=False)
class GivenRows:
    """Rows that satisfy a condition.

    Attributes:
        table: rows of the table's columns.
        exact: drawn from the conditioned distribution; else chosen among made rows.
        effective: of how many independent rows they tell as much (Kish 1965): their number where they are exact.
    """

    table: CodedTable
    exact: bool
    effective: float


def rows_given(
    measurements: Measurements,
    synthesizer: Synthesizer,
    model: RowModel | None,
    weights: Mapping[str, Values],
    *,
    measured: Collection[str],
    finish: Finish,
    finish_given: Finish | None = None,
    rows: int | None,
    rng: np.random.Generator,
    zeros: Zeros = (),
    progress: Progress | None = None,
) -> GivenRows:
    """Exactly `rows` rows, each with a probability in proportion to its own times the weights of its codes.

    Guarantee: post-processing; costs no privacy.
    Args:
        model: `synthesizer.model(…)`.
        weights: column of the table → a weight in [0, 1] for each code: 0 for what must not be.
        measured: those of the columns that were measured as they stand: a model is conditioned on them.
        finish: rows of the measured domain → rows of the table's columns; `finish_given` the same for rows of the
            conditioned distribution alone (default: as `finish`).
        rows: None: as many as all rows hold.
    Raises:
        UserError: no row, or hardly any, satisfies the condition.
    """
    conditioned = None if model is None else model.given({n: w for n, w in weights.items() if n in measured})
    if conditioned is None:
        return _weighed(measurements, synthesizer, weights, finish, rows, rng, zeros, progress)
    left = {n: np.ceil(w) if n in measured else w for n, w in weights.items()}
    return _drawn(conditioned, left, finish_given or finish, rows, rng, progress)


def _drawn(
    model: RowModel,
    weights: Mapping[str, Values],
    finish: Finish,
    rows: int | None,
    rng: np.random.Generator,
    progress: Progress | None,
) -> GivenRows:
    """Rows of a conditioned distribution; those that rules of the schema led out of the condition are drawn again."""
    wanted = round(model.total) if rows is None else rows
    parts: list[CodedTable] = []
    seen, taken, batch = 0, 0, wanted
    while wanted or rows == 0:
        table = finish(model.rows(batch, rng, progress))
        parts.append(_accepted(table, _chances(table, weights), rng))
        seen, taken = seen + batch, taken + parts[-1].rows
        if taken >= wanted or rows is None:
            break
        if seen >= max(MOST_TIMES * wanted, MOST_ROWS):
            raise _rare(f"{taken:,} of {seen:,} drawn rows satisfy the conditions, {wanted:,} are wanted")
        batch = min(math.ceil(1.2 * (wanted - taken) * seen / max(taken, 1)) + 8, MOST_ROWS)
    if rows != 0 and not taken:
        raise _rare("no row is expected to satisfy the conditions")
    whole = _joined(parts)
    kept = _rows_of(whole, np.arange(min(wanted, whole.rows)))
    return GivenRows(kept, True, float(kept.rows))


def _weighed(
    measurements: Measurements,
    synthesizer: Synthesizer,
    weights: Mapping[str, Values],
    finish: Finish,
    rows: int | None,
    rng: np.random.Generator,
    zeros: Zeros,
    progress: Progress | None,
) -> GivenRows:
    """Rows chosen among made ones, in proportion to their weights; more are made where these are few."""
    made = min(max(default_rows(measurements), rows or 0, 1), POOL)
    while True:
        pool = finish(synthesize(measurements, synthesizer, rows=made, rng=rng, zeros=zeros, progress=progress))
        chances = _chances(pool, weights)
        most = float(chances.sum()) ** 2 / max(float((chances**2).sum()), 1e-300)
        if rows is None or most >= rows or made == POOL:
            break
        made = min(POOL, max(2 * made, math.ceil(1.2 * made * rows / max(most, 1.0))))
    wanted = round(float(chances.sum())) if rows is None else rows
    if not chances.any() or (rows is None and wanted == 0):
        raise _rare(f"none of {made:,} made rows satisfies the conditions")
    counts = systematic(chances, wanted, rng)
    places = np.repeat(np.arange(pool.rows), counts)
    rng.shuffle(places)
    effective = wanted**2 / max(float((counts.astype(np.float64) ** 2).sum()), 1.0)
    return GivenRows(_rows_of(pool, places), False, effective)


def _chances(table: CodedTable, weights: Mapping[str, Values]) -> Values:
    chances = np.ones(table.rows)
    for name, weight in weights.items():
        chances *= weight[table.column(name)]
    return chances


def _accepted(table: CodedTable, chances: Values, rng: np.random.Generator) -> CodedTable:
    """Each row with its chance."""
    if (chances == 1).all():
        return table
    return _rows_of(table, np.flatnonzero(rng.random(table.rows) < chances))


def _rows_of(table: CodedTable, places: NDArray[np.int64]) -> CodedTable:
    return CodedTable(table.domain, tuple(np.asarray(c)[places] for c in table.columns))


def _joined(parts: list[CodedTable]) -> CodedTable:
    if len(parts) == 1:
        return parts[0]
    columns = zip(*(p.columns for p in parts), strict=True)
    return CodedTable(parts[0].domain, tuple(np.concatenate(c) for c in columns))


def _rare(what: str) -> UserError:
    fix = "a wider condition, or fewer rows; synthesis=pgm conditions its rows exactly"
    return UserError(what, where="where", fix=fix)
