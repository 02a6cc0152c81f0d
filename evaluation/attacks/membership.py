"""Membership inference: can three attacks tell the units behind the table from units of a holdout?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from evaluation.attacks.promise_bounds import AttackPromise
from evaluation.attacks.unit_attacks import ATTACK_LIMITS, sides_of
from evaluation.core_metrics import AttackSettings
from evaluation.learning.features import auc_with_error, boosted_trees, features
from evaluation.metric import Inputs, ReadScore
from evaluation.readings.reading import Ends
from evaluation.verdict.near_rows import all_distances, places
from evaluation.verdict.rare_matches import Share, clopper_pearson, per_unit
from mechanisms.public.arrays import Flags, Floats, Ints
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.files import JsonDict

ATTACKS = ("distance", "density", "classifier")
#: Intervals hold for all attacks together.
LEVEL = 0.05 / len(ATTACKS)
#: A threshold that so large a share of others passes.
FALSE_POSITIVES = 0.01
#: Units: with fewer on a side the attack is not scored.
FEWEST = 10


@dataclass(frozen=True)
class Attack:
    """How well one attack tells members from others.

    Attributes:
        auc, low, high: area under the ROC curve with its interval (DeLong et al. 1988); ½ is guessing.
        advantage, least, most: true less false positive rate, at a threshold that other units chose, with its interval.
        detected: members above a threshold that one per cent of the others pass.
    """

    auc: float
    low: float
    high: float
    advantage: float
    least: float
    most: float
    detected: Share

    def to_json(self) -> JsonDict:
        """JSON values."""
        advantage = {"value": self.advantage, "low": self.least, "high": self.most}
        at = {"true_positives_at_1_percent_false_ones": self.detected.to_json()}
        return {"auc": {"value": self.auc, "low": self.low, "high": self.high}, "advantage": advantage, **at}


def membership_of(inputs: Inputs) -> ReadScore:
    """The metric `membership_inference`, without knowledge of the generator.

    Source: Houssiau et al. 2022; van Breugel et al. 2023.

    One half of the holdout's units is what the attacker knows of the population, the other half are the others.
    - distance: how near the nearest synthetic row is;
    - density: the logarithm of the synthetic table's density over the population's, both by kernels on distances;
    - classifier: the odds that a gradient-boosted model gives a row to be synthetic and not of the population.
    A unit's score is the mean over its rows.
    Goal: ½. Edge cases: with fewer than ten units on a side there is no score.
    """
    own, rng = inputs.own(AttackSettings), np.random.default_rng(inputs.options.seed)
    sides, promise = sides_of(inputs, own, rng), inputs.options.promise
    first = _of_units(sides.units[1], np.unique(sides.units[1]).size // 2, rng)
    population_rows, others = np.flatnonzero(first), np.flatnonzero(~first)
    ids = (sides.units[0], sides.units[1][others])
    counts = [np.unique(u).size for u in (*ids, sides.units[1][population_rows])]
    units = dict(zip(("members", "others", "known"), counts, strict=True))
    facts: JsonDict = {"units": units, "unit": "all rows of a unit" if sides.several else "a row"}
    bound = {} if promise is None else {"bound": promise.to_json()}
    if min(counts) < FEWEST:
        return ReadScore(None, facts | {"attacks": {}} | bound, reason=f"fewer than {FEWEST} units on a side")
    targets = (sides.training, sides.holdout.at(others))
    picked = [np.flatnonzero(_of_units(u, own.attacks, rng)) for u in ids]
    targets = (targets[0].at(picked[0]), targets[1].at(picked[1]))
    ids = (ids[0][picked[0]], ids[1][picked[1]])
    population = sides.holdout.at(population_rows)
    scores = _near(targets, sides.synthetic, population)
    scores["classifier"] = _by_classifier(targets, sides.synthetic, population, rng)
    sizes = [np.unique(u, return_counts=True)[1] for u in ids]
    units |= {"members": sizes[0].size, "others": sizes[1].size}
    attacked = {}
    for name in ATTACKS:
        members, outside = (per_unit(s, u) / n for s, u, n in zip(scores[name], ids, sizes, strict=True))
        attacked[name] = separation(members, outside, rng)
    details = facts | {"attacks": {name: attack.to_json() for name, attack in attacked.items()}} | bound
    best = max(attacked.values(), key=lambda a: a.auc)
    ends = Ends(0.5, None, 1.0, best.low, best.high, limits=ATTACK_LIMITS, honest_is="guessing", poor_is="always right")
    return ReadScore(best.auc, details, ends=ends, words=_words(attacked, promise))


def _words(attacked: dict[str, Attack], promise: AttackPromise | None) -> str:
    """The best attack, and what a promise allows."""
    name = max(attacked, key=lambda n: attacked[n].auc)
    best = attacked[name]
    bounds = [] if promise is None else [promise.auc, promise.advantage]
    allowed = [f", {x:.3f} at most by ε for one unit alone" for x in bounds] or ["", ""]
    auc = f"AUC {best.auc:.3f} ({best.low:.3f} to {best.high:.3f}), 0.5 by guessing{allowed[0]}"
    advantage = f"advantage {best.advantage:.3f} ({best.least:.3f} to {best.most:.3f}){allowed[1]}"
    return f"attack, membership by {name}: {auc}; {advantage}"


def separation(members: Floats, others: Floats, rng: np.random.Generator) -> Attack:
    """How well scores tell members from others; a member's should be larger."""
    z = -float(ndtri(LEVEL / 2))
    auc, error = auc_with_error(members, others)
    advantage, spread = _advantage(members, others, rng)
    limit = np.sort(others)[min(math.ceil((1 - FALSE_POSITIVES) * others.size), others.size - 1)]
    detected = clopper_pearson(int((members > limit).sum()), members.size)
    ends = (max(auc - z * error, 0.0), min(auc + z * error, 1.0))
    return Attack(auc, *ends, advantage, max(advantage - z * spread, -1.0), min(advantage + z * spread, 1.0), detected)


