"""What `verify` makes again: all of a statement that follows from its receipts, its schema, or its other words."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from mechanisms.accounting.accountants.accountant import Accountant, PrivacyLoss
from mechanisms.accounting.events import Event
from mechanisms.accounting.filters import Limit, Totals
from mechanisms.accounting.plan import RESERVE, SCORES_PAID, scores_paid
from mechanisms.accounting.private_selection import PrivateSelection
from mechanisms.accounting.receipts import booked_event
from mechanisms.accounting.restatements import DELTAS, GROUPS, epsilon_at, group_loss, original
from mechanisms.accounting.running_total import RunningTotal
from mechanisms.public.criterion import ACCEPT
from mechanisms.public.discovery.wanted import DISCOVERY
from mechanisms.public.release import STATEMENT_VERSION, PrivacyStatement
from mechanisms.public.release_files import load_released_schema
from mechanisms.public.rules.unit_histogram import UNITS
from mechanisms.sensitive.contribution import PrivacyUnit
from pipeline.settings.policy import budget_warnings, unit_warnings
from pipeline.statement.discovered_again import discovered_again
from pipeline.statement.paid_answers import Finding, movements, whole_number
from pipeline.statement.said_words import stated_rules, stated_unit, wrong_words
from pipeline.statement.stated_plan import CALIBRATED, accountant_of, one_try, tries_of, unused, worst_of
from pipeline.statement.statement import CURVE

#: Keys of privacy.json that every release of this version has; another one names parts of plugins.
KEYS = frozenset({"version", *(f.name for f in fields(PrivacyStatement))} - {"not_ours"})

#: Keys of what a criterion says of itself.
CRITERION = {"metric", "marginals", "of", "compared", "left_out", "at_most"}


def restated(release: Path, statement: Mapping[str, Any], index: Mapping[str, Any]) -> Finding:
    """Everything that the statement says twice, it says alike; for a release of this version."""
    if set(statement) - {"not_ours"} != KEYS:
        return False, f"privacy.json has other keys: {', '.join(sorted(set(statement) ^ KEYS))}"
    if wrong := _wrong_ids(statement) or _wrong_criteria(release, statement):
        return False, wrong
    receipts = zip(statement["events"], _receipts_again(release, statement, index), strict=True)
    for place, (stated, again) in enumerate(receipts):
        if wrong := difference(stated, again, f"events[{place}]"):
            return False, wrong
    for name, again in _terms(statement).items():
        if wrong := difference(statement[name], again, name):
            return False, wrong
    if wrong := _wrong_order(statement, index) or wrong_words(release, statement, index):
        return False, wrong
    return True, "all that follows from the receipts and the schema is stated as it follows"


def difference(stated: Any, again: Any, name: str) -> str:
    """The first place where two JSON values differ by more than rounding; empty where they do not."""
    if isinstance(again, Mapping) and isinstance(stated, Mapping):
        if stated.keys() != again.keys():
            return f"{name} has other keys: {', '.join(sorted(map(str, stated.keys() ^ again.keys())))}"
        return next((d for k in again if (d := difference(stated[k], again[k], f"{name}.{k}"))), "")
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


def _terms(statement: Mapping[str, Any]) -> dict[str, Any]:
    """Each key that follows from the receipts and the budget → what it has to be."""
    selection, most = tries_of(statement), one_try(statement)
    (accountant, events), worst = accountant_of(statement), worst_of(statement)
    several = selection.tries > 1
    conversion = accountant.conversion
    if several:
        conversion = f"one try: {conversion}; all tries: {selection.to_json(most)['conversion']}"
    promise = selection.total(PrivacyLoss(min(worst.loss.epsilon, most.epsilon), min(worst.loss.delta, most.delta)))
    spent = PrivacyLoss(most.epsilon, accountant.loss(events).delta) if several else accountant.loss(events)
    facts = {
        "version": STATEMENT_VERSION,
        "private": not statement["reasons_not_private"],
        "conversion": conversion,
        "slots": accountant.slots,
        "budget": _json(selection.total(most)),
        "spent": _json(selection.total(spent)),
        "selection": selection.to_json(most) if several else None,
        "warnings": [*budget_warnings(*_json(selection.total(most)).values()), *unit_warnings(_unit(statement))],
        "running_total": _running_total_again(statement["running_total"]),
    }
    if not worst.exact:
        return facts
    return {**facts, "guarantee": _json(promise), **_other_terms(accountant, worst.events, selection)}


def _other_terms(accountant: Accountant, events: list[Event], selection: PrivateSelection) -> dict[str, Any]:
    """The promise at other δ, for groups, and before any δ was chosen."""
    groups = [(k, group_loss(accountant, events, k, selection)) for k in GROUPS]
    return {
        "original": original(accountant, events) if selection.tries == 1 else {},
        "epsilon_at": {f"{at:g}": _finite(epsilon_at(accountant, events, at, selection)) for at in DELTAS},
        "curve": [[at, _finite(epsilon_at(accountant, events, at, selection))] for at in CURVE],
        "group_privacy": [{"units": k, "epsilon": _finite(g.epsilon), "delta": g.delta} for k, g in groups],
    }


def _unit(statement: Mapping[str, Any]) -> PrivacyUnit:
    return stated_unit(statement, stated_rules(statement["unit_ids"]) or ())


def _running_total_again(stated: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The same with its sentence made anew from its numbers."""
    if stated is None:
        return None
    composed = stated["epsilon_composed"]
    totals = Totals(stated["epsilon_sum"], stated["delta_sum"], math.inf if composed is None else composed)
    limit = Limit.of(stated["limit"], "limit")
    table, kind, slack = stated["table"], stated["accountant"], stated["slack"]
    others = stated.get("not_ours", 0)
    return RunningTotal(table, kind, slack, stated["runs"], stated["not_private"], totals, limit, others).to_json()


