"""The text of a schema, YAML or JSON, as a mapping, and back; nothing in it grows when it is read."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from mechanisms.public.errors import UserError
from mechanisms.public.plain_files import DEEPEST, check_depth, read_text, unique_keys
from mechanisms.public.schema.facts_file import within_release

#: The largest schema of a release that is read, in bytes.
LARGEST = 2**26
#: Texts that some reader of YAML takes for a number, a time, or yes and no: 0099, 1e5, 0o17, 12:30, y.
NO_TEXT = re.compile(r"[-+.]*[0-9][0-9a-fA-FoOxX_.,:eE+-]*|[yYnN]")
ANY_TEXT = re.compile(".*", re.DOTALL)


def schema_content(path: Path) -> Mapping[Any, Any]:
    """The mapping in a schema's file; of a release it is a plain file of bounded size.

    Raises:
        UserError: the file cannot be read, or holds none; names the place.
    """
    where = str(path)
    try:
        text = read_text(path, LARGEST) if within_release() else path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UserError("not UTF-8 text", where=where, fix="save it as UTF-8") from error
    except OSError as error:
        raise UserError(f"cannot read the schema: {error.strerror}", where=where, fix="check the path") from error
    try:
        content = _parsed(text.removeprefix("\ufeff"), json_text=path.suffix.lower() == ".json")
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        fix = "mend the YAML or JSON; texts with : or # need quotes"
        problem = " ".join(str(error).replace(' in "<unicode string>",', "").split())
        raise UserError(f"not well formed: {problem}", where=where, fix=fix) from error
    if not isinstance(content, Mapping):
        raise UserError("the file holds no mapping", where=where, fix="name: and columns: …, or {column: size, …}")
    return content


def _parsed(text: str, *, json_text: bool) -> Any:
    if json_text:
        content = json.loads(text, object_pairs_hook=unique_keys)
        check_depth(content)
        return content
    _check_events(text)
    return yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader


def _check_events(text: str) -> None:
    """Refuse aliases and deep nesting before anything is built.

    A kilobyte of aliases may stand for any number of values, and the C library builds lists inside of lists until the
    process dies.

    Raises:
        ValueError: an alias, or lists without end. yaml.YAMLError: no YAML.
    """
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.AliasEvent):
            raise ValueError(f"an alias (*{event.anchor}): write out what it stands for")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise ValueError(f"nested deeper than {DEEPEST} levels")


def dump_yaml(value: object, *, quoted: bool = False) -> str:
    """YAML as `load_schema` reads it: one line per field where it fits, in the order given.

    Args:
        quoted: texts in lists have quotes: other readers of YAML take 01008 for a number.
    """
    text: str = yaml.dump(
        value,
        Dumper=_Quoting if quoted else _Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=120,
        default_flow_style=None,
    )
    return text


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """The safe dumper, without aliases, and with quotes around texts that other readers take for something else."""

    quoted = NO_TEXT  # texts of lists

    def ignore_aliases(self, data: object) -> bool:
        return True

    def represent_sequence(self, tag: str, sequence: Any, flow_style: bool | None = None) -> Any:
        node = super().represent_sequence(tag, sequence, flow_style)
        _quote(node.value, self.quoted)
        return node

    def represent_mapping(self, tag: str, mapping: Any, flow_style: bool | None = None) -> Any:
        node = super().represent_mapping(tag, mapping, flow_style)
        _quote([part for pair in node.value for part in pair], NO_TEXT)
        return node


def _quote(nodes: Sequence[Any], which: re.Pattern[str]) -> None:
    """Quotes around the texts of that form; set afterwards, since a style of its own breaks a list into lines."""
    for node in nodes:
        if node.tag == "tag:yaml.org,2002:str" and which.fullmatch(node.value):
            node.style = "'"


class _Quoting(_Dumper):
    """With quotes around each text of a list."""

    quoted = ANY_TEXT


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """A safe loader that leaves texts alone: 02134, yes, 12:30 and 2016-01-01 stay texts; keys may not repeat."""

    yaml_implicit_resolvers: dict[str, list[Any]] = {}  # noqa: RUF012  # PyYAML's own way to declare them

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        names = [self.construct_object(key, deep=True) for key, _ in node.value]
        values = [self.construct_object(value, deep=True) for _, value in node.value]
        return unique_keys([*zip(names, values, strict=True)], [key.start_mark.line + 1 for key, _ in node.value])


for _tag, _pattern, _starts in (
    ("tag:yaml.org,2002:bool", r"^(?:true|false)$", "tf"),
    ("tag:yaml.org,2002:null", r"^(?:~|null|)$", ["~", "n", ""]),
    ("tag:yaml.org,2002:int", r"^(?:0|-?[1-9][0-9]*)$", "-0123456789"),
):
    _Loader.add_implicit_resolver(_tag, re.compile(_pattern), list(_starts))
