"""Totals recomputed: by dp-accounting's privacy loss distributions, and by the textbook's own formulas."""

import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from dp_accounting.pld import privacy_loss_distribution as pld
from mpmath import mp, mpf

from mechanisms.accounting.events import Exponential
from mechanisms.accounting.filters import spend_of_plan
from mechanisms.accounting.restatements import worst_case
from mechanisms.public.units import Neighbouring
from tests.audit.cases import ACCEPT, ASKED, CHOICES, CLIPS, MECHANISMS, Case, config_of, plan_of
from tests.audit.hooks import Broken, Summed, numbers
from tests.audit.worlds import FINDS_C, Settings

#: Where the two privacy losses of a choice lie in their interval of length ε: the worst of these counts.
CORNERS = (0.5, 0.2, 0.8)
#: What rounding in this file and in dp-accounting may add, as a share of ε.
LOOSE = 2e-3
_TINY = Fraction(1, 10**9)


@dataclass
class Ratios(Summed):
    """Exact ε as a share of the claimed one, by accountant and mechanism."""

    plans: int = 0
    compositions: int = 0
    exact: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))


def composed(events: Sequence[Any], step: float, *, pessimistic: bool, corner: float) -> Any:
    """The privacy loss distribution of independent events, losses rounded to multiples of `step`."""
    options = {"pessimistic_estimate": pessimistic, "value_discretization_interval": step}
    smooth = {**options, "use_connect_dots": pessimistic}
    mu2, others = 0.0, Counter[tuple[str, float]]()
    for event in events:
        said = numbers(event)
        if said.kind == "gaussian":
            mu2 += (said.sensitivity / said.scale) ** 2  # sums of Gaussian losses are Gaussian, exactly
        else:
            others[said.kind, said.sensitivity / said.scale] += 1
    parts = []
    if mu2:
        parts.append(pld.from_gaussian_mechanism(1 / math.sqrt(mu2), log_mass_truncation_bound=-60, **smooth))
    for (kind, loss), times in others.items():
        if kind == "laplace":
            one = pld.from_laplace_mechanism(1 / loss, **smooth)
        else:
            one = pld.from_two_probability_mass_functions(*_two_points(loss, corner), symmetric=False, **options)
        parts.append(one.self_compose(times) if times > 1 else one)
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.compose(part)
    return whole


def _two_points(loss: float, corner: float) -> tuple[dict[int, float], dict[int, float]]:
    """Two worlds with two outcomes, whose log ratios are t and t − ε: the worst that bounded range ε allows."""
    t = corner * loss
    q = -math.expm1(t - loss) / (math.exp(t) - math.exp(t - loss))
    lower = {0: math.log(q), 1: math.log1p(-q)}
    return lower, {0: lower[0] + t, 1: lower[1] + t - loss}


def exact_epsilon(events: Sequence[Any], epsilon: float, delta: float) -> float:
    """ε of the composition at δ, for the worst of the pairs that are tried; the true δ at ε is no larger."""
    pure = [e for e in events if numbers(e).kind != "gaussian"]
    step = epsilon / 1_000 / (len(pure) + 1)  # each event is rounded once, equal ones too
    worst = 0.0
    for corner in CORNERS if any(isinstance(e, Exponential) for e in events) else (0.5,):
        below = composed(events, step, pessimistic=False, corner=corner).get_delta_for_epsilon(epsilon)
        if below > delta * (1 + 1e-6) + 1e-13:
            raise Broken(f"δ is at least {below:.3g} at ε = {epsilon:.6g}, claimed {delta:.3g}")
        above = composed(events, step, pessimistic=True, corner=corner)
        worst = max(worst, above.get_epsilon_for_delta(delta) if delta else _largest_loss(events))
    return worst


def _largest_loss(events: Sequence[Any]) -> float:
    """The largest privacy loss of pure events: where δ = 0, ε is that."""
    return math.fsum(numbers(e).sensitivity / numbers(e).scale for e in events)


