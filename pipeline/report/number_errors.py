"""What `plan` predicts of columns of numbers: the standard error that noise gives to their mean."""

from __future__ import annotations

from typing import Any

from mechanisms.accounting.plan import Plan
from mechanisms.public.schema.table_schema import Schema
from synthesis.numbers.expected_errors import expected_error

#: Seconds.
DAY = 86_400


def mean_errors(schema: Schema, plan: Plan, rows: int | None) -> list[dict[str, Any]]:
    """Per denoised column of numbers or dates: cells, their noise, the expected error of the mean at `rows` records.

    Cells are the fine ones, or the codes if each of them is one value.

    `mean_share` is that error as a share of the mean where values have a long tail, `mean_standard_error` in the
    column's unit (days or seconds of dates) where they do not; `assumed` says what is assumed of the values. Bins are
    measured once more with what marginals of several columns leave, which is not counted in.
    """
    noise = _slots(plan) if plan.method else {}
    errors: list[dict[str, Any]] = []
    for name in schema.shaped:
        cells = schema.fine.get(name, schema.domain[name])
        if cells.name not in noise:
            continue
        bins = noise.get(name) if name in schema.fine else None
        error = None if rows is None else expected_error(schema[name], noise[cells.name], bins, rows)
        errors.append(
            {
                "column": name,
                "kind": schema[name].kind,
                "fine_cells": cells.ordered,
                "stddev": noise[cells.name],
                "mean_standard_error": error.value if error and error.share is None else None,
                "mean_share": error.share if error else None,
                "assumed": error.assumed if error else None,
            }
        )
    return errors


def _slots(plan: Plan) -> dict[str, float]:
    """Column → the standard deviation of an answer, of slots for one column."""
    return {m.clique[0]: m.event.stddev for m in plan.measurements if len(m.clique) == 1}


def said_errors(errors: list[dict[str, Any]]) -> list[str]:
    """The same in lines for people; none without columns of numbers."""
    lines = ["numbers and dates, each alone (cells; noise of a cell; standard error to expect of the mean):"]
    for e in errors:
        mean, share = e["mean_standard_error"], e["mean_share"]
        told = "set plan.rows" if mean is None else _in_unit(mean, e["kind"])
        told = told if share is None else f"{share:.1%}"
        lines.append(f"  {e['column']}: {e['fine_cells']} cells ± {e['stddev']:.3g} records; mean ± {told}")
    assumed = dict.fromkeys((e["assumed"], e["mean_share"] is None) for e in errors if e["assumed"])
    lines += [f"  assumed for {'numbers' if plain else 'shares of the mean'}: {a}" for a, plain in assumed]
    return lines if errors else []


def _in_unit(error: float, kind: str) -> str:
    """An error of a mean with its unit, where that is one of time."""
    if kind == "datetime":
        kind, error = ("date", error / DAY) if error >= DAY else ("hours", error / 3_600)
    return f"{error:.3g} days" if kind == "date" else f"{error:.3g} hours" if kind == "hours" else f"{error:.3g}"
