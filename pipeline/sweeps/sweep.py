"""`run -m`: the jobs of a sweep are checked, started side by side, and gathered in one table and one report."""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

from hydra.core.config_loader import ConfigLoader
from hydra.core.global_hydra import GlobalHydra
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from mechanisms.accounting.bookings import SETTING
from mechanisms.accounting.ledger import place_of
from mechanisms.public.errors import UserError, first_few
from mechanisms.public.files import write_whole
from mechanisms.public.progress import Progress
from mechanisms.sensitive.private_table import data_print
from pipeline.budget import admission
from pipeline.console import NOT_PRINTED, tells
from pipeline.error_messages import say_what_is_safe, unquoted_unless
from pipeline.folders import BANNER, SEEN, RunFolder, held, not_in_release
from pipeline.load_stage import schema_print
from pipeline.scores.table_sources import local
from pipeline.settings.build import build_schema
from pipeline.settings.compose import (
    FAULTS,
    check_hydra,
    check_one_list,
    composing,
    first_of_sweep,
    misspelt,
    records_of,
)
from pipeline.settings.config import Config, LimitsConfig
from pipeline.settings.inputs import location
from pipeline.settings.overrides import spelled
from pipeline.settings.specs import build_specs
from pipeline.stage_bars import Stages
from pipeline.sweeps.job_process import OUTCOME, OUTPUT, JobOutcome, JobProcesses, load_json, outcome_of
from pipeline.sweeps.planned_jobs import (
    Job,
    digest,
    longest_first,
    look_before_booking,
    planned_jobs,
    side_by_side,
)
from pipeline.sweeps.results import (
    as_text,
    choice_warning,
    efficiency,
    results_table,
    total,
    write_results,
)
from pipeline.version import __version__


def sweep(overrides: Sequence[str]) -> int:
    """All jobs of a sweep; returns 0, or 1 where a job failed.

    Guarantee: each job's release is as private as it says; together they spend the sum of what they spent.
    Raises:
        UserError: no job can run, or the sweep's folder cannot be used.
    """
    with composing(overrides):
        loader = GlobalHydra.instance().config_loader()
        master = _master(loader, overrides)
        root = _root(master)
        fixed = [f"hydra.sweep.dir={json.dumps(str(root), ensure_ascii=False)}"]
        params = [f"{k}={v}" for k, v in (master.hydra.sweeper.params or {}).items()]
        asked = [*params, *master.hydra.overrides.task]
        check_hydra(master.hydra)

        def load(own: Sequence[str]) -> DictConfig:
            composed: DictConfig = loader.load_sweep_config(master, [*own, *fixed])
            return composed

        jobs = planned_jobs(asked, load)
        valid = [j for j in jobs if not j.error]
        own = next((j.settings for j in valid if j.settings is not None), Config())
        console = own.console
        _name_the_invalid(jobs)
        check_one_list(asked)
        _check_apart(valid, root)
        _check_begun(valid, root)
        with _opened(root) as inside:
            write_whole(inside / "hydra" / "multirun.yaml", OmegaConf.to_yaml(master), mode=0o600)
            ended = _skipped(valid, inside / "shared")
            left = [j for j in valid if j.name not in ended]
            if ended and not own.quiet:
                print(f"{len(ended)} of {len(valid)} jobs were done before", file=sys.stderr)
            with unquoted_unless(tells(sys.stderr, console)):
                look_before_booking(left, inside / "shared" / "look")
            admission.book([r for j in left for r in j.releases])
            show = Stages(quiet=own.quiet)
            with show.stage("sweep") as report:
                n_jobs, shared = master.hydra.launcher.get("n_jobs", 1), inside / "shared"
                launched = _launched(n_jobs, left, lambda j: records_of(load(j.overrides)), shared, report)
            if launched and own.format != "json" and not own.quiet and tells(sys.stdout, console):
                print(efficiency(list(launched.values()), show.seconds["sweep"], LimitsConfig().cores))
            ended |= launched
            ended |= {j.name: JobOutcome("failed", "", j.error) for j in jobs if j.error}
            return _conclude([(j, ended[j.name]) for j in jobs], inside, own)


