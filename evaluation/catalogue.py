"""Every metric by name: goals, ranges, references and sources."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from evaluation.anita.anita_accuracy import NWay, n_way
from evaluation.anita.anita_privacy import Privacy, privacy
from evaluation.anita.anita_sequences import Sequences, SequentialAccuracy, sequential_accuracy
from evaluation.challenges.density import density
from evaluation.challenges.gini import GiniScore, gini_score
from evaluation.challenges.pie_chart import PieChart, pie_chart
from evaluation.challenges.range_2018 import range_score
from evaluation.challenges.range_query import RangeError, answerable_queries, range_query_error
from evaluation.challenges.sprint2 import sprint2_coded
from evaluation.challenges.sprint3 import PLACE, TIME, Sprint3, sprint3_coded
from evaluation.correlation import correlation_difference
from evaluation.cube import Cubes, count_cubes
from evaluation.mgd.marginal_difference import MGDResult, mgd
from evaluation.mgd.presets import PresetSpec, preset_targets
from evaluation.ncript.combined_loss import Ncript, ncript
from evaluation.registry import Inputs, Metric
from evaluation.tstr import Tstr, tstr
from evaluation.tvd import distances
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.errors import UserError
from mechanisms.public.schema.column import Column
from mechanisms.public.tables.decode import decode_column

#: What every metric of a temporal map needs.
MAP = ("time", "segment", "kind")


def map_pie(inputs: Inputs) -> PieChart:
    """The pie chart of the map's columns; its segments are places × times."""
    names = {role: inputs.column(role) for role in MAP}
    places = {"spatial": names["segment"], "temporal": names["time"]}
    return pie_chart(inputs.real, inputs.synthetic, category=names["kind"], **places)


def map_cubes(inputs: Inputs) -> Cubes:
    """Counts over time × segment × type, with the labels of the schema."""
    names = (inputs.column("time"), inputs.column("segment"), inputs.column("kind"))
    if inputs.schema is None:
        return count_cubes(inputs.real, inputs.synthetic, names)
    columns = [inputs.schema[n] for n in names]
    values = (columns[0].value_codes, columns[1].value_codes, columns[2].value_codes)
    texts = [code_labels(c) for c in columns]
    return count_cubes(inputs.real, inputs.synthetic, names, values=values, labels=(texts[0], texts[1], texts[2]))


def code_labels(column: Column) -> list[object]:
    """What each code is called: its text, its whole number, or the number of its bin; then the codes behind them."""
    named: list[object] = list(column.texts)
    if not named:
        first = int(column.low) if column.kind == "integer" and column.bins is None and column.codes is None else 0
        named = [first + i for i in range(column.value_codes)]
    return [*named, *column.specials]


def _mgd(inputs: Inputs) -> MGDResult:
    schema, options = inputs.schema, inputs.options
    if schema is None:
        raise UserError("no schema", where="mgd", fix="the schema that both tables were coded with")
    targets = options.marginals or preset_targets(schema, PresetSpec())
    settings = {"alpha": options.alpha, "solver": options.solver, "progress": options.progress}
    return mgd(inputs.real, inputs.synthetic, schema, targets, **settings)  # type: ignore[arg-type]


def _range_query(inputs: Inputs) -> RangeError:
    queries = answerable_queries(inputs.real, [inputs.column(role) for role in MAP], seed=inputs.options.seed)
    return range_query_error(inputs.real, inputs.synthetic, queries)


def _ncript(inputs: Inputs) -> Ncript:
    cubes, regions = map_cubes(inputs), inputs.options.regions
    if regions is not None:
        cubes = cubes.merged([regions.get(str(s), str(s)) for s in cubes.segments])
    return ncript(cubes, inputs.options.ncript)


def _sprint3(inputs: Inputs) -> Sprint3:
    place, time, to = inputs.column("segment"), inputs.column("time"), inputs.column("to")
    subject = inputs.options.subject
    known = (None, None) if subject is None else (np.asarray(subject[0], np.int64), np.asarray(subject[1], np.int64))
    return sprint3_coded(
        inputs.real,
        inputs.synthetic,
        place=place,
        time=time,
        to=to,
        unit=known[0],
        synthetic_unit=known[1],
        as_published=(place, time) == (PLACE, TIME),
    )


