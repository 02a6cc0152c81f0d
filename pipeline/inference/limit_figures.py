"""The least and the largest figure that limits of a marginal's cells leave: a count, a share, a mean, a quantile."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mechanisms.public.domain import Clique
from mechanisms.public.marginals import Values
from pipeline.inference.cell_limits import Limits, cell_limits
from pipeline.inference.error_bounds import ALPHA
from pipeline.inference.estimate_questions import EstimateQuestion, Groups
from pipeline.inference.ratio_intervals import Interval
from pipeline.inference.release_evidence import ReleaseEvidence


def limit_intervals(
    evidence: ReleaseEvidence, question: EstimateQuestion, clique: Clique, groups: Groups, places: Sequence[int]
) -> list[Interval] | None:
    """Limits of the figure of each of these groups, without an estimate; None where there is no answer at all.

    Every cell lies between its limits, at 95 % for all cells together.
    """
    limits = cell_limits(evidence, clique, ALPHA)
    if limits is None:
        return None
    lines = []
    for place in places:
        members = groups.of(place)
        total = float(limits.least_sums((members * groups.counted)[None, :])[0])
        lines.append(Interval(None, *_extremes(question, groups, members, limits, total)))
    return lines


def _extremes(
    question: EstimateQuestion, groups: Groups, members: Values, limits: Limits, total: float
) -> tuple[float, float]:
    """The least and the largest figure of a group of at least `total` records that the limits of its cells leave."""
    inside = members * groups.counted > 0
    least, most = limits.low[inside], limits.high[inside]
    small, large = groups.low[inside], groups.high[inside]
    if question.what == "count":
        return float(least @ small), float(most @ large)
    if (part := question.quantile) is not None:
        return _quantile_ends(least, most, small, large, part, total)
    return _least_ratio(small, least, most, total), -_least_ratio(-large, least, most, total)


def _least_ratio(values: Values, least: Values, most: Values, total: float) -> float:
    """The least Σ v·m / Σ m with every m between its limits and Σ m ≥ total: small values weigh most."""
    order = np.argsort(values, kind="stable")
    v, lo, hi = values[order], least[order], np.maximum(most, least)[order]
    if not lo.any() and total <= 0:
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
    least: Values, most: Values, small: Values, large: Values, part: float, total: float
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
