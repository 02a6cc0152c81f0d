"""Noise scales that McKenna 2021 prints, beside those of its own formula and of zCDP's plain conversion."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from mechanisms.accounting.budget import Budget
from mechanisms.accounting.events import NoiseEvent
from mechanisms.accounting.planning import Request, make_plan
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.json_values import Json
from mechanisms.public.units import Neighbouring
from pipeline.experiments.gallery.published import Beside

FIELDS = ("epsilon", "max_records", "marginals", "printed")


def shared_equally(budget: Budget, marginals: int, mechanism: str = "gaussian") -> NoiseEvent:
    """The noise of each of so many marginals that share a budget equally, by the pipeline's own plan.

    The scale of Gaussian noise under `gdp` is √marginals · C / μ with δ = Φ(ε/μ − μ/2) − e^ε Φ(−ε/μ − μ/2), the formula
    of the source; under `zcdp` ε = ρ + 2√(ρ ln(1/δ)).
    """
    domain = Domain((Attribute("cell", 2),))
    plan = make_plan(domain, [Request(("cell",))] * marginals, budget, mechanism=mechanism)
    return plan.measurements[0].event


def compared_scales(printed: Sequence[Json], delta: float) -> list[dict[str, float]]:
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
            name: shared_equally(Budget(epsilon, delta, accountant, Neighbouring.ADD_REMOVE, bound), count).scale
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
