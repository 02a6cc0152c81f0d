"""From noisy answers about persons to wanted counts: rows that sum to their persons, none below 0."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mechanisms.public.arrays import Flags, Floats, Ints
from mechanisms.public.persons.person_questions import PersonQuestion, Trait, by_label, is_ordered
from mechanisms.public.release import NoisyMarginal
from mechanisms.public.rules.structural_zeros import Zeros
from mechanisms.public.schema.column import Column
from synthesis.consistency.projection import norm_sub, product
from synthesis.consistency.shrinkage import WIDTHS, likeliest, neighbours, smoothed

#: The features that are codes of a person or of one record.
CODED = (Trait.CONSTANT, Trait.FIRST, Trait.VALUE)


@dataclass(frozen=True, eq=False)
class Asked:
    """A question that was answered.

    Attributes:
        values: the noisy answers, in persons, in the shape of the question.
        stddev: of the noise of each.
        possible: which cells a person can be in.
        columns: of the schema, by name.
    """

    question: PersonQuestion
    values: Floats
    stddev: float
    possible: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
    columns: Mapping[str, Column]

    def kinds(self) -> tuple[Trait, ...]:
        return tuple(f.kind for f in self.question.features)

    @property
    def by_size(self) -> bool:
        """Whether the rows are groups of sizes."""
        return self.question.features[0].kind is Trait.RECORDS and len(self.question.features) > 1

    def lines(self) -> list[int]:
        """Along each axis behind that of sizes, how many cells lie on a line."""
        lines = []
        for feature in self.question.features[self.by_size :]:
            column = self.columns.get(feature.column)
            if feature.kind in (Trait.SPAN, Trait.GAP, Trait.MEAN):
                lines.append(feature.size - 1)
            elif feature.kind is Trait.DISTINCT:
                lines.append(feature.size)
            else:
                special = 0 if column is None else column.size - column.value_codes
                lines.append(feature.size - special if column is not None and is_ordered(column) else 0)
        return lines


def answered(
    questions: Sequence[PersonQuestion], answers: Sequence[NoisyMarginal], columns: Mapping[str, Column],
    zeros: Sequence[Zeros] = (),
) -> list[Asked]:  # fmt: skip
    """The questions that have an answer, in their order, by what zeros leave possible; of several answers the last."""
    by_clique = {a.clique: a for a in answers}
    asked = []
    for label, question in by_label(questions).items():
        answer = by_clique.get(label)
        if answer is not None and answer.values.size == math.prod(question.shape):
            values = np.asarray(answer.values, np.float64).reshape(question.shape)
            asked.append(Asked(question, values, answer.stddev, _possible(question, columns, zeros), columns))
    return asked


def _possible(question: PersonQuestion, columns: Mapping[str, Column], zeros: Sequence[Zeros]) -> Flags:
    """The cells that a person can be in: one record has no next one, one value, and no time from first to last."""
    open_cells = np.ones(question.shape, np.bool_)
    sizes, coded = question.features[0], {f.column: i for i, f in enumerate(question.features) if f.kind in CODED}
    for names, cells in zeros:
        own, there = [n for n in names if n in coded], np.zeros(question.shape, np.bool_)
        gone = tuple(i for i, n in enumerate(names) if n not in coded)
        codes = np.nonzero(np.atleast_1d(~cells.reshape([columns[n].size for n in names]).all(axis=gone)))
        groups = {coded[n]: np.array(question.features[coded[n]].groups) for n in own}
        places = {axis: own_groups[c] for (axis, own_groups), c in zip(groups.items(), codes, strict=False)}
        there[tuple(places.get(axis, slice(None)) for axis in range(there.ndim))] = True
        open_cells &= there
    for axis, feature in enumerate(question.features):
        last = np.moveaxis(open_cells, axis, -1)
        if feature.kind in (Trait.SPAN, Trait.GAP) and not columns[feature.column].missing:
            last[..., -1] = False
        if feature.kind is Trait.MEAN and columns[feature.column].size == columns[feature.column].value_codes:
            last[..., -1] = False
        if sizes.kind is not Trait.RECORDS or axis == 0:
            continue
        for group in range(sizes.size):
            most = max(n for n, g in enumerate(sizes.groups, start=1) if g == group)
            row = np.moveaxis(open_cells[group], axis - 1, -1)
            if feature.kind is Trait.DISTINCT:
                row[..., most:] = False
            if feature.kind is Trait.SPAN and most == 1:
                row[..., 1:-1] = False
    if question.level == "steps" and sizes.kind is Trait.RECORDS:
        open_cells[[max(n for n, g in enumerate(sizes.groups, start=1) if g == i) == 1 for i in range(sizes.size)]] = (
            False
        )
    return open_cells


#: An answer tells nothing where its distance from the arrangement without it stays below so many standard deviations.
#: How the values of a column go together is asked of many: ten answers of noise alone pass in one table of twenty.
SIGNAL, OF_MANY = 2.0, 2.6
#: Of pairs that tell nothing, those by which chance parts two tables by less than this share of the persons, in the
#: mean 0.4 √(2 cells / persons), are left to it.
CHANCE = 0.04
#: Parts of a prior mean that neighbours make up.
PARTS = (0.0, 0.25, 0.5, 0.75, 1.0)
#: The least mean of a cell, in parts of what all rows have in common there.
FLOORS = (0.001, 0.01, 0.1)


@dataclass(frozen=True, eq=False)
class PersonTarget:
    """Goals counts of a question, in persons, the variance of what was measured, flat; and how far it is from noise."""

    asked: Asked
    goal: Floats
    variance: Floats
    signal: float


def targets_of(asked: Sequence[Asked], by_size: Ints, base: Sequence[Floats]) -> list[PersonTarget]:
    """What is wanted of each question in which more than noise stands, and of each constant beside the sizes.

    Noise in other goals gives persons of one constant many records where nothing holds their number: where the answer
    tells nothing, chance is the goal.

    Args:
        by_size: how many persons have 1, 2, … records.
        base: of each question the counts of an arrangement that knows sizes alone, in persons.
    """
    targets: list[PersonTarget] = []
    every = [(one, b.reshape(one.values.shape)) for one, b in zip(asked, base, strict=True)]
    seen = [_signal(one, dealt) for one, dealt in every]
    for (one, dealt), (own, nearest) in zip(every, seen, strict=True):
        # a column's level and what follows its values tell of one thing: either vouches for both
        alike = [s for (other, _), (s, _) in zip(every, seen, strict=True) if _level_of(other) == _level_of(one) != ""]
        signal = max([own, *alike])
        clear = signal >= (OF_MANY if _level_of(one) else SIGNAL)
        chance = _by_chance(one, dealt)
        if one.kinds() == (Trait.RECORDS,) or not (clear or chance or one.kinds() == (Trait.RECORDS, Trait.CONSTANT)):
            continue
        if not clear:
            goal = _unrelated(one, dealt) if chance else dealt
            variance = np.zeros(dealt.shape)
        elif one.by_size:
            spans = (t for t in targets if Trait.GAP in one.kinds() and t.asked.kinds() == (Trait.RECORDS, Trait.SPAN))
            goal, variance = _by_rows(one, dealt, nearest, by_size, next(spans, None))
        else:
            goal, variance = _one_row(one, dealt, nearest, by_size)
        targets.append(PersonTarget(one, goal.ravel(), variance.ravel(), signal))
    return targets


def _by_chance(asked: Asked, dealt: Floats) -> bool:
    """Whether a constant and another column have so many cells that records dealt at random miss them by CHANCE."""
    pair = Trait.CONSTANT in asked.kinds() and not asked.by_size and dealt.ndim == 2
    return pair and 0.32 * dealt.size > CHANCE**2 * float(dealt.sum())


def _unrelated(asked: Asked, dealt: Floats) -> Floats:
    """What two unrelated columns have in each cell that is possible."""
    if not (whole := float(dealt.sum())) > 0:
        return dealt
    return _onto(np.where(asked.possible, product([dealt.sum(axis=1), dealt.sum(axis=0)], whole), 0.0), whole)


def _within_spans(asked: Asked, values: Floats, spans: PersonTarget | None, by_size: Ints) -> Floats:
    """Gaps that fit in the spans: no more persons have a long one than a long span, and the mean gap fills the span."""
    if spans is None:
        return values
    feature = spans.asked.question.features[1]
    sizes, numbers = np.array(spans.asked.question.features[0].groups), np.arange(1, by_size.size + 1)
    starts = np.array(feature.groups, np.float64)
    middles = (starts + np.append(starts[1:] - 1, starts[-1])) / 2
    rows = values.reshape(asked.values.shape).copy()
    for group in range(len(rows)):
        persons = by_size[sizes == group].sum()
        span = spans.goal.reshape(spans.asked.values.shape)[group, :-1]
        if persons == 0 or not rows[group].sum() > 0 or not span.sum() > 0:
            continue
        steps = (by_size[sizes == group] * np.maximum(numbers[sizes == group] - 1, 1)).sum() / persons
        mean = float(span @ middles / span.sum() / steps)
        own = rows[group][..., :-1]
        total = own.sum()
        tails = np.cumsum(own.reshape(-1, starts.size).sum(axis=0)[::-1])[::-1]
        capped = np.minimum(tails, np.cumsum(span[::-1])[::-1] * total / span.sum())
        capped = np.diff(np.append(capped, 0.0)[::-1])[::-1]
        fit = np.maximum(capped, 0.0) / np.maximum(tails - np.append(tails[1:], 0.0), 1e-12)
        held = (own * fit).reshape(-1, starts.size).any(axis=0)
        if not held.any():
            continue
        own *= fit
        low, high = 0.0, 10.0
        beyond = np.maximum(middles - middles[held.argmax()], 0.0)  # from 0 on long gaps alone would be tilted away
        for _ in range(50):
            tilt = np.exp(-(low + high) / 2 * beyond)
            above = float((own * tilt * middles).sum()) > mean * float((own * tilt).sum())
            low, high = ((low + high) / 2, high) if above else (low, (low + high) / 2)
        own *= np.exp(-low * beyond)
        own *= total / max(own.sum(), 1e-12)
    return rows.reshape(values.shape)


def _signal(asked: Asked, base: Floats) -> tuple[float, Floats]:
    """By how many standard deviations an answer lies away from a base: by its χ², or towards records that are alike.

    Persons and base are both drawn: each count of either varies by itself.

    Returns:
        That, and the mixture of both that lies nearest to the answer.
    """
    cells = int(asked.possible.sum())
    away, variance = (asked.values - base)[asked.possible], asked.stddev**2 + 2 * base[asked.possible] + 1e-12
    signal, nearest = float(((away**2 / variance).sum() - cells) / math.sqrt(2 * max(cells, 1))), base
    for alike in _alike(asked, base):
        towards = (alike - base)[asked.possible]
        along, length = float(towards @ (away / variance)), max(float(towards @ (towards / variance)), 1e-12)
        if along / length**0.5 > signal:
            signal, nearest = along / length**0.5, base + min(along / length, 1.0) * (alike - base)
    return signal, nearest


def _level_of(asked: Asked) -> str:
    """The column whose level in a person an answer tells, or how its values follow each other; "" for others."""
    own = asked.question.features[-1]
    return own.column if own.kind in (Trait.MEAN, Trait.NEXT, Trait.DISTINCT) else ""


def _alike(asked: Asked, base: Floats) -> list[Floats]:
    """The base with persons whose records are all alike, as one record is; ordered values also correlated."""
    kinds = asked.kinds()
    if not asked.by_size and base.ndim == 2:
        rising = _correlated(base, asked.lines())
        if kinds == (Trait.VALUE, Trait.NEXT):
            return [np.diag(base.sum(axis=1)), *([] if rising is None else [np.maximum(base + rising, 0.0)])]
        return [] if rising is None else [np.maximum(base + rising, 0.0), np.maximum(base - rising, 0.0)]
    alike = base.copy()
    if Trait.SAME in kinds:
        alike[:, 0], alike[:, 1] = 0.0, base.sum(axis=1)
    elif asked.by_size and kinds[1] in (Trait.MEAN, Trait.DISTINCT) and base.sum() > 0:
        first = base[np.flatnonzero(base.sum(axis=1) > 0)[0]]
        alike = np.outer(base.sum(axis=1), first / first.sum())
    return [alike]


def _correlated(base: Floats, lines: Sequence[int]) -> Floats | None:
    """What a correlation of 1 adds to two independent columns in order; None where one of both is not."""
    if min(lines) < 2 or not base.sum() > 0:
        return None
    ranks = []
    for axis, line in enumerate(lines):
        side = base.sum(axis=1 - axis)
        rank = np.arange(side.size) - side[:line] @ np.arange(line) / max(side[:line].sum(), 1e-12)
        rank = np.where(np.arange(side.size) < line, rank, 0.0)
        ranks.append(rank / math.sqrt(max(float(side @ rank**2) / float(base.sum()), 1e-12)))
    return np.asarray(base * np.outer(*ranks))


def _onto(values: Floats, total: float) -> Floats:
    """The same row, scaled to a total."""
    return values * (total / values.sum()) if values.sum() > 0 else np.full_like(values, total / max(values.size, 1))


def _held(values: Floats, total: float) -> Floats:
    """The same row with a total, without what is in each of its cells where that is too much.

    A few persons who may be in each of many empty cells are none; scaled down, full cells would lose them.
    """
    return norm_sub(values, total) if values.sum() > total > 0 else _onto(values, total)


def _one_row(asked: Asked, base: Floats, nearest: Floats, by_size: Ints) -> tuple[Floats, Floats]:
    """A question without sizes: free of noise as it is, or as a change of the base; of the persons that it counts."""
    total = float(by_size[1:].sum() if asked.question.level == "steps" else by_size.sum())
    start, floor = _onto(base, total), total / base.size / 100
    near = [neighbours(asked.values, asked.lines(), w, asked.stddev) for w in WIDTHS]
    means = [np.maximum(start * (1 - a) + a * n, floor) for a in PARTS for n in near]
    means.append(np.maximum(_onto(nearest, total), floor))
    estimate, variance = likeliest(asked.values, asked.stddev, means)
    return _onto(np.where(asked.possible, estimate, 0.0), total), variance


def _by_rows(
    asked: Asked, base: Floats, nearest: Floats, by_size: Ints, spans: PersonTarget | None
) -> tuple[Floats, Floats]:
    """A question by groups of sizes: each row near what other rows and its own neighbours have, or the base's.

    Args:
        spans: that the rows' gaps are to fit in, and what all rows have in common before them; None for none.
    """
    groups = np.array(asked.question.features[0].groups)
    values = np.where(asked.possible, asked.values, 0.0)
    rows, open_cells = values.reshape(groups.max() + 1, -1), asked.possible.reshape(groups.max() + 1, -1)
    totals = np.bincount(groups, by_size.astype(np.float64))
    several = open_cells.sum(axis=1) > 1
    if not several.any():
        return np.where(open_cells, totals[:, None], 0.0), np.zeros(rows.shape)
    pooled = smoothed(values[several].sum(axis=0), asked.lines(), asked.stddev * math.sqrt(several.sum()))[0].ravel()
    common = np.array([_onto(np.where(o, pooled, 0.0), t) for o, t in zip(open_cells, totals, strict=True)])
    common = _within_spans(asked, common, spans, by_size)
    lines, held = asked.lines(), totals * several
    if len(lines) == 1 and lines[0] > 2:
        # a span's far cells are wide, so that few persons of noise there have many days; in other answers, which were
        # tried, persons lost far means, by which they differ
        noise = asked.stddev if Trait.SPAN in asked.kinds() else 0.0
        means = [np.maximum(n, f * common) for n in _beside(rows, held, lines[0], noise) for f in FLOORS]
    else:
        near = _beside(rows, held, 0, asked.stddev)[0]
        means = [np.maximum((1 - a) * common + a * near, f * common) for a in PARTS for f in (0.1, 0.5)]
        for start in (base.reshape(rows.shape), nearest.reshape(rows.shape)):
            means += [np.maximum((1 - a) * start + a * common, 0.01 * common) for a in PARTS[:-1]]
    goal, variance = np.where(open_cells, totals[:, None], 0.0), np.zeros_like(rows)
    free = open_cells & several[:, None]
    goal[free], variance[free] = likeliest(rows[free], asked.stddev, [m[free] for m in means])
    rows = np.array([_held(row, t) if o.any() else row for row, o, t in zip(goal, open_cells, totals, strict=True)])
    return _within_spans(asked, rows, spans, by_size), variance


def _beside(rows: Floats, totals: Floats, line: int, stddev: float) -> list[Floats]:
    """For each cell, by widths: what the share of cells beside it makes, in its row and in those of other sizes.

    The cell itself stands in none of them: means that hold it would follow its noise, and look likelier for it.

    Args:
        rows, totals: (groups of sizes, cells); how many persons each group has, 0 where its cells leave no choice.
        line: the first so many cells lie on a line; others have no neighbours in their row.
        stddev: of the noise that is taken from the means; see `neighbours`.
    """
    persons, counted = np.repeat(totals[:, None], rows.shape[1], axis=1), np.where(totals[:, None] > 0, rows, 0.0)
    shares = [
        neighbours(counted, [len(rows), line], w, stddev) / np.maximum(neighbours(persons, [len(rows), line], w), 1e-9)
        for w in WIDTHS
    ]
    return [share * totals[:, None] for share in shares]
