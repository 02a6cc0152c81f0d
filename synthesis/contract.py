"""What a synthesizer that lives in one file owes: settings that are checked, and rows from the noisy measurements."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.release import Measurements

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Synthesizer(ABC):
    """A frozen dataclass whose fields are the settings (int, float or str); docs/adding.md says how to add one.

    Attributes:
        library: the optional library that it needs (a key of `EXTRAS`); empty for none.
    """

    library: ClassVar[str] = ""
    max_model_cells: ClassVar[int | None] = None  # it fits no graphical model

    @abstractmethod
    def make(
        self, measurements: Measurements, *, rows: int, rng: np.random.Generator, progress: Progress | None = None
    ) -> CodedTable:
        """Exactly `rows` rows over the measurements' domain; the same generator makes the same rows.

        Guarantee: post-processing; costs no privacy.
        """
