"""Which marginals to measure, given how far each pair is from independence: PrivSyn's trade-off, and its combining."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.arrays import Flags, Floats, Ints
from mechanisms.public.coded_table import BATCH_CELLS
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.queries.query_matrices import Identity, QueryMatrix

#: The noise error of a candidate is tabulated at this many budgets.
STEPS = 96
#: A marginal is measured only if it lowers the expected error by more than this share of it.
LEAST_GAIN = 1e-6
#: The noise of pairs summed out of a combined marginal is at most `SLACK` times that of the pairs measured alone.
SLACK = 1.0
#: A marginal, its query, and its part of a budget.
Question = tuple[Clique, QueryMatrix, float]
#: Sets of one size that are tried, those with the fewest cells first; and how many pairs of a set and one attribute
#: more are looked at in one array.
MAX_SETS, GROWN = 20_000, 1 << 18
#: Sets × attributes: which ones they are.
Places = NDArray[np.int32]


def noise_error(expected: Floats, levels: Floats) -> Floats:
    """The L1 error that noise leaves in a marginal, at each mean absolute noise: Σ over cells of min(noise, expected).

    A cell that should hold less than the noise comes out as what its sides say (consistency softens it), so that it
    errs by about its count and not by the noise; PrivSyn's own ψ, cells · σ√(2/π), is the case of full cells.
    """
    ordered = np.sort(np.maximum(expected.ravel(), 0.0))
    below = np.concatenate([[0.0], np.cumsum(ordered)])
    place = np.searchsorted(ordered, levels)
    return np.asarray(below[place] + (ordered.size - place) * levels)


def dense(
    gaps: Floats, expected: Sequence[Floats], noise: Callable[[Floats], Floats], power: float = 2 / 3
) -> list[int]:
    """The candidates to measure by PrivSyn's DenseMarg (Zhang et al. 2021, section 4.2): `greedy`, from none on.

    Section 5.2 of Li et al. 2021b says that a low distance means a high correlation; it is the other way round.

    Args:
        gaps: the candidates' noisy distances from independence, in records: what is lost if one is left out.
        expected: their marginals under independence, in records.
        noise: the mean absolute noise of a marginal, in records, from its share of the budget.
        power: shares of the budget are in proportion to cells to this power; 2/3 is PrivSyn's optimum.
    """
    loads = np.array([e.size for e in expected], np.float64) ** power
    grid = np.geomspace(loads.min(), loads.sum() * (1 + 1e-9) + 1e-9, STEPS)
    errors = np.stack([noise_error(e, noise(w / grid)) for e, w in zip(expected, loads, strict=True)])
    return list(greedy(grid, (np.zeros(STEPS), 0.0), errors, np.asarray(gaps, np.float64), loads, gain=0.0)[0])


def greedy(
    grid: Floats,
    start: tuple[Floats, float],
    measured: Floats,
    unmeasured: Floats,
    loads: Floats,
    certain: Sequence[int] = (),
    gain: float = LEAST_GAIN,
) -> tuple[tuple[int, ...], float]:
    """The marginals taken, and the sum of all loads: each step takes the one that lowers the sum of errors most.

    Args:
        grid: sums of loads, rising.
        start: what noise does to marginals that are measured in any case, at each of these sums; and their load.
        measured: candidates × grid: what noise does to each, in records; `loads` theirs.
        unmeasured: what is lost where each is left out.
        certain: candidates that are taken first.
        gain: a candidate is taken only if it lowers the sum by more than this share of it.
    """
    row, load = start
    chosen, left = list(certain), np.delete(np.arange(loads.size), list(certain))
    least = gain * (float(np.interp(load, grid, row)) + float(unmeasured.sum()))
    load, row = load + float(loads[chosen].sum()), row + measured[chosen].sum(axis=0)
    dropped = float(unmeasured[chosen].sum())
    current = float(np.interp(load, grid, row)) - dropped
    while left.size:
        sums = load + loads[left]
        right = np.clip(np.searchsorted(grid, sums), 1, grid.size - 1)
        part = (sums - grid[right - 1]) / (grid[right] - grid[right - 1])
        errors = (1 - part) * measured[left, right - 1] + part * measured[left, right]
        totals = (1 - part) * row[right - 1] + part * row[right] + errors - unmeasured[left] - dropped
        best = int(np.argmin(totals))
        if totals[best] >= current - least:
            break
        place = int(left[best])
        chosen.append(place)
        current, load, dropped = float(totals[best]), float(sums[best]), dropped + float(unmeasured[place])
        row = row + measured[place]
        left = np.delete(left, best)
    return tuple(chosen), load


def combined(
    domain: Domain,
    chosen: Sequence[Clique],
    max_cells: int,
    *,
    counted: Domain | None = None,
) -> list[Clique]:
    """Larger marginals in the place of pairs that overlap: sets of attributes all of whose pairs are chosen.

    Sets are taken from the largest down, by cells among equals. One of c cells takes the place of pairs of c₁, c₂, …
    cells that no set before it holds, where c ≤ max_cells and Σ √(c·cᵢ) ≤ SLACK · (Σ cᵢ^⅔)^(3/2): with the same budget
    the noise of the pairs, summed out of it, is no more than SLACK times that of the pairs measured themselves.

    Args:
        counted: where `domain` is over merged values, that of the values as rows have them: no set has more cells there
            than are counted at a time.
    """
    edges = sorted({tuple(sorted(domain.axes(c))) for c in chosen if len(c) == 2})
    others = [c for c in chosen if len(c) != 2]
    open_ = {e: domain.cells(domain.names[i] for i in e) for e in edges}
    for level, numbers in reversed(_sets(domain, edges, max_cells, counted)):
        for places, whole in zip(map(tuple, level.tolist()), numbers.tolist(), strict=True):
            mine = [p for p in itertools.combinations(places, 2) if p in open_]
            cells = np.array([open_[p] for p in mine], np.float64)
            together = float(np.sqrt(cells * whole).sum())
            if mine and together <= SLACK * float((cells ** (2 / 3)).sum()) ** 1.5 * (1 + 1e-9):
                others.append(tuple(domain.names[i] for i in places))
                for pair in mine:
                    del open_[pair]
    return sorted(others, key=lambda c: (len(c), domain.axes(c)))


def _sets(
    domain: Domain, edges: Sequence[tuple[int, ...]], max_cells: int, counted: Domain | None
) -> list[tuple[Places, Ints]]:
    """The pairs, and the larger sets that may replace some; of each size those with the fewest cells, at most MAX_SETS.

    Let a set of k attributes have c cells, its largest pair p. Its pairs have Σ cᵢ^⅔ ≤ k(k - 1)/2 · p^⅔, and so it
    replaces no pairs unless c ≤ SLACK² · k(k - 1)/2 · p. Such a set of four or more holds such sets of one attribute
    fewer: of those but the two largest, leave out the larger ones first.

    Returns:
        for each size, the places of the attributes, sets × attributes, and the cells; by cells and then by places.
    """
    sizes = np.array(domain.shape(domain.names), np.int64)
    limits = None if counted is None else np.array(counted.shape(domain.names), np.float64)
    near = np.zeros((sizes.size, sizes.size), np.bool_)
    level: Places = np.array(edges, np.int32).reshape(-1, 2)
    near[level[:, 0], level[:, 1]] = near[level[:, 1], level[:, 0]] = True
    sets: list[tuple[Places, Ints]] = []
    while len(level):
        cells = sizes[level].prod(axis=1)
        order = np.lexsort((*level.T[::-1], cells))
        level, cells = level[order], cells[order]
        if sets:
            same = (level[1:] == level[:-1]).all(axis=1)
            each = np.flatnonzero(np.concatenate([[True], ~same]))[:MAX_SETS]
            level, cells = level[each], cells[each]
        sets.append((level, cells))
        parts = np.array_split(level, 1 + level.shape[0] * sizes.size // GROWN)
        level = np.concatenate([_larger(p, near, sizes, max_cells, limits) for p in parts])
    return sets


def _larger(sets: Places, near: Flags, sizes: Ints, max_cells: int, limits: Floats | None) -> Places:
    """Sets of one attribute more that may replace pairs, each once for every set that it grows from."""
    common = np.logical_and.reduce([near[column] for column in sets.T])
    common &= sizes <= (max_cells // sizes[sets].prod(axis=1))[:, None]
    rows, places = np.nonzero(common)
    larger = np.sort(np.column_stack([sets[rows], places.astype(np.int32)]), axis=1)
    small = np.sort(sizes[larger], axis=1)[:, :-2].prod(axis=1) <= SLACK**2 * math.comb(larger.shape[1], 2)
    if limits is not None:
        small &= limits[larger].prod(axis=1) <= BATCH_CELLS
    return np.asarray(larger[small])


def combined_questions(
    domain: Domain, parts: Mapping[Clique, float], queries: Mapping[Clique, QueryMatrix], most: int
) -> list[Question]:
    """Pairs with their parts of the budget, combined into marginals of at most `most` cells where that costs no noise.

    Pairs that are asked over coarser values stay as they are; a combined marginal gets the parts of its pairs.
    """
    share = dict(parts)
    whole = [c for c in share if isinstance(queries[c], Identity)]
    larger: dict[Clique, float] = {}
    for clique in combined(domain, whole, most):
        held = [p for p in itertools.combinations(clique, 2) if p in share]
        if len(clique) > 2 and held:
            larger[clique] = sum(share.pop(p) for p in held)
    return whole_questions(domain, larger) + [(c, queries[c], p) for c, p in share.items()]


def whole_questions(domain: Domain, parts: Mapping[Clique, float]) -> list[Question]:
    """Marginals, every cell asked for, with their parts of the budget."""
    return [(c, Identity(domain.cells(c)), p) for c, p in parts.items()]
