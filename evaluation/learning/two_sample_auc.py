"""The classifier two-sample test (Lopez-Paz & Oquab 2017): can a model tell synthetic records from real ones?"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from evaluation.core_metrics import AucSettings
from evaluation.learning.features import auc_with_error, boosted_trees, features, some_rows, unordered
from evaluation.metric import Inputs, ReadScore
from evaluation.readings.reading import Ends, Z
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.files import JsonDict

#: Each record is told by a model that has not seen it: one of so many.
FOLDS = 5
#: Fewer records of either table tell nothing.
FEWEST = 20


def two_sample_auc_of(inputs: Inputs) -> ReadScore:
    """The metric `two_sample_auc`: how well gradient-boosted trees tell synthetic from real records, cross-validated.

    Goal: ½, as a sample of real records: the holdout's, or without one half of the real table against the other half.
    Range: [0, 1]; 1: always told apart. Below ½ by more than chance: records stand in both tables, so that what a model
    learned from one of a pair is wrong for the other.
    Edge cases: fewer than 20 records of a table tell nothing; one column is enough.
    """
    real, synthetic, holdout = inputs.real, inputs.synthetic, inputs.options.holdout
    rng = np.random.default_rng(inputs.options.seed)
    size = min(real.rows, synthetic.rows, inputs.own(AucSettings).auc_rows)
    if size < FEWEST:
        return ReadScore(None, {}, reason=f"fewer than {FEWEST} records of a table")
    result, error = _classified(some_rows(synthetic, size, rng), some_rows(real, size, rng), rng)
    if holdout is not None and holdout.rows >= FEWEST:
        other, against = (some_rows(holdout, size, rng), real), "the holdout"
    else:
        order = rng.permutation(real.rows)
        halves = np.array_split(order[: 2 * size], 2)
        other, against = (real.at(halves[0]), real.at(halves[1])), "the other half of the real table"
    least, nearest = min(t.rows for t in other), None
    ends = Ends(0.5, error, 1.0, result["low"], result["high"], honest_is="guessing", poor_is="always told apart")
    if least >= FEWEST:
        reference, its_error = _classified(some_rows(other[0], least, rng), some_rows(other[1], least, rng), rng)
        nearest, spread = {**reference, "of": against}, math.hypot(error, its_error)
        ends = replace(ends, honest=reference["auc"], spread=spread, honest_is=f"real records of {against}")
    return ReadScore(result["auc"], {**result, "folds": FOLDS, "reference": nearest}, ends=ends)


def _classified(ours: CodedTable, others: CodedTable, rng: np.random.Generator) -> tuple[JsonDict, float]:
    """Area under the ROC curve, mean of the folds (½ is guessing), with its 95 % interval; and its standard error."""
    x = np.concatenate([features(ours), features(others)])
    y = np.repeat([1, 0], [ours.rows, others.rows])
    # Each fold holds as many of either table.
    fold = np.concatenate([rng.permutation(np.arange(t.rows) % FOLDS) for t in (ours, others)])
    settings: JsonDict = {"max_iter": 60, "max_leaf_nodes": 16, "categorical_features": unordered(ours)}
    parts = []
    for held in range(FOLDS):
        learned, asked = (x[fold != held], y[fold != held]), y[fold == held]
        seed = int(rng.integers(2**31))
        (odds,) = boosted_trees(*learned, [x[fold == held]], seed, "decision_function", **settings)
        parts.append(auc_with_error(odds[asked == 1], odds[asked == 0]))
    error = math.sqrt(math.fsum(e * e for _, e in parts)) / FOLDS
    auc = math.fsum(a for a, _ in parts) / FOLDS
    return {"auc": auc, "low": max(auc - Z * error, 0.0), "high": min(auc + Z * error, 1.0), "rows": ours.rows}, error
