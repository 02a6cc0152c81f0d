"""The default: how much to spend on columns, and which larger marginals to measure with which share, least error."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from mechanisms.public.arrays import Floats, Ints
from mechanisms.public.candidates import Expected
from mechanisms.public.designs.allocation import BoughtBefore, PairOffer, allocate
from mechanisms.public.designs.dense import combined_questions
from mechanisms.public.designs.finer_values import FINER_NOISE, most_noise_by_answers, most_noise_by_distance
from mechanisms.public.designs.pair_view import NO_PAIRS, PairView, pairs_looked_at, passed_over_line, sides_of, tree_of
from mechanisms.public.domain import Attribute, Clique, Domain
from mechanisms.public.errors import UserError, require_columns
from mechanisms.public.queries.cell_sums import MergedQuery, coarse_groups, merged_query, solid_groups, with_residuals
from mechanisms.public.queries.query_matrices import Identity, QueryMatrix
from mechanisms.public.rules.computed import in_pairs
from mechanisms.public.rules.transforms import FINE
from mechanisms.public.schema.fine_cells import MAX_FINE, USUAL_FINE
from mechanisms.public.settings import setting
from mechanisms.public.workload import Workload
from mechanisms.selection.base import (
    COMBINED,
    FINE_STAGE,
    SCORED_STAGES,
    Facts,
    Method,
    Schedule,
    ScoredPairs,
    Selection,
    check_floor,
    has_filter,
    one_way_slots,
)
from mechanisms.selection.context import Context, Part
from mechanisms.selection.fixed import Fixed
from mechanisms.selection.questions import LEAST_PART, WHOLE, ask_given, spend_together
from mechanisms.selection.screening import screen_others, screened, second_part

#: Parts of the budget for one-way marginals, the first screening, and all that these decide, at ε of at most C
#: (decision 047: least error over the tables of the grid).
SPLIT = (2.0, 0.2, 7.8)
#: Noise of a screening grows as √pairs. Above `PLENTY` pairs its part of the budget is multiplied by pairs / `PLENTY`,
#: by `MOST_TIMES` at most (decision 047, a survey of 100 columns).
PLENTY, MOST_TIMES = 2_000, 5.0
#: Cells: the most of a pair that is measured with its own values; above it the pair gets coarser values.
MAX_CELLS = 100_000
#: Cells: the aim for a pair with coarser values, if one of its columns has no order.
COARSE_CELLS = 20_000
#: Cells: the least that the setting `max_cells` may ask for, two groups of values of each column.
LEAST_CELLS = 4
#: A pair of ordered columns keeps its own values as long as its mean cell holds `CELL_NOISE` × the noise of a cell or
#: the square of it (the noise is less than the chance by which records fall into one cell or the next: decision 047),
#: or it has no more than `FEW_CELLS`. Of records for more than `MANY_CELLS` / `CELL_NOISE` cells of noise alone a cell
#: needs less, from `MANY_CELLS` on 1 ×: columns that nearly repeat each other show in single cells (decision 047).
CELL_NOISE, FEW_CELLS, MANY_CELLS = 8.0, 9, 8_000
#: The noise of a pair is foretold as if all pairs shared this part of the reserve evenly, one pair per column.
PAIRS_PART = 0.6
#: Cells: pairs above this are never counted, since the exact counts of all pairs must fit in memory together.
MAX_COUNTED = 1 << 22
#: A screening sums |count − expected| − `LOOK_LEVEL` × (standard deviation foretold for a cell), where positive.
LOOK_LEVEL = 0.25
#: Pairs use groups of fine bins that hold at least `LEAST_SHARE` of the records, and `LEAST_NOISE` × a cell's noise.
LEAST_SHARE = 0.02
LEAST_NOISE = 10.0


@dataclass(frozen=True)
class Auto(ScoredPairs):
    """One-way marginals; noisy distances of all pairs from independence; then what lowers the expected error most.

    Attributes:
        candidates, combine_cells: as in `ScoredPairs`.
        max_cells: the most cells of a query over a pair; larger pairs are measured over coarser values.
        important: columns with the factor by which their errors count.
        cleared: columns of numbers or dates without fine cells, since each of their codes is one value.
        passed_over: the number of pairs that are not screened, because the table has too many columns.
    """

    kind: ClassVar[str] = "auto"
    max_cells: int = MAX_CELLS
    important: tuple[tuple[str, float], ...] = ()
    cleared: tuple[str, ...] = ()
    passed_over: int = 0

    @property
    def description(self) -> dict[str, Any]:
        """As of all methods; of columns and pairs that are something special, only where there are any."""
        return {k: v for k, v in super().description.items() if k not in {"important", "cleared", "passed_over"} or v}

    @property
    def in_words(self) -> str:
        named = ", ".join(f"{n} ({w:g} times)" for n, w in self.important)
        words = [f"errors in marginals of these columns count more: {named}"] if named else []
        return "; ".join([*words, *([passed_over_line(self.passed_over, self.candidates)] if self.passed_over else [])])

    def run(self, context: Context) -> None:
        """Measure columns, screen all pairs, measure a forest of dependent ones, screen the others, measure the rest.

        If every pair is worth its noise, and the last round would measure the forest again in larger marginals, the
        last round is the only one. If no pair is worth it, or the distances were charged and lost, the reserve goes to
        the one-way marginals: their answers together have the noise of the whole budget less that of the distances.
        """
        given = list(dict.fromkeys(ask_given(context)))
        ask_given(context, FINE_STAGE)
        expected = context.fit()
        noise = float(context.reserve.noise(np.array([PAIRS_PART / len(given)]))[0])
        queries, finer = self._queries(context, expected, noise, len(given))
        spread = {a.clique: a.stddev for a in context.answers_so_far}
        asked, factor = with_residuals(context.domain, queries, context.bound)
        sides = sides_of(given, tuple(queries))
        view = PairView(queries, expected, spread, sides, LOOK_LEVEL * noise, dict(self.important), factor)
        measured = _measured_before(context, view, {c: expected(c) for c in given})
        first, shares, left = screened(context, view, measured)
        offer, charges = NO_PAIRS if first is None else first.offer, int(left < 1)
        parts = dict(zip((view.pairs[i] for i in shares.chosen), shares.parts.tolist(), strict=True))
        certain = {view.pairs[i] for i in offer.certain if view.pairs[i] in parts}
        noises = {view.pairs[i]: noise for i in offer.certain}
        over_finer = _over_finer(context, view, finer, noises, _by_distance(view, offer), self.max_cells)
        view = replace(view, queries={**queries, **over_finer})
        asked |= with_residuals(context.domain, over_finer, context.bound)[0]
        every = len(parts) == len(view.pairs)
        questions = combined_questions(context.domain, parts, asked, self.combine_cells) if every else []
        together = every and not any(c in certain for c, *_ in questions)
        if first is None or not parts or together:
            columns = dict(zip(given, shares.bought.tolist(), strict=True))
            spend_together(context, questions, columns, left=left, first=charges)
            return
        forest, others = [c for c in parts if c in certain], [i for i, c in enumerate(view.pairs) if c not in certain]
        rest = 1 - sum(parts[c] for c in forest)
        part = second_part(context, view, len(others), left) if rest > LEAST_PART else 0.0
        pays = (left - part) * WHOLE
        context.ask([(Part(parts[c] * pays, i), c, asked[c]) for i, c in enumerate(forest, charges)])
        charges += len(forest)
        tree = tree_of(context.domain, [a for a in context.answers_so_far if a.clique in forest], expected)
        offer = screen_others(context, tree, first, others, Part(part, charges))
        left = rest * (left - part)
        if left <= LEAST_PART:
            return
        held = {c: view.queries[c].answer(tree.marginal(c)) for c in forest}
        measured = _measured_before(context, view, {c: expected(c) for c in given} | held)
        plan = allocate(measured, offer, lambda part: context.reserve.noise(part * left), context.reserve.power)
        columns = dict(zip([*given, *forest], plan.bought.tolist(), strict=True))
        pairs = {c: columns.pop(c) for c in forest}
        noises = {c: float(context.reserve.noise(np.array([p * left]))[0]) for c, p in pairs.items() if p > LEAST_PART}
        over_finer = _over_finer(context, view, finer, noises, _by_answers(context, view), self.max_cells)
        asked |= with_residuals(context.domain, over_finer, context.bound)[0]
        pairs |= {view.pairs[others[i]]: p for i, p in zip(plan.chosen, plan.parts.tolist(), strict=True)}
        questions = combined_questions(context.domain, pairs, asked, self.combine_cells)
        spend_together(context, questions, columns, left=left, first=charges + 1)

    def _queries(
        self, context: Context, expected: Expected, noise: float, columns: int
    ) -> tuple[dict[Clique, QueryMatrix], dict[str, Ints]]:
        """Each pair over its own values, or over coarser ones if its cells are too many or near the noise.

        Fine cells tell where the records of a column lie: pairs use no bin of it with few records. Of other numbers and
        dates, pairs use no value that holds little beside the noise of a pair.

        Args:
            noise: mean absolute, of a cell of a pair, in records.
            columns: how many marginals of columns were measured.

        Returns:
            what is asked of each pair; and the group of each code of the columns where a dependent pair is asked finer.
        """
        domain = context.domain
        ones = {n: expected((n,)) for n in domain.names}
        records = float(np.sum(ones[domain.names[0]]))
        room = max(records / noise, 1.0)
        pairs = min(len(self.candidates), 2 * columns) or 1
        drawn = records / float(context.reserve.noise(np.array([PAIRS_PART / pairs]))[0]) ** 2
        own = max(room / min(max(MANY_CELLS / room, 1.0), CELL_NOISE), drawn)
        fine = int(min(max(own, FEW_CELLS), self.max_cells))
        least = max(LEAST_SHARE * records, LEAST_NOISE * noise)
        solid = {n: np.arange(domain[n].size) for n in domain.names}
        finer = dict(solid)
        fine_ones = [slot.clique[0].removesuffix(FINE) for slot in context.slots(FINE_STAGE)]
        for name, enough in [*((n, least) for n in fine_ones), *((n, LEAST_NOISE * noise) for n in self.cleared)]:
            solid[name] = solid_groups(domain[name], ones[name], enough)
            finer[name] = solid_groups(domain[name], ones[name], FINER_NOISE * noise)
        grouped = [(a, solid[a.name]) for a in domain.attributes]
        attributes = [replace(a, size=int(s.max()) + 1, ordered=_on_line(a, s)) for a, s in grouped]
        sums = {a.name: np.bincount(solid[a.name], ones[a.name]).astype(np.float64) for a in attributes}
        shrunken = Domain(tuple(attributes))
        lined, other = math.isqrt(fine), math.isqrt(min(self.max_cells, COARSE_CELLS))
        most = {a.name: lined if a.ordered > 1 else other for a in attributes}
        coarse = {a.name: coarse_groups(a, sums[a.name], most[a.name])[solid[a.name]] for a in attributes}
        for groups in (*solid.values(), *finer.values(), *coarse.values()):
            groups.setflags(write=False)  # many pairs share them

        def query(pair: Clique) -> QueryMatrix:
            limit = fine if all(domain[n].ordered > 1 for n in pair) else self.max_cells
            return merged_query(domain, pair, solid if shrunken.cells(pair) <= limit else coarse)

        return {pair: query(pair) for pair in self.candidates}, finer


def _over_finer(
    context: Context,
    view: PairView,
    finer: Mapping[str, Ints],
    noises: Mapping[Clique, float],
    most_noise: Callable[[Clique, MergedQuery, Sequence[int]], float],
    max_cells: int,
) -> dict[Clique, QueryMatrix]:
    """Of the pairs over coarser values, those that bear their noise over finer ones; over these.

    Args:
        finer: the group of each code, by column; each holds `FINER_NOISE` × the noise of a cell.
        noises: mean absolute, of a cell, in records, by pair.
        most_noise: that of a pair over so many finer values of each column.
        max_cells: of a pair.
    """
    asked = dict[Clique, QueryMatrix]()
    for pair, noise in noises.items():
        query, values = view.queries[pair], [int(finer[n].max()) + 1 for n in pair]
        if not isinstance(query, MergedQuery) or not query.rows < math.prod(values) <= max_cells:
            continue
        if noise <= most_noise(pair, query, values):
            asked[pair] = merged_query(context.domain, pair, finer)
    return asked


def _by_distance(view: PairView, offer: PairOffer) -> Callable[[Clique, MergedQuery, Sequence[int]], float]:
    """The most noise of a certain pair, by the noisy look."""
    gaps = {view.pairs[i]: float(offer.gaps[i]) for i in offer.certain}

    def most_noise(pair: Clique, query: MergedQuery, values: Sequence[int]) -> float:
        ones = zip(query.labels, (view.expected((n,)) for n in pair), strict=True)
        sides = [np.bincount(own, each).astype(np.float64) for own, each in ones]
        return most_noise_by_distance(sides, view.records, gaps[pair], values)

    return most_noise


def _by_answers(context: Context, view: PairView) -> Callable[[Clique, MergedQuery, Sequence[int]], float]:
    """The most noise of a pair, by its first answers; none where they were charged and lost."""
    answers = {a.clique: a for a in context.answers_so_far}

    def most_noise(pair: Clique, query: MergedQuery, values: Sequence[int]) -> float:
        if pair not in answers:
            return 0.0
        table = answers[pair].values.reshape(query.groups)
        lines = [_on_line(context.domain[n], own) for own, n in zip(query.labels, pair, strict=True)]
        return most_noise_by_answers(table, lines, answers[pair].stddev, view.records, math.prod(values))

    return most_noise


def _on_line(attribute: Attribute, groups: Ints) -> int:
    """How many groups of codes lie on the attribute's line."""
    return int(groups[attribute.ordered - 1]) + 1 if attribute.ordered else 0


