"""Every page: one file of one design, which holds texts as texts; the report, its first screen and its parts."""

import html
import json
import math
import re
import shutil
import stat
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError

import pipeline
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements, NoisyMarginal
from mechanisms.public.schema.table_schema import parse_schema
from mechanisms.public.tables.value_summaries import summaries
from mechanisms.public.text_table import lined_up, markdown, notebook_table
from pipeline.report import run_page
from pipeline.report.answer_noise import losses_of_bounds, signal_to_noise, size_bars
from pipeline.report.charts import Line, Place, bars, heat, lines, place_map
from pipeline.report.page import (
    Card,
    Gauge,
    Page,
    Section,
    Table,
    chart_style,
    header_cards,
    in_short,
    not_computed,
    number,
    rendered,
)
from pipeline.report.scale import ChartAxis, Scale
from pipeline.report.score_sections import numbers_lines, numbers_section
from pipeline.report.table_sections import accuracy_section, columns_section, dependence_section
from pipeline.sweeps.sweep_page import panels, render, table_section
from tests.pipeline.browser import CHROMIUM, browsed
from tests.pipeline.conftest import PAIRS, TOWN, command, done_in, done_once, people, reply, write_town
from tests.pipeline.test_statement import Page as Parsed
from tests.pipeline.test_sweep import spent
from tests.public.table_worlds import source

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


def test_a_heat_map_writes_the_beginning_of_a_long_range_and_shows_all_of_it():
    rows = ["2023-12-01 … 2023-12-31", "2024-12-30 to 2024-12-31", "Returned to sender twice"]
    drawn = heat(rows, ["28 … 57.7"], [[1.0]] * 3, high=1.0).as_file(chart_style())
    assert ">2023-12-01 …</text>" in drawn and ">28 … 57.7</text>" in drawn
    assert ">2024-12-30 …</text>" in drawn and ">Returned to sende…</text>" in drawn
    assert ">2023-12-01 … 2023-12-31, 28 … 57.7: 1</title>" in drawn


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


@pytest.mark.slow
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
    place, told = tmp_path / HOSTILE.replace("/", ""), dict.fromkeys(("data", "method", "error"), HOSTILE)
    spent([("a", "MGD", 1.0), (HOSTILE, None, 1.0)], place, private=[True, None], status=["done", "failed"], **told)
    assert_is_text(render([place]).read_text(), times=8)
    drawn = render([place], tmp_path / "curves.svg").read_text()
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


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_town(tmp_path_factory.mktemp("top"))
    people(500, seed=2).to_csv(folder / "made.csv", index=False)
    people(400, seed=3).to_csv(folder / "aside.csv", index=False)
    tables = ["real=town.csv", "synthetic=made.csv", "holdout=aside.csv", "output=scores.json"]
    return done_in(folder, "score", *tables, "report=page.html", "metrics=[tvd,anita_1way,gini,ncript,dependence]")


def test_files_their_rows_and_the_time_stand_on_top(scored):
    top = unescape((scored / "page.html").read_text()).partition("<nav")[0]
    text = re.sub(r"<[^>]+>|\s+", " ", top)
    for line in ("real town.csv 600 5", "synthetic made.csv 500 5", "holdout aside.csv 400 5"):
        assert line in re.sub(r" +", " ", text)
    assert "rows, and so totals, far from the real ones: 500 (real 600)" in text and "means, and so" not in text
    page = unescape((scored / "page.html").read_text())
    assert "What noise hides of a tail, or adds to one," in page and re.search(
        r"nearest to a training row</td>\s*<td[^>]*>of \d", page
    )
    assert re.search(r"scored 20\d\d-\d\d-\d\d \d\d:\d\d UTC; schema: none", text)


