"""Does the holdout look like the training rows? Where it does not, it says nothing about who trained."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evaluation.verdict.near_rows import RowPlaces, nearest_rows
from evaluation.verdict.rare_matches import Pool, Units
from mechanisms.public.arrays import Flags, Ints
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.errors import first_few

#: The approximate level of all `PARTS` tests of a drift together; each has an equal part of it.
LEVEL = 0.01
PARTS = 4
#: A column is compared in at most `GROUPS` groups of values with at least `EXPECTED` expected records of each table.
GROUPS, EXPECTED = 20, 5.0
#: Random splits that estimate how often neighbours fall on the same side.
SPLITS = 300


@dataclass(frozen=True)
class Drift:
    """What tells training rows and holdout apart.

    Attributes:
        columns: those that differ by more than chance, the strongest first, with their total variation distance.
        neighbours: p of so many nearest neighbours on the same side, by a random split.
        overlap: p of so many equal rows across the sides.
        clusters: p of so many equal rows on the same side.
        shared_units: units with rows on both sides.
        reason: in words; empty where the holdout is as good as a random sample.
    """

    columns: tuple[tuple[str, float], ...] = ()
    neighbours: float = 1.0
    overlap: float = 1.0
    clusters: float = 1.0
    shared_units: int = 0

    @property
    def reason(self) -> str:
        """Why the holdout is no control; empty where it is one."""
        if self.shared_units:
            return f"{self.shared_units:,} units have rows in the training table and in the holdout"
        if self.overlap < LEVEL / PARTS:
            return "the holdout overlaps the training table: equal rows stand on both sides more often than by chance"
        if self.columns:
            apart = first_few(f"{name} ({distance:.0%} apart)" for name, distance in self.columns)
            return f"the holdout drifts from the training rows: {apart}"
        if min(self.neighbours, self.clusters) < LEVEL / PARTS:
            return (
                "the holdout drifts from the training rows: alike rows stand on the same side more often than by "
                "chance (where they belong to one person, name the column: evaluation.subject)"
            )
        return ""

    def to_json(self) -> dict[str, object]:
        """JSON values."""
        return {
            "noticed": bool(self.reason),
            "columns": dict(self.columns),
            "p_same_side_neighbours": self.neighbours,
            "p_overlap": self.overlap,
            "p_equal_rows_on_one_side": self.clusters,
            "units_on_both_sides": self.shared_units,
        }


def drift(
    training: CodedTable,
    holdout: CodedTable,
    pool: Pool,
    units: Units | None,
    rng: np.random.Generator,
    near: tuple[RowPlaces, int],
) -> Drift:
    """Tests whether the two tables could be a random split: of columns, of nearest neighbours, of equal rows.

    Args:
        near: rows of which none shares its unit with another, in random order within each side, and how many of them
            are training rows.
    """
    if units is not None and (shared := np.intersect1d(*units).size):
        return Drift(shared_units=int(shared))
    across, within = equal_pairs(pool, units)
    pairs = across + within
    chance = 2 * training.rows * holdout.rows / (pool.sums.size * max(pool.sums.size - 1, 1))
    return Drift(
        columns=drifting_columns(training, holdout, units, rng),
        neighbours=same_side(*near, rng),
        overlap=at_least(across, pairs, chance),
        clusters=at_least(within, pairs, 1 - chance),
    )


def at_least(count: int, of: int, chance: float) -> float:
    """The binomial probability of so many or more."""
    from scipy.special import betainc  # slow to import

    return 1.0 if count <= 0 else float(betainc(count, of - count + 1, chance))


def equal_pairs(pool: Pool, units: Units | None) -> tuple[int, int]:
    """Of the values that exactly two rows of the pool have: how many stand on both sides, and how many on one.

    Two rows of one unit are no pair.
    """
    rows = np.flatnonzero(pool.repeats == 2)
    pairs = rows[np.argsort(pool.value[rows], kind="stable")].reshape(-1, 2)
    sides = pairs >= pool.training
    across = sides[:, 0] != sides[:, 1]
    if units is not None:
        both = np.concatenate(units)
        across = across[both[pairs[:, 0]] != both[pairs[:, 1]]]
    return int(across.sum()), int((~across).sum())


def one_each(unit: Ints | None, rows: int, rng: np.random.Generator) -> Ints:
    """One random row of each unit, in random order."""
    order = rng.permutation(rows)
    if unit is None:
        return order
    return order[np.sort(np.unique(unit[order], return_index=True)[1])]


def drifting_columns(
    training: CodedTable, holdout: CodedTable, units: Units | None, rng: np.random.Generator
) -> tuple[tuple[str, float], ...]:
    """The columns whose values differ by more than chance in one row of each unit: a chi-square test of each."""
    each = (None, None) if units is None else units
    tables = (training, holdout)
    chosen = [one_each(unit, t.rows, rng) for unit, t in zip(each, tables, strict=True)]
    level = LEVEL / PARTS / max(len(training.domain), 1)
    drifting = []
    for i, attribute in enumerate(training.domain.attributes):
        sides = [np.asarray(t.columns[i])[rows] for t, rows in zip(tables, chosen, strict=True)]
        counts = np.stack([np.bincount(side, minlength=attribute.size) for side in sides])
        p, distance = _homogeneity(counts, ordered=attribute.ordered > 1)
        if p < level:
            drifting.append((p, attribute.name, distance))
    return tuple((name, distance) for _, name, distance in sorted(drifting, key=lambda d: (d[0], -d[2])))


def _homogeneity(counts: Ints, *, ordered: bool) -> tuple[float, float]:
    """p and total variation distance of two rows of counts, merged until each group is expected often enough."""
    from scipy.special import chdtrc  # slow to import

    total = counts.sum(axis=0)
    order = np.arange(total.size) if ordered else np.argsort(-total, kind="stable")
    order = order[total[order] > 0]
    least = max(total.sum() / GROUPS, EXPECTED * total.sum() / max(counts.sum(axis=1).min(), 1))
    group = np.zeros(order.size, np.int64)
    filled, number = 0.0, 0
    for place, size in enumerate(total[order]):
        group[place] = number
        filled += size
        if filled >= least:
            filled, number = 0.0, number + 1
    if filled and number:
        group[group == number] = number - 1
    if group.size == 0 or group[-1] == 0:
        return 1.0, 0.0
    merged = np.stack([np.bincount(group, side[order]) for side in counts])
    expected = merged.sum(axis=0) * merged.sum(axis=1, keepdims=True) / merged.sum()
    statistic = float(((merged - expected) ** 2 / expected).sum())
    shares = merged / merged.sum(axis=1, keepdims=True)
    return float(chdtrc(merged.shape[1] - 1, statistic)), float(np.abs(shares[0] - shares[1]).sum() / 2)


def same_side(rows: RowPlaces, training: int, rng: np.random.Generator) -> float:
    """p of so many rows whose nearest neighbour stands on their own side, by random splits (Schilling 1986)."""
    from scipy.special import ndtr  # slow to import

    if training < 2 or rows.rows - training < 2:
        return 1.0
    order = rng.permutation(rows.rows)  # of rows as near, the first is taken: it must not tell the side
    nearest = nearest_rows(rows.only(order), rows.only(order), same=True).index
    side = order < training

    def alike(labels: Flags) -> float:
        return float((labels == labels[nearest]).mean())

    drawn = np.array([alike(rng.permutation(side)) for _ in range(SPLITS)])
    spread = float(drawn.std(ddof=1))
    if spread == 0 or not math.isfinite(spread):
        return 1.0
    return float(ndtr((float(drawn.mean()) - alike(side)) / spread))
