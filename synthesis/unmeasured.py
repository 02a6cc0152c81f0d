"""Marginals that nobody measured, as the model has them: rows are drawn at random, and come closer to it by these."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from mechanisms.public.domain import Clique, Domain
from mechanisms.public.marginals import Values
from synthesis.consistency.agree import Target
from synthesis.consistency.projection import raked
from synthesis.gum.layout import outermost
from synthesis.pgm.grouped_model import GroupedModel

#: For pairs and triples: the most of them, their most cells per record (in emptier ones no row can be placed better),
#: and their noise, as a share of that of the least precise answer.
KINDS = {2: (300, 4.0, 0.5), 3: (150, 1.0, 0.5)}
#: The most cells of one, and of all; of more pairs, or triples, than these none is looked at.
MOST_CELLS, ALL_CELLS, MOST_LISTED = 250_000, 2_000_000, 200_000
#: A marginal of the model is fitted to the targets inside of it in so many rounds.
ROUNDS = 3


def unmeasured(model: GroupedModel, targets: Sequence[Target]) -> tuple[Target, ...]:
    """Pairs and triples that lie in no target, as the model has them, fitted to the targets inside of them.

    Rows of a model are whole numbers of its nodes' cells; across nodes they meet at random, and a pair or a triple that
    no node holds has the noise of a random draw of so many rows. Those with the most cells come first, as far as there
    are records for these.

    Guarantee: post-processing; costs no privacy.
    """
    fitted: list[Target] = []
    noise, left = max((t.stddev for t in targets), default=1.0), ALL_CELLS
    for size, (most, full, share) in KINDS.items():
        for clique in _largest(model.domain, targets, size, min(full * model.total, MOST_CELLS))[:most]:
            if (cells := model.domain.cells(clique)) <= left and model.answerable(clique, MOST_CELLS):
                drawn = math.sqrt(model.total / cells)
                values = _fitted(model, (*targets, *fitted), clique)
                if not float(values.sum()) > 0:  # targets inside of it contradict each other
                    continue
                fitted.append(Target(clique, values, max(share * noise, drawn)))
                left -= cells
    return tuple(fitted)


def _largest(domain: Domain, targets: Sequence[Target], size: int, most: float) -> list[Clique]:
    """Cliques of so many attributes that lie in no target and have at most so many cells, those of the most first."""
    if math.comb(len(domain.names), size) > MOST_LISTED:
        return []
    inside = {c for t in targets for c in itertools.combinations(t.clique, size)}
    sizes = dict(zip(domain.names, domain.shape(domain.names), strict=True))
    cells = {c: math.prod(sizes[n] for n in c) for c in itertools.combinations(domain.names, size) if c not in inside}
    return sorted((c for c, n in cells.items() if n <= most), key=lambda c: -cells[c])


def _fitted(model: GroupedModel, targets: Sequence[Target], clique: Clique) -> Values:
    """The model's marginal, multiplied until it has the targets inside of it, nearly."""
    values = model.marginal(clique).reshape(model.domain.shape(clique))
    largest = outermost([t for t in targets if set(t.clique) < set(clique)])
    for _ in range(ROUNDS if len(largest) > 1 else 1):
        for target in largest:
            values, _ = raked(values, tuple(clique.index(n) for n in target.clique), target.values)
    return values * (model.total / max(float(values.sum()), 1e-300))
