"""Noisy distances of pairs from models of them: what the default asks before it measures any."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mechanisms.public.arrays import Floats
from mechanisms.public.designs.allocation import BoughtBefore, PairOffer, Shares, allocate
from mechanisms.public.designs.deviations import PairCells
from mechanisms.public.designs.pair_view import NO_PAIRS, PairView, TreeModel, shrunk
from mechanisms.public.units import MAX_SCALE
from mechanisms.selection.base import SCORES
from mechanisms.selection.context import Context, Part

#: The second screening asks max(`AGAIN` × pairs, `LEAST_AGAIN`) pairs, the most promising ones.
AGAIN = 1 / 2
LEAST_AGAIN = 12
#: The second screening takes the part of the reserve that gives noise of `SECOND_NOISE` × records, within these bounds.
SECOND_LOOK = 0.005, 0.1
SECOND_NOISE = 0.01
#: A first screening that shows nothing, with noise above `CLEAR` × records, or above that of the pairs themselves, is
#: asked again from the reserve: the part that would bring its noise there, at most `MOST_AGAIN`; not at all where it
#: would be above `HOPELESS` × records.
CLEAR, MOST_AGAIN, HOPELESS = 0.1, 0.1, 0.25


@dataclass(frozen=True, eq=False)
class Screening:
    """Noisy distances of all candidates from independence.

    Attributes:
        view: the candidates.
        cells: of each pair.
        more: distances less their expectation under independence, in records.
        stddev: of their noise, in records.
    """

    view: PairView
    cells: Sequence[PairCells]
    more: Floats
    stddev: float

    @cached_property
    def offer(self) -> PairOffer:
        """The pairs worth it."""
        everything = range(len(self.cells))
        return self.view.offer_by_distances(everything, self.cells, self.more, np.full(self.more.size, self.stddev))


def screened(context: Context, view: PairView, measured: BoughtBefore) -> tuple[Screening | None, Shares, float]:
    """All candidates, what to measure by them, and the part of the reserve that is left.

    Where they show nothing through much noise they are asked again, out of the reserve, as its first charge. None if
    their distances were charged and lost, or there are none.
    """
    first, noise, power = _screen(context, view), context.reserve.noise, context.reserve.power
    shares = allocate(measured, NO_PAIRS if first is None else first.offer, noise, power)
    part = 0.0 if first is None or shares.chosen else _part_again(context, first)
    if first is None or not part:
        return first, shares, 1.0
    again, left = _screen_again(context, first, part), 1 - part
    return again, allocate(measured, again.offer, lambda share: noise(share * left), power), left


def _screen(context: Context, view: PairView) -> Screening | None:
    if not view.pairs:
        return None
    slot = context.slots(SCORES)[0]
    values = context.distances(slot, view.pairs, lambda: view.expected, view.queries, below=view.level)
    if values is None:
        return None
    cells = [view.cells(c, view.expected(c)) for c in view.pairs]
    return Screening(view, cells, values - _expected_alone(view, cells), context.event(slot).stddev)


def _screen_again(context: Context, first: Screening, part: float) -> Screening:
    """The same distances with the mean of their noise and new noise, out of a part of the reserve."""
    view = first.view
    values = context.distances(Part(part), view.pairs, lambda: view.expected, view.queries, below=view.level)
    if values is None:
        return first
    second = context.event(Part(part), len(view.pairs)).stddev
    weight = first.stddev**2 / (first.stddev**2 + second**2)
    more = first.more + weight * (values - _expected_alone(view, first.cells) - first.more)
    return replace(first, more=more, stddev=second * math.sqrt(weight))


def _expected_alone(view: PairView, cells: Sequence[PairCells]) -> Floats:
    """The distances that chance makes of pairs that are independent."""
    return np.array([c.base(view.level) for c in cells])


def screen_others(context: Context, tree: TreeModel, first: Screening, others: list[int], paid: Part) -> PairOffer:
    """The distances of the candidates outside the tree from the marginals that the tree implies.

    The candidates with the largest first distances are asked again: fewer pairs share the charge, so each gets less
    noise. If the tree joins the columns of a pair, its second distance replaces the first; else the two are averaged by
    precision. The first distances of pairs that were not asked again, but that the tree joins, shrink in the same
    ratio.

    Args:
        paid: of the reserve, for the second distances; a part of 0: none are asked.
    """
    view, more, stddev = first.view, first.more[others], np.full(len(others), first.stddev)
    cells = [first.cells[i] for i in others]
    weights = np.array([view.weight(view.pairs[i]) for i in others])
    promise = weights * np.maximum(more + 2 * stddev, 0.0)  # an important column is asked about even after bad luck
    count = _count_again(view, len(others))
    asked = np.sort(np.argsort(-promise, kind="stable")[:count]).tolist()
    pairs = [view.pairs[others[j]] for j in asked]
    again, further = None, []
    if paid.share:
        again = context.distances(paid, pairs, lambda: tree.marginal, view.queries, below=view.level)
    if again is not None:
        second = context.event(paid, count).stddev
        joined = np.array([bool(tree.path(view.pairs[i])) for i in others])
        before = float(shrunk(more, stddev)[asked] @ joined[asked])
        for j, pair, value in zip(asked, pairs, again.tolist(), strict=True):
            cells[j] = view.cells(pair, tree.marginal(pair))
            weight = 1.0 if joined[j] else first.stddev**2 / (first.stddev**2 + second**2)
            more[j] += weight * (value - cells[j].base(view.level) - more[j])
            stddev[j] = second * math.sqrt(weight)
        after = float(shrunk(more, stddev)[asked] @ joined[asked])
        further = [j for j in asked if joined[j]]
        rest = joined & ~np.isin(np.arange(len(others)), asked)
        more[rest] *= min(after / before, 1.0) if before > 0 else 1.0
    return view.offer_by_distances(others, cells, more, stddev, further)


def _count_again(view: PairView, others: int) -> int:
    """The number of pairs of the second screening, of the `others` outside the forest."""
    return min(max(math.ceil(len(view.pairs) * AGAIN), LEAST_AGAIN), others)


def _part_again(context: Context, first: Screening) -> float:
    """The part of the reserve for asking about all pairs once more; 0 where once is enough, or twice would not do."""
    view, pairs, offer = first.view, len(first.view.pairs), first.offer
    asked = float(np.mean(offer.factor * offer.cells) * context.reserve.noise(np.array([1 / pairs]))[0])
    aim = min(CLEAR * view.records, asked)
    if first.stddev <= aim:
        return 0.0
    part = min(_part_for(context, pairs, aim), MOST_AGAIN)
    return part if context.event(Part(part), pairs).stddev <= HOPELESS * view.records else 0.0


def second_part(context: Context, view: PairView, others: int, left: float) -> float:
    """The part of the reserve for the second screening; 0 if it asks no pair, or its noise could not be drawn.

    Args:
        left: the part that is not spent yet.
    """
    least, most = SECOND_LOOK
    count = _count_again(view, others)
    if count == 0:
        return 0.0
    part = left * float(np.clip(_part_for(context, count, SECOND_NOISE * view.records) / left, least, most))
    return part if context.event(Part(part), count).stddev < MAX_SCALE else 0.0


def _part_for(context: Context, pairs: int, noise: float) -> float:
    """The part of the reserve with which so many distances have this noise, in records."""
    strength = context.reserve.accountant.strength
    power = 1 / round(math.log2(strength(1.0) / strength(0.5)), 9)  # 2 where parts are squares of strengths, else 1
    return float((context.event(Part(1.0), pairs).stddev / noise) ** power)
