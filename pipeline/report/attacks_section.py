"""The section about attacks: what each wins on training units, beside its control group and what ε allows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pipeline.pages.page import Cell, Table

#: Metrics whose details are a risk of two success rates.
RISKS = {"singling_out": "singling out", "linkage": "linkage of two halves of a record"}
#: Columns whose inference is listed, those at most risk; all are in scores.json.
COLUMNS = 20


@dataclass(frozen=True)
class AttacksSection:
    """Risks of guesses, and how well members are told from others.

    Attributes:
        risks, membership: a row for each attack; empty where none was computed.
        unit: whom membership inference acts on.
    """

    name: ClassVar[str] = "attacks"
    title: ClassVar[str] = "Attacks"
    template: ClassVar[str] = "sections/attacks.html.j2"
    risks: Table
    membership: Table
    unit: str


def attacks_section(metrics: Mapping[str, Any]) -> AttacksSection | None:
    """From the metrics of scores.json; None where no attack has a score."""
    scored = {name: m["details"] for name, m in metrics.items() if m["score"] is not None and m["details"]}
    rows = [_risk(title, scored[name]) for name, title in RISKS.items() if name in scored]
    if "attribute_inference" in scored:
        columns = scored["attribute_inference"]["columns"]
        order = sorted(columns, key=lambda name: -columns[name]["risk"])
        rows += [_risk(f"inference of {name}", columns[name]) for name in order[:COLUMNS]]
    member = scored.get("membership_inference")
    told = [] if member is None else _told(member)
    if not rows and not told:
        return None
    return AttacksSection(
        risks=Table(("attack", "risk", "95 % interval", "right on training units", "on the holdout's"), rows),
        membership=Table(("membership by", "AUC", "95 % interval", "advantage", "95 % interval"), told),
        unit="" if member is None else member["unit"],
    )


def _risk(title: str, part: Mapping[str, Any]) -> tuple[Cell, ...]:
    rates = [f"{side['successes']:,} of {side['attacks']:,}" for side in (part["training"], part["control"])]
    return (title, f"{part['risk']:.1%}", f"{part['low']:.1%} to {part['high']:.1%}", *rates)


def _told(member: Mapping[str, Any]) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = []
    for name, attack in member["attacks"].items():
        parts = (attack["auc"], attack["advantage"])
        cells = [x for p in parts for x in (f"{p['value']:.3f}", f"{p['low']:.3f} to {p['high']:.3f}")]
        rows.append((name, *cells))
    rows.append(("guessing", "0.500", "", "0.000", ""))
    if bound := member.get("bound"):
        allowed = f"at most, by ε = {bound['epsilon']:.4g}, δ = {bound['delta']:.3g}"
        rows.append((allowed, f"{bound['auc']:.3f}", "", f"{bound['advantage']:.3f}", ""))
    return rows
