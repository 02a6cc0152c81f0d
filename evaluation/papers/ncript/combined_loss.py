"""N-CRiPT (team N-CRiPT 2021): five losses per segment and time, their combination, snapshot and deep dive."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evaluation.cube import Cubes, map_cubes
from evaluation.metric import Inputs, Options
from evaluation.papers.ncript.ncript_rows import (
    NcriptSpec,
    bias_penalty,
    heavy_hitters,
    horizontal_losses,
    jaccard_by_type,
    jaccard_distance,
    jsd,
    jsd_by_type,
    vertical_losses,
    violating_types,
)
from evaluation.papers.paper_metrics import NcriptSettings
from evaluation.pictures.pair_maps import named
from mechanisms.public.arrays import Floats
from mechanisms.public.errors import check_names
from mechanisms.public.files import JsonDict
from mechanisms.public.schema.table_schema import Schema

#: How many of the worst segments have their temporal scores among the details.
WORST = 6
#: Record types whose losses a report shows.
TYPES = 10


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
        parts: jsd, bp, jd, hh, hc and vc as time × segment, in [0, 1] (bp: 0 or the penalty); the last two repeat over
            time.
        times, segments: labels.
        spec: the parameters.
        heavy_year: heavy hitters of each segment over all times (2.2.3).
        heavy_map: heavy hitters of each time over the whole map (2.2.3).
        heavy_whole: heavy hitters of all times over the whole map (2.2.3).
        types: what each record type adds to the loss, as of `_losses_by_type`.
        order: of each segment over all times, and then of the whole map: how many pairs of the most frequent types keep
            their order (`order_agreement`).
    """

    parts: dict[str, Floats]
    times: tuple[object, ...]
    segments: tuple[object, ...]
    spec: NcriptSpec
    heavy_year: Floats
    heavy_map: Floats
    heavy_whole: float
    types: pd.DataFrame
    order: Floats
    total: Floats = field(init=False)

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

    @property
    def losses(self) -> dict[str, Floats]:
        """The parts by the names of Table 2, and their Total."""
        return {name.upper(): values for name, values in self.parts.items()} | {"Total": self.total}

    def snapshot(self) -> pd.DataFrame:
        """The losses of each segment summed over the times (2.4.1, Figure 2), the worst segment first."""
        columns = {name: values.sum(axis=0) for name, values in self.losses.items()}
        frame = pd.DataFrame({"segment": list(self.segments), **columns})
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
        return [
            {"segment": name, **{loss: values[:, named[name]].tolist() for loss, values in self.losses.items()}}
            for name in self.spec.places or worst
        ]

    def drawn(self, schema: Schema, options: Options) -> JsonDict:
        """The loss of each place and time, the six losses of some places, and what the worst record types add."""
        own, ready = options.own(NcriptSettings), options.ready.get("ncript")
        if own.time is None or own.segment is None or own.kind is None:
            return {}
        courses, worst = self.courses(), self.types.head(TYPES)
        places = named(schema[own.segment], tuple(c["segment"] for c in courses))
        types = worst.assign(type=named(schema[own.kind], tuple(worst["type"]))).to_dict(orient="records")
        map_of_losses = {
            "score": "N-CRiPT loss",
            "times": self.times,
            "segments": self.segments,
            "losses": self.total.T,
            "regions": (ready.regions if ready else None) or {},
            "temporal": [{**course, "segment": name} for course, name in zip(courses, places, strict=True)],
            "types": [{str(k): v for k, v in row.items()} for row in types],
        }
        return {"map": map_of_losses}


