"""The paper's claim, checked: MGD follows the error of range queries, the pie chart does not (section 3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import spearmanr

from pipeline.json_types import JsonDict

#: Score → its name in sentences.
SCORES = {"mgd": "MGD", "aemc_3way": "AEMC (3-way)", "inverse_pie": "Inv Pie"}
#: Fewer rows have no order to speak of.
MIN_ROWS = 3


@dataclass(frozen=True)
class Claim:
    """Spearman's rank correlation of each score with the range-query error over some rows.

    Attributes:
        rho: score → correlation in [−1, 1]; None where it is undefined.
        rows: how many rows have all scores.
        holds: whether MGD's correlation is above the pie chart's; None where one of them is undefined.
    """

    rho: dict[str, float | None]
    rows: int
    holds: bool | None


def check(rows: Sequence[JsonDict]) -> Claim:
    """The claim on these rows; rows with an undefined score do not count.

    Args:
        rows: with range_query, mgd, inverse_pie and aemc["3-way"].
    """
    names = ("range_query", *SCORES)
    values = [[r["range_query"], r["mgd"], r["aemc"]["3-way"], r["inverse_pie"]] for r in rows]
    table = np.array([v for v in values if None not in v], np.float64).reshape(-1, len(names))
    rho = {name: spearman(table[:, 0].tolist(), table[:, i].tolist()) for i, name in enumerate(names) if i}
    mgd, pie = rho["mgd"], rho["inverse_pie"]
    return Claim(rho, len(table), None if mgd is None or pie is None else mgd > pie)


def spearman(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Spearman's rank correlation; None for fewer than MIN_ROWS rows or a score that never changes."""
    if len(x) < MIN_ROWS or len(set(x)) < 2 or len(set(y)) < 2:
        return None
    return float(spearmanr(x, y).statistic)


def sentence(claim: Claim, where: str) -> str:
    """The check in words."""
    parts = ", ".join(f"{SCORES[k]} {'undefined' if v is None else f'{v:.3f}'}" for k, v in claim.rho.items())
    verdict = {True: "holds: MGD is above the pie chart", False: "does NOT hold", None: "cannot be checked"}[
        claim.holds
    ]
    return f"{where} ({claim.rows} rows), Spearman with the range-query error: {parts}. The claim {verdict}."
