"""From noisy measurements to synthetic rows, by any synthesizer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute
from mechanisms.public.errors import UserError
from mechanisms.public.progress import Progress
from mechanisms.public.release import Measurements
from synthesis.consistency.total import default_rows
from synthesis.contract import RowModel, Synthesizer
from synthesis.convergence import Synthesized
from synthesis.impossible import Zeros, check_zeros, mended


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
    table = _as_asked(getattr(synthesized, "table", None), synthesizer, measurements, count)
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
