"""The settings of an experiment, and their checks."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any

from mechanisms.public.errors import UserError, did_you_mean


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
    variants: list[dict[str, Any]] = field(default_factory=list)
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


@dataclass(frozen=True)
class Variant:
    """One release of a challenge.

    Attributes:
        epsilon: ε.
        unit, max_records: in place of privacy.unit and privacy.max_records; None for those.
    """

    epsilon: float
    unit: str | None = None
    max_records: int | None = None

    @property
    def name(self) -> str:
        """The name of its folder."""
        unit = "" if self.unit is None else f"-{'record' if self.unit == 'record' else 'unit'}"
        return f"epsilon-{self.epsilon:g}{unit}{'' if self.max_records is None else f'-{self.max_records}'}"

    @property
    def label(self) -> str:
        """What tells it apart beside ε, in words."""
        if self.unit is not None or self.max_records is not None:
            unit = [] if self.unit is None else [f"unit {self.unit}"]
            return ", ".join(unit + ([] if self.max_records is None else [f"C = {self.max_records}"]))
        return ""


def variants_of(settings: ExperimentConfig) -> tuple[Variant, ...]:
    """The releases of a challenge: one per ε, or those that `variants` lists.

    Raises:
        UserError: neither or both, unknown fields, values out of range, or a release that is listed twice.
    """
    if settings.variants and settings.epsilons:
        fix = "one of the two: experiment.epsilons=[] or experiment.variants=[]"
        raise UserError("both are set", where="experiment.epsilons, experiment.variants", fix=fix)
    if not settings.variants:
        if not settings.epsilons or any(not 0 < e < math.inf for e in settings.epsilons):
            fix = "'experiment.epsilons=[0.1,1,10]'"
            raise UserError(f"got {settings.epsilons}", where="experiment.epsilons", fix=fix)
        return tuple(Variant(e) for e in settings.epsilons)
    found: list[Variant] = []
    known, fix = [f.name for f in fields(Variant)], "'experiment.variants=[{epsilon: 1, max_records: 150}]'"
    for entry in settings.variants:
        for name in entry.keys() - set(known):
            near = did_you_mean(str(name), known) or fix
            raise UserError(f"unknown field {name!r}", where="experiment.variants", fix=near)
        epsilon, unit, bound = (entry.get(n) for n in known)
        fits = isinstance(epsilon, int | float) and not isinstance(epsilon, bool) and 0 < epsilon < math.inf
        fits = fits and (unit is None or isinstance(unit, str))
        fits = fits and (bound is None or (isinstance(bound, int) and not isinstance(bound, bool)))
        if not fits or entry in [v for v in settings.variants if v is not entry]:
            raise UserError(f"got {entry}", where="experiment.variants", fix=f"{fix}, each once")
        found.append(Variant(float(epsilon), unit, bound))  # type: ignore[arg-type]
    return tuple(found)


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
