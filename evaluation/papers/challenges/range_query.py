"""Range queries as Li et al. 2021a draw them (Appendix B): counts in 30 % of the values of each attribute."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluation.counts import in_records
from evaluation.metric import MAP, Inputs
from mechanisms.public.coded_table import CodedTable, count_sparse
from mechanisms.public.domain import Attribute, Clique, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.files import JsonDict

#: Queries that hold no true record are drawn again, at most so often for each query that is asked for.
MAX_DRAWS = 50
#: Cells × queries that are looked at together.
ANSWERED = 100_000

#: Attribute → codes × queries: whether a query holds the value. A record counts if each of its values is held.
Queries = dict[str, NDArray[np.bool_]]


@dataclass(frozen=True, eq=False)
class RangeError:
    """How wrong a table answers range queries.

    Attributes:
        error: mean over the queries of |synthetic − true| / true; None where no query holds a true record.
        errors: the relative error of each query; NaN where its true answer is 0.
        seed: of the queries.
        undefined: how many queries hold no true record; they are not in the mean.
        reason: why there is no error.
    """

    error: float | None
    errors: NDArray[np.float64]
    seed: int
    undefined: int
    reason: str = ""

    def to_json(self) -> JsonDict:
        """JSON values; the error first."""
        facts = {"error": self.error, "queries": self.errors.size, "undefined": self.undefined, "seed": self.seed}
        return facts | ({"reason": self.reason} if self.reason else {})


def draw_queries(
    domain: Domain, attributes: Sequence[str], *, count: int = 300, share: float = 0.3, seed: int = 0
) -> Queries:
    """Random queries: a range of the codes of each ordered attribute, a random subset of those of any other.

    Both hold round(share · k) of the attribute's k values, at least one. *Other* and *missing* codes of an ordered
    attribute lie in no range and do not count in k; of a categorical one they are values like any other.

    Args:
        attributes: every query restricts all of them.
        count: how many queries.
        share: of the values of each attribute, in (0, 1].
        seed: the same seed and domain give the same queries; a larger count goes on with the same sequence.

    Raises:
        UserError: no or unknown attributes, or one that is named twice.
    """
    chosen = tuple(domain[name] for name in attributes)
    if not chosen or len({a.name for a in chosen}) < len(chosen):
        raise UserError(f"got {list(attributes)}", where="range queries", fix="at least one attribute, each once")
    streams = np.random.default_rng(seed).spawn(len(chosen))
    return {a.name: _values(a, count, share, r) for a, r in zip(chosen, streams, strict=True)}


def _values(attribute: Attribute, count: int, share: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Codes × queries: the values of each query."""
    k = attribute.ordered or attribute.size
    width = max(1, round(share * k))
    places = np.arange(attribute.size).reshape(-1, 1)
    if attribute.ordered:
        start = rng.integers(0, k - width + 1, count)
        return np.asarray((places >= start) & (places < start + width))
    rank = rng.random((count, attribute.size)).argsort(axis=1).argsort(axis=1)
    return np.ascontiguousarray((rank < width).T)


def answerable_queries(
    real: CodedTable, attributes: Sequence[str], *, count: int = 300, share: float = 0.3, seed: int = 0
) -> Queries:
    """`count` random queries each of which holds at least one true record, as in Li et al. 2021b, section 5.1.

    Of a longer seeded sequence the first `count` such queries; fewer where MAX_DRAWS · count queries do not have them.
    They depend on the true table: NOT private.

    Raises:
        UserError: as of `draw_queries`.
    """
    queries = draw_queries(real.domain, attributes, count=count, share=share, seed=seed)
    codes, counts = occupied(real, tuple(queries))
    if not counts.any():
        return queries
    drawn = count
    while True:
        holding = np.flatnonzero(range_answers(queries, codes, counts) > 0)
        if holding.size >= count or drawn >= MAX_DRAWS * count:
            chosen_rows = holding[:count] if holding.size else np.arange(count)
            return {name: chosen[:, chosen_rows] for name, chosen in queries.items()}
        drawn = min(2 * drawn, MAX_DRAWS * count)
        queries = draw_queries(real.domain, attributes, count=drawn, share=share, seed=seed)


def relative_error(truth: NDArray[np.float64], answers: NDArray[np.float64], *, seed: int) -> RangeError:
    """The mean of |made − truth| / truth over the queries with a true answer above 0.

    Args:
        truth, synthetic: answers in records, one per query.
    """
    defined = truth > 0
    errors = np.full(truth.shape, np.nan)
    np.divide(np.abs(answers - truth), truth, out=errors, where=defined)
    undefined = int((~defined).sum())
    if undefined == truth.size:
        return RangeError(None, errors, seed, undefined, "no query holds a true record, and the error is relative")
    return RangeError(math.fsum(errors[defined]) / (truth.size - undefined), errors, seed, undefined)


def occupied(table: CodedTable, clique: Clique) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The occupied cells of one marginal: attributes × cells of codes, and their records."""
    numbers, counts = count_sparse(table, clique)
    codes = np.stack(np.unravel_index(numbers, table.domain.shape(clique))).astype(np.int64)
    return codes, in_records(counts, table)


def range_answers(queries: Queries, codes: NDArray[np.int64], counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """The records that each query holds.

    Args:
        codes: one row per attribute of the queries, one column per cell.
        counts: records of each cell.
    """
    sums = np.zeros(next(iter(queries.values())).shape[1])
    step = max(ANSWERED // sums.size, 1)
    for start in range(0, counts.size, step):
        some = slice(start, start + step)
        inside = [held[cells[some]] for held, cells in zip(queries.values(), codes, strict=True)]
        sums += counts[some] @ np.logical_and.reduce(inside)
    return sums


def range_query_of(inputs: Inputs) -> RangeError:
    """The metric `range_query`: the mean relative error of answers; 0 is perfect, and there is no upper bound.

    Cost: a sort of the rows of either table, and about a nanosecond per occupied cell, query and attribute.
    """
    queries = answerable_queries(inputs.real, [inputs.column(role) for role in MAP], seed=inputs.options.seed)
    tables = (inputs.real, inputs.synthetic)
    truth, answers = (range_answers(queries, *occupied(t, tuple(queries))) for t in tables)
    return relative_error(truth, answers, seed=inputs.options.seed)
