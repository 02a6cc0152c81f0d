"""Settings that stand with what they set: a frozen dataclass of a selection's own, checked; those of metrics."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from hydra.core.config_store import ConfigStore
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from evaluation.metrics import declared_settings
from mechanisms.public.errors import UserError, did_you_mean
from pipeline.help import first_line, way_out
from pipeline.settings.overrides import literal

T = TypeVar("T")
_FORMS: dict[type[Any], bytes] = {}
_DEFAULTS: dict[type[Any], dict[str, Any]] = {}
#: The settings of metrics that Hydra knows.
_OFFERED: list[dict[str, Any]] = []


def own_settings(cls: type[T], options: Mapping[str, Any], group: str, name: str | None) -> T:
    """The dataclass with these settings, the others as it has them.

    Args:
        group: of the settings, such as selection; name: of the choice.
    Raises:
        UserError: no such setting, with the nearest known one; a value of another type.
    """
    names = [f.name for f in dataclasses.fields(cls)]  # type: ignore[arg-type]
    for setting in options:
        if setting not in names:
            fix = did_you_mean(str(setting), names) or f"a setting of {group}={name}: {', '.join(names)}"
            raise UserError("no such setting", where=f"{group}.{setting}", fix=fix)
    try:
        settings = filled(cls, options)
    except OmegaConfBaseException as error:
        where = f"{group}.{getattr(error, 'full_key', None) or culprit(cls, options, 'kind').partition('.')[0]}"
        raise UserError(first_line(error), where=where, fix=way_out(where, "config")) from error
    return settings


def filled(cls: type[T], values: Mapping[str, Any]) -> T:
    """The dataclass with these values; to merge those that it has by default would take longer than the rest.

    Raises:
        OmegaConfBaseException: a value of another type.
    """
    result = OmegaConf.to_object(OmegaConf.unsafe_merge(form_of(cls), literal(_other_than(defaults_of(cls), values))))
    assert isinstance(result, cls)
    return result


def _other_than(defaults: Mapping[Any, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    others: dict[str, Any] = {}
    for name, value in values.items():
        default = defaults.get(name, ...)
        if isinstance(value, Mapping) and isinstance(default, Mapping):
            if other := _other_than(default, value):
                others[name] = other
        elif repr(value) != repr(default):  # 1 is neither True nor 1.0
            others[name] = value
    return others


def form_of(cls: type[Any]) -> DictConfig:
    """The types and defaults of a dataclass, to merge values into: made once, and read in a fifth of a copy's time."""
    if cls not in _FORMS:
        form = OmegaConf.structured(cls)
        OmegaConf.set_readonly(form, False)  # that of a frozen dataclass is read-only
        _FORMS[cls] = pickle.dumps(form)
    return cast("DictConfig", pickle.loads(_FORMS[cls]))  # noqa: S301 - made in the lines above


def defaults_of(cls: type[Any]) -> dict[str, Any]:
    """The defaults of a dataclass, groups as mappings."""
    if cls not in _DEFAULTS:
        _DEFAULTS[cls] = cast("dict[str, Any]", OmegaConf.to_container(form_of(cls)))
    return _DEFAULTS[cls]


def culprit(cls: type[Any], values: Mapping[str, Any], whole: str) -> str:
    """The setting that does not fit its type, found by merging each alone (OmegaConf names none for lists of lists).

    Args:
        values: plain ones, in groups or not.
        whole: what is named where each fits alone.
    """
    for group, node in values.items():
        for key in node if isinstance(node, Mapping) else [None]:
            try:
                OmegaConf.merge(form_of(cls), {group: node if key is None else {key: node[key]}})
            except OmegaConfBaseException:
                return group if key is None else f"{group}.{key}"
    return whole


def offer_settings() -> None:
    """Tell Hydra the settings of all metrics, so that each is spelled `evaluation.NAME`."""
    defaults = {each.name: each.default for each in declared_settings().values()}
    if [defaults] != _OFFERED:
        ConfigStore.instance().store("metric_settings", OmegaConf.create(defaults), group="evaluation")
        _OFFERED[:] = [defaults]


def typed_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of all metrics, spelled `evaluation.NAME`, with their defaults where none is given.

    Raises:
        UserError: no metric has such a setting; a value of another type.
    """
    declared = declared_settings()
    for name in given:
        if name not in declared:
            fix = did_you_mean(str(name), declared) or "python -m pipeline score --help"
            raise UserError("no such setting", where=f"evaluation.{name}", fix=fix)
    settings: dict[str, Any] = {}
    for name, each in declared.items():
        value = given.get(name, each.default)
        if type(value) is type(each.default) and value == each.default:
            settings[name] = copy.copy(value)  # as nearly all are: a form for each takes longer than the rest
            continue
        form = dataclasses.make_dataclass("Own", [(name, each.type, _default(each.default))])
        try:
            own = OmegaConf.merge(OmegaConf.structured(form), {name: value})
            settings[name] = OmegaConf.to_container(own)[name]  # type: ignore[call-overload,index]
        except OmegaConfBaseException as error:
            where = f"evaluation.{name}"
            raise UserError(first_line(error), where=where, fix=each.example or way_out(where)) from error
    return settings


def _default(value: Any) -> Any:
    return dataclasses.field(default_factory=lambda: value) if isinstance(value, list) else value
