"""Settings → a selection, and the accountant."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mechanisms.accounting.accountants.registered import accountant_class
from mechanisms.accounting.bookings import load_book
from mechanisms.accounting.filters import USUAL
from mechanisms.public.errors import UserError, one_of
from mechanisms.public.noise_kinds import AUTO
from mechanisms.selection.base import Selection
from mechanisms.selection.selections import SELECTIONS
from pipeline.settings.config import Config, SelectionConfig
from pipeline.settings.own_settings import own_settings


def selection_of(config: SelectionConfig) -> Selection:
    """The selection with its own settings, checked against their types.

    Raises:
        UserError: no such selection or setting; a value of another type.
    """
    kind = SELECTIONS[one_of(config.kind, SELECTIONS, "selection.kind")]
    settings = own_settings(kind, config.options, "selection", config.kind)
    _check_cells(config.options)
    return settings


def _check_cells(options: dict[str, Any]) -> None:
    cells = options.get("max_cells", 1)
    if isinstance(cells, int) and cells < 1:
        raise UserError(f"got {cells}", where="selection.max_cells", fix="a whole number of at least 1")


def asked_accountant(config: Config) -> str:
    """The accountant that the settings name, or auto where the plan is to choose.

    A run that books in a shared budget counts as the budget does: what adds up to the same ε may cost far more of the
    budget's own currency, and leave the runs after it less. Where the budget counts (ε, δ) alone, or δ is 0, nothing
    speaks against a choice.
    """
    setting, ledger = config.privacy.accountant, config.budget.ledger
    if setting != AUTO or ledger is None or config.privacy.delta == 0:
        return setting
    book = load_book(Path(ledger).expanduser())
    kind = (config.budget.accountant or USUAL) if book is None else book.filter.kind
    return setting if accountant_class(kind).currency is None else kind


def with_max_cells(config: SelectionConfig, changed: Callable[[int], int]) -> SelectionConfig:
    """The same selection with another selection.max_cells, where it has that setting."""
    selection = selection_of(config)
    if "max_cells" not in {f.name for f in dataclasses.fields(selection)}:
        return config
    return dataclasses.replace(config, options={**config.options, "max_cells": changed(selection.largest)})
