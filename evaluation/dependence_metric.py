"""Dependence kept: its entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluation.metric import Inputs, Metric, scored

if TYPE_CHECKING:
    from evaluation.dependence import Dependence


def _kept(inputs: Inputs) -> Dependence:
    from evaluation.dependence import dependence_kept

    progress = inputs.options.progress
    return dependence_kept(inputs.all_rows, inputs.synthetic, inputs.schema, sample=inputs.real, progress=progress)


DEPENDENCE = Metric(
    name="dependence",
    title="Dependence kept",
    says="{score:.1%} of what columns tell about each other is kept",
    goal="high",
    low=0,
    high=1,
    perfect=1,
    reference="its floor; independent columns score 0",
    source="Pearson's contingency coefficient, corrected as in Bergsma 2013",
    run=scored(_kept),
    ends=lambda result: result.ends,
    quick=True,
    counted=True,
)
