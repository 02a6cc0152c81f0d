"""Pairs of columns as noisy distances from independence show them: their errors where they are measured, and not.

Pairs that follow from others: columns that depend along a forest of measured pairs, and nowhere else.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.arrays import Flags, Floats
from mechanisms.public.candidates import Expected
from mechanisms.public.designs.allocation import PairOffer
from mechanisms.public.designs.deviations import PairCells
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.queries.cell_sums import ResidualQuery, projected
from mechanisms.public.queries.query_matrices import Identity, QueryMatrix
from mechanisms.public.release import NoisyMarginal

#: If there are more pairs than this (more than 316 columns), only pairs of important columns are screened.
MOST_PAIRS = 50_000


def pairs(domain: Domain, names: Sequence[str], max_cells: int, further: Clique = ()) -> tuple[Clique, ...]:
    """All pairs of the attributes whose marginal, `further` attributes included, has at most max_cells cells."""
    every = itertools.combinations(names, 2)
    return tuple(p for p in every if domain.cells(p) * domain.cells(further) <= max_cells)


def pairs_looked_at(names: Sequence[str], important: Collection[str]) -> tuple[Clique, ...]:
    """All pairs; where these are too many those with an important column, or of two; where these are too many, none."""
    if math.comb(len(names), 2) <= MOST_PAIRS:
        return tuple(itertools.combinations(names, 2))
    place = {n: i for i, n in enumerate(names)}
    marked = sorted(place[n] for n in set(important) if n in place)
    one = math.comb(len(names), 2) - math.comb(len(names) - len(marked), 2)
    for count, others in ((one, range(len(names))), (math.comb(len(marked), 2), marked)):
        if count <= MOST_PAIRS:
            joined = {(min(i, j), max(i, j)) for i in marked for j in others if i != j}
            return tuple((names[i], names[j]) for i, j in sorted(joined))
    return ()


def passed_over_line(count: int, looked_at: Collection[Clique]) -> str:
    """That so many pairs are not looked at, and the way out, in words."""
    seen = (
        f"{len(looked_at):,} pairs with important columns alone are looked at"
        if looked_at
        else "columns alone are measured"
    )
    why = "the noise of a look, and its time, grow with the number of pairs"
    return f"{count:,} pairs are too many: {seen}, {why}; selection.important=[a,b] names columns whose pairs matter"


def joining(candidates: Collection[Clique], edges: Collection[Clique]) -> list[Clique]:
    """The candidates whose two attributes the edges do not connect yet, in the order given."""
    home: dict[str, str] = {}
    _joined(edges, home)
    return [c for c in candidates if _root(home, c[0]) != _root(home, c[1])]


def forest_edges(candidates: Collection[Clique]) -> int:
    """How many edges a spanning forest of the candidates' graph has: a fact of the graph, whatever is chosen."""
    return len(_joined(candidates, {}))


def heaviest_forest(candidates: Sequence[Clique], weights: Sequence[float]) -> tuple[int, ...]:
    """The places of a forest of the pairs of largest weights, all above 0, the heaviest first (Kruskal's algorithm)."""
    order = sorted((i for i in range(len(candidates)) if weights[i] > 0), key=lambda i: -weights[i])
    return tuple(order[k] for k in _joined([candidates[i] for i in order], {}))


def _joined(edges: Collection[Clique], home: dict[str, str]) -> list[int]:
    """The places of the edges that join two trees, which are one from then on."""
    taken = []
    for place, edge in enumerate(edges):
        one, two = (_root(home, n) for n in edge)
        if one != two:
            home[one] = two
            taken.append(place)
    return taken


def _root(home: dict[str, str], name: str) -> str:
    """The attribute that a tree is known by; what leads there is shortened."""
    while home.setdefault(name, name) != name:
        home[name] = home[home[name]]
        name = home[name]
    return name


#: False discovery rate of the clearly dependent pairs (Benjamini & Hochberg 1995). These are measured even if the mean
#: expected error would be slightly lower without: no strong relation between columns vanishes.
FALSE_SHARE = 0.2
#: Distances are ignored if their noise is above this share of the records.
MOST_SCORE_NOISE = 0.5
#: The prior of true distances: `ATOMS` evenly spaced points and as many at quantiles, fitted by `EM_ROUNDS` of EM.
ATOMS = 64
EM_ROUNDS = 100
#: No pair is offered to the allocation.
NO_PAIRS = PairOffer(
    lambda _, levels: levels,
    lambda _, level: level,
    np.zeros(0),
    np.zeros((0, 2), np.intp),
    gaps=np.zeros(0),
    weights=np.zeros(0),
    factor=np.zeros(0),
    summed=np.zeros((0, 2)),
)
#: Passes of iterative proportional fitting that bring a pair to its one-way marginals.
PASSES = 10
#: What pairs tell of a column is not independent where they are asked in one larger marginal: of d columns of two
#: values the variance of one from all pairs is then 2^(d − 1) / d times as large, 1.3 for three and 3.2 for five.
ALIKE = 2.0


