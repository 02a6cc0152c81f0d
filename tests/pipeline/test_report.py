"""The report: one file, no network, no script; what it says follows from the run's own files; a browser agrees."""

import html
import json
import re
import shutil
import stat
from pathlib import Path

import pytest

from tests.pipeline.browser import CHROMIUM, browsed
from tests.pipeline.conftest import PAIRS, TOWN, command, done_once, people
from tests.pipeline.test_statement import Page

UNIT = ["privacy.unit=person", "privacy.max_records=2"]
MAP = ["evaluation.time=age", "evaluation.segment=sex", "evaluation.kind=job"]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a run that has every part; whoever changes what lies around it does so in a copy."""
    settings = [*TOWN, *PAIRS, *UNIT, *MAP, "evaluation.holdout=0.3", "evaluation.metrics=all", "hydra.run.dir=out"]
    return done_once(tmp_path_factory.mktemp("report"), "run", *settings) / "out" / "internal" / "report.html"


def test_a_report_is_one_closed_file_without_scripts_under_a_banner(report):
    page = Page(report.read_text(encoding="utf-8"))
    assert not page.open
    assert "script" not in page.tags
    assert all(r.startswith("#") or r == "data:," for r in page.loads)
    assert "NOT PRIVATE" in report.read_text(encoding="utf-8")
    assert stat.S_IMODE(report.stat().st_mode) == 0o600


def test_a_report_holds_every_part_that_its_run_knows(report):
    text = report.read_text(encoding="utf-8")
    assert "of a pair's records" in html.unescape(text) and "smaller privacy.max_records (if above 1)" in text
    parts = [
        *("privacy", "attacks", "scores", "promise", "noise", "bounds", "sdnist", "axes", "accuracy", "validity"),
        *("numbers", "correlation", "pair-maps", "dependence", "densities", "columns", "pairs", "mgd", "map"),
        *("distances", "convergence", "units"),
    ]
    assert re.findall(r'<section id="([\w-]+)"', text) == parts
    assert Page(text).tags["svg"] > 8
    assert re.search(r"<td>set aside</td><td>town.csv</td>", text)
    assert (report.parent / "scores.csv").read_text().startswith("not_private,table,part,of,figure,value\nNOT private,")
    assert "Choosing C from this picture costs privacy" in text
    assert "set aside with probability 0.3" in text


@pytest.mark.parametrize(
    ("places", "shapes"),
    [
        ("coordinates: {baker: [1, 50], smith: [2, 51], clerk: [2, 50]}", "circle"),
        ("geojson: {areas: {baker: [0 0 1 0 1 1], smith: [1 1 2 1 2 2]}}", "path"),
    ],
)
def test_the_map_is_drawn_where_the_schema_knows_the_places(town, places, shapes):
    schema = town / "town.yaml"
    schema.write_text(schema.read_text().replace("other: other}", f"other: other, {places}}}"))
    people(300, seed=2).to_csv("made.csv", index=False)
    roles = ["evaluation.time=sex", "evaluation.segment=job", "evaluation.kind=age", "metrics=tvd"]
    tables = ["real=town.csv", "synthetic=made.csv", "schema=town.yaml", "output=scores.json"]
    assert command("score", *tables, *roles, "report=map.html") == 0
    drawn = (town / "map.html").read_text().split('<section id="map">')[1].split("</section>")[0]
    assert "smith:" in drawn and drawn.count("<figure>") == 2
    assert drawn.count(f"<{shapes} ") >= 6
    assert not Page((town / "map.html").read_text()).open


def test_the_convergence_of_a_model_is_drawn_and_kept_internal(town):
    assert command("run", *TOWN, "synthesis=pgm", "evaluation.metrics=[tvd]", "hydra.run.dir=out") == 0
    record = json.loads((town / "out" / "internal" / "convergence.json").read_text())
    assert record["kind"] == "loss" and len(record["losses"]) > 1 and record["floor"] > 0
    assert "noise floor" in (town / "out" / "internal" / "report.html").read_text()
    assert not list((town / "out" / "release").rglob("convergence*"))


def test_a_metric_that_cannot_be_computed_says_why_in_the_report_and_touches_no_other(report):
    scores = json.loads((report.parent / "scores.json").read_text())
    assert scores["metrics"]["gini"]["score"] is None
    assert "evaluation.income=COLUMN" in scores["metrics"]["gini"]["reason"]
    assert scores["metrics"]["ncript"]["score"] is not None
    drawn = report.read_text().split('<section id="map">')[1].split("</section>")[0]
    for told in ("The losses of a place over time", "Which record types cause the loss"):
        assert told in drawn
    courses = scores["metrics"]["ncript"]["details"]["temporal"]
    assert drawn.count("<polyline") >= 6 * len(courses) > 0
    assert "evaluation.income=COLUMN" in report.read_text()


def test_report_renders_again_from_the_run_alone(report, folder, capsys):
    shutil.copytree(report.parents[1], "out")
    again = Path("out/internal/report.html")
    again.unlink()
    assert command("report", "out") == 0
    assert again.read_bytes() == report.read_bytes()
    assert command("report", "out", "output=elsewhere.html") == 0
    assert Path("elsewhere.html").exists()


def test_a_report_of_an_empty_synthetic_table_is_made_too(town):
    people(600).head(0).to_csv("none.csv", index=False)
    tables = ["real=town.csv", "synthetic=none.csv", "schema=town.yaml"]
    assert command("score", *tables, "report=none.html", "output=none.json") == 0
    assert "no records" in (town / "none.html").read_text()


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_browser_shows_the_report_without_complaint_and_without_a_page_wider_than_its_window(report, tmp_path, dark):
    page = report.read_text(encoding="utf-8")
    for width, pictures in browsed([page], tmp_path, dark=dark).items():
        assert pictures == page.count("<svg"), width
