"""Attribute inference (Giomi et al. 2023, section 4.3): what all other values of a person tell about one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from evaluation.attacks.attack_tables import Risk, guessed, rate, risk, sides_of
from evaluation.core_metrics import InferenceSettings
from evaluation.metric import Inputs, ReadScore
from evaluation.verdict.near_rows import APART, nearest_rows, places
from mechanisms.public.coded_table import CodedTable

#: A guess of a value on a line is right within this share of all ranks.
CLOSE = 0.05
#: An interval that is wider says nothing: nearly all guesses about anybody are right.
WIDE = 0.5


def worst_of(risks: Mapping[str, Risk]) -> str:
    """The column with the largest risk: of those that are above 0, else of those that are known well enough."""
    return max(risks, key=lambda n: (risks[n].low > 0, risks[n].high - risks[n].low <= WIDE, risks[n].value))


def attribute_inference(inputs: Inputs) -> ReadScore:
    """The metric of this name: the risk that a secret is inferred from the nearest synthetic row by all other columns.

    A guess of a value on a line is right within 5 % of its ranks, of any other value where it is equal. What can be
    learned about anybody (the control) is what statistics are for, and no risk. Intervals hold for all columns together
    (Bonferroni); `blind` is how often the value of a random synthetic row is right on training units.
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
        by_chance = _right(targets[0], any_row, name, shuffled)
        blind[name] = rate(int(by_chance.sum()), by_chance.size)
    if not risks:
        return ReadScore(None, {"rows": sides.counts()}, reason="one column has no others to infer it from")
    worst = worst_of(risks)
    columns = {n: r.to_json() | {"blind": blind[n].to_json()} for n, r in risks.items()}
    attack = f"inference of {worst!r}, the worst column"
    return guessed(attack, risks[worst], {"column": worst, "columns": columns}, sides.counts())


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
