"""The scorer of sprint 3: its entry and its setting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evaluation.map_columns import TimeAndPlace
from evaluation.metric import Inputs, Metric, scored
from mechanisms.public.settings import column

if TYPE_CHECKING:
    from evaluation.papers.challenges.sprint3 import Sprint3


@dataclass(frozen=True)
class TripSettings(TimeAndPlace):
    """Settings.

    Attributes:
        to: where a trip ends.
    """

    to: str | None = column("the column of the destinations")


def _score(inputs: Inputs) -> Sprint3:
    import numpy as np

    from evaluation.papers.challenges.sprint3 import PLACE, TIME, sprint3_coded

    place, time, to = inputs.column("segment"), inputs.column("time"), inputs.column("to")
    subject = inputs.options.subject
    units = (None, None) if subject is None else (np.asarray(subject[0], np.int64), np.asarray(subject[1], np.int64))
    return sprint3_coded(
        inputs.real,
        inputs.synthetic,
        place=place,
        time=time,
        to=to,
        unit=units[0],
        synthetic_unit=units[1],
        as_published=(place, time) == (PLACE, TIME),
    )


SPRINT3 = Metric(
    name="sprint3",
    title="Sprint 3: k-marginal, flows and kinds of subjects",
    says="{score:.0f} of 1,000 points for marginals, flows between places and kinds of subjects",
    goal="high",
    low=0,
    high=1000,
    perfect=1000,
    reference="1 %, 10 %, 50 % of the contest's trips: 472-547, 703-721, 887-889",
    source="NIST challenge 2020-21, sprint 3",
    run=scored(_score),
    settings=TripSettings,
    needs=("time", "segment", "to"),  # without subjects two of its three parts
    referable=False,
)
