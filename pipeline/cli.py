"""The command line; a user's mistake is one clear message and exit code 1."""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from mechanisms.public.errors import UserError, choices_fix, one_of
from mechanisms.public.files import write_whole
from pipeline.conf_folder import with_own_folder
from pipeline.error_messages import explained, say_what_is_safe, show_what_can_be_shown
from pipeline.help import help_text
from pipeline.version import __version__

if TYPE_CHECKING:
    from omegaconf import DictConfig

# Every command loads its libraries inside its function, after its settings and files were looked at: help and a
# mistake are answered without them.

COMMANDS = ("run", "plan", "synth", "score", "report", "query", "verify", "schema", "check", "rehearse", "budget")

#: Libraries leave a million objects that stay: to look for garbage among them took a tenth of a small command's time.
COLLECTED = 100_000
#: The exit code after Ctrl-C or SIGTERM, as of a shell.
INTERRUPTED = 130


def main(argv: Sequence[str]) -> int:
    """Run one command; returns the exit code: 0, or 1 (interrupted: 130) with a message on standard error."""
    show_what_can_be_shown()
    gc.set_threshold(COLLECTED)
    try:
        if callable(signal.getsignal(signal.SIGINT)):  # not where somebody ignores it
            signal.signal(signal.SIGINT, signal.default_int_handler)
        code = _main(argv)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except BaseException as error:
        with suppress(OSError):  # it would be flushed again at the end
            sys.stdout.close() if isinstance(error, OSError) and not error.filename else sys.stdout.flush()
        return _failed(error)


def _main(argv: Sequence[str]) -> int:
    if not argv or argv[0] in {"-h", "--help", "help"}:
        print(help_text(None), end="")
        return 0 if argv else 1
    if argv[0] == "--version":
        print(__version__)
        return 0
    command, rest = argv[0], list(argv[1:])
    if command in COMMANDS and {"-h", "--help"} & set(rest):
        print(help_text(command, rest), end="")
        return 0
    signal.signal(signal.SIGTERM, _interrupt)
    if command not in COMMANDS:
        fix = choices_fix(command, COMMANDS)
        raise UserError(f"no command {command!r}", where="python -m pipeline", fix=fix)
    rest = with_own_folder(rest)
    unknown = [a for a in rest if a.startswith("-") and not (command == "run" and a in {"-m", "--multirun"})]
    if unknown:
        fix = "setting=value, --help" + (", or -m for a sweep" if command == "run" else "")
        raise UserError(f"no flag {unknown[0]!r}", where=f"python -m pipeline {command}", fix=fix)
    run = {"run": _run, "plan": _plan, "synth": _synth, "score": _score, "schema": _schema}
    more = {"report": _report, "query": _query, "verify": _verify, "budget": _budget}
    return {**run, **more, "check": _check, "rehearse": _rehearse}[command](rest)


