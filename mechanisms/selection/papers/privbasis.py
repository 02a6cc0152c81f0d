"""PrivBasis (Li et al. 2012; Li et al. 2021b, section 3.1): frequent items and pairs, chosen privately, and a basis."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mechanisms.accounting.plan import Reservation
from mechanisms.public.candidates import Candidate
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.queries.query_matrices import Identity, SparseQuery
from mechanisms.public.release import Measurements
from mechanisms.public.settings import setting
from mechanisms.public.workload import Workload
from mechanisms.selection.base import CHOOSE, LATER, PAIRS, Facts, Method, Schedule, Selection
from mechanisms.selection.context import Context
from mechanisms.selection.questions import share_out

#: The most items in a frequent set.
LARGEST = 8
#: The code that means that a row has the item.
PRESENT = 1


@dataclass(frozen=True)
class PrivBasis(Method):
    """Frequent items and frequent pairs of them, by the exponential mechanism; then the marginals of a basis.

    Attributes:
        items: the binary columns; code 1 means that a row has the item.
        top: how many items are chosen.
        pairs: how many pairs of them are chosen.
        max_cells: of a basis.
    """

    kind: ClassVar[str] = "privbasis"
    items: Clique
    top: int
    pairs: int
    max_cells: int = 256

    def slots(self, split: Sequence[float]) -> tuple[list[Reservation], float]:
        """Choices of items, choices of pairs of them (none where all are taken), and the part for the basis."""
        slots = []
        if self.top < len(self.items):
            slots += [Reservation(CHOOSE, None, 0, split[0] / self.top) for _ in range(self.top)]
        if self.pairs < math.comb(self.top, 2):
            slots += [Reservation(PAIRS, None, 0, split[1] / self.pairs) for _ in range(self.pairs)]
        return slots, split[2]

    def run(self, context: Context) -> None:
        """Columns that are in no basis are measured alone. A choice that was charged and lost chooses nothing."""
        domain = context.domain
        items = _most_frequent(context, CHOOSE, [(i,) for i in self.items], min(self.top, len(self.items)))
        names = domain.canonical(n for (n,) in items)
        among: list[Clique] = list(itertools.combinations(names, 2))
        chosen = _most_frequent(context, PAIRS, among, min(self.pairs, len(among)))
        basis = bases(domain, names, chosen, self.max_cells)
        held = {n for c in basis for n in c}
        share_out(context, [*((n,) for n in domain.names if n not in held), *basis])

    def later_cells(self, domain: Domain, slots: Sequence[Reservation]) -> list[tuple[str, int]]:
        """The columns alone, and a basis for each item."""
        alone = [(n, domain[n].size) for n in domain.names]
        return super().later_cells(domain, slots) + alone + [(LATER, self.max_cells)] * self.top


def _most_frequent(context: Context, stage: str, among: list[Clique], count: int) -> list[Clique]:
    """`count` of the itemsets, one draw after the other; all of them, and no draw, where that is all there are.

    The score is the number of rows that have all of the items: one cell of a marginal, which moves by at most C under
    add_remove and under replace.
    """
    if count >= len(among):
        return among
    domain = context.domain
    scores = context.score(
        lambda: {c: Candidate(c, _all_present(domain, c)) for c in among},
        lambda: lambda clique: np.zeros(domain.cells(clique)),  # no rows at all: the distance to it is the count
    )
    left, chosen = list(among), []
    for slot in context.slots(stage)[:count]:
        choice = context.choose(slot, left, scores)
        if choice is not None:
            left.remove(choice)
            chosen.append(choice)
    return chosen


def _all_present(domain: Domain, clique: Clique) -> SparseQuery:
    """The one cell in which every item is present."""
    shape = domain.shape(clique)
    cell = np.ravel_multi_index((PRESENT,) * len(clique), shape)
    from scipy import sparse

    return SparseQuery(sparse.csr_array(([1], ([0], [cell])), shape=(1, math.prod(shape)), dtype=np.int64), bits=0)


@dataclass(frozen=True)
class PrivBasisSettings(Selection):
    """Settings; conf/selection/privbasis.yaml says what each is."""

    kind: ClassVar[str] = "privbasis"
    whole_pairs: ClassVar[str] = "selection"
    methods: ClassVar[tuple[type[Method], ...]] = (PrivBasis,)
    items: int | None = setting(None, least=1)
    pairs: int | None = setting(None, least=0)
    view_cells: int = setting(256, least=3)
    split: list[float] = setting([1.0, 4.0, 5.0], above=0, parts=("items", "pairs", "basis"))

    def schedule(self, facts: Facts, workload: Workload) -> Schedule:
        """As many items and pairs as wanted."""
        schema = facts.schema
        items = tuple(c.name for c in schema.columns if c.value_codes == 2 and c.name in schema.measured)
        if not items:
            fix = "declare them as flags, or as categorical columns of two values, in the schema"
            raise UserError("no column is binary", where="selection=privbasis", fix=fix)
        count = min(12, len(items)) if self.items is None else self.items
        if count > len(items):
            raise UserError(f"got {count}", where="selection.items", fix=f"1 to {len(items)}, the binary columns")
        every = count * (count - 1) // 2
        several = min(2 * count, every) if self.pairs is None else self.pairs
        if several > every:
            raise UserError(f"got {several}", where="selection.pairs", fix=f"0 to {every}, the pairs of the items")
        method = PrivBasis(items, count, several, self.view_cells)
        return Schedule(method, *method.slots(self.split))


@dataclass(frozen=True)
class Itemset:
    """Some items, and how many rows have them all.

    Attributes:
        items: their columns.
        count: noisy, in records.
        stddev: of the noise, in records.
    """

    items: Clique
    count: float
    stddev: float


def bases(domain: Domain, items: Sequence[str], pairs: Collection[Clique], max_cells: int) -> list[Clique]:
    """A basis: marginals such that every clique of the graph of frequent pairs lies in one of them.

    The maximal cliques of the graph (items without a pair are cliques of one), larger ones split to max_cells, then
    merged two by two while that lowers the noise: with m marginals of cᵢ cells the sum of all variances is m · Σ cᵢ.

    Args:
        items: the frequent items, binary columns.
        pairs: the frequent pairs of them.
        max_cells: of a basis.
    """
    near: dict[str, set[str]] = {i: set() for i in items}
    for a, b in pairs:
        near[a].add(b)
        near[b].add(a)
    itemsets: list[frozenset[str]] = []
    for clique in _maximal(near):
        itemsets += _split(domain, domain.canonical(clique), max_cells)
    itemsets = _merged(domain, sorted(set(itemsets), key=lambda s: domain.axes(domain.canonical(s))), max_cells)
    maximal_sets = [s for s in itemsets if not any(s < t for t in itemsets)]
    return sorted((domain.canonical(s) for s in maximal_sets), key=lambda c: (len(c), domain.axes(c)))


def frequent_itemsets(measurements: Measurements, items: Collection[str], *, least: float) -> list[Itemset]:
    """The itemsets that at least so many rows have, by noisy answers; post-processing, costs no privacy.

    An itemset's count is the sum of the cells of a marginal that holds it, in which all of its items are present; where
    several marginals hold it, their mean with weights 1/variance. Itemsets that no marginal holds are not listed.

    Args:
        items: the binary columns that are items; code 1 means that a row has it.
        least: the threshold, in records.
    Returns:
        the most frequent first.
    """
    estimates: dict[Clique, list[tuple[float, float]]] = {}
    for answer in measurements.answers:
        if not isinstance(answer.query, Identity):
            continue
        values = answer.values.reshape(measurements.domain.shape(answer.clique))
        mine = [n for n in answer.clique if n in items]
        for size in range(1, min(len(mine), LARGEST) + 1):
            for subset in itertools.combinations(mine, size):
                part = values[tuple(PRESENT if n in subset else slice(None) for n in answer.clique)]
                estimates.setdefault(subset, []).append((float(part.sum()), part.size * answer.stddev**2))
    result = []
    for subset, several in estimates.items():
        count, precision = np.array([c for c, _ in several]), np.array([1 / v for _, v in several])
        mean = float(count @ precision / precision.sum())
        if mean >= least:
            result.append(Itemset(subset, mean, float(precision.sum() ** -0.5)))
    return sorted(result, key=lambda i: (-i.count, len(i.items), i.items))


def _maximal(near: dict[str, set[str]]) -> list[frozenset[str]]:
    """All maximal cliques (Bron & Kerbosch 1973, with a pivot)."""
    largest: list[frozenset[str]] = []
    stack: list[tuple[frozenset[str], set[str], set[str]]] = [(frozenset(), set(near), set())]
    while stack:
        clique, open_, done = stack.pop()
        if not open_ and not done:
            if clique:
                largest.append(clique)
            continue
        if not open_:
            continue
        pivot = max(sorted(open_ | done), key=lambda n: len(near[n] & open_))
        for name in sorted(open_ - near[pivot]):
            stack.append((clique | {name}, open_ & near[name], done & near[name]))
            open_ = open_ - {name}
            done = done | {name}
    return largest


def _split(domain: Domain, clique: Clique, max_cells: int) -> list[frozenset[str]]:
    """The clique, or where it is too large all its subsets of one attribute less, and so on."""
    if domain.cells(clique) <= max_cells or len(clique) == 1:
        return [frozenset(clique)]
    if len(clique) == 2:
        return [frozenset([n]) for n in clique]
    blocks = _blocks(domain, clique, max_cells)
    if len(blocks) < 2:
        return [frozenset(clique[:1]), *_split(domain, clique[1:], max_cells)]
    joined = [frozenset(a + b) for a, b in itertools.combinations(blocks, 2)]
    return joined or [frozenset(b) for b in blocks]


def _blocks(domain: Domain, clique: Clique, max_cells: int) -> list[Clique]:
    """Parts of a clique any two of which fit together: so that every pair of attributes lies in a union of two."""
    half = math.isqrt(max_cells)
    blocks: list[list[str]] = []
    for name in clique:
        if blocks and domain.cells((*blocks[-1], name)) <= half:
            blocks[-1].append(name)
        else:
            blocks.append([name])
    return [tuple(b) for b in blocks if domain.cells(b) <= half]


def _merged(domain: Domain, itemsets: list[frozenset[str]], max_cells: int) -> list[frozenset[str]]:
    """Merged greedily while m · Σ cells falls."""
    while len(itemsets) > 1:
        cells = [domain.cells(s) for s in itemsets]
        now, count = len(itemsets) * sum(cells), len(itemsets)
        best: tuple[int, int, int] | None = None
        for i, j in itertools.combinations(range(count), 2):
            both = domain.cells(itemsets[i] | itemsets[j])
            if both <= max_cells:
                then = (count - 1) * (sum(cells) - cells[i] - cells[j] + both)
                if then <= now and (best is None or then < best[0]):
                    best = (then, i, j)
        if best is None:
            return itemsets
        _, i, j = best
        itemsets = [s for k, s in enumerate(itemsets) if k not in (i, j)] + [itemsets[i] | itemsets[j]]
    return itemsets
