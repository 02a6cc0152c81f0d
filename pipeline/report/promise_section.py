"""The sections about what was promised: the statement, the ledger, and the noise of each marginal beside its signal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from mechanisms.public.criterion import noisy_figure
from mechanisms.public.release import Measurements
from mechanisms.public.schema.table_schema import Schema
from pipeline.pages.charts import histogram
from pipeline.pages.page import Card, Cell, Gauge, Table, number
from pipeline.report.answer_noise import coverage, losses_of_bounds, signal_to_noise, size_bars
from pipeline.statement.format_2 import as_fields, start_named
from pipeline.statement.words import words_of

#: Marginals shown before the rest is folded away.
SHOWN = 15


@dataclass(frozen=True)
class PromiseSection:
    """What was released, to whom it promises what, and every charge.

    Attributes:
        reasons_not_private: why there is no promise; empty where there is one.
    """

    name: ClassVar[str] = "promise"
    title: ClassVar[str] = "What was released, and at what cost"
    template: ClassVar[str] = "sections/promise.html.j2"
    epsilon: str
    delta: str
    reasons_not_private: Sequence[str]
    facts: Table
    ledger: Table


def promise_section(statement: Mapping[str, Any]) -> PromiseSection:
    """From the content of privacy.json."""
    promise, words = statement.get("guarantee", statement["budget"]), words_of(statement)
    rows: list[tuple[Cell, ...]] = [
        ("protected", words["unit"]),
        ("one unit", words["unit_ids"] or "as it says"),
        ("neighbouring tables", statement["neighbouring"]),
        ("at most so many records of one unit count", number(as_fields(statement)["unit"]["max_records"])),
        ("how", words["clip"]),
        ("rows without a unit", words["missing_unit"]),
        ("set aside", words["holdout"]),
        ("accountant", f"{statement['accountant']}: {words['conversion']}"),
        ("noise from", words["noise_source"]),
        ("taken as public", "; ".join(words["public_facts"])),
        ("warnings", "; ".join(words["warnings"]) or "none"),
        ("outside of the promise", "; ".join(words["outside"]) or "nothing beyond PRIVACY.md"),
    ]
    for event in (e for e in statement["events"] if "accept" in e and e["answered"]):
        what, limit = event["accept"], event["accept"]["at_most"]
        figure = noisy_figure(event["noisy"], event["standard_error"], limit, limit=", with noise; accepted: at most")
        rows.append((f"{what['of']} L1 distance of {what['compared']:,} {what['marginals']}-way marginals", figure))
    return PromiseSection(
        epsilon=f"{promise['epsilon']:.4g}",
        delta=f"{promise['delta']:.3g}",
        reasons_not_private=() if statement["private"] else tuple(words["reasons_not_private"]),
        facts=Table(("", ""), rows),
        ledger=_ledger(statement["events"]),
    )


def _ledger(events: Sequence[Mapping[str, Any]]) -> Table:
    head = ("charge", "mechanism", "sensitivity", "noise (sd)", "cost", "answered")
    rows = [
        (
            " × ".join(e.get("clique") or ())
            or (f"{e['scores']:,} distances from independence" if e.get("scores") else e["id"]),
            e["mechanism"],
            float(e.get("sensitivity") or 0),
            e.get("stddev"),
            ", ".join(f"{k} = {number(v)}" for k, v in (e.get("cost") or {}).items()),
            "yes" if e["answered"] else "no",
        )
        for e in events
    ]
    return Table(head, rows)


@dataclass(frozen=True)
class NoiseSection:
    """Noise against signal: the marginals that tell least, and the rest."""

    name: ClassVar[str] = "noise"
    title: ClassVar[str] = "Noise of each marginal against its signal"
    template: ClassVar[str] = "sections/noise.html.j2"
    covered: str
    warnings: Sequence[str]
    weakest: Table
    rest: Table


def noise_section(measurements: Measurements, schema: Schema, statement: Mapping[str, Any]) -> NoiseSection:
    """From the released answers, their schema and the statement alone."""
    rows = [
        (
            " × ".join(a.clique) + (" (merged cells)" if a.merged else ""),
            a.cells,
            round(a.stddev, 1),
            round(a.mean, 1),
            f"{a.above:.0%}",
            Gauge(a.above),
        )
        for a in signal_to_noise(measurements)
    ]
    head = ("marginal", "cells", "noise (sd)", "mean cell", "above 2 sd", "")
    covered = coverage(measurements, schema, start=start_named(statement))
    return NoiseSection(covered.in_words, covered.warnings, *Table(head, rows).parted(SHOWN))


@dataclass(frozen=True)
class UnitsSection:
    """Records per unit, and what a bound C loses of them: exact counts."""

    name: ClassVar[str] = "units"
    title: ClassVar[str] = "Records per unit"
    template: ClassVar[str] = "sections/units.html.j2"
    cards: Sequence[Card]


def units_section(units: Mapping[str, Any]) -> UnitsSection:
    """From the exact sizes of the units: NOT private."""
    sizes, own = [(int(n), int(count)) for n, count in units["sizes"]], int(units["max_records"])
    heights = size_bars(sizes)
    picture = histogram(list(heights), list(heights.values()), label="Units by their number of records")
    lost = [
        (f"{loss.bound}{' (this run)' if loss.bound == own else ''}", f"{loss.weight:.1%}", f"{loss.units:.1%}")
        for loss in losses_of_bounds(sizes, own)
    ]
    left = Card(f"Units by records: {units['column']}", picture, "how many units have so many records")
    return UnitsSection((left, Card("Lost at a bound C", Table(("C", "weight lost", "units cut"), lost))))
