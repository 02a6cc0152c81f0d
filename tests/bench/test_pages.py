"""Figures of BENCHMARKS.md stand on the pages that it links to, and those of the pages in the runs that are kept."""

import csv
import gzip
import json
import re
from pathlib import Path
from statistics import fmean

import pytest

from tests.bench.grid.page import page
from tests.bench.tables_apart import BOARD, DATA, parted, table_under

ROOT = Path(__file__).parents[2]
OVERVIEW = (ROOT / "BENCHMARKS.md").read_text(encoding="utf-8")
PAGES = ROOT / "docs/benchmarks"
NUMBER = r"(?<![\w.,])\d*[.,]?\d+(?:[.,]\d+)*(?![\w.])"


def numbers(text: str) -> set[str]:
    """As they are written but for a 0 before the point and behind the last digit."""
    return {n.lstrip("0").rstrip("0") if "." in n else n for n in re.findall(NUMBER, text)}


def runs(name: str) -> list[dict[str, str]]:
    with (PAGES / DATA / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("heading", re.findall(r"(?m)^##? .+", OVERVIEW))
def test_figures_of_the_overview_stand_on_the_pages_of_their_section(heading):
    section = OVERVIEW.split(heading + "\n")[1].split("\n## ")[0]
    text = section if heading.startswith("##") else OVERVIEW  # the first table is of all sections
    linked = [ROOT / link for link in re.findall(r"\]\((docs/benchmarks/[^)]+\.md)\)", text)]
    assert linked
    board = " ".join(" ".join(row) for row in table_under(OVERVIEW, BOARD))  # it stands here alone: the next test
    there = numbers(" ".join([heading, board, *(path.read_text(encoding="utf-8") for path in linked)]))
    missing = numbers(" ".join(line for line in section.split("\n") if line.startswith("|"))) - there
    assert not missing, f"{heading}: {sorted(missing)} stand on none of {[str(p) for p in linked]}"


def test_the_board_holds_the_means_of_its_runs_and_the_published_scores():
    head, *rows = table_under(OVERVIEW, BOARD)
    for row in (dict(zip(head, cells, strict=True)) for cells in rows):
        own = [r for r in runs("board.csv") if r["dataset"] == row["table"] and float(r["epsilon"]) == float(row["ε"])]
        assert len(own) == 5
        assert fmean(float(r["score"]) for r in own) == pytest.approx(float(row["we get"]), abs=0.06)
        assert {r["reported"] for r in own} == {row["source says"]}


def kept(name: str) -> str:
    with gzip.open(PAGES / DATA / name, "rt", encoding="utf-8") as file:
        return page([json.loads(line) for line in file])


def test_the_page_of_own_tables_is_that_of_its_runs(tmp_path):
    assert parted(kept("runs.jsonl.gz"), tmp_path) == (PAGES / "own-tables.md").read_text(encoding="utf-8")
    for name in ("cells.csv", "troubles.csv"):
        assert (tmp_path / name).read_text(encoding="utf-8") == (PAGES / DATA / name).read_text(encoding="utf-8")


def test_regrets_of_the_draw_of_public_tables_are_those_of_its_runs():
    shown = (PAGES / "untuned-tables.md").read_text(encoding="utf-8")
    made = kept("draw.jsonl.gz")
    for heading in ("## Regrets over all cells", "## Mean regrets at each ε"):
        for row in table_under(made, heading):
            assert "| " + " | ".join(row) + " |" in shown


@pytest.mark.parametrize(
    ("title", "column"),
    [
        ("same team", "same_team"),
        ("next season", "next_year"),
        ("likeness of at-bats", "likeness_ab"),
        ("years from", "years"),
    ],
)
def test_figures_of_players_are_means_of_their_runs(title, column):
    lines = (PAGES / "persons.md").read_text(encoding="utf-8").split("\n")
    cells = [c.strip() for c in next(line for line in lines if line.startswith(f"| {title}")).strip("|").split("|")]
    for epsilon, cell in zip(("0.1", "1", "10"), cells[3:6], strict=True):
        own = [
            r
            for r in runs("persons.csv")
            if (r["epsilon"], r["max_records"], r["with_persons"]) == (epsilon, "20", "yes")
        ]
        assert fmean(float(r[column]) for r in own) == pytest.approx(float(cell), rel=0.01)
