"""Columns as their noisy answers make them likeliest."""

from __future__ import annotations

import math
from dataclasses import replace

from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements
from synthesis.consistency.evidence import gathered
from synthesis.consistency.projection import norm_sub
from synthesis.consistency.shrinkage import smoothed
from synthesis.consistency.total import estimate_total

#: Of the noise at least this share is taken to be left: priors that explain an answer whole may err.
LEFT = 0.05


def with_likely_columns(measurements: Measurements) -> Measurements:
    """Whole answers about one column, replaced by the records that are likely, and by the noise that is left in them.

    Answers get the known total, their cells the means that all cells, or neighbours of an ordered column, make
    likeliest (`smoothed`). These lose a constant until they sum to the total (`norm_sub`): a few records that may be in
    each of many empty cells are none.

    Guarantee: post-processing; costs no privacy.
    Cost: some hundred passes over the cells of each column.
    """
    total = estimate_total(measurements)
    if not total > 0:
        return measurements
    whole = [len(a.clique) == 1 and isinstance(a.query, Identity) for a in measurements.answers]
    columns = [a for a, is_whole in zip(measurements.answers, whole, strict=True) if is_whole]
    likely = {}
    for each in gathered(measurements.domain, columns):
        (name,), (values,) = each.clique, each.values
        even = values + (total - values.sum()) / values.size
        means, variances = smoothed(even, (measurements.domain[name].ordered,), each.stddev)
        left = max(math.sqrt(float(variances.mean())) / each.stddev, LEFT)
        likely[each.clique] = norm_sub(means, total), left

    answers = []
    for answer, is_whole in zip(measurements.answers, whole, strict=True):
        if is_whole:
            values, left = likely[answer.clique]
            answer = replace(answer, values=values, scale=answer.scale * left)
        answers.append(answer)
    return replace(measurements, answers=tuple(answers))
