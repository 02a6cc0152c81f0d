"""Columns that are empty wherever another has certain values: a form skips the question. NOT private."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from mechanisms.public.drafts.rule_guess import LAMBDA, MOST_DETERMINED, BatchesOf, is_listed
from mechanisms.public.drafts.seen import FEWEST_UNITS
from mechanisms.public.rules.transforms import MAX_COMBINATIONS
from mechanisms.public.schema.code_labels import label_of
from mechanisms.public.schema.column import Column

#: Of rows with such a value so many would hold the target if it did not depend on the source: of each, of all, and of
#: all where none does.
EXPECTED_EACH, EXPECTED, EXPECTED_NONE = 5, 50, 20
#: Of the rows in which the target is empty the source explains at least this share, or all of its own are empty.
EXPLAINED = 0.5


@dataclass(frozen=True)
class Skipped:
    """A column that is empty in nearly all rows in which another has certain values.

    Attributes:
        at: labels of the source, None for missing; empty: any value.
        empty: in how many rows the target is empty, of `rows` in which the source has these values.
        explained: their share of all rows in which the target is empty.
    """

    source: str
    target: str
    at: tuple[str | None, ...]
    empty: int
    rows: int
    explained: float

    @property
    def rule(self) -> dict[str, object]:
        """An entry of `impossible`."""
        return {self.source: [*self.at] if self.at else {}, self.target: {}}


def guess_skipped(given: Sequence[Column], batches_of: BatchesOf) -> list[Skipped]:
    """Of each column that may be empty the one that tells most of the rows in which it is, if any does. NOT private.

    Of those that tell as much an answer comes before what may be skipped itself: wheelchair = no, not a walk measured.
    A listed column tells by its values, any other by being empty or not. Cost: rows × sources × targets.
    """
    targets = [c for c in given if c.missing_code is not None][:MOST_DETERMINED]
    sources = [c for c in given if is_listed(c) or c.missing_code is not None][:MOST_DETERMINED]
    if not targets or len(given) < 2:
        return []
    sizes = [c.size if is_listed(c) else 2 for c in sources]
    held = [np.zeros((size, len(targets))) for size in sizes]
    rows = [np.zeros(size) for size in sizes]
    for codes in batches_of([*{c.name: c for c in (*sources, *targets)}.values()]):
        filled = np.stack([codes[c.name] != c.missing_code for c in targets], axis=1).astype(np.float32)
        for i, source in enumerate(sources):
            own = codes[source.name] if is_listed(source) else (codes[source.name] == source.missing_code).astype(int)
            each = csr_array((np.ones(own.size, np.float32), own, np.arange(own.size + 1)), shape=(own.size, sizes[i]))
            held[i] += each.T @ filled
            rows[i] += np.bincount(own, minlength=sizes[i])
    skipped = []
    for t, target in enumerate(targets):
        own = [
            _skipped(source, target, rows[i], held[i][:, t])
            for i, source in enumerate(sources)
            if source.name != target.name and source.size * target.size <= MAX_COMBINATIONS
        ]
        best = max(own, key=lambda one: (one.explained, any(one.at), None not in one.at), default=None)
        if best is not None and (best.explained >= EXPLAINED or (best.explained and best.rows == best.empty)):
            skipped.append(best)
    return skipped


def _skipped(source: Column, target: Column, rows: NDArray[np.float64], held: NDArray[np.float64]) -> Skipped:
    """The values of the source at which the target is empty, of rows by code and those that hold the target."""
    expected = rows * (held.sum() / max(rows.sum(), 1))
    at = (rows >= FEWEST_UNITS) & (expected >= EXPECTED_EACH) & (held <= (1 - LAMBDA) * expected)
    empty = int((rows - held)[at].sum())
    enough = expected[at].sum() >= (EXPECTED if held[at].any() else EXPECTED_NONE)
    explained = empty / max((rows - held).sum(), 1) if enough else 0.0
    if is_listed(source):
        labels = tuple(label_of(source, int(code)) for code in np.flatnonzero(at))
    else:
        labels = (None,) if at[1] else ()
    return Skipped(source.name, target.name, labels, empty, int(rows[at].sum()), explained)
