"""A statement in words: its fields, through the sentences of `sentences.j2`; older formats, and conditions on rows.

Format 2 said in sentences whom it protects and what it takes as public. Its numbers, names and receipts are as today's.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

import yaml
from jinja2 import Environment
from jinja2.environment import TemplateModule

from mechanisms.accounting.filters import Limit, Totals
from mechanisms.accounting.running_total import RunningTotal
from mechanisms.public.errors import UserError
from mechanisms.public.files import Json, JsonDict
from mechanisms.public.tables.scan import literal
from mechanisms.public.units import ID_RULES, bound_in_words
from pipeline.inference.person_level import COUNTED
from pipeline.report.page import environment
from pipeline.settings.specs import budget_warnings, unit_warnings
from pipeline.statement.statement import NO_HOLDOUT, unit_of

if TYPE_CHECKING:
    from pandas import DataFrame  # slow to load
from mechanisms.public.release import STATEMENT_VERSION
from pipeline.statement.statement import Start

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
    """Whether a statement names this table as the start of its rows, or of those of its run."""
    if is_older(statement):  # its digest is in one of the sentences
        return any(start["sha256"] in fact for fact in statement["public_facts"])
    return start in [{**fact, "fact": start["fact"]} for fact in statement["public_facts"]]


def start_named(statement: Json) -> str | None:
    """The file of the public table that rows start from; None where there is none, or a sentence alone names it."""
    facts = () if is_older(statement) else statement["public_facts"]
    return next((str(fact["name"]) for fact in facts if fact["fact"] == "public_start"), None)


#: Said of answers of a release that was accepted, or chosen from several tries, by its own noisy scores.
CHOSEN = "the release was accepted by its noisy score: which noise is released depends on it, and 95 % may be less"


def sentence(name: str, *fields: Any) -> str:
    """One sentence of the template."""
    return str(getattr(_sentences(), name)(*fields)).strip()


def words_of(statement: Json) -> JsonDict:
    """Each key that needs words → its sentence, or a list of them; of an older format as it stands in its file."""
    if is_older(statement):
        return {name: statement.get(name, empty) for name, empty in TEXTS.items()}
    unit, budget, total = (statement[name] for name in ("unit", "budget", "running_total"))
    return {
        "unit": sentence("unit", unit),
        "clip": sentence("clip", unit),
        "missing_unit": sentence("missing_unit", unit),
        "unit_ids": "" if unit["ids"] is None else sentence("unit_ids", unit["ids"]),
        "holdout": sentence("holdout", statement["holdout"]),
        "noise_source": sentence("noise_source", statement["noise_source"]),
        "conversion": sentence("conversion", statement),
        "public_facts": [sentence("public_fact", fact) for fact in statement["public_facts"]],
        "outside": [sentence("stop", stop) for stop in statement["outside"]],
        "reasons_not_private": reasons_in_words(statement["reasons_not_private"]),
        "warnings": [*budget_warnings(budget["epsilon"], budget["delta"]), *unit_warnings(unit_of(unit))],
        "running_total": "" if total is None else stated_total(total).sentence,
    }


def noted(answer: DataFrame, statement: Json) -> DataFrame:
    """The answer of a release with what is true of each of its answers at the end of `attrs["notes"]`."""
    unit, before, notes = statement["unit"], answer.attrs.get("notes", ()), list[str]()
    if isinstance(unit, dict) and unit["clip"] in {"weight", "truncate"} and COUNTED not in before:
        notes.append(f"of the records as clipping left them: at most {unit['max_records']:,} of a unit count")
    share = statement.get("holdout", NO_HOLDOUT)
    if isinstance(share, str):  # none, or a sentence of an older format
        notes += [] if share.startswith(NO_HOLDOUT) else [f"{share}: counts are of the other units alone"]
    else:
        notes.append(
            f"a share {share:g} of the units was set aside (evaluation.holdout): a count of the whole table is about "
            f"1/(1 − {share:g}) = {1 / (1 - share):.4g} times as large; shares, means and quantiles need no factor"
        )
    accepted = any(e.get("accept", {}).get("at_most") is not None for e in statement.get("events", ()))
    notes += [CHOSEN] if accepted or statement.get("selection") is not None else []
    answer.attrs["notes"] = [*before, *notes]
    return answer


def protected(statement: Json) -> str:
    """Who is protected, from a statement of any format."""
    return str(statement["unit"]) if is_older(statement) else sentence("unit", statement["unit"])


def rules_of_units(statement: Json) -> str:
    """Which rows are one unit beside the column of ids, from a statement of any format."""
    if is_older(statement):
        parts = [statement.get(key) for key in ("missing_unit", "unit_ids")]
    else:
        unit = statement["unit"]
        parts = [sentence("missing_unit", unit), unit["ids"] and sentence("unit_ids", unit["ids"])]
    return "; ".join(filter(None, parts))


def loss_in_words(statement: Json) -> str:
    """The (ε, δ) that a statement promises; of an old one that of its budget."""
    promise = statement.get("guarantee") or statement["budget"]
    return bound_in_words(promise["epsilon"], promise["delta"])


def reasons_in_words(codes: Any) -> list[str]:
    """Why there is no promise; the texts of an older format as they are."""
    codes_today = ("noise_seed", "confirmed_public")
    return [sentence("reason", code) if code in codes_today else str(code) for code in codes]


def stated_total(stated: Json) -> RunningTotal:
    """The running total of a statement, from its numbers."""
    composed = stated["epsilon_composed"]
    totals = Totals(stated["epsilon_sum"], stated["delta_sum"], math.inf if composed is None else composed)
    limit, others = Limit.of(stated["limit"], "limit"), stated.get("not_ours", 0)
    table, kind, slack = stated["table"], stated["accountant"], stated["slack"]
    return RunningTotal(table, kind, slack, stated["runs"], stated["not_private"], totals, limit, others)


def all_words(statement: Json) -> JsonDict:
    """The same with the sentences about several fields together."""
    facts = dict.fromkeys(("schema", "public_start")) | {f["fact"]: f for f in statement["public_facts"]}
    several = {name: sentence(name, statement, facts) for name in ABOUT}
    tries = statement["selection"]
    return words_of(statement) | several | {"released": "" if tries is None else sentence("released", tries)}


#: Sentences about several fields.
ABOUT = (
    *("original", "promise", "counted", "max_records_from", "rows_by_default", "never_covered"),
    *("neighbours", "compared", "absent", "bet", "bounds_from", "texts_released", "declared_bounds"),
    *("how_rows_were_made", "models_that_saw_rows", "alike_where_measured"),
)


def text_of(template: str, **view: Any) -> str:
    """The text of a whole file, in which nothing is escaped."""
    return str(_texts().get_template(template).render(view))


@cache
def _sentences() -> TemplateModule:
    return _texts().get_template("sentences.j2").module


@cache
def _texts() -> Environment:
    texts = environment().overlay(autoescape=False)
    own = {"quoted": repr, "literal": literal, "rule_in_words": ID_RULES.__getitem__}
    texts.filters = {**texts.filters, **own, "lines": _lines, "scalar": _scalar}
    return texts


def _scalar(text: str) -> str:
    """A text in quotation marks, as YAML reads it."""
    quoted: str = yaml.safe_dump(text, default_style='"', allow_unicode=True, width=math.inf)
    return quoted.strip()


def _lines(text: str) -> str:
    """The lines that are not empty; several of them end with a line break, as a block of YAML does."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    return "\n".join(lines) + ("\n" if len(lines) > 1 else "")


def condition_in_words(where: Json) -> str:
    """`sex = F; age = [20, 40]`: what all rows of a table satisfy."""
    return "; ".join(f"{name} = {_shown(value)}" for name, value in where.items())


def only_rows_with(given: Json | None) -> str:
    """The same behind a table's name; empty for a table of the whole.

    Args:
        given: of the table's manifest.
    """
    return "" if given is None else f", only rows with {condition_in_words(given['where'])}"


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_shown, value)) + "]"
    return "missing" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def refuse_part(given: Json | None, question: str) -> None:
    """Refuse what only a table of the whole can be asked.

    Args:
        given: of the table's manifest.
        question: what was asked of it, in the plural.
    Raises:
        UserError: the table holds only rows that satisfy a condition.
    """
    if given is not None:
        fix = f"{question} of the release that it was made from; or of a new table without where="
        raise UserError(
            f"{question} of a table with only rows with {condition_in_words(given['where'])}", where="where", fix=fix
        )
