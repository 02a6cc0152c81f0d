"""The default: how much to spend on columns, and which larger marginals to measure with which share, least error."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mechanisms.accounting.accountants import serves_as_filter
from mechanisms.accounting.pairs import possible_pairs
from mechanisms.public.candidates import Expected
from mechanisms.public.designs.allocation import Known, Shares, Wanted, allocate
from mechanisms.public.designs.chance_distance import by_chance, side_error
from mechanisms.public.designs.dense import combined, noise_error
from mechanisms.public.designs.tree import heaviest_forest, pairs
from mechanisms.public.domain import Attribute, Clique, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.queries.coarse_values import coarse_columns, solid_groups
from mechanisms.public.queries.merged_cells import merged_query
from mechanisms.public.queries.query_matrices import Identity, QueryMatrix
from mechanisms.public.rules.mapped import in_pairs
from mechanisms.public.rules.transforms import FINE
from mechanisms.public.schema.fine_cells import MAX_FINE
from mechanisms.public.workload import Workload
from mechanisms.selection.base import (
    FINE_STAGE,
    SCORES,
    Facts,
    Method,
    Schedule,
    Selection,
    large_pairs,
    one_way_slots,
)
from mechanisms.selection.context import Context, once
from mechanisms.selection.fixed import Fixed
from mechanisms.selection.questions import ask_given
from mechanisms.selection.scored_pairs import ScoredPairs, combining

#: The most cells of a query over a pair; larger pairs are asked over coarser values.
MAX_CELLS = 20_000
#: The fewest that `max_cells` may be.
LEAST_CELLS = 4
#: A pair of columns on lines is asked over coarser values where it has more cells than this, and cells below its noise.
FINE_CELLS = 1_000
#: The part of the reserve that pairs are expected to get, where it is asked how fine a pair may be.
PAIRS_PART = 0.6
#: Larger pairs are not counted at all: their exact cells would not fit beside each other.
MAX_COUNTED = 1 << 22
#: A pair depends for certain where chance and noise explain its distance at this level, for all pairs together. Of
#: these a forest is measured even where the mean error promises a little less: no relation between columns vanishes.
LEVEL = 0.05
#: Distances tell nothing where their noise is more than this share of the records.
MOST_SCORE_NOISE = 0.5
#: But for those whose own noise would be so many times their distance.
MOST_NOISE = 3.0
#: A group of bins of a column with fine cells holds at least this share of the records, and so many times the noise.
LEAST_SHARE = 0.02
LEAST_NOISE = 10.0
#: So much of the reserve is shared out: the rest is the rounding of many parts.
WHOLE = 1 - 1e-9


@dataclass(frozen=True)
class Auto(ScoredPairs):
    """One-way marginals; noisy distances of all pairs from independence; then what lowers the expected error most.

    Attributes:
        candidates, combine_cells: as in `ScoredPairs`.
        max_cells: the most cells of a query over a pair; larger pairs are asked over coarser values.
    """

    kind: ClassVar[str] = "auto"
    max_cells: int = MAX_CELLS

    def run(self, context: Context) -> None:
        """The one-way marginals, the distances, and one round out of the reserve.

        Where no pair is worth its noise, or the distances were charged and lost, the reserve goes to the one-way
        marginals: their answers together have the noise of the whole budget less that of the distances.
        """
        given = list(dict.fromkeys(ask_given(context)))
        ask_given(context, FINE_STAGE)
        expected = once(context.fit)()
        queries = self._queries(context, expected, len(given))
        gaps = context.distances(self.candidates, lambda: expected, queries) if self.candidates else None
        sides = _sides(given, self.candidates)
        if gaps is None or sides is None:
            queries, gaps, sides = {}, np.zeros(0), np.zeros((0, 2), np.intp)
        known = Known([expected(c) for c in given], _noise_so_far(context, given))
        wanted = _wanted(context, self.candidates, queries, expected, gaps, sides, known)
        plan = allocate(known, wanted, context.reserve_noise, context.power)
        context.spend(_questions(context.domain, self, given, queries, plan.shares))

    def _queries(self, context: Context, expected: Expected, columns: int) -> dict[Clique, QueryMatrix]:
        """Each pair whole, or over coarser values where its cells would drown in its noise, or are too many.

        Of columns with fine cells, which tell where their records lie, pairs never ask for bins with few records.
        """
        domain = context.domain
        ones = {n: expected((n,)) for n in domain.names}
        records = float(np.sum(ones[domain.names[0]]))
        noise = float(context.reserve_noise(np.array([PAIRS_PART / columns]))[0])
        fine = int(min(max(records / noise, FINE_CELLS), self.max_cells))
        least = max(LEAST_SHARE * records, LEAST_NOISE * noise)
        solid = {n: np.arange(domain[n].size) for n in domain.names}
        for place in context.places(FINE_STAGE):
            name = context.clique(place)[0].removesuffix(FINE)
            solid[name] = solid_groups(domain[name], ones[name], least)
        attributes = [replace(a, size=int(s.max()) + 1, ordered=_on_line(a, s)) for a, s in _with(domain, solid)]
        sums = {a.name: np.bincount(solid[a.name], ones[a.name]).astype(np.float64) for a in attributes}
        shrunken = Domain(tuple(attributes))
        coarse = coarse_columns(shrunken, sums, lined=math.isqrt(fine), other=max(math.isqrt(self.max_cells), 2))
        coarse = {n: own[solid[n]] for n, own in coarse.items()}

        def query(pair: Clique) -> QueryMatrix:
            limit = fine if all(domain[n].ordered > 1 for n in pair) else self.max_cells
            return merged_query(domain, pair, solid if shrunken.cells(pair) <= limit else coarse)

        return {pair: query(pair) for pair in self.candidates}


def _with(domain: Domain, groups: Mapping[str, NDArray[np.int64]]) -> list[tuple[Attribute, NDArray[np.int64]]]:
    return [(a, groups[a.name]) for a in domain.attributes]


def _on_line(attribute: Attribute, groups: NDArray[np.int64]) -> int:
    """How many groups of codes lie on the attribute's line."""
    return int(groups[attribute.ordered - 1]) + 1 if attribute.ordered else 0


