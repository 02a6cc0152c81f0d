"""Parameters that add up before δ is chosen, μ in quadrature (GDP) and ρ (zCDP), and the exact trade-off back to ε."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import lru_cache
from typing import ClassVar

from mechanisms.accounting.events import Gaussian
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


#: Relative slack of a bound that must not lie below a number that another formula lets through.
MARGIN = 1e-9


def above(value: float) -> float:
    """A number rounded up by more than the rounding of the sums and roots that made it; NaN has no bound."""
    if math.isnan(value):
        return math.inf
    return round_up(value * (1 + SLACK)) if value > 0 else 0.0


def zcdp_epsilon(rho: float, delta: float) -> float:
    """The ε of ρ-zCDP at δ by the plain conversion, rounded up (Bun & Steinke 2016, proposition 1.3)."""
    return above(rho + 2 * math.sqrt(rho * math.log(1 / delta)))


def zcdp_rho(epsilon: float, delta: float) -> float:
    """The ρ whose ε at δ is this one, `zcdp_epsilon` inverted but for rounding: √ρ = √(ln 1/δ + ε) − √(ln 1/δ)."""
    log = math.log(1 / delta)
    return (epsilon / (math.sqrt(log + epsilon) + math.sqrt(log))) ** 2


class Currency(ABC):
    """A measure of privacy loss that composes by a sum.

    Attributes:
        name: the key of an event's cost and of a spend; sign: its letter.
    """

    name: ClassVar[str]
    sign: ClassVar[str]

    @abstractmethod
    def total(self, values: Iterable[float]) -> float:
        """All together; not rounded."""

    @abstractmethod
    def left(self, whole: float, used: float) -> float:
        """What may be added to `used` so that the total is the whole; 0 or less where nothing may."""

    @abstractmethod
    def of_group(self, value: float, units: int) -> float:
        """What holds for so many units at once."""

    @abstractmethod
    def epsilon(self, value: float, delta: Delta) -> float:
        """ε at δ, rounded up."""

    @abstractmethod
    def largest(self, epsilon: float, delta: Delta) -> float:
        """The largest value that is (ε, δ)-DP."""

    @abstractmethod
    def event(self, name: str, value: float) -> Gaussian:
        """An event that costs so much."""

    @abstractmethod
    def whole_run(self, epsilon: float, delta: Delta) -> tuple[float, float]:
        """μ and ρ of anything that a filter in this currency keeps within (ε, δ), rounded up."""


class GaussianMu(Currency):
    """μ of Gaussian differential privacy (Dong, Roth & Su 2019)."""

    name: ClassVar[str] = "mu"
    sign: ClassVar[str] = "μ"

    def total(self, values: Iterable[float]) -> float:
        return math.sqrt(math.fsum(v**2 for v in values))

    def left(self, whole: float, used: float) -> float:
        return math.sqrt(max(whole**2 - used**2, 0.0))

    def of_group(self, value: float, units: int) -> float:
        """k μ (Dong, Roth & Su 2019, theorem 2.14)."""
        return value * units

    def epsilon(self, value: float, delta: Delta) -> float:
        """Dong, Roth & Su 2019, corollary 2.13."""
        return gaussian_epsilon(Mu(value), delta)

    def largest(self, epsilon: float, delta: Delta) -> float:
        return gaussian_mu(epsilon, delta)

    def event(self, name: str, value: float) -> Gaussian:
        return Gaussian(name, value, 1.0)

    def whole_run(self, epsilon: float, delta: Delta) -> tuple[float, float]:
        """μ*, above every μ that is (ε, δ)-DP, and μ*²/2.

        A filter of μ² makes the whole run μ*-GDP (Smith & Thakurta 2022), hence (μ*²/2)-zCDP, since no Rényi divergence
        is larger than that of the Gaussians it is dominated by (Dong, Roth & Su 2019, appendix B).
        """
        mu, step = gaussian_mu(epsilon, delta) * (1 + MARGIN), MARGIN
        while gaussian_log_delta(Mu(mu), epsilon) <= math.log(delta):
            mu, step = mu * (1 + step), 2 * step
        return mu, round_up(mu * mu / 2 * (1 + MARGIN))


class ConcentratedRho(Currency):
    """ρ of zero-concentrated differential privacy (Bun & Steinke 2016)."""

    name: ClassVar[str] = "rho"
    sign: ClassVar[str] = "ρ"

    def total(self, values: Iterable[float]) -> float:
        return math.fsum(values)

    def left(self, whole: float, used: float) -> float:
        return whole - used

    def of_group(self, value: float, units: int) -> float:
        """k² ρ (Bun & Steinke 2016, proposition 1.9)."""
        return value * units**2

    def epsilon(self, value: float, delta: Delta) -> float:
        """Bun & Steinke 2016, proposition 1.3."""
        return zcdp_epsilon(value, delta)

    def largest(self, epsilon: float, delta: Delta) -> float:
        return zcdp_rho(epsilon, delta)

    def event(self, name: str, value: float) -> Gaussian:
        return Gaussian(name, math.sqrt(2 * value), 1.0)

    def whole_run(self, epsilon: float, delta: Delta) -> tuple[float, float]:
        """√(π ρ*), and ρ*, the largest that is (ε, δ)-DP by the plain conversion (Feldman & Zrnic 2021).

        Every event's μ² is at most π ρ: 2ρ for Gaussian noise, and for pure events μ = 2Φ⁻¹(1/(1+e^(−x))) ≤ √(π/2) x
        with ρ = x²/2, because the logistic distribution function lies below Φ(√(π/8) x) for x > 0. So the same run is
        √(π ρ*)-GDP by the filter of μ².
        """
        rho = zcdp_rho(epsilon, delta) * (1 + MARGIN)
        return round_up(math.sqrt(math.pi * rho) * (1 + MARGIN)), rho


MU = GaussianMu()
RHO = ConcentratedRho()
