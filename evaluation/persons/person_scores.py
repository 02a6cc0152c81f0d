"""How much of whole persons a synthetic table keeps, between the truth and shuffled owners; NOT private.

With it: what must never occur in whole persons, and a dozen of them to look at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from evaluation.core_metrics import PersonsSettings
from evaluation.metric import Inputs, Options
from evaluation.persons.person_figures import (
    Level,
    PersonFigures,
    PersonRows,
    RowColumn,
    cuts_of,
    errors,
    person_figures,
)
from evaluation.readings.reading import Ends
from evaluation.values.value_tables import NOBODY
from mechanisms.public.arrays import Floats
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.files import JsonDict
from mechanisms.public.schema.table_schema import Schema

#: Buckets of a column where its values are compared, and columns, at most.
BUCKETS, COLUMNS = 10, 40
#: The tables whose figures stand side by side: `half` and `other` are halves of the real persons.
SIDES = ("real", "synthetic", "half", "shuffled")


@dataclass(frozen=True, eq=False)
class PersonScores:
    """The figures of a synthetic table beside those of the real one, of its halves, and of shuffled owners.

    Attributes:
        figures: of real, synthetic, half, other and shuffled.
        errors: of synthetic and shuffled against real, and of half against other: figure → mean error of its columns.
        usual_gap: the gap between records that "gaps" is the share of.
        broken: violations of the real and the synthetic table.
        people: whole synthetic persons, as of `whole_persons`.
    """

    figures: Mapping[str, PersonFigures]
    errors: Mapping[str, Mapping[str, Level]]
    usual_gap: str
    broken: Mapping[str, JsonDict]
    people: JsonDict = field(default_factory=dict)

    def part_of_shuffled(self, side: str) -> float | None:
        """The sum of the errors over that of shuffled owners; None where shuffled owners change nothing."""
        whole, own = ([v for v in self.errors[name].values() if v is not None] for name in ("shuffled", side))
        return sum(own) / sum(whole) if own and sum(whole) > 0 else None

    @property
    def score(self) -> float | None:
        """The errors of all figures over those of shuffled owners: 0 for the truth, 1 for shuffled owners.

        The sums are divided, not each figure: a figure that shuffling hardly moves (a column that no person is true
        to, the number of records) has no scale of its own, and still counts.
        """
        return self.part_of_shuffled("synthetic") if not self.reason else None

    @property
    def farthest(self) -> tuple[str, float, float] | None:
        """The column whose share of steps in which it stays the same is farthest off: its name, synthetic, real."""
        real, own = (self.figures[side].levels["same"] for side in ("real", "synthetic"))
        apart = [(n, s, r) for n, r in real.items() if r is not None and (s := own[n]) is not None]
        return max(apart, key=lambda each: abs(each[1] - each[2]), default=None)

    @property
    def reason(self) -> str:
        """Why there is no score; empty where there is one."""
        for side in ("real", "synthetic"):
            if not self.figures[side].persons:
                return f"no row of the {side} table has a subject"
        if self.part_of_shuffled("shuffled") is None:
            return "shuffled owners change nothing: there is one person, each has one record, or all rows are alike"
        return ""

    @property
    def ends(self) -> Ends | None:
        """One half of the real persons against the other, and shuffled owners."""
        is_poor, is_honest = "real rows with shuffled owners", "one half of the real persons against the other"
        return Ends(honest=self.part_of_shuffled("half"), poor=1.0, honest_is=is_honest, poor_is=is_poor)

    def to_json(self) -> JsonDict:
        """JSON values; the score first."""
        reason = {"reason": self.reason} if self.reason else {}
        levels = [
            {"figure": name, "column": column, **{s: self.figures[s].levels[name][column] for s in SIDES}}
            for name, own in self.figures["real"].levels.items()
            for column in own
        ]
        sides = ("synthetic", "half", "shuffled")
        far = [
            {"figure": name, **{s: self.errors[s][name] for s in sides}}
            for name, value in self.errors["shuffled"].items()
            if value is not None
        ]
        return {
            "score": self.score,
            **reason,
            "persons": {s: self.figures[s].persons for s in SIDES},
            "records": {s: self.figures[s].records for s in SIDES},
            "usual_gap": self.usual_gap,
            "levels": levels,
            "errors": far,
            "violations": dict(self.broken),
        }

    def drawn(self, schema: Schema | None, options: Options) -> JsonDict:
        """What a report draws; of persons, synthetic ones alone."""
        real, synthetic = self.figures["real"], self.figures["synthetic"]
        shares = {
            "records": drawn_shares(real.sizes, synthetic.sizes),
            "spans": drawn_shares(real.spans, synthetic.spans),
        }
        more = {"halves": self.part_of_shuffled("half"), "shares": shares, "people": self.people}
        return {"persons": self.to_json() | more}


def scored_persons(
    real: PersonRows,
    synthetic: PersonRows,
    *,
    most: int | None = None,
    seed: int = 0,
    label: Callable[[str, int], str] | None = None,
) -> PersonScores:
    """Score the persons of a synthetic table.

    Goal: records of one person belong together as they do in the real table. Range: from 0, perfect; 1: as real rows
    whose owners were shuffled. Reference: one half of the real persons against the other. Edge cases: a person with one
    record has no step; nobody's rows are counted, not scored; without persons, or where shuffled owners change nothing,
    no score.

    Args:
        most: records that a person may have.
        seed: of the halves, the shuffling and the persons that are shown.
        label: column and code → text, for the persons that are shown; None for the codes.
    """
    rng = np.random.default_rng(seed)
    cuts = cuts_of(real)
    half, other = real.halves(rng)
    tables = {"real": real, "synthetic": synthetic, "half": half, "other": other, "shuffled": real.shuffled(rng)}
    figures = {name: person_figures(rows, cuts) for name, rows in tables.items()}
    pairs = {"synthetic": ("real", "synthetic"), "half": ("other", "half"), "shuffled": ("real", "shuffled")}
    far = {name: errors(figures[a], figures[b]) for name, (a, b) in pairs.items()}
    broken = {name: violations(tables[name], most) for name in ("real", "synthetic")}
    people = whole_persons(synthetic, label or (lambda _, code: str(code)), seed=seed)
    return PersonScores(figures, far, cuts[0].label, broken, people)


def persons_of(inputs: Inputs) -> PersonScores:
    """The metric `persons`."""
    options, own = inputs.options, inputs.own(PersonsSettings)
    orders = options.order or (None, None)
    tables = zip((inputs.real, inputs.synthetic), inputs.bucketed(BUCKETS), options.subject or (), orders, strict=True)
    numbers = inputs.numbers
    real, synthetic = (
        PersonRows(
            np.asarray(owner, np.int64),
            _columns(table, buckets, numbers, own.fixed, _gaps(inputs)),
            None if order is None else np.asarray(order, np.float64),
        )
        for table, buckets, owner, order in tables
    )
    return scored_persons(real, synthetic, most=own.most_records, seed=options.seed, label=inputs.label)


def _columns(
    table: CodedTable,
    buckets: CodedTable,
    numbers: Mapping[str, Floats],
    fixed: Sequence[str],
    gaps: Mapping[str, int | None],
) -> tuple[RowColumn, ...]:
    """At most COLUMNS columns, the declared constants first."""
    names = sorted(table.domain.names, key=lambda name: name not in fixed)[:COLUMNS]
    return tuple(
        RowColumn(
            n, np.asarray(table.column(n)), np.asarray(buckets.column(n)), numbers.get(n), n in fixed, gaps.get(n)
        )
        for n in sorted(names, key=table.domain.index)
    )


def _gaps(inputs: Inputs) -> Mapping[str, int | None]:
    """The code of a missing value, by column."""
    if inputs.schema is not None:
        return {c.name: c.missing_code for c in inputs.schema.columns}
    columns = () if inputs.options.values is None else inputs.options.values.columns
    return {c.name: len(c.values) + len(c.specials) - 1 for c in columns if c.specials[-1:] == ("missing",)}


def violations(rows: PersonRows, most: int | None = None) -> JsonDict:
    """Those of one table, whose rows are in the order of its file; all are 0 where persons are whole.

    Rows of nobody; how often a person's rows go on behind rows of others (apart); rows that lie before the one above
    them, of the same person (out_of_order; None without an order); of each declared constant the share of the persons
    in whom it has several values, a gap being none (varying); persons with more records than they may have (beyond;
    None where no bound is declared).

    Args:
        most: records that a person may have; None for no bound.
    """
    own, owner = rows.sorted, rows.owner
    above = owner[1:] == owner[:-1]
    begins = np.ones(len(owner), bool)
    begins[1:] = ~above
    runs = int(np.count_nonzero(begins & (owner != NOBODY)))
    late = None
    if rows.order is not None:
        late = int(np.count_nonzero((rows.order[1:] < rows.order[:-1]) & above & (owner[1:] != NOBODY)))
    varying = {}
    for column in (c for c in own.columns if c.fixed):
        held = column.codes != column.gap if column.gap is not None else np.ones(len(column.codes), bool)
        person, codes = own.person[held], column.codes[held]
        changes = person[1:][(person[1:] == person[:-1]) & (codes[1:] != codes[:-1])]
        varying[column.name] = len(np.unique(changes)) / max(len(own.starts), 1)
    beyond = None if most is None else int(np.count_nonzero(own.sizes > most))
    violations = {
        "nobody": int(np.count_nonzero(owner == NOBODY)),
        "apart": runs - len(own.starts),
        "out_of_order": late,
    }
    return {**violations, "varying": varying, "beyond": beyond}


#: Persons that are shown, and of each of them records and columns, at most.
PEOPLE, RECORDS, SHOWN_COLUMNS = 12, 25, 12
#: Points of a distribution, at most.
POINTS = 30


def drawn_shares(real: NDArray[np.number], synthetic: NDArray[np.number]) -> JsonDict | None:
    """The shares of persons by a number from 0 on, of both tables, in at most POINTS groups of equal width.

    Returns:
        Labels, and a share for each of them; None where a table has no numbers.
    """
    if not len(real) or not len(synthetic):
        return None
    whole = all(bool(np.all(v == np.rint(v))) for v in (real, synthetic))
    least, most = (float(f([f(real), f(synthetic)])) for f in (np.min, np.max))
    width = (most - least + whole) / POINTS or 1.0
    width = float(np.ceil(width)) if whole else width
    count = min(int((most - least) / width) + 1, POINTS)
    groups = [np.minimum(((v - least) / width).astype(np.int64), count - 1) for v in (real, synthetic)]
    shares = [(np.bincount(g, minlength=count) / len(g)).tolist() for g in groups]
    starts = [least + i * width for i in range(count)]
    labels = [f"{s:.4g}" if whole and width == 1 else f"{s:.4g} to {s + width - whole:.4g}" for s in starts]
    return {"labels": labels, "real": shares[0], "synthetic": shares[1]}


def whole_persons(rows: PersonRows, label: Callable[[str, int], str], *, seed: int = 0) -> JsonDict:
    """Some whole persons of a synthetic table, from those with few records to those with many.

    Persons are sorted by their number of records, at random where it is the same, and taken at equal steps.

    Args:
        label: column and code → text.
    """
    own = rows.sorted
    persons = len(own.starts)
    mixed = np.random.default_rng(seed).permutation(persons)
    by_size = mixed[np.argsort(own.sizes[mixed], kind="stable")]
    taken = by_size[[int((i + 0.5) * persons / PEOPLE) for i in range(PEOPLE)]] if persons > PEOPLE else by_size
    columns = own.columns[:SHOWN_COLUMNS]
    shown = []
    for person in taken.tolist():
        start, size = int(own.starts[person]), int(own.sizes[person])
        lines = [[label(c.name, int(c.codes[i])) for c in columns] for i in range(start, start + min(size, RECORDS))]
        shown.append({"records": size, "rows": lines})
    return {"columns": [c.name for c in columns], "of": len(own.columns), "shown": shown}
