"""The companion metrics by name: goals, ranges, references and sources."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from evaluation.anita import NWay, n_way
from evaluation.anita_privacy import Privacy, privacy
from evaluation.anita_sequences import Sequences, SequentialAccuracy, sequential_accuracy
from evaluation.catalogue_marginals import MAP, MARGINALS, map_pie
from evaluation.correlation import Correlations, correlation_difference
from evaluation.cube import Cubes, count_cubes
from evaluation.density import Density, density
from evaluation.gini import GiniScore, gini_score
from evaluation.kmarginal import KMarginal
from evaluation.ncript import Ncript, ncript
from evaluation.pie_chart import PieChart
from evaluation.range_2018 import RangeScore, range_score
from evaluation.registry import Inputs, Metric
from evaluation.sprint2 import sprint2_coded
from evaluation.sprint3 import PLACE, TIME, Sprint3, sprint3_coded
from evaluation.tstr import Tstr, tstr
from mechanisms.public.column import Column
from mechanisms.public.decode import decode_column
from mechanisms.public.errors import UserError
from mechanisms.public.table import CodedTable


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


def _ncript(inputs: Inputs) -> tuple[float | None, Ncript]:
    cubes, regions = map_cubes(inputs), inputs.options.regions
    if regions is not None:
        cubes = cubes.merged([regions.get(str(s), str(s)) for s in cubes.segments])
    result = ncript(cubes, inputs.options.ncript)
    return result.score, result


def _sprint2(inputs: Inputs) -> tuple[float | None, KMarginal]:
    result = sprint2_coded(inputs.real, inputs.synthetic, by=(inputs.column("segment"), inputs.column("time")))
    return result.score, result


def _sprint3(inputs: Inputs) -> tuple[float | None, Sprint3]:
    place, time, to = inputs.column("segment"), inputs.column("time"), inputs.column("to")
    subject = inputs.options.subject
    known = (None, None) if subject is None else (np.asarray(subject[0], np.int64), np.asarray(subject[1], np.int64))
    result = sprint3_coded(
        inputs.real,
        inputs.synthetic,
        place=place,
        time=time,
        to=to,
        unit=known[0],
        synthetic_unit=known[1],
        as_published=(place, time) == (PLACE, TIME),
    )
    return result.score, result


def _pie_chart(inputs: Inputs) -> tuple[float | None, PieChart]:
    result = map_pie(inputs)
    return (None if result.score is None else result.score / result.segments.size), result


def _accuracy(n: int, inputs: Inputs) -> tuple[float | None, NWay]:
    result = n_way(inputs.real, inputs.synthetic, n, m=inputs.options.buckets, seed=inputs.options.seed)
    return result.accuracy, result


def _sequences(inputs: Inputs) -> tuple[float | None, SequentialAccuracy]:
    options = inputs.options
    if options.subject is None:
        raise UserError("no subjects", where="anita_sequences")
    orders = options.order or (None, None)
    tables = (inputs.real, inputs.synthetic)
    sides = [Sequences(t, s, o, options.fixed) for t, s, o in zip(tables, options.subject, orders, strict=True)]
    result = sequential_accuracy(sides[0], sides[1], m=options.buckets, seed=options.seed)
    return result.score, result


def _privacy(inputs: Inputs) -> tuple[float | None, Privacy]:
    options = inputs.options
    result = privacy(
        inputs.real,
        inputs.synthetic,
        options.holdout,
        columns=options.columns,
        max_rows=options.max_rows,
        seed=options.seed,
    )
    return (None if result.closer is None else result.closer.share.value), result


def _density(inputs: Inputs) -> tuple[float | None, Density]:
    result = density(inputs.real, inputs.synthetic, seed=inputs.options.seed)
    return result.score, result


def _ranges(inputs: Inputs) -> tuple[float | None, RangeScore]:
    result = range_score(inputs.real, inputs.synthetic, seed=inputs.options.seed)
    return result.score, result


def _gini(inputs: Inputs) -> tuple[float | None, GiniScore]:
    group, sex, income = (inputs.column(role) for role in ("group", "sex", "income"))
    tables = (inputs.real, inputs.synthetic)
    frames = inputs.options.frames or tuple(_decoded(t, inputs, (group, sex, income)) for t in tables)
    result = gini_score(frames[0], frames[1], group=group, sex=sex, income=income)
    return result.score, result


def _decoded(table: CodedTable, inputs: Inputs, names: tuple[str, str, str]) -> pd.DataFrame:
    """Values of group, sex and income: numbers drawn inside their bins; texts among numbers are absent."""
    if inputs.schema is None:
        return pd.DataFrame({n: table.column(n) for n in names})
    rng = np.random.default_rng(inputs.options.seed)
    columns = {n: decode_column(table.column(n), inputs.schema[n], rng) for n in names}
    income = names[-1]
    return pd.DataFrame(columns | {income: pd.to_numeric(columns[income], errors="coerce").astype(float)})


def _correlation(inputs: Inputs) -> tuple[float | None, Correlations]:
    result = correlation_difference(inputs.real, inputs.synthetic)
    return result.score, result


def _tstr(inputs: Inputs) -> tuple[float | None, Tstr]:
    options = inputs.options
    result = tstr(inputs.real, inputs.synthetic, options.holdout, targets=options.targets, seed=options.seed)
    return result.score, result


_LIST = (
    Metric(
        name="ncript",
        title="N-CRiPT: mean loss of a place and time",
        goal="low",
        low=0,
        high=1,
        perfect=0,
        reference="rows of Table 2: 0.10 to 0.38 at ε = 4",
        source="paper 001, 2.2 to 2.4",
        needs=MAP,
        run=_ncript,
    ),
    Metric(
        name="pie_chart",
        title="Sprint 1: pie chart score per place and time",
        goal="high",
        low=0,
        high=1,
        perfect=1,
        reference="its floor; the sum over places and times, as published, is in the details",
        source="NIST challenge 2020-21, sprint 1; paper 000, Appendix B",
        needs=MAP,
        run=_pie_chart,
    ),
    Metric(
        name="sprint2",
        title="Sprint 2: k-marginal per place and time",
        goal="high",
        low=0,
        high=1000,
        perfect=1000,
        reference="1 %, 10 %, 50 % of the contest's ACS rows: 572-590, 831-839, 940-944; its ladder",
        source="NIST challenge 2020-21, sprint 2",
        needs=("time", "segment"),
        run=_sprint2,
    ),
    Metric(
        name="sprint3",
        title="Sprint 3: k-marginal, flows and kinds of subjects",
        goal="high",
        low=0,
        high=1000,
        perfect=1000,
        reference="1 %, 10 %, 50 % of the contest's trips: 472-547, 703-721, 887-889",
        source="NIST challenge 2020-21, sprint 3",
        needs=("time", "segment", "to"),  # without subjects two of its three parts
        run=_sprint3,
        referable=False,
    ),
    *(
        Metric(
            name=f"anita_{n}way",
            title=f"ANITA: accuracy of {n}-way tables",
            goal="high",
            low=0,
            high=1,
            perfect=1,
            reference="1 − its floor, in the details",
            source="paper 004, section 2",
            needs=(),
            run=partial(_accuracy, n),
        )
        for n in (1, 2, 3)
    ),
    Metric(
        name="anita_sequences",
        title="ANITA: accuracy of two subsequent events of a subject",
        goal="high",
        low=0,
        high=1,
        perfect=1,
        reference="1 − its floor, in the details",
        source="paper 004, section 2",
        needs=("subject",),
        run=_sequences,
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
        source="paper 004, section 3",
        needs=("holdout",),
        run=_privacy,
        referable=False,
    ),
    Metric(
        name="density",
        title="2018: density estimation",
        goal="high",
        low=0,
        high=1_000_000,
        perfect=1_000_000,
        reference="its floor",
        source="paper 002, 5.1",
        needs=(),
        run=_density,
    ),
    Metric(
        name="range_2018",
        title="2018: range queries",
        goal="high",
        low=0,
        high=1_000_000,
        perfect=1_000_000,
        reference="its floor",
        source="paper 002, 5.1",
        needs=(),
        run=_ranges,
    ),
    Metric(
        name="gini",
        title="2018: Gini index and rank of the gender pay gap",
        goal="high",
        low=0,
        high=1_000_000,
        perfect=1_000_000,
        reference="its floor",
        source="paper 002, 5.1",
        needs=("group", "sex", "income"),
        run=_gini,
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
        needs=(),
        run=_correlation,
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
        needs=(),
        run=_tstr,
        referable=False,
    ),
)

METRICS: dict[str, Metric] = {m.name: m for m in (*MARGINALS, *_LIST)}
