"""Frames of raw values, as the 2020-21 challenge took them: binned as it binned them, and scored by the product."""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evaluation.metric import OneScore
from evaluation.papers.challenges.kmarginal import PLACE, TIME, draw_marginals, k_marginal, sprint3_parts
from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.domain import Attribute, Domain
from tests.evaluation.transcribed import LEFT, RIGHT, SURVEY, TRIP

Edges = Mapping[str, NDArray[np.float64]]
#: What makes a place and time of sprint 2.
BY = ("PUMA", "YEAR")
#: The finite ends of the intervals: (lo, hi] of sprint 2, [lo, hi) of sprint 3.
SURVEY_EDGES: Edges = {name: np.array(ends[1:-1], float) for name, ends in RIGHT.items()}
TRIP_EDGES: Edges = {name: np.array(ends[1:-1], float) for name, ends in LEFT.items()}
#: What the original calls the dropoff area and the taxi.
TO, UNIT = "dropoff_community_area", "taxi_id"


def coded(
    frames: Sequence[pd.DataFrame],
    columns: Sequence[str],
    edges: Edges,
    side: Literal["left", "right"],
    alike: Sequence[str] = (),
) -> tuple[CodedTable, CodedTable]:
    """Codes of the values of two frames, of numbers by their intervals; an absent value is a value of its own.

    Args:
        alike: columns of numbers in which the same number has the same code.
    """
    attributes, parts = [], []
    values = np.unique(np.concatenate([np.zeros(0), *(f[c].to_numpy(float) for f in frames for c in alike)]))
    for c in columns:
        both = pd.concat([frame[c] for frame in frames], ignore_index=True)
        if c in edges:
            both = pd.Series(np.searchsorted(edges[c], both.to_numpy(float), side=side)).where(both.notna(), -1)
        numbers, held = pd.factorize(both, sort=False, use_na_sentinel=False)
        if c in alike:
            numbers, held = np.searchsorted(values, both.to_numpy(float)), values
        attributes.append(Attribute(c, max(len(held), 1)))
        parts.append(np.split(numbers.astype(code_dtype(max(len(held), 1))), [len(frames[0])]))
    domain = Domain(tuple(attributes))
    one, other = (CodedTable(domain, tuple(part[i] for part in parts)) for i in (0, 1))
    return one, other


def sprint2_table(real: pd.DataFrame, synthetic: pd.DataFrame) -> OneScore:
    """The official score of one table (one ε); records without a PUMA or a year count nowhere, as there."""
    draws = draw_marginals(SURVEY)
    used = sorted({c for draw in draws for c in draw})
    frames = [frame.dropna(subset=list(BY)) for frame in (real, synthetic)]
    return k_marginal(*coded(frames, [*BY, *used], SURVEY_EDGES, "left"), BY, draws)


def sprint3_table(real: pd.DataFrame, synthetic: pd.DataFrame) -> OneScore:
    """The official score of one table (one ε); an empty one scores 0, where the original divides by zero in the end."""
    tables = coded([real, synthetic], [PLACE, TIME, *TRIP], TRIP_EDGES, "right", alike=(PLACE, TIME))
    taxis, _ = pd.factorize(pd.concat([real[UNIT], synthetic[UNIT]]), sort=True)
    subject = taxis[: len(real)], taxis[len(real) :]
    return sprint3_parts(*tables, subject, (PLACE, TIME, TO), TRIP)
