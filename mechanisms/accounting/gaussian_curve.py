"""The trade-off of Gaussian noise: μ, ε and δ of one another, by the exact formula and without a library."""

from __future__ import annotations

import math
from functools import lru_cache

from mechanisms.public.errors import UserError
from mechanisms.public.units import Delta, Mu, round_up

#: Relative slack that covers the rounding of sums, roots and distribution functions here and in `accountants`.
SLACK = 1e-10
#: Relative error of one term of `gaussian_log_delta`: its arguments, its logarithm, and their sum.
ULPS = 4 * 2.0**-52
#: Losses are rounded up to multiples of these before a formula takes them: relative, and the least.
#: The least is 8 times the step (2⁻⁴⁸) down to which the computed ε still grows from each multiple to the next.
COARSE, LEAST_STEP = 2.0**-44, 2.0**-45
#: Beyond this μ (ε of five thousand millions, which no budget has) rounding outweighs δ: the loss is called infinite.
MAX_MU = 1e5
#: Below this the tail of the normal distribution is its asymptotic series: eight terms err by less than 1e-15.
FAR = -20.0


def ordered_up(value: float) -> float:
    """A loss rounded up to steps that outweigh the rounding of a formula, so that the larger of two never costs less.

    What is no number has no bound.
    """
    if not value < math.inf:
        return math.inf
    step = max(math.ldexp(COARSE, math.frexp(value)[1]), LEAST_STEP)
    return math.ceil(value / step) * step


def log_ndtr(x: float) -> float:
    """ln Φ(x), the normal distribution function; to a few units in the last place, in the far tails too.

    Source: Abramowitz & Stegun 1964, 7.1.2 and 26.2.12.
    """
    if x > 0:
        return math.log1p(-0.5 * math.erfc(x * math.sqrt(0.5)))
    if x > FAR:
        return math.log(0.5 * math.erfc(-x * math.sqrt(0.5)))
    series, term = 0.0, 1.0
    for k in range(1, 17, 2):
        term *= -k / (x * x)
        series += term
    return -x * x / 2 - math.log(-x * math.sqrt(2 * math.pi)) + math.log1p(series)


def far_quantile(log_p: float) -> float:
    """The x of ln Φ(x) = log_p, far in the lower tail, and no larger."""
    low = -math.sqrt(-2 * log_p)
    high = 0.9 * low
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if log_ndtr(middle) <= log_p else (low, middle)
    return low


def gaussian_log_delta(mu: Mu, epsilon: float) -> float:
    """ln δ of a μ-GDP mechanism at ε: δ = Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2) (McKenna 2021; Dong et al. 2.13).

    From above: the two terms nearly cancel for a small μ, so that the rounding of both is added to their distance.
    """
    a = log_ndtr(mu / 2 - epsilon / mu)
    b = epsilon + log_ndtr(-mu / 2 - epsilon / mu)
    rounding = ULPS * (1 + abs(a) + abs(b) + epsilon + (epsilon / mu + mu) ** 2)
    return a + math.log(-math.expm1(-max(a - b, 0.0) - rounding)) + rounding


@lru_cache(maxsize=100_000)
def gaussian_epsilon(mu: Mu, delta: Delta) -> float:
    """The smallest ε at which a μ-GDP mechanism is (ε, δ)-DP; rounded up, and no smaller for a larger μ."""
    if mu <= 0:
        return 0.0
    if not mu <= MAX_MU:  # NaN has no bound either
        return math.inf
    mu, target = Mu(ordered_up(mu)), math.log(delta)
    if gaussian_log_delta(mu, 0.0) <= target:
        return 0.0
    low, high = 0.0, mu * mu / 2 + mu * math.sqrt(-2 * target)
    while gaussian_log_delta(mu, high) > target:
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if gaussian_log_delta(mu, middle) <= target else (middle, high)
    epsilon, slack = high * (1 + SLACK), SLACK
    while gaussian_log_delta(mu, epsilon) > target:
        epsilon, slack = epsilon * (1 + slack), 2 * slack
    return round_up(epsilon)


@lru_cache(maxsize=100_000)
def gaussian_mu(epsilon: float, delta: Delta) -> Mu:
    """The largest μ whose Gaussian mechanism is (ε, δ)-DP; rounded down."""
    needs_delta(delta)
    target, low, high = math.log(delta), 1e-12, 1.0
    while gaussian_log_delta(Mu(high), epsilon) <= target:
        low, high = high, high * 2
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if gaussian_log_delta(Mu(middle), epsilon) <= target else (low, middle)
    return Mu(low)


def needs_delta(delta: float, kind: str = "") -> None:
    """Refuse δ = 0 where noise that is not pure, or an accountant of that name, needs more."""
    if delta == 0:
        raise UserError(
            f"δ = 0, but Gaussian noise{f' and privacy.accountant={kind} need' if kind else ' needs'} δ > 0",
            where="privacy.delta",
            fix="privacy.delta=1e-9, or a pure plan: privacy.accountant=basic mechanism=laplace",
        )
