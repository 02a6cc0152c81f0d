"""From marginals and slots to a plan: the budget is split, and every charge calibrated, from public facts alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mechanisms.accounting.accountants.registered import check_filter, make_accountant
from mechanisms.accounting.calibrate import Charge, calibrate
from mechanisms.accounting.events import Event
from mechanisms.accounting.pairs import POWER, Pair, PairNoise, by_pair, mean_stddev, possible_pairs, shares_power
from mechanisms.accounting.plan import RESERVE, Plan, PlannedCharge, Purpose, Reservation, scores_bound
from mechanisms.accounting.planned_discovery import DiscoveryPlan, before
from mechanisms.accounting.thresholds import delta_left
from mechanisms.public import units
from mechanisms.public.criterion import Criterion
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.noise_kinds import NOISE_KINDS, NoiseKind
from mechanisms.public.queries.query_matrices import Identity, sensitivity
from mechanisms.public.rules.unit_histogram import RecordsPerUnit
from mechanisms.public.units import Neighbouring

#: The noise of a whole reserve has to stay so far below the largest that answers hold, to leave room for its parts.
SMALLEST_PART = 2.0**-6


@dataclass(frozen=True)
class Request:
    """A marginal that is wanted, and its relative weight in the budget's split."""

    clique: Clique
    weight: float = 1.0


def make_plan(
    domain: Domain,
    requests: Sequence[Request],
    *,
    mechanism: str,
    accountant: str,
    epsilon: float,
    delta: float,
    neighbouring: Neighbouring,
    max_records: int,
    histogram: RecordsPerUnit | None = None,
    accept: Sequence[Criterion] = (),
    discovery: DiscoveryPlan | None = None,
) -> Plan:
    """Split a budget over marginals that are all asked at once, and calibrate their noise.

    Shares are in proportion to weight · cells^(2/3), PrivSyn's optimum under zCDP, in the accountant's additive
    currency: ε (basic), ε² (advanced), ρ (zcdp), μ² (gdp); an accountant that was left open has its own power of the
    same loads (`shares_power`). One multiplier is then searched such that the accountant's total stays within (ε, δ);
    the search ends on the noisier side.

    Args:
        requests: the marginals with their weights.
        mechanism: a kind of noise, or auto: of all pairs that are left open, the one with the least noise.
        accountant: basic, advanced, zcdp, gdp, or auto.
        max_records: C, the largest total weight of one unit.
        histogram: of records per unit, if it is wanted; the marginals share what it leaves.
        accept: what decides whether the release is accepted; the marginals share what its scores leave.
        discovery: what is charged before; the marginals share what it leaves.
    Raises:
        UserError: a parameter out of range, δ = 0 where the plan needs more, or noise beyond units.MAX_SCALE.
    """
    eps, dlt = _checked(epsilon, delta, max_records)
    if not requests:
        raise UserError("no marginals", where="selection", fix="select at least one marginal")
    wanted = [Reservation("", r.clique, domain.cells(r.clique), r.weight) for r in requests]
    left = share_left(histogram, accept, discovery)
    terms = {"eps": eps, "dlt": dlt, "neighbouring": neighbouring, "max_records": max_records}
    beside = {"histogram": histogram, "accept": accept, "discovery": discovery}
    facts: dict[str, Any] = {**terms, **beside}

    def plan_of(pair: Pair) -> Plan:
        """The plan under a pair of noise and accountant."""
        shares = _shares(wanted, shares_power(pair, accountant), left)
        return _calibrated(wanted, shares, {}, noise=pair.noise, accountant=pair.accountant, **facts)

    pairs = possible_pairs(mechanism, accountant, delta=dlt, noise_alone=True)
    most = max(r.weight for r in requests)  # loads are compared with each other: none need overflow
    loads = [w.cells * (w.weight / most) ** (1 / POWER) for w in wanted]
    best = _with_least_noise(by_pair(pairs, plan_of), loads)
    check_scales(best.events)
    return best


def reserve(
    reservations: Sequence[Reservation],
    *,
    method: Mapping[str, Any],
    noise: NoiseKind,
    accountant: str,
    epsilon: float,
    delta: float,
    neighbouring: Neighbouring,
    max_records: int,
    filter_share: float = 0.0,
    histogram: RecordsPerUnit | None = None,
    accept: Sequence[Criterion] = (),
    discovery: DiscoveryPlan | None = None,
) -> Plan:
    """Calibrate the slots of all rounds to a budget.

    Args:
        reservations: the slots, in the order in which they will be charged.
        method: what decides between the rounds, as plain values.
        noise: of the measurements.
        filter_share: the relative part of the budget that is spent in rounds of no fixed number.
        max_records, histogram, accept, discovery: as of `make_plan`.
    Raises:
        UserError: a parameter out of range, nothing to measure, a reserve under an accountant without a filter for it,
            δ = 0 where the plan needs more, or noise beyond units.MAX_SCALE (for a reserve: SMALLEST_PART of it).
    """
    eps, dlt = _checked(epsilon, delta, max_records)
    if all(w.choice for w in reservations) and not filter_share:
        raise UserError("no marginals", where="selection", fix="select at least one marginal")
    if not all(w.weight > 0 and math.isfinite(w.weight) for w in reservations):
        raise UserError("a round has no budget", where="selection.split", fix="parts above 0")
    if filter_share:
        check_filter(accountant, noise)
    every = [*reservations, *([Reservation(RESERVE, None, 2, filter_share)] if filter_share else [])]
    total = math.fsum(w.weight for w in every) / share_left(histogram, accept, discovery)
    plan = _calibrated(
        every,
        [w.weight / total for w in every],
        method,
        noise=noise,
        accountant=accountant,
        eps=eps,
        dlt=dlt,
        neighbouring=neighbouring,
        max_records=max_records,
        histogram=histogram,
        accept=accept,
        discovery=discovery,
    )
    check_scales([c.event for c in plan.charges])
    check_scales([c.event for c in plan.of("reserve")], units.MAX_SCALE * SMALLEST_PART)
    return plan


