"""Which files are metadata, by their names' ends, and the drafts that they make."""

from __future__ import annotations

from pathlib import Path

from mechanisms.public.drafts.metadata.ddi import of_ddi
from mechanisms.public.drafts.metadata.json_forms import of_json
from mechanisms.public.drafts.metadata.known import draft_of
from mechanisms.public.errors import UserError
from mechanisms.public.extras import need_extra
from mechanisms.public.plain_files import json_mapping

#: Larger files are no metadata of one table.
LARGEST = 2**26
ENDS = (".json", ".xml", ".sql", ".ddl")


def is_metadata(path: Path) -> bool:
    """Whether a file's name says that it is no table, but tells of one."""
    return path.suffix.lower() in ENDS


def metadata_draft(path: Path) -> str:
    """The draft of a schema from SDV's metadata, a Frictionless schema, a DDI codebook or a CREATE TABLE.

    Raises:
        UserError: the file cannot be read, is too large, or is none of these.
    """
    where, form, name = str(path), path.suffix.lower(), path.name.split(".")[0]
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise UserError(f"larger than {LARGEST:,} bytes", where=where, fix="metadata of one table")
        if form == ".xml":
            return draft_of(of_ddi(content, name, where), path)
        text = content.decode("utf-8-sig")
        if form == ".json":
            known = of_json(json_mapping(text), name, where)
        else:
            need_extra("sqlglot", where)
            from mechanisms.public.drafts.metadata.sql import of_sql

            known = of_sql(text, name, where)
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", where=where, fix="check the path") from error
    except (AttributeError, KeyError, TypeError) as error:
        raise UserError("not as its form says", where=where, fix="mend it with the tool that made it") from error
    except ValueError as error:
        raise UserError(f"not well formed: {error}", where=where, fix="mend the file; UTF-8 text") from error
    if known is None:
        fix = "SDV's metadata, a Frictionless table schema or data package; or a table: CSV, Parquet"
        raise UserError("JSON of a form that is not known", where=where, fix=fix)
    return draft_of(known, path)
