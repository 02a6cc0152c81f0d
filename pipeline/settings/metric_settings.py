"""The settings that metrics bring: spelled `evaluation.NAME`, checked against what the metrics declare."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from typing import Any

from hydra.core.config_store import ConfigStore
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from evaluation.metrics import declared_settings
from mechanisms.public.errors import UserError, did_you_mean
from pipeline.settings.ways_out import first_line, way_out


def offer_settings() -> None:
    """Tell Hydra the settings of all metrics, so that each is spelled `evaluation.NAME`."""
    defaults = {each.name: each.default for each in declared_settings().values()}
    ConfigStore.instance().store("metric_settings", OmegaConf.create(defaults), group="evaluation")


def typed_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of all metrics, with their defaults where none is given.

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
