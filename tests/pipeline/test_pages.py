"""Every page has one design, holds texts as texts, and draws with one chart module."""

import math
import re
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError

from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements, NoisyMarginal
from mechanisms.public.text_table import lined_up, markdown
from pipeline.report.answer_noise import losses_of_bounds, signal_to_noise, size_bars
from pipeline.report.charts import Line, Place, bars, heat, lines, place_map
from pipeline.report.page import Card, Gauge, Page, Section, Table, chart_style, number, rendered
from pipeline.report.scale import ChartAxis, Scale
from pipeline.report.table_sections import columns_section
from pipeline.sweeps.sweep_page import panels, render, table_section
from tests.pipeline.conftest import command, people

ROOT = Path(__file__).parents[2]
TEMPLATES = ROOT / "pipeline" / "report" / "templates"
HOSTILE = """<script>alert(1)</script>{{ 7919*7907 }}{% raw %}"><img src=x onerror='1'>&amp;"""


def assert_is_text(page: str, *, times: int) -> None:
    """The hostile text stands on the page so often as text, and nowhere as a tag or a template."""
    assert not re.search(r"<(script|img)", page)
    assert unescape(page).count("{{ 7919*7907 }}") >= times
    assert "62615533" not in unescape(page)
    assert unescape(page).count("onerror='1'") == unescape(page).count("{{ 7919*7907 }}")


def test_hostile_names_and_values_are_text_in_every_part_of_a_page():
    table = table_section(HOSTILE, HOSTILE, Table((HOSTILE, "n"), ((HOSTILE, 1.0),)), HOSTILE)
    columns = {"name": HOSTILE, "kind": HOSTILE, "values": 1, "tvd": 0.5, "real": [1.0], "synthetic": [0.5]}
    sections = [table, columns_section([columns | {"labels": [HOSTILE]}])]
    page = Page(HOSTILE, HOSTILE, sections, facts=[(HOSTILE, HOSTILE)], warnings=[HOSTILE], banner=HOSTILE)
    assert_is_text(page.as_html(), times=12)


@pytest.mark.parametrize(
    "drawing",
    [
        bars([HOSTILE], [1.0], [0.5]),
        heat([HOSTILE], [HOSTILE], [[1.0]], high=1.0, label=HOSTILE),
        lines([Line("c0", HOSTILE, [(1, 1), (2, 2)], notes=[HOSTILE])], ChartAxis.linear([1, 2], HOSTILE),
              ChartAxis.linear([1]), label=HOSTILE),
        place_map([Place(HOSTILE, 1.0, point=(0, 0)), Place(HOSTILE, None, rings=[[(1, 1), (2, 2), (1, 2)]])],
                  low=0, high=1, label=HOSTILE),
        panels([Card(HOSTILE, bars(["a"], [1.0], [1.0]), HOSTILE)], [("c0", HOSTILE)], across=1, label=HOSTILE),
    ],
    ids=["bars", "heat", "lines", "map", "panels"],
)  # fmt: skip
def test_hostile_names_are_text_in_every_chart(drawing):
    text = drawing.as_file(chart_style())
    assert not re.search(r"<(script|img)", text)
    assert "{{ 7919*7907 }}" in unescape(text)
    tags = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(text).iter()}
    assert tags <= {"svg", "style", "g", "title", "text", "rect", "path", "circle", "polyline", "polygon"}


def test_hostile_columns_and_values_are_text_in_a_whole_report(town):
    people(200).rename(columns={"job": HOSTILE}).replace("clerk", f"v{HOSTILE}").to_csv("odd.csv", index=False)
    quoted = HOSTILE.replace("'", "''")
    schema = (town / "town.yaml").read_text().replace("job:", f"'{quoted}':").replace("clerk", f"'v{quoted}'")
    (town / "odd.yaml").write_text(schema)
    tables = ["real=odd.csv", "synthetic=odd.csv", "schema=odd.yaml", "metrics=all"]
    assert command("score", *tables, "report=odd.html", "output=odd.json") == 0
    page = (town / "odd.html").read_text()
    assert not re.search(r"<(script|img)", page)
    assert unescape(page).count("{{ 7919*7907 }}") > 8 and unescape(page).count(f"v{HOSTILE}") >= 1


