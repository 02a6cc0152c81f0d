"""Figures of two columns: correlations and odds ratios, with intervals that include the noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mechanisms.public.arrays import Floats
from mechanisms.public.errors import UserError
from mechanisms.public.schema.table_schema import Schema
from pipeline.inference.coarse_answers import Coarse
from pipeline.inference.coarse_figures import column_counts
from pipeline.inference.conditions import code_weights
from pipeline.inference.estimate_questions import MIDPOINT, EstimateQuestion, Groups, bin_values, codes_of
from pipeline.inference.marginal_estimates import MarginalEstimate, ReleaseEvidence
from pipeline.inference.ratio_intervals import ALPHA, Interval, Sums, fieller, ratio_interval

#: A correlation that the noise leaves open.
ANY = Interval(None, -1.0, 1.0)


@dataclass(frozen=True, eq=False)
class ValueAxis:
    """What the cells of a marginal tell about a column of numbers.

    Attributes:
        counted: per cell 1 where it holds numbers of the column.
        values: per cell the number that its records are taken for.
        off: per cell the mean square by which records may be off; `whole` instead the sum over all records, where that
            is known from the column's own counts.
    """

    counted: Floats
    values: Floats
    off: Floats
    whole: float | None = None


def correlations(
    schema: Schema,
    question: EstimateQuestion,
    evidence: ReleaseEvidence,
    counts: Coarse,
    groups: Groups,
) -> list[Interval] | None:
    """Pearson's r over the records with a number in both columns, of each group.

    None if coarse cells hide whether records count.
    """
    axes = [_axis(schema, question, evidence, counts, n) for n in (question.column, question.other) if n is not None]
    x, y = axes
    if x is None or y is None or not all(map(counts.holds_whole, groups.members)):
        return None
    inside = (counts.cells(members) * x.counted * y.counted for members in groups.members)
    return [_correlation(Sums(counts.counts, cells, question.sampling), x, y) for cells in inside]


def _axis(
    schema: Schema, question: EstimateQuestion, evidence: ReleaseEvidence, marginal: Coarse, name: str
) -> ValueAxis | None:
    values = bin_values(schema[name], question.what)
    half = np.zeros(values.low.size) if question.within_bin == MIDPOINT else (values.high - values.low) / 2
    labels, own = marginal.labels[name], codes_of(marginal.shape, marginal.counts.clique)[name]
    many, counted = np.bincount(labels), np.bincount(labels, values.counted)
    if ((counted > 0) & (counted < many)).any():
        return None
    if many.size == labels.size:  # nothing is merged
        return ValueAxis(values.counted[own], values.middle[own], half[own] ** 2)
    ones = column_counts(evidence, [name])[name]
    mean = np.bincount(labels, marginal.within(name, ones) * values.middle).astype(np.float64)
    off = (np.abs(values.middle - mean[labels]) + half) ** 2
    most = np.array([off[labels == g].max() for g in range(many.size)])
    whole = None if ones is None or question.by else float(np.maximum(ones, 0.0) * values.counted @ off)
    return ValueAxis((counted > 0)[own].astype(np.float64), mean[own], most[own], whole)


def _correlation(sums: Sums, x: ValueAxis, y: ValueAxis) -> Interval:
    """r = c/s of the records' covariance c and the product s of their standard deviations, both noisy.

    Both are linear in the noise where this is small against the records: ρ is left where |c − ρs| is at most 1.96 of
    its standard errors (Fieller 1954). Their squares' share of the noise is taken off. Where the number of records or
    a variance is not above its noise, nothing is known. Then the angle between the columns, arccos r (Rodgers &
    Nicewander 1988), is wider by what bins hide: a column that is off by δ on the root mean square turns by at most
    arcsin δ/σ.
    """
    cells = sums.cells
    records = sums.value(cells)
    if records <= sums.far(cells) * sums.error(cells):
        return ANY
    a, b = ((axis.values - sums.value(axis.values * cells) / records) * cells for axis in (x, y))
    noise = sums.counts.covariance(np.stack([a, b])) / records**2
    moments = ((a * b, noise[0, 1]), (a * a, noise[0, 0]), (b * b, noise[1, 1]))
    c, vx, vy = (sums.value(w) / records + float(n) for w, n in moments)
    for square, variance in ((a * a, vx), (b * b, vy)):
        weights = (square - variance * cells) / records
        if variance <= sums.far(weights) * sums.error(weights):
            return ANY
    s = math.sqrt(vx * vy)
    of_c, of_s = (a * b - c * cells) / records, s / 2 * (a * a / vx + b * b / vy - 2 * cells) / records
    r = min(max(c / s, -1.0), 1.0)
    ends = fieller(sums, of_c, of_s, (c, s))
    if ends is None:
        return ANY
    least, most = (min(max(end, -1.0), 1.0) for end in ends)
    turn = sum(math.asin(min(_off(sums, axis, records) / math.sqrt(v), 1.0)) for axis, v in ((x, vx), (y, vy)))
    low = math.cos(min(math.acos(least) + turn, math.pi))
    high = math.cos(max(math.acos(most) - turn, 0.0))
    return Interval(r, min(low, r), max(high, r), sums.error(of_c - r * of_s) / s)


def _off(sums: Sums, axis: ValueAxis, records: float) -> float:
    """By how much the records' values may be off, the root mean square, with the noise in their counts."""
    if axis.whole is not None:
        return math.sqrt(axis.whole / records)
    return math.sqrt(max(ratio_interval(sums, axis.off, axis.off).high, 0.0))


