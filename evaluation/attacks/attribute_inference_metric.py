"""Attribute inference: its entry and its settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evaluation.attacks.attack_settings import AttackSettings
from evaluation.metric import Inputs, Metric, scored
from mechanisms.public.settings import columns

if TYPE_CHECKING:
    from evaluation.attacks.attribute_inference import Inference


@dataclass(frozen=True)
class InferenceSettings(AttackSettings):
    """Settings.

    Attributes:
        secrets: what is inferred.
    """

    secrets: list[str] = columns(
        "the columns that an attacker infers from all others; default: each",
        example="a list of columns: 'evaluation.secrets=[income]'",
    )


def _risk(inputs: Inputs) -> Inference:
    import numpy as np

    from evaluation.attacks.attack_tables import sides_of
    from evaluation.attacks.attribute_inference import attribute_inference

    own, rng = inputs.own(InferenceSettings), np.random.default_rng(inputs.options.seed)
    return attribute_inference(sides_of(inputs, own, rng), own.attacks, own.secrets, rng)


ATTRIBUTE_INFERENCE = Metric(
    name="attribute_inference",
    title="Attack: inference of the column at most risk, beyond the holdout's",
    says="an attacker who knows all else wins {score:.1%} of what is left to guess about the column at most risk",
    goal="low",
    low=0,
    high=1,
    perfect=0,
    reference="guesses about the holdout",
    source="Giomi et al. 2023, section 4.3",
    run=scored(_risk),
    ends=lambda result: result.ends,
    settings=InferenceSettings,
    needs=("holdout",),
    reported=True,
    referable=False,
    on_values=True,
)
