"""`query`: a marginal or a range from the noisy answers of a release, with standard errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mechanisms.public.arrays import Floats
from mechanisms.public.domain import Clique
from mechanisms.public.errors import UserError
from mechanisms.public.files import Json
from mechanisms.public.members import needed
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements
from mechanisms.public.schema.fine_cells import finest, plain_edges
from mechanisms.public.schema.table_schema import Schema
from pipeline.inference.conditions import asked_ranges, code_weights, left_out
from pipeline.inference.marginal_estimates import (
    COARSE,
    INSIDE,
    MAX_SOLVED_ALONE,
    MEASURED,
    CountEstimate,
    MarginalEstimate,
    count_estimate,
    marginal_estimate,
)
from pipeline.inference.person_level import COUNTED, LEVELS, at_level, of_level, of_persons
from pipeline.inference.ratio_intervals import errors_of_interval
from pipeline.release_folder import add_figures, attribute_labels, cells_frame, check_columns, names_asked, read_release
from pipeline.settings.overrides import encoded
from pipeline.statement.words import noted
from synthesis.numbers.fine_evidence import RangeCount, curve_shares, range_count
from synthesis.numbers.value_shapes import answers_about, for_synthesis, shapes_of

#: Of one row, or of each.
Figures = float | Floats
#: By which cells a range was counted, where that is no bin: `attrs["cells"]`.
FINE_CELL = "fine cell"


def query(
    release: Path | str,
    *,
    marginal: Sequence[str] = (),
    where: Json | None = None,
    solution: str | None = None,
    level: str = LEVELS[0],
) -> pd.DataFrame:
    """A marginal, or the number of records in a range, estimated from noisy answers alone; costs no privacy.

    Args:
        release: the release folder of a run.
        marginal, where, solution, level: as `answer` takes them.
    """
    schema, statement, measurements = read_release(release)
    answered = answer(schema, measurements, marginal=marginal, where=where, solution=solution, level=level)
    return noted(answered, statement)


def answer(
    schema: Schema,
    measurements: Measurements,
    *,
    marginal: Sequence[str] = (),
    where: Json | None = None,
    solution: str | None = None,
    level: str = LEVELS[0],
) -> pd.DataFrame:
    """What the noisy answers of a release say.

    Args:
        marginal: columns: one row per cell.
        where: column → a value, a list of values, or [low, high] of an ordered column, both included: one row. A bin
            that this cuts counts in part: by the column's fine cells or the curve through them, where the release has
            them, else as if its records were spread evenly. The interval holds whatever lies inside: `cut` names such
            bins, or fine cells.
        solution: a marginal is answered from the consistent marginals, also where none holds it (see `solved`).
        level: records; or persons: each counts once, with its constants and its number of records (see `at_level`).
    Returns:
        the columns asked for, count (may be negative; unbiased where no bin is cut), standard_error (of the noise), low
        and high (95 % intervals), and for a range: cut; with a solution: count and how alone. `attrs["notes"]` says
        where fine cells were counted: an estimate counts bins, and may give another answer.
    Raises:
        UserError: neither or both asked for; unknown columns or values; no measured marginal tells.
    """
    names = names_asked(marginal, "marginal")
    if bool(names) == bool(where):
        fix = "marginal=[a,b], or where={a: [20, 40]}"
        raise UserError("one question at a time" if names else "nothing asked", where="query", fix=fix)
    schema, measurements = at_level(schema, measurements, level)
    check_columns(schema, "marginal" if names else "where", names or names_asked(where, "where"), of_level(level))
    if solution is not None and not names:
        raise UserError("it belongs to a marginal", where="solution", fix="marginal=[a,b,c] solution=maxent")
    clique = schema.measured.canonical(names)
    if where:
        frame = _count(schema, measurements, where)
    elif solution is not None:
        frame = solved(schema, measurements, clique, solution)
    else:
        estimate = estimate_marginal(measurements, clique)
        mean, error, reach = estimate.values, estimate.errors, errors_of_interval(measurements) * estimate.errors
        frame = _rounded(cells_frame(schema, clique), mean, error, mean - reach, mean + reach, estimate.sources)
    if level == LEVELS[1]:
        frame.attrs["notes"] = [COUNTED, *frame.attrs.get("notes", ())]
    return frame


def estimate_marginal(measurements: Measurements, clique: Clique) -> MarginalEstimate:
    """`marginal_estimate`, or UserError: no measured marginal tells it, or it has too many cells to solve for."""
    estimate = marginal_estimate(measurements, clique, alone=True)
    cells = measurements.domain.cells(clique)
    if estimate is None and cells > MAX_SOLVED_ALONE and measurements.answers_about(clique):
        fix = "a range: where={…}; or fewer columns"
        raise UserError(f"{cells:,} cells of answers that are no whole marginal", where="marginal", fix=fix)
    if estimate is None:
        raise untold(measurements, clique, "; or solution=maxent, which fills in what their parts leave open")
    return estimate


def estimate_count(measurements: Measurements, weights: Mapping[str, Floats]) -> CountEstimate:
    """`count_estimate`, or UserError: no measured marginal tells it."""
    estimate = count_estimate(measurements, weights)
    if estimate is None:
        raise untold(measurements, measurements.domain.canonical(tuple(weights)))
    return estimate


def untold(measurements: Measurements, clique: Clique, more: str = "", *, where: str = "marginal") -> UserError:
    """That no answer tells a marginal, with those that some do, and the way to have it measured."""
    whole = {a.clique for a in measurements.answers if isinstance(a.query, Identity)}
    every = dict.fromkeys(a.clique for a in measurements.answers)
    near = [
        " × ".join(c) + ("" if c in whole else " over coarser values")
        for c in [c for c in every if set(clique) & set(c)] or every
    ]
    fix = f"ask for what was measured ({'; '.join(near[:12])}{' …' if len(near) > 12 else ''})"
    if not of_persons(measurements):  # what is asked of these follows from the schema
        fix += "; what was not needs another run, out of a budget of its own, with "
        fix += f"{encoded(list(clique))} in its list selection.marginals"
    return UserError(f"no measured marginal tells {' × '.join(clique)}", where=where, fix=fix + more)


def solved(schema: Schema, measurements: Measurements, clique: Clique, solution: str) -> pd.DataFrame:
    """PriView's answer to a marginal (Li et al. 2021b, section 3.2): non-negative counts of the noisy total, and `how`.

    From the most precise consistent marginal that holds it, where one does: it leaves nothing to solve, and every
    solution is the same. Else, of all marginals that have the sides that are known, the one of largest entropy, of
    least L2 norm, or any by a linear programme. What no answer tells is filled in, so that no standard error is known.

    Args:
        solution: maxent, least_norm or linear.
    Returns:
        the columns, count, and how: MEASURED, INSIDE, COARSE or the solution.
    Raises:
        UserError: another word, or too many cells.
    """
    solve = needed("synthesis.papers.maxent:solved_views", "a solution", "solution", "the question without it")
    model = solve(for_synthesis(measurements, schema), solution, schema.zeros)
    views = [t.clique for t in model.targets.marginals]
    holding = [t for t in model.targets.marginals if set(clique) <= set(t.clique)]
    how = model.spec.solution
    if holding:
        how = COARSE if all(t.answers is not None for t in holding) else MEASURED if clique in views else INSIDE
    sources = [t.clique for t in holding] or [v for v in views if set(v) & set(clique)]
    result = add_figures(cells_frame(schema, clique), count=np.round(model.marginal(clique), 2), how=how)
    result.attrs |= {"sources": [" × ".join(v) for v in sources], "notes": _how_solved(solution, how, clique, views)}
    return result


def _how_solved(solution: str, how: str, clique: Clique, views: Sequence[Clique]) -> list[str]:
    """What to say beside such an answer."""
    if how == COARSE:
        note = (
            "every solution= is the same; what the coarser values leave open is filled in, and its error is not known"
        )
        return [f"{how}: {note}"]
    if how in (MEASURED, INSIDE):
        return [f"{how}: solution={solution} is not needed, and changes nothing; without it each cell has its error"]
    note = f"no measured marginal tells it: {solution} fills in what their parts leave open; its error is not known"
    alone = [name for name in clique if not any(name in v for v in views)]
    return [note, *([f"nothing was measured of {', '.join(alone)}: spread evenly"] if alone else [])]


def _count(schema: Schema, measurements: Measurements, where: Json) -> pd.DataFrame:
    """How many records satisfy all conditions; of a bin that one cuts, anything from none to all of its records may."""
    even = {name: code_weights(schema, name, value) for name, value in where.items()}
    bins = [(n, i) for n, w in even.items() for i in np.flatnonzero((w > 0) & (w < 1))]
    cut = [f"{n}: {attribute_labels(schema, n)[i]}" for n, i in bins]
    asked = pd.DataFrame({n: [str(value)] for n, value in where.items()})
    name = next(iter(where))
    # A value on the edge of two bins of floats lies in the upper one, which a range up to it does not seem to touch.
    by_cells, far = len(where) == 1 and (cut or schema[name].kind == "float"), errors_of_interval(measurements)
    if by_cells and (finely := _fine_count(schema, measurements, name, where[name])) is not None:
        return _of_cells(schema, name, asked, *finely, far)
    weights = _by_curves(schema, measurements, where, even) if cut else even
    value, error, sources = estimate_count(measurements, weights)
    low, high = value - far * error, value + far * error
    if cut:
        low = min(low, _end(measurements, {n: np.floor(w) for n, w in even.items()}, -far))
        high = max(high, _end(measurements, {n: np.ceil(w) for n, w in even.items()}, far))
    row = add_figures(_rounded(asked, value, error, low, high, sources), cut="; ".join(cut))
    if notes := [note for n, value in where.items() for note in left_out(schema[n], value)]:
        row.attrs["notes"] = notes
    return row


def _fine_count(
    schema: Schema, measurements: Measurements, name: str, value: Any
) -> tuple[RangeCount, tuple[Clique, ...]] | None:
    """The count of one column's range by its fine cells, and what tells it; None where it has none."""
    if name not in schema.fine:
        return None
    fine, bins = answers_about(schema, measurements, name)
    ranges = asked_ranges(schema[name], value, name)
    if fine is None or ranges is None or (ranges[0][0] == ranges[-1][1] and schema[name].multiple_of is None):
        return None
    shape = shapes_of(schema, measurements, (name,)).get(name)
    sources = ((name,), (schema.fine[name].name,))
    return range_count(schema[name], shape, fine, bins, ranges), sources[bins is None :]


