"""Whole persons: the entry of the metric and its settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evaluation.metric import Metric, MetricSettings, Options
from mechanisms.public.settings import columns, setting

if TYPE_CHECKING:
    from evaluation.persons.person_scores import PersonScores
    from mechanisms.public.json_values import JsonDict
    from mechanisms.public.schema.table_schema import Schema


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


def _figures(result: PersonScores, schema: Schema, options: Options) -> JsonDict:
    return {"persons": result.drawn()}


PERSONS = Metric(
    name="persons",
    title="Whole persons: what is lost of what holds a person's records together",
    says="{score:.1%} of what shuffled owners lose of whole persons is lost",
    goal="low",
    high=None,
    perfect=0,
    reference="one half of the real persons against the other; 1: real rows with shuffled owners",
    source="ours; the intraclass correlation of Fisher 1925",
    run="evaluation.persons.person_scores:persons_of",
    ends=lambda result: result.ends,
    figures=_figures,
    settings=PersonsSettings,
    needs=("subject",),
    quick=True,
    referable=False,
    on_values=True,
)
