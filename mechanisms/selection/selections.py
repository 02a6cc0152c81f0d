"""The registry: which settings belong to a selection's name, and which method to a plan's description."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mechanisms.selection.aim import AimSettings
from mechanisms.selection.auto import AutoSettings
from mechanisms.selection.base import Method, Selection
from mechanisms.selection.fixed import Fixed, Given
from mechanisms.selection.mst import MstSettings
from mechanisms.selection.papers.adagrid import AdagridSettings
from mechanisms.selection.papers.indif import IndifSettings
from mechanisms.selection.papers.mwem import MwemSettings
from mechanisms.selection.papers.privbasis import PrivBasisSettings
from mechanisms.selection.papers.priview import PriViewSettings
from mechanisms.selection.papers.public_table import PublicSettings
from mechanisms.selection.papers.weak_groups import GroupsSettings

#: The selections by name; a contract test runs over all of them.
SELECTIONS: dict[str, type[Selection]] = {
    s.kind: s
    for s in (
        AutoSettings,
        Fixed,
        AdagridSettings,
        MstSettings,
        MwemSettings,
        AimSettings,
        IndifSettings,
        PriViewSettings,
        PublicSettings,
        GroupsSettings,
        PrivBasisSettings,
    )
}


def registered_methods() -> dict[str, type[Method]]:
    """What decides between rounds, by the kind that plans and ledgers know it by."""
    return {m.kind: m for s in SELECTIONS.values() for m in s.methods}


def method_of(description: Mapping[str, Any]) -> Method:
    """The method that a plan describes; KeyError for one that is not registered."""
    if not description:
        return Given()
    return registered_methods()[description["kind"]](**{k: v for k, v in description.items() if k != "kind"})
