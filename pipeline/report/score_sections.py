"""The sections about scores: privacy, attacks, each metric beside its floor, MGD, SDNist, persons, and numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from mechanisms.public.files import Json, JsonDict
from mechanisms.public.text_table import lined_up
from pipeline.report.charts import Drawing, Line, lines
from pipeline.report.page import BOTH, LABELS, STYLES, Card, Cell, Gauge, Section, Table, Words, number
from pipeline.report.scale import ChartAxis

#: Marginals, values and cells that cost most.
MARGINALS, VALUES, CELLS = 12, 8, 8
#: What a cell of the deep dive says besides its values.
COUNTS = ("real", "synthetic", "added", "removed", "moved_out", "moved_in")
#: What each verdict means, in plain words.
MEANING = {
    "passed": "Training rows are not repeated, and not resembled, more than real rows that were set aside.",
    "failed": "The synthetic table knows its training rows better than real rows that were set aside.",
    "not judged": "Nothing is said for or against.",
}
#: Metrics whose details are a risk of two success rates.
RISKS = {"singling_out": "singling out", "linkage": "linkage of two halves of a record"}
#: Columns whose inference is listed, those at most risk; all are in scores.json.
INFERRED = 20
#: Columns and areas of SDNist that are listed, the worst first.
LISTED = 10
#: Columns of the table of scores; those without a cell are left out.
HEAD = ("metric", "score", "95 % interval", "floor", "reads as", "poor to honest", "source")
FIGURES = ("values", "missing", "mean", "std. dev.", "1 %", "25 %", "50 %", "75 %", "99 %")
NUMBERS_HEAD = ("column", "table", *FIGURES)
GROUP_HEAD = ("column", "group", "table", *FIGURES)
NOISE = "± noise"
#: Columns that a page lists; all are in scores.json.
NUMBERS_LISTED = 150


def privacy_section(privacy: Json) -> Section:
    """From the part `privacy` of scores.json."""
    verdict, head = privacy["verdict"], ("", "rows", "share", "95 % interval", "compare with")
    shown = {"verdict": verdict, "style": STYLES[verdict], "why": privacy["why"], "meaning": MEANING[verdict]}
    return Section("privacy", "Privacy against a holdout", shown | {"figures": Table(head, _figures(privacy))})


def _figures(privacy: Json) -> list[tuple[Cell, ...]]:
    names = {
        "training_rows_in_the_synthetic_table": ("training rows that stand in the synthetic table", "the next line"),
        "holdout_rows_in_the_synthetic_table": ("holdout rows that stand in the synthetic table", "nature alone"),
        "synthetic_rows_that_equal_a_training_row": ("synthetic rows that equal a training row", "the next line"),
        "holdout_rows_that_equal_a_training_row": ("holdout rows that equal a training row", "nature alone"),
    }
    rows: list[tuple[Cell, ...]] = []
    for key, (name, against) in names.items():
        if key in privacy:
            part = privacy[key]
            count = f"{part['count']:,} of {part['of']:,}"
            rows.append((name, count, f"{part['share']:.2%}", _interval(part), against))
    if (near := privacy.get("nearest_to_a_training_row")) is not None:
        asked, name = privacy["rows_in_distances"]["synthetic"], "synthetic rows nearest to a training row"
        chance = f"{near['expected']:.1%} by chance, up to {near['allowed']:.1%} in a release of ε = 1"
        rows.append((name, f"of {asked:,}", f"{near['share']:.1%}", _interval(near), chance))
    return rows


def _interval(part: Mapping[str, float]) -> str:
    return f"{part['low']:.2%} to {part['high']:.2%}"


def attacks_section(metrics: Json) -> Section | None:
    """From the metrics of scores.json; None where no attack has a score."""
    scored = {name: m["details"] for name, m in metrics.items() if m["score"] is not None and m["details"]}
    rows = [_risk(title, scored[name]) for name, title in RISKS.items() if name in scored]
    if "attribute_inference" in scored:
        columns = scored["attribute_inference"]["columns"]
        order = sorted(columns, key=lambda name: -columns[name]["risk"])
        rows += [_risk(f"inference of {name}", columns[name]) for name in order[:INFERRED]]
    member = scored.get("membership_inference")
    members = [] if member is None else _member_rows(member)
    if not rows and not members:
        return None
    shown = {
        "risks": Table(("attack", "risk", "95 % interval", "right on training units", "on the holdout's"), rows),
        "membership": Table(("membership by", "AUC", "95 % interval", "advantage", "95 % interval"), members),
        "unit": "" if member is None else member["unit"],
    }
    return Section("attacks", "Attacks", shown)


def _risk(title: str, part: Json) -> tuple[Cell, ...]:
    rates = [f"{side['successes']:,} of {side['attacks']:,}" for side in (part["training"], part["control"])]
    return (title, f"{part['risk']:.1%}", f"{part['low']:.1%} to {part['high']:.1%}", *rates)


def _member_rows(member: Json) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = []
    for name, attack in member["attacks"].items():
        parts = (attack["auc"], attack["advantage"])
        cells = [x for p in parts for x in (f"{p['value']:.3f}", f"{p['low']:.3f} to {p['high']:.3f}")]
        rows.append((name, *cells))
    rows.append(("guessing", "0.500", "", "0.000", ""))
    if bound := member.get("bound"):
        allowed = f"one unit alone at most, by ε = {bound['epsilon']:.4g}, δ = {bound['delta']:.3g}"
        rows.append((allowed, f"{bound['auc']:.3f}", "", f"{bound['advantage']:.3f}", ""))
    return rows


def scores_section(scores: Json) -> Section:
    """From the content of scores.json."""
    rows = [_score_row(m) for m in scores["metrics"].values() if m["score"] is not None]
    shown = [i for i in range(len(HEAD)) if i < 2 or any(row[i] not in (None, "") for row in rows)]
    parts = {
        "scores": Table([HEAD[i] for i in shown], [[row[i] for i in shown] for row in rows]),
        "referenced": any((m.get("floor") or {}).get("value") is not None for m in scores["metrics"].values()),
        "labelled": any((m.get("reading") or {}).get("label") for m in scores["metrics"].values()),
        "unplaced": _unplaced(scores.get("unplaced", {})),
        "sample": _sampled(scores.get("sample")),
    }
    return Section("scores", "Scores", parts)


def _score_row(m: Json) -> tuple[Cell, ...]:
    """The cells of a metric, under HEAD."""
    reading = m.get("reading") or {}
    perfect = f"{'0' if m['perfect'] == 0 else number(m['perfect'])} is perfect"
    words = reading.get("words") or perfect
    interval, label = reading.get("interval"), reading.get("label") or ""
    share = reading.get("share")
    floor = (m.get("floor") or {}).get("value")
    return (
        Words(m["title"], words),
        m["score"],
        "" if interval is None else f"{number(interval['low'])} to {number(interval['high'])}",
        floor,
        Words(label, style=LABELS.get(label, "")) if label else "",
        None if share is None else Gauge(min(max(1 - share, 0.0), 1.0)),  # empty is the poor one, full the honest one
        m["source"],
    )


def _sampled(sample: Json | None) -> str:
    if sample is None:
        return ""
    return (
        f"From a sample of {sample['rows']:,} rows of the table: {', '.join(sample['of'])}. All else counts all rows."
    )


def _unplaced(tables: Mapping[str, Any]) -> Table:
    """The values that the schema has no place for: how many, and the most frequent ones."""
    rows = []
    for name, table in tables.items():
        for column, values in table.get("values", {}).items():
            count = table["outside"].get(column, 0) + table["no_value"].get(column, 0)
            rows.append((name, column, count, ", ".join(f"{v or '(empty)'}: {n:,}" for v, n in values.items())))
    return Table(("table", "column", "values", "the most frequent"), rows)


def mgd_section(scores: Json) -> Section:
    """From the content of scores.json, where MGD has a score."""
    marginals = sorted(scores["mgd"]["marginals"], key=lambda m: -(m["aemc"] or 0.0))
    rows = [(" × ".join(m["attributes"]), m["cells"], m["aemc"], m["weight"]) for m in marginals[:MARGINALS]]
    dives = [_dive(dive) for dive in scores.get("deep_dive", [])]
    worst = Table(("marginal", "cells", "cost", "weight"), rows)
    return Section("mgd", "Inside MGD", {"worst": worst, "dives": dives})


def _dive(dive: Json) -> JsonDict:
    """The parts of the cost of one marginal, per true record; empty tables where there are none."""
    frames: Json = {} if dive["aemc"] is None else dive
    parts = [(a["part"], a["cost"], f"{a['share']:.0%}") for a in frames.get("attributes", ()) if a["cost"]]
    several = Counter(s["attribute"] for s in frames.get("slices", ()) if s["real"] or s["synthetic"])
    slices = [s for s in frames.get("slices", ()) if s["cost"] and several[s["attribute"]] > 1]  # no constants
    slices = sorted(slices, key=lambda s: -s["cost"])[:VALUES]
    values = [
        (f"{s['attribute']} = {s['value']}", *(round(s[k]) for k in COUNTS[:2]), s["cost"], f"{s['share']:.0%}")
        for s in slices
    ]
    aside = {*COUNTS, "cost", "share"}  # the others are the cell's name
    cells = [
        (", ".join(str(v) for k, v in b.items() if k not in aside), *(round(b[k]) for k in COUNTS), f"{b['share']:.1%}")
        for b in frames.get("bins", ())[:CELLS]
    ]
    return {
        "marginal": dive["marginal"],
        "cost": dive["aemc"],
        "parts": Table(("part", "cost", "share"), parts),
        "worst_values": Table(("value", "real", "synthetic", "cost", "share"), values),
        "cells": Table(("cell", *(name.replace("_", " ") for name in COUNTS), "share"), cells),
    }


def sdnist_section(metric: Json) -> Section:
    """From the metric's part of scores.json, where it has a score."""
    details = metric["details"]
    floor = [(f"{each['share']:.0%} of the real rows", each["score"]) for each in details["subsamples"]]
    floor += [("this table", metric["score"]), ("independent columns", details["independent"])]
    floor.sort(key=lambda row: -row[1])
    areas = [(each["area"], each["score"], each["baseline"]) for each in details["areas"][:LISTED]]
    columns = [(each["column"], each["score"]) for each in details["columns"][:LISTED]]
    shown = {
        "score": metric["score"],
        "pairs": details["pairs"],
        "by": details["by"],
        "floor": Table(("table", "score"), floor),
        "columns": Table(("column", "score"), columns),
        "areas": Table((details["by"], "score", "40 % of the real rows"), areas),
        "matches": _matches(details["matches"]),
    }
    return Section("sdnist", "SDNist", shown)


