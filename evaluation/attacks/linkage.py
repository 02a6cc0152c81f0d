"""Linkage (Giomi et al. 2023, section 4.2): do two parts of a person's record lead to the same synthetic row?"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from evaluation.attacks.attack_tables import guessed, rate, risk, sides_of
from evaluation.core_metrics import AttackSettings
from evaluation.metric import Inputs, ReadScore
from evaluation.verdict.near_rows import RowPlaces, all_distances, places


def linkage_of(inputs: Inputs) -> ReadScore:
    """The metric `linkage`: the risk that two data sets about the same people are linked through the synthetic table.

    The columns are split at random into two halves. Each half of a target's row has its nearest synthetic rows (all
    that are as near); the attack succeeds where one row is among the nearest of both.
    Goal: 0, training units are linked as often as units of the holdout.
    """
    own, rng = inputs.own(AttackSettings), np.random.default_rng(inputs.options.seed)
    sides, names = sides_of(inputs, own, rng), inputs.synthetic.domain.names
    order = rng.permutation(len(names))
    halves = [tuple(names[i] for i in np.sort(part)) for part in np.array_split(order, 2)]
    if len(names) < 2:
        return ReadScore(None, {"rows": sides.counts()}, reason="one column has no two parts")
    targets = sides.targets(own.attacks, rng)
    whole = [places([t.over(half) for t in (*targets, sides.synthetic)]) for half in halves]
    ends = np.cumsum([0, *(t.rows for t in targets)])
    synthetic = np.arange(ends[-1], ends[-1] + sides.synthetic.rows)
    hits = [_linked(whole, np.arange(a, b), synthetic) for a, b in pairwise(ends)]
    result = risk(*(rate(hit, t.rows) for hit, t in zip(hits, targets, strict=True)))
    return guessed("linkage", result, {**result.to_json(), "parts": [list(p) for p in halves]}, sides.counts())


def _linked(parts: list[RowPlaces], targets: NDArray[np.int64], synthetic: NDArray[np.int64]) -> int:
    """How many targets have a synthetic row that is among the nearest by both parts."""
    linked = 0
    for apart in zip(*(all_distances(p.only(targets), p.only(synthetic)) for p in parts), strict=True):
        nearest = [d == d.min(axis=1, keepdims=True) for d in apart]
        linked += int((nearest[0] & nearest[1]).any(axis=1).sum())
    return linked
