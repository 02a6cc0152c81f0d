"""Which files are metadata, by their names' ends, and the drafts that they make. No row is read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from pkgutil import resolve_name
from typing import Any
from xml.etree.ElementTree import ParseError

import yaml

from mechanisms.public.errors import UserError
from mechanisms.public.members import need_extra
from mechanisms.public.schema.dialect import PLAIN, Dialect
from mechanisms.public.schema.discover_fields import WITHIN, FieldDict, Fields
from mechanisms.public.schema.schema_text import dump_yaml
from mechanisms.public.schema.table_schema import parse_schema
from mechanisms.public.tables.fetched import is_address
from mechanisms.public.tables.formats import format_of_name

#: Larger files are no metadata of one table.
LARGEST = 2**26
SQL = (".sql", ".ddl")
NOTICE = """\
# DRAFT from {form}, {file}: it read no rows.
# Its lists and bounds are public if that file is: then let `source` say where it is published, and set
# confirmed_public: true. Check that no list or range in it was computed from the rows.
#   - values, bounds: discover: the file does not say them; a run finds them with noise, from the same budget.
#   - `python -m pipeline check` says what this schema would do to the table.
"""
#: Not used of the file: at most so many are named.
NAMED = 12


@dataclass
class Described:
    """One column.

    Attributes:
        kind: as in a schema; empty: it is left out, and `said` tells why.
        values: its texts in order, where they are listed; low, high: its bounds, where they are known.
        missing: whether it may be empty, or the texts that mean so.
        more: further fields of the declaration.
        remarks: what a person should know or look at.
    """

    name: str
    kind: str = ""
    values: Sequence[Any] = ()
    low: Any = None
    high: Any = None
    missing: bool | list[str] = True
    more: FieldDict = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    def left_out(self, why: str) -> None:
        """The column is not released."""
        self.kind, self.remarks = "", [why]

    @property
    def fields(self) -> FieldDict:
        """Its declaration, in which a run discovers what nobody says."""
        fields: FieldDict = {"kind": self.kind}
        if self.kind == "categorical" and self.values:
            whole = all(str(v).isdecimal() and str(int(v)) == str(v) for v in self.values)
            fields["values"] = [int(v) if whole else str(v) for v in self.values]
        elif self.kind == "categorical":
            fields |= {"values": "discover", "other": "Other"}
        elif self.kind != "flag" and None not in (self.low, self.high):
            fields |= {"min": self.low, "max": self.high}
            wide = self.kind == "integer" and self.high - self.low >= 100
            fields |= {"bins": {"count": 32}} if wide else {}
        elif self.kind != "flag":
            fields["bounds"] = "discover"
            if (self.low, self.high) != (None, None):
                ends = zip((self.low, self.high), WITHIN[self.kind], strict=True)
                fields["within"] = [default if own is None else own for own, default in ends]
        return {**fields, **self.more, "missing": self.missing}


@dataclass
class Metadata:
    """What a file says of one table.

    Attributes:
        form: its format, in words.
        ordered: pairs of columns of which the first comes first.
        unused: what it says that no schema can.
        dialect: how the table's file is written.
    """

    form: str
    name: str
    columns: Sequence[Described]
    ordered: Sequence[tuple[str, str]] = ()
    unused: Sequence[str] = ()
    dialect: Dialect = PLAIN


def draft_of(metadata: Metadata, path: Path) -> str:
    """The commented draft; it carries `confirmed_public: false`, and a source that a person may confirm."""
    unused = list(dict.fromkeys(metadata.unused))
    head = NOTICE.format(form=metadata.form, file=_one_line(path.name))
    if unused:
        more = f", and {len(unused) - NAMED} more" if len(unused) > NAMED else ""
        head += f"# Not used of it: {_one_line('; '.join(unused[:NAMED]))}{more}.\n"
    source = f"{metadata.form}, {path.name}"
    facts: FieldDict = {"name": metadata.name, "source": source, "confirmed_public": False}
    facts |= {"dialect": metadata.dialect.fields} if metadata.dialect.fields else {}
    head += yaml.safe_dump(facts, sort_keys=False, allow_unicode=True)
    for column in metadata.columns:
        try:
            assert not column.kind or parse_schema({"columns": {column.name: column.fields}}, where="it")
        except UserError as error:
            column.left_out(f"as declared there it cannot be: {error.what}")
    remarks = {c.name: _one_line("; ".join(c.remarks)) for c in metadata.columns}
    drafted = [(c.name, c.fields, remarks[c.name]) for c in metadata.columns if c.kind]
    text = head + columns_text(drafted, [(c.name, remarks[c.name]) for c in metadata.columns if not c.kind])
    names = {name for name, _, _ in drafted}
    if pairs := [p for p in metadata.ordered if names >= {*p}]:
        text += (
            "# with these rules no synthetic row descends; both columns need the same bounds and bins:\n# ordered:\n"
        )
        text += "".join(f"#   - {as_json([*pair])}\n" for pair in pairs)
    return text


def columns_text(
    columns: Iterable[tuple[str, Fields, str]],
    left_out: Sequence[tuple[str, str]],
    quoted: Callable[[Fields], bool] = lambda _: True,
) -> str:
    """The columns of a draft, each behind what is said of it, and those that are left out, with why.

    Args:
        quoted: whether the texts in a column's lists have quotes.
    """
    text = "columns:\n"
    for name, fields, remarks in columns:
        lines = dump_yaml({name: fields}, quoted=quoted(fields)).splitlines(keepends=True)
        text += f"  # {remarks}\n" * bool(remarks) + "".join(f"  {line}" for line in lines)
    return text + "leave_out:\n" * bool(left_out) + "".join(f"  - {as_json(n)}  # {why}\n" for n, why in left_out)


def named(values: Mapping[Any, Any]) -> str:
    """What codes are called, in a line."""
    few = [f"{code} = {name}" for code, name in values.items() if str(name or "") not in {"", str(code)}]
    return ", ".join(few[:NAMED]) + (", …" if len(few) > NAMED else "")


def _one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def as_json(value: object) -> str:
    """A text, or a list, as YAML of one line has it."""
    return json.dumps(value, ensure_ascii=False)


def is_metadata(table: str | Path) -> bool:
    """Whether a file's name says that it is no table, but tells of one."""
    path = Path(table)
    named = path.suffix.lower() in {".json", ".xml", *SQL} and format_of_name(path.name) is None
    return named and not is_address(table)


def metadata_draft(path: Path) -> str:
    """The draft of a schema from SDV's metadata, a Frictionless schema, a DDI codebook or a CREATE TABLE.

    Raises:
        UserError: the file cannot be read, is too large, or is none of these.
    """
    where, form, name = str(path), path.suffix.lower(), path.name.split(".")[0]
    if form in SQL:
        need_extra("sqlglot", where)
    read = "sql:of_sql" if form in SQL else "codebooks:of_ddi" if form == ".xml" else "codebooks:of_json"
    try:
        with path.open(encoding="utf-8-sig") as file:
            text = file.read(LARGEST + 1)
        if len(text) > LARGEST:
            raise UserError(f"longer than {LARGEST:,} characters", where=where, fix="metadata of one table")
        return draft_of(resolve_name(f"{__package__}.{read}")(text, name, where), path)
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", where=where, fix="check the path") from error
    except RecursionError as error:
        raise UserError("too deeply nested", where=where, fix="plainer conditions; those of one column") from error
    except (AttributeError, KeyError, TypeError, ValueError, ParseError) as error:
        why = error if isinstance(error, ValueError | ParseError) else "not as its form says"
        raise UserError(f"not well formed: {why}", where=where, fix="mend the file; UTF-8 text") from error
