"""The classifier two-sample test: its entry and its setting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evaluation.metric import Inputs, Metric, MetricSettings, scored
from mechanisms.public.settings import setting

if TYPE_CHECKING:
    from evaluation.learning.two_sample_auc import TwoSampleAuc


@dataclass(frozen=True)
class AucSettings(MetricSettings):
    """Settings.

    Attributes:
        auc_rows: of each table.
    """

    auc_rows: int = setting(10_000, "a model tells at most so many rows of each table apart, a random sample", least=20)


def _told_apart(inputs: Inputs) -> TwoSampleAuc:
    from evaluation.learning.two_sample_auc import two_sample_auc

    options, rows = inputs.options, inputs.own(AucSettings).auc_rows
    return two_sample_auc(inputs.real, inputs.synthetic, options.holdout, rows=rows, seed=options.seed)


TWO_SAMPLE_AUC = Metric(
    name="two_sample_auc",
    title="Classifier that tells synthetic from real records, AUC",
    says="a model ranks a synthetic record above a real one with probability {score:.3f}",
    goal="low",
    low=0,
    high=1,
    perfect=0.5,
    reference="½ by guessing, and real records told from other real ones",
    source="Lopez-Paz & Oquab 2017",
    run=scored(_told_apart),
    ends=lambda result: result.ends,
    settings=AucSettings,
    reported=True,
    referable=False,
    library="sklearn",
    on_values=True,
)
