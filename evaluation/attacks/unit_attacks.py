"""Attacks on units (Giomi et al. 2023, section 4) and their samples: singling out, linkage, attribute inference."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.special import ndtri

from evaluation.core_metrics import AttackSettings, InferenceSettings, SinglingOutSettings
from evaluation.learning.features import some_rows
from evaluation.metric import Inputs, ReadScore
from evaluation.readings.reading import Ends
from evaluation.verdict.drift import one_each
from evaluation.verdict.near_rows import APART, RowPlaces, all_distances, nearest_rows, places
from evaluation.verdict.rare_matches import Units, wilson
from mechanisms.public.arrays import Flags, Ints
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.files import JsonDict


@dataclass(frozen=True, eq=False)
class Sides:
    """Training units and as many units of the holdout at most, and the synthetic table, as random samples.

    Attributes:
        training, holdout, synthetic: rows.
        units: the number of each training and each holdout row's unit.
        several: whether a unit has several rows.
    """

    training: CodedTable
    holdout: CodedTable
    synthetic: CodedTable
    units: Units
    several: bool

    def targets(self, count: int, rng: np.random.Generator) -> tuple[CodedTable, CodedTable]:
        """One random row of so many units of each side at most."""
        sides = zip((self.training, self.holdout), self.units, strict=True)
        return tuple(t.at(one_each(u, t.rows, rng)[:count]) for t, u in sides)  # type: ignore[return-value]

    def counts(self) -> dict[str, int]:
        """Rows that know or are attacked, and units."""
        rows = {"training": self.training.rows, "holdout": self.holdout.rows, "synthetic": self.synthetic.rows}
        training, holdout = (np.unique(unit).size for unit in self.units)
        return rows | {"training_units": training, "holdout_units": holdout}


def sides_of(inputs: Inputs, own: AttackSettings, rng: np.random.Generator) -> Sides:
    """The samples that an attack works on; who is attacked is a whole privacy unit, where units are known.

    An attack of one record of a person with many would look harmless: the person is known by all of them.
    """
    options = inputs.options
    holdout = options.holdout
    assert holdout is not None
    has_units = options.unit is not None and options.holdout_unit is not None
    ids = [
        np.unique(np.asarray(unit), return_inverse=True)[1] if has_units else np.arange(table.rows)
        for table, unit in ((inputs.real, options.unit), (holdout, options.holdout_unit))
    ]
    tables = (inputs.real, holdout)
    # As many units of either side, so that a control is no easier or harder to tell apart among its own.
    share = min(own.attack_rows / max(t.rows, 1) for t in tables)
    counts = [int(i.max(initial=-1)) + 1 for i in ids]
    most = max(int(min(share, 1.0) * min(counts)), 1)
    chosen = [_whole_units(unit, most, rng) for unit in ids]
    cut = [t.at(rows) for t, rows in zip(tables, chosen, strict=True)]
    synthetic = some_rows(inputs.synthetic, own.attack_rows, rng)
    return Sides(cut[0], cut[1], synthetic, (ids[0][chosen[0]], ids[1][chosen[1]]), has_units)


def _whole_units(unit: Ints, most: int, rng: np.random.Generator) -> Ints:
    numbers = int(unit.max(initial=-1)) + 1
    if numbers <= most:
        return np.arange(unit.size)
    chosen = np.zeros(numbers, bool)
    chosen[rng.choice(numbers, most, replace=False)] = True
    return np.flatnonzero(chosen[unit])


#: An attack's score reads well, and then fairly, up to these shares of the way from guessing to certainty.
ATTACK_LIMITS = (0.05, 0.2)


@dataclass(frozen=True)
class Rate:
    """A success rate: Wilson's centre and half width (Wilson 1927), as Anonymeter states it.

    Attributes:
        successes, attacks: how many.
        value, error: the centre of the interval and half its width.
    """

    successes: int
    attacks: int
    value: float
    error: float

    def to_json(self) -> dict[str, float]:
        """JSON values."""
        return {
            "successes": self.successes,
            "attacks": self.attacks,
            "rate": self.successes / self.attacks if self.attacks else 0.0,
            "low": max(self.value - self.error, 0.0),
            "high": min(self.value + self.error, 1.0),
        }


def rate(successes: int, attacks: int, *, level: float = 0.05) -> Rate:
    """The success rate of attacks; of none it is anything from 0 to 1."""
    if not attacks:
        return Rate(0, 0, 0.5, 0.5)
    return Rate(successes, attacks, *wilson(successes / attacks, attacks, -float(ndtri(level / 2))))


@dataclass(frozen=True)
class Risk:
    """How much of what is left to win an attack wins by knowing the synthetic table of its target (Giomi et al. 2023).

    Attributes:
        training, control: success rates on training units and on units of the holdout.
        value: (r_training − r_control) / (1 − r_control) of the shares, at least 0.
        low, high: its interval, by propagation of both errors, within [0, 1].
    """

    training: Rate
    control: Rate
    value: float
    low: float
    high: float

    def to_json(self) -> JsonDict:
        """JSON values."""
        rates = {"training": self.training.to_json(), "control": self.control.to_json()}
        return {"risk": self.value, "low": self.low, "high": self.high, **rates}


def risk(training: Rate, control: Rate) -> Risk:
    """The risk of two success rates.

    Guarantee: none; `low` is above 0 where the interval of the difference is.
    """
    left = max(1 - control.value, 1e-9)
    centre = (training.value - control.value) / left
    error = math.hypot(training.error / left, control.error * (1 - training.value) / left**2)
    shares = [r.successes / r.attacks if r.attacks else 0.0 for r in (training, control)]
    value = (shares[0] - shares[1]) / (1 - shares[1]) if shares[1] < 1 else 0.0
    low, high = (min(max(end, 0.0), 1.0) for end in (centre - error, centre + error))
    return Risk(training, control, min(max(value, 0.0), 1.0), low, high)


def guessed(attack: str, result: Risk, details: JsonDict, rows: dict[str, int]) -> ReadScore:
    """What an attack of one guess about each target wins, between guesses about anybody and certainty.

    Args:
        attack: what it is called.
        details: what was guessed and what came of it, as JSON values.
        rows: of each table.
    """
    ours, theirs, of, poor = result.training, result.control, "guesses about the holdout's", "always right"
    words = (
        f"attack, {attack}: {result.value:.1%} of what is left to win ({result.low:.1%} to {result.high:.1%}): "
        f"{ours.successes:,} of {ours.attacks:,} right on training units, {theirs.successes:,} of "
        f"{theirs.attacks:,} on the holdout's"
    )
    ends = Ends(0.0, None, 1.0, result.low, result.high, limits=ATTACK_LIMITS, honest_is=of, poor_is=poor)
    return ReadScore(result.value, {**details, "rows": rows}, ends=ends, words=words)


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
    for row, own in zip(rows.tolist(), sets.tolist(), strict=True):
        condition = tuple(_part(i, int(table.columns[i][row]), attributes[i].ordered, medians[i]) for i in own)
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


def _meets(table: CodedTable, condition: Condition) -> Flags:
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


def linkage_of(inputs: Inputs) -> ReadScore:
    """The metric `linkage`: the risk that two data sets about the same people are linked through the synthetic table.

    The columns are split at random into two halves. Each half of a target's row has its nearest synthetic rows (all
    that are as near); the attack succeeds where one row is among the nearest of both.
    Goal: 0, training units are linked as often as units of the holdout.
    """
    own, rng = inputs.own(AttackSettings), np.random.default_rng(inputs.options.seed)
    sides, names = sides_of(inputs, own, rng), inputs.synthetic.domain.names
    order = rng.permutation(len(names))
    halves = [tuple(names[i] for i in np.sort(part)) for part in np.array_split(order, 2)]
    if len(names) < 2:
        return ReadScore(None, {"rows": sides.counts()}, reason="one column has no two parts")
    targets = sides.targets(own.attacks, rng)
    whole = [places([t.over(half) for t in (*targets, sides.synthetic)]) for half in halves]
    ends = np.cumsum([0, *(t.rows for t in targets)])
    synthetic = np.arange(ends[-1], ends[-1] + sides.synthetic.rows)
    hits = [_linked(whole, np.arange(a, b), synthetic) for a, b in pairwise(ends)]
    result = risk(*(rate(hit, t.rows) for hit, t in zip(hits, targets, strict=True)))
    return guessed("linkage", result, {**result.to_json(), "parts": [list(p) for p in halves]}, sides.counts())


def _linked(parts: list[RowPlaces], targets: Ints, synthetic: Ints) -> int:
    """How many targets have a synthetic row that is among the nearest by both parts."""
    linked = 0
    for apart in zip(*(all_distances(p.only(targets), p.only(synthetic)) for p in parts), strict=True):
        nearest = [d == d.min(axis=1, keepdims=True) for d in apart]
        linked += int((nearest[0] & nearest[1]).any(axis=1).sum())
    return linked


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


def _nearest(targets: CodedTable, synthetic: CodedTable, names: tuple[str, ...]) -> Ints:
    both = places([t.over(names) for t in (targets, synthetic)])
    asked, pool = both.only(np.arange(targets.rows)), both.only(np.arange(targets.rows, both.rows))
    return nearest_rows(asked, pool).index


def _right(targets: CodedTable, guesses: CodedTable, name: str, synthetic: CodedTable) -> Flags:
    attribute = targets.domain[name]
    truth, guess = targets.column(name).astype(np.int64), guesses.column(name).astype(np.int64)
    if attribute.ordered < 2:
        return np.asarray(truth == guess, bool)
    spots = places([t.over((name,)) for t in (targets, guesses, synthetic)]).ordered[0].astype(int)
    close = np.abs(spots[: truth.size] - spots[truth.size : 2 * truth.size]) <= CLOSE * APART
    on_line = np.maximum(truth, guess) < attribute.ordered
    return np.asarray(np.where(on_line, close, truth == guess), bool)
