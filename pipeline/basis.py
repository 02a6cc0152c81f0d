"""PrivBasis and PriView between rounds: what is measured follows from private choices, or from a noisy total."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy import sparse

from mechanisms.accounting.rounds import CHOOSE, PAIRS
from mechanisms.public.covering import PRECISE, strength
from mechanisms.public.domain import Clique
from mechanisms.public.itemsets import PRESENT, bases
from mechanisms.public.methods import PrivBasis, PriView
from mechanisms.public.queries import SparseQuery
from mechanisms.sensitive.selection import Candidate, Expected
from pipeline.dense import one_way, share_out
from pipeline.steps import Fit, Steps, once


def frequent_basis(steps: Steps, method: PrivBasis) -> None:
    """Frequent items and frequent pairs of them, by the exponential mechanism; then the marginals of a basis.

    Columns that are in no basis are measured alone. A choice that was charged and lost chooses nothing.
    """
    domain, total = steps.domain, len(method.items)
    items = _most_frequent(steps, CHOOSE, [(i,) for i in method.items], min(method.wanted, total))
    names = domain.canonical(n for (n,) in items)
    among: list[Clique] = list(itertools.combinations(names, 2))
    chosen = _most_frequent(steps, PAIRS, among, min(method.pairs, len(among)))
    found = bases(domain, names, chosen, method.max_cells)
    held = {n for c in found for n in c}
    share_out(steps, [*((n,) for n in domain.names if n not in held), *found])


def _most_frequent(steps: Steps, stage: str, among: list[Clique], count: int) -> list[Clique]:
    """`count` of the itemsets, one draw after the other; all of them, and no draw, where that is all there are.

    The score is the number of rows that have all of the items: one cell of a marginal, which moves by at most C under
    add_remove and under replace.
    """
    if count >= len(among):
        return among
    expected = once(lambda: steps.scores([Candidate(c, _all_present(steps, c)) for c in among], _nothing(steps)))
    left, chosen = list(among), []
    for place in steps.plan.places(stage)[:count]:
        found = steps.choose(place, left, expected)
        if found is not None:
            left.remove(found)
            chosen.append(found)
    return chosen


def _all_present(steps: Steps, clique: Clique) -> SparseQuery:
    """The one cell in which every item is present."""
    shape = steps.domain.shape(clique)
    cell = np.ravel_multi_index((PRESENT,) * len(clique), shape)
    return SparseQuery(sparse.csr_array(([1], ([0], [cell])), shape=(1, math.prod(shape)), dtype=np.int64), bits=0)


def _nothing(steps: Steps) -> Expected:
    """No rows at all: the distance to it is the count."""
    return lambda clique: np.zeros(steps.domain.cells(clique))


def covering_views(steps: Steps, method: PriView, fit: Fit) -> None:
    """One-way marginals, whose total says which design is precise enough; then its views."""
    one_way(steps)
    unit = steps.plan.purse_event.stddev
    rows = float(fit(steps.measurements)((steps.domain.names[0],)).sum())
    precise = [v for v in method.designs[1:] if strength(steps.domain, v, unit, rows) <= PRECISE]
    share_out(steps, precise[-1] if precise else method.designs[0])
