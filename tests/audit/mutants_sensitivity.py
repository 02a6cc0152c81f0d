"""Faults of sensitivity, clipping, what is read from the rows, and whole persons."""

import secrets
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from mechanisms.public.persons.tally import WHOLE
from mechanisms.public.units import Neighbouring
from mechanisms.sensitive.contribution import PrivacyUnit
from tests.audit.mutants import mutant, mutants

REPLAY = "replay"


def _as_add_remove(original: Any, *args: Any, **named: Any) -> Any:
    return original(*args, **{**named, "neighbouring": Neighbouring.ADD_REMOVE})


AS_ADD_REMOVE = """
replace counted as add remove | replay /replace/ | sensitivity
One unit replaced moves two cells; many libraries calibrate to one.
histogram under replace counted once | replay /replace/ histogram | histogram's sensitivity
A unit that is replaced leaves one cell of a histogram and enters another.
choice under replace counted once | replay mst replace | scores
Only the measurements know of `replace`, the scores of the choices do not.
one bucket moves where a unit is replaced | replay records/ /replace/ | sensitivity of sizes
A unit that is replaced leaves one bucket and enters another: two counts move.
a person who is replaced moves one cell | replay /replace/ persons | histogram's sensitivity
One person leaves a cell and another enters a second one: both move.
distance under replace counted once | replay /replace/ /accept | distance's sensitivity
A unit that is replaced leaves one cell and enters another.
"""
mutants(_as_add_remove, AS_ADD_REMOVE)


@mutant("replay C=3", "sensitivity")
def sensitivity_of_one_record(original: Any, query: Any, **named: Any) -> Any:
    """The bound C on a unit's records is forgotten in the sensitivity."""
    return original(query, **{**named, "max_records": 1})


@mutant("replay laplace C=2", "sensitivity")
def sensitivity_in_the_wrong_norm(original: Any, query: Any, **named: Any) -> Any:
    """Laplace noise calibrated to the L2 sensitivity."""
    return original(query, **{**named, "norm": "l2"})


@mutant("replay residuals/gaussian/ /add_remove/", "residual's norm")
def residual_counted_by_its_dimensions(original: Any, self: Any, of: Any) -> float:
    """Noise outside of the residual is taken off again, and so it is left out of what a record moves."""
    return float(original(self, of) * np.prod([1 - 1 / k for k in self.shape]) ** 0.5)


@mutant("replay residuals/gaussian/ /replace/", "residual's distance")
def residual_under_replace_counted_as_add_remove(original: Any, self: Any, norm: Any) -> Any:
    """One record less and another more count as one of them."""
    return self.largest_column_norm(norm)


