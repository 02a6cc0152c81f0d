"""What decides between the rounds of an adaptive plan: settings and public facts, as frozen words."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from mechanisms.public.domain import Clique


@dataclass(frozen=True)
class Adagrid:
    """Adaptive granularity (paper 003): rounds by order, each marginal's queries from its parents' noisy answers.

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
    """Given marginals over merged values (paper 002, section 5.3): the one-way ones first, then the others.

    Attributes:
        rare: values with a noisy count below so many standard deviations are measured as one.
        floor: and those with a noisy count below so many records.
    """

    kind: ClassVar[str] = "merge"
    rare: float = 4.5
    floor: float = 0.0


@dataclass(frozen=True)
class Mwem:
    """MWEM on a graphical model (paper 002, section 6.2): the worst marginal is measured next, all answers are fitted.

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


Method = Adagrid | Mst | Merge | Mwem | Aim


def method_json(method: Method) -> dict[str, Any]:
    """The method as JSON values."""
    return {"kind": method.kind, **asdict(method)}
