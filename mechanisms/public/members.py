"""Registries of things by name, and libraries that only some need: both are loaded when they are asked for."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pkgutil import resolve_name
from typing import Any, TypeVar, cast

from mechanisms.public.errors import UserError

#: Library → the extra of this package that brings it.
EXTRAS = {
    "matplotlib": "plots",
    "sklearn": "ml",
    "mbi": "mbi",
    "pyspark": "spark",
    "sqlglot": "sql",
    "polars": "polars",
    "adbc_driver_postgresql": "postgresql",
}


def absent_extra(library: str) -> str:
    """What brings an optional library, in one line; empty where it is installed.

    Args:
        library: a key of EXTRAS, or empty for none.
    """
    if not library or find_spec(library) is not None:
        return ""
    return f"needs the library {library}: {_cure(library)}"


def _cure(library: str) -> str:
    """The library itself: an index may not have this package."""
    name = {"sklearn": "scikit-learn threadpoolctl"}.get(library, library.replace("_", "-"))
    return f"pip install {name} (the extra `{EXTRAS[library]}` of this package)"


def need_extra(library: str, where: str) -> None:
    """The optional library is installed.

    Args:
        library: a key of EXTRAS.
        where: the setting or the command that needs it.
    Raises:
        UserError: it is not; names the extra that brings it.
    """
    if find_spec(library) is None:
        raise UserError(f"this needs the library {library}, which is not installed", where=where, fix=_cure(library))


T = TypeVar("T")


class Members(UserDict[str, T]):
    """Things by name.

    A thing given as `module:name` is imported when it is first asked for. Where that module is not installed, its name
    is taken and `in` them, asking for it is an error that says so, and it is not among the members that are listed.
    """

    data: dict[str, Any]

    def __init__(self, where: str, given: Mapping[str, T | str]) -> None:
        """Members of a registry.

        Args:
            where: the setting by which one of them is asked for.
            given: name → the thing, or `module:name` of it; a module alone is the thing itself.
        """
        super().__init__()
        self._where, self.data = where, dict(given)

    def __getitem__(self, name: str) -> T:
        given = self.data[name]
        if isinstance(given, str):
            self.data[name] = needed(given, f"{name!r}", self._where, ", ".join(self) or "leave it out")
        return cast(T, self.data[name])

    def __iter__(self) -> Iterator[str]:
        return (name for name, given in list(self.data.items()) if not isinstance(given, str) or _installed(given))

    def __len__(self) -> int:
        return sum(1 for _ in self)


@cache
def _installed(text: str) -> bool:
    try:
        return find_spec(text.partition(":")[0]) is not None
    except ModuleNotFoundError:  # the folder that holds it
        return False


def needed(text: str, thing: str, where: str, instead: str) -> Any:
    """The thing that a dotted text names.

    Args:
        text: `module:name`; a module alone is the thing itself.
        thing: its name for readers.
        where: the setting that asks for it.
        instead: an allowed value of that setting, or another way out.
    Raises:
        UserError: the module is not installed.
    """
    module = text.partition(":")[0]
    if not _installed(text):
        place = module.rpartition(".")[0].replace(".", "/")
        problem = f"{thing} belongs to the rooms of the papers, and {place}/ is not installed"
        raise UserError(problem, where=where, fix=f"the project with that folder; or {instead}")
    return resolve_name(text)
