"""Registries: things by name, some of them by dotted text, which are loaded when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from functools import cache
from importlib.util import find_spec
from pkgutil import resolve_name
from typing import Any, TypeVar

from mechanisms.public.errors import UserError

T = TypeVar("T")


class Members(MutableMapping[str, T]):
    """Things by name.

    A thing given as `module:name` is imported when it is first asked for. Where that module is not installed, its name
    is taken, asking for it is an error that says so, and it is not among the members that are listed.
    """

    def __init__(self, where: str, given: Mapping[str, T | str]) -> None:
        """Members of a registry.

        Args:
            where: the setting by which one of them is asked for.
            given: name → the thing, or `module:name` of it; a module alone is the thing itself.
        """
        self._where, self._given = where, dict(given)

    def __getitem__(self, name: str) -> T:
        given = self._given[name]
        if isinstance(given, str):
            given = self._given[name] = needed(given, f"{name!r}", self._where, ", ".join(self) or "leave it out")
        return given

    def __setitem__(self, name: str, thing: T) -> None:
        self._given[name] = thing

    def __delitem__(self, name: str) -> None:
        del self._given[name]

    def __contains__(self, name: object) -> bool:
        """Whether the name is taken, by a thing that is installed or not."""
        return name in self._given

    def __iter__(self) -> Iterator[str]:
        return (name for name, given in list(self._given.items()) if not isinstance(given, str) or _installed(given))

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
