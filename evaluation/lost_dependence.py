"""What a lost dependence looks like to a reader: a group's mean, an odds ratio, a correlation, a share in a group."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.json_values import JsonDict
from mechanisms.public.schema.bins import FloatGrid, IntegerGrid
from mechanisms.public.schema.code_labels import code_names
from mechanisms.public.schema.column import Column

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Change:
    """One figure of a pair of columns, in both tables.

    Attributes:
        label: in words.
        real, synthetic: its value; None where it has none, as a mean of nobody.
    """

    label: str
    real: float | None
    synthetic: float | None

    def to_json(self) -> JsonDict:
        """JSON values."""
        return {"what": self.label, "real": self.real, "synthetic": self.synthetic}


def change(columns: tuple[Column, Column], real: Floats, synthetic: Floats) -> Change:
    """The figure that tells best what became of a dependence.

    The correlation of two columns of numbers; of one column of numbers the mean in the group that moved most, towards
    the mean of all or away from it; the odds ratio of two columns of two values each; of others the share in a group
    that is most off. Numbers are the middles of their bins; records without a number are left out.

    Args:
        real, synthetic: counts of the pair, one axis per column.
    """
    first, second = columns
    numbers = middles(first), middles(second)
    if numbers[0] is not None and numbers[1] is not None:
        label = f"correlation of {first.name} and {second.name}"
        return Change(label, *(_correlation(c, numbers[0], numbers[1]) for c in (real, synthetic)))
    if numbers[0] is not None:
        return _group_mean(second, first, numbers[0], real.T, synthetic.T)
    if numbers[1] is not None:
        return _group_mean(first, second, numbers[1], real, synthetic)
    if first.value_codes == second.value_codes == 2:
        names = code_names(first)[1], code_names(second)[1]
        label = f"odds ratio of {first.name} = {names[0]} and {second.name} = {names[1]}"
        return Change(label, _odds_ratio(real), _odds_ratio(synthetic))
    return _share(columns, real, synthetic)


def middles(column: Column) -> Floats | None:
    """The middle of each value code's bin; None for a column whose values are no numbers, or lie on no line."""
    if not column.on_a_line or not column.numeric:
        return None
    grid = column.grid
    if isinstance(grid, FloatGrid):
        return np.asarray((grid.edges[:-1] + grid.edges[1:]) / 2)
    if isinstance(grid, IntegerGrid) and len(grid.starts) == grid.size:
        return np.asarray((grid.starts + grid.ends - 1) / 2)
    return None


def _odds_ratio(counts: Floats) -> float:
    """With half a record more in each cell (Haldane 1956; Anscombe 1956), so that there always is one."""
    table = counts[:2, :2] + 0.5
    return float(table[0, 0] * table[1, 1] / (table[0, 1] * table[1, 0]))


def _correlation(counts: Floats, x: Floats, y: Floats) -> float | None:
    """Pearson's r over the records with a number in both columns; None where one does not vary."""
    counts = counts[: len(x), : len(y)]
    total = counts.sum()
    if total == 0:
        return None
    shares = counts / total
    across, up = x - shares.sum(axis=1) @ x, y - shares.sum(axis=0) @ y
    spread = math.sqrt(float(shares.sum(axis=1) @ across**2) * float(shares.sum(axis=0) @ up**2))
    return float(across @ shares @ up) / spread if spread > 0 else None


def _group_mean(group: Column, measured: Column, numbers: Floats, real: Floats, synthetic: Floats) -> Change:
    """The mean of a column of numbers in the group whose distance from the mean of all changed most.

    Changes are compared by the roots of the groups' records, as the errors of their means are.
    """
    means, overall = [], []
    for counts in (real[:, : len(numbers)], synthetic[:, : len(numbers)]):
        records = counts.sum(axis=1)
        means.append(np.divide(counts @ numbers, records, out=np.full(len(records), np.nan), where=records > 0))
        overall.append(float(counts.sum(axis=0) @ numbers / max(counts.sum(), 1e-12)))
    moved = np.abs((means[0] - overall[0]) - np.where(np.isnan(means[1]), 0.0, means[1] - overall[1]))
    code = int(np.argmax(np.nan_to_num(moved) * np.sqrt(real[:, : len(numbers)].sum(axis=1))))
    label = f"mean {measured.name} where {group.name} = {code_names(group)[code]}"
    values = [None if math.isnan(m[code]) else float(m[code]) for m in means]
    return Change(label, values[0], values[1])


def _share(columns: tuple[Column, Column], real: Floats, synthetic: Floats) -> Change:
    """The share of a value among the records with a value of the other column, in the cell that is most off."""
    shares = [c / max(c.sum(), 1e-12) for c in (real, synthetic)]
    away = [s - np.outer(s.sum(axis=1), s.sum(axis=0)) for s in shares]
    i, j = np.unravel_index(int(np.argmax(np.abs(away[0] - away[1]))), real.shape)
    first, second = columns
    label = f"share of {second.name} = {code_names(second)[j]} where {first.name} = {code_names(first)[i]}"
    values = [float(c[i, j] / c[i].sum()) if c[i].sum() > 0 else None for c in (real, synthetic)]
    return Change(label, values[0], values[1])
