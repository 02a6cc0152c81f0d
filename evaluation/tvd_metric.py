"""TVD: its entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluation.metric import Inputs, Metric, scored

if TYPE_CHECKING:
    from evaluation.tvd import Tvd


def _distances(inputs: Inputs) -> Tvd:
    from evaluation.tvd import distances

    progress = inputs.options.progress
    return distances(inputs.all_rows, inputs.synthetic, sample=inputs.real, progress=progress)


TVD = Metric(
    name="tvd",
    title="Total variation distance, mean of the 2-way marginals",
    goal="low",
    low=0,
    high=1,
    perfect=0,
    reference="its floor; independent columns",
    source="common use; Li et al. 2021b; Platzer 2020",
    run=scored(_distances),
    says="{score:.1%} of the records would have to change their cell, on average over pairs of columns",
    ends=lambda result: result.ends,
    quick=True,
    empty=True,
    counted=True,
)
