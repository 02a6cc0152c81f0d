"""Specs → the public schema, the marginals and the plan: the one place that knows both the settings and the rooms.

The plan of a selection that decides by its own noisy answers is built here too, and what decides whether a release is
accepted, with how many tries it may take.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast, get_args

from mechanisms.accounting.budget import Budget, Pair, mean_stddev, possible_pairs, shares_power
from mechanisms.accounting.events import as_noise
from mechanisms.accounting.plan import Beside, Plan, PlannedCharge, Reservation
from mechanisms.accounting.planning import Request, make_plan, plan_discovery, with_least_noise
from mechanisms.accounting.private_selection import PrivateSelection
from mechanisms.public.discovery.discovered_columns import questions_of
from mechanisms.public.discovery.discovery_questions import INVENTED, OF_UNITS, RECORDS, DiscoveryQuestion, SizeQuestion
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import UserError, choices_fix
from mechanisms.public.files import is_number
from mechanisms.public.persons.person_questions import PersonQuestion, records_per_unit, with_shares
from mechanisms.public.persons.person_questions import questions_of as person_questions
from mechanisms.public.persons.person_unit import MOST_SIZES
from mechanisms.public.release import Criterion, Over
from mechanisms.public.rules.computed import Mapped, in_pairs
from mechanisms.public.rules.fine_columns import with_fine_columns
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.workload import Workload
from mechanisms.selection.base import Schedule
from pipeline.settings.inputs import check_roles
from pipeline.settings.specs import Specs, declared_schema
from synthesis.contract import Synthesizer
from synthesis.pgm.junction_tree import fit_cliques

#: The part of the budget, where something is discovered and nobody says how much of it.
SHARE = 0.1


def build_schema(specs: Specs) -> Schema:
    """The public schema that the run discretizes against, with fine columns where the selection measures them."""
    return with_fine(specs, specs.declared or declared_schema(specs.config.data))


def with_fine(specs: Specs, schema: Schema) -> Schema:
    """The schema with fine columns where the selection measures them."""
    return with_fine_columns(schema, specs.selection.fine_cells_of(specs.with_bound(1).facts(schema)))


def _build_histogram(specs: Specs, schema: Schema) -> PersonQuestion | None:
    """The histogram of records per unit, where the schema's unit_id asks for it."""
    ids, unit, share = schema.rules.unit_ids, specs.unit, specs.config.privacy.unit_id_share
    if ids is None or not ids.measured:
        return None
    public = f"declare shares in the schema, as in unit_id: {{name: {ids.name}, records: {{1: 0.7, 2: 0.3}}}}"
    if unit.column is None:
        fix = f"privacy.unit=COLUMN with the unit's id, and privacy.max_records=C; or {public}"
        problem = "the schema says unit_id: {records: measured}, but one record is the unit"
        raise UserError(problem, where="privacy.unit", fix=fix)
    if unit.max_records > MOST_SIZES:
        fix = f"at most {MOST_SIZES:,} with unit_id: {{records: measured}}; or {public}"
        raise UserError(f"got {unit.max_records:,}", where="privacy.max_records", fix=fix)
    return records_per_unit(ids.name, unit.max_records, share)


def build_workload(specs: Specs, schema: Schema) -> Workload:
    """The marginals to measure, or to choose from, by public facts alone."""
    selection, spec, facts = specs.selection, specs.synthesizer, specs.facts(schema)
    workload = selection.workload(facts)
    workload = dataclasses.replace(workload, left_out=(*workload.left_out, *selection.passed_over(facts)))
    if schema.rules.mapped and selection.whole_pairs is not None:
        fix = "selection=indif, groups, mst, mwem, aim, pairs or oneway; or take mapped out of the schema"
        problem = "the schema's mapped columns need a whole marginal with their source"
        raise UserError(problem, where=selection.whole_pairs, fix=fix)
    return _fitted(schema, workload, spec) if selection.fits(spec.max_model_cells is not None) else workload


