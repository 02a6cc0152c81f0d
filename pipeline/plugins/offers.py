"""Which module of others put what into our registries."""

from __future__ import annotations

#: Kind and name of each thing → the module that offered it, which need not be the one that holds its class.
offered_by: dict[tuple[str, str], str] = {}
