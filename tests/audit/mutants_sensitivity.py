"""Faults of sensitivity, clipping and of what is read from the rows."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import Any

import numpy as np

from mechanisms.public.units import Neighbouring
from mechanisms.sensitive.contribution import PrivacyUnit
from tests.audit.mutants import mutant

REPLAY = "replay"


@mutant("replay /replace/", "sensitivity")
def replace_counted_as_add_remove(original: Any) -> Any:
    """One unit replaced moves two cells; many libraries calibrate to one."""
    return lambda query, **named: original(query, **{**named, "neighbouring": Neighbouring.ADD_REMOVE})


@mutant("replay C=3", "sensitivity")
def sensitivity_of_one_record(original: Any) -> Any:
    """The bound C on a unit's records is forgotten in the sensitivity."""
    return lambda query, **named: original(query, **{**named, "max_records": 1})


@mutant("replay laplace C=2", "sensitivity")
def sensitivity_in_the_wrong_norm(original: Any) -> Any:
    """Laplace noise calibrated to the L2 sensitivity."""
    return lambda query, **named: original(query, **{**named, "norm": "l2"})


@mutant("replay residuals/gaussian/ /add_remove/", "residual's norm")
def residual_counted_by_its_dimensions(original: Any) -> Any:
    """Noise outside of the residual is taken off again, and so it is left out of what a record moves."""

    def norm(self: Any, of: Any) -> float:
        return float(original(self, of) * np.prod([1 - 1 / k for k in self.shape]) ** 0.5)

    return norm


@mutant("replay residuals/gaussian/ /replace/", "residual's distance")
def residual_under_replace_counted_as_add_remove(original: Any) -> Any:
    """One record less and another more count as one of them."""
    return lambda self, norm: self.largest_column_norm(norm)


@mutant("replay /replace/ histogram", "histogram's sensitivity")
def histogram_under_replace_counted_once(original: Any) -> Any:
    """A unit that is replaced leaves one cell of a histogram and enters another."""
    return lambda wanted, **named: original(wanted, **{**named, "neighbouring": Neighbouring.ADD_REMOVE})


