"""Table 1: its map, and its columns as printed and ours: inverse pie chart, range queries, AEMC per marginal, MGD."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from scipy.stats import spearmanr

from evaluation.counts import cells_in_records
from evaluation.metric import MAP
from evaluation.mgd.aemc import aemc
from evaluation.mgd.aemc_graph import Axis
from evaluation.papers.challenges.range_query import (
    answerable_queries,
    occupied,
    pie_chart_counts,
    range_answers,
    relative_error,
)
from mechanisms.public.arrays import Floats
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Domain
from mechanisms.public.errors import UserError, require_columns
from mechanisms.public.rules.table_rules import Rules
from mechanisms.public.schema.bins import Bins
from mechanisms.public.schema.column import DATE_KINDS, Column
from mechanisms.public.schema.table_schema import Schema
from pipeline.experiments.experiment_settings import MapSettings, settings_of
from pipeline.experiments.gallery.published import Published
from pipeline.settings.config import Config

#: Metric → score; None where it is undefined.
Scores = dict[str, float | None]


def table1_scorer(world: TemporalMap, settings: MapSettings) -> Callable[[Floats], Scores]:
    """What scores a noisy map (months × places × categories, in records): the range queries are drawn once."""
    names, truth = world.domain.names, world.histogram
    count, share, seed = settings.queries, settings.share, settings.query_seed
    queries = answerable_queries(world.table, names, count=count, share=share, seed=seed)
    answers = range_answers(queries, *occupied(world.table, names))

    def scores(noisy: Floats) -> Scores:
        shape, cells = (-1, noisy.shape[-1]), np.nonzero(noisy)
        pie = pie_chart_counts(truth.reshape(shape), noisy.reshape(shape))
        noisy_answers = range_answers(queries, np.stack(cells).astype(np.int64), noisy[cells])
        error = relative_error(answers, noisy_answers, seed=seed).error
        costs = marginal_costs(world, noisy, settings.delta)
        over = {f"mgd, Δ = {d:g}": _mgd(marginal_costs(world, noisy, d)) for d in settings.deltas}
        columns = {f"AEMC {m}": cost for m, cost in costs.items()}
        return {"inverse_pie": pie.inverse, "range_query": error, **columns, "mgd": _mgd(costs), **over}

    return scores


def _mgd(costs: Scores) -> float | None:
    """The weighted mean; None where a marginal has no cost."""
    defined = {name: cost for name, cost in costs.items() if cost is not None}
    return weighted(defined) if len(defined) == len(costs) else None


def marginal_costs(world: TemporalMap, noisy: Floats, delta: float) -> Scores:
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


#: The marginals in the order of the table's columns, named by the letters of their axes.
MARGINALS = ("M", "N", "I", "M+I", "M+N", "N+I", "3-way")
#: The paper's weights of the marginals (section 3.2).
WEIGHTS = {name: 1 / 3 if name == "3-way" else 1 / 9 for name in MARGINALS}
#: What the range-query error is compared with.
COMPARED = ("mgd", "AEMC 3-way", "inverse_pie")
#: Fewer tables have no order to speak of.
FEWEST_IN_ORDER = 3


def weighted(aemc: Mapping[str, float]) -> float:
    """MGD with weight 1/9 for each 1- and 2-way marginal and 1/3 for the 3-way one."""
    return sum(WEIGHTS[name] * aemc[name] for name in MARGINALS) / sum(WEIGHTS.values())


def _scores(numbers: Sequence[float]) -> dict[str, float]:
    inverse_pie, range_query, *aemc = numbers
    named = dict(zip(MARGINALS, aemc, strict=True))
    columns = {"inverse_pie": inverse_pie, "range_query": range_query}
    return {**columns, **{f"AEMC {m}": cost for m, cost in named.items()}, "mgd": weighted(named)}


def as_printed(table: str) -> dict[str, dict[str, float]]:
    """Table → metric → its printed score; MGD is not printed and follows from the AEMC columns.

    Args:
        table: as of `MapSettings.table1`.
    Raises:
        UserError: a line of other than a name and nine numbers.
    """
    lines = [line.split() for line in table.strip().splitlines()]
    try:
        return {name: _scores([*map(float, numbers)]) for name, *numbers in lines}
    except ValueError as error:
        fix = "a line for each table: its name and nine numbers"
        raise UserError(str(error), where="experiment.table1", fix=fix) from error


def printed_scores(table: str) -> tuple[Published, ...]:
    """The printed rows of the kinds that are made here."""
    rows = []
    for name, scores in as_printed(table).items():
        method, _, value = name.partition("-")
        sample = method == "sample"
        dataset, epsilon = (f"sample {value}", None) if sample else (method, value)
        if sample or method in ("dpsyn", "lap"):
            at = None if epsilon is None else float(epsilon)
            own = "Table 1, from its AEMC columns, " + name
            rows += [
                Published(m, round(score, 4), own if m == "mgd" else f"Table 1, {name}", at, dataset)
                for m, score in scores.items()
            ]
    return tuple(rows)


def printed_order(table: str) -> dict[str, float | None]:
    """Spearman's rank correlation of the range-query error with each compared score over the printed rows."""
    printed = as_printed(table).values()
    columns = {m: [scores[m] for scores in printed] for m in ("range_query", *COMPARED)}
    return {m: spearman(columns["range_query"], columns[m]) for m in COMPARED}


