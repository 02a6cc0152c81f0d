"""Texts that never stand together, or beside an empty cell, where unrelated ones often would. NOT private."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.drafts.rule_guess import LAMBDA, BatchesOf, is_listed
from mechanisms.public.drafts.seen import FEWEST_UNITS
from mechanisms.public.drafts.skip_guess import Skipped
from mechanisms.public.schema.code_labels import label_of
from mechanisms.public.schema.column import Column

#: If the columns were unrelated, so many rows would hold each such pair of values, and so many all of a rule.
EXPECTED_EACH, EXPECTED = 20, 100
#: Of more columns pairs are not tried; of columns that need more rules, or values in one, nothing is proposed, but
#: MANY rules where these hold at least this share of the rows if the columns were unrelated: models of each product.
MOST_TRIED, MOST_RULES, MOST_LISTED, MOSTLY = 40, 4, 60, 0.25
#: Two columns that both have more values exclude each other by habit: towns and branches. So many rules are proposed.
MANY, MOST_PROPOSED = 10, 16


@dataclass(frozen=True)
class Never:
    """Values of one column beside which another never has certain ones.

    Attributes:
        at, never: the labels of each; None for missing.
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


def guess_never(given: Sequence[Column], batches_of: BatchesOf, skipped: Collection[Skipped] = ()) -> list[Never]:
    """Of each two columns of texts or flags, neither of which tells the other, the values that exclude each other.

    And of each column that may be empty the texts of the one that tells most of it beside which it never is. NOT
    private. The strongest pairs come first, each whole. Cost: rows × pairs of columns, of which those go early of which
    all values stand together.

    Args:
        skipped: of columns that are empty where others are, which nothing repeats.
    """
    columns = [c for c in given if is_listed(c) and c.kind != "integer" and c.value_codes > 1][:MOST_TRIED]
    gaps = [c for c in given if c.missing_code is not None][:MOST_TRIED]
    both = itertools.combinations(columns, 2)
    asked = [(a, b, False) for a, b in both if min(a.value_codes, b.value_codes) <= MANY]
    asked += [(a, b, True) for a, b in itertools.product(columns, gaps) if a is not b]  # whether it is empty
    tried = {(a, b, gap): np.zeros((a.size, 2 if gap else b.size), np.int64) for a, b, gap in asked}
    for codes in batches_of([*{c.name: c for c in (*columns, *gaps)}.values()]) if tried else ():
        for (a, b, gap), counts in tried.items():
            own = codes[b.name] == b.missing_code if gap else codes[b.name]
            cells = codes[a.name] * counts.shape[1] + own
            counts += np.bincount(cells, minlength=counts.size).reshape(counts.shape)
        tried = {
            (a, b, gap): counts
            for (a, b, gap), counts in tried.items()
            if not counts[: a.value_codes, 1 if gap else slice(b.value_codes)].all()
        }
    pairs = [_fewest(a, b, counts) for (a, b, gap), counts in tried.items() if not gap]
    filled: dict[Column, list[Never]] = {}
    for (a, b, _), counts in (item for item in tried.items() if item[0][2]):
        own = _rules(a, b, counts, (None, b.missing_code))
        filled[b] = max(filled.get(b, []), own, key=lambda every: sum(one.expected for one in every))
    empty = {(one.target, one.source) for one in skipped if one.at == (None,) and one.above is None}
    pairs += [own for own in filled.values() if own and (own[0].source, own[0].target) not in empty]
    rules = list[Never]()
    for own in sorted(pairs, key=lambda own: -sum(one.expected for one in own)):
        rules += own if len(rules) + len(own) <= MOST_PROPOSED else []
    return rules


def _fewest(a: Column, b: Column, counts: NDArray[np.int64]) -> list[Never]:
    """The rules of one pair, by the values of the column that needs fewer."""
    values = counts[: a.value_codes, : b.value_codes]
    if _follows(values) or _follows(values.T):  # which another rule says
        return []
    rules = min(_rules(a, b, values, range(b.value_codes)), _rules(b, a, values.T, range(a.value_codes)), key=len)
    mostly = sum(one.expected for one in rules) >= MOSTLY * values.sum()
    return rules if len(rules) <= (MANY if mostly else MOST_RULES) else []


def _follows(values: NDArray[np.int64]) -> bool:
    """Whether the values of the rows tell those of the columns, as of `guess_determined`."""
    rows, wrong = values.sum(), values.sum() - values.sum(axis=0).max()
    return bool(rows - values.max(axis=1).sum() <= (1 - LAMBDA) * wrong)


def _rules(source: Column, target: Column, values: NDArray[np.int64], codes_of: Sequence[int | None]) -> list[Never]:
    """The rules by the values of the source.

    Args:
        values: rows by codes of the source and by what `codes_of` says of the target; None: nothing is asked of it.
    """
    asked = np.array([code is not None for code in codes_of])
    expected = np.outer(values.sum(axis=1), values.sum(axis=0)) / max(values.sum(), 1)
    never = (values == 0) & (expected >= EXPECTED_EACH) & asked
    alike: dict[tuple[int, ...], list[int]] = defaultdict(list)
    frequent = values[: source.value_codes].max(axis=1) >= FEWEST_UNITS
    for code in np.flatnonzero(never[: source.value_codes].any(axis=1) & frequent).tolist():
        alike[tuple(np.flatnonzero(never[code]).tolist())].append(code)
    rules = []
    for places, at in alike.items():
        rows = int(expected[np.ix_(at, places)].sum())
        if rows >= EXPECTED and len(at) + len(places) <= MOST_LISTED:
            codes = [named for place in places if (named := codes_of[place]) is not None]
            labels = [tuple(label_of(c, code) for code in own) for c, own in ((source, at), (target, codes))]
            rules.append(Never(source.name, target.name, labels[0], labels[1], rows))
    return rules