def test_each_card_has_its_reference_beneath(scored):
    scores = json.loads((scored / "scores.json").read_text())
    accuracy, privacy, similarity = sorted(header_cards(scores), key=lambda card: card.title)
    assert header_cards(scores).index(privacy) == (2 if privacy.value == "not judged" else 0)
    own, chance = (scores["metrics"]["anita_1way"][k] for k in ("score", "expected"))
    assert accuracy.value == f"{own:.1%}" and f"{chance['value']:.1%}" in accuracy.beneath
    assert accuracy.gauge.mark == chance["value"]
    assert privacy.value == scores["privacy"]["verdict"]
    assert f"{scores['privacy']['holdout_rows_in_the_synthetic_table']['share']:.2%} of the holdout" in privacy.beneath
    assert similarity.value == f"{scores['metrics']['dependence']['score']:.0%}" and similarity.beneath
    page = unescape((scored / "page.html").read_text())
    assert all(card.beneath in page for card in (privacy, accuracy, similarity))


def test_without_accuracies_the_distance_of_pairs_is_the_card_and_nothing_is_invented():
    tvd = {"score": 0.25, "expected": {"value": 0.1}}
    distance, similarity, _ = header_cards({"metrics": {"tvd": tvd, "gini": {"score": None}}})
    assert (distance.title, distance.value) == ("Distance of pairs", "0.2500") and "0.1000" in distance.beneath
    assert (distance.gauge.share, distance.gauge.mark) == (0.75, 0.9)
    assert (similarity.value, similarity.gauge) == ("not computed", None)
    assert [c.value for c in header_cards({"metrics": {}})] == ["not computed", "not computed", "not judged"]


def test_a_card_bears_the_worst_word_in_its_colour_and_marks_what_independent_columns_would_get():
    def part(score, label, honest, poor, note="independent columns"):
        ends = {"honest": {"value": honest, "note": "a second sample"}, "poor": {"value": poor, "note": note}}
        return {"score": score, "reading": {"label": label, **ends}}

    metrics = {"anita_1way": part(0.98, "good", 0.99, 0.0, "no overlap"), "anita_2way": part(0.94, "weak", 0.99, 0.97)}
    every = {"metrics": metrics | {"dependence": part(0.5, "fair", 1.0, 0.0)}}
    card, similarity, _ = header_cards(every)
    said = "In short: single columns are good, pairs are weak."
    assert in_short(every) == said and in_short({"metrics": {}}) == ""
    alike = {n: part(0.98, "good", 0.99, 0.0) for n in ("anita_1way", "anita_2way", "anita_3way")}
    assert in_short({"metrics": alike}) == "In short: single columns, pairs and triples are good."
    far = {"anita_1way": [("b", 0.25), ("a", 0.09)], "anita_2way": [("b × a", 0.5), ("b × c", 0.4)]}
    worst = {n: [{"attributes": a.split(" × "), "tvd": t} for a, t in own] for n, own in far.items()}
    lost = [{"a": "b", "b": "a", "lost": 0.3, "kept": 0.6}, {"a": "b", "b": "c", "lost": 0.26, "kept": 0.7}]
    details = {n: {"worst": worst.get(n), "lost": lost} for n in every["metrics"]}
    assert in_short({"metrics": {n: own | {"details": details[n]} for n, own in every["metrics"].items()}}) == (
        f"{said} Farthest from the real table: b (25% of its records misplaced), b × a (50% of its records misplaced)."
        " Relations of which much is lost: b × a (60% kept)."
    )
    assert (card.value, card.word, card.style) == ("96.0%", "pairs: weak", "failed")
    assert card.words == "mean of single columns 98.0% (good), pairs 94.0% (weak)"
    assert (card.gauge.mark, card.gauge.poor) == pytest.approx((0.99, 0.98))
    assert card.beneath.endswith("would get 99.0%, independent columns 98.0%")
    assert (similarity.value, similarity.word, similarity.style) == ("50%", "fair", "")
    page = Page("t", "s", [], cards=[card, similarity]).as_html()
    assert '<b class="failed">96.0% <small>pairs: weak</small></b>' in page and '<s style="left:98.0%">' in page


def test_what_was_not_computed_is_one_line_at_the_end(scored):
    page = unescape((scored / "page.html").read_text())
    assert page.count("Not computed: ") == 1
    line = re.search(r"Not computed: [^<]*", page.rpartition("</section>")[2])[0]
    assert "ncript (needs evaluation.time=COLUMN, evaluation.segment=COLUMN, evaluation.kind=COLUMN)" in line
    assert "gini (needs evaluation.group=COLUMN" in line
    assert not_computed({"a": {"score": 0.1}}) == ""
    few = {"score": None, "reason": "too few"}
    assert not_computed({"a": few, "b": few}) == "Not computed: a, b (too few)."


