"""The text of a schema, where its facts come from, and small CSV files beside it; nothing grows when it is read."""

from __future__ import annotations

import csv
import json
import os
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import yaml

from mechanisms.public.errors import AS_UTF8, UserError
from mechanisms.public.plain_files import DEEPEST, FIX, check_depth, read_text, unique_keys

_ALONE = ContextVar("alone", default=False)


@contextmanager
def alone() -> Iterator[None]:
    """A schema that is read within opens no other file: one from a release holds all that it needs."""
    token = _ALONE.set(True)
    try:
        yield
    finally:
        _ALONE.reset(token)


def within_release() -> bool:
    """Whether the schema that is read is that of a release."""
    return _ALONE.get()


def lies_in_release(path: Path) -> bool:
    """Whether a schema's file stands beside the papers of a release, whoever made that."""
    return all(os.path.lexists(path.parent / name) for name in ("manifest.json", "privacy.json"))


def check_alone(*, field: str, where: str) -> None:
    """Asked before a file beside a schema is opened.

    Raises:
        UserError: the schema is that of a release.
    """
    if within_release():
        raise UserError(f"{field}: names another file, which the schema of a release never does", where=where, fix=FIX)


def facts_in_order(path: Path, names: Sequence[str], *, field: str, where: str, weight: str = "") -> list[list[Any]]:
    """The rows of a CSV whose header names these columns, in this order.

    Args:
        weight: a column that may stand there too: it comes last, as 1 where it is absent; empty for none.
    Raises:
        UserError: another header.
    """
    header, lines = read_facts(path, field=field, where=where)
    if sorted(h for h in header if h != weight) != sorted(names):
        fix = f"the header {','.join(names)}" + (f", and perhaps {weight}" if weight else "")
        raise UserError(f"{field}: {path.name}: the header is {','.join(header)}", where=where, fix=fix)
    rows: list[list[Any]] = [[line[header.index(n)] for n in names] for line in lines]
    if weight:
        place = header.index(weight) if weight in header else None
        return [[*row, 1 if place is None else line[place]] for row, line in zip(rows, lines, strict=True)]
    return rows


def read_facts(path: Path, *, field: str, where: str) -> tuple[list[str], list[list[str]]]:
    """The header and the rows of a CSV file (commas, UTF-8); empty lines are skipped.

    Args:
        field: the field that names the file, for messages.
        where: the schema and the column, for messages.

    Raises:
        UserError: no such file, not text, no row, or a row that is longer or shorter than the header; names its line.
    """
    check_alone(field=field, where=where)
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, strict=True)
            lines = [(reader.line_num, cells) for cells in reader if cells]
    except UnicodeDecodeError as error:
        raise UserError(f"{field}: {path} is not UTF-8 text", where=where, fix=AS_UTF8) from error
    except OSError as error:
        fix = "check the path; a relative one in a schema starts at the schema's own folder"
        raise UserError(f"{field}: cannot read {path}: {error.strerror}", where=where, fix=fix) from error
    except csv.Error as error:
        raise UserError(f"{field}: {path} is no CSV: {error}", where=where, fix="close every quote") from error
    if len(lines) < 2:
        raise UserError(f"{field}: {path} holds no row below its header", where=where, fix="a header, then the rows")
    header = lines[0][1]
    for number, cells in lines[1:]:
        if len(cells) != len(header):
            problem = f"{path}, line {number}, with {cells[0]!r}: {len(cells)} cells below {len(header)} in the header"
            raise UserError(
                f"{field}: {problem}",
                where=where,
                fix="every row as long as the header; quotes around texts with commas",
            )
    return header, [cells for _, cells in lines[1:]]


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


#: What a draft says until a person has named the source.
DRAFTED = "a draft from the table itself"
#: What names no source, as it is said.
OWN = "the table, this file, own data, min and max of each column, what its rows show"
#: A file's name is looked for without up to so many endings: a foreign schema may be called anything.
MOST_ENDINGS = 5
_THINGS = "table data dataset set file rows row records record csv excel sheet spreadsheet extract export dump sample "
_THINGS += "database values value columns column entries contents frame dataframe"
#: Words that name nothing beside the table: a source of these alone says nothing more.
_BESIDE = (
    "a an the this that these those our my own its it itself themselves s of in from by at as on is are was were and "
    "all same very real raw private actual original input given here what which found seen taken read derived inferred "
    "each every computed observed guessed looked looking look inspected inspection minimum maximum min max range "
    "ranges unique only distinct stand stands"
)
_OF_TABLE, _ALLOWED = set(_THINGS.split()), {*_THINGS.split(), *_BESIDE.split()}
_ITSELF = re.compile(rf"\b({'|'.join(_THINGS.split())}) (itself|themselves)\b|\bdraft(ed)? from\b")


def names_the_table(source: str, *names: str) -> bool:
    """Whether a source is the very table that it should tell about: a person's words, of which this knows a few forms.

    It is where it holds the name of the table's file, or where no word in it names anything else; Unicode's ways to
    write a character (NFKC), case, and marks between words are the same.

    Args:
        names: the table's file and the schema's name, where they are known.
    """
    text = re.sub(r"\b(?!file:)[a-z][a-z0-9+.-]{0,30}://\S+", " address ", _folded(source))
    glued = "".join(_words(text))
    if _ITSELF.search(" ".join(text.split())):
        return True
    for name in sorted((Path(_folded(n)).name for n in names), key=len, reverse=True):
        parts = name.rsplit(".", MOST_ENDINGS)
        for form in filter(None, (".".join(parts[:k]) for k in range(len(parts), 0, -1))):
            text, times = re.subn(rf"(?<![\w.-]){re.escape(form)}(?!\w|\.\w)", " table ", text)
            if times and "." in form:
                return True
            bare = _words(form)
            if bare and glued == "".join(bare):
                return True
            if len(bare) > 1:  # marks between the words are as good as any others
                spaced, times = re.subn(rf"\b{' '.join(bare)}\b", "table", " ".join(_words(text)))
                if times and "." in form:
                    return True
                text = spaced if times else text
    words = _words(text)
    return any(w in _OF_TABLE for w in words) and all(w in _ALLOWED for w in words)


def _folded(text: str) -> str:
    """As NFKC, without capitals and without characters that nobody sees."""
    seen = "".join(c for c in text if unicodedata.category(c) != "Cf")
    return unicodedata.normalize("NFKC", seen).casefold()


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text)


def check_source(source: str, *names: str, confirmed: bool, where: str) -> None:
    """A release that was made already says itself what it is worth (`why_not_private`, `verify`).

    Raises:
        UserError: a confirmed schema whose source is the table itself.
    """
    if confirmed and names_the_table(source, *names) and not within_release():
        problem = f"source: {source!r} is the table itself: confirmed or not, what only its rows show is not public"
        problem += f" (no source is {OWN}, or the name of its file)"
        fix = "source: where the lists and bounds are published (a codebook, a form, a law), once you compared them; "
        fix += "values: discover, bounds: discover for what stands nowhere; or confirmed_public: false"
        raise UserError(problem, where=where, fix=fix)
