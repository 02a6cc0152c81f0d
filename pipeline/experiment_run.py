"""The experiment that the settings name: what it books, and its run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from mechanisms.public.errors import UserError, did_you_mean
from mechanisms.public.members import need_extra
from pipeline.plugins.offers import offered_by
from pipeline.plugins.plugin_discovery import load_used
from pipeline.settings.experiment_list import EXPERIMENTS, described, running

if TYPE_CHECKING:
    from pipeline.budget.admission import PlannedRelease
    from pipeline.settings.config import Config


def _experiment_name(config: Config) -> str:
    """The name of the experiment that the settings ask for."""
    kind = config.experiment.kind
    if config.accept or config.accept_tries != 1:
        fix = "a run without experiment= and smoke=; or accept=[]"
        raise UserError("an experiment accepts all that it makes", where="accept", fix=fix)
    if config.data.units.files:
        raise UserError(
            "an experiment reads one table", where="data.units", fix="join both before; data.units.path=null"
        )
    if kind is None:
        raise UserError("only experiments have a small version", where="smoke", fix="experiment=mgd_table1 smoke=true")
    if kind not in EXPERIMENTS:
        fix = f"{did_you_mean(kind, EXPERIMENTS)} one of:\n{described()}".strip()
        raise UserError(f"no experiment {kind!r}", where="experiment.kind", fix=fix)
    return kind


def planned_releases(config: Config, root: Path) -> tuple[PlannedRelease, ...]:
    """What the experiment that the settings name books in a shared ledger; empty where none is set.

    Raises:
        UserError: no such experiment, or settings that it does not know; what the experiment itself refuses.
    """
    planned: tuple[PlannedRelease, ...] = EXPERIMENTS[_experiment_name(config)].releases(config, root)
    return planned


def run_experiment(config: Config, root: Path, hydra_files: Mapping[str, str]) -> str:
    """Run the experiment that the settings name; returns what a person should read at the end.

    Raises:
        UserError: no such experiment, or settings that it does not know; what the experiment itself refuses.
    """
    load_used(asdict(config))
    kind = _experiment_name(config)
    if ("experiment", kind) not in offered_by:
        need_extra("matplotlib", f"experiment={kind}")
    running.append(kind)
    try:
        return EXPERIMENTS[kind].run_and_tell(config, root, hydra_files)
    finally:
        running.remove(kind)
