"""Which files are metadata, by their names' ends, and the drafts that they make."""

from __future__ import annotations

from pathlib import Path
from pkgutil import resolve_name
from xml.etree.ElementTree import ParseError

from mechanisms.public.drafts.metadata.described import draft_of
from mechanisms.public.errors import UserError
from mechanisms.public.extras import need_extra
from mechanisms.public.tables.fetched import is_address
from mechanisms.public.tables.formats import format_of_name

#: Larger files are no metadata of one table.
LARGEST = 2**26
SQL = (".sql", ".ddl")


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
    read = "sql:of_sql" if form in SQL else "ddi:of_ddi" if form == ".xml" else "json_forms:of_json"
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
