"""The table that people look at first: numbers and dates of both tables, as the schema reads them."""

import json

import numpy as np
import pandas as pd
import pytest

import pipeline
from mechanisms.public.notebook_table import notebook_table
from mechanisms.public.schema.table_schema import parse_schema
from mechanisms.public.tables.value_summaries import summaries
from tests.pipeline.conftest import TOWN, command, people
from tests.public.table_worlds import source


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


def test_score_and_report_show_both_tables_side_by_side(town, capsys):
    assert command("run", *TOWN, "hydra.run.dir=out") == 0
    report = (town / "out" / "internal" / "report.html").read_text(encoding="utf-8")
    assert "Numbers and dates" in report and f"{people(600).age.mean():.4g}"[:4] in report
    (own,) = json.loads((town / "out" / "internal" / "scores.json").read_text(encoding="utf-8"))["numbers"]
    made = pd.read_csv(town / "out" / "release" / "synthetic.csv")
    assert own["real"]["mean"] == pytest.approx(people(600).age.mean())
    assert own["synthetic"]["mean"] == pytest.approx(made.age.mean()) and own["mean_standard_error"] > 0
    assert len(own["quantile_standard_errors"]) == 5 and own["quantile_standard_errors"][2] > 0
    assert report.count("± noise") >= 1 and "By sex" not in report
    capsys.readouterr()
    paths = ["real=town.csv", "synthetic=out/release/synthetic.csv", "schema=town.yaml", "report=two.html"]
    assert command("score", *paths) == 0
    shown = capsys.readouterr()
    assert "std. dev." in shown.out + shown.err and "Numbers and dates" in (town / "two.html").read_text("utf-8")


def test_what_lies_beyond_the_bounds_is_told_beside_the_figures_that_it_changes(town, capsys):
    (town / "town.yaml").write_text((town / "town.yaml").read_text().replace("max: 99", "max: 60"))
    paths = ["real=town.csv", "synthetic=town.csv", "schema=town.yaml", "report=two.html", "evaluation.metrics=[tvd]"]
    assert command("score", *paths) == 0
    share = (people(600).age > 60).mean()
    said = f"age: {share:.1%} of the real values lie beyond the schema's bounds"
    assert 0.1 < share < 0.9 and said in capsys.readouterr().err
    assert said.replace("'", "&#39;") in (town / "two.html").read_text("utf-8")


def test_groups_are_set_side_by_side_with_the_noise_of_their_means(town, capsys):
    run = [
        *TOWN,
        "evaluation.groups=[sex]",
        "evaluation.pairs=[[sex,age]]",
        "selection.marginals=[[age,sex]]",
        "hydra.run.dir=out",
    ]
    assert command("run", *run) == 0
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
    assert len(drawn) == 3 and np.array(drawn[0]["real"]).sum(axis=1) == pytest.approx(
        [(real.sex == s).mean() for s in ("f", "m")]
    )
    capsys.readouterr()
    paths = ["real=town.csv", "synthetic=out/release/synthetic.csv", "schema=town.yaml", "evaluation.groups=sex"]
    assert command("score", *paths) == 0
    assert "by sex:" in capsys.readouterr().err


def test_correlations_of_both_tables_are_in_scores_and_report(town):
    assert command("run", *TOWN, "hydra.run.dir=out") == 0
    maps = json.loads((town / "out" / "internal" / "scores.json").read_text(encoding="utf-8"))["correlations"]
    assert set(maps) == {"rows", "cramers_v"}, "one column of numbers has no other to go with"
    assert maps["rows"]["real"] == 600
    report = (town / "out" / "internal" / "report.html").read_text(encoding="utf-8")
    assert "Cramér&#39;s V of any two columns" in report or "Cramér's V of any two columns" in report


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