def textbook(events: Sequence[Any], kind: str, delta: float) -> tuple[Any, Any]:
    """(ε, δ) that the accountant's theorem gives, at 40 digits; δ is what all parts together use.

    basic: Dwork et al. 2006; advanced: Dwork, Rothblum & Vadhan 2010; zcdp: Bun & Steinke 2016; gdp: Dong, Roth & Su
    2019. Gaussian events count by (ε_i, δ_i) under the first two, δ_i an equal part of what is left to them.
    """
    with mp.workdps(40):
        said = [numbers(e) for e in events]
        ratios = [mpf(s.sensitivity) / mpf(s.scale) for s in said]
        gaussians = sum(s.kind == "gaussian" for s in said)
        if kind in ("zcdp", "gdp"):
            squares = [_square(s.kind, r, kind) for s, r in zip(said, ratios, strict=True)]
            if kind == "zcdp":
                rho = sum(squares)
                return rho + 2 * mp.sqrt(rho * mp.log(1 / mpf(delta))), mpf(delta)
            return _gaussian_epsilon(mp.sqrt(sum(squares)), mpf(delta)), mpf(delta)
        prime = mpf(0) if kind == "basic" else mpf(delta) / (2 if gaussians else 1)
        each = (mpf(delta) - prime) / gaussians if gaussians else mpf(0)
        costs = [_gaussian_epsilon(r, each) if s.kind == "gaussian" else r for s, r in zip(said, ratios, strict=True)]
        used = each * gaussians + prime
        if kind == "basic":
            return sum(costs), used
        squares = sum(c**2 for c in costs)
        return mp.sqrt(2 * mp.log(1 / prime) * squares) + sum(c * mp.expm1(c) for c in costs), used


def _square(what: str, ratio: Any, kind: str) -> Any:
    """ρ or μ² of one event."""
    if kind == "zcdp":
        return ratio**2 / (8 if what == "choice" else 2)
    if what == "gaussian":
        return ratio**2
    loss = ratio / 2 if what == "choice" else ratio
    return (2 * mp.sqrt(2) * mp.erfinv(2 / (1 + mp.exp(-loss)) - 1)) ** 2


def _gaussian_epsilon(mu: Any, delta: Any) -> Any:
    """The ε at which μ-GDP has that δ, from its exact dual, by bisection."""

    def over(epsilon: Any) -> bool:
        return mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu) > delta

    low, high = mpf(0), mpf(1)
    if not over(low):
        return low
    while over(high):
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if over(middle) else (low, middle)
    return low


def check_plan(plan: Any, label: str, rng: random.Random) -> Ratios:
    """One plan's total against both; with a reserve, spent as one event and in random parts."""
    found = Ratios(plans=1)
    claim, kind, most = plan.loss, plan.accountant.kind, plan.budget
    thresholds = math.fsum(e.failure for e in plan.events)
    left = math.nextafter(most.delta - thresholds, 1) if thresholds else most.delta  # for the noise
    if claim.epsilon > most.epsilon or claim.delta > most.delta:
        raise Broken(f"{label}: a total of {claim}, above the budget of ({most.epsilon}, {most.delta})")
    try:
        for events in reserves(plan, rng):
            ratio = exact_epsilon(events, most.epsilon, left) / most.epsilon
            found.compositions += 1
            found.exact[f"{kind} + {'gaussian' if _gaussian(events) else 'laplace'}"].append(ratio)
            if ratio > 1 + LOOSE:
                raise Broken(f"ε is {ratio:.4f} of what is claimed")
            epsilon, delta = textbook(events, kind, left)
            if epsilon > most.epsilon * (1 + 1e-9) or delta + thresholds > most.delta * (1 + mpf(1e-12)):
                found_here = f"({float(epsilon):.9g}, {float(delta):.3g})"
                raise Broken(f"{kind} gives {found_here} for ({most.epsilon}, {most.delta})")
    except Broken as error:
        raise Broken(f"{label}: {error}") from error
    return found


def _gaussian(events: Sequence[Any]) -> bool:
    return any(numbers(e).kind == "gaussian" for e in events)


