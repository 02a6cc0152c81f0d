"""ANITA's sequential accuracy (Platzer 2020, §2): two random subsequent events per subject, as one flat table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.accuracy.anita_accuracy import NWay, n_way
from evaluation.metric import Inputs
from evaluation.papers.paper_metrics import SequencesSettings
from evaluation.readings.reading import LIMITS, Ends, mean_ends
from evaluation.values.value_tables import NOBODY
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.json_values import JsonDict

#: Columns of each table whose accuracy is averaged.
ORDERS = (1, 2, 3)


@dataclass(frozen=True, eq=False)
class Sequences:
    """Events with their subjects.

    Attributes:
        events: one row per event.
        subject: the subject's number, per event.
        order: what the events of a subject are sorted by, per event; None for the order of the rows.
        fixed: columns of `events` that are attributes of the subject and enter once.
    """

    events: CodedTable
    subject: NDArray[np.integer]
    order: NDArray[Any] | None = None
    fixed: Sequence[str] = ()

    def __post_init__(self) -> None:
        lengths = {len(self.subject), self.events.rows} | ({len(self.order)} if self.order is not None else set())
        if len(lengths) > 1:
            raise UserError(f"lengths {sorted(lengths)}", where="sequences", fix="one subject and place per event")


def flat_pairs(sequences: Sequences, *, seed: int = 0) -> tuple[CodedTable, int]:
    """One row per subject with at least two events: two subsequent ones drawn at random, its `fixed` columns once.

    The second event's columns are named "… (next)". Events of one moment keep the order of the rows; those without a
    subject (NOBODY) have no pair.

    Returns:
        The table, and how many subjects had one event only.
    """
    subject = np.asarray(sequences.subject)
    order = np.lexsort((subject,) if sequences.order is None else (sequences.order, subject))
    order = order[np.count_nonzero(subject == NOBODY) :]  # the first ones
    _, starts, counts = np.unique(subject[order], return_index=True, return_counts=True)
    long = counts >= 2
    rng = np.random.default_rng(seed)
    first = starts[long] + rng.integers(0, np.maximum(counts[long] - 1, 1))
    at, after = order[first], order[np.minimum(first + 1, max(len(order) - 1, 0))]
    attributes: list[Attribute] = []
    columns = []
    for a, column in zip(sequences.events.domain.attributes, sequences.events.columns, strict=True):
        attributes.append(a)
        columns.append(np.asarray(column[at]))
        if a.name not in sequences.fixed:
            attributes.append(Attribute(f"{a.name} (next)", a.size, a.ordered))
            columns.append(np.asarray(column[after]))
    return CodedTable(Domain(tuple(attributes)), tuple(columns)), int((~long).sum())


@dataclass(frozen=True, eq=False)
class SequentialAccuracy:
    """Accuracy of pairs of subsequent events.

    Attributes:
        parts: the n-way distances of the flat tables.
        pairs: subjects with a pair, real and synthetic.
        single: subjects with one event only, real and synthetic: left out of the pairs.
    """

    parts: tuple[NWay, ...]
    pairs: tuple[int, int]
    single: tuple[int, int]

    @property
    def score(self) -> float | None:
        """The mean accuracy over n; 1 is perfect."""
        values = [p.accuracy for p in self.parts]
        scores = [v for v in values if v is not None]
        return sum(scores) / len(scores) if scores and len(scores) == len(values) else None

    @property
    def ends(self) -> Ends | None:
        """Of the mean; independent columns keep the tables of one column."""
        parts = [p.ends for p in self.parts if p.ends is not None]
        if len(parts) < len(self.parts) or not parts:
            return None
        by_part = [replace(e, poor=e.honest) if p.n == 1 else e for p, e in zip(self.parts, parts, strict=True)]
        return replace(mean_ends(by_part), limits=LIMITS)

    def to_json(self) -> JsonDict:
        """JSON values; the score first."""
        sides = ("real", "synthetic")
        reason = {} if self.score is not None else {"reason": "; ".join(sorted({p.reason for p in self.parts}))}
        return {
            "score": self.score,
            **reason,
            "subjects_with_a_pair": dict(zip(sides, self.pairs, strict=True)),
            "subjects_with_one_event": dict(zip(sides, self.single, strict=True)),
            "n_way": [p.to_json() for p in self.parts],
        }


def sequential_accuracy(real: Sequences, synthetic: Sequences, *, m: int = 10, seed: int = 0) -> SequentialAccuracy:
    """n-way accuracy of two random subsequent events per subject joined with the subject's attributes.

    Goal: what follows what, and for whom. Range: [0, 1]; 1 is perfect. Reference: the floor of each part.
    Edge cases: a subject with one event has no pair; it is counted, not scored. No pairs at all: no score.
    """
    tables, single = zip(*(flat_pairs(s, seed=seed) for s in (real, synthetic)), strict=True)
    parts = tuple(n_way(tables[0], tables[1], n, m=m, seed=seed) for n in ORDERS if n <= len(tables[0].domain))
    return SequentialAccuracy(parts, (tables[0].rows, tables[1].rows), (single[0], single[1]))


def sequences_of(inputs: Inputs) -> SequentialAccuracy:
    """The metric `anita_sequences`."""
    options, own = inputs.options, inputs.own(SequencesSettings)
    if options.subject is None:
        raise UserError("no subjects", where="anita_sequences")
    orders = options.order or (None, None)
    tables = (inputs.real, inputs.synthetic)
    sides = [Sequences(t, s, o, own.fixed) for t, s, o in zip(tables, options.subject, orders, strict=True)]
    return sequential_accuracy(sides[0], sides[1], m=own.buckets, seed=options.seed)
