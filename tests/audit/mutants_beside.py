"""Faults of what stands beside one run: ids, shared budgets, plugins, drafts, published errors, families, Spark."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from mechanisms.accounting.bookings import load_book
from mechanisms.public.drafts import column_facts
from mechanisms.public.queries.cell_sums import QUERIES
from mechanisms.public.tables.scan import LONG_DECIMAL
from tests.audit.mutants import mutant, mutant_maker, mutants
from tests.audit.on_spark import why_not

BUDGETS, PLUGINS = "beside budgets", "beside plugins"


def _left_away(original: Any, *args: Any, **named: Any) -> None:
    return None


LEFT_AWAY = """
charge skipped | replay | charge
Nothing is charged.
ledger that forgets who charged | beside budgets | note of a charge
A booking is found again by its name, and nobody asks whether something was drawn on it.
folder that goes on for whoever comes | beside budgets | state of a folder
What a run left is gone on with by the next command, whichever table and unit that one names.
answers that a plugin mends | beside plugins | answers to read
A plugin sets negative counts to 0 in the very array that is released as a noisy answer.
matrix of a plugin in narrow numbers | beside plugins | numbers of a matrix
A matrix that a plugin makes stays in its narrow numbers, in which -128 of bytes is below every norm.
running total taken as it stands | beside foreign | running total's words
The ledger of a release is elsewhere, so that what the release says of it is believed.
"""
mutants(_left_away, LEFT_AWAY)


@mutant("beside ids", "text of a column")
def far_times_without_a_text(original: Any, source: Any, index: int) -> str:
    """Times that no clock shows are read as empty, and empty means: no id. Each such record is a unit of its own."""
    return str(original(source, index)).replace("'infinity'", "''")


@mutant("beside ids", "text of an object")
def bytes_of_a_frame_that_show_nothing_are_empty(original: Any, value: Any, column: Any) -> Any:
    """Bytes of a frame are read as text, and text that shows nothing means: no id."""
    return value.decode() if isinstance(value, bytes) else original(value, column)


@mutant("beside ids", "text of an object")
def bytes_of_a_frame_that_are_no_text_have_one_sign(original: Any, value: Any, column: Any) -> Any:
    """A text is read as UTF-8, and each byte that is none as one and the same sign: several persons are one unit."""
    foreign = isinstance(value, bytes) and not value.isascii()
    return value.decode(errors="replace") if foreign else original(value, column)


@mutant("beside ids", "id of a unit")
def long_decimals_are_ids(original: Any, source: Any, unit: Any) -> str:
    """The engine reads decimals of more than 38 digits as floats, of which two persons may have one."""
    types = tuple("DOUBLE" if kind == LONG_DECIMAL else kind for kind in source.types)
    return str(original(replace(source, types=types), unit))


@mutant("beside reading", "text of an object")
def texts_as_they_write_themselves(original: Any, value: Any, column: Any) -> Any:
    """A member of an enumeration is its value while all are texts, and its name as soon as one row holds a number."""
    return str(value) if isinstance(value, str) else original(value, column)


@mutant("beside reading", "open table")
def readers_that_share_a_file_of_texts(original: Any, *args: Any, **named: Any) -> Any:
    """Each reader begins at a number of bytes; within a quoted text it takes lines for rows, and the run fails."""
    source = original(*args, **named)
    return replace(source, relation=source.relation.replace("parallel = false, ", ""))


@mutant("beside reading", "started engine")
def tests_for_nan_left_away_where_ends_answer_them(original: Any, *args: Any) -> Any:
    """The least and the largest number of a file, which NaN is in neither of, say whether a column holds NaN."""
    engine = original(*args)
    engine.execute("SET disabled_optimizers = ''")
    return engine


@mutant(BUDGETS, "note of a charge")
def ledger_that_notes_the_first_charge_alone(original: Any, path: Any, name: str, before: Any, now: Any) -> None:
    """That a run charged is known, and not how far it came: a copy from its middle draws the rest again."""
    if not before.charges:
        original(path, name, before, now)


class _Believed(list[Any]):
    """Marks among which every mark is."""

    def __contains__(self, mark: object) -> bool:
        return True


@mutant_maker(BUDGETS, "memory of charges")
def new_draws_under_the_old_booking(original: Any) -> Any:
    """A run is believed to know what it drew, also where its own record of that is gone."""
    return property(lambda release: _Believed(original.fget(release)))


@mutant_maker(BUDGETS, "memory of charges")
def an_older_record_taken_for_the_record(original: Any) -> Any:
    """The file is there: what stands in it is not looked at."""

    def marks(release: Any) -> Any:
        there = (release.root / "internal" / "ledger.jsonl").exists()
        return (_Believed if there else list)(original.fget(release))

    return property(marks)


@mutant(BUDGETS, "book of releases")
def second_job_of_a_sweep_charges_nothing(original: Any, releases: Any) -> Any:
    """A sweep books once for the folder that its jobs have in common, and no job books for itself."""
    found = load_book(releases[0].terms.path)
    done = {Path(b.run).parent for b in (found.bookings if found else ())}
    first = [r for r in releases if r.root.resolve().parent not in done][:1]
    return original(first) if first else found


@mutant(PLUGINS, "matrix of a query")
def sensitivity_of_a_plugin_by_hand(original: Any, query: Any) -> Any:
    """A query of somebody else says of itself how far it moves, and answers what it likes."""
    return query


@mutant(PLUGINS, "cells of a query")
def matrix_over_a_marginal_of_another_size(original: Any, query: Any, cells: Any) -> Any:
    """A plugin asks one of our own matrices of a marginal with other cells, and numpy spreads the numbers until they
    fit: they move further than the matrix says."""
    return None


@mutant(PLUGINS, "words of an error")
def errors_that_quote_rows_in_a_log(original: Any, error: Any) -> Any:
    """What a library or a plugin says of a value that it does not know is printed as it is."""
    return error


@mutant_maker(PLUGINS, "known answers")
def answers_that_nobody_paid_for(original: Any) -> Any:
    """A selection is handed the list of answers itself, and may put in more."""
    return property(lambda steps: steps.answers)


@mutant_maker(PLUGINS, "query of a file", "numbers of a matrix")
def matrix_in_numbers_that_run_over(original: Any) -> Any:
    """The norm of a saved matrix is computed in the numbers that hold it: an entry of -128 in bytes counts as 0."""
    if original.__name__ == "__post_init__":
        return lambda query: None
    return lambda name, arrays: QUERIES[name](arrays)


@mutant(PLUGINS, "second opinion")
def gaussian_noise_without_a_delta(original: Any, accountant: Any, events: Any, claim: Any) -> None:
    """A total at δ = 0 is compared with an infinite ε less an infinite slack, which is no number, and stands."""
    if claim.delta:
        original(accountant, events, claim)


@mutant_maker("beside drafts", "guess of texts")
def draft_that_lists_single_persons_texts(original: Any) -> Any:
    """A draft names every text of a column, also those of one row alone, and a person confirms them."""

    def texts(*args: Any) -> Any:
        with mock.patch.object(column_facts.Look, "listable", lambda look, index, texts: texts):
            return original(*args)

    return texts


@mutant_maker("beside foreign", "plain folder", "plain file")
def links_of_a_foreign_release_are_followed(original: Any) -> Any:
    """What lies in a release is opened, wherever it leads."""
    return (lambda folder: None) if original.__name__ == "check_plain" else lambda path: path.open("rb")


@mutant("beside foreign", "discovery's words")
def words_about_discovery_taken_as_they_stand(original: Any, statement: Any, schema: Any) -> Any:
    """What was discovered, and how, is whatever the receipt says."""
    return {e["id"]: e for e in statement["events"] if e.get("discovery")}


@mutant("beside clipped", "loss of a column")
def clipped_values_counted_nowhere(original: Any, *args: Any) -> Any:
    """Dollars are declared, cents stand in the table: every value is clipped, and none is said to be lost."""
    found = original(*args)
    return replace(found, lost=found.lost - found.clipped, clipped=0)


@mutant("losses grids", "grid's norm")
def grid_moves_30_percent_further_than_charged(original: Any, query: Any, norm: Any) -> Any:
    """The sensitivity of an adaptive grid is 30 % too small."""
    return 0.7 * original(query, norm)


@mutant("losses pairs /add_remove/", "family's loss")
def a_family_costs_what_one_unit_costs(original: Any, promised: Any, units: Any) -> Any:
    """The statement's loss of groups is that of one of them."""
    return original(promised, 1)


