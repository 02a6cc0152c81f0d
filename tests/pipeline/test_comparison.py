"""Several synthetic tables on one page; the page of a sweep; the release beside a table, in any format of one entry."""

import csv
import importlib
import json
import re
import shutil
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pipeline
from evaluation.attacks.promise_bounds import AttackPromise
from mechanisms.public.errors import UserError
from mechanisms.public.tables.formats import CSV, FORMATS
from pipeline.comparison.compared_tables import Comparison, comparison_page, named_tables
from pipeline.scores.release_beside import release_beside
from pipeline.scores.score_files import tidy_text
from pipeline.sweeps.sweep_page import best_methods, head_cards, method_seconds, render
from tests.pipeline.browser import CHROMIUM, WIDTHS, browsed
from tests.pipeline.conftest import PAIRS, TOWN, command, done_in, people, rebound, reply, statement_of, write_town
from tests.pipeline.formats import departures
from tests.pipeline.test_sweep import spent

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
    few = pipeline.score("town.csv", {"few": people(60), "none": people(600).drop(columns="age")}, metrics=["tvd"])
    page, cell = (unescape(text) for text in (comparison_page(few, {}).as_html(), few._repr_html_()))
    assert all(line in each for line in few.notices() for each in (cell, page, repr(few)))
    assert any(line.startswith("few: rows") for line in few.notices()) and "none: column" in page  # it named no table
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
    assert (copied.groupby("metric")["honest"].nunique() == 1).all()  # the page says so of suspicious tables too


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
    scores = {"gum": (0.1, 0.3), "pgm": (0.2, 0.25)}
    jobs = [(m, n, s, e) for m, own in scores.items() for n, s in enumerate(own) for e in (1.0, 2.0)]
    methods, seeds, scores, epsilons = (list(part) for part in zip(*jobs, strict=True))
    known = {"method": methods, "seed": seeds, "score": [s / e for s, e in zip(scores, epsilons, strict=True)]}
    known |= {"floor": 0.05, "seconds": 100.0, "seconds_measure": 1.0, "seconds_synthesize": 2.0, "seconds_score": 97.0}
    spent([(f"{m} {n} {e}", "2-way TVD", e) for m, n, _, e in jobs], folder, spent_epsilon=1.0, **known)
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


