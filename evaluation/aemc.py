"""AEMC of one marginal with the default weights: split into independent parts, each solved exactly."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from evaluation.aemc_flow import grid_cost
from evaluation.aemc_path import path_costs
from mechanisms.public.domain import Attribute


@dataclass(frozen=True)
class Cells:
    """The occupied cells of one marginal of two tables.

    Attributes:
        attributes: the marginal's attributes.
        codes: one row per attribute, one column per occupied cell.
        p, q: synthetic and true records of each cell.
    """

    attributes: tuple[Attribute, ...]
    codes: NDArray[np.int64]
    p: NDArray[np.float64]
    q: NDArray[np.float64]

    def only(self, chosen: NDArray[np.bool_] | NDArray[np.int64]) -> Cells:
        return Cells(self.attributes, self.codes[:, chosen], self.p[chosen], self.q[chosen])


@dataclass(frozen=True)
class Aemc:
    """A marginal's score.

    Attributes:
        value: cost per true record; None where the truth is empty.
        solver: which exact solvers ran: closed, path, flow.
        reason: why there is no value.
    """

    value: float | None
    solver: str
    reason: str = ""


def is_finite(attribute: Attribute) -> bool:
    """Whether mass may move along this attribute: it is ordinal, with at least two values."""
    return attribute.ordered >= 2


def grid_nodes(attributes: tuple[Attribute, ...]) -> int:
    """How many nodes the largest min-cost flow of this marginal has; 0 where no flow is needed."""
    sizes = [a.ordered for a in attributes if is_finite(a)]
    return int(np.prod(sizes)) if len(sizes) > 1 else 0


def aemc(cells: Cells, *, delta: float = 2.0, alpha: float = 1.0) -> Aemc:
    """The Approximate Earth Mover Cost of Equation 1 (paper 000, section 2.2), with the default weights of 2.3.2.

    Categorical attributes weigh ∞ (no mass moves between their values), ordinal ones share the weight 1 equally, with
    distance |i − j| / (k − 1). *Other* and *missing* codes are on no path: no mass moves between them and the values,
    and they do not count in k. Unequal totals are allowed. Δ tolerates, it never creates: a cell's mass stays at or
    above 0, so that its free shortage is at most min(Δ, Q_j).

    Args:
        delta: tolerance Δ ≥ 0, in records.
        alpha: cost of adding or removing one record.
    """
    truth = float(cells.q.sum())
    if truth <= 0:
        return Aemc(None, "none", "the true table is empty, and the cost is per true record")
    finite = [i for i, a in enumerate(cells.attributes) if is_finite(a)]
    weight = Fraction(1, len(finite)) if finite else Fraction(0)
    cost, solvers = 0.0, set()
    special = cells.codes[finite] >= np.array([[cells.attributes[i].ordered] for i in finite], np.int64).reshape(-1, 1)
    for pattern in itertools.product((False, True), repeat=len(finite)):
        mask = np.all(special == np.array(pattern).reshape(-1, 1), axis=0)
        if not mask.any():
            continue
        moving = [i for i, off in zip(finite, pattern, strict=True) if not off]
        part_cost, solver = _split_cost(cells.only(mask), moving, weight, delta, alpha)
        cost += part_cost
        solvers.add(solver)
    return Aemc(cost / truth, "+".join(sorted(solvers)) or "closed")


def _split_cost(cells: Cells, moving: list[int], weight: Fraction, delta: float, alpha: float) -> tuple[float, str]:
    """Cells that share all codes but those of the `moving` attributes form one independent part."""
    if not moving:
        return alpha * float(np.maximum(np.abs(cells.p - cells.q) - delta, 0.0).sum()), "closed"
    fixed = [i for i in range(len(cells.attributes)) if i not in moving]
    part = _numbers(cells, fixed)
    if len(moving) == 1:
        place = cells.codes[moving[0]]
        order = np.lexsort((place, part))
        k = cells.attributes[moving[0]].ordered
        step = float(weight / (k - 1))
        columns = (part[order], place[order], cells.p[order], cells.q[order])
        return float(path_costs(*columns, k, step, float(delta), float(alpha)).sum()), "path"
    order = np.argsort(part, kind="stable")
    cuts = np.flatnonzero(np.diff(part[order])) + 1
    pieces = [cells.only(piece) for piece in np.split(order, cuts)]
    return math.fsum(_grid(piece, moving, weight, delta, alpha) for piece in pieces), "flow"


def _grid(cells: Cells, moving: list[int], weight: Fraction, delta: float, alpha: float) -> float:
    """One part with several finite attributes: a flow on its whole grid (empty cells take up to Δ at no cost)."""
    if np.all(np.abs(cells.p - cells.q) <= delta):
        return 0.0
    shape = tuple(cells.attributes[i].ordered for i in moving)
    p, q = np.zeros(shape), np.zeros(shape)
    where = tuple(cells.codes[moving])
    p[where], q[where] = cells.p, cells.q
    steps = tuple(weight / (cells.attributes[i].ordered - 1) for i in moving)
    return grid_cost(p, q, steps, Fraction(delta).limit_denominator(10**6), Fraction(alpha).limit_denominator(10**6))


def _numbers(cells: Cells, axes: list[int]) -> NDArray[np.int64]:
    """One number per combination of the codes of these attributes."""
    numbers = np.zeros(cells.codes.shape[1], np.int64)
    for i in axes:
        numbers = numbers * cells.attributes[i].size + cells.codes[i]
    return numbers