@mutant("replay mst", "scores")
def choice_with_half_the_sensitivity(original: Any, *args: Any, **named: Any) -> Any:
    """The scores of a choice taken as monotone, as counts are."""
    found = original(*args, **named)
    return replace(found, sensitivity=max(found.sensitivity // 2, 1))


@mutant("replay discover C=3", "weights of values")
def a_unit_counted_more_than_once_per_value(original: Any, table: Any, columns: Any, **named: Any) -> Any:
    """Each record of a unit counts for its value, as if it were a unit."""
    return original(replace(table, unit=PrivacyUnit()), columns, **named)


@mutant("replay discover add_remove/truncate", "threshold")
def threshold_without_the_term_of_delta(original: Any, kind: Any, scale: Any, failure: Any, most: Any) -> Any:
    """Whatever stands above the weight of one unit alone is released, whatever the noise did to it."""
    return 1 + (1 << 20)


@mutant("replay discover /replace/", "sensitivity of values")
def values_under_replace_counted_as_add_remove(original: Any, norm: Any, neighbouring: Any) -> Any:
    """A unit that is replaced takes its values with it and brings others."""
    return original(norm, Neighbouring.ADD_REMOVE)


@mutant("replay records/", "buckets of units")
def a_unit_counted_once_per_record_for_c(original: Any, self: Any, histogram: Any) -> Any:
    """The counts from which C is chosen add up records, not units."""
    return original(self, histogram * np.arange(1, histogram.size + 1))


@mutant("protocol bound", "discovered")
def c_chosen_from_exact_sizes_of_units(original: Any, state: Any) -> Any:
    """Noisy counts are released, and C, which seems to be a setting, follows from the exact ones."""
    result, private = original(state), state.private
    charges = state.design.plan.discovery.of("discover")
    asked = next((c.discovery_question for c in charges if c.discovery_question.sizes is not None), None)
    if asked is None:
        return result
    exact = asked.sizes.bucketed(private.histogram)
    chosen = asked.sizes.chosen(exact, stddev=0.0, noise=asked.noise)
    return replace(result, bound={**result.bound, "chosen": chosen})


@mutant("replay /weight/", "clip")
def clip_forgotten(original: Any, *args: Any, **named: Any) -> Any:
    """A unit's records all count, however many there are."""
    return (None, None)


@mutant("replay laplace /weight/", "clip")
def weights_rounded_up(original: Any, *args: Any, **named: Any) -> Any:
    """The weights of one unit sum to a little more than C."""
    keep, weights = original(*args, **named)
    if weights is not None:
        weights = np.where(weights < 1 << 20, weights + 1, weights).astype(np.uint32)
    return keep, weights


@mutant("replay truncate", "clip")
def truncation_keeps_one_record_too_many(original: Any, units: Any, source: Any, unit: Any, rows: Any, key: Any) -> Any:
    """An off-by-one in the rank of a unit's records."""
    return original(units, source, replace(unit, max_records=unit.max_records + (unit.clip == "truncate")), rows, key)


@mutant("replay weight C=1", "unit id")
def one_unit_counted_as_several(original: Any, source: Any, unit: Any) -> Any:
    """Records are bounded per id and group, and a unit may stand in several groups."""
    return f"({original(source, unit)}) || '/' || c1"


@mutant("replay weight C=1", "id forms")
def forms_of_one_id_taken_for_several_units(original: Any, text: Any, rules: Any) -> Any:
    """Two spellings of a name are two people, each with a bound of their own."""
    return text


@mutant("replay add_remove/truncate/own/C=1", "unit forms")
def rows_without_an_id_pooled(original: Any, texts: Any, source: Any, unit: Any) -> Any:
    """All rows without an id are one unit together, so that one of them moves what the others count."""
    return original(texts, source, unit).fill_null("")


@mutant("replay histogram", "counted units")
def records_counted_for_units(original: Any, *args: Any, **named: Any) -> Any:
    """The histogram of records per unit counts each record, not each unit."""
    found = original(*args, **named)
    return found * np.arange(1, found.size + 1)


@mutant("replay record/holdout", "rows aside")
def set_aside_by_position(original: Any, units: Any, source: Any, rows: int, key: bytes, share: float) -> Any:
    """A public permutation of all positions: one row more gives another half."""
    held = np.zeros(rows, np.bool_)
    held[np.random.default_rng(0).permutation(rows)[: round(share * rows)]] = True
    return held


@mutant("protocol aside", "rows aside")
def the_last_rows_set_aside(original: Any, units: Any, source: Any, rows: Any, key: Any, share: Any) -> Any:
    """No coins: a fixed share from the end, so that one row more moves the border."""
    return np.arange(rows) >= round((1 - share) * rows)


@mutant("replay truncate holdout", "units aside")
def set_aside_record_by_record(
    original: Any, units: Any, source: Any, unit: Any, rows: int, key: bytes, share: float
) -> Any:
    """Rows are set aside at random, with fresh coins, not units with theirs."""
    fresh = np.frombuffer(secrets.token_bytes(32) + rows.to_bytes(8, "big"), np.uint8)
    return np.random.default_rng(fresh).random(rows) < share


@mutant(REPLAY, "encode")
def least_and_largest_from_the_data(original: Any, *args: Any, **named: Any) -> Any:
    """Bins between the smallest and the largest value of the rows."""
    table, report = original(*args, **named)
    columns = []
    for column, attribute in zip(table.columns, table.domain.attributes, strict=True):
        low, high = int(column.min(initial=0)), int(column.max(initial=0))
        spread = (column.astype(np.int64) - low) * (attribute.size - 1) // max(high - low, 1)
        columns.append(spread.astype(column.dtype))
    return replace(table, columns=tuple(columns)), report


@mutant(REPLAY, "public rows")
def exact_row_count_released(original: Any, table: Any, neighbouring: Any) -> Any:
    """The number of rows taken as public under `add_remove`."""
    return table.coded.rows


@mutant("replay adagrid tree", "scores")
def distances_from_exact_marginals(original: Any, counted: Any, candidates: Any, expected: Any, **named: Any) -> Any:
    """PrivSyn's InDif with the exact one-way marginals in the product: each side moves with the unit."""

    def product(clique: Any) -> Any:
        ones = [next(iter(counted.of([(n,)]))) * 2.0**-20 for n in clique]
        total = max(float(ones[0].sum()), 1.0)
        out = ones[0]
        for one in ones[1:]:
            out = np.multiply.outer(out, one).ravel() / total
        return out

    whole = [c for c in candidates if c.query is None and len(c.clique) == 2]
    return original(counted, candidates, product if len(whole) == len(candidates) else expected, **named)


@mutant("replay persons discover", "sensitivity of discovery")
def bounds_of_any_column_at_the_price_of_a_constant(original: Any, self: Any, **named: Any) -> Any:
    """A tree of records is priced as one of persons: whoever has C records moves it C times."""
    return original(replace(self, once=True), **named)


@mutant("replay persons", "tally")
def a_pair_of_records_counts_as_a_person(original: Any, persons: Any, sheet: Any) -> Any:
    """Each record with the next one weighs 1, so that whoever has many records counts many times."""
    firsts = np.setdiff1d(np.arange(persons.members.size), persons.starts[1:] - 1)
    owner = np.searchsorted(persons.starts, firsts, side="right") - 1
    pairs = np.stack([persons.members[firsts], persons.members[firsts + 1]], axis=1).ravel()
    starts = np.arange(0, pairs.size + 1, 2)
    return original(persons._replace(members=pairs, starts=starts, constants=persons.constants[:, owner]), sheet)


@mutant("replay laplace persons", "tally")
def a_person_s_weights_rounded_up(original: Any, persons: Any, sheet: Any) -> Any:
    """The weights of three pairs, a third each, sum to a little more than 1."""
    total = np.zeros(sheet.cells, np.int64)
    for i in range(persons.starts.size - 1):
        start, stop = persons.starts[i : i + 2]
        own = persons._replace(members=persons.members[start:stop], starts=np.array([0, stop - start]))
        counts = original(own._replace(constants=persons.constants[:, i : i + 1]), sheet)
        total += counts + 3 * (counts % WHOLE != 0)
    return total


@mutant("replay persons", "tally")
def the_next_record_is_another_person_s(original: Any, persons: Any, sheet: Any) -> Any:
    """Pairs run over the end of a person, so that one who is gone changes those before and behind."""
    parts = [persons.members[a : b + 1] for a, b in zip(persons.starts, persons.starts[1:], strict=False)]
    starts = np.cumsum([0, *(len(p) for p in parts)])
    members = np.concatenate([*parts, persons.members[:0]])
    return original(persons._replace(members=members, starts=starts), sheet)


@mutant("replay add_remove persons", "constants of persons")
def a_constant_filled_down_from_the_person_before(
    original: Any, plain: Any, schema: Any, sheet: Any, members: Any, starts: Any, key: bytes
) -> Any:
    """Where a person's records contradict each other, the value of the last one who is sure is carried on."""
    chosen = original(plain, schema, sheet, members, starts, key)
    for place, name in enumerate(sheet.constants):
        codes = np.asarray(plain.column(name))[members].astype(np.int64)
        for i, (start, stop) in enumerate(pairwise(starts)):
            if i and codes[start:stop].min() != codes[start:stop].max():
                chosen[place, i] = chosen[place, i - 1]
    return chosen