def _advantage(members: Floats, others: Floats, rng: np.random.Generator) -> tuple[float, float]:
    """True less false positive rate and its standard error; half of the units choose the other half's threshold."""
    values, spreads = [], []
    halves = [np.array_split(rng.permutation(side), 2) for side in (members, others)]
    for choose, use in ((0, 1), (1, 0)):
        a, b = np.sort(halves[0][choose]), np.sort(halves[1][choose])
        limits = np.concatenate([a, b])
        gaps = np.searchsorted(b, limits) / b.size - np.searchsorted(a, limits) / a.size
        limit = limits[int(np.argmax(gaps))]
        rates = [(side[use] >= limit) for side in halves]
        values.append(float(rates[0].mean() - rates[1].mean()))
        spreads.append(sum((s.sum() + 1) / (s.size + 2) * (1 - (s.sum() + 1) / (s.size + 2)) / s.size for s in rates))
    return float(np.mean(values)), math.sqrt(sum(spreads)) / 2


def _near(targets: tuple[CodedTable, CodedTable], synthetic: CodedTable, population: CodedTable) -> dict[str, Any]:
    """The attacks by distance and by density."""
    whole = places([*targets, synthetic, population])
    ends = np.cumsum([0, *(t.rows for t in targets), synthetic.rows, population.rows])
    asked, synthetic_places, real = (whole.only(np.arange(a, b)) for a, b in ((0, ends[2]), ends[2:4], ends[3:5]))
    least, densities = [], []
    gaps = [apart.min(axis=1) for apart in all_distances(asked, real)]
    width = max(float(np.median(np.concatenate(gaps))), 1.0)  # how far apart real rows lie
    for apart, apart_real in zip(all_distances(asked, synthetic_places), all_distances(asked, real), strict=True):
        least.append(-apart.min(axis=1).astype(float))
        densities.append(_log_density(apart, width) - _log_density(apart_real, width))
    split = targets[0].rows
    both = {"distance": np.concatenate(least), "density": np.concatenate(densities)}
    return {name: (values[:split], values[split:]) for name, values in both.items()}


def _log_density(apart: NDArray[np.int32], width: float) -> Floats:
    """The logarithm of the mean of n^(−d / width) over n rows: many far rows are less than a near one."""
    scaled = -math.log(max(apart.shape[1], 3)) * apart / width
    top = scaled.max(axis=1)
    return np.asarray(top + np.log(np.exp(scaled - top[:, None]).mean(axis=1)))


def _by_classifier(
    targets: tuple[CodedTable, CodedTable], synthetic: CodedTable, population: CodedTable, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    rows = min(synthetic.rows, population.rows)
    sides = [t.at(rng.choice(t.rows, rows, replace=False)) for t in (synthetic, population)]
    x = np.concatenate([features(t) for t in sides])
    y, asked, seed = np.repeat([1, 0], rows), [features(t) for t in targets], int(rng.integers(2**31))
    first, second = boosted_trees(x, y, asked, seed, "decision_function", max_iter=50)
    return first, second


def _of_units(unit: Ints, most: int, rng: np.random.Generator) -> Flags:
    """Which rows are those of so many random units at most."""
    names, number = np.unique(unit, return_inverse=True)
    chosen = np.zeros(names.size, bool)
    chosen[rng.permutation(names.size)[:most]] = True
    return np.asarray(chosen[number])
