"""The columns of Table 1 for one synthetic histogram: inverse pie chart, range queries, AEMC per marginal, MGD."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from evaluation.mgd.aemc import aemc
from evaluation.mgd.geometry import Axis
from evaluation.papers.challenges.pie_chart import pie_chart_counts
from evaluation.papers.challenges.range_query import (
    RangeQueries,
    answerable_queries,
    occupied,
    range_answers,
    relative_error,
)
from mechanisms.public.domain import Domain
from mechanisms.public.settings import setting
from pipeline.experiments.experiment_settings import MapSettings, settings_of
from pipeline.experiments.table1.paper_table1 import MARGINALS, weighted
from pipeline.experiments.temporal_map import LETTERS, TemporalMap
from pipeline.json_types import JsonDict
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
        delta: MGD's tolerance Δ, in records; deltas: further ones.
    """

    domain: Domain
    truth: Histogram
    queries: RangeQueries
    answers: NDArray[np.float64]
    delta: float
    deltas: tuple[float, ...] = ()


@dataclass(frozen=True)
class Table1Settings(MapSettings):
    """`experiment.*` of Table 1; the comments stand in conf/experiment/mgd_table1.yaml.

    Attributes:
        queries: how many range queries; share: of each attribute's values in one.
        deltas: further tolerances, at which MGD is shown too.
    """

    queries: int = setting(300, least=1)
    share: float = setting(0.3, above=0, most=1)
    deltas: list[float] = setting([], least=0, noun="numbers of records")


def own(config: Config) -> Table1Settings:
    """The experiment's settings.

    Raises:
        UserError: as of `settings_of`.
    """
    return settings_of(config.experiment, Table1Settings)


def make_yardstick(world: TemporalMap, settings: Table1Settings) -> Yardstick:
    """Draw the range queries and answer them on the truth."""
    names = world.domain.names
    queries = answerable_queries(
        world.table, names, count=settings.queries, share=settings.share, seed=settings.query_seed
    )
    answers = range_answers(queries, *occupied(world.table, names))
    return Yardstick(world.domain, world.histogram, queries, answers, settings.delta, tuple(settings.deltas))


def score_row(yardstick: Yardstick, noisy: Histogram) -> JsonDict:
    """All columns of one row, as JSON values; None where a score is undefined.

    Args:
        noisy: the synthetic histogram: months × places × categories, in records.
    """
    shape = (-1, noisy.shape[-1])
    pie = pie_chart_counts(yardstick.truth.reshape(shape), noisy.reshape(shape))
    cells = np.nonzero(noisy)
    given = range_answers(yardstick.queries, np.stack(cells).astype(np.int64), noisy[cells])
    error = relative_error(yardstick.answers, given, seed=yardstick.queries.seed)
    costs = marginal_costs(yardstick, noisy, yardstick.delta)
    over = {yardstick.delta: costs} | {d: marginal_costs(yardstick, noisy, d) for d in yardstick.deltas}
    return {
        "records": float(noisy.sum()),
        "inverse_pie": pie.inverse,
        "range_query": error.error,
        "aemc": costs,
        "mgd": _mgd(costs),
        "mgd_over_delta": {f"{delta:g}": _mgd(over[delta]) for delta in sorted(over)},
    }


def _mgd(costs: Mapping[str, float | None]) -> float | None:
    """The weighted mean; None where a marginal has no cost."""
    defined = {name: cost for name, cost in costs.items() if cost is not None}
    return weighted(defined) if len(defined) == len(costs) else None


def marginal_costs(yardstick: Yardstick, noisy: Histogram, delta: float) -> dict[str, float | None]:
    """The AEMC of every marginal of the table."""
    return {name: marginal_cost(yardstick, noisy, name, delta) for name in MARGINALS}


def marginal_cost(yardstick: Yardstick, noisy: Histogram, name: str, delta: float) -> float | None:
    """The AEMC of one marginal with the default weights: ordered attributes finite, all others ∞."""
    axes = [0, 1, 2] if name == "3-way" else sorted(LETTERS.index(letter) for letter in name.split("+"))
    summed = tuple(i for i in range(3) if i not in axes)
    p, q = noisy.sum(axis=summed), yardstick.truth.sum(axis=summed)
    attributes = [yardstick.domain.attributes[i] for i in axes]
    weight = Fraction(1, max(1, sum(a.ordered > 1 for a in attributes)))
    moves = [Axis.path(a.size, a.ordered, weight) for a in attributes]  # fixed where it is not ordered
    return aemc(p, q, moves, delta=delta).value
