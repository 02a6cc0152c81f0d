"""Query matrices over a flattened marginal: answer, transpose, column norms and column distances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class QueryMatrix(Protocol):
    """A linear map from a flattened marginal (``columns`` cells) to ``rows`` answers."""

    @property
    def rows(self) -> int: ...

    @property
    def columns(self) -> int: ...

    def answer(self, marginal: NDArray[np.float64]) -> NDArray[np.float64]:
        """Q · marginal."""
        ...

    def transpose(self, answers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Qᵀ · answers."""
        ...


@dataclass(frozen=True)
class Identity:
    """Every cell of a marginal, once."""

    cells: int

    @property
    def rows(self) -> int:
        return self.cells

    @property
    def columns(self) -> int:
        return self.cells

    def answer(self, marginal: NDArray[np.float64]) -> NDArray[np.float64]:
        return marginal

    def transpose(self, answers: NDArray[np.float64]) -> NDArray[np.float64]:
        return answers