def _sequences(inputs: Inputs) -> SequentialAccuracy:
    options = inputs.options
    if options.subject is None:
        raise UserError("no subjects", where="anita_sequences")
    orders = options.order or (None, None)
    tables = (inputs.real, inputs.synthetic)
    sides = [Sequences(t, s, o, options.fixed) for t, s, o in zip(tables, options.subject, orders, strict=True)]
    return sequential_accuracy(sides[0], sides[1], m=options.buckets, seed=options.seed)


def _privacy(inputs: Inputs) -> Privacy:
    options = inputs.options
    return privacy(
        inputs.real,
        inputs.synthetic,
        options.holdout,
        columns=options.columns,
        max_rows=options.max_rows,
        seed=options.seed,
    )


def _gini(inputs: Inputs) -> GiniScore:
    group, sex, income = (inputs.column(role) for role in ("group", "sex", "income"))
    tables = (inputs.real, inputs.synthetic)
    frames = inputs.options.frames or tuple(_decoded(t, inputs, (group, sex, income)) for t in tables)
    return gini_score(frames[0], frames[1], group=group, sex=sex, income=income)


def _decoded(table: CodedTable, inputs: Inputs, names: tuple[str, str, str]) -> pd.DataFrame:
    """Values of group, sex and income: numbers drawn inside their bins; texts among numbers are absent."""
    if inputs.schema is None:
        return pd.DataFrame({n: table.column(n) for n in names})
    rng = np.random.default_rng(inputs.options.seed)
    columns = {n: decode_column(table.column(n), inputs.schema[n], rng) for n in names}
    income = names[-1]
    return pd.DataFrame(columns | {income: pd.to_numeric(columns[income], errors="coerce").astype(float)})


def _tstr(inputs: Inputs) -> Tstr:
    options = inputs.options
    return tstr(inputs.real, inputs.synthetic, options.holdout, targets=options.targets, seed=options.seed)


def _accuracy(n: int, inputs: Inputs) -> NWay:
    return n_way(inputs.real, inputs.synthetic, n, m=inputs.options.buckets, seed=inputs.options.seed)


def _mean_pie(result: PieChart) -> float | None:
    return None if result.score is None else result.score / result.segments.size


def _run(
    work: Callable[[Inputs], Any], score: Callable[[Any], float | None] = lambda result: result.score
) -> Callable[[Inputs], tuple[float | None, Any]]:
    """A metric's `run`: its result, and the headline number in it."""

    def run(inputs: Inputs) -> tuple[float | None, Any]:
        result = work(inputs)
        return score(result), result

    return run


#: Metrics that share a range and a goal.
_Share = partial(Metric, goal="high", low=0, high=1, perfect=1)
_Loss = partial(Metric, goal="low", low=0, high=1, perfect=0)
_Cost = partial(Metric, goal="low", low=0, high=None, perfect=0)
_Thousand = partial(Metric, goal="high", low=0, high=1000, perfect=1000)
_Of2018 = partial(
    Metric,
    goal="high",
    low=0,
    high=1_000_000,
    perfect=1_000_000,
    reference="its floor",
    source="Li et al. 2021b, 5.1",
)

