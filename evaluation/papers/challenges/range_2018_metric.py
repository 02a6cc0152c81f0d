"""Range queries of the 2018 challenge: their entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluation.metric import Inputs, Metric, scored

if TYPE_CHECKING:
    from evaluation.papers.challenges.range_2018 import RangeScore


def _score(inputs: Inputs) -> RangeScore:
    from evaluation.papers.challenges.range_2018 import range_score

    return range_score(inputs.real, inputs.synthetic, seed=inputs.options.seed)


RANGE_2018 = Metric(
    name="range_2018",
    title="2018: range queries",
    says="{score:,.0f} of 1,000,000 points for shares of records in random ranges",
    goal="high",
    low=0,
    high=1_000_000,
    perfect=1_000_000,
    reference="its floor",
    source="Li et al. 2021b, 5.1",
    run=scored(_score),
)
