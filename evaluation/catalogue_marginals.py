"""The metrics of marginals by name: MGD, total variation distance, and what paper 000 compares MGD with."""

from __future__ import annotations

from evaluation.mgd import MGDResult, mgd
from evaluation.pie_chart import PieChart, pie_chart
from evaluation.presets import PresetSpec, preset_targets
from evaluation.range_query import RangeError, answerable_queries, range_query_error
from evaluation.registry import Inputs, Metric
from evaluation.tvd import Tvd, distances
from mechanisms.public.errors import UserError

#: What every metric of a temporal map needs.
MAP = ("time", "segment", "kind")


def map_pie(inputs: Inputs) -> PieChart:
    """The pie chart of the map's columns; its segments are places × times."""
    names = {role: inputs.column(role) for role in MAP}
    places = {"spatial": names["segment"], "temporal": names["time"]}
    return pie_chart(inputs.real, inputs.synthetic, category=names["kind"], **places)


def _mgd(inputs: Inputs) -> tuple[float | None, MGDResult]:
    schema, options = inputs.schema, inputs.options
    if schema is None:
        raise UserError("no schema", where="mgd", fix="the schema that both tables were coded with")
    targets = options.marginals or preset_targets(schema, PresetSpec())
    settings = {"alpha": options.alpha, "solver": options.solver, "progress": options.progress}
    result = mgd(inputs.real, inputs.synthetic, schema, targets, **settings)  # type: ignore[arg-type]
    return result.score, result


def _tvd(inputs: Inputs) -> tuple[float | None, Tvd]:
    result = distances(inputs.real, inputs.synthetic, progress=inputs.options.progress)
    return result.score, result


def _range_query(inputs: Inputs) -> tuple[float | None, RangeError]:
    queries = answerable_queries(inputs.real, [inputs.column(role) for role in MAP], seed=inputs.options.seed)
    result = range_query_error(inputs.real, inputs.synthetic, queries)
    return result.error, result


def _inverse_pie(inputs: Inputs) -> tuple[float | None, PieChart]:
    result = map_pie(inputs)
    return result.inverse, result


MARGINALS: tuple[Metric, ...] = (
    Metric(
        name="mgd",
        title="MGD: cost of moving records between the cells of marginals",
        goal="low",
        low=0,
        high=None,
        perfect=0,
        reference="its floor: what two samples of the real table score",
        source="paper 000, Equation 3",
        needs=(),
        run=_mgd,
        empty=True,
    ),
    Metric(
        name="tvd",
        title="Total variation distance, mean of the 2-way marginals",
        goal="low",
        low=0,
        high=1,
        perfect=0,
        reference="its floor; independent columns",
        source="common use; papers 002 and 004",
        needs=(),
        run=_tvd,
        empty=True,
    ),
    Metric(
        name="range_query",
        title="Range queries on the map: mean relative error",
        goal="low",
        low=0,
        high=None,
        perfect=0,
        reference="its floor",
        source="paper 000, Appendix B",
        needs=MAP,
        run=_range_query,
    ),
    Metric(
        name="inverse_pie",
        title="Inverse pie chart score",
        goal="low",
        low=0,
        high=1,
        perfect=0,
        reference="its floor",
        source="paper 000, Appendix B; NIST challenge 2020-21, sprint 1",
        needs=MAP,
        run=_inverse_pie,
    ),
)
