"""Metrics of temporal maps (Li et al. 2021a, Appendix B; sprint 1 of NIST): range queries, and pie charts both ways."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import rel_entr

from evaluation.counts import cells_in_records, in_records
from evaluation.metric import MAP, Inputs
from evaluation.papers.ncript.ncript_rows import thresholded
from mechanisms.public.arrays import Flags, Floats, Ints
from mechanisms.public.coded_table import CodedTable, count_sparse
from mechanisms.public.domain import Attribute, Clique, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.files import JsonDict

#: Queries that hold no true record are drawn again, at most so often for each query that is asked for.
MAX_DRAWS = 50
#: Cells × queries that are looked at together.
ANSWERED = 100_000

#: Attribute → codes × queries: whether a query holds the value. A record counts if each of its values is held.
Queries = dict[str, Flags]


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
    errors: Floats
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


def _values(attribute: Attribute, count: int, share: float, rng: np.random.Generator) -> Flags:
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


def relative_error(truth: Floats, answers: Floats, *, seed: int) -> RangeError:
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


def occupied(table: CodedTable, clique: Clique) -> tuple[Ints, Floats]:
    """The occupied cells of one marginal: attributes × cells of codes, and their records."""
    numbers, counts = count_sparse(table, clique)
    codes = np.stack(np.unravel_index(numbers, table.domain.shape(clique))).astype(np.int64)
    return codes, in_records(counts, table)


def range_answers(queries: Queries, codes: Ints, counts: Floats) -> Floats:
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


#: A category below this share of its segment is no slice of the pie.
SHARE = 0.05
#: Added to every count before the distance.
SMOOTHING = 1e-9
#: A segment whose total is off by more than so many records loses BIAS_PENALTY.
BIAS_RECORDS = 500
BIAS_PENALTY = 0.25
#: Lost per category that is a slice of the submission's pie and none of the truth's, as the official scorer counts it:
#: also one that the truth has below SHARE, where the N-CRiPT paper (section 1.1) says "actually zero".
MISLEADING_PENALTY = 0.2
#: Larger maps do not fit the memory that their histograms need.
MAX_CELLS = 100_000_000
#: Cells scored at a time.
CHUNK_CELLS = 4_000_000


@dataclass(frozen=True, eq=False)
class PieChart:
    """The score of one submission.

    Attributes:
        segments: one score in [0, 1] per map segment (1 is perfect).
        score: S, their sum.
    """

    segments: Floats
    score: float

    @property
    def mean(self) -> float:
        """The score of a segment, on average."""
        return self.score / self.segments.size

    @property
    def inverse(self) -> float:
        """1 − S / segments (0 is perfect): what Li et al. 2021a compare with MGD."""
        return 1.0 - self.mean

    def to_json(self) -> JsonDict:
        """JSON values; the score first."""
        return {"score": self.score, "inverse": self.inverse, "segments": self.segments.size}


def pie_chart_of(inputs: Inputs) -> PieChart:
    """The metrics `pie_chart` and `inverse_pie`: a segment is a place in a span of time; weights count as they are.

    Raises:
        UserError: an unknown attribute, one that is named twice, or a map with more than MAX_CELLS cells.
    """
    real, clique = inputs.real, tuple(map(inputs.column, ("segment", "time", "kind")))
    if len(set(clique)) < len(clique):
        raise UserError(f"got {list(clique)}", where="pie chart", fix="different attributes for place, time, category")
    cells = real.domain.cells(clique)
    if cells > MAX_CELLS:
        fix = f"coarser attributes; at most {MAX_CELLS:,}"
        raise UserError(f"{' × '.join(clique)} has {cells:,} cells", where="pie chart", fix=fix)
    shape = (-1, real.domain[clique[2]].size)
    truth, submitted = (cells_in_records(table, clique).reshape(shape) for table in (real, inputs.synthetic))
    return pie_chart_counts(truth, submitted)


def pie_chart_counts(truth: NDArray[Any], submitted: NDArray[Any]) -> PieChart:
    """The pie chart score of two histograms.

    Args:
        truth, submitted: records, segments × categories; non-negative and finite.
    """
    a, b = np.asarray(truth, np.float64), np.asarray(submitted, np.float64)
    step = max(1, CHUNK_CELLS // a.shape[1])
    segments = np.concatenate([_segments(a[i : i + step], b[i : i + step]) for i in range(0, len(a), step)])
    return PieChart(segments, math.fsum(segments))


def _segments(a: Floats, b: Floats) -> Floats:
    """clip(1 − JSD − misleading − bias, 0, 1) per row, and 1 where both rows are equal.

    As in the official scorer, a type is misleading where the truth has it below SHARE too; N-CRiPT 2021 (1.1) tells it
    of types that are "actually zero" alone.
    """
    bias = np.where(np.abs(a.sum(1) - b.sum(1)) > BIAS_RECORDS, BIAS_PENALTY, 0.0)
    slices_a, slices_b = thresholded(a, SHARE), thresholded(b, SHARE)
    misleading = MISLEADING_PENALTY * ((slices_a == 0) & (slices_b > 0)).sum(1)
    raw = 1.0 - _jensen_shannon(slices_a, slices_b) - misleading - bias
    return np.where((a == b).all(1), 1.0, np.clip(raw, 0.0, 1.0))


def _jensen_shannon(a: Floats, b: Floats) -> Floats:
    """The Jensen-Shannon distance (the square root, base 2) of each pair of smoothed, normalised rows."""
    p, q = (x / x.sum(1, keepdims=True) for x in (a + SMOOTHING, b + SMOOTHING))
    middle = (p + q) / 2
    divergence = (rel_entr(p, middle).sum(1) + rel_entr(q, middle).sum(1)) / math.log(2) / 2
    return np.asarray(np.sqrt(np.maximum(divergence, 0.0)), np.float64)
