"""The hazards of NIST SP 800-226 (Guidelines for Evaluating Differential Privacy Guarantees), answered for a release.

What software can know is answered from the statement; what only an organisation can know is a prompt to fill in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mechanisms.public.release import said_not_ours
from pipeline.statement.paid_answers import ONE_RECORD
from pipeline.statement.paper_words import bounds_from, max_records_from, models_that_saw_rows, texts_released

#: NIST: up to 1 is strong; up to 20 was seen in practice.
STRONG, SEEN = 1.0, 20.0


@dataclass(frozen=True)
class Hazard:
    """One row of the table.

    Attributes:
        name: the hazard in a few words.
        answer: what the statement says about it; empty where only people know.
        prompt: what is left to fill in; empty where nothing is.
    """

    name: str
    answer: str
    prompt: str = ""


def hazards(statement: Mapping[str, Any]) -> list[Hazard]:
    """All rows, from the content of privacy.json."""
    return [*_about_loss(statement), *_about_data(statement), *_about_building(statement), *_about_people()]


def _about_loss(statement: Mapping[str, Any]) -> list[Hazard]:
    epsilon, delta = statement["guarantee"]["epsilon"], statement["guarantee"]["delta"]
    size = "strong (up to 1)" if epsilon <= STRONG else "in the range seen (1 to 20)"
    size = size if epsilon <= SEEN else "beyond what is seen (20): hardly a promise"
    if delta == 0:
        failure = "none: δ = 0"
    elif statement["original"]:
        failure = f"no sudden failure: accounted as {shown_original(statement)} before any δ was chosen"
    else:
        failure = f"(ε, δ) alone: with probability {delta:.3g} nothing is promised"
    total = statement["running_total"]
    other = "a budget ledger adds up the releases that are booked in it: see the running total" if total else ""
    return [
        Hazard("Large ε", f"ε = {epsilon:.4g}: {size}"),
        Hazard("δ as a catastrophe; large δ on conversion", failure),
        Hazard("Comparing different δ or units", f"{_at_other_deltas(statement)}; the unit stands beside it"),
        Hazard("Other releases of the same data", other, "" if total else "Other releases about these people:"),
    ]


def _at_other_deltas(statement: Mapping[str, Any]) -> str:
    known = [at for at, value in statement["epsilon_at"].items() if value is not None]
    curve = " and the curve above" if len(known_points(statement["curve"])) > 1 else ""
    return f"ε at δ = {', '.join(known)}{curve}" if known else "no ε at another δ is known"


def known_points(curve: Sequence[Sequence[float | None]]) -> list[tuple[float, float]]:
    """The points (δ, ε) where ε has a bound."""
    return [(at, value) for at, value in curve if at is not None and value is not None]


def _about_data(statement: Mapping[str, Any]) -> list[Hazard]:
    if statement["unit"] == ONE_RECORD:
        unit = "one record: somebody with several records is protected like a group of as many"
    else:
        unit = f"{statement['unit']}, at most {statement['max_records']} of them counted"
    clipped = "C = 1: each unit has one record"
    if statement["unit"] != ONE_RECORD:
        clipped = f"{max_records_from(statement)}; {statement['clip']}"
    return [
        Hazard("Unit that does not meet the threat", unit, "Why this unit fits:"),
        Hazard("Bounds, bins or categories from the data", bounds_from(statement)),
        Hazard("Contribution bounds cost noise and bias", clipped),
        Hazard("Unstructured data without a unit", texts_released(statement)),
    ]


def _about_building(statement: Mapping[str, Any]) -> list[Hazard]:
    noise = (
        "noise on a lattice" if statement["noise_source"].startswith("the operating") else "A FIXED SEED: no protection"
    )
    version, others = statement["versions"].get("pipeline", "?"), said_not_ours(statement.get("not_ours"))
    tested = f"pipeline {version}; its known faults are told by verify (SECURITY.md)"
    tested += f". Its tests and audit do NOT cover: {'; '.join(others)}" if others else ""
    return [
        Hazard("Untested implementation", tested, "Who examined these parts:" if others else ""),
        Hazard("Side channels", f"{noise}; running time and refusals to run are not covered (PRIVACY.md)"),
        Hazard("Models that saw rows", models_that_saw_rows(statement)),
        Hazard("Bias against small groups", "the noise of every cell stands in marginals/; small counts suffer most"),
        Hazard("Bias by rounding to counts", "the noisy answers, below 0 too, lie beside the table (measurements/)"),
        Hazard("Budget of live queries", "one release; nobody queries the rows"),
    ]


def _about_people() -> list[Hazard]:
    return [
        Hazard("Trust in the curator", "", "Who may see the rows and internal/:"),
        Hazard("Breach of the raw data", "", "How the rows are kept, and until when:"),
        Hazard("Collection", "", "On what ground they were collected:"),
    ]


def shown_original(statement: Mapping[str, Any]) -> str:
    """μ or ρ in words; empty where the accountant has neither."""
    original = statement["original"]
    if "mu" in original:
        return f"μ = {original['mu']:.6g} (Gaussian differential privacy)"
    if "rho" in original:
        return f"ρ = {original['rho']:.6g} (zero-concentrated differential privacy)"
    return ""
