"""Several synthetic tables on one page and in one file, sorted, with their ε; and the page of a sweep beside it."""

import csv
import json
import re
import shutil
from html import unescape
from pathlib import Path

import pandas as pd
import pytest

import pipeline
from mechanisms.public.errors import UserError
from pipeline.comparison.compared_tables import Comparison, comparison_page, named_tables
from pipeline.scores.score_files import tidy_text
from pipeline.sweeps.sweep_page import best_methods, head_cards, method_seconds, render
from tests.pipeline.browser import CHROMIUM, WIDTHS, browsed
from tests.pipeline.conftest import command, done_in, people, statement_of, write_town

METRICS = ["tvd", "anita_1way", "anita_2way"]


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory, one_run: Path) -> Path:
    """A folder where three tables were compared: another sample, a release, and one whose columns are independent."""
    folder = write_town(tmp_path_factory.mktemp("compared"))
    people(600, seed=2).to_csv(folder / "sample.csv", index=False)
    mixed = people(600, seed=3)
    mixed = mixed.assign(**{c: mixed[c].sample(frac=1, random_state=4).to_numpy() for c in ("job", "sex")})
    mixed.to_csv(folder / "mixed.csv", index=False)
    shutil.copytree(one_run / "release", folder / "release")
    tables = ["real=town.csv", "synthetic=[mixed.csv,release/synthetic.csv,sample.csv]", "schema=town.yaml"]
    return done_in(folder, "score", *tables, f"metrics=[{','.join(METRICS)}]", "report=page.html", "output=all.json")


def test_tables_are_sorted_by_their_accuracy_and_each_has_its_scores(compared):
    found = json.loads((compared / "all.json").read_text())
    tables = found["tables"]
    assert set(tables) == {"sample.csv", "synthetic.csv", "mixed.csv"} and found["real"] == "town.csv"
    means = [sum(t["metrics"][m]["score"] for m in METRICS[1:]) / 2 for t in tables.values()]
    assert means == sorted(means, reverse=True) and next(iter(tables)) == "sample.csv"
    assert all(set(t["metrics"]) == set(METRICS) for t in tables.values())


def test_the_epsilon_of_a_table_is_that_of_the_statement_beside_it(compared):
    tables = json.loads((compared / "all.json").read_text())["tables"]
    stated = statement_of(compared)["guarantee"]["epsilon"]
    assert tables["synthetic.csv"]["release"]["epsilon"] == stated
    page = unescape((compared / "page.html").read_text())
    assert "release" not in tables["sample.csv"]
    line = re.search(r"<tr><td>synthetic.csv</td>\s*<td[^>]*>(.*?)</tr>", page.partition('id="tables"')[2], re.S)
    assert line is not None and f"{stated:.4g} per person" in line[1]


def test_the_page_has_a_chart_for_each_metric_and_names_every_file(compared):
    page = unescape((compared / "page.html").read_text())
    assert page.count("<svg") == len(METRICS)
    assert all(name in page for name in ("town.csv", "sample.csv", "release/synthetic.csv", "mixed.csv"))
    assert page.count('<g class="lreal">') == 3 * len(METRICS)
    assert "<script" not in page and "NOT PRIVATE" in page
    assert "says private" not in page  # the promise stands in the table, and is no warning


def test_the_same_tables_are_compared_from_python_by_path_by_name_and_as_frames(compared, monkeypatch):
    monkeypatch.chdir(compared)
    found = pipeline.score("town.csv", ["mixed.csv", people(600, seed=2)], metrics=["tvd", "anita_1way"])
    assert isinstance(found, Comparison) and list(found.cards) == ["table 2", "mixed.csv"]
    frame = found.frame()
    assert len(frame) == 4 and frame["privacy"].eq("not judged").all() and frame["epsilon"].isna().all()
    assert found._repr_html_().count("<tr>") == 3 and "table 2" in repr(found)
    named = pipeline.score(people(200), {"a<b": people(100, 5)}, metrics=["tvd"])
    assert list(named.cards) == ["a<b"] and "a&lt;b" in named._repr_html_()
    with pytest.raises(UserError, match="no table given"):
        pipeline.score("town.csv", [], metrics=["tvd"])


