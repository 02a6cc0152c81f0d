"""Whole persons: the entry of the metric."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluation.metric import Metric, Options
from evaluation.persons.person_settings import PersonsSettings

if TYPE_CHECKING:
    from evaluation.persons.person_scores import PersonScores
    from mechanisms.public.json_values import JsonDict
    from mechanisms.public.schema.table_schema import Schema


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
