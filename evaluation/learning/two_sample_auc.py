"""The classifier two-sample test (Lopez-Paz & Oquab 2017): can a model tell synthetic records from real ones?"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evaluation.core_metrics import AucSettings
from evaluation.learning.features import auc_with_error, boosted_trees, features, some_rows, unordered
from evaluation.metric import Inputs
from evaluation.readings.reading import Ends, Z
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.json_values import JsonDict

#: Each record is told by a model that has not seen it: one of so many.
FOLDS = 5
#: Fewer records of either table tell nothing.
FEWEST = 20


@dataclass(frozen=True)
class ToldApart:
    """How well a model tells two samples apart.

    Attributes:
        auc, error: area under the ROC curve, mean of the folds, and its standard error; ½ is guessing.
        rows: of each sample.
    """

    auc: float
    error: float
    rows: int

    def to_json(self) -> JsonDict:
        """JSON values."""
        low, high = self.interval
        return {"auc": self.auc, "low": low, "high": high, "rows": self.rows}

    @property
    def interval(self) -> tuple[float, float]:
        """95 %."""
        return max(self.auc - Z * self.error, 0.0), min(self.auc + Z * self.error, 1.0)


@dataclass(frozen=True)
class TwoSampleAuc:
    """Synthetic against real records, beside real against real ones.

    Attributes:
        result: synthetic against real records; None with a reason.
        reference: real records of another sample against real ones; None where there are too few.
        against: which other sample.
        reason: why there is no score.
    """

    result: ToldApart | None
    reference: ToldApart | None = None
    against: str = ""
    reason: str = ""

    @property
    def score(self) -> float | None:
        """The area under the ROC curve."""
        return None if self.result is None else self.result.auc

    @property
    def ends(self) -> Ends | None:
        """Half is guessing; a model that errs more often than chance has seen a record's twin in the other table."""
        if self.result is None:
            return None
        low, high = self.result.interval
        honest, spread, of = 0.5, self.result.error, "guessing"
        if self.reference is not None:
            honest, of = self.reference.auc, f"real records of {self.against}"
            spread = math.hypot(self.result.error, self.reference.error)
        return Ends(honest, spread, 1.0, low, high, honest_is=of, poor_is="always told apart")

    def to_json(self) -> JsonDict:
        """JSON values; the score first."""
        if self.result is None:
            return {"score": None, "reason": self.reason}
        reference = None if self.reference is None else {**self.reference.to_json(), "of": self.against}
        return {"score": self.score, **self.result.to_json(), "folds": FOLDS, "reference": reference}


def two_sample_auc_of(inputs: Inputs) -> TwoSampleAuc:
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
        return TwoSampleAuc(None, reason=f"fewer than {FEWEST} records of a table")
    result = _told_apart(some_rows(synthetic, size, rng), some_rows(real, size, rng), rng)
    if holdout is not None and holdout.rows >= FEWEST:
        other, against = (some_rows(holdout, size, rng), real), "the holdout"
    else:
        order = rng.permutation(real.rows)
        halves = np.array_split(order[: 2 * size], 2)
        other, against = (real.at(halves[0]), real.at(halves[1])), "the other half of the real table"
    least = min(t.rows for t in other)
    if least < FEWEST:
        return TwoSampleAuc(result)
    reference = _told_apart(some_rows(other[0], least, rng), some_rows(other[1], least, rng), rng)
    return TwoSampleAuc(result, reference, against)


def _told_apart(ours: CodedTable, others: CodedTable, rng: np.random.Generator) -> ToldApart:
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
    return ToldApart(math.fsum(a for a, _ in parts) / FOLDS, error, ours.rows)
