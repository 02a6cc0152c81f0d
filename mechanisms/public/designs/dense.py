"""Which marginals to measure, given how far each pair is from independence: PrivSyn's trade-off, and its combining."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.domain import Clique, Domain
from mechanisms.public.marginals import BATCH_CELLS
from mechanisms.public.queries.query_matrices import Identity, QueryMatrix

#: The noise error of a candidate is tabulated at this many budgets.
STEPS = 96
#: The noise of pairs summed out of a combined marginal is at most `SLACK` times that of the pairs measured alone.
SLACK = 1.0
#: Sets of one size that are tried, those with the fewest cells first.
MAX_SETS = 20_000


@dataclass(frozen=True, eq=False)
class Tradeoff:
    """What DenseMarg weighs (PrivSyn, Zhang et al. 2021, section 4.2), from public facts and noisy answers.

    Attributes:
        loads: per candidate cells^power: its share of the budget is its load over the sum of the loads chosen.
        gaps: per candidate the L1 distance from independence, in records: what is lost if it is left out.
        grid: sums of loads, rising.
        errors: candidates × grid: what noise does to a candidate, in records, if the loads sum to that.
    """

    loads: NDArray[np.float64]
    gaps: NDArray[np.float64]
    grid: NDArray[np.float64]
    errors: NDArray[np.float64]

    def at(self, places: NDArray[np.intp], sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Candidates' noise errors at sums of loads, interpolated."""
        right = np.clip(np.searchsorted(self.grid, sums), 1, len(self.grid) - 1)
        low, high = self.grid[right - 1], self.grid[right]
        part = np.clip((sums - low) / (high - low), 0.0, 1.0)
        return np.asarray((1 - part) * self.errors[places, right - 1] + part * self.errors[places, right])


def noise_error(expected: NDArray[np.float64], levels: NDArray[np.float64]) -> NDArray[np.float64]:
    """The L1 error that noise leaves in a marginal, at each mean absolute noise: Σ over cells of min(noise, expected).

    A cell that should hold less than the noise comes out as what its sides say (consistency softens it), so that it
    errs by about its count and not by the noise; PrivSyn's own ψ, cells · σ√(2/π), is the case of full cells.
    """
    ordered = np.sort(np.maximum(expected.ravel(), 0.0))
    below = np.concatenate([[0.0], np.cumsum(ordered)])
    place = np.searchsorted(ordered, levels)
    return np.asarray(below[place] + (ordered.size - place) * levels)


def tradeoff(
    gaps: NDArray[np.float64],
    expected: Sequence[NDArray[np.float64]],
    noise: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    power: float = 2 / 3,
) -> Tradeoff:
    """The table that `dense` needs.

    Args:
        gaps: the candidates' noisy distances from independence, in records.
        expected: their marginals under independence, in records.
        noise: the mean absolute noise of a marginal, in records, from its share of the budget.
        power: shares of the budget are in proportion to cells to this power; 2/3 is PrivSyn's optimum.
    """
    loads = np.array([e.size for e in expected], np.float64) ** power
    grid = np.geomspace(loads.min(), loads.sum() * (1 + 1e-9) + 1e-9, STEPS)
    errors = np.stack([noise_error(e, noise(w / grid)) for e, w in zip(expected, loads, strict=True)])
    return Tradeoff(loads, np.asarray(gaps, np.float64), grid, errors)


def dense(table: Tradeoff) -> list[int]:
    """The candidates to measure, greedily: each step takes the one that lowers noise error + dependency error most.

    Section 5.2 of Li et al. 2021b says that a low distance means a high correlation; it is the other way round.
    """
    chosen: list[int] = []
    left = np.arange(len(table.loads))
    load, row = 0.0, np.zeros_like(table.grid)
    chosen_error = 0.0  # the noise error of what is chosen
    while left.size:
        sums = load + table.loads[left]
        totals = np.interp(sums, table.grid, row) + table.at(left, sums) - table.gaps[left]
        best = int(np.argmin(totals))
        if totals[best] >= chosen_error:
            break
        chosen_error = float(totals[best] + table.gaps[left[best]])
        chosen.append(int(left[best]))
        load, row = float(sums[best]), row + table.errors[left[best]]
        left = np.delete(left, best)
    return chosen


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
    edges = {frozenset(c) for c in chosen if len(c) == 2}
    order = sorted(_sets(domain, edges, max_cells, counted), key=lambda c: (-len(c), domain.cells(c), domain.axes(c)))
    others = [c for c in chosen if len(c) != 2]
    open_ = set(edges)
    for clique in order:
        if not open_:
            break
        mine = [p for p in map(frozenset, itertools.combinations(clique, 2)) if p in open_]
        cells = np.array([domain.cells(p) for p in mine], np.float64)
        together = float(np.sqrt(cells * domain.cells(clique)).sum())
        if mine and together <= SLACK * float((cells ** (2 / 3)).sum()) ** 1.5 * (1 + 1e-9):
            others.append(clique)
            open_ -= set(mine)
    return sorted(others, key=lambda c: (len(c), domain.axes(c)))


def _sets(domain: Domain, edges: Collection[frozenset[str]], max_cells: int, counted: Domain | None) -> list[Clique]:
    """The pairs, and every larger set within max_cells all of whose pairs are among them; at most MAX_SETS per size.

    A set is a whole number, one bit for each attribute: tables of many small columns have a hundred thousand sets.
    """
    near = [0] * len(domain)
    ends = [domain.axes(e) for e in edges]
    for one, two in ends:
        near[one] |= 1 << two
        near[two] |= 1 << one
    sizes = domain.shape(domain.names)
    limits = None if counted is None else counted.shape(domain.names)
    level = {1 << i | 1 << j: (sizes[i] * sizes[j], near[i] & near[j]) for i, j in ends}
    sets: list[int] = []
    while level:
        sets += level
        grown: dict[int, tuple[int, int]] = {}
        for own, (cells, common) in level.items():
            for place in _places(common):
                larger = own | 1 << place
                if larger in grown or cells * sizes[place] > max_cells:
                    continue
                if limits is None or math.prod(limits[i] for i in _places(larger)) <= BATCH_CELLS:
                    grown[larger] = cells * sizes[place], common & near[place]
        if len(grown) > MAX_SETS:
            least = sorted(grown, key=lambda s: (grown[s][0], _places(s)))[:MAX_SETS]
            grown = {s: grown[s] for s in least}
        level = grown
    return [tuple(domain.names[i] for i in _places(s)) for s in sets]


def _places(bits: int) -> tuple[int, ...]:
    """Which bits of a whole number are 1, the lowest first."""
    places = []
    while bits:
        lowest = bits & -bits
        places.append(lowest.bit_length() - 1)
        bits ^= lowest
    return tuple(places)


def combined_questions(
    domain: Domain, parts: Mapping[Clique, float], queries: Mapping[Clique, QueryMatrix], most: int
) -> list[tuple[Clique, QueryMatrix, float]]:
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


def whole_questions(domain: Domain, parts: Mapping[Clique, float]) -> list[tuple[Clique, QueryMatrix, float]]:
    """Marginals, every cell asked for, with their parts of the budget."""
    return [(c, Identity(domain.cells(c)), p) for c, p in parts.items()]
