"""A second opinion on a plan's total, from a library that is not ours; the one file that imports autodp."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Sequence

from mechanisms.accounting.accountants.accountant import Accountant, PrivacyLoss
from mechanisms.accounting.accountants.registered import OWN_ACCOUNTANTS
from mechanisms.accounting.events import Event
from mechanisms.accounting.plugin_costs import ACCOUNTANT, blamed, of_plugins
from mechanisms.accounting.thresholds import delta_left
from mechanisms.public.errors import UserError
from mechanisms.public.units import MIN_DELTA

#: How far two correct computations of one ε may lie apart: relative, and for a tiny ε absolute.
TOLERANCE = 1e-6
TINY = 1e-9


def check_with_autodp(accountant: Accountant, events: Sequence[Event], claim: PrivacyLoss) -> None:
    """Compare a claim about events with the exact trade-off of their Gaussian part, composed and inverted by autodp.

    A part costs no more than all, so that a sound claim is never below it. Where all events are the noise that an
    accountant counts exactly, the claim is not above it either.

    Raises:
        ArithmeticError: the two disagree by more than rounding; UserError where a part is a plugin's.
    """
    sizes = Counter(e.mu for e in events if e.mu is not None)
    if not sizes or not claim.epsilon < float("inf"):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its texts hold escapes of which Python 3.12 warns wherever it compiles them
        from autodp.mechanism_zoo import ExactGaussianMechanism
        from autodp.transformer_zoo import ComposeGaussian

    kinds = [type(e) for e in events]
    with blamed(accountant, kinds):
        parts = [ExactGaussianMechanism(sigma=1 / mu) for mu in sizes]
        composed, left = ComposeGaussian()(parts, list(sizes.values())), delta_left(claim.delta, events)
        exact = float(composed.get_approxDP(left)) if left >= MIN_DELTA else math.inf
    slack = TOLERANCE * min(exact, claim.epsilon) + TINY  # no ε is enough at δ = 0
    tight = accountant.is_exact and sum(sizes.values()) == len(events)
    if not claim.epsilon >= exact - slack or (tight and claim.epsilon > exact + slack):
        difference = f"ε = {claim.epsilon!r} at δ = {claim.delta!r} by {accountant.kind}, but {exact!r} by autodp"
        if theirs := of_plugins(accountant, kinds):
            fix = f"an accountant and noise of ours: {', '.join(a.kind for a in OWN_ACCOUNTANTS)}"
            raise UserError(f"what {theirs} claims does not hold: {difference}", where=ACCOUNTANT, fix=fix)
        raise ArithmeticError(f"two computations of the total disagree: {difference}")
