"""The random marginals of density estimation, which the metric of that name and a preset of MGD draw alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mechanisms.public.domain import Clique

#: Marginals that are drawn, and the columns of each (Li et al. 2021b, section 5.1).
SCHEMAS, WAYS = 300, 3


def draw_schemas(names: Sequence[str], *, schemas: int = SCHEMAS, ways: int = WAYS, seed: int = 0) -> list[Clique]:
    """`schemas` independent draws of `ways` different columns; all columns where there are fewer."""
    rng = np.random.default_rng(seed)
    ways = min(ways, len(names))
    return [tuple(names[i] for i in np.sort(rng.choice(len(names), ways, replace=False))) for _ in range(schemas)]