@mutant("replay mst", "scores")
def choice_with_half_the_sensitivity(original: Any) -> Any:
    """The scores of a choice taken as monotone, as counts are."""

    def scores(*args: Any, **named: Any) -> Any:
        found = original(*args, **named)
        return replace(found, sensitivity=max(found.sensitivity // 2, 1))

    return scores


@mutant("replay mst replace", "scores")
def choice_under_replace_counted_once(original: Any) -> Any:
    """Only the measurements know of `replace`, the scores of the choices do not."""
    return lambda *args, **named: original(*args, **{**named, "neighbouring": Neighbouring.ADD_REMOVE})


@mutant("replay discover C=3", "weights of values")
def a_unit_counted_more_than_once_per_value(original: Any) -> Any:
    """Each record of a unit counts for its value, as if it were a unit."""
    return lambda source, columns, unit, **named: original(source, columns, PrivacyUnit(), **named)


@mutant("replay discover add_remove/truncate", "threshold")
def threshold_without_the_term_of_delta(original: Any) -> Any:
    """Whatever stands above the weight of one unit alone is released, whatever the noise did to it."""
    return lambda kind, scale, failure, most: 1 + (1 << 20)


@mutant("replay discover /replace/", "sensitivity of values")
def values_under_replace_counted_as_add_remove(original: Any) -> Any:
    """A unit that is replaced takes its values with it and brings others."""
    return lambda norm, neighbouring: original(norm, Neighbouring.ADD_REMOVE)


@mutant("replay records/", "buckets of units")
def a_unit_counted_once_per_record_for_c(original: Any) -> Any:
    """The counts from which C is chosen add up records, not units."""

    def bucketed(self: Any, histogram: Any) -> Any:
        return original(self, histogram * np.arange(1, histogram.size + 1))

    return bucketed


@mutant("protocol bound", "discovered")
def c_chosen_from_exact_sizes_of_units(original: Any) -> Any:
    """Noisy counts are released, and C, which seems to be a setting, follows from the exact ones."""

    def discovered(context: Any, state: Any) -> Any:
        result, private = original(context, state), state.private
        charges = state.design.plan.discovery.of("discover")
        asked = next((c.wanted for c in charges if c.wanted.sizes is not None), None)
        if asked is None:
            return result
        exact = asked.sizes.bucketed(private.histogram)
        chosen = asked.sizes.chosen(exact, stddev=0.0, noise=asked.noise)
        return replace(result, bound=replace(result.bound, max_records=chosen))

    return discovered


@mutant("replay records/ /replace/", "sensitivity of sizes")
def one_bucket_moves_where_a_unit_is_replaced(original: Any) -> Any:
    """A unit that is replaced leaves one bucket and enters another: two counts move."""
    return lambda self, **named: original(self, **{**named, "neighbouring": Neighbouring.ADD_REMOVE})


@mutant("replay /weight/", "clip")
def clip_forgotten(original: Any) -> Any:
    """A unit's records all count, however many there are."""
    return lambda *args, **named: (None, None)


@mutant("replay laplace /weight/", "clip")
def weights_rounded_up(original: Any) -> Any:
    """The weights of one unit sum to a little more than C."""

    def clip(*args: Any, **named: Any) -> Any:
        keep, weights = original(*args, **named)
        if weights is not None:
            weights = np.where(weights < 1 << 20, weights + 1, weights).astype(np.uint32)
        return keep, weights

    return clip


@mutant("replay truncate", "clip")
def truncation_keeps_one_record_too_many(original: Any) -> Any:
    """An off-by-one in the rank of a unit's records."""
    return lambda units, source, unit, rows, key: original(
        units, source, replace(unit, max_records=unit.max_records + (unit.clip == "truncate")), rows, key
    )


@mutant("replay weight C=1", "unit id")
def one_unit_counted_as_several(original: Any) -> Any:
    """Records are bounded per id and group, and a unit may stand in several groups."""
    return lambda source, unit: f"({original(source, unit)}) || '/' || c1"


@mutant("replay weight C=1", "id forms")
def forms_of_one_id_taken_for_several_units(original: Any) -> Any:
    """Two spellings of a name are two people, each with a bound of their own."""
    return lambda text, rules: text


@mutant("replay add_remove/truncate/own/C=1", "unit forms")
def rows_without_an_id_pooled(original: Any) -> Any:
    """All rows without an id are one unit together, so that one of them moves what the others count."""
    return lambda texts, source, unit: original(texts, source, unit).fill_null("")


@mutant("replay histogram", "counted units")
def records_counted_for_units(original: Any) -> Any:
    """The histogram of records per unit counts each record, not each unit."""

    def counted(*args: Any, **named: Any) -> Any:
        found = original(*args, **named)
        return found * np.arange(1, found.size + 1)

    return counted


@mutant("replay record/holdout", "rows aside")
def set_aside_by_position(original: Any) -> Any:
    """A public permutation of all positions: one row more gives another half."""

    def aside(units: Any, source: Any, rows: int, key: bytes, share: float) -> Any:
        held = np.zeros(rows, np.bool_)
        held[np.random.default_rng(0).permutation(rows)[: round(share * rows)]] = True
        return held

    return aside


@mutant("protocol aside", "rows aside")
def the_last_rows_set_aside(original: Any) -> Any:
    """No coins: a fixed share from the end, so that one row more moves the border."""
    return lambda units, source, rows, key, share: np.arange(rows) >= round((1 - share) * rows)


@mutant("replay truncate holdout", "units aside")
def set_aside_record_by_record(original: Any) -> Any:
    """Rows are set aside at random, with fresh coins, not units with theirs."""

    def aside(units: Any, source: Any, unit: Any, rows: int, key: bytes, share: float) -> Any:
        fresh = np.frombuffer(secrets.token_bytes(32) + rows.to_bytes(8, "big"), np.uint8)
        return np.random.default_rng(fresh).random(rows) < share

    return aside


@mutant(REPLAY, "encode")
def least_and_largest_from_the_data(original: Any) -> Any:
    """Bins between the smallest and the largest value of the rows."""

    def encode(*args: Any, **named: Any) -> Any:
        table, report = original(*args, **named)
        columns = []
        for column, attribute in zip(table.columns, table.domain.attributes, strict=True):
            low, high = int(column.min(initial=0)), int(column.max(initial=0))
            spread = (column.astype(np.int64) - low) * (attribute.size - 1) // max(high - low, 1)
            columns.append(spread.astype(column.dtype))
        return replace(table, columns=tuple(columns)), report

    return encode


@mutant(REPLAY, "public rows")
def exact_row_count_released(original: Any) -> Any:
    """The number of rows taken as public under `add_remove`."""
    return lambda table, neighbouring: table.coded.rows


@mutant("replay adagrid tree", "scores")
def distances_from_exact_marginals(original: Any) -> Any:
    """PrivSyn's InDif with the exact one-way marginals in the product: each side moves with the unit."""

    def scores(counted: Any, candidates: Any, expected: Any, **named: Any) -> Any:
        def product(clique: Any) -> Any:
            ones = [next(iter(counted.of([(n,)]))) * 2.0**-20 for n in clique]
            total = max(float(ones[0].sum()), 1.0)
            out = ones[0]
            for one in ones[1:]:
                out = np.multiply.outer(out, one).ravel() / total
            return out

        whole = [c for c in candidates if c.query is None and len(c.clique) == 2]
        return original(counted, candidates, product if len(whole) == len(candidates) else expected, **named)

    return scores