def _matches(matches: Json) -> list[str]:
    """Real records that the synthetic table shows."""
    lines = [
        f"{matches['exact']:,} of the {matches['unique']:,} real records that no other one equals stand in the table."
    ]
    if matches["quasi"]:
        alike = "" if matches["agreeing"] is None else f"; they agree in {matches['agreeing']:.0%} of the other columns"
        lines.append(f"{matches['apparent']:,} are unique in both by {', '.join(matches['quasi'])}{alike}.")
    return lines


#: What a figure is; {0} stands for its column, {1} for the usual gap.
LEVELS = {
    "records": "records per person",
    "same": "{0}: the same as before, share of steps",
    "gaps": "next record {1} later (of dates: days, of times: seconds), share of steps",
    "likeness": "{0}: share of variance between persons",
    "distinct": "{0}: different values per person",
    "spans": "from a person's first record to the last (likewise)",
}
ERRORS = {
    "same": "how often columns stay the same from a record to the next",
    "likeness": "likeness of numbers within persons",
    "next": "what follows what: pairs of a value and the person's next one",
    "gaps": "gaps between records",
    "spans": "from first to last record",
    "records": "how many records a person has",
    "distinct": "how many values of a column a person has",
    "values": "how many persons have each value",
    "constants": "persons by each of their constants",
    "pairs": "persons by two of constants and number of records",
}
BROKEN = {
    "nobody": "rows without a person",
    "apart": "times that a person's rows go on behind those of others",
    "out_of_order": "rows that lie before the one above them",
    "beyond": "persons with too many records",
}
#: Rows of figures before the rest is folded away.
SHOWN = 24


