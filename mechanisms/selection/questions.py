"""Rounds that several methods share: one-way marginals, the reserve shared out, a tree, what a model has room for."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from mechanisms.public.arrays import Floats
from mechanisms.public.candidates import Candidate, Expected
from mechanisms.public.designs.dense import Question, whole_questions
from mechanisms.public.designs.pair_view import joining
from mechanisms.public.domain import Clique
from mechanisms.public.queries.query_matrices import Identity, QueryMatrix
from mechanisms.selection.base import CHOOSE, GIVEN
from mechanisms.selection.context import Context, Part, Scores

#: The noise term of an AIM score: Σ |noise| of all cells, or of each cell at most the error that the model can have.
FULL, CAPPED = "noise", "capped"
#: The shared-out part of the reserve; 1e-9 is kept for the rounding of many parts.
WHOLE = 1 - 1e-9
#: A marginal whose part of the reserve would be smaller is not measured again: the gain in precision is negligible.
LEAST_PART = 1e-6


def ask_given(context: Context, stage: str = GIVEN) -> list[Clique]:
    """Measure the slots of known marginals, whole; their names."""
    slots = context.slots(stage)
    context.ask([(s, s.clique, Identity(context.domain.cells(s.clique))) for s in slots])
    return [s.clique for s in slots]


def share_out(
    context: Context,
    cliques: Sequence[Clique],
    query_of: Callable[[Clique], QueryMatrix] | None = None,
    *,
    whole: bool = True,
) -> None:
    """Measure these marginals with the whole reserve, each with a part in proportion to cells^power.

    Args:
        query_of: what is asked of each; None: all of its cells.
        whole: the parts follow the cells of the marginals, not the number of answers.
    """
    sizes = [context.domain.cells(c) if whole or query_of is None else query_of(c).rows for c in cliques]
    loads = np.array(sizes, np.float64) ** context.reserve.power
    parts = loads / loads.sum() * WHOLE
    ask = query_of or (lambda clique: Identity(context.domain.cells(clique)))
    paid = zip(cliques, parts.tolist(), strict=True)
    context.ask([(Part(part, i), c, ask(c)) for i, (c, part) in enumerate(paid)])


def spend_together(
    context: Context,
    pairs: Sequence[Question],
    columns: Mapping[Clique, float],
    *,
    left: float = 1.0,
    first: int = 0,
) -> None:
    """Measure one round: pairs, as `combined_questions` has them, and columns.

    Args:
        pairs, columns: with their parts of what is left of the reserve.
        left: the part of the reserve that is left.
        first: the number of the round's first charge.
    """
    questions = [*pairs, *whole_questions(context.domain, columns)]
    paid = [(c, q, p * left * WHOLE) for c, q, p in questions if p > LEAST_PART]
    context.ask([(Part(p, i), c, q) for i, (c, q, p) in enumerate(paid, first)])


def grow_tree(context: Context, candidates: Sequence[Clique], scores: Scores) -> list[Clique]:
    """Kruskal's tree, each edge by the exponential mechanism among those that join two components."""
    tree: list[Clique] = []
    for slot in context.slots(CHOOSE):
        edge = context.choose(slot, joining(candidates, tree), scores)
        if edge is not None:
            tree.append(edge)
    return tree


def small_enough(context: Context, candidates: Sequence[Clique], limit: int) -> list[Clique]:
    """The candidates whose model, with all that is measured, keeps to the limit; those inside a measured one always.

    Those that the present model cannot answer within memory are left out: their scores could not be computed.
    """
    orders = sorted({len(c) for c in candidates})
    measured = {s for a in context.answers_so_far for k in orders for s in itertools.combinations(a.clique, k)}
    inside = measured.intersection(candidates)
    others = [c for c in candidates if c not in inside]
    allowed = inside | set(context.possible(others, limit))
    return [c for c in candidates if c in allowed]


def penalized(
    context: Context, weights: Mapping[Clique, float], noise: float, expected: Expected, penalty: str = FULL
) -> Scores:
    """Distances to the model less what the noise would add, times the weights; made where a draw is due.

    Args:
        noise: mean absolute noise of an answer, in records.
        penalty: FULL, of every cell; or CAPPED, as of `capped_noise`.
    """
    cells = context.domain.cells

    def candidates() -> Mapping[Clique, Candidate]:
        if penalty == CAPPED:
            return {c: Candidate(c, weight=w, penalty=capped_noise(expected(c), noise)) for c, w in weights.items()}
        return {c: Candidate(c, weight=w, penalty=noise * cells(c)) for c, w in weights.items()}

    return context.score(candidates, lambda: expected)


def capped_noise(expected: Floats, noise: float) -> float:
    """What noise adds to a marginal, in records, where no cell errs by more than its records may be off by.

    Σ over cells of min(noise, e + min(2e, √e)): a cell that should hold e records, fewer than the noise, comes out as
    what the model says, and errs by about e, and by what chance does to e (the mean absolute deviation of a Poisson
    number, from above). So in a table of few rows, whose cells are off by chance alone, little is taken for a gain.
    """
    records = np.maximum(expected, 0.0)
    chance = np.minimum(2 * records, np.sqrt(records))
    return float(np.minimum(noise, records + chance).sum())
