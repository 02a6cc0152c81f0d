"""Which noise under which accountant: the pair with the least noise for what is measured, from public facts alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from mechanisms.accounting.accountants.basic import Basic
from mechanisms.accounting.accountants.registered import (
    ACCOUNTANTS,
    OWN_ACCOUNTANTS,
    accountant_class,
    make_accountant,
    serves_as_filter,
)
from mechanisms.accounting.calibrate import Charge, calibrate
from mechanisms.public import units
from mechanisms.public.errors import UserError, one_of
from mechanisms.public.noise_kinds import AUTO, NOISE_KINDS, NoiseKind, possible_kinds
from mechanisms.public.queries.query_matrices import Identity, sensitivity
from mechanisms.public.units import Neighbouring

#: Shares of what adds up in squares of strengths, as a power of a marginal's total noise: PrivSyn's optimum.
POWER = 2 / 3


@dataclass(frozen=True)
class Pair:
    """A kind of noise, and the accountant that counts it."""

    noise: NoiseKind
    accountant: str

    def __str__(self) -> str:
        return f"{self.noise} noise under {self.accountant}"


@dataclass(frozen=True)
class PairNoise:
    """How much noise a plan has under a pair.

    Attributes:
        stddev: of the noise of a cell, in records: the mean over all cells, each by the weight of its marginal.
        shares: parts of the budget that give it, where they were asked for.
        stddevs: per marginal, in records, where they were asked for.
    """

    pair: Pair
    stddev: float
    shares: tuple[float, ...] = ()
    stddevs: tuple[float, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {"mechanism": self.pair.noise, "accountant": self.pair.accountant, "stddev": self.stddev}


def possible_pairs(
    mechanism: str,
    accountant: str,
    *,
    delta: float,
    noise_alone: bool = False,
    reserve: bool = False,
    squares: bool = False,
) -> tuple[Pair, ...]:
    """The pairs that two settings leave to choose from, those of pure noise first.

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
    kinds = possible_kinds(mechanism, delta=delta)
    names = [one_of(accountant, (*ACCOUNTANTS, AUTO), "privacy.accountant")]
    best: dict[NoiseKind, str] = {}
    if accountant == AUTO:
        ours = [a for a in OWN_ACCOUNTANTS if delta > 0 or a is Basic]
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


def shares_of(sizes: Sequence[tuple[int, float]], power: float) -> list[float]:
    """Parts of a budget, in sum 1, with the least Σ weight · cells · noise of a cell.

    Noise falls with a share to the power of 1/power − 1, so that the best shares are in proportion to
    (weight · cells)^power: 2/3 where squares of strengths add up, 1/2 where strengths do.

    Args:
        sizes: cells and weight of each marginal.
    """
    loads = [(weight * cells) ** power for cells, weight in sizes]
    total = math.fsum(loads)
    return [load / total for load in loads]


T = TypeVar("T")


def by_pair(pairs: Sequence[Pair], make: Callable[[Pair], T]) -> list[tuple[Pair, T]]:
    """What each pair makes; those that cannot, beside others that can, are left out.

    Raises:
        UserError: of the first, where none can.
    """
    able, errors = [], []
    for pair in pairs:
        try:
            able.append((pair, make(pair)))
        except UserError as error:
            errors.append(error)
    if not able:
        raise errors[0]
    return able


def ranked_pairs(
    wanted: Sequence[tuple[int, float]],
    *,
    mechanism: str,
    accountant: str,
    epsilon: float,
    delta: float,
    neighbouring: Neighbouring,
    max_records: int,
    reserve: bool = False,
    squares: bool = False,
) -> tuple[PairNoise, ...]:
    """The pairs with their best shares, the one with the least Σ weight · cells · stddev first.

    Args:
        wanted: cells of each marginal, and the weight of its error: both above 0.
        mechanism, accountant: settings, each of which may be auto.
        reserve, squares: as of `possible_pairs`.
    Raises:
        UserError: a parameter out of range; no pair that serves.
    """
    eps, dlt = units.epsilon(epsilon), units.delta(delta)
    if not wanted or not all(cells > 0 and 0 < weight < math.inf for cells, weight in wanted):
        raise UserError("nothing to measure, or a weight that is not above 0", where="selection", fix="weights above 0")

    def noise_of(pair: Pair) -> PairNoise:
        """The noise of the marginals under a pair, with the shares that are best for it."""
        law = NOISE_KINDS[pair.noise]
        counted = make_accountant(pair.accountant, delta=dlt, slots=0 if law.pure else len(wanted))
        shares = shares_of(wanted, shares_power(pair, accountant))
        bounds = [
            sensitivity(Identity(cells), norm=law.norm, neighbouring=neighbouring, max_records=max_records)
            for cells, _ in wanted
        ]
        charges = [Charge(str(i), law.name, b, s) for i, (b, s) in enumerate(zip(bounds, shares, strict=True))]
        stddevs = tuple(event.stddev for event in calibrate(charges, counted, eps, dlt))
        return PairNoise(pair, mean_stddev([w[0] * w[1] for w in wanted], stddevs), tuple(shares), stddevs)

    pairs = possible_pairs(mechanism, accountant, delta=delta, noise_alone=True, reserve=reserve, squares=squares)
    every = [noise for _, noise in by_pair(pairs, noise_of)]
    return tuple(sorted(every, key=lambda p: p.stddev))


def mean_stddev(loads: Sequence[float], stddevs: Sequence[float]) -> float:
    """The mean standard deviation of marginals' cells, each marginal by its load."""
    return math.fsum(n * s for n, s in zip(loads, stddevs, strict=True)) / math.fsum(loads)