def test_hostile_jobs_and_errors_are_text_on_the_page_of_a_sweep(tmp_path):
    inside = tmp_path / HOSTILE.replace("/", "") / "internal"
    inside.mkdir(parents=True)
    facts = {"job": ["a", HOSTILE], "metric": ["MGD", None], "private": [True, None], "seed": None, "epsilon": 1.0}
    facts |= {"spent_epsilon": 1.0, "spent_delta": 0.0, "status": ["done", "failed"], "data": HOSTILE, "goal": "low"}
    facts |= {"method": HOSTILE, "score": [0.1, None], "floor": None, "seconds": 1.0, "memory_mb": 1.0}
    facts["error"] = HOSTILE
    pd.DataFrame(facts).to_parquet(inside / "results.parquet")
    assert_is_text(render([inside.parent]).read_text(), times=8)
    drawn = render([inside.parent], tmp_path / "curves.svg").read_text()
    assert not re.search(r"<(script|img)", drawn)
    assert ElementTree.fromstring(drawn).tag.endswith("svg")


def test_no_python_file_writes_html_and_no_template_trusts_a_text():
    tag = re.compile(r"<(html|head|body|div|span|section|table|tr|th|td|p|ul|li|h\d|details|svg|g|text|path|rect)[ >]")
    assert tag.search('f"<td class={name}>"')
    for path in sorted((ROOT / "pipeline").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        assert not tag.search(text), path
        assert not re.search(r"import escape|html\.escape|Markup\(", text), path
    templates = [p for p in TEMPLATES.rglob("*") if p.is_file()]
    assert len(templates) > 15
    for path in templates:
        assert not re.search(r"\|\s*safe|autoescape|<script|url\(|@import|https?://", path.read_text()), path


def test_all_pages_that_saw_raw_rows_share_one_stylesheet_and_say_so():
    page = Page("a", "b", [table_section("t", "T", Table(("x",), ((1,),)))]).as_html()
    assert rendered("page.css") in page and chart_style() in page
    assert page.index("NOT PRIVATE") < page.index("<h1>")


def test_sections_fold_name_what_may_be_anything_and_lead_back_up():
    told = Table(("marginal", "at most"), [(str(i), 0.5) for i in range(20)])
    shown = {"decided": "", "related": "", "notes": (), "anything": ["a × b"], "worst": told, "first": 15}
    page = Page("t", "s", [Section("bounds", "How wrong", shown)]).as_html()
    assert '<details class="fold"><summary><h2>How wrong</h2></summary>' in page
    assert '<nav id="sections"' in page and 'href="#sections"' in page
    assert "1 marginals of which nothing is known" in page and "a × b" in page and "5 more marginals" in page


def test_a_name_that_a_template_does_not_know_is_an_error_and_not_an_empty_place():
    with pytest.raises(UndefinedError):
        rendered("seen_raw_rows.html.j2")


def test_numbers_of_a_table_stand_right_and_rows_must_fit_their_head():
    table = Table(("name", "n", "share", "bar"), (("a", 1, "50%", Gauge(0.5)), ("b", None, "1%", Gauge(1.0))))
    assert table.right == (False, True, True, False)
    assert table.parted(1)[1].rows == (("b", None, "1%", Gauge(1.0)),)
    with pytest.raises(ValueError, match="as long as its head"):
        Table(("a", "b"), ((1,),))
    shown = {None: "", math.nan: "", 0: "0", 1234: "1,234", 0.00001: "1e-05", 1234.5: "1,234", "x": "x"}
    assert {value: number(value) for value in shown} == shown


numbers = st.floats(1e-6, 1e6)


@given(numbers, numbers, numbers, st.booleans())
def test_a_scale_keeps_order_and_stays_between_its_ends(low, high, value, logarithmic):
    low, high = sorted((low, high))
    if high / low < 1.001:
        high = low * 2
    scale = Scale(low, high, 200.0, 10.0, logarithmic)
    assert (scale.at(low), scale.at(high)) == (200.0, pytest.approx(10.0))
    assert 10.0 - 1e-9 <= scale.at(value) <= 200.0
    assert scale.at(value) >= scale.at(value * 1.5) - 1e-9
    assert scale.at(-1.0) == 200.0


@given(st.lists(numbers, min_size=1, max_size=8), st.sampled_from(["linear", "logarithmic_over"]))
def test_an_axis_holds_its_values_and_its_ticks(values, kind):
    axis = getattr(ChartAxis, kind)(values)
    assert axis.low < axis.high
    assert all(axis.low * (1 - 1e-9) <= v <= axis.high * (1 + 1e-9) for v, _ in axis.ticks)
    assert max(values) <= axis.high * (1 + 1e-9)
    assert axis.low <= min(values)
    assert 1 <= len(axis.ticks) <= 9


def test_signal_to_noise_is_that_of_the_released_answers():
    strong = NoisyMarginal(("a",), Identity(4), np.array([100.0, 3.0, -7.0, 5.0]), "gaussian", 2.0, "0")
    weak = NoisyMarginal(("b",), Identity(2), np.array([1.0, -1.0]), "gaussian", 2.0, "1")
    answers = Measurements(Domain((Attribute("a", 4), Attribute("b", 2))), (strong, weak))
    assert signal_to_noise(answers) == [(weak, 0.5, 0.0), (strong, 27.0, 0.5)]


def test_what_a_bound_loses_is_counted_over_records_and_units():
    losses = losses_of_bounds([(1, 6), (4, 1), (30, 1)], own=4)
    assert set(losses) == {1, 2, 3, 4, 5, 10, 20, 50, 100}
    assert losses[4] == (pytest.approx(26 / 40), 1 / 8)
    assert losses[50] == (0.0, 0.0)
    assert size_bars([(1, 6), (24, 2), (30, 1), (49, 1), (50, 3)]) == {"1": 6, "24": 2, "25+": 2, "50+": 3}


def test_a_map_of_points_and_one_of_areas_shade_alike():
    def shades(places):
        drawing = place_map(places, low=0.0, high=1.0)
        return [e.get("fill-opacity") for e in drawing.root.iter() if e.get("fill-opacity")]

    corners = [(0.0, 50.0), (1.0, 50.0), (1.0, 51.0)]
    points = [Place(str(v), v, point=p) for v, p in zip((0.0, 0.5, 1.0), corners, strict=True)]
    areas = [Place(str(v), v, rings=[corners]) for v in (0.0, 0.5, 1.0)]
    assert shades(points) == shades(areas) == ["0.06", "0.53", "1"]
    assert place_map([Place("nowhere", 1.0)], low=0.0, high=1.0) is None


def test_text_tables_line_up_and_markdown_keeps_every_cell():
    rows = [["job", "MGD"], ["a b", "0.5"], ["c", "12.25"]]
    assert lined_up(rows) == ["job    MGD", "a b    0.5", "c    12.25"]
    assert markdown(rows[0], rows[1:]) == ["| job |   MGD |", "| --- | ----: |", "| a b |   0.5 |", "| c   | 12.25 |"]
    assert markdown(["a"], []) == ["| a  |", "| -- |"]


def test_nothing_is_drawn_of_nothing_and_the_share_of_all_other_values_is_written_and_not_drawn_at_another_length():
    assert "<svg" not in Page("t", "s", [columns_section([])]).as_html() and Card("t", None).body is None
    text = bars(["a", "7 others"], [0.4, 0.6], [0.2, 0.8]).__html__()
    assert ">60.0%<" in text and ">80.0%<" in text
    assert text.count("<rect") == 2
