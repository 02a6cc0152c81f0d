"""The settings that the attacks share."""

from __future__ import annotations

from dataclasses import dataclass

from evaluation.metric import MetricSettings
from mechanisms.public.settings import columns, setting


@dataclass(frozen=True)
class AttackSettings(MetricSettings):
    """Settings.

    Attributes:
        attacks: how many are tried on training units, and as many on units of the holdout.
        attack_rows: of each table.
    """

    attacks: int = setting(1_000, "so many attacks on training units and on units of the holdout, at most", least=1)
    attack_rows: int = setting(
        10_000, "at most so many rows of each table know or are attacked, a random sample", least=1
    )


@dataclass(frozen=True)
class SinglingOutSettings(AttackSettings):
    """Settings.

    Attributes:
        condition_columns: of each guess.
    """

    condition_columns: int = setting(3, "columns of each condition that is to single out a person", least=1)


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
