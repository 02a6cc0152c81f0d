"""From a statement back to the accounting behind it: tries, accountant, booked events, and all that was promised."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mechanisms.accounting.accountants.accountant import Accountant, PrivacyLoss
from mechanisms.accounting.accountants.gdp import Gdp
from mechanisms.accounting.accountants.registered import OWN_ACCOUNTANTS, accountant_class
from mechanisms.accounting.events import Event, Exponential, Laplace, booked_event
from mechanisms.accounting.plan import RESERVE
from mechanisms.accounting.private_selection import ONE_TRY, PrivateSelection
from mechanisms.accounting.restatements import Composition, all_of_budget
from mechanisms.accounting.thresholds import delta_left, failures
from mechanisms.public.discovery.discovery_questions import DISCOVERY
from mechanisms.public.files import Json
from mechanisms.public.noise_kinds import GAUSSIAN, LAPLACE, NOISE_KINDS
from mechanisms.public.queries.query_matrices import Identity, sensitivity
from mechanisms.public.units import Delta, Neighbouring, delta, epsilon
from mechanisms.selection.auto import LOOK_LEVEL, PAIRS_PART
from mechanisms.selection.base import GIVEN
from pipeline.statement.paid_answers import SLACK, whole_number

#: Shares, and a budget with what a plan makes of it, agree so far: a calibration ends on the noisier side.
CALIBRATED = 1e-6
#: The same of ε under a large δ, where it falls to 0 with the noise of a calibration.
TINY = 1e-9
#: Into so many charges a part of the budget is split where more of them cost less.
PIECES = 1000


@dataclass(frozen=True)
class Worst:
    """What the promise composes.

    Attributes:
        composition: the charges; all of the budget as one event where some of it was reserved and not charged.
        loss: the total of a try, within its budget.
        exact: whether the plan's own composition at another δ is that of these events, so that it can be compared.
        slack: how far it may lie from the plan's: a whole budget is a little more than what a plan made of it.
    """

    composition: Composition
    loss: PrivacyLoss
    exact: bool
    slack: float = SLACK


def tries_of(statement: Json) -> PrivateSelection:
    """How the release was chosen among tries."""
    chosen = statement.get("selection")
    if chosen is None:
        return ONE_TRY
    return PrivateSelection(whole_number(chosen["tries_expected_at_most"]), chosen["threshold"] is True)


def one_try(statement: Json) -> PrivacyLoss:
    """The budget of a try."""
    budget = statement["selection"]["one_try"] if statement.get("selection") else statement["budget"]
    return PrivacyLoss(epsilon(float(budget["epsilon"])), delta(float(budget["delta"])))


def accountant_of(statement: Json) -> tuple[Accountant, list[Event]]:
    """The accountant of the statement, and the events that it booked for the try that was released."""
    kind, at = statement["accountant"], Delta(one_try(statement).delta)
    events = [booked_event(r) for r in statement["events"]]
    slots = statement.get("slots")
    if slots is None:  # version 1 names δ of each charge instead
        each = [e["cost"].get("delta", 0.0) for e in statement["events"]]
        one = accountant_class(kind).of(at, 1).delta_each
        slots = round(one / max(each)) if one and each and max(each) > 0 else 0
    return accountant_class(kind).of(delta_left(at, events), int(slots)), events


def worst_of(statement: Json) -> Worst:
    """The charges; or all of the budget where a part of it was reserved, whether or not it was charged.

    How much of a plan is charged may depend on answers: a part of it is no guarantee. That holds for a reserve that is
    spent in parts (a privacy filter), for a plan that follows from what was discovered, and for slots of which some
    were not used: their shares sum to less than 1.
    """
    (accountant, events), tries = accountant_of(statement), tries_of(statement)
    reserve = any(map(_of_parts, events))
    if not reserve and not unused(statement) > CALIBRATED:
        return Worst(Composition(accountant, events, tries), accountant.loss(events), exact=True)
    most = one_try(statement)
    if not reserve and accountant.currency is None:
        return Worst(Composition(accountant, events, tries), accountant.loss(events), exact=False)
    whole = all_of_budget(accountant, most, failures(events))
    slack = SLACK if reserve else CALIBRATED
    return Worst(Composition(accountant, whole, tries), Composition(accountant, whole).within(most), True, slack)


def unused(statement: Json) -> float:
    """The part of the budget that was reserved, and of which no receipt tells; version 1 named no shares."""
    if "guarantee" not in statement:
        return 0.0
    return 1 - math.fsum(float(e["share"]) for e in statement["events"])


def selected_by_plugin(statement: Json) -> bool:
    """Whether a selection of a plugin asked: which charges it makes, it alone knows."""
    return any(p["kind"] == "selection" for p in statement.get("not_ours") or ())


def wrong_shares(statement: Json) -> str:
    """Why the shares of the charges, their costs and the budget do not belong together; empty where they do.

    A plan gives each charge its share of the whole budget, in the currency that adds up. So shares tell how much was
    reserved beyond the charges, and a budget cannot be cut down to these.
    """
    accountant, events = accountant_of(statement)
    most = one_try(statement)
    shares = [float(e["share"]) for e in statement["events"]]
    left = 1 - math.fsum(shares)
    if not all(0 < s <= 1 for s in shares) or left < -CALIBRATED:
        return f"the shares of the charges sum to {1 - left:.9g}"
    own = {a.kind for a in OWN_ACCOUNTANTS}, {GAUSSIAN.name, LAPLACE.name, Exponential.kind}
    if accountant.kind not in own[0] or not {e.kind for e in events} <= own[1] or not events:
        return ""  # how a plugin's costs share a budget, the plugin alone knows
    whole = all_of_budget(accountant, most, failures(events))[0]
    ratios = [_part(accountant, e, whole) / share for e, share in zip(events, shares, strict=True)]
    # where totals are no sums of what shares are parts of, it is the charges among each other that tell
    sums = accountant.kind != "advanced" and not any(_by_epsilon(accountant, e) for e in events)
    apart = {e.id: e.id.startswith(DISCOVERY) for e in events}  # calibrated before the rest was known
    first = {apart[e.id]: ratio for e, ratio in reversed([*zip(events, ratios, strict=True)])}
    for event, ratio, share in zip(events, ratios, shares, strict=True):
        right = 1.0 if sums else first[apart[event.id]]
        if not math.isclose(ratio, right, rel_tol=CALIBRATED):
            return f"{event.id} takes {ratio * share / right:.6g} of the budget, and its receipt says {share:.6g}"
    if left > CALIBRATED and not sums:
        loss = min(accountant.loss([*events, *rest]).epsilon for rest in _rests(accountant, whole, left * right))
        if loss > most.epsilon * (1 + 1e-3):
            return f"{left:.6g} of the budget was reserved beside the charges, and is not promised"
    return ""


def _by_epsilon(accountant: Accountant, event: Event) -> bool:
    """Whether a plan shares out the squares of ε, where what adds up is the square of μ: pure noise under gdp."""
    return isinstance(accountant, Gdp) and event.mu is None and not event.is_choice


def _part(accountant: Accountant, event: Event, whole: Event) -> float:
    """The part of the budget that an event takes, in what a plan shares out."""
    if _by_epsilon(accountant, event):
        return (event.epsilon_alone / accountant.cost(whole)["mu"]) ** 2
    return accountant.share(event, whole)


def _rests(accountant: Accountant, whole: Event, part: float) -> list[list[Event]]:
    """What may have been reserved with a part of the budget, as it costs least."""
    if isinstance(accountant, Gdp):
        strength = accountant.cost(whole)["mu"] * math.sqrt(part)
        return [[Laplace("rest", strength, 1.0)], [Exponential("rest", accountant.choice_epsilon(strength))]]
    each = accountant.cost(whole)["epsilon"] * math.sqrt(part / PIECES)
    return [[Laplace(f"rest {i}", each, 1.0) for i in range(PIECES)]]


def wrong_level(statement: Json, index: Json) -> str:
    """Why distances leave other differences out than a selection of ours does; empty where they leave out the same."""
    distances, events = index.get("distances") or {}, statement["events"]
    if not distances.get("below") or selected_by_plugin(statement):
        return ""
    given = [e for e in events if e.get("stage") == GIVEN]
    part = 1 - math.fsum(e["share"] for e in events if e.get("stage") != RESERVE)
    part *= PAIRS_PART / len({tuple(e["clique"]) for e in given})
    strength, law = accountant_of(statement)[0].strength, NOISE_KINDS[given[0]["mechanism"]]
    relation, most = Neighbouring(statement["neighbouring"]), whole_number(statement["unit"]["max_records"])
    moved = sensitivity(Identity(2), norm=law.norm, neighbouring=relation, max_records=most)  # of one code it is less
    scale = moved * max(e["scale"] / e["sensitivity"] * strength(e["share"]) for e in given) / strength(part)
    level = LOOK_LEVEL * law.mean_abs * scale
    same, below = math.isclose(distances["below"], level, rel_tol=CALIBRATED), distances["below"]
    return "" if same else f"index.json: distances.below is {below!r}, and follows as {level!r}"


def shortfall(statement: Json) -> str:
    """Why less is promised than a plan with this budget may charge; empty where all of it is."""
    promise, budget = statement["guarantee"]["epsilon"], statement["budget"]["epsilon"]
    if promise < budget * (1 - CALIBRATED) - TINY:
        return f"ε = {promise:.6g} is promised of a budget of {budget:.6g}: a plan reserves all of it, charged or not"
    return wrong_shares(statement)


def wrong_running(statement: Json) -> str:
    """Why a ledger's running total is none that held this run, in its numbers of runs, its ε or its limit."""
    if (running := statement.get("running_total")) is None:
        return ""
    runs, lost, others = (whole_number(running.get(k, 0)) for k in ("runs", "not_private", "not_ours"))
    if runs < 1 or not 0 <= lost <= runs or not 0 <= others <= runs:
        return f"{runs} runs are booked, {lost} of them not private, {others} with parts of plugins"
    composed, limit, total = running["epsilon_composed"], running["limit"], running["epsilon_sum"]
    if isinstance(composed, bool):
        raise ValueError("the ledger's accountant has no total that is a number")
    plain = total <= limit["epsilon"] * (1 + SLACK) and running["delta_sum"] <= limit["delta"] / 2 * (1 + SLACK)
    if not plain and (composed is None or composed > limit["epsilon"] * (1 + SLACK)):
        return f"no ledger with a limit of ε = {limit['epsilon']:.6g} lets in what is booked"
    if composed is not None and composed < (least := _least_composed(statement)) * (1 - CALIBRATED):
        return f"all runs of the ledger are said to cost ε = {composed:.6g}, the charges of this one alone {least:.6g}"
    return ""


def _least_composed(statement: Json) -> float:
    """ε of the charges alone by the accountant of the ledger, at its δ.

    0 if the ledger knows more of a run than its charges say: several tries, parts without a currency, parts of plugins.
    """
    running, (accountant, events) = statement["running_total"], accountant_of(statement)
    currency, parts = accountant_class(running["accountant"]).currency, any(_of_parts(e) for e in events)
    if currency is None:
        return float(running["epsilon_sum"])
    if statement.get("selection") or statement.get("not_ours") or (parts and accountant.currency is None):
        return 0.0
    at = Delta(running["delta_composed"])
    ours = accountant_class(running["accountant"]).of(at, 0)
    return currency.epsilon(currency.total(ours.cost(e)[currency.name] for e in events), at)


def _of_parts(event: Event) -> bool:
    """Whether a charge is a part of what was reserved, or of what was discovered first."""
    return event.id.startswith((RESERVE, DISCOVERY))
