"""Dependence kept: how much of what the real columns tell about each other the synthetic ones still tell."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import pandas as pd

from evaluation.accuracy.anita_accuracy import bucket_tables
from evaluation.counts import cells_in_records, in_records, pairs_looked_at
from evaluation.metric import Inputs, Options, ReadScore
from evaluation.readings.distance_ends import DependenceEnds
from mechanisms.public.arrays import Floats
from mechanisms.public.coded_table import AnyTable, CodedTable, count_cliques
from mechanisms.public.domain import Clique
from mechanisms.public.files import JsonDict
from mechanisms.public.progress import Progress
from mechanisms.public.schema.code_labels import code_names
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.table_schema import Schema

#: Buckets of each column at most, and pairs that are counted at once.
BUCKETS, BATCH = 32, 200
#: A dependence within this many standard deviations of sampling error counts as none.
DEVIATIONS = 3.0
#: Nothing depends where the strongest of as many independent pairs is as strong with this probability.
BY_CHANCE = 0.01
#: Pairs that are named, and the strength that a pair must have lost for that.
NAMED, LEAST = 12, 0.05
#: Larger pairs are named without an example of what changed.
EXAMPLE_CELLS = 4_000_000
#: The columns of a result's frame.
COLUMNS = ["a", "b", "real", "synthetic", "kept", "lost"]


class Dependence(ReadScore):
    """The dependence of every pair: the mean of what is kept, by strength; 1 where nothing depends on anything.

    The frame has one row for each pair that depends in the real table, the one that lost most first: the columns, the
    strength in each table, in [0, 1], how much of the real one the synthetic table keeps, in [0, 1], and what is lost.
    """

    def drawn(self, schema: Schema, options: Options) -> JsonDict:
        """The same, for a report."""
        return {} if self.reason else {"dependence": self.to_json()}


def dependence_of(inputs: Inputs) -> Dependence:
    """The metric `dependence`: how much of the dependence of all pairs of columns the synthetic table keeps.

    Goal: relations survive, with their sign; what is invented beside them is the business of the distances. Range:
    [0, 1]; 1 is perfect, independent columns score about 0. Each pair over at most 32 buckets a column.
    Edge cases: a constant column depends on nothing; where no pair depends beyond what sampling explains, or the
    strongest no more than that of as many independent ones would by chance, nothing can be lost, and the score is 1.
    """
    real, synthetic, options = inputs.all_rows, inputs.synthetic, inputs.options
    if len(real.domain) < 2:
        return Dependence(None, {}, reason="fewer than two columns")
    tables = bucket_tables(real, [synthetic, *([] if real is inputs.real else [inputs.real])], m=BUCKETS)
    pairs, alike = pairs_looked_at(real.domain.names), _alike(options)
    counts = _counted(tables[:2], pairs, options.progress)
    some, drawn, ends = tables[2 if len(tables) > 2 else 0], tables[1], None  # some rows: for the interval alone
    if isinstance(some, CodedTable) and isinstance(drawn, CodedTable) and some.rows and not some.weighted:
        ends = None if synthetic.weighted else DependenceEnds(some, drawn, (real.rows, synthetic.rows))
    rows, farthest = [], 0.0
    for pair, (truth, synthesized) in zip(pairs, counts, strict=True):
        one = _deviations(truth, alike) if truth.sum() and synthesized.sum() else None
        if one is None or not one.strength:
            continue
        strength, other, slope = _compared(one, _deviations(synthesized))
        rows.append((*pair, strength, other, slope, strength * (1 - slope)))
        farthest = max(farthest, one.beyond_chance)
        if ends is not None:
            ends.add(pair, one.weights * one.values / one.square, strength, slope)
    if farthest < NormalDist().inv_cdf(1 - BY_CHANCE / len(pairs)):
        rows, ends = [], None
    frame = pd.DataFrame(rows, columns=COLUMNS).sort_values("lost", ascending=False, kind="stable", ignore_index=True)
    total = math.fsum(frame["real"])
    score = math.fsum(frame["real"] * frame["kept"]) / total if total else 1.0
    worst = frame[frame["lost"] >= LEAST].head(NAMED).to_dict(orient="records")
    lost = [{**row, "change": _change(real, synthetic, inputs.schema, (row["a"], row["b"]))} for row in worst]
    details = {"dependent_pairs": len(frame), "pairs": len(pairs), "lost": lost}
    return Dependence(score, details, frame, ends=None if ends is None else ends.ends(score))


def _counted(
    tables: Sequence[AnyTable], pairs: Sequence[Clique], progress: Progress | None
) -> Iterator[tuple[Floats, Floats]]:
    """The counts of each pair in both tables, in records."""
    for start in range(0, len(pairs), BATCH):
        if progress is not None:
            progress(start, len(pairs), "pairs")
        batch = pairs[start : start + BATCH]
        for pair, *both in zip(batch, *(count_cliques(t, batch) for t in tables), strict=True):
            one, two = (in_records(c, t).reshape(t.domain.shape(pair)) for c, t in zip(both, tables, strict=True))
            yield one, two


def _change(real: AnyTable, synthetic: CodedTable, schema: Schema | None, pair: Clique) -> JsonDict | None:
    if schema is None or real.domain.cells(pair) > EXAMPLE_CELLS:
        return None
    return change((schema[pair[0]], schema[pair[1]]), cells_in_records(real, pair), cells_in_records(synthetic, pair))


def pair_dependence(real: Floats, synthetic: Floats, alike: float = 1.0) -> tuple[float, float, float]:
    """The strength of a pair's dependence in both tables, and the part of the real one that is kept.

    The part that is kept is ⟨R, S⟩ / ⟨R, R⟩, within [0, 1], of the deviations from independence R and S: all of it, or
    more, is 1; what points the other way, as a group mean or an odds ratio on the other side of the middle, is 0. The
    product weighs cells as χ² does, see `_Deviations`; what sampling adds to ⟨R, R⟩ is taken out.

    Args:
        real, synthetic: counts of the pair, in records, over the same two columns.
        alike: so many real records say as much as one: those of a person may be alike.
    """
    if real.sum() == 0 or synthetic.sum() == 0:
        return 0.0, 0.0, 1.0
    return _compared(_deviations(real, alike), _deviations(synthetic))


def _compared(one: _Deviations, two: _Deviations) -> tuple[float, float, float]:
    """As of `pair_dependence`."""
    if not one.strength:
        return 0.0, two.strength, 1.0
    slope = float((one.weights * one.values * two.values).sum()) / one.square
    return one.strength, two.strength, min(max(slope, 0.0), 1.0)


@dataclass(frozen=True, eq=False)
class _Deviations:
    """The deviations of a pair's shares from those of independent columns.

    Attributes:
        values: share of each cell less the product of the shares of its two values.
        weights: 1 over the expected share and that of one record: χ² without the say of values that few records have.
        square: Σ weights · values², χ² / n, less what sampling adds to it (Bergsma 2013 does so for Cramér's V).
        strength: Pearson's contingency coefficient √(square / (1 + square)) over that of a perfect dependence (Sakoda
            1977): in [0, 1], and of two columns of a normal distribution about their |correlation|; 0 for what
            sampling explains within three standard deviations.
        beyond_chance: so many standard deviations of a normal distribution lies χ² beyond independence (Wilson &
            Hilferty 1931), where `alike` records say as much as one; 0 where a column has one value.
    """

    values: Floats
    weights: Floats
    square: float
    strength: float
    beyond_chance: float


def _deviations(counts: Floats, alike: float = 1.0) -> _Deviations:
    n = float(counts.sum())
    shares = counts / n
    across, up = shares.sum(axis=1), shares.sum(axis=0)
    expected = np.outer(across, up)
    weights, values = 1 / (expected + 1 / n), shares - expected
    by_chance = weights * expected * np.outer(1 - across, 1 - up) / max(n - 1, 1)
    whole = float((weights * values**2).sum())
    square = whole - float(by_chance.sum())
    codes = min(np.count_nonzero(across), np.count_nonzero(up))
    if codes < 2:
        return _Deviations(values, weights, square, 0.0, 0.0)
    spread = 2 / (9 * max(n * float(by_chance.sum()), 1.0))  # χ² has about n · Σ by_chance degrees of freedom
    far = ((whole / (alike * float(by_chance.sum()))) ** (1 / 3) - (1 - spread)) / math.sqrt(spread)
    strength = min(math.sqrt(square / (1 + square) * codes / (codes - 1)), 1.0) if far > DEVIATIONS else 0.0
    return _Deviations(values, weights, square, strength, far)


def _alike(options: Options) -> float:
    """So many real records say as much as one: as if all records of a person were the same."""
    owners = options.unit if options.unit is not None or options.subject is None else options.subject[0]
    sizes = np.ones(1) if owners is None else np.unique(owners, return_counts=True)[1].astype(float)
    return max(float((sizes**2).sum() / max(sizes.sum(), 1.0)), 1.0)


def _figure(label: str, real: float | None, synthetic: float | None) -> JsonDict:
    """One figure of a pair of columns, in words and in both tables; None where it has none, as a mean of nobody."""
    return {"what": label, "real": real, "synthetic": synthetic}


def change(columns: tuple[Column, Column], real: Floats, synthetic: Floats) -> JsonDict:
    """The figure that tells best what became of a dependence, as JSON values.

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
        return _figure(label, *(_correlation(c, numbers[0], numbers[1]) for c in (real, synthetic)))
    if numbers[0] is not None:
        return _group_mean(second, first, numbers[0], real.T, synthetic.T)
    if numbers[1] is not None:
        return _group_mean(first, second, numbers[1], real, synthetic)
    if first.value_codes == second.value_codes == 2:
        names = code_names(first)[1], code_names(second)[1]
        label = f"odds ratio of {first.name} = {names[0]} and {second.name} = {names[1]}"
        return _figure(label, _odds_ratio(real), _odds_ratio(synthetic))
    return _share(columns, real, synthetic)