_LIST = (
    _Cost(
        name="mgd",
        title="MGD: cost of moving records between the cells of marginals",
        reference="its floor: what two samples of the real table score",
        source="Li et al. 2021a, Equation 3",
        run=_run(_mgd),
        empty=True,
    ),
    _Loss(
        name="tvd",
        title="Total variation distance, mean of the 2-way marginals",
        reference="its floor; independent columns",
        source="common use; Li et al. 2021b; Platzer 2020",
        run=_run(lambda i: distances(i.real, i.synthetic, progress=i.options.progress)),
        empty=True,
    ),
    _Cost(
        name="range_query",
        title="Range queries on the map: mean relative error",
        reference="its floor",
        source="Li et al. 2021a, Appendix B",
        needs=MAP,
        run=_run(_range_query, lambda result: result.error),
    ),
    _Loss(
        name="inverse_pie",
        title="Inverse pie chart score",
        reference="its floor",
        source="Li et al. 2021a, Appendix B; NIST challenge 2020-21, sprint 1",
        needs=MAP,
        run=_run(map_pie, lambda result: result.inverse),
    ),
    _Loss(
        name="ncript",
        title="N-CRiPT: mean loss of a place and time",
        reference="rows of Table 2: 0.10 to 0.38 at ε = 4",
        source="N-CRiPT 2021, 2.2 to 2.4",
        needs=MAP,
        run=_run(_ncript),
    ),
    _Share(
        name="pie_chart",
        title="Sprint 1: pie chart score per place and time",
        reference="its floor; the sum over places and times, as published, is in the details",
        source="NIST challenge 2020-21, sprint 1; Li et al. 2021a, Appendix B",
        needs=MAP,
        run=_run(map_pie, _mean_pie),
    ),
    _Thousand(
        name="sprint2",
        title="Sprint 2: k-marginal per place and time",
        reference="1 %, 10 %, 50 % of the contest's ACS rows: 572-590, 831-839, 940-944; its ladder",
        source="NIST challenge 2020-21, sprint 2",
        needs=("time", "segment"),
        run=_run(lambda i: sprint2_coded(i.real, i.synthetic, by=(i.column("segment"), i.column("time")))),
    ),
    _Thousand(
        name="sprint3",
        title="Sprint 3: k-marginal, flows and kinds of subjects",
        reference="1 %, 10 %, 50 % of the contest's trips: 472-547, 703-721, 887-889",
        source="NIST challenge 2020-21, sprint 3",
        needs=("time", "segment", "to"),  # without subjects two of its three parts
        run=_run(_sprint3),
        referable=False,
    ),
    *(
        _Share(
            name=f"anita_{n}way",
            title=f"ANITA: accuracy of {n}-way tables",
            reference="1 − its floor, in the details",
            source="Platzer 2020, section 2",
            run=_run(partial(_accuracy, n), lambda result: result.accuracy),
        )
        for n in (1, 2, 3)
    ),
    _Share(
        name="anita_sequences",
        title="ANITA: accuracy of two subsequent events of a subject",
        reference="1 − its floor, in the details",
        source="Platzer 2020, section 2",
        needs=("subject",),
        run=_run(_sequences),
        referable=False,
    ),
    Metric(
        name="anita_privacy",
        title="ANITA: DCR and NNDR; share nearer to training than to the holdout",
        goal="low",
        low=0,
        high=1,
        perfect=0.5,
        reference="½, and what real records score",
        source="Platzer 2020, section 3",
        needs=("holdout",),
        run=_run(_privacy, lambda result: None if result.closer is None else result.closer.share.value),
        referable=False,
    ),
    _Of2018(
        name="density",
        title="2018: density estimation",
        run=_run(lambda i: density(i.real, i.synthetic, seed=i.options.seed)),
    ),
    _Of2018(
        name="range_2018",
        title="2018: range queries",
        run=_run(lambda i: range_score(i.real, i.synthetic, seed=i.options.seed)),
    ),
    _Of2018(
        name="gini",
        title="2018: Gini index and rank of the gender pay gap",
        needs=("group", "sex", "income"),
        run=_run(_gini),
    ),
    Metric(
        name="correlation",
        title="Correlation difference",
        goal="low",
        low=0,
        high=2,
        perfect=0,
        reference="its floor; independent columns",
        source="common use",
        run=_run(lambda i: correlation_difference(i.real, i.synthetic)),
    ),
    Metric(
        name="tstr",
        title="TSTR: balanced accuracy lost",
        goal="low",
        low=-1,
        high=1,
        perfect=0,
        reference="the model trained on real records; guessing",
        source="common use",
        run=_run(_tstr),
        referable=False,
        library="sklearn",
    ),
)

METRICS: dict[str, Metric] = {m.name: m for m in _LIST}
