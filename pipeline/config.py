"""Settings: plain typed classes, filled by Hydra from conf/ and the command line, checked once at this boundary."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import yaml
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from mechanisms.public.errors import UserError, did_you_mean
from mechanisms.sensitive.contribution import NO_UNIT
from pipeline.experiments import described
from pipeline.experiments.settings import ExperimentConfig
from pipeline.overrides import spelled

#: What settings that are no single value look like.
ALLOWED = {
    "selection.marginals": "a list of lists of columns: 'selection.marginals=[[age,sex],[job]]'",
    "selection.closure": "a list of lists of columns: 'selection.closure=[[age,sex,job]]'",
    "selection.weights": "'selection.weights=[{marginal: [age, sex], weight: 2}]'",
    "cluster": "'cluster={place: {coordinates: places.csv, levels: [5, 25]}}'",
    "experiment.columns": "three columns: 'experiment.columns=[time,place,category]'",
    "experiment.dpsyn": "a list of ε: 'experiment.dpsyn=[0.1,1]'",
    "experiment.laplace": "a list of ε: 'experiment.laplace=[0.25,1]'",
    "experiment.samples": "a list of shares: 'experiment.samples=[0.01,0.5]'",
    "selection.targets": "a list of columns: 'selection.targets=[income]'",
    "selection.split": "numbers above 0, one per stage: 'selection.split=[1,1,8]'",
    "selection.k": "a list of whole numbers: 'selection.k=[1,2]'",
    "evaluation.k": "a list of whole numbers: 'evaluation.k=[1,2]'",
    "evaluation.fixed": "a list of columns: 'evaluation.fixed=[sex]'",
    "evaluation.predict": "a list of columns: 'evaluation.predict=[income]'",
    "evaluation.distance_columns": "a list of columns: 'evaluation.distance_columns=[age,sex]'",
    "budget.limit": "'budget.limit={epsilon: 3, delta: 1e-6}'",
    "limit": "'limit={epsilon: 5, delta: 1e-6}'",
    "marginal": "a list of columns: 'marginal=[age,sex]'",
    "where": "'where={age: [20, 40], job: [clerk]}'",
    "evaluation.attributes": "a list of columns: 'evaluation.attributes=[month,city,type]'",
}

T = TypeVar("T")
CONF = Path(__file__).resolve().parent.parent / "conf"
SCHEMAS = CONF / "schemas"


@dataclass
class DataConfig:
    name: str = "table"
    path: str | None = None
    schema: str | None = None
    delimiter: str = ","
    unit: str = "record"
    max_records: int | None = None
    rows: int | None = None
    seed: int = 0
    roles: dict[str, str] | None = None


@dataclass
class PrivacyConfig:
    epsilon: float = 1.0
    delta: float = 1e-9
    accountant: str = "gdp"
    neighbouring: str = "add_remove"
    unit: str = "record"
    max_records: int | None = None
    clip: str = "weight"
    missing_unit: str = "drop"
    missing_unit_values: list[str] = field(default_factory=lambda: list(NO_UNIT))
    unit_id_share: float = 0.05
    noise_seed: int | None = None


@dataclass
class SelectionConfig:
    kind: str = "fixed"
    marginals: list[list[str]] | None = None
    closure: list[list[str]] | None = None
    k: list[int] = field(default_factory=lambda: [1, 2])
    weights: list[dict[str, Any]] | None = None
    max_cells: int = 5_000
    fit: bool | None = None
    threshold: float = 5.0
    rare: float = 3.0
    merge: float | None = None
    floor: float = 0.0
    targets: list[str] = field(default_factory=list)
    split: list[float] = field(default_factory=lambda: [1.0, 1.0, 1.0])
    rounds: int | None = None
    measured: float = 0.9
    max_model_cells: int = 10_000_000
    combine_cells: int = 1_000
    groups: int | None = None
    design: str = "greedy"
    t: int | None = None
    views: int | None = None
    view_cells: int = 256
    rows: int | None = None
    public: str | None = None
    delimiter: str = ","
    items: int | None = None
    pairs: int | None = None


@dataclass
class MechanismConfig:
    kind: str = "auto"


@dataclass
class SynthesisConfig:
    kind: str = "gum"
    rows: int | None = None
    seed: int | None = None
    options: dict[str, Any] = field(default_factory=dict)


@dataclass
class EvaluationConfig:
    enabled: bool = True
    preset: str = "kway"
    attributes: list[str] = field(default_factory=list)
    k: list[int] = field(default_factory=lambda: [1, 2, 3])
    max_marginals: int = 300
    targets: Any = None
    delta: float = 2.0
    alpha: float = 1.0
    solver: str = "auto"
    seed: int = 0
    metrics: Any = "quick"
    references: bool = False
    holdout: float | None = None
    time: str | None = None
    segment: str | None = None
    kind: str | None = None
    to: str | None = None
    group: str | None = None
    sex: str | None = None
    income: str | None = None
    subject: str | None = None
    order: str | None = None
    fixed: list[str] = field(default_factory=list)
    longitude: str | None = None
    latitude: str | None = None
    regions: str | None = None
    predict: list[str] = field(default_factory=list)
    distance_columns: list[str] = field(default_factory=list)
    buckets: int = 10
    max_rows: int = 60_000


@dataclass
class BudgetConfig:
    ledger: str | None = None
    limit: dict[str, Any] | None = None
    accountant: str | None = None
    slack: float | None = None
    table: str | None = None


@dataclass
class ReleaseConfig:
    format: str = "csv"


@dataclass
class LimitsConfig:
    memory_gb: float | None = None
    threads: int | None = None


@dataclass
class PlanConfig:
    format: str = "text"
    rows: int | None = None


@dataclass
class Config:
    """Everything that one run needs to know, besides the rows."""

    data: DataConfig = field(default_factory=DataConfig)
    privacy: PrivacyConfig = field(default_factory=PrivacyConfig)
    selection: SelectionConfig = field(default_factory=SelectionConfig)
    mechanism: MechanismConfig = field(default_factory=MechanismConfig)
    synthesis: SynthesisConfig = field(default_factory=SynthesisConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    release: ReleaseConfig = field(default_factory=ReleaseConfig)
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    plan: PlanConfig = field(default_factory=PlanConfig)
    budget: BudgetConfig = field(default_factory=BudgetConfig)
    experiment: ExperimentConfig = field(default_factory=ExperimentConfig)
    smoke: bool = False
    seed: int | None = None
    resume: bool = False


@dataclass
class SynthConfig:
    """Settings of `synth`."""

    source: str | None = None
    synthesis: SynthesisConfig = field(default_factory=SynthesisConfig)
    release: ReleaseConfig = field(default_factory=ReleaseConfig)
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    output: str | None = None


@dataclass
class ScoreConfig:
    """Settings of `score`."""

    real: str | None = None
    synthetic: str | None = None
    schema: str | None = None
    holdout: str | None = None
    metrics: Any = None
    delimiter: str = ","
    output: str | None = None
    report: str | None = None
    detail: str = "none"
    worst: int = 3
    top: int = 10
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    limits: LimitsConfig = field(default_factory=LimitsConfig)


@dataclass
class QueryConfig:
    """Settings of `query`."""

    source: str | None = None
    marginal: list[str] = field(default_factory=list)
    where: dict[str, Any] | None = None
    output: str | None = None


@dataclass
class ReportConfig:
    """Settings of `report`."""

    run: str | None = None
    output: str | None = None


@dataclass
class BudgetFileConfig:
    """Settings of `budget`."""

    file: str | None = None
    format: str = "text"
    limit: dict[str, Any] | None = None
    reason: str | None = None


@dataclass
class DraftConfig:
    """Settings of `schema`."""

    table: str | None = None
    output: str | None = None
    delimiter: str = ","
    cluster: dict[str, Any] | None = None
    limits: LimitsConfig = field(default_factory=LimitsConfig)


def safe_name(text: str) -> str:
    """A folder name for one job of a sweep: its overrides, without what a file system dislikes.

    Of a path only its last part stays, with a digest, so that two paths make two folders.
    """
    text = re.sub(r"=([^,=]*/[^,=]*)", lambda m: f"={Path(m[1]).name}-{_short(m[1])}", text)
    name = re.sub(r"[^A-Za-z0-9_.=,+-]+", "_", text).strip("_") or "job"
    return name if len(name) <= 180 else f"{name[:160]}-{_short(text)}"


def _short(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


OmegaConf.register_new_resolver("safe_name", safe_name, replace=True)


def compose_config(name: str, overrides: Sequence[str], *, own: bool = False) -> DictConfig:
    """The composed settings of one command (and Hydra's `own`), or a UserError with the nearest known key."""
    firsts = [_first_of_sweep(o) for o in map(spelled, overrides)]
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(CONF), version_base="1.3", job_name="pipeline"):
        try:
            composed: DictConfig = compose(name, firsts, return_hydra_config=own)
            return composed
        except (HydraException, OmegaConfBaseException) as error:
            raise misspelt(name, firsts, error) from error


