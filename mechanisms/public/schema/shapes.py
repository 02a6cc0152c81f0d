"""Shapes: how the values of an ordered column lie inside its bins, as a monotone distribution, not an even one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechanisms.public.schema.bins import Codes, Floats


@dataclass(frozen=True, eq=False)
class Shape:
    """A distribution function of the values, in records; from noisy answers and public facts alone.

    Attributes:
        places: values in the column's unit, ascending; a place that stands twice is a peak.
        below: records below each place, never falling; linear in between.
        edges: (codes + 1,) where the bins begin and end; `at_edges` the records below each.
    """

    places: Floats
    below: Floats
    edges: Floats
    at_edges: Floats

    @property
    def counts(self) -> Floats:
        """Records in each bin."""
        return np.diff(self.at_edges)

    def inside(self, codes: Codes, rng: np.random.Generator, *, limits: tuple[float, float] | None = None) -> Floats:
        """A place inside the bin of each code, by the distribution given the bin; even where that holds no record.

        Args:
            limits: places from the first to the last of them alone; every code's bin has some.
        """
        edges, below = self.edges, self.at_edges
        if limits is not None:
            ends = np.interp(
                [np.nextafter(limits[0], -np.inf), np.nextafter(limits[1], np.inf)], self.places, self.below
            )
            edges, below = np.clip(edges, *limits), np.clip(below, *ends)
        low, high = edges[codes], edges[codes.astype(np.int64) + 1]
        start, size = below[codes], np.diff(below)[codes]
        part = rng.random(len(codes))
        drawn = np.interp(start + part * size, self.below, self.places)
        return np.clip(np.where(size > 0, drawn, low + part * (high - low)), low, high)
