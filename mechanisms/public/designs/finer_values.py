"""How much noise a pair bears over finer values, as noisy answers over coarser ones tell."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mechanisms.public.arrays import Floats

#: Before a pair was measured, the cells that its records would fill have to hold `FINER_NOISE` × the noise on average.
FINER_NOISE = 3.0
#: Bands widen to areas as groups get finer: cells that are filled then come out up to so many times too few.
TOO_FEW = 1.5
#: From this rank correlation on a pair lies about a line: with it, coarser values tell what finer ones would.
ABOUT_A_LINE = 0.9


def most_noise_by_distance(sides: Sequence[Floats], records: float, gap: float, values: Sequence[int]) -> float:
    """The most noise of a cell, mean absolute, in records, with which finer values pay; 0 where nothing tells.

    Columns as dependent as their groups allow are Σ_ab |p_ab − p_a p_b| = 2 (1 − Σ_a p_a²) away from independence, of
    the column with fewer groups. If a pair is r times as far, and each value of the other column fills m of its g
    groups, r = (g − m) / (g − 1). One of them is filled whatever their width; of the others more, as groups get finer.

    Args:
        sides: the records of each group of both columns; where one group holds all, it hides the rest.
        gap: the L1 distance from independence, in records.
        values: how many finer values each column has.
    """
    few = int(np.argmin([side.size for side in sides]))
    most = 2 * min(records - float(side @ side) / records for side in sides)
    if most <= 0:
        return 0.0
    groups = sides[few].size
    others = (1 - min(gap / most, 1.0)) * (groups - 1)
    return records / (FINER_NOISE * values[1 - few] * (1 + others * values[few] / groups))


def most_noise_by_answers(table: Floats, lines: Sequence[int], stddev: float, records: float, cells: int) -> float:
    """The most noise of a cell, mean absolute, in records, with which finer values pay; 0 where noise hides it.

    Records that lie evenly in N cells have Σ x² = (Σ x)² / N. If N is so counted over the groups and over pairs of
    neighbours, it grows with the number of cells by a power, ½ along a curve and 1 in an area, and so on to finer
    values (the correlation dimension of Grassberger & Procaccia 1983). Even inside the groups, records would fill N
    times as many cells as each group has: what they fill less is misplaced, and the noise of what they fill may be
    as much. Pairs about a line (`ABOUT_A_LINE`) bear none.

    Args:
        table: noisy answers to both columns' groups, in records.
        lines: how many groups of each column lie on its line.
        stddev: of an answer.
        cells: over the finer values.
    """
    halves = table
    for axis, line in enumerate(lines):
        starts = np.concatenate([np.arange(0, line, 2), np.arange(line, table.shape[axis])])
        halves = np.add.reduceat(halves, starts, axis=axis)
    squares, wider = (float((t**2).sum()) - table.size * stddev**2 for t in (table, halves))
    if min(squares, wider) <= 0 or halves.size == table.size or abs(_rank_correlation(table, lines)) > ABOUT_A_LINE:
        return 0.0
    power = min(max(math.log(wider / squares) / math.log(table.size / halves.size), 0.0), 1.0)
    even = records**2 / squares * cells / table.size
    filled = even * (cells / table.size) ** (power - 1)
    return float((1 - filled / even) * records / (TOO_FEW * filled))


def _rank_correlation(table: Floats, lines: Sequence[int]) -> float:
    """Of the groups on both lines; 0 where the answers leave no record, or one group, there."""
    cells = table[: lines[0], : lines[1]]
    sides = [np.maximum(cells.sum(axis=1 - axis), 0.0) for axis in (0, 1)]
    ranks = [np.cumsum(side) - side / 2 - side.sum() / 2 for side in sides]
    spread = math.prod(float(side @ rank**2) for side, rank in zip(sides, ranks, strict=True))
    return float(ranks[0] @ cells @ ranks[1]) / math.sqrt(spread) if spread > 0 else 0.0
