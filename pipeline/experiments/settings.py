"""The settings of an experiment, and their checks."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from mechanisms.public.errors import UserError


@dataclass
class ExperimentConfig:
    """`experiment.*`; the values come from conf/experiment."""

    kind: str | None = None
    name: str | None = None
    columns: list[str] | None = None
    dpsyn: list[float] = field(default_factory=list)
    laplace: list[float] = field(default_factory=list)
    samples: list[float] = field(default_factory=list)
    max_records: int = 2
    clip: str = "truncate"
    sensitivity: int = 20
    queries: int = 300
    share: float = 0.3
    query_seed: int = 0
    sample_seed: int = 0
    delta: float = 2.0
    epsilons: list[float] = field(default_factory=list)
    metrics: list[str] = field(default_factory=list)
    roles: dict[str, str] = field(default_factory=dict)
    rows: int = 20_000
    per_subject: int = 50
    holdout: float = 0.0
    floors: bool = True
    source: str = ""
    says: str = ""
    reported: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class RowSpec:
    """One row of the table.

    Attributes:
        method: dpsyn, lap or sample.
        value: ε, or the share of a sample.
    """

    method: str
    value: float

    @property
    def name(self) -> str:
        return f"{self.method}-{self.value:g}"


def rows_of(settings: ExperimentConfig) -> list[RowSpec]:
    """The rows in the paper's order.

    Raises:
        UserError: an impossible value, one that is given twice, or no rows at all.
    """
    rows = []
    for setting, method, top, what in (
        ("dpsyn", "dpsyn", math.inf, "ε above 0"),
        ("laplace", "lap", math.inf, "ε above 0"),
        ("samples", "sample", 1.0, "shares above 0, at most 1"),
    ):
        values = [float(v) for v in getattr(settings, setting)]
        wrong = [v for v in values if not (0 < v <= top and math.isfinite(v))]
        if wrong or len({f"{v:g}" for v in values}) < len(values):
            raise UserError(f"got {values}", where=f"experiment.{setting}", fix=f"a list of {what}, each once")
        rows += [RowSpec(method, v) for v in values]
    if not rows:
        raise UserError("no rows", where="experiment", fix="at least one of experiment.dpsyn, .laplace, .samples")
    for setting in ("max_records", "sensitivity"):
        if getattr(settings, setting) < 1:
            fix = "a whole number of at least 1"
            raise UserError(f"got {getattr(settings, setting)}", where=f"experiment.{setting}", fix=fix)
    if settings.sample_seed < 0:
        raise UserError(f"got {settings.sample_seed}", where="experiment.sample_seed", fix="a number of at least 0")
    if not 0 <= settings.delta < math.inf:
        raise UserError(f"got {settings.delta}", where="experiment.delta", fix="a number of records of at least 0")
    return rows
