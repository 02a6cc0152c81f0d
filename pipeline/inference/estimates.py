"""Estimates for analysts from the noisy answers of a release, each with a 95 % interval that includes the noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from mechanisms.public.domain import Clique
from mechanisms.public.errors import UserError, one_of
from mechanisms.public.marginals import Values
from mechanisms.public.release import Measurements
from mechanisms.public.schema.table_schema import Schema
from pipeline.inference.bin_values import BinValues, bin_values
from pipeline.inference.cell_limits import Limits, cell_limits
from pipeline.inference.equal_means import equal_means
from pipeline.inference.error_bounds import ALPHA
from pipeline.inference.ratio_intervals import Interval, Sums, quantile_interval, ratio_interval, sum_interval
from pipeline.inference.release_evidence import Evidence
from pipeline.inference.told import Told
from pipeline.marginal_files import as_a_column, cells_frame
from pipeline.release_query import code_weights, no_column

#: What may be estimated.
KINDS = ("count", "proportion", "mean", "median", "quantile", "equal_means")
#: What is done with values inside bins: any value of the bin may be the true one, or its middle is taken for it.
WORST, MIDPOINT = "worst", "midpoint"
#: What is done where no answer tells: nothing, or limits from the marginals inside (Fréchet).
REFUSE, BOUNDS = "refuse", "bounds"


@dataclass(frozen=True)
class Question:
    """What is asked.

    Attributes:
        what: one of KINDS.
        column: the column that it is about; a count needs none.
        by: columns: an estimate for each group of their values.
        value: of a count or proportion: a value, a list of values, or [low, high] of an ordered column.
        part: of a quantile: between 0 and 1.
        within_bin: WORST or MIDPOINT.
        sampling: whether the interval is about the population from which the records are independent draws; else it is
            about the records themselves.
        unmeasured: REFUSE or BOUNDS.
    """

    what: str
    column: str | None = None
    by: tuple[str, ...] = ()
    value: Any = None
    part: float = 0.5
    within_bin: str = WORST
    sampling: bool = False
    unmeasured: str = REFUSE


def estimate(schema: Schema, measurements: Measurements, question: Question) -> pd.DataFrame:
    """One line for each group: estimate, standard_error, low, high, how.

    Counts and proportions are of records, with the weights that clipping left; a mean is that of the values inside the
    schema's bounds. `attrs["notes"]` says what the interval holds and what not, `attrs["sources"]` what it comes from.

    Guarantee: post-processing; costs no privacy. An interval holds the true value with probability 95 % over the noise.

    Raises:
        UserError: an impossible question; no measured marginal tells it (with the way to have it measured).
    """
    _check(schema, question)
    names = tuple(n for n in (*question.by, question.column) if n is not None)
    clique = schema.measured.canonical(names)
    known = Evidence(measurements).told(clique)
    if known is None and question.unmeasured != BOUNDS:
        raise _untold(measurements, clique)
    groups = _groups(schema, question, clique)
    if question.what == "equal_means":
        return _test(schema, question, known, groups)
    lines = _from_answers(schema, question, known, groups) if known else _limits(schema, measurements, question, groups)
    by = schema.measured.canonical(question.by)
    frame = cells_frame(schema, by) if by else pd.DataFrame(index=range(1))
    frame = frame.rename(columns={n: f"({n})" for n in frame.columns if n in {"estimate", "low", "high", "how"}})
    frame = frame.assign(
        estimate=[math.nan if i.value is None else i.value for i in lines],
        standard_error=[math.nan if i.error is None else i.error for i in lines],
        low=[i.low for i in lines],
        high=[i.high for i in lines],
        how="measured" if known else "Fréchet",
    )
    frame.attrs["sources"] = [" × ".join(c) for c in known.sources] if known else []
    frame.attrs["notes"] = _notes(schema, question)
    return frame


def _check(schema: Schema, question: Question) -> None:
    one_of(question.what, KINDS, "estimate")
    one_of(question.within_bin, (WORST, MIDPOINT), "within_bin")
    one_of(question.unmeasured, (REFUSE, BOUNDS), "unmeasured")
    for where, name in (("column", question.column), *(("by", n) for n in question.by)):
        if name is not None:
            check_column(schema, where, name)
    if question.column in question.by or len(set(question.by)) < len(question.by):
        raise UserError("a column is named twice", where="by", fix="each column once")
    if question.column is None and question.what != "count":
        raise UserError(f"a {question.what} of which column?", where="column", fix="column=COLUMN")
    asks = question.what in {"count", "proportion"} and question.column is not None
    if asks != (question.value is not None):
        fix = "value=VALUE, value=[A,B] or value=[low,high]" if asks else "leave value away"
        raise UserError(f"a {question.what} of {question.column or 'records'}", where="value", fix=fix)
    if not 0 < question.part < 1:
        raise UserError(f"got {question.part}", where="quantile", fix="a number between 0 and 1; 0.5 is the median")


def check_column(schema: Schema, where: str, name: str) -> None:
    """UserError for a name that is no column of the table, or that a rule of the schema made."""
    if name not in schema.domain:
        raise no_column(schema, name, where)
    if not as_a_column(schema, name):
        fix = "score the synthetic table, or ask about the columns that it is made from"
        raise UserError(f"{name!r} was not measured as it stands: a rule of the schema made it", where=where, fix=fix)


def _untold(measurements: Measurements, clique: Clique) -> UserError:
    named = ",".join(clique)
    near = [a.clique for a in measurements.answers if set(a.clique) & set(clique)]
    shown = "; ".join(dict.fromkeys(" × ".join(c) for c in near)) or "none of these columns"
    fix = (
        f"another run, out of a budget of its own, with [{named}] in its list selection.marginals; or "
        f"unmeasured=bounds for wide bounds from what was measured ({shown})"
    )
    return UserError(f"no measured marginal tells {' × '.join(clique)}", where="estimate", fix=fix)


@dataclass(frozen=True, eq=False)
class _Groups:
    """The cells of each group, and what each cell counts; flattened over the question's marginal.

    Attributes:
        members: (groups × cells) of 0 and 1.
        counted: per cell 1 where it counts in the denominator.
        low, high: per cell the least and the largest value.
    """

    members: Values
    counted: Values
    low: Values
    high: Values


def _groups(schema: Schema, question: Question, clique: Clique) -> _Groups:
    shape = schema.measured.shape(clique)
    codes = dict(zip(clique, np.indices(shape).reshape(len(shape), math.prod(shape)), strict=True))
    by = schema.measured.canonical(question.by)
    sizes = schema.measured.shape(by)
    group = np.ravel_multi_index([codes[n] for n in by], sizes) if by else np.zeros(math.prod(shape), np.int64)
    members = (group[None, :] == np.arange(math.prod(sizes))[:, None]).astype(np.float64)
    if question.column is None:
        ones = np.ones(math.prod(shape))
        return _Groups(members, ones, ones, ones)
    values = _values(schema, question)
    own = codes[question.column]
    return _Groups(members, values.counted[own], values.low[own], values.high[own])


def _values(schema: Schema, question: Question) -> BinValues:
    """What each code of the column counts: its number, or 1 for the value that is asked for."""
    assert question.column is not None
    if question.value is None:
        values = bin_values(schema[question.column], question.what)
        return values.at_midpoints() if question.within_bin == MIDPOINT else values
    part = code_weights(schema, question.column, question.value)
    if question.within_bin == MIDPOINT:
        return BinValues(np.ones(part.size), part, part)
    return BinValues(np.ones(part.size), np.floor(part + 1e-12), np.ceil(part - 1e-12))


def _from_answers(schema: Schema, question: Question, known: Told, groups: _Groups) -> list[Interval]:
    def line(members: Values) -> Interval:
        sums = Sums(known, members * groups.counted, question.sampling)
        if question.what == "count":
            return sum_interval(sums, members * groups.low, members * groups.high)
        if question.what in {"median", "quantile"}:
            part = 0.5 if question.what == "median" else question.part
            return quantile_interval(sums, groups.low, groups.high, part)
        return ratio_interval(sums, groups.low, groups.high)

    return [line(members) for members in groups.members]


def _test(schema: Schema, question: Question, known: Told | None, groups: _Groups) -> pd.DataFrame:
    """One line: the statistic, its degrees of freedom, the p-value and how many groups took part."""
    if known is None or len(groups.members) < 2:
        fix = "by=[COLUMN]" if known else "selection.marginals in another run"
        raise UserError("a test of equal means compares measured groups", where="by", fix=fix)
    middle = (groups.low + groups.high) / 2
    result = equal_means(known, list(groups.members * groups.counted), middle, sampling=question.sampling)
    frame = pd.DataFrame(
        {
            "statistic": [result.statistic],
            "degrees_of_freedom": [result.degrees],
            "p_value": [result.p_value],
            "groups": [len(result.groups)],
            "groups_too_small": [len(groups.members) - len(result.groups)],
            "how": ["measured"],
        }
    )
    frame.attrs["sources"] = [" × ".join(c) for c in known.sources]
    frame.attrs["notes"] = _notes(schema, replace(question, within_bin=MIDPOINT))
    return frame


def _limits(schema: Schema, measurements: Measurements, question: Question, groups: _Groups) -> list[Interval]:
    """Limits of each group's figure where every cell lies between Fréchet's limits, at 95 % for all cells together."""
    names = tuple(n for n in (*question.by, question.column) if n is not None)
    clique = schema.measured.canonical(names)
    limits = cell_limits(Evidence(measurements), clique, ALPHA)
    if limits is None:
        raise _untold(measurements, clique)
    totals = limits.least_sums(groups.members * groups.counted)
    ends = [_extremes(question, groups, m, limits, float(t)) for m, t in zip(groups.members, totals, strict=True)]
    return [Interval(None, low, high) for low, high in ends]


def _extremes(
    question: Question, groups: _Groups, members: Values, limits: Limits, total: float
) -> tuple[float, float]:
    """The least and the largest figure of a group of at least `total` records that the limits of its cells leave."""
    inside = members * groups.counted > 0
    least, most = limits.low[inside], limits.high[inside]
    small, large = groups.low[inside], groups.high[inside]
    if question.what == "count":
        return float(least @ small), float(most @ large)
    if question.what in {"median", "quantile"}:
        part = 0.5 if question.what == "median" else question.part
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


def _notes(schema: Schema, question: Question) -> list[str]:
    population = (
        "records count as independent draws from a population"
        if question.sampling
        else "of these records alone, not of a population they may be drawn from (sampling=true adds that)"
    )
    told_by = "p-value" if question.what == "equal_means" else "95 % interval"
    notes = [f"{told_by} over the noise; {population}", "of the records as clipping left them"]
    if question.column is None or question.what in {"count", "proportion"}:
        cut = question.value is not None and _cut(schema, question)
        return [*notes, "a bin that the range cuts counts as 0 to 1 of its records"] if cut else notes
    values = bin_values(schema[question.column], question.what)
    if values.widest > 0:
        inside = (
            "each value is taken for its bin's middle"
            if question.within_bin == MIDPOINT
            else "any value of its bin may be the true one (within_bin=midpoint takes the middle)"
        )
        notes.append(f"bins are up to {values.widest:g} wide: {inside}")
    return notes


def _cut(schema: Schema, question: Question) -> bool:
    values = _values(schema, question)
    return bool((values.high > values.low).any())


def question(
    what: str, column: str | None = None, *, by: str | Sequence[str] = (), quantile: float | None = None, **more: Any
) -> Question:
    """A question from the words of a call."""
    groups = (by,) if isinstance(by, str) else tuple(by)
    if quantile is not None:
        more["part"] = quantile
    return Question(what, column, groups, **more)