def _master(loader: ConfigLoader, overrides: Sequence[str]) -> DictConfig:
    try:
        master: DictConfig = loader.load_configuration("config", list(overrides), RunMode.MULTIRUN)
        return master
    except FAULTS as error:
        own = [first_of_sweep(spelled(o)) for o in overrides if not o.lstrip("+~").startswith("hydra")]
        message = misspelt("config", own, error)
        if message.where != "settings":
            raise message from error
        problem, fix = str(error).strip().splitlines()[0], "key=value,value or key=range(5); quotes around brackets"
        if unknown := re.match(r"Could not override '(.*)'", problem):  # the first job knows it
            problem = f"it belongs to a choice that is swept, and is not known before: {unknown[1]}"
            fix = f"++{unknown[1]}=VALUE"
        raise UserError(problem, where="run -m", fix=f"{fix}; see run --help") from error


def _root(master: DictConfig) -> Path:
    """The sweep's folder.

    Raises:
        UserError: another setting names it, or it cannot be a folder.
    """
    root = Path(str(master.hydra.sweep.dir))
    for given in master.hydra.overrides.hydra:
        key, _, value = str(given).partition("=")
        if key.lstrip("+") == "hydra.run.dir":
            fix = f"hydra.sweep.dir={value}, in which each job has a folder"
            raise UserError("is the folder of one run, and -m makes several", where="hydra.run.dir", fix=fix)
    if file := next((p for p in (root, *root.parents) if p.exists() and not p.is_dir()), None):
        raise UserError(f"{file} is a file", where="hydra.sweep.dir", fix="a folder: hydra.sweep.dir=multirun/mine")
    return root


def _name_the_invalid(jobs: Sequence[Job]) -> None:
    """Combinations of values that cannot run, said before anything starts.

    Raises:
        UserError: that is all of it, or all jobs with one of the values: a mistake, after which nothing is spent.
    """
    wrong = [j for j in jobs if j.error]
    if len(wrong) == len(jobs):
        errors = sorted({j.error for j in wrong})
        raise UserError(
            "none of the jobs can run:\n  " + "\n  ".join(errors), where="run -m", fix="mend these settings"
        )
    able = {value for j in jobs if not j.error for value in j.varied.items()}
    useless = {f"{k}={v}": j.error for j in wrong for k, v in j.varied.items() if (k, v) not in able}
    if useless:
        lines = [f"no job with {value} can run: {error}" for value, error in useless.items()]
        raise UserError(
            "\n  ".join([*lines, "nothing was started"]), where="run -m", fix="mend these values, or leave them out"
        )
    for j in wrong:
        print(f"cannot run {j.name}: {j.error}", file=sys.stderr)
    if wrong:
        print(f"{len(jobs) - len(wrong)} of {len(jobs)} jobs start", file=sys.stderr)


def _check_apart(jobs: Sequence[Job], root: Path) -> None:
    """Each job has a name of its own, and a folder in no other job's: of two of them one alone would be told.

    Raises:
        UserError: names two that have not; one, or a ledger, in the sweep's internal/; nothing was written.
    """
    inside, roots = (root / "internal").resolve(), [(j.root, "hydra.sweep.subdir") for j in jobs]
    for path, setting in (*roots, *((r.terms.path, SETTING) for j in jobs for r in j.releases)):
        if place_of(path).is_relative_to(inside):
            fix = "a place outside, which outlives the sweep"
            raise UserError(f"{path} lies in the sweep's internal/, which is tidied", where=setting, fix=fix)
    names, places = dict[str, Job](), dict[Path, Job]()
    for j in jobs:
        if names.setdefault(j.name, j) is not j:
            fix = "each value once, whatever quotes stand around it"
            raise UserError(f"two jobs are {j.name}, and the total would count one of them", where="run -m", fix=fix)
        place = j.root.resolve()
        if (other := places.setdefault(place, j)) is not j:
            fix = "leave hydra.sweep.subdir out; console, engine, limits and budget alone make no other job"
            raise UserError(f"{j.name} and {other.name} have one folder, {j.root}", where="hydra.sweep.subdir", fix=fix)
    for place, j in places.items():
        for outer in (places[p] for p in place.parents if p in places):
            fix = "folders side by side: leave hydra.sweep.subdir out"
            raise UserError(f"{j.name} has a folder in that of {outer.name}", where="hydra.sweep.subdir", fix=fix)


