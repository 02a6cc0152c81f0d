"""Correlation difference: its entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluation.metric import Inputs, Metric, scored

if TYPE_CHECKING:
    from evaluation.correlation import Correlations


def _difference(inputs: Inputs) -> Correlations:
    from evaluation.correlation import correlation_difference

    return correlation_difference(inputs.real, inputs.synthetic, inputs.numbers)


CORRELATION = Metric(
    name="correlation",
    title="Correlation difference",
    says="the correlation of two columns is off by {score:.3f} on average",
    goal="low",
    low=0,
    high=2,
    perfect=0,
    reference="its floor; independent columns",
    source="common use",
    run=scored(_difference),
    ends=lambda result: result.ends,
    quick=True,
    on_values=True,
)
