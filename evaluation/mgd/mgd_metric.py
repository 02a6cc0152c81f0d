"""MGD: its entry and its settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evaluation.metric import Metric, MetricSettings
from mechanisms.public.settings import setting

SOLVERS = ("auto", "flow")


@dataclass(frozen=True)
class MgdSettings(MetricSettings):
    """Settings.

    A preset is kway (all k-way marginals, or a seeded sample), thirds (weights 1/9, 1/9, 1/3 over three columns),
    located (k-way marginals with a temporal or spatial column), pie (one marginal, no mass moves), density (random
    3-way marginals, no mass moves, Δ = 0) or pums (3-way marginals, and one of city, sex and income that weighs as much
    as all others together). In an own list each entry has `attributes` (a column, or {column: level of its hierarchy}),
    and optionally `weights` ({column: a number in [0, 1] or inf}; default: inf for categorical columns, equal for
    ordinal ones), `delta`, and `weight` (its share).

    Attributes:
        preset, attributes, k, max_marginals, targets: which marginals.
        delta: tolerance Δ; deltas: others, at which the score is told too.
        alpha: cost of adding or removing one record.
        solver: of each marginal.
    """

    preset: str = setting("kway", "which marginals: kway | thirds | located | pie | density | pums")
    attributes: list[str] = setting(
        [],
        "thirds, pie, pums: the columns of the marginal; located: the temporal and spatial columns",
        example="a list of columns: 'evaluation.attributes=[month,city,type]'",
    )
    k: list[int] = setting(
        [1, 2, 3],
        "kway, located: the orders",
        least=1,
        filled=True,
        distinct=True,
        example="a list of whole numbers: 'evaluation.k=[1,2]'",
    )
    max_marginals: int = setting(300, "at most so many marginals of each order, else a seeded sample", least=1)
    targets: Any = setting(None, "an own list of marginals instead of a preset, or a YAML file with one")
    delta: float = setting(2.0, "tolerance Δ, in records: count differences up to this cost nothing", least=0)
    deltas: list[float] = setting(
        [],
        "further tolerances, at which the score is told too",
        least=0,
        example="a list: 'evaluation.deltas=[0,5,10]'",
    )
    alpha: float = setting(1.0, "cost of adding or removing one record", above=0)
    solver: str = setting("auto", "auto | flow: both exact; auto picks the fastest for each marginal", choices=SOLVERS)


MGD = Metric(
    name="mgd",
    title="MGD: cost of moving records between the cells of marginals",
    says="moving, adding and removing records until marginals agree costs {score:.1%} of the real records",
    goal="low",
    high=None,
    perfect=0,
    reference="its floor: what two samples of the real table score",
    source="Li et al. 2021a, Equation 3",
    run="evaluation.mgd.presets:mgd_of",
    settings=MgdSettings,
    prepare="evaluation.mgd.presets:chosen_targets",
    quick=True,
    empty=True,
    counted=True,
)
