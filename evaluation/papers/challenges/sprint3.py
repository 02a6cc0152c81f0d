"""The official scorer of sprint 3 (taxi trips): k-marginal, pickup to dropoff, and higher-order conjunction."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evaluation.counts import paired_cells
from evaluation.metric import Inputs, OneScore
from evaluation.papers.challenges.kmarginal import DRAWS, SEED, k_marginal
from evaluation.values.value_tables import NOBODY
from mechanisms.public.coded_table import CodedTable

#: Columns as the original names them; counts of numbers that are both a shift and an area are dropped there.
PLACE, TIME = "pickup_community_area", "shift"
#: A number per row.
Numbers = NDArray[np.integer]
#: Which kind of column, and its code → the trips of each taxi.
Profile = dict[tuple[str, int], NDArray[np.int32]]
NO_UNIT = "the third part, the conjunction, needs the subject of every row"
WIDTHS = (5, 51)


def sprint3_of(inputs: Inputs) -> OneScore:
    """The metric `sprint3`: the official score, of codes: their discretization stands for the scorer's bins.

    Goal: the mix of trips at every place and time, the flows, and the kinds of taxis. Range: [0, 1000]; 1000 is
    perfect. Reference: 1 %, 10 % and 50 % of the real rows score 472-547, 703-721 and 887-889.
    Edge cases: an empty table scores 0 in all parts (the original divides by zero in the last). Rows without a subject
    take part in all but the conjunction, as there; without subjects there is no conjunction and no total. The order of
    subjects is that of the original's ids: centres are drawn in it.
    """
    names = (inputs.column("segment"), inputs.column("time"), inputs.column("to"))
    features = [n for n in inputs.real.domain.names if n not in names[:2]]
    return sprint3_parts(inputs.real, inputs.synthetic, inputs.options.subject, names, features)


def sprint3_parts(
    real: CodedTable,
    synthetic: CodedTable,
    subject: tuple[Numbers, Numbers] | None,
    names: tuple[str, str, str],
    features: Sequence[str],
) -> OneScore:
    """1000 times the mean of the three parts, each in [0, 1]; None where one is undefined.

    Args:
        subject: a number per row of either table; NOBODY for none.
        names: of the columns that stand for pickup area, shift and dropoff area.
    """
    place, time, to = names
    pairs = tuple(itertools.combinations(features, 2))
    marginal = k_marginal(real, synthetic, (place, time), pairs)
    k = None if marginal.score is None else marginal.score / 1000

    def scored(score: float | None, flows: float | None, kinds: float | None, reason: str = "") -> OneScore:
        parts = {"k_marginal": k, "pickup_dropoff": flows, "higher_order_conjunction": kinds}
        return OneScore(score, {**parts, "details": marginal.to_json()}, marginal.frame, reason)

    if not real.rows:
        return scored(None, None, None, "the true table is empty")
    if not synthetic.rows:
        return scored(0.0, 0.0, 0.0)
    (flows,) = paired_cells(real, synthetic, [real.domain.canonical((place, to))])
    spatial = 1 - float(np.abs(flows.q / flows.q.sum() - flows.p / flows.p.sum()).sum()) / 2
    if subject is None:
        return scored(None, spatial, None, NO_UNIT)
    both = [_profile(t, s, place, time) for t, s in zip((real, synthetic), subject, strict=True)]
    if not both[0]:
        return scored(None, spatial, None, "no true row has a subject")
    h = higher_order_conjunction(*_aligned(both[0], both[1]))
    scores = (0.0 if k is None else k, spatial, h)
    return scored(1000 * math.fsum(scores) / 3, spatial, h)


def _aligned(truth: Profile, other: Profile) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The counts of each taxi, true and synthetic, in the columns of the truth (sorted)."""
    nothing = np.zeros(len(next(iter(other.values()), ())), np.int32)
    return np.stack([*truth.values()], axis=1), np.stack([other.get(name, nothing) for name in truth], axis=1)


def _profile(table: CodedTable, subject: Numbers, place: str, time: str) -> Profile:
    """Trips of each taxi per shift, then per area; a number that is both is told apart by its name."""
    rows = np.asarray(subject) != NOBODY
    ids, taxis = np.unique(np.asarray(subject)[rows], return_inverse=True)
    codes = {name: np.asarray(table.column(name))[rows].astype(np.int64) for name in (time, place)}
    times, places = (set(np.unique(c).tolist()) for c in codes.values())
    shared = times & places if (place, time) == (PLACE, TIME) else times | places
    profile: Profile = {}
    for name, suffix in ((time, ""), (place, "p")):
        size = table.domain[name].size
        counts = np.bincount(taxis * size + codes[name], minlength=len(ids) * size).reshape(len(ids), size)
        for code in np.unique(codes[name]).tolist():
            profile[f"shared{suffix}" if code in shared else "alone", code] = counts[:, code].astype(np.int32)
    return profile


def higher_order_conjunction(real: NDArray[np.int32], synthetic: NDArray[np.int32]) -> float:
    """1 − the mean difference of the shares of subjects near a random true one; 1 is perfect.

    Args:
        real, synthetic: counts, one row per subject, with the same columns.
    """
    rng = np.random.RandomState(SEED)
    (low, high), apart = WIDTHS, []
    for _ in range(DRAWS):
        centre = real[rng.randint(0, len(real))]
        widths = np.asarray(rng.randint(low, high, size=real.shape[1]))
        near = [(np.abs(t - centre) <= widths).all(axis=1).mean() for t in (real, synthetic)]
        apart.append(float(abs(near[0] - near[1])))
    return 1 - math.fsum(apart) / DRAWS