@contextmanager
def _opened(root: Path) -> Iterator[Path]:
    """The sweep's internal/: closed to others, for one sweep at a time; what its jobs shared is deleted at the end."""
    inside = root / "internal"
    not_in_release(root, "hydra.sweep.dir")
    shared, jobs = inside / "shared", lambda: len(list(root.iterdir())) > 1
    with held(inside, "hydra.sweep.dir", who="sweep", unless=jobs):
        write_whole(inside / SEEN, BANNER)
        shutil.rmtree(shared, ignore_errors=True)
        shared.mkdir(mode=0o700)
        try:
            yield inside
        finally:
            shutil.rmtree(shared, ignore_errors=True)


def _check_begun(jobs: Sequence[Job], root: Path) -> None:
    """A sweep that is to go on has begun with one of its jobs: a setting more names other folders, which spend anew.

    Where jobs of a sweep are there already, this one goes on with all of them: its results would replace theirs.

    Raises:
        UserError: all of its jobs would be new ones, or it leaves out one that is there; nothing was written.
    """
    resumed = {j.root.resolve() for j in jobs if j.settings is not None and j.settings.resume}
    if len(resumed) == len(jobs) and not any(j.root.exists() for j in jobs):
        fix = "hydra.sweep.dir=FOLDER of the sweep and the settings with which it began; or resume=false: new jobs, "
        fix += "which spend their own budgets; or one job alone: run hydra.run.dir=FOLDER/JOB resume=true"
        raise UserError(f"nothing to resume in {root}: none of these jobs was begun there", where="resume", fix=fix)
    ended = {p: outcome_of(p) for p in (*(j.root for j in jobs), *root.glob("*"))}
    done = {p for p, outcome in ended.items() if outcome is not None and outcome.status != "failed"}
    own = {j.root for j in jobs}
    # a job that was killed left no outcome: its output tells it from a run of its own
    charged = {p for p in ended if (p in own or (p / "internal" / OUTPUT).exists()) and RunFolder(p).charged}
    there = {p.resolve() for p in done | charged}
    if left := sorted(p.name for p in there - resumed):
        problem = f"{root} holds a sweep, and this one does not go on with its jobs {first_few(left)}"
        fix = "resume=true with the settings and all values with which it began, to which more may be added; or "
        fix += "another folder: hydra.sweep.dir=multirun/another, whose jobs spend their own budgets"
        raise UserError(f"{problem}. Nothing was started or changed", where="hydra.sweep.dir", fix=fix)


def _skipped(jobs: Sequence[Job], shared: Path) -> dict[str, JobOutcome]:
    """The jobs that a sweep before this one finished, with the same settings, schema and data; `shared` as below."""
    outcomes: dict[str, JobOutcome] = {}
    prints: dict[str, str] = {}
    for j in jobs:
        outcome = outcome_of(j.root)
        if j.settings is None or not j.settings.resume or outcome is None or outcome.status == "failed":
            continue
        if outcome.settings == digest(j.settings) and _same_data(j.settings, j.root, prints, shared):
            outcomes[j.name] = outcome
    return outcomes


def _same_data(settings: Config, root: Path, prints: dict[str, str], shared: Path) -> bool:
    """Whether the job's table and schema are what they were (an experiment makes its own schema, and checks itself)."""
    manifest = load_json(root / "internal" / "manifest.json")
    of_file = "schema" in manifest and settings.experiment.kind is None
    # not known by the file's name: of one file each C makes a schema of its own, where units are whole
    if of_file and manifest["schema"] != schema_print(build_schema(build_specs(settings))):
        return False
    if settings.data.path is None:
        return True
    named = f"{location(settings.data)} {settings.data.units.path}"
    if named not in prints:
        with tempfile.TemporaryDirectory(prefix="tables-", dir=shared) as folder:  # mode 0700
            data = local(settings.data, settings.limits, Path(folder), promised=False)
            prints[named] = data_print(Path(str(data.path)), *data.units.files)
    return bool(manifest.get("data", prints[named]) == prints[named])


