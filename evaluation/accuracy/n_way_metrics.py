"""ANITA's accuracy of n-way tables: an entry for n = 1 to 4, and one for any n."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from evaluation.metric import Inputs, Metric, MetricSettings
from mechanisms.public.settings import setting

if TYPE_CHECKING:
    from evaluation.accuracy.anita_accuracy import NWay


@dataclass(frozen=True)
class AnitaSettings(MetricSettings):
    """Settings that ANITA's accuracies share.

    Attributes:
        buckets: m.
    """

    buckets: int = setting(10, "ANITA's m: buckets per attribute", least=2)


@dataclass(frozen=True)
class WaysSettings(AnitaSettings):
    """Settings.

    Attributes:
        ways: n.
    """

    ways: int = setting(5, "number of columns of each marginal", least=1)


def _accuracy(n: int | None, inputs: Inputs) -> NWay:
    from evaluation.accuracy.anita_accuracy import affordable_tables, n_way

    ways, m = n or inputs.own(WaysSettings).ways, inputs.own(AnitaSettings).buckets
    limit = affordable_tables(inputs.real.rows + inputs.synthetic.rows)
    tables = inputs.bucketed(m) if inputs.real.rows and inputs.synthetic.rows else (inputs.real, inputs.synthetic)
    return n_way(*tables, ways, m=None, limit=limit, seed=inputs.options.seed)


def _entry(n: int | None) -> Metric:
    columns = f"{n} column{'s'[: n > 1]}" if n else "so many columns"
    return Metric(
        name=f"anita_{n or 'n'}way",
        title=f"ANITA: accuracy of {n}-way tables" if n else "ANITA: accuracy of tables of evaluation.ways columns",
        goal="high",
        low=0,
        high=1,
        perfect=1,
        reference="1 − its floor, in the details",
        source="Platzer 2020, section 2",
        run=partial(_accuracy, n),
        score="accuracy",
        says=f"{{score:.1%}} of the records lie in the same of its own cells, on average over tables of {columns}",
        settings=AnitaSettings if n else WaysSettings,
        quick=n in QUICK,
        on_values=True,
    )


#: Computed without being asked for.
QUICK = (1, 2, 3)
ANITA_1WAY, ANITA_2WAY, ANITA_3WAY, ANITA_4WAY, ANITA_NWAY = (_entry(n) for n in (1, 2, 3, 4, None))
