"""Settings of the graphical model: of the synthesizer `pgm`, and of the models that a selection has fitted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mechanisms.public.settings import BoundedSettings, setting


@dataclass(frozen=True)
class ModelSettings(BoundedSettings):
    """Settings of the graphical model.

    Attributes:
        iterations: steps of the estimation, at most.
        stop: how closely to fit. holdout: as closely as answers with independent noise, split off, are met better;
            floor: to the noise floor, ½ per answer, which the truth itself is expected to have; least: until the loss
            no longer falls, which fits noise too.
        tolerance: stop when ten steps together lower the loss by less than this share.
        optimizer: how the potentials are found: mirror (accelerated mirror descent) or lbfgs.
        max_cells: the largest number of cells of the junction tree.
    """

    settings_group: ClassVar[str] = "synthesis"
    iterations: int = setting(1000, least=0)
    stop: str = setting("holdout", choices=("holdout", "floor", "least"))
    tolerance: float = setting(1e-6, least=0)
    optimizer: str = setting("mirror", choices=("mirror", "lbfgs"))
    max_cells: int = setting(10_000_000, least=1)
