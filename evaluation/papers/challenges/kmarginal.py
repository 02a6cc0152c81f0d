"""k-marginal scores of the 2020-21 challenge: the mean L1 distance of marginals inside each place and time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from evaluation.counts import paired_cells
from evaluation.metric import Inputs, OneScore
from evaluation.outcome import plain
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
