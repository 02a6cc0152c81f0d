"""Experiments: published tables and figures again, on our own data, with one command each (`experiment=NAME`)."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from mechanisms.public.errors import UserError, did_you_mean

if TYPE_CHECKING:
    from pipeline.config import Config

#: Experiment → the module that runs it; loaded only when it is asked for, since plotting is slow to load.
EXPERIMENTS = {"mgd_table1": "pipeline.experiments.mgd_table1"}


def known(config: Config) -> str:
    """The name of the experiment that the settings ask for.

    Raises:
        UserError: no experiment of that name, or `smoke` without one.
    """
    kind = config.experiment.kind
    if kind is None:
        raise UserError("only experiments have a small version", where="smoke", fix="experiment=mgd_table1 smoke=true")
    if kind not in EXPERIMENTS:
        fix = f"{did_you_mean(kind, EXPERIMENTS)} one of: {', '.join(EXPERIMENTS)}".strip()
        raise UserError(f"no experiment {kind!r}", where="experiment.kind", fix=fix)
    return kind


def run_experiment(config: Config, root: Path, hydra_files: Mapping[str, str]) -> str:
    """Run the experiment that the settings name; returns what a person should read at the end.

    Raises:
        UserError: as of `known` and of the experiment itself.
    """
    said: str = import_module(EXPERIMENTS[known(config)]).run_and_tell(config, root, hydra_files)
    return said
