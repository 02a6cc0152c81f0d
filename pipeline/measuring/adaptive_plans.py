"""A schedule of several rounds → an adaptive plan: every charge calibrated before any row is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mechanisms.accounting.events import as_noise
from mechanisms.accounting.pairs import Pair, PairNoise, by_pair, mean_stddev, possible_pairs, shares_power
from mechanisms.accounting.plan import Plan, Reservation
from mechanisms.accounting.planned_discovery import DiscoveryPlan
from mechanisms.public.criterion import Criterion
from mechanisms.public.domain import Domain
from mechanisms.public.rules.mapped import Mapped, in_pairs
from mechanisms.public.rules.unit_histogram import RecordsPerUnit
from mechanisms.public.units import Neighbouring
from mechanisms.selection.base import Schedule


def build_adaptive(
    schedule: Schedule,
    domain: Domain,
    *,
    mechanism: str,
    accountant: str,
    neighbouring: Neighbouring,
    budget: tuple[float, float],
    max_records: int,
    histogram: RecordsPerUnit | None = None,
    mapped: Sequence[Mapped] = (),
    accept: Sequence[Criterion] = (),
    discovery: DiscoveryPlan | None = None,
) -> Plan:
    """Every charge that the rounds may make, calibrated before any row is read.

    Args:
        schedule: the selection's method, slots and reserve.
        budget: ε and δ of all that the plan may charge.
        histogram: of records per unit, if it is wanted.
        accept: what decides whether the release is accepted.
        discovery: what is charged before.
        mechanism, accountant: the settings, which may be auto.
        mapped: columns whose first marginal is the one with the column that they follow from.
    Raises:
        UserError: a setting out of range; an accountant that cannot count such rounds.
    """
    method = schedule.method
    rounds = replace(schedule, slots=[_with_source(w, domain, mapped) for w in schedule.slots])
    reserved = [cells for _, cells in method.later_cells(domain, ())] if schedule.reserve else []

    def plan_of(pair: Pair) -> Plan:
        """The plan under a pair of noise and accountant."""
        power = shares_power(pair, accountant)
        plan = rounds.with_power(power).plan(
            noise=pair.noise,
            accountant=pair.accountant,
            epsilon=budget[0],
            delta=budget[1],
            neighbouring=neighbouring,
            max_records=max_records,
            histogram=histogram,
            accept=accept,
            discovery=discovery,
        )
        return replace(plan, power=power)

    pairs = possible_pairs(
        mechanism,
        accountant,
        delta=budget[1],
        reserve=schedule.reserve > 0,
        squares=method.squares,
    )
    plans = by_pair(pairs, plan_of)
    noise = [PairNoise(pair, _mean_noise(plan, reserved)) for pair, plan in plans]
    order = sorted(range(len(plans)), key=lambda i: noise[i].stddev)
    return replace(plans[order[0]][1], compared=tuple(noise[i] for i in order))


def _with_source(reservation: Reservation, domain: Domain, mapped: Sequence[Mapped]) -> Reservation:
    clique = reservation.clique and in_pairs(domain, mapped, reservation.clique)
    return (
        reservation
        if clique == reservation.clique
        else replace(reservation, clique=clique, cells=domain.cells(clique or ()))
    )


def _mean_noise(plan: Plan, reserved: Sequence[int]) -> float:
    """The mean standard deviation of a cell, in records: what `auto` compares (Li et al. 2021b, section 2.5).

    What a reserve will be spent on is not known yet: it counts as one marginal of mean size for each slot of a
    marginal, with equal parts.

    Args:
        reserved: cells of the marginals that the reserve may be spent on.
    """
    slots = [(s.reservation.cells, as_noise(s.event).stddev) for s in plan.slots if s.reservation.cells]
    if plan.reserve is not None:
        count = max(len(slots), 1)
        part = plan.reserve_event.stddev / plan.accountant.strength(1 / count)
        slots += [(max(round(sum(reserved) / max(len(reserved), 1)), 1), part)] * count
    return mean_stddev([cells for cells, _ in slots], [stddev for _, stddev in slots])
