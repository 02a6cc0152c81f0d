"""Linkage: its entry; its settings are those of all attacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluation.attacks.attack_settings import AttackSettings
from evaluation.metric import Inputs, Metric, scored

if TYPE_CHECKING:
    from evaluation.attacks.attack_tables import Guesses


def _risk(inputs: Inputs) -> Guesses:
    import numpy as np

    from evaluation.attacks.attack_tables import sides_of
    from evaluation.attacks.linkage import linkage

    own, rng = inputs.own(AttackSettings), np.random.default_rng(inputs.options.seed)
    return linkage(sides_of(inputs, own, rng), own.attacks, rng)


LINKAGE = Metric(
    name="linkage",
    title="Attack: linkage of two halves of a record, risk beyond the holdout's",
    says="an attacker links {score:.1%} of those whom guessing would not link",
    goal="low",
    low=0,
    high=1,
    perfect=0,
    reference="links of the holdout",
    source="Giomi et al. 2023, section 4.2",
    run=scored(_risk),
    ends=lambda result: result.ends,
    settings=AttackSettings,
    needs=("holdout",),
    reported=True,
    referable=False,
    on_values=True,
)
