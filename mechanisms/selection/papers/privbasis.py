"""PrivBasis (Li et al. 2012; Li et al. 2021b, section 3.1): frequent items and pairs, chosen privately, and a basis."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mechanisms.accounting.plan import Reservation
from mechanisms.public.candidates import Candidate, Expected
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.queries.query_matrices import SparseQuery
from mechanisms.public.settings import setting
from mechanisms.public.workload import Workload
from mechanisms.selection.base import CHOOSE, LATER, PAIRS, Facts, Method, Schedule, Selection
from mechanisms.selection.context import Context
from mechanisms.selection.papers.itemsets import PRESENT, bases
from mechanisms.selection.questions import share_out


@dataclass(frozen=True)
class PrivBasis(Method):
    """Frequent items and frequent pairs of them, by the exponential mechanism; then the marginals of a basis.

    Attributes:
        items: the binary columns; code 1 means that a row has the item.
        wanted: how many items are chosen.
        pairs: how many pairs of them are chosen.
        max_cells: of a basis.
    """

    kind: ClassVar[str] = "privbasis"
    items: Clique
    wanted: int
    pairs: int
    max_cells: int = 256

    def slots(self, split: Sequence[float]) -> tuple[list[Reservation], float]:
        """Choices of items, choices of pairs of them (none where all are taken), and the part for the basis."""
        slots = []
        if self.wanted < len(self.items):
            slots += [Reservation(CHOOSE, None, 0, split[0] / self.wanted) for _ in range(self.wanted)]
        if self.pairs < math.comb(self.wanted, 2):
            slots += [Reservation(PAIRS, None, 0, split[1] / self.pairs) for _ in range(self.pairs)]
        return slots, split[2]

    def run(self, context: Context) -> None:
        """Columns that are in no basis are measured alone. A choice that was charged and lost chooses nothing."""
        domain = context.domain
        items = _most_frequent(context, CHOOSE, [(i,) for i in self.items], min(self.wanted, len(self.items)))
        names = domain.canonical(n for (n,) in items)
        among: list[Clique] = list(itertools.combinations(names, 2))
        chosen = _most_frequent(context, PAIRS, among, min(self.pairs, len(among)))
        basis = bases(domain, names, chosen, self.max_cells)
        held = {n for c in basis for n in c}
        share_out(context, [*((n,) for n in domain.names if n not in held), *basis])

    def later_cells(self, domain: Domain, slots: Sequence[Reservation]) -> list[tuple[str, int]]:
        """The columns alone, and a basis for each item."""
        alone = [(n, domain[n].size) for n in domain.names]
        return super().later_cells(domain, slots) + alone + [(LATER, self.max_cells)] * self.wanted


def _most_frequent(context: Context, stage: str, among: list[Clique], count: int) -> list[Clique]:
    """`count` of the itemsets, one draw after the other; all of them, and no draw, where that is all there are.

    The score is the number of rows that have all of the items: one cell of a marginal, which moves by at most C under
    add_remove and under replace.
    """
    if count >= len(among):
        return among
    scores = context.score(
        lambda: {c: Candidate(c, _all_present(context.domain, c)) for c in among}, lambda: _nothing(context.domain)
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


def _nothing(domain: Domain) -> Expected:
    """No rows at all: the distance to it is the count."""
    return lambda clique: np.zeros(domain.cells(clique))


@dataclass(frozen=True)
class PrivBasisSettings(Selection):
    """Settings.

    Attributes:
        items: how many of the binary columns are chosen; None: 12 at most.
        pairs: how many pairs of them are chosen; None: twice as many as items.
        view_cells: a basis has at most so many cells.
        split: parts of the budget for items, pairs and the basis.
    """

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
