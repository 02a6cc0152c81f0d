"""The first section of a report: privacy against a holdout, in one card."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pipeline.pages.page import Cell, Table

#: What each verdict means, in plain words.
MEANING = {
    "passed": "Training rows are not repeated, and not resembled, more than real rows that were set aside.",
    "failed": "The synthetic table knows its training rows better than real rows that were set aside.",
    "not judged": "Nothing is said for or against.",
}
STYLES = {"passed": "passed", "failed": "failed", "not judged": "soft"}


@dataclass(frozen=True)
class PrivacySection:
    """The verdict, its reason, and the figures behind it.

    Attributes:
        style: of the verdict's word. figures: empty without a holdout.
    """

    name: ClassVar[str] = "privacy"
    title: ClassVar[str] = "Privacy against a holdout"
    template: ClassVar[str] = "sections/privacy.html.j2"
    verdict: str
    style: str
    why: str
    meaning: str
    figures: Table


def privacy_section(privacy: Mapping[str, Any]) -> PrivacySection:
    """From the part `privacy` of scores.json."""
    return PrivacySection(
        verdict=privacy["verdict"],
        style=STYLES[privacy["verdict"]],
        why=privacy["why"],
        meaning=MEANING[privacy["verdict"]],
        figures=Table(("", "rows", "share", "95 % interval", "compare with"), _figures(privacy)),
    )


def _figures(privacy: Mapping[str, Any]) -> list[tuple[Cell, ...]]:
    names = {
        "training_rows_in_the_synthetic_table": ("training rows that stand in the synthetic table", "the next line"),
        "holdout_rows_in_the_synthetic_table": ("holdout rows that stand in the synthetic table", "nature alone"),
        "synthetic_rows_that_equal_a_training_row": ("synthetic rows that equal a training row", "the next line"),
        "holdout_rows_that_equal_a_training_row": ("holdout rows that equal a training row", "nature alone"),
    }
    rows: list[tuple[Cell, ...]] = []
    for key, (name, against) in names.items():
        if key in privacy:
            part = privacy[key]
            rows.append(
                (name, f"{part['count']:,} of {part['of']:,}", f"{part['share']:.2%}", _interval(part), against)
            )
    if (near := privacy.get("nearest_to_a_training_row")) is not None:
        asked = privacy["rows_in_distances"]["synthetic"]
        chance = f"{near['expected']:.1%} by chance, up to {near['allowed']:.1%} in a release of ε = 1"
        rows.append(
            ("synthetic rows nearest to a training row", f"{asked:,}", f"{near['share']:.1%}", _interval(near), chance)
        )
    return rows


def _interval(part: Mapping[str, float]) -> str:
    return f"{part['low']:.2%} to {part['high']:.2%}"
