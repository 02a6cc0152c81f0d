"""Who publishes a release, and when: facts from the settings alone, so that equal seeds make equal bytes."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass, fields

from mechanisms.public.errors import UserError
from pipeline.settings.config import StatementConfig

#: A statement is one page: its texts are short.
LONGEST = 160


@dataclass(frozen=True)
class Publication:
    """What only people know about a release; None where it is left to fill in.

    Attributes:
        publisher: who releases.
        date: when, as YYYY-MM-DD; no clock is ever read.
        contact: where to ask.
        confirmed_by: who confirmed that the schema is public knowledge.
        intended_use: what the table is for.
        publisher_type: what kind of body the publisher is, in the registry's words (Government, Nonprofit, …).
        region: what part of the world it is about.
        license: under which terms the table may be used.
    """

    publisher: str | None = None
    date: str | None = None
    contact: str | None = None
    confirmed_by: str | None = None
    publisher_type: str | None = None
    intended_use: str | None = None
    region: str | None = None
    license: str | None = None


def build_publication(settings: StatementConfig) -> Publication:
    """The settings, checked.

    Raises:
        UserError: a text too long for one page, or with control characters; a date that is none.
    """
    facts = {f.name: _text(f.name, getattr(settings, f.name)) for f in fields(Publication)}
    date = facts["date"]
    if date is not None and not _is_date(date):
        raise UserError(f"got {date!r}", where="statement.date", fix="a day as YYYY-MM-DD: statement.date=2027-03-01")
    return Publication(**facts)


def _text(name: str, value: str | None) -> str | None:
    text = None if value is None else str(value).strip()
    if text and (len(text) > LONGEST or re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", text)):
        raise UserError(
            "not one short line", where=f"statement.{name}", fix=f"at most {LONGEST} characters on one line"
        )
    return text or None


def _is_date(text: str) -> bool:
    try:
        datetime.date.fromisoformat(text)
    except ValueError:
        return False
    return re.fullmatch(r"\d{4}-\d\d-\d\d", text) is not None
