"""Range queries on the map: its entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluation.map_columns import MAP, MapColumns
from evaluation.metric import Inputs, Metric, scored

if TYPE_CHECKING:
    from evaluation.papers.challenges.range_query import RangeError


def _error(inputs: Inputs) -> RangeError:
    from evaluation.papers.challenges.range_query import answerable_queries, range_query_error

    queries = answerable_queries(inputs.real, [inputs.column(role) for role in MAP], seed=inputs.options.seed)
    return range_query_error(inputs.real, inputs.synthetic, queries)


RANGE_QUERY = Metric(
    name="range_query",
    title="Range queries on the map: mean relative error",
    says="answers to range queries on the map are off by {score:.1%} on average",
    goal="low",
    low=0,
    high=None,
    perfect=0,
    reference="its floor",
    source="Li et al. 2021a, Appendix B",
    run=scored(_error, lambda result: result.error),
    settings=MapColumns,
    needs=MAP,
    quick=True,
)