def left_out_texts(specs: Specs, schema: Schema, workload: Workload) -> list[str]:
    """Which marginals are left out, and why, a sentence each; empty where nobody dropped anything."""
    lines, domain = [], schema.measured
    if large := sorted(domain.cells(c) for c in workload.left_out):
        lines.append(
            f"{len(large):,} marginal{'s' * (len(large) > 1)} left out: "
            f"more than {specs.selection.limit(specs.facts(schema))} "
            f"({large[0]:,} to {large[-1]:,}); see plan"
        )
    if count := len(workload.no_room):
        every = count + len(workload.cliques)
        lines.append(
            f"{count:,} of {every:,} marginals left out: no room in the graphical model of at most "
            f"synthesis.max_cells={specs.synthesizer.max_model_cells:,} cells; see plan"
        )
    return lines


def _fitted(schema: Schema, workload: Workload, spec: Synthesizer) -> Workload:
    """The workload without the marginals that a graphical model of at most synthesis.max_cells cannot hold.

    The schema's impossible combinations are in every model, and are counted.
    The marginals of least weight go first, and of equal weight the largest: public facts alone. Those of mapped columns
    stay: each is all that is measured of its column.
    """
    limit = spec.max_model_cells
    if limit is None:
        fix = "synthesis=pgm, or selection.fit=false"
        raise UserError("only a graphical model has a size to fit", where="selection.fit", fix=fix)
    domain, cliques, weights = schema.measured, workload.cliques, workload.weights
    pairs = {domain.canonical((m.target, m.source)) for m in schema.rules.mapped}
    order = sorted(range(len(cliques)), key=lambda i: (cliques[i] not in pairs, -weights[i], domain.cells(cliques[i])))
    useful = {i: -place for place, i in enumerate(order)}
    ranks = [useful[i] for i in range(len(cliques))]
    fitting, dropped = fit_cliques(domain, cliques, ranks, limit, fixed=[c for c, _ in schema.zeros])
    if lost := sorted(pairs - set(fitting)):
        fix = "raise it, or take mapped out of the schema"
        raise UserError(f"no room for {' × '.join(lost[0])}", where="synthesis.max_cells", fix=fix)
    weight_of = dict(zip(cliques, weights, strict=True))
    return Workload(fitting, tuple(weight_of[c] for c in fitting), workload.left_out, dropped)


def build_plan(specs: Specs, workload: Workload, schema: Schema, discovery: Plan | None = None) -> Plan:
    """Every charge that the run (of several tries: each) may make, calibrated before any row is read.

    Args:
        discovery: what was charged before, where the schema is one that noisy answers made concrete; None: whatever the
            schema leaves open is planned too.
    """
    config = specs.config
    check_roles(config.data, schema)
    discovery = discovery or build_discovery(specs, schema)
    specs, discovered = specs.after(discovery), () if discovery is None else discovery.charges
    histogram, tries = _build_histogram(specs, schema), _build_selection(specs)
    beside: list[Beside] = [] if histogram is None else [histogram]
    if questions := person_questions(schema):
        beside += with_shares(questions, config.privacy.person_share, config.privacy.epsilon, specs.budget.max_records)
    beside += _build_criteria(specs, schema.synthesized)
    epsilon, delta = tries.of_one_try(specs.budget.epsilon, specs.budget.delta)
    budget = dataclasses.replace(specs.budget, epsilon=epsilon, delta=delta)
    schedule, noise = specs.selection.schedule(specs.facts(schema), workload), specs.mechanism
    if schedule is not None:
        plan = _build_adaptive(schedule, schema, budget, mechanism=noise, beside=beside, discovered=discovered)
    else:
        requests = [Request(c, w) for c, w in zip(workload.cliques, workload.weights, strict=True)]
        plan = make_plan(schema.measured, requests, budget, mechanism=noise, beside=beside, discovered=discovered)
    return dataclasses.replace(plan, tries=tries)


