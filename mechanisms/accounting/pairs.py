"""Which noise under which accountant: the pair with the least noise for what is measured, from public facts alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mechanisms.accounting.accountants.basic import Basic
from mechanisms.accounting.accountants.registered import (
    ACCOUNTANTS,
    OWN_ACCOUNTANTS,
    accountant_class,
    serves_as_filter,
)
from mechanisms.accounting.budget import Budget
from mechanisms.public.errors import one_of
from mechanisms.public.files import JsonDict
from mechanisms.public.noise_kinds import AUTO, NoiseKind, possible_kinds

#: Shares of what adds up in squares of strengths, as a power of a marginal's total noise: PrivSyn's optimum.
POWER = 2 / 3


@dataclass(frozen=True)
class Pair:
    """A kind of noise, and the accountant that counts it."""

    noise: NoiseKind
    accountant: str

    def of(self, budget: Budget) -> Budget:
        """The budget under this accountant."""
        return replace(budget, accountant=self.accountant)


@dataclass(frozen=True)
class PairNoise:
    """How much noise a plan has under a pair.

    Attributes:
        stddev: of the noise of a cell, in records: the mean over all cells, each by the weight of its marginal.
    """

    pair: Pair
    stddev: float

    def to_json(self) -> JsonDict:
        return {"mechanism": self.pair.noise, "accountant": self.pair.accountant, "stddev": self.stddev}


def possible_pairs(
    mechanism: str,
    budget: Budget,
    *,
    noise_alone: bool = False,
    reserve: bool = False,
    squares: bool = False,
) -> tuple[Pair, ...]:
    """The pairs that the settings leave to choose from, those of pure noise first.

    `auto` stands for all of ours that serve at this δ: δ = 0 leaves basic composition of pure noise.

    Args:
        noise_alone: whether the plan is noise of one kind, without choices. Then an accountant that is exact for a kind
            leaves the others nothing to win with it.
        reserve: whether only pairs serve that have a privacy filter, for charges whose number and sizes depend on
            answers; where none has, all are returned, for `check_filter` to refuse.
        squares: whether only accountants serve whose costs are squares of strengths.
    Raises:
        UserError: no such kind, or no such accountant.
    """
    kinds = possible_kinds(mechanism, delta=budget.delta)
    names = [one_of(budget.accountant, (*ACCOUNTANTS, AUTO), "privacy.accountant")]
    best: dict[NoiseKind, str] = {}
    if budget.accountant == AUTO:
        ours = [a for a in OWN_ACCOUNTANTS if budget.delta > 0 or a is Basic]
        names = [a.kind for a in ours]
        best = {a.natural_noise: a.kind for a in ours if noise_alone and a.is_exact}
    pairs = tuple(Pair(kind, name) for kind in kinds for name in names if best.get(kind, name) == name)
    serving = tuple(p for p in pairs if serves_as_filter(p.accountant, p.noise, squares=squares))
    return (serving or pairs) if reserve else pairs


def shares_power(pair: Pair, setting: str) -> float:
    """The power of a marginal's total noise that its share of the budget is in proportion to.

    The one with the least error where the accountant was left open; where it is named, that of squares for all, so that
    a split of the budget means the same under every accountant.
    """
    return accountant_class(pair.accountant).best_power if setting == AUTO else POWER


def mean_stddev(loads: Sequence[float], stddevs: Sequence[float]) -> float:
    """The mean standard deviation of marginals' cells, each marginal by its load."""
    return math.fsum(n * s for n, s in zip(loads, stddevs, strict=True)) / math.fsum(loads)
