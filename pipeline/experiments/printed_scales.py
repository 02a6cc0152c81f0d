"""Noise scales that McKenna 2021 prints, beside those of its own formula and of zCDP's plain conversion."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from mechanisms.accounting.planning import Request, make_plan
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.units import Neighbouring
from pipeline.experiments.gallery.published import Beside

FIELDS = ("epsilon", "max_records", "marginals", "printed")


def gaussian_scale(epsilon: float, delta: float, *, max_records: int, marginals: int, accountant: str) -> float:
    """The scale of Gaussian noise where so many marginals share a budget equally, by the pipeline's own plan.

    Under `gdp` it is √marginals · C / μ with δ = Φ(ε/μ − μ/2) − e^ε Φ(−ε/μ − μ/2), the formula of the source; under
    `zcdp` ε = ρ + 2√(ρ ln(1/δ)).
    """
    plan = make_plan(
        Domain((Attribute("cell", 2),)),
        [Request(("cell",))] * marginals,
        mechanism="gaussian",
        accountant=accountant,
        epsilon=epsilon,
        delta=delta,
        neighbouring=Neighbouring.ADD_REMOVE,
        max_records=max_records,
    )
    return plan.measurements[0].event.scale


def compared_scales(printed: Sequence[Mapping[str, Any]], delta: float) -> list[dict[str, float]]:
    """Each printed scale with those of the text's formula (`formula`) and of zCDP (`zcdp`), in records.

    Raises:
        UserError: an entry that is not as FIELDS says.
    """
    rows = []
    for entry in printed:
        values = [entry.get(name) for name in FIELDS]
        if set(entry) != set(FIELDS) or not all(isinstance(v, int | float) and 0 < v < math.inf for v in values):
            fix = f"a list of {{{', '.join(f'{name}: …' for name in FIELDS)}}}, numbers above 0"
            raise UserError(f"got {dict(entry)}", where="experiment.scales", fix=fix)
        epsilon, bound, count = float(entry["epsilon"]), int(entry["max_records"]), int(entry["marginals"])
        scales = {
            name: gaussian_scale(epsilon, delta, max_records=bound, marginals=count, accountant=accountant)
            for name, accountant in (("formula", "gdp"), ("zcdp", "zcdp"))
        }
        rows.append({**{n: float(entry[n]) for n in FIELDS}, **scales})
    return rows


def beside_printed(rows: Sequence[Mapping[str, float]]) -> tuple[Beside, ...]:
    """Each printed scale beside ours by the text's formula and by zCDP."""
    words = {"formula": "by the formula of the text", "zcdp": "by zCDP"}
    return tuple(
        Beside(
            f"noise scale at ε = {row['epsilon']:g}, C = {row['max_records']:g}, {how}",
            row[name],
            row["printed"],
            "section Noise calibration",
        )
        for row in rows
        for name, how in words.items()
    )


def in_words(row: Mapping[str, float]) -> str:
    """A line for readers."""
    return (
        f"Noise scale at ε = {row['epsilon']:g}, C = {row['max_records']:g}, {row['marginals']:g} marginals: the "
        f"source prints {row['printed']:g}; its own formula (gdp, as here) gives {row['formula']:.2f}; "
        f"zCDP's conversion {row['zcdp']:.2f}."
    )
