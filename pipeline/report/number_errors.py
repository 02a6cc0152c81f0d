"""What `plan` predicts of columns of numbers: the standard error that noise gives to their mean."""

from __future__ import annotations

from typing import Any

from mechanisms.accounting.adaptive import AnyPlan
from mechanisms.accounting.plan import Plan
from mechanisms.public.schema.column import DATE_KINDS
from mechanisms.public.schema.table_schema import Schema
from synthesis.numbers.expected_errors import expected_error


def mean_errors(schema: Schema, plan: AnyPlan, rows: int | None) -> list[dict[str, Any]]:
    """Per column with fine cells: their number and noise, and the error to expect of its mean at `rows` records.

    `mean_share` is that error as a share of the mean where values have a long tail, `mean_standard_error` in the
    column's unit where they do not; `assumed` says what is assumed of the values. Bins are measured once more with what
    marginals of several columns leave, which is not counted in.
    """
    noise = {} if isinstance(plan, Plan) else _slots(plan)
    errors: list[dict[str, Any]] = []
    for name, fine in schema.fine.items():
        if fine.name not in noise:
            continue
        known = rows is not None and schema[name].kind not in DATE_KINDS
        error = expected_error(schema[name], noise[fine.name], noise.get(name), rows or 1) if known else None
        errors.append(
            {
                "column": name,
                "fine_cells": fine.ordered,
                "stddev": noise[fine.name],
                "mean_standard_error": error.value if error and error.share is None else None,
                "mean_share": error.share if error else None,
                "assumed": error.assumed if error else None,
            }
        )
    return errors


def _slots(plan: Any) -> dict[str, float]:
    """Column → the standard deviation of an answer, of slots for one column."""
    places = [i for i, s in enumerate(plan.slots) if s.reservation.clique and len(s.reservation.clique) == 1]
    return {plan.slots[i].reservation.clique[0]: plan.measurement_slot(i).stddev for i in places}


def said_errors(errors: list[dict[str, Any]]) -> list[str]:
    """The same in lines for people; none without columns of numbers."""
    lines = ["numbers, measured finely alone (cells; noise of a cell; standard error to expect of the mean):"]
    for e in errors:
        mean, share = e["mean_standard_error"], e["mean_share"]
        told = "set plan.rows" if mean is None else f"{mean:.4g}"
        told = told if share is None else f"{share:.1%}"
        lines.append(f"  {e['column']}: {e['fine_cells']} cells ± {e['stddev']:.3g} records; mean ± {told}")
    assumed = dict.fromkeys((e["assumed"], e["mean_share"] is None) for e in errors if e["assumed"])
    lines += [f"  assumed for {'numbers' if plain else 'shares of the mean'}: {a}" for a, plain in assumed]
    return lines if errors else []
