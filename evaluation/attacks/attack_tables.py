"""What attacks share: samples of whole units, one row of each, and how much better they fare on training units."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from evaluation.core_metrics import AttackSettings
from evaluation.learning.features import some_rows
from evaluation.metric import Inputs, ReadScore
from evaluation.readings.reading import Ends
from evaluation.verdict.drift import one_each
from evaluation.verdict.rare_matches import wilson
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
    units: tuple[NDArray[np.int64], NDArray[np.int64]]
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


def _whole_units(unit: NDArray[np.int64], most: int, rng: np.random.Generator) -> NDArray[np.int64]:
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
