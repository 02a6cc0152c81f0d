"""Settings of metrics that know persons."""

from __future__ import annotations

from dataclasses import dataclass

from evaluation.metric import MetricSettings
from mechanisms.public.settings import columns, setting


@dataclass(frozen=True)
class FixedSettings(MetricSettings):
    """Settings of metrics that know constants of a person.

    Attributes:
        fixed: columns that enter once.
    """

    fixed: list[str] = columns(
        "columns that belong to the subject", example="a list of columns: 'evaluation.fixed=[sex]'"
    )


@dataclass(frozen=True)
class PersonsSettings(FixedSettings):
    """Settings.

    Attributes:
        most_records: of one person.
    """

    most_records: int | None = setting(None, "a subject with more records than these is a violation", least=1)
