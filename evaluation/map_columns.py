"""The columns of a temporal map, which several metrics share."""

from __future__ import annotations

from dataclasses import dataclass

from evaluation.metric import MetricSettings
from mechanisms.public.settings import column


@dataclass(frozen=True)
class TimeAndPlace(MetricSettings):
    """When and where.

    Attributes:
        time, segment: columns.
    """

    time: str | None = column("the column of the time segments")
    segment: str | None = column("the column of the map segments")


@dataclass(frozen=True)
class MapColumns(TimeAndPlace):
    """When, where and what.

    Attributes:
        kind: a column.
    """

    kind: str | None = column("the column of the record types")


#: What every metric of a temporal map needs.
MAP = ("time", "segment", "kind")
