"""The ledger-to-be: what `plan` prints, from public facts and settings alone."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

from mechanisms.accounting.events import Exponential
from mechanisms.accounting.plan import RESERVE, Plan
from mechanisms.public.files import JsonDict
from mechanisms.public.release import compared
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.text_table import lined_up
from mechanisms.public.units import bound_in_words, plain_digits
from mechanisms.public.workload import Workload
from mechanisms.selection.selections import method_of
from pipeline.budget.admission import planned_release
from pipeline.budget.ledger_report import planned_json
from pipeline.inference.decided import named_pairs, never_asked
from pipeline.report.plan_theory import theory, theory_in_words
from pipeline.report.plan_words import candidate_noise, error_lines, expectations, in_words, mean_errors
from pipeline.settings.build import build_plan, build_schema, build_workload
from pipeline.settings.config import Config
from pipeline.settings.memory import model_sizes, predicted_memory_bytes, scores_bytes
from pipeline.settings.scoring import scores_of_run
from pipeline.settings.specs import (
    Specs,
    as_released,
    build_specs,
    run_warnings,
    two_tables,
)

#: So many charges are shown, and at most with details; those behind all measurements always are.
FIRST, SHOWN = 10, 1_000


def planned(config: Config) -> JsonDict:
    """What a run of these settings would measure, as JSON values; no data is opened.

    Raises:
        UserError: an impossible setting, or a mistake of the schema.
    """
    specs = build_specs(config)
    schema = build_schema(specs)
    workload = build_workload(specs, schema)
    plan = build_plan(specs, workload, schema)
    scores_of_run(config, schema, prepare=False)
    as_released(config.release, schema)
    two_tables(config.release, schema)
    return describe(specs, schema, workload, plan)


def describe(specs: Specs, schema: Schema, workload: Workload, plan: Plan) -> JsonDict:
    """Every planned charge, the total, and the predicted memory, as JSON values; sizes in cells, noise in records."""
    config, unit, spec = specs.config, specs.unit, specs.synthesizer
    own, rows = config.privacy, config.plan.rows
    whole = replace(plan.budget, epsilon=own.epsilon, delta=own.delta)  # of all tries
    return {
        "schema": schema.name,
        "unit": unit.column or "one record",
        "max_records": unit.max_records,
        **plan.to_json(),
        **_selection(config, plan),
        "selected": method_of(plan.method).in_words,
        "compared": [p.to_json() for p in plan.compared],
        "rows": rows,
        "candidates": _candidates(config, schema, plan),
        "numbers": mean_errors(schema, plan, rows),
        "expected": None if rows is None else expectations(config, schema, plan, rows),
        "theory": None if rows is None else theory(plan, whole, rows),
        "left_out": [list(c) for c in workload.left_out],
        "left_out_above": specs.selection.limit(specs.facts(schema)),
        "never_asked": [list(c) for c in never_asked(schema)],
        "no_room": [list(c) for c in workload.no_room],
        **dict(zip(("model_cells", "grown_model_cells"), model_sizes(spec, schema, plan), strict=True)),
        "warnings": [*run_warnings(specs, schema)],
        "predicted_memory_bytes": predicted_memory_bytes(specs, schema, plan),
        "predicted_score_bytes": scores_bytes(config, schema),
        "memory_limit_bytes": config.limits.memory_bytes,
        "shared_budget": planned_json(planned_release(specs, schema, plan, Path("planned"))),
    }


def _selection(config: Config, plan: Plan) -> JsonDict:
    """What several tries cost together, in the place of what one costs; nothing where there is one."""
    selection = plan.tries
    if not selection.several:
        return {"selection": None}
    each, spent = plan.budget.whole, selection.total(plan.loss)
    return {
        "selection": selection.to_json(each),
        "budget": {"epsilon": config.privacy.epsilon, "delta": config.privacy.delta},
        "total": {"epsilon": spent.epsilon, "delta": spent.delta},
    }


def _candidates(config: Config, schema: Schema, plan: Plan) -> list[JsonDict]:
    """Each marginal that may be measured, with the L1 error that its noise alone would make, in records.

    `error_alone`: if it takes the whole budget of its stage; `error_all`: if all candidates share it by cells^power;
    `lost`: more than the rows in all, so that the candidate tells nothing at `plan.rows`.
    """
    domain, rows = schema.measured, config.plan.rows
    return [
        {
            "clique": list(clique),
            "cells": domain.cells(clique),
            "error_alone": alone,
            "error_all": together,
            "lost": None if rows is None else together >= 2 * rows,
        }
        for clique, alone, together in candidate_noise(plan, domain)
    ]


def as_text(facts: JsonDict, details: bool = False) -> str:
    """The same for people: what it means for the answers, then what is spent, then the largest charges.

    Args:
        details: every charge, the numbers' own errors, the noisiest marginals and the theory behind it, too.
    """
    expected, rows = facts["expected"], facts["rows"]
    lines = in_words(expected, rows) if expected else ["plan.rows=N says which columns are useful at about N rows"]
    lines += ["", *_spent(facts), *(f"warning: {w}" for w in facts["warnings"]), ""]
    lines += _charges(facts, SHOWN if details else FIRST)
    if not details:
        more = "plan.details=true adds all charges, the error of each number, and the noisiest marginals"
        return "\n".join([*lines, more])
    lines += ["", *error_lines(facts["numbers"]), *_noisiest(facts["candidates"], rows)]
    lines += theory_in_words(facts["theory"]) if facts["theory"] else []
    return "\n".join(lines)


def _spent(facts: JsonDict) -> list[str]:
    """What is protected and spent, on what, and what it needs."""
    budget, total = facts["budget"], facts["total"]
    needed, limit = facts["predicted_memory_bytes"] / 1e6, facts["memory_limit_bytes"] / 1e9
    scored = (
        f", {facts['predicted_score_bytes'] / 1e6:,.0f} MB for the scores" if facts["predicted_score_bytes"] else ""
    )
    scores = sum(bool(m.get("scores")) for m in facts["measurements"])
    choices = scores + sum(m["mechanism"] == Exponential.kind for m in facts["measurements"])
    counted = len(facts["measurements"]) - choices
    caps = [m["discovery"]["cap"] for m in facts.get("discovery", []) if "cap" in m["discovery"]]
    most = f"C records to be discovered, at most {caps[0]:,}" if caps else f"at most {facts['max_records']} records"
    lines = [
        f"budget: ε = {budget['epsilon']:g}, δ = {budget['delta']:g}; accountant: {facts['accountant']}",
        f"the plan spends: {bound_in_words(total['epsilon'], total['delta'])}",
        f"unit: {facts['unit']}, {most}; neighbouring: {facts['neighbouring']}",
        *_discovering(facts.get("discovery", [])),
        f"{counted} measurement{'s' * (counted != 1)} of {sum(m['cells'] for m in facts['measurements']):,} cells"
        + (f", {_choices(choices, scores)}" if choices else "")
        + _later(facts),
        *_of_persons(facts),
        *_accepting(facts),
        *_pairs(facts["compared"]),
        *([facts["selected"]] if facts["selected"] else []),
        f"predicted memory: {needed:,.0f} MB{scored}, of {limit:.1f} GB",
    ]
    if facts["model_cells"] is not None:
        grown = f", at most {g:,} with those chosen later" if (g := facts["grown_model_cells"]) else ""
        lines.append(f"graphical model of the marginals known ahead: {facts['model_cells']:,} cells{grown}")
    if facts["shared_budget"] is not None:
        lines += facts["shared_budget"]["in_words"]
    if facts["never_asked"]:
        pairs = named_pairs([tuple(c) for c in facts["never_asked"]])
        lines.append(f"never asked, and as unrelated (constants of persons beside columns of records): {pairs}")
    for key, why in (
        ("left_out", f"more than {facts['left_out_above']}"),
        ("no_room", "no room in the graphical model"),
    ):
        if cliques := facts[key]:
            names = ", ".join(" × ".join(c) for c in cliques[:8]) + (" …" if len(cliques) > 8 else "")
            lines.append(f"left out ({why}): {len(cliques)} marginal{'s' * (len(cliques) > 1)}: {names}")
    return lines


def _charges(facts: JsonDict, shown: int) -> list[str]:
    """The charges as a table: those for discovered facts and for later choices, and the first measurements."""
    head = ["marginal", "cells", "noise", "sensitivity", "scale (records)", "std. dev.", "share"]
    further = [facts[k] for k in ("reserve", "histogram") if facts.get(k)] + facts["accept"]
    further += facts.get("persons", []) if shown >= SHOWN else []
    charges = facts.get("discovery", []) + facts["measurements"]
    more = len(charges) - shown
    folded = [f" … and {more:,} more charges: plan.details=true"] if more > 0 and shown < SHOWN else []
    folded += [f" … and {more:,} more charges: plan.format=json has all"] if more > 0 and shown >= SHOWN else []
    return [*lined_up([head, *map(_row, [*charges[:shown], *further])]), *folded]


def _choices(choices: int, scores: int) -> str:
    """How many charges pay for a look or a choice, not for a marginal."""
    looks = f"{scores} look{'s' * (scores != 1)} at distances" if scores else ""
    private = choices - scores
    return ", ".join(w for w in (looks, f"{private} private choice{'s' * (private != 1)}" if private else "") if w)


def _later(facts: JsonDict) -> str:
    """What nobody knows ahead, where noisy answers decide it."""
    if not facts.get("reserve"):
        return ""
    share = 100 * facts["reserve"]["share"]
    look = "a second look and to " if facts["method"]["kind"] == "auto" else ""
    decided = "marginals that these noisy answers decide: the end of a run says how many"
    return f"; the other {share:.3g} % goes to {look}{decided}"


def _of_persons(facts: JsonDict) -> list[str]:
    """What is asked once per unit, and how much less noise it has than if it were asked of records."""
    asked = facts.get("persons", [])
    if not asked:
        return []
    share, most = 100 * math.fsum(m["share"] for m in asked), facts["max_records"]
    largest = max(asked, key=lambda m: m["cells"])
    noise = " to ".join(dict.fromkeys(f"{end(m['stddev'] for m in asked):,.3g}" for end in (min, max)))
    many = f"{len(asked)} histogram{'s' * (len(asked) > 1)} of units, their records and neighbours among these"
    cells = f"the largest of {largest['cells']:,} cells ({' × '.join(largest['clique'])})"
    own = f"{many}, {cells}, for {share:.3g} % of the budget: noise ± {noise} units a cell"
    beside = f", as a unit weighs 1 there; of records, of which {most:,} count, {most} times as much"
    return [own + beside * (most > 1)]


def _accepting(facts: JsonDict) -> list[str]:
    """What decides whether the release is accepted, and what several tries cost, before anything is spent."""
    lines = []
    for m in facts["accept"]:
        over, limit = compared(m["accept"]), m["accept"]["at_most"]
        decides = (
            "is released with it" if limit is None else f"decides: at most {plain_digits(limit)} records, or withheld"
        )
        lines.append(f"accept: {over} ± {plain_digits(m['stddev'])} records (standard error) {decides}")
    if chosen := facts["selection"]:
        one = chosen["one_try"]
        lines.append(
            f"at most {chosen['tries_expected_at_most']:,} tries expected, each with ε₁ = {one['epsilon']:.6g}, "
            f"δ₁ = {one['delta']:.3g} of the charges above; released: {chosen['released']}"
        )
        lines.append(f"all tries together, however many there are: {chosen['conversion']}")
    return lines


def _discovering(slots: list[JsonDict]) -> list[str]:
    """What is charged first, and that the rest of the plan follows from its answers."""
    if not slots:
        return []
    share = 100 * math.fsum(m["share"] for m in slots)
    lines = [
        f"discovered first, for {share:.3g} % of the budget: {', '.join(_discovered(m) for m in slots)}",
        "all other charges are those of an assumed schema: the run plans them anew, within the same budget",
    ]
    for m in (m for m in slots if "cap" in m["discovery"]):
        noise = f"{m['discovery']['noise_per_record']:,.4g} records of noise in a marginal, about"
        lines.append(f"C, records of a unit that count: 1 to {m['discovery']['cap']:,}; 1 is assumed until it is known")
        lines.append(f"one more record of C costs {noise}; all noise grows with C")
    for m in (m for m in slots if m.get("failure")):
        asked = m["discovery"]
        least = f"{asked['threshold']:,.4g} units, for δ′ = {m['failure']:.3g}; the rest goes to other"
        lines.append(f"values of {asked['column']}: released above a noisy weight of {least}")
    return lines


def _discovered(m: JsonDict) -> str:
    if "cap" in m["discovery"]:
        return "how many records units have"
    return f"{' and '.join(m['discovery']['what'])} of {m['discovery']['column']}"


def _pairs(compared: list[JsonDict]) -> list[str]:
    """Which noise under which accountant was taken, and the next best; nothing where settings left no choice."""
    if len(compared) < 2:
        return []
    best, second = (
        f"{p['mechanism']} noise under {p['accountant']}, standard deviation {p['stddev']:.4g}" for p in compared[:2]
    )
    return [f"least noise: {best} records on the mean of all cells; next: {second}"]


def _noisiest(candidates: list[JsonDict], rows: int | None) -> list[str]:
    """The candidates that suffer most from noise, against the rows where these are declared."""
    if not candidates:
        return []
    worst = sorted(candidates, key=lambda c: -c["error_all"])[:5]
    lines = ["noisiest marginals: the noise of all their cells together, in records, alone and with all others:"]
    for c in worst:
        times = None if rows is None else (c["error_alone"] / rows, c["error_all"] / rows)
        part = "" if times is None else f": {times[0]:.3g} and {times[1]:.3g} times the rows"
        lines.append(f"  {' × '.join(c['clique'])}: {c['error_alone']:,.0f} and {c['error_all']:,.0f}{part}")
    if rows is not None:
        hopeless = sum(bool(c["lost"]) for c in candidates)
        meaning = "would hold nothing but noise if all were measured (an error of twice the rows or more)"
        lines.append(f"  {hopeless} of {len(candidates)} {meaning}")
    return lines


def _row(m: JsonDict) -> list[str]:
    """One charge; a marginal that is chosen later is named by its stage, with the most cells that it may have."""
    share = f"{100 * m['share']:.3g} %"
    later = "rounds, in all" if m.get("stage") == RESERVE else "chosen later"
    name = " × ".join(m["clique"]) if m["clique"] else later
    if m.get("accept"):
        name = f"accept: {m['accept']['of']} L1 distance"
    if m.get("discovery"):
        name = _discovered(m)
    if m.get("scores"):
        name = f"{m['scores']:,} distances from independence"
    if m["mechanism"] == Exponential.kind:
        return ["a private choice", "", m["mechanism"], "", "", f"ε = {m['epsilon']:.6g}", share]
    return [
        name,
        f"{m['cells']:,}" if m["cells"] and m.get("stage") != RESERVE else "",
        m["mechanism"],
        f"{m['sensitivity']:.6g} ({m['norm'].upper()})",
        f"{m['scale']:.6g}",
        f"{m['stddev']:.6g}",
        share,
    ]


def show_plan(config: Config) -> int:
    """Print the plan, as text or JSON."""
    facts = planned(config)
    in_json = "json" in (config.plan.format, config.format)
    print(json.dumps(facts, indent=1, allow_nan=False) if in_json else as_text(facts, config.plan.details))
    return 0
