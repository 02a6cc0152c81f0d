"""N-CRiPT (team N-CRiPT 2021): five losses per segment and time, their combination, snapshot and deep dive."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evaluation.cube import Cubes
from evaluation.ncript.ncript_rows import bias_penalty, heavy_hitters, jaccard_distance, jsd, thresholded
from evaluation.ncript.ncript_series import horizontal_correlation, vertical_correlation
from mechanisms.public.errors import UserError

PARTS = ("jsd", "bp", "jd", "hh", "hc", "vc")


@dataclass(frozen=True)
class NcriptSpec:
    """The parameters, with the defaults of 3.1.2.

    Attributes:
        weights: ω of JSD, JD, HH, HC and VC (2.3.2); the bias penalty has none.
        frequency_threshold: FT: smaller shares of a row are not significant.
        bias_penalty: BP (the formula section 2.2.1 prints 0.2).
        delta, h: Δ and h of the heavy hitters.
        strong: correlations above it are strong.
        jaccard_of_significant: whether the Jaccard distance reads the counts left by the frequency threshold.
    """

    weights: tuple[float, float, float, float, float] = (0.3, 0.15, 0.15, 0.15, 0.15)
    frequency_threshold: float = 0.05
    bias_penalty: float = 0.1
    delta: float = 0.2
    h: float = 0.02
    strong: float = 0.9
    jaccard_of_significant: bool = False

    def __post_init__(self) -> None:
        if len(self.weights) != 5 or any(not 0 <= w < math.inf for w in self.weights):
            raise UserError(f"got {self.weights}", where="ncript.weights", fix="five numbers of at least 0")
        for name in ("frequency_threshold", "delta", "strong"):
            if not 0 <= getattr(self, name) <= 1:
                raise UserError(f"got {getattr(self, name)}", where=f"ncript.{name}", fix="a number from 0 to 1")


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
    """

    parts: dict[str, NDArray[np.float64]]
    times: tuple[object, ...]
    segments: tuple[object, ...]
    spec: NcriptSpec
    heavy_year: NDArray[np.float64]
    heavy_map: NDArray[np.float64]
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
        if segment not in self.segments:
            raise UserError(f"no segment {segment!r}", where="segment", fix="one of the labels of the map")
        frame = self.table()
        chosen = [s == segment for s in self.segments for _ in self.times]
        return frame[chosen].reset_index(drop=True)

    def snapshot(self) -> pd.DataFrame:
        """The losses of each segment summed over the times (2.4.1, Figure 2), the worst segment first."""
        columns = {name.upper(): values.sum(axis=0) for name, values in self.parts.items()}
        frame = pd.DataFrame({"segment": list(self.segments), **columns, "Total": self.total.sum(axis=0)})
        return frame.sort_values("Total", ascending=False, kind="stable", ignore_index=True)

    def to_json(self) -> dict[str, Any]:
        """JSON values; the mean loss of a row first, and the snapshot of every segment, the worst first."""
        rows = self.total.size
        if not rows:
            return {"score": None, "reason": "no rows: a table without segments or times"}
        return {
            "score": self.score,
            "loss": self.loss,
            "rows": {"segments": len(self.segments), "times": len(self.times)},
            "means": {name: float(values.mean()) for name, values in self.parts.items()},
            "heavy_hitters": {"per_segment_all_times": _mean(self.heavy_year), "whole_map": _mean(self.heavy_map)},
            "weights": list(self.spec.weights),
            "segments": self.snapshot().assign(segment=lambda f: f["segment"].map(str)).to_dict(orient="records"),
        }


def ncript(cubes: Cubes, spec: NcriptSpec | None = None) -> Ncript:
    """All of N-CRiPT's losses of a synthetic table against the truth.

    Goal: one look at mix, invented types, frequent types, relations and trends. Range of the score: [0, 1], 0 perfect.
    Edge cases: those of each part; a map without rows has no score.
    """
    spec = spec or NcriptSpec()
    q, p = cubes.real, cubes.synthetic
    times = max(len(cubes.times), 1)
    read = [thresholded(x, spec.frequency_threshold) if spec.jaccard_of_significant else x for x in (q, p)]
    flat = np.ones((len(cubes.times), 1))
    parts = {
        "jsd": jsd(q, p, threshold=spec.frequency_threshold),
        "bp": bias_penalty(q, p, penalty=spec.bias_penalty),
        "jd": jaccard_distance(read[0], read[1]),
        "hh": heavy_hitters(q, p, delta=spec.delta, h=spec.h),
        "hc": flat * horizontal_correlation(q, p, threshold=spec.strong) / times,
        "vc": flat * vertical_correlation(q, p, threshold=spec.frequency_threshold) / times,
    }
    year = heavy_hitters(q.sum(axis=0), p.sum(axis=0), delta=spec.delta, h=spec.h)
    whole = heavy_hitters(q.sum(axis=1), p.sum(axis=1), delta=spec.delta, h=spec.h)
    return Ncript(parts, cubes.times, cubes.segments, spec, year, whole)


def _mean(values: NDArray[np.float64]) -> float | None:
    return float(values.mean()) if values.size else None
