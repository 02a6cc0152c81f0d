"""Values of two columns of texts that never stand together, where unrelated ones often would. NOT private."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.drafts.rule_guess import LAMBDA, BatchesOf, is_listed
from mechanisms.public.drafts.seen import FEWEST_UNITS
from mechanisms.public.schema.code_labels import label_of
from mechanisms.public.schema.column import Column

#: If the columns were unrelated, so many rows would hold each such pair of values, and so many all of a rule.
EXPECTED_EACH, EXPECTED = 20, 100
#: Of more columns pairs are not tried; of columns that need more rules, or values in one, nothing is proposed.
MOST_TRIED, MOST_RULES, MOST_LISTED = 40, 4, 60


@dataclass(frozen=True)
class Never:
    """Values of one column beside which another never has certain ones.

    Attributes:
        at, never: the labels of each.
        expected: in how many rows they would stand together if the columns were unrelated.
    """

    source: str
    target: str
    at: tuple[str | None, ...]
    never: tuple[str | None, ...]
    expected: int

    @property
    def rule(self) -> dict[str, object]:
        """An entry of `impossible`."""
        return {self.source: [*self.at], self.target: [*self.never]}

    @property
    def in_words(self) -> str:
        return f"in no row; unrelated columns would have {self.expected:,}"


def guess_never(given: Sequence[Column], batches_of: BatchesOf) -> list[Never]:
    """Of each two columns of texts or flags, neither of which tells the other, the values that exclude each other.

    NOT private. Cost: rows × pairs of columns, of which those go early of which all values stand together.
    """
    columns = [c for c in given if is_listed(c) and c.kind != "integer" and c.value_codes > 1][:MOST_TRIED]
    tried = {pair: np.zeros([c.size for c in pair], np.int64) for pair in itertools.combinations(columns, 2)}
    for codes in batches_of(columns) if tried else ():
        for (a, b), counts in tried.items():
            cells = codes[a.name] * b.size + codes[b.name]
            counts += np.bincount(cells, minlength=counts.size).reshape(counts.shape)
        tried = {(a, b): n for (a, b), n in tried.items() if not n[: a.value_codes, : b.value_codes].all()}
    return [rule for (a, b), counts in tried.items() for rule in _fewest(a, b, counts)]


def _fewest(a: Column, b: Column, counts: NDArray[np.int64]) -> list[Never]:
    """The rules of one pair, by the values of the column that needs fewer."""
    values = counts[: a.value_codes, : b.value_codes]
    if _follows(values) or _follows(values.T):  # which another rule says
        return []
    rules = min(_rules(a, b, values), _rules(b, a, values.T), key=len)
    return rules if len(rules) <= MOST_RULES else []


def _follows(values: NDArray[np.int64]) -> bool:
    """Whether the values of the rows tell those of the columns, as of `guess_determined`."""
    rows, wrong = values.sum(), values.sum() - values.sum(axis=0).max()
    return bool(rows - values.max(axis=1).sum() <= (1 - LAMBDA) * wrong)


def _rules(source: Column, target: Column, values: NDArray[np.int64]) -> list[Never]:
    expected = np.outer(values.sum(axis=1), values.sum(axis=0)) / max(values.sum(), 1)
    never = (values == 0) & (expected >= EXPECTED_EACH)
    alike: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for code in np.flatnonzero(never.any(axis=1) & (values.max(axis=1) >= FEWEST_UNITS)).tolist():
        alike[tuple(np.flatnonzero(never[code]).tolist())].append(code)
    rules = []
    for codes, at in alike.items():
        rows = int(expected[np.ix_(at, codes)].sum())
        if rows >= EXPECTED and len(at) + len(codes) <= MOST_LISTED:
            labels = [tuple(label_of(c, code) for code in own) for c, own in ((source, at), (target, codes))]
            rules.append(Never(source.name, target.name, labels[0], labels[1], rows))
    return rules