def odds_ratios(schema: Schema, question: EstimateQuestion, marginal: Coarse, groups: Groups) -> list[Interval] | None:
    """The odds ratio of a value of either column, of each group; None if coarse cells cut a value.

    The shares have Fieller's intervals; those of the two log odds are laid together by the squares of their halves
    (method of variance estimates recovery, Zou & Donner 2008), or, where a share is 0 or 1 or the cells share their
    noise, end to end with 2.5 % each.
    """
    clique = marginal.counts.clique
    codes = codes_of(schema.measured.shape(clique), clique)
    picked = []
    for name in (question.column, question.other):
        assert name is not None
        chosen, counted = _dichotomy(schema, question, name)
        picked.append((chosen[codes[name]], counted[codes[name]]))
    (one, first), (two, second) = picked
    lines = []
    for members in groups.members:
        inside = members * first * second
        if not all(marginal.holds_whole(s * inside) for s in (inside, one, two, one * two)):
            return None
        has, has_not, of_one = (marginal.cells(s * inside) for s in (two, 1 - two, one))
        lines.append(_odds_ratio(marginal.counts, has, has_not, of_one, sampling=question.sampling))
    return lines


def _dichotomy(schema: Schema, question: EstimateQuestion, name: str) -> tuple[Floats, Floats]:
    """Per code 1 where it has the value that is asked for; and 1 where it counts: all but missing, of two values both.

    Raises:
        UserError: a column of more than two values without a value; a range that cuts a bin.
    """
    column, given = schema[name], dict(question.value or {})
    counted = np.ones(column.size)
    if name not in given:
        if column.value_codes != 2:
            problem = f"{name!r} has {column.value_codes} values; which of them?"
            raise UserError(problem, where="value", fix=f"value={{{name}: VALUE}}, a list of values, or [low, high]")
        counted[2:] = 0.0
        return (np.arange(column.size) == 1).astype(np.float64), counted
    if column.missing_code is not None and given[name] is not None:
        counted[column.missing_code] = 0.0
    weights = code_weights(schema, name, given[name])
    if ((weights > 0) & (weights < 1)).any():
        raise UserError(f"the range cuts a bin of {name!r}", where="value", fix="a range from bin edge to bin edge")
    return weights, counted


def _odds_ratio(counts: MarginalEstimate, has: Floats, has_not: Floats, one: Floats, *, sampling: bool) -> Interval:
    def shares(alpha: float) -> list[Interval]:
        return [ratio_interval(Sums(counts, cells, sampling, alpha), one, one) for cells in (has, has_not)]

    (l1, u1), (l0, u0) = ((_logit(i.low), _logit(i.high)) for i in shares(ALPHA / 2))
    low, high = _less(l1, u0, -math.inf), _less(u1, l0, math.inf)
    best = shares(ALPHA)
    inside = [i.value for i in best if i.value is not None and 0 < i.value < 1]
    if len(inside) < 2:
        return Interval(None, _exp(low), _exp(high))
    one_at, two_at = map(_logit, inside)
    if counts.shared is None:
        (l1, u1), (l0, u0) = ((_logit(i.low), _logit(i.high)) for i in best)
        low = one_at - two_at - math.hypot(one_at - l1, u0 - two_at)
        high = one_at - two_at + math.hypot(u1 - one_at, two_at - l0)
    errors = [(i.error or 0.0) / (share * (1 - share)) for i, share in zip(best, inside, strict=True)]
    value = math.exp(one_at - two_at)
    return Interval(value, _exp(low), _exp(high), value * math.hypot(*errors))


def _logit(share: float) -> float:
    if not share > 0.0:
        return -math.inf
    return math.inf if share >= 1.0 else math.log(share / (1 - share))


def _less(end: float, other: float, unknown: float) -> float:
    """The difference; `unknown` where both are infinite alike, which tells nothing."""
    return unknown if end == other and math.isinf(end) else end - other


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf
