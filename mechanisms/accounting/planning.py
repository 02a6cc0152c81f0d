"""From marginals and slots to a plan: the budget is split, and every charge calibrated, from public facts alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mechanisms.accounting.accountants.registered import check_filter
from mechanisms.accounting.budget import Budget
from mechanisms.accounting.calibrate import Charge, calibrate
from mechanisms.accounting.events import Event
from mechanisms.accounting.pairs import POWER, Pair, PairNoise, mean_stddev, possible_pairs, shares_power
from mechanisms.accounting.plan import RESERVE, Beside, Plan, PlannedCharge, Reservation
from mechanisms.public import units
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.files import Json
from mechanisms.public.noise_kinds import NOISE_KINDS, NoiseKind
from mechanisms.public.queries.query_matrices import Identity

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
    budget: Budget,
    *,
    mechanism: str,
    beside: Sequence[Beside] = (),
    discovered: Sequence[PlannedCharge] = (),
) -> Plan:
    """Split a budget over marginals that are all asked at once, and calibrate their noise.

    Shares are in proportion to weight · cells^(2/3), PrivSyn's optimum under zCDP, in the accountant's additive
    currency: ε (basic), ε² (advanced), ρ (zcdp), μ² (gdp); an accountant that was left open has its own power of the
    same loads (`shares_power`). One multiplier is then searched such that the accountant's total stays within (ε, δ);
    the search ends on the noisier side.

    Args:
        requests: the marginals with their weights.
        budget: its accountant may be auto: of all pairs that are left open, the one with the least noise is taken.
        mechanism: a kind of noise, or auto.
        beside: the histogram of records per unit, what is asked about persons, and what decides whether the release
            is accepted; the marginals share what these leave.
        discovered: what is charged before; the marginals share what it leaves.
    Raises:
        UserError: a parameter out of range, δ = 0 where the plan needs more, or noise beyond units.MAX_SCALE.
    """
    if not requests:
        raise UserError("no marginals", where="selection", fix="select at least one marginal")
    slots = [Reservation("", r.clique, domain.cells(r.clique), r.weight) for r in requests]
    left = share_left(beside, discovered)

    def plan_of(pair: Pair) -> Plan:
        """The plan under a pair of noise and accountant."""
        shares, own = _shares(slots, shares_power(pair, budget.accountant), left), pair.of(budget)
        return _calibrated(slots, shares, own, method={}, noise=pair.noise, beside=beside, discovered=discovered)

    pairs = possible_pairs(mechanism, budget, noise_alone=True)
    most = max(r.weight for r in requests)  # loads are compared with each other: none need overflow
    loads = [w.cells * (w.weight / most) ** (1 / POWER) for w in slots]
    best = with_least_noise(pairs, plan_of, lambda p: mean_stddev(loads, [m.event.stddev for m in p.measurements]))
    check_scales(best.events)
    return best


def reserve(
    reservations: Sequence[Reservation],
    budget: Budget,
    *,
    method: Json,
    noise: NoiseKind,
    filter_share: float = 0.0,
    beside: Sequence[Beside] = (),
    discovered: Sequence[PlannedCharge] = (),
) -> Plan:
    """Calibrate the slots of all rounds to a budget.

    Args:
        reservations: the slots, in the order in which they will be charged.
        method: what decides between the rounds, as plain values.
        noise: of the measurements.
        filter_share: the relative part of the budget that is spent in rounds of no fixed number.
        beside, discovered: as of `make_plan`.
    Raises:
        UserError: a parameter out of range, nothing to measure, a reserve under an accountant without a filter for it,
            δ = 0 where the plan needs more, or noise beyond units.MAX_SCALE (for a reserve: SMALLEST_PART of it).
    """
    if all(w.choice for w in reservations) and not filter_share:
        raise UserError("no marginals", where="selection", fix="select at least one marginal")
    if not all(w.weight > 0 and math.isfinite(w.weight) for w in reservations):
        raise UserError("a round has no budget", where="selection.split", fix="parts above 0")
    if filter_share:
        check_filter(budget.accountant, noise)
    every = [*reservations, *([Reservation(RESERVE, None, 2, filter_share)] if filter_share else [])]
    total = math.fsum(w.weight for w in every) / share_left(beside, discovered)
    shares = [w.weight / total for w in every]
    plan = _calibrated(every, shares, budget, method=method, noise=noise, beside=beside, discovered=discovered)
    check_scales([c.event for c in plan.charges])
    check_scales([c.event for c in plan.of("reserve")], units.MAX_SCALE * SMALLEST_PART)
    return plan


def _calibrated(
    reservations: Sequence[Reservation],
    shares: Sequence[float],
    budget: Budget,
    *,
    method: Json,
    noise: NoiseKind,
    beside: Sequence[Beside],
    discovered: Sequence[PlannedCharge],
) -> Plan:
    """The plan of slots with these shares, and of what is charged beside them."""
    charges = [_charge(i, w, s, noise, budget) for i, (w, s) in enumerate(zip(reservations, shares, strict=True))]
    for asked in beside:
        charges.append(Charge(asked.event, noise, budget.moved(asked, NOISE_KINDS[noise].norm), asked.share))
    events = calibrate(charges, budget, before=[c.event for c in discovered])
    asked_for = zip([*reservations, *beside], charges, events, strict=True)
    planned = (PlannedCharge(event, charge.share, asked) for asked, charge, event in asked_for)
    return Plan((*discovered, *planned), budget, method)


def _charge(place: int, reservation: Reservation, share: float, noise: NoiseKind, budget: Budget) -> Charge:
    """What a slot asks of the budget, in the worst case of what may be asked under it."""
    stage = f"{reservation.stage}:" if reservation.stage else ""
    name, norm = f"{place:04d}:{stage}{','.join(reservation.clique or ())}", NOISE_KINDS[noise].norm
    if reservation.choice:
        return Charge(name, None, 1.0, share)
    if reservation.scores:
        return Charge(name, noise, budget.distances_bound(reservation.scores, norm), share)
    cells = reservation.cells if reservation.clique is not None else max(reservation.cells, 2)
    bound = budget.sensitivity(Identity(cells), norm)  # columns of norm 1, two apart
    return Charge(name, noise, bound, share)


def share_left(beside: Sequence[Beside], discovered: Sequence[PlannedCharge] = ()) -> float:
    """The part of the budget that the marginals share.

    Raises:
        UserError: nothing is left.
    """
    left = 1.0
    for purpose in ("persons", "accept"):
        left -= math.fsum(b.share for b in beside if b.purpose == purpose)
    left -= sum(c.share for c in discovered)
    if not left > 1e-6:
        fix = "smaller parts of the budget: accept_share=0.05"
        raise UserError("nothing is left for the marginals", where="accept_share", fix=fix)
    return left


def with_least_noise(pairs: Sequence[Pair], plan_of: Callable[[Pair], Plan], stddev: Callable[[Plan], float]) -> Plan:
    """Of the plans under these pairs the one with the least noise (Li et al. 2021b, section 2.5), which names them all.

    Pairs that allow no plan, beside others that do, are left out.

    Args:
        stddev: the mean standard deviation of a cell under a plan, in records.
    Raises:
        UserError: of the first pair, where none allows a plan.
    """
    plans: dict[Pair, Plan] = {}
    errors = []
    for pair in pairs:
        try:
            plans[pair] = plan_of(pair)
        except UserError as error:
            errors.append(error)
    if not plans:
        raise errors[0]
    compared = sorted((PairNoise(pair, stddev(plan)) for pair, plan in plans.items()), key=lambda n: n.stddev)
    return replace(plans[compared[0].pair], compared=tuple(compared))


def _shares(slots: Sequence[Reservation], power: float, left: float) -> list[float]:
    """Each marginal's part of the budget, the part that is left for all of them shared out.

    A weight is that of squares: the error of its marginal counts weight^(3/2) times.

    Raises:
        UserError: a part next to nothing.
    """
    loads = [(w.weight ** (power / POWER), w.cells**power) for w in slots]
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
