"""Random words in compiled loops: the generator xorshift64 (Marsaglia 2003); for synthesis alone, never for noise."""

from __future__ import annotations

import numpy as np

from mechanisms.public.jit import compiled


@compiled
def following(state: np.uint64) -> np.uint64:
    """The word after this one; none is 0 if the first is not."""
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    return state
