"""The metrics of the 2018 challenge (Li et al. 2021b, §5.1): density of 3-way marginals, range queries, pay gaps.

The scorer: the script of the third metric in the pack of Match 3 on Topcoder (NIST 2018), on CITY, SEX, INCWAGE. It
has `1 - 2 * g` as the Gini index of a city, and leaves out wages from 999998 on as N/A.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from evaluation.accuracy.anita_accuracy import table_distances
from evaluation.metric import Inputs, OneScore
from evaluation.mgd.targets import draw_schemas
from evaluation.papers.paper_metrics import GiniSettings
from mechanisms.public.arrays import Flags, Floats, Ints
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.tables.write_table import decode_column


def density_of(inputs: Inputs) -> OneScore:
    """The metric `density`, of codes: their discretization stands for the challenge's 100 bins.

    10⁶ · (1 − s / 2), s the mean L1 distance; in `frame` each drawn schema has its attributes and l1d, in [0, 2].
    Goal: any three attributes together are distributed as in the truth. Range: [0, 1,000,000]; the latter is perfect.
    Edge cases: a schema drawn twice counts twice; fewer than three columns make marginals of all of them.
    """
    real, synthetic, seed = inputs.real, inputs.synthetic, inputs.options.seed
    drawn = [real.domain.canonical(s) for s in draw_schemas(real.domain.names, seed=seed)]
    each = table_distances(real, synthetic, list(dict.fromkeys(drawn)))
    errors = dict(zip(each["attributes"], each["l1d"], strict=True))
    frame = pd.DataFrame({"attributes": drawn, "l1d": [errors[s] for s in drawn]})
    worst = frame.drop_duplicates("attributes").sort_values("l1d", ascending=False, kind="stable").head(10)
    listed = [{"attributes": [*a], "l1d": float(d)} for a, d in zip(worst["attributes"], worst["l1d"], strict=True)]
    details = {"schemas": len(frame), "seed": seed, "mean_l1d": float(frame["l1d"].mean()), "worst": listed}
    return OneScore(1e6 * (1 - math.fsum(frame["l1d"]) / len(frame) / 2), details, frame)


QUERIES, CHANCE = 300, 0.33
#: The least share that a synthetic answer counts as.
LEAST = 1e-6
#: Queries drawn until one holds a true record; the last tries pass through a true record's values.
TRIES = 50

#: The codes that each chosen column may have.
Query = dict[str, Flags]


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


def _condition(attribute: Attribute, rng: np.random.Generator) -> Flags:
    chosen = np.zeros(attribute.size, bool)
    if attribute.ordered:
        low, high = np.sort(rng.integers(0, attribute.ordered, 2))
        chosen[low : high + 1] = True
    else:
        chosen[rng.choice(attribute.size, int(rng.integers(1, attribute.size + 1)), replace=False)] = True
    return chosen


def _widen(chosen: Flags, code: int, ordered: int) -> None:
    chosen[code] = True
    if code < ordered:
        inside = np.flatnonzero(chosen[:ordered])
        chosen[inside.min() : inside.max() + 1] = True


def answer(table: CodedTable, query: Query) -> float:
    """The share of the records whose every value is among the query's; columns are read as far as rows are left."""
    left: Ints | None = None
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


#: Wages from this code on mean "not available" in the 1940 census.
NOT_AVAILABLE = 999_998