def _launched(
    n_jobs: int, jobs: Sequence[Job], records: Callable[[Job], Mapping[str, str]], shared: Path, report: Progress
) -> dict[str, JobOutcome]:
    """The outcomes of the jobs, side by side: the longest first, each when another one has ended.

    Args:
        n_jobs: how many at a time; -1: as many as cores and memory allow.
        records: Hydra's own records of a job.
        shared: a folder that the jobs share.
    """
    machine = LimitsConfig()
    memory = min([machine.memory_bytes, *(j.settings.limits.memory_bytes for j in jobs if j.settings is not None)])
    together = n_jobs if n_jobs > 0 else side_by_side(jobs, machine.cores, memory)
    processes, pool = JobProcesses(shared), ThreadPoolExecutor(together)

    def outcome(j: Job) -> JobOutcome:
        assert j.settings is not None
        own = replace(j.settings.limits, memory_gb=round(memory / together / 1e9, 3))
        own = replace(own, threads=own.threads or max(1, machine.cores // together))
        return processes.outcome(replace(j.settings, limits=own), j.root, lambda: records(j))

    for j in jobs:
        (j.root / "internal" / OUTCOME).unlink(missing_ok=True)
    try:
        ends = {j.name: pool.submit(outcome, j) for j in longest_first(jobs)}
        while at_work := wait(ends.values(), timeout=0.5).not_done:
            done, running = len(jobs) - len(at_work), min(len(at_work), together)
            report(done, len(jobs), f"{done} of {len(jobs)} jobs done, {running} at work")
        return {name: end.result() for name, end in ends.items()}
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        processes.end()


def _conclude(jobs: list[tuple[Job, JobOutcome]], inside: Path, own: Config) -> int:
    """The table and the report on disk; what a person should know on the screen."""
    from pipeline.sweeps.sweep_page import render

    frame = results_table(jobs)
    write_results(frame, inside)
    outcomes = [{"job": j.name, "folder": str(j.root), **asdict(outcome)} for j, outcome in jobs]
    write_whole(inside / "outcomes.json", json.dumps(outcomes, indent=1), mode=0o600)
    page = render([inside.parent])
    text = as_text(frame) if tells(sys.stdout, own.console) else NOT_PRINTED
    others = {p.parent.resolve() for p in inside.parent.glob("*/release")} - {j.root.resolve() for j, _ in jobs}
    more = f"releases of other jobs in {inside.parent}, which this total leaves out: {len(others)}" if others else ""
    if own.format == "json":
        facts = {"folder": str(inside.parent.absolute()), "report": str(page), "results": str(inside / "results.csv")}
        print(json.dumps({"version": __version__, **facts, "jobs": {j.name: o.status for j, o in jobs}}))
    elif not own.quiet:
        print("\n".join(["", text, total(frame), *filter(None, [more, choice_warning(frame)])]))
        print(f"NOT private, keep back:\n  {page}\n  {inside / 'results.csv'}")
    for j, outcome in jobs:
        if outcome.status == "withheld":
            print(f"withheld {j.name}: {outcome.error}", file=sys.stderr)
    failed = [(j, o) for j, o in jobs if o.status == "failed"]
    if failed:
        print(f"\n{len(failed)} of the sweep's {len(jobs)} jobs failed:", file=sys.stderr)
        for j, outcome in failed:
            print(f"  {j.name}: {outcome.error}", file=sys.stderr)
            if not j.error:
                say_what_is_safe(j.root, outcome.error)
        done = sum(o.status == "done" for _, o in jobs)
        print(f"{done} are done; again: hydra.sweep.dir={inside.parent} resume=true", file=sys.stderr)
    return 1 if any(o.status != "done" for _, o in jobs) else 0
