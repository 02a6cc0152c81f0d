"""N-CRiPT (team N-CRiPT 2021): five losses per segment and time, their combination, snapshot and deep dive."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evaluation.cube import Cubes
from evaluation.papers.ncript.ncript_rows import bias_penalty, heavy_hitters, jaccard_distance, jsd, thresholded
from evaluation.papers.ncript.ncript_series import horizontal_losses, vertical_losses
from evaluation.papers.ncript.ncript_spec import NcriptSpec
from evaluation.papers.ncript.type_losses import losses_by_type, order_kept
from mechanisms.public.errors import UserError, did_you_mean
from mechanisms.public.json_values import JsonDict

PARTS = ("jsd", "bp", "jd", "hh", "hc", "vc")
#: How many of the worst segments have their temporal scores among the details.
WORST = 6


def total_loss(
    jsd: Any, bp: Any, jd: Any, hh: Any, hc: Any, vc: Any, *, weights: Sequence[float] = NcriptSpec.weights
) -> Any:
    """ω₁ JSD + BP + ω₂ JD + ω₃ HH + ω₄ HC + ω₅ VC (2.2.6, equation 5) of rows, HC and VC per row (2.4.1).

    Range: [0, 1] with the default weights.
    """
    a, b, c, d, e = weights
    return a * jsd + bp + b * jd + c * hh + d * hc + e * vc


@dataclass(frozen=True, eq=False)
class Ncript:
    """N-CRiPT's losses of one pair of tables; 0 is perfect everywhere.

    Attributes:
        parts: each of PARTS as time × segment, in [0, 1] (BP: 0 or the penalty); HC and VC repeat over time.
        times, segments: labels.
        spec: the parameters.
        heavy_year: heavy hitters of each segment over all times (2.2.3).
        heavy_map: heavy hitters of each time over the whole map (2.2.3).
        heavy_whole: heavy hitters of all times over the whole map (2.2.3).
        types: what each record type adds to the loss, as of `losses_by_type`.
        order: of each segment over all times, and then of the whole map: how many pairs of the most frequent types keep
            their order (`order_kept`).
    """

    parts: dict[str, NDArray[np.float64]]
    times: tuple[object, ...]
    segments: tuple[object, ...]
    spec: NcriptSpec
    heavy_year: NDArray[np.float64]
    heavy_map: NDArray[np.float64]
    heavy_whole: float
    types: pd.DataFrame
    order: NDArray[np.float64]
    total: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", total_loss(**self.parts, weights=self.spec.weights))

    @property
    def loss(self) -> float:
        """The loss of the whole table: between 0 and segments × times (2.4.1)."""
        return math.fsum(self.total.ravel())

    @property
    def score(self) -> float | None:
        """The mean loss of a row, in [0, 1]: comparable between maps; None without rows."""
        return self.loss / self.total.size if self.total.size else None

    def table(self) -> pd.DataFrame:
        """The temporal scores of every segment, in the form of Table 2."""
        grid = pd.MultiIndex.from_product([self.segments, self.times], names=["segment", "time"])
        columns = {name.upper(): values.T.ravel() for name, values in [*self.parts.items(), ("total", self.total)]}
        return pd.DataFrame(columns, index=grid).rename(columns={"TOTAL": "Total"}).reset_index()

    def deep_dive(self, segment: object) -> pd.DataFrame:
        """The temporal scores of one segment (2.4.2)."""
        if segment not in self.segments and str(segment) not in map(str, self.segments):
            raise UserError(f"no segment {segment!r}", where="segment", fix="one of the labels of the map")
        frame = self.table()
        return frame[frame["segment"].map(str) == str(segment)].reset_index(drop=True)

    def snapshot(self) -> pd.DataFrame:
        """The losses of each segment summed over the times (2.4.1, Figure 2), the worst segment first."""
        columns = {name.upper(): values.sum(axis=0) for name, values in self.parts.items()}
        frame = pd.DataFrame({"segment": list(self.segments), **columns, "Total": self.total.sum(axis=0)})
        return frame.sort_values("Total", ascending=False, kind="stable", ignore_index=True)

    def to_json(self) -> JsonDict:
        """JSON values; the mean loss of a row first, and the snapshot of every segment, the worst first."""
        rows = self.total.size
        if not rows:
            return {"score": None, "reason": "no rows: a table without segments or times"}
        return {
            "score": self.score,
            "loss": self.loss,
            "rows": {"segments": len(self.segments), "times": len(self.times)},
            "means": {name: float(values.mean()) for name, values in self.parts.items()},
            "heavy_hitters": {
                "per_segment_all_times": _mean(self.heavy_year),
                "whole_map": _mean(self.heavy_map),
                "whole_map_all_times": self.heavy_whole,
            },
            "order_of_frequent_types": {
                "per_segment_all_times": _mean(self.order[:-1][~np.isnan(self.order[:-1])]),
                "whole_map_all_times": None if np.isnan(self.order[-1]) else float(self.order[-1]),
            },
            "parameters": asdict(self.spec),
            "types": self.types.assign(type=lambda f: f["type"].map(str)).to_dict(orient="records"),
            "segments": self.snapshot().assign(segment=lambda f: f["segment"].map(str)).to_dict(orient="records"),
            "temporal": self.courses(),
        }

    def courses(self) -> list[JsonDict]:
        """The temporal scores chart (2.4.2) as data: each loss as a list over the times.

        Of the segments that `NcriptSpec.places` names, else of the WORST worst ones.
        """
        named = {str(s): i for i, s in enumerate(self.segments)}
        worst = [str(s) for s in self.snapshot()["segment"].tolist()[:WORST]]
        losses = {name.upper(): values for name, values in self.parts.items()} | {"Total": self.total}
        return [
            {"segment": name, **{loss: values[:, named[name]].tolist() for loss, values in losses.items()}}
            for name in self.spec.places or worst
        ]


def ncript(cubes: Cubes, spec: NcriptSpec | None = None) -> Ncript:
    """All of N-CRiPT's losses of a synthetic table against the truth.

    Goal: one look at mix, invented types, frequent types, relations and trends. Range of the score: [0, 1], 0 perfect.
    Edge cases: those of each part; a map without rows has no score.
    """
    spec = spec or NcriptSpec()
    q, p = cubes.real, cubes.synthetic
    times = max(len(cubes.times), 1)
    for name in set(spec.places) - set(map(str, cubes.segments)):
        fix = did_you_mean(name, list(map(str, cubes.segments))) or "labels of the map's segments"
        raise UserError(f"no segment {name!r}", where="evaluation.ncript: places", fix=fix)
    horizontal = horizontal_losses(q, p, threshold=spec.strong)
    vertical = vertical_losses(q, p, threshold=spec.frequency_threshold)
    kinds = max(len(cubes.types), 1)
    read = [thresholded(x, spec.frequency_threshold) if spec.jaccard_of_significant else x for x in (q, p)]
    heavy = partial(heavy_hitters, k=spec.k, delta=spec.delta, h=spec.h)
    flat = np.ones((len(cubes.times), 1))
    parts = {
        "jsd": jsd(q, p, threshold=spec.frequency_threshold),
        "bp": bias_penalty(q, p, penalty=spec.bias_penalty, cutoff=spec.bias_cutoff),
        "jd": jaccard_distance(read[0], read[1]),
        "hh": heavy(q, p),
        "hc": flat * horizontal.sum(axis=1) / kinds / times,
        "vc": flat * vertical.sum(axis=1) / kinds / times,
    }
    year, whole = (x.sum(axis=0) for x in (q, p)), (x.sum(axis=1) for x in (q, p))
    sums = [np.vstack([x.sum(axis=0), x.sum(axis=(0, 1))[None]]) for x in (q, p)]
    order = order_kept(*sums)
    typed = losses_by_type(cubes, spec, horizontal, vertical)
    everything = float(heavy(sums[0][-1], sums[1][-1]))
    return Ncript(parts, cubes.times, cubes.segments, spec, heavy(*year), heavy(*whole), everything, typed, order)


def _mean(values: NDArray[np.float64]) -> float | None:
    return float(values.mean()) if values.size else None
