"""The charges for what a schema leaves open: they stand before those of the rest, in the same budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mechanisms.accounting.accountants.accountant import Accountant
from mechanisms.accounting.accountants.basic import Basic
from mechanisms.accounting.accountants.gdp import Gdp
from mechanisms.accounting.accountants.registered import accountant_class
from mechanisms.accounting.accountants.zcdp import Zcdp
from mechanisms.accounting.budget import Budget
from mechanisms.accounting.calibrate import Charge, calibrate
from mechanisms.accounting.events import NoiseEvent, as_noise
from mechanisms.accounting.plan import Plan, PlannedCharge
from mechanisms.accounting.thresholds import safe_failure, safe_threshold
from mechanisms.public import units
from mechanisms.public.discovery.discovery_questions import DiscoveryQuestion
from mechanisms.public.errors import UserError
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
