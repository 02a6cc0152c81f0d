"""`query`: a marginal or a range from the noisy answers of a release, with standard errors."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mechanisms.public.errors import UserError, did_you_mean
from mechanisms.public.schema.bins import DAY, FloatGrid, IntegerGrid
from mechanisms.public.schema.column import DATE_KINDS, Column
from mechanisms.public.schema.table_schema import Schema
from pipeline.marginal_files import as_a_column, attribute_labels, cells_frame
from pipeline.release_folder import read_release
from synthesis.query_answers import estimate_count, estimate_marginal

Weights = NDArray[np.float64]


def query(release: Path, *, marginal: Sequence[str] = (), where: Mapping[str, Any] | None = None) -> pd.DataFrame:
    """A marginal, or the number of records in a range, estimated from noisy answers alone; costs no privacy.

    Args:
        release: the release folder of a run.
        marginal: columns: one row per cell.
        where: column → [low, high] of an ordered column, both included, or a list of values: one row. A bin that a
            range cuts counts in part, as if its records were spread evenly.
    Returns:
        the columns asked for, count (unbiased, may be negative), standard_error, and low and high: 95 % intervals.
    Raises:
        UserError: neither or both asked for; unknown columns or values; no measured marginal tells.
    """
    schema, _, measurements = read_release(release)
    if bool(marginal) == bool(where):
        fix = "marginal=[a,b], or where={a: [20, 40]}"
        raise UserError("one question at a time" if marginal else "nothing asked", where="query", fix=fix)
    for name in (*marginal, *(where or {})):
        if name in schema.domain and not as_a_column(schema, name):
            fix = "score the synthetic table, or ask about the columns that it is made from"
            raise UserError(
                f"{name!r} was not measured as it stands: a rule of the schema made it", where="query", fix=fix
            )
        if name not in schema.domain:
            fix = did_you_mean(name, schema.domain.names) or f"one of {', '.join(schema.domain.names)}"
            raise UserError(f"no column {name!r}", where="marginal" if marginal else "where", fix=fix)
    if where:
        weights = {name: code_weights(schema, name, value) for name, value in where.items()}
        estimate = estimate_count(measurements, weights)
        frame = pd.DataFrame({name: [str(value)] for name, value in where.items()})
    else:
        clique = schema.measured.canonical(tuple(marginal))
        estimate = estimate_marginal(measurements, clique)
        frame = cells_frame(schema, clique)
    numbers = {"count": estimate.values, "standard_error": estimate.errors}
    numbers |= {"low": estimate.values - 1.96 * estimate.errors, "high": estimate.values + 1.96 * estimate.errors}
    result = frame.assign(**{name: np.round(values, 2) for name, values in numbers.items()})
    result.attrs["sources"] = [" × ".join(c) for c in estimate.sources]
    return result


def code_weights(schema: Schema, name: str, value: Any) -> Weights:
    """How much of each code of a column a question holds: 1, 0, or the part of a bin that a range cuts.

    Raises:
        UserError: no range, or a value that the column has not.
    """
    column, labels = schema[name], attribute_labels(schema, name)
    items = list(value) if isinstance(value, list | tuple) else [value]
    if column.on_a_line and not column.texts and len(items) == 2:
        ends = [_number(column, item, last=i == 1) for i, item in enumerate(items)]
        if ends[0] is not None and ends[1] is not None:
            return _range(column, ends[0], ends[1], name)
    weights = np.zeros(column.size)
    for item in items:
        text = _text(item)
        if text not in labels:
            fix = did_you_mean(text, labels) or _allowed(column, labels)
            raise UserError(f"column {name!r} has no value {text!r}", where="where", fix=fix)
        weights[labels.index(text)] = 1.0
    return weights


def _allowed(column: Column, labels: Sequence[str]) -> str:
    shown = f"values such as {', '.join(labels[:6])}"
    return f"[low, high], or {shown}" if column.on_a_line and not column.texts else shown


def _text(item: Any) -> str:
    return str(item).lower() if isinstance(item, bool) else str(item)


def _number(column: Column, item: Any, *, last: bool) -> float | None:
    """An end of a range in the column's unit; a day as the last end of a range of times is its last second."""
    if isinstance(item, bool):
        return None
    if column.kind not in DATE_KINDS:
        return float(item) if isinstance(item, int | float) else None
    try:
        moment = datetime.datetime.fromisoformat(str(item))
    except ValueError:
        return None
    seconds = (moment - datetime.datetime(1970, 1, 1)).total_seconds()
    if column.kind == "date":
        return seconds // DAY
    return seconds + (DAY - 1 if last and len(str(item)) <= 10 else 0)


def _range(column: Column, low: float, high: float, name: str) -> Weights:
    if not low <= high:
        raise UserError(f"column {name!r}: got [{low:g}, {high:g}]", where="where", fix="[low, high], low first")
    grid, weights = column.grid, np.zeros(column.size)
    if isinstance(grid, FloatGrid):
        edges = grid.edges
        inside = np.minimum(edges[1:], high) - np.maximum(edges[:-1], low)
        weights[: column.value_codes] = np.clip(inside, 0, None) / np.diff(edges)
        return weights
    assert isinstance(grid, IntegerGrid)
    inside = np.clip(np.minimum(grid.ends, np.floor(high) + 1) - np.maximum(grid.starts, np.ceil(low)), 0, None)
    sums = np.add.reduceat(np.stack([inside, grid.ends - grid.starts]).astype(float), grid.first[:-1], axis=1)
    weights[: column.value_codes] = sums[0] / sums[1]
    return weights
