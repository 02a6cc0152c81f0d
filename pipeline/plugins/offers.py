"""Which module of others offers what, as packages declare it and as loaded modules did; imports none of them."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points

#: The group of entry points that a package declares what it offers in.
GROUP = "dp_synthesis_pipeline.plugins"
#: Kind and name of each thing → the module that offered it, which need not be the one that holds its class.
offered_by: dict[tuple[str, str], str] = {}


def offering(kind: str) -> tuple[str, ...]:
    """The names of that kind that installed packages declare, or loaded modules offer; imports nothing."""
    names = (name.removeprefix(f"{kind}.") for name in declared() if name.startswith(f"{kind}."))
    return tuple(sorted({*names, *(name for of, name in offered_by if of == kind)}))


@cache
def declared() -> dict[str, tuple[EntryPoint, ...]]:
    """KIND.NAME → the entry points of that name; read once."""
    by_name: dict[str, tuple[EntryPoint, ...]] = {}
    for entry in entry_points(group=GROUP):
        by_name[entry.name] = (*by_name.get(entry.name, ()), entry)
    return by_name
