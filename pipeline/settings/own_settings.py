"""Settings that stand with what they set: a frozen dataclass of a selection's or an experiment's own, checked."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from mechanisms.public.errors import UserError, did_you_mean
from pipeline.settings.ways_out import first_line, way_out

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
        settings = OmegaConf.to_object(OmegaConf.merge(form_of(cls), dict(options)))
    except OmegaConfBaseException as error:
        where = f"{group}.{getattr(error, 'full_key', None) or culprit(cls, options, 'kind').partition('.')[0]}"
        raise UserError(first_line(error), where=where, fix=way_out(where, "config")) from error
    assert isinstance(settings, cls)
    return settings


def form_of(cls: type[Any]) -> DictConfig:
    """The types and defaults of a dataclass, to merge values into; it is made once, and merging copies it."""
    if cls not in _FORMS:
        form: DictConfig = OmegaConf.structured(cls)
        OmegaConf.set_readonly(form, False)  # that of a frozen dataclass is read-only
        _FORMS[cls] = form
    return _FORMS[cls]


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