def build_discovery(specs: Specs, schema: Schema) -> Plan | None:
    """What is charged before all else; None where the schema leaves nothing open.

    Raises:
        UserError: tries, of which each would have to discover anew; settings that cannot pay for it.
    """
    config, share = specs.config, specs.config.privacy.discovery_share
    sizes = unit_sizes(specs, schema)
    questions = (
        *(() if sizes is None else (DiscoveryQuestion(OF_UNITS, (RECORDS,), sizes=sizes),)),
        *questions_of(schema),
    )
    if not questions:
        return None
    if config.accept and config.accept_tries > 1:
        fix = "accept_tries=1; or the schema of an earlier release, which is concrete"
        raise UserError("several tries would each have to discover anew", where="accept_tries", fix=fix)
    return plan_discovery(
        questions,
        specs.budget,
        share=SHARE if share is None else share,
        mechanism=specs.mechanism,
        cells=[a.size for a in schema.synthesized.attributes] if sizes else (),
        pairs=config.selection.kind != "oneway",
    )


def unit_sizes(specs: Specs, schema: Schema) -> SizeQuestion | None:
    """What is asked about records per unit, where C is to be discovered.

    Raises:
        UserError: a cap out of range; a column of the schema with the name that stands for the question.
    """
    config = specs.config
    if not specs.discovers_bound:
        return None
    if OF_UNITS in schema.domain:
        fix = "another name for the column"
        raise UserError(f"a column is called {OF_UNITS!r}, as what is discovered", where="privacy.max_records", fix=fix)
    return SizeQuestion(config.privacy.max_records_cap, 1.0 if schema.rules.unit is None else INVENTED)


def _build_adaptive(
    schedule: Schedule,
    schema: Schema,
    budget: Budget,
    *,
    mechanism: str,
    beside: Sequence[Beside] = (),
    discovered: Sequence[PlannedCharge] = (),
) -> Plan:
    """Every charge that the rounds may make, calibrated before any row is read.

    Args:
        schedule: the selection's method, slots and reserve.
        schema: the first marginal of a mapped column is the one with the column that it follows from.
        budget: its accountant may be auto, as `mechanism` may.
        beside, discovered: as of `make_plan`.
    Raises:
        UserError: a setting out of range; an accountant that cannot count such rounds.
    """
    method, domain = schedule.method, schema.measured
    rounds = replace(schedule, slots=[_with_source(w, domain, schema.rules.mapped) for w in schedule.slots])
    reserved = [cells for _, cells in method.later_cells(domain, ())] if schedule.reserve else []

    def plan_of(pair: Pair) -> Plan:
        """The plan under a pair of noise and accountant."""
        stages = rounds.with_power(power := shares_power(pair, budget.accountant))
        plan = stages.plan(pair.of(budget), noise=pair.noise, beside=beside, discovered=discovered)
        return replace(plan, power=power)

    pairs = possible_pairs(mechanism, budget, reserve=schedule.reserve > 0, squares=method.squares)
    return with_least_noise(pairs, plan_of, lambda plan: _mean_noise(plan, reserved))


def _with_source(reservation: Reservation, domain: Domain, mapped: Sequence[Mapped]) -> Reservation:
    clique = reservation.clique and in_pairs(domain, mapped, reservation.clique)
    return (
        reservation
        if clique == reservation.clique
        else replace(reservation, clique=clique, cells=domain.cells(clique or ()))
    )


def _mean_noise(plan: Plan, reserved: Sequence[int]) -> float:
    """The mean standard deviation of a cell, in records: what `auto` compares (Li et al. 2021b, section 2.5).

    What a reserve will be spent on is not known yet: it counts as one marginal of mean size for each slot of a
    marginal, with equal parts.

    Args:
        reserved: cells of the marginals that the reserve may be spent on.
    """
    slots = [(s.reservation.cells, as_noise(s.event).stddev) for s in plan.slots if s.reservation.cells]
    if plan.reserve is not None:
        count = max(len(slots), 1)
        part = plan.reserve_event.stddev / plan.accountant.strength(1 / count)
        slots += [(max(round(sum(reserved) / max(len(reserved), 1)), 1), part)] * count
    return mean_stddev([cells for cells, _ in slots], [stddev for _, stddev in slots])


