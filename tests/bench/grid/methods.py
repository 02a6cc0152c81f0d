"""The methods of the grid: ours by their settings, and the peers, which run once at ε = 1."""

from collections.abc import Sequence
from dataclasses import dataclass

from mechanisms.selection.selections import SELECTIONS
from synthesis.synthesizers import SYNTHESIZERS
from tests.bench.peers.catalogue import PEERS

#: The one that everything is compared with: noisy single columns, independent of each other.
BASELINE = "independent"
#: The default, whose regret the aims are about.
AUTO = "auto"


@dataclass(frozen=True)
class Method:
    """One method: by settings of the pipeline, or a peer; so many seeds make a cell by default."""

    name: str
    settings: tuple[str, ...]
    seeds: int = 2
    peer: bool = False

    @property
    def there(self) -> bool:
        """Whether this version of the project knows its selection and its synthesizer."""
        if self.peer:
            return True
        asked = dict(s.split("=", 1) for s in self.settings)
        fixed = {"pairs", "oneway"}  # files of settings without a method of their own
        return asked["selection"] in fixed | set(SELECTIONS) and asked["synthesis"] in SYNTHESIZERS


def _ours(name: str, selection: str, synthesis: str, seeds: int = 2) -> Method:
    return Method(name, (f"selection={selection}", f"synthesis={synthesis}"), seeds)


METHODS = (
    _ours(AUTO, "auto", "auto", 5),
    _ours(BASELINE, "oneway", "independent", 5),
    _ours("pairs_gum", "pairs", "gum"),
    _ours("indif_gum", "indif", "gum"),
    _ours("mst_pgm", "mst", "pgm"),
    _ours("aim_pgm", "aim", "pgm"),
    *(Method(p.name, (), 1, peer=True) for p in PEERS if p.task == "synthesis"),
)


def methods(wanted: Sequence[str], *, peers: bool = False) -> list[Method]:
    """The methods whose name is wanted; where none is: all of ours that there are, and the peers if asked for.

    Raises:
        ValueError: a name that no method has, or one that this version does not know yet.
    """
    known = {m.name: m for m in METHODS}
    for name in wanted:
        if name not in known:
            raise ValueError(f"--methods: no method is called {name!r}; there are {', '.join(known)}")
        if not known[name].there:
            raise ValueError(f"--methods: {name} is not part of this version")
    return [m for m in METHODS if (m.name in wanted if wanted else m.there and (peers or not m.peer))]
