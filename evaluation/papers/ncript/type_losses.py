"""N-CRiPT's losses shared out over the record types, and whether the frequent types keep their order.

Both are what section 3.2.2 of the source names as its limitations: the ranking of frequent types is not captured, and
nobody learns which type causes the loss.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evaluation.cube import Cubes
from evaluation.papers.ncript.ncript_rows import jaccard_by_type, jsd_by_type, thresholded, violating_types
from evaluation.papers.ncript.ncript_spec import NcriptSpec

Series = NDArray[np.float64]

#: The losses that have types; the bias penalty is one of a whole row.
TYPED = ("jsd", "jd", "hh", "hc", "vc")
#: So many types of a row are its frequent ones.
TOP = 10


def losses_by_type(cubes: Cubes, spec: NcriptSpec, horizontal: Series, vertical: Series) -> pd.DataFrame:
    """What each type adds to the loss of the whole table, the largest first.

    The Jensen-Shannon distance of a row is shared in proportion to the terms of the divergence, the Jaccard distance
    and the heavy hitters equally over the types that one row alone has or that break a condition; the correlations are
    of a type as they are. So the column of each loss adds up to its sum over the map, and `Total` to the loss of the
    table less its bias penalties.

    Args:
        horizontal, vertical: of each series, segment × type, as of `ncript_series`.

    Returns:
        Columns type, real and synthetic (records), rank and synthetic_rank (1 is the most frequent), JSD, JD, HH, HC,
        VC and Total (weighted).
    """
    types = len(cubes.types)
    sums = {name: np.zeros(types) for name in TYPED}
    for q, p in zip(cubes.real, cubes.synthetic, strict=True):  # a time each, for the memory
        sums["jsd"] += jsd_by_type(q, p, threshold=spec.frequency_threshold).sum(axis=0)
        read = [thresholded(x, spec.frequency_threshold) if spec.jaccard_of_significant else x for x in (q, p)]
        sums["jd"] += jaccard_by_type(*read).sum(axis=0)
        broken = violating_types(q, p, k=spec.k, delta=spec.delta)
        count = broken.sum(axis=-1, keepdims=True)
        each = np.minimum(count * spec.h, 1.0) / np.maximum(count, 1)
        sums["hh"] += (broken * each).sum(axis=0)
    sums["hc"] += horizontal.sum(axis=0) / max(types, 1)
    sums["vc"] += vertical.sum(axis=0) / max(types, 1)
    records = [x.sum(axis=(0, 1)) for x in (cubes.real, cubes.synthetic)]
    weighted = np.zeros(types)
    for weight, name in zip(spec.weights, TYPED, strict=True):
        weighted += weight * sums[name]
    frame = pd.DataFrame(
        {
            "type": list(cubes.types),
            "real": records[0],
            "synthetic": records[1],
            "rank": _ranks(records[0]),
            "synthetic_rank": _ranks(records[1]),
            **{name.upper(): values for name, values in sums.items()},
            "Total": weighted,
        }
    )
    return frame.sort_values("Total", ascending=False, kind="stable", ignore_index=True)


def order_kept(real: NDArray[np.number], synthetic: NDArray[np.number], *, top: int = TOP) -> Series:
    """Of each row: the share of pairs of its most frequent types whose order is kept, a tie counting one half.

    Pairs with equal true counts have no order. Range: [0, 1]; 1 is perfect, 1/2 is chance. NaN for a row without two
    types that occur.

    Args:
        real, synthetic: rows × types.
        top: so many types of a row, the most frequent in the truth.
    """
    shares = np.full(len(real), np.nan)
    for i, (q, p) in enumerate(zip(np.asarray(real, float), np.asarray(synthetic, float), strict=True)):
        frequent = np.argsort(-q, kind="stable")[:top]
        frequent = frequent[q[frequent] > 0]
        truth, synthetic = q[frequent], p[frequent]
        ordered = truth[:, None] > truth[None, :]
        agreeing = np.where(
            synthetic[:, None] > synthetic[None, :], 1.0, 0.5 * (synthetic[:, None] == synthetic[None, :])
        )
        if ordered.any():
            shares[i] = float(agreeing[ordered].mean())
    return shares


def _ranks(counts: Series) -> NDArray[np.int64]:
    """1 for the largest; equal ones share the smaller rank."""
    return np.asarray((counts[None, :] > counts[:, None]).sum(axis=1) + 1, np.int64)
