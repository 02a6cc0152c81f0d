"""Whose code a release rests on: what is not ours is named in its statement, and reading it imports nothing."""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path

from mechanisms.accounting.accountants.registered import ACCOUNTANTS
from mechanisms.accounting.events import NOISE_EVENTS, as_noise
from mechanisms.accounting.plan import Plan
from mechanisms.public.errors import UserError
from mechanisms.public.files import Json, JsonDict
from mechanisms.public.queries.cell_sums import QUERIES
from mechanisms.public.release import Measurements
from mechanisms.public.tables.formats import FORMATS, TableFormat, format_of_file
from mechanisms.public.tables.scan import Source
from mechanisms.selection.selections import method_of
from pipeline.packages import OURS
from pipeline.plugins.offers import SETTING, offered_by
from pipeline.plugins.plugin_discovery import is_module_name
from pipeline.settings.experiment_list import EXPERIMENTS, running
from pipeline.settings.specs import Specs
from pipeline.statement.words import is_older
from synthesis.gum.gum_settings import StartedGum

#: What a reader of a release must know by name, by the kind that the statement spells.
_READ: dict[str, Json] = {
    "mechanism": NOISE_EVENTS,
    "accountant": ACCOUNTANTS,
    "query": QUERIES,
    "format": FORMATS,
}


def not_ours(specs: Specs, plan: Plan, source: Source, measurements: Measurements, maker: type) -> tuple[JsonDict, ...]:
    """What the promise of a release rests on and is not ours: kind, name, module, distribution, version, digest.

    From the objects that were used: the selection with its method, the accountant, the noise of every charge that the
    plan may make, the query matrices of the answers; and what else was handed rows, or could read a file: the engine,
    what opened the table and what wrote the release, what made the rows, and the experiment that ran it all. A metric's
    scores are not released: no promise rests on them.

    Args:
        source: the table, as it was opened, with the files that it was read from.
        maker: the class of the synthesizer.
    """
    config = specs.config
    read = {format_of_file(file).name for file, *_ in source.states}
    written = FORMATS[config.release.format]
    asked = [("query", type(a.query).__name__, _home(type(a.query))) for a in measurements.answers]
    parts = [*_planned(specs, plan), *asked, *_of_table(config.synthesis.kind, maker, written)]
    parts += [("reader", name, FORMATS[name].reader.partition(":")[0]) for name in sorted(read)]
    for experiment in running:
        thing = EXPERIMENTS[experiment]
        parts.append(("experiment", experiment, getattr(thing, "__module__", None) or thing.__name__))  # type: ignore[attr-defined]
    return _named(parts)


def statement_of_new_rows(statement: Json, synthesis: str, maker: type, form: TableFormat) -> Json:
    """The statement of a release whose table is made anew, with what made and wrote it where that is not ours.

    A public table is named as the start of these rows only where they start from it, and else as that of the run's.

    Args:
        synthesis: the name of the synthesizer; `maker` its class.
    """
    stated = statement.get("not_ours") or []
    more = [part for part in _named(_of_table(synthesis, maker, form)) if part not in stated]
    starts = {"public_start", "run_start"}
    kind = "public_start" if issubclass(maker, StartedGum) else "run_start"
    if not is_older(statement):
        facts = [{**f, "fact": kind} if f["fact"] in starts else f for f in statement["public_facts"]]
        statement = {**statement, "public_facts": facts}
    return {**statement, "not_ours": [*stated, *more]} if more else statement


def _of_table(synthesis: str, maker: type, form: TableFormat) -> list[tuple[str, str, str]]:
    """What made the rows of a table, and what wrote them."""
    return [("synthesis", synthesis, _home(maker)), ("format", form.name, form.writer.partition(":")[0])]


def rests_on_others(specs: Specs, plan: Plan) -> bool:
    """Whether anything that a plan's cost rests on is not ours."""
    return bool(_named(_planned(specs, plan)))


def _planned(specs: Specs, plan: Plan) -> list[tuple[str, str, str]]:
    kind, method = specs.selection.kind, method_of(plan.method)
    parts = [("selection", kind, _home(type(specs.selection))), ("selection", kind, _home(type(method)))]
    parts.append(("accountant", plan.accountant.kind, _home(type(plan.accountant))))
    noise = [e for e in plan.composed if not e.is_choice and as_noise(e)]
    parts += [("mechanism", e.kind, _home(type(e))) for e in noise]
    return [*parts, ("engine", specs.config.engine.kind, _home(type(specs.engine)))]


