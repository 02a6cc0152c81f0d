"""Whole persons: baseball with the unit of its schema and without one; planted kinship; a million records."""

import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import yaml

from evaluation.tvd import distances
from pipeline.conf_folder import SCHEMAS
from pipeline.frames.fit import fit
from pipeline.report.plan_tables import planned
from pipeline.settings.build import build_schema
from pipeline.settings.config import load_config
from pipeline.settings.specs import build_specs
from pipeline.stages import Run, run
from synthesis.persons import arranged
from synthesis.persons.linking import Linked, linked_persons
from tests.bench.clock import data_file, timed
from tests.bench.peers.tables import coded
from tests.bench.planted import FAMILIES, WAVES, kinship, waves

EPSILONS, RUNS = (0.1, 1.0, 10.0), (0, 1, 2)
#: How alike the records of planted persons are.
STRENGTHS = (0.0, 0.1, 0.2, 0.3, 0.4)
PERSONS = 4_000
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


def _case(epsilon: float, most: int | str) -> dict[str, Any] | None:
    """Persons of whom `most` records count, beside the records of C = 20 without persons."""
    if (path := data_file("baseball-seasons.csv.gz")) is None:
        return None
    made: list[Run] = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        own = ["evaluation.metrics=[persons]", f"privacy.max_records={most}"]
        spent = timed(lambda: made.append(_made(path, epsilon, folder / "persons", own)))
        spent["cpu_seconds"] = time.process_time()
        content = yaml.safe_load((SCHEMAS / "baseball.yaml").read_text(encoding="utf-8"))
        content["leave_out"] = [content.pop("unit")["column"]]
        plain = folder / "plain.yaml"
        plain.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
        without = [f"data.schema={plain}", "evaluation.enabled=false"]
        made.append(_made(path, epsilon, folder / "records", without))
        schema = build_schema(build_specs(load_config(["data=baseball", f"data.path={path}"])))
        schema = replace(schema, rules=replace(schema.rules, unit=None))
        real_rows, *others = coded(schema, path, *(m.table for m in made))
        errors = [distances(real_rows, other).to_json()["2-way"]["mean"] for other in others]
    scores = made[0].scores
    levels = scores.to_json()["metrics"]["persons"]["details"]["levels"]
    named = {(f["figure"], f["column"]): f for f in levels}
    told = ", ".join(f"{words} {named[key]['synthetic']:.3g}" for key, words in TOLD.items())
    real = ", ".join(f"{named[key]['real']:.3g} ({named[key]['shuffled']:.2g})" for key in TOLD)
    error = f"2-way TVD {errors[0]:.4f}, without persons {errors[1]:.4f}"
    return {
        "name": f"baseball, ε = {epsilon:g}, C = {most}: {told}; {error}",
        "rows": others[0].rows,
        "columns": len(schema.columns),
        "cells": sum(a.values.size for a in made[0].measurements.answers),
        **spent,
        "reference": f"real (owners shuffled): {real}",
    }


def planted(name: str, strength: float, seed: int) -> dict[str, tuple[float, float]]:
    """Column → how alike a person's records are in the real rows, and in synthetic ones at ε = 3."""
    family = FAMILIES[name]
    real = family.make(strength, PERSONS, seed)
    schema = yaml.safe_load(family.schema)
    made = fit(real, schema, epsilon=3, delta=1e-6, quiet=True, privacy={"noise_seed": seed}).sample(seed=seed)
    return {c: (kinship(real, family.owner, c), kinship(made, family.owner, c)) for c in family.columns}


def _planted(name: str, strength: float) -> dict[str, Any]:
    found: list[dict[str, tuple[float, float]]] = []
    spent = timed(lambda: found.extend(planted(name, strength, seed) for seed in RUNS))
    told = "; ".join(
        f"{c} {' '.join(f'{f[c][1]:.3f}' for f in found)} (real {found[0][c][0]:.3f})" for c in FAMILIES[name].columns
    )
    return {"name": f"{name}, kinship {strength:g}, ε = 3: {told}", "rows": PERSONS, **spent}


def million() -> dict[str, Any]:
    """A million records of 100,000 persons: processor time of the links and of the run; its peak and the predicted."""
    spent: list[float] = []

    def watched(*given: Any, **more: Any) -> Linked:
        begun = time.process_time()
        linked = linked_persons(*given, **more)
        spent.append(time.process_time() - begun)
        return linked

    with tempfile.TemporaryDirectory() as place, patch.object(arranged, "linked_persons", watched):
        folder = Path(place)
        for part in range(10):  # so that the table weighs little in the peak
            rows = waves(0.3, 10_000, part, most=18)
            rows["person"] += 10_000 * part
            rows.to_csv(folder / "waves.csv", mode="a", header=part == 0, index=False)
        (folder / "waves.yaml").write_text(WAVES.replace("max: 6", "max: 20"), encoding="utf-8")
        given = ["data=table", f"data.path={folder / 'waves.csv'}", f"data.schema={folder / 'waves.yaml'}"]
        config = load_config([*given, "privacy.epsilon=1", "privacy.delta=1e-9", "evaluation.enabled=false"])
        facts = planned(config)
        whole = timed(lambda: run(config, folder / "run", quiet=True))
    return {
        "name": f"links of a million records of 100,000 persons: {spent[0]:.0f} s of processor time",
        "rows": 1_000_000,
        "columns": 5,
        **whole,
        "reference": f"predicted {facts['predicted_memory_bytes'] / 1e6:.0f} MB",
    }


CASES = {f"epsilon_{e:g}_run_{i}": partial(_case, e, 20) for e in EPSILONS for i in RUNS}
CASES |= {f"discovered_{e:g}_run_{i}": partial(_case, e, "discover") for e in EPSILONS for i in RUNS}
CASES |= {f"planted_{name}_{s:g}": partial(_planted, name, s) for name in FAMILIES for s in STRENGTHS}
CASES |= {"million": million}
