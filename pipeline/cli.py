"""The command line; a user's mistake is one clear message and exit code 1."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from types import FrameType

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from mechanisms.public.errors import UserError, did_you_mean
from mechanisms.public.files import write_whole
from pipeline import build, experiments, other, report_dive, report_plan, report_run, stages, two_tables
from pipeline.budget import ledger_report
from pipeline.config import (
    CONF,
    BudgetFileConfig,
    Config,
    DraftConfig,
    QueryConfig,
    ReportConfig,
    ScoreConfig,
    SynthConfig,
    compose_config,
    typed,
)
from pipeline.folders import RunFolder, not_in_release
from pipeline.help import help_text
from pipeline.html.run import render_run
from pipeline.overrides import quoted, spelled
from pipeline.query import query
from pipeline.said import explained, say_what_is_safe
from pipeline.sweep_report import is_sweep, render

COMMANDS = ("run", "plan", "synth", "score", "report", "query", "schema", "budget")


def main(argv: Sequence[str]) -> int:
    """Run one command; returns the exit code: 0, or 1 with a message on standard error."""
    if not argv or argv[0] in {"-h", "--help", "help"}:
        print(help_text(None), end="")
        return 0 if argv else 1
    if argv[0] == "--version":
        print(version("dp-synthesis-pipeline"))
        return 0
    command, rest = argv[0], list(argv[1:])
    if command in COMMANDS and {"-h", "--help"} & set(rest):
        print(help_text(command), end="")
        return 0
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        if command not in COMMANDS:
            fix = f"{did_you_mean(command, COMMANDS)} one of: {', '.join(COMMANDS)}".strip()
            raise UserError(f"no command {command!r}", where="python -m pipeline", fix=fix)
        unknown = [a for a in rest if a.startswith("-") and not (command == "run" and a in {"-m", "--multirun"})]
        if unknown:
            fix = "setting=value, --help" + (", or -m for a sweep" if command == "run" else "")
            raise UserError(f"no flag {unknown[0]!r}", where=f"python -m pipeline {command}", fix=fix)
        run = {"run": _run, "plan": _plan, "synth": _synth, "score": _score, "schema": _schema}
        return {**run, "report": _report, "query": _query, "budget": _budget}[command](rest)
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except BaseException as error:
        return _failed(error)


def _interrupt(signum: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _failed(error: BaseException) -> int:
    """Say what went wrong on standard error; the traceback only with HYDRA_FULL_ERROR=1."""
    if isinstance(error, SystemExit):
        return int(error.code or 0) if isinstance(error.code, int | None) else 1
    if os.environ.get("HYDRA_FULL_ERROR") == "1":
        traceback.print_exception(error)
    print(f"error: {explained(error)}", file=sys.stderr)
    return 1


def _run(overrides: list[str]) -> int:
    """One run, or a sweep with -m; a failed job never takes the others down and is listed at the end."""
    given = [spelled(o) for o in overrides if not o.startswith("-")]
    if len(given) < len(overrides):
        from pipeline.sweeps.sweep import sweep  # plotting is slow to load

        return sweep(given)
    typed(compose_config("config", given), Config)
    _outside_releases(given)
    failures: list[tuple[Path, Exception]] = []

    def job(config: DictConfig) -> None:
        root = Path(HydraConfig.get().runtime.output_dir)
        try:
            settings = typed(config, Config)
            if settings.experiment.kind or settings.smoke:
                print(experiments.run_experiment(settings, root, _hydra_files(config)))
                return
            print(report_run.where_to_look(stages.run(settings, root, hydra_files=_hydra_files(config))))
        except KeyboardInterrupt:
            say_what_is_safe(root)
            raise
        except Exception as error:  # Hydra would say it in its own way
            failures.append((root, error))

    sys.argv = ["pipeline", *given]
    asked = os.environ.get("HYDRA_FULL_ERROR")
    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra's own failures come to `_failed` too
    try:
        hydra.main(version_base="1.3", config_path=str(CONF), config_name="config")(job)()
    finally:
        os.environ.pop("HYDRA_FULL_ERROR")
        if asked is not None:
            os.environ["HYDRA_FULL_ERROR"] = asked
    for root, error in failures:
        if not isinstance(error, UserError) or error.where != "hydra.run.dir":
            say_what_is_safe(root)
        raise error
    return 0


def _outside_releases(overrides: Sequence[str]) -> None:
    """Refuse the run's folder before Hydra makes it."""
    hydra_own = compose_config("config", overrides, own=True).hydra
    root = Path(hydra_own.run.dir)
    not_in_release(root, "hydra.run.dir")
    if hydra_own.output_subdir is not None:
        not_in_release(root / hydra_own.output_subdir, "hydra.output_subdir")


def _hydra_files(config: DictConfig) -> dict[str, str]:
    """Hydra's own records of the job, kept under internal/ (they may name files and seeds)."""
    return {
        "config.yaml": OmegaConf.to_yaml(config, resolve=True),
        "hydra.yaml": OmegaConf.to_yaml(HydraConfig.instance().cfg),
        "overrides.yaml": OmegaConf.to_yaml(HydraConfig.get().overrides.task),
    }


