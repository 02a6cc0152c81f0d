"""ANITA's sequential accuracy (Platzer 2020, §2): two random subsequent events per subject, as one flat table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.accuracy.anita_accuracy import NWay, bucket_tables, n_way
from evaluation.metric import Inputs, ReadScore
from evaluation.papers.paper_metrics import SequencesSettings
from evaluation.readings.reading import LIMITS, Ends, mean_ends
from evaluation.values.value_tables import NOBODY
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute, Domain

#: Columns of each table whose accuracy is averaged.
ORDERS = (1, 2, 3)


def flat_pairs(
    events: CodedTable,
    subject: NDArray[np.integer],
    places: NDArray[Any] | None,
    fixed: Sequence[str],
    *,
    seed: int,
) -> tuple[CodedTable, int]:
    """One row per subject with at least two events: two subsequent ones drawn at random, its `fixed` columns once.

    The second event's columns are named "… (next)". Events of one moment keep the order of the rows; those without a
    subject (NOBODY) have no pair.

    Args:
        events: one row per event.
        subject: the subject's number, per event.
        places: what the events of a subject are sorted by, per event; None for the order of the rows.
        fixed: columns that are attributes of the subject.
    Returns:
        The table, and how many subjects had one event only.
    """
    subject = np.asarray(subject)
    order = np.lexsort((subject,) if places is None else (places, subject))
    order = order[np.count_nonzero(subject == NOBODY) :]  # the first ones
    _, starts, counts = np.unique(subject[order], return_index=True, return_counts=True)
    long = counts >= 2
    rng = np.random.default_rng(seed)
    first = starts[long] + rng.integers(0, np.maximum(counts[long] - 1, 1))
    at, after = order[first], order[np.minimum(first + 1, max(len(order) - 1, 0))]
    attributes: list[Attribute] = []
    columns = []
    for a, column in zip(events.domain.attributes, events.columns, strict=True):
        attributes.append(a)
        columns.append(np.asarray(column[at]))
        if a.name not in fixed:
            attributes.append(Attribute(f"{a.name} (next)", a.size, a.ordered))
            columns.append(np.asarray(column[after]))
    return CodedTable(Domain(tuple(attributes)), tuple(columns)), int((~long).sum())


def _ends(parts: Sequence[NWay]) -> Ends | None:
    """Of the mean; independent columns keep the tables of one column."""
    ends = [p.ends for p in parts if p.ends is not None]
    if len(ends) < len(parts) or not ends:
        return None
    by_part = [replace(e, poor=e.honest) if p.n == 1 else e for p, e in zip(parts, ends, strict=True)]
    return replace(mean_ends(by_part), limits=LIMITS)


def sequences_of(inputs: Inputs) -> ReadScore:
    """The metric `anita_sequences`: n-way accuracy of two random subsequent events per subject, with its attributes.

    The score is the mean over n.
    Goal: what follows what, and for whom. Range: [0, 1]; 1 is perfect. Reference: the floor of each part.
    Edge cases: a subject with one event has no pair; it is counted, not scored. No pairs at all: no score.
    """
    options, own, seed = inputs.options, inputs.own(SequencesSettings), inputs.options.seed
    sides = zip((inputs.real, inputs.synthetic), options.subject or (), options.order or (None, None), strict=True)
    tables, single = zip(*(flat_pairs(*side, own.fixed, seed=seed) for side in sides), strict=True)
    orders = [n for n in ORDERS if n <= len(tables[0].domain)]
    real, synthetic = bucket_tables(tables[0], [tables[1]], m=own.buckets)
    parts = [n_way(real, synthetic, n, seed=seed) for n in orders]
    scores = [p.accuracy for p in parts if p.accuracy is not None]
    score = sum(scores) / len(scores) if scores and len(scores) == len(parts) else None
    details = {
        "subjects_with_a_pair": {"real": tables[0].rows, "synthetic": tables[1].rows},
        "subjects_with_one_event": {"real": single[0], "synthetic": single[1]},
        "n_way": [p.to_json() for p in parts],
    }
    reason = "" if score is not None else "; ".join(sorted({p.reason for p in parts}))
    return ReadScore(score, details, reason=reason, ends=_ends(parts))
