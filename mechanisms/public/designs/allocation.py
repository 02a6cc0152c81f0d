"""Which marginals to measure and with which share, so that the expected error of all pairs is least."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.arrays import Floats
from mechanisms.public.designs.dense import STEPS, greedy, noise_error

#: Noise levels at which errors are tabulated.
LEVELS = 64
#: Rounds that alternate between the shares and the errors that follow from them.
ROUNDS = 5
#: Pairs are measured only if all of them together lower the expected error by this share.
LEAST_PROMISE = 0.02

Noise = Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class BoughtBefore:
    """Marginals that are measured already, and may be measured once more.

    Attributes:
        expected: per marginal its cells, in records.
        noise: per marginal the mean absolute noise of its answers so far, in records.
        weights: how often the error of each counts.
        factor: the noise of asking each once more, over that of all cells of a marginal for the same part.
    """

    expected: Sequence[Floats]
    noise: Floats
    weights: Floats
    factor: Floats


@dataclass(frozen=True, eq=False)
class PairOffer:
    """Pairs that may be measured.

    Attributes:
        left: the L1 error of a pair, in records, where it is measured, at each mean absolute noise of its answers.
        shown: how many cells of a pair hold more than a mean absolute noise: these are what its noise shows in.
        cells: per pair how many cells its query has.
        sides: pairs × 2: the places of its two sides among the known marginals.
        gaps: per pair the L1 distance of the truth from independence, in records, as far as noisy answers tell.
        weights: how often the error of each pair counts.
        factor: the noise of each pair's answers, over that of all cells of a marginal for the same part.
        summed: pairs × 2: how many answers to a pair add up to a value of each side; inf where they tell none.
        certain: the places of pairs that are measured with the others, where that promises less error than no pair.
        further: more such places, unless far less error is promised without holding on to them.
    """

    left: Callable[[int, Floats], Floats]
    shown: Callable[[int, float], float]
    cells: Floats
    sides: NDArray[np.intp]
    gaps: Floats
    weights: Floats
    factor: Floats
    summed: Floats
    certain: tuple[int, ...] = ()
    further: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Shares:
    """Parts of a budget, which sum to 1.

    Attributes:
        bought: per known marginal the part for measuring it once more.
        chosen: the pairs to measure, by place, the most useful first; `parts` their parts.
    """

    bought: Floats
    chosen: tuple[int, ...]
    parts: Floats


@dataclass(frozen=True, eq=False)
class _Errors:
    """L1 errors of marginals by the noise of their answers, tabulated (rows × levels)."""

    levels: Floats
    table: Floats

    @classmethod
    def of(cls, left: Callable[[int, Floats], Floats], count: int, levels: Floats) -> _Errors:
        rows = [left(i, levels) for i in range(count)]
        return cls(levels, np.stack(rows) if rows else np.zeros((0, levels.size)))

    def at(self, places: NDArray[np.intp] | int, noise: Floats) -> Floats:
        """The errors of marginals at their noise, interpolated."""
        logs = np.log(self.levels)
        position = (np.log(np.maximum(noise, 1e-300)) - logs[0]) / (logs[1] - logs[0])
        low = np.clip(position.astype(np.intp), 0, self.levels.size - 2)
        part = np.clip(position - low, 0.0, 1.0)
        return np.asarray((1 - part) * self.table[places, low] + part * self.table[places, low + 1])

    def slope(self, places: NDArray[np.intp], noise: Floats) -> Floats:
        """How fast the errors of marginals rise with their noise: in so many cells it shows, at least one."""
        step = 1.3
        rise = self.at(places, noise * step) - self.at(places, noise / step)
        return np.maximum(rise / (noise * (step - 1 / step)), 1.0)


def allocate(bought: BoughtBefore, offer: PairOffer, noise: Noise, power: float) -> Shares:
    """Share a budget out among the known marginals and the pairs that are worth their noise.

    The error of a pair is taken as own + √(side₁² + side₂²): own is its distance from independence where it is not
    measured, and what noise leaves of it where it is (`PairOffer.left`); the sides are the errors of its one-way
    marginals, which every pair of theirs suffers from, and which measured pairs lower (`PairOffer.summed`). A marginal
    of load w · cells · factor gets a part in proportion to its load^power, which minimises Σ w · cells · noise (power ⅔
    where costs are squares of strengths, ½ where they are the strengths); for a known marginal w is the weight of the
    pairs that its error shows in. Pairs are taken greedily: each step takes the one that lowers the sum most, until
    none does; where pairs tell of their sides, all of them together are tried too. PrivSyn's trade-off (Zhang et al.
    2021, section 4.2) is the case of fixed parts for the one-way marginals.

    Args:
        noise: the mean absolute noise of a marginal, in records, from its part of the budget.
        power: of the loads.
    """
    work = _Work.of(bought, offer, noise, power)
    loads = np.array([e.size for e in bought.expected], np.float64) ** power
    nothing = Shares(loads / loads.sum(), (), np.zeros(0))
    best, error = nothing, work.error(nothing)
    every = tuple(range(offer.cells.size)) if np.isfinite(offer.summed).any() else ()
    for certain in dict.fromkeys(((*offer.certain, *offer.further), offer.certain, (), every)):
        if best.chosen and certain == ():
            continue
        result = nothing
        for number in range(ROUNDS):
            result = work.step(result, certain, first=number == 0)
        if (promised := work.error(result)) < (1 - LEAST_PROMISE) * error:
            best, error = result, promised
    return best


@dataclass(frozen=True, eq=False)
class _Work:
    bought: BoughtBefore
    offer: PairOffer
    ones: _Errors
    pairs: _Errors
    noise: Noise
    power: float

    @classmethod
    def of(cls, bought: BoughtBefore, offer: PairOffer, noise: Noise, power: float) -> _Work:
        """With the errors of all marginals, at levels of noise that may occur."""
        smallest = float(noise(np.ones(1))[0])
        largest = max(float(np.max(e)) for e in bought.expected)  # more noise than the largest cell changes no error
        levels = np.geomspace(smallest / 2, 2 * max(largest, smallest), LEVELS)
        ones = _Errors.of(lambda i, at: noise_error(bought.expected[i], at), len(bought.expected), levels)
        return cls(bought, offer, ones, _Errors.of(offer.left, offer.cells.size, levels), noise, power)

    def without_more(self, shares: Shares) -> Floats:
        """The noise of known marginals from their answers so far, and from those of the pairs that are chosen."""
        precise = self.bought.noise**-2.0
        places = list(shares.chosen)
        each = self.offer.factor[places] * self.noise(np.maximum(shares.parts, 1e-12))
        for end in (0, 1):
            np.add.at(precise, self.offer.sides[places, end], 1 / (each**2 * self.offer.summed[places, end]))
        return np.asarray(1 / np.sqrt(np.maximum(precise, 1e-300)))

    def before(self, noise: Floats) -> Floats:
        """The parts of the budget that would have given the known marginals the noise that they have."""
        once = self.bought.factor * self.noise(np.ones(1))[0]
        return np.asarray((once / noise) ** (1 / self.strength))

    @property
    def strength(self) -> float:
        """Noise falls with a part of the budget to this power: ½ where parts are squares of strengths, else 1."""
        return 1 / self.power - 1

    def side_errors(self, parts: Floats, noise: Floats, places: NDArray[np.intp] | int) -> Floats:
        """The errors of known marginals that have this noise, and get these parts once more."""
        before, more = noise[places], self.bought.factor[places] * self.noise(np.maximum(parts, 1e-12))
        return self.ones.at(places, 1 / np.sqrt(before**-2.0 + more**-2.0))

    def errors(self, shares: Shares) -> tuple[Floats, Floats, Floats]:
        """Those of the known marginals; per pair that of its two sides; and the pairs' own."""
        ones = self.side_errors(shares.bought, self.without_more(shares), np.arange(len(self.bought.expected)))
        own = self.offer.gaps.copy()
        if shares.chosen:
            places = np.array(shares.chosen, np.intp)
            own[places] = self.pairs.at(places, self.offer.factor[places] * self.noise(shares.parts))
        return ones, np.sqrt((ones[self.offer.sides] ** 2).sum(axis=1)), own

    def error(self, shares: Shares) -> float:
        """The expected L1 error of all pairs and known marginals together, in records, each as often as it counts."""
        ones, both, own = self.errors(shares)
        return float((self.bought.weights * ones).sum() + (self.offer.weights * (own + both)).sum())

    def loads(self, shares: Shares, before: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Those of the known marginals and of the pairs: by how fast their errors rise with their noise."""
        places = np.arange(len(self.bought.expected))
        total = before + shares.bought
        factor, often = self.offer.factor, self.offer.weights
        rises = self.bought.factor * weights
        rises = rises * self.ones.slope(places, self.bought.factor * self.noise(np.maximum(total, 1e-12)))
        parts = np.full(self.offer.cells.size, np.nan)
        parts[list(shares.chosen)] = shares.parts
        loads = (often * self.offer.cells * factor) ** self.power
        scale = float(np.mean(shares.parts / loads[list(shares.chosen)])) if shares.chosen else 1.0
        guess = np.minimum(scale * loads, 1.0)
        noise = (factor * self.noise(np.where(np.isnan(parts), guess, parts))).tolist()
        pairs = np.array([max(self.offer.shown(i, n), 1.0) for i, n in enumerate(noise)])
        return rises**self.power, (often * pairs * factor) ** self.power

    def step(self, shares: Shares, certain: Sequence[int], *, first: bool) -> Shares:
        """One round: the sides' errors and weights at these shares, then the greedy choice."""
        count, sides, often = len(self.bought.expected), self.offer.sides, self.offer.weights
        errors, both, _ = self.errors(shares)
        noise = self.without_more(shares)
        before = self.before(noise)
        weights = self.bought.weights.copy()
        for end in (0, 1):
            np.add.at(weights, sides[:, end], often * (errors[sides[:, end]] / np.maximum(both, 1e-9)))
        if first:
            cells = np.array([e.size for e in self.bought.expected], np.float64)
            loads = (weights * cells * self.bought.factor) ** self.power
            pair_loads = (often * self.offer.cells * self.offer.factor) ** self.power
        else:
            loads, pair_loads = self.loads(shares, before, weights)
        more = 1 + float(before.sum())
        base = float(loads.sum())
        grid = np.geomspace(base * 0.999, (base + float(pair_loads.sum())) * 1.001, STEPS)
        row = np.zeros(STEPS)
        for place in range(count):
            part = np.maximum(loads[place] * more / grid - before[place], 0.0)
            row += weights[place] * self.side_errors(part, noise, place)
        measured = np.zeros((0, STEPS))
        if pair_loads.size:
            factors = self.offer.factor.tolist()
            own = [self.pairs.at(i, factors[i] * self.noise(load * more / grid)) for i, load in enumerate(pair_loads)]
            measured = often[:, None] * (np.stack(own) + both[:, None])
        unmeasured = often * (self.offer.gaps + both)
        chosen, sums = greedy(grid, (row, base), measured, unmeasured, pair_loads, certain)
        more_parts = np.maximum(loads * more / sums - before, 0.0)
        parts = pair_loads[list(chosen)] * more / sums
        whole = float(more_parts.sum() + parts.sum())
        return Shares(more_parts / whole, chosen, parts / whole)
