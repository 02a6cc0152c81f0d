"""`experiment.kind=maps`: noisy temporal maps scored as sprint 1 of 2020-21 and as N-CRiPT score them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.challenges.pie_chart import pie_chart_counts
from evaluation.cube import cubes_from_arrays
from evaluation.ncript.combined_loss import Ncript, ncript
from mechanisms.public.errors import UserError
from mechanisms.public.files import write_whole
from mechanisms.public.tables.codec import encode_columns
from pipeline import stages
from pipeline.budget import admission
from pipeline.experiments import table1_histograms as tables
from pipeline.experiments.experiment_settings import (
    MapSettings,
    RowSpec,
    Source,
    map_settings,
    rows_of,
    settings_of,
)
from pipeline.experiments.findings import Findings, reported, summary, write_findings
from pipeline.experiments.mgd_table1 import demo_table, smaller
from pipeline.experiments.mgd_table1 import releases as releases  # what is booked follows from the same settings
from pipeline.experiments.table1_histograms import Maker
from pipeline.experiments.temporal_map import TemporalMap, histogram, map_schema
from pipeline.folders import bind, claimed, logged
from pipeline.settings import build, inputs
from pipeline.settings.config import Config
from pipeline.stage_bars import Stages, misfits

Histogram = NDArray[np.float64]


def sprint1(truth: Histogram, made: Histogram) -> dict[str, float | None]:
    """The official score of sprint 1, summed over places and times, and its mean."""
    shape = (-1, truth.shape[-1])
    result = pie_chart_counts(truth.reshape(shape), made.reshape(shape))
    mean = None if result.score is None else result.score / result.segments.size
    return {"sprint1": result.score, "sprint1_mean": mean}


def ncript_parts(truth: Histogram, made: Histogram) -> dict[str, float | None]:
    """The mean of each of N-CRiPT's losses over all rows (a place and time each), and of their weighted total."""
    found: Ncript = ncript(cubes_from_arrays(truth, np.round(made)))
    means = {name.upper(): float(values.mean()) for name, values in found.parts.items()}
    weighted = zip(found.spec.weights, ("JSD", "JD", "HH", "HC", "VC"), strict=True)
    return {**means, "total": means["BP"] + sum(w * means[name] for w, name in weighted)}


#: Metric → what scores a map with it, and whether high or low is good.
SCORERS: dict[str, tuple[Callable[[Histogram, Histogram], dict[str, float | None]], str]] = {
    "sprint1": (sprint1, "high"),
    "ncript": (ncript_parts, "low"),
}


@dataclass(frozen=True)
class MapScores(MapSettings, Source):
    """`experiment.*` of noisy maps that are scored; the comments stand in conf/experiment.

    Attributes:
        metrics: keys of SCORERS.
    """

    metrics: list[str] = field(default_factory=list)


def own(config: Config) -> MapScores:
    """The experiment's settings.

    Raises:
        UserError: as of `settings_of`.
    """
    return settings_of(config.experiment, MapScores)


def run(config: Config, root: Path, *, hydra_files: Mapping[str, str] | None = None, quiet: bool = False) -> Findings:
    """Make every noisy map, score it, and write the table and the figure; nothing of it may be published.

    Raises:
        UserError: an impossible setting, or a table that does not fit.
    """
    for name in own(config).metrics:
        if name not in SCORERS:
            raise UserError(f"got {name!r}", where="experiment.metrics", fix=f"one of: {', '.join(SCORERS)}")
    rows_of(map_settings(config.experiment))
    config = smaller(config) if config.smoke else config
    schema = map_schema(config, build.build_schema(config))
    admission.check(booked := tables.releases(config, schema, root))
    show = Stages(quiet=quiet)
    with claimed(root, resume=config.resume) as folder, logged(folder.log):
        with show.stage("load") as report:
            path = demo_table(config, folder, report)
            facts = bind(folder, stages.run_facts(config, schema, path))
            stages.keep_settings(folder, config, hydra_files or {})
            write_whole(folder.internal / "map.yaml", schema.to_yaml(), mode=0o600)
            source = stages.open_source(path, config, folder)
            table, encoding = encode_columns(source, schema, workdir=folder.temporary, progress=report)
            world = TemporalMap(schema, table, histogram(table))
        show.warn(misfits(encoding))
        admission.book(booked)
        key = bytes.fromhex(facts["once"]["key"])
        schema_file = folder.internal / "map.yaml"
        maker = Maker(config, world, path, schema_file, folder, key, lambda p: stages.open_source(p, config, folder))
        rows: list[dict[str, Any]] = []
        for spec in rows_of(map_settings(config.experiment)):
            with show.stage(spec.name):
                rows += _rows(maker, world, spec)
        found = Findings(tuple(rows), _setting(config, world, facts), own(config).source, own(config).says)
        found = replace(found, notes=tuple(own(config).notes))
        write_findings(found, folder.internal)
    return found


def run_and_tell(config: Config, root: Path, hydra_files: Mapping[str, str]) -> str:
    """Like `run`; returns the short table and where everything lies."""
    found = run(config, root, hydra_files=hydra_files)
    files = "\n".join(f"  {root / 'internal' / n}" for n in ("table.md", "table.csv", "figure.png", "experiment.json"))
    return f"\n{summary(found)}\n\nNOT private, keep back:\n{files}"


def _rows(maker: Maker, world: TemporalMap, spec: RowSpec) -> list[dict[str, Any]]:
    """The scores of one map, from their file if they were finished before."""
    kept = maker.folder.internal / "rows" / f"{spec.name}.json"
    if kept.exists():
        known: list[dict[str, Any]] = json.loads(kept.read_text(encoding="utf-8"))
        return known
    start = time.perf_counter()
    made = maker.make(spec)
    facts = {"dataset": spec.method, "epsilon": spec.value, "seconds": round(time.perf_counter() - start, 2)}
    facts |= {"promise": f"{spec.name}: {made.promise}", "floor": None}
    settings = own(maker.config)
    rows = []
    for metric in settings.metrics:
        scorer, goal = SCORERS[metric]
        for name, score in scorer(world.histogram, made.histogram).items():
            row = {**facts, "metric": name, "goal": goal, "score": score}
            rows.append(row | {"reported": reported(settings.reported, name, spec.value)})
    write_whole(kept, json.dumps(rows, indent=1, allow_nan=False), mode=0o600)
    return rows


def _setting(config: Config, world: TemporalMap, facts: Mapping[str, Any]) -> dict[str, Any]:
    generated = inputs.generated(config)
    shape = " × ".join(map(str, world.histogram.shape))
    what = "generated city (demo)" if generated else Path(str(config.data.path)).name
    return {
        "experiment": own(config).name or "maps",
        "smoke": config.smoke,
        "data": {
            "name": config.data.name,
            "kind": f"{what}, {shape}, {world.table.rows:,} records",
            "fingerprint": facts["data"],
            "records": world.table.rows,
            "columns": list(world.schema.domain.names),
        },
    }
