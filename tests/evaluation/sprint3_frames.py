"""The scorer of sprint 3 on submissions as the contest took them: frames of raw values, binned as it binned them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evaluation.papers.challenges.sprint3 import (
    PLACE,
    SEED,
    TIME,
    TO,
    UNIT,
    Roles,
    Sprint3,
    conjunction_counts,
    sprint3_parts,
)
from mechanisms.public.errors import UserError
from tests.evaluation.sprint2_frames import SprintScore, by_epsilon, mean_score, pool_frames

FEATURES = ("company_id", TO, "payment_type", "fare", "tips", "trip_total", "trip_seconds", "trip_miles")
#: Lower ends of the intervals [lo, hi); one more reaches to −∞.
EDGES: dict[str, NDArray[np.float64]] = {
    **{name: np.arange(0.0, 91, 10) for name in ("fare", "tips", "trip_total", "trip_miles")},
    "trip_seconds": np.arange(0.0, 1_801, 200),
}


def binned(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with the scorer's intervals [lo, hi) as codes in place of the five numbers; −1 falls in the first."""
    cut = {
        name: pd.Series(np.searchsorted(edges, frame[name].to_numpy(float), side="right"), index=frame.index)
        for name, edges in EDGES.items()
        if name in frame.columns
    }
    return frame.assign(**{name: codes.where(frame[name].notna(), -1) for name, codes in cut.items()})


def sprint3(
    real: pd.DataFrame, submission: pd.DataFrame, *, epsilons: Sequence[float] | None = None, seed: int = SEED
) -> SprintScore:
    """The official score of a submission with an `epsilon` column against the true trips, both with raw values.

    Goal: the mix of trips at every place and time, the flows, and the kinds of taxis. Range: [0, 1000]; 1000 is
    perfect. Reference: 1 %, 10 % and 50 % of the real rows score 472-547, 703-721 and 887-889.
    Edge cases: those of `sprint3_table`; without an `epsilon` column nothing is selected, which scores 0.

    Args:
        epsilons: the budgets expected; None for those of the submission.
    """
    parts = by_epsilon(submission, epsilons)
    return mean_score([(epsilon, sprint3_table(real, part, seed=seed)) for epsilon, part in parts])


def sprint3_table(real: pd.DataFrame, synthetic: pd.DataFrame, *, seed: int = SEED, strict: bool = True) -> Sprint3:
    """The official score of one table (one ε), both with raw values.

    Args:
        strict: refuse a truth that does not show all 21 shifts and 78 areas, as the original does.

    Edge cases: an empty table scores 0 in all parts (the original divides by zero in the last). Trips without a taxi_id
    take part in all but the conjunction, as there. Where the submission
    lacks a number that is both a shift and an area in the truth (as a shift, or as an area), the original's join names
    the other one's column differently and drops its counts to 0: so do we.
    """
    pooled = pool_frames(binned(real), binned(synthetic), [PLACE, TIME, UNIT, *FEATURES])
    seen = conjunction_counts(pooled, Roles(unit=UNIT))[0].shape[1]
    if strict and len(real) and len(synthetic) and seen != 99:
        fix = "a truth that shows all 21 shifts and all 78 areas"
        raise UserError(f"{seen} shifts and areas in the true table, not 99", where="sprint 3", fix=fix)
    return sprint3_parts(pooled, Roles(unit=UNIT), FEATURES, seed=seed)