def _sides(given: Sequence[Clique], candidates: Sequence[Clique]) -> NDArray[np.intp] | None:
    """Per candidate the places of the given marginals of its columns; None where there are no candidates."""
    order = sorted(range(len(given)), key=lambda i: -len(given[i]))
    place = {name: i for i in order for name in given[i]}
    return np.array([[place[n] for n in c] for c in candidates], np.intp) if candidates else None


def _noise_so_far(context: Context, given: Sequence[Clique]) -> NDArray[np.float64]:
    """The mean absolute noise of each given marginal's answers; of one that was charged and lost: as if never asked."""
    noise = {a.clique: a.mean_abs for a in context.known}
    return np.array([noise.get(c, 1e300) for c in given])


def _wanted(
    context: Context,
    candidates: Sequence[Clique],
    queries: Mapping[Clique, QueryMatrix],
    expected: Expected,
    gaps: NDArray[np.float64],
    sides: NDArray[np.intp],
    known: Known,
) -> Wanted:
    """What the noisy distances tell about how far each pair is from independence.

    Independent columns too are at a distance: by the errors of the noisy one-way marginals, and because records fall
    into cells by chance. What is beyond that is drawn towards its mean by its noise. Of the part by chance a
    measurement can only tell what is above its own noise.
    """
    asked = list(candidates) if queries else []
    certain: tuple[int, ...] = ()

    def cells_of(place: int) -> NDArray[np.float64]:
        return queries[asked[place]].answer(expected(asked[place]))

    cells = np.array([queries[c].rows for c in asked], np.float64)
    if asked:
        (place,) = context.places(SCORES)
        level = context.reserve_noise(np.array([PAIRS_PART / len(context.domain)]))
        chance, untold, drown = np.array([_by_chance(cells_of(i), level) for i in range(len(asked))]).T
        own = np.array([side_error(e, float(n)) for e, n in zip(known.expected, known.noise, strict=True)])
        both = own[sides].sum(axis=1) ** 2  # their errors may add up: dependence is what is left
        base = np.sqrt(chance**2 + both)
        stddev = context.stddev(place)
        shown = gaps - base > NormalDist().inv_cdf(1 - LEVEL / len(asked)) * stddev
        records = float(np.sum(known.expected[0]))
        told = shrunk(gaps - base, stddev) if stddev < MOST_SCORE_NOISE * records else np.zeros(len(asked))
        distances = np.minimum(base + told, 2 * records)
        gaps = np.sqrt(np.maximum(distances**2 - both - untold**2, 0.0))
        certain = heaviest_forest(asked, np.where(shown & (drown < MOST_NOISE * gaps), gaps, 0.0).tolist())
    return Wanted(cells_of, cells, sides, gaps, certain)


