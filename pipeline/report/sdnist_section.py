"""The section of SDNist's score: its floor, the worst columns and areas, and real records that are seen again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pipeline.pages.page import Table

#: Columns and areas that are listed, the worst first.
LISTED = 10


@dataclass(frozen=True)
class SdnistSection:
    """SDNist's score of the pairs of columns, in each area.

    Attributes:
        score: of 1,000; pairs: how many; by: the column that is added to each; empty where none is.
        floor: what samples of the real rows, and independent columns, score.
        columns, areas: the worst ones.
        matches: real records that the synthetic table shows, in words.
    """

    name: ClassVar[str] = "sdnist"
    title: ClassVar[str] = "SDNist"
    template: ClassVar[str] = "sections/sdnist.html.j2"
    score: float
    pairs: int
    by: str
    floor: Table
    columns: Table
    areas: Table
    matches: list[str]


def sdnist_section(metric: Mapping[str, Any]) -> SdnistSection:
    """From the metric's part of scores.json, where it has a score."""
    details = metric["details"]
    floor = [(f"{each['share']:.0%} of the real rows", each["score"]) for each in details["subsamples"]]
    floor += [("this table", metric["score"]), ("independent columns", details["independent"])]
    floor.sort(key=lambda row: -row[1])
    areas = [(each["area"], each["score"], each["baseline"]) for each in details["areas"][:LISTED]]
    return SdnistSection(
        metric["score"],
        details["pairs"],
        details["by"],
        Table(("table", "score"), floor),
        Table(("column", "score"), [(each["column"], each["score"]) for each in details["columns"][:LISTED]]),
        Table((details["by"], "score", "40 % of the real rows"), areas),
        _in_words(details["matches"]),
    )


def _in_words(found: Mapping[str, Any]) -> list[str]:
    lines = [f"{found['exact']:,} of the {found['unique']:,} real records that no other one equals stand in the table."]
    if found["quasi"]:
        alike = "" if found["agreeing"] is None else f"; they agree in {found['agreeing']:.0%} of the other columns"
        lines.append(f"{found['apparent']:,} are unique in both by {', '.join(found['quasi'])}{alike}.")
    return lines
