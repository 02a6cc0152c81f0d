"""The deep dive into one marginal: cost per attribute, slice and bin, where mass went (Li et al. 2021a, 2.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from evaluation.counts import Cells, paired_cells
from evaluation.mgd.marginal_difference import MGDResult
from evaluation.mgd.movements import Movements, movements
from evaluation.mgd.targets import TargetMarginal, at_levels, axes_at, cell_labels
from mechanisms.public.arrays import Floats, Ints
from mechanisms.public.coded_table import AnyTable, CodedTable
from mechanisms.public.files import JsonDict
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.text_table import apart

#: What can be asked for, and what each is for.
DETAILS = {
    "marginals": "every marginal, the worst first",
    "attributes": "of the worst marginals: the cost of moving along each attribute, of adding and of removing",
    "slices": "of the worst marginals: every value of every attribute with its share of the cost",
    "bins": "of the worst marginals: the bins that contribute most, and where their mass went",
}


@dataclass(frozen=True, eq=False)
class DeepDive:
    """What one marginal's AEMC is made of; computed from raw rows, NOT private. Costs are per true record.

    Attributes:
        label: the marginal in words.
        aemc: its AEMC; None where the truth is empty.
        attributes: part (an attribute, adding, removing), cost, share.
        slices: attribute, value, real, synthetic (records), cost, share; each attribute's rows sum to the AEMC.
        bins: one column per attribute, then real, synthetic, added, removed, moved_out, moved_in, cost, share.
        movements: one column per attribute from and to, then records, cost: of the bins above, the dearest first.
        error: the most by which the optimum found may exceed the least cost, per true record.
    """

    label: str
    aemc: float | None
    attributes: pd.DataFrame
    slices: pd.DataFrame
    bins: pd.DataFrame
    movements: pd.DataFrame
    error: float = 0.0

    def frames(self, detail: str) -> dict[str, pd.DataFrame]:
        """The frames of one kind of detail, by name."""
        names = ("bins", "movements") if detail == "bins" else (detail,)
        return {name: getattr(self, name) for name in names}

    def to_json(self) -> JsonDict:
        """JSON values: a list of rows per frame."""
        frames = {n: getattr(self, n).to_dict("records") for n in ("attributes", "slices", "bins", "movements")}
        return {"marginal": self.label, "aemc": self.aemc, **frames}


def deep_dive(
    real: AnyTable,
    synthetic: CodedTable,
    schema: Schema,
    target: TargetMarginal,
    *,
    alpha: float = 1.0,
    top: int = 10,
) -> DeepDive:
    """What one target marginal's AEMC is made of.

    An optimum is seldom unique: another may move other mass at the same total cost. A bin is charged for the records
    added to and removed from it and for half of each movement from or to it; a slice for its bins.

    Cost: a min-cost flow over the parts beyond tolerance.

    Args:
        real, synthetic: tables over the schema's domain.
        top: how many bins, and how many movements.
    """
    tables = at_levels(real, schema, [target]), at_levels(synthetic, schema, [target])
    (cells,) = paired_cells(*tables, [target.columns(schema)])
    labels = [cell_labels(schema, n, v) for n, v in zip(target.attributes, target.levels, strict=True)]
    moves = movements(cells, axes_at(schema, target), delta=target.delta, alpha=alpha)
    truth = float(cells.q.sum())
    if truth <= 0:
        empty = pd.DataFrame()
        return DeepDive(target.label(schema), None, empty, empty, empty, empty)
    return DeepDive(
        target.label(schema),
        moves.total / truth,
        _attributes(target.attributes, moves, truth),
        _slices(target.attributes, labels, cells, moves, truth),
        _bins(target.attributes, labels, cells, moves, truth, top),
        _moved(target.attributes, labels, cells, moves, truth, top),
        moves.error / truth,
    )


def dive_worst(
    result: MGDResult, real: AnyTable, synthetic: CodedTable, schema: Schema, *, worst: int = 3, top: int = 10
) -> list[DeepDive]:
    """Deep dives into the marginals that take the largest shares of the score."""
    scored = [m for m in result.marginals if m.aemc.value]
    scored.sort(key=lambda m: -m.target.weight * (m.aemc.value or 0.0))
    return [deep_dive(real, synthetic, schema, m.target, alpha=result.alpha, top=top) for m in scored[:worst]]


def _attributes(names: Sequence[str], moves: Movements, truth: float) -> pd.DataFrame:
    costs = np.array([*moves.along, moves.adding, moves.removing]) / truth
    parts = [*(f"moving along {n}" for n in names), "adding", "removing"]
    return pd.DataFrame({"part": parts, "cost": costs, "share": _share(costs, moves.total / truth)})


def _slices(
    names: Sequence[str], labels: Sequence[Sequence[str]], cells: Cells, moves: Movements, truth: float
) -> pd.DataFrame:
    occupied, charged = cells.codes, np.stack(np.unravel_index(moves.ids, cells.shape))
    frames = []
    for axis, name in enumerate(names):
        size = cells.shape[axis]
        cost = np.bincount(charged[axis], moves.contribution, size) / truth
        frames.append(
            pd.DataFrame(
                {
                    "attribute": name,
                    "value": list(labels[axis]),
                    "real": np.bincount(occupied[axis], cells.q, size),
                    "synthetic": np.bincount(occupied[axis], cells.p, size),
                    "cost": cost,
                    "share": _share(cost, moves.total / truth),
                }
            )
        )
    return pd.concat(frames, ignore_index=True)


def _bins(
    names: Sequence[str],
    labels: Sequence[Sequence[str]],
    cells: Cells,
    moves: Movements,
    truth: float,
    top: int,
) -> pd.DataFrame:
    chosen = moves.top(top)
    ids = moves.ids[chosen]
    cost = moves.contribution[chosen] / truth
    figures = {
        "real": _at(cells, cells.q, ids),
        "synthetic": _at(cells, cells.p, ids),
        "added": moves.added[chosen],
        "removed": moves.removed[chosen],
        "moved_out": [float(moves.mass[moves.source == i].sum()) for i in ids],
        "moved_in": [float(moves.mass[moves.target == i].sum()) for i in ids],
        "cost": cost,
        "share": _share(cost, moves.total / truth),
    }
    return pd.DataFrame(_columns(apart(names, figures), labels, cells, ids) | figures)


def _moved(
    names: Sequence[str], labels: Sequence[Sequence[str]], cells: Cells, moves: Movements, truth: float, top: int
) -> pd.DataFrame:
    rows = moves.of_cells(moves.ids[moves.top(top)])[:top]
    origin = _columns([f"from {n}" for n in names], labels, cells, moves.source[rows])
    end = _columns([f"to {n}" for n in names], labels, cells, moves.target[rows])
    return pd.DataFrame({**origin, **end, "records": moves.mass[rows], "cost": moves.cost[rows] / truth})


def _columns(names: Sequence[str], labels: Sequence[Sequence[str]], cells: Cells, ids: Ints) -> dict[str, list[str]]:
    codes = np.unravel_index(ids, cells.shape)
    return {name: [text[c] for c in code] for name, text, code in zip(names, labels, codes, strict=True)}


def _at(cells: Cells, counts: Floats, ids: Ints) -> Floats:
    """Counts of some cells; 0 where a cell is not occupied."""
    place = np.minimum(np.searchsorted(cells.ids, ids), max(cells.ids.size - 1, 0))
    return np.where(cells.ids[place] == ids, counts[place], 0.0)


def _share(costs: Floats, total: float) -> Floats:
    return costs / total if total > 0 else np.zeros_like(costs)
