"""Subjects as numbers: the same in both tables, in an order that no order of rows changes."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

#: The number of a row without a subject.
NOBODY = -1

Numbers = NDArray[np.int64]


def numbered(*tables: NDArray[np.object_]) -> list[Numbers]:
    """A number for each row's subject, from 0 in the order of the subjects of all tables; NOBODY where there is none.

    Subjects that are all numbers are in the order of numbers, others in that of their texts, as pandas sorts them in
    the scorers of the contests.

    Args:
        tables: texts of each; None, NaN or an empty one for no subject.
    """
    both = pd.Series(np.concatenate(tables), dtype=object)
    both = both.mask(both == "")
    values = pd.to_numeric(both, errors="coerce")
    if values.notna().sum() == both.notna().sum():
        both = values
    codes, _ = pd.factorize(both, sort=True)
    return np.split(np.asarray(codes, np.int64), np.cumsum([len(t) for t in tables])[:-1])


def as_units(tables: list[Numbers]) -> list[Numbers]:
    """The same for privacy units: a row without a subject is a unit of its own."""
    whole = np.concatenate(tables)
    alone = whole == NOBODY
    whole = np.where(alone, whole.max(initial=0) + np.cumsum(alone), whole)
    return np.split(whole, np.cumsum([len(t) for t in tables])[:-1])
