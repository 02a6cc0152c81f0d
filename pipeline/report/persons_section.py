"""The section of whole persons: what holds their records together, and a dozen synthetic ones to look at."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from mechanisms.public.json_values import Json
from pipeline.report.charts import Drawing, Line, lines
from pipeline.report.page import BOTH, Card, Cell, Section, Table
from pipeline.report.scale import ChartAxis

#: What a figure is; {0} stands for its column, {1} for the usual gap.
LEVELS = {
    "records": "records per person",
    "same": "{0}: the same as before, share of steps",
    "gaps": "next record {1} later, share of steps",
    "likeness": "{0}: share of variance between persons",
    "distinct": "{0}: different values per person",
    "spans": "from a person's first record to the last",
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
