"""ANITA's accuracy of two subsequent events: its entry and its setting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evaluation.accuracy.n_way_metrics import AnitaSettings
from evaluation.metric import Inputs, Metric, scored
from mechanisms.public.errors import UserError
from mechanisms.public.settings import columns

if TYPE_CHECKING:
    from evaluation.papers.anita.anita_sequences import SequentialAccuracy


@dataclass(frozen=True)
class SequencesSettings(AnitaSettings):
    """Settings.

    Attributes:
        fixed: columns that enter once.
    """

    fixed: list[str] = columns(
        "columns that belong to the subject", example="a list of columns: 'evaluation.fixed=[sex]'"
    )


def _accuracy(inputs: Inputs) -> SequentialAccuracy:
    from evaluation.papers.anita.anita_sequences import Sequences, sequential_accuracy

    options, own = inputs.options, inputs.own(SequencesSettings)
    if options.subject is None:
        raise UserError("no subjects", where="anita_sequences")
    orders = options.order or (None, None)
    tables = (inputs.real, inputs.synthetic)
    sides = [Sequences(t, s, o, own.fixed) for t, s, o in zip(tables, options.subject, orders, strict=True)]
    return sequential_accuracy(sides[0], sides[1], m=own.buckets, seed=options.seed)


SEQUENCES = Metric(
    name="anita_sequences",
    title="ANITA: accuracy of two subsequent events of a subject",
    says="{score:.1%} of two subsequent events lie in the same cells",
    goal="high",
    low=0,
    high=1,
    perfect=1,
    reference="1 − its floor, in the details",
    source="Platzer 2020, section 2",
    run=scored(_accuracy),
    ends=lambda result: result.ends,
    settings=SequencesSettings,
    needs=("subject",),
    referable=False,
    on_values=True,
)
