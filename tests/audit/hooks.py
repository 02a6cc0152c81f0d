"""Every name of the code under audit that is replaced while it runs: where code moves, this file alone follows."""

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from mechanisms.accounting.events import Exponential, Gaussian, Laplace

#: What is replaced, by the audit's own names.
POINTS = {
    "charge": "mechanisms.accounting.ledger:Ledger.charge",
    "leave": "mechanisms.sensitive.exit:leave",
    "noisy": "mechanisms.sensitive.exact_answers:noisy",
    "noise": "mechanisms.sensitive.noise:split_noise",
    "released values": "mechanisms.sensitive.measurement:released_values",
    "weights of values": "mechanisms.sensitive.measurement:value_weights",
    "buckets of units": "mechanisms.public.discovery.discovery_questions:SizeQuestion.bucketed",
    "discovered": "pipeline.measuring.discovery_stage:discovered",
    "sensitivity of sizes": "mechanisms.public.discovery.discovery_questions:SizeQuestion.sensitivity",
    "sensitivity of discovery": "mechanisms.public.discovery.discovery_questions:DiscoveryQuestion.sensitivity",
    "sensitivity of values": "mechanisms.public.discovery.discovery_questions:union_sensitivity",
    "threshold": "mechanisms.accounting.thresholds:safe_threshold",
    "choice": "mechanisms.sensitive.exponential:choose_index",
    "weights of choices": "mechanisms.sensitive.exponential:choice_weights",
    "source": "mechanisms.sensitive.noise:noise_source",
    "selection": "pipeline.settings.methods:selection_of",
    "load": "mechanisms.sensitive.private_table:load_private",
    "clip": "mechanisms.sensitive.contribution:clip_records",
    "unit id": "mechanisms.sensitive.contribution:unit_id",
    "unit forms": "mechanisms.sensitive.contribution:unit_forms",
    "id forms": "mechanisms.sensitive.id_rules:normal_form",
    "counted units": "mechanisms.sensitive.contribution:counted_units",
    "units aside": "mechanisms.sensitive.contribution:set_aside_units",
    "rows aside": "mechanisms.sensitive.contribution:set_aside_rows",
    "public rows": "mechanisms.sensitive.private_table:PrivateTable.public_rows",
    "encode": "mechanisms.public.tables.codec:encode_columns",
    "sensitivity": "mechanisms.public.queries.query_matrices:sensitivity",
    "numbers of a matrix": "mechanisms.public.queries.query_matrices:SparseQuery.__post_init__",
    "query of a file": "mechanisms.public.queries.cell_sums:query_of",
    "second opinion": "mechanisms.accounting.autodp_check:check_with_autodp",
    "residual's norm": "mechanisms.public.queries.cell_sums:ResidualQuery.largest_column_norm",
    "residual's distance": "mechanisms.public.queries.cell_sums:ResidualQuery.largest_column_distance",
    "histogram's sensitivity": "mechanisms.public.persons.person_questions:PersonQuestion.sensitivity",
    "tally": "mechanisms.public.persons.tally:tally",
    "constants of persons": "mechanisms.sensitive.private_table:_constants",
    "scores": "mechanisms.sensitive.private_choice:distance_scores",
    "measure plan": "pipeline.measuring.attempts:measure_plan",
    "rare groups": "mechanisms.public.queries.cell_sums:rare_groups",
    "default rows": "synthesis.consistency.agree:default_rows",
    "write release": "pipeline.release_folder:write_release",
    "statement": "pipeline.statement.statement:make_statement",
    "calibrate": "mechanisms.accounting.budget:calibrate",
    "basic loss": "mechanisms.accounting.accountants.basic:Basic.loss",
    "advanced loss": "mechanisms.accounting.accountants.advanced:Advanced.loss",
    "zcdp loss": "mechanisms.accounting.accountants.zcdp:Zcdp.loss",
    "gdp loss": "mechanisms.accounting.accountants.gdp:Gdp.loss",
    "delta of each": "mechanisms.accounting.accountants.basic:Basic.delta_each",
    "loss range": "mechanisms.accounting.events:Laplace.loss_range",
    "zcdp conversion": "mechanisms.accounting.currencies:zcdp_epsilon",
    "one try": "mechanisms.accounting.private_selection:PrivateSelection.of_one_try",
    "all tries": "mechanisms.accounting.private_selection:PrivateSelection.total",
    "factor of tries": "mechanisms.accounting.private_selection:PrivateSelection.factor",
    "most tries": "mechanisms.accounting.private_selection:PrivateSelection.most_tries",
    "pick": "mechanisms.accounting.private_selection:PrivateSelection.pick",
    "measured": "pipeline.measuring.attempts:measured",
    "kept table": "pipeline.measuring.acceptance:scored_table",
    "within": "pipeline.measuring.acceptance:_within",
    "coins of tries": "pipeline.measuring.acceptance:_most_tries",
    "distance's sensitivity": "mechanisms.public.release:Criterion.sensitivity",
    "open ledger": "mechanisms.accounting.ledger:Ledger.open",
    "answer fits": "mechanisms.sensitive.measurement:MarginalQuestion.fits",
    "reserved": "mechanisms.accounting.plan:Plan.reserved",
    "draft": "mechanisms.public.drafts.draft:draft_schema",
    "guess of texts": "mechanisms.public.drafts.column_guess:guess_texts",
    "loss of a column": "mechanisms.public.tables.losses:loss_of",
    "plain folder": "mechanisms.public.plain_files:check_plain",
    "plain file": "mechanisms.public.plain_files:open_plain",
    "discovery's words": "pipeline.statement.restated:discovered_again",
    "started engine": "mechanisms.public.tables.engine_instances:_started",
    "open table": "mechanisms.public.tables.scan:open_table",
    "running total's words": "pipeline.statement.stated_plan:wrong_running",
    "text of a column": "mechanisms.public.tables.scan:Source.text",
    "id of a unit": "mechanisms.sensitive.contribution:unit_id",
    "texts of objects": "pipeline.frames.frame_files:object_texts",
    "text of an object": "pipeline.frames.frame_files:_plain",
    "note of a charge": "mechanisms.accounting.bookings:note_charge",
    "memory of charges": "pipeline.budget.admission:PlannedRelease.marks",
    "state of a folder": "pipeline.folders:_check_state",
    "book of releases": "pipeline.budget.admission:book",
    "matrix of a query": "mechanisms.public.queries.query_matrices:as_matrix",
    "cells of a query": "mechanisms.public.queries.query_matrices:check_cells",
    "words of an error": "pipeline.error_messages:unquoted",
    "answers to read": "mechanisms.public.release:NoisyMarginal.__post_init__",
    "known answers": "pipeline.measuring.selection_context:AdaptiveRun.answers_so_far",
    "grid's norm": "mechanisms.public.queries.adaptive_grid:GridQuery.largest_column_norm",
    "bound on noise": "pipeline.inference.marginal_estimates:MarginalEstimate.sum_bound",
    "errors of sides": "pipeline.inference.marginal_estimates:ReleaseEvidence.side_errors",
    "family's loss": "mechanisms.accounting.restatements:Composition.of_group",
    "coins of rows": "mechanisms.sensitive.engines.coins:of_row_aside",
    "coins of units": "mechanisms.sensitive.engines.coins:of_unit_aside",
    "kept slices": "mechanisms.sensitive.engines.spark_files:keep",
    "unchanged table": "mechanisms.public.tables.inspect_file:check_unchanged",
    "kept by tasks": "mechanisms.sensitive.engines.spark_files:KeepRows",
    "counted by tasks": "mechanisms.sensitive.engines.spark_counts:CountCodes",
    "counted on Spark": "mechanisms.sensitive.engines.spark_counts:counted",
    "gaussian mu": "mechanisms.accounting.currencies:gaussian_mu",
    "gaussian epsilon": "mechanisms.accounting.currencies:gaussian_epsilon",
}
ROOMS = ("mechanisms", "synthesis", "evaluation", "pipeline")


