"""White-box audits: the likelihood ratio at the worst neighbour, drawn by the real code, against what is stated.

Each finds a lower bound of ε or μ that holds with probability 0.99 (Clopper & Pearson 1934; for Gaussian differential
privacy the conversion of Nasr et al. 2023). It must reach 0.9 of what is stated, and never exceed it.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import beta, norm

from mechanisms.accounting.budget import Budget
from mechanisms.accounting.events import Exponential
from mechanisms.accounting.ledger import Ledger
from mechanisms.accounting.plan import Plan
from mechanisms.accounting.planning import Request, make_plan
from mechanisms.public.arrays import Flags, Ints
from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.schema.table_schema import parse_schema
from mechanisms.public.tables.codec import EncodingReport
from mechanisms.public.units import Neighbouring
from mechanisms.sensitive.contribution import PrivacyUnit
from mechanisms.sensitive.private_choice import Candidate, PrivateCounts
from mechanisms.sensitive.private_table import PrivateTable
from pipeline.measuring.selection_context import AdaptiveRun
from pipeline.settings import build
from pipeline.settings.config import load_config
from pipeline.settings.specs import build_specs
from tests.audit.hooks import Broken, current
from tests.audit.worlds import quick_disk

#: Of what is stated, so much must be found.
REACH = 0.9
#: Probability that a bound is wrong.
WRONG = 0.01


@dataclass(frozen=True)
class Bound:
    """What one audit found of ε or μ: a lower bound, from so many draws in both worlds together."""

    name: str
    measure: str
    stated: float
    found: float
    draws: int

    def check(self) -> Bound:
        if not self.found <= self.stated:
            raise Broken(f"{self.name}: {self.measure} is at least {self.found:.4g}, stated {self.stated:.4g}")
        if self.found < REACH * self.stated:
            few = f"only {self.found:.4g} of {self.measure} = {self.stated:.4g} found"
            raise Broken(f"{self.name}: {few}: too much noise")
        return self


def upper(hits: int, draws: int) -> float:
    """The upper Clopper-Pearson bound of a probability, at half of WRONG."""
    return float(beta.ppf(1 - WRONG / 2, hits + 1, draws - hits)) if hits < draws else 1.0


def mu_found(without: Flags, with_unit: Flags) -> float:
    """A lower bound of μ from which draws of two worlds pass a test."""
    false_positive = upper(int(without.sum()), without.size)
    false_negative = upper(int((~with_unit).sum()), with_unit.size)
    return float(-norm.ppf(false_positive) - norm.ppf(false_negative))


def epsilon_found(likely: Flags, unlikely: Flags) -> float:
    """A lower bound of ε from an event that one world makes more likely than the other."""
    least = 1 - upper(int((~likely).sum()), likely.size)
    return math.log(least / upper(int(unlikely.sum()), unlikely.size))


def range_found(likely: Flags, unlikely: Flags) -> float:
    """A lower bound of the length of the interval that holds the privacy loss: the log odds of any event."""
    least = 1 - upper(int((~likely).sum()), likely.size)
    most = upper(int(unlikely.sum()), unlikely.size)
    return math.log(least / (1 - least)) - math.log(most / (1 - most))


def stated_mu(epsilon: float, delta: float) -> float:
    """The μ whose exact dual has that (ε, δ)."""

    def excess(mu: float) -> float:
        a, b = norm.logcdf(mu / 2 - epsilon / mu), epsilon + norm.logcdf(-mu / 2 - epsilon / mu)
        return float(a + math.log1p(-math.exp(min(b - a, -1e-300))) - math.log(delta)) if b < a else -1e9

    return float(brentq(excess, 1e-3, 100, xtol=1e-13))


def coded(domain: Domain, rows: Ints) -> PrivateTable:
    """A table of codes, one record per unit."""
    columns = tuple(np.ascontiguousarray(rows[:, i], code_dtype(a.size)) for i, a in enumerate(domain.attributes))
    return PrivateTable(CodedTable(domain, columns), PrivacyUnit(), EncodingReport(len(rows), {}, {}), complete=True)


def worlds(cells: int, columns: int, relation: Neighbouring) -> tuple[Domain, list[Ints]]:
    """Two tables in which each cell, or each pair of cells, is a neighbourhood of its own: one unit there, or not."""
    domain = Domain(tuple(Attribute(f"x{i}", cells) for i in range(columns)))
    if relation is Neighbouring.ADD_REMOVE:
        places = [np.zeros(0, np.int64), np.arange(cells)]
    else:
        places = [np.arange(0, cells, 2), np.arange(1, cells, 2)]
    return domain, [np.repeat(p[:, None], columns, axis=1) for p in places]


def measured(plan: Plan, domain: Domain, rows: Ints, seed: int) -> list[Any]:
    """The answers of a real measurement: charged, drawn, kept."""
    with tempfile.TemporaryDirectory(dir=quick_disk()) as folder:
        ledger = Ledger.open(Path(folder) / "ledger", plan)
        noise, place = current("source")(seed), Path(folder) / "answers"
        run = AdaptiveRun(coded(domain, rows), ledger, noise, place, None)  # type: ignore[arg-type]
        return list(current("measure plan")(run).answers)


def whole_marginals(kind: str, relation: Neighbouring, cells: int, seed: int) -> Bound:
    """Two or three one-way marginals under one budget: what a unit that stands in all of them loses."""
    pure = kind == "laplace"
    domain, tables = worlds(cells, 2 if pure else 3, relation)  # the event of Laplace noise is rarer with each
    epsilon, delta, accountant = (1.5, 0.0, "basic") if pure else (6.0, 1e-6, "gdp")
    budget = Budget(epsilon, delta, accountant, relation, max_records=1)
    requests = [Request((a.name,), w) for a, w in zip(domain.attributes, (1.0, 2.0, 3.0), strict=False)]
    plan = make_plan(domain, requests, budget, mechanism=kind)
    seen = []
    for place, rows in enumerate(tables):
        gains = []
        for answer in measured(plan, domain, rows, 2 * seed + place):
            values = answer.values / answer.scale**2
            if relation is Neighbouring.REPLACE:
                values = values[1::2] - values[::2]
            low = answer.values[1::2] <= 0 if relation is Neighbouring.REPLACE else answer.values <= 0
            high = answer.values[::2] >= 1 if relation is Neighbouring.REPLACE else True
            gains.append(low & high if pure else values)
        seen.append(np.logical_and.reduce(gains) if pure else np.sum(gains, axis=0))
    name = f"{kind}, {len(requests)} marginals, {relation}"
    if pure:
        return Bound(name, "ε", epsilon, epsilon_found(*seen), 2 * seen[0].size)
    mu = stated_mu(epsilon, delta)
    middle = 0.5 * mu**2 if relation is Neighbouring.ADD_REMOVE else 0.0
    return Bound(name, "μ", mu, mu_found(seen[0] > middle, seen[1] > middle), 2 * seen[0].size)


def choices(relation: Neighbouring, draws: int, seed: int, epsilon: float = 2.0) -> Bound:
    """One choice between two candidates of which one gains what the other loses: the length of its loss's interval."""
    domain = Domain((Attribute("x", 2), Attribute("y", 2)))
    replace = relation is Neighbouring.REPLACE
    tables = [np.zeros((1, 2) if replace else (0, 2), np.int64), np.ones((1, 2), np.int64)]
    one, other = (np.array([1.0, 0.0]), np.array([0.0, 1.0])) if replace else (np.zeros(2), np.array([0.0, 1.0]))
    candidates = [Candidate(("x",)), Candidate(("y",))]
    expected = {("x",): one, ("y",): other}
    chosen = []
    for place, rows in enumerate(tables):
        counts = PrivateCounts(coded(domain, rows), 100)
        scores = current("scores")(counts, candidates, expected.__getitem__, neighbouring=relation)
        values, source, choose = list(scores.values.values()), current("source")(2 * seed + place), current("choice")
        found = [choose(values, scores.sensitivity, Exponential(str(i), epsilon), source) for i in range(draws)]
        chosen.append(np.array(found) == 0)
    return Bound(f"choice, {relation}", "ε", epsilon, range_found(chosen[1], chosen[0]), 2 * draws)