def test_of_many_columns_the_worst_are_drawn_and_the_page_says_so():
    shares = {"real": [0.5, 0.5], "synthetic": [0.4, 0.6], "labels": ["a", "b"], "kind": "categorical", "values": 2}
    columns = [{"name": f"c{i}", "tvd": i / 2000, "expected": 0.01, **shares} for i in range(1000)]
    own = {"count": 9, "missing": 0.0, "mean": 1.0, "stddev": 1.0, "quantiles": [1.0] * 5}
    number = {"real": own, "synthetic": own, "mean_standard_error": None}
    numbers = [{"column": f"c{i}", **number} for i in range(1000)]
    sections = [columns_section(columns), accuracy_section(columns, None), numbers_section(numbers)]
    page = Page("t", "s", [s for s in sections if s is not None]).as_html()
    assert "The worst 60 of 1000 columns" in page and "The worst 40 of 1000 columns" in page
    assert "The first 150 of 1,000 columns" in page
    assert "<h3>c999</h3>" in page and "<h3>c0</h3>" not in page
    assert len(page) < 600_000


def test_the_example_of_a_lost_dependence_has_room_beside_the_others_on_a_narrow_page():
    pair = {"a": "x", "b": "y", "real": 0.5, "kept": 0.1, "lost": 0.45}
    change = {"what": "share of y among x that are a long text", "real": 0.5, "synthetic": 0.2}
    section = dependence_section({"lost": [pair | {"change": change}], "score": 0.1, "dependent_pairs": 1, "pairs": 1})
    page = Page("t", "s", [section]).as_html()
    assert ".example td:nth-child(5){min-width:15rem}" in page
    row = page.partition('<div class="example">')[2].partition("</table>")[0].rpartition("<tr>")[2]
    assert change["what"] in row.split("<td")[5]


@pytest.mark.parametrize(("mean", "deviation"), [("2024-03-01", 2.5), ("2024-03-01T08:00:00", 2.5 * 86_400)])
def test_deviations_of_dates_and_of_times_are_in_days_and_say_so(mean, deviation):
    own = {"count": 9, "missing": 0.0, "mean": mean, "stddev": deviation, "quantiles": [mean] * 5}
    lines = numbers_lines([{"column": "c", "real": own, "synthetic": own, "mean_standard_error": deviation}])
    assert [line.count("2.5 days") for line in lines] == [0, 1, 1, 1]


def test_years_among_the_values_of_a_column_have_no_comma_and_amounts_of_five_digits_do():
    own = {"count": 1_200, "missing": 0.0, "mean": 1967.4, "stddev": 39.0}
    own["quantiles"] = [1878, 1936, 1976, 2001, 52_019]
    (_, line) = numbers_lines([{"column": "year", "real": own, "synthetic": None, "mean_standard_error": None}])
    assert line.split()[2:] == ["1,200", "0.0%", "1967", "39", "1878", "1936", "1976", "2001", "52,019"]


def test_outliers_that_are_covered_stand_beside_what_a_second_sample_covers():
    reading = {"honest": {"value": 0.81, "spread": 0.01, "note": "a second sample"}}
    metrics = {"outlier_coverage": {"score": 0.4276, "reading": reading}}
    facts = run_page._facts({"rows": {"real": 5, "synthetic": 5}, "metrics": metrics}, "named")
    assert facts == [("outliers and rare values covered (a second sample: 81%)", "43%")]
    assert run_page._facts({"rows": {}, "metrics": {"outlier_coverage": {"score": None}}}, "named") == []