def test_all_tables_are_read_against_one_reference_so_that_words_follow_scores(compared, monkeypatch):
    """A small table once was good by a sample of its own size, beside a better and larger one that was weak."""
    monkeypatch.chdir(compared)
    small = people(600, seed=2).head(60)
    large = people(6000, seed=5)
    large.loc[:1199, "job"] = large.loc[:1199, "job"].sample(frac=1, random_state=1).to_numpy()
    frame = pipeline.score("town.csv", {"small": small, "large": large}, metrics=METRICS).frame()
    words = ["good", "fair", "weak", "worse than unrelated columns"]
    for _, own in frame.groupby("metric"):
        ranked = own.sort_values("score", ascending=own["goal"].iloc[0] == "low")
        places = [words.index(label) for label in ranked["label"]]
        assert places == sorted(places) and ranked["table"].iloc[0] == "large"
        assert own["honest"].nunique() == 1
    copied = pipeline.score("town.csv", {"copied": people(600), "large": large}, metrics=METRICS).frame()
    assert set(copied.loc[copied["table"] == "copied", "label"]) == {"suspicious"}


def test_accuracy_has_one_meaning_and_is_absent_where_it_was_not_computed(compared, monkeypatch):
    monkeypatch.chdir(compared)
    found = pipeline.score("town.csv", ["mixed.csv", "sample.csv"], metrics=["tvd"])
    assert list(found.cards) == ["sample.csv", "mixed.csv"]  # by their distance
    assert [line[3] for line in found.lines()] == ["accuracy", "-", "-"]


def test_scores_over_epsilon_are_drawn_where_two_are_known_and_private(compared, monkeypatch):
    monkeypatch.chdir(compared)
    one = pipeline.score("town.csv", "mixed.csv", metrics=["tvd"])
    names = {f"t{e}": {"epsilon": e, "delta": 0.0, "private": True, "per": "person"} for e in (0.5, 2.0)}
    cards = {}
    for name, known in names.items():
        cards[name] = type(one)(one.outcomes, one.rows, release=known)
    titles = [s.title for s in comparison_page(Comparison("real", cards), {}).sections]
    assert titles[-1] == "Scores over ε"
    cards["t2.0"] = type(one)(one.outcomes, one.rows, release=names["t2.0"] | {"private": False})
    assert len(comparison_page(Comparison("real", cards), {}).sections) == 2


def test_a_csv_holds_every_figure_of_the_json(compared, monkeypatch):
    monkeypatch.chdir(compared)
    for _ in range(2):
        assert command("score", "real=town.csv", "synthetic=mixed.csv", "metrics=[tvd]", "output=one.csv") == 0
    rows = list(csv.DictReader((compared / "one.csv").read_text().splitlines()))
    assert {r["not_private"] for r in rows} == {"NOT private"} and {"metrics", "numbers"} <= {r["part"] for r in rows}
    facts = json.loads((compared / "all.json").read_text())
    rows = list(csv.DictReader(tidy_text(facts).splitlines()))
    values = {(r["table"], r["of"], r["figure"]): r["value"] for r in rows}
    assert float(values["mixed.csv", "tvd", "score"]) == facts["tables"]["mixed.csv"]["metrics"]["tvd"]["score"]
    assert float(values["sample.csv", "age", "real.mean"]) == pytest.approx(people(600)["age"].mean())


def test_a_csv_has_a_row_for_each_leaf():
    facts = {"format": "scores/1", "rows": {"real": 3}}
    facts["metrics"] = {"a": {"score": None, "details": [1, {"x": [2, 3]}]}}
    facts["numbers"] = [{"column": "age", "mean": 4.5}, {"attributes": ["a", "b"], "cost": 1}]
    rows = list(csv.reader(tidy_text(facts).splitlines()))[1:]
    assert len(rows) == len({tuple(r[:5]) for r in rows}) == 10, "all but the format"
    assert [r[3] for r in rows if r[2] == "numbers"] == ["age", "age", "a × b", "a × b", "a × b"]