def reserves(plan: Any, rng: random.Random) -> Iterator[list[Any]]:
    """All events that the plan may charge: a reserve as one, and as random parts for choices and measurements."""
    if plan.reserve is None:
        yield list(plan.events)
        return
    yield [*plan.events, plan.reserve.event]
    cuts = sorted(rng.random() for _ in range(rng.randint(3, 12)))
    parts = [b - a for a, b in zip([0.0, *cuts], [*cuts, 1.0], strict=True) if b - a > 1e-4]
    kinds = [plan.choice_event if rng.random() < 0.4 else plan.measurement_event for _ in parts]
    yield [*plan.events, *(made(f"{i}", part) for i, (made, part) in enumerate(zip(kinds, parts, strict=True)))]


def random_plans(folder: Path, count: int, seed: int) -> Iterator[tuple[str, Any]]:
    """Plans of random settings that are admitted, each selection as often as the others."""
    rng = random.Random(seed)
    names, given = list(CHOICES), 0
    while given < count:
        selection = names[given % len(names)]
        column, clip = rng.choice(CLIPS)
        settings = Settings(column, rng.choice(list(Neighbouring)) == "replace", clip, "drop", rng.randint(1, 20))
        accountant, mechanism = rng.choice(ASKED), rng.choice(MECHANISMS)
        open_ones = ("discover", *FINDS_C) if column else ("discover",)
        schema = "histogram" if column and rng.random() < 0.4 else rng.choice(("plain", "joint_bins", *open_ones))
        epsilon = math.exp(rng.uniform(math.log(0.05), math.log(20)))
        accept = rng.choice((*ACCEPT, *[""] * 6))
        case = Case(selection, mechanism, accountant, settings, schema, epsilon, given, accept)
        config = config_of(case, folder, folder / "none.csv")
        if config.privacy.delta:
            config.privacy.delta = 10 ** rng.uniform(-12, -3)
        plan = plan_of(config)
        if plan is not None:
            given += 1
            check_tries(plan, config)
            yield case.name, plan


def tries_of(config: Any) -> tuple[int, int]:
    """How many times a try's ε and δ a run costs: 2 with a threshold, 3 without; tries (decision 031)."""
    tries = config.accept_tries if config.accept else 1
    return 1 if tries == 1 else 2 if "at_most" in config.accept[0] else 3, tries


def check_tries(plan: Any, config: Any) -> None:
    """A try costs its part of the budget; all, as said, booked and stated at other δ, no less than all parts."""
    (factor, tries), one, most = tries_of(config), plan.loss, plan.budget
    epsilon, delta = Fraction(config.privacy.epsilon), Fraction(config.privacy.delta)
    if Fraction(most.epsilon) * factor > epsilon or Fraction(most.delta) * tries > delta:
        raise Broken(f"{tries} tries of ({most.epsilon}, {most.delta}) each, out of ({float(epsilon)}, {float(delta)})")
    spend, loss = spend_of_plan(plan), worst_case(plan).within(plan.budget.whole)
    claims = [("all tries", plan.tries.total(one)), ("booked", spend)]
    claims += [("stated", loss)] if not plan.method else []
    for what, claim in claims:
        if Fraction(claim.epsilon) < factor * Fraction(one.epsilon) * (1 - _TINY):
            raise Broken(f"{what}: ε = {claim.epsilon} for {tries} tries of {one.epsilon}")
        if Fraction(claim.delta) < tries * Fraction(one.delta) * (1 - _TINY):
            raise Broken(f"{what}: δ = {claim.delta} for {tries} tries of {one.delta}")
    if tries > 1 and spend.slack < claims[0][1].delta:
        raise Broken(f"booked: δ = {spend.slack} outside of μ and ρ, for {tries} tries of {one.delta}")
    for at in (1e-5, 1e-9) if tries > 1 else ():
        said = worst_case(plan).epsilon_at(at)
        alone = textbook(worst_case(plan).events, plan.accountant.kind, at / tries)[0]
        if said < factor * alone * (1 - 1e-9):
            one_try = f"{float(alone):.6g} at δ = {at / tries:g}"
            raise Broken(f"stated: ε = {said:.6g} at δ = {at:g}; a try alone has {one_try}")


def recomputed(folder: Path, count: int, seed: int) -> Ratios:
    found, rng = Ratios(), random.Random(seed)
    for label, plan in random_plans(folder, count, seed):
        found.add(check_plan(plan, label, rng))
    return found
