"""What a module of others offers joins our registries: all of it or nothing, under names that are still free.

The module has dictionaries with the names of our registries (`REGISTRIES`): name → thing, or `module:name` of it.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import re
from collections.abc import Callable, Mapping, MutableMapping
from pathlib import Path
from pkgutil import resolve_name
from types import ModuleType
from typing import Any

import yaml
from hydra.core.config_store import ConfigStore
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from evaluation.metric import Metric
from evaluation.metrics import METRICS, check_metric
from mechanisms.accounting.accountants.accountant import Accountant
from mechanisms.accounting.accountants.registered import ACCOUNTANTS
from mechanisms.accounting.events import NOISE_EVENTS, Exponential, NoiseEvent
from mechanisms.public.errors import UserError
from mechanisms.public.noise_kinds import NOISE_KINDS
from mechanisms.public.queries.cell_sums import QUERIES
from mechanisms.public.tables.formats import FORMATS, TableFormat
from mechanisms.selection.base import Selection
from mechanisms.selection.selections import SELECTIONS, registered_methods
from mechanisms.sensitive.engines.engine import EngineSettings
from mechanisms.sensitive.engines.engines import ENGINES
from mechanisms.sensitive.noise import SAMPLERS
from pipeline.conf_folder import CONF
from pipeline.plugins.offers import SETTING, offered_by
from pipeline.settings.experiment_list import EXPERIMENTS, FILES
from synthesis.contract import Synthesizer
from synthesis.synthesizers import SYNTHESIZERS


@dataclasses.dataclass(frozen=True)
class Registry:
    """One of our registries, as a module of others may add to it.

    Attributes:
        kind: of its things, as releases spell it.
        things: name → thing.
        fits: whether something may stand in it under that name.
        form: what fits, in words.
        settings: the settings of all of its kind beside their own; None where they are no choice of the command line.
    """

    kind: str
    things: MutableMapping[str, Any]
    fits: Callable[[str, Any], bool]
    form: str
    settings: Mapping[str, Any] | None = None


def _frozen(base: type, called: Callable[[Any], str | None] | None = None) -> Callable[[str, Any], bool]:
    """What tells a frozen dataclass of `base`, which is called so itself, from anything else."""

    def fits(name: str, thing: Any) -> bool:
        own = isinstance(thing, type) and issubclass(thing, base) and dataclasses.is_dataclass(thing)
        frozen = own and thing.__dataclass_params__.frozen
        return bool(frozen) and (called is None or called(thing) == name)

    return fits


def _kind(thing: Any) -> str | None:
    return getattr(thing, "kind", None)


def _named(base: type) -> Callable[[str, Any], bool]:
    return lambda name, thing: isinstance(thing, base) and thing.name == name  # type: ignore[attr-defined]


def _runs(name: str, thing: Any) -> bool:
    return all(callable(getattr(thing, role, None)) for role in ("releases", "run_and_tell"))


def _callable(name: str, thing: Any) -> bool:
    return callable(thing)


_OF_ROWS = {"rows": None, "seed": "${seed}"}
_SELECTION, _SYNTHESIZER, _ENGINE = _frozen(Selection, _kind), _frozen(Synthesizer), _frozen(EngineSettings)
_NOISE = _frozen(NoiseEvent, lambda event: event.law.name)
#: The name of the dictionary, in a module of others and of ours → the registry.
REGISTRIES: dict[str, Registry] = {
    "SELECTIONS": Registry("selection", SELECTIONS, _SELECTION, "a frozen dataclass of Selection, its kind", {}),
    "METRICS": Registry("metric", METRICS, _named(Metric), "a Metric of that name"),
    "SYNTHESIZERS": Registry("synthesis", SYNTHESIZERS, _SYNTHESIZER, "a frozen dataclass of Synthesizer", _OF_ROWS),
    "ACCOUNTANTS": Registry("accountant", ACCOUNTANTS, _frozen(Accountant, _kind), "a frozen dataclass of Accountant"),
    "NOISE_EVENTS": Registry("mechanism", NOISE_EVENTS, _NOISE, "a frozen NoiseEvent with a law of that name", {}),
    "SAMPLERS": Registry("sampler", SAMPLERS, _callable, "a sampler of a kind in NOISE_EVENTS"),
    "QUERIES": Registry("query", QUERIES, _callable, "what makes a query of its arrays"),
    "ENGINES": Registry("engine", ENGINES, _ENGINE, "a frozen dataclass of EngineSettings", {}),
    "EXPERIMENTS": Registry("experiment", EXPERIMENTS, _runs, "what has releases and run_and_tell", {}),
    "FORMATS": Registry("format", FORMATS, _named(TableFormat), "a TableFormat of that name"),
}
#: In a file of settings: they are not of their group alone, as those of most experiments.
_GLOBAL = "@package _global_"
#: Kind and name of each choice of the command line → its settings, as a file of conf/ has them.
_texts: dict[tuple[str, str], str] = {}


def register(module: ModuleType) -> None:
    """Add all that a module offers to the registries, and to the choices of the command line.

    Raises:
        UserError: it offers nothing; a name that is taken; something that is not what the registry holds.
    """
    offers = {name: _things(module, name) for name in REGISTRIES if hasattr(module, name)}
    if not offers:
        fix = f"in that module one of: {', '.join(REGISTRIES)}, a dictionary of names"
        raise UserError(f"the module {module.__name__} offers nothing", where=SETTING, fix=fix)
    for name, things in offers.items():
        _check(module, REGISTRIES[name], name, things)
    for metric in offers.get("METRICS", {}).values():
        check_metric(metric)
    _check_methods(offers.get("SELECTIONS", {}))
    _check_noise(module, offers)
    choices = [(r.kind, n, _text(module, r, n, x)) for r, x, n in _each(offers) if r.settings is not None]
    nodes = [_node(kind, name, text) for kind, name, text in choices]
    for registry, thing, name in _each(offers):  # from here on nothing is refused
        registry.things[name] = thing
        offered_by[registry.kind, name] = module.__name__
    NOISE_KINDS.update({name: event.law for name, event in offers.get("NOISE_EVENTS", {}).items()})
    FILES.update({name: _settings_file(module, "experiment", name) for name in offers.get("EXPERIMENTS", {})})
    for (kind, name, text), node in zip(choices, nodes, strict=True):
        _texts[kind, name] = text
        package = "_global_" if _GLOBAL in text else None
        ConfigStore.instance().store(name, node, group=kind, package=package, provider=module.__name__)


def _each(offers: Mapping[str, Mapping[str, Any]]) -> list[tuple[Registry, Any, str]]:
    """Registry, thing and name of all that is offered."""
    return [(REGISTRIES[name], things[key], key) for name, things in offers.items() for key in things]


def _things(module: ModuleType, name: str) -> dict[str, Any]:
    """One dictionary of a module; what it gives as `module:name` is imported.

    Raises:
        UserError: it is no dictionary, or empty; a text names nothing.
    """
    things = getattr(module, name)
    if not isinstance(things, dict) or not things:
        fix = f"{name} = {{'my_name': …}}"
        raise UserError(f"{name} of the module {module.__name__} is no dictionary of things", where=SETTING, fix=fix)
    try:
        return {key: resolve_name(x) if isinstance(x, str) else x for key, x in things.items()}
    except (ImportError, AttributeError, ValueError) as error:
        fix = f"{name} = {{'my_name': 'module:thing'}}"
        raise UserError(f"{name} of the module {module.__name__}: {error}", where=SETTING, fix=fix) from error


def _check(module: ModuleType, registry: Registry, name: str, things: Mapping[str, Any]) -> None:
    for key, thing in things.items():
        ready = registry.settings is not None and (CONF / registry.kind / f"{key}.yaml").is_file()
        if key in registry.things or ready:
            problem = (
                f"there is a {registry.kind} called {key!r} already, and the module {module.__name__} offers another"
            )
            raise UserError(problem, where=SETTING, fix="another name for it")
        if not isinstance(key, str) or not key.isidentifier() or not registry.fits(key, thing):
            problem = f"{name}[{key!r}] of the module {module.__name__} is no {registry.kind}"
            raise UserError(problem, where=SETTING, fix=f"{registry.form}; see docs/adding.md")


def _check_methods(selections: Mapping[str, Any]) -> None:
    """A method that plans know by a kind of ours must be ours: it would take its place."""
    ours = registered_methods()
    for method in (m for s in selections.values() for m in s.methods):
        if ours.get(method.kind, method) is not method:
            problem = f"there is a method of the kind {method.kind!r} already, and {method.__module__} offers another"
            raise UserError(problem, where=SETTING, fix="another kind for it")


def _check_noise(module: ModuleType, offers: Mapping[str, Any]) -> None:
    """Events and samplers come in pairs; ledgers know an event by the name of its class."""
    events, samplers = offers.get("NOISE_EVENTS", {}), offers.get("SAMPLERS", {})
    for name in events.keys() ^ samplers.keys():
        problem = (
            f"the noise {name!r} of the module {module.__name__} has no {'sampler' if name in events else 'event'}"
        )
        raise UserError(problem, where=SETTING, fix="both NOISE_EVENTS and SAMPLERS with that name")
    taken = {c.__name__ for c in (*NOISE_EVENTS.values(), Exponential)}
    for name, event in events.items():
        if name == Exponential.kind:  # releases tell a choice from noise by this word
            raise UserError(f"{name!r} is what a choice is called already", where=SETTING, fix="another name")
        if event.__name__ in taken:
            problem = f"there is an event {event.__name__} already"
            raise UserError(problem, where=SETTING, fix="another name of its class")
        taken.add(event.__name__)


def described(group: str, name: str) -> str | None:
    """The settings of a plugin's choice as a file of conf/ has them; None where no plugin that is loaded offers it."""
    return _texts.get((group, name))