def _calibrated(
    reservations: Sequence[Reservation],
    shares: Sequence[float],
    method: Mapping[str, Any],
    *,
    noise: NoiseKind,
    accountant: str,
    eps: units.Epsilon,
    dlt: units.Delta,
    neighbouring: Neighbouring,
    max_records: int,
    histogram: RecordsPerUnit | None,
    accept: Sequence[Criterion],
    discovery: DiscoveryPlan | None,
) -> Plan:
    """The plan of slots with these shares, and of what is charged beside them."""
    spent = before(discovery)
    charges = [
        _charge(i, w, s, noise, neighbouring, max_records)
        for i, (w, s) in enumerate(zip(reservations, shares, strict=True))
    ]
    beside: list[RecordsPerUnit | Criterion] = [*([histogram] if histogram else []), *accept]
    if histogram:
        bound = histogram.sensitivity(norm=NOISE_KINDS[noise].norm, neighbouring=neighbouring)
        charges.append(Charge(histogram.event, noise, bound, histogram.share))
    for c in accept:
        bound = c.sensitivity(neighbouring=neighbouring, max_records=max_records)
        charges.append(Charge(c.event, noise, bound, c.share))
    counted = sum(w.purpose in ("measure", "distance") for w in reservations) + len(beside)
    slots = 0 if NOISE_KINDS[noise].pure else counted
    keeper = make_accountant(accountant, delta=delta_left(dlt, spent), slots=slots)
    events = calibrate(charges, keeper, eps, dlt, before=spent)
    rounds = zip(reservations, charges, events, strict=False)
    planned = [PlannedCharge(w.purpose, e, c.share, w) for w, c, e in rounds]
    for asked, event in zip(beside, events[len(reservations) :], strict=True):
        purpose: Purpose = "histogram" if asked is histogram else "accept"
        planned.append(PlannedCharge(purpose, event, asked.share, Reservation("", None, 0, asked.share), asked))
    return Plan(tuple(planned), method, keeper, eps, dlt, neighbouring, max_records, discovery=discovery)


def _charge(
    place: int, reservation: Reservation, share: float, noise: NoiseKind, neighbouring: Neighbouring, max_records: int
) -> Charge:
    """What a slot asks of the budget, in the worst case of what may be asked under it."""
    stage = f"{reservation.stage}:" if reservation.stage else ""
    name = f"{place:04d}:{stage}{','.join(reservation.clique or ())}"
    if reservation.choice:
        return Charge(name, None, 1.0, share)
    if reservation.scores:
        return Charge(name, noise, scores_bound(reservation.scores, noise, neighbouring, max_records), share)
    cells = reservation.cells if reservation.clique is not None else max(reservation.cells, 2)
    worst = Identity(cells)  # columns of norm 1, two apart
    bound = sensitivity(worst, norm=NOISE_KINDS[noise].norm, neighbouring=neighbouring, max_records=max_records)
    return Charge(name, noise, bound, share)


def _checked(epsilon: float, delta: float, max_records: int) -> tuple[units.Epsilon, units.Delta]:
    """ε and δ; UserError for a parameter out of range."""
    eps, dlt = units.epsilon(epsilon), units.delta(delta)
    if max_records < 1:
        raise UserError(f"got {max_records}", where="privacy.max_records", fix="a whole number C ≥ 1")
    return eps, dlt


def share_left(
    histogram: RecordsPerUnit | None, accept: Sequence[Criterion], discovery: DiscoveryPlan | None = None
) -> float:
    """The part of the budget that the marginals share.

    Raises:
        UserError: nothing is left.
    """
    left = 1 - math.fsum([histogram.share] if histogram else []) - math.fsum(c.share for c in accept)
    left -= 0.0 if discovery is None else discovery.share
    if not left > 1e-6:
        fix = "smaller parts of the budget: accept_share=0.05"
        raise UserError("nothing is left for the marginals", where="accept_share", fix=fix)
    return left


def _with_least_noise(plans: Sequence[tuple[Pair, Plan]], loads: Sequence[float]) -> Plan:
    """The plan with the least Σ load · standard deviation over the marginals (Li et al. 2021b, section 2.5)."""
    noise = [PairNoise(pair, mean_stddev(loads, [m.event.stddev for m in plan.measurements])) for pair, plan in plans]
    order = sorted(range(len(plans)), key=lambda i: noise[i].stddev)
    return replace(plans[order[0]][1], compared=tuple(noise[i] for i in order))


def _shares(wanted: Sequence[Reservation], power: float, left: float) -> list[float]:
    """Each marginal's part of the budget, the part that is left for all of them shared out.

    A weight is that of squares: the error of its marginal counts weight^(3/2) times.

    Raises:
        UserError: a part next to nothing.
    """
    loads = [(w.weight ** (power / POWER), w.cells**power) for w in wanted]
    total = math.fsum(weight * cells for weight, cells in loads)
    shares = [left * weight * cells / total for weight, cells in loads]
    if not math.isfinite(total) or min(shares) < 1e-12:
        fix = "weights of one order of magnitude"
        raise UserError("weights so far apart that a marginal gets nothing", where="selection.weights", fix=fix)
    return shares


def check_scales(events: Sequence[Event], maximum: float = units.MAX_SCALE) -> None:
    """Refuse a plan, before anything is charged, whose noise has no place in the range of answers.

    Raises:
        UserError: a scale above the maximum, in records.
    """
    for event in events:
        if not event.is_choice:
            units.check_scale(event.scale, maximum)
