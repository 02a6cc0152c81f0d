"""Bounds on how far a synthetic table's marginal is from the true one, from the release alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mechanisms.public.domain import Clique
from mechanisms.public.marginals import Values
from mechanisms.public.units import WEIGHT_BITS
from pipeline.inference.cell_limits import cell_limits
from pipeline.inference.marginal_estimates import MarginalEstimate, ReleaseEvidence
from pipeline.inference.noise_bounds import NoiseTerm, tail

#: The confidence of a bound is 1 − ALPHA.
ALPHA = 0.05
#: The part of ALPHA that pays for not knowing the number of records, where shares are compared.
TOTAL_PART = 0.1
#: How a bound was found.
MEASURED, INSIDE, SCORED = "measured", "inside a measured marginal", "distance from independence"
FRECHET, UNKNOWN = "Fréchet", "nothing measured"
#: Of a marginal whose distance from independence was released, this part of α pays for the distance, the rest for
#: limits from its columns; the smaller bound is taken.
SCORE_PART = 0.8


@dataclass(frozen=True)
class ErrorBound:
    """One marginal's bound.

    Attributes:
        clique: the columns.
        how: MEASURED, INSIDE, SCORED, FRECHET or UNKNOWN.
        standard_error: of an unbiased estimate of a cell, the mean over cells, in records; None: there is no estimate.
        records: with 95 % confidence Σ over cells |true − synthetic| is at most so much, in records, where the
            synthetic table is scaled to the estimated number of records.
        tvd: with 95 % confidence the total variation distance of the shares is at most so much.
        sources: the marginals that it comes from.
    """

    clique: Clique
    how: str
    standard_error: float | None
    records: float
    tvd: float
    sources: tuple[Clique, ...]


@dataclass(frozen=True)
class ErrorScale:
    """The number of records, as the answers tell it.

    Attributes:
        records: the estimate, at least 0.
        low, high: with confidence 1 − α; `alpha` is that α, 0 where the number is public.
    """

    records: float
    low: float
    high: float
    alpha: float

    def tvd(self, error: float) -> float:
        """A bound on the distance of shares from one on the distance in records.

        With M the true counts, N their sum, N̂ the estimate and q the synthetic shares: ‖M/N − q‖₁ ≤ (‖M − N̂q‖₁ + |N −
        N̂|)/N̂, and |N − N̂| ≤ ‖M − N̂q‖₁.
        """
        if self.records <= 0:
            return 1.0
        off = min(max(self.high - self.records, self.records - self.low), error)
        return min((error + off) / (2 * self.records), 1.0)


def scale_of(evidence: ReleaseEvidence) -> ErrorScale:
    """The number of records with its interval; all zeros without any answer."""
    total = evidence.total
    if total is None:
        return ErrorScale(0.0, 0.0, 0.0, 0.0)
    alpha = 0.0 if not total.sources else ALPHA * TOTAL_PART
    reach = float(total.reach(alpha)[0]) if alpha else 0.0
    value = max(float(total.values[0]), 0.0)
    return ErrorScale(value, max(float(total.values[0]) - reach, 0.0), value + reach, alpha)


def error_bound(evidence: ReleaseEvidence, clique: Clique, shares: Values, scale: ErrorScale) -> ErrorBound:
    """A 95 % bound on the error of one marginal of the synthetic table.

    Guarantee: post-processing; costs no privacy. The probability is that of the noise, over all that was drawn for
        this release; the true table is the clipped one whose answers were released, with its weights.
    Args:
        shares: the marginal of the synthetic table, adding up to 1 (all 0 for a table without rows).
        scale: from `scale_of`.
    """
    synthetic, alpha = shares * scale.records, ALPHA - scale.alpha
    most = scale.high + float(synthetic.sum())  # tables without anything in common
    marginal = evidence.estimate(clique)
    if marginal is not None:
        error = min(measured_error(marginal, synthetic, alpha), most)
        how = MEASURED if clique in marginal.sources else INSIDE
        return _bound(clique, how, float(marginal.errors.mean()), error, scale, marginal.sources)
    scored = scored_error(evidence, clique, synthetic, alpha * SCORE_PART, scale.high)
    limits = cell_limits(evidence, clique, alpha if scored is None else alpha * (1 - SCORE_PART))
    if limits is None:
        return ErrorBound(clique, UNKNOWN, None, float("inf"), 1.0, ())
    error = limit_error(limits.low, limits.high, limits.total, synthetic)
    if scored is not None and scored < error:
        return _bound(clique, SCORED, None, scored, scale, limits.sources)
    return _bound(clique, FRECHET if limits.sources else UNKNOWN, None, error, scale, limits.sources)


def _bound(
    clique: Clique, how: str, stderr: float | None, error: float, scale: ErrorScale, sources: Sequence[Clique]
) -> ErrorBound:
    return ErrorBound(clique, how, stderr, error, scale.tvd(error), tuple(sources))


def measured_error(marginal: MarginalEstimate, synthetic: Values, alpha: float) -> float:
    """t with P(‖M − synthetic‖₁ > t) ≤ α, whatever the synthetic counts are, in records.

    ‖M − s‖₁ ≤ ‖s − y⁺‖₁ + ‖y⁺ − M‖₁, and ‖y⁺ − M‖₁ = ‖y − M‖₁ − Σ y⁻ as M ≥ 0: what the noise spent on negative
    answers it did not spend elsewhere. The synthetic counts may depend on the answers: only the noise's own sum is
    bounded.
    """
    negative = float(np.minimum(marginal.values, 0.0).sum())
    left = max(marginal.sum_bound(alpha) + negative, 0.0)
    return float(np.abs(synthetic - np.maximum(marginal.values, 0.0)).sum()) + left


def scored_error(
    evidence: ReleaseEvidence, clique: Clique, synthetic: Values, alpha: float, most: float
) -> float | None:
    """t with P(‖M − synthetic‖₁ > t) ≤ α by the released distance from independence; None where there is none.

    ‖M − s‖₁ ≤ ‖M − E‖₁ + ‖E − s‖₁ (McKenna et al. 2022, section 5, for choices). E are independent columns by answers
    from before the distance was drawn: its noise owes nothing to E, and the synthetic counts may be fitted to both.

    Where differences d = M − E up to a level do not count, e = Σ max(|d| − level, 0) leaves Σ|d| ≤ e + cells · level;
    and as M ≥ 0, Σ d⁻ ≤ e + Σ min(E, level), so that Σ|d| = 2 Σ d⁻ + Σ d ≤ 2 (e + Σ min(E, level)) + Σ M − Σ E.

    Args:
        most: an upper bound on Σ M.
    """
    if (released := evidence.distance(clique)) is None:
        return None
    distances, place = released
    expected = evidence.independent(clique)
    rounded = expected.size * 2.0 ** -(WEIGHT_BITS + 1)  # the distance was taken on the lattice of counts
    reach = tail((NoiseTerm(distances.noise, distances.scale),), 2 * alpha)  # on one side only
    distance = max(float(distances.values[place]) + reach, 0.0) + rounded
    if distances.below:
        hidden = float(np.minimum(expected, distances.below).sum())
        more = max(most - float(expected.sum()), 0.0)
        distance = min(distance + expected.size * distances.below, 2 * (distance + hidden) + more)
    return distance + float(np.abs(expected - synthetic).sum())


def limit_error(low: Values, high: Values, total: tuple[float, float], synthetic: Values) -> float:
    """The largest ‖M − synthetic‖₁ that limits of the cells and of their sum leave, in records, from above.

    The least of three bounds: cell by cell; by what both have in common, N + S − 2 Σ min(low, s); and by what M may
    have more of, S − N + 2 Σ (high − s)⁺, with S = Σ s.
    """
    own = float(synthetic.sum())
    cells = float(np.maximum(high - synthetic, synthetic - low).sum())
    common = total[1] + own - 2 * float(np.minimum(low, synthetic).sum())
    more = own - total[0] + 2 * float(np.maximum(high - synthetic, 0.0).sum())
    return min(cells, common, more)
