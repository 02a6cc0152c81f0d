"""What every synthesizer owes: settings that are checked, rows from the noisy measurements, and what they take."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np

from mechanisms.public.arrays import Floats
from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.domain import Attribute, Clique, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.progress import Progress
from mechanisms.public.release import Measurements
from mechanisms.public.settings import BoundedSettings
from synthesis.consistency.agree import ConsistentTargets, consistent, default_rows
from synthesis.consistency.merged_values import Groups, compressed, expanded, merged_values, one_way_counts, rare_zeros
from synthesis.consistency.residual_parts import completed
from synthesis.convergence import Convergence, FitRecord, Synthesized
from synthesis.impossible import Zeros, check_zeros, mended
from synthesis.pgm.graphical_model import ModelSettings

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

    def given(self, weights: Mapping[str, Floats]) -> RowModel | None:
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


@dataclass(frozen=True)
class ByTargets(Synthesizer):
    """Rows by way of consistent marginals (Li et al. 2021b, section 5.3)."""

    #: Below which noisy counts values may never occur: in standard deviations, and in records; see `rare_zeros`.
    rare, floor = 0.0, 0.0

    def make(
        self,
        measurements: Measurements,
        *,
        rows: int,
        rng: np.random.Generator,
        zeros: Zeros = (),
        progress: Progress | None = None,
    ) -> Synthesized:
        """Rows that follow the consistent marginals; columns that a rule names keep their values apart."""
        groups = merged_values(measurements, apart={name for clique, _ in zeros for name in clique})
        reduced = compressed(completed(measurements), groups) if groups else measurements
        never = rare_zeros(measurements, groups, rare=self.rare, floor=self.floor)
        targets = consistent(reduced, zeros=[*zeros, *never])
        synthesized = (self.over(groups) if groups else self).follow(targets, rows=rows, rng=rng, progress=progress)
        counts = one_way_counts(measurements, groups)
        return replace(synthesized, table=expanded(synthesized.table, measurements.domain, groups, counts, rng))

    def over(self, groups: Groups) -> ByTargets:
        """The same settings where some values are merged."""
        return self

    @abstractmethod
    def follow(
        self, targets: ConsistentTargets, *, rows: int, rng: np.random.Generator, progress: Progress | None = None
    ) -> Synthesized:
        """So many rows over the domain of the targets."""


def rows_of_model(
    measurements: Measurements,
    model: RowModel,
    *,
    rows: int | None,
    rng: np.random.Generator,
    zeros: Zeros = (),
    progress: Progress | None = None,
) -> CodedTable:
    """Rows of a model that was fitted before (`Synthesizer.model`), as `synthesize` makes them of the measurements.

    Guarantee: post-processing; costs no privacy.
    """
    count = default_rows(measurements) if rows is None else rows
    table = _as_asked(model.rows(count, rng, progress), model, measurements, count)
    return mended(table, check_zeros(measurements.domain, zeros), rng)


def synthesize(
    measurements: Measurements,
    synthesizer: Synthesizer,
    *,
    rows: int | None,
    rng: np.random.Generator,
    zeros: Zeros = (),
    progress: Progress | None = None,
) -> Synthesized:
    """Synthetic rows from noisy measurements, and the record of their convergence where one is kept.

    Guarantee: post-processing; costs no privacy. No row has an impossible combination, whatever the synthesizer made.
    Args:
        rows: how many; None: the estimated total, rounded.
        zeros: combinations that no row may have.
    Raises:
        UserError: a negative number of rows; zeros that do not fit the domain or leave no row possible.
    """
    if rows is not None and rows < 0:
        raise UserError(f"got {rows}", where="synthesis.rows", fix="a whole number of at least 0, or null")
    count = default_rows(measurements) if rows is None else rows
    impossible = check_zeros(measurements.domain, zeros)
    synthesized = synthesizer.make(measurements, rows=count, rng=rng, zeros=impossible, progress=progress)
    whole = isinstance(synthesized, Synthesized)
    table = _as_asked(synthesized.table if whole else None, synthesizer, measurements, count)
    for name, kind in (("record", Convergence), ("fit", FitRecord)):
        if not isinstance(record := getattr(synthesized, name), kind | None):
            problem = f"{type(synthesizer).__name__} made a {name} of {type(record).__name__}"
            raise UserError(problem, where="synthesis.name", fix=f"{name}=None, or a {kind.__name__}")
    return replace(synthesized, table=mended(table, impossible, rng))


def _as_asked(table: CodedTable | None, maker: object, measurements: Measurements, count: int) -> CodedTable:
    """The table, if it has as many rows, the columns and codes that were asked for: a plugin may make others.

    Raises:
        UserError: it has not; compiled loops would read and write beyond their arrays by a code that is none.
    """
    if not isinstance(table, CodedTable):
        problem, fix = f"{type(maker).__name__} made no rows of codes", "Synthesized(table), with a CodedTable"
        raise UserError(problem, where="synthesis.name", fix=fix)
    problem, names = "", ", ".join(table.domain.names)[:80]
    if table.rows != count or table.domain != measurements.domain or table.weighted:
        problem = f"{table.rows:,} rows of {names}{' with weights' * table.weighted}"
    elif wrong := [a.name for a, c in zip(table.domain.attributes, table.columns, strict=True) if not _codes(c, a)]:
        problem = f"a column {wrong[0]!r} that is no array of whole numbers from 0 to {table.domain[wrong[0]].size - 1}"
    if problem:
        fix = f"a synthesizer that makes {count:,} rows of the domain"
        raise UserError(f"{type(maker).__name__} made {problem}", where="synthesis.name", fix=fix)
    return table


def _codes(column: object, attribute: Attribute) -> bool:
    if not isinstance(column, np.ndarray) or column.ndim != 1 or column.dtype.kind not in "ui":
        return False
    return not column.size or bool(column.min() >= 0 and column.max() < attribute.size)
