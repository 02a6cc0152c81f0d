"""The registry: every metric by name, and the settings that they bring; what is to be scored."""

from __future__ import annotations

from dataclasses import dataclass, field

from evaluation.metric import ROW_FACTS, MapColumns, Metric, Options
from mechanisms.public.errors import UserError, did_you_mean, one_of
from mechanisms.public.members import Members
from mechanisms.public.settings import Setting, declared

#: Metrics whose details have a place of their own in scores.json.
ON_TOP = ("mgd", "tvd")
#: The accuracies whose mean is the accuracy of a table (Platzer 2020), and what each is of.
ACCURACIES = {"anita_1way": "single columns", "anita_2way": "pairs", "anita_3way": "triples"}
#: The metrics by name, in the order of scores.json; a contract test runs over all of them.
METRICS: Members[Metric] = Members(
    "metrics",
    {
        "mgd": "evaluation.core_metrics:MGD",
        "tvd": "evaluation.core_metrics:TVD",
        "anita_1way": "evaluation.core_metrics:ANITA_1WAY",
        "anita_2way": "evaluation.core_metrics:ANITA_2WAY",
        "anita_3way": "evaluation.core_metrics:ANITA_3WAY",
        "anita_4way": "evaluation.core_metrics:ANITA_4WAY",
        "anita_nway": "evaluation.core_metrics:ANITA_NWAY",
        "correlation": "evaluation.core_metrics:CORRELATION",
        "dependence": "evaluation.core_metrics:DEPENDENCE",
        "outlier_coverage": "evaluation.core_metrics:OUTLIER_COVERAGE",
        "density": "evaluation.papers.paper_metrics:DENSITY",
        "range_2018": "evaluation.papers.paper_metrics:RANGE_2018",
        "range_query": "evaluation.papers.paper_metrics:RANGE_QUERY",
        "pie_chart": "evaluation.papers.paper_metrics:PIE_CHART",
        "inverse_pie": "evaluation.papers.paper_metrics:INVERSE_PIE",
        "ncript": "evaluation.papers.paper_metrics:NCRIPT",
        "sprint2": "evaluation.papers.paper_metrics:SPRINT2",
        "sprint3": "evaluation.papers.paper_metrics:SPRINT3",
        "sdnist_kmarginal": "evaluation.papers.paper_metrics:SDNIST",
        "gini": "evaluation.papers.paper_metrics:GINI",
        "anita_sequences": "evaluation.papers.paper_metrics:SEQUENCES",
        "persons": "evaluation.core_metrics:PERSONS",
        "anita_privacy": "evaluation.papers.paper_metrics:PRIVACY",
        "singling_out": "evaluation.core_metrics:SINGLING_OUT",
        "linkage": "evaluation.core_metrics:LINKAGE",
        "attribute_inference": "evaluation.core_metrics:ATTRIBUTE_INFERENCE",
        "membership_inference": "evaluation.core_metrics:MEMBERSHIP",
        "two_sample_auc": "evaluation.core_metrics:TWO_SAMPLE_AUC",
        "tstr": "evaluation.core_metrics:TSTR",
    },
)


def check_metric(metric: Metric) -> None:
    """A metric may join the others.

    Raises:
        UserError: its name, or the name of a setting, means something else already; it needs what it does not declare.
    """
    if metric.name in METRICS:
        raise UserError(f"there is a metric {metric.name!r} already", where="metrics", fix="another name")
    others, own = declared_settings(), declared(metric.settings)
    for each in own:
        if others.get(each.name, each) != each:
            fix = f"another name, or the class of settings that {' and '.join(users(each.name))} declare it in"
            raise UserError(f"metric {metric.name!r} declares it otherwise", where=f"evaluation.{each.name}", fix=fix)
    for need in set(metric.needs) - ROW_FACTS.keys() - {s.name for s in own}:
        fix = f"one of its settings, or {', '.join(ROW_FACTS)}"
        raise UserError(f"metric {metric.name!r} needs {need!r}, which it does not declare", where="metrics", fix=fix)


def find(name: str) -> Metric:
    """The metric of this name; raises UserError with a suggestion for an unknown one."""
    if name not in METRICS:
        fix = f"{did_you_mean(name, METRICS)} known metrics: {', '.join(METRICS)}".strip()
        raise UserError(f"no metric {name!r}", where="metrics", fix=fix)
    return METRICS[name]


def declared_settings() -> dict[str, Setting]:
    """Every setting that a metric or the map of a report declares, by name."""
    return {s.name: s for kind in (*(m.settings for m in METRICS.values()), MapColumns) for s in declared(kind)}


def column_roles() -> tuple[str, ...]:
    """The settings that name the column in a role."""
    return tuple(name for name, each in declared_settings().items() if each.role)


def users(setting: str) -> list[str]:
    """The metrics that have a setting."""
    return [m.name for m in METRICS.values() if any(s.name == setting for s in declared(m.settings))]


@dataclass(frozen=True)
class ScoreSpec:
    """What to score.

    Attributes:
        detail: none, all, or a key of DETAILS: which tables of the deep dive are wanted.
        worst: how many marginals to dive into, those with the largest shares of the score.
        top: how many bins and movements of each.
        metrics: what to compute, by name.
        options: what the metrics may use beside the two tables.
        references: measure floor and independent columns of every metric too: four scores more of each.
        groups: columns whose groups' numbers are set side by side.
        dive: dive into the worst marginals whatever `detail` says: a report wants it.
    """

    detail: str = "none"
    worst: int = 3
    top: int = 10
    metrics: tuple[str, ...] = ON_TOP
    options: Options = field(default_factory=Options)
    references: bool = False
    groups: tuple[str, ...] = ()
    dive: bool = False

    def __post_init__(self) -> None:
        for name in self.metrics:
            find(name)
        if self.detail != "none":
            from evaluation.mgd.deep_dive import DETAILS

            one_of(self.detail, ("none", *DETAILS, "all"), "detail")
