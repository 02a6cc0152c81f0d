"""GUM's hot loop: rows are picked."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.jit import compiled
from synthesis.xorshift import following


@compiled
def pick_rows(
    keys: NDArray[np.int32],
    counts: NDArray[np.int64],
    quotas: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    freed: NDArray[np.int32],
    donors: NDArray[np.int32],
    state: NDArray[np.uint64],
) -> None:
    """One scan that picks, uniformly at random without repeats, `remove[c]` rows to free and `donate[c]` donors a cell.

    Selection sampling: a row of a cell with k rows left of which r are still wanted is taken with probability r / k.
    `counts` and `quotas` (`remove`, `donate`, and where a cell's donors are written) are used up.
    """
    remove, donate, starts = quotas
    seed = state[0]
    done = 0
    for i in range(len(keys)):
        cell = keys[i]
        count = remove[cell]
        giving = donate[cell]
        if count == 0 and giving == 0:
            continue
        seed = following(seed)
        draw = np.float64(seed >> np.uint64(11)) * 1.1102230246251565e-16 * counts[cell]
        counts[cell] -= 1
        if draw < count:
            freed[done] = i
            done += 1
            remove[cell] = count - 1
        elif giving > 0 and draw < giving:
            donors[starts[cell]] = i
            starts[cell] += 1
            donate[cell] = giving - 1
    state[0] = seed
