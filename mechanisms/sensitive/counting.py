"""Exact marginals of the private table, in whole lattice units; they stay left of the wall."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.coded_table import AnyTable
from mechanisms.public.domain import Clique
from mechanisms.public.marginals import count_cliques, in_batches
from mechanisms.public.units import WEIGHT_BITS


class Private(Protocol):
    """What counting needs of a private table."""

    @property
    def coded(self) -> AnyTable: ...

    @property
    def max_records(self) -> int: ...


def exact_marginals(table: Private, cliques: Sequence[Clique], *, batch_cells: int) -> Iterator[NDArray[np.int64]]:
    """Each clique's counts in units of 2**-WEIGHT_BITS records, flattened in C order, in the order asked.

    Args:
        batch_cells: at most so many cells are counted in one pass over the rows (a single larger marginal goes alone).
    """
    domain, coded = table.coded.domain, table.coded
    shift = 0 if coded.weighted else WEIGHT_BITS
    for batch in in_batches(domain, cliques, batch_cells):
        for counts in count_cliques(coded, batch):
            yield counts << shift
