"""TSTR: models trained on the synthetic table and tested on real records, beside models trained on real ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evaluation.anita.anita_buckets import bucket_tables
from mechanisms.public.coded_table import CodedTable

#: Targets have at most so many classes: quantiles, or the most frequent values and the rest.
CLASSES = 10
#: Rows that a model learns from and is tested on, at most.
MAX_ROWS = 20_000
TEST_SHARE = 0.3


@dataclass(frozen=True, eq=False)
class Tstr:
    """Balanced accuracy and AUC of models for each target.

    Attributes:
        frame: one row per target: classes, balanced accuracy of the model trained on synthetic and on real rows and of
            guessing (1 / classes), accuracy and AUC of both models, and a reason where a target has none.
        rows: of the training and test sets.
        reason: why there is nothing.
    """

    frame: pd.DataFrame
    rows: dict[str, int]
    reason: str = ""

    @property
    def score(self) -> float | None:
        """Balanced accuracy lost, real − synthetic, mean over the targets; None where a target has no result."""
        gaps = self.frame["balanced_real"] - self.frame["balanced_synthetic"]
        return None if gaps.empty or gaps.isna().any() else math.fsum(gaps) / len(gaps)

    def to_json(self) -> dict[str, Any]:
        """JSON values; the score first."""
        rows = [{k: _plain(v) for k, v in row.items()} for row in self.frame.to_dict(orient="records")]
        reasons = [self.reason, *(f"{r['target']}: {r['reason']}" for r in rows if r["reason"])]
        text = "; ".join(r for r in reasons if r)
        return {"score": self.score, **({"reason": text} if text else {}), "rows": self.rows, "targets": rows}


def tstr(
    real: CodedTable,
    synthetic: CodedTable,
    holdout: CodedTable | None = None,
    *,
    targets: Sequence[str] | None = None,
    seed: int = 0,
    max_rows: int = MAX_ROWS,
) -> Tstr:
    """How much worse a classifier is when it learns from synthetic instead of real records: balanced accuracy lost.

    For each target a gradient-boosted tree model learns from all other columns; it is tested on the holdout, or without
    one on 30 % of the real records, which the real model then does not learn from.
    Goal: 0, the same quality as with real records. Range: about [−1, 1]. Reference: the real model, and guessing.
    Edge cases: targets with more than ten values are bucketed; a target with a single class in the test set has no
    result; a synthetic table with a single class predicts that class.

    Args:
        targets: columns to predict; None for the last column.
    """
    names = tuple(targets or real.domain.names[-1:])
    for name in names:
        real.domain.index(name)
    rng = np.random.default_rng(seed)
    test, train = (holdout, real) if holdout is not None else _split(real, rng)
    sizes = {"real": min(train.rows, max_rows), "synthetic": min(synthetic.rows, max_rows)}
    sizes["test"] = min(test.rows, max_rows)
    if min(sizes.values()) == 0 or len(real.domain) < 2:
        text = "a table without records" if len(real.domain) > 1 else "no column to predict from"
        return Tstr(_frame([]), sizes, text)
    cut = [_rows(t, _places(t.rows, max_rows, rng)) for t in (train, synthetic, test)]
    return Tstr(_frame([_target(name, cut, seed) for name in names]), sizes)


def _frame(rows: list[dict[str, Any]]) -> pd.DataFrame:
    parts = [f"{m}_{s}" for m in ("balanced", "accuracy", "auc") for s in ("synthetic", "real")]
    return pd.DataFrame(rows, columns=["target", "classes", "guessing", *parts, "reason"])


def _target(name: str, tables: list[CodedTable], seed: int) -> dict[str, Any]:
    """One target's row."""
    coarse = bucket_tables(tables[0], tables[1:], m=CLASSES)
    labels = [np.asarray(t.column(name), np.int64) for t in coarse]
    features = [_features(t, name) for t in tables]
    classes = np.unique(labels[2])
    row: dict[str, Any] = {"target": name, "classes": int(classes.size), "guessing": 1 / classes.size, "reason": ""}
    if classes.size < 2:
        return row | {"reason": "the test records show a single class"}
    for place, side in ((1, "synthetic"), (0, "real")):
        shares = _predict(features[place], labels[place], features[2], coarse[0].domain[name].size, seed)
        row |= {f"{k}_{side}": v for k, v in _quality(shares, labels[2], classes).items()}
    return row


def _features(table: CodedTable, target: str) -> NDArray[np.float32]:
    """All other columns as numbers; *other* and *missing* of ordinal columns as absent."""
    columns = []
    for a, column in zip(table.domain.attributes, table.columns, strict=True):
        if a.name != target:
            values = column.astype(np.float32)
            columns.append(np.where(column < a.ordered, values, np.nan) if a.ordered else values)
    return np.stack(columns, axis=1).astype(np.float32)


def _predict(
    x: NDArray[np.float32], y: NDArray[np.int64], asked: NDArray[np.float32], size: int, seed: int
) -> NDArray[np.float64]:
    """The shares that a model gives each class of the target."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # slow to import
    from threadpoolctl import threadpool_limits

    shares = np.zeros((len(asked), size))
    classes = np.unique(y)
    if classes.size == 1:
        shares[:, classes[0]] = 1.0
        return shares
    model = HistGradientBoostingClassifier(max_iter=50, max_depth=6, early_stopping=False, random_state=seed)
    # Waiting threads spin: several cost ten times the processor time of one, on a busy machine.
    with threadpool_limits(1, user_api="openmp"):
        model.fit(x, y)
        shares[:, model.classes_] = model.predict_proba(asked)
    return shares


def _quality(shares: NDArray[np.float64], truth: NDArray[np.int64], classes: NDArray[np.int64]) -> dict[str, float]:
    """Accuracy, its mean over the classes, and the mean over the classes of the area under the ROC curve."""
    from sklearn.metrics import roc_auc_score  # slow to import

    guess = shares.argmax(axis=1)
    right = guess == truth
    return {
        "balanced": float(np.mean([right[truth == c].mean() for c in classes])),
        "accuracy": float(right.mean()),
        "auc": float(np.mean([roc_auc_score(truth == c, shares[:, c]) for c in classes])),
    }


def _split(table: CodedTable, rng: np.random.Generator) -> tuple[CodedTable, CodedTable]:
    order = rng.permutation(table.rows)
    cut = math.ceil(TEST_SHARE * table.rows)
    return _rows(table, order[:cut]), _rows(table, order[cut:])


def _places(rows: int, limit: int, rng: np.random.Generator) -> NDArray[np.int64]:
    return np.arange(rows) if rows <= limit else np.sort(rng.choice(rows, limit, replace=False))


def _rows(table: CodedTable, chosen: NDArray[np.int64]) -> CodedTable:
    return CodedTable(table.domain, tuple(np.asarray(c[chosen]) for c in table.columns))


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and math.isnan(value) else value
