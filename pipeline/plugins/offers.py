"""Which loaded module of others offers what; imports none of them."""

from __future__ import annotations

#: The setting that names modules.
SETTING = "plugins"
#: Kind and name of each thing → the module that offered it, which need not be the one that holds its class.
offered_by: dict[tuple[str, str], str] = {}


def offering(kind: str) -> tuple[str, ...]:
    """The names of that kind that loaded modules offer."""
    return tuple(sorted(name for of, name in offered_by if of == kind))
