"""Costs that parts of plugins state are checked before anything is charged, and their faults are said to be theirs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from mechanisms.accounting.accountants.accountant import Accountant, PrivacyLoss
from mechanisms.accounting.accountants.registered import OWN_ACCOUNTANTS
from mechanisms.accounting.events import Event
from mechanisms.accounting.thresholds import failures
from mechanisms.public.errors import UserError

#: The setting that names an accountant.
ACCOUNTANT = "privacy.accountant"
#: How far the ε of a currency may lie below the total that the same accountant states, by rounding.
ROUNDING = 1e-6
#: What code that computes costs may raise.
FAULTS = (ArithmeticError, ValueError, TypeError, LookupError, AttributeError)
_MEND = {"where": ACCOUNTANT, "fix": "mend the plugin: a cost is a finite number, not below 0"}


def of_plugins(accountant: Accountant, noise: Iterable[type]) -> str:
    """The parts that are a plugin's, by name and module; empty where all are ours.

    Args:
        noise: the classes of the events.
    """
    parts = [f"accountant {accountant.kind!r}"] if type(accountant) not in OWN_ACCOUNTANTS else []
    modules = [type(accountant).__module__] if parts else []
    for event in dict.fromkeys(noise):
        if event.__module__.partition(".")[0] != "mechanisms":
            parts.append(f"noise {event.__name__}")
            modules.append(event.__module__)
    named = " and ".join(f"{part} (module {module})" for part, module in zip(parts, modules, strict=True))
    return f"a plugin's {named}" if parts else ""


@contextmanager
def blamed(accountant: Accountant, noise: Iterable[type]) -> Iterator[None]:
    """What fails inside is said of the plugin whose parts count there, and not of the settings or of the pipeline.

    Raises:
        UserError: whatever failed, where a part is a plugin's.
    """
    parts = of_plugins(accountant, noise)
    try:
        yield
    except (UserError, *FAULTS) as error:
        if not parts:
            raise
        ours = f"parts of ours: {', '.join(a.kind for a in OWN_ACCOUNTANTS)} and mechanism=gaussian or laplace"
        problem = error.what if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
        fix = f"{error.fix}; or {ours}" if isinstance(error, UserError) else ours
        place = error.where if isinstance(error, UserError) else ACCOUNTANT
        raise UserError(f"{problem} (as {parts} counts costs)", where=place, fix=fix) from error


def check_costs(accountant: Accountant, events: Sequence[Event], claim: PrivacyLoss) -> None:
    """Refuse costs of parts of plugins that are no costs: below 0, infinite, no number, or less than their own total.

    Raises:
        UserError: names the part.
    """
    for event in events:
        if not of_plugins(accountant, [type(event)]):
            continue
        with blamed(accountant, [type(event)]):
            strength = event.epsilon_alone if event.mu is None else event.mu
            if not strength > 0:
                raise UserError(f"the strength (mu or epsilon_alone) of {event.id!r} is {strength}", **_MEND)
            if bad := {name: cost for name, cost in accountant.cost(event).items() if not 0 <= cost < math.inf}:
                raise UserError(f"the cost of {event.id!r} is {bad}", **_MEND)
    if type(accountant) in OWN_ACCOUNTANTS:
        return
    with blamed(accountant, []):
        if not (0 <= claim.epsilon < math.inf and 0 <= claim.delta <= 1):
            raise UserError(f"the total is {claim}", **_MEND)
        currency = accountant.currency
        if currency is None or failures(events):
            return
        alone = currency.epsilon(currency.total(accountant.cost(e)[currency.name] for e in events), accountant.delta)
        if not alone >= claim.epsilon * (1 - ROUNDING):
            problem = f"the costs of the events come to ε = {alone!r}, less than its total of {claim.epsilon!r}"
            raise UserError(problem, **_MEND)
