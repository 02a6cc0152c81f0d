"""The optional `synthesis=mbi`: the public Private-PGM library (mbi 2) on the same measurements, to compare."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mechanisms.public.arrays import Floats
from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.members import need_extra
from mechanisms.public.progress import Progress
from mechanisms.public.queries.query_matrices import Identity, QueryMatrix
from mechanisms.public.release import Measurements
from mechanisms.public.settings import setting
from synthesis.consistency.agree import estimate_total
from synthesis.consistency.residual_parts import completed
from synthesis.contract import Synthesizer
from synthesis.convergence import Synthesized
from synthesis.impossible import Zeros


@dataclass(frozen=True)
class MbiSpec(Synthesizer):
    """Settings of the library's mirror descent."""

    library: ClassVar[str] = "mbi"
    iterations: int = setting(1000, least=1)

    def make(
        self,
        measurements: Measurements,
        *,
        rows: int,
        rng: np.random.Generator,
        zeros: Zeros = (),
        progress: Progress | None = None,
    ) -> Synthesized:
        """Rows from the library's model of the measurements, which knows no zeros.

        Cost: most of it is compiling; a query matrix other than whole marginals is written out dense.

        Raises:
            UserError: the library is not installed.
        """
        mbi = _library()
        domain = measurements.domain
        mbi_measurements = [
            mbi.LinearMeasurement(a.values, a.clique, a.stddev, **_query(a.query))
            for a in completed(measurements).answers  # of a residual the library would hold every entry
        ]
        space = mbi.Domain(domain.names, domain.shape(domain.names))
        report = (lambda value: progress(0, 0, str(value))) if progress is not None else None
        total = max(float(estimate_total(measurements)), 1.0)
        model = mbi.estimation.MirrorDescent().estimate(
            space, mbi_measurements, known_total=total, iters=self.iterations, callback_fn=report
        )
        with _global_state(rng):
            data = model.synthetic_data(rows=max(rows, 1))
        columns = tuple(np.asarray(data.data[a.name])[:rows].astype(code_dtype(a.size)) for a in domain.attributes)
        return Synthesized(CodedTable(domain, columns))


@dataclass(frozen=True, eq=False)
class _Query:
    """A query matrix as the library takes it: a linear function of a factor. Dense: for small marginals."""

    matrix: Floats

    def __call__(self, factor: Any) -> Any:
        return self.matrix @ factor.datavector()

    def op_norm_sq(self) -> float:
        return float(np.linalg.norm(self.matrix, 2) ** 2)


def _library() -> Any:
    need_extra("mbi", "synthesis=mbi")
    jax = importlib.import_module("jax")  # set before the library looks
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_enable_compilation_cache", False)
    return importlib.import_module("mbi")


def _query(query: QueryMatrix) -> dict[str, Any]:
    if isinstance(query, Identity):
        return {}
    matrix = np.stack([query.answer(row) for row in np.eye(query.columns)], axis=1)
    return {"query": _Query(matrix)}


@contextmanager
def _global_state(rng: np.random.Generator) -> Iterator[None]:
    """The library samples with numpy's global state: it is set from `rng` for the while, and put back."""
    state = np.random.get_state()  # noqa: NPY002
    np.random.set_state(np.random.RandomState(int(rng.integers(2**32))).get_state())  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002
