"""TVD: its entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluation.metric import Inputs, Metric, scored

if TYPE_CHECKING:
    from evaluation.tvd import Tvd


def _distances(inputs: Inputs) -> Tvd:
    from evaluation.tvd import distances

    return distances(inputs.all_rows, inputs.synthetic, progress=inputs.options.progress)


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
    expected=lambda result: result.expected,
    quick=True,
    empty=True,
    counted=True,
)
