"""Sentences that more than one paper says, each from facts of the statement: none is true whatever was set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mechanisms.public.units import Neighbouring
from pipeline.statement.paid_answers import ONE_RECORD, bound_receipt
from pipeline.statement.start_words import start_named
from pipeline.statement.statement import DISCOVERED, NOT_CONFIRMED, held_out

#: Not covered by the promise of any run; PRIVACY.md says more.
EVERY_RUN = "for every run (PRIVACY.md): that a run failed, its time and memory, correlated units"


def discovered(statement: Mapping[str, Any]) -> str:
    """Which columns are not declared in all, what of them stems from noisy answers, and from whose; empty: none."""
    schema = str(statement["public_facts"][0])
    return schema.rpartition(DISCOVERED)[2] if DISCOVERED in schema else ""


def bounds_from(statement: Mapping[str, Any]) -> str:
    """Who says where bounds, bins and categories come from."""
    found = discovered(statement)
    if NOT_CONFIRMED in statement["reasons_not_private"]:
        schema = "from the schema, which nobody confirmed: they may be read off the rows"
    else:
        schema = "from the schema, which a person confirmed as public"
    if found:
        return f"discovered: {found}{_charged_as(statement)}; all else {schema}"
    unread = "" if "nobody" in schema else "; the run reads none off the rows"
    return f"all {schema}{unread}"


def texts_released(statement: Mapping[str, Any]) -> str:
    """Whether a text can stand in the release that no schema lists."""
    if "(values" in (found := discovered(statement)):
        return f"a table of declared columns; texts of the schema, or held by so many that noise let them pass: {found}"
    return "a table of declared columns; no free text, no pictures"


def declared_bounds(statement: Mapping[str, Any]) -> str:
    """The same as one sentence, for those who know what a schema is."""
    found = discovered(statement)
    but = f", but for {found}{_charged_as(statement)}" if found else ""
    return f"Bounds, bins and categories are declared in the schema{but}."


def _charged_as(statement: Mapping[str, Any]) -> str:
    paid = [e["id"] for e in statement["events"] if e.get("discovery") and "cap" not in e["discovery"]]
    return f" (charged as {', '.join(paid)})" if paid else ""


def max_records_from(statement: Mapping[str, Any]) -> str:
    """Whether C was declared, or chosen by noisy counts of units."""
    paid, bound = bound_receipt(statement), f"C = {statement['max_records']}"
    if paid is None:
        return f"{bound} is declared"
    if paid["discovery"]["noisy"] is None:
        return f"{bound} is assumed: the noisy counts of units under {paid['id']} were charged and lost"
    return f"{bound} follows from the noisy counts of units under {paid['id']}"


def how_rows_were_made(statement: Mapping[str, Any]) -> str:
    """What the synthetic rows rest on, and whether private rows were looked at once they were there."""
    start, scores = start_named(statement["public_facts"]), _scores(statement)
    made = "Rows are made by a synthesizer that is handed the noisy answers and the schema alone."
    if start is not None:
        made = "Rows are made by a synthesizer that is handed the noisy answers, the schema and the public table "
        made += f"{start!r}, whose rows may stand in it as they are where no answer speaks against them."
    if not scores:
        return f"{made} For this release no row is looked at again."
    each = ", in each of several tries" if statement.get("selection") else ""
    compared = f"{scores} noisy score{'s' * (scores != 1)}, charged{each}"
    return f"{made} The table that was made was compared with the private rows: {compared}."


def models_that_saw_rows(statement: Mapping[str, Any]) -> str:
    """The same for the table of hazards."""
    start, scores = start_named(statement["public_facts"]), _scores(statement)
    handed = "the noisy answers alone" if start is None else f"the noisy answers and the public table {start!r}"
    compared = f"; the table that it made was compared with the rows, with noise ({scores} charge{'s' * (scores != 1)})"
    others = [p["name"] for p in statement.get("not_ours") or () if p["kind"] == "synthesis"]
    none = f"{others[0]!r} is not ours, and may read any file" if others else "none in this release"
    return f"{none}: synthesis is handed {handed}{compared if scores else ''}"


def alike_where_measured(statement: Mapping[str, Any]) -> str:
    """Of what the synthetic table tells."""
    start = start_named(statement["public_facts"])
    rest = "" if start is None else f"; all else is as in the public table {start!r}"
    return f"Only what the measured marginals tell is alike{rest}"


def _scores(statement: Mapping[str, Any]) -> int:
    return sum("accept" in e for e in statement["events"])


def rows_by_default(statement: Mapping[str, Any]) -> str:
    """How many synthetic rows there are where no setting says it."""
    one_record = statement["unit"] == ONE_RECORD and statement["holdout"] == held_out(None)
    if one_record and statement["neighbouring"] == Neighbouring.REPLACE:
        return "as many as the table has (a public fact)"
    return "as many as the noisy total says"


def never_covered(statement: Mapping[str, Any]) -> str:
    """What the promise leaves out, whatever the schema and the settings refuse."""
    return f"{EVERY_RUN}, how many tries there were" if statement.get("selection") else EVERY_RUN
