"""Help texts: the settings and their comments come from the files of conf/ themselves."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from evaluation.metrics import declared_settings, users
from mechanisms.public.errors import UserError, did_you_mean
from pipeline.conf_folder import CONF

GENERAL = """Differentially private synthetic tables: discretize, measure with noise, synthesize, score.

usage: python -m pipeline COMMAND [setting=value ...]

  run      a table in; a private synthetic table, its privacy statement and its scores out
  plan     what `run` would measure, with sensitivity, noise and share of the budget; opens no data
  synth    a new synthetic table from saved measurements; costs no privacy
  score    score any two tables; the numbers are NOT private
  report   the report of a run, made again from its own files; NOT private
  query    a marginal, a range, a mean … from a release, with intervals; bounds on its errors; costs no privacy
  verify   whether a release is as it was published, adds up, and was made by a version without known faults
  budget   what all runs on a table have spent of a budget that they share, and what is left
  schema   a commented draft of a schema from a table; the draft is NOT private until a person confirms it
  check    what a schema would do to a table, column by column; spends and releases nothing; NOT private
  rehearse the whole path on rows that are made from the schema alone, before a real table is opened

`--config-dir FOLDER` adds your own files of settings: with FOLDER/data/mine.yaml, data=mine is a choice.
`python -m pipeline COMMAND --help` shows the settings and examples of a command.
`python -m pipeline run --help selection=aim` shows the settings of a choice.
A first result: python -m pipeline run
"""

ABOUT = {
    "run": """A table in; a differentially private synthetic table, its privacy statement and its scores out.

usage: python -m pipeline run [setting=value ...]      one run
       python -m pipeline run -m privacy.epsilon=0.1,1,10      a sweep: one run per value, side by side
       python -m pipeline run experiment=mgd_table1 [smoke=true]   a published experiment, on your data or the demo

A run leaves `release/` (what may be published, under the terms of its privacy.json) and `internal/` (NOT private).""",
    "plan": """Every planned measurement with its sensitivity, noise scale and share of the budget, the predicted memory
and the total, from the schema and the settings alone: no data is opened.

usage: python -m pipeline plan [setting=value ...] [plan.format=json]""",
    "synth": """A new synthetic table from the saved measurements of a run, at no new privacy cost.

usage: python -m pipeline synth from=RUN/release [setting=value ...]""",
    "score": """Score any two tables, also ones that other tools made. The scores saw raw rows: they are NOT private.

usage: python -m pipeline score real=TABLE synthetic=TABLE schema=SCHEMA [output=scores.json] [report=report.html]
       [metrics=[mgd,tvd,ncript]] [holdout=TABLE]""",
    "report": """The report of a run as one HTML file, made again from what the run left: it reads no table. NOT
private.

usage: python -m pipeline report RUN [output=report.html]
       python -m pipeline report SWEEP [SWEEP …] [metric=NAME] [output=sweep.html | output=curves.svg]""",
    "query": """A marginal, or the number of records in a range, from the noisy answers of a release alone: unbiased,
with standard errors and 95 % intervals, at no privacy cost. Where several measured marginals tell, all are used. Or
counts, shares, means and quantiles by group; or how wrong each marginal of the synthetic table is at most.

usage: python -m pipeline query from=RUN/release marginal=[a,b]
       python -m pipeline query from=RUN/release 'where={age: [20, 40], sex: [f]}'
       python -m pipeline query from=RUN/release estimate=mean column=cost by=[ward]
       python -m pipeline query from=RUN/release bounds=true""",
    "verify": """Check a release from its files alone: the digests of all its files, the signature if there is one, the
receipts added up again by the accountant, the noise of each answer against its receipt, and the known wrong claims of
the version that measured (SECURITY.md). Exit code 0: sound; 1: not, or it says of itself that it is not private;
2: another version made it, whose papers cannot be compared with this one.

usage: python -m pipeline verify RELEASE [key=PUBLICKEY]""",
    "budget": """What the runs that named a ledger have booked in it (`run budget.ledger=FILE`), by whom, and what is
left. Another limit is a change of its own, which stays on record.

usage: python -m pipeline budget FILE [format=json]
       python -m pipeline budget FILE limit='{epsilon: 5, delta: 1e-6}' reason='…'""",
    "check": """What a schema would do to a table: per column the values that it does not place, with some of them, what
