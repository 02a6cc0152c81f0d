"""From noisy measurements to synthetic rows: one function, one match over the synthesizers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.release import Measurements
from mechanisms.public.table import CodedTable, code_dtype
from mechanisms.public.zeros import Zeros
from synthesis.consistency import consistent
from synthesis.gum import GumSpec, gum_rows
from synthesis.independent import independent_rows
from synthesis.mbi_extra import MbiSpec, mbi_rows
from synthesis.merged import compressed, expanded, merged_values
from synthesis.pgm.junction_tree import junction_tree
from synthesis.pgm.model import PgmSpec, fit_model
from synthesis.total import default_rows

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class IndependentSpec:
    """Rows from one-way marginals alone."""


SynthesizerSpec = GumSpec | PgmSpec | IndependentSpec | MbiSpec

#: The synthesizers by name; a contract test runs over all of them.
SYNTHESIZERS: dict[str, type[GumSpec] | type[PgmSpec] | type[IndependentSpec] | type[MbiSpec]] = {
    "gum": GumSpec,
    "pgm": PgmSpec,
    "independent": IndependentSpec,
    "mbi": MbiSpec,
}


def synthesize(
    measurements: Measurements,
    spec: SynthesizerSpec,
    *,
    rows: int | None,
    rng: np.random.Generator,
    zeros: Sequence[Zeros] = (),
    progress: Progress | None = None,
) -> CodedTable:
    """Synthetic rows from noisy measurements.

    Guarantee: post-processing; costs no privacy.
    Args:
        rows: how many; None: the estimated total, rounded.
        zeros: combinations that cannot occur; `pgm` gives them probability 0 (for the others, `undo` mends the rows).
    Raises:
        UserError: a negative number of rows.
    """
    if rows is not None and rows < 0:
        raise UserError(f"got {rows}", where="synthesis.rows", fix="a whole number of at least 0, or null")
    count = default_rows(measurements) if rows is None else rows
    match spec:
        case PgmSpec():
            return fit_model(measurements, spec, impossible=zeros, progress=progress).rows(count, rng)
        case MbiSpec():
            return mbi_rows(measurements, spec, rows=count, rng=rng, progress=progress)
        case GumSpec() | IndependentSpec():
            groups = merged_values(measurements)
            targets = consistent(compressed(measurements, groups) if groups else measurements)
            if isinstance(spec, GumSpec):
                made = gum_rows(targets, spec, rows=count, rng=rng, progress=progress)
            else:
                made = independent_rows(targets, rows=count, rng=rng)
            return expanded(made, measurements, groups, rng) if groups else made


def predict_memory_bytes(
    domain: Domain, cliques: Sequence[Clique], rows: int, spec: SynthesizerSpec | None = None
) -> int:
    """An upper estimate of what synthesis holds: the columns three times, buffers per row, seven arrays per cell.

    A graphical model holds fourteen arrays per cell of its junction tree, and three per cell measured.

    Raises:
        UserError: a graphical model with more cells than its spec allows, naming marginals to drop.
    """
    per_row = 3 * sum(code_dtype(a.size).itemsize for a in domain.attributes) + 40
    measured = sum(domain.cells(c) for c in cliques)
    if isinstance(spec, PgmSpec):
        tree = junction_tree(domain, cliques, max_cells=spec.max_cells)
        return rows * per_row + 14 * 8 * tree.cells + 3 * 8 * measured
    return rows * per_row + 7 * 8 * measured