#: A marginal with more cells is not compared.
MOST_CELLS = 10_000_000
#: So many marginals are compared at most.
MOST_MARGINALS = 100_000
KEYS = ("metric", "marginals", "at_most", "of", "share")
EXAMPLE = "accept=[{metric: l1, marginals: 2, at_most: 500}]"


def _build_criteria(specs: Specs, domain: Domain) -> tuple[Criterion, ...]:
    """The criteria of `accept`, checked against the measured columns; public facts alone."""
    config = specs.config
    each = config.accept_share / max(len(config.accept), 1)
    return tuple(_criterion(place, entry, domain, each) for place, entry in enumerate(config.accept))


def _build_selection(specs: Specs) -> PrivateSelection:
    """How many tries there may be, and what ends them."""
    config = specs.config
    limits = [entry.get("at_most") is not None for entry in config.accept]
    if config.accept_tries > 1 and not all(limits) and len(limits) > 1:
        fix = "at_most in every entry (the first release within all of them wins), or one entry without (the best wins)"
        raise UserError("several tries cannot be ordered by several scores", where="accept", fix=fix)
    return PrivateSelection(config.accept_tries, all(limits))


def _criterion(place: int, entry: Mapping[str, Any], domain: Domain, share: float) -> Criterion:
    where = f"accept[{place}]"
    for key in entry:
        if key not in KEYS:
            raise UserError(f"no such key: {key!r}", where=where, fix=choices_fix(str(key), KEYS))
    if entry.get("metric") != "l1":
        got = f"got {entry['metric']!r}" if "metric" in entry else "no metric"
        raise UserError(got, where=f"{where}.metric", fix="l1: the L1 distance of marginals, in records")
    over = entry.get("of", "mean")
    if over not in get_args(Over):
        raise UserError(f"got {over!r}", where=f"{where}.of", fix=f"one of: {', '.join(get_args(Over))}")
    at_most = entry.get("at_most")
    if at_most is not None and not (is_number(at_most) and at_most >= 0):
        fix = "a number of records of at least 0; null: the noisy distance is released, whatever it is"
        raise UserError(f"got {at_most!r}", where=f"{where}.at_most", fix=fix)
    part = entry.get("share", share)
    if not (is_number(part) and 0.0001 <= part <= 0.9):
        raise UserError(f"got {part!r}", where=f"{where}.share", fix="a part of the budget, 0.0001 to 0.9")
    cliques, left_out = _marginals(entry.get("marginals"), domain, f"{where}.marginals")
    limit = None if at_most is None else float(at_most)
    order = len(cliques[0])
    return Criterion(place, order, cliques, left_out, cast(Over, over), limit, float(part))


def _marginals(order: object, domain: Domain, where: str) -> tuple[tuple[Clique, ...], int]:
    """All k-way marginals that are small enough, and how many are not."""
    if isinstance(order, bool) or not isinstance(order, int) or not 1 <= order <= len(domain):
        fix = f"a whole number from 1 to {len(domain)}, the measured columns: {EXAMPLE}"
        raise UserError(f"got {order!r}" if order is not None else "not set", where=where, fix=fix)
    count = math.comb(len(domain), order)
    if count > MOST_MARGINALS:
        fix = f"fewer columns per marginal (at most {MOST_MARGINALS:,} marginals are compared)"
        raise UserError(f"{count:,} marginals", where=where, fix=fix)
    every = list(itertools.combinations(domain.names, order))
    small = tuple(c for c in every if domain.cells(c) <= MOST_CELLS)
    if not small:
        fix = "fewer columns per marginal, or coarser bins in the schema"
        raise UserError(f"every marginal has more than {MOST_CELLS:,} cells", where=where, fix=fix)
    return small, len(every) - len(small)
