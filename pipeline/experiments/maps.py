"""`experiment.kind=maps`: noisy temporal maps, scored as sprint 1 of 2020-21, N-CRiPT or Table 1 of MGD score them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from evaluation.cube import cubes_from_arrays
from evaluation.papers.challenges.range_query import pie_chart_counts
from evaluation.papers.ncript.combined_loss import ncript
from mechanisms.public.arrays import Floats
from mechanisms.public.errors import UserError
from mechanisms.public.files import JsonDict, stored_values, write_whole
from mechanisms.public.schema.code_labels import code_names
from mechanisms.public.schema.table_schema import Schema
from pipeline.budget import admission
from pipeline.budget.admission import PlannedRelease
from pipeline.demo import DEMO_ROWS, write_demo
from pipeline.experiments import table1_histograms as tables
from pipeline.experiments.experiment_settings import (
    MapSettings,
    RowSpec,
    mean_beside,
    opened_table,
    rows_of,
    settings_of,
)
from pipeline.experiments.findings import Findings, closing_text, setting_of, write_findings
from pipeline.experiments.gallery.published import reported
from pipeline.experiments.ncript_figures import Table2, beside_table2, facts_of, write_figures
from pipeline.experiments.scores_against import beside_pairs, pairs_of
from pipeline.experiments.table1 import (
    COMPARED,
    Scores,
    TemporalMap,
    as_printed,
    map_schema,
    printed_order,
    printed_scores,
    table1_scorer,
)
from pipeline.experiments.table1_histograms import Maker
from pipeline.settings import build, inputs
from pipeline.settings.config import Config, PrivacyConfig
from pipeline.settings.specs import build_specs, settled
from pipeline.stage_bars import Stages


def sprint1(truth: Floats, noisy: Floats) -> dict[str, float | None]:
    """The official score of sprint 1, summed over places and times, and its mean."""
    shape = (-1, truth.shape[-1])
    result = pie_chart_counts(truth.reshape(shape), noisy.reshape(shape))
    return {"sprint1": result.score, "sprint1_mean": result.mean}


def ncript_parts(truth: Floats, noisy: Floats) -> dict[str, float | None]:
    """The mean of each of N-CRiPT's losses over all rows (a place and time each), and of their weighted total."""
    result = ncript(cubes_from_arrays(truth, np.round(noisy)))
    return {name.upper(): float(values.mean()) for name, values in result.parts.items()} | {"total": result.score}


#: A noisy map → its scores by name.
Scorer = Callable[[Floats], Scores]
#: Metric → what makes its scorer from the true map and the settings, and whether high or low is good.
SCORERS: dict[str, tuple[Callable[[TemporalMap, MapSettings], Scorer], str]] = {
    "sprint1": (lambda world, _: partial(sprint1, world.histogram), "high"),
    "ncript": (lambda world, _: partial(ncript_parts, world.histogram), "low"),
    "table1": (table1_scorer, "low"),
}


def run_and_tell(config: Config, root: Path, hydra_files: Mapping[str, str]) -> str:
    """Make every noisy map, score it, and write the table and the figure, which may not be published.

    Returns:
        the short table, and where everything lies.
    Raises:
        UserError: an impossible setting, or a table that does not fit.
    """
    _check(config)
    show = Stages(quiet=config.quiet, console=config.console)
    config, schema = _settled(config)
    admission.check(booked := tables.releases(config, schema, root))
    size = DEMO_ROWS if config.data.rows is None else config.data.rows
    generate = partial(write_demo, rows=size, seed=config.data.seed) if inputs.generated(config) else None
    with opened_table(config, schema, root, hydra_files, show, generate) as table:
        schema_file = table.folder.internal / "map.yaml"
        write_whole(schema_file, schema.to_yaml(), mode=0o600)
        admission.book(booked)
        opened, rows = Maker(config, TemporalMap(schema, table.real), table, schema_file), list[JsonDict]()
        settings, table2 = settings_of(config, MapSettings), _table2(opened)
        specs = rows_of(settings)
        scorers = {metric: SCORERS[metric][0](opened.world, settings) for metric in settings.metrics}
        for place, spec in enumerate(specs):
            with show.stage(spec.name) as report:
                report(place, len(specs), f"row {place + 1} of {len(specs)}")
                path = opened.table.folder.internal / "rows" / f"{spec.name}.json"
                rows += stored_values(path, partial(_rows, opened, spec, scorers))
        runs: list[dict[float, JsonDict]] = [{} for _ in range(settings.repeats)]
        if "ncript" in settings.metrics:
            for spec in (spec for spec in rows_of(settings) if spec.method == "lap"):
                runs[spec.run - 1][spec.value] = json.loads(_own_file(opened, spec).read_text(encoding="utf-8"))
        cells = mean_beside([beside_table2(maps, table2) for maps in runs])
        pairs, order = pairs_of(rows, settings.against), printed_order(settings.table1) if settings.table1 else {}
        against, says = beside_pairs(pairs, order), (settings.source, settings.says, tuple(settings.notes))
        findings = Findings(tuple(rows), _setting(opened), *says, against, cells).beside
        write_findings(findings, opened.table.folder.internal, pairs)
        if runs[0]:
            table2 = replace(table2, printed=()) if config.smoke else table2
            write_figures(runs[0], table2, opened.table.folder.internal, findings.title)
    return closing_text(findings, root / "internal", config.console)


