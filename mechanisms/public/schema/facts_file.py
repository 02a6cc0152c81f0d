"""Small CSV files beside a schema: hierarchies, distances, coordinates; public facts, never rows of people."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from mechanisms.public.errors import AS_UTF8, UserError
from mechanisms.public.plain_files import FIX

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
