"""Statements of older formats, of which sentences are no fields: what `verify` and others need of them.

Format 2 said in sentences whom it protects and what it takes as public. Its numbers, names and receipts are as today's.
"""

from __future__ import annotations

from mechanisms.public.files import Json
from mechanisms.public.release import STATEMENT_VERSION
from pipeline.statement.start_table import Start

#: Keys whose content is a sentence, or a list of them → what stands for one that is absent.
TEXTS: Json = {
    **dict.fromkeys(("unit", "clip", "missing_unit", "unit_ids", "holdout", "noise_source", "conversion"), ""),
    **dict.fromkeys(("public_facts", "outside", "reasons_not_private", "warnings"), ()),
    "running_total": "",
}


def is_older(statement: Json) -> bool:
    """Whether its sentences are no fields."""
    return bool(statement.get("version", 1) in range(1, STATEMENT_VERSION))


def as_fields(statement: Json) -> Json:
    """The same with the fields of today that its numbers tell; what only sentences say is None.

    A unit whose column is unknown has an empty name: no column has.
    """
    if not is_older(statement):
        return statement
    events, chosen = statement["events"], statement.get("selection")
    limits = [e["accept"]["at_most"] for e in events if e.get("accept")]
    if chosen is not None:
        chosen = {**chosen, "threshold": bool(limits) and None not in limits}
    column = None if statement.get("unit_ids") == "" else ""
    unit = {"column": column, "max_records": statement["max_records"], "clip": None, "missing": None, "ids": None}
    aside = str(statement.get("holdout", "none"))
    return {**statement, "unit": unit, "selection": chosen, "holdout": "none" if aside.startswith("none") else None}


def starts_from(statement: Json, start: Start) -> bool:
    """Whether a statement names this table as the start of its rows."""
    if is_older(statement):  # its digest is in one of the sentences
        return any(start["sha256"] in fact for fact in statement["public_facts"])
    return start in statement["public_facts"]


def start_named(statement: Json) -> str | None:
    """The file of the public table that rows start from; None where there is none, or a sentence alone names it."""
    facts = () if is_older(statement) else statement["public_facts"]
    return next((str(fact["name"]) for fact in facts if fact["fact"] == "public_start"), None)