class Broken(AssertionError):
    """A claim that does not hold: what the audit found, and each of its checks raises."""


def point(name: str) -> tuple[Any, str, Any]:
    """What holds the object, the attribute's name, and the object as it is now."""
    module, _, path = POINTS[name].partition(":")
    holder: Any = importlib.import_module(module)
    *outer, last = path.split(".")
    for part in outer:
        holder = getattr(holder, part)
    return holder, last, vars(holder)[last] if isinstance(holder, type) else getattr(holder, last)


def current(name: str) -> Any:
    return point(name)[2]


class Summed:
    """Figures of parts that are added up: numbers and lists are summed, sets united; of shares the largest stays."""

    def add(self, other: Any) -> None:
        for name, more in vars(other).items():
            setattr(self, name, _summed(getattr(self, name), more))


def _summed(one: Any, two: Any) -> Any:
    if isinstance(one, dict):
        return one | {key: _summed(one[key], more) if key in one else more for key, more in two.items()}
    if isinstance(one, float):
        return max(one, two)
    return one | two if isinstance(one, set) else one + two


@dataclass
class Switch:
    """How often a replacement was called."""

    calls: int = 0


@contextmanager
def swapped(name: str, make: Callable[[Any], Any]) -> Iterator[Switch]:
    """The object replaced by `make(object)` wherever it is bound, in classes and in modules that imported it."""
    holder, last, original = point(name)
    switch = Switch()
    made = make(original)
    replacement = property(counted(made.fget, switch)) if isinstance(made, property) else counted(made, switch)
    if isinstance(holder, type):
        bound: list[tuple[Any, str]] = [(holder, last)]
    else:
        rooms = [m for n, m in list(sys.modules.items()) if n.partition(".")[0] in ROOMS and m is not None]
        bound = [(m, key) for m in rooms for key, value in list(vars(m).items()) if value is original]
    if not bound:
        raise Broken(f"nothing is called {POINTS[name]}")
    for where, key in bound:
        setattr(where, key, replacement)
    try:
        yield switch
    finally:
        for where, key in bound:
            setattr(where, key, original)


def counted(function: Callable[..., Any], switch: Switch) -> Callable[..., Any]:
    def call(*args: Any, **named: Any) -> Any:
        switch.calls += 1
        return function(*args, **named)

    return call


@dataclass
class Numbers:
    """What an event says, whatever its class calls it, in records; of a choice a sensitivity of 1 and 1/ε."""

    kind: str
    sensitivity: float
    scale: float
    norm: str = field(default="")


def numbers(event: Any) -> Numbers:
    if isinstance(event, Exponential):
        return Numbers("choice", 1.0, 1.0 / event.epsilon)
    if not isinstance(event, Gaussian | Laplace):
        raise Broken(f"the audit has no case for the event {type(event).__name__}")
    return Numbers(event.kind, event.sensitivity, event.scale, event.norm)
