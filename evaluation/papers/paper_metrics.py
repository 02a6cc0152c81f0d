"""The metrics of papers and challenges that are no more than an entry; those of the core are in `core_metrics`."""

from __future__ import annotations

from dataclasses import dataclass

from evaluation.accuracy.n_way_metrics import AnitaSettings
from evaluation.map_columns import MAP, MapColumns, TimeAndPlace
from evaluation.metric import Metric, MetricSettings
from evaluation.persons.person_settings import FixedSettings
from mechanisms.public.settings import column


@dataclass(frozen=True)
class TripSettings(TimeAndPlace):
    """Settings.

    Attributes:
        to: where a trip ends.
    """

    to: str | None = column("the column of the destinations")


@dataclass(frozen=True)
class AreaSettings(MetricSettings):
    """Settings.

    Attributes:
        area: PUMA.
    """

    area: str | None = column("the column that sdnist_kmarginal adds to each pair of columns: evaluation.area=PUMA")


@dataclass(frozen=True)
class SequencesSettings(AnitaSettings, FixedSettings):
    """Settings."""


DENSITY = Metric(
    name="density",
    title="2018: density estimation",
    says="{score:,.0f} of 1,000,000 points for tables of three columns",
    goal="high",
    high=1_000_000,
    perfect=1_000_000,
    reference="its floor",
    source="Li et al. 2021b, 5.1",
    run="evaluation.papers.challenges.density:density_of",
)

RANGE_2018 = Metric(
    name="range_2018",
    title="2018: range queries",
    says="{score:,.0f} of 1,000,000 points for shares of records in random ranges",
    goal="high",
    high=1_000_000,
    perfect=1_000_000,
    reference="its floor",
    source="Li et al. 2021b, 5.1",
    run="evaluation.papers.challenges.range_2018:range_score_of",
)

RANGE_QUERY = Metric(
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
    settings=MapColumns,
    needs=MAP,
    quick=True,
)

SPRINT2 = Metric(
    name="sprint2",
    title="Sprint 2: k-marginal per place and time",
    says="{score:.0f} of 1,000 points for the marginals of places and times",
    goal="high",
    high=1000,
    perfect=1000,
    reference="1 %, 10 %, 50 % of the contest's ACS rows: 572-590, 831-839, 940-944; its ladder",
    source="NIST challenge 2020-21, sprint 2",
    run="evaluation.papers.challenges.sprint2:sprint2_of",
    settings=TimeAndPlace,
    needs=("time", "segment"),
)

SPRINT3 = Metric(
    name="sprint3",
    title="Sprint 3: k-marginal, flows and kinds of subjects",
    says="{score:.0f} of 1,000 points for marginals, flows between places and kinds of subjects",
    goal="high",
    high=1000,
    perfect=1000,
    reference="1 %, 10 %, 50 % of the contest's trips: 472-547, 703-721, 887-889",
    source="NIST challenge 2020-21, sprint 3",
    run="evaluation.papers.challenges.sprint3:sprint3_of",
    settings=TripSettings,
    needs=("time", "segment", "to"),  # without subjects two of its three parts
    referable=False,
)

SDNIST = Metric(
    name="sdnist_kmarginal",
    title="SDNist: k-marginal of all pairs of columns, in each area",
    says="{score:.0f} of 1,000 points for all pairs of columns",
    goal="high",
    high=1000,
    perfect=1000,
    reference="10, 40 and 90 % of the real rows, in the details; independent columns",
    source="NIST, SDNist 2.3; Collaborative Research Cycle",
    run="evaluation.papers.challenges.sdnist:sdnist_of",
    settings=AreaSettings,
    ends=lambda result: result.ends,
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
    ends=lambda result: result.ends,
    settings=SequencesSettings,
    needs=("subject",),
    referable=False,
    on_values=True,
)