@dataclass(frozen=True, eq=False)
class PairView:
    """The candidates as they would be if their columns were independent, from noisy answers.

    Attributes:
        queries: what would be asked of each.
        expected: the cells of a marginal if columns were independent.
        spread: the standard deviations of the answers to the one-way marginals so far.
        sides: per candidate the places of the known marginals of its columns.
        level: a quarter of the noise that a measurement is likely to have: distances of cells count beyond it.
        important: columns whose errors count so many times; others count once.
        factor: the noise of a pair's answers, over that of all its cells for the same part; absent: 1.
    """

    queries: Mapping[Clique, QueryMatrix]
    expected: Expected
    spread: Mapping[Clique, float]
    sides: NDArray[np.intp]
    level: float
    important: Mapping[str, float] = field(default_factory=dict)
    factor: Mapping[Clique, float] = field(default_factory=dict)

    def weight(self, clique: Clique) -> float:
        """How often the error of a marginal counts: the product over its columns."""
        return math.prod(self.important.get(n, 1.0) for n in clique)

    @cached_property
    def pairs(self) -> tuple[Clique, ...]:
        return tuple(self.queries)

    @cached_property
    def records(self) -> float:
        """Of the table, as answers to its columns tell; at least 1."""
        return max(float(np.sum(self.expected(self.pairs[0][:1]))), 1.0)

    def cells(self, pair: Clique, expected: Floats) -> PairCells:
        """Of the pair's query, from what a model expects of the marginal."""
        left, right = pair
        sides = self.expected((left,)), self.expected((right,))
        errors = self.spread.get((left,), 0.0), self.spread.get((right,), 0.0)
        return PairCells.of_pair(expected, sides, errors, self.queries[pair])

    def _summed(self, pair: Clique) -> tuple[float, float]:
        """How many cells make a value of each side where all cells are asked, `ALIKE` times."""
        if not isinstance(self.queries[pair], Identity) or self.factor.get(pair, 1.0) < 1:
            return math.inf, math.inf
        left, right = (float(self.expected((n,)).size) for n in pair)
        return ALIKE * right, ALIKE * left

    def offer_by_distances(
        self,
        places: Sequence[int],
        cells: Sequence[PairCells],
        more: Floats,
        stddev: Floats,
        further: Collection[int] = (),
    ) -> PairOffer:
        """What noisy distances tell about pairs: their errors where they are not measured, and where they are.

        Args:
            places, cells: of the pairs.
            more: how much of their distances is beyond noise and beyond what chance makes, with noise.
            stddev: of `more`.
            further: which of them are compared with what follows from others: such a distance says that they do not.
        """
        if not cells:
            return NO_PAIRS
        excess = np.where(stddev < MOST_SCORE_NOISE * cells[0].records, shrunk(more, stddev), 0.0)
        strength = [c.strength(c.base(self.level) + t, self.level) for c, t in zip(cells, excess.tolist(), strict=True)]
        shown = discovered(more / stddev)
        weights = np.array([self.weight(self.pairs[i]) for i in places])
        forest = heaviest_forest([self.pairs[i] for i in places], np.where(shown, weights * excess, 0.0).tolist())
        gaps = np.array([c.distance(s) for c, s in zip(cells, strength, strict=True)])
        rows = np.array([self.queries[self.pairs[i]].rows for i in places], np.float64)
        return PairOffer(
            lambda i, at: cells[i].left(strength[i], at),
            lambda i, at: cells[i].shown(strength[i], at),
            rows,
            self.sides[list(places)],
            gaps,
            weights,
            np.array([self.factor.get(self.pairs[i], 1.0) for i in places]),
            np.array([self._summed(self.pairs[i]) for i in places]),
            tuple(forest),
            tuple(i for i in further if shown[i] and i not in forest),
        )


def sides_of(given: Sequence[Clique], candidates: Sequence[Clique]) -> NDArray[np.intp]:
    """Per candidate the places of the given marginals of its columns."""
    order = sorted(range(len(given)), key=lambda i: -len(given[i]))
    place = {name: i for i in order for name in given[i]}
    return np.array([[place[n] for n in c] for c in candidates], np.intp).reshape(-1, 2)


def discovered(scores: Floats) -> Flags:
    """Which values are not noise alone, but for an expected `FALSE_SHARE` of these (Benjamini & Hochberg 1995).

    Args:
        scores: values over the standard deviations of their noise.
    """
    chance = np.array([1 - NormalDist().cdf(z) for z in scores.tolist()])
    ordered = np.sort(chance)
    passed = ordered <= FALSE_SHARE * np.arange(1, chance.size + 1) / chance.size
    return np.asarray(chance <= (ordered[passed].max() if passed.any() else -1.0))


