"""The section that says whether synthetic values could be real ones, and which rules of the schema hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pipeline.pages.page import Cell, Table

#: Shares of missing values that differ by less are alike.
GAP = 0.005


@dataclass(frozen=True)
class ValiditySection:
    """Values and gaps of columns, ids, and rules; a table without rows is left out.

    Attributes:
        columns: those with something to see.
        sound: how many others there are, whose values are all valid and whose gaps are alike.
    """

    name: ClassVar[str] = "validity"
    title: ClassVar[str] = "Validity"
    template: ClassVar[str] = "sections/validity.html.j2"
    rules: Table
    keys: Table
    columns: Table
    sound: int


def validity_section(drawn: Mapping[str, Any]) -> ValiditySection | None:
    """From the parts `rules`, `keys` and `valid` of figures.json; None where there is none of them."""
    rules = [(r["rule"], _percent(r["real"]), _percent(r["synthetic"])) for r in drawn.get("rules", ())]
    keys = [
        (k["column"], _percent(k["real"]), _percent(k["synthetic"]), _percent(k["real_ones"]))
        for k in drawn.get("keys", ())
    ]
    every: Sequence[Mapping[str, Any]] = drawn.get("valid", ())
    listed = [c for c in every if not _sound(c)]
    columns: list[tuple[Cell, ...]] = [
        (c["column"], c["kind"], *map(_percent, c["missing"]), _percent(c["allowed"]), c["how"]) for c in listed
    ]
    if not (rules or keys or every):
        return None
    return ValiditySection(
        rules=Table(("rule", "real rows that break it (by their bins)", "synthetic rows that break it"), rules),
        keys=Table(("id", "distinct real ones", "distinct synthetic ones", "synthetic ones that are real"), keys),
        columns=Table(("column", "kind", "missing, real", "missing, synthetic", "valid", "what is valid"), columns),
        sound=len(every) - len(listed),
    )


def _sound(column: Mapping[str, Any]) -> bool:
    """Whether all values are valid and as many are missing as in the real table, to half a per cent of the records."""
    real, made = column["missing"]
    return column["allowed"] in (None, 1.0) and abs(real - made) <= GAP


def _percent(share: float | None) -> str:
    """Two digits; a share below 1 never reads as all of it, nor one above 0 as nothing."""
    if share is None:
        return ""
    text = f"{share:.2%}"
    return {("100.00%", True): "> 99.99%", ("0.00%", True): "< 0.01%"}.get((text, share not in (0.0, 1.0)), text)
