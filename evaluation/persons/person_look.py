"""What a report draws of persons: shares of persons by a number, and whole synthetic persons."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from evaluation.persons.person_rows import PersonRows
from mechanisms.public.json_values import JsonDict

#: Persons that are shown, and of each of them records and columns, at most.
PEOPLE, RECORDS, COLUMNS = 12, 25, 12
#: Points of a distribution, at most.
POINTS = 30


def drawn_shares(real: NDArray[np.number], synthetic: NDArray[np.number]) -> JsonDict | None:
    """The shares of persons by a number from 0 on, of both tables, in at most POINTS groups of equal width.

    Returns:
        Labels, and a share for each of them; None where a table has no numbers.
    """
    if not len(real) or not len(synthetic):
        return None
    whole = all(bool(np.all(v == np.rint(v))) for v in (real, synthetic))
    least, most = (float(f([f(real), f(synthetic)])) for f in (np.min, np.max))
    width = (most - least + whole) / POINTS or 1.0
    width = float(np.ceil(width)) if whole else width
    count = min(int((most - least) / width) + 1, POINTS)
    groups = [np.minimum(((v - least) / width).astype(np.int64), count - 1) for v in (real, synthetic)]
    shares = [(np.bincount(g, minlength=count) / len(g)).tolist() for g in groups]
    starts = [least + i * width for i in range(count)]
    labels = [f"{s:.4g}" if whole and width == 1 else f"{s:.4g} to {s + width - whole:.4g}" for s in starts]
    return {"labels": labels, "real": shares[0], "synthetic": shares[1]}


def whole_persons(
    rows: PersonRows, label: Callable[[str, int], str], *, count: int = PEOPLE, seed: int = 0
) -> JsonDict:
    """Some whole persons of a synthetic table, from those with few records to those with many.

    Persons are sorted by their number of records, at random where it is the same, and taken at equal steps.

    Args:
        label: column and code → text.
    """
    own = rows.sorted
    persons = len(own.starts)
    mixed = np.random.default_rng(seed).permutation(persons)
    by_size = mixed[np.argsort(own.sizes[mixed], kind="stable")]
    taken = by_size[[int((i + 0.5) * persons / count) for i in range(count)]] if persons > count else by_size
    columns = own.rows.columns[:COLUMNS]
    shown = []
    for person in taken.tolist():
        start, size = int(own.starts[person]), int(own.sizes[person])
        lines = [[label(c.name, int(c.codes[i])) for c in columns] for i in range(start, start + min(size, RECORDS))]
        shown.append({"records": size, "rows": lines})
    return {"columns": [c.name for c in columns], "of": len(own.rows.columns), "shown": shown}
