"""k-marginal scores of the 2020-21 challenge: the mean L1 distance of marginals inside each place and time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evaluation.counts import DENSE_CELLS
from evaluation.metric import Inputs, OneScore
from evaluation.outcome import plain
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.jit import compiled
from mechanisms.public.units import WEIGHT_BITS

Codes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Pooled:
    """Two tables as one: whole-number codes that mean the same in both.

    Attributes:
        columns: codes of each column, the true rows first.
        sizes: how many codes each column has.
        truth: how many rows are true.
        weights: records per row.
        labels: the values behind the codes.
    """

    columns: dict[str, Codes]
    sizes: dict[str, int]
    truth: int
    weights: NDArray[np.float64]
    labels: dict[str, Sequence[Any]]


def pool_tables(real: CodedTable, synthetic: CodedTable) -> Pooled:
    """Codes of two tables over the same domain."""
    names = real.domain.names
    codes = {n: np.concatenate([real.column(n), synthetic.column(n)]).astype(np.int64) for n in names}
    sizes = {n: real.domain[n].size for n in names}
    weights = [np.ones(t.rows) if t.weights is None else t.weights * 2.0**-WEIGHT_BITS for t in (real, synthetic)]
    return Pooled(codes, sizes, real.rows, np.concatenate(weights), {n: range(sizes[n]) for n in names})


def draw_marginals(columns: Iterable[str], *, k: int, draws: int, seed: int) -> tuple[tuple[str, ...], ...]:
    """`draws` independent draws of k different columns out of the sorted ones, as the scorer of sprint 2 draws them.

    A seed of 0 means 123456, as there. Fewer than k columns: the one marginal of all of them.
    """
    names = sorted(columns)
    if len(names) <= k:
        return (tuple(names),) if names else ()
    rng = np.random.RandomState(seed or 123456)
    return tuple(tuple(str(c) for c in rng.choice(names, size=k, replace=False)) for _ in range(draws))


def k_marginal(pooled: Pooled, by: Sequence[str], draws: Sequence[tuple[str, ...]], *, cutoff: float = 250) -> OneScore:
    """The k-marginal score of the challenge's scorers: 1000 is perfect, 0 is no overlap at all.

    For each draw and each group of `by` (a place and time) that occurs in either table: the L1 distance of the shares
    within the group, 2 where one table has no such record. Their mean over the draws is the group's distance; 2 where
    the numbers of records differ by `cutoff` or more. The score is the unweighted mean over the groups.
    Edge cases: groups that one table invents or loses count as 2; two empty tables have no score.
    In `frame` each group has its labels, the records of either table, its distance, and whether it was penalised.
    """
    order, starts, labels = _groups(pooled, by)
    side = (order >= pooled.truth).astype(np.int64)
    weights = pooled.weights[order]
    records = np.zeros((len(starts) - 1, 2))
    group = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    np.add.at(records, (group, side), weights)
    total = np.zeros(len(records))
    shares: dict[tuple[str, ...], NDArray[np.float64]] = {}
    for draw in draws:
        same = tuple(sorted(draw))
        if same not in shares:
            key = flat_key(pooled, same)[order]
            shares[same] = _l1(key, side, weights, starts, np.zeros((int(key.max(initial=0)) + 1, 2)))
        total += shares[same]
    penalised = np.abs(records[:, 0] - records[:, 1]) >= cutoff
    distance = np.where(penalised, 2.0, total / max(len(draws), 1))
    frame = pd.DataFrame(
        {**labels, "real": records[:, 0], "synthetic": records[:, 1], "distance": distance, "penalised": penalised}
    )
    worst = frame.sort_values("distance", ascending=False, kind="stable").head(10).drop(columns="penalised")
    details = {"groups": len(frame), "penalised": int(penalised.sum()), "marginals": len(draws)}
    details |= {"worst": plain(worst.to_dict(orient="records"))}
    if not len(frame) or not draws:
        return OneScore(None, details, frame, "no rows in either table" if draws else "no columns to draw from")
    return OneScore(1000 * (2 - math.fsum(distance) / len(distance)) / 2, details, frame)


def _groups(pooled: Pooled, by: Sequence[str]) -> tuple[Codes, Codes, dict[str, list[object]]]:
    """Rows in the order of their group, where each group starts, and the groups' labels."""
    key = flat_key(pooled, by)
    order = np.argsort(key, kind="stable")
    cuts = np.flatnonzero(np.diff(key[order])) + 1
    starts = np.concatenate([[0], cuts, [len(order)]]) if len(order) else np.zeros(1)
    first = order[starts[:-1].astype(np.int64)]
    labels = {n: [pooled.labels[n][int(c)] for c in pooled.columns[n][first]] for n in by}
    return order, starts.astype(np.int64), labels


def flat_key(pooled: Pooled, names: Sequence[str]) -> Codes:
    """One number per combination of codes; renumbered where there are too many to hold."""
    key = np.zeros(len(pooled.weights), np.int64)
    cells = 1
    for name in names:
        if cells * pooled.sizes[name] >= 2**62:
            key = np.unique(key, return_inverse=True)[1].astype(np.int64)
            cells = int(key.max(initial=0)) + 1
        key = key * pooled.sizes[name] + pooled.columns[name]
        cells *= pooled.sizes[name]
    return key if cells <= DENSE_CELLS else np.unique(key, return_inverse=True)[1].astype(np.int64)


@compiled
def _l1(
    key: Codes, side: Codes, weights: NDArray[np.float64], starts: Codes, cells: NDArray[np.float64]
) -> NDArray[np.float64]:
    """L1 distance of the shares of each group; `cells` is empty room for the counts, and is left empty."""
    result = np.zeros(len(starts) - 1)
    for g in range(len(starts) - 1):
        total = np.zeros(2)
        for i in range(starts[g], starts[g + 1]):
            cells[key[i], side[i]] += weights[i]
            total[side[i]] += weights[i]
        apart = 0.0
        for i in range(starts[g], starts[g + 1]):
            cell = cells[key[i]]
            if total[0] > 0 and total[1] > 0:
                apart += abs(cell[0] / total[0] - cell[1] / total[1])
            cell[:] = 0.0
        result[g] = apart if total[0] > 0 and total[1] > 0 else 2.0
    return result


def by_number(value: Any) -> tuple[int, Any]:
    """What labels are sorted by: numbers by their size, before all others by their text."""
    return (0, float(value)) if isinstance(value, int | float | np.number) else (1, str(value))


#: Columns of each marginal, the draw of these, and by how many records a place and time may be off.
WAYS, SEED, DRAWS, CUTOFF = 2, 123456, 50, 250
#: What a submission carries besides the schema.
NOT_SCORED = ("epsilon", "sim_individual_id")


def sprint2_of(inputs: Inputs) -> OneScore:
    """The metric `sprint2`: the official score, of codes: their discretization stands for the scorer's bins.

    Goal: every two-way mix right in every PUMA and year. Range: [0, 1000]; 1000 is perfect. Reference: 1 %, 10 % and
    50 % of the contest's rows score 572-590, 831-839 and 940-944.
    """
    by = (inputs.column("segment"), inputs.column("time"))
    features = [n for n in inputs.real.domain.names if n not in (*by, *NOT_SCORED)]
    drawn = draw_marginals(features, k=WAYS, draws=DRAWS, seed=SEED)
    return k_marginal(pool_tables(inputs.real, inputs.synthetic), by, drawn, cutoff=CUTOFF)
