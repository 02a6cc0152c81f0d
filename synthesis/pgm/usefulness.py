"""Which marginals a graphical model has most use for, where it has no room for all that were measured."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mechanisms.public.designs.tree import heaviest_forest
from mechanisms.public.marginals import Values
from mechanisms.public.release import Measurements
from synthesis.consistency.evidence import Evidence
from synthesis.consistency.projection import soften
from synthesis.independent import independent_marginals


def usefulness(measurements: Measurements, evidence: Sequence[Evidence]) -> tuple[list[float], list[int]]:
    """How useful each marginal is, in records; and which of them are the forest of most dependence.

    Columns; a forest of the pairs whose answers show the most dependence; and what else does. A triple of large columns
    would take the room of many pairs without which columns are not joined at all.

    Guarantee: post-processing; costs no privacy.
    """
    independent, cliques = independent_marginals(measurements), [e.clique for e in evidence]
    useful = [math.inf if len(e.clique) < 2 else _shown(e, independent(e.clique)) for e in evidence]
    pairs = [i for i, c in enumerate(cliques) if len(c) == 2]
    forest = [pairs[i] for i in heaviest_forest([cliques[i] for i in pairs], [useful[i] for i in pairs])]
    most = max((u for u in useful if u < math.inf), default=0.0)
    for i in forest:
        useful[i] += most
    return useful, forest


def _shown(evidence: Evidence, independent: Values) -> float:
    """How much dependence the answers show beyond their noise: L1, in records where each cell is an answer.

    Two tables of one total differ by as much above as below. Where near copies meet, few cells rise, far out of noise,
    and what they rise by is missing in many others, too little in each to be seen: it counts as if it were.
    """
    expected = evidence.answer(independent)
    off = soften(evidence.standardized, expected, 1.0, sparse=True) - expected
    return 2 * float(max(np.maximum(off, 0.0).sum(), np.maximum(-off, 0.0).sum())) * evidence.stddev
