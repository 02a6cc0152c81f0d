"""Density estimation of the 2018 challenge: its entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluation.metric import Inputs, Metric, scored

if TYPE_CHECKING:
    from evaluation.papers.challenges.density import Density


def _density(inputs: Inputs) -> Density:
    from evaluation.papers.challenges.density import density

    return density(inputs.real, inputs.synthetic, seed=inputs.options.seed)


DENSITY = Metric(
    name="density",
    title="2018: density estimation",
    says="{score:,.0f} of 1,000,000 points for tables of three columns",
    goal="high",
    low=0,
    high=1_000_000,
    perfect=1_000_000,
    reference="its floor",
    source="Li et al. 2021b, 5.1",
    run=scored(_density),
)
