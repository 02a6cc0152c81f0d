"""Settings of the graphical model: of the synthesizer `pgm`, and of the models that a selection has fitted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mechanisms.public.settings import BoundedSettings, setting


@dataclass(frozen=True)
class ModelSettings(BoundedSettings):
    """Settings of the graphical model; conf/synthesis/pgm.yaml says what each is.

    Where `stop` is holdout, it fits as closely as answers with independent noise, split off, are met better.
    """

    settings_group: ClassVar[str] = "synthesis"
    iterations: int = setting(1000, least=0)
    stop: str = setting("holdout", choices=("holdout", "floor", "least"))
    tolerance: float = setting(1e-6, least=0)
    optimizer: str = setting("mirror", choices=("mirror", "lbfgs"))
    max_cells: int = setting(10_000_000, least=1)