def persons_section(drawn: Json) -> Section:
    """From the part `persons` of figures.json."""
    head = ("", "real", "synthetic", "other half", "owners shuffled")
    sides = ("real", "synthetic", "half", "shuffled")
    rows: list[tuple[Cell, ...]] = [("persons", *(drawn["persons"][s] for s in sides))]
    varying = [drawn["violations"][side]["varying"] for side in ("real", "synthetic")]
    fixed = {name for name in varying[1] if not varying[0][name] and not varying[1][name]}
    rows += [
        (LEVELS[each["figure"]].format(each["column"], drawn["usual_gap"]), *(each[s] for s in sides))
        for each in drawn["levels"]
        if each["column"] not in fixed
    ]
    far: list[tuple[Cell, ...]] = [(ERRORS[e["figure"]], *(e[s] for s in sides[1:])) for e in drawn["errors"]]
    far.append(("all, as a part of what shuffled owners lose", drawn["score"], drawn["halves"], 1.0))
    titles = {"records": "Records per person", "spans": "From first to last record"}
    shares = {n: s for n, s in drawn["shares"].items() if s}
    people = drawn["people"]
    cards = [_person(i, each, people["columns"], fixed) for i, each in enumerate(people["shown"], 1)]
    parts = {
        "figures": Table(head, rows),
        "first": SHOWN,
        "errors": Table((("distance from the real table"), *head[2:]), far),
        "legend": BOTH,
        "charts": [Card(titles[n], _distribution(s, titles[n])) for n, s in shares.items()],
        "broken": _broken(drawn["violations"]),
        "people": cards[::2],  # ordered by their records: some of each number
        "more": cards[1::2],
        "left_out": people["of"] - len(people["columns"]),
    }
    return Section("persons", "Persons", parts)


