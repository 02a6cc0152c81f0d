"""How noisy a marginal is that takes the whole budget, from public facts: for selections that decide before a run."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np
from numpy.typing import NDArray

from mechanisms.accounting.accountants import accountant_class
from mechanisms.accounting.plan import Plan, Request, make_plan
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.noise_kinds import possible_kinds
from mechanisms.public.workload import Workload
from mechanisms.selection.base import Facts


def unit_noise(facts: Facts, domain: Domain) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """The mean absolute noise of a marginal, in records, from its share of the whole budget."""
    plan = _whole_budget(facts, domain)
    mean = plan.measurements[0].event.mean_abs
    return lambda shares: np.asarray(mean / plan.accountant.strength(shares))


def unit_stddev(facts: Facts, domain: Domain) -> float:
    """The standard deviation of a cell of one marginal that takes the whole budget, in records, by its noise's law."""
    return _whole_budget(facts, domain).measurements[0].event.stddev


def _whole_budget(facts: Facts, domain: Domain) -> Plan:
    """One marginal alone."""
    accountant = accountant_class(facts.accountant)
    kinds = possible_kinds(facts.mechanism, delta=facts.delta)
    return make_plan(
        domain,
        [Request((domain.names[0],))],
        mechanism=accountant.natural_noise if accountant.natural_noise in kinds else kinds[0],
        accountant=accountant.kind,
        epsilon=facts.epsilon,
        delta=facts.delta,
        neighbouring=facts.neighbouring,
        max_records=facts.max_records,
    )


def with_all_columns(domain: Domain, chosen: Collection[Clique]) -> Workload:
    """The chosen marginals, and the one-way marginals of the columns that are in none of them."""
    held = {n for c in chosen for n in c}
    cliques = sorted({*chosen, *((n,) for n in domain.names if n not in held)}, key=lambda c: (len(c), domain.axes(c)))
    return Workload(tuple(cliques), (1.0,) * len(cliques))
