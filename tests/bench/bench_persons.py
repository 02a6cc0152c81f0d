"""Whole persons of baseball: the default with the schema's unit, three runs per ε, beside the same without it."""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from evaluation.tvd import tvd
from mechanisms.public.tables.codec import encode_table
from mechanisms.public.tables.scan import open_table
from pipeline.conf_folder import SCHEMAS
from pipeline.settings.build import build_schema
from pipeline.settings.config import load_config
from pipeline.settings.specs import build_specs
from pipeline.stages import Run, run
from tests.bench.clock import timed

EPSILONS, RUNS = (0.1, 1.0, 10.0), (0, 1, 2)
CASES = tuple(f"epsilon_{e:g}_run_{i}" for e in EPSILONS for i in RUNS)
#: What is told of a release, and its value in the real table, owners shuffled: `(figure, column)` of the metric.
TOLD = {
    ("same", "team"): "same team",
    ("gaps", ""): "next year",
    ("likeness", "AB"): "likeness of AB",
    ("distinct", "team"): "teams",
    ("spans", ""): "years",
}


def _made(path: Path, epsilon: float, folder: Path, more: list[str]) -> Run:
    given = ["data=baseball", f"data.path={path}", f"privacy.epsilon={epsilon}", *more]
    return run(load_config(given), folder, quiet=True)


def _case(epsilon: float) -> dict[str, Any] | None:
    path = Path(os.environ.get("DATA_DIR", "data")) / "baseball-seasons.csv.gz"
    if not path.is_file():
        return None
    made: list[Run] = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        own = ["evaluation.metrics=[persons]"]
        spent = timed(lambda: made.append(_made(path, epsilon, folder / "persons", own)))
        spent["cpu_seconds"] = time.process_time()
        content = yaml.safe_load((SCHEMAS / "baseball.yaml").read_text(encoding="utf-8"))
        content["leave_out"] = [content.pop("unit")["column"]]
        plain = folder / "plain.yaml"
        plain.write_text(yaml.safe_dump(content), encoding="utf-8")
        without = [f"data.schema={plain}", "evaluation.enabled=false"]
        made.append(_made(path, epsilon, folder / "records", without))
        schema = build_schema(build_specs(load_config(["data=baseball", f"data.path={path}"])))
        schema = replace(schema, rules=replace(schema.rules, unit=None))
        coded = []
        for number, table in enumerate((path, *(m.table for m in made))):
            work = folder / str(number)
            source = open_table(table, workdir=work, memory_limit_bytes=10**9, threads=2)
            coded.append(encode_table(source, schema, workdir=work / "codes"))
        errors = [tvd(coded[0], c)["2-way"]["mean"] for c in coded[1:]]
    scores = made[0].scores
    assert scores is not None
    levels = scores.to_json()["metrics"]["persons"]["details"]["levels"]
    named = {(f["figure"], f["column"]): f for f in levels}
    told = ", ".join(f"{words} {named[key]['synthetic']:.3g}" for key, words in TOLD.items())
    real = ", ".join(f"{named[key]['real']:.3g} ({named[key]['shuffled']:.2g})" for key in TOLD)
    return {
        "name": f"baseball, ε = {epsilon:g}: {told}; 2-way TVD {errors[0]:.4f}, without persons {errors[1]:.4f}",
        "rows": coded[1].rows,
        "columns": len(schema.columns),
        "cells": sum(a.values.size for a in made[0].measurements.answers),
        **spent,
        "reference": f"real (owners shuffled): {real}",
    }


def __getattr__(case: str) -> Any:
    """The cases by name."""
    if case not in CASES:
        raise AttributeError(case)
    return lambda: _case(float(case.removeprefix("epsilon_").partition("_run_")[0]))
