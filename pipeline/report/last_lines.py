"""What a person reads at the end of a run, and of a scoring."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from evaluation.metrics import ACCURACIES, ON_TOP
from evaluation.outcome import Outcome, Reference
from evaluation.readings.reading import figure
from evaluation.score import Scorecard
from mechanisms.public.files import JsonDict
from mechanisms.public.release import answered_scores, not_ours_lines
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.formats import persons_of
from mechanisms.public.tables.losses import beyond, loss_lines
from mechanisms.public.tables.persons import persons_in_words
from mechanisms.public.units import bound_in_words
from pipeline.console import WIDTH, folded, labelled
from pipeline.folders import REHEARSAL
from pipeline.report.page import farthest, lost_relations
from pipeline.report.score_sections import numbers_lines
from pipeline.scores.first_look import OFF
from pipeline.statement.statement import NO_HOLDOUT
from pipeline.statement.words import start_named, words_of
from pipeline.version import __version__

if TYPE_CHECKING:
    from pipeline.report.answer_noise import Coverage
    from pipeline.stages import Run

#: Lines of the promise; the statement has it whole.
PROMISE = 2
#: The order in which accuracies are said.
WAYS = {name: ACCURACIES[name] for name in ("anita_2way", "anita_1way", "anita_3way")}
#: What names columns and pairs.
NAMING = (*WAYS, "dependence")
#: Said where nothing can tell whether the table knows its rows.
UNTRIED = "not tested: there is no holdout; evaluation.holdout=0.2 sets one aside"
#: A column that loses more of its values than this is told before all that may be left out.
MANY_LOST = 0.01
#: A score of persons that is as that of shuffled owners, 1, or worse.
SHUFFLED = 0.98
#: The column in which persons are farthest from real ones is named where the share of steps differs by so much.
UNLIKE = 0.2


def summary(card: Scorecard) -> str:
    """The scores, and the numbers of both tables beside each other: of a command that exists to print them."""
    lines = [*scored_lines(card), *numbers_lines(card.numbers, card.groups)]
    scored = {name: outcome for name, outcome in card.outcomes.items() if outcome.score is not None}
    lines += [f"{name}: {warning}" for name, o in scored.items() for warning in getattr(o.result, "warnings", ())]
    return "\n".join(lines)


def scored_lines(card: Scorecard, *, listed: bool = False) -> list[str]:
    """The scores on a few lines, the verdict first; those without a line of their own before all others if listed."""
    more = {name: outcome for name, outcome in card.outcomes.items() if name not in ON_TOP}
    scored = {name: outcome for name, outcome in more.items() if outcome.score is not None and name not in WAYS}
    plain = {name: outcome for name, outcome in scored.items() if not getattr(outcome.result, "words", "")}
    figures = [f"{name} {figure(o.score)}" + (f" ({f[2:]})" if (f := _floor(o)) else "") for name, o in plain.items()]
    few = [", ".join(figures[i : i + 2]) for i in range(0, len(figures), 2)]  # a line of a narrow console
    lines = [
        *([] if card.privacy is None else card.privacy.lines),
        *card.notices,
        *_accuracy(card),
        *(few if listed else ()),
    ]
    if "mgd" in card.outcomes:
        own, floor = card.mgd, _floor(card.outcomes["mgd"])
        shown = "undefined" if own.score is None else figure(own.score)
        lines += [f"MGD {shown} (0 is perfect{floor}) over {len(own.marginals)} marginals"]
    means = [
        f"{name} {figure(family['mean'])}"
        + (f" ({f[2:]})" if name == "2-way" and (f := _floor(card.outcomes["tvd"])) else "")
        for name, family in card.tvd.items()
        if isinstance(family, dict)
    ]  # a reference is that of the metric's score, which is of pairs
    lines += [f"mean total variation distance (0 to 1): {', '.join(means)}"] if means else []
    lines += [words + _label(o) for o in scored.values() if (words := getattr(o.result, "words", ""))]
    lines += [] if listed else few
    lines += [f"no {name}: {outcome.reason}" for name, outcome in card.outcomes.items() if outcome.score is None]
    return lines


def _accuracy(card: Scorecard) -> list[str]:
    """The accuracy of pairs, columns and triples, a second sample's in brackets; relations lost; the farthest."""
    scored = {words: o for name, words in WAYS.items() if (o := card.outcomes.get(name)) and o.score is not None}
    ends = [None if o.reading is None else o.reading.ends.honest for o in scored.values()]
    own = [
        f"{words} {o.score:.1%}{'' if end is None else f' ({end:.1%})'}{_label(o).replace(';', '')}"
        for (words, o), end in zip(scored.items(), ends, strict=True)
    ]
    baseline = " (sampling baseline)" if set(ends) - {None} else ""
    details = {name: o.result.to_json() for name, o in card.outcomes.items() if o.score is not None and name in NAMING}
    far, gone = farthest(details), lost_relations(details)
    lines = [f"accuracy{baseline}: {', '.join(own)}"] if own else []
    pairs, dependence = (card.outcomes.get(name) for name in ("anita_2way", "dependence"))
    pairs_hold = pairs is not None and not _weak(pairs)  # as where most of them are unrelated
    if pairs_hold and dependence and dependence.score is not None and _weak(dependence):
        lines += [f"of what columns tell about each other {dependence.score:.0%} is kept: weak"]
    lines += [f"farthest from the real table: {', '.join(far)}"] if far else []
    return [*lines, f"relations of which much is lost: {', '.join(gone)}"] if gone else lines


