"""The commands, and their help texts: settings and comments come from the files of conf/ themselves.

A wrong setting is answered with what the libraries say in our words, and with what is allowed instead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import yaml

from evaluation.metrics import declared_settings, users
from mechanisms.public.errors import UserError, did_you_mean
from pipeline.conf_folder import CONF


@dataclass(frozen=True)
class Command:
    """One command of `python -m pipeline`.

    Attributes:
        summary: one line, for the list of all commands.
        about: the head of its help.
        examples: command lines, without the program.
        files: the files of conf/ whose settings it has, those of its choices aside.
        own: the groups whose choices have settings of their own.
        nameless: the setting that a word without `=` stands for; None: none, and `--help WORD` finds settings.
        first: the settings that its help shows, by title; empty: all of them.
    """

    summary: str
    about: str
    examples: Sequence[str]
    files: Sequence[str]
    own: Sequence[str] = ()
    nameless: str | None = None
    first: Mapping[str, Sequence[str]] = field(default_factory=dict)


_FACTS = (Path(__file__).parent / "commands" / "commands.yaml").read_text(encoding="utf-8")
_OF_EACH, _OF_ALL = yaml.load_all(_FACTS, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
COMMANDS = {name: Command(**facts) for name, facts in _OF_EACH.items()}
#: The help of the program; what settings that are no single value look like; of settings of one choice alone that are
#: asked of others what is wrong, and the way out.
GENERAL: str = _OF_ALL["general"]
ALLOWED: dict[str, str] = _OF_ALL["allowed"]
OF_ONE = {name: (problem, fix) for name, (problem, fix) in _OF_ALL["of_one"].items()}

#: The way out where no command is known.
HELPS = "--help of the command says what each setting may be"
#: What a ${ stands for, and how a path or a name has one.
DOLLAR = r"${seed} stands for the value of that setting; in a path or a name write \${ for ${"
#: The word after --help that lists every setting of a command whose help shows the first ones.
EVERY = "all"
#: The full name of a setting, its default and its comment.
Entry: TypeAlias = tuple[str, str, str]
#: What each synthesizer has.
COMMON = ("rows", "seed")

_SETTING = re.compile(r"^(\s*)([a-z_0-9]+):\s*(.*?)\s*(?:#\s*(.*))?$")


def help_text(command: str | None, arguments: Sequence[str] = ()) -> str:
    """The help of one command, or of the program; with choices such as selection=aim, the settings of these alone.

    Raises:
        UserError: a choice that is none; a module of others that cannot be loaded.
    """
    if command is None:
        width = max(map(len, COMMANDS))
        return GENERAL.format(commands="\n".join(f"  {n:<{width}} {c.summary}" for n, c in COMMANDS.items()))
    if any(a.startswith("plugins=") for a in arguments):
        _load(arguments)
    chosen = [a.partition("=")[::2] for a in arguments if "=" in a]
    chosen = [(group, name) for group, name in chosen if (CONF / group).is_dir() and group != "schemas"]
    if chosen:
        return "\n\n".join("\n".join(_of_choice(group, name, arguments)) for group, name in chosen) + "\n"
    of = COMMANDS[command]
    entries = _settings_of(of)
    words = [a for a in arguments if "=" not in a and not a.startswith("-")]
    if words and words != [EVERY] and of.nameless is None:
        return "\n".join(_with_words(command, entries, words)) + "\n"
    grouped = of.first and not words
    lines = [of.about, "", *(_grouped(command, of, entries) if grouped else ("settings:", *_rows(entries)))]
    if of.own:
        groups = of.own if command == "synth" else [p.name for p in sorted(CONF.iterdir()) if _is_group(p)]
        lines += ["", "ready choices:"]
        lines += [f"  {g}={'|'.join(choices(g))}" for g in groups]
        example = "synthesis=pgm" if command == "synth" else "selection=aim"
        lines += ["", f"a choice has settings of its own: python -m pipeline {command} --help {example}"]
    lines += ["", "examples:", *(f"  python -m pipeline {e}" for e in of.examples)]
    return "\n".join(lines) + "\n"


def _grouped(name: str, command: Command, entries: Sequence[Entry]) -> list[str]:
    """The settings that most people set, by their titles, and how to see the others."""
    by_name = {entry[0]: entry for entry in entries}
    lines: list[str] = []
    for title, names in command.first.items():
        lines += [f"{title}:", *_rows(by_name[name] for name in names), ""]
    others = len(by_name) - sum(map(len, command.first.values()))
    find = f"python -m pipeline {name} --help"
    return [*lines, f"{others} more settings: {find} {EVERY}", f"those with a word in their names: {find} clip"]


def _settings_of(command: Command) -> list[Entry]:
    """The settings of a command, those of single choices aside."""
    entries: list[Entry] = []
    for name in command.files:
        entries += _entries((CONF / f"{name}.yaml").read_text(encoding="utf-8"), name)
        if name == "evaluation/default":
            entries += _metric_settings()
    if "synthesis" in command.own:
        every = _entries((CONF / "synthesis" / "gum.yaml").read_text(encoding="utf-8"), "synthesis/gum")
        entries += [entry for entry in every if entry[0].split(".")[-1] in COMMON]
    return entries


def _with_words(command: str, entries: Sequence[Entry], words: Sequence[str]) -> list[str]:
    """The settings whose names hold one of the words.

    Raises:
        UserError: a word that is in no name.
    """
    names = [name for name, _, _ in entries]
    for word in words:
        if not any(word in name for name in names):
            fix = f"{did_you_mean(word, names)} python -m pipeline {command} --help {EVERY} lists them".strip()
            raise UserError("no setting has that in its name", where=f"--help {word}", fix=fix)
    return ["settings:", *_rows(entry for entry in entries if any(w in entry[0] for w in words))]


def _is_group(folder: Path) -> bool:
    return folder.is_dir() and folder.name != "schemas" and len(list(folder.glob("*.yaml"))) > 1


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


def choices(group: str, own: Sequence[Path] = ()) -> list[str]:
    """The choices of a group: ours and those of own folders, then what loaded modules offer."""
    from pipeline.plugins.offers import offering

    return [*sorted({p.stem for folder in (CONF, *own) for p in (folder / group).glob("*.yaml")}), *offering(group)]


def _load(arguments: Sequence[str]) -> None:
    """The modules of others that are asked for; what is ours is answered without any library."""
    from pipeline.plugins.plugin_discovery import load_asked
    from pipeline.settings.overrides import spelled

    load_asked(list(map(spelled, arguments)))


def _described(text: str, group: str, name: str) -> list[str]:
    head = [line[1:].strip() for line in text.splitlines() if line.startswith("#") and "@package" not in line]
    rows = _rows(_entries(text, "config" if "@package _global_" in text else f"{group}/{name}"))
    return [f"{group}={name}", *(f"  {line}" for line in head), "", "settings:", *(rows or ["  none of its own"])]


def _metric_settings() -> list[Entry]:
    """The settings that metrics declare; the comment of each says whose it is, and what it is."""
    entries = []
    for each in declared_settings().values():
        first, *others = users(each.name) or ["the map of a report"]
        whose = f"{first} and {len(others)} more" if others else first
        default = json.dumps(each.default).replace('"', "")
        entries.append((f"evaluation.{each.name}", default, f"{whose}: {each.doc}"))
    return entries


def meaning(setting: str) -> str:
    """What a setting of a run or of another command is, by its comment in conf/; empty where none has that name."""
    for name in dict.fromkeys(file for command in COMMANDS.values() for file in command.files):
        for full, _, comment in _entries((CONF / f"{name}.yaml").read_text(encoding="utf-8"), name):
            if full == setting:
                return comment
    return ""


def _rows(entries: Iterable[Entry]) -> list[str]:
    """One line per setting."""
    return [f"  {full}={value}".ljust(44) + f" {comment}".rstrip() for full, value, comment in entries]


def _entries(text: str, name: str) -> list[Entry]:
    """The settings of a conf file that have a comment."""
    group = f"{name.split('/')[0]}." if "/" in name else ""
    rows: list[Entry] = []
    above: list[tuple[int, str]] = []  # the mappings that a line stands in: how far each is indented, and its name
    for line in text.splitlines():
        if not (match := _SETTING.match(line)):
            continue
        indent, key, value, comment = match.groups()
        above = [(depth, outer) for depth, outer in above if depth < len(indent)]
        names = [*(outer for _, outer in above), key]
        if not value:
            above.append((len(indent), key))
        if comment and names[0] not in {"defaults", "hydra"} and (key, value) != ("kind", name.split("/")[-1]):
            rows.append((f"{group}{'.'.join(names)}", value or "null", comment))
    return rows


#: What OmegaConf says of a value that is of another type than its setting.
OF_OTHER_TYPE = re.compile(
    "^(?:Value|Incompatible value) '(.*?)' (?:of type '.*' )?"
    "(?:could not be converted to|is not a valid|is incompatible with type hint|for field of type) (.*)$"
)
#: What OmegaConf calls the types of settings, in words.
KINDS = {
    "float": "a number",
    "integer": "a whole number",
    "int": "a whole number",
    "bool": "true or false",
    "boolean": "true or false",
    "string": "a text",
}


def way_out(setting: str, config: str = "", bounds: str = "") -> str:
    """What a setting may be, by example where it is no single value.

    Args:
        setting: its name; an index in brackets is left aside.
        config: the file of conf/ that holds it; empty where that is not known.
        bounds: what it may be by its own bounds, in words; empty where it has none.
    """
    command, name = next((c for c, own in COMMANDS.items() if config in own.files), None), setting.partition("[")[0]
    helps = f"see `python -m pipeline {command} --help`" if command else HELPS
    return ALLOWED.get(name) or bounds or meaning(name) or helps


def of_others(setting: str) -> tuple[str, str] | None:
    """What to say of a setting that other choices of its group have, and the way out; None where none has it."""
    if setting in OF_ONE:
        return OF_ONE[setting]
    group, _, name = setting.partition(".")
    files = sorted((CONF / group).glob("*.yaml"), key=lambda f: (f.stem != "table", f)) if group and name else []
    having = [f.stem for f in files if name in (yaml.safe_load(f.read_text(encoding="utf-8")) or {})]
    if not having:
        return None
    more = [f"{len(having) - 5} more"] if len(having) > 6 else []
    names = [f"{group}={n}" for n in having[: 5 if more else None]]
    return f"not a setting of this {group}", f"{name} belongs to {', '.join([*names, *more])}"


def first_line(error: Exception) -> str:
    """What an error says, without what Hydra adds below and without its names of types."""
    text = str(error).strip().splitlines()[0]
    if match := OF_OTHER_TYPE.search(text):
        kind = next((KINDS[word] for word in re.findall("[a-z]+", match[2].lower()) if word in KINDS), "")
        return f"got {match[1]!r}{', not ' * bool(kind)}{kind}"
    if re.search("ListConfig|DictConfig|Error merging override|^Cannot assign", text):
        return "not of the form that this setting has"
    return text
