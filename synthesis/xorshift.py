"""Random words in compiled loops: the generator xorshift64 (Marsaglia 2003); for synthesis alone, never for noise."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.jit import compiled, compiled_in_place


@compiled
def following(state: np.uint64) -> np.uint64:
    """The word after this one; none is 0 if the first is not."""
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    return state


@compiled_in_place
def below(state: NDArray[np.uint64], count: int) -> int:
    """A random whole number below a count."""
    state[0] = following(state[0])
    return np.int64((state[0] >> np.uint64(11)) % np.uint64(count))  # type: ignore[return-value]


@compiled
def shuffle(rows: NDArray[np.int32], state: NDArray[np.uint64]) -> None:
    """Fisher-Yates, in place."""
    seed = state[0]
    for i in range(len(rows) - 1, 0, -1):
        seed = following(seed)
        j = np.int64(seed % np.uint64(i + 1))
        rows[i], rows[j] = rows[j], rows[i]
    state[0] = seed
