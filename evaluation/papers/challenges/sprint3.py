"""The official scorer of sprint 3 (taxi trips): k-marginal, pickup to dropoff, and higher-order conjunction."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evaluation.metric import Inputs, OneScore
from evaluation.papers.challenges.kmarginal import Pooled, by_number, flat_key, k_marginal, pool_tables
from evaluation.values.value_tables import NOBODY

#: Columns as the original names them; counts of numbers that are both a shift and an area are dropped there.
PLACE, TIME = "pickup_community_area", "shift"
#: The column of whose each row is.
SUBJECT = ""
SEED, DRAWS, CUTOFF = 123456, 50, 250
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
    place, time, to = map(inputs.column, ("segment", "time", "to"))
    pooled, subject = pool_tables(inputs.real, inputs.synthetic), inputs.options.subject
    features = [n for n in inputs.real.domain.names if n not in (place, time)]
    if subject is not None:
        numbers, values = pd.factorize(np.concatenate(subject).astype(np.int64), sort=True)
        pooled.columns[SUBJECT], pooled.sizes[SUBJECT] = numbers.astype(np.int64), len(values)
        pooled.labels[SUBJECT] = list(values)
    return sprint3_parts(pooled, (place, time, to), features, seed=SEED)


def sprint3_parts(pooled: Pooled, names: tuple[str, str, str], features: Sequence[str], *, seed: int) -> OneScore:
    """1000 times the mean of the three parts, each in [0, 1]; None where one is undefined.

    Args:
        names: of the columns that stand for pickup area, shift and dropoff area.
    """
    place, time, to = names
    pairs = tuple(itertools.combinations(features, 2))
    marginal = k_marginal(pooled, (place, time), pairs, cutoff=CUTOFF)
    k = None if marginal.score is None else marginal.score / 1000

    def scored(score: float | None, flows: float | None, kinds: float | None, reason: str = "") -> OneScore:
        parts = {"k_marginal": k, "pickup_dropoff": flows, "higher_order_conjunction": kinds}
        return OneScore(score, {**parts, "details": marginal.to_json()}, marginal.frame, reason)

    if pooled.truth in (0, len(pooled.weights)):
        if pooled.truth == 0:
            return scored(None, None, None, "the true table is empty")
        return scored(0.0, 0.0, 0.0)
    spatial = 1 - _l1(pooled, (place, to)) / 2
    if SUBJECT not in pooled.columns:
        return scored(None, spatial, None, NO_UNIT)
    both = conjunction_counts(pooled, place, time)
    if not len(both[0]):
        return scored(None, spatial, None, "no true row has a subject")
    h = higher_order_conjunction(*both, seed=seed)
    scores = (0.0 if k is None else k, spatial, h)
    return scored(1000 * math.fsum(scores) / 3, spatial, h)


def _l1(pooled: Pooled, names: tuple[str, ...]) -> float:
    """L1 distance of the shares of the whole tables."""
    key, split = flat_key(pooled, names), pooled.truth
    size = int(key.max(initial=0)) + 1
    q, p = (np.bincount(key[s], pooled.weights[s], size) for s in (slice(split), slice(split, None)))
    return float(np.abs(q / q.sum() - p / p.sum()).sum())


def conjunction_counts(pooled: Pooled, place: str, time: str) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Trips per shift and per area of each taxi, true and synthetic, in the columns of the truth (sorted)."""
    halves = (slice(pooled.truth), slice(pooled.truth, None))
    (truth, counts), (other, synthetic) = (_profile(pooled, half, place, time) for half in halves)
    place_of = {label: i for i, label in enumerate(other)}
    aligned = np.zeros((len(synthetic), len(truth)), np.int32)
    for i, label in enumerate(truth):
        if label in place_of:
            aligned[:, i] = synthetic[:, place_of[label]]
    return counts, aligned


def _profile(pooled: Pooled, part: slice, place: str, time: str) -> tuple[list[tuple[str, object]], NDArray[np.int32]]:
    """Columns and counts of one table: shifts, then areas; a number that is both is told apart by its name."""
    nobody = [i for i, label in enumerate(pooled.labels[SUBJECT]) if pd.isna(label) or label in (NOBODY, "")]
    with_subject = ~np.isin(pooled.columns[SUBJECT][part], nobody)
    ids, rows = np.unique(pooled.columns[SUBJECT][part][with_subject], return_inverse=True)
    by_label = sorted(range(len(ids)), key=lambda i: by_number(pooled.labels[SUBJECT][int(ids[i])]))
    rank = np.empty(len(ids), np.int64)
    rank[by_label] = np.arange(len(ids))
    taxis = rank[rows]
    labels: list[tuple[str, object]] = []
    present = {n: _present(pooled, n, pooled.columns[n][part][with_subject]) for n in (time, place)}
    times, places = ({v for _, v in present[n]} for n in (time, place))
    shared = times & places if (place, time) == (PLACE, TIME) else times | places
    table = np.empty((len(ids), len(present[time]) + len(present[place])), np.int32)
    for name, suffix in ((time, ""), (place, "p")):
        width = len(present[name])
        column = np.zeros(pooled.sizes[name], np.int64)
        column[[code for code, _ in present[name]]] = np.arange(width)
        cells = taxis * width + column[pooled.columns[name][part][with_subject]]
        counts = np.bincount(cells, minlength=len(ids) * width).reshape(len(ids), width)
        table[:, len(labels) : len(labels) + width] = counts
        labels += [(f"shared{suffix}" if value in shared else "alone", value) for _, value in present[name]]
    return labels, table


def _present(pooled: Pooled, name: str, column: NDArray[np.int64]) -> list[tuple[int, object]]:
    codes = np.unique(column)
    return sorted(((int(c), pooled.labels[name][int(c)]) for c in codes), key=lambda x: by_number(x[1]))


def higher_order_conjunction(real: NDArray[np.int32], synthetic: NDArray[np.int32], *, seed: int = SEED) -> float:
    """1 − the mean difference of the shares of subjects near a random true one; 1 is perfect.

    Args:
        real, synthetic: counts, one row per subject, with the same columns.
        seed: 0 means 123456.
    """
    rng = np.random.RandomState(seed or SEED)
    (low, high), apart = WIDTHS, []
    for _ in range(DRAWS):
        centre = real[rng.randint(0, len(real))]
        widths = np.asarray(rng.randint(low, high, size=real.shape[1]))
        near = [(np.abs(t - centre) <= widths).all(axis=1).mean() for t in (real, synthetic)]
        apart.append(float(abs(near[0] - near[1])))
    return 1 - math.fsum(apart) / DRAWS
