"""The pie chart score of sprint 1 of the NIST temporal map challenge, and its inverse (Li et al. 2021a, Appendix B)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import rel_entr

from evaluation.counts import cells_in_records
from evaluation.metric import Inputs
from evaluation.papers.ncript.ncript_rows import thresholded
from mechanisms.public.errors import UserError
from mechanisms.public.files import JsonDict

#: A category below this share of its segment is no slice of the pie.
SHARE = 0.05
#: Added to every count before the distance.
SMOOTHING = 1e-9
#: A segment whose total is off by more than so many records loses BIAS_PENALTY.
BIAS_RECORDS = 500
BIAS_PENALTY = 0.25
#: Lost per category that is a slice of the submission's pie and none of the truth's, as the official scorer counts it:
#: also one that the truth has below SHARE, where the N-CRiPT paper (section 1.1) says "actually zero".
MISLEADING_PENALTY = 0.2
#: Larger maps do not fit the memory that their histograms need.
MAX_CELLS = 100_000_000
#: Cells scored at a time.
CHUNK_CELLS = 4_000_000


@dataclass(frozen=True, eq=False)
class PieChart:
    """The score of one submission.

    Attributes:
        segments: one score in [0, 1] per map segment (1 is perfect).
        score: S, their sum.
    """

    segments: NDArray[np.float64]
    score: float

    @property
    def mean(self) -> float:
        """The score of a segment, on average."""
        return self.score / self.segments.size

    @property
    def inverse(self) -> float:
        """1 − S / segments (0 is perfect): what Li et al. 2021a compare with MGD."""
        return 1.0 - self.mean

    def to_json(self) -> JsonDict:
        """JSON values; the score first."""
        return {"score": self.score, "inverse": self.inverse, "segments": self.segments.size}


def pie_chart_of(inputs: Inputs) -> PieChart:
    """The metrics `pie_chart` and `inverse_pie`: a segment is a place in a span of time; weights count as they are.

    Raises:
        UserError: an unknown attribute, one that is named twice, or a map with more than MAX_CELLS cells.
    """
    real, clique = inputs.real, tuple(map(inputs.column, ("segment", "time", "kind")))
    if len(set(clique)) < len(clique):
        raise UserError(f"got {list(clique)}", where="pie chart", fix="different attributes for place, time, category")
    cells = real.domain.cells(clique)
    if cells > MAX_CELLS:
        fix = f"coarser attributes; at most {MAX_CELLS:,}"
        raise UserError(f"{' × '.join(clique)} has {cells:,} cells", where="pie chart", fix=fix)
    shape = (-1, real.domain[clique[2]].size)
    truth, submitted = (cells_in_records(table, clique).reshape(shape) for table in (real, inputs.synthetic))
    return pie_chart_counts(truth, submitted)


def pie_chart_counts(truth: NDArray[Any], submitted: NDArray[Any]) -> PieChart:
    """The pie chart score of two histograms.

    Args:
        truth, submitted: records, segments × categories; non-negative and finite.
    """
    a, b = np.asarray(truth, np.float64), np.asarray(submitted, np.float64)
    step = max(1, CHUNK_CELLS // a.shape[1])
    segments = np.concatenate([_segments(a[i : i + step], b[i : i + step]) for i in range(0, len(a), step)])
    return PieChart(segments, math.fsum(segments))


def _segments(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """clip(1 − JSD − misleading − bias, 0, 1) per row, and 1 where both rows are equal.

    As in the official scorer, a type is misleading where the truth has it below SHARE too; N-CRiPT 2021 (1.1) tells it
    of types that are "actually zero" alone.
    """
    bias = np.where(np.abs(a.sum(1) - b.sum(1)) > BIAS_RECORDS, BIAS_PENALTY, 0.0)
    slices_a, slices_b = thresholded(a, SHARE), thresholded(b, SHARE)
    misleading = MISLEADING_PENALTY * ((slices_a == 0) & (slices_b > 0)).sum(1)
    raw = 1.0 - _jensen_shannon(slices_a, slices_b) - misleading - bias
    return np.where((a == b).all(1), 1.0, np.clip(raw, 0.0, 1.0))


def _jensen_shannon(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """The Jensen-Shannon distance (the square root, base 2) of each pair of smoothed, normalised rows."""
    p, q = (x / x.sum(1, keepdims=True) for x in (a + SMOOTHING, b + SMOOTHING))
    middle = (p + q) / 2
    divergence = (rel_entr(p, middle).sum(1) + rel_entr(q, middle).sum(1)) / math.log(2) / 2
    return np.asarray(np.sqrt(np.maximum(divergence, 0.0)), np.float64)
