"""Settings → a selection, and the facts that it decides from."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

from mechanisms.accounting.accountants.registered import accountant_class
from mechanisms.accounting.bookings import load_book
from mechanisms.accounting.filters import USUAL
from mechanisms.public.errors import one_of
from mechanisms.public.noise_kinds import AUTO
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.units import Neighbouring
from mechanisms.selection.auto import AutoSettings
from mechanisms.selection.base import Facts, Selection
from mechanisms.selection.selections import SELECTIONS
from pipeline.settings.config import Config, SelectionConfig
from pipeline.settings.own_settings import own_settings


def selection_of(config: SelectionConfig) -> Selection:
    """The selection with its own settings, checked.

    Raises:
        UserError: no such selection or setting; a value that a setting may not have.
    """
    kind = SELECTIONS[one_of(config.kind, SELECTIONS, "selection.kind")]
    return own_settings(kind, config.options, "selection", config.kind)


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


def build_facts(config: Config, schema: Schema, *, max_records: int) -> Facts:
    """What a selection decides from before any row is read."""
    privacy = config.privacy
    return Facts(
        schema=schema,
        epsilon=privacy.epsilon,
        delta=privacy.delta,
        accountant=asked_accountant(config),
        mechanism=config.mechanism.kind,
        neighbouring=Neighbouring(privacy.neighbouring),
        max_records=max_records,
    )


def replaced_choice(config: Config, schema: Schema, *, max_records: int) -> tuple[str, ...]:
    """Where the accountant leaves the default selection no choices, a sentence that says so."""
    selection = selection_of(config.selection)
    asked = [config.selection.options.get(name) for name in ("marginals", "closure", "k", "weights", "merge")]
    if not isinstance(selection, AutoSettings) or any(value is not None for value in asked):
        return ()
    if selection.given(build_facts(config, schema, max_records=max_records)) is None:
        return ()
    return (
        f"privacy.accountant={asked_accountant(config)} with mechanism={config.mechanism.kind} cannot count choices "
        "that follow from answers: all pairs are measured at once, as in selection=pairs; privacy.accountant=gdp can",
    )


def with_max_cells(config: SelectionConfig, changed: Callable[[int], int]) -> SelectionConfig:
    """The same selection with another selection.max_cells, where it has that setting."""
    selection = selection_of(config)
    if "max_cells" not in {f.name for f in dataclasses.fields(selection)}:
        return config
    return dataclasses.replace(config, options={**config.options, "max_cells": changed(selection.largest)})