def _weak(outcome: Outcome) -> bool:
    """Whether the score is nearer to that of unrelated columns than to a second sample's."""
    return outcome.label in {"weak", "worse than unrelated columns"}


def _label(outcome: Outcome) -> str:
    """How the score reads, after a semicolon; empty where nothing tells."""
    return f"; {outcome.label}" if outcome.label else ""


def _floor(outcome: Outcome) -> str:
    """What two samples of the real rows score against each other, measured or by a formula, and the label."""
    label = _label(outcome)
    for name, words in (("floor", "floor"), ("expected", "a sample's is")):
        reference = outcome.references.get(name)
        if isinstance(reference, Reference):
            return f"; {words} {figure(reference.value)}{label}"
    return label


def where_to_look(done: Run, *, tells: bool, listed: bool = False) -> list[list[str]]:
    """The lines of what was made, what it cost, and where it lies; how good it is where that may be told.

    Args:
        tells: whether the lines may hold what saw rows.
        listed: whether a person listed the metrics: these come first then.
    """
    from pipeline.inference.decided import decided  # a scoring needs none of these
    from pipeline.inference.relations import in_words
    from pipeline.report.answer_noise import cell_lines, coverage, digits_drawn

    statement, folder = done.statement, done.folder
    words = words_of(statement.to_json())
    epsilon, delta = statement.guarantee["epsilon"], statement.guarantee["delta"]
    promise = (
        f"private: {bound_in_words(epsilon, delta)} for {words['unit']} ({statement.neighbouring})"
        if statement.private
        else "NOT PRIVATE: " + "; ".join(words["reasons_not_private"])
    )
    covered = coverage(done.measurements, done.schema, start=start_named(statement.to_json()))
    pairs = decided(done.measurements, done.schema)
    persons = done.table.with_name(persons_of(done.table.name))
    share = statement.to_json()["holdout"]
    aside = "" if share == NO_HOLDOUT else f"; {share:g} of the units were set aside"
    second = f"release/{persons.name}, " if persons.is_file() else ""
    whose = "" if done.persons is None else f" of {done.persons:,} persons"
    table = f"release/{done.table.name} ({done.rows:,} rows{whose}{aside}), {second}and release/statement.html"
    lost, many = _lost(done) if tells else [], beyond(done.losses, MANY_LOST)
    lines = textwrap.wrap(promise, WIDTH, max_lines=PROMISE, placeholder=" …", subsequent_indent="  ")
    lines += [labelled("folder", here(folder.root))]
    lines += [labelled("publish" if statement.private else "do NOT publish", table)]
    lines += [labelled("keep", f"internal/{folder.report.name} (NOT private)")] if done.scores else []
    parts = [
        ("warning", words["warnings"]),
        ("lost", lost if many else []),
        ("warning", release_warnings(done, covered)),
        *(_quality(done, listed) if tells else ()),
        ("columns", [covered.in_words]),
        ("", cell_lines(done.schema, covered.noisy, statement.unit["column"])[:1]),
        ("persons", _persons(done)),
        ("pairs", [line for line in [pairs.in_words] if line]),
        ("better", pairs.better(statement.unit["max_records"])),
        ("lost", [] if many else lost),
        ("related", [line for line in [in_words(done.relations)] if line]),
        ("drawn", digits_drawn(done.schema)),
        ("accepted", [f"{score}: {figure}" for score, figure in answered_scores(statement.events)]),
        ("budget", [f"as booked: {words['running_total']}"] if words["running_total"] else []),
        ("left out", done.left_out),
    ]
    return [lines, *(folded(label, words) for label, each in parts for words in each)]


def release_warnings(done: Run, covered: Coverage | None = None) -> list[str]:
    """What a person must know of a release, which follows from it alone.

    Args:
        covered: that of the last lines, which say more of columns; None: no last lines follow.
    """
    from pipeline.report.answer_noise import coverage, digits_drawn, drowned_lines

    own = covered or coverage(done.measurements, done.schema, start=start_named(done.statement.to_json()))
    parts = [f"not covered by our audit: {part}" for part in not_ours_lines(done.statement.not_ours)]
    parts += [*own.warnings, *drowned_lines(done.measurements), *discovered_names(done.schema)]
    if covered:
        return parts
    return [*parts, *([f"columns: {own.in_words}"] if own.noisy else []), *digits_drawn(done.schema)]


