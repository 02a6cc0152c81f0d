"""Who may hold which record, by rules over constants and columns of records; the first arrangement brought to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.jit import compiled_in_place
from mechanisms.public.persons.tally import Codes, Ints
from mechanisms.public.rules.structural_zeros import Zeros

#: So often an exchange is looked for; and among so many persons the constants that some records allow.
TRIES, DONORS = 200, 1000


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
    cells: NDArray[np.bool_]

    def of(self, constants: Codes) -> Bans:
        """The same for persons of other constants."""
        return self._replace(keys=np.ascontiguousarray((self.strides @ constants.astype(np.int64)).T))

    def broken(self, persons: Ints, records: Ints) -> Ints:
        """How many rules forbid each person its record."""
        return np.asarray(self.cells[self.keys[persons] + self.rests[records]].sum(axis=1))


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


def brought(
    bans: Bans,
    constants: Codes,
    members: Ints,
    starts: Ints,
    bins: Codes,
    sizes: Sequence[int],
    rng: np.random.Generator,
) -> tuple[Codes, Ints, Ints, tuple[str, ...]]:
    """Persons who hold no record that they may not: constants, first slots, the slots in their order, and words.

    Records of one bin of time are exchanged, and constants. Where no exchange is met, a person gets constants anew that
    all of its records allow, as often as others have them; where there are none, what the old ones do not allow becomes
    a person of its own. The words say how often.

    Args:
        members: changed in place; bins: (records,) of time; sizes: codes of each constant.
    """
    owners = np.repeat(np.arange(starts.size - 1), np.diff(starts))
    bans, constants = _exchanged(bans, constants, members, starts, owners, bins, rng)
    bad, persons, anew = bans.broken(owners, members) > 0, list(constants.T), 0
    for person in np.unique(owners[bad]):
        slots = np.arange(starts[person], starts[person + 1])
        if (own := _anew(bans, constants, persons[person], members[slots], sizes, rng)) is not None:
            persons[person], anew = own, anew + 1
            continue
        for slot in slots[bad[slots]]:
            own = _anew(bans, constants, persons[person], members[[slot]], sizes, rng)
            assert own is not None, "zeros of records leave each to somebody"
            owners[slot] = len(persons)
            persons.append(own)
    ends = ((anew, "persons got constants drawn anew"), (len(persons) - constants.shape[1], "records became persons"))
    told = tuple(f"{n:,} {end}, since rules about constants left no exchange" for n, end in ends if n)
    held, numbers = np.unique(owners, return_counts=True)
    starts = np.concatenate(([0], np.cumsum(numbers))).astype(np.int64)
    return np.array(persons, np.int32)[held].T.copy(), starts, np.argsort(owners, kind="stable"), told


def _exchanged(
    bans: Bans, constants: Codes, members: Ints, starts: Ints, owners: Ints, bins: Codes, rng: np.random.Generator
) -> tuple[Bans, Codes]:
    """By turns records of one bin, in place, and one constant are exchanged where fewer rules are broken by it."""
    for attempt in range(TRIES):
        count = bans.broken(owners, members)
        if not count.any():
            break
        if attempt % 2:
            order = np.lexsort((rng.random(members.size), bins[members]))
            one, other = order[: members.size // 2 * 2].reshape(-1, 2).T
            after = bans.broken(owners[one], members[other]) + bans.broken(owners[other], members[one])
            fewer = (after < count[one] + count[other]) & (bins[members[one]] == bins[members[other]])
            members[one[fewer]], members[other[fewer]] = members[other[fewer]], members[one[fewer]]
            continue
        row, (one, other) = rng.integers(len(constants)), rng.permutation((starts.size - 1) // 2 * 2).reshape(2, -1)
        changed = constants.copy()
        changed[row, one], changed[row, other] = constants[row, other], constants[row, one]
        more = np.add.reduceat(bans.of(changed).broken(owners, members) - count, starts[:-1])
        for back in (places[more[one] + more[other] >= 0] for places in (one, other)):
            changed[row, back] = constants[row, back]
        bans, constants = bans.of(changed), changed
    return bans, constants


def _anew(
    bans: Bans, constants: Codes, before: Codes, records: Ints, sizes: Sequence[int], rng: np.random.Generator
) -> Codes | None:
    """Constants that allow all of the records: of some other person, else any; None where a rule leaves none."""
    drawn, donors = before.copy(), constants[:, rng.integers(constants.shape[1], size=DONORS)]
    for rule, strides in enumerate(bans.strides):
        own = np.flatnonzero(strides)
        every = np.indices([sizes[i] for i in own.tolist()]).reshape(own.size, -1)
        codes = np.concatenate([drawn[own, None], donors[own], every], axis=1)
        allowed = ~bans.cells[(strides[own] @ codes)[:, None] + bans.rests[records, rule]].any(axis=1)
        if not allowed.any():
            return None
        drawn[own] = codes[:, allowed.argmax()]
    return drawn
