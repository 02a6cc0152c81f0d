"""What every job would load for itself is loaded once, in the process that jobs are forked from: a second less each.

No thread is started here: a fork would not take it along.
"""

from __future__ import annotations

import numpy as np

from mechanisms.accounting.accountants.registered import accountant_class
from mechanisms.accounting.autodp_check import check_with_autodp
from mechanisms.accounting.events import Gaussian
from mechanisms.public.units import Delta
from synthesis.xorshift import following

_EVENTS = [Gaussian("loads autodp", 1.0, 1.0)]
_ACCOUNTANT = accountant_class("gdp").of(Delta(1e-9), 0)

check_with_autodp(_ACCOUNTANT, _EVENTS, _ACCOUNTANT.loss(_EVENTS))
following(np.uint64(1))  # the first compiled loop of a process readies the compiler
