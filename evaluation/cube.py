"""Counts of two tables over time × segment × type: what the metrics of maps and months are computed from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evaluation.counts import cells_in_records
from mechanisms.public.coded_table import CodedTable, check_same_domain
from mechanisms.public.domain import Domain
from mechanisms.public.errors import UserError
from mechanisms.public.schema.code_labels import code_values
from mechanisms.public.schema.table_schema import Schema

#: Larger cubes are refused (8 bytes a cell, two tables).
MAX_CELLS = 200_000_000

Counts = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Cubes:
    """The same three-way marginal of two tables.

    Attributes:
        real, synthetic: records per time × segment × type.
        times, segments, types: the label of each place of the axes.
    """

    real: Counts
    synthetic: Counts
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
        if len(regions) != len(self.segments):
            fix = "one region for each segment, in the order of the segments"
            raise UserError(f"{len(regions)} regions for {len(self.segments)} segments", where="regions", fix=fix)
        codes, names = pd.factorize(pd.Series(list(regions), dtype=object), sort=False)
        if (codes < 0).any():
            raise UserError("a segment has no region", where="regions", fix="a label for every segment")
        both = [np.zeros((len(self.times), len(names), len(self.types))) for _ in range(2)]
        for segment, region in enumerate(codes):
            both[0][:, region] += self.real[:, segment]
            both[1][:, region] += self.synthetic[:, segment]
        return Cubes(both[0], both[1], self.times, tuple(names), self.types)


def cubes_from_arrays(real: NDArray[np.number], synthetic: NDArray[np.number]) -> Cubes:
    """Cubes of arrays of counts, time × segment × type, labelled by number."""
    if real.ndim != 3 or real.shape != synthetic.shape:
        fix = "two arrays of counts: time × segment × type"
        raise UserError(f"shapes {real.shape} and {synthetic.shape}", where="counts", fix=fix)
    labels = tuple(tuple(range(n)) for n in real.shape)
    return Cubes(np.asarray(real, float), np.asarray(synthetic, float), *labels)


def count_cubes(
    real: CodedTable,
    synthetic: CodedTable,
    columns: tuple[str, str, str],
    *,
    values: tuple[int, int, int] | None = None,
    labels: tuple[Sequence[object], Sequence[object], Sequence[object]] | None = None,
) -> Cubes:
    """Count both tables over (time, segment, type).

    Args:
        columns: the names of the three columns.
        values: how many codes of each stand for values; the codes behind them (*other*, *missing*) become cells of
            their own where either table has such a record, and are left away otherwise. None: every code is a value.
        labels: the label of each code; None: the codes.
    """
    domain = real.domain
    check_same_domain(real, synthetic)
    if len(set(columns)) < 3:
        raise UserError(f"time, segment and type are {', '.join(columns)}", where="metric", fix="three columns")
    _check_size(domain, columns)
    counted = [cells_in_records(t, columns) for t in (real, synthetic)]
    arrays = []
    for axis, size in enumerate(domain.shape(columns)):
        others = tuple(i for i in range(3) if i != axis)
        occupied = (counted[0] + counted[1]).sum(axis=others) > 0
        first = size if values is None else values[axis]
        arrays.append(np.flatnonzero(occupied | (np.arange(size) < first)))
    names = [[labels[i][int(c)] for c in arrays[i]] if labels else [int(c) for c in arrays[i]] for i in range(3)]
    cut = [c[np.ix_(*arrays)] for c in counted]
    return Cubes(cut[0], cut[1], tuple(names[0]), tuple(names[1]), tuple(names[2]))


def map_cubes(real: CodedTable, synthetic: CodedTable, schema: Schema | None, names: tuple[str, str, str]) -> Cubes:
    """Counts over time × segment × type, with the values of the schema; without one with the codes."""
    if schema is None:
        return count_cubes(real, synthetic, names)
    time, segment, kind = (schema[n] for n in names)
    values = (time.value_codes, segment.value_codes, kind.value_codes)
    labels = (code_values(time), code_values(segment), code_values(kind))
    return count_cubes(real, synthetic, names, values=values, labels=labels)


def _check_size(domain: Domain, columns: tuple[str, str, str]) -> None:
    cells = domain.cells(columns)
    if cells > MAX_CELLS:
        fix = f"columns with at most {MAX_CELLS:,} cells together"
        raise UserError(f"{' × '.join(columns)} has {cells:,} cells", where="metric", fix=fix)
