"""Draws of noise on a lattice that one int64 holds, and private tables of rows whose weights are of that lattice."""

from dataclasses import dataclass

import numpy as np

from mechanisms.accounting.events import NoiseEvent
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.units import WEIGHT_BITS
from mechanisms.sensitive.noise import NoiseSource, split_noise


def lattice_noise(event: NoiseEvent, size: int, source: NoiseSource, *, bits: int = WEIGHT_BITS) -> np.ndarray:
    return split_noise(event, size, source, bits=bits, split=0)[0]


CUBE = Domain(tuple(Attribute(n, 2) for n in "abc"))


@dataclass(frozen=True)
class Rows:
    """Rows over three binary columns, with their weights in lattice units."""

    rows: tuple[tuple[tuple[int, ...], int], ...]
    max_records: int = 1

    @property
    def coded(self) -> CodedTable:
        codes = np.array([r for r, _ in self.rows], np.uint8).reshape(-1, 3)
        return CodedTable(CUBE, tuple(codes.T.copy()), np.array([w for _, w in self.rows], np.uint32))
