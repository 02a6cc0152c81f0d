"""Settings: plain typed classes, filled by Hydra from conf/ and the command line, checked once at this boundary."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeVar, get_args

import yaml
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from mechanisms.public.errors import UserError, did_you_mean
from mechanisms.public.files import as_path
from mechanisms.public.settings import BoundedSettings, setting
from mechanisms.public.units import (
    ID_RULES,
    MAX_RECORDS,
    MIN_DELTA,
    MOST_CAP,
    MOST_DELTA,
    MOST_TRIES,
    NO_UNIT,
    WORD,
    Clip,
    MissingUnit,
    Neighbouring,
)
from pipeline.conf_folder import SCHEMAS
from pipeline.console import CONSOLE
from pipeline.help import DOLLAR, first_line, way_out
from pipeline.plugins.plugin_discovery import load_used
from pipeline.settings.compose import check_seed, check_switches, compose_config, plain
from pipeline.settings.experiment_list import ExperimentConfig
from pipeline.settings.overrides import encoded
from pipeline.settings.own_settings import allowed, culprit, filled, form_of, typed_settings
from pipeline.settings.units_config import UnitsConfig

T = TypeVar("T")
#: How commands print, and what messages say of a bound on records.
PRINTED, PUBLIC_BOUND = ("text", "json"), "from what is publicly known, as in privacy.max_records=20"


@dataclass
class DataConfig(BoundedSettings):
    settings_group: ClassVar[str] = "data"
    name: str = "table"
    path: str | None = None
    table: str | None = None
    query: str | None = None
    rows_of_one_unit: bool = False
    units: UnitsConfig = field(default_factory=UnitsConfig)
    schema: str | None = None
    confirmed_public: bool = False
    delimiter: str | None = None
    encoding: str | None = None
    max_unplaced: float = setting(0.2, least=0, most=1, noun="a share of a column's values", note="1 never refuses")
    unit: str = "record"
    max_records: int | None = setting(None, least=1, most=MAX_RECORDS)
    rows: int | None = setting(None, least=0)
    seed: int = setting(0, least=0)
    roles: dict[str, str] | None = None


@dataclass
class PrivacyConfig(BoundedSettings):
    settings_group: ClassVar[str] = "privacy"
    epsilon: float = setting(1.0, least=1e-5, note="for example privacy.epsilon=1")  # less drowns in rounding
    delta: float = setting(
        1e-9, least=MIN_DELTA, most=MOST_DELTA, also={0: "with privacy.accountant=basic mechanism=laplace"}
    )
    accountant: str = "gdp"
    neighbouring: str = setting("add_remove", choices=tuple(Neighbouring))
    unit: str | None = None
    max_records: int | str | None = setting(None, least=1, most=MAX_RECORDS, also={WORD: ""}, note=PUBLIC_BOUND)
    max_records_cap: int = setting(1024, least=2, most=MOST_CAP, note=PUBLIC_BOUND)
    clip: str = setting("weight", choices=get_args(Clip))
    missing_unit: str = setting("drop", choices=get_args(MissingUnit))
    missing_unit_values: list[str] = field(default_factory=lambda: list(NO_UNIT))
    unit_id_rules: list[str] = field(default_factory=lambda: list(ID_RULES))
    unit_id_share: float = setting(0.05, least=0.001, most=0.999, noun="a part of the budget")
    person_share: float | None = setting(None, least=0.001, most=0.9, noun="a part of the budget")
    discovery_share: float | None = setting(None, least=0.001, most=0.9, noun="a part of the budget")
    noise_seed: int | None = None


@dataclass
class MethodConfig:
    """A selection, or who reads the rows, by name; its own settings stand with it (`mechanisms`)."""

    kind: str
    options: dict[str, Any] = field(default_factory=dict)


@dataclass
class MechanismConfig:
    kind: str = "auto"


@dataclass
class SynthesisConfig(BoundedSettings):
    settings_group: ClassVar[str] = "synthesis"
    kind: str = "gum"
    rows: int | None = setting(None, least=0)
    seed: int | None = setting(None, least=0)
    options: dict[str, Any] = field(default_factory=dict)


@dataclass
class EvaluationConfig(BoundedSettings):
    """What is scored, and what all metrics share; the settings of single metrics stand with them (`evaluation`)."""

    settings_group: ClassVar[str] = "evaluation"
    enabled: bool = True
    metrics: Any = "quick"
    references: bool = False
    groups: Any = field(default_factory=list)
    pairs: Any = field(default_factory=list)
    holdout: float | None = setting(None, above=0, most=0.5, noun="a share of the units")
    seed: int = setting(0, least=0)
    subject: str | None = None
    order: str | None = None
    longitude: str | None = None
    latitude: str | None = None
    options: dict[str, Any] = field(default_factory=dict)


@dataclass
class BudgetConfig(BoundedSettings):
    settings_group: ClassVar[str] = "budget"
    ledger: str | None = None
    limit: dict[str, Any] | None = None
    accountant: str | None = None
    slack: float | None = setting(None, least=0, most=0.4, noun="a part of the limit's delta")
    table: str | None = None


@dataclass
class ReleaseConfig(BoundedSettings):
    settings_group: ClassVar[str] = "release"
    format: str = "csv"
    dialect: Any = "table"
    tables: str = setting("joined", choices=("joined", "two"))


@dataclass
class StatementConfig:
    """Who publishes; see `pipeline.statement.signing`."""

    publisher: str | None = None
    date: str | None = None
    contact: str | None = None
    confirmed_by: str | None = None
    publisher_type: str | None = None
    intended_use: str | None = None
    region: str | None = None
    license: str | None = None
    key: str | None = None


@dataclass
class LimitsConfig(BoundedSettings):
    """What a command may use of this machine: memory and threads."""

    settings_group: ClassVar[str] = "limits"
    memory_gb: float | None = setting(None, above=0, most=1_000_000_000, noun="gigabytes: a number")
    threads: int | None = setting(None, least=1, most=1024)

    @property
    def memory_bytes(self) -> int:
        """What a run may use: the setting, or 80 % of this machine's memory."""
        if self.memory_gb is None:
            return int(0.8 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
        return int(self.memory_gb * 1e9)

    @property
    def cores(self) -> int:
        """How many threads to use."""
        return self.threads or len(os.sched_getaffinity(0))


@dataclass
class PlanConfig(BoundedSettings):
    settings_group: ClassVar[str] = "plan"
    format: str = setting("text", choices=PRINTED)
    details: bool = False
    rows: int | None = setting(None, least=1, note="how many rows the table has, about")


@dataclass
class Config(BoundedSettings):
    """Everything that one run needs to know, besides the rows."""

    data: DataConfig = field(default_factory=DataConfig)
    privacy: PrivacyConfig = field(default_factory=PrivacyConfig)
    selection: MethodConfig = field(default_factory=lambda: MethodConfig("fixed"))
    mechanism: MechanismConfig = field(default_factory=MechanismConfig)
    synthesis: SynthesisConfig = field(default_factory=SynthesisConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    release: ReleaseConfig = field(default_factory=ReleaseConfig)
    statement: StatementConfig = field(default_factory=StatementConfig)
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    engine: MethodConfig = field(default_factory=lambda: MethodConfig("duckdb"))
    plan: PlanConfig = field(default_factory=PlanConfig)
    budget: BudgetConfig = field(default_factory=BudgetConfig)
    experiment: ExperimentConfig = field(default_factory=ExperimentConfig)
    accept: list[dict[str, Any]] = field(default_factory=list)
    accept_share: float = setting(0.05, least=0.0001, most=0.9, noun="a part of the budget")
    accept_tries: int = setting(1, least=1, most=MOST_TRIES, noun="the expected number of tries, a whole number")
    smoke: bool = False
    plugins: list[str] = field(default_factory=list)
    seed: int | None = None
    console: str = setting("terminal", choices=CONSOLE)
    format: str = setting("text", choices=PRINTED)
    quiet: bool = False
    resume: bool = False


@dataclass
class SynthConfig(BoundedSettings):
    """Settings of `synth`."""

    source: str | None = None
    where: dict[str, Any] | None = None
    rows: int | None = setting(None, least=0)
    synthesis: SynthesisConfig = field(default_factory=SynthesisConfig)
    release: ReleaseConfig = field(default_factory=ReleaseConfig)
    statement: StatementConfig = field(default_factory=StatementConfig)
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    plugins: list[str] = field(default_factory=list)
    format: str = setting("text", choices=PRINTED)
    output: str | None = None


@dataclass
class ScoreConfig(BoundedSettings):
    """Settings of `score`."""

    real: str | None = None
    synthetic: Any = None
    schema: str | None = None
    holdout: str | None = None
    units: UnitsConfig = field(default_factory=UnitsConfig)
    metrics: Any = None
    delimiter: str | None = None
    encoding: str | None = None
    output: str | None = None
    format: str = setting("text", choices=PRINTED)
    report: str | None = None
    detail: str = "none"
    worst: int = setting(3, least=1)
    top: int = setting(10, least=1)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    plugins: list[str] = field(default_factory=list)


@dataclass
class QueryConfig(BoundedSettings):
    """Settings of `query`."""

    source: str | None = None
    marginal: list[str] = field(default_factory=list)
    solution: str | None = None
    where: dict[str, Any] | None = None
    level: str = setting("records", choices=("records", "persons"))
    bounds: bool = False
    distances: bool = False
    estimate: str | None = None
    column: str | None = None
    other: str | None = None
    by: list[str] = field(default_factory=list)
    value: Any = None
    quantile: float | None = None
    within_bin: str = "worst"
    sampling: bool = False
    unmeasured: str = "refuse"
    plugins: list[str] = field(default_factory=list)
    output: str | None = None
    format: str = "csv"


@dataclass
class VerifyConfig(BoundedSettings):
    """Settings of `verify`."""

    source: str | None = None
    format: str = setting("text", choices=PRINTED)
    key: str | None = None
    plugins: list[str] = field(default_factory=list)


@dataclass
class ReportConfig:
    """Settings of `report`."""

    run: str | None = None
    output: str | None = None


@dataclass
class BudgetFileConfig(BoundedSettings):
    """Settings of `budget`."""

    file: str | None = None
    format: str = setting("text", choices=PRINTED)
    limit: dict[str, Any] | None = None
    reason: str | None = None


@dataclass
class CheckConfig(BoundedSettings):
    """Settings of `check`."""

    data: DataConfig = field(default_factory=DataConfig)
    privacy: PrivacyConfig = field(default_factory=PrivacyConfig)
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    format: str = setting("text", choices=PRINTED)


@dataclass
class DraftConfig(BoundedSettings):
    """Settings of `schema`."""

    table: str | None = None
    output: str | None = None
    units: UnitsConfig = field(default_factory=UnitsConfig)
    delimiter: str | None = None
    encoding: str | None = None
    cluster: dict[str, Any] | None = None
    privacy: PrivacyConfig = field(default_factory=PrivacyConfig)
    limits: LimitsConfig = field(default_factory=LimitsConfig)


def typed(config: DictConfig, cls: type[T]) -> T:
    """The composed settings as the plain class `cls`; modules of others that they ask for are loaded.

    Raises:
        UserError: a value that a setting may not have, naming the setting; a module that cannot be loaded.
    """
    names = {f.name for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    try:
        container = plain(config)
    except OmegaConfBaseException as error:
        raise UserError(first_line(error), where=str(error.full_key or "settings"), fix=DOLLAR) from error
    load_used(container)
    for name in [n for n in ("where", "cluster") if n in container]:
        if isinstance(named := container[name], str):  # a mapping whose keys Hydra cannot read
            container[name] = named = yaml.safe_load(named)
        if isinstance(named, dict):  # 2020 and true are names too
            container[name] = {k if isinstance(k, str) else encoded(k): v for k, v in named.items()}
    container.setdefault("source", container.pop("from", None))  # `from` is no name for a Python field
    for key in container.keys() - names - {"source", "seed"}:
        fix = did_you_mean(key, names) or "see --help"
        raise UserError("no such setting", where=key, fix=fix)
    check_seed(container)
    values = {k: v for k, v in container.items() if k in names}
    form = form_of(cls)
    for group in [n for n in names if OmegaConf.is_dict(form[n]) and "options" in form[n]]:
        common, given = form[group].keys() - {"options"}, values[group]  # what differs by kind travels in `options`
        own = {k: v for k, v in given.items() if k not in common}
        values[group] = {k: v for k, v in given.items() if k in common} | {"options": own}
    if "evaluation" in names:
        values["evaluation"]["options"] = typed_settings(values["evaluation"]["options"])
    try:
        result = filled(cls, values)
    except OmegaConfBaseException as error:
        where = getattr(error, "full_key", None) or culprit(cls, values, "settings")
        problem, fix = first_line(error), way_out(where, bounds=allowed(cls, where))
        if " is not a subclass of " in problem:  # the library's words for release=csv
            problem, fix = "several settings, and no value of its own", f"{where}.NAME=…; --help lists them"
        raise UserError(problem, where=where, fix=fix) from error
    check_switches(values, dataclasses.asdict(result))  # type: ignore[call-overload]
    return result


def load_config(overrides: Sequence[str] = ()) -> Config:
    """The settings of a run from conf/ and overrides such as ``["data=adult", "privacy.epsilon=0.5"]``."""
    return typed(compose_config("config", overrides), Config)


def schema_path(name: str | None, where: str = "data.schema") -> Path:
    """A schema by name (conf/schemas) or by path: no file that lies about takes the place of a ready one's name."""
    if not name:
        raise UserError("no schema given", where=where, fix="draft one: python -m pipeline schema TABLE output=my.yaml")
    ready = sorted(p.name for p in SCHEMAS.glob("*.yaml"))
    own = as_path(name, where)
    for candidate in (SCHEMAS / f"{name}.yaml", own, SCHEMAS / name):
        if candidate.is_file():
            return candidate
    near = did_you_mean(name.removesuffix(".yaml"), [r.removesuffix(".yaml") for r in ready])
    fix = near or f"a path, or one of {', '.join(ready)}"
    raise UserError(f"no schema file {name!r}", where=where, fix=fix)