def middles(column: Column) -> Floats | None:
    """The middle of each value code's bin; None for a column whose values are no numbers, or lie on no line."""
    if not column.on_a_line or not column.numeric:
        return None
    low, high = column.grid.spans
    return np.asarray((low + high) / 2)


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


def _group_mean(group: Column, measured: Column, numbers: Floats, real: Floats, synthetic: Floats) -> JsonDict:
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
    return _figure(label, values[0], values[1])


def _share(columns: tuple[Column, Column], real: Floats, synthetic: Floats) -> JsonDict:
    """The share of a value among the records with a value of the other column, in the cell that is most off."""
    shares = [c / max(c.sum(), 1e-12) for c in (real, synthetic)]
    away = [s - np.outer(s.sum(axis=1), s.sum(axis=0)) for s in shares]
    groups = [c / np.maximum(c.sum(axis=1, keepdims=True), 1e-12) for c in (real, synthetic)]
    shown = np.abs(groups[0] - groups[1]) * shares[0].sum(axis=1, keepdims=True)  # 0 beside 0 is no example
    i, j = np.unravel_index(int(np.argmax(np.minimum(np.abs(away[0] - away[1]), shown))), real.shape)
    first, second = columns
    label = f"share of {second.name} = {code_names(second)[j]} where {first.name} = {code_names(first)[i]}"
    values = [float(own[i, j]) if c[i].sum() > 0 else None for own, c in zip(groups, (real, synthetic), strict=True)]
    return _figure(label, values[0], values[1])
