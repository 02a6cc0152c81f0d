"""ANITA's distances to the closest records: its entry and its settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evaluation.metric import Inputs, Metric, MetricSettings, Options
from mechanisms.public.json_values import JsonDict
from mechanisms.public.settings import columns, setting

if TYPE_CHECKING:
    from evaluation.papers.anita.anita_privacy import Privacy
    from evaluation.readings.reading import Ends
    from mechanisms.public.schema.table_schema import Schema

#: Points of a curve that a report draws.
POINTS = 51


@dataclass(frozen=True)
class DistanceSettings(MetricSettings):
    """Settings.

    Attributes:
        distance_columns: what is compared.
        distance: how; distance_buckets: after how many buckets per column.
        max_rows: of each table; distance_rows: of these, for the distances.
    """

    distance_columns: list[str] = columns(
        "the columns to measure distances on; default: all",
        example="a list of columns: 'evaluation.distance_columns=[age,sex]'",
    )
    distance: str = setting(
        "hamming",
        "hamming: columns that differ | mixed: of ordered columns how far apart their values lie, from 0 to 1",
        choices=("hamming", "mixed"),
    )
    distance_buckets: int | None = setting(
        None, "buckets per column that distances are measured in; null for the values as they are", least=2
    )
    max_rows: int | None = setting(60_000, "at most so many rows of each table; null for all", least=1)
    distance_rows: int | None = setting(
        20_000, "at most so many of these rows for the distances, a random sample; null for all of them", least=1
    )


def _privacy(inputs: Inputs) -> Privacy:
    from evaluation.papers.anita.anita_privacy import privacy

    options, own = inputs.options, inputs.own(DistanceSettings)
    tables = (inputs.real, inputs.synthetic, options.holdout)
    return privacy(
        *tables,
        columns=own.distance_columns or None,
        m=own.distance_buckets,
        kind="mixed" if own.distance == "mixed" else "hamming",
        max_rows=own.max_rows,
        distance_rows=own.distance_rows,
        seed=options.seed,
    )


def _ends(result: Privacy) -> Ends | None:
    from evaluation.readings.reading import Ends

    if result.closer is None:
        return None
    share, real = result.closer.share, result.closer.real
    limits, of = (0.05, 0.2), "two halves of the holdout" if real is not None else "real records"
    honest, poor = share.null if real is None else real.value, "copies of training records"
    return Ends(honest, None, 1.0, share.low, share.high, limits=limits, honest_is=of, poor_is=poor)


def _figures(result: Privacy, schema: Schema, options: Options) -> JsonDict:
    """The curves of both distances."""
    curves = {}
    for name, part in (("dcr", result.dcr), ("nndr", result.nndr)):
        if part is not None and part.synthetic.size:
            curves[name] = part.curve(POINTS).to_dict("list")
    about = {"passed": result.passed, "columns": len(result.columns), "rows": result.measured}
    return {"distances": curves | about} if curves else {}


PRIVACY = Metric(
    name="anita_privacy",
    title="ANITA: DCR and NNDR; share nearer to training than to the holdout",
    says="{score:.1%} of the synthetic records lie nearer to a training record than to the holdout's",
    goal="low",
    perfect=0.5,
    reference="½, and what real records score",
    source="Platzer 2020, section 3 (DCR and NNDR against a holdout; the share as one number is ours)",
    run=_privacy,
    score="share",
    ends=_ends,
    figures=_figures,
    settings=DistanceSettings,
    needs=("holdout",),
    referable=False,
    on_values=True,
)
