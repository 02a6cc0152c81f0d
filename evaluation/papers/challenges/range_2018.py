"""Range queries, the second metric of the 2018 challenge (Li et al. 2021b, §5.1): 300 conditions on random columns."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evaluation.metric import Inputs, OneScore
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute, Domain

QUERIES, CHANCE = 300, 0.33
#: The least share that a synthetic answer counts as.
LEAST = 1e-6
#: Queries drawn until one holds a true record; the last tries pass through a true record's values.
TRIES = 50

#: The codes that each chosen column may have.
Query = dict[str, NDArray[np.bool_]]


def range_score_of(inputs: Inputs) -> OneScore:
    """The metric `range_2018`: the challenge's range-query score of two tables of codes.

    10⁶ · max(0, 1 − √mean(d²) / ln 10³), d = ln(max(synthetic share, 10⁻⁶) / true share); in `frame` each query has its
    columns and both shares. In the details stands the mean relative error of the same queries (Li et al. 2021a), too.
    Each column is in a query with chance 0.33 (a query without any is drawn again). An ordinal column gets a random
    range of its codes; any other a random subset of its codes, of random size. At least one true record satisfies every
    query: after fifty draws in vain a query is widened by the values of a random true record.
    Goal: shares of any group of records, right by their ratio. Range: [0, 1,000,000]; the latter is perfect. Reference:
    its floor. Edge cases: an answer of no record counts as 10⁻⁶.
    """
    seed, rows = inputs.options.seed, []
    rng = np.random.default_rng(seed)
    for _ in range(QUERIES):
        query, share = _answerable(inputs.real, rng)
        rows.append((tuple(query), share, answer(inputs.synthetic, query)))
    frame = pd.DataFrame(rows, columns=["columns", "real", "synthetic"])
    logs = np.log(np.maximum(frame["synthetic"], LEAST) / frame["real"])
    score = 1e6 * max(0.0, 1 - math.sqrt(math.fsum(logs**2) / QUERIES) / math.log(1e3))
    error = ((frame["synthetic"] - frame["real"]).abs() / frame["real"]).mean()
    details = {"queries": len(frame), "mean_relative_error": float(error), "seed": seed}
    return OneScore(score, details | {"mean_columns": float(frame["columns"].map(len).mean())}, frame)


def _answerable(real: CodedTable, rng: np.random.Generator) -> tuple[Query, float]:
    for _ in range(TRIES):
        query = draw_query(real.domain, rng)
        share = answer(real, query)
        if share > 0:
            return query, share
    row = int(rng.integers(0, real.rows))
    for name, chosen in query.items():
        _widen(chosen, int(real.column(name)[row]), real.domain[name].ordered)
    return query, answer(real, query)


def draw_query(domain: Domain, rng: np.random.Generator) -> Query:
    """Conditions on a random subset of the columns, at least one."""
    while True:
        picked = np.flatnonzero(rng.random(len(domain)) < CHANCE)
        if picked.size:
            return {domain.attributes[i].name: _condition(domain.attributes[i], rng) for i in picked}


def _condition(attribute: Attribute, rng: np.random.Generator) -> NDArray[np.bool_]:
    chosen = np.zeros(attribute.size, bool)
    if attribute.ordered:
        low, high = np.sort(rng.integers(0, attribute.ordered, 2))
        chosen[low : high + 1] = True
    else:
        chosen[rng.choice(attribute.size, int(rng.integers(1, attribute.size + 1)), replace=False)] = True
    return chosen


def _widen(chosen: NDArray[np.bool_], code: int, ordered: int) -> None:
    chosen[code] = True
    if code < ordered:
        inside = np.flatnonzero(chosen[:ordered])
        chosen[inside.min() : inside.max() + 1] = True


def answer(table: CodedTable, query: Query) -> float:
    """The share of the records whose every value is among the query's; columns are read as far as rows are left."""
    left: NDArray[np.int64] | None = None
    for name, chosen in sorted(query.items(), key=lambda item: np.count_nonzero(item[1]) / item[1].size):
        column = table.column(name)
        keep = np.flatnonzero(chosen[column if left is None else column[left]])
        left = keep if left is None else left[keep]
        if not left.size:
            return 0.0
    assert left is not None
    if table.weights is None:
        return left.size / table.rows
    return float(table.weights[left].sum() / table.weights.sum())
