"""Rows from one-way marginals alone: the baseline that keeps no correlation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mechanisms.public.arrays import Floats
from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.progress import Progress
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements
from synthesis.consistency.agree import ConsistentTargets, consistent
from synthesis.consistency.merged_values import merged_values
from synthesis.consistency.projection import product
from synthesis.contract import ByTargets
from synthesis.convergence import Synthesized
from synthesis.impossible import Zeros
from synthesis.rounding import codes_of


@dataclass(frozen=True)
class IndependentSpec(ByTargets):
    """Rows from one-way marginals alone."""

    chunked: ClassVar[bool] = True

    def follow(
        self, targets: ConsistentTargets, *, rows: int, rng: np.random.Generator, progress: Progress | None = None
    ) -> Synthesized:
        """Independent columns."""
        return Synthesized(independent_rows(targets, rows=rows, rng=rng))

    def streams(self, zeros: Zeros) -> bool:
        """Unless rows are mended afterwards."""
        return not zeros

    def model(
        self, measurements: Measurements, *, zeros: Zeros = (), progress: Progress | None = None
    ) -> IndependentColumns | None:
        """The columns; None where rows are mended afterwards, or merged values spread out."""
        if zeros or merged_values(measurements):
            return None
        return _columns(consistent(measurements))


@dataclass(frozen=True, eq=False)
class IndependentColumns:
    """A distribution of independent columns.

    Attributes:
        domain: of the rows.
        sides: records per code of each attribute, none of them negative.
        total: the number of records.
    """

    domain: Domain
    sides: Mapping[str, Floats]
    total: float

    @property
    def fit(self) -> None:
        """They follow one-way marginals: nothing comes closer step by step."""
        return

    def rows(self, count: int, rng: np.random.Generator, progress: Progress | None = None) -> CodedTable:
        """So many rows; each column follows its marginal."""
        columns = tuple(
            codes_of(self.sides[a.name], count, rng).astype(code_dtype(a.size)) for a in self.domain.attributes
        )
        return CodedTable(self.domain, columns)

    def given(self, weights: Mapping[str, Floats]) -> IndependentColumns:
        """The columns with their codes weighed: exact.

        Raises:
            UserError: no row is possible.
        """
        sides, total = dict(self.sides), self.total
        for name, weight in weights.items():
            before = sides[name] if self.sides[name].any() else np.ones_like(weight)
            sides[name] = before * weight
            if not sides[name].any():
                fix = "a wider condition: by the measured marginals it cannot be"
                raise UserError(f"no row satisfies the condition on {name!r}", where="where", fix=fix)
            total *= float(sides[name].sum() / before.sum())
        return IndependentColumns(self.domain, sides, total)


def independent_rows(targets: ConsistentTargets, *, rows: int, rng: np.random.Generator) -> CodedTable:
    """`rows` rows whose columns follow their one-way marginals, independent of each other.

    Cost: rows × columns.
    """
    return _columns(targets).rows(rows, rng)


def _columns(targets: ConsistentTargets) -> IndependentColumns:
    """The one-way marginals of the targets."""
    sides = {a.name: targets.one_way(a.name) for a in targets.domain.attributes}
    return IndependentColumns(targets.domain, sides, targets.total)


def independent_marginals(measurements: Measurements) -> Callable[[Clique], Floats]:
    """Any marginal as the product of the whole one-way marginals measured, in records, flattened in C order.

    Guarantee: post-processing; costs no privacy.
    Args:
        measurements: answers to other queries are passed over; a column without an answer counts as uniform.
    """
    whole = tuple(a for a in measurements.answers if len(a.clique) == 1 and isinstance(a.query, Identity))
    columns = _columns(consistent(Measurements(measurements.domain, whole, measurements.public_total)))

    def marginal(clique: Clique) -> Floats:
        if not columns.total > 0:
            return np.zeros(columns.domain.cells(clique))
        return product([columns.sides[n] for n in clique], columns.total).ravel()

    return marginal
