"""The scores of a card as rows, and their floors, which a sweep measures once for all of its jobs. NOT private."""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from evaluation.metrics import METRICS, ON_TOP, ScoreSpec
from evaluation.references import two_samples
from evaluation.score import score_tables
from evaluation.values.value_tables import Values
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.errors import UserError
from mechanisms.public.files import write_whole
from mechanisms.public.json_values import Json, JsonDict
from mechanisms.public.posix import fcntl
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.scan import private_folder

LOG = logging.getLogger("pipeline")

#: The folder of a sweep's internal/ that holds them.
FLOORS = "floors"


def metric_rows(card: Json) -> list[JsonDict]:
    """Name, goal, score and floor of every metric in a scores.json; a score that is undefined has no row."""
    rows, metrics = [], card.get("metrics", {})
    mgd = card.get("mgd", {})
    if isinstance(mgd, dict):
        rows.append(_row("MGD", "low", mgd | {"floor": metrics.get("mgd", {}).get("floor")}))
    floor = metrics.get("tvd", {}).get("floor")
    for name, family in card.get("tvd", {}).items():
        if isinstance(family, dict) and "mean" in family:
            floor_of_pairs = floor if name == "2-way" else None
            rows.append(_row(f"{name} TVD", "low", {"score": family["mean"], "floor": floor_of_pairs}))
    for name, metric in metrics.items():
        if isinstance(metric, dict) and name not in ON_TOP:
            rows.append(_row(str(name), str(metric.get("goal", "low")), metric))
    return [row for row in rows if row["score"] is not None]


def _row(name: str, goal: str, metric: Json) -> JsonDict:
    floor = (metric.get("floor") or {}).get("value")
    return {"metric": name, "goal": goal, "score": metric.get("score"), "floor": floor}


def measure_floors(
    real: CodedTable, schema: Schema, spec: ScoreSpec, rows: int, values: Values | None = None
) -> dict[str, float]:
    """What one new sample of `rows` real records scores against another of the table's size, by metric's name.

    Whole units are drawn where the options name the unit of each row. One draw: most scores are means over hundreds of
    marginals.

    Args:
        values: the same rows as values, for the metrics that read these.
    """
    names = tuple(n for n in spec.metrics if METRICS[n].referable)
    options = replace(spec.options, values=None, holdout=None, progress=None)
    draw = partial(two_samples, rows=rows, unit=options.unit)
    pair = draw(real, rng=np.random.default_rng(options.seed))
    if values is not None:
        same = draw(values.tables["real"], rng=np.random.default_rng(options.seed))
        options = replace(options, values=replace(values, tables=dict(zip(("real", "synthetic"), same, strict=True))))
    spec = replace(spec, metrics=names, options=options, references=False, dive=False, detail="none")
    return {row["metric"]: row["score"] for row in metric_rows(score_tables(*pair, schema, spec).to_json())}


def floors_file(folder: Path, facts: Json) -> Path:
    """Where a sweep keeps the floors of runs with the same data, schema, unit, metrics and number of rows.

    Args:
        facts: of a run's manifest.
    """
    settings = facts["settings"]
    unit = [settings["privacy"][k] for k in ("unit", "missing_unit_values")]  # whole units are drawn
    same = [facts["data"], facts["schema"], settings["data"], settings["evaluation"], settings["synthesis"]["rows"]]
    name = hashlib.blake2b(json.dumps([*same, *unit], sort_keys=True, default=str).encode(), digest_size=16).hexdigest()
    return folder / f"{name}.json"


def keep_floors(
    path: Path, real: CodedTable, schema: Schema, spec: ScoreSpec, rows: int | None, values: Values | None = None
) -> None:
    """Measure the floors unless they are known, or another job is at it; no job fails or waits for them."""
    private_folder(path.parent)
    with path.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        if path.exists():
            return
        try:
            floors = measure_floors(real, schema, spec, real.rows if rows is None else rows, values)
            write_whole(path, json.dumps(floors), mode=0o600)
        except UserError as error:
            LOG.warning("no floors: %s", error)
