"""From marginals and slots to a plan: the budget is split, and every charge calibrated, from public facts alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mechanisms.accounting.accountants.accountant import Accountant
from mechanisms.accounting.accountants.basic import Basic
from mechanisms.accounting.accountants.gdp import Gdp
from mechanisms.accounting.accountants.registered import accountant_class, check_filter
from mechanisms.accounting.accountants.zcdp import Zcdp
from mechanisms.accounting.budget import (
    POWER,
    Budget,
    Charge,
    Pair,
    PairNoise,
    calibrate,
    mean_stddev,
    possible_pairs,
    shares_power,
)
from mechanisms.accounting.events import Event, NoiseEvent, as_noise
from mechanisms.accounting.plan import RESERVE, Beside, Plan, PlannedCharge, Reservation
from mechanisms.accounting.thresholds import safe_failure, safe_threshold
from mechanisms.public import units
from mechanisms.public.discovery.discovery_questions import DiscoveryQuestion
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.files import Json
from mechanisms.public.noise_kinds import AUTO, KINDS, LAPLACE, NOISE_KINDS, NoiseKind
from mechanisms.public.queries.query_matrices import Identity

#: The accountants whose currency a fixed part of can be set aside, whatever the rest is spent on.
SERVING = (Gdp, Zcdp, Basic)
#: So many columns, evenly among all by size, stand for the sizes of pairs.
MOST_COMPARED = 500


def resolved(budget: Budget, mechanism: str) -> tuple[Budget, NoiseKind]:
    """The budget with its accountant, and the noise of what is discovered: settings may leave both open.

    Raises:
        UserError: an accountant that cannot set a fixed part of its budget aside; noise without known tails; Gaussian
            noise under basic composition, which splits δ over a number of charges that is not known yet.
    """
    accountant = budget.accountant
    if accountant == AUTO:
        accountant = Gdp.kind if budget.delta else Basic.kind
    serving = [a.kind for a in SERVING]
    if accountant not in serving:
        fix = f"privacy.accountant={' or '.join(serving)}"
        problem = "what is discovered has no accounting here: the number of charges after it depends on its answers"
        raise UserError(f"{problem} ({accountant})", where="privacy.accountant", fix=fix)
    kind = accountant_class(accountant).natural_noise if mechanism == AUTO else mechanism
    if kind not in KINDS or (accountant == Basic.kind and kind != LAPLACE.name):
        fix = "mechanism=laplace" if accountant == Basic.kind else f"mechanism={' or '.join(KINDS)}"
        raise UserError(f"{kind} noise under {accountant} discovers nothing", where="mechanism", fix=fix)
    return replace(budget, accountant=accountant), kind


def plan_discovery(
    questions: Sequence[DiscoveryQuestion],
    budget: Budget,
    *,
    share: float,
    mechanism: str,
    cells: Sequence[int] = (),
    pairs: bool = False,
) -> Plan:
    """A part of the budget for what is discovered, the same for each question, calibrated from public facts alone.

    Args:
        share: the part, in the accountant's additive currency; and of δ, where values are discovered.
        budget: its accountant is a setting that may be auto, as `mechanism` is; see `resolved`. Of one unit count
            records of weight C, and C values.
        cells: of every column that is measured, where max_records is asked for; pairs: whether pairs may be, too.
    Raises:
        UserError: a parameter out of range; δ = 0 where values are discovered.
    """
    if not 0.001 <= share <= 0.9:
        raise UserError(f"got {share}", where="privacy.discovery_share", fix="a part of the budget, 0.001 to 0.9")
    budget, noise = resolved(budget, mechanism)
    norm = NOISE_KINDS[noise].norm
    values = [w for w in questions if w.of_values]
    if values and not budget.delta:
        fix = "a privacy.delta above 0, or the values from public knowledge"
        problem = f"values: discover needs a part of δ: with δ = 0 no value of column {values[0].column!r} is ever safe"
        raise UserError(problem, where="privacy.delta", fix=fix)
    failure = units.round_down(budget.delta * share / len(values)) if values else 0.0
    each = share / len(questions)
    charges = [Charge(w.event, noise, budget.moved(w, norm), each, w.of_values * failure) for w in questions]
    *events, rest = (as_noise(e) for e in calibrate([*charges, Charge("rest", noise, 1.0, 1 - share)], budget))
    costs = replace(budget, max_records=1).sensitivity(Identity(2), norm)
    costs *= _noise_per_record(rest, budget.keeper([noise], charges), cells, pairs)
    for event in events:
        units.check_scale(event.scale)
    planned = (PlannedCharge(e, each, _planned(w, e, budget, costs)) for w, e in zip(questions, events, strict=True))
    return Plan(tuple(planned), budget, {})


def _planned(question: DiscoveryQuestion, event: NoiseEvent, budget: Budget, noise: float) -> DiscoveryQuestion:
    """The question with what is released of its answer."""
    most = 1 if question.once else budget.max_records
    if not question.of_values:
        return replace(question, most=most, noise=noise if question.sizes else 0.0)
    failure = safe_failure(event.failure, budget.delta)
    return replace(question, most=most, threshold=safe_threshold(event.kind, event.scale, failure, most))


def _noise_per_record(rest: NoiseEvent, accountant: Accountant, cells: Sequence[int], pairs: bool) -> float:
    """Σ |noise| of a marginal at sensitivity 1, in records.

    The mean over one-way marginals that share the rest alike; or that of a pair of median size which takes the rest
    alone, if pairs may be measured and that is more.
    """
    if not cells:
        return 0.0
    mean = rest.scale * (1.0 if rest.kind == LAPLACE.name else math.sqrt(2 / math.pi))
    each = accountant.strength(1.0) / accountant.strength(1 / len(cells))
    alone = mean * each * math.fsum(cells) / len(cells)
    if not pairs or len(cells) < 2:
        return alone
    some = np.sort(np.array(cells, np.float64))[:: -(-len(cells) // MOST_COMPARED)]
    return max(alone, mean * float(np.median(np.outer(some, some)[np.triu_indices(some.size, 1)])))


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
        beside: as of `make_plan`.
        discovered: as of `make_plan`.
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
