"""The metrics of papers and challenges: entries and settings; those of the core are in `core_metrics`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from evaluation.core_metrics import AnitaSettings, FixedSettings
from evaluation.metric import MAP, MapColumns, Metric, MetricSettings, TimeAndPlace
from mechanisms.public.settings import column, columns, setting


@dataclass(frozen=True)
class TripSettings(TimeAndPlace):
    """Settings of metrics of trips, from the segment to another one."""

    to: str | None = column("the column of the destinations")


@dataclass(frozen=True)
class AreaSettings(MetricSettings):
    """Settings of the metric of SDNist."""

    area: str | None = column("the column that sdnist_kmarginal adds to each pair of columns: evaluation.area=PUMA")


@dataclass(frozen=True)
class SequencesSettings(AnitaSettings, FixedSettings):
    """Settings of ANITA's sequences."""


@dataclass(frozen=True)
class GiniSettings(MetricSettings):
    """Settings of the Gini index of incomes, by group and sex."""

    group: str | None = column("the column of the groups")
    sex: str | None = column("the column of the sexes")
    income: str | None = column("the column of the incomes")
    gini_index: str = setting(
        "challenge", "how `gini` computes the index: challenge (1/n lower) or usual", choices=("challenge", "usual")
    )


@dataclass(frozen=True)
class DistanceSettings(MetricSettings):
    """Settings of ANITA's distances; `distance_rows` are some of `max_rows`."""

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


@dataclass(frozen=True)
class NcriptSettings(MapColumns):
    """Settings of N-CRiPT (2021; of `regions` section 3.5): `ncript` holds fields of `NcriptSpec`."""

    regions: str | None = setting(None, "a level of the segment's hierarchy, instead of the segments themselves")
    ncript: dict[str, Any] | None = setting(
        None,
        "other parameters: weights (ω, five), delta, k, h, frequency_threshold (FT), bias_penalty (BP), places",
        example="'evaluation.ncript={weights: [0.2, 0.2, 0.2, 0.2, 0.2], delta: 0.1, places: [Remington]}'",
    )


#: The entry of a metric of the challenge of 2018.
MATCH_3 = partial(
    Metric,
    goal="high",
    high=1_000_000,
    perfect=1_000_000,
    reference="its floor",
    source="Li et al. 2021b, 5.1",
)

DENSITY = MATCH_3(
    name="density",
    title="2018: density estimation",
    says="{score:,.0f} of 1,000,000 points for tables of three columns",
    run="evaluation.papers.challenges.match_2018:density_of",
)

RANGE_2018 = MATCH_3(
    name="range_2018",
    title="2018: range queries",
    says="{score:,.0f} of 1,000,000 points for shares of records in random ranges",
    run="evaluation.papers.challenges.match_2018:range_score_of",
)

#: The entry of a metric of a temporal map.
ON_MAP = partial(Metric, settings=MapColumns, needs=MAP)

RANGE_QUERY = ON_MAP(
    name="range_query",
    title="Range queries on the map: mean relative error",
    says="answers to range queries on the map are off by {score:.1%} on average",
    goal="low",
    high=None,
    perfect=0,
    reference="its floor",
    source="Li et al. 2021a, Appendix B",
    run="evaluation.papers.challenges.range_query:range_query_of",
    score="error",
    quick=True,
)

#: The entry of a score of 1,000 points.
POINTS = partial(Metric, goal="high", high=1000, perfect=1000)

SPRINT2 = POINTS(
    name="sprint2",
    title="Sprint 2: k-marginal per place and time",
    says="{score:.0f} of 1,000 points for the marginals of places and times",
    reference="1 %, 10 %, 50 % of the contest's ACS rows: 572-590, 831-839, 940-944",
    source="NIST challenge 2020-21, sprint 2",
    run="evaluation.papers.challenges.kmarginal:sprint2_of",
    settings=TimeAndPlace,
    needs=("time", "segment"),
)

