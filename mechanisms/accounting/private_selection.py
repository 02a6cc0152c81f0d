"""What it costs to choose one of several private releases by a noisy score; proofs in docs/decisions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mechanisms.accounting.accountants.accountant import PrivacyLoss
from mechanisms.public.errors import UserError
from mechanisms.public.files import JsonDict
from mechanisms.public.units import MIN_DELTA, MOST_TRIES, Delta, Epsilon, delta, epsilon, round_down, round_up

#: Coins drawn from the noise source at a time.
COINS = 256


@dataclass(frozen=True)
class PrivateSelection:
    """Independent tries of one private release, until one is accepted or a secret coin stops them.

    With a threshold, the first try that is accepted is released; after each other one a coin ends everything with
    probability 1/tries, and nothing is released. Without a threshold, the coin is thrown after every try, and the one
    with the best score is released. How many tries there were stays secret.

    Guarantee: if a try is (ε₁, δ₁)-DP, what comes out (a release with its scores, or that there is none) is
        (2ε₁, tries · δ₁)-DP with a threshold and (3ε₁, tries · δ₁)-DP without one; a single try costs (ε₁, δ₁).
    Source: Liu & Talwar 2019, section 3, with a smaller δ: see docs/decisions/031-private-selection.md.

    Attributes:
        tries: the largest expected number of tries; 1: there is one try, and nothing to choose from.
        threshold: whether a fixed threshold accepts; otherwise the best noisy score wins.
    """

    tries: int
    threshold: bool

    def __post_init__(self) -> None:
        if isinstance(self.tries, bool) or not 1 <= self.tries <= MOST_TRIES:
            fix = f"the expected number of tries, a whole number from 1 to {MOST_TRIES:,}"
            raise UserError(f"got {self.tries}", where="accept_tries", fix=fix)

    @property
    def several(self) -> bool:
        """Whether there is anything to choose from."""
        return self.tries > 1

    @property
    def factor(self) -> int:
        """How many times a try's ε the whole costs."""
        return (2 if self.threshold else 3) if self.several else 1

    def of_one_try(self, total_epsilon: float, total_delta: float) -> tuple[Epsilon, Delta]:
        """The (ε₁, δ₁) of a try such that `total` stays within (ε, δ); rounded down.

        Raises:
            UserError: a budget out of range, or a δ too small to be shared out.
        """
        eps, dlt = epsilon(total_epsilon), delta(total_delta)
        if not self.several:
            return eps, dlt
        each = _below(Fraction(dlt) / self.tries)
        if dlt > 0 and each < MIN_DELTA:
            fix = f"at least {1.01 * MIN_DELTA * self.tries:.3g}, or fewer accept_tries"
            raise UserError(f"δ = {dlt} is too small for {self.tries} tries", where="privacy.delta", fix=fix)
        return Epsilon(_below(Fraction(eps) / self.factor)), Delta(each)

    def total(self, one: PrivacyLoss) -> PrivacyLoss:
        """What all tries cost together, from the guarantee of each; the least floats that are not below."""
        return PrivacyLoss(_above(self.factor * Fraction(one.epsilon)), _above(self.tries * Fraction(one.delta)))

    def most_tries(self, words: Callable[[int], NDArray[np.uint64]]) -> int:
        """How many tries there may be before the coins stop them: secret, and drawn before the first.

        A coin stops with probability ⌈2⁶⁴/tries⌉ / 2⁶⁴, never less than 1/tries. Nothing cuts the draw off at a largest
        number, so that no further δ is needed.

        Args:
            words: so many independent uniform 64-bit words, as a noise source serves them.
        """
        if not self.several:
            return 1
        limit, counted = -(-(2**64) // self.tries), 0
        while True:
            stops = words(COINS) < np.uint64(limit)
            if stops.any():
                return counted + int(np.argmax(stops)) + 1
            counted += COINS

    def pick(self, most: int, attempt: Callable[[int], float | None]) -> int | None:
        """The number of the try that is released, from 1; None where none is.

        Args:
            most: of `most_tries`.
            attempt: makes the try of that number, and returns what tries are compared by, smaller is better; None: it
                is not accepted, or its score was lost.
        """
        best: tuple[float, int] | None = None
        for number in range(1, most + 1):
            score = attempt(number)
            if self.threshold and score is not None:
                return number
            if score is not None and (best is None or score < best[0]):
                best = (score, number)
        return None if best is None else best[1]

    def to_json(self, one: PrivacyLoss) -> JsonDict:
        """What is public about it: the expected number of tries, never how many there were."""
        ends = "the first accepted" if self.threshold else "a secret coin after each try; the best noisy score"
        total = self.total(one)
        return {
            "tries_expected_at_most": self.tries,
            "released": ends,
            "one_try": {"epsilon": one.epsilon, "delta": one.delta},
            "total": {"epsilon": total.epsilon, "delta": total.delta},
            "conversion": f"ε = {self.factor} ε₁, δ = {self.tries} δ₁ (Liu & Talwar 2019)",
        }


#: A run that makes one release, and takes it as it is or withholds it.
ONE_TRY = PrivateSelection(1, True)


def _below(exact: Fraction) -> float:
    """The largest float that is not above."""
    value = float(exact)
    return value if Fraction(value) <= exact else round_down(value)


def _above(exact: Fraction) -> float:
    """The least float that is not below."""
    value = float(exact)
    return value if Fraction(value) >= exact else round_up(value)
