"""Who may hold which record, by rules over constants and columns of records; the first arrangement brought to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.arrays import Flags, Floats, Ints
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.jit import compiled, compiled_in_place
from mechanisms.public.persons.tally import Codes
from mechanisms.public.rules.structural_zeros import Zeros
from synthesis.xorshift import below

#: Constants weigh one over this power of how many persons may have them: 1 leaves three times as many without any as 4.
RARE = 4
#: So many records more than it had a person gets by ones, and then by twice as many while some are left.
MORE = 4
#: So many records of others are looked at until there is one to exchange for one that its person may not hold.
LOOKED_FOR = 1024


class Bans(NamedTuple):
    """Rules, no two of which share a constant, as tables of constants × codes of records.

    Attributes:
        strides: (rules, constants) cells from one code of a constant to the next; 0 where the rule leaves it out.
        keys: (persons, rules) Σ strides × constants; `rests` (records, rules) the rest of the cell's number.
        cells: of all tables: whether a person of that key may not hold such a record.
    """

    strides: Ints
    keys: Ints
    rests: Ints
    cells: Flags

    def of(self, constants: Codes) -> Bans:
        """The same for persons of other constants."""
        return self._replace(keys=np.ascontiguousarray((self.strides @ constants.astype(np.int64)).T))

    def shares(self) -> Floats:
        """(records,) how large a part of the persons may hold each record, as if rules were independent."""
        shares = np.ones(len(self.rests))
        for rule in range(len(self.strides)):
            keys, persons = np.unique(self.keys[:, rule], return_counts=True)
            rests, place = np.unique(self.rests[:, rule], return_inverse=True)
            shares *= (persons @ ~self.cells[keys[:, None] + rests] / max(persons.sum(), 1))[place]
        return shares


def bans_of(zeros: Sequence[Zeros], table: CodedTable, names: Sequence[str], constants: Codes) -> Bans:
    """The rules (see `of_persons`) for the records of a table and persons whose constants have these names."""
    strides = np.zeros((len(zeros), len(names)), np.int64)
    rests = np.zeros((table.rows, len(zeros)), np.int64)
    for rule, (clique, cells) in enumerate(zeros):
        rests[:, rule], stride = sum(z.size for _, z in zeros[:rule]), cells.size
        for name in clique:
            stride //= table.domain[name].size
            if name in names:
                strides[rule, names.index(name)] = stride
            else:
                rests[:, rule] += stride * table.column(name).astype(np.int64)
    every = np.concatenate([np.zeros(0, np.bool_), *(z for _, z in zeros)])
    return Bans(strides, rests[:0], rests, every).of(constants)


@compiled_in_place
def broken(bans: Bans, person: int, record: int) -> int:
    """How many rules forbid a person to hold a record."""
    count = 0
    for rule in range(len(bans.strides)):
        count += bans.cells[bans.keys[person, rule] + bans.rests[record, rule]]
    return count


@compiled_in_place
def breaks(bans: Bans, members: Ints, starts: Ints, one: int, other: int) -> int:
    """How often the records of two persons break a rule."""
    count = 0
    for person in (one, other):
        for slot in range(starts[person], starts[person + 1] if len(bans.strides) > 0 else 0):
            count += broken(bans, person, members[slot])
    return count


@compiled_in_place
def exchange_constant(bans: Bans, constants: Codes, constant: int, one: int, other: int) -> None:
    """Two persons exchange a constant."""
    mine, its = constants[constant, one], constants[constant, other]
    constants[constant, one], constants[constant, other] = its, mine
    for rule in range(len(bans.strides)):
        bans.keys[one, rule] += bans.strides[rule, constant] * (its - mine)
        bans.keys[other, rule] += bans.strides[rule, constant] * (mine - its)


@compiled
def exchanged(bans: Bans, members: Ints, slots: Ints, starts: Ints, owners: Ints, state: NDArray[np.uint64]) -> None:
    """Who may not hold some of its slots exchanges all of these, or none, with those who may hold theirs, in place."""
    whole, places = np.ones(len(starts) - 1, np.bool_), np.full(len(slots), -1, np.int64)
    for i in range(len(slots)):
        whole[owners[i]] &= broken(bans, owners[i], members[slots[i]]) == 0
    for person in range(len(whole)):
        if whole[person]:
            continue
        whole[person] = True
        for i in range(starts[person], starts[person + 1]):
            for _ in range(LOOKED_FOR if whole[person] and broken(bans, person, members[slots[i]]) > 0 else 0):
                j = below(state, len(slots))
                forbidden = broken(bans, person, members[slots[j]]) + broken(bans, owners[j], members[slots[i]])
                if whole[owners[j]] and forbidden == 0:
                    slots[i], slots[j], places[i] = slots[j], slots[i], j
                    break
            whole[person] &= broken(bans, person, members[slots[i]]) == 0
        for i in range(starts[person], starts[person + 1] if not whole[person] else 0):
            if places[i] >= 0:
                slots[i], slots[places[i]] = slots[places[i]], slots[i]


def brought(
    rules: Sequence[Rule],
    bans: Bans,
    constants: Codes,
    members: Ints,
    starts: Ints,
    bound: int,
    rng: np.random.Generator,
) -> tuple[Bans, Codes, Ints, Ints, tuple[str, ...]]:
    """Persons who hold no record that they may not: bans, constants, first slots, slots in any order, and words.

    Of records that no constants allow together a person gives away those that its own forbid, and gets as many others
    that were given away, or a few more; those that nobody gets become persons. The constants of all persons are then
    dealt among them anew, to those first whose records allow the least, of each what few others may have. Where none is
    left that a person's records allow, it gets what is left, and exchanges records with others. What that does not
    bring is drawn from all that a person's records allow. The words say how often.

    Args:
        bound: the most records of a person.
    """
    persons, owners = starts.size - 1, np.repeat(np.arange(starts.size - 1), np.diff(starts))
    groups = _parted(np.split(np.arange(members.size), starts[1:-1]), members, rules, constants)
    if given := groups[persons:]:
        groups = groups[:persons]
        left, had, more = np.concatenate(given), np.diff(starts), 0
        while more <= MORE or (left.size and more < 2 * bound):
            left = _exchanged(groups, left, members, np.minimum(had + more, bound), rules, rng)
            more = more + 1 if more < MORE else 2 * more
        again = [left[owners[left] == person] for person in np.unique(owners[left])]
        groups += _parted(again, members, rules, constants[:, :0])
    held, dealt = [members[slots] for slots in groups], constants[:, [owners[slots[-1]] for slots in groups]]
    dealt[:, :persons] = constants
    anew = sum(rule.deal(held, constants, dealt, rng) for rule in rules)
    starts = np.concatenate(([0], np.cumsum([g.size for g in groups]))).astype(np.int64)
    order, owners = np.concatenate(groups), np.repeat(np.arange(len(groups)), np.diff(starts))
    bans, state = bans.of(dealt), np.array([rng.integers(1, 2**63)], np.uint64)
    exchanged(bans, members, order, starts, owners, state)
    held = np.split(members[order], starts[1:-1])
    anew += sum(rule.deal_anew(held, dealt, rng) for rule in rules)
    ends = ((anew, "persons with constants drawn anew"), (len(groups) - persons, "persons parted in two"))
    endings = tuple(f"{end}: {n:,}, since rules about constants left no other way" for n, end in ends if n)
    return bans.of(dealt), dealt, starts, order, endings


def _parted(groups: Sequence[Ints], members: Ints, rules: Sequence[Rule], constants: Codes) -> list[Ints]:
    """Slots by person, and behind them of each person some that no constants allow beside the others.

    These are those that its own constants forbid: persons of many records keep those of theirs. Where these forbid all,
    or the person has none, they are the fewest.
    """
    parts, own = list(groups), [rule.places(constants) for rule in rules]
    for person, slots in enumerate(parts):  # also of those behind
        for rule, places in zip(rules, own, strict=True):
            if (forbidden := rule.forbidden(members[slots])).any(axis=1).all():
                away = forbidden[forbidden.sum(axis=1).argmin()]
                if person < places.size and not forbidden[places[person]].all():
                    away = forbidden[places[person]]
                parts.append(slots[away])
                parts[person] = slots = slots[~away]
    return parts


def _exchanged(
    groups: list[Ints],
    given: Ints,
    members: Ints,
    most: Ints,
    rules: Sequence[Rule],
    rng: np.random.Generator,
) -> Ints:
    """Persons get of the slots that were given away so many as their own allow; returns those that are left.

    Args:
        groups: slots by person; changed.
        most: (persons,) how many each may have.
    """
    rests = np.stack([rule.rests[members[given]] for rule in rules], axis=1)
    _, first, kinds, left = np.unique(rests, axis=0, return_index=True, return_inverse=True, return_counts=True)
    allowed = [~rule.forbidden(members[given[first]]) for rule in rules]
    heap, ends = given[np.lexsort((rng.random(given.size), kinds.ravel()))], np.cumsum(left)
    for person in rng.permutation(np.flatnonzero(most > [g.size for g in groups])):
        if not (may := left).any():
            break
        for rule, table in zip(rules, allowed, strict=True):
            own = ~rule.forbidden(members[groups[person]]).any(axis=1)
            room = np.cumsum(own * (table @ may) + 1e-9 * own)
            may = may * table[np.searchsorted(room, rng.random() * room[-1], side="right")]
        many = min(int(most[person]) - groups[person].size, int(may.sum()))
        taken = rng.multivariate_hypergeometric(may, many, method="marginals")
        got = [heap[end - n : end] for end, n in zip(ends, taken, strict=True) if n]
        groups[person] = np.concatenate([groups[person], *got])
        left, ends = left - taken, ends - taken
    return np.concatenate([heap[:0], *(heap[end - n : end] for end, n in zip(ends, left, strict=True))])


class Rule:
    """A rule, and all that its constants can be."""

    def __init__(self, bans: Bans, rule: int, sizes: Sequence[int]) -> None:
        """A rule of several, by its place; sizes are those of all constants' codes."""
        self.own = np.flatnonzero(bans.strides[rule])
        self.shape = tuple(sizes[i] for i in self.own.tolist())
        self.codes = np.indices(self.shape).reshape(self.own.size, -1)
        self.strides = bans.strides[rule, self.own]
        self.keys = (self.strides @ self.codes)[:, None]
        self.cells, self.rests = bans.cells, bans.rests[:, rule]

    def places(self, constants: Codes) -> Ints:
        """(persons,) which of all that its constants can be each person has."""
        return np.asarray(np.ravel_multi_index(tuple(constants[self.own].astype(np.int64)), self.shape))

    def forbidden(self, records: Ints) -> Flags:
        """(constants, records) which of all constants forbid which of these records."""
        return np.asarray(self.cells[self.keys + self.rests[records]])

    def deal(self, held: Sequence[Ints], constants: Codes, dealt: Codes, rng: np.random.Generator) -> int:
        """Write constants for each person by the records that it holds; returns how many got one that was not left.

        Whose records allow nothing that is left gets of it what somebody may have, so that records can be exchanged.
        """
        left, every = self._counts(constants), self._counts(constants)
        common = self._weights(left) + 1e-9
        fits, room = np.full(common.size, 1e-9), np.zeros(len(held))
        for person, records in enumerate(held):
            allowed = ~self.forbidden(records).any(axis=1)
            fits += allowed
            room[person] = common[allowed].sum()
        last = []
        for person in np.argsort(room, kind="stable"):
            weights = ~self.forbidden(held[person]).any(axis=1) / fits**RARE * self._weights(left)
            if not weights.any():
                last.append(person)
            else:
                self._write(dealt, person, weights, left, rng)
        return sum(self._write(dealt, p, (fits >= 1) * self._weights(left, every), left, rng) for p in last)

    def deal_anew(self, held: Sequence[Ints], dealt: Codes, rng: np.random.Generator) -> int:
        """Write constants for each person who may not hold its records with its own; returns as `deal`."""
        keys = self.strides @ dealt[self.own]
        broken = [p for p, records in enumerate(held) if self.cells[keys[p] + self.rests[records]].any()]
        left, every = self._counts(dealt[:, broken]), self._counts(dealt)
        allowed = ((p, ~self.forbidden(held[p]).any(axis=1)) for p in broken)
        return sum(self._write(dealt, p, may * self._weights(left, every), left, rng) for p, may in allowed)

    def _write(
        self, dealt: Codes, person: int, weights: Floats, left: Sequence[Ints], rng: np.random.Generator
    ) -> bool:
        """Constants of a person, drawn by weights and no longer left; returns whether one was not before."""
        total = np.cumsum(weights)
        dealt[self.own, person] = self.codes[:, np.searchsorted(total, rng.random() * total[-1], side="right")]
        anew = False
        for row, code in zip(left, dealt[self.own, person], strict=True):
            anew |= not row[code]
            row[code] = max(row[code] - 1, 0)
        return anew

    def _counts(self, constants: Codes) -> list[Ints]:
        """How many persons have each code, by constant."""
        return [np.bincount(constants[i], minlength=c.max() + 1) for i, c in zip(self.own, self.codes, strict=True)]

    def _weights(self, left: Sequence[Ints], every: Sequence[Ints] = ()) -> Floats:
        """Of all that the constants can be, how often, by how many of each code are left; by all where none is."""
        rows = [own + 1e-6 * (e + 1e-6) for own, e in zip(left, every, strict=True)] if every else left
        return np.asarray(np.prod([row[c] for row, c in zip(rows, self.codes, strict=True)], axis=0, dtype=np.float64))