def _check(config: Config) -> None:
    """UserError for a metric or printed table that is none, a setting of a run that is decided here, or no rows."""
    for name in settings_of(config, MapSettings).metrics:
        if name not in SCORERS:
            raise UserError(f"got {name!r}", where="experiment.metrics", fix=f"one of: {', '.join(SCORERS)}")
    as_printed(settings_of(config, MapSettings).table1)
    plain, mine = PrivacyConfig(), {"epsilon": "experiment.dpsyn and experiment.laplace"}
    for name, instead in (mine | {"max_records": "experiment.max_records"}).items():
        if getattr(config.privacy, name) != getattr(plain, name):
            fix = f"set {instead}, and leave privacy.{name} out"
            raise UserError("an experiment has its own", where=f"privacy.{name}", fix=fix)
    rows_of(settings_of(config, MapSettings))


def _rows(opened: Maker, spec: RowSpec, scorers: Mapping[str, Scorer]) -> list[JsonDict]:
    """The scores of one map."""
    start = time.perf_counter()
    noisy, promise = opened.make(spec)
    sample = spec.method == "sample"
    facts: JsonDict = {"dataset": f"sample {spec.value:g}" if sample else spec.method}
    facts |= {"epsilon": None if sample else spec.value, "run": spec.run, "records": float(noisy.sum())}
    facts |= {"seconds": round(time.perf_counter() - start, 2)}
    facts |= {"promise": f"{spec.name}: {promise}", "floor": None}
    settings = settings_of(opened.config, MapSettings)
    if "ncript" in settings.metrics and spec.method == "lap":
        stored_values(_own_file(opened, spec), partial(facts_of, opened.world.histogram, noisy, _table2(opened)))
    printed, rows = (*settings.printed, *printed_scores(settings.table1)), []
    for metric, scorer in scorers.items():
        for name, score in scorer(noisy).items():
            row = {**facts, "metric": name, "goal": SCORERS[metric][1], "score": score}
            row |= {"part": True} if metric == "table1" and name not in ("range_query", *COMPARED) else {}
            rows.append(row | reported(printed, name, facts["epsilon"], facts["dataset"]))
    return rows


def _own_file(opened: Maker, spec: RowSpec) -> Path:
    """What N-CRiPT's table and figures need of one map; it is written before the map's scores are."""
    return opened.table.folder.internal / "rows" / f"{spec.name}-ncript.json"


def _table2(opened: Maker) -> Table2:
    place = opened.world.schema.columns[1]
    return Table2(settings_of(opened.config, MapSettings).table2, code_names(place))


def _setting(opened: Maker) -> JsonDict:
    config, table = opened.config, opened.world.table
    source = "generated city (demo)" if inputs.generated(config) else opened.table.source.path.name
    kind = f"{source}, {' × '.join(map(str, opened.world.histogram.shape))}, {table.rows:,} records"
    data = {"columns": list(opened.world.domain.names), "shape": list(opened.world.histogram.shape)}
    return setting_of(config, settings_of(config, MapSettings), kind, opened.table.facts, table.rows, **data)


#: What `smoke=true` leaves: so many generated rows, and of each list of ε or shares its last values.
SMOKE_ROWS = 4_000
SMOKE_VALUES = {"dpsyn": 1, "laplace": 2, "samples": 2}


def releases(config: Config, root: Path) -> tuple[PlannedRelease, ...]:
    """What the experiment books: each of its noisy tables, all together.

    Raises:
        UserError: an impossible setting.
    """
    return tables.releases(*_settled(config), root)


def _settled(config: Config) -> tuple[Config, Schema]:
    """The settings, of a smoke run smaller, and the schema of the map."""
    config = settled(smaller(config) if config.smoke else config)
    return config, map_schema(config, build.build_schema(build_specs(config)))


def smaller(config: Config) -> Config:
    """The experiment in seconds, by its own method: few generated rows, few tables, one run."""
    settings = settings_of(config, MapSettings)
    lists: JsonDict = {name: getattr(settings, name)[-most:] for name, most in SMOKE_VALUES.items()}
    lists["repeats"] = 1
    data = config.data
    if data.name == "demo":
        data = replace(data, rows=min(data.rows or SMOKE_ROWS, SMOKE_ROWS))
    experiment = replace(config.experiment, options=config.experiment.options | lists)
    return replace(config, experiment=experiment, data=data)
