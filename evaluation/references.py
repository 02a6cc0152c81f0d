"""What a score should be read against: two real samples, independent columns, and subsamples of the real rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evaluation.metric import Goal
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.json_values import JsonDict

#: A score of a synthetic (second) against a real (first) table; None where it is undefined.
Score = Callable[[CodedTable, CodedTable], float | None]

LADDER = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True)
class Reference:
    """A score measured some times.

    Attributes:
        value: the mean; None where a repetition had no score.
        values: each repetition's score.
        note: how it was measured.
    """

    value: float | None
    values: tuple[float | None, ...]
    note: str

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
    values = [score(*two_samples(real, rows, rng, unit)) for _ in range(repeats)]
    drawn = "records" if unit is None else "records, whole units of them,"
    about = "" if unit is None else "about "
    return _reference(values, f"two samples of real {drawn} with replacement, {about}{real.rows} and {rows} rows")


@dataclass(frozen=True, eq=False)
class _Units:
    """Rows in the order of their unit, where each unit starts, and how many rows it has."""

    order: NDArray[np.int64]
    starts: NDArray[np.int64]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, unit: NDArray[np.integer]) -> _Units:
        order = np.argsort(unit, kind="stable")
        _, starts, counts = np.unique(np.asarray(unit)[order], return_index=True, return_counts=True)
        return cls(order, starts, counts)

    def drawn(self, rows: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """The rows of random units, about `rows` of them."""
        count = max(round(rows * self.starts.size / self.order.size), 1)
        chosen = rng.integers(0, self.starts.size, count)
        counts = self.counts[chosen]
        ends = np.cumsum(counts)
        within = np.arange(ends[-1]) - np.repeat(ends - counts, counts)
        return np.asarray(self.order[np.repeat(self.starts[chosen], counts) + within])


def independent(score: Score, real: CodedTable, rows: int, *, seed: int = 0) -> Reference:
    """What `rows` records with the real columns, drawn independently of each other, score against the real table."""
    rng = np.random.default_rng(seed)
    columns = tuple(c[rng.integers(0, max(real.rows, 1), rows if real.rows else 0)] for c in real.columns)
    return _reference([score(real, CodedTable(real.domain, columns))], f"independent columns, {rows} rows")


def two_samples(
    real: CodedTable, rows: int, rng: np.random.Generator, unit: NDArray[np.integer] | None = None
) -> tuple[CodedTable, CodedTable]:
    """Two samples of the real records (of whole units) with replacement: of the table's size, and of `rows` rows."""
    units = None if unit is None or real.rows == 0 else _Units.of(unit)
    return _drawn(real, real.rows, rng, units), _drawn(real, rows, rng, units)


def _drawn(table: CodedTable, rows: int, rng: np.random.Generator, units: _Units | None) -> CodedTable:
    if table.rows == 0 or rows == 0:
        return table.at(np.empty(0, np.int64))
    return table.at(rng.integers(0, table.rows, rows) if units is None else units.drawn(rows, rng))


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


def _reference(values: Sequence[float | None], note: str) -> Reference:
    scores = [v for v in values if v is not None]
    value = math.fsum(scores) / len(scores) if scores and len(scores) == len(values) else None
    return Reference(value, tuple(values), note)
