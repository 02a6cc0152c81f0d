"""What a module of others offers joins our registries: all of it or nothing, under names that are still free.

The module has dictionaries with the names of our registries: SELECTIONS, METRICS, SYNTHESIZERS, ACCOUNTANTS,
NOISE_EVENTS with SAMPLERS, and QUERIES.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import sys
from collections.abc import Callable, Mapping, MutableMapping
from pathlib import Path
from types import ModuleType
from typing import Any

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
from mechanisms.public.queries.stored_queries import QUERIES
from mechanisms.selection.base import Selection
from mechanisms.selection.selections import SELECTIONS, registered_methods
from mechanisms.sensitive.noise import SAMPLERS
from pipeline.conf_folder import CONF
from pipeline.plugins.offers import offered_by
from synthesis.contract import Synthesizer
from synthesis.synthesizers import SYNTHESIZERS


@dataclasses.dataclass(frozen=True)
class Registry:
    """One of our registries, as a module of others may add to it.

    Attributes:
        kind: of its things, as entry points and releases spell it.
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


def _is_selection(name: str, thing: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, Selection) and thing.kind == name and _frozen(thing)


def _is_synthesizer(name: str, thing: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, Synthesizer) and _frozen(thing)


def _is_accountant(name: str, thing: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, Accountant) and thing.kind == name and _frozen(thing)


def _is_noise(name: str, thing: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, NoiseEvent) and thing.law.name == name and _frozen(thing)


def _frozen(thing: type) -> bool:
    return dataclasses.is_dataclass(thing) and bool(thing.__dataclass_params__.frozen)  # type: ignore[attr-defined]


#: The name of the dictionary, in a module of others and of ours → the registry.
REGISTRIES: dict[str, Registry] = {
    "SELECTIONS": Registry("selection", SELECTIONS, _is_selection, "a frozen dataclass of Selection, its kind", {}),
    "METRICS": Registry("metric", METRICS, lambda n, x: isinstance(x, Metric) and x.name == n, "a Metric of that name"),
    "SYNTHESIZERS": Registry(
        "synthesis",
        SYNTHESIZERS,
        _is_synthesizer,
        "a frozen dataclass of Synthesizer",
        {"rows": None, "seed": "${seed}"},
    ),
    "ACCOUNTANTS": Registry("accountant", ACCOUNTANTS, _is_accountant, "a frozen dataclass of Accountant, its kind"),
    "NOISE_EVENTS": Registry("mechanism", NOISE_EVENTS, _is_noise, "a frozen NoiseEvent with a law of that name", {}),
    "SAMPLERS": Registry("sampler", SAMPLERS, lambda n, x: callable(x), "a sampler of a kind in NOISE_EVENTS"),
    "QUERIES": Registry("query", QUERIES, lambda n, x: callable(x), "what makes a query of its arrays"),
}


def offered(module: ModuleType, kind: str) -> tuple[str, ...]:
    """The names of that kind that a module offers."""
    return tuple(n for name, r in REGISTRIES.items() if r.kind == kind for n in getattr(module, name, {}))


def register(module: ModuleType, where: str) -> None:
    """Add all that a module offers to the registries, and to the choices of the command line.

    Args:
        where: what named the module.
    Raises:
        UserError: it offers nothing; a name that is taken; something that is not what the registry holds.
    """
    offers = {name: getattr(module, name) for name in REGISTRIES if hasattr(module, name)}
    if not offers:
        fix = f"in that module one of: {', '.join(REGISTRIES)}, a dictionary of names"
        raise UserError(f"the module {module.__name__} offers nothing", where=where, fix=fix)
    for name, things in offers.items():
        _check(module, REGISTRIES[name], name, things, where)
    for metric in offers.get("METRICS", {}).values():
        check_metric(metric)
    _check_methods(offers.get("SELECTIONS", {}), where)
    _check_noise(module, offers, where)
    choices = [
        (r.kind, thing, _choice(module, r, thing, things[thing]))
        for (r, things) in ((REGISTRIES[n], t) for n, t in offers.items())
        if r.settings is not None
        for thing in things
    ]
    for name, things in offers.items():
        REGISTRIES[name].things.update(things)
        offered_by.update({(REGISTRIES[name].kind, thing): module.__name__ for thing in things})
    NOISE_KINDS.update({name: event.law for name, event in offers.get("NOISE_EVENTS", {}).items()})
    for group, name, node in choices:
        ConfigStore.instance().store(name=name, node=node, group=group, provider=module.__name__)


