"""TSTR: its entry and its setting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evaluation.metric import Inputs, Metric, MetricSettings, columns, scored

if TYPE_CHECKING:
    from evaluation.learning.tstr import Tstr


@dataclass(frozen=True)
class TstrSettings(MetricSettings):
    """Settings.

    Attributes:
        predict: the targets.
    """

    predict: list[str] = columns(
        "the columns to predict; default: the last", example="a list of columns: 'evaluation.predict=[income]'"
    )


def _lost(inputs: Inputs) -> Tstr:
    from evaluation.learning.tstr import tstr

    options, targets = inputs.options, inputs.own(TstrSettings).predict
    return tstr(inputs.real, inputs.synthetic, options.holdout, targets=targets or None, seed=options.seed)


TSTR = Metric(
    name="tstr",
    title="TSTR: balanced accuracy lost",
    says="models that learn from synthetic records lose {score:.1%} of balanced accuracy",
    goal="low",
    low=-1,
    high=1,
    perfect=0,
    reference="the model trained on real records; guessing",
    source="common use",
    run=scored(_lost),
    settings=TstrSettings,
    referable=False,
    library="sklearn",
    on_values=True,
)
