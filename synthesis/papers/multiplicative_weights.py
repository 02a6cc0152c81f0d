"""MWEM's two estimates of a whole table from noisy marginals (Hardt et al. 2012; Li et al. 2021b, section 6.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechanisms.public.arrays import Floats
from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.domain import Domain
from mechanisms.public.errors import UserError
from mechanisms.public.progress import Progress
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements, NoisyMarginal
from mechanisms.public.settings import setting
from synthesis.consistency.agree import estimate_total
from synthesis.consistency.residual_parts import completed
from synthesis.contract import Synthesizer
from synthesis.convergence import Synthesized
from synthesis.impossible import Zeros
from synthesis.rounding import codes_of

#: Tables of more cells are refused: every one of them is held and changed.
MAX_CELLS = 5_000_000


@dataclass(frozen=True)
class WeightsSpec(Synthesizer):
    """Settings.

    Attributes:
        version: basic: each answer, in the order measured, changes the table once, and the mean of all tables (with the
            uniform one at first) counts, as the theorem on MWEM needs; improved: after each answer all answers so far
            are gone through `iterations` times, and the last table counts.
        iterations: of the improved version.
    """

    version: str = setting("improved", choices=("basic", "improved"))
    iterations: int = setting(100, least=1)

    def make(
        self,
        measurements: Measurements,
        *,
        rows: int,
        rng: np.random.Generator,
        zeros: Zeros = (),
        progress: Progress | None = None,
    ) -> Synthesized:
        """Rows drawn from the estimated table; only whole marginals are used.

        Raises:
            UserError: a domain of more than MAX_CELLS cells.
        """
        domain = measurements.domain
        table = weights_table(measurements, self)
        codes = np.unravel_index(codes_of(table.ravel(), rows, rng), table.shape)
        columns = tuple(c.astype(code_dtype(a.size)) for a, c in zip(domain.attributes, codes, strict=True))
        return Synthesized(CodedTable(domain, columns))


def weights_table(measurements: Measurements, spec: WeightsSpec) -> Floats:
    """The estimate of the whole table, in records, shaped by the attributes' sizes; from the uniform one.

    Guarantee: post-processing; costs no privacy.
    Raises:
        UserError: a domain of more than MAX_CELLS cells.
    """
    domain, total = measurements.domain, max(estimate_total(measurements), 1.0)
    if domain.cells(domain.names) > MAX_CELLS:
        fix = f"fewer columns: their domain may have {MAX_CELLS:,} cells"
        raise UserError("multiplicative weights hold every cell of the whole table", where="synthesis", fix=fix)
    answers = [a for a in completed(measurements).answers if isinstance(a.query, Identity)]
    shape = domain.shape(domain.names)
    table = np.full(shape, total / max(domain.cells(domain.names), 1))
    tables = table.copy()
    for place, answer in enumerate(answers):
        if spec.version == "basic":
            table = updated(domain, table, answer, total)
            tables += table
            continue
        for _ in range(spec.iterations):
            for earlier in answers[: place + 1]:
                table = updated(domain, table, earlier, total)
    return tables / (len(answers) + 1) if spec.version == "basic" else table


def updated(domain: Domain, table: Floats, answer: NoisyMarginal, total: float) -> Floats:
    """One update by a marginal: A(x) · exp(q(x) (m − q(A)) / 2n) for each of its cells q, scaled to n records."""
    axes = domain.axes(answer.clique)
    others = tuple(i for i in range(table.ndim) if i not in axes)
    now = table.sum(axis=others)
    factor = np.exp((answer.values.reshape(now.shape) - now) / (2 * total))
    table = table * np.expand_dims(factor, others)
    return np.asarray(table * (total / table.sum()), np.float64)
