"""The columns of Table 1 for one noisy map: inverse pie chart, range queries, AEMC per marginal, MGD over Δ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from evaluation.mgd.aemc import aemc
from evaluation.mgd.geometry import Axis
from evaluation.papers.challenges.pie_chart import pie_chart_counts
from evaluation.papers.challenges.range_query import answerable_queries, occupied, range_answers, relative_error
from mechanisms.public.settings import setting
from pipeline.experiments.experiment_settings import MapSettings
from pipeline.experiments.table1_paper import MARGINALS, weighted
from pipeline.experiments.temporal_map import LETTERS, TemporalMap

Histogram = NDArray[np.float64]
#: Metric → score; None where it is undefined.
Scores = dict[str, float | None]


@dataclass(frozen=True)
class Table1Settings(MapSettings):
    """`experiment.*` of the metric table1; the comments stand in conf/experiment/mgd_table1.yaml.

    Attributes:
        queries: how many range queries; share: of each attribute's values in one.
        deltas: further tolerances, at which MGD is shown too.
    """

    queries: int = setting(300, least=1)
    share: float = setting(0.3, above=0, most=1)
    deltas: list[float] = setting([], least=0, noun="numbers of records")


def table1_scorer(world: TemporalMap, settings: Table1Settings) -> Callable[[Histogram], Scores]:
    """What scores a noisy map (months × places × categories, in records): the range queries are drawn once."""
    names, truth = world.domain.names, world.histogram
    count, share, seed = settings.queries, settings.share, settings.query_seed
    queries = answerable_queries(world.table, names, count=count, share=share, seed=seed)
    answers = range_answers(queries, *occupied(world.table, names))

    def scores(noisy: Histogram) -> Scores:
        shape, cells = (-1, noisy.shape[-1]), np.nonzero(noisy)
        pie = pie_chart_counts(truth.reshape(shape), noisy.reshape(shape))
        noisy_answers = range_answers(queries, np.stack(cells).astype(np.int64), noisy[cells])
        error = relative_error(answers, noisy_answers, seed=queries.seed).error
        costs = marginal_costs(world, noisy, settings.delta)
        over = {f"mgd, Δ = {d:g}": _mgd(marginal_costs(world, noisy, d)) for d in settings.deltas}
        columns = {f"AEMC {m}": cost for m, cost in costs.items()}
        return {"inverse_pie": pie.inverse, "range_query": error, **columns, "mgd": _mgd(costs), **over}

    return scores


def _mgd(costs: Scores) -> float | None:
    """The weighted mean; None where a marginal has no cost."""
    defined = {name: cost for name, cost in costs.items() if cost is not None}
    return weighted(defined) if len(defined) == len(costs) else None


def marginal_costs(world: TemporalMap, noisy: Histogram, delta: float) -> Scores:
    """The AEMC of every marginal with the default weights: ordered attributes finite, all others ∞."""
    costs: Scores = {}
    for name in MARGINALS:
        axes = [0, 1, 2] if name == "3-way" else sorted(LETTERS.index(letter) for letter in name.split("+"))
        summed = tuple(i for i in range(3) if i not in axes)
        attributes = [world.domain.attributes[i] for i in axes]
        weight = Fraction(1, max(1, sum(a.ordered > 1 for a in attributes)))
        moves = [Axis.path(a.size, a.ordered, weight) for a in attributes]  # fixed where it is not ordered
        costs[name] = aemc(noisy.sum(axis=summed), world.histogram.sum(axis=summed), moves, delta=delta).value
    return costs
