"""The sections about the release: its promise, ledger, noise and error bounds, and how the synthesizer converged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.criterion import answered_scores
from mechanisms.public.files import Json, JsonDict
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.units import rounded_up
from pipeline.inference.decided import decided
from pipeline.inference.release_bounds import bounds
from pipeline.report.answer_noise import coverage, losses_of_bounds, signal_to_noise, size_bars
from pipeline.report.charts import Drawing, Line, lines
from pipeline.report.page import Card, Cell, Gauge, Section, Table, number
from pipeline.report.scale import ChartAxis
from pipeline.statement.format_2 import as_fields, start_named
from pipeline.statement.words import words_of

#: Marginals shown before the rest is folded away.
SHOWN = 15
#: A bound from here on allows anything.
ANYTHING = 0.995
#: Lines of single marginals in the picture, those that end worst.
LINES = 60
#: Marginals in the table of those that end worst.
LEFT = 12
#: What is so many times lower than the highest point lies on the ground.
DEEP = 1e4
#: Points of a line: a longer one is thinned.
POINTS = 240


def promise_section(statement: Json) -> Section:
    """From the content of privacy.json."""
    promise, words = statement.get("guarantee", statement["budget"]), words_of(statement)
    rows: list[tuple[Cell, ...]] = [
        ("protected", words["unit"]),
        *([("one unit", words["unit_ids"])] if words["unit_ids"] else []),
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
    rows += answered_scores(statement["events"], limit=", with noise; accepted: at most")
    shown = {
        "epsilon": rounded_up(promise["epsilon"], 4),
        "delta": rounded_up(promise["delta"], 3),
        "reasons_not_private": () if statement["private"] else words["reasons_not_private"],
        "facts": Table(("", ""), rows),
        "ledger": _ledger(statement["events"]),
    }
    return Section("promise", "What was released, and at what cost", shown)


def _ledger(events: Sequence[Json]) -> Table:
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


def noise_section(measurements: Measurements, schema: Schema, statement: Json) -> Section:
    """From the released answers, their schema and the statement alone."""
    rows = [
        (
            " × ".join(a.clique) + ("" if isinstance(a.query, Identity) else " (merged cells)"),
            a.query.columns,
            round(a.stddev, 1),
            round(mean, 1),
            f"{above:.0%}",
            Gauge(above),
        )
        for a, mean, above in signal_to_noise(measurements)
    ]
    head = ("marginal", "cells", "noise (sd)", "mean cell", "above 2 sd", "")
    covered = coverage(measurements, schema, start=start_named(statement))
    shown = {"covered": covered.in_words, "warnings": covered.warnings, "weakest": Table(head, rows), "first": SHOWN}
    return Section("noise", "Noise of each marginal against its signal", shown)


def units_section(units: Json) -> Section:
    """From the exact sizes of the units: NOT private."""
    sizes, own = [(int(n), int(count)) for n, count in units["sizes"]], int(units["max_records"])
    heights = size_bars(sizes)
    drawn = [Line("lreal", "units", list(enumerate(heights.values())), marked=True)]
    x, y = ChartAxis.named(list(heights)), ChartAxis.linear(heights.values())
    picture = lines(drawn, x, y, label="Units by their number of records", width=340, height=200)
    lost = [
        (f"{bound}{' (this run)' if bound == own else ''}", f"{weight:.1%}", f"{units_cut:.1%}")
        for bound, (weight, units_cut) in losses_of_bounds(sizes, own).items()
    ]
    left = Card(f"Units by records: {units['column']}", picture, "how many units have so many records")
    right = Card("Lost at a bound C", Table(("C", "weight lost", "units cut"), lost))
    return Section("units", "Records per unit", {"cards": (left, right)})


def bounds_section(
    release: Path, measurements: Measurements, schema: Schema, statement: Json, synthetic: CodedTable | None
) -> Section:
    """From the release alone: its noisy answers and its synthetic table, which is read where it is not at hand."""
    table = bounds(release, synthetic=synthetic)
    shown = table.iloc[::-1][["marginal", "how", "cells", "error_tvd"]].to_dict("split")["data"]
    rows: list[tuple[Cell, ...]] = [(*line, Gauge(float(line[-1]))) for line in shown]
    head = ("marginal", "how", "cells", "total variation distance, at most", "")
    notes = tuple(f"{n[0].upper()}{n[1:]}." for n in table.attrs["notes"])
    tells = [row for row in rows if float(str(row[3])) < ANYTHING]
    pairs, most = decided(measurements, schema), as_fields(statement)["unit"]["max_records"]
    words = {
        "anything": [str(row[0]) for row in rows[: len(rows) - len(tells)]],
        "decided": ". Better: ".join([pairs.in_words, *pairs.better(most)]),
        "related": table.attrs["related"],
        "notes": notes,
    }
    return Section("bounds", "How wrong a marginal is at most", words | {"worst": Table(head, tells), "first": SHOWN})


def convergence_section(record: Json) -> Section:
    """From the content of convergence.json: it follows from noisy answers alone."""
    shown = _model(record) if record["kind"] == "loss" else _marginals(record)
    return Section("convergence", "Convergence of the synthesizer", shown)


def _marginals(record: Json) -> JsonDict:
    reasons: Sequence[str] = record["reasons"]
    ended_by = ", ".join(f"{reason} ({list(reasons).count(reason)}×)" for reason in dict.fromkeys(reasons))
    passes = list(zip(*record["errors"], strict=True))
    if not record["marginals"]:
        return {"cards": ()}
    final: Mapping[str, float] = record["final"]
    rows = [[e for e in line if e is not None] for line in passes]
    ranked = sorted(zip(record["marginals"], record["errors"], strict=True), key=lambda p: -final.get(p[0], 0.0))
    drawn = [_line("lthin", name, errors) for name, errors in ranked[:LINES]]
    drawn.append(_line("lmade", "largest", [max(e) if e else None for e in rows]))
    drawn.append(_line("lreal", "mean", [sum(e) / len(e) if e else None for e in rows]))
    picture = _over_steps(drawn, last=len(passes), label="Distance of each marginal from its target, by pass")
    worst = sorted(final.items(), key=lambda item: -item[1])[:LEFT]
    left = Card("Distance by pass", picture, "logarithmic")
    right = Card("Left in the finished table", Table(("marginal", "distance"), worst), "the largest ones")
    return {"passes": len(passes), "ended_by": ended_by, "cards": (left, right)}


def _model(record: Json) -> JsonDict:
    losses, floor = record["losses"], record["floor"]
    last = max(len(losses) - 1, 0)
    picture = _over_steps(
        [_line("lreal", "loss", losses)], last=max(last, 1), label="Loss by step", level=floor or None
    )
    rows = [
        ("steps", number(last)),
        ("loss at the end", number(losses[-1] if losses else None)),
        ("noise floor", number(floor)),
        ("above the least loss by at most", number(record["gap"])),
    ]
    left = Card("Loss by step", picture, "logarithmic")
    return {"reason": str(record["reason"]), "cards": (left, Card("At the end", Table(("", ""), rows)))}


def _line(style: str, title: str, values: Sequence[float | None]) -> Line:
    """The values above 0 over the share of the steps that are done."""
    shown = _thinned(values)
    last = max(len(shown) - 1, 1)
    return Line(style, title, [(i / last, v) for i, v in enumerate(shown) if v is not None and v > 0])


def _over_steps(drawn: Sequence[Line], *, last: int, label: str, level: float | None = None) -> Drawing | None:
    """Lines over the steps of an iteration; None where there is nothing above 0."""
    values = [v for line in drawn for _, v in line.points] + ([level] if level else [])
    if not values:
        return None
    x = ChartAxis(0.0, 1.0, ((0.0, "first"), (1.0, f"step {last}")))
    y = ChartAxis.logarithmic_over(v for v in values if v >= max(values) / DEEP)
    return lines(drawn, x, y, label=label, level=level)


def _thinned(values: Sequence[float | None]) -> list[float | None]:
    """At most POINTS of the values, the first and the last among them."""
    if len(values) <= POINTS:
        return list(values)
    return [values[round(i * (len(values) - 1) / (POINTS - 1))] for i in range(POINTS)]
