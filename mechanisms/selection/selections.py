"""The registry: which settings belong to a selection's name, and which method to a plan's description."""

from __future__ import annotations

from mechanisms.public.files import Json
from mechanisms.public.members import Members
from mechanisms.selection.aim import AimSettings
from mechanisms.selection.auto import AutoSettings
from mechanisms.selection.base import Method, Selection
from mechanisms.selection.fixed import Fixed, Given
from mechanisms.selection.mst import MstSettings

#: The selections by name; a contract test runs over all of them.
SELECTIONS: Members[type[Selection]] = Members(
    "selection",
    {
        "auto": AutoSettings,
        "fixed": Fixed,
        "adagrid": "mechanisms.selection.papers.adagrid:AdagridSettings",
        "mst": MstSettings,
        "mwem": "mechanisms.selection.papers.mwem:MwemSettings",
        "aim": AimSettings,
        "indif": "mechanisms.selection.papers.indif:IndifSettings",
        "priview": "mechanisms.selection.papers.priview:PriViewSettings",
        "public": "mechanisms.selection.papers.public_table:PublicSettings",
        "groups": "mechanisms.selection.papers.indif:GroupsSettings",
        "privbasis": "mechanisms.selection.papers.privbasis:PrivBasisSettings",
    },
)


def registered_methods() -> dict[str, type[Method]]:
    """What decides between rounds, by the kind that plans and ledgers know it by."""
    return {m.kind: m for s in SELECTIONS.values() for m in s.methods}


def method_of(description: Json) -> Method:
    """The method that a plan describes; KeyError for one that is not registered."""
    if not description:
        return Given()
    return registered_methods()[description["kind"]](**{k: v for k, v in description.items() if k != "kind"})