would become of them, and the likely cure. It reads the table, spends nothing and releases nothing. NOT private: for
your eyes only. Exit code 1 where a column loses more than data.max_unplaced of its values; `run` looks the same way.

usage: python -m pipeline check data.path=TABLE data.schema=SCHEMA [privacy.unit=COLUMN] [format=json]""",
    "rehearse": """A whole run on rows that are made from the schema alone, with the settings of the real one. It opens
no table and books no budget; the release says that it is not private. plan.rows says how many rows (1,000).
They say nothing about quality: nothing is scored unless evaluation.enabled=true.

usage: python -m pipeline rehearse data.schema=SCHEMA [setting=value ...]""",
    "schema": """A commented draft of a schema from a table. It looked at the data: it carries
`confirmed_public: false`, and `run` marks its release as not private until a person has checked it, named its
source and changed that line. It lists no text that fewer than 10 persons hold, or rows where no column names them.

usage: python -m pipeline schema TABLE [output=my.yaml] [privacy.unit=COLUMN] ['cluster={COLUMN: {...}, ...}']

cluster= builds a hierarchy over the values of a column from a file with public facts about them:
  coordinates: a CSV with the value, then its coordinates (longitude and latitude, or any numbers); or
  distances: a CSV with a square matrix of distances, its header the values
  levels: how many clusters per level, coarsest first; names: of all levels, the values' last (optional)
  method: average (default), complete, single or ward""",
}

EXAMPLES = {
    "run": [
        "python -m pipeline run",
        "python -m pipeline run data=adult data.path=adult.csv.gz privacy.epsilon=1",
        "python -m pipeline run data=table data.path=my.csv data.schema=my.yaml privacy.unit=id privacy.max_records=5",
        "python -m pipeline run privacy.max_records=3 privacy.clip=truncate synthesis=independent",
        "python -m pipeline run 'selection.marginals=[[incident_type,priority],[neighbourhood]]' mechanism=laplace",
        "python -m pipeline run -m privacy.epsilon=0.1,1,10 synthesis=gum,independent",
        "python -m pipeline run -m hydra.sweep.dir=multirun/mine resume=true privacy.epsilon=0.1,1   # goes on",
        "python -m pipeline run budget.ledger=people.json 'budget.limit={epsilon: 3, delta: 1e-6}'",
        "python -m pipeline run experiment=dpsyn_figure2",
        "python -m pipeline run experiment=mgd_table1 data=fire_calls data.path=fire-calls.csv.gz",
        "python -m pipeline run hydra.run.dir=outputs/mine   # and, after an interruption:",
        "python -m pipeline run hydra.run.dir=outputs/mine resume=true",
    ],
    "plan": [
        "python -m pipeline plan",
        "python -m pipeline plan data=acs privacy.epsilon=0.1 privacy.accountant=zcdp",
        "python -m pipeline plan data=adult plan.format=json",
    ],
    "synth": [
        "python -m pipeline synth from=outputs/mine/release synthesis.rows=1000000 synthesis.seed=7",
        "python -m pipeline synth from=outputs/mine/release synthesis=independent output=outputs/again",
        "python -m pipeline synth from=outputs/mine/release 'where={age: [20, 40], sex: F}' rows=1000",
    ],
    "score": [
        "python -m pipeline score real=adult.csv.gz synthetic=release/synthetic.csv schema=adult output=scores.json",
        "python -m pipeline score real=a.parquet synthetic=b.csv schema=sizes.domain.json report=report.html",
        "python -m pipeline score real=a.csv synthetic=b.csv schema=my.yaml holdout=c.csv metrics=[anita_privacy,tstr]",
    ],
    "report": [
        "python -m pipeline report outputs/mine",
        "python -m pipeline report outputs/mine output=seen.html",
        "python -m pipeline report multirun/mine metric=tvd output=curves.svg",
    ],
    "query": [
        "python -m pipeline query from=outputs/mine/release marginal=[weekday,hour]",
        "python -m pipeline query from=outputs/mine/release 'where={hour: [8, 10], weekday: [Monday, Tuesday]}'",
        "python -m pipeline query from=outputs/mine/release estimate=median column=hour by=[weekday]",
        "python -m pipeline query from=outputs/mine/release bounds=true output=bounds.csv",
    ],
    "verify": [
        "python -m pipeline verify outputs/mine/release",
        "python -m pipeline verify outputs/mine/release key=publisher.pem",
    ],
    "budget": [
        "python -m pipeline budget people.json",
        "python -m pipeline budget people.json limit='{epsilon: 5, delta: 1e-6}' reason='decided by the board'",
    ],
    "check": [
        "python -m pipeline check data.path=my.csv data.schema=my.yaml",
        "python -m pipeline check data.path=my.csv data.schema=my.yaml privacy.unit=id format=json",
    ],
    "rehearse": [
        "python -m pipeline rehearse data.schema=my.yaml",
        "python -m pipeline rehearse data.schema=my.yaml privacy.unit=id privacy.max_records=5 plan.rows=20000",
    ],
    "schema": [
        "python -m pipeline schema my.csv output=my.yaml",
        "python -m pipeline schema my.csv delimiter=';'",
        "python -m pipeline schema my.csv 'cluster={place: {coordinates: places.csv, levels: [5, 25]}}'",
    ],
}

#: The settings that every choice has; those of a selection, a synthesizer or an experiment stand with it.
FILES = {
    "run": ["data/table", "privacy/default", "mechanism/auto", "evaluation/default", "budget/default", "config"],
    "plan": ["data/table", "privacy/default", "mechanism/auto", "budget/default", "config"],
    "synth": ["synth"],
    "budget": ["budget_file"],
    "score": ["evaluation/default", "score"],
    "report": ["report"],
    "query": ["query"],
    "verify": ["verify"],
    "schema": ["schema_draft"],
    "check": ["data/table", "privacy/default", "check"],
    "rehearse": ["data/table", "privacy/default", "mechanism/auto", "evaluation/default", "config"],
}
#: The groups whose choices have settings of their own.
OWN = {
    "run": ("selection", "synthesis", "experiment"),
    "plan": ("selection", "synthesis"),
    "rehearse": ("selection", "synthesis"),
    "synth": ("synthesis",),
}
#: Commands in which a word without `=` stands for no path.
WORDLESS = ("run", "plan", "synth", "score", "query", "check", "rehearse")
#: What each synthesizer has.
COMMON = ("rows", "seed")

_SETTING = re.compile(r"^(\s*)([a-z_]+):\s*(.*?)\s*#\s*(.*)$")


def help_text(command: str | None, arguments: Sequence[str] = ()) -> str:
    """The help of one command, or of the program; with choices such as selection=aim, the settings of these alone.

    Raises:
        UserError: a choice that is none; a module of others that cannot be loaded.
    """
    if command is None:
        return GENERAL
    if any(a.startswith("plugins=") for a in arguments):
        _load(arguments)
    chosen = [a.partition("=")[::2] for a in arguments if "=" in a]
    chosen = [(group, name) for group, name in chosen if (CONF / group).is_dir() and group != "schemas"]
    if chosen:
        return "\n\n".join("\n".join(_of_choice(group, name, arguments)) for group, name in chosen) + "\n"
    rows = _settings_of(command)
    words = [a for a in arguments if "=" not in a and not a.startswith("-")]
    if words and command in WORDLESS:
        return "\n".join(_with_words(command, rows, words)) + "\n"
    lines = [ABOUT[command], "", "settings:", *rows]
    if command in OWN:
        groups = OWN[command] if command == "synth" else [p.name for p in sorted(CONF.iterdir()) if _is_group(p)]
        lines += ["", "ready choices:"]
        lines += [f"  {g}={'|'.join(sorted(p.stem for p in (CONF / g).glob('*.yaml')))}" for g in groups]
        example = "synthesis=pgm" if command == "synth" else "selection=aim"
        lines += ["", f"a choice has settings of its own: python -m pipeline {command} --help {example}"]
    lines += ["", "examples:", *(f"  {e}" for e in EXAMPLES[command])]
    return "\n".join(lines) + "\n"


def _settings_of(command: str) -> list[str]:
    """One line per setting of a command, those of single choices aside."""
    rows: list[str] = []
    for name in FILES[command]:
        rows += _settings((CONF / f"{name}.yaml").read_text(encoding="utf-8"), name)
        if name == "evaluation/default":
            rows += _metric_settings()
    if "synthesis" in OWN.get(command, ()):
        every = _settings((CONF / "synthesis" / "gum.yaml").read_text(encoding="utf-8"), "synthesis/gum")
        rows += [row for row in every if row.split("=")[0].split(".")[-1] in COMMON]
    return rows


def _with_words(command: str, rows: Sequence[str], words: Sequence[str]) -> list[str]:
    """The settings whose names hold one of the words.

    Raises:
        UserError: a word that is in no name.
    """
    names = [row.partition("=")[0].strip() for row in rows]
    for word in words:
        if not any(word in name for name in names):
            fix = f"{did_you_mean(word, names)} python -m pipeline {command} --help lists them all".strip()
            raise UserError("no setting has that in its name", where=f"--help {word}", fix=fix)
    return ["settings:", *(row for row, name in zip(rows, names, strict=True) if any(w in name for w in words))]


def _is_group(folder: Path) -> bool:
    return folder.is_dir() and folder.name != "schemas" and any(folder.glob("*.yaml"))


def _of_choice(group: str, name: str, arguments: Sequence[str]) -> list[str]:
    """What a choice says about itself, and its settings with their values and comments."""
    path = CONF / group / f"{name}.yaml"
    if path.is_file():
        return _described(path.read_text(encoding="utf-8"), group, name)
    _load(arguments)
    from pipeline.plugins.registries import described

    if (text := described(group, name)) is None:
        near = did_you_mean(name, sorted(p.stem for p in (CONF / group).glob("*.yaml")))
        fix = f"{near} python -m pipeline run --help lists them".strip()
        raise UserError(f"no {group} called {name!r}", where=f"override '{group}={name}'", fix=fix)
    return _described(text, group, name)


def _load(arguments: Sequence[str]) -> None:
    """The modules of others that are asked for; what is ours is answered without any library."""
    from pipeline.plugins.plugin_discovery import load_asked
    from pipeline.settings.overrides import spelled

    load_asked(list(map(spelled, arguments)))


def _described(text: str, group: str, name: str) -> list[str]:
    head = [line[1:].strip() for line in text.splitlines() if line.startswith("#") and "@package" not in line]
    rows = _settings(text, "config" if "@package _global_" in text else f"{group}/{name}")
    return [f"{group}={name}", *(f"  {line}" for line in head), "", "settings:", *(rows or ["  none of its own"])]


def _metric_settings() -> list[str]:
    """One line per setting that metrics declare: its full name, its default, what it is, and whose it is."""
    rows = []
    for each in declared_settings().values():
        first, *others = users(each.name)
        whose = f"{first} and {len(others)} more" if others else first
        default = json.dumps(each.default).replace('"', "")
        rows.append(f"  evaluation.{each.name}={default}".ljust(44) + f" {whose}: {each.doc}")
    return rows


def meaning(setting: str) -> str:
    """What a setting of a run or of another command is, by its comment in conf/; empty where none has that name."""
    for name in dict.fromkeys(file for files in FILES.values() for file in files):
        for full, _, comment in _entries((CONF / f"{name}.yaml").read_text(encoding="utf-8"), name):
            if full == setting:
                return comment
    return ""


def _settings(text: str, name: str) -> list[str]:
    """One line per setting of a conf file that has a comment or a value: its full name, its default, its comment."""
    return [f"  {full}={value}".ljust(44) + f" {comment}".rstrip() for full, value, comment in _entries(text, name)]


def _entries(text: str, name: str) -> list[tuple[str, str, str]]:
    """Full name, default and comment of each setting of a conf file."""
    group = f"{name.split('/')[0]}." if "/" in name else ""
    rows: list[tuple[str, str, str]] = []
    parent = ""
    for line in text.splitlines():
        if re.match(r"^(defaults|hydra):", line):
            parent = "-"
        elif re.match(r"^[a-z_]+:\s*$", line):
            parent = line.strip().rstrip(":") + "."
        elif match := _SETTING.match(line):
            indent, key, value, comment = match.groups()
            parent = parent if indent else ""
            if parent != "-" and (key, value) != ("kind", name.split("/")[-1]):
                rows.append((f"{group}{parent}{key}", value or "null", comment))
    return rows
