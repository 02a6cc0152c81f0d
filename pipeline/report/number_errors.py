"""What `plan` predicts of columns of numbers: the standard error that noise gives to their mean."""

from __future__ import annotations

from typing import Any

import numpy as np

from mechanisms.accounting.adaptive import AnyPlan
from mechanisms.accounting.plan import Plan
from mechanisms.public.schema.column import DATE_KINDS
from mechanisms.public.schema.fine_cells import cells_of_bins
from mechanisms.public.schema.table_schema import Schema
from synthesis.numbers.fine_evidence import mean_stddev


def mean_errors(schema: Schema, plan: AnyPlan, rows: int | None) -> list[dict[str, Any]]:
    """Per column with fine cells: their number and noise, and the standard error of its mean at `rows` records.

    An upper estimate: bins are measured once more with what marginals of several columns leave.
    """
    noise = {} if isinstance(plan, Plan) else _slots(plan)
    errors = []
    for name, fine in schema.fine.items():
        if fine.name not in noise:
            continue
        sizes = np.diff(cells_of_bins(schema[name]))
        precision = 1 / (sizes * noise[fine.name] ** 2) + (noise[name] ** -2 if name in noise else 0.0)
        known = rows is not None and schema[name].kind not in DATE_KINDS
        error = mean_stddev(schema[name], 1 / precision, float(rows or 1)) if known else None
        errors.append(
            {"column": name, "fine_cells": fine.ordered, "stddev": noise[fine.name], "mean_standard_error": error}
        )
    return errors


def _slots(plan: Any) -> dict[str, float]:
    """Column → the standard deviation of an answer, of slots for one column."""
    places = [i for i, s in enumerate(plan.slots) if s.reservation.clique and len(s.reservation.clique) == 1]
    return {plan.slots[i].reservation.clique[0]: plan.measurement_slot(i).stddev for i in places}


def said_errors(errors: list[dict[str, Any]]) -> list[str]:
    """The same in lines for people; none without columns of numbers."""
    lines = ["numbers, measured finely alone (cells; noise of a cell; standard error of the mean, at most):"]
    for e in errors:
        mean = e["mean_standard_error"]
        told = "set plan.rows" if mean is None else f"{mean:.4g}"
        lines.append(f"  {e['column']}: {e['fine_cells']} cells ± {e['stddev']:.3g} records; mean ± {told}")
    return lines if errors else []