def _distribution(shares: Json, title: str) -> Drawing:
    """The shares of persons of both tables over one axis."""
    most = max([*shares["real"], *shares["synthetic"], 1e-9])
    series = [Line(style, side, list(enumerate(shares[side])), marked=True) for style, side in BOTH]
    up = ChartAxis(0.0, most, ((0.0, "0"), (most, f"{most:.0%}")))
    across = ChartAxis.named(shares["labels"])
    return lines(series, across, up, label=f"Shares of persons: {title}", width=340, height=190)


def _broken(violations: Json) -> Table:
    """What must be 0 in a table of whole persons."""
    real, synthetic = violations["real"], violations["synthetic"]
    rows: list[tuple[Cell, ...]] = [
        (words, real[name], synthetic[name]) for name, words in BROKEN.items() if synthetic[name] is not None
    ]
    rows += [
        (f"{n}: share of persons in whom it varies", real["varying"][n], v) for n, v in synthetic["varying"].items()
    ]
    return Table(("to be 0 in the synthetic table", "real", "synthetic"), rows)


def _person(number: int, person: Json, columns: Sequence[str], fixed: Collection[str]) -> Card:
    """The rows of one synthetic person in their order; what is constant in all of them stands above."""
    records, rows = person["records"], person["rows"]
    note = f"{records} record{'s'[: records != 1]}" + (f", the first {len(rows)} here" if len(rows) < records else "")
    note += "".join(f"; {n} {v}" for n, v in zip(columns, rows[0], strict=True) if n in fixed)
    moving = [i for i, name in enumerate(columns) if name not in fixed]
    own = [tuple(row[i] for i in moving) for row in rows]
    return Card(f"Person {number}", Table(tuple(columns[i] for i in moving), own), note)


