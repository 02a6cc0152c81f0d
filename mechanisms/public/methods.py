"""What decides between the rounds of an adaptive plan: settings and public facts, as frozen words."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from mechanisms.public.domain import Clique


@dataclass(frozen=True)
class Adagrid:
    """Adaptive granularity (McKenna 2021): rounds by order, each marginal's queries from its parents' noisy answers.

    Attributes:
        threshold: a cell is fine where every parent's noisy count is at least so many standard deviations.
        candidates: pairs among which a tree is chosen privately; empty where all marginals are given.
        targets: attributes that every marginal includes, where a tree is chosen.
    """

    kind: ClassVar[str] = "adagrid"
    threshold: float
    candidates: tuple[Clique, ...] = ()
    targets: Clique = ()


@dataclass(frozen=True)
class Mst:
    """A maximum spanning tree of dependences (McKenna, Miklau & Sheldon 2021).

    Attributes:
        candidates: pairs of attributes that may become edges.
        rare: values with a noisy count below so many standard deviations are measured as one.
        floor: and those with a noisy count below so many records; both 0: none.
    """

    kind: ClassVar[str] = "mst"
    candidates: tuple[Clique, ...]
    rare: float = 3.0
    floor: float = 0.0


@dataclass(frozen=True)
class Merge:
    """Given marginals over merged values (Li et al. 2021b, section 5.3): the one-way ones first, then the others.

    Attributes:
        rare: values with a noisy count below so many standard deviations are measured as one.
        floor: and those with a noisy count below so many records.
    """

    kind: ClassVar[str] = "merge"
    rare: float = 4.5
    floor: float = 0.0


@dataclass(frozen=True)
class Mwem:
    """MWEM on a graphical model (Li et al. 2021b, §6.2): the worst marginal is measured next, all answers are fitted.

    Attributes:
        candidates: the marginals that may be measured.
        rounds: how many are.
        max_model_cells: candidates that would make the model larger are left out.
    """

    kind: ClassVar[str] = "mwem"
    candidates: tuple[Clique, ...]
    rounds: int
    max_model_cells: int


@dataclass(frozen=True)
class Aim:
    """AIM (McKenna, Mullins, Sheldon & Miklau 2022): workload-aware choice, annealed noise, a limit to the model.

    Attributes:
        candidates: the downward closure of the workload.
        weights: per candidate Σ over workload marginals of weight · |overlap|.
        measured: the part of each round that measures; the rest chooses.
        rounds: the budget is split for so many rounds at first.
        max_model_cells: the model's size at the end; a round may use the part of it that is spent.
    """

    kind: ClassVar[str] = "aim"
    candidates: tuple[Clique, ...]
    weights: tuple[float, ...]
    measured: float
    rounds: int
    max_model_cells: int


@dataclass(frozen=True)
class Indif:
    """PrivSyn's choice of pairs by their distance from independence (Zhang et al. 2021; Li et al. 2021b, section 5.2).

    Attributes:
        candidates: the pairs that are scored; empty: the one-way marginals are measured twice.
        combine_cells: overlapping pairs become marginals of at most so many cells; 0: they stay pairs.
        groups: the largest number of attributes in a group of dependent ones (pairs across groups are left out); 0:
            no groups.
    """

    kind: ClassVar[str] = "indif"
    candidates: tuple[Clique, ...]
    combine_cells: int = 1000
    groups: int = 0


@dataclass(frozen=True)
class PriView:
    """Covering designs (Qardaji, Yang & Li 2014; Li et al. 2021b, §3.2), one of them by the noisy number of rows.

    Attributes:
        designs: the views of each design, t = 2 first; the last one that is precise enough is measured.
    """

    kind: ClassVar[str] = "priview"
    designs: tuple[tuple[Clique, ...], ...]


@dataclass(frozen=True)
class PrivBasis:
    """Frequent items and pairs by the exponential mechanism, then a basis (Li et al. 2012; Li et al. 2021b, §3.1).

    Attributes:
        items: the binary columns; code 1 means that a row has the item.
        wanted: how many items are chosen.
        pairs: how many pairs of them are chosen.
        max_cells: of a basis.
    """

    kind: ClassVar[str] = "privbasis"
    items: Clique
    wanted: int
    pairs: int
    max_cells: int = 256


Method = Adagrid | Mst | Merge | Mwem | Aim | Indif | PriView | PrivBasis


def method_json(method: Method) -> dict[str, Any]:
    """The method as JSON values."""
    return {"kind": method.kind, **asdict(method)}
