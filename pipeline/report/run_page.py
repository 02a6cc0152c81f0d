"""From the files of a run, or the scores of two tables, to one HTML file; its sections about the release."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.files import Json, JsonDict, write_whole
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements, answered_scores
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.units import rounded_up
from pipeline.folders import PAGES, RunFolder, check_output
from pipeline.inference.decided import decided
from pipeline.inference.release_bounds import bounds
from pipeline.release_folder import read_release
from pipeline.report.answer_noise import coverage, losses_of_bounds, signal_to_noise, size_bars
from pipeline.report.charts import Drawing, Line, lines
from pipeline.report.page import (
    Card,
    Cell,
    Gauge,
    Page,
    Section,
    Table,
    files_table,
    header_cards,
    in_short,
    not_computed,
    number,
)
from pipeline.report.scale import ChartAxis
from pipeline.report.score_sections import (
    attacks_section,
    mgd_section,
    numbers_section,
    persons_section,
    privacy_section,
    scores_section,
    sdnist_section,
)
from pipeline.report.table_sections import (
    accuracy_section,
    axes_section,
    columns_section,
    correlation_section,
    densities_section,
    dependence_section,
    distances_section,
    map_section,
    pair_maps_section,
    pairs_section,
    validity_section,
)
from pipeline.scores.score_files import damaged, report_files
from pipeline.statement.words import as_fields, start_named, words_of

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


#: A release's schema and statement, and the sections that follow from it alone.
OfRelease = tuple[Schema, Json, list[Section]]


def of_release(release: Path, synthetic: CodedTable | None = None) -> OfRelease:
    """What the report says of a release alone.

    Args:
        synthetic: the rows of the released table, where they are at hand.
    Raises:
        UserError: no release there.
    """
    schema, statement, measurements = read_release(release)
    bounds = bounds_section(release, measurements, schema, statement, synthetic)
    return schema, statement, [promise_section(statement), noise_section(measurements, schema, statement), bounds]


def render_run(folder: RunFolder, output: Path | None = None, released: Callable[[], OfRelease] | None = None) -> Path:
    """The report of a run with scores from its own files; reads no table but the released one. NOT private: internal.

    Args:
        output: another place than internal/report.html; not inside a release folder.
        released: gives what it says of the release, where that is made already.
    """
    schema, statement, first = of_release(folder.release) if released is None else released()
    scores, drawn = report_files(folder.scores), report_files(folder.figures)
    units = drawn.get("units")
    record = report_files(folder.convergence)
    last = [convergence_section(record)] if record else []
    last += [units_section(units)] if units else []
    promise = statement.get("guarantee", statement["budget"])
    facts = [
        ("ε", rounded_up(promise["epsilon"], 4)),
        ("δ", rounded_up(promise["delta"], 3)),
        ("release", "private" if statement["private"] else "NOT private"),
        *_facts(scores, drawn.get("files")),
    ]
    title = f"Synthetic {schema.name}"
    lost = [f"The schema does not place all values: {line}." for line in drawn.get("lost", ())]
    subject = f"the run in {folder.root.name}"
    page = _page(title, subject, facts, scores, drawn, first)
    page = replace(page, sections=[*page.sections, *last], warnings=[*page.warnings, *lost])
    target = output or folder.report
    if output is not None:
        check_output(output, "output", own=PAGES)
    write_whole(target, page.as_html(), mode=0o600)
    return target


def render_again(folder: RunFolder, output: Path | None = None) -> Path:
    """The same, of a run that ended long ago: its files may have been changed since.

    Raises:
        UserError: a file does not hold what a run writes; the place of `output` may not be written.
    """
    try:
        return render_run(folder, output)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise damaged(folder.internal) from error


def render_scores(name: str, scores: Json, drawn: Json) -> str:
    """The report of any two tables: what is known of them without a run."""
    return _page(f"Scores over {name}", "two tables", _facts(scores, drawn.get("files")), scores, drawn).as_html()


def _facts(scores: Json, named: object) -> list[tuple[str, str]]:
    rows = scores["rows"]
    facts = [] if named else [(f"{side} records", number(rows[side])) for side in ("real", "synthetic")]
    for name, title in (("mgd", "MGD (0 is perfect)"), ("tvd", "mean 2-way TVD (0 to 1)")):
        value = scores["metrics"].get(name, {}).get("score")
        if value is not None:
            facts.append((title, number(value)))
    if (covered := scores["metrics"].get("outlier_coverage", {})).get("score") is not None:
        honest = (covered.get("reading") or {}).get("honest")
        beside = "" if honest is None else f" (a second sample: {honest['value']:.0%})"
        facts.append((f"outliers and rare values covered{beside}", f"{covered['score']:.0%}"))
    return facts


def _page(
    title: str,
    subject: str,
    facts: list[tuple[str, str]],
    scores: Json,
    drawn: Json,
    first: Sequence[Section] = (),
) -> Page:
    files, first_lines = drawn.get("files"), list(scores.get("first", ()))
    notes = [first_lines.pop(0)] if first_lines and (scores.get("release") or {}).get("private") else []
    notes = [*(line for line in [in_short(scores)] if line), *notes]
    return Page(
        title,
        subject + (f", scored {files['scored']}; schema: {files['schema']}" if files else ""),
        _sections(scores, drawn, first),
        header_cards(scores),
        facts,
        files_table(files),
        notes,
        first_lines,
        not_computed(scores["metrics"]),
    )


def _sections(scores: Json, drawn: Json, first: Sequence[Section]) -> list[Section]:
    """The sections in their order; none where there is nothing to show.

    Args:
        first: what a run adds behind its scores.
    """

    def of(make: Callable[[Any], Section], part: Any) -> Section | None:
        return make(part) if part else None

    metrics, numbers = scores["metrics"], scores.get("numbers") or drawn.get("numbers")
    board = metrics.get("sdnist_kmarginal", {})
    sections = [
        of(privacy_section, scores.get("privacy") if "rows_in_distances" in (scores.get("privacy") or {}) else None),
        attacks_section(metrics),
        scores_section(scores),
        *first,
        sdnist_section(board) if board.get("score") is not None else None,
        of(axes_section, drawn.get("axes")),
        accuracy_section(drawn.get("columns", ()), drawn.get("pairs")),
        validity_section(drawn),
        numbers_section(numbers, scores.get("groups", ())) if numbers else None,
        of(correlation_section, scores.get("correlations")),
        of(pair_maps_section, drawn.get("pair_maps")),
        of(dependence_section, drawn.get("dependence")),
        of(densities_section, drawn.get("densities")),
        of(columns_section, drawn.get("columns")),
        of(pairs_section, drawn.get("pairs")),
        mgd_section(scores) if scores.get("mgd", {}).get("marginals") else None,
        of(persons_section, drawn.get("persons")),
        of(map_section, drawn.get("map")),
        of(distances_section, drawn.get("distances")),
    ]
    return [section for section in sections if section is not None]
