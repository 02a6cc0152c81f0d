"""Who may hold which record, by rules over constants and columns of records; the first arrangement brought to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.jit import compiled, compiled_in_place
from mechanisms.public.persons.tally import Codes, Ints
from mechanisms.public.rules.structural_zeros import Zeros
from synthesis.xorshift import below

#: So many exchanges are tried for a record that its person may not hold, in each of so many passes.
TRIES, PASSES = 64, 8
#: Among the constants of so many persons those are looked for that records allow.
DONORS = 1000


class Bans(NamedTuple):
    """The rules as tables of constants × codes of records, one for all that share a constant.

    Attributes:
        strides: (rules, constants) cells from one code of a constant to the next; 0 for one that the rule leaves out.
        keys: (persons, rules) Σ strides × constants; `rests` (records, rules) the cell of its codes beside key 0.
        cells: of all tables, one after the other: whether a person of that key may not hold such a record.
    """

    strides: Ints
    keys: Ints
    rests: Ints
    cells: NDArray[np.bool_]


def bans_of(zeros: Sequence[Zeros], table: CodedTable, names: Sequence[str], constants: Codes) -> Bans:
    """The rules for the records of a table and persons of these constants.

    Args:
        zeros: no two of which share a constant (see `of_persons`).
        names: of the rows of constants.
    """
    strides = np.zeros((len(zeros), len(names)), np.int64)
    rests = np.zeros((table.rows, len(zeros)), np.int64)
    cells, first = [np.zeros(0, np.bool_)], 0
    for rule, (clique, closed) in enumerate(zeros):
        own = [n for n in clique if n in names]
        order = [*own, *(n for n in clique if n not in own)]
        shape = [table.domain[n].size for n in order]
        cells.append(closed.reshape(table.domain.shape(clique)).transpose([clique.index(n) for n in order]).ravel())
        rests[:, rule], stride = first, 1
        for name, size in zip(reversed(order), reversed(shape), strict=True):
            if name in own:
                strides[rule, names.index(name)] = stride
            else:
                rests[:, rule] += stride * table.column(name).astype(np.int64)
            stride *= size
        first += stride
    keys = np.ascontiguousarray((strides @ constants.astype(np.int64)).T)
    return Bans(strides, keys, rests, np.concatenate(cells))


@compiled_in_place
def broken(bans: Bans, person: int, record: int) -> int:
    """How many rules forbid a person to hold a record."""
    count = 0
    for rule in range(len(bans.strides)):
        if bans.cells[bans.keys[person, rule] + bans.rests[record, rule]]:
            count += 1
    return count


@compiled_in_place
def breaks(bans: Bans, members: Ints, starts: Ints, person: int) -> int:
    """How often the records of a person break a rule."""
    count = 0
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


@compiled_in_place
def _constants_tried(bans: Bans, constants: Codes, members: Ints, starts: Ints, one: int, other: int) -> None:
    """Two persons exchange their constants if fewer rules are broken by it."""
    before = breaks(bans, members, starts, one) + breaks(bans, members, starts, other)
    for constant in range(len(constants)):
        exchange_constant(bans, constants, constant, one, other)
    if breaks(bans, members, starts, one) + breaks(bans, members, starts, other) >= before:
        for constant in range(len(constants)):
            exchange_constant(bans, constants, constant, one, other)


@compiled
def _exchanged(
    bans: Bans, constants: Codes, members: Ints, starts: Ints, owners: Ints, alike: Ints, alike_begins: Ints,
    state: NDArray[np.uint64],
) -> int:  # fmt: skip
    """Exchanges for each record that its person may not hold; returns how many of them are left.

    Args:
        alike: slots by bin of time, those of slot s from `alike_begins[0, s]` on up to `alike_begins[1, s]`.
    """
    left = 0
    for slot in range(len(members)):
        person = owners[slot]
        for attempt in range(TRIES):
            record = members[slot]
            if broken(bans, person, record) == 0:
                break
            if attempt % 2:
                _constants_tried(bans, constants, members, starts, person, below(state, len(starts) - 1))
                continue
            low, high = alike_begins[0, slot], alike_begins[1, slot]
            place = alike[low + below(state, high - low)]
            other, its = owners[place], members[place]
            before = broken(bans, person, record) + broken(bans, other, its)
            if broken(bans, person, its) + broken(bans, other, record) < before:
                members[slot], members[place] = its, record
        left += broken(bans, person, members[slot]) > 0
    return left


def brought(
    bans: Bans,
    constants: Codes,
    members: Ints,
    starts: Ints,
    bins: Codes,
    sizes: Sequence[int],
    rng: np.random.Generator,
) -> tuple[Codes, Ints, Ints, tuple[str, ...]]:
    """Constants, and owners of slots in a new order of these, so that no person holds a record that it may not.

    Records of one bin of time are exchanged, and constants, in place. Where no exchange is met, a person gets constants
    anew that all of its records allow, as often as others have them; where there are none, what the old ones do not
    allow becomes a person of its own.

    Args:
        bins: (records,) of time, which stay where they are; sizes: codes of each constant.
    Returns:
        Constants, owners of slots, the slots in their new order, and in sentences what exchanges did not bring.
    """
    owners, left = np.repeat(np.arange(starts.size - 1), np.diff(starts)), members.size + 1
    alike = np.argsort(bins[members], kind="stable")
    begins = np.array([np.searchsorted(bins[members][alike], bins[members], side) for side in ("left", "right")])
    state = np.array([rng.integers(1, 2**63)], np.uint64)
    for _ in range(PASSES):
        before, left = left, int(_exchanged(bans, constants, members, starts, owners, alike, begins, state))
        if not 0 < left < before:
            break
    bad, persons = bans.cells[bans.keys[owners] + bans.rests[members]].any(axis=1), list(constants.T)
    anew = 0
    for person in np.unique(owners[bad]):
        slots = np.flatnonzero(owners == person)
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
    held, owners = np.unique(owners, return_inverse=True)
    order = np.argsort(owners, kind="stable")
    return np.array(persons, np.int32)[held].T.copy(), owners[order], order, told


def _anew(
    bans: Bans, constants: Codes, before: Codes, records: Ints, sizes: Sequence[int], rng: np.random.Generator
) -> Codes | None:
    """Constants that allow all of the records: of some other person, else any; None where a rule leaves none."""
    drawn = before.copy()
    for rule, strides in enumerate(bans.strides):
        own, rests = np.flatnonzero(strides), bans.rests[records, rule]
        if not bans.cells[strides @ drawn + rests].any():
            continue
        some = constants[own][:, rng.integers(constants.shape[1], size=DONORS)]
        for codes in (some, np.indices(np.array(sizes)[own]).reshape(own.size, -1)):
            allowed = np.flatnonzero(~bans.cells[(strides[own] @ codes)[:, None] + rests].any(axis=1))
            if allowed.size:
                drawn[own] = codes[:, rng.choice(allowed)]
                break
        else:
            return None
    return drawn