def spearman(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Spearman's rank correlation; None for fewer than FEWEST_IN_ORDER tables or a score that never changes."""
    if len(x) < FEWEST_IN_ORDER or len(set(x)) < 2 or len(set(y)) < 2:
        return None
    return float(spearmanr(x, y).statistic)


#: Letters of the axes in the names of marginals, as in the paper: months, neighbourhood, incident type.
LETTERS = ("M", "N", "I")
#: Histograms of this size are held a few times in memory.
MAX_CELLS = 50_000_000


@dataclass(frozen=True, eq=False)
class TemporalMap:
    """The truth of an experiment. NOT private.

    Attributes:
        schema: three columns: time, place, category.
        table: the true rows, unclipped, in these columns.
    """

    schema: Schema
    table: CodedTable

    @cached_property
    def histogram(self) -> Floats:
        """Months × places × categories, in records."""
        return self.counted(self.table)

    def counted(self, table: CodedTable) -> Floats:
        """The same of another table over these columns."""
        return cells_in_records(table, self.domain.names)

    @property
    def domain(self) -> Domain:
        return self.schema.domain


def map_schema(config: Config, schema: Schema) -> Schema:
    """The schema cut down to time, place and category; a date or time becomes the month of the year.

    Raises:
        UserError: columns that are not known for this table, are not three, or have no order in time; a histogram with
            more than MAX_CELLS cells.
    """
    where = "experiment.columns"
    roles = config.data.roles or {}
    names = settings_of(config, MapSettings).columns or [roles[role] for role in MAP if roles.get(role)]
    if len(set(names)) != 3:
        fix = "three columns: 'experiment.columns=[time,place,category]'"
        raise UserError(f"which columns are time, place and category of data={config.data.name}?", where=where, fix=fix)
    require_columns(names, [c.name for c in schema.held], where=where)
    time, place, category = (schema[n] for n in names)
    columns = (_monthly(time, where), place, category)
    cut = replace(schema, name=f"{schema.name}_map", columns=columns, leave_out=(), rules=Rules())
    if cut.domain.cells(cut.domain.names) > MAX_CELLS:
        fix = "coarser bins in the schema, or other columns"
        raise UserError(f"{' × '.join(names)} has more than {MAX_CELLS:,} cells", where=where, fix=fix)
    return cut


def _monthly(column: Column, where: str) -> Column:
    if column.kind in DATE_KINDS:
        return replace(column, bins=Bins(calendar="month_of_year"))
    if column.attribute.ordered < 2:
        fix = "a date, a time, or an ordered column first"
        raise UserError(f"{column.name!r} is not ordered, so it cannot be the time", where=where, fix=fix)
    return column
