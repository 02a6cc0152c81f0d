"""Exact noise: cells a second on one core and the share of draws that took further digits, beside OpenDP's samplers."""

import json
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mechanisms.accounting.events import Gaussian, Laplace
from mechanisms.public.units import WEIGHT_BITS
from mechanisms.sensitive.deviates import Dyadic, Reader
from mechanisms.sensitive.noise import SecureNoise, drawn
from tests.bench.clock import timed
from tests.bench.peers.measure import InstallationFailed, environment

PEERS = Path(__file__).parent / "peers"
#: Cells; OpenDP's are slow.
SIZE, THEIR_SIZE = 4_000_000, 50_000
#: Scale in records, by how many bits the lattice is finer than that of counts: whole marginals, adaptive grids.
WHERE = {"counts": (10.0, 0), "grids": (10.0, 16), "grids at scale 8,190": (8190.0, 16), "largest": (1.7e10, 0)}


def ours(law: type[Gaussian | Laplace], where: str) -> dict[str, Any]:
    """The secure source and the compiled draws together; once before, to compile."""
    scale, split = WHERE[where]
    exact = Dyadic.of(scale, WEIGHT_BITS + split)
    normal = law is Gaussian
    drawn(Reader(SecureNoise().stream("warm")), 1000, exact, normal=normal, split=split)
    reader = Reader(SecureNoise().stream("noise"))
    took = timed(lambda: drawn(reader, SIZE, exact, normal=normal, split=split))
    rate = SIZE / took["cpu_seconds"]
    said = f"{rate / 1e6:.2f} million cells/s (aim: 1); further digits for {reader.refined / SIZE:.1e} of the draws"
    return {"name": f"{law.__name__} noise, {where}", "cells": SIZE, **took, "reference": said}


def opendp(law: type[Gaussian | Laplace]) -> dict[str, Any] | None:
    """OpenDP's discrete sampler at scale 10 on the lattice of counts, in an environment of its own."""
    try:
        python = environment("opendp_noise", Path("build/peers"))
    except InstallationFailed:
        return None
    driver = PEERS / "drivers" / "opendp_noise.py"
    scale = 10.0 * 2.0**WEIGHT_BITS
    command = [str(python.absolute()), str(driver), law.__name__, str(scale), str(THEIR_SIZE)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    seconds = float(json.loads(lines[-1])["seconds"])
    said = {
        "name": f"{law.__name__} noise, OpenDP 0.16",
        "reference": f"{THEIR_SIZE / seconds / 1e6:.3f} million cells/s",
    }
    return said | {"cells": THEIR_SIZE, "cpu_seconds": seconds}


def source() -> dict[str, Any]:
    """The operating system's words alone: the floor of any sampler on it."""
    words = SecureNoise().stream("words")
    took = timed(lambda: [np.asarray(words(1 << 16)) for _ in range(64)])
    rate = (64 << 16) / took["cpu_seconds"]
    return {"name": "secure words", "cells": 64 << 16, **took, "reference": f"{rate / 1e6:.0f} million words/s"}


CASES: dict[str, Callable[[], dict[str, Any] | None]] = {"source": source}
CASES |= {f"{law.__name__}, {where}": partial(ours, law, where) for law in (Gaussian, Laplace) for where in WHERE}
CASES |= {f"{law.__name__}, opendp": partial(opendp, law) for law in (Gaussian, Laplace)}
