"""One command's settings from conf/ and the command line, by Hydra; a misspelt one is named with its nearest known."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

import yaml
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from mechanisms.public.errors import UserError, did_you_mean
from pipeline.conf_folder import CONF, SEARCH
from pipeline.help import DOLLAR, choices, first_line, of_others, way_out
from pipeline.plugins.plugin_discovery import load_asked
from pipeline.settings.experiment_list import described
from pipeline.settings.overrides import spelled
from pipeline.settings.own_settings import offer_settings


def safe_name(text: str, short: str = "") -> str:
    """A folder name for one job of a sweep: its overrides, without what a file system dislikes.

    Of a path only its last part stays, with a digest, so that two paths make two folders.

    Args:
        short: what a name that is too long begins with, in place of its own beginning; a digest of all ends it.
    """
    text = re.sub(r"=([^,=]*/[^,=]*)", lambda m: f"={Path(m[1]).name}-{_short(m[1])}", text)
    name = re.sub(r"[^A-Za-z0-9_.=,+-]+", "_", text).strip("_") or "job"
    return name if len(name) <= 180 else f"{(safe_name(short) if short else name)[:160]}-{_short(text)}"


def _short(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


OmegaConf.register_new_resolver("safe_name", safe_name, replace=True)


#: Each of these says alone which marginals are measured.
LISTS = ("selection.marginals", "selection.closure", "selection.k")
#: What Hydra raises for settings that cannot be; for names that no file has (a null, a number) what Python raises.
FAULTS = (HydraException, OmegaConfBaseException, ValueError, OSError)
#: Hydra composes in one thread at a time.
COMPOSING = threading.RLock()
#: What a setting looks like.
KEY_VALUE = "write key=value; close every bracket, quote odd names: 'marginal=[age,\"late?\"]'"


def compose_config(name: str, overrides: Sequence[str], *, own: bool = False) -> DictConfig:
    """The composed settings of one command (and Hydra's `own`); modules of others that they ask for are loaded.

    Raises:
        UserError: a misspelt setting, with the nearest known one; several values; a module that cannot be loaded.
    """
    listed = isinstance(overrides, Sequence) and not isinstance(overrides, str)
    if not listed or not all(isinstance(o, str) for o in overrides):
        fix = '["data=adult", "privacy.epsilon=0.5"]'
        raise UserError("it is no list of texts", where="overrides", fix=fix)
    given = list(map(spelled, overrides))
    firsts = [first_of_sweep(o) for o in given]
    check_one_list(firsts)
    with composing(given):
        try:
            composed: DictConfig = compose(name, firsts, return_hydra_config=own)
        except FAULTS as error:
            raise misspelt(name, firsts, error) from error
    _one_value_each(given)
    return composed


@contextmanager
def composing(overrides: Sequence[str]) -> Iterator[None]:
    """Hydra composes settings in this block; modules of others that the overrides ask for are loaded.

    Raises:
        UserError: a module that cannot be loaded.
    """
    load_asked(overrides)
    offer_settings()
    with COMPOSING:
        GlobalHydra.instance().clear()
        with initialize_config_dir(str(CONF), version_base="1.3", job_name="pipeline"):
            yield


def check_one_list(overrides: Sequence[str]) -> None:
    """Refuse marginals that are named in two ways: one of them would be ignored.

    Raises:
        UserError: names both.
    """
    given = [key for key, _, value in (o.partition("=") for o in overrides) if key in LISTS and value != "null"]
    if len(set(given)) > 1:
        fix = "one of them; selection.closure=[[a,b,c]] holds all marginals of a, b and c"
        raise UserError("each says which marginals are measured", where=", ".join(sorted(set(given))), fix=fix)


def plain(composed: DictConfig) -> dict[str, Any]:
    """The values of composed settings, without Hydra's own."""
    values = {str(name): value for name, value in composed.items() if name != "hydra"}
    return {n: OmegaConf.to_container(v, resolve=True) if OmegaConf.is_config(v) else v for n, v in values.items()}


def records_of(composed: DictConfig) -> dict[str, str]:
    """Hydra's own records of a run, by their names, kept under internal/ (they may name files and seeds)."""
    from mechanisms.public.schema.schema_text import dump_yaml  # help and mistakes do without numpy

    own: Any = OmegaConf.to_container(composed.hydra, enum_to_str=True)
    records = {"config.yaml": plain(composed), "hydra.yaml": {"hydra": own}, "overrides.yaml": own["overrides"]["task"]}
    return {name: dump_yaml(content) for name, content in records.items()}


def check_hydra(own: DictConfig) -> None:
    """Refuse what Hydra does for jobs of its own: it composes settings here, and starts nothing.

    Raises:
        UserError: names the setting.
    """
    if isinstance(own.launcher, str):
        fix = f"hydra/launcher={own.launcher}, for a sweep (run -m)"
        raise UserError("a group of settings, not one", where="hydra.launcher", fix=fix)
    if own.launcher.get("n_jobs") == 0:
        raise UserError("got 0", where="hydra.launcher.n_jobs", fix="how many jobs at a time: 2; or -1 for all cores")
    unused = {"callbacks": own.callbacks, "output_subdir": own.output_subdir, "job.env_set": own.job.env_set}
    for name, value in (unused | {"job.chdir": own.job.chdir}).items():
        if value:
            raise UserError("Hydra composes the settings and starts no job", where=f"hydra.{name}", fix="leave it out")


def _one_value_each(overrides: Sequence[str]) -> None:
    """Refuse the values of a sweep, of settings that were composed.

    Raises:
        UserError: one setting has several values.
    """
    for override in overrides:
        if first_of_sweep(override) != override:
            key, _, value = override.partition("=")
            one = f"{key}=[{value}] for a list, {key}='\"{value}\"' for a text"
            fix = f"one of them, or run -m for a run per value; where they are one value: {one}"
            raise UserError("several values where one is asked for", where=f"override {override!r}", fix=fix)


def first_of_sweep(override: str) -> str:
    """`a=1,2` → `a=1`, so that a sweep's keys can be checked before its first job starts."""
    try:
        parsed = OverridesParser.create().parse_override(override)
    except HydraException as error:
        raise UserError("not a setting", where=f"override {override!r}", fix=KEY_VALUE) from error
    if not parsed.key_or_group:
        raise UserError("not a setting", where=f"override {override!r}", fix=KEY_VALUE)
    if parsed.is_delete() and not parsed.key_or_group.startswith("hydra"):
        fix = f"leave it out for its default, or {parsed.key_or_group}=VALUE"
        raise UserError("a setting cannot be taken away", where=f"override {override!r}", fix=fix)
    if not parsed.is_sweep_override():
        _check_choice(parsed)
        return override
    return f"{parsed.get_key_element()}={listed(parsed, 1)[0]}"


def _check_choice(override: Override) -> None:
    """UserError where a group such as selection is given no name, or several: Hydra has no message for it."""
    group, value = override.key_or_group, override.value()
    if (CONF / group).is_dir() and not isinstance(value, str):
        raise UserError(f"no {group} called {value!r}", where=group, fix=f"one of: {', '.join(choices(group))}")


def listed(override: Override, most: int) -> list[str]:
    """The first of a sweep's values for one setting.

    Args:
        most: how many at most.
    Raises:
        UserError: they cannot be listed, or there are none.
    """
    fix = "key=value,value or key=range(1,5)"
    try:
        values = list(islice(override.sweep_string_iterator(), most)) if override.is_discrete_sweep() else []
    except HydraException:  # glob() stands for names of groups, which it does not know
        values = []
    if not values:
        problem = f"the values of {override.input_line!r} cannot be listed"
        raise UserError(problem, where=str(override.key_or_group), fix=fix)
    return values


def misspelt(name: str, overrides: Sequence[str], error: Exception) -> UserError:
    """The misspelt override among many, found by composing each alone (after the choices of groups, which add keys)."""
    own = [o for o in overrides if o.startswith(f"{SEARCH}=")]
    groups = own + [o for o in overrides if (key := o.lstrip("+~").partition("=")[0]) and (CONF / key).is_dir()]
    with suppress(*FAULTS):  # a group without that choice is found below
        keys = setting_names(compose(name, groups))
        for override in overrides:
            key = override.lstrip("~").partition("=")[0]
            if not (override in groups or key in keys or key.startswith(("+", "hydra."))):
                return _no_setting(name, override, key, keys)
    for override in [*groups, *(o for o in overrides if o not in groups)]:
        try:
            compose(name, [*own, override] if override in groups else [*groups, override])
        except FAULTS as alone:
            key, _, value = override.lstrip("+~").partition("=")
            group = CONF / key
            if group.is_dir():
                folders = [str(p).removeprefix("file://") for o in own for p in yaml.safe_load(o.partition("=")[2])]
                names = choices(key, list(map(Path, folders)))
                if value in names:
                    return UserError(
                        f"this command takes no {key}", where=f"override {override!r}", fix=way_out("", name)
                    )
                allowed = f"\n{described()}" if key == "experiment" else " " + ", ".join(names)
                fix = f"{did_you_mean(value, names)} one of:{allowed}".strip()
                return UserError(f"no {key} called {value!r}", where=f"override {override!r}", fix=fix)
            keys = setting_names(compose(name, groups))
            if key not in keys:
                return _no_setting(name, override, key, keys)
            fix = DOLLAR if "${" in value else way_out(key, name)
            return UserError(first_line(alone), where=f"override {override!r}", fix=fix)
    return UserError(first_line(error), where="settings", fix=way_out("", name))


def _no_setting(name: str, override: str, key: str, keys: list[str]) -> UserError:
    if key.partition(".")[0] in keys and (other := of_others(key)):
        problem, fix = other
        return UserError(problem, where=f"override {override!r}", fix=fix)
    asked = "table" if (name, key) == ("schema_draft", "data.path") else key
    fix = did_you_mean(asked, keys) or way_out("", name)
    if name == "schema_draft" and key in {"data.table", "data.query"}:
        fix = "name it behind the address: sqlite:///FILE.db#TABLE, or #'SELECT …'"
    return UserError("no such setting", where=f"override {override!r}", fix=fix)


def setting_names(node: DictConfig, prefix: str = "") -> list[str]:
    """The full names of all settings of a composed configuration, groups' names among them."""
    keys: list[str] = []
    for key in map(str, node):
        keys.append(f"{prefix}{key}")
        if not OmegaConf.is_missing(node, key) and isinstance(node._get_node(key), DictConfig):
            child = node._get_node(key)
            if not child._is_none():  # type: ignore[union-attr]
                keys += setting_names(child, f"{prefix}{key}.")  # type: ignore[arg-type]
    return keys


def check_seed(given: Mapping[Any, Any]) -> None:
    """UserError where `seed` is given, and all that it sets is set otherwise."""
    seed, groups = given.get("seed"), {"privacy": "noise_seed", "synthesis": "seed"}
    sets = {f"{group}.{name}": given[group].get(name) for group, name in groups.items() if group in given}
    if seed is not None and "synthesis" in given and seed not in sets.values():
        raise UserError(f"got {seed}, and nothing reads it", where="seed", fix=f"leave it out, or {', '.join(sets)}")


def check_switches(given: Any, values: Mapping[str, Any], group: str = "") -> None:
    """UserError where a number was taken for true or false."""
    for key, value in values.items():
        own = given.get(key) if isinstance(given, Mapping) else None
        if isinstance(value, Mapping):
            check_switches(own, value, f"{group}{key}.")
        elif isinstance(value, bool) and isinstance(own, int | float) and own not in (0, 1):
            raise UserError(f"got {own}", where=f"{group}{key}", fix="true or false")
