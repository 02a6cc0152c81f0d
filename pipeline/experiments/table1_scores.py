"""The columns of Table 1 for one synthetic histogram: inverse pie chart, range queries, AEMC per marginal, MGD."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.challenges.pie_chart import pie_chart_counts
from evaluation.challenges.range_query import RangeQueries, answerable_queries, occupied, range_answers, relative_error
from evaluation.mgd.aemc import aemc
from evaluation.mgd.geometry import Axis
from mechanisms.public.domain import Domain
from pipeline.experiments.experiment_settings import MapSettings, settings_of
from pipeline.experiments.paper_table1 import MARGINALS, weighted
from pipeline.experiments.temporal_map import LETTERS, TemporalMap
from pipeline.settings.config import Config

Histogram = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Yardstick:
    """What every row is measured with.

    Attributes:
        domain: months, places, categories.
        truth: the true histogram, in records.
        queries: the range queries, each with at least one true record.
        answers: their true answers, in records.
        delta: MGD's tolerance Δ, in records.
    """

    domain: Domain
    truth: Histogram
    queries: RangeQueries
    answers: NDArray[np.float64]
    delta: float


@dataclass(frozen=True)
class Table1Settings(MapSettings):
    """`experiment.*` of Table 1; the comments stand in conf/experiment/mgd_table1.yaml.

    Attributes:
        queries: how many range queries; share: of each attribute's values in one.
    """

    queries: int = 300
    share: float = 0.3


def own(config: Config) -> Table1Settings:
    """The experiment's settings.

    Raises:
        UserError: as of `settings_of`.
    """
    return settings_of(config.experiment, Table1Settings)


def make_yardstick(world: TemporalMap, settings: Table1Settings) -> Yardstick:
    """Draw the range queries and answer them on the truth.

    Raises:
        UserError: a setting of the queries out of range.
    """
    names = world.domain.names
    queries = answerable_queries(
        world.table, names, count=settings.queries, share=settings.share, seed=settings.query_seed
    )
    answers = range_answers(queries, *occupied(world.table, names))
    return Yardstick(world.domain, world.histogram, queries, answers, settings.delta)


def score_row(yardstick: Yardstick, noisy: Histogram) -> dict[str, Any]:
    """All columns of one row, as JSON values; None where a score is undefined.

    Args:
        noisy: the synthetic histogram: months × places × categories, in records.
    """
    shape = (-1, noisy.shape[-1])
    pie = pie_chart_counts(yardstick.truth.reshape(shape), noisy.reshape(shape))
    cells = np.nonzero(noisy)
    given = range_answers(yardstick.queries, np.stack(cells).astype(np.int64), noisy[cells])
    error = relative_error(yardstick.answers, given, seed=yardstick.queries.seed)
    costs = {name: marginal_cost(yardstick, noisy, name) for name in MARGINALS}
    defined = {name: cost for name, cost in costs.items() if cost is not None}
    return {
        "records": float(noisy.sum()),
        "inverse_pie": pie.inverse,
        "range_query": error.error,
        "aemc": costs,
        "mgd": weighted(defined) if len(defined) == len(costs) else None,
    }


def marginal_cost(yardstick: Yardstick, noisy: Histogram, name: str) -> float | None:
    """The AEMC of one marginal with the default weights: ordered attributes finite, all others ∞."""
    axes = [0, 1, 2] if name == "3-way" else sorted(LETTERS.index(letter) for letter in name.split("+"))
    summed = tuple(i for i in range(3) if i not in axes)
    p, q = noisy.sum(axis=summed), yardstick.truth.sum(axis=summed)
    attributes = [yardstick.domain.attributes[i] for i in axes]
    weight = Fraction(1, max(1, sum(a.ordered > 1 for a in attributes)))
    moves = [Axis.path(a.size, a.ordered, weight) for a in attributes]  # fixed where it is not ordered
    return aemc(p, q, moves, delta=yardstick.delta).value
