"""Total variation distance of 1-, 2- and 3-way marginals: ½ Σ |p − q| of the normalised marginals."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from evaluation.counts import paired_cells, pairs_looked_at, sampled_sets
from evaluation.metric import Inputs
from evaluation.readings.distance_ends import DistanceEnds
from evaluation.readings.reading import Ends
from mechanisms.public.coded_table import AnyTable, CodedTable
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.files import JsonDict
from mechanisms.public.progress import Progress

#: How many 3-way marginals are drawn (of all, in the order of sorted names, with seed 0).
TRIPLES = 100


def tvd_cliques(domain: Domain) -> dict[str, list[Clique]]:
    """All 1- and 2-way marginals (of more than 200 columns 20,000 seeded pairs) and 100 seeded 3-way ones."""
    names = sorted(domain.names)
    families: dict[str, list[Clique]] = {
        "1-way": [(n,) for n in names],
        "2-way": [*pairs_looked_at(names)],
        "3-way": sampled_sets(names, 3, TRIPLES),
    }
    return {k: [domain.canonical(c) for c in v] for k, v in families.items() if v}


@dataclass(frozen=True)
class Tvd:
    """Distances of many marginals.

    Attributes:
        marginals: each marginal with its distance, in [0, 1].
        families: 1-way, 2-way, 3-way → mean, max, marginals.
        reason: why there are none.
        ends: what a second sample of the same people and independent columns would score, and an interval.
    """

    marginals: tuple[tuple[Clique, float], ...]
    families: JsonDict
    reason: str = ""
    ends: Ends | None = None

    @property
    def score(self) -> float | None:
        """The mean of the 2-way marginals; of the 1-way ones where the table has one column."""
        family = self.families.get("2-way") or self.families.get("1-way")
        return None if family is None else float(family["mean"])

    def to_json(self) -> JsonDict:
        """JSON values: the families, or the reason."""
        return {"reason": self.reason} if self.reason else self.families


def distances(
    real: AnyTable, synthetic: CodedTable, *, sample: CodedTable | None = None, progress: Progress | None = None
) -> Tvd:
    """The TVD of every 1- and 2-way and of some 3-way marginals.

    Args:
        sample: rows of the real table, where it lies elsewhere.
    """
    if real.rows == 0 or synthetic.rows == 0:
        return Tvd((), {}, "a table without records has no distribution")
    families = tvd_cliques(real.domain)
    flat = [c for cliques in families.values() for c in cliques]
    scored = families.get("2-way") or families["1-way"]
    rows = real if isinstance(real, CodedTable) else sample
    ends = None
    if rows is not None and rows.rows and not (real.weighted or synthetic.weighted):
        ends = DistanceEnds(rows, synthetic, scored, (real.rows, synthetic.rows))
    values, of_score = [], set(scored)
    for clique, cells in zip(flat, paired_cells(real, synthetic, flat, progress), strict=True):
        p, q = cells.p / cells.p.sum(), cells.q / cells.q.sum()
        values.append(0.5 * float(np.abs(p - q).sum()))
        if ends is not None and clique in of_score:
            ends.add(clique, cells.shape, cells.ids, p, q)
    families_of: JsonDict = {}
    start = 0
    for name, cliques in families.items():
        part = values[start : start + len(cliques)]
        start += len(cliques)
        families_of[name] = {"mean": math.fsum(part) / len(part), "max": max(part), "marginals": len(part)}
    result = Tvd(tuple(zip(flat, values, strict=True)), families_of)
    return result if ends is None else replace(result, ends=ends.ends(float(result.score or 0.0)))


def tvd_of(inputs: Inputs) -> Tvd:
    """The metric `tvd`."""
    return distances(inputs.all_rows, inputs.synthetic, sample=inputs.real, progress=inputs.options.progress)
