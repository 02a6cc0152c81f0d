"""Rows given a condition: drawn from the conditioned distribution where there is one, else by weighing made rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np

from mechanisms.public.arrays import Floats
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.errors import UserError
from mechanisms.public.progress import Progress
from mechanisms.public.release import Measurements
from synthesis.consistency.agree import default_rows
from synthesis.contract import RowModel, Synthesizer, synthesize
from synthesis.impossible import Zeros, check_condition
from synthesis.rounding import systematic

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


@dataclass(frozen=True, eq=False)
class Wish:
    """Which rows are asked for.

    Attributes:
        weights: column of the table → a weight in [0, 1] for each code: 0 for what must not be.
        measured: those of the columns that were measured as they stand: a model is conditioned on them.
        finish: rows of the measured domain → rows of the table's columns; `finish_given` the same for rows of the
            conditioned distribution alone (default: as `finish`).
        rows: None: as many as all rows hold.
        rare: called with how many rows are made next where few of the first satisfy it: this takes its time.
    """

    weights: Mapping[str, Floats]
    measured: Collection[str]
    finish: Finish
    rows: int | None
    finish_given: Finish | None = None
    rare: Callable[[int], None] = lambda rows: None


def rows_given(
    measurements: Measurements,
    synthesizer: Synthesizer,
    model: RowModel | None,
    wish: Wish,
    *,
    rng: np.random.Generator,
    zeros: Zeros = (),
    progress: Progress | None = None,
) -> GivenRows:
    """Exactly `wish.rows` rows, each with a probability in proportion to its own times the weights of its codes.

    Guarantee: post-processing; costs no privacy.
    Args:
        model: `synthesizer.model(…)`.
    Raises:
        UserError: no row, or hardly any, satisfies the condition.
    """
    weights = {n: w for n, w in wish.weights.items() if n in wish.measured}
    check_condition(measurements.domain, zeros, weights)
    conditioned = None if model is None else model.given(weights)
    if conditioned is not None:
        return _drawn(conditioned, wish, rng, progress)

    def make(rows: int) -> CodedTable:
        return synthesize(measurements, synthesizer, rows=rows, rng=rng, zeros=zeros, progress=progress).table

    return _weighed(make, default_rows(measurements), wish, rng)


def _drawn(model: RowModel, wish: Wish, rng: np.random.Generator, progress: Progress | None) -> GivenRows:
    """Rows of a conditioned distribution; those that rules of the schema led out of the condition are drawn again."""
    rows, finish = wish.rows, wish.finish_given or wish.finish
    weights = {n: np.ceil(w) if n in wish.measured else w for n, w in wish.weights.items()}
    needed = round(model.total) if rows is None else rows
    parts: list[CodedTable] = []
    seen, taken, batch = 0, 0, needed
    while needed or rows == 0:
        table = finish(model.rows(batch, rng, progress))
        parts.append(_accepted(table, _chances(table, weights), rng))
        seen, taken = seen + batch, taken + parts[-1].rows
        if taken >= needed or rows is None:
            break
        if seen >= max(MOST_TIMES * needed, MOST_ROWS):
            raise _rare(f"{taken:,} of {seen:,} drawn rows satisfy the conditions, {needed:,} are wanted")
        batch = min(math.ceil(1.2 * (needed - taken) * seen / max(taken, 1)) + 8, MOST_ROWS)
    if rows != 0 and not taken:
        raise _rare("no row is expected to satisfy the conditions")
    whole = _joined(parts)
    chosen = whole.at(slice(needed))
    return GivenRows(chosen, True, float(chosen.rows))


def _weighed(make: Callable[[int], CodedTable], usual: int, wish: Wish, rng: np.random.Generator) -> GivenRows:
    """Rows chosen among made ones, in proportion to their weights; more are made where these are few.

    Args:
        usual: how many rows are made at first, or more where more are asked for.
    """
    rows = wish.rows
    pool_rows = min(max(usual, rows or 0, 1), POOL)
    while True:
        pool = wish.finish(make(pool_rows))
        chances = _chances(pool, wish.weights)
        most = float(chances.sum()) ** 2 / max(float((chances**2).sum()), 1e-300)
        if rows is None or most >= rows or pool_rows == POOL:
            break
        pool_rows = min(POOL, max(2 * pool_rows, math.ceil(1.2 * pool_rows * rows / max(most, 1.0))))
        wish.rare(pool_rows)
    needed = round(float(chances.sum())) if rows is None else rows
    if not chances.any() or (rows is None and needed == 0):
        raise _rare(f"none of {pool_rows:,} made rows satisfies the conditions")
    counts = systematic(chances, needed, rng)
    places = np.repeat(np.arange(pool.rows), counts)
    rng.shuffle(places)
    effective = needed**2 / max(float((counts.astype(np.float64) ** 2).sum()), 1.0)
    return GivenRows(pool.at(places), False, effective)


def _chances(table: CodedTable, weights: Mapping[str, Floats]) -> Floats:
    chances = np.ones(table.rows)
    for name, weight in weights.items():
        chances *= weight[table.column(name)]
    return chances


def _accepted(table: CodedTable, chances: Floats, rng: np.random.Generator) -> CodedTable:
    """Each row with its chance."""
    if (chances == 1).all():
        return table
    return table.at(np.flatnonzero(rng.random(table.rows) < chances))


def _joined(parts: list[CodedTable]) -> CodedTable:
    if len(parts) == 1:
        return parts[0]
    columns = zip(*(p.columns for p in parts), strict=True)
    return CodedTable(parts[0].domain, tuple(np.concatenate(c) for c in columns))


def _rare(problem: str) -> UserError:
    fix = "a wider condition, or fewer rows; synthesis=pgm conditions its rows exactly"
    return UserError(problem, where="where", fix=fix)
