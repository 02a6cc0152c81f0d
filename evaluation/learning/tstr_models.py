"""The models of TSTR: what each learns from one table and says about the records of another, and how good that is."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluation.learning.roc import auc_with_error
from evaluation.products import inner, times

Floats = NDArray[np.float64]
Inputs = NDArray[np.float32]
Labels = NDArray[np.int64]

MODELS = ("linear", "trees")
#: Ridge penalty, in records per column of zeros and ones.
RIDGE = 1.0


@dataclass(frozen=True, eq=False)
class Learner:
    """What a model sees of a table.

    Attributes:
        linear: a column of 0 and 1 for each code of few.
        trees: a number for each column, NaN where there is none.
        categories: which of these are categories.
    """

    linear: Inputs
    trees: Inputs
    categories: NDArray[np.bool_]

    def at(self, rows: NDArray[np.bool_]) -> Learner:
        """Some rows."""
        return Learner(self.linear[rows], self.trees[rows], self.categories)


def class_shares(model: str, learned: Learner, labels: Labels, asked: Learner, size: int, seed: int) -> Floats:
    """(asked rows, size) what a model that learned labels gives each class: larger is likelier."""
    classes = np.unique(labels)
    shares = np.zeros((len(asked.trees), size))
    if classes.size == 1:
        shares[:, classes[0]] = 1.0
    elif model == "linear":
        indicators = (labels[:, None] == classes[None, :]).astype(np.float64)
        shares[:, classes] = _ridge(learned.linear, indicators, asked.linear)
    else:
        from sklearn.ensemble import HistGradientBoostingClassifier  # slow to import
        from threadpoolctl import threadpool_limits

        trees = HistGradientBoostingClassifier(
            max_iter=50, max_depth=6, categorical_features=learned.categories, early_stopping=False, random_state=seed
        )
        # Waiting threads spin: several cost ten times the processor time of one, on a busy machine.
        with threadpool_limits(1, user_api="openmp"):
            trees.fit(learned.trees, labels)
            shares[:, trees.classes_] = trees.predict_proba(asked.trees)
    return shares


def predicted_numbers(model: str, learned: Learner, numbers: Floats, asked: Learner, seed: int) -> Floats:
    """What a model that learned numbers says of each asked row."""
    if np.ptp(numbers) == 0:
        return np.full(len(asked.trees), numbers[0])
    if model == "linear":
        return np.asarray(_ridge(learned.linear, numbers[:, None], asked.linear)[:, 0])
    from sklearn.ensemble import HistGradientBoostingRegressor  # slow to import
    from threadpoolctl import threadpool_limits

    trees = HistGradientBoostingRegressor(
        max_iter=50, max_depth=6, categorical_features=learned.categories, early_stopping=False, random_state=seed
    )
    with threadpool_limits(1, user_api="openmp"):
        return np.asarray(trees.fit(learned.trees, numbers).predict(asked.trees), np.float64)


def _ridge(x: Inputs, y: Floats, asked: Inputs) -> Floats:
    """Least squares with a small penalty (Hoerl & Kennard 1970) of each column of y, about their means."""
    middle, level = x.mean(axis=0), y.mean(axis=0)
    centred = x - middle
    normal = inner(centred, centred).astype(np.float64) + RIDGE * np.eye(x.shape[1])
    weights = np.linalg.solve(normal, inner(centred.astype(np.float64), y - level))
    return np.asarray(times(asked - middle, weights) + level)


def class_quality(shares: Floats, truth: Labels, classes: Labels) -> dict[str, float]:
    """Accuracy, its mean over the classes, the mean of the classes' F1 and of their areas under the ROC curve.

    Args:
        classes: those that occur in the truth.
    """
    guess = shares.argmax(axis=1)
    right = guess == truth
    f1, auc = [], []
    for c in classes:
        hit, guessed, there = (right & (truth == c)).sum(), (guess == c).sum(), (truth == c).sum()
        f1.append(2 * hit / (guessed + there))
        auc.append(auc_with_error(shares[truth == c, c], shares[truth != c, c])[0])
    balanced = float(np.mean([right[truth == c].mean() for c in classes]))
    return {"balanced": balanced, "accuracy": float(right.mean()), "f1": float(np.mean(f1)), "auc": float(np.mean(auc))}


def lost_class_error(real: Floats, synthetic: Floats, truth: Labels, classes: Labels) -> float:
    """The standard error of the difference of two models' balanced accuracies, had other test records been drawn."""
    apart = (real.argmax(axis=1) == truth).astype(float) - (synthetic.argmax(axis=1) == truth)
    variance = math.fsum(float(apart[truth == c].var()) / (truth == c).sum() for c in classes)
    return math.sqrt(variance) / classes.size


def explained(guess: Floats, truth: Floats) -> float:
    """R²: 1 is perfect, 0 the mean of the test records, below 0 worse than that."""
    left = float(((truth - guess) ** 2).sum())
    return 1 - left / float(((truth - truth.mean()) ** 2).sum())


def lost_number_error(real: Floats, synthetic: Floats, truth: Floats) -> float:
    """The standard error of the difference of two models' R²."""
    spread = float(((truth - truth.mean()) ** 2).mean())
    apart = ((truth - synthetic) ** 2 - (truth - real) ** 2) / spread
    return float(apart.std()) / math.sqrt(truth.size)
