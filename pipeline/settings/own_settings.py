"""Settings that stand with what they set: a frozen dataclass of a selection's own, checked; those of metrics."""

from __future__ import annotations

import copy
import dataclasses
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from hydra.core.config_store import ConfigStore
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException, ValidationError

from evaluation.metrics import declared_settings
from mechanisms.public.errors import UserError, did_you_mean
from mechanisms.public.settings import BoundedSettings, declared
from pipeline.help import first_line, way_out
from pipeline.settings.overrides import literal

T = TypeVar("T")
_FORMS: dict[type[Any], DictConfig] = {}


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
        return filled(cls, options)
    except OmegaConfBaseException as error:
        where = f"{group}.{getattr(error, 'full_key', None) or culprit(cls, options, 'kind').partition('.')[0]}"
        raise UserError(first_line(error), where=where, fix=way_out(where, "config")) from error


def form_of(cls: type[Any]) -> DictConfig:
    """The types and defaults of a dataclass, to merge values into; it is made once, and merging copies it."""
    if cls not in _FORMS:
        form: DictConfig = OmegaConf.structured(cls)
        OmegaConf.set_readonly(form, False)  # that of a frozen dataclass is read-only
        _FORMS[cls] = form
    return _FORMS[cls]


def filled(cls: type[T], values: Mapping[str, Any]) -> T:
    """The dataclass with these values, each read by itself as what its type says; the others as it has them.

    Raises:
        OmegaConfBaseException: a value of another type.
    """
    return cls(**{name: of_its_type(cls, name, value) for name, value in values.items()})


def of_its_type(cls: type[Any], name: str, value: Any) -> Any:
    """A plain value (a mapping, where this is a group of settings) as the type of this setting says.

    Raises:
        OmegaConfBaseException: it is of another type.
    """
    form = OmegaConf.masked_copy(form_of(cls), name)
    try:
        merged: Any = OmegaConf.to_object(OmegaConf.merge(form, {name: literal(value)}))
    except OverflowError as error:
        raise ValidationError("a number that is too large") from error
    return merged[name]


def culprit(cls: type[Any], values: Mapping[str, Any], whole: str) -> str:
    """The setting that does not fit its type, found by merging each alone (OmegaConf names none for lists of lists).

    Args:
        values: plain ones, in groups or not.
        whole: what is named where each fits alone.
    """
    for group, node in values.items():
        for key in node if isinstance(node, Mapping) else [None]:
            try:
                of_its_type(cls, group, node if key is None else {key: node[key]})
            except OmegaConfBaseException:
                return group if key is None else f"{group}.{key}"
    return whole


def allowed(cls: type[Any], where: str) -> str:
    """What a setting may be, for somebody who gave a value of another type; empty where no bounds stand beside it."""
    group, _, name = where.rpartition(".")
    kind = typing.get_type_hints(cls).get(group, cls)
    declares = issubclass(kind, BoundedSettings)
    return next((s.allowed("") for s in declared(kind) if s.name == name and s.bounded), "") if declares else ""


def offer_settings() -> None:
    """Tell Hydra the settings of all metrics, so that each is spelled `evaluation.NAME`."""
    defaults = {each.name: each.default for each in declared_settings().values()}
    ConfigStore.instance().store("metric_settings", OmegaConf.create(defaults), group="evaluation")


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
