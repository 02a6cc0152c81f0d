"""Coarser values for large marginals: neighbours on a line merged to about equal mass, rare values merged into one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.domain import Attribute, Domain

#: A last group beside a large code stays separate if it holds this part of a full group.
ENOUGH = 0.2


def coarse_groups(attribute: Attribute, expected: NDArray[np.float64], groups: int) -> NDArray[np.int64]:
    """Each code's group, 0, 1, …; at most so many groups, and every code alone where there are no more codes.

    The codes that lie on a line are merged with their neighbours to about equal mass; the codes behind them stay alone.
    Of the values of a categorical column the most frequent stay alone, and all others are one group.

    Args:
        expected: records per code, from noisy answers; negative ones count as none.
        groups: at least 2.
    """
    if attribute.size <= groups:
        return np.arange(attribute.size)
    mass = np.maximum(expected, 0.0) + 1e-9
    line = attribute.ordered
    behind = attribute.size - line
    if line > 1 and groups - behind >= 2:
        share = (np.cumsum(mass[:line]) - mass[:line] / 2) / mass[:line].sum()
        own = np.minimum((share * (groups - behind)).astype(np.int64), groups - behind - 1)
        _, own = np.unique(own, return_inverse=True)
        return np.concatenate([own, own.max() + 1 + np.arange(behind)]).astype(np.int64)
    common = np.zeros(attribute.size, np.bool_)
    common[np.argsort(-mass, kind="stable")[: groups - 1]] = True
    labels = np.cumsum(common) - 1
    labels[~common] = groups - 1
    return labels.astype(np.int64)


def solid_groups(attribute: Attribute, expected: NDArray[np.float64], least: float) -> NDArray[np.int64]:
    """The group of each code: neighbours on the line are merged until they hold `least` records.

    So no group is a tail of noise alone. A code that holds `least` by itself stays alone, as do codes behind the line.

    What is left at the end of the line joins the group before it, unless it holds a part of `least` (ENOUGH) and that
    group is a single large code.

    Args:
        expected: records per code, from noisy answers.
    """
    mass = np.maximum(expected[: attribute.ordered], 0.0)
    line = np.zeros(attribute.ordered, np.int64)
    group, held, run, before = -1, 0.0, False, False  # whether the group is a run of small codes; and the one before it
    for code, records in enumerate(mass):
        large = bool(records >= least)
        if large or not run or held >= least:
            group, held, before, run = group + 1, 0.0, run, not large
        line[code] = group
        held += records
    if group > 0 and run and held < (least if before else ENOUGH * least):
        line[line == group] = group - 1
    behind = (int(line.max()) + 1 if line.size else 0) + np.arange(attribute.size - attribute.ordered)
    return np.concatenate([line, behind]).astype(np.int64)


def coarse_columns(
    domain: Domain, expected: Mapping[str, NDArray[np.float64]], *, lined: int, other: int
) -> dict[str, NDArray[np.int64]]:
    """The groups of every column: at most `lined` where its values lie on a line, at most `other` elsewhere."""
    return {a.name: coarse_groups(a, expected[a.name], lined if a.ordered > 1 else other) for a in domain.attributes}