SPRINT3 = POINTS(
    name="sprint3",
    title="Sprint 3: k-marginal, flows and kinds of subjects",
    says="{score:.0f} of 1,000 points for marginals, flows between places and kinds of subjects",
    reference="1 %, 10 %, 50 % of the contest's trips: 472-547, 703-721, 887-889",
    source="NIST challenge 2020-21, sprint 3",
    run="evaluation.papers.challenges.kmarginal:sprint3_of",
    settings=TripSettings,
    needs=("time", "segment", "to"),  # without subjects two of its three parts
    referable=False,
)

SDNIST = POINTS(
    name="sdnist_kmarginal",
    title="SDNist: k-marginal of all pairs of columns, in each area",
    says="{score:.0f} of 1,000 points for all pairs of columns",
    reference="10, 40 and 90 % of the real rows, in the details; independent columns",
    source="NIST, SDNist 2.3; Collaborative Research Cycle",
    run="evaluation.papers.challenges.kmarginal:sdnist_of",
    settings=AreaSettings,
    on_values=True,
)

SEQUENCES = Metric(
    name="anita_sequences",
    title="ANITA: accuracy of two subsequent events of a subject",
    says="{score:.1%} of two subsequent events lie in the same cells",
    goal="high",
    perfect=1,
    reference="1 − its floor, in the details",
    source="Platzer 2020, section 2",
    run="evaluation.papers.anita.anita_sequences:sequences_of",
    settings=SequencesSettings,
    needs=("subject",),
    referable=False,
    on_values=True,
)

PIE_CHART = ON_MAP(
    name="pie_chart",
    title="Sprint 1: pie chart score per place and time",
    says="a place and time keeps {score:.1%} of the points for its shares",
    goal="high",
    perfect=1,
    reference="its floor; the sum over places and times, as published, is in the details",
    source="NIST challenge 2020-21, sprint 1; Li et al. 2021a, Appendix B",
    run="evaluation.papers.challenges.range_query:pie_chart_of",
    score="mean",
    quick=True,
)

INVERSE_PIE = ON_MAP(
    name="inverse_pie",
    title="Inverse pie chart score",
    says="a place and time loses {score:.1%} of the points for its shares",
    goal="low",
    perfect=0,
    reference="its floor",
    source="Li et al. 2021a, Appendix B; NIST challenge 2020-21, sprint 1",
    run=PIE_CHART.run,
    score="inverse",
)

GINI = MATCH_3(
    name="gini",
    title="2018: Gini index and rank of the gender pay gap",
    says="{score:,.0f} of 1,000,000 points for the Gini indices and the order of the cities' pay gaps",
    run="evaluation.papers.challenges.match_2018:gini_of",
    settings=GiniSettings,
    needs=("group", "sex", "income"),
    on_values=True,
)

NCRIPT = ON_MAP(
    name="ncript",
    title="N-CRiPT: mean loss of a place and time",
    says="a place and time lose {score:.1%} on average",
    goal="low",
    perfect=0,
    reference="rows of Table 2: 0.10 to 0.38 at ε = 4",
    source="N-CRiPT 2021, 2.2 to 2.4",
    run="evaluation.papers.ncript.combined_loss:ncript_of",
    settings=NcriptSettings,
    prepare="evaluation.papers.ncript.combined_loss:prepared",
)

PRIVACY = Metric(
    name="anita_privacy",
    title="ANITA: DCR and NNDR; share nearer to training than to the holdout",
    says="{score:.1%} of the synthetic records lie nearer to a training record than to the holdout's",
    goal="low",
    perfect=0.5,
    reference="½, and what real records score",
    source="Platzer 2020, section 3 (DCR and NNDR against a holdout; the share as one number is ours)",
    run="evaluation.papers.anita.anita_privacy:privacy_of",
    score="share",
    settings=DistanceSettings,
    needs=("holdout",),
    referable=False,
    on_values=True,
)
