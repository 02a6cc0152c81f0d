"""Singling out (Giomi et al. 2023, section 4.1): conditions that one synthetic row meets and exactly one person too."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evaluation.attacks.attack_tables import guessed, rate, risk, sides_of
from evaluation.core_metrics import SinglingOutSettings
from evaluation.metric import Inputs, ReadScore
from mechanisms.public.coded_table import CodedTable

#: So many conditions are tried for one that a single synthetic row meets.
TRIED = 20
#: Rows that a condition is tried on first.
BATCH = 500

Condition = tuple[tuple[int, str, int], ...]


def singling_out_of(inputs: Inputs) -> ReadScore:
    """The metric `singling_out`: the risk of it.

    A guess is a condition on random columns, made from a random synthetic row that it singles out among all of them:
    equal to its value, or for values on a line at least (at most) as large where the value lies above (below) the
    median. It succeeds where all rows that meet it belong to one unit.
    Goal: 0, training units are singled out as often as units of the holdout. Edge cases: coarse tables may have no
    such condition, and then no score.
    """
    own, rng = inputs.own(SinglingOutSettings), np.random.default_rng(inputs.options.seed)
    sides = sides_of(inputs, own, rng)
    width = min(own.condition_columns, len(sides.synthetic.domain))
    conditions = _conditions(sides.synthetic, own.attacks, width, rng)
    if not conditions:
        return ReadScore(None, {"rows": sides.counts()}, reason="no condition singles out a synthetic row")
    hits = []
    for table, unit in zip((sides.training, sides.holdout), sides.units, strict=True):
        met = (np.unique(unit[_meets(table, condition)]).size == 1 for condition in conditions)
        hits.append(sum(met))
    result = risk(*(rate(hit, len(conditions)) for hit in hits))
    return guessed("singling out", result, {**result.to_json(), "columns_per_condition": width}, sides.counts())


def _conditions(table: CodedTable, count: int, width: int, rng: np.random.Generator) -> list[Condition]:
    """Different conditions that exactly one row meets each."""
    attributes = table.domain.attributes
    medians = [
        float(np.median(c[c < a.ordered])) if (c < a.ordered).any() else 0.0
        for a, c in zip(attributes, table.columns, strict=True)
    ]
    tried = TRIED * count
    rows = rng.integers(table.rows, size=tried)
    sets = np.sort(np.argsort(rng.random((tried, len(attributes))), axis=1)[:, :width], axis=1)
    few = table.at(slice(BATCH))
    chosen: dict[Condition, None] = {}
    for row, places in zip(rows.tolist(), sets.tolist(), strict=True):
        condition = tuple(_part(i, int(table.columns[i][row]), attributes[i].ordered, medians[i]) for i in places)
        if condition in chosen or np.count_nonzero(_meets(few, condition)) > 1:  # most conditions end here
            continue
        if np.count_nonzero(_meets(table, condition)) == 1:
            chosen[condition] = None
            if len(chosen) == count:
                break
    return list(chosen)


def _part(column: int, value: int, ordered: int, median: float) -> tuple[int, str, int]:
    """What is asked of one column."""
    return column, "==" if value >= ordered else ">=" if value > median else "<=", value


def _meets(table: CodedTable, condition: Condition) -> NDArray[np.bool_]:
    """Which rows meet a condition; what is other or missing lies on no line."""
    met = np.ones(table.rows, bool)
    for i, sign, value in condition:
        column = table.columns[i]
        if sign == "==":
            met &= column == value
        elif sign == "<=":
            met &= column <= value
        else:
            met &= (column >= value) & (column < table.domain.attributes[i].ordered)
    return met
