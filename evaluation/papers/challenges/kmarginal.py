"""k-marginal scores of the 2020-21 challenge: the mean L1 distance of marginals inside each place and time."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evaluation.counts import paired_cells
from evaluation.metric import Inputs, OneScore
from evaluation.outcome import plain
from evaluation.values.value_tables import NOBODY
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.text_table import apart

#: Columns of each marginal, the draw of these, and by how many records a place and time may be off.
WAYS, SEED, DRAWS, CUTOFF = 2, 123456, 50, 250


def draw_marginals(columns: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    """DRAWS independent draws of WAYS different columns out of the sorted ones, as the scorer of sprint 2 draws them.

    Fewer columns: the one marginal of all of them.
    """
    names = sorted(columns)
    if len(names) <= WAYS:
        return (tuple(names),) if names else ()
    rng = np.random.RandomState(SEED)
    return tuple(tuple(str(c) for c in rng.choice(names, size=WAYS, replace=False)) for _ in range(DRAWS))


def k_marginal(
    real: CodedTable, synthetic: CodedTable, by: Sequence[str], draws: Sequence[tuple[str, ...]]
) -> OneScore:
    """The k-marginal score of the challenge's scorers: 1000 is perfect, 0 is no overlap at all.

    For each draw and each group of `by` (a place and time) that occurs in either table: the L1 distance of the shares
    within the group, 2 where one table has no such record. Their mean over the draws is the group's distance; 2 where
    the numbers of records differ by CUTOFF or more. The score is the unweighted mean over the groups.
    Edge cases: groups that one table invents or loses count as 2; two empty tables have no score.
    In `frame` each group has its labels, the records of either table, its distance, and whether it was penalised.
    """
    domain, own = real.domain, real.domain.canonical(by)
    (groups,) = paired_cells(real, synthetic, [own])
    lost, (p, q) = (groups.p == 0) | (groups.q == 0), (np.where(x > 0, x, 1.0) for x in (groups.p, groups.q))
    total, drawn = np.zeros(len(groups.ids)), Counter(domain.canonical((*by, *draw)) for draw in draws)
    for (clique, times), cells in zip(drawn.items(), paired_cells(real, synthetic, [*drawn]), strict=True):
        codes = dict(zip(clique, cells.codes, strict=True))
        group = np.searchsorted(groups.ids, np.ravel_multi_index([codes[n] for n in own], groups.shape))
        total += times * np.bincount(group, np.abs(cells.q / q[group] - cells.p / p[group]), len(total))
    penalised = np.abs(groups.q - groups.p) >= CUTOFF
    distance = np.where(penalised | (lost & bool(draws)), 2.0, total / max(len(draws), 1))
    labels = dict(zip(own, groups.codes.tolist(), strict=True))
    counts = {"real": groups.q, "synthetic": groups.p, "distance": distance, "penalised": penalised}
    groups_by = dict(zip(apart(by, counts), (labels[n] for n in by), strict=True))
    frame = pd.DataFrame(groups_by | counts).sort_values([*groups_by], kind="stable", ignore_index=True)
    worst = frame.sort_values("distance", ascending=False, kind="stable").head(10).drop(columns="penalised")
    details = {"groups": len(frame), "penalised": int(penalised.sum()), "marginals": len(draws)}
    details |= {"worst": plain(worst.to_dict(orient="records"))}
    if not len(frame) or not draws:
        return OneScore(None, details, frame, "no rows in either table" if draws else "no columns to draw from")
    return OneScore(1000 * (2 - math.fsum(distance) / len(distance)) / 2, details, frame)


#: What a submission carries besides the schema.
NOT_SCORED = ("epsilon", "sim_individual_id")


def sprint2_of(inputs: Inputs) -> OneScore:
    """The metric `sprint2`: the official score, of codes: their discretization stands for the scorer's bins.

    Goal: every two-way mix right in every PUMA and year. Range: [0, 1000]; 1000 is perfect. Reference: 1 %, 10 % and
    50 % of the contest's rows score 572-590, 831-839 and 940-944.
    """
    by = (inputs.column("segment"), inputs.column("time"))
    features = [n for n in inputs.real.domain.names if n not in (*by, *NOT_SCORED)]
    return k_marginal(inputs.real, inputs.synthetic, by, draw_marginals(features))


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
