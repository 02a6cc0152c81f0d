"""The ledger-to-be: what `plan` prints, from public facts and settings alone."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console
from rich.table import Table

from mechanisms.accounting.adaptive import PURSE, AdaptivePlan
from mechanisms.accounting.plan import Plan
from mechanisms.public.schema import Schema
from mechanisms.public.workload import Workload
from pipeline.build import build_unit, memory_limit_bytes, planned_model_cells, predicted_memory_bytes
from pipeline.config import Config

#: What stands in the place of a marginal that is not known yet.
STAGES = {PURSE: "rounds, in all"}


def describe(config: Config, schema: Schema, workload: Workload, plan: Plan | AdaptivePlan) -> dict[str, Any]:
    """Every planned charge, the total, and the predicted memory, as JSON values; sizes in cells, noise in records."""
    unit = build_unit(config)
    return {
        "schema": schema.name,
        "unit": unit.column or "one record",
        "max_records": unit.max_records,
        **plan.to_json(),
        "left_out": [list(c) for c in workload.left_out],
        "model_cells": planned_model_cells(config, schema, plan),
        "predicted_memory_bytes": predicted_memory_bytes(config, schema, plan),
        "memory_limit_bytes": memory_limit_bytes(config.limits.memory_gb),
    }


def as_text(facts: dict[str, Any]) -> str:
    """The same as a table for people."""
    page = io.StringIO()
    table = Table("marginal", "cells", "noise", "sensitivity", "scale (records)", "std. dev.", "share", box=None)
    for m in facts["measurements"] + ([facts["purse"]] if facts.get("purse") else []):
        table.add_row(*_row(m))
    Console(width=150, file=page).print(table)
    body = "\n".join(line.rstrip() for line in page.getvalue().splitlines())
    left_out, budget, total = facts["left_out"], facts["budget"], facts["total"]
    needed, limit = facts["predicted_memory_bytes"] / 1e6, facts["memory_limit_bytes"] / 1e9
    choices = sum(m["mechanism"] == "exponential" for m in facts["measurements"])
    counted = len(facts["measurements"]) - choices
    lines = [
        body,
        "",
        f"{counted} measurements of {sum(m['cells'] for m in facts['measurements']):,} cells"
        + (f", {choices} private choices" if choices else ""),
        f"unit: {facts['unit']}, at most {facts['max_records']} records; neighbouring: {facts['neighbouring']}",
        f"budget: ε = {budget['epsilon']:g}, δ = {budget['delta']:g}; accountant: {facts['accountant']}",
        f"the plan spends: ε = {total['epsilon']:.6g}, δ = {total['delta']:.3g}",
        f"predicted memory: {needed:,.0f} MB of {limit:.1f} GB",
    ]
    if facts["model_cells"] is not None:
        lines.append(f"graphical model of the marginals known ahead: {facts['model_cells']:,} cells")
    if left_out:
        names = ", ".join(" × ".join(c) for c in left_out[:8]) + (" …" if len(left_out) > 8 else "")
        why = "more than selection.max_cells cells, or no room in the model"
        lines.append(f"left out ({why}): {len(left_out)} marginals: {names}")
    return "\n".join(lines)


def _row(m: dict[str, Any]) -> list[str]:
    """One charge; a marginal that is chosen later is named by its stage, with the most cells that it may have."""
    share = f"{100 * m['share']:.3g} %"
    if m["mechanism"] == "exponential":
        return ["a private choice", "", "exponential", "", "", f"ε = {m['epsilon']:.6g}", share]
    return [
        " × ".join(m["clique"]) if m["clique"] else STAGES.get(m["stage"], "chosen later"),
        f"{m['cells']:,}",
        m["mechanism"],
        f"{m['sensitivity']:.6g} ({m['norm'].upper()})",
        f"{m['scale']:.6g}",
        f"{m['stddev']:.6g}",
        share,
    ]
