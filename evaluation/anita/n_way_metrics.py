"""ANITA's accuracy of 1-, 2- and 3-way tables: an entry for each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from evaluation.metric import Inputs, Metric, MetricSettings, scored, setting

if TYPE_CHECKING:
    from evaluation.anita.anita_accuracy import NWay


@dataclass(frozen=True)
class AnitaSettings(MetricSettings):
    """Settings that ANITA's accuracies share.

    Attributes:
        buckets: m.
    """

    buckets: int = setting(10, "ANITA's m: buckets per attribute", least=2)


def _accuracy(n: int, inputs: Inputs) -> NWay:
    from evaluation.anita.anita_accuracy import affordable_tables, n_way

    m = inputs.own(AnitaSettings).buckets
    limit = affordable_tables(inputs.real.rows + inputs.synthetic.rows)
    return n_way(inputs.real, inputs.synthetic, n, m=m, limit=limit, seed=inputs.options.seed)


N_WAY = tuple(
    Metric(
        name=f"anita_{n}way",
        title=f"ANITA: accuracy of {n}-way tables",
        goal="high",
        low=0,
        high=1,
        perfect=1,
        reference="1 − its floor, in the details",
        source="Platzer 2020, section 2",
        run=scored(partial(_accuracy, n), lambda result: result.accuracy),
        says=f"{{score:.1%}} of the records lie in the same cells, on average over tables of {n} column{'s'[: n > 1]}",
        ends=lambda result: result.ends,
        settings=AnitaSettings,
        quick=True,
        on_values=True,
    )
    for n in (1, 2, 3)
)