def grids(draws: int, seed: int) -> Bound:
    """Adaptive grids: both rounds of a run, with the queries that its own answers led to."""
    rows = np.array([[a, c] for a in range(4) for c in range(3) for _ in range(1 + 3 * (a == 0))])
    choice = ["selection=adagrid", "selection.marginals=[[a],[c],[a,c]]", "selection.threshold=1"]
    budget = ["privacy.unit=record", "privacy.epsilon=18", "privacy.delta=1e-6", "mechanism=gaussian"]
    specs, schema = build_specs(load_config([*choice, *budget])), parse_schema({"a": 4, "c": 3}, where="audit")
    domain, plan = schema.domain, build.build_plan(specs, build.build_workload(specs, schema), schema)
    mu, unit = stated_mu(plan.budget.epsilon, plan.budget.delta), np.array([[1, 1]])
    seen = []
    for place, table in enumerate((rows, np.concatenate([rows, unit]))):
        seeds = [4 * draws * seed + 2 * i + place for i in range(draws)]
        gains = [_gain(measured(plan, domain, table, s), domain, rows) for s in seeds]
        seen.append(np.array(gains) > 0.5 * mu**2)
    return Bound("adaptive grid, two rounds", "μ", mu, mu_found(*seen), 2 * draws)


def _gain(answers: list[Any], domain: Domain, rows: Ints) -> float:
    """The log likelihood ratio of a run's answers for one record more in the cell (1, 1), without its constant."""
    found = 0.0
    for answer in answers:
        shape, axes = domain.shape(answer.clique), domain.axes(answer.clique)
        exact, unit = np.zeros(shape), np.zeros(shape)
        np.add.at(exact, tuple(rows[:, axes].T), 1.0)
        unit[(1,) * len(shape)] = 1.0
        moved = answer.query.answer(unit.ravel())
        found += float((answer.values - answer.query.answer(exact.ravel())) @ moved) / answer.scale**2
    return found


def audits(*, cells: int, draws: int, runs: int) -> list[Callable[[], Bound]]:
    """All white-box audits.

    Args:
        cells: of each marginal; `draws` of a choice, and `runs` of the adaptive grid (0: none), in each world.
    """
    found: list[Callable[[], Bound]] = []
    for relation in Neighbouring:
        found.append(lambda r=relation: whole_marginals("gaussian", r, cells, 5))
        found.append(lambda r=relation: whole_marginals("laplace", r, 10 * cells, 5))  # its event is rarer
        found.append(lambda r=relation: choices(r, draws, 6))
    return [*found, *([lambda: grids(runs, 7)] if runs else [])]
