"""Membership inference: its entry; its settings are those of all attacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluation.attacks.attack_settings import AttackSettings
from evaluation.metric import Inputs, Metric, scored

if TYPE_CHECKING:
    from evaluation.attacks.membership import Membership


def _told_apart(inputs: Inputs) -> Membership:
    import numpy as np

    from evaluation.attacks.attack_tables import sides_of
    from evaluation.attacks.membership import membership

    own, rng = inputs.own(AttackSettings), np.random.default_rng(inputs.options.seed)
    return membership(sides_of(inputs, own, rng), own.attacks, rng, inputs.options.promise)


MEMBERSHIP = Metric(
    name="membership_inference",
    title="Attack: membership inference, AUC of the best of three",
    says="an attacker ranks a member above somebody else with probability {score:.3f}",
    goal="low",
    low=0,
    high=1,
    perfect=0.5,
    reference="½ by guessing, and what ε allows",
    source="Houssiau et al. 2022; van Breugel et al. 2023",
    run=scored(_told_apart),
    ends=lambda result: result.ends,
    settings=AttackSettings,
    needs=("holdout",),
    reported=True,
    referable=False,
    on_values=True,
    library="sklearn",
)