def _measured_before(context: Context, view: PairView, expected: Mapping[Clique, Floats]) -> BoughtBefore:
    """Measured marginals with the mean absolute noise of a cell; one charged and lost counts as not measured.

    Larger marginals, all of whose cells were asked, tell of each of them too.
    """
    precise, domain = dict.fromkeys(expected, 1e-300), context.domain
    for a in context.answers_so_far:
        each, most = a.mean_abs / getattr(a.query, "unit", 1.0), len(a.clique)
        sizes = range(1 if isinstance(a.query, Identity) else most, most + 1)
        for c in (c for size in sizes for c in itertools.combinations(a.clique, size) if c in precise):
            precise[c] += domain.cells(c) / domain.cells(a.clique) / each**2
    weights, factor = np.array([(view.weight(c), view.factor.get(c, 1.0)) for c in expected]).reshape(-1, 2).T
    return BoughtBefore(list(expected.values()), np.array(list(precise.values())) ** -0.5, weights, factor)


@dataclass(frozen=True)
class AutoSettings(Fixed):
    """Settings, as conf/selection/auto.yaml says; given marginals are measured as in `Fixed`.

    `important` is public, and costs no privacy.
    """

    kind: ClassVar[str] = "auto"
    methods: ClassVar[tuple[type[Method], ...]] = (Auto,)
    k: list[int] | None = setting(None, least=1, filled=True)  # type: ignore[assignment]  # None: nobody asked for all
    max_cells: int | None = setting(None, least=1)  # type: ignore[assignment]
    combine_cells: int = setting(1_000, least=0, note=COMBINED)
    split: list[float] | None = setting(None, above=0, parts=SCORED_STAGES)
    fine_cells: int = setting(USUAL_FINE, least=2, most=MAX_FINE, also={0: "for none"})
    fine_share: float = setting(
        0.1, above=0, below=1, noun="a part of the budget", note="selection.fine_cells=0 for none"
    )
    important: list[str] = field(default_factory=list)
    important_weight: float = setting(4.0, least=1)

    def given(self, facts: Facts) -> Selection | None:
        """The marginals that somebody named, or that an accountant leaves which cannot count later decisions; or None.

        Without a privacy filter (`check_filter`) everything is measured in one round: all pairs that are small enough.
        """
        named = (self.marginals, self.closure, self.k, self.weights, self.merge)
        if all(s is None for s in named) and has_filter(facts):
            return None
        settings: dict[str, Any] = {"k": [1, 2] if self.k is None else self.k}
        settings |= {} if self.max_cells is None else {"max_cells": self.max_cells}
        shared = ("marginals", "closure", "weights", "merge", "floor", "fit")
        return Fixed(**settings, **{name: getattr(self, name) for name in shared})

    def fine_cells_of(self, facts: Facts) -> int:
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
        looked_at = () if self.given(facts) else pairs_looked_at(facts.joint, self.important)
        return tuple(c for c in looked_at if facts.domain.cells(c) > MAX_COUNTED)

    def schedule(self, facts: Facts, workload: Workload) -> Schedule | None:
        """One-way marginals, distances, and a reserve."""
        given, important = self.given(facts), self._important(facts)
        check_floor(self.floor, self.merge)
        if given is not None:
            return given.schedule(facts, workload)
        domain, mapped = facts.domain, facts.schema.rules.mapped
        tied = {in_pairs(domain, mapped, (n,)) for n in domain.names}
        joint = [n for n in facts.joint if all(m.target != n for m in mapped)]
        looked_at = pairs_looked_at(joint, self.important)
        candidates = tuple(c for c in looked_at if domain.cells(c) <= MAX_COUNTED and c not in tied)
        if self.max_cells is not None and self.max_cells < LEAST_CELLS:
            fix = f"at least {LEAST_CELLS}: two groups of values of each column; or null"
            raise UserError(f"got {self.max_cells}", where="selection.max_cells", fix=fix)
        others = math.comb(len(joint), 2) - len(looked_at)
        own, schema = Domain(tuple(facts.schema.fine.values())), facts.schema
        cleared = tuple(n for n in schema.shaped if n in joint and n not in schema.fine)
        cells = self.max_cells or MAX_CELLS
        method = Auto(candidates, self.combine_cells, cells, important, cleared, others)
        split = self._split(facts, len(candidates))
        slots, rest = method.slots(domain.project([n for n in domain.names if n not in own]), split)
        if not len(own):
            return Schedule(method, slots, rest)
        part = math.fsum(split) * self.fine_share / (1 - self.fine_share)
        before, scores = [s for s in slots if not s.scores], [s for s in slots if s.scores]
        return Schedule(method, [*before, *one_way_slots(own, part, FINE_STAGE), *scores], rest)  # as they are charged

    def _split(self, facts: Facts, pairs: int) -> tuple[float, ...]:
        if self.split is not None:
            return tuple(self.split)
        columns, looks = (part / max(facts.budget.epsilon / facts.budget.max_records, 1.0) for part in SPLIT[:2])
        looks *= min(max(pairs / PLENTY, 1.0), MOST_TIMES)
        return columns, looks, math.fsum(SPLIT) - columns - looks

    def _important(self, facts: Facts) -> tuple[tuple[str, float], ...]:
        """The important columns with their weight, checked; none where public facts decide what is measured."""
        require_columns(self.important, facts.schema.domain.names, where="selection.important")
        for name in self.important:
            if name not in facts.joint:
                fix = f"columns of {', '.join(facts.joint)}"
                raise UserError(f"no joint marginal holds {name!r}", where="selection.important", fix=fix)
        if self.important and self.given(facts) is not None:
            fix = "selection.weights for marginals that are given; an accountant with a privacy filter otherwise (gdp)"
            raise UserError("nothing is chosen from answers here", where="selection.important", fix=fix)
        return tuple((n, self.important_weight) for n in dict.fromkeys(self.important))
