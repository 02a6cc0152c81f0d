"""MST and AIM of OpenDP (`opendp.extras.mbi`), all categories given, so that nothing is spent on finding them."""

from __future__ import annotations

import math
from fractions import Fraction

import opendp.prelude as dp
import polars as pl
from exchange import Request, request, said, write_codes, zcdp

#: ρ is lowered by this share until OpenDP's MST accepts its own split of it.
STEP = 1e-6


def accepted(rho: float, columns: int) -> float:
    """The largest ρ, a little below the given one, that MST of OpenDP 0.16 does not refuse.

    It splits its budget for choosing over columns − 1 choices, adds these up with rounding upwards, and refuses the sum
    where it exceeds the budget by the last bits of a float, which it does at 15 columns for six ρ of seven.
    """
    while True:
        rest = _below(_below(rho - rho * 0.5))
        choosing = _below(_below(rest - rest * 0.9))
        one, total = _below(choosing / (columns - 1)), 0.0
        for _ in range(columns - 1):
            total = _sum_upwards(total, one)
        if total <= choosing:
            return rho
        rho *= 1 - STEP


def _below(x: float) -> float:
    return math.nextafter(x, -math.inf)


def _sum_upwards(a: float, b: float) -> float:
    return math.nextafter(a + b, math.inf) if Fraction(a + b) < Fraction(a) + Fraction(b) else a + b


def main(asked: Request) -> None:
    dp.enable_features("contrib")
    wanted = zcdp(asked.epsilon, asked.delta)
    rho = accepted(wanted, len(asked.domain)) if asked.method == "mst" else wanted
    context = dp.Context.compositor(
        data=pl.scan_csv(asked.files["real"]),
        privacy_unit=dp.unit_of(contributions=1),
        # Where the keys are all known the table is released under zCDP, with no δ.
        privacy_loss=dp.loss_of(rho=rho),
        split_evenly_over=1,
    )
    algorithm = dp.mbi.MST() if asked.method == "mst" else dp.mbi.AIM()
    keys = {name: list(range(size)) for name, size in asked.domain.items()}
    table = context.query().select(*asked.domain).contingency_table(keys=keys, algorithm=algorithm).release()
    made = table.synthesize()
    known = made.drop_nulls()  # OpenDP adds "not among the keys" to every column
    write_codes(asked.files["output"], {n: known[n].to_numpy() for n in asked.domain})
    notes = ["it pins mbi 1.1.0, whose sampler loses dependences (mended in mbi 2)", f"ρ = {rho:.5g}"]
    notes += [f"{made.height - known.height} rows with a value outside the keys left out"]
    notes += [f"ρ lowered by {1 - rho / wanted:.0e}, for it refuses its own budget by a rounding"] * (rho < wanted)
    said("opendp", "mbi", "jax", "polars", note="; ".join(notes))


if __name__ == "__main__":
    main(request())
