"""The pie chart score of sprint 1 and its inverse: an entry for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluation.map_columns import MAP, MapColumns
from evaluation.metric import Inputs, Metric

if TYPE_CHECKING:
    from evaluation.papers.challenges.pie_chart import PieChart


def _pie(inputs: Inputs) -> PieChart:
    """The pie chart of the map's columns; its segments are places × times."""
    from evaluation.papers.challenges.pie_chart import pie_chart

    places = {"spatial": inputs.column("segment"), "temporal": inputs.column("time")}
    return pie_chart(inputs.real, inputs.synthetic, category=inputs.column("kind"), **places)


PIE_CHART = Metric(
    name="pie_chart",
    title="Sprint 1: pie chart score per place and time",
    says="a place and time keeps {score:.1%} of the points for its shares",
    goal="high",
    perfect=1,
    reference="its floor; the sum over places and times, as published, is in the details",
    source="NIST challenge 2020-21, sprint 1; Li et al. 2021a, Appendix B",
    run=_pie,
    score="mean",
    settings=MapColumns,
    needs=MAP,
    quick=True,
)

INVERSE_PIE = Metric(
    name="inverse_pie",
    title="Inverse pie chart score",
    says="a place and time loses {score:.1%} of the points for its shares",
    goal="low",
    perfect=0,
    reference="its floor",
    source="Li et al. 2021a, Appendix B; NIST challenge 2020-21, sprint 1",
    run=_pie,
    score="inverse",
    settings=MapColumns,
    needs=MAP,
)