def _first_of_sweep(override: str) -> str:
    """`a=1,2` → `a=1`, so that a sweep's keys can be checked before its first job starts."""
    try:
        parsed = OverridesParser.create().parse_override(override)
    except HydraException as error:
        fix = "write key=value; close every bracket, quote odd names: 'marginal=[age,\"late?\"]'"
        raise UserError("not a setting", where=f"override {override!r}", fix=fix) from error
    if not parsed.is_sweep_override():
        return override
    return f"{parsed.get_key_element()}={next(iter(parsed.sweep_string_iterator()))}"


def misspelt(name: str, overrides: Sequence[str], error: Exception) -> UserError:
    """The misspelt override among many, found by composing each alone (after the choices of groups, which add keys)."""
    groups = [o for o in overrides if (CONF / o.lstrip("+~").partition("=")[0]).is_dir()]
    for override in [*groups, *(o for o in overrides if o not in groups)]:
        try:
            compose(name, [override] if override in groups else [*groups, override])
        except (HydraException, OmegaConfBaseException) as alone:
            key, _, value = override.lstrip("+~").partition("=")
            group = CONF / key
            if group.is_dir():
                choices = sorted(p.stem for p in group.glob("*.yaml"))
                known = f"\n{described()}" if key == "experiment" else " " + ", ".join(choices)
                fix = f"{did_you_mean(value, choices)} one of:{known}".strip()
                return UserError(f"no {key} called {value!r}", where=f"override {override!r}", fix=fix)
            keys = _keys(compose(name, groups))
            if key not in keys:
                fix = did_you_mean(key, keys) or f"see `python -m pipeline {name} --help`"
                return UserError("no such setting", where=f"override {override!r}", fix=fix)
            return UserError(_first_line(alone), where=f"override {override!r}", fix=f"see {name} --help")
    return UserError(_first_line(error), where="settings", fix="see --help")