def _by_chance(expected: NDArray[np.float64], level: NDArray[np.float64]) -> tuple[float, float, float]:
    """How far records that fall into cells by chance are from what is expected, in L1; how much of that noise of this
    level hides; and what the noise alone would make."""
    chance = by_chance(expected)
    return float(chance.sum()), float(np.minimum(chance, level).sum()), float(noise_error(expected, level)[0])


def shrunk(values: NDArray[np.float64], stddev: float) -> NDArray[np.float64]:
    """Noisy values drawn towards their median, the more the closer they are to it in units of noise; none below 0.

    Those within √2 standard deviations become the median, those far from it stay: the non-negative garrote (Breiman
    1995). Without it the largest of many are the noisiest.
    """
    centre = float(np.median(values))
    off = values - centre
    reach = math.sqrt(2) * stddev
    kept = np.maximum(1 - (reach / np.maximum(np.abs(off), reach)) ** 2, 0.0)
    return np.asarray(np.maximum(centre + kept * off, 0.0))


def _questions(
    domain: Domain,
    method: Auto,
    given: Sequence[Clique],
    queries: Mapping[Clique, QueryMatrix],
    plan: Shares,
) -> list[tuple[Clique, QueryMatrix, float]]:
    """What to measure, with its part of the reserve: pairs combined where that costs no noise, then columns again."""
    share = {method.candidates[i]: float(p) for i, p in zip(plan.chosen, plan.parts, strict=True)}
    whole = [c for c in share if isinstance(queries[c], Identity)]
    larger: dict[Clique, float] = {}
    for clique in combined(domain, whole, method.combine_cells):
        held = [p for p in itertools.combinations(clique, 2) if p in share]
        if len(clique) > 2 and held:
            larger[clique] = sum(share.pop(p) for p in held)
    chosen: list[tuple[Clique, QueryMatrix, float]] = [(c, Identity(domain.cells(c)), p) for c, p in larger.items()]
    chosen += [(c, queries[c], p) for c, p in share.items()]
    again = [(c, Identity(domain.cells(c)), float(p)) for c, p in zip(given, plan.known, strict=True)]
    return [(c, q, p * WHOLE) for c, q, p in (*chosen, *again)]


