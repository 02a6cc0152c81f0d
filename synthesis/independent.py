"""Rows from one-way marginals alone: the baseline that keeps no correlation."""

from __future__ import annotations

import numpy as np

from mechanisms.public.table import CodedTable, code_dtype
from synthesis.consistency import Targets
from synthesis.rounding import codes_of


def independent_rows(targets: Targets, *, rows: int, rng: np.random.Generator) -> CodedTable:
    """`rows` rows whose columns follow their one-way marginals, independent of each other.

    Cost: rows × columns.
    """
    domain = targets.domain
    columns = tuple(codes_of(targets.one_way(a.name), rows, rng).astype(code_dtype(a.size)) for a in domain.attributes)
    return CodedTable(domain, columns)