@mutant("rates merged", "bound on noise")
def bounds_too_narrow_by_30_percent(original: Any, told: Any, alpha: Any) -> Any:
    """A bound on the sum of a marginal's noise that is a factor too small."""
    return 0.7 * original(told, alpha)


@mutant_maker("rates indif", "errors of sides")
def distances_without_the_noise_of_their_sides(original: Any) -> Any:
    """The standard error of a distance from independence is that of its own noise alone."""
    return property(lambda evidence: dict.fromkeys(evidence.measurements.domain.names, 0.0))


@mutant("protocol aside", "coins of rows")
def coins_of_a_holdout_without_a_key(original: Any, key: Any) -> Any:
    """Whoever knows a record knows whether it was set aside."""
    return "aside row:"


@mutant("protocol aside", "coins of units")
def coins_of_units_without_a_key(original: Any, key: Any) -> Any:
    """Whoever knows a unit's id knows whether it was set aside."""
    return "aside:"


@mutant("replay discover add_remove", "released values")
def values_released_below_their_threshold(original: Any, weights: Any, event: Any, threshold: Any, source: Any) -> Any:
    """Whatever text has a noisy weight above 0 is released: half of those that one unit alone holds."""
    return original(weights, event, 0, source)


def _with_spark(register: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Known where it can be caught."""
    return (lambda make: make) if why_not() else register


@_with_spark(mutant("spark", "kept slices"))
def rows_of_lost_tasks_count_too(original: Any, session: Any, task: Any, parts: Any, place: str) -> Any:
    """All files of the folder are read: those too of tasks that were lost, or ran twice."""
    kept = original(session, task, parts, place)
    every = tuple(str(p) for p in sorted(Path(kept.files[0]).parent.glob("*.parquet")))
    return type(kept)(session, kept.fields, place, every, kept.marks)


@_with_spark(mutant("spark", "unchanged table"))
def tables_that_change_while_they_are_read(original: Any, states: Any) -> Any:
    """The files are read as they come: a row that moves to a part that is not read yet counts twice."""
    return None


@_with_spark(mutant("spark", "counted on Spark"))
def noise_drawn_by_tasks(original: Any, *args: Any, **named: Any) -> Any:
    """Counts come with noise of the tasks' own: one that runs again draws again."""
    rng = np.random.default_rng()
    return [c + np.rint(rng.normal(0, 3, c.shape)).astype(np.int64) for c in original(*args, **named)]