def run_facts(done: Run, *, scored: bool) -> JsonDict:
    """The same for programs: what stands in the release, and where files lie.

    Args:
        scored: whether the scores, which saw rows, are among it.
    """
    facts, folder = done.statement.to_json(), done.folder
    words = words_of(facts)
    cards = {} if done.scores is None else done.scores.outcomes
    return {
        "version": __version__,
        "private": done.statement.private,
        "reasons_not_private": list(words["reasons_not_private"]),
        **{name: facts[name] for name in ("guarantee", "neighbouring", "unit")},
        "folder": str(folder.root.absolute()),
        "table": str(done.table.absolute()),
        "rows": done.rows,
        "noisy_marginals": len(done.measurements.answers),
        "report": str(folder.report.absolute()) if cards else None,
        "warnings": [*words["warnings"], *done.left_out],
        **({"scores": {name: outcome.score for name, outcome in cards.items()}} if scored else {}),
    }


def _persons(done: Run) -> list[str]:
    """What was measured of persons; the next line counts the pairs with a constant that it tells."""
    count, unit = len(done.measurements.persons), done.schema.rules.unit
    if unit is None or not count:
        return []
    line = f"{count} histogram{'s' * (count > 1)} of persons measured, in which each counts once"
    fixed = f"; {', '.join(unit.constant)}, constant in a person, stand in these alone"
    return [line + (fixed if unit.constant else "")]


def discovered_names(schema: Schema) -> list[str]:
    """That discovered texts, which the release holds, may name persons."""
    discovered = [c for c in schema.columns if "values" in c.discovered]
    every = [(c.name, persons_in_words(c.name, c.values, "discovered")) for c in discovered]
    return [f"{name!r}: {remark}; leave_out it" for name, remark in every if remark]


def rehearsed(done: Run) -> str:
    """What a person reads at the end of a rehearsal: that it went the whole way, and where to look; scores if asked."""
    from pipeline.report.answer_noise import coverage

    covered, folder = coverage(done.measurements, done.schema), done.folder
    measured = f"{covered.columns - len(covered.unmeasured):,} of {covered.columns:,}"
    lines = ["", f"the path works: every column was read and written, {measured} were measured"]
    lines += [labelled("made up", f"{here(folder.root / REHEARSAL)} (nobody's rows)")]
    lines += [labelled("look at", f"{here(folder.release / 'statement.html')} (NOT PRIVATE: the noise is fixed)")]
    lines += [
        labelled(
            "next",
            "python -m pipeline plan plan.rows=N with these settings tells which columns are useful at how many rows",
        )
    ]
    scores = [] if done.scores is None else scored_lines(done.scores)
    return "\n".join([*lines, *(line for words in scores for line in folded("made up", words))])


def _lost(done: Run) -> list[str]:
    """What saw rows: values that are lost, in one sentence; the report has all."""
    losses = loss_lines(done.losses)
    others = f"{len(losses) - 1} more column{'s' * (len(losses) > 2)}"
    more = f"; {others}: python -m pipeline check" if len(losses) > 1 else ""
    return [f"{losses[0]} (NOT private){more}"] if losses else []


def _quality(done: Run, listed: bool) -> list[tuple[str, list[str]]]:
    """What saw rows: how good the table is, and whether an attack was tried."""
    if done.scores is None:
        return []
    verdict = done.scores.privacy
    untried = verdict is None or "holdout" not in verdict.rows
    tried = [UNTRIED] if untried or verdict is None else list(verdict.lines)
    card = replace(done.scores, privacy=None)
    quality = scored_lines(card, listed=True) if listed else [*card.notices, *_accuracy(card)]
    first, *others = [*quality, *(() if untried else tried)] if listed else quality or ["no accuracy was asked for"]
    others += _whole_persons(done.scores)
    shown = [("quality", [f"NOT private: {first}"]), ("", others)]
    return [*shown, *(() if listed and not untried else [("memory", tried)])]


def _whole_persons(card: Scorecard) -> list[str]:
    """That there are far more or fewer persons, or no better ones than shuffled owners, or their farthest column."""
    outcome = card.outcomes.get("persons")
    if outcome is None or outcome.score is None:
        return []
    own, real = (outcome.result.figures[side] for side in ("synthetic", "real"))
    most = real.persons + card.rows["real"] - real.records  # rows without an id may be persons of their own
    far = not (1 - OFF) * real.persons <= own.persons <= (1 + OFF) * most
    many = [f"persons: far from the real number: {own.persons:,} (real {real.persons:,})"] if far else []
    if outcome.score >= SHUFFLED:
        return [*many, "persons: no better than shuffled owners"]
    column = outcome.result.farthest
    if column is None or abs(column[1] - column[2]) < UNLIKE:
        return many
    steps = f"{column[0]} is as in the record before in {column[1]:.0%} of steps (real: {column[2]:.0%})"
    return [*many, f"persons: {steps}"]


def here(path: Path) -> str:
    """A path as one names it from the current folder, where it lies inside."""
    own = path.absolute()
    return str(own.relative_to(Path.cwd())) if own.is_relative_to(Path.cwd()) else str(path)