def numbers_section(numbers: Sequence[Json], groups: Sequence[Json] = ()) -> Section:
    """From the parts `numbers` and `groups` of scores.json."""
    by = dict.fromkeys(each["by"] for each in groups)
    listed_groups = {name: [e for e in groups if e["by"] == name][: 2 * NUMBERS_LISTED] for name in by}
    parts = [(name, Table(GROUP_HEAD, _number_rows(own, "column", "group"))) for name, own in listed_groups.items()]
    listed = min(len(numbers), NUMBERS_LISTED)
    shown = {
        "summaries": Table(NUMBERS_HEAD, _number_rows(numbers[:NUMBERS_LISTED], "column")),
        "groups": parts,
        "beyond": beyond_bounds(numbers),
    }
    return Section("numbers", "Numbers and dates", shown | {"listed": listed, "columns": len(numbers)})


def beyond_bounds(numbers: Sequence[Json]) -> list[str]:
    """Of which columns the real table holds values beyond the bounds, which the table shows as the bounds."""
    shares = {each["column"]: (each["real"] or {}).get("beyond") or 0.0 for each in numbers}
    return [
        f"{name}: {f'{share:.1%}' if share >= 0.001 else 'less than 0.1%'} of the real values lie beyond the schema's "
        "bounds, and count here as the bounds"
        for name, share in shares.items()
        if share
    ]


def _number_rows(parts: Sequence[Json], *names: str) -> list[tuple[str, ...]]:
    """Two or three rows of each part, as texts.

    Args:
        names: the keys of the first cells.
    """
    rows: list[tuple[str, ...]] = []
    for each in parts:
        first = tuple(str(each[name]) for name in names)
        rows += [(*first, side, *_number_cells(each[side])) for side in ("real", "synthetic") if each[side] is not None]
        if (error := each["mean_standard_error"]) is not None:
            mean = (each["real"] or each["synthetic"])["mean"]
            errors = [_spread(mean, e) for e in each.get("quantile_standard_errors") or [None] * 5]
            rows.append((*first, NOISE, "", "", _spread(mean, error), "", *errors))
    return rows


def _number_cells(own: Json) -> tuple[str, ...]:
    missing, mean = "" if own["missing"] is None else f"{own['missing']:.1%}", own["mean"]
    return (f"{own['count']:,}", missing, _value(mean), _spread(mean, own["stddev"]), *map(_value, own["quantiles"]))


def _value(value: Cell) -> str:
    """A value of a column: one of four digits may be a year, and has no comma."""
    return number(value).replace(",", "" if isinstance(value, int | float) and abs(value) < 9999.5 else ",")


def _spread(mean: object, spread: float | None) -> str:
    """A deviation beside a mean; of dates (kept in days) and times (kept in seconds), whose mean is a text, in days."""
    if spread is None or math.isnan(spread) or not isinstance(mean, str):
        return number(spread)
    return f"{number(spread if len(mean) == len('2024-01-31') else spread / 86_400)} days"


def numbers_lines(numbers: Sequence[Json], groups: Sequence[Json] = ()) -> list[str]:
    """The same for a terminal; empty without columns of numbers."""
    rows = _number_rows(numbers, "column")
    lines = [*lined_up([NUMBERS_HEAD, *rows], left=0), *beyond_bounds(numbers)] if numbers else []
    for name in dict.fromkeys(each["by"] for each in groups):
        rows = _number_rows([e for e in groups if e["by"] == name], "column", "group")
        lines += [f"by {name}:", *lined_up([GROUP_HEAD, *rows], left=0)]
    return lines
