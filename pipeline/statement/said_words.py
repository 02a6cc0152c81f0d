"""The sentences of a statement, read back into facts and said again: words that no run would say are no statement's."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.release_files import load_released_schema
from mechanisms.public.schema.sources import names_the_table
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.units import ID_RULES, Neighbouring
from mechanisms.sensitive.contribution import PrivacyUnit
from mechanisms.sensitive.id_rules import said_rules
from pipeline.settings.config import StatementConfig
from pipeline.statement.paid_answers import bound_receipt
from pipeline.statement.publication import build_publication
from pipeline.statement.start_words import SENTENCE, Start
from pipeline.statement.statement import (
    CLIPS,
    LIBRARIES,
    MISSING,
    NOT_CONFIRMED,
    Declared,
    held_out,
    outside,
    public_facts,
    who_is_protected,
)

#: How the sentences about data.max_unplaced begin.
STOPS = "(?:a column of which|no column refuses)"
NO_CLIP, NO_MISSING = "one record per unit", "every row is a unit"


def wrong_words(release: Path, statement: Mapping[str, Any], index: Mapping[str, Any]) -> str:
    """Why what is said of the table, the unit and what is public does not hold together; empty where it does.

    Raises:
        UserError: a schema that cannot be read. ValueError: words that mean nothing.
    """
    schema = load_released_schema(release / "schema.yaml")
    if Domain(tuple(Attribute(**a) for a in index["domain"])) != schema.measured:
        return "schema.yaml and the measurements do not belong together"
    if names_the_table(schema.source, schema.name) and NOT_CONFIRMED not in statement["reasons_not_private"]:
        return f"the source of the schema is {schema.source!r}, which nobody can confirm as public"
    if statement["table"] != schema.name:
        return f"the table is {statement['table']!r}, and the schema is of {schema.name!r}"
    said = statement["published"]
    if asdict(build_publication(StatementConfig(**said))) != said or set(statement["versions"]) != {
        "pipeline",
        *LIBRARIES,
    }:
        return "who publishes it, or with which libraries it was made, does not stand there as a run would say it"
    unit, aside = stated_unit(statement), _share_aside(statement["holdout"])
    if unit.column is not None and stated_rules(statement["unit_ids"]) is None:
        return "unit_ids are no rules for ids"
    if unit.column is None and (statement["unit_ids"], statement["max_records"]) != ("", 1):
        return "a unit of one record has no ids, and one record"
    taken = _declared(schema, statement["public_facts"], statement["outside"])
    discovered = [e["discovery"]["column"] for e in statement["events"] if e.get("discovery")]
    paid = bound_receipt(statement)
    cap = None if paid is None else paid["discovery"]["cap"]
    again = {
        "unit": who_is_protected(unit),
        "holdout": held_out(aside),
        "public_facts": list(
            public_facts(schema, Neighbouring(statement["neighbouring"]), unit, aside, taken, discovered, cap)
        ),
        "outside": outside(schema, unit, taken),
    }
    return next(
        (f"{k} is not what a run would say: {statement[k]!r}" for k, v in again.items() if statement[k] != v), ""
    )


def stated_unit(
    statement: Mapping[str, Any],
    rules: Sequence[str] = PrivacyUnit.rules,
    missing_values: Sequence[str] = PrivacyUnit.missing_values,
) -> PrivacyUnit:
    """The unit, from its words.

    Args:
        rules, missing_values: for its ids, which other words say.
    Raises:
        ValueError: no words of a run.
    """
    words, clip, missing = statement["unit"], statement["clip"], statement["missing_unit"]
    if words == who_is_protected(PrivacyUnit()):
        if (clip, missing) != (NO_CLIP, NO_MISSING):
            raise ValueError(f"one record is a unit, and {clip!r}, {missing!r}")
        return PrivacyUnit()
    found = re.fullmatch(r"all records with the same value of (.+)", words)
    if found is None:
        raise ValueError(f"{words!r} is no unit")
    column = _quoted(found[1])
    clips, fates = ({said: name for name, said in each.items()} for each in (CLIPS, MISSING))
    known = {"clip": clips[clip], "missing": fates[missing]}
    own = {"rules": tuple(rules), "missing_values": tuple(missing_values)}
    return PrivacyUnit(column, statement["max_records"], **known, **own)  # type: ignore[arg-type]


def _share_aside(words: str) -> float | None:
    if words == held_out(None):
        return None
    found = re.search(r"with probability ([-+.0-9e]+),", words)
    if found is None or not 0 < float(found[1]) < 1:
        raise ValueError(f"{words!r} says of nobody that it was set aside")
    return float(found[1])


def stated_rules(words: str) -> tuple[str, ...] | None:
    """The rules for ids, from their words; None where they are no words for rules, and for texts that mean no id."""
    before, mark, texts = words.partition(", and under the same rules: ")
    chosen = (c for k in range(len(ID_RULES) + 1) for c in itertools.combinations(ID_RULES, k))
    rules = next((c for c in chosen if before == said_rules(c, ())), None)
    return rules if not mark or re.fullmatch(r"'.*'", texts) is not None else None


def _declared(schema: Schema, facts: Sequence[str], stops: Sequence[str]) -> Declared:
    """What the settings took as public, from the sentences about it.

    Raises:
        ValueError: a sentence that every run says is gone.
    """
    start = next((m for fact in facts if (m := SENTENCE.fullmatch(fact))), None)
    table = _first(r"the table ('.*'|\".*\") \(selection\.public\), which", facts)
    rows = _first(r"the number of synthetic rows, ([0-9,]+) \(synthesis\.rows\)", facts)
    about = _first(r"the number of records, about ([0-9,]+) \(selection\.rows\)", facts)
    if (share := _first(rf"{STOPS}.*\(data\.max_unplaced=([-+.0-9e]+)\)", stops)) is None:
        raise ValueError("outside does not say which loss of values refuses the run (data.max_unplaced)")
    return Declared(
        confirmed=not schema.confirmed_public,
        public_table=None if table is None else _quoted(table),
        start=None if start is None else Start(_quoted(start[1]), start[2]),
        synthetic_rows=None if rows is None else int(rows.replace(",", "")),
        selection_rows=None if about is None else int(about.replace(",", "")),
        max_unplaced=float(share),
    )


def _first(pattern: str, sentences: Sequence[str]) -> str | None:
    return next((found[1] for s in sentences if (found := re.match(pattern, s))), None)


def _quoted(text: str) -> str:
    """The text between quotation marks, as Python writes it."""
    try:
        value = ast.literal_eval(text)
    except SyntaxError as error:
        raise ValueError(f"{text} is no quoted text") from error
    return str(value)
