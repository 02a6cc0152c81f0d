"""Frames of raw values, as the 2020-21 challenge took them: binned as it binned them, and scored by the product."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evaluation.metric import OneScore
from evaluation.papers.challenges.kmarginal import CUTOFF, DRAWS, SEED, Pooled, draw_marginals, k_marginal
from evaluation.papers.challenges.sprint3 import PLACE, SUBJECT, TIME, sprint3_parts
from tests.evaluation.transcribed import LEFT, RIGHT, SURVEY, TRIP

Edges = Mapping[str, NDArray[np.float64]]
#: What makes a place and time of sprint 2.
BY = ("PUMA", "YEAR")
#: The finite ends of the intervals: (lo, hi] of sprint 2, [lo, hi) of sprint 3.
SURVEY_EDGES: Edges = {name: np.array(ends[1:-1], float) for name, ends in RIGHT.items()}
TRIP_EDGES: Edges = {name: np.array(ends[1:-1], float) for name, ends in LEFT.items()}
#: What the original calls the dropoff area and the taxi.
TO, UNIT = "dropoff_community_area", "taxi_id"


def pooled(
    frames: Sequence[pd.DataFrame], columns: Sequence[str], edges: Edges, side: Literal["left", "right"]
) -> Pooled:
    """Codes of the values of two frames, of numbers by their intervals; an absent value is a value of its own."""
    codes, sizes, labels = {}, {}, dict[str, list[Any]]()
    for c in columns:
        both = pd.concat([frame[c] for frame in frames], ignore_index=True)
        if c in edges:
            both = pd.Series(np.searchsorted(edges[c], both.to_numpy(float), side=side)).where(both.notna(), -1)
        numbers, values = pd.factorize(both, sort=False, use_na_sentinel=False)
        codes[c], sizes[c], labels[c] = numbers.astype(np.int64), len(values), list(values)
    return Pooled(codes, sizes, len(frames[0]), np.ones(sum(map(len, frames))), labels)


def sprint2_table(real: pd.DataFrame, synthetic: pd.DataFrame, *, seed: int = SEED) -> OneScore:
    """The official score of one table (one ε); records without a PUMA or a year count nowhere, as there."""
    draws = draw_marginals(SURVEY, k=2, draws=DRAWS, seed=seed)
    used = sorted({c for draw in draws for c in draw})
    frames = [frame.dropna(subset=list(BY)) for frame in (real, synthetic)]
    return k_marginal(pooled(frames, [*BY, *used], SURVEY_EDGES, "left"), BY, draws, cutoff=CUTOFF)


def sprint3_table(real: pd.DataFrame, synthetic: pd.DataFrame, *, seed: int = SEED) -> OneScore:
    """The official score of one table (one ε); an empty one scores 0, where the original divides by zero in the end."""
    columns, frames = [PLACE, TIME, SUBJECT, *TRIP], [f.rename(columns={UNIT: SUBJECT}) for f in (real, synthetic)]
    return sprint3_parts(pooled(frames, columns, TRIP_EDGES, "right"), (PLACE, TIME, TO), TRIP, seed=seed)
