"""Settings → a selection, a synthesizer, an engine and the accountant."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from mechanisms.accounting.accountants.registered import accountant_class
from mechanisms.accounting.bookings import SETTING, load_book
from mechanisms.accounting.filters import USUAL
from mechanisms.public.errors import UserError, did_you_mean, one_of
from mechanisms.public.files import as_path
from mechanisms.public.members import need_extra
from mechanisms.public.noise_kinds import AUTO
from mechanisms.selection.base import Selection
from mechanisms.selection.selections import SELECTIONS
from mechanisms.sensitive.engines.engine import EngineSettings
from mechanisms.sensitive.engines.engines import ENGINES
from pipeline.help import OF_ONE
from pipeline.settings.config import Config, MethodConfig, SynthesisConfig
from pipeline.settings.own_settings import own_settings
from synthesis.contract import Synthesizer
from synthesis.synthesizers import SYNTHESIZERS


def selection_of(config: MethodConfig) -> Selection:
    """The selection with its own settings, checked.

    Raises:
        UserError: no such selection or setting; a value that a setting may not have.
    """
    kind = SELECTIONS[one_of(config.kind, SELECTIONS, "selection.kind")]
    return own_settings(kind, config.options, "selection", config.kind)


def engine_of(config: MethodConfig) -> EngineSettings:
    """The engine's settings, checked; it starts when it is opened.

    Raises:
        UserError: no such engine or setting; a value that a setting may not have.
    """
    kind = ENGINES[one_of(config.kind, ENGINES, "engine")]
    return own_settings(kind, config.options, "engine", config.kind)


def asked_accountant(config: Config) -> str:
    """The accountant that the settings name, or auto where the plan is to choose.

    A run that books in a shared budget counts as the budget does: what adds up to the same ε may cost far more of the
    budget's own currency, and leave the runs after it less. Where the budget counts (ε, δ) alone, or δ is 0, nothing
    speaks against a choice.
    """
    setting, ledger = config.privacy.accountant, config.budget.ledger
    if setting != AUTO or ledger is None or config.privacy.delta == 0:
        return setting
    book = load_book(as_path(ledger, SETTING))
    kind = (config.budget.accountant or USUAL) if book is None else book.filter.kind
    return setting if accountant_class(kind).currency is None else kind


def with_max_cells(config: MethodConfig, changed: Callable[[int], int]) -> MethodConfig:
    """The same selection with another selection.max_cells, where it has that setting."""
    selection = selection_of(config)
    if "max_cells" not in {f.name for f in dataclasses.fields(selection)}:
        return config
    return dataclasses.replace(config, options={**config.options, "max_cells": changed(selection.largest)})


def build_synthesizer(config: SynthesisConfig) -> Synthesizer:
    """The synthesizer and its settings."""
    kind = SYNTHESIZERS[one_of(config.kind, SYNTHESIZERS, "synthesis.kind")]
    names = [f.name for f in dataclasses.fields(kind)]
    for name in config.options:
        if name not in names:
            own = f"synthesis={config.kind}, which brings its own: {', '.join(names) or 'none'}"
            usual = "no such setting", did_you_mean(name, names) or own
            problem, fix = OF_ONE.get(f"synthesis.{name}", usual)  # of a choice that has it
            raise UserError(problem, where=f"synthesis.{name}", fix=fix)
    return kind(**config.options)


def usable_synthesizer(config: SynthesisConfig, spec: Synthesizer | None = None) -> Synthesizer:
    """The same, where rows are to be made: an optional library that it needs is there before anything is spent.

    Args:
        spec: where it is built already.
    """
    spec = spec or build_synthesizer(config)
    if spec.library:
        need_extra(spec.library, f"synthesis={config.kind}")
    return spec
