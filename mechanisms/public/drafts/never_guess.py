"""Values of one column that exclude values of another, or leave it empty: a form skips the question. NOT private."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from mechanisms.public.drafts.rule_guess import (
    LAMBDA,
    MOST_DETERMINED,
    BatchesOf,
    Determined,
    guess_determined,
    is_listed,
)
from mechanisms.public.drafts.seen import FEWEST_UNITS
from mechanisms.public.rules.structural_zeros import MOST_CONSTANTS
from mechanisms.public.rules.transforms import MAX_COMBINATIONS
from mechanisms.public.schema.code_labels import bin_bounds, drawn_ends, label_of
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.encode import encoding
from mechanisms.public.tables.scan import Source

#: If the columns were unrelated, so many rows would hold each such pair of values, and so many all of a rule.
EXPECTED_EACH, EXPECTED = 20, 100
#: Of more columns pairs are not tried; of columns that need more rules, or values in one, nothing is proposed, but
#: MANY rules where these hold at least this share of the rows if the columns were unrelated: models of each product.
MOST_TRIED, MOST_RULES, MOST_LISTED, MOSTLY = 40, 4, 60, 0.25
#: Two columns that both have more values exclude each other by habit: towns and branches. So many rules are proposed.
MANY, MOST_PROPOSED = 10, 16
#: Beside a bound lies at least such a part of the rows of unrelated columns; else it is the thin end of a habit.
SHARP = 0.5


@dataclass(frozen=True)
class Never:
    """Values of one column beside which another never has certain ones.

    Attributes:
        at, never: the labels of each; None for missing.
        expected: in how many rows they would stand together if the columns were unrelated.
        beyond: of numbers in place of labels "min" or "max", and the bound beyond which none lies.
    """

    source: str
    target: str
    at: tuple[str | None, ...]
    never: tuple[str | None, ...]
    expected: int
    beyond: tuple[str, float] | None = None

    @property
    def rule(self) -> dict[str, object]:
        """An entry of `impossible`."""
        if self.beyond is None:
            return {self.source: [*self.at], self.target: [*self.never]}
        word, bound = self.beyond
        return {self.source: [*self.at], self.target: {word: bound}}

    @property
    def in_words(self) -> str:
        return f"in no row; unrelated columns would have {self.expected:,}"


def guess_never(
    given: Sequence[Column], batches_of: BatchesOf, skipped: Collection[Skipped] = (), of_person: float = 1.0
) -> list[Never]:
    """Of each two columns of texts or flags, neither of which tells the other, the values that exclude each other.

    And of each column that may be empty the texts of the one that tells most of it beside which it never is; and of
    columns of numbers those beyond all that stand beside a text. NOT private. The strongest pairs come first, each
    whole. Cost: rows × pairs of columns, of which those go early of which all values stand together.

    Args:
        skipped: of columns that are empty, or 0, where others are, which nothing repeats.
        of_person: rows of one on average: the rows of few persons tell no rule.
    """
    columns = [c for c in given if is_listed(c) and c.kind != "integer" and c.value_codes > 1][:MOST_TRIED]
    gaps = [c for c in given if c.missing_code is not None][:MOST_TRIED]
    both = itertools.combinations(columns, 2)
    numbers = [c for c in given if c.kind in {"integer", "float"} and c.step and c.value_codes > 2][:MOST_TRIED]
    asked = [(a, b, False) for a, b in both if min(a.value_codes, b.value_codes) <= MANY]
    few = [c for c in columns if c.value_codes <= MANY]
    asked += [(a, b, False) for a, b in itertools.product(few, numbers)]
    asked += [(a, b, True) for a, b in itertools.product(columns, gaps) if a is not b]  # whether it is empty
    tried = {(a, b, gap): np.zeros((a.size, 2 if gap else b.size), np.int64) for a, b, gap in asked}
    for codes in batches_of([*{c.name: c for c in (*columns, *gaps, *numbers)}.values()]) if tried else ():
        for (a, b, gap), counts in tried.items():
            own = codes[b.name] == b.missing_code if gap else codes[b.name]
            cells = codes[a.name] * counts.shape[1] + own
            counts += np.bincount(cells, minlength=counts.size).reshape(counts.shape)
        tried = {
            (a, b, gap): counts
            for (a, b, gap), counts in tried.items()
            if not counts[: a.value_codes, 1 if gap else slice(b.value_codes)].all()
        }
    persons = {pair: counts / of_person for pair, counts in tried.items()}
    pairs = [(_beyond if b in numbers else _fewest)(a, b, n) for (a, b, gap), n in persons.items() if not gap]
    filled: dict[Column, list[Never]] = {}
    for (a, b, _), n in (item for item in persons.items() if item[0][2]):
        own = _rules(a, b, n, (None, b.missing_code))
        filled[b] = max(filled.get(b, []), own, key=lambda every: sum(one.expected for one in every))
    zero = {(one.source, one.target): one.above for one in skipped if one.above is not None}  # 0 is asked about
    pairs = [[o for o in own if not o.beyond or o.beyond[1] > zero.get((o.source, o.target), -np.inf)] for own in pairs]
    empty = {(one.target, one.source) for one in skipped if one.at == (None,) and one.above is None}
    pairs += [own for own in filled.values() if own and (own[0].source, own[0].target) not in empty]
    rules = list[Never]()
    for own in sorted(pairs, key=lambda own: -sum(one.expected for one in own)):
        rules += own if len(rules) + len(own) <= MOST_PROPOSED else []
    return [replace(one, expected=round(one.expected * of_person)) for one in rules]


def _fewest(a: Column, b: Column, counts: NDArray[np.float64]) -> list[Never]:
    """The rules of one pair, by the values of the column that needs fewer."""
    values = counts[: a.value_codes, : b.value_codes]
    if _follows(values) or _follows(values.T):  # which another rule says
        return []
    rules = min(_rules(a, b, values, range(b.value_codes)), _rules(b, a, values.T, range(a.value_codes)), key=len)
    return _unless_many(rules, values)


def _unless_many(rules: list[Never], values: NDArray[np.float64]) -> list[Never]:
    """The rules, where they are few, or hold much of the rows of unrelated columns: the ages of pupils and retired."""
    mostly = sum(one.expected for one in rules) >= MOSTLY * values.sum()
    return rules if len(rules) <= (MANY if mostly else MOST_RULES) else []


def _beyond(a: Column, b: Column, counts: NDArray[np.float64]) -> list[Never]:
    """The rules of a column of few values and one of numbers: none lies beyond a bound, and many lie beside it."""
    values, (first, last) = counts[: a.value_codes, : b.value_codes], drawn_ends(b)
    if _follows(values) or _follows(values.T):
        return []
    expected = np.outer(values.sum(axis=1), values.sum(axis=0)) / max(values.sum(), 1)
    alike: dict[tuple[str, float, int, int], list[int]] = defaultdict(list)  # word, bound, and the codes beyond it
    for code, row in enumerate(values):
        held = np.flatnonzero(row).tolist()
        sides = [(held[0], ("max", float(last[held[0] - 1]), 0, held[0]))] if held and held[0] > 0 else []
        if held and held[-1] + 1 < first.size:
            sides.append((held[-1], ("min", float(first[held[-1] + 1]), held[-1] + 1, first.size)))
        for end, side in sides:
            beside = row[end] >= max(FEWEST_UNITS, SHARP * expected[code, end])
            if beside and expected[code, side[2] : side[3]].sum() >= EXPECTED:
                alike[side].append(code)
    rules = []
    for (word, bound, start, stop), at in alike.items():
        labels = tuple(label_of(a, code) for code in at)
        rows = int(expected[at, start:stop].sum())
        rules.append(Never(a.name, b.name, labels, (), rows, (word, int(bound) if bound == int(bound) else bound)))
    return _unless_many(rules, values)


def _follows(values: NDArray[np.float64]) -> bool:
    """Whether the values of the rows tell those of the columns, as of `guess_determined`."""
    rows, wrong = values.sum(), values.sum() - values.sum(axis=0).max()
    return bool(rows - values.max(axis=1).sum() <= (1 - LAMBDA) * wrong)


def _rules(source: Column, target: Column, values: NDArray[np.float64], codes_of: Sequence[int | None]) -> list[Never]:
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


#: Of rows with such a value so many would hold the target if it did not depend on the source: of each, of all, and of
#: all where none does.
SKIPPED_EACH, SKIPPED, SKIPPED_NONE = 5, 50, 20
#: Of the rows in which the target is empty the source explains at least this share, or all of its own are empty; these
#: are so large a part where another column is empty in the same rows.
EXPLAINED, PARTLY = 0.5, 0.25
#: Where a run of numbers begins and ends.
ENDS_OF_A_RUN = 2
#: Of numbers of any digits those below it lie in one bin with 0.
FINE = 1e-4


#: A target of `guess_skipped`: a column, its code that says nothing, and the least number behind it if that is 0.
_Target = tuple[Column, int, float | None]


@dataclass(frozen=True)
class Skipped:
    """A column that is empty, or 0, in nearly all rows in which another has certain values.

    Attributes:
        at: labels of the source, None for missing; empty: any value.
        empty: in how many rows the target is empty, or 0, of `rows` in which the source has these values.
        explained: their share of all rows in which the target is so.
        above: of a target that is 0 there, where its numbers above 0 begin; None: it is empty.
    """

    source: str
    target: str
    at: tuple[str | None, ...]
    empty: int
    rows: int
    explained: float
    above: float | None = None

    @property
    def word(self) -> str:
        return "empty" if self.above is None else "0"

    @property
    def rule(self) -> dict[str, object]:
        """An entry of `impossible`."""
        never: dict[str, object] = {} if self.above is None else {"min": self.above}
        return {self.source: [*self.at] if self.at else {}, self.target: never}


def guess_skipped(given: Sequence[Column], batches_of: BatchesOf, of_person: float = 1.0) -> list[Skipped]:
    """Of each column that may be empty, or 0, the one that tells most of the rows in which it is so. NOT private.

    Of those that tell as much an answer comes before what may be skipped itself: wheelchair = no, not a walk measured.
    A listed column tells by its values, any other by being empty or not; numbers by one run of them, or by all outside
    of one, since single ones here and there are so by chance. Cost: rows × sources × targets.

    Args:
        of_person: rows of one on average: the rows of few persons tell no rule.
    """
    targets: list[_Target] = [(c, c.missing_code, None) for c in given if c.missing_code is not None]
    targets = [*targets[:MOST_DETERMINED], *(t for c in given[:MOST_DETERMINED] for t in _zero(c))]
    sources = [c for c in given if is_listed(c) or c.missing_code is not None][:MOST_DETERMINED]
    if not targets or len(given) < 2:
        return []
    sizes = [c.size if is_listed(c) else 2 for c in sources]
    held = [np.zeros((size, len(targets))) for size in sizes]
    rows = [np.zeros((size, len(targets))) for size in sizes]
    for codes in batches_of([*{c.name: c for c in (*sources, *(t for t, *_ in targets))}.values()]):
        # where 0 is asked about, rows without a number say nothing
        there = np.stack([codes[c.name] != (-1 if above is None else c.missing_code) for c, _, above in targets], 1)
        filled = there & np.stack([codes[c.name] != code for c, code, _ in targets], 1)
        for i, source in enumerate(sources):
            own = codes[source.name] if is_listed(source) else (codes[source.name] == source.missing_code).astype(int)
            each = csr_array((np.ones(own.size, np.float32), own, np.arange(own.size + 1)), shape=(own.size, sizes[i]))
            held[i] += each.T @ filled.astype(np.float32)
            rows[i] += each.T @ there.astype(np.float32)
    skipped, answers = list[Skipped](), dict[str, Skipped]()
    for t, target in enumerate(targets):
        own = [
            _skipped(source, target, rows[i][:, t], held[i][:, t], of_person)
            for i, source in enumerate(sources)
            if source.name != target[0].name and source.size * target[0].size <= MAX_COMBINATIONS
        ]
        own.sort(key=lambda one: (one.explained, any(one.at), None not in one.at), reverse=True)
        skipped += [o for o in own[:1] if o.explained >= EXPLAINED or (o.explained and o.rows == o.empty)]
        few = [o for o in own if o.explained >= (PARTLY if o.rows == o.empty else EXPLAINED)]
        few = [o for o in few if len(o.at) <= MANY and o.above is None]
        answers |= {o.target: o for o in [o for o in few if any(o.at) and None not in o.at][:1]}
    skipped += _of_circles(skipped, answers)
    boxes = {c.name for c in given if c.value_codes == 2 and _zero(c)}  # of two, the same rule either way
    once = {frozenset((o.source, o.target)): o for o in reversed(skipped) if {o.source, o.target} <= boxes and o.above}
    return [one for one in skipped if once.get(frozenset((one.source, one.target)), one) is one or one.above is None]


def _of_circles(skipped: Sequence[Skipped], answers: Mapping[str, Skipped]) -> list[Skipped]:
    """Of columns that are empty where each other is (wages by the year and by the hour) the answers by which one is so.

    Args:
        answers: column → the few values of another that tell most of the rows in which it is empty.
    """
    by_target, more = {one.target: one for one in skipped if one.above is None}, list[Skipped]()
    for name in answers:
        passed = [name]
        while passed[-1] in by_target and by_target[passed[-1]].at == (None,) and passed.count(passed[-1]) == 1:
            passed.append(by_target[passed[-1]].source)
        if len(passed) > 1 and passed[-1] == name:
            by_target[name] = answers[name]
            more.append(answers[name])
    return more


def _zero(column: Column) -> list[_Target]:
    """The code of 0 of a column of amounts, none of which is below it, and where the others begin."""
    if column.kind not in {"integer", "float"} or column.value_codes < 2:
        return []
    first, last = bin_bounds(column)
    above: float = int(first[1]) if column.kind == "integer" else float(first[1])
    return [(column, 0, above)] if first[0] == 0 and last[0] < (column.step or FINE) else []


def _skipped(
    source: Column, target: _Target, rows: NDArray[np.float64], held: NDArray[np.float64], of_person: float
) -> Skipped:
    """The values of the source at which the target is empty, of rows by code and those that hold the target."""
    expected = rows * (held.sum() / max(rows.sum(), 1))
    seen = (rows >= FEWEST_UNITS * of_person) & (expected >= SKIPPED_EACH * of_person)
    at = seen & (held <= (1 - LAMBDA) * expected)
    empty = int((rows - held)[at].sum())
    enough = expected[at].sum() >= (SKIPPED if held[at].any() else SKIPPED_NONE) * of_person
    values = slice(source.value_codes)
    enough &= source.kind != "integer" or np.count_nonzero(np.diff(at[values][seen[values]])) <= ENDS_OF_A_RUN
    explained = empty / max((rows - held).sum(), 1) if enough else 0.0
    if is_listed(source):
        labels = tuple(label_of(source, int(code)) for code in np.flatnonzero(at))
    else:
        labels = (None,) if at[1] else ()
    return Skipped(source.name, target[0].name, labels, empty, int(rows[at].sum()), explained, target[2])


def code_batches(source: Source, columns: Sequence[Column]) -> Iterator[dict[str, NDArray[np.int64]]]:
    """Column → codes of the rows, batch by batch. NOT private."""
    coded = encoding(source, Schema("", tuple(columns)))
    for batch in source.batches(coded.select, first=coded.types):
        yield {c.name: np.asarray(batch.column(i)).astype(np.int64) % c.size for i, c in enumerate(columns)}


@dataclass(frozen=True)
class Dependent:
    """Columns that follow from others, that are empty or 0 beside some values, and values that exclude each other.

    Attributes:
        left: pairs of columns whose rules are none of these, since with them they speak of too many constants.
    """

    follows: Sequence[Determined]
    skipped: Sequence[Skipped]
    never: Sequence[Never]
    left: Sequence[Collection[str]]


def guess_dependent(
    given: Sequence[Column], batches_of: BatchesOf, constants: Collection[str] = (), of_person: float = 1.0
) -> Dependent:
    """What columns that no expression computes say of each other; of two that say the same one alone. NOT private.

    Args:
        constants: of persons; `of_person` as of `guess_never`.
    """
    follows, skipped = guess_determined(given, batches_of, constants), guess_skipped(given, batches_of, of_person)
    again = {m.target for m in follows if m.complete or m.twin}
    never = guess_never([c for c in given if c.name not in again], batches_of, skipped, of_person)
    rules: list[Determined | Skipped | Never] = [*(m for m in follows if not m.complete), *skipped, *never]
    left = _beyond_constants(rules, {c.name: c.size for c in given if c.name in constants})
    return Dependent(
        [one for one in follows if one.complete or {one.source, one.target} not in left],
        [one for one in skipped if {one.source, one.target} not in left],
        [one for one in never if {one.source, one.target} not in left],
        left,
    )


def _beyond_constants(rules: Sequence[Determined | Skipped | Never], sizes: Mapping[str, int]) -> list[Collection[str]]:
    """The pairs of columns whose rules, with those before them, speak of more constants together than rules may.

    Args:
        sizes: constant of persons → its codes.
    """
    groups, left = list[frozenset[str]](), list[Collection[str]]()
    for pair in dict.fromkeys(frozenset((one.source, one.target)) for one in rules):
        shared = [own for own in groups if own & pair & sizes.keys()]
        both = pair.union(*shared)
        if math.prod(sizes[n] for n in both & sizes.keys()) > MOST_CONSTANTS:
            left.append(pair)
        elif pair & sizes.keys():
            groups = [own for own in groups if own not in shared] + [both]
    return left