def ncript(cubes: Cubes, spec: NcriptSpec | None = None) -> Ncript:
    """All of N-CRiPT's losses of a synthetic table against the truth.

    Goal: one look at mix, invented types, frequent types, relations and trends. Range of the score: [0, 1], 0 perfect.
    Edge cases: those of each part; a map without rows has no score.
    """
    spec = spec or NcriptSpec()
    q, p = cubes.real, cubes.synthetic
    times = max(len(cubes.times), 1)
    labels, fix = [*map(str, cubes.segments)], "labels of the map's segments"
    check_names(spec.places, labels, "no segment", where="evaluation.ncript: places", fix=fix)
    horizontal = horizontal_losses(q, p, threshold=spec.strong)
    vertical = vertical_losses(q, p, threshold=spec.frequency_threshold)
    kinds = max(len(cubes.types), 1)
    heavy = partial(heavy_hitters, k=spec.k, delta=spec.delta, h=spec.h)
    flat = np.ones((len(cubes.times), 1))
    parts = {
        "jsd": jsd(q, p, threshold=spec.frequency_threshold),
        "bp": bias_penalty(q, p, penalty=spec.bias_penalty, cutoff=spec.bias_cutoff),
        "jd": jaccard_distance(q, p),
        "hh": heavy(q, p),
        "hc": flat * horizontal.sum(axis=1) / kinds / times,
        "vc": flat * vertical.sum(axis=1) / kinds / times,
    }
    year, whole = (x.sum(axis=0) for x in (q, p)), (x.sum(axis=1) for x in (q, p))
    sums = [np.vstack([x.sum(axis=0), x.sum(axis=(0, 1))[None]]) for x in (q, p)]
    order = order_agreement(*sums)
    typed = _losses_by_type(cubes, spec, horizontal, vertical)
    everything = float(heavy(sums[0][-1], sums[1][-1]))
    return Ncript(parts, cubes.times, cubes.segments, spec, heavy(*year), heavy(*whole), everything, typed, order)


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if values.size else None


class PreparedRows(NamedTuple):
    """The region of each segment by its label, or None for the segments themselves; the parameters."""

    regions: dict[str, str] | None
    spec: NcriptSpec


def prepared(own: NcriptSettings, schema: Schema | None, seed: int) -> PreparedRows:
    """Regions and parameters.

    Raises:
        UserError: no such level or parameter; a parameter out of range.
    """
    given, names, regions = own.ncript or {}, [f.name for f in fields(NcriptSpec)], None
    check_names(given, names, "no parameter", where="evaluation.ncript")
    if own.regions is not None and own.segment is not None and schema is not None:
        tree = schema[own.segment].hierarchy
        nodes = tree.level(own.regions).nodes
        regions = {leaf: nodes[i] for leaf, i in zip(tree.leaves, tree.nodes_of(own.regions), strict=True)}
    lists = {name: tuple(value) for name, value in given.items() if isinstance(value, list)}
    return PreparedRows(regions, NcriptSpec(**{**given, **lists}))


def ncript_of(inputs: Inputs) -> Ncript:
    """The metric `ncript`."""
    names = (inputs.column("time"), inputs.column("segment"), inputs.column("kind"))
    cubes = map_cubes(inputs.real, inputs.synthetic, inputs.schema, names)
    ready: PreparedRows = inputs.ready or prepared(inputs.own(NcriptSettings), None, 0)
    if ready.regions is not None:
        cubes = cubes.merged([ready.regions.get(str(s), str(s)) for s in cubes.segments])
    return ncript(cubes, ready.spec)


#: The losses that have types; the bias penalty is one of a whole row.
TYPED = ("jsd", "jd", "hh", "hc", "vc")
#: So many types of a row are its frequent ones.
TOP = 10


def _losses_by_type(cubes: Cubes, spec: NcriptSpec, horizontal: Floats, vertical: Floats) -> pd.DataFrame:
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
        sums["jd"] += jaccard_by_type(q, p).sum(axis=0)
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
            "rank": pd.Series(records[0]).rank(method="min", ascending=False).astype(int),
            "synthetic_rank": pd.Series(records[1]).rank(method="min", ascending=False).astype(int),
            **{name.upper(): values for name, values in sums.items()},
            "Total": weighted,
        }
    )
    return frame.sort_values("Total", ascending=False, kind="stable", ignore_index=True)


def order_agreement(real: NDArray[np.number], synthetic: NDArray[np.number]) -> Floats:
    """Of each row: the share of pairs of its TOP most frequent types whose order is kept, a tie counting one half.

    Pairs with equal true counts have no order. Range: [0, 1]; 1 is perfect, 1/2 is chance. NaN for a row without two
    types that occur.

    Args:
        real, synthetic: rows × types.
    """
    shares = np.full(len(real), np.nan)
    for i, (q, p) in enumerate(zip(np.asarray(real, float), np.asarray(synthetic, float), strict=True)):
        frequent = np.argsort(-q, kind="stable")[:TOP]
        frequent = frequent[q[frequent] > 0]
        truth, synthetic = q[frequent], p[frequent]
        ordered = truth[:, None] > truth[None, :]
        agreeing = np.where(
            synthetic[:, None] > synthetic[None, :], 1.0, 0.5 * (synthetic[:, None] == synthetic[None, :])
        )
        if ordered.any():
            shares[i] = float(agreeing[ordered].mean())
    return shares