def _settings_file(module: ModuleType, group: str, name: str) -> Path:
    """conf/GROUP/NAME.yaml beside a module."""
    return Path(module.__file__ or "").parent / "conf" / group / f"{name}.yaml"


def _text(module: ModuleType, registry: Registry, name: str, thing: Any) -> str:
    """The settings of a choice: of the file beside the module; else the fields of the class, and its docstring on them.

    Raises:
        UserError: an experiment without a file; a file that cannot be read.
    """
    file = _settings_file(module, registry.kind, name)
    if file.is_file():
        try:
            return file.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise UserError(str(error), where=str(file), fix="a text file in UTF-8") from error
    if registry.kind == "experiment":
        fix = f"{file}, with experiment: {{kind: {name}}}"
        raise UserError(f"the experiment {name!r} of the module {module.__name__} has no settings", where=name, fix=fix)
    doc = inspect.getdoc(thing) or ""
    about = dict(re.findall(r"^    (\w+): (.*)$", doc.partition("Attributes:")[2], flags=re.MULTILINE))
    lines = [f"# {doc.partition(chr(10))[0]}", f"# of the module {thing.__module__}", f"kind: {name}"]
    values = {**(registry.settings or {}), **(_defaults(thing) if registry.kind != "mechanism" else {})}
    try:
        return "\n".join([*lines, *(f"{k}: {_spelled(v)} # {about.get(k, '')}" for k, v in values.items())])
    except yaml.YAMLError as error:
        fix = "settings that are numbers, words, lists or mappings"
        raise UserError(str(error).splitlines()[0], where=f"{registry.kind} {name}", fix=fix) from error


