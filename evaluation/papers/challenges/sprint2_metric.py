"""The scorer of sprint 2: its entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluation.map_columns import TimeAndPlace
from evaluation.metric import Inputs, Metric, scored

if TYPE_CHECKING:
    from evaluation.papers.challenges.kmarginal import KMarginal


def _score(inputs: Inputs) -> KMarginal:
    from evaluation.papers.challenges.sprint2 import sprint2_coded

    return sprint2_coded(inputs.real, inputs.synthetic, by=(inputs.column("segment"), inputs.column("time")))


SPRINT2 = Metric(
    name="sprint2",
    title="Sprint 2: k-marginal per place and time",
    says="{score:.0f} of 1,000 points for the marginals of places and times",
    goal="high",
    low=0,
    high=1000,
    perfect=1000,
    reference="1 %, 10 %, 50 % of the contest's ACS rows: 572-590, 831-839, 940-944; its ladder",
    source="NIST challenge 2020-21, sprint 2",
    run=scored(_score),
    settings=TimeAndPlace,
    needs=("time", "segment"),
)