@dataclass(frozen=True)
class AutoSettings(Fixed):
    """Settings; where marginals are given (`marginals`, `closure`, `k`, `weights`, `merge`) these are measured, as in
    `Fixed`.

    Attributes:
        max_cells: the most cells of a query over a pair: larger pairs are asked over coarser values. Of given
            marginals: larger ones are left out. None: 20,000; 5,000 where marginals are given.
        combine_cells: overlapping pairs become marginals of at most so many cells, where noise allows; 0: never.
        split: parts of the budget for first one-way marginals, distances, and what these two decide.
        fine_cells: about how many fine cells are measured, alone, of each column of numbers or dates; 0: none.
        fine_share: the part of the budget that these take, all columns together.
    """

    kind: ClassVar[str] = "auto"
    methods: ClassVar[tuple[type[Method], ...]] = (Auto,)
    k: list[int] | None = None  # type: ignore[assignment]  # None: nobody asked for all k-way marginals
    max_cells: int | None = None  # type: ignore[assignment]
    combine_cells: int = 1_000
    split: list[float] = field(default_factory=lambda: [1.0, 0.3, 8.7])
    fine_cells: int = 256
    fine_share: float = 0.1

    def given(self, facts: Facts) -> Selection | None:
        """The marginals that somebody named, or that an accountant leaves which cannot count later decisions; or None.

        Without a privacy filter (`check_filter`) everything is measured in one round: all pairs that are small enough.
        """
        named = (self.marginals, self.closure, self.k, self.weights, self.merge)
        if all(s is None for s in named) and _has_filter(facts):
            return None
        settings: dict[str, Any] = {"k": [1, 2] if self.k is None else self.k}
        settings |= {} if self.max_cells is None else {"max_cells": self.max_cells}
        shared = ("marginals", "closure", "weights", "merge", "floor", "fit")
        return Fixed(**settings, **{name: getattr(self, name) for name in shared})

    def fine_cells_of(self, facts: Facts) -> int:
        if not 0 <= self.fine_cells <= MAX_FINE or self.fine_cells == 1:
            fix = f"a whole number from 2 to {MAX_FINE:,}; or 0 for none"
            raise UserError(f"got {self.fine_cells}", where="selection.fine_cells", fix=fix)
        return self.fine_cells if self.given(facts) is None else 0

    @property
    def largest(self) -> int:
        """The most cells of a one-way marginal: any."""
        return 2**62

    def limit(self, facts: Facts) -> str:
        """That of given marginals; pairs are counted up to a size that no setting changes."""
        given = self.given(facts)
        return f"{MAX_COUNTED:,} cells" if given is None else given.limit(facts)

    def workload(self, facts: Facts) -> Workload:
        """The given marginals; else the one-way ones, those of mapped columns with their sources."""
        given = self.given(facts)
        return Selection.workload(self, facts) if given is None else given.workload(facts)

    def passed_over(self, facts: Facts) -> tuple[Clique, ...]:
        """Pairs that are not counted for their size; of given marginals their workload tells."""
        return large_pairs(facts, MAX_COUNTED) if self.given(facts) is None else ()

    def schedule(self, facts: Facts, workload: Workload) -> Schedule | None:
        """One-way marginals, distances, and a reserve."""
        given = self.given(facts)
        if given is not None:
            return given.schedule(facts, workload)
        domain, mapped = facts.domain, facts.schema.rules.mapped
        tied = {in_pairs(domain, mapped, (n,)) for n in domain.names}
        joint = [n for n in facts.joint if all(m.target != n for m in mapped)]
        candidates = tuple(c for c in pairs(domain, joint, MAX_COUNTED) if c not in tied)
        if self.max_cells is not None and self.max_cells < LEAST_CELLS:
            fix = f"at least {LEAST_CELLS}: two groups of values of each column; or null"
            raise UserError(f"got {self.max_cells}", where="selection.max_cells", fix=fix)
        method = Auto(candidates, combining(self.combine_cells), self.max_cells or MAX_CELLS)
        own = Domain(tuple(facts.schema.fine.values()))
        slots, rest = method.slots(domain.project([n for n in domain.names if n not in own]), self.split)
        if not len(own):
            return Schedule(method, slots, rest)
        if not 0 < self.fine_share < 1:
            fix = "a part of the budget, between 0 and 1; selection.fine_cells=0 for none"
            raise UserError(f"got {self.fine_share}", where="selection.fine_share", fix=fix)
        part = math.fsum(self.split) * self.fine_share / (1 - self.fine_share)
        return Schedule(method, [*slots, *one_way_slots(own, part, FINE_STAGE)], rest)


def _has_filter(facts: Facts) -> bool:
    """Whether the accountant counts charges whose sizes depend on answers, under noise that it may have."""
    pairs_left = possible_pairs(facts.mechanism, facts.accountant, delta=facts.delta, reserve=True)
    return any(serves_as_filter(p.accountant, p.noise) for p in pairs_left)
