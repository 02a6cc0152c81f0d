"""Estimates for analysts from the noisy answers of a release, each with a 95 % interval that includes the noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from mechanisms.public.arrays import Floats
from mechanisms.public.errors import UserError
from mechanisms.public.release import Measurements
from mechanisms.public.rules.computed import UNITS
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.fine_cells import bins_of_cells, finest
from mechanisms.public.schema.table_schema import Schema
from pipeline.inference.coarse_answers import Coarse, coarse_marginal
from pipeline.inference.coarse_figures import group_intervals, limit_intervals
from pipeline.inference.conditions import asked_ranges, code_weights, left_out
from pipeline.inference.estimate_questions import (
    BOUNDS,
    MIDPOINT,
    OF_TWO,
    EstimateQuestion,
    Groups,
    bin_values,
    check_question,
    groups_of,
    values_of,
)
from pipeline.inference.marginal_estimates import COARSE, FRECHET, MEASURED, MarginalEstimate, ReleaseEvidence
from pipeline.inference.pair_figures import correlations, odds_ratios
from pipeline.inference.person_level import COUNTED, LEVELS
from pipeline.inference.ratio_intervals import Interval, Sums
from pipeline.release_folder import add_figures, cells_frame
from pipeline.release_query import untold

#: Said where an interval leaves every possible answer open.
DROWNED = "intervals cover every answer that is possible: the noise, or the bins, drown the estimate"
#: Said where noise in far bins moves a mean beyond the values that it may have, or nearly so.
AT_END = (
    "means have no estimate: noise may move them beyond the least or the largest value; the interval is all we know"
)
#: Groups whose number of records is not above so many of its standard errors tell next to nothing.
CERTAIN = 4.0
#: Means that are tried before the best of them is refined.
TRIED = 41


def estimate(schema: Schema, measurements: Measurements, question: EstimateQuestion) -> pd.DataFrame:
    """One line for each group: estimate, standard_error, low, high, how.

    Counts and proportions are of records, with the weights that clipping left; a mean is that of the values inside the
    schema's bounds. `attrs["notes"]` says what the interval holds and what not, `attrs["sources"]` what it comes from.

    Guarantee: post-processing; costs no privacy. An interval holds the true value with probability 95 % over the noise.

    Raises:
        UserError: an impossible question; no measured marginal tells it (with the way to have it measured).
    """
    check_question(schema, question)
    clique, evidence = schema.measured.canonical(question.columns), ReleaseEvidence(measurements)
    marginal = evidence.estimate(clique)
    tests = question.what == "equal_means"
    coarse = Coarse.every_code(marginal, schema.measured) if marginal else None
    coarse = coarse_marginal(measurements, clique) if not (marginal or tests) else coarse
    bounds = question.what not in OF_TWO and not tests
    more = "; or unmeasured=bounds for wide bounds from what was measured" if bounds else ""
    if coarse is None and not (bounds and question.unmeasured == BOUNDS):
        raise untold(measurements, clique, more, where="estimate")
    by_cells = question.what == "mean" and question.within_bin != MIDPOINT
    finely = _finely(schema, question, evidence, coarse) if marginal and coarse and by_cells else []
    own = finest(schema[question.columns[-1]]) if finely else None
    groups = groups_of(schema, question, clique, own)
    if tests and marginal is not None:
        return _test(schema, question, marginal, groups)
    how = MEASURED if marginal else COARSE
    lines = None
    if coarse is not None:
        ways = [(_lines(schema, question, e, c, groups), c) for e, c in finely or [(evidence, coarse)]]
        lines, coarse = min(ways, key=lambda way: sum(line.high - line.low for line in way[0] or ()))
    if lines is None and bounds:
        lines, how = limit_intervals(evidence, question, clique, groups, range(groups.count)), FRECHET
    if lines is None:
        raise untold(measurements, clique, more, where="estimate")
    ends = _ends(question, groups)
    whole = sum(line.low <= ends[0] and ends[1] <= line.high for line in lines)
    near = [question.what == "mean" and _at_end(line, *ends) for line in lines]
    drowned = [
        f"{many:,} of {len(lines):,} {remark}" for many, remark in ((whole, DROWNED), (sum(near), AT_END)) if many
    ]
    lines = [_supported(replace(line, value=None) if at else line) for line, at in zip(lines, near, strict=True)]
    by = schema.measured.canonical(question.by)
    frame = cells_frame(schema, by) if by else pd.DataFrame(index=range(1))
    frame = add_figures(
        frame,
        estimate=[math.nan if i.value is None else i.value for i in lines],
        standard_error=[math.nan if i.error is None else i.error for i in lines],
        low=[i.low for i in lines],
        high=[i.high for i in lines],
        how=how,
    )
    frame.attrs["sources"] = [" × ".join(c) for c in coarse.counts.sources] if coarse else []
    merged = _merged(coarse, own) if coarse and coarse.merged else []
    frame.attrs["notes"] = [*_notes(schema, question, own), *merged, *drowned]
    return frame


def _finely(
    schema: Schema, question: EstimateQuestion, evidence: ReleaseEvidence, coarse: Coarse
) -> list[tuple[ReleaseEvidence, Coarse]]:
    """Counts of the column's fine cells in the place of its bins, where these were measured; else none.

    The bins are coarse cells of them. Where the column stands alone, the fine cells' own counts are another way, which
    is the sharper one unless noise is large beside the bins.
    """
    name = question.columns[-1]
    finer = ReleaseEvidence(evidence.measurements, {name: schema.fine[name].name} if name in schema.fine else {})
    if not finer.finer or (counts := finer.alone(name)) is None:
        return []
    ways = [coarse.over(name, bins_of_cells(schema[name]))]
    if not question.by:
        ways.append(Coarse(replace(counts, clique=(name,)), {name: np.arange(counts.values.size)}))
    return [(finer, way) for way in ways]


def _ends(question: EstimateQuestion, groups: Groups) -> tuple[float, float]:
    """The least and the largest answer that is possible."""
    if question.what in {"count", "odds_ratio"}:
        return -math.inf, math.inf
    ends = {"proportion": (0.0, 1.0), "correlation": (-1.0, 1.0)}.get(question.what)
    return ends or (float(groups.low[groups.counted > 0].min()), float(groups.high[groups.counted > 0].max()))


def _at_end(line: Interval, low: float, high: float) -> bool:
    """Whether an estimate is within a standard error of an end, where it may have been brought back to it."""
    error = line.error or 0.0
    return line.value is not None and error > 0 and not low <= line.value - error <= line.value + error <= high


def _supported(line: Interval) -> Interval:
    """The figures in the digits that the error supports: four of it, and of the largest figure six at least.

    Of limits without an error their width supports as many; what is exact stays as it is.
    """
    if not (error := line.error or line.high - line.low):
        return line
    largest = max(abs(x) for x in (line.value or 0.0, line.low, line.high) if math.isfinite(x))
    digits_by_figure = [(x, digits) for x, digits in ((largest, 6), (error, 4)) if 0 < x < math.inf]
    places = max((digits - 1 - math.floor(math.log10(x)) for x, digits in digits_by_figure), default=0)
    value, shown = (None if x is None else round(x, places) for x in (line.value, line.error))
    return Interval(value, round(line.low, places), round(line.high, places), shown)


def _lines(
    schema: Schema, question: EstimateQuestion, evidence: ReleaseEvidence, coarse: Coarse, groups: Groups
) -> list[Interval] | None:
    """An interval for each group; None where coarse cells hide it."""
    if question.what == "correlation":
        return correlations(schema, question, evidence, coarse, groups)
    if question.what == "odds_ratio":
        return odds_ratios(schema, question, coarse, groups)
    return group_intervals(evidence, question, coarse, groups)


def _merged(coarse: Coarse, own: Column | None) -> list[str]:
    """Which columns an answer took over coarser values, in words; `own` as of `groups_of`."""
    if own is not None:
        return [
            f"the records of a bin lie as its fine cells of {own.name} say; noise spreads these, and moves the estimate"
        ]
    sizes = {n: (g, coarse.labels[n].size) for n, g in zip(coarse.counts.clique, coarse.shape, strict=True)}
    shown = [f"{n} ({groups} groups of {codes} codes)" for n, (groups, codes) in sizes.items() if groups < codes]
    return [
        f"asked over coarser values of {', '.join(shown)}: the interval holds what these hide; the estimate spreads "
        "their records as the columns alone are spread"
    ]


def _test(schema: Schema, question: EstimateQuestion, marginal: MarginalEstimate, groups: Groups) -> pd.DataFrame:
    """One line: the statistic, its degrees of freedom, the p-value and how many groups took part."""
    if groups.count < 2:
        raise UserError("a test of equal means compares groups", where="by", fix="by=[COLUMN]")
    counted = [m * groups.counted for m in groups.members]
    statistic, degrees, p_value = equal_means(marginal, counted, groups.middle, sampling=question.sampling)
    sums = [Sums(marginal, m, question.sampling) for m in counted]
    frame = pd.DataFrame(
        {
            "statistic": [statistic],
            "degrees_of_freedom": [degrees],
            "p_value": [p_value],
            "groups": [degrees + 1],
            "groups_too_small": [sum(s.value(s.cells) <= CERTAIN * s.error(s.cells) for s in sums)],
            "how": ["measured"],
        }
    )
    frame.attrs["sources"] = [" × ".join(c) for c in marginal.sources]
    frame.attrs["notes"] = _notes(schema, replace(question, within_bin=MIDPOINT))
    return frame


def equal_means(
    counts: MarginalEstimate, members: Sequence[Floats], values: Floats, *, sampling: bool
) -> tuple[float, int, float]:
    """A score test: for a common mean μ the sums Σ (v − μ)·count of all groups have mean 0.

    The statistic is their least squared length over μ, in units of their covariance (under Gaussian noise χ² with
    groups − 1 degrees of freedom; Hansen et al. 1996, continuously updated estimates; the tails of other noise are
    wider, and are drawn). Noise that the groups share is in it.

    Groups of few records take part too: who leaves out those that look small chooses by noise that is in the sums.

    Args:
        members: per group which cells count.
        values: the number of each cell.
        sampling: whether the drawing of records adds to the variance.
    Returns:
        χ², its degrees of freedom, and how likely so large a statistic is where all means are equal.
    """
    from scipy.optimize import minimize_scalar
    from scipy.stats import chi2

    records = np.maximum(counts.values, 0.0) if sampling else np.zeros_like(counts.values)

    def weights(mu: float) -> Floats:
        return np.array([m * (values - mu) for m in members])

    def covariance(mu: float) -> Floats:
        own = weights(mu)
        return counts.covariance(own) + (own * records) @ own.T

    def length(mu: float) -> float:
        totals = weights(mu) @ counts.values
        return float(totals @ np.linalg.pinv(covariance(mu), hermitian=True) @ totals)

    inside = np.sum(members, axis=0) > 0
    low, high = float(values[inside].min()), float(values[inside].max())
    grid = np.linspace(low, high, TRIED)
    best = float(grid[np.argmin([length(float(mu)) for mu in grid])])
    step = (high - low) / (TRIED - 1)
    near = minimize_scalar(length, bounds=(max(best - step, low), min(best + step, high)), method="bounded")
    mu = min(best, float(near.x), key=length)
    least, degrees = length(mu), len(members) - 1
    chance = float(chi2.sf(least, degrees))
    if not counts.gaussian:
        slope = np.array(members) @ counts.values
        chance = max(chance, _drawn_chance(counts, weights(mu), covariance(mu), slope, least))
    return least, degrees, chance


def _drawn_chance(counts: MarginalEstimate, weights: Floats, covariance: Floats, slope: Floats, least: float) -> float:
    """How many draws of the noise make the groups' sums as long as `least`, less what a common mean explains.

    Where the drawing of records adds to the covariance, this is the smaller part of the chance.

    Args:
        slope: of the sums over the mean.
    """
    root = np.linalg.pinv(covariance, hermitian=True)
    sums = np.concatenate([noise @ weights.T for noise in counts.draws()])
    lengths = np.einsum("ij,jk,ik->i", sums, root, sums) - (sums @ root @ slope) ** 2 / (slope @ root @ slope)
    return float((1 + np.sum(lengths >= least)) / (1 + len(lengths)))


def _notes(schema: Schema, question: EstimateQuestion, own: Column | None = None) -> list[str]:
    population = (
        f"{question.level} count as independent draws from a population"
        if question.sampling
        else f"of these {question.level} alone, not of a population they may be drawn from (sampling=true adds that)"
    )
    shown_by = "p-value" if question.what == "equal_means" else "95 % interval"
    notes = [f"{shown_by} over the noise; {population}", *([] if question.level == LEVELS[0] else [COUNTED])]
    if question.column is None or question.what in {"count", "proportion", "odds_ratio"}:
        return notes if question.what == "odds_ratio" else [*notes, *_counted(schema, question)]
    names = [n for n in (question.column, question.other) if n is not None]
    steps = [f"{n} as multiples of {schema[n].multiple_of:g}" for n in names if schema[n].multiple_of is not None]
    notes += [f"the schema declares {' and '.join(steps)}: no other value is reckoned with"] if steps else []
    lengths = {n: b.unit for n in names if question.what != "correlation" and (b := schema[n].between) is not None}
    notes += [f"{n} is in {unit}" for n, own_unit in lengths.items() for unit, s in UNITS.items() if s == own_unit]
    widest, what = max(bin_values(own or schema[n], question.what).widest for n in names), "fine cell" if own else "bin"
    if widest > 0:
        inside = (
            f"each value is taken for its {what}'s middle, and the interval may miss that of the values themselves"
            if question.within_bin == MIDPOINT
            else f"any value of its {what} may be the true one (within_bin=midpoint takes the middle)"
        )
        notes.append(f"{what}s are up to {widest:g} wide: {inside}")
    return notes


def _counted(schema: Schema, question: EstimateQuestion) -> list[str]:
    """By which cells a range is counted, and that a query counts it by others, which gives another answer."""
    if question.column is None or question.value is None:
        return []
    values, part = values_of(schema, question), code_weights(schema, question.column, question.value)
    cut = bool((values.high > values.low).any())
    notes = (
        ["a bin that the range cuts counts as 0 to 1 of its records, as half of them in the estimate"] if cut else []
    )
    notes += left_out(schema[question.column], question.value)
    fine = question.column in schema.fine and not question.by
    parts = ((part > 0) & (part < 1)).any() or (fine and schema[question.column].kind == "float")  # as a query decides
    if parts and asked_ranges(schema[question.column], question.value, question.column) is not None:
        how = "by its fine cells" if fine else "the part of each bin that is inside"
        where = f"where={{{question.column}: {question.value}}}"
        notes.append(f"counted by the bins of {question.column}; {where} counts {how}, and may give another answer")
    return notes