def _plan(overrides: list[str]) -> int:
    config = typed(compose_config("config", overrides), Config)
    schema = build.build_schema(config)
    workload = build.build_workload(config, schema)
    plan = build.build_plan(config, workload, schema)
    form = build.one_of(config.plan.format, ("text", "json"), "plan.format")
    facts = report_plan.describe(config, schema, workload, plan)
    print(json.dumps(facts, indent=1, allow_nan=False) if form == "json" else report_plan.as_text(facts))
    return 0


def _synth(overrides: list[str]) -> int:
    config = typed(compose_config("synth", overrides), SynthConfig)
    if not config.source:
        raise UserError("no release given", where="from", fix="from=RUN/release")
    output = Path(config.output or f"outputs/synth/{time.strftime('%Y-%m-%d_%H-%M-%S')}")
    made = other.synthesize(Path(config.source), config, output)
    print(f"a new synthetic table, at no new privacy cost: {made}")
    return 0


def _score(overrides: list[str]) -> int:
    config = typed(compose_config("score", overrides), ScoreConfig)
    for setting, path in (("output", config.output), ("report", config.report)):
        if path:
            not_in_release(Path(path), setting)
    card = two_tables.score(config)
    text = json.dumps(card.to_json(), indent=1, allow_nan=False)
    if config.output:
        write_whole(Path(config.output), text + "\n", mode=0o600)
        print(report_dive.as_text(card, config.detail, config.top), end="")
        print(report_run.summary(card))
        print(f"scores (NOT private): {config.output}")
    else:
        print(report_dive.as_text(card, config.detail, config.top), end="", file=sys.stderr)
        print(report_run.summary(card), file=sys.stderr)
        print(text)
    if config.report:
        print(f"report (NOT private): {config.report}", file=sys.stdout if config.output else sys.stderr)
    return 0


def _report(arguments: list[str]) -> int:
    """The report of a run, made again from its own files; of one or several sweeps, from their results."""
    folders = [Path(a) for a in arguments if "=" not in a]
    if folders and all(map(is_sweep, folders)):
        given = dict(a.split("=", 1) for a in arguments if "=" in a)
        for key in given.keys() - {"output", "metric"}:
            raise UserError("no such setting", where=f"override {key!r}", fix="output=FILE, metric=NAME")
        output = Path(given["output"]) if "output" in given else None
        print(f"report (NOT private): {render(folders, output, metric=given.get('metric'))}")
        return 0
    runs = [f"run={quoted(a)}" if "=" not in a else a for a in arguments]
    config = typed(compose_config("report", runs), ReportConfig)
    if not config.run:
        raise UserError("no run given", where="run", fix="python -m pipeline report outputs/mine")
    made = render_run(RunFolder(Path(config.run)), Path(config.output) if config.output else None)
    print(f"report (NOT private): {made}")
    return 0


def _query(overrides: list[str]) -> int:
    """A marginal or a range from a release, as CSV."""
    config = typed(compose_config("query", overrides), QueryConfig)
    if not config.source:
        raise UserError("no release given", where="from", fix="from=RUN/release")
    if config.output:
        not_in_release(Path(config.output), "output")
    answer = query(Path(config.source), marginal=config.marginal, where=config.where)
    text = answer.to_csv(index=False, lineterminator="\n")
    sources = answer.attrs["sources"]
    said = f"from {len(sources)} measured marginals: {'; '.join(sources[:6])}{' …' if len(sources) > 6 else ''}"
    if config.output:
        write_whole(Path(config.output), text)
        print(f"{len(answer):,} answers, at no privacy cost: {config.output}")
    else:
        print(text, end="")
    print(said, file=sys.stderr)
    return 0


def _budget(arguments: list[str]) -> int:
    """What is left of a shared budget and who spent it; or another limit for it."""
    named = [a if "=" in a else f"file={a}" for a in arguments]
    texts = {"file", "reason"}  # whatever is in them
    split = [a.partition("=") for a in named]
    given = [f"{key}={quoted(value)}" if key in texts else spelled(f"{key}={value}") for key, _, value in split]
    print(ledger_report.show(typed(compose_config("budget_file", given), BudgetFileConfig)))
    return 0


def _schema(arguments: list[str]) -> int:
    tables = [f"table={quoted(a)}" if "=" not in a else a for a in arguments]
    config = typed(compose_config("schema_draft", tables), DraftConfig)
    if config.output:
        not_in_release(Path(config.output), "output")
    text = other.draft(config.table, delimiter=config.delimiter, limits=config.limits, clusters=config.cluster)
    if config.output:
        target = Path(config.output)
        if target.exists():
            raise UserError("there is a file already", where=f"output={target}", fix="another name, or move it away")
        write_whole(target, text)
        print(f"a draft (it looked at the data; check it, then set confirmed_public: true): {target}")
    else:
        print(text, end="")
    return 0
