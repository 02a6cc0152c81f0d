"""From the files of a run, or the scores of two tables, to one HTML file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.files import Json, write_whole
from mechanisms.public.schema.table_schema import Schema
from pipeline.folders import PAGES, RunFolder, check_output
from pipeline.release_folder import read_release
from pipeline.report.header_cards import files_table, header_cards, in_short, not_computed
from pipeline.report.page import Page, Section, number
from pipeline.report.release_sections import (
    bounds_section,
    convergence_section,
    noise_section,
    promise_section,
    units_section,
)
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
        ("ε", f"{promise['epsilon']:.4g}"),
        ("δ", f"{promise['delta']:.3g}"),
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
    except (LookupError, TypeError, ValueError, AttributeError) as error:
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
