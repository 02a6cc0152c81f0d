"""Subjects as numbers: the same in both tables, in an order that no order of rows changes."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

#: The number of a row without a subject.
NOBODY = -1

Numbers = NDArray[np.int64]


def numbered(real: NDArray[np.object_], synthetic: NDArray[np.object_]) -> tuple[Numbers, Numbers]:
    """A number for each row's subject, from 0 in the order of the subjects; NOBODY where there is none.

    Subjects that are all numbers are in the order of numbers, others in that of their texts, as pandas sorts them in
    the scorers of the contests.

    Args:
        real, synthetic: texts; None, NaN or an empty one for no subject.
    """
    both = pd.Series(np.concatenate([real, synthetic]), dtype=object)
    both = both.mask(both == "")
    values = pd.to_numeric(both, errors="coerce")
    if values.notna().sum() == both.notna().sum():
        both = values
    codes, _ = pd.factorize(both, sort=True)
    codes = np.asarray(codes, np.int64)
    return codes[: len(real)], codes[len(real) :]
