"""Faults of what is asked about persons: how often one counts, and on whom it depends."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from mechanisms.public.persons.tally import WHOLE
from mechanisms.public.units import Neighbouring
from tests.audit.mutants import mutant


@mutant("replay /replace/ persons", "sensitivity of persons")
def a_person_who_is_replaced_moves_one_cell(original: Any) -> Any:
    """One person leaves a cell and another enters a second one: both move."""
    return lambda self, **named: original(self, **{**named, "neighbouring": Neighbouring.ADD_REMOVE})


@mutant("replay persons discover", "sensitivity of discovery")
def bounds_of_any_column_at_the_price_of_a_constant(original: Any) -> Any:
    """A tree of records is priced as one of persons: whoever has C records moves it C times."""
    return lambda self, **named: original(replace(self, once=True), **named)


@mutant("replay persons", "tally")
def a_pair_of_records_counts_as_a_person(original: Any) -> Any:
    """Each record with the next one weighs 1, so that whoever has many records counts many times."""

    def tally(persons: Any, sheet: Any) -> Any:
        firsts = np.setdiff1d(np.arange(persons.members.size), persons.starts[1:] - 1)
        owner = np.searchsorted(persons.starts, firsts, side="right") - 1
        pairs = np.stack([persons.members[firsts], persons.members[firsts + 1]], axis=1).ravel()
        starts = np.arange(0, pairs.size + 1, 2)
        return original(persons._replace(members=pairs, starts=starts, constants=persons.constants[:, owner]), sheet)

    return tally


@mutant("replay laplace persons", "tally")
def a_person_s_weights_rounded_up(original: Any) -> Any:
    """The weights of three pairs, a third each, sum to a little more than 1."""

    def tally(persons: Any, sheet: Any) -> Any:
        total = np.zeros(sheet.cells, np.int64)
        for i in range(persons.starts.size - 1):
            start, stop = persons.starts[i : i + 2]
            own = persons._replace(members=persons.members[start:stop], starts=np.array([0, stop - start]))
            counts = original(own._replace(constants=persons.constants[:, i : i + 1]), sheet)
            total += counts + 3 * (counts % WHOLE != 0)
        return total

    return tally


@mutant("replay persons", "tally")
def the_next_record_is_another_person_s(original: Any) -> Any:
    """Pairs run over the end of a person, so that one who is gone changes those before and behind."""

    def tally(persons: Any, sheet: Any) -> Any:
        parts = [persons.members[a : b + 1] for a, b in zip(persons.starts, persons.starts[1:], strict=False)]
        starts = np.cumsum([0, *(len(p) for p in parts)])
        members = np.concatenate([*parts, persons.members[:0]])
        return original(persons._replace(members=members, starts=starts), sheet)

    return tally


@mutant("replay add_remove persons", "constants of persons")
def a_constant_filled_down_from_the_person_before(original: Any) -> Any:
    """Where a person's records contradict each other, the value of the last one who is sure is carried on."""

    def constants(plain: Any, schema: Any, sheet: Any, members: Any, starts: Any, key: bytes) -> Any:
        chosen = original(plain, schema, sheet, members, starts, key)
        for place, name in enumerate(sheet.constants):
            codes = np.asarray(plain.column(name))[members].astype(np.int64)
            for i, (start, stop) in enumerate(pairwise(starts)):
                if i and codes[start:stop].min() != codes[start:stop].max():
                    chosen[place, i] = chosen[place, i - 1]
        return chosen

    return constants