def shrunk(values: Floats, stddev: Floats) -> Floats:
    """What noisy values are expected to be, given all of them: none below 0, and the largest not the noisiest.

    The law of the true values is the one under which these values are likeliest, over `ATOMS` places each on a line
    and at quantiles (Kiefer & Wolfowitz 1956; by expectation maximisation); then each true value's mean, given its
    noisy one (empirical Bayes; Jiang & Zhang 2009). Where the values spread no more than their noise all become alike.

    Args:
        stddev: of each value's Gaussian noise.
    """
    places = np.maximum(values, 0.0)
    line = np.linspace(0.0, float(places.max()), ATOMS)
    atoms = np.unique(np.concatenate([line, np.quantile(places, np.linspace(0, 1, ATOMS))]))
    off = ((values[:, None] - atoms) / stddev[:, None]) ** 2 / 2
    likely = np.exp(off.min(axis=1, keepdims=True) - off)
    weights = np.full(atoms.size, 1 / atoms.size)
    for _ in range(EM_ROUNDS):
        given = likely * weights
        given /= given.sum(axis=1, keepdims=True)
        weights = given.mean(axis=0)
    return np.asarray(given @ atoms)


@dataclass(frozen=True, eq=False)
class TreeModel:
    """Columns that are independent given their neighbours in a forest.

    Attributes:
        sides: the cells of each column, all with the same sum above 0.
        edges: the cells of each pair of the forest, as (left, right), with these sides.
    """

    sides: Mapping[str, Floats]
    edges: Mapping[Clique, Floats]

    @cached_property
    def _near(self) -> dict[str, dict[str, Floats]]:
        near: dict[str, dict[str, Floats]] = {}
        for (a, b), cells in self.edges.items():
            near.setdefault(a, {})[b] = cells
            near.setdefault(b, {})[a] = cells.T
        return near

    def path(self, pair: Clique) -> tuple[str, ...]:
        """The columns from one of the pair to the other; empty where the forest does not join them."""
        start, end = pair
        before: dict[str, str] = {start: ""}
        waiting = [start]
        while waiting and end not in before:
            here = waiting.pop()
            further = [n for n in self._near.get(here, {}) if n not in before]
            before |= dict.fromkeys(further, here)
            waiting += further
        steps = [end] if end in before else []
        while steps and steps[-1] != start:
            steps.append(before[steps[-1]])
        return tuple(reversed(steps))

    def marginal(self, pair: Clique) -> Floats:
        """The pair's cells, flattened: Σ_b p(a, b) p(c | b) along the path; independent where there is none."""
        path = self.path(pair)
        if not path:
            left, right = (self.sides[n] for n in pair)
            return np.asarray(np.outer(left, right).ravel() / max(float(left.sum()), 1e-300))
        cells = self._near[path[0]][path[1]]
        for middle, end in itertools.pairwise(path[1:]):
            side = np.maximum(self.sides[middle], 1e-300)
            cells = cells @ (self._near[middle][end] / side[:, None])
        return np.asarray(cells.ravel())


def followed(expected: Floats, query: QueryMatrix, answers: Floats, stddev: float) -> Floats:
    """A pair's cells that follow noisy answers where these differ from what is expected by more than their noise.

    Differences within √2 standard deviations do not count, large ones count whole (non-negative garrote, Breiman 1995);
    then the sides are those of `expected` again.

    Args:
        expected: left × right cells under independence, in records.
    """
    flat = expected.ravel()
    groups = query.answer(flat)
    off = np.asarray(answers, np.float64) - groups
    damping = np.maximum(1 - 2 * stddev**2 / np.maximum(off**2, 1e-300), 0.0)
    factor = np.maximum(groups + damping * off, 0.0) / np.maximum(groups, 1e-9)
    cells = (flat * query.transpose(factor)).reshape(expected.shape) + 1e-9 * expected
    sides = expected.sum(axis=1), expected.sum(axis=0)
    for _ in range(PASSES):
        cells = cells * (sides[0] / np.maximum(cells.sum(axis=1), 1e-300))[:, None]
        cells = cells * (sides[1] / np.maximum(cells.sum(axis=0), 1e-300))
    return np.asarray(cells)


def tree_of(domain: Domain, answers: Iterable[NoisyMarginal], expected: Expected) -> TreeModel:
    """What follows from the answers to the pairs of a forest.

    Args:
        expected: independent columns: their cells, in records.
    """
    edges = {}
    for answer in answers:
        cells = expected(answer.clique).reshape(domain.shape(answer.clique))
        if isinstance(answer.query, ResidualQuery):  # of the sides it says nothing: they are as expected
            values = (cells + answer.query.residual(answer.values) - projected(cells)).ravel()
            noise = answer.query.noise(answer.stddev)
            edges[answer.clique] = followed(cells, Identity(cells.size), values, noise)
        else:
            edges[answer.clique] = followed(cells, answer.query, answer.values, answer.stddev)
    return TreeModel({n: expected((n,)) for n in domain.names}, edges)