def test_a_summary_is_what_pandas_says_of_the_values_that_the_schema_places(tmp_path):
    columns = {
        "charge": {"kind": "float", "min": 0, "max": 1000, "bins": {"count": 4}, "strip": ["$"], "missing": ["-1"]},
        "grade": {"kind": "integer", "min": 1, "max": 6},
        "day": {"kind": "date", "min": "2024-01-01", "max": "2024-12-31", "bins": "month"},
        "ward": {"kind": "categorical", "values": ["a", "b"]},
    }
    rng = np.random.default_rng(1)
    charge = rng.gamma(1.5, 300, 500).round(2)
    grade, days = rng.integers(0, 8, 500), pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, 500), "D")
    gaps = rng.random(500) < 0.2
    frame = pd.DataFrame({"charge": charge, "grade": grade, "day": days.strftime("%Y-%m-%d"), "ward": "a"})
    frame["charge"] = np.where(gaps, "-1", [f"${c}" for c in charge])
    frame.to_csv(tmp_path / "t.csv", index=False)
    found = summaries(source(tmp_path / "t.csv"), parse_schema({"columns": columns}, where="t.yaml"))
    assert set(found) == {"charge", "grade", "day"}
    counted = pd.Series(charge[~gaps]).clip(0, 1000)
    assert found["charge"]["beyond"] == pytest.approx((charge[~gaps] > 1000).mean()) and found["day"]["beyond"] == 0
    assert found["grade"]["beyond"] == pytest.approx(((grade < 1) | (grade > 6)).mean())
    assert found["charge"]["count"] == counted.size and found["charge"]["missing"] == pytest.approx(gaps.mean())
    for own, values in ((found["charge"], counted), (found["grade"], pd.Series(grade).clip(1, 6))):
        assert own["mean"] == pytest.approx(values.mean()) and own["stddev"] == pytest.approx(values.std())
        assert own["quantiles"] == pytest.approx(values.quantile([0.01, 0.25, 0.5, 0.75, 0.99]).tolist())
    assert found["day"]["quantiles"][2] == str(pd.Series(days).quantile(0.5).round("D").date())


@pytest.mark.slow
def test_score_and_report_show_both_tables_and_their_correlations_side_by_side(town, capsys):
    assert command("run", *TOWN, "hydra.run.dir=out") == 0
    inside = town / "out" / "internal"
    report = (inside / "report.html").read_text(encoding="utf-8")
    assert "Numbers and dates" in report and f"{people(600).age.mean():.4g}"[:4] in report
    scores = json.loads((inside / "scores.json").read_text(encoding="utf-8"))
    (own,), maps = scores["numbers"], scores["correlations"]
    assert set(maps) == {"rows", "cramers_v"}, "one column of numbers has no other to go with"
    assert maps["rows"]["real"] == 600 and "Cramér's V of any two columns" in unescape(report)
    made = pd.read_csv(town / "out" / "release" / "synthetic.csv")
    assert own["real"]["mean"] == pytest.approx(people(600).age.mean())
    assert own["synthetic"]["mean"] == pytest.approx(made.age.mean()) and own["mean_standard_error"] > 0
    assert len(own["quantile_standard_errors"]) == 5 and own["quantile_standard_errors"][2] > 0
    assert report.count("± noise") >= 1 and "By sex" not in report
    paths = ["real=town.csv", "synthetic=out/release/synthetic.csv", "schema=town.yaml", "report=two.html"]
    shown = reply(capsys, "score", *paths)
    assert "std. dev." in shown.out + shown.err and "Numbers and dates" in (town / "two.html").read_text("utf-8")


def test_what_lies_beyond_the_bounds_is_told_beside_the_figures_that_it_changes(town, capsys):
    (town / "town.yaml").write_text((town / "town.yaml").read_text().replace("max: 99", "max: 60"))
    paths = ["real=town.csv", "synthetic=town.csv", "schema=town.yaml", "report=two.html", "evaluation.metrics=[tvd]"]
    assert command("score", *paths) == 0
    share = (people(600).age > 60).mean()
    said = f"age: {share:.1%} of the real values lie beyond the schema's bounds"
    assert 0.1 < share < 0.9 and said in capsys.readouterr().err
    assert said.replace("'", "&#39;") in (town / "two.html").read_text("utf-8")


