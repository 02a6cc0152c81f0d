"""The tidy table of a sweep: a row per job and metric. It saw raw rows: NOT private."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from mechanisms.public.files import JsonDict, whole_file
from mechanisms.public.text_table import lined_up
from mechanisms.public.units import bound_in_words
from pipeline.folders import RunFolder
from pipeline.scores.scored_tables import metric_rows
from pipeline.statement.words import protected, rules_of_units
from pipeline.sweeps.job_process import JobOutcome, load_json
from pipeline.sweeps.planned_jobs import Job

#: What every results table has, besides the varied settings.
COLUMNS = ("job", "status", "data", "method", "epsilon", "delta", "seed")
MEASURES = (
    *("metric", "goal", "score", "floor", "seconds", "cpu_seconds", "memory_mb"),
    *("private", "spent_epsilon", "spent_delta", "unit", "unit_rules", "neighbouring"),
)


def results_table(jobs: Sequence[tuple[Job, JobOutcome]]) -> pd.DataFrame:
    """A row per job and metric; a job without scores has one row with none."""
    rows = [row for job, outcome in jobs for row in _rows(job, outcome)]
    varied = list(dict.fromkeys(k for job, _ in jobs for k in job.varied))
    names = [*COLUMNS, *(v for v in varied if v not in COLUMNS), *MEASURES, "error"]
    frame = pd.DataFrame(rows)
    further = [c for c in frame.columns if c not in names]
    return frame.reindex(columns=[*names, *further])


def _rows(job: Job, outcome: JobOutcome) -> list[JsonDict]:
    facts: JsonDict = {"job": job.name, "status": outcome.status, **job.varied}
    if job.settings is not None:
        privacy = job.settings.privacy
        facts |= {"data": job.settings.data.name, "method": method_of(job)}
        if job.settings.experiment.kind is None:
            facts |= {"epsilon": privacy.epsilon, "delta": privacy.delta}
        seeds = {privacy.noise_seed, job.settings.synthesis.seed} - {None}
        facts["seed"] = min(seeds) if seeds else None  # type: ignore[type-var]
    facts |= {"seconds": outcome.seconds, "cpu_seconds": outcome.cpu_seconds}
    facts |= {"memory_mb": outcome.memory_mb, "error": next(iter(outcome.error.splitlines()), "")}
    facts |= {f"seconds_{stage}": spent for stage, spent in outcome.stages.items()}
    folder = RunFolder(job.root)
    statement = load_json(folder.release / "privacy.json") or load_json(folder.withheld)
    if statement:
        facts |= {"unit": protected(statement), "unit_rules": rules_of_units(statement)}
        facts |= {k: statement[k] for k in ("private", "neighbouring")}
        # of all that a job may charge, whatever part it used
        promise = statement.get("guarantee") or statement["budget"]
        facts |= {"spent_epsilon": promise["epsilon"], "spent_delta": promise["delta"]}
    experiment = load_json(folder.internal / "scores_of_experiment.json").get("rows", [])
    scores = metric_rows(load_json(folder.scores)) if outcome.status == "done" else []
    rows = [facts | row for row in [*scores, *experiment]]
    return rows or [facts | {"metric": None}]


def method_of(job: Job) -> str:
    """What a curve stands for: the synthesizer, and whatever else varies but ε and seeds."""
    assert job.settings is not None
    named = {"selection": job.settings.selection.kind, "synthesis": job.settings.synthesis.kind}
    aside = {"privacy.epsilon", "seed", "privacy.noise_seed", "synthesis.seed", "evaluation.seed", "data"}
    further = [f"{k}={v}" for k, v in job.varied.items() if k not in aside and k not in named]
    chosen = [job.varied.get(k, v) for k, v in named.items() if k in job.varied or k == "synthesis"]
    return " ".join([" + ".join(chosen), *further])


def write_results(frame: pd.DataFrame, inside: Path) -> None:
    """results.csv and results.parquet, for the owner alone."""
    with whole_file(inside / "results.csv", mode=0o600) as part:
        frame.to_csv(part, index=False)
    with whole_file(inside / "results.parquet", mode=0o600) as part:
        text = {c: frame[c].astype("string") for c in frame.columns if frame[c].dtype == object and c != "private"}
        frame.assign(**text).to_parquet(part, index=False)


def total(frame: pd.DataFrame) -> str:
    """What all jobs together promise about the same people."""
    jobs = frame.drop_duplicates("job")
    stated = jobs[jobs["private"].notna()]
    if stated.empty:
        return "no releases: nothing of this sweep may be published, but for what a folder of a job says may"
    open_ = int((~stated["private"].astype(bool)).sum())
    if open_:
        words = f"{open_} of {len(stated)} are NOT private: no total holds for what is published together with them"
        if jobs["seed"].notna().any() and jobs["epsilon"].nunique() > 1:
            words += " (a seed: equal noise at two ε gives the truth away)"
        return words
    other = "protect different units"
    for kind, problem in (("unit", other), ("unit_rules", other), ("neighbouring", "compare different tables")):
        if kind in stated and stated[kind].nunique() > 1:
            these = "; ".join(sorted(map(str, stated[kind].dropna().unique())))
            return f"the releases {problem} ({these}): no total holds for what is published together"
    epsilon, delta = (math.fsum(stated[f"spent_{k}"]) for k in ("epsilon", "delta"))
    return f"published together they spend at most {bound_in_words(epsilon, delta)} on the same people"


def choice_warning(frame: pd.DataFrame) -> str:
    """What to know before one of several scored releases is picked; empty where there is nothing to pick from."""
    scored = frame[frame["score"].notna() & frame["private"].notna()]
    if scored["job"].nunique() < 2:
        return ""
    return (
        "choosing among these releases by their scores is not covered by what they spent: the scores saw raw rows; "
        "use accept=[{metric: l1, marginals: 2}] accept_tries=N, which chooses by a noisy score"
    )


def efficiency(outcomes: Sequence[JobOutcome], wall: float, cores: int) -> str:
    """One line: the time of the sweep beside that of its jobs, and the most memory that jobs side by side can have had.

    The memory is a bound: the largest peaks of as many jobs as there are cores, with the pages that they share.
    """
    total_seconds = math.fsum(o.seconds for o in outcomes)
    processor = math.fsum(o.cpu_seconds for o in outcomes)
    memory = math.fsum(sorted((o.memory_mb for o in outcomes), reverse=True)[:cores])
    return (
        f"wall {wall:,.1f} s; jobs {total_seconds:,.1f} s (processor {processor:,.1f} s) on {cores} cores: "
        f"efficiency {total_seconds / (wall * cores):.0%}; peak memory at most {memory:,.0f} MB"
    )


def as_text(frame: pd.DataFrame) -> str:
    """One line per finished job: its varied settings and scores."""
    jobs = frame[frame["status"] == "done"]
    if jobs.empty:
        return ""
    scores = jobs[jobs["metric"].notna()]
    names = list(dict.fromkeys(scores["metric"]))[:6]
    rows = [["job", *names, "seconds", "MB"]]
    for name, group in jobs.groupby("job", sort=False):
        by_metric = dict(zip(group["metric"], group["score"], strict=True))
        times = [f"{group['seconds'].iloc[0]:.1f}", f"{group['memory_mb'].iloc[0]:.0f}"]
        rows.append([str(name), *(_shown(by_metric.get(n)) for n in names), *times])
    return "\n".join(lined_up(rows))


def _shown(value: Any) -> str:
    return "–" if value is None or (isinstance(value, float) and math.isnan(value)) else f"{value:.4g}"
