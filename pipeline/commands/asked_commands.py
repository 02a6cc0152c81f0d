"""The arguments of a command → what is left to do: settings and files are looked at before a large library is loaded.

Every function takes the arguments as the shell hands them over, and returns the work as a call that gives the exit
code.

Raises:
    UserError: an impossible setting; a file that is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from mechanisms.public.errors import UserError
from pipeline.folders import PAGES, SCORES, RunFolder, check_output, not_in_release, sweep_results
from pipeline.help import COMMANDS
from pipeline.settings import config as settings
from pipeline.settings.compose import check_hydra, compose_config
from pipeline.settings.inputs import (
    REHEARSAL,
    check_ending,
    check_inputs,
    check_lies,
    check_release,
    check_scored,
    check_tables,
    check_units,
    location,
)
from pipeline.settings.overrides import quoted, spelled

#: What is left to do: gives the exit code.
Work: TypeAlias = "Callable[[], int]"
#: What is said of a report.
REPORT = "report (NOT private): {}"


def later(name: str, *arguments: Any, words: str = "{}") -> Work:
    """The function of that dotted name with these arguments; its module is loaded when it is called.

    Args:
        words: what is printed of a result that is no exit code.
    """

    def work() -> int:
        module, _, function = name.partition(":")
        result = getattr(import_module(module), function)(*arguments)
        if isinstance(result, int):
            return result
        print(words.format(result))
        return 0

    return work


def _with_names(command: str, arguments: Sequence[str]) -> list[str]:
    """The arguments with the one that is a path alone as the setting that it stands for."""
    setting = COMMANDS[command].nameless
    paths = [a for a in arguments if "=" not in a or Path(a).exists() or "://" in a.partition("=")[0]]
    if len(paths) > 1:
        fix = f"one at a time: python -m pipeline {command} {paths[0]}"
        raise UserError(f"got {len(paths)}: {', '.join(paths)}", where=setting, fix=fix)
    return [f"{setting}={quoted(a)}" if a in paths else a for a in arguments]


def run(arguments: Sequence[str]) -> Work:
    """One run, or a sweep with -m."""
    given = [spelled(a) for a in arguments if not a.startswith("-")]
    several = len(given) < len(arguments) or "hydra.mode=MULTIRUN" in given
    given = [*_own_table(given), *given]
    if several:
        return later("pipeline.sweeps.sweep:sweep", given)
    composed = compose_config("config", given, own=True)
    config = settings.typed(composed, settings.Config)
    check_inputs(config)
    own = composed.hydra
    check_hydra(own)
    if not own.run.dir:
        raise UserError("no folder given", where="hydra.run.dir", fix="hydra.run.dir=outputs/mine")
    not_in_release(Path(own.run.dir), "hydra.run.dir")
    return later("pipeline.commands.run_command:run_once", config, composed)


def plan(arguments: Sequence[str]) -> Work:
    """What a run would measure."""
    config = settings.typed(compose_config("config", [*_own_table(arguments), *arguments]), settings.Config)
    settings.schema_path(config.data.schema)
    return later("pipeline.report.plan_tables:show_plan", config)


def _own_table(arguments: Sequence[str]) -> list[str]:
    """The choice of one's own table, where a file of a schema is named, and neither a table nor an experiment."""
    given = dict(a.partition("=")[::2] for a in arguments)
    chosen = "data" in given or "experiment" in given
    return ["data=table"] if not chosen and Path(given.get("data.schema", "")).suffix else []


def check(arguments: Sequence[str]) -> Work:
    """What a schema would do to a table."""
    config = settings.typed(compose_config("check", arguments), settings.CheckConfig)
    settings.schema_path(config.data.schema)
    check_lies(location(config.data))
    check_units(config.data.units)
    return later("pipeline.look.run_look:show_look", config)


def rehearse(arguments: Sequence[str]) -> Work:
    """A whole run on rows that are made from the schema alone."""
    if any(a.startswith("data.rows=") for a in arguments):
        raise UserError("a rehearsal makes its own rows", where="data.rows", fix="plan.rows=20000: how many to make")
    defaults = {"data": "table", "data.name": REHEARSAL, "evaluation.enabled": "false"}
    given = {a.partition("=")[0] for a in arguments}
    own = [f"{name}={value}" for name, value in defaults.items() if name not in given]
    composed = compose_config("config", [*own, *arguments], own=True)
    config = settings.typed(composed, settings.Config)
    settings.schema_path(config.data.schema)
    if config.data.path is not None or config.data.units.path is not None:
        fix = "python -m pipeline run takes a table; a rehearsal makes its rows from the schema alone"
        where = "data.units.path" if config.data.path is None else "data.path"
        raise UserError("a rehearsal opens no table", where=where, fix=fix)
    if config.resume:
        raise UserError("a rehearsal begins anew", where="resume", fix="leave it out; and another hydra.run.dir")
    return later("pipeline.look.rehearse:rehearse_once", config, Path(composed.hydra.run.dir))


