"""Where the facts of a schema come from: a table is no source of its own."""

from __future__ import annotations

import re
from pathlib import Path

from mechanisms.public.errors import UserError
from mechanisms.public.schema.facts_file import within_release

#: What a draft says until a person has named the source.
DRAFTED = "a draft from the table itself"
_THING = r"(table|data|data ?set|file|rows|records|csv|extract)"
_ITSELF = re.compile(rf"\b{_THING} (itself|themselves)\b|\bdraft(ed)? from\b|^((the|this|our|my) )?{_THING}$")


def names_the_table(source: str, table: str | None = None) -> bool:
    """Whether a source is the very table that it should tell about.

    Args:
        table: the table's file, if it is known.
    """
    said = " ".join(source.casefold().split()).strip(".'\"`")
    if table is None or _ITSELF.search(said):
        return _ITSELF.search(said) is not None
    name, file = Path(table).name.casefold(), Path(said.removeprefix("file://")).name
    return said == table.casefold() or (
        file in {name, name.partition(".")[0]} and "://" not in said.removeprefix("file:")
    )


def check_source(source: str, *, confirmed: bool, where: str, table: str | None = None) -> None:
    """A release that was made already says itself what it is worth (`why_not_private`, `verify`).

    Raises:
        UserError: a confirmed schema whose source is the table itself.
    """
    if confirmed and names_the_table(source, table) and not within_release():
        what = f"source: {source!r} is the table itself: confirmed or not, what only its rows show is not public"
        fix = "source: where the lists and bounds are published (a codebook, a form, a law), once you compared them; "
        fix += "values: discover, bounds: discover for what stands nowhere; or confirmed_public: false"
        raise UserError(what, where=where, fix=fix)