ATTACK = ["metrics=[membership_inference]", "evaluation.attacks=60"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of the town without a holdout's persons, whose unit is a person, and a record."""
    folder = write_town(tmp_path_factory.mktemp("made"))
    whole = people(900)
    aside = np.random.default_rng(5).random(300)[whole["person"].str[1:].astype(int)] < 0.3
    whole[~aside].to_csv(folder / "town.csv", index=False)
    whole[aside].to_csv(folder / "held.csv", index=False)
    own = ["selection=pairs", "synthesis=independent", "evaluation.enabled=false"]
    unit = ["privacy.unit=person", "privacy.max_records=4"]
    done_in(folder, "run", *TOWN, *own, *unit, "hydra.run.dir=persons")
    return done_in(folder, "run", *TOWN, *own, "seed=1", "evaluation.holdout=0.3", "hydra.run.dir=seeded")


def scored(folder: Path, synthetic: Path, *more: str, capsys: pytest.CaptureFixture[str]) -> tuple[dict, str]:
    output = synthetic.parent.parent / "scores.json"
    given = [f"real={folder / 'town.csv'}", f"holdout={folder / 'held.csv'}", f"schema={folder / 'town.yaml'}"]
    capsys.readouterr()
    assert command("score", *given, f"synthetic={synthetic}", f"output={output}", *ATTACK, *more) == 0
    return json.loads(output.read_text()), capsys.readouterr().out


@pytest.mark.slow
def test_the_statement_beside_a_table_is_said_and_bounds_the_attack_on_its_unit(made, capsys):
    scores, lines = scored(made, made / "persons" / "release" / "synthetic.csv", capsys=capsys)
    said = statement_of(made / "persons")
    assert scores["release"]["private"] and scores["release"]["epsilon"] == said["guarantee"]["epsilon"]
    assert "says private: ε = 1" in scores["first"][0] and "'person' (add_remove)" in lines
    attack = scores["metrics"]["membership_inference"]["details"]
    assert attack["unit"] == "all rows of a unit"
    curve = [(e, d) for d, e in said["curve"] if e is not None]  # the least bound of all of them
    least = min((np.exp(e) - 1 + 2 * d) / (np.exp(e) + 1) for e, d in [(1.0, said["guarantee"]["delta"]), *curve])
    assert attack["bound"]["advantage"] == pytest.approx(least) and 0 < least < np.tanh(0.5) + 1e-3
    assert "at most by ε" in lines and "by a coin of their own" in lines


def test_no_bound_stands_beside_an_attack_on_another_unit_or_without_the_units_column(made, capsys, tmp_path):
    for name in ("town.csv", "held.csv"):
        pd.read_csv(made / name).drop(columns="person").to_csv(tmp_path / name, index=False)
    shutil.copy(made / "town.yaml", tmp_path)
    for folder, asked in ((made, ["evaluation.subject=job"]), (tmp_path, [])):
        table = made / "persons" / "release" / "synthetic.csv"
        scores, _ = scored(folder, table, *asked, capsys=capsys)
        assert scores["release"]["private"]
        assert "bound" not in scores["metrics"]["membership_inference"]["details"]


def test_real_rows_that_a_release_was_made_without_are_told(made, tmp_path, capsys):
    """A release of 80 % of the units was said to have totals far from those of the whole table, and no word why."""
    for name, is_told in (("seeded", True), ("persons", False)):
        given = [f"real={made / 'town.csv'}", f"synthetic={made / name / 'release' / 'synthetic.csv'}", "metrics=[tvd]"]
        said = " ".join(reply(capsys, "score", *given, f"output={tmp_path / name}.json").out.split())
        assert ("made without a share 0.3 of the units (evaluation.holdout)" in said) == is_told


def test_a_release_that_is_not_private_is_said_to_be_none(made, capsys):
    scores, lines = scored(made, made / "seeded" / "release" / "synthetic.csv", capsys=capsys)
    assert not scores["release"]["private"] and "says NOT PRIVATE: the noise seed is fixed" in lines
    assert "bound" not in scores["metrics"]["membership_inference"]["details"]


@pytest.mark.parametrize("how", ["another table", "edited statement", "no manifest", "damaged"])
def test_a_statement_that_nothing_binds_to_the_table_is_not_taken(made, tmp_path, how):
    shutil.copytree(made / "persons" / "release", tmp_path / "release")
    table, statement = tmp_path / "release" / "synthetic.csv", tmp_path / "release" / "privacy.json"
    if how == "another table":
        people(50).to_csv(table, index=False)
    elif how == "no manifest":
        (tmp_path / "release" / "manifest.json").unlink()
    elif how == "damaged":
        statement.write_text('{"version": 3, "guarantee": {"epsilon": "much", "delta": 0}}')
        rebound(tmp_path / "release")
    else:
        statement.write_text(statement.read_text().replace('"epsilon": 1', '"epsilon": 0.1'))
    facts, line = release_beside(table)
    assert facts is None and "is not taken for its statement" in line


def test_the_schema_of_the_release_is_the_default_where_the_manifest_binds_it(made, tmp_path, monkeypatch):
    release = made / "persons" / "release"
    tvd = {"metrics": ["tvd"]}
    own = pipeline.score(made / "town.csv", release / "synthetic.csv", **tvd)
    named = pipeline.score(made / "town.csv", release / "synthetic.csv", release / "schema.yaml", **tvd)
    plain = pipeline.score(made / "town.csv", release / "synthetic.csv", "none", **tvd)
    assert own.outcomes["tvd"].score == named.outcomes["tvd"].score != plain.outcomes["tvd"].score
    assert "read by the schema of the release" in own.notices[-1]
    assert not any("the schema of the release" in line for card in (named, plain) for line in card.notices)
    shutil.copytree(release, tmp_path / "release")
    (tmp_path / "release" / "schema.yaml").write_text("name: other")
    edited = pipeline.score(made / "town.csv", tmp_path / "release" / "synthetic.csv", **tvd)
    assert edited.outcomes["tvd"].score == plain.outcomes["tvd"].score


def test_by_a_schema_that_a_run_has_yet_to_complete_no_table_is_scored(made, tmp_path, capsys):
    """All values of a list to be discovered were one cell, so that tables without a common one were "good"."""
    people(300).replace({"job": {"baker": "tailor", "smith": "weaver", "clerk": "miller"}}).to_csv(tmp_path / "t.csv")
    schema = (made / "town.yaml").read_text(encoding="utf-8")
    open_ended = re.sub(r"  job: .*", "  job: {kind: categorical, values: discover}", schema)
    (tmp_path / "open.yaml").write_text(open_ended, encoding="utf-8")
    tables = [f"real={made}/town.csv", f"synthetic={tmp_path}/t.csv", f"schema={tmp_path}/open.yaml", "metrics=[tvd]"]
    said = reply(capsys, "score", *tables, code=1).err
    assert "column 'job': a run discovers its values" in said and "schema=RELEASE/schema.yaml" in said


def test_several_tables_are_read_by_one_schema(made, tmp_path, monkeypatch):
    release, aside = made / "persons" / "release", tmp_path / "other.csv"
    people(300).to_csv(aside, index=False)
    both = pipeline.score(made / "town.csv", [release / "synthetic.csv", aside], metrics=["tvd"])
    alone = pipeline.score(made / "town.csv", aside, release / "schema.yaml", metrics=["tvd"])
    assert both.cards["other.csv"].outcomes["tvd"].score == alone.outcomes["tvd"].score
    assert all("read by the schema of the release" in card.notices[-1] for card in both.cards.values())
    shutil.copytree(release, tmp_path / "release")
    schema = tmp_path / "release" / "schema.yaml"
    schema.write_text(schema.read_text() + "# another\n")
    rebound(tmp_path / "release")
    pair = [release / "synthetic.csv", tmp_path / "release" / "synthetic.csv"]
    differ = pipeline.score(made / "town.csv", {str(i): t for i, t in enumerate(pair)}, metrics=["tvd"])
    assert all("different schemas" in card.notices[-1] for card in differ.cards.values())
    assert "0, 1: the releases have different schemas" in repr(differ)


def test_units_and_promises_are_read_back_as_they_were_stated_and_frames_have_no_statement(made, monkeypatch):
    facts, _ = release_beside(made / "persons" / "release" / "synthetic.csv")
    assert facts.of.column == "person" and facts.of.max_records == 4 and facts.of.rules
    assert isinstance(facts.promise, AttackPromise) and len(facts.promise.pairs) > 1
    assert release_beside(made / "town.csv") == (None, "")
    monkeypatch.chdir(made / "persons" / "release")
    card = pipeline.score(people(100), pd.read_csv("synthetic.csv"), metrics=["tvd"])
    assert card.release is None and not any("statement" in line for line in card.notices)


PAGE = (Path(__file__).parents[2] / "docs" / "adding" / "format.md").read_text(encoding="utf-8")
(EXAMPLE,) = re.findall(r"<!-- file: .*?/feather.py -->\n```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def feather(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The example of the page, as a module beside the project, where it is not added yet."""
    if "feather" in FORMATS:
        yield "feather"
        return
    place = tmp_path_factory.mktemp("module")
    (place / "feather.py").write_text(EXAMPLE, encoding="utf-8")
    monkeypatch.syspath_prepend(place)
    FORMATS["feather"] = importlib.import_module("feather").FEATHER
    yield "feather"
    del FORMATS["feather"], sys.modules["feather"]


@pytest.mark.some(2)
@pytest.mark.parametrize("name", ["csv.gz", "feather"])
def test_run_verify_synth_score_and_query_take_a_format_that_is_one_entry(name, feather, town, capsys):
    seeds = ["privacy.noise_seed=3", "synthesis.seed=3"]
    for form in (name, "csv"):
        settings = [f"release.format={form}", f"hydra.run.dir={form}", *seeds]
        assert command("run", *TOWN, *PAIRS, *settings) == 0
    release, table = Path(name) / "release", FORMATS[name].released
    assert (release / table).is_file() and not (release / CSV.released).exists()
    assert departures(release) == []
    (file,) = json.loads((release / "croissant.json").read_text())["distribution"]
    assert (file["name"], file["encodingFormat"]) == (table, FORMATS[name].media)
    scores = [json.loads((Path(form) / "internal" / "scores.json").read_text())["metrics"] for form in (name, "csv")]
    assert scores[0] == scores[1]
    capsys.readouterr()
    command("verify", f"from={name}/release")  # but for its noise seed it is sound
    assert re.findall(r"NO +(\w+)", said := capsys.readouterr().out) == ["private"] and "ok  tables" in said
    assert command("synth", "from=csv/release", f"release.format={name}", "output=again", "synthesis.seed=4") == 0
    assert command("synth", f"from={name}/release", "output=plain", "synthesis.seed=4") == 0
    assert command("score", "real=town.csv", f"synthetic=again/release/{table}", "output=a.json") == 0
    assert command("score", "real=town.csv", "synthetic=plain/release/synthetic.csv", "output=b.json") == 0
    a, b = (json.loads(Path(f).read_text())["metrics"] for f in ("a.json", "b.json"))
    assert a == b
    assert command("query", f"from={name}/release", "bounds=true", "output=bounds.csv") == 0
    assert len(Path("bounds.csv").read_text().splitlines()) == 7


@pytest.mark.slow
def test_a_resumed_run_reads_the_rows_of_its_format_again(feather, town):
    run = ("run", *TOWN, *PAIRS, "hydra.run.dir=out", "release.format=feather")
    assert command(*run) == 0
    assert command(*run, "resume=true") == 0