def synth(arguments: Sequence[str]) -> Work:
    """A new synthetic table from a release."""
    if any(a.startswith("accept") for a in arguments):
        fix = "python -m pipeline run … accept=[…]: only a run may ask the private table"
        raise UserError("a table that is made again from a release is not compared", where="accept", fix=fix)
    config = settings.typed(compose_config("synth", arguments), settings.SynthConfig)
    return later("pipeline.synth_again:make_table", check_release(config.source), config)


def score(arguments: Sequence[str]) -> Work:
    """Scores of one synthetic table, or of several."""
    config = settings.typed(compose_config("score", arguments), settings.ScoreConfig)
    several = config.synthetic if isinstance(config.synthetic, list) and config.synthetic else [config.synthetic]
    for path in several:
        check_tables(replace(config, synthetic=path))
    written = (("output", config.output, SCORES, ("json", "csv")), ("report", config.report, PAGES, ("html",)))
    for setting, path, own, forms in written:
        if path:
            check_output(Path(path), setting, own=own)
            check_ending(path, setting, *forms)
    return later("pipeline.comparison.score_command:score_command", config)


def report(arguments: Sequence[str]) -> Work:
    """The report of a run, made again from its own files; of one or several sweeps, from their results."""
    folders = [Path(a) for a in arguments if "=" not in a]
    if folders and all(map(sweep_results, folders)):
        given = dict(a.split("=", 1) for a in arguments if "=" in a)
        for key in given.keys() - {"output", "metric"}:
            raise UserError("no such setting", where=f"override {key!r}", fix="output=FILE, metric=NAME")
        output = Path(given["output"]) if "output" in given else None
        return later("pipeline.sweeps.sweep_page:render", folders, output, given.get("metric"), words=REPORT)
    config = settings.typed(compose_config("report", _with_names("report", arguments)), settings.ReportConfig)
    if not config.run:
        raise UserError("no run given", where="run", fix="python -m pipeline report outputs/mine")
    folder = RunFolder(Path(config.run))
    check_scored(folder)
    output = Path(config.output) if config.output else None
    return later("pipeline.report.run_page:render_again", folder, output, words=REPORT)


def query(arguments: Sequence[str]) -> Work:
    """What a release tells: a marginal, a range, an estimate or bounds."""
    config = settings.typed(compose_config("query", arguments), settings.QueryConfig)
    return later("pipeline.inference.asked:answer", check_release(config.source), config)


def verify(arguments: Sequence[str]) -> Work:
    """Whether a release is sound, line by line."""
    config = settings.typed(compose_config("verify", _with_names("verify", arguments)), settings.VerifyConfig)
    if not config.source:
        raise UserError("no release given", where="from", fix="python -m pipeline verify RUN/release")
    return later("pipeline.statement.verify:show_verdict", Path(config.source), config)


def budget(arguments: Sequence[str]) -> Work:
    """What is left of a shared budget and who spent it; or another limit for it."""
    texts = {"file", "reason"}  # whatever is in them
    split = [a.partition("=") for a in _with_names("budget", arguments)]
    given = [
        f"{key}={quoted(value)}" if key in texts and not value.startswith('"') else spelled(f"{key}={value}")
        for key, _, value in split
    ]
    config = settings.typed(compose_config("budget_file", given), settings.BudgetFileConfig)
    return later("pipeline.budget.ledger_report:show", config)


def schema(arguments: Sequence[str]) -> Work:
    """A commented draft of a schema from a table."""
    config = settings.typed(compose_config("schema_draft", _with_names("schema", arguments)), settings.DraftConfig)
    if config.output:
        check_output(Path(config.output), "output")
        check_ending(config.output, "output", "yaml")
    check_units(config.units)
    if not config.table:
        raise UserError("no table given", where="schema", fix="python -m pipeline schema TABLE")
    check_lies(config.table, "schema")
    return later("pipeline.synth_again:show_draft", config.table, config)
