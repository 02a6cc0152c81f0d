"""Counts of two tables over time × segment × type: what the metrics of maps and months are computed from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evaluation.counts import cells_in_records
from mechanisms.public.arrays import Floats
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.errors import UserError
from mechanisms.public.schema.code_labels import code_values
from mechanisms.public.schema.table_schema import Schema

#: Larger cubes are refused (8 bytes a cell, two tables).
MAX_CELLS = 200_000_000


@dataclass(frozen=True, eq=False)
class Cubes:
    """The same three-way marginal of two tables.

    Attributes:
        real, synthetic: records per time × segment × type.
        times, segments, types: the label of each place of the axes.
    """

    real: Floats
    synthetic: Floats
    times: tuple[object, ...]
    segments: tuple[object, ...]
    types: tuple[object, ...]

    def __post_init__(self) -> None:
        shape = (len(self.times), len(self.segments), len(self.types))
        if self.real.shape != shape or self.synthetic.shape != shape:
            raise ValueError(f"counts of shapes {self.real.shape}, {self.synthetic.shape} for labels {shape}")

    def merged(self, regions: Sequence[object]) -> Cubes:
        """The segments added up into regions (N-CRiPT 2021, section 3.5): trends across geography.

        Args:
            regions: the region of each segment, in the order of `segments`.
        """
        codes, names = pd.factorize(pd.Series(list(regions), dtype=object), sort=False)
        both = [np.zeros((len(self.times), len(names), len(self.types))) for _ in range(2)]
        for segment, region in enumerate(codes):
            both[0][:, region] += self.real[:, segment]
            both[1][:, region] += self.synthetic[:, segment]
        return Cubes(both[0], both[1], self.times, tuple(names), self.types)


def cubes_from_arrays(real: NDArray[np.number], synthetic: NDArray[np.number]) -> Cubes:
    """Cubes of arrays of counts, time × segment × type, labelled by number."""
    labels = tuple(tuple(range(n)) for n in real.shape)
    return Cubes(np.asarray(real, float), np.asarray(synthetic, float), *labels)


def map_cubes(real: CodedTable, synthetic: CodedTable, schema: Schema | None, columns: tuple[str, str, str]) -> Cubes:
    """Count both tables over (time, segment, type), labelled by the values of the schema; without one by the codes.

    Codes behind the values (*other*, *missing*) become cells of their own where either table has such a record, and are
    left away otherwise.
    """
    if len(set(columns)) < 3:
        raise UserError(f"time, segment and type are {', '.join(columns)}", where="metric", fix="three columns")
    if (cells := real.domain.cells(columns)) > MAX_CELLS:
        fix = f"columns with at most {MAX_CELLS:,} cells together"
        raise UserError(f"{' × '.join(columns)} has {cells:,} cells", where="metric", fix=fix)
    counted = [cells_in_records(t, columns) for t in (real, synthetic)]
    chosen, labels = [], []
    for axis, (name, size) in enumerate(zip(columns, real.domain.shape(columns), strict=True)):
        occupied = (counted[0] + counted[1]).sum(axis=tuple(i for i in range(3) if i != axis)) > 0
        values = size if schema is None else schema[name].value_codes
        chosen.append(np.flatnonzero(occupied | (np.arange(size) < values)))
        named = range(size) if schema is None else code_values(schema[name])
        labels.append(tuple(named[int(code)] for code in chosen[-1]))
    cut = [c[np.ix_(*chosen)] for c in counted]
    return Cubes(cut[0], cut[1], labels[0], labels[1], labels[2])
