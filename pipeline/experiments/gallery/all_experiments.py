"""`experiment=all`: every experiment in a process of its own, what failed named, and one page about all of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import yaml

from evaluation.score import BANNER
from mechanisms.public.errors import UserError, choices_fix
from mechanisms.public.files import JsonDict, write_whole
from mechanisms.public.text_table import markdown
from pipeline.budget.admission import PlannedRelease
from pipeline.conf_folder import CONF
from pipeline.experiments.experiment_settings import settings_of, write_rows
from pipeline.experiments.gallery.published import shown
from pipeline.folders import RunFolder, claimed
from pipeline.run_log import logged
from pipeline.settings.config import Config

#: Files of conf/experiment that are no experiment of their own.
NONE = ("none", "all")
#: What the command says about itself and not about its experiments.
OWN = ("experiment", "hydra", "resume")
#: How each ended, under internal/.
OUTCOMES = "outcomes.json"


@dataclass(frozen=True)
class AllSettings:
    """`experiment.*` of all experiments; the comments stand in conf/experiment/all.yaml."""

    only: list[str] = field(default_factory=list)
    files: JsonDict = field(default_factory=dict)
    tables: dict[str, JsonDict] = field(default_factory=dict)


def names_of_all() -> list[str]:
    """The experiments, by their files."""
    return sorted(p.stem for p in (CONF / "experiment").glob("*.yaml") if p.stem not in NONE)


def releases(config: Config, root: Path) -> tuple[PlannedRelease, ...]:
    """None of its own: each experiment books what it makes."""
    return ()


def run_and_tell(config: Config, root: Path, hydra_files: Mapping[str, str]) -> str:
    """Run what is not finished yet, each in a process of its own; returns where the summary lies.

    Raises:
        UserError: an unknown name, a file that is not there, or experiments that failed, after all others were made.
    """
    settings = _checked(config)
    chosen = settings.only or names_of_all()
    given = _handed_on(hydra_files)
    with claimed(root, resume=config.resume) as folder, logged(folder.log):
        # what makes the folder one that resume=true goes on with
        write_whole(folder.manifest, json.dumps({"experiment": "all"}), mode=0o600)
        (folder.internal / "rows").mkdir(exist_ok=True)
        outcomes = _earlier(folder)
        for place, name in enumerate(chosen, start=1):
            arguments, data = _arguments(name, settings, given)
            earlier = outcomes.get(name)
            if earlier is None or earlier.status != "done" or earlier.arguments != arguments:
                outcomes[name] = _run_apart(folder, name, arguments, data)
            how = "finished before" if (o := outcomes[name]) is earlier else f"{o.status} in {o.seconds:.1f} s"
            error = f": {o.error.splitlines()[0]}" if o.error else ""
            line = f"{place:>2} of {len(chosen)}  {name:<20}{how} ({o.data}){error}"
            print(line, file=sys.stderr, flush=True)
            text = json.dumps({n: asdict(each) for n, each in outcomes.items()}, indent=1)
            write_whole(folder.internal / OUTCOMES, text, mode=0o600)
            page = write_summary(folder, [outcomes[n] for n in chosen if n in outcomes])
    failed = [n for n in chosen if outcomes[n].status != "done"]
    if failed:
        fix = f"see {root / failed[0] / 'said.txt'}; the same command with resume=true makes these alone"
        problem = f"{len(failed)} of {len(chosen)} experiments failed: {', '.join(failed)}; the others are in {page}"
        raise UserError(problem, where="experiment", fix=fix)
    return f"\n{len(chosen)} experiments, our numbers beside the published ones (NOT private, keep back):\n  {page}"


def _checked(config: Config) -> AllSettings:
    settings = settings_of(config, AllSettings)
    for name in (*settings.only, *settings.tables):
        if name not in names_of_all():
            raise UserError(f"no experiment {name!r}", where="experiment.only", fix=choices_fix(name, names_of_all()))
    tables = sorted({str(t["table"]) for t in settings.tables.values()})
    for table, file in settings.files.items():
        where = f"experiment.files.{table}"
        if table not in tables:
            raise UserError(f"no experiment reads {table!r}", where=where, fix=choices_fix(table, tables))
        if file is not None and not Path(str(file)).expanduser().is_file():
            raise UserError(f"no file {file!r}", where=where, fix="a path to the table, or leave it out")
    if config.data.path:
        fix = f"experiment.files.{tables[0]}=FILE: each experiment has its own table"
        raise UserError("not one table for all experiments", where="data.path", fix=fix)
    return settings


def _handed_on(hydra_files: Mapping[str, str]) -> tuple[str, ...]:
    """The settings of the command that every experiment gets as well."""
    typed: Sequence[str] = yaml.safe_load(hydra_files.get("overrides.yaml", "[]"))
    bare = [(text, text.partition("=")[0].lstrip("+~")) for text in typed]
    return tuple(text for text, key in bare if key.partition(".")[0] not in OWN)


def _arguments(name: str, settings: AllSettings, given: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """What is typed for one experiment, and its table in words."""
    wants = settings.tables.get(name, {})
    table = wants.get("table")
    if table is None:
        return (f"experiment={name}", *given), "needs none, or generates it"
    if settings.files.get(table) is None:
        return (f"experiment={name}", *given), f"generated: no file of {table}"
    file = Path(settings.files[table]).expanduser()
    path = json.dumps(str(file), ensure_ascii=False)
    return (f"experiment={name}", *wants.get("with", []), f"data.path={path}", *given), file.name


def _earlier(folder: RunFolder) -> dict[str, ExperimentOutcome]:
    """What earlier commands in this folder finished."""
    path = folder.internal / OUTCOMES
    if not path.exists():
        return {}
    outcomes = json.loads(path.read_text(encoding="utf-8"))
    return {n: ExperimentOutcome(**{**o, "arguments": tuple(o["arguments"])}) for n, o in outcomes.items()}


def _run_apart(folder: RunFolder, name: str, arguments: tuple[str, ...], data: str) -> ExperimentOutcome:
    """One experiment in its own process, whose words go to a file beside it."""
    home = folder.root / name
    home.mkdir(exist_ok=True, mode=0o700)
    resumed = ["resume=true"] if (home / "internal" / "manifest.json").exists() else []
    place = json.dumps(str(home), ensure_ascii=False)
    typed = [*arguments, *resumed, f"hydra.run.dir={place}"]
    start, before = time.perf_counter(), _processor_time()
    with (home / "said.txt").open("w", encoding="utf-8") as log:
        (home / "said.txt").chmod(0o600)
        done = subprocess.run([sys.executable, "-m", "pipeline", "run", *typed], stdout=log, stderr=log, check=False)
    seconds = round(time.perf_counter() - start, 1)
    words = (home / "said.txt").read_text(encoding="utf-8")
    error = "" if done.returncode == 0 else words[words.rfind("error: ") :].strip() or f"exit code {done.returncode}"
    status = "failed" if done.returncode else "done"
    return ExperimentOutcome(name, arguments, data, status, seconds, error, round(_processor_time() - before, 1))


def _processor_time() -> float:
    """Seconds that finished child processes computed, on all cores together."""
    times = os.times()
    return times.children_user + times.children_system


#: Column of a table → its key; those without a number in any row are left out, but for ours.
NUMBERS = {"we get": "ours", "±": "error", "floor": "floor", "published": "published", "difference": "difference"}
COLUMNS = ("experiment", "what", "ours", "error", "runs", "floor", "published", "difference", "place")


@dataclass(frozen=True)
class ExperimentOutcome:
    """How one experiment ended. NOT private.

    Attributes:
        name: of the experiment, and of its folder beside the others.
        arguments: its settings, as they would be typed.
        data: the table that it read, in words.
        status: done or failed.
        seconds: wall time.
        error: the last words of one that failed.
        cpu_seconds: processor time on all cores together, which other work on the machine lengthens less.
    """

    name: str
    arguments: tuple[str, ...]
    data: str
    status: str
    seconds: float
    error: str = ""
    cpu_seconds: float = 0.0

    @property
    def command(self) -> str:
        """What makes this one alone."""
        return " ".join(["python -m pipeline run", *self.arguments])


def numbers_of(folder: Path) -> list[JsonDict]:
    """What a finished experiment left beside what is published (`gallery.published.Beside`)."""
    facts = json.loads((folder / "internal" / "experiment.json").read_text(encoding="utf-8"))
    numbers: list[JsonDict] = facts["beside"]
    return numbers


def table_of(numbers: Sequence[JsonDict]) -> list[str]:
    """The numbers as lines of Markdown; those that the source prints stand first."""
    ordered = sorted(numbers, key=lambda n: n["published"] is None)
    used = {head: key for head, key in NUMBERS.items() if key == "ours" or any(n[key] is not None for n in numbers)}
    where = ["where it is published"] if "published" in used else []
    rows = [[n["what"], *(_cell(k, n[k]) for k in used.values()), *[n["place"] or "–" for _ in where]] for n in ordered]
    return markdown(["what", *used, *where], rows)


def _cell(key: str, value: float | None) -> str:
    """A number; of an error two digits."""
    return shown(float(f"{value:.2g}")) if key == "error" and value is not None else shown(value)


def write_summary(folder: RunFolder, outcomes: Sequence[ExperimentOutcome]) -> Path:
    """summary.md and summary.csv under internal/; returns the page."""
    done = {o.name: numbers_of(folder.root / o.name) for o in outcomes if o.status == "done"}
    lines = ["# All experiments", "", f"**{BANNER}**", ""]
    overview = [
        [
            o.name,
            o.status,
            f"{o.seconds:.1f}",
            f"{o.cpu_seconds:.1f}",
            o.data,
            str(len(done.get(o.name, []))),
            str(sum(n["published"] is not None for n in done.get(o.name, []))),
        ]
        for o in outcomes
    ]
    heads = ("experiment", "ended", "wall time in s", "processor time", "table", "our numbers", "of these published")
    lines += markdown(heads, overview)
    for o in outcomes:
        lines += ["", f"## {o.name}", "", f"`{o.command}`", ""]
        lines += table_of(done[o.name]) if o.name in done else [f"It failed: {o.error}"]
    page = folder.internal / "summary.md"
    write_whole(page, "\n".join(lines) + "\n", mode=0o600)
    lined = ({"experiment": name} | number for name, numbers in done.items() for number in numbers)
    write_rows(folder.internal / "summary.csv", COLUMNS, ([row[c] for c in COLUMNS] for row in lined))
    return page
