"""Experiments: their rows, their repeats, their spread."""

import csv
import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mechanisms.public.errors import UserError
from mechanisms.public.schema.table_schema import load_schema, parse_schema
from pipeline.conf_folder import CONF
from pipeline.experiments import maps
from pipeline.experiments.challenge_settings import ChallengeSettings, variants_of
from pipeline.experiments.experiment_settings import MapSettings, rows_of, settings_of
from pipeline.experiments.gallery.all_experiments import table_of
from pipeline.experiments.gallery.published import Beside
from pipeline.experiments.repeats import mean_beside, mean_of, mean_rows, run_seed
from pipeline.experiments.scores_against import beside_pairs, pairs_of
from pipeline.experiments.table1 import MARGINALS, PAPER, map_schema, printed_scores, spearman, weighted
from pipeline.experiments.table1_histograms import laplace_plan
from pipeline.settings.config import load_config, schema_path
from tests.pipeline.conftest import TOWN, command, reply, statement_of


def test_the_standard_error_is_that_of_the_runs_that_have_a_score():
    mean, error, count = mean_of([1.0, None, 4.0, 7.0])
    assert (mean, count) == (4.0, 3)
    assert error == pytest.approx(np.std([1, 4, 7], ddof=1) / np.sqrt(3))
    assert mean_of([3.0])[1] is None and mean_of([None])[0] is None
    assert mean_of([0.1 + 0.2] * 3)[1] == 0
    assert mean_of([1.0, 1.0 + 2**-52, 1.0])[1] == 0, "rounding dust is no spread"


def test_rows_and_numbers_beside_published_ones_are_means_and_the_floor_is_that_of_the_first_run():
    row = {"dataset": "gum", "epsilon": 1, "metric": "tvd", "floor": 0.1, "place": "Table 1"}
    runs = [row | {"run": 1, "score": 0.2}, row | {"run": 2, "score": 0.4, "floor": None}]
    other = row | {"run": 1, "epsilon": 2, "score": 0.3}
    first, second = mean_rows([*runs, other])
    assert first["score"] == pytest.approx(0.3) and first["error"] == pytest.approx(0.1)
    assert (first["runs"], first["floor"], first["place"]) == (2, 0.1, "Table 1")
    assert (second["score"], second["error"], second["runs"]) == (0.3, None, 1)

    runs = [[Beside("total", ours, 0.229, "Table 2")] for ours in (0.4, 0.5)]
    (number,) = mean_beside(runs)
    assert number.ours == pytest.approx(0.45) and number.error == pytest.approx(0.05) and number.runs == 2
    assert number.difference == pytest.approx(0.221) and number.place == "Table 2"


def test_each_run_has_its_own_folder_and_no_run_shares_its_seed():
    settings = settings_of(load_config(["experiment=nist2018_fire"]), ChallengeSettings)
    settings = replace(settings, epsilons=[1, 2], repeats=3)
    names = [v.name for v in variants_of(settings)]
    assert names[:4] == ["epsilon-1", "epsilon-1-run-2", "epsilon-1-run-3", "epsilon-2"] and len(set(names)) == 6
    specs = rows_of(MapSettings(laplace=[4], repeats=2))
    assert [s.name for s in specs] == ["lap-4", "lap-4-run-2"] and {s.dataset for s in specs} == {"lap-4"}
    assert run_seed(5, 1) == 5 and run_seed(None, 2) is None
    assert len({run_seed(s, r) for s in (5, 6) for r in (1, 2, 3)}) == 6
    for made in (settings, MapSettings(laplace=[4])):
        with pytest.raises(UserError, match=r"experiment\.repeats"):
            replace(made, repeats=0)


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
    lines = table_of([number | {"error": 0.0123, "published": 0.4, "difference": 0.1, "place": "Table 1"}])
    head, _, line = ([cell.strip() for cell in text.split("|")[1:-1]] for text in lines)
    assert head == ["what", "we get", "±", "published", "difference", "where it is published"]
    assert line == ["tvd", "0.5", "0.012", "0.4", "0.1", "Table 1"]


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


SMOKE = ["experiment=mgd_table1", "smoke=true"]
COLUMNS = "experiment.columns=[age,sex,job]"


