"""What every synthesizer owes: settings that are checked, rows from the noisy measurements, and what they take."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from mechanisms.public.coded_table import CodedTable, Values, code_dtype
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.progress import Progress
from mechanisms.public.release import Measurements
from mechanisms.public.settings import BoundedSettings
from synthesis.convergence import FitRecord, Synthesized
from synthesis.impossible import Zeros
from synthesis.pgm.model_settings import ModelSettings

#: Rows that are made at a time, where they are drawn from a model and not changed to fit each other.
CHUNK_ROWS = 4_000_000


class RowModel(Protocol):
    """A distribution of rows, from which any number of them is drawn."""

    @property
    def fit(self) -> FitRecord | None:
        """How it came closer to the noisy answers; None where no record is kept."""
        ...

    @property
    def total(self) -> float:
        """The number of records that it stands for."""
        ...

    def rows(self, count: int, rng: np.random.Generator, progress: Progress | None = None) -> CodedTable:
        """So many rows."""
        ...

    def given(self, weights: Mapping[str, Values]) -> RowModel | None:
        """The distribution in which each row's probability is multiplied by the weights of its codes: exact.

        Args:
            weights: attribute → a weight of at least 0 for each of its codes.
        Returns:
            None where rows are changed after they are drawn, so that only made rows can be weighed.
        Raises:
            UserError: no row is possible.
        """
        ...


@dataclass(frozen=True)
class Synthesizer(BoundedSettings, ABC):
    """A frozen dataclass whose fields are the settings: int, float or str, which `setting` bounds; see docs/adding.md.

    Attributes:
        library: the optional library that it needs (a key of `EXTRAS`); empty for none.
        chunked: whether its rows are drawn from what `model` gives, so that any number of them is made in chunks.
    """

    settings_group: ClassVar[str] = "synthesis"
    library: ClassVar[str] = ""
    chunked: ClassVar[bool] = False

    @abstractmethod
    def make(
        self,
        measurements: Measurements,
        *,
        rows: int,
        rng: np.random.Generator,
        zeros: Zeros = (),
        progress: Progress | None = None,
    ) -> Synthesized:
        """Exactly `rows` rows over the measurements' domain; the same generator makes the same rows.

        Guarantee: post-processing; costs no privacy.
        Args:
            zeros: combinations that no row should have, as `check_zeros` gives them; rows that still do are mended.
        """

    def model(
        self, measurements: Measurements, *, zeros: Zeros = (), progress: Progress | None = None
    ) -> RowModel | None:
        """The distribution from which `make` draws its rows, fitted once; None: rows are changed until they fit.

        Guarantee: post-processing; costs no privacy.
        """
        return None

    def held(self, measurements: Measurements, fixed: Sequence[Clique] = ()) -> Measurements:
        """The answers that its rows follow: all, but where a model has no room for what was chosen after charges.

        Guarantee: post-processing; costs no privacy.
        Args:
            fixed: cliques of impossible combinations.
        """
        return measurements

    def warnings(self, domain: Domain, fixed: Sequence[Clique]) -> tuple[str, ...]:
        """What a person should know before anything is measured, a sentence each.

        Args:
            fixed: as of `held`.
        """
        return ()

    def streams(self, zeros: Zeros) -> bool:
        """Whether any number of rows is made in chunks, by what is known before anything is measured."""
        return self.chunked

    @property
    def max_model_cells(self) -> int | None:
        """The most cells of the graphical model that it fits; None: it fits none."""
        return None

    @property
    def model_settings(self) -> ModelSettings:
        """How a selection has its graphical model fitted beside this synthesizer."""
        return ModelSettings()

    def predicted_bytes(
        self, domain: Domain, cliques: Sequence[Clique], rows: int, *, fixed: Sequence[Clique] = (), grown: int = 0
    ) -> int:
        """An upper estimate of what synthesis holds: the rows, and seven arrays per cell of the marginals.

        Args:
            cliques: of the marginals that are measured.
            fixed: cliques of impossible combinations.
            grown: the cells that a graphical model may have in the end where more cliques are chosen later.
        Raises:
            UserError: more than the settings allow.
        """
        return row_bytes(domain, rows) + 7 * 8 * sum(domain.cells(c) for c in cliques)


def row_bytes(domain: Domain, rows: int) -> int:
    """What the rows take while they are made: the columns three times, and buffers of 60 bytes per row."""
    return rows * (3 * sum(code_dtype(a.size).itemsize for a in domain.attributes) + 60)
