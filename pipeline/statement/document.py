"""statement.html: what a board reads and signs, on one page; no script, nothing from elsewhere."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from mechanisms.public.release import said_not_ours
from mechanisms.public.rules.transforms import FINE
from mechanisms.public.rules.unit_histogram import UNITS
from pipeline.pages.page import few_digits, rendered
from pipeline.statement.condition_words import condition_in_words
from pipeline.statement.words import about, sentence, words_of

NEIGHBOURS = {
    "add_remove": "the table with and without one unit",
    "replace": "two tables where one unit's records were replaced by others",
}
ABSENT = {
    "add_remove": "if the records of any one unit had not been in the table",
    "replace": "if the records of any one unit had been any others",
}
#: Sentences about several fields.
ABOUT = (
    *("max_records_from", "never_covered", "rows_by_default"),
    *("bounds_from", "texts_released", "models_that_saw_rows"),
)
BETS = {
    "add_remove": "that a given unit is in the table",
    "replace": "that a given unit's records are these and not those",
}


def render_statement(
    statement: Mapping[str, Any],
    *,
    rows_asked: int | None,
    signer: str | None,
    digests: Mapping[str, str],
    given: Mapping[str, Any] | None = None,
) -> str:
    """The page, from privacy.json and what the manifest says beside it: the same input gives the same bytes.

    Args:
        statement: the content of privacy.json.
        rows_asked: how many synthetic rows were asked for; None: as many as the noisy total says.
        signer: the fingerprint of the key that signs the manifest, or None.
        given: what the rows of the synthetic table were asked to satisfy (see `Manifest`); None: nothing.
        digests: path in the release → SHA-256, of the synthetic table, of the measurements and of privacy.json.
    """
    return rendered(
        "statement.html.j2",
        said=statement,
        words={**words_of(statement), **_further_words(statement)},
        original=sentence("original", statement),
        groups=[(g["units"], g["epsilon"], g["delta"]) for g in statement["group_privacy"]],
        lost=sum(not e["answered"] for e in statement["events"]),
        others=said_not_ours(statement.get("not_ours")),
        curve=_curve(statement["curve"], statement["guarantee"]),
        rows_asked=rows_asked,
        given=given,
        condition="" if given is None else condition_in_words(given["where"]),
        signer=signer,
        digests=digests,
    )


def _further_words(statement: Mapping[str, Any]) -> dict[str, str]:
    epsilon, delta = statement["guarantee"]["epsilon"], statement["guarantee"]["delta"]
    odds = 1 / (1 + math.exp(-epsilon))
    factor = f"{math.exp(epsilon):,.3g}" if epsilon < 25 else f"e^{epsilon:.4g}, more than anybody can use,"
    failure = "" if delta == 0 else f", up to an added δ = {few_digits(delta)} (1 in {_odds(delta)})"
    return {
        "neighbours": NEIGHBOURS.get(statement["neighbouring"], statement["neighbouring"]),
        "absent": ABSENT.get(statement["neighbouring"], "if the records of any one unit were others"),
        "bet": BETS.get(statement["neighbouring"], "about a unit's records"),
        "factor": factor,
        "failure": failure,
        "measured": _measured(statement["events"]),
        "released": "" if statement["selection"] is None else sentence("released", statement["selection"]),
        **{name: about(name, statement) for name in ABOUT},
        "odds": f"{100 * odds:.3g} %" if odds < 0.9995 else "practically 100 %",
    }


def _measured(events: Sequence[Mapping[str, Any]]) -> str:
    """Of how many columns, and of how many combinations of them, there are noisy counts."""
    answered = [e for e in events if e.get("clique") and e["answered"]]
    cliques = {tuple(e["clique"]) for e in answered if not e["id"].startswith(UNITS)}
    # A column and its fine cells are one.
    columns = len({name.removesuffix(FINE) for c in cliques for name in c})
    units = "; of units by their number of records" if any(e["id"].startswith(UNITS) for e in answered) else ""
    several = sum(len(c) > 1 for c in cliques)
    together = f"{several:,} combination{'s' * (several != 1)} of them" if several else "no combination of them"
    return f"noisy counts of {columns:,} column{'s' * (columns != 1)}, and of {together}{units}"


def _odds(delta: float) -> str:
    return f"{1 / delta:,.0f}" if delta >= 1e-12 else few_digits(1 / delta)


def _curve(points: Sequence[Sequence[float | None]], guarantee: Mapping[str, float]) -> dict[str, Any] | None:
    """Where the points of ε over δ lie on a picture of 300 × 96, δ falling to the right; None where ε has no bound."""
    points_shown = [(at, value) for at, value in points if at is not None and value is not None]
    if len(points_shown) < 2:
        return None
    left, right, top, bottom = 34.0, 292.0, 8.0, 78.0
    first, last = (math.log10(points_shown[i][0]) for i in (0, -1))
    most = max(e for _, e in points_shown) or 1.0

    def place(delta: float, epsilon: float) -> tuple[str, str]:
        x = left + (math.log10(delta) - first) / (last - first) * (right - left)
        return f"{x:.1f}", f"{bottom - epsilon / most * (bottom - top):.1f}"

    ticks = [(place(d, 0)[0], f"{d:.0e}".replace("e-0", "e-")) for d, _ in points_shown[::3]]
    own = guarantee["delta"]
    inside = 10**last <= own <= 10**first
    return {
        "line": " ".join(",".join(place(d, e)) for d, e in points_shown),
        "ticks": ticks,
        "most": few_digits(most),
        "here": place(own, min(guarantee["epsilon"], most)) if own and inside else None,
    }