@pytest.fixture(scope="module")
def done(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("smoke") / "out"
    assert command("run", *SMOKE, "data.rows=1000", "experiment.queries=40", f"hydra.run.dir={root}") == 0
    return root


def table(root: Path) -> list[dict[str, str]]:
    """The lines of the table but for their times."""
    with (root / "internal" / "table.csv").open(newline="") as file:
        return [row | {"seconds": ""} for row in csv.DictReader(file)]


def scores(root: Path) -> dict[str, dict[str, dict]]:
    """A noisy map → metric → its row."""
    maps: dict[str, dict[str, dict]] = {}
    for row in json.loads((root / "internal" / "experiment.json").read_text())["rows"]:
        name = row["dataset"] if row["epsilon"] is None else f"{row['dataset']}-{row['epsilon']:g}"
        maps.setdefault(name, {})[row["metric"]] = row
    return maps


def test_it_leaves_the_table_the_figures_and_the_facts_and_all_of_it_is_closed(done):
    inside = done / "internal"
    assert inside.stat().st_mode & 0o777 == 0o700
    assert not (done / "release").exists()
    for figure in ("figure", "against"):
        assert (inside / f"{figure}.png").read_bytes()[:4] == b"\x89PNG"
        assert "<svg" in (inside / f"{figure}.svg").read_text()
    facts = json.loads((inside / "experiment.json").read_text())
    assert "NOT private" in facts["not_private"]
    assert facts["data"]["kind"].startswith("generated")
    assert facts["data"]["shape"] == [12, 278, 174]
    assert facts["beside"] and all(b["published"] is None and b["what"].endswith("(smoke)") for b in facts["beside"])
    assert all(r["smoke"] == "True" and r["reported"] == "" for r in table(done)), "no claim holds or fails on it"
    assert facts["settings"]["query_seed"] == facts["settings"]["sample_seed"] == 0
    assert facts["privacy"]["noise_seed"] is None and facts["synthesis"]["seed"] is None
    said = (inside / "table.md").read_text()
    assert "0.977" not in said and "say nothing about the method" in said
    for words in ("NOT private", "Sensitivity 20 is the paper's figure", "very-poor", "not published", "mgd, Δ = 5"):
        assert words in said, words


def test_every_row_has_every_score_and_mgd_is_their_weighted_mean(done):
    maps = scores(done)
    assert [*maps] == ["dpsyn-10", "lap-4", "lap-10", "sample 0.25", "sample 0.5"]
    for rows in maps.values():
        found = {metric: row["score"] for metric, row in rows.items()}
        assert found["mgd"] == pytest.approx(weighted({m: found[f"AEMC {m}"] for m in MARGINALS}))
        assert 0 <= found["inverse_pie"] <= 1
        assert found["range_query"] >= 0
        over = [found[name] for name in ("mgd, Δ = 0", "mgd", "mgd, Δ = 5", "mgd, Δ = 10")]
        assert over == sorted(over, reverse=True)
    records = {name: rows["mgd"]["records"] for name, rows in maps.items()}
    for name, scale in (("lap-4", 5.0), ("lap-10", 2.0)):  # Σ max(round(Laplace), 0) over all cells
        tail = math.exp(-0.5 / scale)
        expected = 12 * 278 * 174 * 0.5 * tail / (1 - math.exp(-1 / scale))
        assert records.pop(name) - 1000 == pytest.approx(expected, rel=0.01)
    weighed_up = [*records.values()]
    assert weighed_up == pytest.approx([1000, 1000, 1000]), "GUM's rows make good what truncation drops, as samples do"


def test_the_private_rows_went_through_the_wall(done):
    rows = done / "internal" / "rows"
    charged = (rows / "lap-4" / "ledger.jsonl").read_text().splitlines()
    event = json.loads(charged[1])["event"]
    assert event["kind"] == "Laplace"
    assert event["l1_sensitivity"] == 20
    assert event["scale"] == pytest.approx(5)
    promise = statement_of(rows / "dpsyn-10")
    assert promise["private"]
    assert promise["unit"]["max_records"] == 2
    assert promise["unit"]["clip"] == "truncate"
    assert promise["spent"]["epsilon"] <= 10


def test_finished_rows_are_kept_and_what_was_measured_is_not_measured_again(done, capsys):
    before = table(done)
    inside = done / "internal"
    (inside / "rows" / "lap-4.json").unlink()
    (inside / "rows" / "dpsyn-10.json").unlink()
    assert command("run", *SMOKE, "data.rows=1000", "experiment.queries=40", f"hydra.run.dir={done}") == 1
    assert "resume=true" in capsys.readouterr().err
    again = ["data.rows=1000", "experiment.queries=40", f"hydra.run.dir={done}", "resume=true"]
    assert command("run", *SMOKE, *again) == 0
    assert table(done) == before
    assert len((inside / "rows" / "lap-4" / "ledger.jsonl").read_text().splitlines()) == 2
    assert "changed since" in reply(capsys, "run", *SMOKE, *again, "experiment.delta=3", code=1).err


def test_a_charge_whose_answer_is_lost_stays_spent(town, capsys):
    arguments = [*SMOKE, *TOWN, COLUMNS, "experiment.dpsyn=[]", "experiment.laplace=[1]", "hydra.run.dir=out"]
    assert command("run", *arguments) == 0
    rows = town / "out" / "internal" / "rows"
    (rows / "lap-1.json").unlink()
    next((rows / "lap-1" / "answers").iterdir()).unlink()
    assert "its answer is lost" in reply(capsys, "run", *arguments, "resume=true", code=1).err


def test_it_runs_on_any_table_with_three_named_columns(town, capsys):
    said = reply(capsys, "run", *SMOKE, *TOWN, COLUMNS, "hydra.run.dir=out", "console=always").out
    assert "rank correlation of range_query with mgd" in said
    said = reply(capsys, "run", *SMOKE, *TOWN, COLUMNS, "hydra.run.dir=out", "resume=true").out
    assert "rank correlation" not in said and "table.md" in said
    facts = json.loads((town / "out" / "internal" / "experiment.json").read_text())
    assert facts["data"]["kind"].startswith("town.csv, 10 × 2 × 5")
    assert facts["data"]["shape"] == [10, 2, 5]
    promise = scores(town / "out")["lap-10"]["mgd"]["promise"]
    assert promise == "lap-10: ε = 0.5, δ = 0 for one record; ε = 10 for any 20 records together"


def test_one_record_as_the_unit_gets_the_same_noise_for_a_twentieth_of_epsilon():
    schema = parse_schema({"m": 12, "n": 3, "i": 2}, where="test")
    for unit, epsilon, records in (("record", 0.025, 1), ("caller_id", 0.5, 20)):
        plan = laplace_plan(load_config(["experiment=mgd_table1", f"privacy.unit={unit}"]), schema, 0.5)
        assert plan.measurements[0].event.scale == pytest.approx(40)
        assert (plan.budget.epsilon, plan.budget.max_records) == (epsilon, records)


@pytest.mark.parametrize(("name", "shape"), [("demo", (12, 278, 174)), ("fire_calls", (12, 42, 32))])
def test_the_known_maps_have_the_shapes_of_the_paper(name, shape):
    config = load_config(["experiment=mgd_table1", f"data={name}"])
    schema = map_schema(config, load_schema(schema_path(config.data.schema)))
    assert schema.domain.shape(schema.domain.names) == shape
    assert [a.ordered for a in schema.domain.attributes] == [12, 0, 0]


def test_an_order_of_too_few_tables_or_of_equal_scores_is_none():
    assert spearman([1, 2], [1, 2]) is None
    assert spearman([1, 2, 3], [1, 1, 1]) is None
    assert spearman([1, 2, 3], [1, 4, 9]) == pytest.approx(1)


def test_every_printed_score_stands_beside_the_map_that_it_is_of():
    assert len(PAPER) == 20
    assert PAPER["lap-1"]["mgd"] == pytest.approx((3.7608 + 3.7604 + 3.7606 + 3.7579 + 3.7562 + 3.706) / 9 + 3.1763 / 3)
    scores = {(p.dataset, p.epsilon, p.metric): p for p in printed_scores()}
    assert len(scores) == 18 * 10
    assert scores["dpsyn", 0.1, "range_query"].value == 0.0451
    assert scores["sample 0.25", None, "AEMC 3-way"].place == "Table 1, sample-0.25"
    assert scores["lap", 4, "mgd"].place == "Table 1, from its AEMC columns, lap-4"


@pytest.mark.parametrize(
    ("experiment", "wrong", "said"),
    [
        (["mgd_table1", "data.rows=100"], "experiment.clip=cut", "privacy.clip: got 'cut'"),
        (["nist2018_fire", *TOWN, "synthesis=independent"], "+experiment.roles.tme=age", "experiment.roles.tme: "),
    ],
)
def test_what_is_wrong_with_one_row_is_named_though_others_were_measured_by_then(town, capsys, experiment, wrong, said):
    name, *more = experiment
    error = reply(capsys, "run", f"experiment={name}", "smoke=true", *more, wrong, "hydra.run.dir=out", code=1).err
    assert said in error and "fix: " in error and "Traceback" not in error


@pytest.mark.slow
def test_seeds_give_the_same_table_again_and_a_fixed_noise_seed_is_said(town, capsys):
    def rows_with(name: str, *arguments: str) -> dict[str, dict]:
        few = ["experiment.queries=40", f"hydra.run.dir={name}"]
        assert command("run", *SMOKE, *TOWN, COLUMNS, *few, *arguments) == 0
        facts = json.loads((town / name / "internal" / "experiment.json").read_text())
        assert facts["rows"]
        return {n: {m: r | {"seconds": 0} for m, r in rows.items()} for n, rows in scores(town / name).items()}

    first, again = rows_with("a", "seed=7"), rows_with("b", "seed=7")
    assert first == again
    assert "NOT private: the noise seed is fixed" in first["lap-10"]["mgd"]["promise"]
    other = rows_with("c", "seed=8", "experiment.sample_seed=1")
    assert all(other[name] != first[name] for name in first)


def test_the_small_version_keeps_the_lists_of_the_user():
    small = maps.smaller(load_config([*SMOKE, "experiment.samples=[0.2]", "synthesis=independent"]))
    assert settings_of(small, MapSettings).samples == [0.2]
    assert settings_of(small, MapSettings).laplace == [4, 10]
    assert small.data.rows == 4000
    assert small.synthesis.options == {}
