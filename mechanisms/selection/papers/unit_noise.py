"""How noisy a marginal is that takes the whole budget, from public facts: for selections that decide before a run."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mechanisms.accounting.accountants.basic import Basic
from mechanisms.accounting.accountants.gdp import Gdp
from mechanisms.accounting.accountants.registered import accountant_class
from mechanisms.accounting.accountants.zcdp import Zcdp
from mechanisms.accounting.pairs import possible_pairs
from mechanisms.accounting.plan import Plan
from mechanisms.accounting.planning import Request, make_plan
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.noise_kinds import AUTO, possible_kinds
from mechanisms.public.workload import Workload
from mechanisms.selection.base import Facts


def unit_noise(facts: Facts, domain: Domain) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """The mean absolute noise of a marginal, in records, from its share of the whole budget.

    Where the accountant is left open: that of the best pair for as many equal shares.
    """
    plans = [_whole_budget(facts, domain, accountant) for accountant in _open_accountants(facts)]

    def noise(shares: NDArray[np.float64]) -> NDArray[np.float64]:
        every = [p.measurements[0].event.mean_abs / p.accountant.strength(shares) for p in plans]
        return np.asarray(np.minimum.reduce(every))

    return noise


def unit_stddev(facts: Facts, domain: Domain) -> float:
    """The standard deviation of a cell of one marginal that takes the whole budget, in records, by its noise's law.

    Where the accountant is left open: one of squares, as many marginals will have it, if there is any.
    """
    return _whole_budget(facts, domain, _open_accountants(facts)[0]).measurements[0].event.stddev


def _open_accountants(facts: Facts) -> list[str]:
    """The accountant that is named; where it is open, those that serve, one of squares first if any does."""
    if facts.budget.accountant != AUTO:
        return [accountant_class(facts.budget.accountant).kind]
    names = {p.accountant for p in possible_pairs(facts.mechanism, facts.budget)}
    return [a.kind for a in (Gdp, Zcdp, Basic) if a.kind in names]


def _whole_budget(facts: Facts, domain: Domain, kind: str) -> Plan:
    """One marginal alone."""
    accountant = accountant_class(kind)
    kinds = possible_kinds(facts.mechanism, delta=facts.budget.delta)
    noise = accountant.natural_noise if accountant.natural_noise in kinds else kinds[0]
    budget = replace(facts.budget, accountant=accountant.kind)
    return make_plan(domain, [Request((domain.names[0],))], budget, mechanism=noise)


def with_all_columns(domain: Domain, chosen: Collection[Clique]) -> Workload:
    """The chosen marginals, and the one-way marginals of the columns that are in none of them."""
    held = {n for c in chosen for n in c}
    cliques = sorted({*chosen, *((n,) for n in domain.names if n not in held)}, key=lambda c: (len(c), domain.axes(c)))
    return Workload(tuple(cliques), (1.0,) * len(cliques))
