"""How values lie inside their bins: what is left of the fine answers, interpolated by a monotone curve."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from mechanisms.public.arrays import Codes, Flags, Floats, Ints
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.queries.cell_sums import MergedQuery
from mechanisms.public.release import Measurements
from mechanisms.public.rules.computed import filled
from mechanisms.public.rules.engineering import undo
from mechanisms.public.rules.fine_columns import tied_columns
from mechanisms.public.rules.transforms import spread_codes
from mechanisms.public.schema.column import Column, Shape
from mechanisms.public.schema.fine_cells import fine_edges, peaks_of, plain_edges, wide
from mechanisms.public.schema.table_schema import Schema
from synthesis.consistency.projection import norm_sub, soften
from synthesis.consistency.residual_parts import completed
from synthesis.numbers.clearing import cleared
from synthesis.numbers.far_cells import filled_bins, middles, moments, with_far_cells_cleared
from synthesis.numbers.fine_evidence import Answer, mean_of
from synthesis.persons.arranged import constants_alone, with_all_records, with_persons
from synthesis.persons.person_sizes import with_records

#: A curve between two knots is drawn as so many straight lines.
PIECES = 16
#: An end is a catch-all from so many times the width of the bin beside it on.
WIDER = 2.0
#: An exponential law holds all but 6 in a million within so many times its mean.
NEARLY_ALL = 12.0
#: The slowest fall that floats tell from none.
FLATTEST = 1e-6
#: A column has a long tail where clearing leaves less than the first share of its bins, the answers say that the others
#: hold less than the second share of the records, and noise in these would move the mean by more than so many standard
#: deviations of the values (decision 085).
FEW, BEYOND, MOVED = 0.3, 0.4, 1.0


def shape_of(
    column: Column, fine: Answer | None, bins: Answer | None, filled: Sequence[tuple[int, int]] = ()
) -> Shape | None:
    """The monotone curve through the records below each part of the range; None where the answers leave no record.

    Piecewise cubic Hermite (Fritsch & Carlson 1980), in the logarithm of the values where the range is wide; peaks of
    float columns, whose cells hold one value, are jumps.

    Args:
        filled: as of `cleared`.
    """
    from scipy.interpolate import PchipInterpolator

    edges, ends = fine_edges(column), plain_edges(column)
    assert edges is not None and ends is not None
    apart = wide(column) and np.diff(np.arcsinh(edges)).all()  # single numbers beyond 10¹⁴ have equal logarithms
    to, back = (np.arcsinh, np.sinh) if apart else (np.asarray, np.asarray)
    parts = cleared(column, fine, bins, np.diff(to(edges)), filled)
    if not sum(p.records for p in parts) > 0:
        return None
    peaks, knots, below, jumps = set(peaks_of(column).tolist()), [edges[0]], [0.0], []
    for part in parts:
        if part.stop - part.start == 1 and edges[part.start] in peaks:
            jumps.append((float(edges[-1] if part.stop == edges.size - 1 else edges[part.start]), part.records))
        else:
            knots.append(edges[part.stop])
            below.append(below[-1] + part.records)
    if knots[-1] < edges[-1]:
        knots, below = [*knots, edges[-1]], [*below, below[-1]]
    curve = PchipInterpolator(to(np.array(knots)), below)
    lines = np.linspace(to(np.array(knots))[:-1], to(np.array(knots))[1:], PIECES + 1)[1:-1].ravel()
    places = np.unique(np.concatenate([np.clip(back(lines), edges[0], edges[-1]), knots, ends, [v for v, _ in jumps]]))
    heights = np.maximum.accumulate(np.clip(curve(to(places)), 0.0, below[-1]))
    for value, records in jumps:
        after = int(np.searchsorted(places, value, side="right"))
        heights[after:] += records
        places, heights = np.insert(places, after, value), np.insert(heights, after, heights[after - 1] + records)
    at_edges = heights[np.searchsorted(places, ends, side="left")]
    at_edges[-1] = heights[-1]
    return Shape(places, heights, ends, at_edges)


def shape_of_ends(edges: Floats, records: Floats) -> Shape | None:
    """Even bins, but for a first and a last one that are wider and thinner than the bin beside them: they fall off.

    Such a bin takes what public bounds leave far from nearly all values. Its density begins as that of the bin beside
    it and falls exponentially as far as its records allow; spread evenly, its rows would lie out to the bound.

    Args:
        edges: (bins + 1,) where the bins begin and end.
        records: (bins,) noisy counts.
    Returns:
        None where no end is one.
    """
    from scipy.special import lambertw  # not loaded by a plan

    records = np.maximum(records, 0.0)
    records[[0, -1]] = np.maximum(records[[0, -1]], 1.0)  # rows may be there, whatever noise says
    widths, places, parts = np.diff(edges), [], []
    below = np.concatenate([[0.0], np.cumsum(records)])
    for end, beside, edge, away in ((0, 1, edges[1], -1.0), (-1, -2, edges[-2], 1.0)):
        if records.size < 3 or not widths[end] >= WIDER * widths[beside]:
            continue
        density, own = records[beside] / widths[beside], records[end]
        if not density * widths[end] > own > 0:
            continue
        times = density * widths[end] / own
        rate = max(float(times + lambertw(-times * np.exp(-times)).real), FLATTEST)  # rate / (1 − e^−rate) = times
        far = np.linspace(0.0, min(1.0, NEARLY_ALL / rate), 4 * PIECES)[1:]
        held = own * np.expm1(-rate * far) / np.expm1(-rate)
        places.append(edge + away * widths[end] * far)
        parts.append(below[1] - held if end == 0 else below[-2] + held)
    if not places:
        return None
    at = np.concatenate([edges, *places])
    order = np.argsort(at, kind="stable")
    heights = np.maximum.accumulate(np.concatenate([below, *parts])[order])
    return Shape(at[order], heights, edges, below)


def shapes_of(schema: Schema, measurements: Measurements, names: Iterable[str] | None = None) -> dict[str, Shape]:
    """The shape of every column that noise is cleared from, or of those named, from all answers about it alone.

    No tail or gap is cleared where answers to a pair show records (`filled_bins`).

    Guarantee: post-processing; costs no privacy.
    """
    shapes: dict[str, Shape] = {}
    whole = completed(measurements)
    for name in schema.shaped if names is None else set(names) & set(schema.shaped):
        fine, bins = answers_about(schema, measurements, name)
        if fine is not None or bins is not None:
            shape = shape_of(schema[name], fine, bins, filled_bins(whole, name))
            shapes |= {} if shape is None else {name: shape}
    return shapes


def answers_about(schema: Schema, measurements: Measurements, name: str) -> tuple[Answer | None, Answer | None]:
    """What is known of the fine cells of a column, where it has any, and of its bins."""
    cells = schema.fine[name].name if name in schema.fine else ""
    fine, bins = (mean_of([a for a in measurements.answers if a.clique == (own,)]) for own in (cells, name))
    return fine, bins


def as_written(schema: Schema, measurements: Measurements) -> Schema:
    """The schema with what noisy answers say of its values: what rows are written by. The released one says none of it.

    Guarantee: post-processing; costs no privacy.
    """
    schema = with_persons(with_records(schema, measurements), measurements)
    shapes = shapes_of(schema, measurements, schema.fine)
    for name, records in constants_alone(schema, measurements).items():
        edges = plain_edges(schema[name])
        if edges is not None and (shape := shape_of_ends(edges, records[: edges.size - 1])) is not None:
            shapes[name] = shape
    if not shapes:
        return schema
    return replace(schema, columns=tuple(replace(c, shape=shapes.get(c.name)) for c in schema.columns))


def for_synthesis(measurements: Measurements, schema: Schema) -> Measurements:
    """What synthesizers work from: all answers but those about fine columns; and how many rows stand for them."""
    measurements = with_all_records(schema, measurements)
    if not schema.fine:
        return measurements
    domain, distances = schema.synthesized, measurements.distances
    inside = [all(n in domain for n in a.clique) for a in measurements.answers]
    if distances is not None:
        distances = replace(distances, answers=sum(inside[: distances.answers]))
    answers = tuple(a for a, keep in zip(measurements.answers, inside, strict=True) if keep)
    return replace(measurements, domain=domain, answers=answers, distances=distances)


def as_columns(
    table: CodedTable,
    schema: Schema,
    measurements: Measurements,
    rng: np.random.Generator,
    *,
    allowed: Mapping[str, Flags] | None = None,
) -> CodedTable:
    """What a synthesizer made as rows of the table's columns: mapped columns, bins by their shapes, the rules undone.

    Guarantee: post-processing; costs no privacy.
    Args:
        table: over `schema.synthesized`.
        measurements: all answers.
        allowed: of rows given a condition: which codes of a column may be; None: the rows are those of all.
    """
    table = filled(table, schema.rules.mapped, measurements)
    return undo(reshaped(table, schema, measurements, rng, allowed), schema.engineering, rng)


def reshaped(
    table: CodedTable,
    schema: Schema,
    measurements: Measurements,
    rng: np.random.Generator,
    allowed: Mapping[str, Flags] | None = None,
) -> CodedTable:
    """Synthetic rows without the noise in the ends of their columns.

    Of a column with a long tail the bins follow its answers drawn to its shape, wherever no answer about several
    columns tells bins apart: among such bins the synthesizer followed nothing but noisy one-way answers, and noise far
    out moves the mean. Rows of bins that the shape empties go to the nearest one that it does not, where all bins of
    their group are such. Of other columns only the ends that the shape says are empty are cleared (`_without_tails`),
    where noise fills them more than records would. Bins far from the mean are cleared (`with_far_cells_cleared`),
    unless a condition is given: groups have other sizes then. Columns that rules of the schema bind stay as they are.

    Guarantee: post-processing; costs no privacy.
    Args:
        table: over `schema.synthesized`.
        allowed: as of `as_columns`.
    """
    tied = tied_columns(schema)
    shapes = {n: s for n, s in shapes_of(schema, measurements).items() if n not in tied}
    columns = list(table.columns)
    for name, shape in shapes.items():
        place = table.domain.index(name)
        counts = shape.counts
        if allowed is not None and name in allowed:
            counts = np.where(allowed[name][: counts.size], counts, 0.0)
        groups = _groups_of_bins(name, counts.size, measurements)
        answer = answers_about(schema, measurements, name)[1]
        if name in schema.fine and (answer is None or _long_tail(shape, answer)):
            records = counts if answer is None else _drawn_to(counts, answer)
            columns[place] = _redrawn(columns[place], records, groups, rng)
        elif answer is not None:
            columns[place] = _without_tails(columns[place], _filled_ends(counts, answer), groups, rng)
    placed = replace(table, columns=tuple(columns))
    if allowed is not None:
        return placed
    fine = {n: s for n, s in shapes.items() if n in schema.fine}
    return with_far_cells_cleared(placed, measurements, fine, rng)


def _long_tail(shape: Shape, answer: Answer) -> bool:
    """Whether few bins hold the records by the shape, nearly all by the answers too, and noise moves the mean far."""
    empty, values, records = shape.counts <= 0, answer[0][: shape.counts.size], float(shape.below[-1])
    if empty.mean() <= 1 - FEW or not values[empty].sum() < BEYOND * values.sum():
        return False
    mean, stddev = moments(shape)
    moved = norm_sub(values, records)[empty] @ (middles(shape)[empty] - mean)
    return bool(abs(moved) > MOVED * stddev * records)


def _drawn_to(counts: Floats, answer: Answer) -> Floats:
    """The answers of the bins that the counts hold, drawn to these as far as they may be noise."""
    held, drawn = counts > 0, np.zeros(counts.size)
    if held.any():
        values = answer[0][: counts.size][held]
        drawn[held] = norm_sub(soften(values, counts[held], math.sqrt(answer[1])), float(counts.sum()))
    return drawn


def _redrawn(column: Codes, counts: Floats, groups: Ints, rng: np.random.Generator) -> Codes:
    """A column of codes whose bins follow the counts within each group of bins; as it is where all are 0."""
    codes, filled_bins = np.array(column), np.flatnonzero(counts > 0)
    if not filled_bins.size:
        return codes
    nearest = filled_bins[np.argmin(np.abs(np.arange(counts.size)[:, None] - filled_bins[None, :]), axis=1)]
    order = np.argsort(groups, kind="stable")
    for members in np.split(order, np.cumsum(np.bincount(groups))[:-1]):
        rows = np.flatnonzero(np.isin(codes, members))
        weights = counts[members]
        codes[rows] = members[spread_codes(weights, rows.size, rng)] if weights.sum() > 0 else nearest[codes[rows]]
    return codes


def _filled_ends(counts: Floats, answer: Answer) -> Floats:
    """Counts whose empty ends are filled again where clearing them is expected to lose more records than it saves.

    Noise of standard deviation σ puts σ/√(2π) records into a code that holds none. The answers, drawn to their mean by
    the noise's share of their spread (James & Stein 1961), say how many it has. An end is cleared from the outermost
    code on, as far as the one exceeds the other most; nothing is where noise alone may have spread the answers (two
    standard deviations).
    """
    held, values, variance = np.flatnonzero(counts > 0), answer[0][: counts.size], answer[1]
    spread = float(values.var())
    if not held.size or spread <= variance * (1 + 2 * math.sqrt(2 / values.size)):
        return np.maximum(counts, 1.0)
    expected = values - (values - values.mean()) * variance / spread
    gain = math.sqrt(variance / (2 * math.pi)) - expected
    low = np.concatenate([[0.0], np.cumsum(gain[: held[0]])])
    high = np.concatenate([[0.0], np.cumsum(gain[: held[-1] : -1])])
    places = np.arange(counts.size)
    between = (places >= np.argmax(low)) & (places < counts.size - np.argmax(high))
    return np.where(between, np.maximum(counts, 1.0), counts)


def _without_tails(column: Codes, counts: Floats, groups: Ints, rng: np.random.Generator) -> Codes:
    """A column of codes without those below the first that the counts hold, and above the last: noise alone is there.

    Such rows get one of the other codes, as often as other rows have it: of their group of bins, or of any, where that
    has none.
    """
    codes, held = np.array(column), np.flatnonzero(counts > 0)
    if not held.size:
        return codes
    inside = np.zeros(counts.size, np.bool_)
    inside[held[0] : held[-1] + 1] = True
    weights = np.where(inside, np.bincount(codes, minlength=counts.size)[: counts.size], 0.0)
    weights = weights if weights.sum() > 0 else counts
    outside = np.flatnonzero((codes < counts.size) & ~inside[np.minimum(codes, counts.size - 1)])
    of_group = groups[codes[outside]]
    for group in np.unique(of_group):
        rows, own = outside[of_group == group], np.where(groups == group, weights, 0.0)
        codes[rows] = spread_codes(own if own.sum() > 0 else weights, rows.size, rng)
    return codes


def _groups_of_bins(name: str, values: int, measurements: Measurements) -> Ints:
    """The group of each bin: two bins are in one where every answer about several columns counts them together."""
    labels = [np.zeros(values, np.int64)]
    for answer in measurements.answers:
        if name in answer.clique and len(answer.clique) > 1:
            query, own = answer.query, np.arange(measurements.domain[name].size)
            if isinstance(query, MergedQuery):
                own = query.labels[answer.clique.index(name)]
            labels.append(np.asarray(own[:values], np.int64))
    return np.unique(np.stack(labels), axis=1, return_inverse=True)[1].ravel()
