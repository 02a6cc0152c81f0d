"""Models that learn from synthetic records: TSTR, tested on real records, and the test that tells both tables apart.

The models: ridge regression over values, and boosted trees.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evaluation.accuracy.anita_accuracy import bucket_tables
from evaluation.core_metrics import AucSettings, TstrSettings
from evaluation.learning.features import (
    auc_with_error,
    boosted_trees,
    features,
    one_hot,
    some_rows,
    unordered,
)
from evaluation.metric import Inputs, ReadScore
from evaluation.outcome import plain
from evaluation.products import inner, times
from evaluation.readings.reading import Ends, Z
from mechanisms.public.arrays import Flags, Floats, Ints
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.files import JsonDict

#: Targets with more numbers are predicted as numbers; others have at most so many classes, the rest is one.
CLASSES = 10
TEST_SHARE = 0.3
MEASURES = ("balanced", "accuracy", "f1", "auc", "r2")


def tstr_of(inputs: Inputs) -> ReadScore:
    """The metric `tstr`: how much worse models are when they learn from synthetic instead of real records.

    For each target a linear model (ridge, over at most ten buckets a column) and gradient-boosted trees learn from all
    other columns; they are tested on the holdout, or without one on 30 % of the real records, which the real models
    then do not learn from. A target with more than ten numbers is predicted as a number (R²), any other as a class.
    Goal: 0, the same quality as with real records. Range: about [−1, 1]. Reference: the real models, and guessing.
    Edge cases: the less frequent of more than ten classes are one; a target with a single class or number in the test
    set has no result, and the others count; a synthetic table with a single class predicts that class; records without
    a number are left out where a number is predicted, and without a class are a class.
    """
    own, options, real = inputs.own(TstrSettings), inputs.options, inputs.real
    names = real.domain.names if own.predict_all else own.predict or real.domain.names[-1:]
    for name in names:
        real.domain.index(name)
    rng, most = np.random.default_rng(options.seed), own.predict_rows
    test, train = (options.holdout, real) if options.holdout is not None else _split(real, rng)
    every = {"real": train, "synthetic": inputs.synthetic, "test": test}
    sizes = {name: min(t.rows, most) for name, t in every.items()}
    if min(sizes.values()) == 0 or len(real.domain) < 2:
        text = "a table without records" if len(real.domain) > 1 else "no column to predict from"
        return ReadScore(None, {"rows": sizes, "targets": []}, _frame([]), text)
    tables = [some_rows(t, most, rng) for t in every.values()]
    coarse, numbers = bucket_tables(tables[0], tables[1:], m=CLASSES), inputs.numbers
    frame = _frame([row for n in names for row in _target(n, tables, coarse, numbers, options.seed)])
    return _lost(frame, sizes)


def _frame(rows: list[JsonDict]) -> pd.DataFrame:
    """One row per target and model.

    Kind (classes or numbers), how many classes, `guessing`, what a guess that ignores all columns is worth, the
    measures of the model trained on synthetic and on real rows and of the majority (the mean), `lost`, its standard
    error, and a reason where a target has none.
    """
    parts = [f"{m}_{s}" for m in MEASURES for s in ("synthetic", "real", "majority")]
    columns = ["target", "model", "kind", "classes", "guessing", "synthetic", "real", "lost", "error", *parts, "reason"]
    return pd.DataFrame(rows, columns=columns)


def _lost(frame: pd.DataFrame, sizes: dict[str, int]) -> ReadScore:
    """Quality lost, mean over targets and models that have a result: balanced accuracy, or R² from 0 up.

    Models that learn from other real records lose nothing; from nothing, all that is above guessing.
    """
    rows, defined = plain(frame.to_dict(orient="records")), frame.dropna(subset="lost")
    reason = "; ".join(dict.fromkeys(f"{r['target']}: {r['reason']}" for r in rows if r["reason"]))
    details = {"rows": sizes, "targets": rows}
    if defined.empty:
        return ReadScore(None, details, frame, reason)
    lost, whole, errors = defined["lost"], defined["real"] - defined["guessing"], defined["error"]
    score, poor, error = (math.fsum(each) / len(defined) for each in (lost, whole, errors))
    by = "95 %, had other test records been drawn"
    ends = Ends(0.0, None, max(poor, 0.0), score - Z * error, score + Z * error, interval_is=by)
    ends = replace(ends, honest_is="models of real records", poor_is="guessing")
    return ReadScore(score, details, frame, reason, ends)


def _target(
    name: str, tables: list[CodedTable], coarse: list[CodedTable], numbers: Mapping[str, Floats], seed: int
) -> list[JsonDict]:
    """One target's rows: one for each model."""
    seen = [
        Learner(one_hot(c, name), features(t, name), unordered(t, name)) for c, t in zip(coarse, tables, strict=True)
    ]
    attribute = tables[0].domain[name]
    if attribute.ordered > CLASSES:
        values = [numbers[name][t.column(name)] for t in tables]
        if np.unique(values[2][np.isfinite(values[2])]).size > CLASSES:
            return _as_numbers(name, seen, values, seed)
    labels = [np.asarray(c.column(name), np.int64) for c in coarse]
    return _as_classes(name, seen, labels, coarse[0].domain[name].size, seed)