def _defaults(thing: type) -> dict[str, Any]:
    """The fields of a class with their values; `???` where it has none."""
    values: dict[str, Any] = {}
    for field in dataclasses.fields(thing):
        default = field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default
        value = "???" if default is dataclasses.MISSING else default
        values[field.name] = list(value) if isinstance(value, tuple) else value
    return values


def _spelled(value: Any) -> str:
    """A value as YAML, on one line."""
    text: str = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=math.inf)
    return text.removesuffix("...\n").strip()


def _node(kind: str, name: str, text: str) -> Any:
    """The settings of a choice as Hydra composes them.

    Raises:
        UserError: they are none, or those of another choice.
    """
    try:
        given = OmegaConf.to_container(OmegaConf.create(text))
    except (OmegaConfBaseException, yaml.YAMLError, ValueError) as error:
        fix = "settings that are numbers, words, lists or mappings"
        raise UserError(str(error).splitlines()[0], where=f"{kind} {name}", fix=fix) from error
    own = given.get("experiment") if _GLOBAL in text and isinstance(given, dict) else given
    if not isinstance(given, dict) or not isinstance(own, dict) or own.get("kind", name) != name:
        raise UserError(f"no settings of {kind}={name}", where=f"{kind} {name}", fix=f"kind: {name}, and its own")
    if own is not given:
        return OmegaConf.create(given)
    common = next(r.settings for r in REGISTRIES.values() if r.kind == kind)
    return OmegaConf.create({"kind": name, **(common or {}), **given})