def gini_score(
    real: pd.DataFrame,
    synthetic: pd.DataFrame,
    *,
    group: str = "CITY",
    sex: str = "SEX",
    income: str = "INCWAGE",
    usual: bool = False,
) -> OneScore:
    """Gini index of the income and rank of the pay gap in every group, as the challenge's scorer computes them.

    Each half is 500,000 · √mean over the groups of the truth of (1 − |difference|)²; the difference of the Gini index,
    or of the rank by pay gap (widest first) divided by the number of groups − 1.
    Goal: incomes are spread, and the groups ordered, as in the truth. Range: [0, 1,000,000]; the latter is perfect.
    Edge cases, as there: a group that the synthetic table lacks scores 0 in both halves; one that it invents takes a
    rank; without any income the Gini index is 1; a sex without records has mean 0; equal gaps are ranked in the order
    in which their groups appear. A single group has rank difference 0. Absent incomes are left out, and those from
    NOT_AVAILABLE on; the mean income of the least value of `sex` in the truth comes first in the gap.
    In `frame` each group of the truth has the Gini index, pay gap and rank of the gap (0 is the widest) of either
    table; NaN where the synthetic table lacks the group.

    Args:
        usual: the usual Gini index, not the challenge's.
    """
    first = min(real[sex].dropna().unique(), key=_by_number, default=None)
    sides = [_by_group(f, group, sex, income, first, usual) for f in (real, synthetic)]
    joined = sides[0].add_suffix("_real").join(sides[1].add_suffix("_synthetic"))
    n = len(joined)
    close = 1 - (joined["gini_real"] - joined["gini_synthetic"]).abs()
    close = close.where(close >= -1, 0.0)  # no group, or a difference that incomes below 0 alone make
    ranks = (1 - (joined["rank_real"] - joined["rank_synthetic"]).abs() / max(n - 1, 1)).clip(lower=0).fillna(0.0)
    halves = [500_000 * math.sqrt(math.fsum(x * x) / n) for x in (close, ranks)]
    details = {"gini_index": halves[0], "pay_gap_rank": halves[1], "groups": n}
    details |= {"groups_lost": int(joined["gini_synthetic"].isna().sum())}
    return OneScore(sum(halves), details, joined.rename_axis(group).reset_index())


def _by_group(frame: pd.DataFrame, group: str, sex: str, income: str, first: object, usual: bool) -> pd.DataFrame:
    """Gini index, gap and rank of each group, in the order in which they appear."""
    rows = []
    for label, part in frame.groupby(group, sort=False, dropna=False):
        wages = part[income].to_numpy(float)
        has_wage = wages < NOT_AVAILABLE  # nor is what is absent, NaN
        one = (part[sex] == first).to_numpy(bool)
        gap = _mean(wages[has_wage & one]) - _mean(wages[has_wage & ~one])
        rows.append((label, gini_index(wages[has_wage], usual=usual), gap))
    table = pd.DataFrame(rows, columns=["label", "gini", "gap"]).set_index("label")
    widest = np.argsort(-table["gap"].to_numpy(float), kind="stable")
    rank = np.empty(len(table))
    rank[widest] = np.arange(len(table))
    return table.assign(rank=rank)


def gini_index(incomes: NDArray[np.number], *, usual: bool = False) -> float:
    """1 − 2 Σᵢ (sum of the i smallest) / (n · total), as in the challenge's scorer; 1 without any income.

    It is 1/n below the usual Gini index: n equal incomes have −1/n, and 0 as usual.
    """
    wages = np.sort(np.asarray(incomes, float))
    total = wages.sum()
    if not wages.size or total <= 0:
        return 1.0
    return 1 + usual / wages.size - 2 * float((np.cumsum(wages) / wages.size / total).sum())


def _by_number(value: object) -> tuple[int, float | str]:
    """What labels are sorted by: numbers by their size, before all others by their text."""
    return (0, float(value)) if isinstance(value, int | float | np.number) else (1, str(value))


def _mean(values: Floats) -> float:
    return float(values.mean()) if values.size else 0.0


def gini_of(inputs: Inputs) -> OneScore:
    """The metric `gini`."""
    group, sex, income = names = tuple(inputs.column(role) for role in ("group", "sex", "income"))
    real, synthetic = (_frame(t, inputs, names) for t in (inputs.real, inputs.synthetic))
    usual = inputs.own(GiniSettings).gini_index == "usual"
    return gini_score(real, synthetic, group=group, sex=sex, income=income, usual=usual)


def _frame(table: CodedTable, inputs: Inputs, names: tuple[str, ...]) -> pd.DataFrame:
    """Values of group, sex and income: those of the file, or where only codes are known, drawn inside their bins."""
    if inputs.schema is not None:
        rng = np.random.default_rng(inputs.options.seed)
        drawn = pa.table({n: decode_column(table.column(n), inputs.schema[n], rng) for n in names})
        frame: pd.DataFrame = drawn.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get, date_as_object=False)
    elif inputs.options.values is not None:
        frame = inputs.options.values.frame(table, names)
    else:
        return pd.DataFrame({n: table.column(n) for n in names})
    numbers = pd.to_numeric(frame[names[-1]], errors="coerce").astype(float)  # texts among numbers are absent
    return frame.assign(**{names[-1]: numbers})
