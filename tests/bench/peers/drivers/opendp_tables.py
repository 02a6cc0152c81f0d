"""MST and AIM of OpenDP (`opendp.extras.mbi`), all categories given, so that nothing is spent on finding them."""

from __future__ import annotations

from typing import Any

import opendp.prelude as dp
import polars as pl
from exchange import Request, request, said, write_codes, zcdp
from opendp.mod import OpenDPException

#: OpenDP may refuse its own split of the budget over many columns by the last bit of a float; a ρ a little smaller
#: is tried then. Only for measuring: each try with real rows would have to be paid.
TRIES, SMALLER = 40, 1e-5


def table(asked: Request, rho: float) -> Any:
    """OpenDP's model of the table."""
    context = dp.Context.compositor(
        data=pl.scan_csv(asked.files["real"]),
        privacy_unit=dp.unit_of(contributions=1),
        # Where the keys are all known the table is released under zCDP, with no δ.
        privacy_loss=dp.loss_of(rho=rho),
        split_evenly_over=1,
    )
    algorithm = dp.mbi.MST() if asked.method == "mst" else dp.mbi.AIM()
    keys = {name: list(range(size)) for name, size in asked.domain.items()}
    return context.query().select(*asked.domain).contingency_table(keys=keys, algorithm=algorithm).release()


def main(asked: Request) -> None:
    """One synthetic table."""
    dp.enable_features("contrib")
    rho, refused = zcdp(asked.epsilon, asked.delta), 0
    while True:
        try:
            made = table(asked, rho * (1 - SMALLER * refused)).synthesize()
            break
        except OpenDPException as error:
            if "insufficient budget" not in str(error) or refused == TRIES:
                raise
            refused += 1
            print(f"refused {refused} times: {str(error).strip()[-120:]}", flush=True)
    known = made.drop_nulls()  # OpenDP adds "not among the keys" to every column
    write_codes(asked.files["output"], {n: known[n].to_numpy() for n in asked.domain})
    notes = [f"ρ = {rho:.5g}", f"{made.height - known.height} rows with a value outside the keys left out"]
    notes += [f"refused its own budget by a rounding {refused} times first"] if refused else []
    said("opendp", "mbi", "jax", "polars", note="; ".join(notes))


if __name__ == "__main__":
    main(request())