def _keys(node: DictConfig, prefix: str = "") -> list[str]:
    keys: list[str] = []
    for key in map(str, node):
        keys.append(f"{prefix}{key}")
        if not OmegaConf.is_missing(node, key) and isinstance(node._get_node(key), DictConfig):
            child = node._get_node(key)
            if not child._is_none():  # type: ignore[union-attr]
                keys += _keys(child, f"{prefix}{key}.")  # type: ignore[arg-type]
    return keys


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]


def typed(config: DictConfig, cls: type[T]) -> T:
    """The composed settings as the plain class `cls`; a value of the wrong type is a UserError naming the setting."""
    known = {f.name for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    container = OmegaConf.to_container(config, resolve=True)
    assert isinstance(container, dict)
    for name in [n for n in ("where", "cluster") if n in container]:
        if isinstance(said := container[name], str):  # a mapping whose keys Hydra cannot read
            container[name] = yaml.safe_load(said)
    container.setdefault("source", container.pop("from", None))  # `from` is no name for a Python field
    for key in container.keys() - known - {"source", "hydra", "seed"}:
        fix = did_you_mean(str(key), known) or "see --help"
        raise UserError("no such setting", where=str(key), fix=fix)
    plain = OmegaConf.create({k: v for k, v in container.items() if k in known})
    if "synthesis" in known:
        plain.synthesis = _synthesis(plain.synthesis)
    try:
        result = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(cls), plain))
    except OmegaConfBaseException as error:
        where = getattr(error, "full_key", None) or _culprit(cls, plain)
        fix = ALLOWED.get(where.partition("[")[0], "see --help for what is allowed")
        raise UserError(_first_line(error), where=where, fix=fix) from error
    assert isinstance(result, cls)
    return result


def _culprit(cls: type[T], plain: DictConfig) -> str:
    """The setting that does not fit its type, found by merging each alone (OmegaConf names none for lists of lists)."""
    for group, node in plain.items_ex(resolve=False):
        for key in node if isinstance(node, DictConfig) and not node._is_none() else [None]:
            alone = {group: node if key is None else {key: node._get_node(key)}}
            try:
                OmegaConf.merge(OmegaConf.structured(cls), OmegaConf.create(alone))
            except OmegaConfBaseException:
                return str(group) if key is None else f"{group!s}.{key!s}"
    return "settings"


def _synthesis(node: DictConfig) -> DictConfig:
    """A synthesizer's own settings differ from kind to kind: they travel in `options`."""
    common = {"kind", "rows", "seed"}
    return OmegaConf.create(
        {
            **{k: v for k, v in node.items() if k in common},
            "options": {k: v for k, v in node.items() if k not in common},
        }
    )


def load_config(overrides: Sequence[str] = ()) -> Config:
    """The settings of a run from conf/ and overrides such as ``["data=adult", "privacy.epsilon=0.5"]``."""
    return typed(compose_config("config", overrides), Config)


def schema_path(name: str | None, where: str = "data.schema") -> Path:
    """A schema by name (conf/schemas) or by path."""
    if not name:
        raise UserError("no schema given", where=where, fix="draft one: python -m pipeline schema TABLE output=my.yaml")
    ready = sorted(p.name for p in SCHEMAS.glob("*.yaml"))
    for candidate in (Path(name), SCHEMAS / name, SCHEMAS / f"{name}.yaml"):
        if candidate.is_file():
            return candidate
    near = did_you_mean(name, [*ready, *(r.removesuffix(".yaml") for r in ready)])
    fix = near or f"a path, or one of {', '.join(ready)}"
    raise UserError(f"no schema file {name!r}", where=where, fix=fix)
