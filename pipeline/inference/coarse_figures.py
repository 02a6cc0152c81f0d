"""Counts, shares, means and quantiles of groups; their intervals hold what cells over coarser values hide."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mechanisms.public.arrays import Floats
from mechanisms.public.domain import Clique
from mechanisms.public.errors import UserError
from pipeline.inference.coarse_answers import Coarse, Limits, cell_limits
from pipeline.inference.estimate_questions import BinValues, EstimateQuestion, Groups, codes_of
from pipeline.inference.marginal_estimates import ReleaseEvidence
from pipeline.inference.ratio_intervals import (
    ALPHA,
    Interval,
    Sums,
    quantile_interval,
    quantile_on_bins,
    ratio_interval,
    sum_interval,
)

#: The part of α that pays for which values a coarse cell may hold; the noise of the sums takes the rest.
HIDDEN_PART = 0.2


def group_intervals(
    evidence: ReleaseEvidence, question: EstimateQuestion, coarse: Coarse, groups: Groups
) -> list[Interval]:
    """An interval for each group of the question.

    A group of whole coarse cells has the interval of these, whose values lie between the least and the largest that so
    many records of the column can have. Other groups have limits alone. Estimates take the columns as independent
    inside each coarse cell.
    """
    clique = coarse.counts.clique
    spread = coarse.spread(column_counts(evidence, clique)) if coarse.merged else coarse.counts.values
    lines = [_of_whole_cells(evidence, question, coarse, groups, m, spread) for m in groups.members]
    places = [i for i, line in enumerate(lines) if line is None]
    limits = limit_intervals(evidence, question, clique, groups, places) if places else []
    assert limits is not None  # there is an answer
    for place, limit in zip(places, limits, strict=True):
        value = _figure(question, groups, groups.of(place), spread)
        lines[place] = limit if value is None else _around(limit, value)
    return [line for line in lines if line is not None]


def column_counts(evidence: ReleaseEvidence, names: Sequence[str]) -> dict[str, Floats | None]:
    """Per column its own counts; None where no answer tells them."""
    marginals = {n: evidence.alone(n) for n in names}
    return {n: None if marginal is None else marginal.values for n, marginal in marginals.items()}


def _around(limits: Interval, value: float) -> Interval:
    """Limits with an estimate, which lies between them where they leave anything."""
    inside = min(max(value, limits.low), limits.high) if limits.low <= limits.high else value
    return replace(limits, value=inside)


def _of_whole_cells(
    evidence: ReleaseEvidence,
    question: EstimateQuestion,
    coarse: Coarse,
    groups: Groups,
    members: Floats,
    spread: Floats,
) -> Interval | None:
    """None for a group that coarse cells cut, or whose values in a cell only partly count."""
    if not (coarse.holds_whole(members) and coarse.holds_whole(members * groups.counted)):
        return None
    cells, middle, error = _cells(evidence, question, coarse, groups, members * groups.counted)
    part, inside, low, high = question.part, cells.counted, cells.low, cells.high
    hidden = coarse.merged and question.column is not None and part is None and bool((high > low).any())
    alpha = ALPHA * (1 - HIDDEN_PART) if hidden else ALPHA
    sums = Sums(coarse.counts, inside, question.sampling, alpha)
    if part is None:
        counted, ends = question.what == "count", (low, high, middle)
        line = sum_interval(sums, *(inside * e for e in ends)) if counted else ratio_interval(sums, *ends)
        more = error / (1.0 if counted else sums.value(inside) or math.inf)
        return line if line.error is None else replace(line, error=math.hypot(line.error, more))
    places = np.flatnonzero(inside > 0)
    order = places[np.argsort(low[places], kind="stable")]
    if (low[order][1:] < high[order][:-1]).any():
        return None  # groups of values that do not follow each other have no order
    line = quantile_interval(sums, low, high, part)
    value = _figure(question, groups, members, spread)
    return line if value is None else _around(line, value)


def _cells(
    evidence: ReleaseEvidence, question: EstimateQuestion, coarse: Coarse, groups: Groups, counted: Floats
) -> tuple[BinValues, Floats, float]:
    """Of the coarse cells whose fine ones belong to the group and count.

    Args:
        counted: per fine cell 1 where it does.
    Returns:
        The least and the largest mean value of the records of each; the expected one; and the standard error of
        Σ expected · records of the group that the column's own counts make.
    """
    inside, name = coarse.cells(counted), question.column
    if name is None or groups.codes is None:
        ones = np.ones(inside.size)
        return BinValues(inside, ones, ones), ones, 0.0
    labels, low, high, middle = coarse.labels[name], groups.codes.low, groups.codes.high, groups.codes.middle
    own = codes_of(coarse.shape, coarse.counts.clique)[name]
    alone = evidence.alone(name) if coarse.merged else None
    share = coarse.within(name, None if alone is None else alone.values)
    means = np.bincount(labels, share * (low + high) / 2)
    error = 0.0
    least = [float(low[labels == g].min()) for g in range(labels.max() + 1)]
    most = [float(high[labels == g].max()) for g in range(labels.max() + 1)]
    ends = np.array(least)[own], np.array(most)[own]
    if alone is not None and question.part is None:
        held = np.bincount(own, inside * coarse.counts.values) / np.maximum(np.bincount(labels, alone.values), 1.0)
        error = alone.spread(np.clip(held, 0.0, 1.0)[labels] * (middle - means[labels]))  # of no group more than all
        alpha = ALPHA * HIDDEN_PART / 2
        room = np.maximum(alone.values + alone.reach(alpha), 0.0)
        records = coarse.counts.values - coarse.counts.reach(alpha)
        for place in np.flatnonzero(inside):
            here = np.flatnonzero(labels == own[place])
            if here.size > 1:
                between = np.zeros(here.size), room[here], float(records[place])
                ends[0][place], ends[1][place] = least_ratio(low[here], *between), -least_ratio(-high[here], *between)
    return BinValues(inside, *ends), np.clip(means[own], *ends), error


def _figure(question: EstimateQuestion, groups: Groups, members: Floats, counts: Floats) -> float | None:
    """The figure of a group by counts of its fine cells; None without any record."""
    inside = members * groups.counted
    if question.what == "count":
        return float(inside * groups.middle @ counts)
    if (part := question.part) is not None:
        cells = np.flatnonzero(inside)
        order = cells[np.argsort(groups.low[cells], kind="stable")]
        return quantile_on_bins(counts[order], groups.low[order], groups.high[order], part)
    weights = inside * np.maximum(counts, 0.0)
    return float(weights @ groups.middle / weights.sum()) if weights.sum() > 0 else None


def limit_intervals(
    evidence: ReleaseEvidence, question: EstimateQuestion, clique: Clique, groups: Groups, places: Sequence[int]
) -> list[Interval] | None:
    """Limits of the figure of each of these groups, without an estimate; None where there is no answer at all.

    Every cell lies between its limits, at 95 % for all cells together.

    Raises:
        UserError: about a population: limits hold for these records, and no count says how far drawing moves them.
    """
    if question.sampling:
        problem = f"no answer tells the cells of {' × '.join(clique)} that it takes, but limits of these records"
        raise UserError(problem, where="sampling", fix="sampling=false: about these records alone")
    limits = cell_limits(evidence, clique, ALPHA)
    if limits is None:
        return None
    lines = []
    for place in places:
        members = groups.of(place)
        total = limits.least_sum(members * groups.counted)
        lines.append(Interval(None, *_extremes(question, groups, members, limits, total)))
    return lines


def _extremes(
    question: EstimateQuestion, groups: Groups, members: Floats, limits: Limits, total: float
) -> tuple[float, float]:
    """The least and the largest figure of a group of at least `total` records that the limits of its cells leave."""
    inside = members * groups.counted > 0
    least, most = limits.low[inside], limits.high[inside]
    small, large = groups.low[inside], groups.high[inside]
    if question.what == "count":
        return float(least @ small), float(most @ large)
    if (part := question.part) is not None:
        return _quantile_ends(least, most, small, large, part, total)
    return least_ratio(small, least, most, total), -least_ratio(-large, least, most, total)


def least_ratio(values: Floats, least: Floats, most: Floats, total: float) -> float:
    """The least Σ v·m / Σ m with every m between its limits and Σ m ≥ total: small values weigh most."""
    order = np.argsort(values, kind="stable")
    v, lo, hi = values[order], least[order], np.maximum(most, least)[order]
    if not lo.any() and (total <= 1e-9 or not hi.any()):
        return float(v.min(initial=math.inf))
    room = np.concatenate([[0.0], np.cumsum(hi - lo)])
    ratios = []
    for extra in [total - lo.sum(), *room]:  # the best sum is the least allowed, or one where some cells are full
        if lo.sum() + extra < max(total, 1e-12) - 1e-9 or extra < 0:
            continue
        m = lo + np.clip(extra - room[:-1], 0.0, hi - lo)
        ratios.append(float(v @ m / m.sum()))
    return min(ratios, default=math.nan)


def _quantile_ends(
    least: Floats, most: Floats, small: Floats, large: Floats, part: float, total: float
) -> tuple[float, float]:
    """The bins in which a quantile may lie: where the share up to a bin may reach it, and the share before may not."""
    order = np.argsort(small, kind="stable")
    lo, hi = least[order], np.maximum(most, least)[order]
    upto_most, after_least = np.cumsum(hi), lo.sum() - np.cumsum(lo)
    after_most = hi.sum() - np.cumsum(hi)
    upto_least = np.maximum(np.cumsum(lo), total - after_most)
    may = upto_most >= part * np.maximum(upto_most + after_least, total)
    must = np.concatenate([[False], (upto_least * (1 - part) > part * after_most)[:-1]])
    left = np.flatnonzero(may & ~must)
    if not left.size:
        return (math.nan, math.nan)
    return float(small[order[left[0]]]), float(large[order[left[-1]]])
