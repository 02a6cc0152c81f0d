"""Settings of the graphical model: of the synthesizer `pgm`, and of the models that a selection has fitted."""

from __future__ import annotations

import math
from dataclasses import dataclass

from synthesis.setting_checks import AT_LEAST_NONE, AT_LEAST_ONE, NOT_NEGATIVE, check_numbers, check_words

#: The words of the settings; `OPTIMIZERS` in `graphical_model` holds what they name.
WORDS = {"optimizer": ("mirror", "lbfgs"), "stop": ("holdout", "floor", "least")}


@dataclass(frozen=True)
class ModelSettings:
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

    iterations: int = 1000
    stop: str = "holdout"
    tolerance: float = 1e-6
    optimizer: str = "mirror"
    max_cells: int = 10_000_000

    def __post_init__(self) -> None:
        check_numbers(
            self,
            ("iterations", self.iterations >= 0, AT_LEAST_NONE),
            ("tolerance", 0 <= self.tolerance < math.inf, NOT_NEGATIVE),
            ("max_cells", self.max_cells >= 1, AT_LEAST_ONE),
        )
        check_words(self, WORDS)
