"""`budget`: what is left of a shared budget and who spent it."""

from __future__ import annotations

from pipeline.budget.ledger_report import show
from pipeline.settings.config import BudgetFileConfig


def show_budget(config: BudgetFileConfig) -> int:
    """Print the ledger, after its limit was changed where that is asked for."""
    print(show(config))
    return 0
