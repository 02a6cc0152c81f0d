"""Attribute inference (Giomi et al. 2023, section 4.3): what all other values of a person tell about one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluation.attacks.attack_tables import Rate, Risk, rate, risk, sides_of
from evaluation.core_metrics import InferenceSettings
from evaluation.metric import Inputs
from evaluation.readings.reading import Ends
from evaluation.verdict.near_rows import APART, nearest_rows, places
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.json_values import JsonDict

#: A guess of a value on a line is right within this share of all ranks.
CLOSE = 0.05
#: An interval that is wider says nothing: nearly all guesses about anybody are right.
WIDE = 0.5


@dataclass(frozen=True)
class Inference:
    """What the synthetic table tells about each column of people of whom all other columns are known.

    Attributes:
        risks: by secret column; intervals hold for all columns together (Bonferroni).
        blind: how often the value of a random synthetic row is right on training units.
        rows: of each table.
    """

    risks: dict[str, Risk]
    blind: dict[str, Rate]
    rows: dict[str, int]

    @property
    def worst(self) -> str | None:
        """The column with the largest risk: of those that are above 0, else of those that are known well enough."""

        def weight(name: str) -> tuple[bool, bool, float]:
            r = self.risks[name]
            return r.low > 0, r.high - r.low <= WIDE, r.value

        return max(self.risks, key=weight, default=None)

    @property
    def score(self) -> float | None:
        """The risk of the worst column."""
        return None if self.worst is None else self.risks[self.worst].value

    @property
    def ends(self) -> Ends | None:
        """What the risk of the worst column stands between."""
        return None if self.worst is None else self.risks[self.worst].ends

    @property
    def words(self) -> str:
        """One line for the console."""
        worst = self.worst
        return "" if worst is None else f"attack, inference of {worst!r}, the worst column: {self.risks[worst].words}"

    def to_json(self) -> JsonDict:
        """JSON values; the score first."""
        if self.worst is None:
            return {"score": None, "reason": "one column has no others to infer it from", "rows": self.rows}
        columns = {n: r.to_json() | {"blind": self.blind[n].to_json()} for n, r in self.risks.items()}
        return {"score": self.score, "column": self.worst, "columns": columns, "rows": self.rows}


def attribute_inference(inputs: Inputs) -> Inference:
    """The metric of this name: the risk that a secret is inferred from the nearest synthetic row by all other columns.

    A guess of a value on a line is right within 5 % of its ranks, of any other value where it is equal. What can be
    learned about anybody (the control) is what statistics are for, and no risk.
    Goal: 0. Edge cases: of rows as near the first of a random order is taken.
    """
    own, rng = inputs.own(InferenceSettings), np.random.default_rng(inputs.options.seed)
    sides = sides_of(inputs, own, rng)
    names = sides.synthetic.domain.names
    targets = sides.targets(own.attacks, rng)
    shuffled = sides.synthetic.at(rng.permutation(sides.synthetic.rows))
    inferred = [n for n in names if not own.secrets or n in own.secrets] if len(names) > 1 else []
    risks, blind = {}, {}
    for name in inferred:
        others = tuple(n for n in names if n != name)
        near = [_nearest(t, shuffled, others) for t in targets]
        right = [_right(t, shuffled.at(rows), name, shuffled) for t, rows in zip(targets, near, strict=True)]
        level = 0.05 / len(inferred)
        rates = [rate(int(r.sum()), r.size, level=level) for r in right]
        risks[name] = risk(rates[0], rates[1])
        any_row = shuffled.at(rng.integers(0, shuffled.rows, targets[0].rows))
        guessed = _right(targets[0], any_row, name, shuffled)
        blind[name] = rate(int(guessed.sum()), guessed.size)
    return Inference(risks, blind, sides.counts())


def _nearest(targets: CodedTable, synthetic: CodedTable, names: tuple[str, ...]) -> NDArray[np.int64]:
    both = places([t.over(names) for t in (targets, synthetic)])
    asked, pool = both.only(np.arange(targets.rows)), both.only(np.arange(targets.rows, both.rows))
    return nearest_rows(asked, pool).index


def _right(targets: CodedTable, guesses: CodedTable, name: str, synthetic: CodedTable) -> NDArray[np.bool_]:
    attribute = targets.domain[name]
    truth, guess = targets.column(name).astype(np.int64), guesses.column(name).astype(np.int64)
    if attribute.ordered < 2:
        return np.asarray(truth == guess, bool)
    spots = places([t.over((name,)) for t in (targets, guesses, synthetic)]).ordered[0].astype(int)
    close = np.abs(spots[: truth.size] - spots[truth.size : 2 * truth.size]) <= CLOSE * APART
    on_line = np.maximum(truth, guess) < attribute.ordered
    return np.asarray(np.where(on_line, close, truth == guess), bool)