def _interrupt(signum: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _failed(error: BaseException) -> int:
    """Say what went wrong on standard error; the traceback only with HYDRA_FULL_ERROR=1."""
    if isinstance(error, SystemExit):
        return int(error.code or 0) if isinstance(error.code, int | None) else 1
    if os.environ.get("HYDRA_FULL_ERROR") == "1":
        traceback.print_exception(error)
    print(f"error: {explained(error)}", file=sys.stderr)
    return INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1


def _run(overrides: list[str]) -> int:
    """One run, or a sweep with -m; a failed job never takes the others down and is listed at the end."""
    from pipeline.settings.compose import compose_config, one_value_each, without_hydra
    from pipeline.settings.config import Config, typed
    from pipeline.settings.inputs import check_inputs
    from pipeline.settings.overrides import spelled

    given = [spelled(o) for o in overrides if not o.startswith("-")]
    if len(given) < len(overrides) or "hydra.mode=MULTIRUN" in given:
        from pipeline.sweeps.sweep import sweep

        return sweep(given)
    composed = compose_config("config", given, own=True)
    one_value_each(given)
    settings = typed(without_hydra(composed), Config)
    check_inputs(settings)
    _outside_releases(composed)
    from hydra.core.hydra_config import HydraConfig

    from pipeline import stages
    from pipeline.console import tells
    from pipeline.experiments import experiments
    from pipeline.folder_lock import no_empty_folders
    from pipeline.measuring.acceptance import Withheld
    from pipeline.report import last_lines as report_run
    from pipeline.sweeps.launching import run_alone

    failures: list[tuple[Path, Exception]] = []

    def job(config: DictConfig) -> None:
        """The run, or the experiment; what fails is kept for the caller, who says it."""
        root = Path(HydraConfig.get().runtime.output_dir)
        try:
            if settings.experiment.kind or settings.smoke:
                print(experiments.run_experiment(settings, root, _hydra_files(config)))
                return
            done = stages.run(settings, root, hydra_files=_hydra_files(config))
            listed = not isinstance(settings.evaluation.metrics, str)
            print(report_run.where_to_look(done, tells=tells(sys.stdout, settings.console), listed=listed))
        except KeyboardInterrupt:
            say_what_is_safe(root)
            raise
        except Exception as error:  # Hydra would say it in its own way
            failures.append((root, error))

    with no_empty_folders(Path(composed.hydra.run.dir)):
        run_alone(composed, job)
        for root, error in failures:
            if not isinstance(error, Withheld):
                say_what_is_safe(root, str(error))
            raise error
    return 0


def _outside_releases(composed: DictConfig) -> None:
    """Refuse the run's folder before Hydra makes it."""
    from pipeline.folders import not_in_release

    hydra_own = composed.hydra
    if isinstance(hydra_own.launcher, str):
        fix = f"hydra/launcher={hydra_own.launcher}, for a sweep (run -m)"
        raise UserError("a group of settings, not one", where="hydra.launcher", fix=fix)
    if not hydra_own.run.dir:
        raise UserError("no folder given", where="hydra.run.dir", fix="hydra.run.dir=outputs/mine")
    root = Path(hydra_own.run.dir)
    not_in_release(root, "hydra.run.dir")
    if hydra_own.output_subdir is not None:
        not_in_release(root / hydra_own.output_subdir, "hydra.output_subdir")


def _hydra_files(config: DictConfig) -> dict[str, str]:
    """Hydra's own records of the job, kept under internal/ (they may name files and seeds)."""
    from hydra.core.hydra_config import HydraConfig
    from omegaconf import OmegaConf

    return {
        "config.yaml": OmegaConf.to_yaml(config, resolve=True),
        "hydra.yaml": OmegaConf.to_yaml(HydraConfig.instance().cfg),
        "overrides.yaml": OmegaConf.to_yaml(HydraConfig.get().overrides.task),
    }


def _plan(overrides: list[str]) -> int:
    from pipeline.settings.compose import compose_config
    from pipeline.settings.config import Config, schema_path, typed

    config = typed(compose_config("config", overrides), Config)
    schema_path(config.data.schema)
    from pipeline.report import plan_tables as report_plan
    from pipeline.settings import build
    from pipeline.settings.scoring import check_scores

    schema = build.build_schema(config)
    workload = build.build_workload(config, schema)
    plan = build.build_plan(config, workload, schema)
    check_scores(config, schema)
    form, details = one_of(config.plan.format, ("text", "json"), "plan.format"), config.plan.details
    facts = report_plan.describe(config, schema, workload, plan)
    print(json.dumps(facts, indent=1, allow_nan=False) if form == "json" else report_plan.as_text(facts, details))
    return 0


def _check(overrides: list[str]) -> int:
    """What a schema would do to a table; exit code 1 where a run would be refused."""
    from pipeline.settings.compose import compose_config
    from pipeline.settings.config import CheckConfig, schema_path, typed
    from pipeline.settings.inputs import check_table

    config = typed(compose_config("check", overrides), CheckConfig)
    form = one_of(config.format, ("text", "json"), "format")
    schema_path(config.data.schema)
    check_table(config.data.path, "data.path", "data.path=FILE: the table to look at")
    from pipeline.look import look_words, table_look

    look = table_look.check(config)
    if form == "json":
        print(json.dumps(look_words.as_facts(look), indent=1, ensure_ascii=False, allow_nan=False))
    else:
        print("\n".join(look_words.as_lines(look, Path(str(config.data.path)).name, str(config.data.schema))))
    return 1 if look.too_many else 0


def _rehearse(overrides: list[str]) -> int:
    """A whole run on rows that are made from the schema alone."""
    from pipeline.settings.compose import compose_config, without_hydra
    from pipeline.settings.config import Config, schema_path, typed

    if any(o.startswith("data.rows=") for o in overrides):
        raise UserError("a rehearsal makes its own rows", where="data.rows", fix="plan.rows=20000: how many to make")
    defaults = (("data", "table"), ("data.name", "rehearsal"), ("evaluation.enabled", "false"))
    own = [f"{name}={value}" for name, value in defaults]
    given = [o for o in own if not any(g.startswith(f"{o.partition('=')[0]}=") for g in overrides)]
    composed = compose_config("config", [*given, *overrides], own=True)
    config = typed(without_hydra(composed), Config)
    schema_path(config.data.schema)
    if config.data.path:
        fix = "python -m pipeline run takes a table; a rehearsal makes its rows from the schema alone"
        raise UserError("a rehearsal opens no table", where="data.path", fix=fix)
    from pipeline.look.rehearse import ROWS, rehearse
    from pipeline.report import last_lines

    rows = config.plan.rows or ROWS
    print(f"a rehearsal on {rows:,} made-up rows: it tries the path, and says nothing about quality", flush=True)
    print(last_lines.rehearsed(rehearse(config, Path(composed.hydra.run.dir))))
    return 0


def _synth(overrides: list[str]) -> int:
    if any(o.startswith("accept") for o in overrides):
        fix = "python -m pipeline run … accept=[…]: only a run may ask the private table"
        raise UserError("a table that is made again from a release is not compared", where="accept", fix=fix)
    from pipeline.settings.compose import compose_config
    from pipeline.settings.config import SynthConfig, typed
    from pipeline.settings.inputs import check_release

    config = typed(compose_config("synth", overrides), SynthConfig)
    release = check_release(config.source)
    from pipeline import synth_again as other
    from pipeline.statement.condition_words import condition_in_words

    output = Path(config.output or f"outputs/synth/{time.strftime('%Y-%m-%d_%H-%M-%S')}")
    made = other.synthesize(release, config, output)
    if made.given is None:
        print(f"a new synthetic table, at no new privacy cost: {made.path}")
        return 0
    what = f"{condition_in_words(made.given['where'])} ({made.given['rows']})"
    print(f"a table of rows with {what}, at no new privacy cost: {made.path}")
    print(
        f"as good as {made.given['effective_rows']:,g} independent rows; its manifest and statement say what it holds"
    )
    return 0


def _score(overrides: list[str]) -> int:
    from pipeline.folders import PAGES, SCORES, check_output
    from pipeline.settings.compose import compose_config
    from pipeline.settings.config import ScoreConfig, typed
    from pipeline.settings.inputs import check_tables

    config = typed(compose_config("score", overrides), ScoreConfig)
    several = config.synthetic if isinstance(config.synthetic, list) and config.synthetic else [config.synthetic]
    for path in several:
        check_tables(replace(config, synthetic=path))
    for setting, path, own in (("output", config.output, SCORES), ("report", config.report, PAGES)):
        if path:
            check_output(Path(path), setting, own=own)
    from pipeline.comparison.score_command import score_command

    return score_command(config)


def _report(arguments: list[str]) -> int:
    """The report of a run, made again from its own files; of one or several sweeps, from their results."""
    from pipeline.folders import is_sweep

    folders = [Path(a) for a in arguments if "=" not in a]
    if folders and all(map(is_sweep, folders)):
        given = dict(a.split("=", 1) for a in arguments if "=" in a)
        for key in given.keys() - {"output", "metric"}:
            raise UserError("no such setting", where=f"override {key!r}", fix="output=FILE, metric=NAME")
        from pipeline.sweeps.sweep_page import render

        output = Path(given["output"]) if "output" in given else None
        print(f"report (NOT private): {render(folders, output, metric=given.get('metric'))}")
        return 0
    from pipeline.folders import RunFolder
    from pipeline.settings.compose import compose_config
    from pipeline.settings.config import ReportConfig, typed
    from pipeline.settings.inputs import check_scored
    from pipeline.settings.overrides import with_names

    config = typed(compose_config("report", with_names("report", arguments)), ReportConfig)
    if not config.run:
        raise UserError("no run given", where="run", fix="python -m pipeline report outputs/mine")
    folder = RunFolder(Path(config.run))
    check_scored(folder)
    from pipeline.report.run_page import render_again

    path = render_again(folder, Path(config.output) if config.output else None)
    print(f"report (NOT private): {path}")
    return 0


def _query(overrides: list[str]) -> int:
    """What a release tells: a marginal, a range, an estimate or bounds, as CSV or JSON."""
    from pipeline.folders import ANSWER, check_output
    from pipeline.settings.compose import compose_config
    from pipeline.settings.config import QueryConfig, typed
    from pipeline.settings.inputs import check_release

    config = typed(compose_config("query", overrides), QueryConfig)
    release = check_release(config.source)
    from pipeline.inference.asked import as_text, asked

    answer = asked(release, config)
    text = as_text(answer, config.format)
    if config.output:
        start = text[: text.index("\n") + 1] if config.format == "csv" else ANSWER
        check_output(Path(config.output), "output", own=[start])  # the same answer, again
        write_whole(Path(config.output), text)
        print(f"{len(answer):,} answers, at no privacy cost: {config.output}")
    else:
        print(text, end="")
    for line in answer.attrs["notes"]:
        print(line, file=sys.stderr)
    return 0


def _verify(arguments: list[str]) -> int:
    """Whether a release is sound, line by line; exit code 1 where it is not."""
    from pipeline.settings.compose import compose_config
    from pipeline.settings.config import VerifyConfig, typed
    from pipeline.settings.overrides import with_names

    config = typed(compose_config("verify", with_names("verify", arguments)), VerifyConfig)
    if not config.source:
        raise UserError("no release given", where="from", fix="python -m pipeline verify RUN/release")
    from pipeline.statement.verify import verify

    verdict = verify(Path(config.source), key=config.key)
    print(verdict.as_text())
    return verdict.exit_code


def _budget(arguments: list[str]) -> int:
    """What is left of a shared budget and who spent it; or another limit for it."""
    from pipeline.budget import ledger_report
    from pipeline.settings.compose import compose_config
    from pipeline.settings.config import BudgetFileConfig, typed
    from pipeline.settings.overrides import quoted, spelled, with_names

    texts = {"file", "reason"}  # whatever is in them
    split = [a.partition("=") for a in with_names("budget", arguments)]
    as_text = [key in texts and not value.startswith('"') for key, _, value in split]
    given = [
        f"{key}={quoted(value)}" if text else spelled(f"{key}={value}")
        for text, (key, _, value) in zip(as_text, split, strict=True)
    ]
    print(ledger_report.show(typed(compose_config("budget_file", given), BudgetFileConfig)))
    return 0


def _schema(arguments: list[str]) -> int:
    from pipeline.folders import check_output
    from pipeline.settings.compose import compose_config
    from pipeline.settings.config import DraftConfig, typed
    from pipeline.settings.inputs import check_table
    from pipeline.settings.overrides import with_names

    config = typed(compose_config("schema_draft", with_names("schema", arguments)), DraftConfig)
    if config.output:
        check_output(Path(config.output), "output")
    table = check_table(config.table)
    from pipeline import synth_again as other

    text = other.draft(table, config)
    if config.output:
        write_whole(Path(config.output), text)
        todo = "check it, name its source, then set confirmed_public: true"
        print(f"a draft (it looked at the data; {todo}): {config.output}")
    else:
        print(text, end="")
    return 0
