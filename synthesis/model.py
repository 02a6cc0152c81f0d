"""From noisy measurements to synthetic rows: one function, one match over the synthesizers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.release import Measurements
from synthesis.consistency.agree import consistent
from synthesis.consistency.merged_values import compressed, expanded, merged_values
from synthesis.consistency.total import default_rows
from synthesis.contract import Progress, Synthesizer
from synthesis.convergence import FitRecord, Made
from synthesis.gum.gradual_update import gum_rows
from synthesis.gum.gum_settings import GumSpec, McfSpec
from synthesis.impossible import Zeros, check_zeros, mended
from synthesis.independent import independent_rows
from synthesis.maxent import MaxentSpec, fit_maxent
from synthesis.mbi_extra import MbiSpec
from synthesis.pgm.graphical_model import PgmSpec, fit_model
from synthesis.pgm.junction_tree import junction_tree


@dataclass(frozen=True)
class IndependentSpec:
    """Rows from one-way marginals alone."""

    max_model_cells: ClassVar[None] = None


SynthesizerSpec = GumSpec | McfSpec | PgmSpec | MaxentSpec | IndependentSpec | Synthesizer

#: The synthesizers by name; a contract test runs over all of them.
SYNTHESIZERS: dict[str, type[SynthesizerSpec]] = {
    "gum": GumSpec,
    "pgm": PgmSpec,
    "maxent": MaxentSpec,
    "mcf": McfSpec,
    "independent": IndependentSpec,
    "mbi": MbiSpec,
}


def graphical_settings(spec: SynthesizerSpec) -> PgmSpec:
    """Settings of a graphical model beside this synthesizer: its own, if it is one, else the defaults."""
    return spec if isinstance(spec, PgmSpec) else PgmSpec()


def synthesize(
    measurements: Measurements,
    spec: SynthesizerSpec,
    *,
    rows: int | None,
    rng: np.random.Generator,
    zeros: Zeros = (),
    progress: Progress | None = None,
) -> CodedTable:
    """Synthetic rows from noisy measurements; see `synthesize_recorded`."""
    return synthesize_recorded(measurements, spec, rows=rows, rng=rng, zeros=zeros, progress=progress).table


def synthesize_recorded(
    measurements: Measurements,
    spec: SynthesizerSpec,
    *,
    rows: int | None,
    rng: np.random.Generator,
    zeros: Zeros = (),
    progress: Progress | None = None,
) -> Made:
    """Synthetic rows from noisy measurements, and the record of their convergence where one is kept.

    Guarantee: post-processing; costs no privacy.
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
    match spec:
        case PgmSpec():
            model = fit_model(measurements, spec, impossible=impossible, progress=progress)
            said = model.report
            fit = FitRecord(said.losses, said.floor, said.gap, said.reason)
            return Made(mended(model.rows(count, rng), impossible, rng), fit=fit)
        case Synthesizer():
            made = spec.make(measurements, rows=count, rng=rng, progress=progress)
            return Made(mended(made, impossible, rng))
        case MaxentSpec():
            answered = fit_maxent(measurements, spec, zeros=impossible)
            return Made(answered.rows(count, rng, progress))
        case GumSpec() | McfSpec() | IndependentSpec():
            return _by_targets(measurements, spec, count, rng, impossible, progress)


def _by_targets(
    measurements: Measurements,
    spec: GumSpec | McfSpec | IndependentSpec,
    rows: int,
    rng: np.random.Generator,
    impossible: Zeros,
    progress: Progress | None,
) -> Made:
    """Rows by way of consistent marginals; over merged values first where answers merge some (Li et al. 2021b, 5.3)."""
    groups = {} if impossible else merged_values(measurements)
    known = compressed(measurements, groups) if groups else measurements
    if isinstance(spec, IndependentSpec):
        made = Made(mended(independent_rows(consistent(known, zeros=impossible), rows=rows, rng=rng), impossible, rng))
    else:
        targets = consistent(known, nonnegative=spec.nonnegative, zeros=impossible)
        made = gum_rows(targets, spec, rows=rows, rng=rng, progress=progress)
    return replace(made, table=expanded(made.table, measurements, groups, rng)) if groups else made


def predict_memory_bytes(
    domain: Domain,
    cliques: Sequence[Clique],
    rows: int,
    spec: SynthesizerSpec | None = None,
    *,
    fixed: Sequence[Clique] = (),
    grown: int = 0,
) -> int:
    """An upper estimate of what synthesis holds: the columns three times, buffers per row, seven arrays per cell.

    A graphical model holds fourteen arrays per cell of its junction tree, and three per cell measured.

    Args:
        fixed: cliques of impossible combinations, which a graphical model holds beside the others.
        grown: the cells that a graphical model may have in the end where more cliques are chosen later.
    Raises:
        UserError: a graphical model with more cells than its spec allows, naming marginals to drop.
    """
    per_row = 3 * sum(code_dtype(a.size).itemsize for a in domain.attributes) + 60
    measured = sum(domain.cells(c) for c in cliques)
    if isinstance(spec, PgmSpec):
        tree = junction_tree(domain, cliques, fixed=fixed, max_cells=spec.max_cells)
        return rows * per_row + 14 * 8 * max(tree.cells, grown) + 3 * 8 * measured
    return rows * per_row + 7 * 8 * measured
