"""Experiments made several times: releases of their own, means with standard errors, a gallery that shows them."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from mechanisms.public.errors import UserError
from pipeline.conf_folder import CONF
from pipeline.experiments.challenge_settings import settings_of_challenge, variants_of
from pipeline.experiments.experiment_settings import MapSettings, rows_of
from pipeline.experiments.gallery.all_experiments import table_of
from pipeline.experiments.gallery.published import Beside
from pipeline.experiments.repeats import mean_beside, mean_of, mean_rows, run_seed
from pipeline.experiments.scores_against import beside_pairs, pairs_of
from pipeline.settings.config import load_config
from tests.pipeline.conftest import TOWN, command, statement_of


def test_the_standard_error_is_that_of_the_runs_that_have_a_score():
    mean = mean_of([1.0, None, 4.0, 7.0])
    assert (mean.value, mean.runs) == (4.0, 3)
    assert mean.error == pytest.approx(np.std([1, 4, 7], ddof=1) / np.sqrt(3))
    assert mean_of([3.0]).error is None and mean_of([None]).value is None
    assert mean_of([0.1 + 0.2] * 3).error == 0
    assert mean_of([1.0, 1.0 + 2**-52, 1.0]).error == 0, "rounding dust is no spread"


def test_rows_are_means_by_table_epsilon_and_metric_and_the_floor_is_that_of_the_first_run():
    row = {"dataset": "gum", "epsilon": 1, "metric": "tvd", "floor": 0.1, "place": "Table 1"}
    runs = [row | {"run": 1, "score": 0.2}, row | {"run": 2, "score": 0.4, "floor": None}]
    other = row | {"run": 1, "epsilon": 2, "score": 0.3}
    first, second = mean_rows([*runs, other])
    assert first["score"] == pytest.approx(0.3) and first["error"] == pytest.approx(0.1)
    assert (first["runs"], first["floor"], first["place"]) == (2, 0.1, "Table 1")
    assert (second["score"], second["error"], second["runs"]) == (0.3, None, 1)


def test_numbers_beside_published_ones_are_means_too():
    runs = [[Beside("total", ours, 0.229, "Table 2")] for ours in (0.4, 0.5)]
    (number,) = mean_beside(runs)
    assert number.ours == pytest.approx(0.45) and number.error == pytest.approx(0.05) and number.runs == 2
    assert number.difference == pytest.approx(0.221) and number.place == "Table 2"


def test_each_run_has_its_own_folder_and_no_run_shares_its_seed():
    settings = replace(settings_of_challenge(load_config(["experiment=nist2018_fire"])), epsilons=[1, 2], repeats=3)
    names = [v.name for v in variants_of(settings)]
    assert names[:4] == ["epsilon-1", "epsilon-1-run-2", "epsilon-1-run-3", "epsilon-2"] and len(set(names)) == 6
    specs = rows_of(MapSettings(laplace=[4], repeats=2))
    assert [s.name for s in specs] == ["lap-4", "lap-4-run-2"] and {s.dataset for s in specs} == {"lap-4"}
    assert run_seed(5, 1) == 5 and run_seed(None, 2) is None
    assert len({run_seed(s, r) for s in (5, 6) for r in (1, 2, 3)}) == 6
    for wrong in (0, -1):
        with pytest.raises(UserError, match=r"experiment\.repeats"):
            variants_of(replace(settings, repeats=wrong))
        with pytest.raises(UserError, match=r"experiment\.repeats"):
            rows_of(MapSettings(laplace=[4], repeats=wrong))


def test_a_challenge_is_made_as_often_as_asked_and_shows_the_spread(town):
    own = ["experiment=nist2018_fire", *TOWN, "experiment.epsilons=[1]", "experiment.repeats=2", "seed=3"]
    own += ["selection=oneway", "synthesis=independent", "experiment.metrics=[density]", "hydra.run.dir=out"]
    assert command("run", *own) == 0
    facts = json.loads((town / "out" / "internal" / "experiment.json").read_text())
    one, two = (r for r in facts["rows"] if r["metric"] == "density")
    assert (one["run"], two["run"]) == (1, 2) and one["score"] != two["score"], "a seed of its own for each run"
    assert one["floor"] is not None and two["floor"] is None
    shown = next(b for b in facts["beside"] if b["what"].startswith("density"))
    assert shown["ours"] == pytest.approx((one["score"] + two["score"]) / 2)
    assert shown["error"] == pytest.approx(abs(one["score"] - two["score"]) / 2) and shown["floor"] == one["floor"]
    for name in ("epsilon-1", "epsilon-1-run-2"):
        assert statement_of(town / "out" / name)["budget"]["epsilon"] == 1
    told = (town / "out" / "internal" / "table.md").read_text()
    assert "Means of 2 runs, ± their standard errors. With so few runs a 95 % interval is 12.7 of them wide" in told


def test_means_are_ranked_and_the_ranks_of_runs_alone_are_told_beside():
    """Noise hides an order in single runs that means show."""
    rows = [
        {"dataset": "gum", "epsilon": e, "run": run, "metric": m, "goal": goal, "score": score}
        for e, density in ((0.1, 0.5), (1, 0.6), (10, 0.7))
        for run, noise in ((1, {0.1: 0.15}), (2, {10: -0.15}), (3, {}))
        for m, goal, score in (("mgd", "low", -density), ("density", "high", density + noise.get(e, 0.0)))
    ]
    (pair,) = pairs_of(rows, {"mgd": ["density"]})
    assert pair.rho == pytest.approx(1) and pair.alone == pytest.approx((0.5, 0.5, 1))
    few = replace(pair, within={"gum": (4, -0.8), "samples": (5, 1.0)})
    assert [b.what for b in beside_pairs([few])[2:]] == ["rank correlation of mgd with density over 5 tables, samples"]
    together, alone = beside_pairs([pair])
    assert together.ours == pytest.approx(1) and together.error is None
    assert (alone.ours, alone.runs) == (pytest.approx(2 / 3), 3) and alone.error == pytest.approx(1 / 6)


def test_columns_without_a_number_are_left_out_of_the_gallerys_tables():
    number = {"what": "tvd", "ours": 0.5, "error": None, "floor": None, "published": None, "difference": None}
    number["place"] = ""
    assert table_of([number])[0].split("|")[1:-1] == [" what ", " we get "]
    (head, _, line) = table_of([number | {"error": 0.0123, "published": 0.4, "difference": 0.1, "place": "Table 1"}])
    assert [h.strip() for h in head.split("|")[1:-1]] == [
        *("what", "we get", "±", "published", "difference", "where it is published")
    ]
    assert [c.strip() for c in line.split("|")[1:-1]] == ["tvd", "0.5", "0.012", "0.4", "0.1", "Table 1"]


def test_every_table_of_the_gallery_tells_its_spread_or_that_there_was_one_run():
    page = (CONF.parent / "docs" / "experiments.md").read_text(encoding="utf-8")
    for part in page.split("\n## ")[1:]:
        name = part.partition("\n")[0]
        headline = part.split("\n\n")[1]
        assert headline.endswith("."), f"{name}: {headline}"
        if "No table is read" in part:
            continue
        options = load_config([f"experiment={name}"]).experiment.options
        repeats = options["repeats"]
        told = re.search(r"Means of (\d+) runs, ± their standard errors\.|One run: no spread is known\.", part)
        assert told and int(told[1] or 1) == repeats, name
        assert (" ± |" in part) == (repeats > 1), name
        assert "| floor |" in re.sub(r" +", " ", part) or not options.get("floors"), name