def _receipts_again(release: Path, statement: Mapping[str, Any], index: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Each receipt with all that follows from its numbers."""
    accountant, _ = accountant_of(statement)
    every = [*index["answers"], *([index["histogram"]] if index.get("histogram") else [])]
    answered, moved = {a["event"]: a["clique"] for a in every}, movements(release, statement, index)
    discovered = discovered_again(statement, load_released_schema(release / "schema.yaml"))
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
        again.append({**receipt, **facts})
    return again


def _wrong_ids(statement: Mapping[str, Any]) -> str:
    """Why the names of the charges are not those of a plan: places in their order, a reserve, and what is beside."""
    last, gaps, rank, criteria = -1, False, -1, 0
    for receipt in statement["events"]:
        name, stage, clique = receipt["id"], receipt.get("stage"), receipt.get("clique")
        before, joined = rank, ",".join(clique or [])
        if "discovery" in receipt:
            rank, fits = -1, stage is None and name == f"{DISCOVERY}{receipt['discovery']['column']}"
        elif stage == RESERVE or name.startswith(RESERVE):
            bought = re.fullmatch(rf"{RESERVE}\d{{4,}}:(measure|choose|{SCORES_PAID}\d+)", name)
            rank, fits = 1, stage == RESERVE and bought and scores_paid(name) == (receipt.get("scores") or 0)
        elif "accept" in receipt:
            rank, fits, criteria = 3, stage is None and name == f"{ACCEPT}{criteria}", criteria + 1
        elif stage is None and name.startswith(UNITS):
            rank, fits = 2, True
        else:
            place = int(name.partition(":")[0])
            names = {f"{place:04d}:{joined}"} if stage is None else {f"{place:04d}:{stage}:{c}" for c in ("", joined)}
            rank, fits = 0, name in names and place > last and (stage is not None or place == last + 1)
            gaps, last = gaps or place != last + 1, place
        if not fits or rank < before:
            return f"{name} does not stand where a plan would have it"
    if gaps and not unused(statement) > CALIBRATED:
        return "charges of a plan are left out, and the shares of the others are all of the budget"
    return ""


def _wrong_criteria(release: Path, statement: Mapping[str, Any]) -> str:
    """Why what a release was accepted by is nothing that a run compares."""
    columns = len(load_released_schema(release / "schema.yaml").synthesized)
    for name, wanted in ((e["id"], e["accept"]) for e in statement["events"] if "accept" in e):
        whole = [whole_number(wanted[key]) for key in ("marginals", "compared", "left_out")]
        words = wanted.keys() == CRITERION and wanted["metric"] == "l1" and wanted["of"] in ("mean", "largest")
        if not words or min(whole) < 0 or math.comb(columns, whole[0]) != whole[1] + whole[2]:
            return f"{name} compares nothing that a run would"
    return ""


def _wrong_order(statement: Mapping[str, Any], index: Mapping[str, Any]) -> str:
    """Answers stand in the order of their charges."""
    places = {e["id"]: i for i, e in enumerate(statement["events"])}
    order = [places[a["event"]] for a in index["answers"]]
    return "" if order == sorted(order) else "the answers stand in another order than their receipts"


def _json(loss: PrivacyLoss) -> dict[str, float]:
    return {"epsilon": loss.epsilon, "delta": loss.delta}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
