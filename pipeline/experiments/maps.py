"""`experiment.kind=maps`: noisy temporal maps scored as sprint 1 of 2020-21 and as N-CRiPT score them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evaluation.cube import cubes_from_arrays
from evaluation.papers.challenges.pie_chart import pie_chart_counts
from evaluation.papers.ncript.combined_loss import Ncript, ncript
from mechanisms.public.errors import UserError
from mechanisms.public.schema.code_labels import code_names
from pipeline.experiments.experiment_settings import ExperimentSource, MapSettings, RowSpec, rows_of, settings_of
from pipeline.experiments.findings import FILES, Findings, finished, reported, setting_of, summary, told, write_findings
from pipeline.experiments.map_experiment import OpenMap, opened_map
from pipeline.experiments.map_experiment import releases as releases  # what is booked follows from the same settings
from pipeline.experiments.ncript_figures import FILES as NCRIPT_FILES
from pipeline.experiments.ncript_figures import Table2, beside_table2, facts_of, write_figures
from pipeline.experiments.repeats import mean_beside
from pipeline.json_types import JsonDict
from pipeline.settings import inputs
from pipeline.settings.config import Config
from pipeline.stage_bars import Stages

Histogram = NDArray[np.float64]


def sprint1(truth: Histogram, noisy: Histogram) -> dict[str, float | None]:
    """The official score of sprint 1, summed over places and times, and its mean."""
    shape = (-1, truth.shape[-1])
    result = pie_chart_counts(truth.reshape(shape), noisy.reshape(shape))
    mean = None if result.score is None else result.score / result.segments.size
    return {"sprint1": result.score, "sprint1_mean": mean}


def ncript_parts(truth: Histogram, noisy: Histogram) -> dict[str, float | None]:
    """The mean of each of N-CRiPT's losses over all rows (a place and time each), and of their weighted total."""
    result: Ncript = ncript(cubes_from_arrays(truth, np.round(noisy)))
    means = {name.upper(): float(values.mean()) for name, values in result.parts.items()}
    weighted = zip(result.spec.weights, ("JSD", "JD", "HH", "HC", "VC"), strict=True)
    return {**means, "total": means["BP"] + sum(w * means[name] for w, name in weighted)}


#: Metric → what scores a map with it, and whether high or low is good.
SCORERS: dict[str, tuple[Callable[[Histogram, Histogram], dict[str, float | None]], str]] = {
    "sprint1": (sprint1, "high"),
    "ncript": (ncript_parts, "low"),
}


@dataclass(frozen=True)
class MapScores(MapSettings, ExperimentSource):
    """`experiment.*` of noisy maps that are scored; the comments stand in conf/experiment.

    Attributes:
        metrics: keys of SCORERS.
        table2: with the metric ncript: the rows of Table 2 as printed, which are computed here too; see `Table2`.
    """

    metrics: list[str] = field(default_factory=list)
    table2: list[JsonDict] = field(default_factory=list)


def own(config: Config) -> MapScores:
    """The experiment's settings.

    Raises:
        UserError: as of `settings_of`.
    """
    return settings_of(config.experiment, MapScores)


def run(config: Config, root: Path, *, hydra_files: Mapping[str, str] | None = None, quiet: bool = False) -> Findings:
    """Make every noisy map, score it, and write the table and the figure, which may not be published.

    Raises:
        UserError: an impossible setting, or a table that does not fit.
    """
    for name in own(config).metrics:
        if name not in SCORERS:
            raise UserError(f"got {name!r}", where="experiment.metrics", fix=f"one of: {', '.join(SCORERS)}")
    show = Stages(quiet=quiet, console=config.console)
    with opened_map(config, root, hydra_files, show) as opened:
        config, rows = opened.config, []
        for spec in rows_of(own(config)):
            with show.stage(spec.name):
                rows += finished(opened.folder.internal / "rows" / f"{spec.name}.json", partial(_rows, opened, spec))
        settings, table2 = own(config), _table2(opened)
        runs: list[dict[float, JsonDict]] = [{} for _ in range(settings.repeats)]
        if "ncript" in settings.metrics:
            for spec in (spec for spec in rows_of(settings) if spec.method == "lap"):
                runs[spec.run - 1][spec.value] = finished(_own_file(opened, spec), partial(_own, opened, spec))
        says, notes = (settings.source, settings.says), tuple(settings.notes)
        cells = mean_beside([beside_table2(maps, table2) for maps in runs])
        findings = Findings(tuple(rows), _setting(opened), *says, notes, further=cells).beside
        write_findings(findings, opened.folder.internal)
        if runs[0]:
            table2 = replace(table2, printed=()) if config.smoke else table2
            write_figures(runs[0], table2, opened.folder.internal, findings.title)
    return findings


def run_and_tell(config: Config, root: Path, hydra_files: Mapping[str, str]) -> str:
    """Like `run`; returns the short table and where everything lies."""
    findings = run(config, root, hydra_files=hydra_files)
    further = NCRIPT_FILES if "ncript" in own(config).metrics and own(config).laplace else ()
    return told(summary(findings), root / "internal", config.console, (*FILES, *further))


def _rows(opened: OpenMap, spec: RowSpec) -> list[JsonDict]:
    """The scores of one map."""
    start = time.perf_counter()
    noisy = opened.maker.make(spec)
    facts = {"dataset": spec.method, "epsilon": spec.value, "run": spec.run}
    facts |= {"seconds": round(time.perf_counter() - start, 2)}
    facts |= {"promise": f"{spec.name}: {noisy.promise}", "floor": None}
    settings = own(opened.config)
    if "ncript" in settings.metrics and spec.method == "lap":
        finished(_own_file(opened, spec), partial(facts_of, opened.world.histogram, noisy.histogram, _table2(opened)))
    rows = []
    for metric in settings.metrics:
        scorer, goal = SCORERS[metric]
        for name, score in scorer(opened.world.histogram, noisy.histogram).items():
            row = {**facts, "metric": name, "goal": goal, "score": score}
            rows.append(row | reported(settings.printed, name, spec.value, spec.method))
    return rows


def _own_file(opened: OpenMap, spec: RowSpec) -> Path:
    """What N-CRiPT's table and figures need of one map."""
    return opened.folder.internal / "rows" / f"{spec.name}-ncript.json"


def _own(opened: OpenMap, spec: RowSpec) -> JsonDict:
    """The same of a map that was made before."""
    return facts_of(opened.world.histogram, opened.maker.make(spec).histogram, _table2(opened))


def _table2(opened: OpenMap) -> Table2:
    place = opened.world.schema.columns[1]
    return Table2(own(opened.config).table2, code_names(place))


def _setting(opened: OpenMap) -> JsonDict:
    config, table = opened.config, opened.world.table
    source = "generated city (demo)" if inputs.generated(config) else opened.path.name
    kind = f"{source}, {' × '.join(map(str, opened.world.histogram.shape))}, {table.rows:,} records"
    return setting_of(config, kind, opened.facts, table.rows, columns=list(opened.world.domain.names))
