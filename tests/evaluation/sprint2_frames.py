"""The scorer of sprint 2 on submissions as the contest took them: frames of raw values, binned as it binned them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evaluation.papers.challenges.kmarginal import (
    CUTOFF,
    DRAWS,
    SEED,
    Codes,
    KMarginal,
    Pooled,
    draw_marginals,
    k_marginal,
)
from mechanisms.public.errors import UserError

#: What makes a place and time.
BY = ("PUMA", "YEAR")
#: The features that pairs are drawn from, whatever else the tables hold.
FEATURES = (
    *("HHWT", "GQ", "PERWT", "SEX", "AGE", "MARST", "RACE", "HISPAN", "CITIZEN", "SPEAKENG", "HCOVANY", "HCOVPRIV"),
    *("HINSEMP", "HINSCAID", "HINSCARE", "EDUC", "EMPSTAT", "EMPSTATD", "LABFORCE", "WRKLSTWK", "ABSENT", "LOOKING"),
    *("AVAILBLE", "WRKRECAL", "WORKEDYR", "INCTOT", "INCWAGE", "INCWELFR", "INCINVST", "INCEARN", "POVERTY"),
    *("DEPARTS", "ARRIVES"),
)

_QUARTERS = [100 * hour + minute for hour in range(24) for minute in (0, 15, 30, 45)]
#: Upper ends of the intervals (lo, hi]; the first reaches to −∞, one more to ∞.
EDGES: dict[str, NDArray[np.float64]] = {
    "AGE": np.arange(20.0, 101, 5),
    **{name: np.arange(0.0, 100_001, 5_000) for name in ("INCTOT", "INCWAGE", "INCWELFR", "INCINVST", "INCEARN")},
    **{name: np.arange(0.0, 501, 20) for name in ("POVERTY", "HHWT", "PERWT")},
    **{name: np.array(_QUARTERS, float) for name in ("DEPARTS", "ARRIVES")},
}


@dataclass(frozen=True, eq=False)
class SprintScore:
    """A score per ε and their mean.

    Attributes:
        score: the mean over ε, from 0 to 1000 (perfect); None where an ε has none.
        per_epsilon: the ε of each part (None for a table without one) and its result.
    """

    score: float | None
    per_epsilon: tuple[tuple[float | None, Any], ...]

    def to_json(self) -> dict[str, Any]:
        """JSON values; the score first."""
        parts = [{"epsilon": e, **part.to_json()} for e, part in self.per_epsilon]
        reason = {} if self.score is not None else {"reason": "; ".join(sorted({p.get("reason", "") for p in parts}))}
        return {"score": self.score, **reason, "per_epsilon": parts}


def binned(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with the scorer's intervals (lo, hi] as codes in place of the eleven numeric columns."""
    cut = {
        name: pd.Series(np.searchsorted(edges, frame[name].to_numpy(float), side="left"), index=frame.index)
        for name, edges in EDGES.items()
        if name in frame.columns
    }
    gaps = {name: codes.where(frame[name].notna(), -1) for name, codes in cut.items()}
    return frame.assign(**gaps)


def sprint2(
    real: pd.DataFrame, submission: pd.DataFrame, *, epsilons: Sequence[float] | None = None, seed: int = SEED
) -> SprintScore:
    """The official score of a submission with an `epsilon` column against the true table, both with raw values.

    Goal: every two-way mix right in every PUMA and year. Range: [0, 1000]; 1000 is perfect. Reference: 1 %, 10 % and
    50 % of the contest's rows score 572-590, 831-839 and 940-944.
    Edge cases: no `epsilon` column scores 0, as there (nothing is selected); an ε of `epsilons` without rows scores 0;
    a seed of 0 means 123456. `sim_individual_id` is not scored.

    Args:
        epsilons: the budgets expected; None for those of the submission.
    """
    parts = by_epsilon(submission, epsilons)
    return mean_score([(epsilon, sprint2_table(real, part, seed=seed)) for epsilon, part in parts])


def sprint2_table(real: pd.DataFrame, synthetic: pd.DataFrame, *, seed: int = SEED) -> KMarginal:
    """The official score of one table (one ε), both with raw values.

    Edge cases: further columns in either table change nothing; records without a PUMA or a year count nowhere, as
    there.

    Raises:
        UserError: a table lacks a column that is drawn.
    """
    draws = draw_marginals(FEATURES, k=2, draws=DRAWS, seed=seed)
    used = sorted({c for draw in draws for c in draw})
    sides = [t.dropna(subset=[c for c in BY if c in t.columns]) for t in (real, synthetic)]
    pooled = pool_frames(binned(sides[0]), binned(sides[1]), [*BY, *used])
    return k_marginal(pooled, BY, draws, cutoff=CUTOFF)


def by_epsilon(submission: pd.DataFrame, epsilons: Sequence[float] | None) -> list[tuple[float | None, pd.DataFrame]]:
    """The rows of each ε, those of the submission where none are named; no rows without a column `epsilon`."""
    parts: list[tuple[float | None, pd.DataFrame]] = []
    if "epsilon" in submission.columns:
        chosen = submission["epsilon"].dropna().unique() if epsilons is None else epsilons
        parts = [(float(e), submission[submission["epsilon"] == e]) for e in chosen]
    return parts or [(None, submission.iloc[:0])]


def mean_score(parts: Sequence[tuple[float | None, Any]]) -> SprintScore:
    """The mean over ε; none where a part has none."""
    scores = [part.score for _, part in parts]
    whole = [s for s in scores if s is not None]
    mean = math.fsum(whole) / len(whole) if whole and len(whole) == len(scores) else None
    return SprintScore(mean, tuple(parts))


def pool_frames(real: pd.DataFrame, synthetic: pd.DataFrame, columns: Sequence[str]) -> Pooled:
    """Codes of the values of two frames; an absent value is a value of its own."""
    for name, frame in (("real", real), ("synthetic", synthetic)):
        absent = [c for c in columns if c not in frame.columns]
        if absent:
            raise UserError(f"no column {absent[0]!r}", where=f"the {name} table", fix=f"columns {', '.join(columns)}")
    codes: dict[str, Codes] = {}
    sizes: dict[str, int] = {}
    labels: dict[str, Sequence[Any]] = {}
    for c in columns:
        both = pd.concat([real[c], synthetic[c]], ignore_index=True)
        numbers, values = pd.factorize(both, sort=False, use_na_sentinel=False)
        codes[c], sizes[c], labels[c] = numbers.astype(np.int64), len(values), list(values)
    return Pooled(codes, sizes, len(real), np.ones(len(real) + len(synthetic)), labels)
