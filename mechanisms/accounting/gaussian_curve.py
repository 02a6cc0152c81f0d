"""The trade-off of Gaussian noise: μ, ε and δ of one another; the one file that imports autodp."""

from __future__ import annotations

import math
from functools import lru_cache

from scipy.optimize import brentq
from scipy.special import log_ndtr

from mechanisms.public.errors import UserError
from mechanisms.public.units import Delta, Mu, round_up

#: Relative slack that covers the rounding of sums, roots and distribution functions here and in `accountants`.
SLACK = 1e-10
#: Relative error of one term of `gaussian_log_delta`: its arguments, its logarithm, and their sum.
ULPS = 4 * 2.0**-52
#: Beyond this μ (ε above half a million) the formulas leave the range of floats: the loss is called infinite.
MAX_MU = 1e3


def gaussian_log_delta(mu: Mu, epsilon: float) -> float:
    """ln δ of a μ-GDP mechanism at ε: δ = Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2) (McKenna 2021; Dong et al. 2.13).

    From above: the two terms nearly cancel for a small μ, so that the rounding of both is added to their distance.
    """
    a = float(log_ndtr(mu / 2 - epsilon / mu))
    b = epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))
    rounding = ULPS * (1 + abs(a) + abs(b) + epsilon + (epsilon / mu + mu) ** 2)
    return a + math.log(-math.expm1(-max(a - b, 0.0) - rounding)) + rounding


@lru_cache(maxsize=100_000)
def gaussian_epsilon(mu: Mu, delta: Delta) -> float:
    """The smallest ε at which a μ-GDP mechanism is (ε, δ)-DP, by autodp, checked by our own formula; rounded up."""
    if not mu > 0:
        return 0.0
    if mu > MAX_MU:
        return math.inf
    from autodp.dp_bank import get_eps_ana_gaussian

    target = math.log(delta)
    if gaussian_log_delta(mu, 0.0) <= target:
        return 0.0
    epsilon = float(get_eps_ana_gaussian(1 / mu, delta)) * (1 + SLACK)
    slack = 1e-9
    while gaussian_log_delta(mu, epsilon) > target:  # growing steps: a tiny ε may come as 0
        epsilon, slack = max(epsilon, 1e-12) * (1 + slack), 2 * slack
    return round_up(epsilon)


@lru_cache(maxsize=100_000)
def gaussian_mu(epsilon: float, delta: Delta) -> Mu:
    """The largest μ whose Gaussian mechanism is (ε, δ)-DP; rounded down."""
    needs_delta(delta, "gdp")
    low, high = 1e-12, 1.0
    while gaussian_log_delta(Mu(high), epsilon) <= math.log(delta):
        low, high = high, high * 2
    mu = float(
        brentq(lambda m: gaussian_log_delta(Mu(m), epsilon) - math.log(delta), low, high, xtol=1e-15, rtol=1e-13)
    )
    while gaussian_log_delta(Mu(mu), epsilon) > math.log(delta):
        mu *= 1 - 1e-12
    return Mu(mu)


def needs_delta(delta: float, kind: str) -> None:
    """Refuse δ = 0 where noise that is not pure needs more."""
    if delta == 0:
        raise UserError(
            f"δ = 0, but Gaussian noise and privacy.accountant={kind} need δ > 0",
            where="privacy.delta",
            fix="privacy.delta=1e-9, or a pure plan: privacy.accountant=basic mechanism=laplace",
        )
