"""The statement of a release made again: from the plan in its receipts, its schema, and what only its run knew."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mechanisms.accounting.budget import Budget
from mechanisms.accounting.events import Exponential, booked_event
from mechanisms.accounting.plan import RESERVE, SCORES_PAID, scores_paid
from mechanisms.accounting.planning import plan_discovery
from mechanisms.public.designs.pair_view import joining, pairs
from mechanisms.public.discovery.discovery_questions import DISCOVERY, INVENTED, OF_UNITS, VALUES, DiscoveryQuestion
from mechanisms.public.domain import Attribute, Clique, Domain
from mechanisms.public.files import Json, JsonDict
from mechanisms.public.persons.person_questions import PERSONS, questions_about_units
from mechanisms.public.release import ACCEPT, STATEMENT_VERSION
from mechanisms.public.release_files import load_released_schema
from mechanisms.public.schema.fine_cells import is_as_assumed
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.units import UNITS, Neighbouring
from mechanisms.selection.base import CHOOSE, CHOSEN, FINE_STAGE, PAIRS, SCORES, SLOT_STAGES
from mechanisms.selection.questions import LEAST_PART
from mechanisms.sensitive.contribution import PrivacyUnit
from pipeline.settings.config import StatementConfig
from pipeline.statement.paid_answers import (
    Finding,
    bound_again,
    bound_receipt,
    first_bound,
    movements,
    question_of,
    stated_answers,
    whole_number,
)
from pipeline.statement.signing import build_publication
from pipeline.statement.stated_plan import (
    CALIBRATED,
    accountant_of,
    one_try,
    selected_by_plugin,
    unused,
    worst_of,
    wrong_level,
)
from pipeline.statement.statement import (
    LIBRARIES,
    Declared,
    declared_fields,
    promised_terms,
    total_fields,
)
from pipeline.statement.words import stated_total

#: Keys of a receipt that say what was asked; all others follow from its numbers.
ASKED = ("id", "share", "stage", "scores", "accept", "noisy", "clique", "cells", "answers", "discovery")
#: Keys of what a criterion says of itself.
CRITERION = {"metric", "marginals", "of", "compared", "left_out", "at_most"}
#: What privacy.json, the manifest and the table say, or leave out, on the word of the run alone; of a fact or a stop
#: its kind is the name.
FROM_RUN: tuple[str, ...] = ("unit.column", "unit.clip", "unit.missing", "unit.ids", "unit.table", "holdout")
FROM_RUN += ("noise_source", "public_facts.schema.confirmed")
FROM_RUN += ("outside.unplaced", "public_facts.public_table", "public_facts.public_start", "public_facts.run_start")
FROM_RUN += ("public_facts.query", "public_facts.synthetic_rows", "public_facts.selection_rows", "events.accept")
FROM_RUN += ("events.answered", "events.noisy", "events.discovery.noisy", "events.discovery.noise_per_record")
FROM_RUN += (
    "versions",
    "published",
    "running_total",
    "not_ours",
    "manifest.given",
    "manifest.rows_asked",
    "table.rows",
)


def restated(release: Path, statement: Json, index: Json) -> Finding:
    """Every field is what it is in the statement that is made again; for a release of this version."""
    schema = load_released_schema(release / "schema.yaml")
    if wrong := _wrong_ids(schema, statement) or _wrong_criteria(schema, statement) or _wrong_order(statement, index):
        return False, wrong
    if Domain(tuple(Attribute(**a) for a in index["domain"])) != schema.measured:
        return False, "schema.yaml and the measurements do not belong together"
    if wrong := _wrong_unit(schema, statement) or wrong_level(statement, index):
        return False, wrong
    if wrong := difference(statement, rewritten(release, schema, statement, index), ""):
        return False, wrong
    return True, "every field of privacy.json follows from the receipts, the schema and the settings that it names"


def rewritten(release: Path, schema: Schema, statement: Json, index: Json) -> JsonDict:
    """The content of privacy.json as a run with these charges writes it; what only the run knew stands as it does."""
    own, total = Declared.stated(statement), statement["running_total"]
    relation = Neighbouring(statement["neighbouring"])
    return {
        "version": STATEMENT_VERSION,
        **declared_fields(schema, relation, own, statement["events"]),
        **_terms(statement, own.unit),
        "accountant": statement["accountant"],
        "events": _receipts_again(release, schema, statement, index),
        "versions": {name: str(statement["versions"][name]) for name in ("pipeline", *LIBRARIES)},
        "published": build_publication(StatementConfig(**statement["published"])),
        "running_total": None if total is None else total_fields(stated_total(total).to_json()),
        **({"not_ours": statement["not_ours"]} if statement.get("not_ours") else {}),
    }


def difference(stated: Any, again: Any, name: str) -> str:
    """The first place where two JSON values differ by more than rounding; empty where they do not."""
    if isinstance(again, Mapping) and isinstance(stated, Mapping):
        if stated.keys() != again.keys():
            other = ", ".join(sorted(map(str, stated.keys() ^ again.keys())))
            return f"{name or 'privacy.json'} has other keys: {other}"
        return next((d for k in again if (d := difference(stated[k], again[k], f"{name}.{k}".lstrip(".")))), "")
    if isinstance(again, list | tuple) and isinstance(stated, list):
        if len(stated) != len(again):
            return f"{name} has {len(stated)} entries, not {len(again)}"
        return next(
            (d for i, (s, a) in enumerate(zip(stated, again, strict=True)) if (d := difference(s, a, f"{name}[{i}]"))),
            "",
        )
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in (stated, again))
    same = (
        math.isclose(stated, again, rel_tol=CALIBRATED) if numbers else type(stated) is type(again) and stated == again
    )
    return "" if same else f"{name} is {stated!r}, and follows as {again!r}"


def _terms(statement: Json, unit: PrivacyUnit) -> JsonDict:
    """Each key that follows from the receipts and the budget → what it has to be."""
    (accountant, events), worst = accountant_of(statement), worst_of(statement)
    spent = accountant.loss(events)
    facts = promised_terms(worst.composition, one_try(statement), spent, spent.delta, unit)
    if worst.exact:
        return facts
    # of slots that were not used, nobody knows the plan: `promise` holds these against the charges
    return facts | {k: statement[k] for k in ("guarantee", "original", "epsilon_at", "curve", "group_privacy")}


def _receipts_again(release: Path, schema: Schema, statement: Json, index: Json) -> list[JsonDict]:
    """Each receipt with all that follows from its numbers."""
    accountant, _ = accountant_of(statement)
    answered, moved = {a["event"]: a["clique"] for a in stated_answers(index)}, movements(release, statement, index)
    discovered = discovered_again(statement, schema)
    again = []
    for receipt in statement["events"]:
        booked, used = booked_event(receipt), booked_event({**receipt, "booked": None})
        facts = {**used.to_facts(), "cost": accountant.cost(booked)}
        if "booked" in receipt:
            facts["booked"] = booked.to_facts()
        if booked.id.startswith(ACCEPT):
            noisy = receipt["noisy"]
            more = {
                "answered": noisy is not None,
                "standard_error": used.stddev,
                "cells": 0,
                "answers": 1,
                "clique": None,
            }
            facts |= more
        elif "discovery" in receipt:
            facts |= discovered[receipt["id"]]
        elif used.is_choice or receipt.get("scores"):
            facts |= {"cells": 0, "clique": None}
            facts |= {"answered": receipt.get("answered") is True}
        else:
            facts |= {"answered": booked.id in answered}
        if booked.id in answered:
            facts["clique"] = answered[booked.id]
        if "stage" in receipt:
            facts["scores"] = receipt.get("scores") or 0
        if booked.id in moved.shapes:
            facts["cells"], facts["answers"] = moved.shapes[booked.id]
        if booked.id in moved.needed:
            facts["sensitivity"] = moved.needed[booked.id]
        again.append({**{k: receipt[k] for k in ASKED if k in receipt}, **facts})
    return again


def _wrong_ids(schema: Schema, statement: Json) -> str:
    """Why the names of the charges are not those of a plan: places in their order, a reserve, and what is beside."""
    last, gaps, criteria = -1, False, 0
    rank: tuple[Any, ...] = (-1,)
    asked = [q.event for q in questions_about_units(schema, whole_number(statement["unit"]["max_records"]))]
    for receipt in statement["events"]:
        name, stage, clique = receipt["id"], receipt.get("stage"), receipt.get("clique")
        before, joined = rank, ",".join(clique or [])
        if "discovery" in receipt:
            rank, fits = (-1,), stage is None and name == f"{DISCOVERY}{receipt['discovery']['column']}"
        elif stage == RESERVE or name.startswith(RESERVE):
            bought = re.fullmatch(rf"{RESERVE}(\d{{4,}}):(measure|choose|{SCORES_PAID}\d+)", name)
            rank = (1, int(bought[1]), bought[2]) if bought else (1,)
            fits = stage == RESERVE and bought and scores_paid(name) == (receipt.get("scores") or 0)
        elif "accept" in receipt:
            rank, fits, criteria = (3,), stage is None and name == f"{ACCEPT}{criteria}", criteria + 1
        elif stage is None and name.startswith((UNITS, PERSONS)):
            fits = name in asked
            rank = (2, asked.index(name)) if fits else (2,)
        else:
            place = int(name.partition(":")[0])
            names = {f"{place:04d}:{joined}"} if stage is None else {f"{place:04d}:{stage}:{c}" for c in ("", joined)}
            rank, fits = (0,), name in names and place > last and (stage is not None or place == last + 1)
            gaps, last = gaps or place != last + 1, place
        if not fits or rank < before:
            return f"{name} does not stand where a plan would have it"
    left = unused(statement)
    rest, adaptive = left > CALIBRATED, any("stage" in e for e in statement["events"])
    if rest and not adaptive:
        return "charges are left out of a plan that makes all of them"
    if gaps and not rest:
        return "charges of a plan are left out, and the shares of the others are all of the budget"
    return "" if selected_by_plugin(statement) else _wrong_choices(statement["events"], schema.synthesized, left)


def _wrong_choices(events: Sequence[Json], domain: Domain, left: float) -> str:
    """Why charges of a selection of ours are left out, beside choices that cost nothing or were lost.

    A choice is free where one candidate is left. Of those in slots that is the last one, and out of a reserve all are
    free, or none. A reserve after distances, or fine cells, is spent whole, but for parts too small to measure with.

    Args:
        domain: of the columns among which the selection chose.
        left: the part of the budget that no receipt tells of.
    """
    stages, bought = [e.get("stage") for e in events], {e["id"]: e for e in events if e.get("stage") == RESERVE}
    cheaper = any(e.get("answers") == 1 for e in bought.values())  # one cell may move by less than cells that share it
    rest = left > LEAST_PART * math.comb(len(domain) + 1, 2) and not cheaper
    if {SCORES, FINE_STAGE}.intersection(stages):
        return f"charges are left out, and {left:.6g} of the budget with them" if rest else ""
    slots = [e for e in events if e.get("stage") in SLOT_STAGES]
    for i, receipt in enumerate(slots):
        lost = sum(e["mechanism"] == Exponential.kind and e["answered"] is not True for e in slots[:i])
        if int(receipt["id"].partition(":")[0]) - i > lost + (receipt["stage"] == CHOSEN):
            return f"a charge before {receipt['id']} is left out"
    if len(rivals := _last_candidates(slots, domain)) > 1:
        return f"the last choice of a tree is left out, though {len(rivals)} pairs could be chosen"
    measured, chosen = ({n.removesuffix(k) for n in bought if n.endswith(k)} for k in (":measure", ":choose"))
    cliques = {str(e.get("clique")) for e in bought.values()}
    several = rest and not {CHOOSE, PAIRS}.intersection(stages) and len(cliques) > 1
    if (chosen or several) and (free := sorted(measured - chosen)):
        return f"{free[0]}:measure measures what no charge chose"
    return ""


def _last_candidates(slots: Sequence[Json], domain: Domain) -> set[Clique]:
    """The pairs among which a tree's last choice was made, as far as its receipts tell, where it has none itself.

    A pair that joins the same parts was a candidate too where it is no larger than another edge.

    Args:
        slots: the receipts of a selection's slots.
    """
    choices, chosen = ([e for e in slots if e["stage"] == stage] for stage in (CHOOSE, CHOSEN))
    places = [int(e["id"].partition(":")[0]) for e in (*choices[-1:], *chosen)]
    edges = [tuple(e.get("clique") or ()) for e in chosen[: len(choices) + 1]]
    whole = places[1:] == [*range(places[0] + 2, places[0] + 2 + len(chosen))] if choices else False
    if not whole or {len(edge) for edge in edges} != {2}:
        return set()
    columns, most = {n for edge in edges for n in edge}, max(domain.cells(edge) for edge in edges)
    candidates = pairs(domain, [n for n in domain.names if n in columns], most)
    return {*joining(candidates, edges[:-1])} - {*joining(candidates, edges)}


def _wrong_criteria(schema: Schema, statement: Json) -> str:
    """Why what a release was accepted by is nothing that a run compares."""
    columns = len(schema.synthesized)
    for name, criterion in ((e["id"], e["accept"]) for e in statement["events"] if "accept" in e):
        whole = [whole_number(criterion[key]) for key in ("marginals", "compared", "left_out")]
        words = criterion.keys() == CRITERION and criterion["metric"] == "l1" and criterion["of"] in ("mean", "largest")
        if not words or min(whole) < 0 or math.comb(columns, whole[0]) != whole[1] + whole[2]:
            return f"{name} compares nothing that a run would"
    return ""


def _wrong_unit(schema: Schema, statement: Json) -> str:
    """Why who is protected is not whom the schema declares; empty where it is, or the schema declares nobody."""
    unit, stated = schema.rules.unit, statement["unit"]
    if unit is not None and not unit.discovered and bound_receipt(statement) is not None:
        return "schema.yaml does not say that C was discovered"
    if unit is None or (stated["column"], whole_number(stated["max_records"])) == (unit.column, unit.bound):
        return ""
    unit_in_words = f"{stated['column']!r} with C = {stated['max_records']}"
    return f"schema.yaml says unit: {unit.column!r} with C = {unit.bound}, and privacy.json {unit_in_words}"


def _wrong_order(statement: Json, index: Json) -> str:
    """Answers stand in the order of their charges."""
    places = {e["id"]: i for i, e in enumerate(statement["events"])}
    order = [places[a["event"]] for a in stated_answers(index)]
    return "" if order == sorted(order) else "the answers stand in another order than their receipts"


def discovered_again(statement: Json, schema: Schema) -> dict[str, JsonDict]:
    """Each charge → what its receipt has to say; its noisy counts, and whether it was lost, stand as they are.

    Args:
        schema: of the release, which says what of each column was discovered.
    Raises:
        ValueError: charges of no columns; a tree that none has; a charge that was lost, of a column that was found out.
    """
    receipts = [e for e in statement["events"] if e.get("discovery")]
    if not receipts:
        return {}
    order, named = [OF_UNITS, *schema.domain.names], [e["discovery"]["column"] for e in receipts]
    if named != [name for name in order if name in named]:
        raise ValueError("what was discovered stands in another order than the columns, or is none of them")
    again = _planned(receipts, statement, schema, pairs=False)
    if (paid := bound_receipt(statement)) is not None:
        stated, facts = paid["discovery"], again[paid["id"]]["discovery"]
        paired = _planned(receipts, statement, schema, pairs=True)[paid["id"]]["discovery"]["noise_per_record"]
        facts |= {"noisy": stated["noisy"], "chosen": bound_again(paid)}
        # settings say whether pairs count; beside other columns it was planned before their sizes were known
        if len(receipts) > 1 or math.isclose(stated["noise_per_record"], paired, rel_tol=CALIBRATED):
            facts["noise_per_record"] = stated["noise_per_record"]
    return again


def _planned(receipts: Sequence[Json], statement: Json, schema: Schema, *, pairs: bool) -> dict[str, JsonDict]:
    """The same charges by a plan of our own: each one's id → its receipt, but for its cost."""
    most, neighbouring = one_try(statement), Neighbouring(statement["neighbouring"])
    budget = Budget(most.epsilon, most.delta, statement["accountant"], neighbouring, first_bound(statement))
    plan = plan_discovery(
        [_question(e, schema) for e in receipts],
        budget,
        share=round(math.fsum(e["share"] for e in receipts), 12),  # thirds may sum to more than the whole
        mechanism=receipts[0]["mechanism"],
        cells=[a.size for a in schema.synthesized.attributes],
        pairs=pairs,
    )
    planned = [c.to_json(plan.accountant) for c in plan.charges]
    return {
        m["id"]: {**{k: v for k, v in m.items() if k != "cost"}, "answered": e.get("answered") is True}
        for m, e in zip(planned, receipts, strict=True)
    }


def _question(receipt: Json, schema: Schema) -> DiscoveryQuestion:
    """The question, from the column as it was released."""
    asked = question_of(receipt["discovery"])
    unit = schema.rules.unit
    if asked.sizes is not None:
        return replace(asked, sizes=replace(asked.sizes, lost=1.0 if unit is None else INVENTED))
    name, tree = asked.column, asked.tree
    column, once = schema[name], unit is not None and name in unit.constant
    if receipt.get("answered") is not True and not is_as_assumed(column, 0 if tree is None else tree.leaves):
        raise ValueError(f"{name} was found out, and its charge is said to be lost")
    if (tree is None) is not (VALUES in column.discovered):
        raise ValueError(f"{name} was found out in another way than its charge says")
    if tree is not None:
        tree = type(tree)(tree.leaves, column.size - column.value_codes)
    return DiscoveryQuestion(name, column.discovered if tree else asked.what, tree, once=once)
