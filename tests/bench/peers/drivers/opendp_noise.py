"""OpenDP's samplers on vectors of whole numbers: seconds per draw, as JSON on the last line."""

from __future__ import annotations

import json
import sys
import time

import opendp.prelude as dp


def main(law: str, scale: float, size: int) -> None:
    """`size` draws of discrete noise of that scale, best of three."""
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=dp.i64))
    if law == "Gaussian":
        measurement = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale)
    else:
        measurement = dp.m.make_laplace(domain, dp.l1_distance(T=dp.i64), scale)
    zeros, seconds = [0] * size, []
    for _ in range(3):
        start = time.process_time()
        measurement(zeros)
        seconds.append(time.process_time() - start)
    print(json.dumps({"seconds": min(seconds), "size": size}))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
