"""Coarser values for large marginals: neighbours on a line merged to about equal mass, rare values merged into one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.domain import Attribute, Domain


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


def coarse_columns(
    domain: Domain, expected: Mapping[str, NDArray[np.float64]], *, lined: int, other: int
) -> dict[str, NDArray[np.int64]]:
    """The groups of every column: at most `lined` where its values lie on a line, at most `other` elsewhere."""
    return {a.name: coarse_groups(a, expected[a.name], lined if a.ordered > 1 else other) for a in domain.attributes}