def _check(module: ModuleType, registry: Registry, name: str, things: Any, where: str) -> None:
    if not isinstance(things, dict) or not things:
        fix = f"{name} = {{'my_name': …}}"
        raise UserError(f"{name} of the module {module.__name__} is no dictionary of things", where=where, fix=fix)
    for key, thing in things.items():
        ready = registry.settings is not None and (CONF / registry.kind / f"{key}.yaml").is_file()
        if key in registry.things or ready:
            what = f"there is a {registry.kind} called {key!r} already, and the module {module.__name__} offers another"
            raise UserError(what, where=where, fix="another name for it")
        if not isinstance(key, str) or not key.isidentifier() or not registry.fits(key, thing):
            what = f"{name}[{key!r}] of the module {module.__name__} is no {registry.kind}"
            raise UserError(what, where=where, fix=f"{registry.form}; see docs/adding.md")


def _check_methods(selections: Mapping[str, Any], where: str) -> None:
    """A method that plans know by a kind of ours must be ours: it would take its place."""
    ours = registered_methods()
    for method in (m for s in selections.values() for m in s.methods):
        if ours.get(method.kind, method) is not method:
            what = f"there is a method of the kind {method.kind!r} already, and {method.__module__} offers another"
            raise UserError(what, where=where, fix="another kind for it")


def _check_noise(module: ModuleType, offers: Mapping[str, Any], where: str) -> None:
    """Events and samplers come in pairs; ledgers know an event by the name of its class."""
    events, samplers = offers.get("NOISE_EVENTS", {}), offers.get("SAMPLERS", {})
    for name in events.keys() ^ samplers.keys():
        what = f"the noise {name!r} of the module {module.__name__} has no {'sampler' if name in events else 'event'}"
        raise UserError(what, where=where, fix="both NOISE_EVENTS and SAMPLERS with that name")
    taken = {c.__name__ for c in (*NOISE_EVENTS.values(), Exponential)}
    for name, event in events.items():
        if name == Exponential.kind:  # releases tell a choice from noise by this word
            raise UserError(f"{name!r} is what a choice is called already", where=where, fix="another name")
        if event.__name__ in taken:
            raise UserError(f"there is an event {event.__name__} already", where=where, fix="another name of its class")
        taken.add(event.__name__)


def _choice(module: ModuleType, registry: Registry, name: str, thing: type) -> Any:
    """The settings of a choice with their values: of conf/KIND/NAME.yaml beside the module, else the class's own."""
    own = settings_file(module, registry.kind, name)
    try:
        given = OmegaConf.to_container(OmegaConf.load(own)) if own else defaults(thing, registry)
        if not isinstance(given, dict) or given.get("kind", name) != name:
            raise UserError(f"no settings of {registry.kind}={name}", where=str(own), fix=f"kind: {name}, and its own")
        return OmegaConf.create({"kind": name, **(registry.settings or {}), **given})
    except (OmegaConfBaseException, OSError, ValueError) as error:
        fix = "settings that are numbers, words, lists or mappings"
        raise UserError(str(error).splitlines()[0], where=str(own or f"{registry.kind} {name}"), fix=fix) from error


def settings_file(module: ModuleType, group: str, name: str) -> Path | None:
    """conf/GROUP/NAME.yaml beside a module; None where there is none."""
    if module.__file__ is None:
        return None
    path = Path(module.__file__).parent / "conf" / group / f"{name}.yaml"
    return path if path.is_file() else None


def described(group: str, name: str) -> str | None:
    """The settings of a plugin's choice as a file of conf/ has them; None where no plugin offers it.

    From the file beside the module; else the fields of the class, with what its docstring says of them.
    """
    registry = next((r for r in REGISTRIES.values() if r.kind == group and r.settings is not None), None)
    if registry is None or name not in registry.things:
        return None
    thing = registry.things[name]
    if own := settings_file(sys.modules[thing.__module__], group, name):
        return own.read_text(encoding="utf-8")
    doc = inspect.getdoc(thing) or ""
    descriptions = dict(re.findall(r"^    (\w+): (.*)$", doc.partition("Attributes:")[2], flags=re.MULTILINE))
    lines = [f"# {doc.splitlines()[0]}" if doc else "#", f"# of the module {thing.__module__}"]
    values = {**(registry.settings or {}), **defaults(thing, registry)}
    shown = {k: "null" if v is None else json.dumps(v, ensure_ascii=False).strip('"') for k, v in values.items()}
    return "\n".join([*lines, *(f"{k}: {v} # {descriptions.get(k, '')}" for k, v in shown.items())])


def defaults(thing: type, registry: Registry) -> dict[str, Any]:
    """The fields of a class with their values; `???` where it has none. Noise has no settings."""
    if registry.kind == "mechanism":
        return {}
    values: dict[str, Any] = {}
    for field in dataclasses.fields(thing):
        made = field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default
        value = "???" if made is dataclasses.MISSING else made
        values[field.name] = list(value) if isinstance(value, tuple) else value
    return values
