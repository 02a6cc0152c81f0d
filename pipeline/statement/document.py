"""statement.html: what a board reads and signs, on one page; no script, nothing from elsewhere."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from mechanisms.public.json_values import Json, JsonDict
from mechanisms.public.persons.person_questions import PERSONS
from mechanisms.public.release import said_not_ours
from mechanisms.public.rules.transforms import FINE
from mechanisms.public.tables.formats import persons_of
from mechanisms.public.units import UNITS, rounded_down, rounded_up
from pipeline.report.page import few_digits, rendered
from pipeline.statement.words import all_words, condition_in_words


def render_statement(
    statement: Json,
    *,
    rows_asked: int | None,
    signer: str | None,
    digests: Mapping[str, str],
    given: Json | None = None,
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
        words=all_words(statement),
        odds=_odds_of(statement["guarantee"]),
        measured=_measured(statement["events"]),
        groups=[(g["units"], g["epsilon"], g["delta"]) for g in statement["group_privacy"]],
        lost=sum(not e["answered"] for e in statement["events"]),
        others=said_not_ours(statement.get("not_ours")),
        curve=_curve(statement["curve"], statement["guarantee"]),
        rows_asked=rows_asked,
        given=given,
        condition="" if given is None else condition_in_words(given["where"]),
        signer=signer,
        digests=digests,
        two=any(persons_of(name) in digests for name in digests),
    )


def _odds_of(promise: Mapping[str, float]) -> dict[str, str]:
    """What ε and δ mean for odds: the factor e^ε, what even odds become in per cent, and 1 / δ."""
    epsilon, delta = promise["epsilon"], promise["delta"]
    share = 1 / (1 + math.exp(-epsilon))
    return {
        "factor": rounded_up(math.exp(epsilon), 3) if epsilon < 25 else f"e^{epsilon:.4g}, more than anybody can use,",
        "even": f"{rounded_up(100 * share, 3)} %" if share < 0.9995 else "practically 100 %",
        "failure": ""
        if delta == 0
        else f"{math.floor(1 / delta * (1 + 1e-9)):,}"
        if delta >= 1e-12
        else rounded_down(1 / delta, 3).replace("e+", "e"),
    }


def _measured(events: Sequence[Json]) -> JsonDict:
    """Of how many columns and of how many of their combinations there are noisy counts, of units, and of persons."""
    answered = [e for e in events if e.get("clique") and e["answered"]]
    cliques = {tuple(e["clique"]) for e in answered if not e["id"].startswith((UNITS, PERSONS))}
    # A column and its fine cells are one.
    columns = len({name.removesuffix(FINE) for c in cliques for name in c})
    units = any(e["id"].startswith(UNITS) for e in answered)
    persons = sum(e["id"].startswith(PERSONS) for e in answered)
    return {"columns": columns, "combinations": sum(len(c) > 1 for c in cliques), "units": units, "persons": persons}


def _curve(points: Sequence[Sequence[float | None]], guarantee: Mapping[str, float]) -> JsonDict | None:
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
