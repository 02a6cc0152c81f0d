"""Whose code a release rests on: what is not ours is named in its statement, and reading it imports nothing."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from types import ModuleType
from typing import Any

from mechanisms.accounting.accountants import ACCOUNTANTS
from mechanisms.accounting.adaptive import AdaptivePlan
from mechanisms.accounting.events import NOISE_EVENTS, as_noise
from mechanisms.accounting.plan import Plan
from mechanisms.public.errors import UserError
from mechanisms.public.queries.stored_queries import QUERIES
from mechanisms.public.release import Measurements
from mechanisms.selection.base import Selection
from mechanisms.selection.selections import method_of
from pipeline.packages import OURS
from pipeline.plugins.plugin_discovery import SETTING, declaring, is_module_name

#: What a reader of a release must know by name, by the kind that the statement spells.
_READ: dict[str, Mapping[str, Any]] = {"mechanism": NOISE_EVENTS, "accountant": ACCOUNTANTS, "query": QUERIES}


def not_ours(selection: Selection, plan: Plan | AdaptivePlan, measurements: Measurements) -> tuple[dict[str, Any], ...]:
    """What the promise of a release rests on and is not ours: kind, name, module, distribution, version, digest.

    From the objects that were used: the selection with its method, the accountant, the noise of every charge that the
    plan may make, and the query matrices of the answers. A synthesizer knows noisy answers alone, and a metric's
    scores are not released: no promise rests on them.
    """
    asked = [("query", type(a.query).__name__, type(a.query)) for a in measurements.answers]
    return _named([*_planned(selection, plan), *asked])


def rests_on_others(selection: Selection, plan: Plan | AdaptivePlan) -> bool:
    """Whether anything that a plan's cost rests on is not ours."""
    return bool(_named(_planned(selection, plan)))


def _planned(selection: Selection, plan: Plan | AdaptivePlan) -> list[tuple[str, str, type]]:
    parts: list[tuple[str, str, type]] = [("selection", selection.kind, type(selection))]
    if isinstance(plan, AdaptivePlan):
        parts.append(("selection", selection.kind, type(method_of(plan.method))))
    parts.append(("accountant", plan.accountant.kind, type(plan.accountant)))
    every = [*plan.events, *([plan.reserve.event] if isinstance(plan, AdaptivePlan) and plan.reserve else [])]
    return parts + [("mechanism", e.kind, type(e)) for e in every if not e.is_choice and as_noise(e)]


def _named(parts: Iterable[tuple[str, str, type]]) -> tuple[dict[str, Any], ...]:
    named: dict[tuple[str, str], dict[str, Any]] = {}
    for kind, name, cls in parts:
        if cls.__module__.partition(".")[0] not in OURS:
            named.setdefault((kind, name), {"kind": kind, "name": name, **origin(cls.__module__), "audited": False})
    return tuple(named.values())


def origin(module: str) -> dict[str, Any]:
    """What a module is known by: its name, its package with its version, and the digest of its code."""
    loaded = sys.modules.get(module)
    top = sys.modules.get(module.partition(".")[0])
    entry = declaring(module)
    package = entry.dist.name if entry is not None and entry.dist is not None else _package(module)
    try:
        number = None if package is None else version(package)
    except PackageNotFoundError:
        number = None
    given = getattr(top, "__version__", None)
    file = getattr(loaded, "__file__", None)
    return {
        "module": module,
        "distribution": package,
        "version": number or (given if isinstance(given, str) else None),
        "sha256": _digest(Path(file), top) if file else None,
    }


def _digest(file: Path, top: ModuleType | None) -> str:
    """Of the module's file; of a package's module over all Python files of the package, where its work may be done."""
    folders = [Path(folder) for folder in getattr(top, "__path__", ())]
    if not folders:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    files = {str(path.relative_to(folder)): path for folder in folders for path in folder.rglob("*.py")}
    each = (f"{hashlib.sha256(files[name].read_bytes()).hexdigest()}  {name}\n" for name in sorted(files))
    return hashlib.sha256("".join(each).encode()).hexdigest()


def _package(module: str) -> str | None:
    return next(iter(packages_distributions().get(module.partition(".")[0], ())), None)


def check_known(statement: Mapping[str, Any], where: str, kinds: Sequence[str]) -> None:
    """What a release names as not ours, and is needed to read it, is loaded already; nothing is imported for it.

    Args:
        kinds: of what is needed.
    Raises:
        UserError: it is not; names the module that the reader may ask for.
    """
    entries = statement.get("not_ours") or ()
    parts = [p for p in entries if isinstance(p, Mapping)] if isinstance(entries, list | tuple) else []
    named = [(p.get("kind"), p.get("name"), str(p.get("module"))) for p in parts if p.get("kind") in kinds]
    unknown = [(k, n, m) for k, n, m in named if isinstance(n, str) and n not in _READ[str(k)]]
    if unknown:
        asked = ",".join(m if is_module_name(m) else "MODULE" for m in sorted({m for _, _, m in unknown}))
        what = " and ".join(f"{k} {n!r}" for k, n, _ in unknown)
        fix = f"{SETTING}=[{asked}] if you trust what is named so: reading a release imports nothing that it names"
        raise UserError(f"it was made with {what}, not ours", where=where, fix=fix)