def _as_classes(name: str, seen: list[Learner], labels: list[Ints], size: int, seed: int) -> list[JsonDict]:
    classes, truth = np.unique(labels[2]), labels[2]
    row: JsonDict = {"target": name, "kind": "classes", "classes": classes.size, "reason": ""}
    if classes.size < 2:
        return [row | {"reason": "the test records show a single class"}]
    majority = np.zeros((truth.size, size))
    majority[:, np.bincount(labels[0]).argmax()] = 1.0
    floor = _class_quality(majority, truth, classes)
    rows = []
    for model in MODELS:
        from_synthetic, own = (class_shares(model, seen[i], labels[i], seen[2], size, seed) for i in (1, 0))
        quality = {
            s: _class_quality(shares, truth, classes) for s, shares in (("synthetic", from_synthetic), ("real", own))
        }
        more: JsonDict = {f"{m}_{s}": v for s, q in (quality | {"majority": floor}).items() for m, v in q.items()}
        more |= {s: q["balanced"] for s, q in quality.items()}
        error = lost_class_error(own, from_synthetic, truth, classes)
        more |= {"lost": more["real"] - more["synthetic"], "error": error, "guessing": 1 / classes.size}
        rows.append(row | more | {"model": model})
    return rows


def _as_numbers(name: str, seen: list[Learner], values: list[Floats], seed: int) -> list[JsonDict]:
    there = [np.isfinite(v) for v in values]
    row: JsonDict = {"target": name, "kind": "numbers", "reason": ""}
    if not (there[0].any() and there[1].any()):
        return [row | {"reason": "no number to learn from in a table"}]
    learners = [s.at(t) for s, t in zip(seen, there, strict=True)]
    own_values, synthetic_values, truth = (v[t] for v, t in zip(values, there, strict=True))
    rows = []
    for model in MODELS:
        from_synthetic = predicted_numbers(model, learners[1], synthetic_values, learners[2], seed)
        own = predicted_numbers(model, learners[0], own_values, learners[2], seed)
        r2 = {"r2_synthetic": explained(from_synthetic, truth), "r2_real": explained(own, truth)}
        r2["r2_majority"] = explained(np.full(truth.size, own_values.mean()), truth)
        synthetic, real = (max(r2[f"r2_{s}"], 0.0) for s in ("synthetic", "real"))
        quality = {"synthetic": synthetic, "real": real, "lost": real - synthetic, "guessing": 0.0}
        rows.append(row | r2 | quality | {"model": model, "error": lost_number_error(own, from_synthetic, truth)})
    return rows


def _split(table: CodedTable, rng: np.random.Generator) -> tuple[CodedTable, CodedTable]:
    order = rng.permutation(table.rows)
    cut = math.ceil(TEST_SHARE * table.rows)
    return table.at(order[:cut]), table.at(order[cut:])


Features = NDArray[np.float32]

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

    linear: Features
    trees: Features
    categories: Flags

    def at(self, rows: Flags) -> Learner:
        """Some rows."""
        return Learner(self.linear[rows], self.trees[rows], self.categories)

    @property
    def of_trees(self) -> JsonDict:
        """The settings of trees."""
        return {"max_iter": 50, "max_depth": 6, "categorical_features": self.categories}


def class_shares(model: str, learned: Learner, labels: Ints, asked: Learner, size: int, seed: int) -> Floats:
    """(asked rows, size) what a model that learned labels gives each class: larger is likelier."""
    classes = np.unique(labels)
    shares = np.zeros((len(asked.trees), size))
    if classes.size == 1:
        shares[:, classes[0]] = 1.0
    elif model == "linear":
        indicators = (labels[:, None] == classes[None, :]).astype(np.float64)
        shares[:, classes] = _ridge(learned.linear, indicators, asked.linear)
    else:
        (predicted,) = boosted_trees(learned.trees, labels, [asked.trees], seed, "predict_proba", **learned.of_trees)
        shares[:, classes] = predicted
    return shares


def predicted_numbers(model: str, learned: Learner, numbers: Floats, asked: Learner, seed: int) -> Floats:
    """What a model that learned numbers says of each asked row."""
    if np.ptp(numbers) == 0:
        return np.full(len(asked.trees), numbers[0])
    if model == "linear":
        return np.asarray(_ridge(learned.linear, numbers[:, None], asked.linear)[:, 0])
    return boosted_trees(learned.trees, numbers, [asked.trees], seed, "predict", **learned.of_trees)[0]


def _ridge(x: Features, y: Floats, asked: Features) -> Floats:
    """Least squares with a small penalty (Hoerl & Kennard 1970) of each column of y, about their means."""
    middle, level = x.mean(axis=0), y.mean(axis=0)
    centred = x - middle
    normal = inner(centred, centred).astype(np.float64) + RIDGE * np.eye(x.shape[1])
    weights = np.linalg.solve(normal, inner(centred.astype(np.float64), y - level))
    return np.asarray(times(asked - middle, weights) + level)


def _class_quality(shares: Floats, truth: Ints, classes: Ints) -> dict[str, float]:
    """Accuracy, its mean over the classes, the mean of the classes' F1 and of their areas under the ROC curve."""
    guess = shares.argmax(axis=1)
    right = guess == truth
    f1, auc = [], []
    for c in classes:
        hit, guessed, there = (right & (truth == c)).sum(), (guess == c).sum(), (truth == c).sum()
        f1.append(2 * hit / (guessed + there))
        auc.append(auc_with_error(shares[truth == c, c], shares[truth != c, c])[0])
    balanced = float(np.mean([right[truth == c].mean() for c in classes]))
    return {"balanced": balanced, "accuracy": float(right.mean()), "f1": float(np.mean(f1)), "auc": float(np.mean(auc))}


def lost_class_error(real: Floats, synthetic: Floats, truth: Ints, classes: Ints) -> float:
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