def _of_cells(
    schema: Schema, name: str, asked: pd.DataFrame, count: RangeCount, sources: tuple[Clique, ...], far: float
) -> pd.DataFrame:
    """The count as a row; the interval holds whatever lies inside the fine cells that the range cuts."""
    low, high = count.value - far * count.error, count.value + far * count.error
    if count.cut:
        low = min(low, count.least[0] - far * count.least[1])
        high = max(high, count.most[0] + far * count.most[1])
    labels = finest(schema[name]).labels
    cut = "; ".join(f"{name}: {labels[i]}" for i in count.cut)
    row = add_figures(_rounded(asked, count.value, count.error, low, high, sources), cut=cut)
    row.attrs["cells"] = FINE_CELL
    row.attrs["notes"] = [
        f"counted by the {len(labels):,} fine cells of {name}; estimate=count and estimate=proportion count by its "
        f"{schema[name].value_codes:,} bins, and may give another answer"
    ]
    return row


def _by_curves(
    schema: Schema, measurements: Measurements, where: Json, even: Mapping[str, Floats]
) -> dict[str, Floats]:
    """The part of each bin that a condition holds by the column's curve, where it has one; else by its width."""
    shapes, weights = shapes_of(schema, measurements, where), dict(even)
    for name, shape in shapes.items():
        column, edges = schema[name], plain_edges(schema[name])
        ranges = asked_ranges(column, where[name], name)
        cut = (even[name] > 0) & (even[name] < 1)
        if ranges is not None and edges is not None and cut.any():
            shares = np.append(curve_shares(shape, edges, column, ranges), np.zeros(column.size - column.value_codes))
            weights[name] = np.where(cut, shares, even[name])
    return weights


def _end(measurements: Measurements, weights: dict[str, Floats], errors: float) -> float:
    """So many standard errors from the count of whole bins; without any such bin, 0."""
    if any(not w.any() for w in weights.values()):
        return 0.0
    value, error, _ = estimate_count(measurements, weights)
    return value + errors * error


def _rounded(
    frame: pd.DataFrame, count: Figures, error: Figures, low: Figures, high: Figures, sources: Sequence[Clique]
) -> pd.DataFrame:
    numbers = {"count": count, "standard_error": error, "low": low, "high": high}
    result = add_figures(frame, **{name: np.round(values, 2) for name, values in numbers.items()})
    result.attrs["sources"] = [" × ".join(c) for c in sources]
    return result
