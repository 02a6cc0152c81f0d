"""Small CSV files beside a schema: hierarchies, distances, coordinates; public facts, never rows of people."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from mechanisms.public.errors import AS_UTF8, UserError

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


def check_alone(*, field: str, where: str) -> None:
    """Asked before a file beside a schema is opened.

    Raises:
        UserError: the schema is that of a release.
    """
    if within_release():
        fix = "take the release folder of a run, as it was written; do not trust this one"
        raise UserError(f"{field}: names another file, which the schema of a release never does", where=where, fix=fix)


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
