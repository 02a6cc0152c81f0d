"""What a score should be read against: two real samples, independent columns, and subsamples of the real rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evaluation.metric import Goal
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.files import JsonDict

#: A score of a synthetic (second) against a real (first) table; None where it is undefined.
Score = Callable[[CodedTable, CodedTable], float | None]

LADDER = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True)
class Reference:
    """A score measured some times.

    Attributes:
        values: each repetition's score.
        note: how it was measured.
    """

    values: tuple[float | None, ...]
    note: str

    @property
    def value(self) -> float | None:
        """The mean; None where a repetition had no score."""
        scores = [v for v in self.values if v is not None]
        return math.fsum(scores) / len(scores) if scores and len(scores) == len(self.values) else None

    def to_json(self) -> JsonDict:
        """JSON values."""
        return {"value": self.value, "values": list(self.values), "note": self.note}


def floor(
    score: Score,
    real: CodedTable,
    rows: int,
    *,
    repeats: int = 3,
    seed: int = 0,
    unit: NDArray[np.integer] | None = None,
) -> Reference:
    """What a sample of `rows` real records scores against one of the real table's size, drawn with replacement.

    Both are drawn from the real records, so that the second is to the first what a perfect synthetic table is to the
    real one: a new sample of the same people. Records of one unit are alike; drawn one by one they would make the floor
    too good.

    Args:
        unit: the unit of each row: whole units are drawn, as many as the tables have rows on average.
    """
    rng = np.random.default_rng(seed)
    values = tuple(score(*two_samples(real, rows, rng, unit)) for _ in range(repeats))
    drawn = "records" if unit is None else "records, whole units of them,"
    about = "" if unit is None else "about "
    return Reference(values, f"two samples of real {drawn} with replacement, {about}{real.rows} and {rows} rows")


def independent(score: Score, real: CodedTable, rows: int, *, seed: int = 0) -> Reference:
    """What `rows` records with the real columns, drawn independently of each other, score against the real table."""
    rng = np.random.default_rng(seed)
    columns = tuple(c[rng.integers(0, max(real.rows, 1), rows if real.rows else 0)] for c in real.columns)
    return Reference((score(real, CodedTable(real.domain, columns)),), f"independent columns, {rows} rows")


def two_samples(
    real: CodedTable, rows: int, rng: np.random.Generator, unit: NDArray[np.integer] | None = None
) -> tuple[CodedTable, CodedTable]:
    """Two samples of the real records (of whole units) with replacement: of the table's size, and of `rows` rows."""
    units = np.empty(0, np.int64) if unit is None else np.asarray(unit)
    order = np.argsort(units, kind="stable")
    _, starts, counts = np.unique(units[order], return_index=True, return_counts=True)

    def drawn(size: int) -> CodedTable:
        """As many rows, or the rows of random units, about so many of them."""
        if not real.rows or not size:
            return real.at(np.empty(0, np.int64))
        if unit is None:
            return real.at(rng.integers(0, real.rows, size))
        chosen = rng.integers(0, starts.size, max(round(size * starts.size / order.size), 1))
        ends = np.cumsum(counts[chosen])
        within = np.arange(ends[-1]) - np.repeat(ends - counts[chosen], counts[chosen])
        return real.at(order[np.repeat(starts[chosen], counts[chosen]) + within])

    return drawn(real.rows), drawn(rows)


@dataclass(frozen=True, eq=False)
class Ladder:
    """Scores of subsamples of the real rows against all of them.

    Attributes:
        frame: one row per share: share, rows, score (NaN where it is undefined).
        goal: whether low or high scores are good.
    """

    frame: pd.DataFrame
    goal: Goal

    def as_good_as(self, score: float | None) -> str:
        """One sentence: which subsample scores like this."""
        scored = self.frame.dropna(subset="score")
        if score is None or scored.empty:
            return "no comparison: no score"
        ours = -score if self.goal == "low" else score
        steps = scored["score"].to_numpy(float) * (-1 if self.goal == "low" else 1)
        reached = np.flatnonzero(steps <= ours)
        shares = scored["share"].to_numpy(float)
        if not reached.size:
            return f"worse than a {shares[0]:.0%} sample of the real rows"
        return f"as good as a {shares[reached.max()]:.0%} sample of the real rows"

    def to_json(self) -> list[JsonDict]:
        """JSON values, one entry per share."""
        return [
            {"share": float(s), "rows": int(n), "score": None if math.isnan(v) else float(v)}
            for s, n, v in zip(self.frame["share"], self.frame["rows"], self.frame["score"], strict=True)
        ]


def ladder(score: Score, real: CodedTable, *, goal: Goal, seed: int = 0) -> Ladder:
    """Scores of random subsamples of the real rows, without replacement, each a part of the next."""
    order = np.random.default_rng(seed).permutation(real.rows)
    rows = []
    for share in LADDER:
        n = math.ceil(share * real.rows)
        value = score(real, real.at(np.sort(order[:n])))
        rows.append((share, n, math.nan if value is None else value))
    return Ladder(pd.DataFrame(rows, columns=["share", "rows", "score"]), goal)