def test_names_tell_paths_apart_and_no_table_counts_twice():
    assert named_tables(["x/a.csv", "y/b.csv"]) == {"a.csv": "x/a.csv", "b.csv": "y/b.csv"}
    same = ["out/e1/release/synthetic.csv", "out/e2/release/synthetic.csv"]
    assert named_tables(same) == {"e1": same[0], "e2": same[1]}
    with pytest.raises(UserError, match="given twice"):
        named_tables(["a.csv", "a.csv"])


def swept(folder: Path) -> Path:
    """The results of a sweep of two methods with two seeds, in which scoring took most of the time."""
    rows = [
        {"job": f"{method} {seed} {epsilon}", "method": method, "epsilon": epsilon, "seed": seed, "score": s / epsilon}
        for method, scores in {"gum": (0.1, 0.3), "pgm": (0.2, 0.25)}.items()
        for seed, s in enumerate(scores)
        for epsilon in (1.0, 2.0)
    ]
    known = {"status": "done", "data": "d", "metric": "2-way TVD", "goal": "low", "floor": 0.05, "memory_mb": 1.0}
    known |= {"seconds": 100.0, "seconds_measure": 1.0}
    known |= {"seconds_synthesize": 2.0, "seconds_score": 97.0, "private": True, "spent_epsilon": 1.0}
    known["spent_delta"] = 0.0
    (folder / "internal").mkdir(parents=True)
    pd.DataFrame(rows).assign(**known).to_parquet(folder / "internal" / "results.parquet")
    return folder


def test_the_page_of_a_sweep_has_error_bars_and_the_time_of_the_method_alone(tmp_path):
    page = render([swept(tmp_path / "s")]).read_text()
    assert page.count('class="error"') == 4
    drawn = page.partition('id="tradeoff"')[2].partition("</section>")[0]
    ticks = [float(t) for t in re.findall(r'<text class="s"[^>]*text-anchor="(?:middle|start)"[^>]*>([\d.]+)<', drawn)]
    assert ticks and max(ticks) < 10
    frame = pd.DataFrame({"seconds": [9.0, 9.0], "seconds_measure": [1.0, None], "seconds_synthesize": [2.0, None]})
    assert method_seconds(frame).tolist() == [3.0, 9.0]
    assert method_seconds(frame[["seconds"]]).tolist() == [9.0, 9.0]


def test_a_best_method_says_whether_its_seeds_tell_it_apart():
    def best(*scores, goal="low"):
        facts = {"data": "d", "metric": "m", "goal": goal, "epsilon": 1.0}
        return best_methods(pd.DataFrame([facts | {"method": m, "score": s} for m, s in scores])).iloc[0]

    for goal, found in (("low", ["a", 2.0]), ("high", ["b", 4.0])):
        assert best(("a", 1.0), ("a", 3.0), ("b", 4.0), goal=goal)[["best", "score"]].tolist() == found
    apart = (("a", 1.0), ("a", 2.0), ("b", 2.5), ("b", 4.0))
    lines = [best(*scores) for scores in (apart, (("a", 3.0), *apart), (("a", 1.0), ("b", 2.0)), apart[:2])]
    assert [line["told apart"] for line in lines] == ["yes", "no: seeds overlap", "unknown: one seed", ""]
    sure, unsure, one = (head_cards(pd.DataFrame([line]))[0] for line in lines[:3])
    assert (sure.title, sure.value, sure.word) == ("Best at ε = 1", "a", "surely") and "next: b, 3.25" in sure.words
    assert (unsure.word, one.word) == ("unsure", "one seed") and "seed=1,2,3" in one.beneath


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
@pytest.mark.slow  # the report's page is shown to a browser in every run of the tests
def test_a_browser_shows_both_pages_at_any_width(compared, tmp_path):
    pages = [(compared / "page.html").read_text(), render([swept(tmp_path / "s")]).read_text()]
    seen = browsed(pages, tmp_path)
    assert seen == {(i, width): page.count("<svg") for i, page in enumerate(pages) for width in WIDTHS}