@pytest.mark.slow
def test_groups_are_set_side_by_side_with_the_noise_of_their_means(town, capsys):
    asked = ["evaluation.groups=[sex]", "evaluation.pairs=[[sex,age]]", "selection.marginals=[[age,sex]]"]
    assert command("run", *TOWN, *asked, "hydra.run.dir=out") == 0
    scores = json.loads((town / "out" / "internal" / "scores.json").read_text(encoding="utf-8"))
    made, real = pd.read_csv(town / "out" / "release" / "synthetic.csv"), people(600)
    assert [(g["by"], g["group"], g["column"]) for g in scores["groups"]] == [("sex", s, "age") for s in ("f", "m")]
    for group in scores["groups"]:
        for table, frame in (("real", real), ("synthetic", made)):
            ages = frame.age[frame.sex == group["group"]]
            assert group[table]["count"] == ages.size and group[table]["mean"] == pytest.approx(ages.mean())
            assert group[table]["quantiles"][2] == pytest.approx(ages.median())
    report = (town / "out" / "internal" / "report.html").read_text(encoding="utf-8")
    assert "By sex" in report and "sex × age" in report
    drawn = json.loads((town / "out" / "internal" / "figures.json").read_text(encoding="utf-8"))["pair_maps"]
    assert [drawn[0][n] for n in ("a", "b", "why")] == ["sex", "age", "asked for"]
    shares = [(real.sex == s).mean() for s in ("f", "m")]
    assert len(drawn) == 3 and np.array(drawn[0]["real"]).sum(axis=1) == pytest.approx(shares)
    paths = ["real=town.csv", "synthetic=out/release/synthetic.csv", "schema=town.yaml", "evaluation.groups=sex"]
    assert "by sex:" in reply(capsys, "score", *paths).err


@pytest.mark.slow
def test_scores_runs_and_releases_show_themselves_as_small_tables(town):
    done = pipeline.run(pipeline.load_config([*TOWN]), town / "out", quiet=True)
    shown = repr(done.scores)
    verdict = done.scores.privacy.lines
    assert shown.splitlines()[: len(verdict)] == list(verdict)
    table = shown.splitlines()[len(verdict) :]
    assert max(map(len, table)) <= 120 and len(table) == 2 + len(done.scores.outcomes)
    assert f"{done.scores.outcomes['tvd'].score:.4f}" in shown and "NOT private" in shown
    assert repr(done.scores.outcomes["tvd"]) == f"Outcome(tvd: {done.scores.outcomes['tvd'].score:.4f})"
    release = pipeline.load(town / "out" / "release")
    for shown in (done.scores._repr_html_(), done._repr_html_(), release._repr_html_()):
        assert "<table>" in shown and "<script" not in shown and "prefers-color-scheme:dark" in shown
    assert "ε = 1" in release._repr_html_() and "synthetic rows" in repr(done)
    assert "&lt;script&gt;" in notebook_table("<script>", ["a"], [["<script>"]], ["<b>"])


UNIT = ["privacy.unit=person", "privacy.max_records=2"]
MAP = ["evaluation.time=age", "evaluation.segment=sex", "evaluation.kind=job"]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a run that has every part; whoever changes what lies around it does so in a copy."""
    settings = [*TOWN, *PAIRS, *UNIT, *MAP, "evaluation.holdout=0.3", "evaluation.metrics=all", "hydra.run.dir=out"]
    return done_once(tmp_path_factory.mktemp("report"), "run", *settings) / "out" / "internal" / "report.html"


def test_a_report_is_one_closed_file_without_scripts_under_a_banner(report):
    page = Parsed(report.read_text(encoding="utf-8"))
    assert not page.open
    assert "script" not in page.tags
    assert all(r.startswith("#") or r == "data:," for r in page.loads)
    assert "NOT PRIVATE" in report.read_text(encoding="utf-8")
    assert stat.S_IMODE(report.stat().st_mode) == 0o600


def test_a_report_holds_every_part_that_its_run_knows(report):
    text = report.read_text(encoding="utf-8")
    assert "of a pair's records" in html.unescape(text) and "a smaller C (now 2 records a unit)" in text
    parts = [
        *("privacy", "attacks", "scores", "promise", "noise", "bounds", "sdnist", "axes", "accuracy", "validity"),
        *("numbers", "correlation", "pair-maps", "dependence", "densities", "columns", "pairs", "mgd", "map"),
        *("distances", "convergence", "units"),
    ]
    assert re.findall(r'<section id="([\w-]+)"', text) == parts
    assert Parsed(text).tags["svg"] > 8
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
    assert not Parsed((town / "map.html").read_text()).open


@pytest.mark.slow
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
