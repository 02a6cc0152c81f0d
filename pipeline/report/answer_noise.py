"""Signal beside noise of each released answer, what helps where noise drowns a column, and what a bound C loses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mechanisms.public.arrays import Floats
from mechanisms.public.designs.deviations import ABSOLUTE, side_error
from mechanisms.public.designs.pair_view import MOST_PAIRS, passed_over_line
from mechanisms.public.domain import Clique
from mechanisms.public.errors import first_few
from mechanisms.public.persons.person_questions import Trait, by_label, questions_of
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements, NoisyMarginal
from mechanisms.public.rules.fine_columns import varied_columns
from mechanisms.public.schema.code_labels import written_bound
from mechanisms.public.schema.column import ORDERED_KINDS, Column
from mechanisms.public.schema.fine_cells import CROWDED, bins_of_several, plain_edges
from mechanisms.public.schema.spellings import digit_lines, zip_fields
from mechanisms.public.schema.table_schema import Schema, as_a_column
from pipeline.inference.decided import pairs_of_columns
from pipeline.inference.marginal_estimates import marginal_estimate as counts_of
from synthesis.consistency.agree import estimate_total
from synthesis.consistency.residual_parts import completed

#: Bounds C that the report compares, besides that of the run.
BOUNDS = (1, 2, 3, 5, 10, 20, 50, 100)
#: Up to so many records of a unit, each number has a bar of its own; then one for each doubling.
SINGLE = 24
#: Columns that a sentence names; the rest is counted.
NAMED = 8
#: Noise that is expected to put so many of the records into wrong counts leaves a column mostly noise, even where a few
#: counts stand out by luck: what is misplaced of equal counts of two standard deviations each.
MISPLACED = 0.2
#: A column is nearly constant where one value holds so much of the records, and two standard deviations less so much;
#: of a bin that holds CROWDED of them AT_LEAST.
CONSTANT, SURELY, AT_LEAST = 0.95, 0.9, 0.8


def signal_to_noise(measurements: Measurements) -> list[tuple[NoisyMarginal, float, float]]:
    """Every answer of a release, residuals made whole, the weakest first; computed from the release alone.

    Beside each the mean of its counts in records, where negative ones are 0, and the share of them above two standard
    deviations of its noise.
    """
    rows = []
    for answer in completed(measurements).answers:
        values = answer.values if answer.values.size else np.zeros(1)
        rows.append((answer, float(np.clip(values, 0, None).mean()), float((values > 2 * answer.stddev).mean())))
    return sorted(rows, key=lambda row: row[2])


def drowned_lines(measurements: Measurements) -> list[str]:
    """A sentence where half of the marginals or more tell next to nothing; computed from the release alone.

    A marginal drowns where the expected Σ |noise| of its best answer is at least twice the noisy number of records:
    more than two tables without anything in common are apart. `plan` counts the same with `plan.rows`.
    """
    total = estimate_total(measurements)
    noise: dict[Clique, float] = {}  # of a marginal that was measured in several rounds: where it is least
    for a in completed(measurements).answers:
        own = a.query.rows * a.mean_abs
        noise[a.clique] = min(own, noise.get(a.clique, own))
    lost = [clique for clique, own in noise.items() if own >= 2 * total]
    if not noise or 2 * len(lost) < len(noise):
        return []
    about = f"about {round(total):,} records by the noisy answers"
    fewer = "fewer marginals (selection=oneway)" if any(len(c) > 1 for c in noise) else "fewer columns"
    return [
        f"noise drowns {len(lost)} of the {len(noise)} marginals measured (expected Σ |noise| at least twice the "
        f"{about}): the synthetic table shows little but noise there. A larger privacy.epsilon, {fewer} "
        f"or coarser bins; plan plan.rows={max(round(total), 1)} tells before anything is spent"
    ]


#: What is said of pairs where nothing in the release asked about them.
NEVER_PAIRS = (
    "selection=oneway, or a list of single columns, measures none at any privacy.epsilon: selection=auto may. "
)


class Crowded(NamedTuple):
    """A bin of several values that holds nearly all records: its label, its share of them, and its two edges."""

    column: str
    bin: str
    share: float
    low: str
    high: str


@dataclass(frozen=True)
class Coverage:
    """Which columns, and which pairs of them, the answers of a release tell about.

    Attributes:
        columns: how many columns there are to measure.
        pairs: how many pairs of them.
        pairs_measured: pairs that lie in a measured marginal.
        unmeasured: columns that lie in none.
        noisy: columns of whose records fewer than half lie in counts above two standard deviations of their noise,
            or of which noise is expected to misplace MISPLACED.
        sparse: other columns of which that is so of the records that have a value.
        constant: columns with one value that holds CONSTANT of the records or more, and its share.
        crowded: columns with a bin of several values that holds CROWDED of the records or more.
        start: the public table from whose rows the synthetic ones started, or None.
        pairs_asked: whether the release asked how far pairs are from independence.
    """

    columns: int
    pairs: int
    pairs_measured: int
    unmeasured: tuple[str, ...]
    noisy: tuple[str, ...] = ()
    sparse: tuple[str, ...] = ()
    constant: tuple[tuple[str, float], ...] = ()
    crowded: tuple[Crowded, ...] = ()
    start: str | None = None
    pairs_asked: bool = True

    @property
    def in_words(self) -> str:
        """How many columns were measured, and which of them tell little."""
        measured = self.columns - len(self.unmeasured)
        line = f"{measured:,} of {self.columns:,} measured"
        few = "all" if len(self.noisy) == measured else f"{len(self.noisy):,}"
        line += f", {few} mostly noise: {first_few(self.noisy, NAMED)}" if self.noisy else ", none mostly noise"
        cure = " (a larger privacy.epsilon, fewer columns or coarser bins would help)"
        line += cure if self.noisy and 2 * len(self.noisy) >= measured else ""
        line += f"; mostly noise where not empty: {first_few(self.sparse, NAMED)}" if self.sparse else ""
        almost = [f"{name} ({share:.0%})" for name, share in self.constant]
        return line + (f"; one value holds nearly all records of {first_few(almost, NAMED)}" if almost else "")

    @property
    def warnings(self) -> list[str]:
        """What the synthetic table cannot show, a sentence each."""
        lines = []
        if names := self.unmeasured:
            as_public = f", and stay as in {self.start!r}" if self.start else ""
            lines.append(
                f"nothing was measured of {first_few(names, NAMED)}: their synthetic values tell nothing about "
                f"the people{as_public}. Where selection.marginals is a list, add [COLUMN] for each"
            )
        if self.pairs and not self.pairs_measured:
            shown = f"what the public table {self.start!r} shows" if self.start else "no more than the schema says"
            cure = "Pairs come with a larger privacy.epsilon, a smaller privacy.max_records, coarser bins"
            if not self.pairs_asked:  # whatever ε is
                cure = passed_over_line(self.pairs, ()) if self.pairs > MOST_PAIRS else f"{NEVER_PAIRS}{cure}"
            lines.append(
                f"no pair of columns was measured: of how they depend on each other the synthetic table shows {shown}. "
                f"{cure}, or a list in selection.marginals"
            )
        if self.crowded:
            bins = [f"{c.column} ({c.bin}: {c.share:.0%})" for c in self.crowded]
            first = self.crowded[0]
            lines.append(
                f"one bin holds nearly all records of {first_few(bins, NAMED)}: inside it, pairs tell nothing apart. "
                f"bins: {{edges: […]}} in the schema with several edges from {first.low} to {first.high}"
                f"{f' for {first.column}, and so on' if len(bins) > 1 else ''}, or bins: discover, tells more"
            )
        return lines


def coverage(measurements: Measurements, schema: Schema | None = None, *, start: str | None = None) -> Coverage:
    """Columns of one value only need no measurement, and are not counted, and a column and its fine cells are one.

    Computed from the release alone.

    Args:
        schema: the released one, which tells a bin from a single value; without it each code counts as a value.
        start: the public table that its statement names as the start of the rows.
    """
    names = varied_columns(measurements.domain)
    columns = {n for a in measurements.answers for n in a.clique}
    every, inside, held, never = pairs_of_columns(measurements, schema)
    unmeasured = tuple(n for n in names if n not in columns)
    own = {n: schema[n].missing_code for n in names if as_a_column(schema, n)} if schema is not None else {}
    noisy, sparse, most = _one_way(measurements, {n: own.get(n) for n in names if n in columns})
    if schema is not None and schema.rules.unit is not None:
        of_units = _of_persons(measurements, schema)
        names += [n for n in schema.rules.unit.constant if schema[n].size > 1]
        unmeasured += tuple(n for n in schema.rules.unit.constant if n not in of_units)
        noisy += tuple(n for n, is_noise in of_units.items() if is_noise)
    crowded, constant = [], []
    for name, (code, share, least) in most.items():
        alone = schema is None or name in own  # a code of other columns holds several values or columns
        bins = bins_of_several(schema[name]) if schema is not None and alone else None
        if schema is not None and bins is not None and code < len(bins) and bins[code]:
            if share >= CROWDED and least >= AT_LEAST and not schema[name].one_way_only:
                crowded.append(_crowded(schema, name, code, share))
        elif share >= CONSTANT and least >= SURELY and alone:
            constant.append((name, share))
    constants, asked = (tuple(constant), tuple(crowded)), measurements.distances is not None
    pairs = len(every) + len(held) + len(never)
    return Coverage(len(names), pairs, len(inside) + len(held), unmeasured, noisy, sparse, *constants, start, asked)


def _crowded(schema: Schema, name: str, code: int, share: float) -> Crowded:
    column = schema[name]
    edges = plain_edges(column)
    assert edges is not None
    whole = [written_bound(column, int(e)) for e in edges[code : code + 2]] if column.kind != "float" else []
    low, high = (str(e) for e in whole or [f"{e:.10g}" for e in edges[code : code + 2]])
    return Crowded(name, column.labels[code], share, low, high)


def _one_way(
    measurements: Measurements, names: Mapping[str, int | None]
) -> tuple[tuple[str, ...], tuple[str, ...], dict[str, tuple[int, float, float]]]:
    """Columns that are mostly noise, those that are where not empty, and the fullest code of all but the first.

    By the most precise counts of each. Of that code: its share of the records, and the share two standard deviations
    below.

    Args:
        names: column → its code of what is missing, if it has one.
    """
    own: dict[Clique, NoisyMarginal] = {}
    for a in completed(measurements).answers:
        if isinstance(a.query, Identity) and (a.clique not in own or a.stddev < own[a.clique].stddev):
            own[a.clique] = a
    total = max(estimate_total(measurements), 1.0)
    noisy, sparse = list[str](), list[str]()
    fullest: dict[str, tuple[int, float, float]] = {}
    for name, gap in names.items():
        answer = own.get((name,)) or counts_of(measurements, (name,))
        if answer is None:
            continue
        error = answer.stddev if isinstance(answer, NoisyMarginal) else answer.errors
        shown = np.where(answer.values > 2 * error, answer.values, 0.0)
        if _mostly_noise(answer.values, error, total):
            noisy.append(name)
            continue
        if gap is not None:
            there, errors = (np.delete(v, gap) for v in np.broadcast_arrays(answer.values, error))
            sparse += [name] if _mostly_noise(there, errors, max(float(there.sum()), 1.0)) else []
        most = int(np.argmax(shown))
        least = float(shown[most]) - 2 * float(np.broadcast_to(error, shown.shape)[most])
        whole = max(total, float(shown.sum()))  # a total that noise made small makes no share large
        fullest[name] = (most, float(shown[most]) / whole, least / whole)
    return tuple(noisy), tuple(sparse), fullest


def _mostly_noise(counts: Floats, error: Floats | float, total: float) -> bool:
    """Whether counts with these standard errors tell next to nothing of so many records, or persons."""
    held = np.clip(counts, 0.0, None)
    held *= min(total / max(float(held.sum()), 1.0), 1.0)
    drowned = counts[counts > 2 * error].sum() < total / 2
    return bool(drowned or side_error(held, ABSOLUTE * error) / (2 * total) >= MISPLACED)


def _of_persons(measurements: Measurements, schema: Schema) -> dict[str, bool]:
    """Each constant of persons that was asked about → whether its counts of persons are mostly noise."""
    asked, shown = by_label(questions_of(schema)), dict[str, bool]()
    for answer in measurements.persons:
        question = asked.get(answer.clique)
        for axis, feature in enumerate(() if question is None else question.features):
            if question is None or feature.kind is not Trait.CONSTANT or question.level != "persons":
                continue
            others = tuple(i for i in range(len(question.shape)) if i != axis)
            counts = answer.values.reshape(question.shape).sum(axis=others)
            error = answer.stddev * (answer.values.size / counts.size) ** 0.5
            noise = _mostly_noise(counts, error, max(float(counts.sum()), 1.0))
            shown[feature.column] = shown.get(feature.column, True) and noise  # the most precise one tells
    return shown


def losses_of_bounds(sizes: Sequence[tuple[int, int]], own: int) -> dict[int, tuple[float, float]]:
    """Each of BOUNDS, and the run's own → the share of the records' weight that it loses, and of units that have more.

    Args:
        sizes: (records of a unit, units with so many). Exact: NOT private.
    """
    records, units = max(sum(n * k for n, k in sizes), 1), max(sum(k for _, k in sizes), 1)
    return {
        bound: (
            1 - sum(min(n, bound) * k for n, k in sizes) / records,
            sum(k for n, k in sizes if n > bound) / units,
        )
        for bound in sorted({*BOUNDS, own})
    }


def size_bars(sizes: Sequence[tuple[int, int]]) -> dict[str, float]:
    """The name of a bar → units: one bar per number of records up to SINGLE, then one for each doubling."""
    heights: dict[str, float] = {}
    for n, units in sizes:
        first = SINGLE + 1
        name = str(n) if n <= SINGLE else f"{first * 2 ** int(np.log2(n / first))}+"
        heights[name] = heights.get(name, 0.0) + units
    return heights


#: Columns whose cure is said.
CURED = 4
#: With fewer cells than this, it is not for their number that noise drowns a column.
MANY = 20


def cell_lines(schema: Schema, names: Sequence[str], unit: str | None) -> list[str]:
    """A sentence for each column that noise drowns and that has many cells, the one with the most first.

    Computed from public facts and the names.

    Args:
        names: columns whose counts are noise for the most part.
        unit: the column that names the unit of privacy, whose ids no release needs.
    """
    many = [schema[n] for n in names if n in schema.domain.names and schema[n].size >= MANY]
    many.sort(key=lambda c: -c.size)
    more = ", or a larger privacy.epsilon"
    cures = [f"it names the unit: leave_out: [{c.name}]" if c.name == unit else _fewer(c) + more for c in many[:CURED]]
    return [f"noise drowns {c.name!r}, {c.size:,} cells: {cure}" for c, cure in zip(many, cures, strict=False)]


def _fewer(column: Column) -> str:
    """The setting of the schema that makes fewer cells of the column."""
    if column.width is not None:
        prefix = int(zip_fields(column)["prefix"])
        return f"prefix: {prefix - 1} makes a tenth of them" if prefix > 1 else "leave it out"
    if column.kind in ORDERED_KINDS:
        return "coarser bins make fewer"
    return "a shorter list of values makes fewer, with other for the rest"


def digits_drawn(schema: Schema) -> list[str]:
    """A sentence for each column of codes whose last digits are invented."""
    return [f"{c.name!r}: {s}" for c in schema.columns if c.width is not None for s in digit_lines(zip_fields(c))]
