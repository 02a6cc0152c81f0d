"""TSTR: its entry and its settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evaluation.metric import Inputs, Metric, MetricSettings, scored
from mechanisms.public.settings import columns, setting

if TYPE_CHECKING:
    from evaluation.learning.tstr import Tstr


@dataclass(frozen=True)
class TstrSettings(MetricSettings):
    """Settings.

    Attributes:
        predict, predict_all: the targets.
        predict_rows: that models learn from, and are tested on.
    """

    predict: list[str] = columns(
        "the columns to predict; default: the last", example="a list of columns: 'evaluation.predict=[income]'"
    )
    predict_all: bool = setting(False, "predict every column in turn, in place of those of evaluation.predict")
    predict_rows: int = setting(20_000, "models learn from and are tested on at most so many rows, a sample", least=1)


def _lost(inputs: Inputs) -> Tstr:
    from evaluation.learning.tstr import tstr

    options, own = inputs.options, inputs.own(TstrSettings)
    targets = inputs.real.domain.names if own.predict_all else own.predict or None
    how = {"targets": targets, "numbers": inputs.numbers, "seed": options.seed, "max_rows": own.predict_rows}
    return tstr(inputs.real, inputs.synthetic, options.holdout, **how)  # type: ignore[arg-type]


TSTR = Metric(
    name="tstr",
    title="TSTR: quality lost by models that learn from synthetic records",
    says="models that learn from synthetic records lose {score:.3f} of balanced accuracy, or R² for numbers",
    goal="low",
    low=-1,
    high=1,
    perfect=0,
    reference="models trained on real records; guessing",
    source="Esteban et al. 2017, section 4.2",
    run=scored(_lost),
    ends=lambda result: result.ends,
    settings=TstrSettings,
    reported=True,
    referable=False,
    library="sklearn",
    on_values=True,
)
