"""Singling out: its entry and its settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evaluation.attacks.attack_settings import AttackSettings
from evaluation.metric import Inputs, Metric, scored
from mechanisms.public.settings import setting

if TYPE_CHECKING:
    from evaluation.attacks.attack_tables import Guesses


@dataclass(frozen=True)
class SinglingOutSettings(AttackSettings):
    """Settings.

    Attributes:
        condition_columns: of each guess.
    """

    condition_columns: int = setting(3, "columns of each condition that is to single out a person", least=1)


def _risk(inputs: Inputs) -> Guesses:
    import numpy as np

    from evaluation.attacks.attack_tables import sides_of
    from evaluation.attacks.singling_out import singling_out

    own, rng = inputs.own(SinglingOutSettings), np.random.default_rng(inputs.options.seed)
    return singling_out(sides_of(inputs, own, rng), own.attacks, own.condition_columns, rng)


SINGLING_OUT = Metric(
    name="singling_out",
    title="Attack: singling out, risk beyond the holdout's",
    says="an attacker singles out {score:.1%} of those whom guessing would not",
    goal="low",
    low=0,
    high=1,
    perfect=0,
    reference="guesses on the holdout",
    source="Giomi et al. 2023, section 4.1",
    run=scored(_risk),
    ends=lambda result: result.ends,
    settings=SinglingOutSettings,
    needs=("holdout",),
    reported=True,
    referable=False,
    on_values=True,
)
