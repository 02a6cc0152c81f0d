"""Who publishes a release, and when: facts from the settings alone, so that equal seeds make equal bytes."""

from __future__ import annotations

import datetime
import re

from mechanisms.public.errors import UserError
from pipeline.settings.config import StatementConfig

#: A statement is one page: its texts are short.
LONGEST = 160


#: What only people know about a release, in the order of privacy.json; the comments stand in conf/config.yaml.
FIELDS = ("publisher", "date", "contact", "confirmed_by", "intended_use", "publisher_type", "region", "license")
#: Each of FIELDS; None where it is left to fill in.
WhoPublishes = dict[str, str | None]


def build_publication(settings: StatementConfig) -> WhoPublishes:
    """The settings, checked.

    Raises:
        UserError: a text too long for one page, or with control characters; a date that is none.
    """
    facts = {name: _text(name, getattr(settings, name)) for name in FIELDS}
    date = facts["date"]
    if date is not None and not _is_date(date):
        raise UserError(f"got {date!r}", where="statement.date", fix="a day as YYYY-MM-DD: statement.date=2027-03-01")
    return facts


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
