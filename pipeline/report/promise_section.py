"""The sections about what was promised: the statement, the ledger, and the noise of each marginal beside its signal."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np

from mechanisms.public.criterion import noisy_figure
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements
from pipeline.report.page import Section, card, number, table
from pipeline.report.svg import histogram

#: Marginals shown before the rest is folded away.
SHOWN = 15


def statement_section(said: Mapping[str, Any]) -> Section:
    """What was released, to whom it promises what, and every charge."""
    rows = [
        ("protected", said["unit"]),
        ("one unit", said.get("unit_ids") or "as it says"),
        ("neighbouring tables", said["neighbouring"]),
        ("at most so many records of one unit count", said["max_records"]),
        ("how", said["clip"]),
        ("rows without a unit", said["missing_unit"]),
        ("set aside", said.get("holdout", "")),
        ("accountant", f"{said['accountant']}: {said['conversion']}"),
        ("noise from", said["noise_source"]),
        ("taken as public", "; ".join(said["public_facts"])),
        ("warnings", "; ".join(said.get("warnings", ())) or "none"),
        ("outside of the promise", "; ".join(said["outside"]) or "nothing beyond PRIVACY.md"),
    ]
    for event in (e for e in said["events"] if "accept" in e and e["answered"]):
        what, limit = event["accept"], event["accept"]["at_most"]
        figure = noisy_figure(event["noisy"], event["standard_error"], limit, limit=", with noise; accepted: at most")
        name = f"{what['of']} L1 distance of {what['compared']:,} {what['marginals']}-way marginals"
        rows.append((name, figure))
    promise = table(("", ""), [(name, number(value)) for name, value in rows])
    head = ("charge", "mechanism", "sensitivity", "noise (sd)", "cost", "answered")
    events = [
        (
            " × ".join(e.get("clique") or ()) or e["id"],
            e["mechanism"],
            float(e.get("sensitivity") or 0),
            e.get("stddev"),
            ", ".join(f"{k} = {number(v)}" for k, v in (e.get("cost") or {}).items()),
            "yes" if e["answered"] else "no",
        )
        for e in said["events"]
    ]
    ledger = f"<details><summary>The ledger: {len(events)} charges</summary>{table(head, events)}</details>"
    return Section("promise", "What was released, and at what cost", _verdict(said) + promise + ledger)


def _verdict(said: Mapping[str, Any]) -> str:
    promise = said.get("guarantee", said["budget"])
    if said["private"]:
        cost = f"ε = {promise['epsilon']:.4g}, δ = {promise['delta']:.3g}"
        return f"<p>The folder release/ is (ε, δ)-differentially private with {cost}. This report is not.</p>"
    reasons = "; ".join(map(escape, said["reasons_not_private"]))
    return f"<p><b>The release is NOT private either:</b> {reasons}.</p>"


def noise_section(measurements: Measurements) -> Section:
    """Noise against signal, from the released answers alone."""
    rows = []
    for answer in measurements.answers:
        cells = answer.query.columns
        whole = isinstance(answer.query, Identity)
        mean = float(np.clip(answer.values, 0, None).mean()) if answer.values.size else 0.0
        seen = float((answer.values > 2 * answer.stddev).mean()) if answer.values.size else 0.0
        name = " × ".join(answer.clique) + ("" if whole else " (merged cells)")
        rows.append((name, cells, round(answer.stddev, 1), round(mean, 1), f"{seen:.0%}", _gauge(seen)))
    rows.sort(key=lambda r: float(r[4].rstrip("%")))
    head = ("marginal", "cells", "noise (sd)", "mean cell", "above 2 sd", "")
    text = (
        "<p>A cell whose count is below two standard deviations of its noise is noise. Marginals with few cells above "
        "it tell little: leave them out, or use coarser bins. This table is computed from the release alone.</p>"
    )
    rest = rows[SHOWN:]
    more = (
        f"<details><summary>{len(rest)} more marginals</summary>{table(head, rest, html=(5,))}</details>"
        if rest
        else ""
    )
    body = f'<div class="wide">{table(head, rows[:SHOWN], html=(5,))}{more}</div>'
    return Section("noise", "Noise of each marginal against its signal", text + body)


def _gauge(share: float) -> str:
    return f'<div class="gauge"><i style="width:{100 * share:.0f}%"></i></div>'


def units_section(units: Mapping[str, Any]) -> Section:
    """Records per unit, and what a bound C loses of them."""
    sizes = [(int(n), int(count)) for n, count in units["sizes"]]
    total = sum(n * count for n, count in sizes)
    warning = (
        "<p><b>Choosing C from this picture costs privacy.</b> It is made of exact counts of the people in the table: "
        "a bound that is chosen by looking at it depends on them, and no ledger knows. Choose C from public "
        "knowledge.</p>"
    )
    labels, values = _grouped(sizes)
    picture = histogram(labels, values, label="Units by their number of records")
    bounds = sorted({1, 2, 3, 5, 10, 20, 50, 100, int(units["max_records"])})
    lost = [
        (
            f"{c}{' (this run)' if c == units['max_records'] else ''}",
            f"{1 - sum(min(n, c) * k for n, k in sizes) / max(total, 1):.1%}",
            f"{sum(k for n, k in sizes if n > c) / max(sum(k for _, k in sizes), 1):.1%}",
        )
        for c in bounds
    ]
    column = units["column"]
    left = card(
        f"Units by records: {column}", f'<div class="fit">{picture}</div>', "how many units have so many records"
    )
    right = card("Lost at a bound C", table(("C", "weight lost", "units cut"), lost))
    return Section("units", "Records per unit", warning + f'<div class="grid">{left}{right}</div>')


def _grouped(sizes: list[tuple[int, int]]) -> tuple[list[str], list[float]]:
    """One bar per number of records up to 24, then one for each doubling."""
    found: dict[str, float] = {}
    for n, count in sizes:
        low = n if n <= 24 else 25 * 2 ** int(np.log2(n / 25))
        label = str(n) if n <= 24 else f"{low}+"
        found[label] = found.get(label, 0.0) + count
    return list(found), list(found.values())
