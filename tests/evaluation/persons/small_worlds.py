"""Small tables of persons, and their figures by loops over persons."""

import itertools
from collections import Counter

import numpy as np

from evaluation.persons.person_rows import PersonRows, RowColumn
from evaluation.values.value_tables import NOBODY

NUMBERS = np.array([0.0, 1.0, 2.5, 4.0, np.nan])


def world(rows: int, persons: int, seed: int, *, nobody: float = 0.1) -> PersonRows:
    """A home that most records of a person share, a number that is like within a person, and a constant sex."""
    rng = np.random.default_rng(seed)
    owner = rng.integers(0, persons, rows)
    homes, levels, sexes = rng.integers(0, 6, persons), rng.integers(0, 4, persons), rng.integers(0, 2, persons)
    kept = rng.random((2, rows)) < 0.8
    home = np.where(kept[0], homes[owner], rng.integers(0, 6, rows)).astype(np.uint8)
    level = np.where(kept[1], levels[owner], rng.integers(0, 5, rows)).astype(np.uint8)
    sex = sexes[owner].astype(np.uint8)
    order = np.where(rng.random(rows) < 0.1, np.nan, rng.integers(0, 12, rows))
    columns = (
        RowColumn("home", home, np.minimum(home, 3)),
        RowColumn("level", level, level, NUMBERS),
        RowColumn("sex", sex, sex, fixed=True),
    )
    return PersonRows(np.where(rng.random(rows) < nobody, NOBODY, owner), columns, order)


def table(*rows: tuple[int, float, int], fixed: bool = False, ordered: bool = True) -> PersonRows:
    """(person, place in the order, code of the only column)."""
    owner, order, codes = (np.array(c) for c in zip(*rows, strict=True)) if rows else (np.zeros(0, int),) * 3
    column = RowColumn("v", codes.astype(np.uint8), codes.astype(np.uint8), fixed=fixed)
    return PersonRows(owner.astype(np.int64), (column,), order.astype(float) if ordered else None)


def histories(rows: PersonRows) -> list[list[int]]:
    """The rows of each person, in order: known places first, ties as in the file."""
    by_person: dict[int, list[int]] = {}
    for i, person in enumerate(rows.owner.tolist()):
        if person != NOBODY:
            by_person.setdefault(person, []).append(i)
    if rows.order is not None:
        for own in by_person.values():
            own.sort(key=lambda i: (np.isnan(rows.order[i]), 0.0 if np.isnan(rows.order[i]) else rows.order[i]))
    return [by_person[p] for p in sorted(by_person)]


def steps(rows: PersonRows) -> list[tuple[int, int]]:
    return [pair for own in histories(rows) for pair in itertools.pairwise(own)]


def anova(groups: list[list[float]]) -> float:
    """The share of variance between groups, term by term."""
    groups = [g for g in groups if g]
    n, k = sum(map(len, groups)), len(groups)
    middle = sum(map(sum, groups)) / n
    means = [sum(g) / len(g) for g in groups]
    between = sum(len(g) * (m - middle) ** 2 for g, m in zip(groups, means, strict=True)) / (k - 1)
    within = sum((x - m) ** 2 for g, m in zip(groups, means, strict=True) for x in g) / (n - k)
    size = (n - sum(len(g) ** 2 for g in groups) / n) / (k - 1)
    return (between - within) / (between + (size - 1) * within)


def apart(a: Counter, b: Counter) -> float:
    return sum(abs(a[x] / a.total() - b[x] / b.total()) for x in a.keys() | b.keys()) / 2
