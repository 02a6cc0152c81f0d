"""A schedule of several rounds → an adaptive plan: every charge calibrated before any row is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mechanisms.accounting.accountants import accountant_class
from mechanisms.accounting.adaptive import AdaptivePlan, Reservation
from mechanisms.public.criterion import Criterion
from mechanisms.public.domain import Domain
from mechanisms.public.errors import one_of
from mechanisms.public.noise_kinds import AUTO, NoiseKind, possible_kinds
from mechanisms.public.rules.mapped import Mapped, in_pairs
from mechanisms.public.rules.unit_histogram import RecordsPerUnit
from mechanisms.public.units import Neighbouring
from mechanisms.selection.base import Schedule
from pipeline.settings.config import Config


def build_adaptive(
    config: Config,
    schedule: Schedule,
    domain: Domain,
    *,
    budget: tuple[float, float],
    max_records: int,
    histogram: RecordsPerUnit | None = None,
    mapped: Sequence[Mapped] = (),
    accept: Sequence[Criterion] = (),
) -> AdaptivePlan:
    """Every charge that the rounds may make, calibrated before any row is read.

    Args:
        schedule: the selection's method, slots and reserve.
        budget: ε and δ of all that the plan may charge.
        histogram: of records per unit, if it is wanted.
        accept: what decides whether the release is accepted.
        mapped: columns whose first marginal is the one with the column that they follow from.
    Raises:
        UserError: a setting out of range; an accountant that cannot count such rounds.
    """
    privacy = config.privacy
    rounds = replace(schedule, slots=[_with_source(w, domain, mapped) for w in schedule.slots])
    accountant = accountant_class(privacy.accountant)

    def plan_of(noise: NoiseKind) -> AdaptivePlan:
        return rounds.plan(
            noise=noise,
            accountant=accountant.kind,
            epsilon=budget[0],
            delta=budget[1],
            neighbouring=Neighbouring(one_of(privacy.neighbouring, tuple(Neighbouring), "privacy.neighbouring")),
            max_records=max_records,
            histogram=histogram,
            accept=accept,
        )

    kinds = possible_kinds(config.mechanism.kind, delta=budget[1])
    if schedule.reserve and config.mechanism.kind == AUTO:
        return plan_of(accountant.natural_noise)
    return min(map(plan_of, kinds), key=_expected_error)


def _with_source(reservation: Reservation, domain: Domain, mapped: Sequence[Mapped]) -> Reservation:
    clique = reservation.clique and in_pairs(domain, mapped, reservation.clique)
    return (
        reservation
        if clique == reservation.clique
        else replace(reservation, clique=clique, cells=domain.cells(clique or ()))
    )


def _expected_error(plan: AdaptivePlan) -> float:
    """Σ over all cells of the noise's standard deviation, in records: what `auto` compares (Li et al. 2021b, 2.5)."""
    return sum(s.reservation.cells * s.event.stddev for s in plan.slots)