def _home(thing: type) -> str:
    """The module of a class; unknown where it names ours, or Python's (`make_dataclass`), that does not hold it."""
    module = str(thing.__module__)
    held = getattr(sys.modules.get(module), thing.__qualname__, None)
    return module if held is thing or module.partition(".")[0] not in {*OURS, *sys.stdlib_module_names} else "unknown"


def _named(parts: Iterable[tuple[str, str, str]]) -> tuple[JsonDict, ...]:
    """Those that a plugin offered, whatever their classes say, and those of modules that are not ours."""
    named: dict[tuple[str, str], JsonDict] = {}
    for kind, name, module in parts:
        by, top = offered_by.get(("format" if kind == "reader" else kind, name)), module.partition(".")[0]
        if by is not None or top not in OURS:
            code = origin(by if by and top in {*OURS, "unknown"} else module, by)
            named.setdefault((kind, name), {"kind": kind, "name": name, **code, "audited": False})
    return tuple(named.values())


def origin(module: str, offered_by: str | None = None) -> JsonDict:
    """What a module is known by: its name, its package with its version, and the digest of its code.

    Args:
        offered_by: the module that put it into a registry, whose code counts too; None: itself.
    """
    top = sys.modules.get(module.partition(".")[0])
    listed = _distributions().get(module.partition(".")[0], ())
    package = next(iter(listed), None)
    try:
        number = None if package is None else version(package)
    except PackageNotFoundError:
        number = None
    given = getattr(top, "__version__", None)
    return {
        "module": module,
        "distribution": package,
        "version": number or (given if isinstance(given, str) else None),
        "sha256": _digest(module, offered_by or module),
    }


@cache  # before rows are read: a file that changes afterwards is not the code that this process imported
def _digest(module: str, offered_by: str) -> str | None:
    """The digest of the code behind a plugin; None if there is no file of it, or none that can be read.

    Of a module in a package: over all Python files of the package. Of another module: over its file, and the files
    beside it that it imports. Those of the module that offers the plugin are included.
    """
    try:
        files = _files(offered_by) | _files(module)
        digests = {name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in files.items()}
    except OSError:  # moved since it was imported: a release that is paid for is written all the same
        return None
    if len(files) == 1 and not hasattr(sys.modules.get(module.partition(".")[0]), "__path__"):
        return next(iter(digests.values()))
    each = (f"{digests[name]}  {name}\n" for name in sorted(files))
    return hashlib.sha256("".join(each).encode()).hexdigest() if files else None


def _files(module: str) -> dict[str, Path]:
    """The files in which a module's work may be done, by their names."""
    name = module.partition(".")[0]
    folders = [Path(folder) for folder in getattr(sys.modules.get(name), "__path__", ())]
    if folders:
        return {str(path.relative_to(folder)): path for folder in folders for path in folder.rglob("*.py")}
    file = getattr(sys.modules.get(module), "__file__", None)
    return _beside(Path(file)) if file else {}


def _beside(file: Path) -> dict[str, Path]:
    """A module's file and those in its folder that it imports, or that these import: by their import statements.

    What an installed package of another name brings is not looked into.
    """
    folder, files, left, packages = file.parent, {file.name: file}, [file], _distributions()
    own = packages.get(file.stem)
    while left:
        for top in _imported_names(left.pop()) - set(OURS):
            if packages.get(top) not in (None, own):
                continue
            flat = folder / f"{top}.py"
            for path in [flat] if flat.is_file() else sorted((folder / top).rglob("*.py")):
                if (name := str(path.relative_to(folder))) not in files:
                    files[name] = path
                    left.append(path)
    return files


def _imported_names(file: Path) -> set[str]:
    """The first parts of the names that a file imports; none where it cannot be parsed (its bytes count)."""
    names: set[str] = set()
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.add(node.module.partition(".")[0])
    return names


def _distributions() -> Mapping[str, list[str]]:
    """The packages that bring a name, by the names; read again where a folder that holds packages has changed."""
    folders = [Path(folder) for folder in sys.path]
    return _listed(tuple((str(f), f.stat().st_mtime_ns) for f in folders if any(f.glob("*-info"))))


@lru_cache(maxsize=1)
def _listed(folders: tuple[tuple[str, int], ...]) -> Mapping[str, list[str]]:
    return packages_distributions()  # it opens a file or two of every package: half a second


def check_loaded(statement: Json, where: str, kinds: Sequence[str]) -> None:
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
        parts_unknown = " and ".join(f"{k} {n!r}" for k, n, _ in unknown)
        fix = f"{SETTING}=[{asked}] if you trust what is named so: reading a release imports nothing that it names"
        raise UserError(f"it was made with {parts_unknown}, not ours", where=where, fix=fix)
