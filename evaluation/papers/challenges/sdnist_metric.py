"""SDNist's k-marginal score: its entry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evaluation.metric import Inputs, Metric, MetricSettings, scored
from mechanisms.public.settings import column

if TYPE_CHECKING:
    from evaluation.papers.challenges.sdnist import Sdnist


@dataclass(frozen=True)
class AreaSettings(MetricSettings):
    """Settings.

    Attributes:
        area: PUMA.
    """

    area: str | None = column("the column that sdnist_kmarginal adds to each pair of columns: evaluation.area=PUMA")


def _score(inputs: Inputs) -> Sdnist:
    from evaluation.papers.challenges.sdnist import sdnist

    own, options = inputs.own(AreaSettings), inputs.options
    by = None if own.area is None else inputs.column("area")
    values = options.values if inputs.schema is None else None
    return sdnist(inputs.real, inputs.synthetic, by=by, values=values, seed=options.seed)


SDNIST = Metric(
    name="sdnist_kmarginal",
    title="SDNist: k-marginal of all pairs of columns, in each area",
    says="{score:.0f} of 1,000 points for all pairs of columns",
    goal="high",
    low=0,
    high=1000,
    perfect=1000,
    reference="10, 40 and 90 % of the real rows, in the details; independent columns",
    source="NIST, SDNist 2.3; Collaborative Research Cycle",
    run=scored(_score),
    settings=AreaSettings,
    ends=lambda result: result.ends,
    on_values=True,
)
