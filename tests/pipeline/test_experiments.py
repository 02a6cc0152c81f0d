"""Experiments: their rows, repeats and spread; each published one in its small version, beside its figures."""

import csv
import hashlib
import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mechanisms.public.errors import UserError
from mechanisms.public.schema.table_schema import load_schema, parse_schema
from pipeline.conf_folder import CONF, SCHEMAS
from pipeline.experiments import maps
from pipeline.experiments.challenge_settings import ChallengeSettings, stand_in, subjects, variants_of
from pipeline.experiments.dpsyn_figure2 import PANELS, SMOKE_KS, crossing, panel
from pipeline.experiments.experiment_settings import (
    ExperimentSource,
    MapSettings,
    mean_beside,
    mean_of,
    mean_rows,
    rows_of,
    run_seed,
    settings_of,
)
from pipeline.experiments.gallery.all_experiments import AllSettings, names_of_all, table_of
from pipeline.experiments.gallery.published import Beside, Published, beside_rows, published_of, reported
from pipeline.experiments.nist_crc import WHERE, _exact, parts_of
from pipeline.experiments.scores_against import beside_pairs, pairs_of
from pipeline.experiments.table1 import MARGINALS, as_printed, map_schema, printed_scores, spearman, weighted
from pipeline.experiments.table1_histograms import laplace_plan
from pipeline.folders import claimed
from pipeline.settings.config import load_config, schema_path
from pipeline.settings.experiment_list import described
from tests.pipeline.conftest import TOWN, command, reply, statement_of

TABLE1 = load_config(["experiment=mgd_table1"]).experiment.options["table1"]
PAPER = as_printed(TABLE1)


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


@pytest.mark.slow
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


@pytest.mark.slow
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
        if name not in ("mgd_table1", "nist_crc"):  # which write theirs anew
            assert [n for n in options["notes"] if " ".join(n.split()) not in " ".join(part.split())] == [], name


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
    with (inside / "against.csv").open(newline="") as file:
        assert {row["smoke"] for row in csv.DictReader(file)} == {"True"}
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_it_runs_on_any_table_with_three_named_columns_and_a_charge_whose_answer_is_lost_stays_spent(town, capsys):
    run = ["run", *SMOKE, *TOWN, COLUMNS, "hydra.run.dir=out"]
    assert "rank correlation of range_query with mgd" in reply(capsys, *run, "console=always").out
    said = reply(capsys, *run, "resume=true").out
    assert "rank correlation" not in said and "table.md" in said
    facts = json.loads((town / "out" / "internal" / "experiment.json").read_text())
    assert facts["data"]["kind"].startswith("town.csv, 10 × 2 × 5")
    assert facts["data"]["shape"] == [10, 2, 5]
    promise = scores(town / "out")["lap-10"]["mgd"]["promise"]
    assert promise == "lap-10: ε = 0.5, δ = 0 for one record; ε = 10 for any 20 records together"
    rows = town / "out" / "internal" / "rows"
    (rows / "lap-10.json").unlink()
    next((rows / "lap-10" / "answers").iterdir()).unlink()
    assert "its answer is lost" in reply(capsys, *run, "resume=true", code=1).err


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
    scores = {(p.dataset, p.epsilon, p.metric): p for p in printed_scores(TABLE1)}
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


CHALLENGES = [
    *("anita_tradeoff", "dpsyn_acs", "dpsyn_appendix_a", "dpsyn_fire", "dpsyn_mwem", "mgd_pums", "nist2018_fire"),
    *("nist2018_pums", "nist2021_sprint2", "nist2021_sprint3", "nist_crc"),
]
MAPS = ["ncript_table2", "nist2021_sprint1"]


def test_every_experiment_has_its_command_first_is_one_of_all_and_is_run_here_or_in_its_own_test():
    files = {p.stem: p.read_text().splitlines() for p in (CONF / "experiment").glob("*.yaml")}
    assert files.keys() == {*CHALLENGES, *MAPS, "dpsyn_figure2", "mgd_table1", "all", "none"}
    for name, lines in files.items():
        if name != "none":
            first = next(line for line in lines if "@package" not in line)
            assert first.startswith("# python -m pipeline run "), name
            assert f"experiment={name}" in first
    assert all(f"{name}: " in described() for name in files)
    assert {*names_of_all()} == files.keys() - {"all", "none"}
    assert settings_of(load_config(["experiment=all"]), AllSettings).tables.keys() <= {*names_of_all()}


#: Seconds each; each shares its code with its neighbours in the list, or has a test of its own (`nist_crc`).
LONG = ("nist_crc", "anita_tradeoff", "ncript_table2", "nist2018_pums", "mgd_pums", "nist2021_sprint3")
LONG += ("dpsyn_appendix_a", "dpsyn_fire", "dpsyn_acs", "dpsyn_mwem", "nist2021_sprint1", "nist2021_sprint2")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in LONG else n for n in (*CHALLENGES, *MAPS)]
)
def test_the_small_version_leaves_a_table_a_figure_and_the_facts(name, folder):
    few = ["experiment.rows=400", "synthesis.rows=400"] if name in CHALLENGES else ["data.rows=400"]
    if name == "mgd_pums":
        few += ["evaluation.max_marginals=20", "experiment.metrics=[mgd,density,gini]"]
        few.append("experiment.against={mgd:[density,gini]}")
    if name == "nist2018_pums":
        few.append("experiment.metrics=[density,gini]")  # ranges over its 98 columns take long; nist2018_fire has them
    assert command("run", f"experiment={name}", "smoke=true", *few, "hydra.run.dir=out") == 0
    inside = Path("out/internal")
    assert inside.stat().st_mode & 0o777 == 0o700
    facts = json.loads((inside / "experiment.json").read_text())
    assert (facts["experiment"], facts["smoke"]) == (name, True) and "generated" in facts["data"]["kind"]
    assert facts["source"] and facts["source_says"]
    with (inside / "table.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows and all(row["score"] != "" for row in rows), rows
    said = (inside / "table.md").read_text()
    assert "NOT private" in said and "say nothing about the method" in said
    assert all("(smoke)" in line for line in said.splitlines() if line.startswith(f"| {rows[0]['dataset']} "))
    assert all(row["smoke"] == "True" and row["reported"] == "" for row in rows)
    assert all(b["published"] is None and b["what"].endswith("(smoke)") for b in facts["beside"])
    assert (inside / "figure.png").read_bytes()[:4] == b"\x89PNG"
    if name in ("anita_tradeoff", "mgd_pums"):
        assert (inside / "against.png").read_bytes()[:4] == b"\x89PNG"
        assert any(b["what"].startswith("rank correlation") for b in facts["beside"])
    if name in CHALLENGES and name not in {"mgd_pums", "nist_crc"}:  # whose stand-in is a table for any command
        own = load_config([f"experiment={name}"]).data.name
        assert command("check", f"data={own}", "data.path=out/internal/stand-in.parquet") == 0
    if name == "ncript_table2":
        assert "213 (" in (inside / "table2.md").read_text()
        assert {p.suffix for i in (1, 2, 3) for p in inside.glob(f"figure{i}.*")} == {".png", ".svg", ".csv"}


#: The scores of `nist2018_fire`.
OF_FIRE = ("density", "range_2018", "round 1", "round 2")


def test_a_challenge_on_a_file_of_ones_own_and_resumed(town):
    own = ["experiment=nist2018_fire", *TOWN, "experiment.epsilons=[1,2]", "experiment.floors=false"]
    own += ["synthesis=independent", "experiment.repeats=1", "hydra.run.dir=out"]
    assert command("run", *own) == 0
    facts = json.loads((town / "out" / "internal" / "experiment.json").read_text())
    assert facts["data"]["kind"] == "town.csv, 600 rows"
    assert [(r["epsilon"], r["metric"]) for r in facts["rows"]] == [(e, m) for e in (1, 2) for m in OF_FIRE]
    density, ranges, one, two = (r["score"] for r in facts["rows"][:4])
    assert one == density and two == pytest.approx((density + ranges) / 2), "DPSyn, section 5.1: equal weights"
    assert (town / "out" / "epsilon-1" / "release" / "privacy.json").exists()
    before = (town / "out" / "internal" / "rows" / "epsilon-1.json").stat().st_mtime_ns
    assert command("run", *own, "resume=true") == 0
    assert (town / "out" / "internal" / "rows" / "epsilon-1.json").stat().st_mtime_ns == before


@pytest.mark.slow
def test_a_sweep_of_challenges_gathers_their_scores(town):
    own = ["experiment=nist2018_fire", *TOWN, "experiment.epsilons=[1]", "experiment.floors=false"]
    assert command("run", "-m", *own, "synthesis=independent,gum", "smoke=true", "hydra.sweep.dir=sweep") == 0
    with (town / "sweep" / "internal" / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {(r["method"], r["metric"]) for r in rows} == {(m, s) for m in ("independent", "gum") for s in OF_FIRE}


@pytest.mark.slow
def test_variants_are_releases_of_their_own_with_their_own_unit_and_bound(town):
    rules = "unit_id: {name: person, records: {2: 0.5, 4: 0.5}}\n"
    (town / "town.yaml").write_text((town / "town.yaml").read_text() + rules)
    three = "experiment.variants=[{epsilon: 1, max_records: 3},{epsilon: 1, unit: record},{epsilon: 9, max_records: 4}]"
    roles = "++experiment.roles={time: sex, segment: job, to: age}"
    own = ["experiment=nist2021_sprint3", *TOWN, three, roles, "privacy.unit=person", "experiment.floors=false"]
    own += ["selection=oneway", "synthesis=independent", "experiment.metrics=[sprint3,tvd]", "hydra.run.dir=out"]
    assert command("run", *own) == 0
    rows = json.loads((town / "out" / "internal" / "experiment.json").read_text())["rows"]
    found = {(r["dataset"], r["metric"]): r for r in rows}
    labels = ["independent, C = 3", "independent, unit record", "independent, C = 4"]
    assert list(dict.fromkeys(r["dataset"] for r in rows)) == labels
    assert all((found[(name, "sprint3")]["score"] is None) == (name == labels[1]) for name in labels)
    assert "the third part" in found[(labels[1], "sprint3")]["reason"]
    assert found[(labels[1], "pickup_dropoff")]["score"] > 0 and found[(labels[1], "tvd")]["score"] is not None
    assert found[(labels[0], "sprint3")]["reported"] == 464 and found[(labels[1], "sprint3")]["reported"] is None
    for name, bound in {"epsilon-1-3": 3, "epsilon-1-record": 1, "epsilon-9-4": 4}.items():
        assert statement_of(town / "out" / name)["unit"]["max_records"] == bound
    assert "undefined: the third part" in (town / "out" / "internal" / "table.md").read_text()


@pytest.mark.parametrize(("name", "printed"), [(n, p[2]) for n, p in PANELS.items()])
def test_the_crossings_of_figure_2_are_those_of_the_paper(name, printed):
    """Li et al. 2021b, Figure 2: lap_basic and gauss_zcdp have equal noise at k = 18, 28, 19 and 28 (rounded)."""
    found = panel(name, SMOKE_KS)
    assert round(crossing(found)) == printed
    assert crossing(found) == pytest.approx({"A": 18.43, "B": 27.64, "C": 18.92, "D": 28.13}[name], abs=0.01)
    adv, zcdp, gdp = (found[curve] for curve in ("lap_adv", "lap_zcdp", "gauss_gdp (ours)"))
    assert all(zcdp[k] < adv[k] for k in SMOKE_KS[1:])
    assert [*gdp.values()] < [*found["gauss_zcdp"].values()]


@pytest.mark.slow
def test_a_folder_says_one_thing_about_what_may_be_published(tmp_path, capsys):
    inside = tmp_path / "out" / "internal"
    assert command("run", "experiment=dpsyn_figure2", "smoke=true", f"hydra.run.dir={tmp_path}/out") == 0
    assert "no table was read" in (said := capsys.readouterr().out) and "may be published" in said
    assert "NOT private" not in said and not (inside / "NOT_PRIVATE.txt").exists()
    words = (inside / "NO_TABLE_READ.txt").read_text()
    facts = json.loads((inside / "experiment.json").read_text())
    assert {n: c["source_says"] for n, c in facts["crossings"].items()} == {"A": 18, "B": 28, "C": 19, "D": 28}
    drawn = (inside / "figure2.svg").read_text()
    assert "gauss_gdp (ours)" in drawn and "_child" not in drawn, "the legend names curves alone"
    left = {p.name for p in inside.iterdir()} - {"NO_TABLE_READ.txt", "run.log", "config.json", "lock", "hydra"}
    assert left and all(name in words for name in left), left
    assert "may be published" in words and "NOT PRIVATE" not in words
    with claimed(tmp_path / "out", resume=False):
        assert not (inside / "NO_TABLE_READ.txt").exists()
        assert "publish" in (inside / "NOT_PRIVATE.txt").read_text()


def test_a_stand_in_has_the_schemas_domain_every_value_and_dependent_columns():
    schema = load_schema(SCHEMAS / "chicago_taxi.yaml")
    made = stand_in(schema, 20_000, 0)
    for attribute, column in zip(schema.domain.attributes, made.columns, strict=True):
        assert set(np.unique(column)) == set(range(attribute.size))
    pair = np.histogram2d(made.column("fare"), made.column("tips"), bins=11)[0] / made.rows
    apart = np.abs(pair - np.outer(pair.sum(axis=1), pair.sum(axis=0))).sum() / 2
    assert apart > 0.05
    again = stand_in(schema, 20_000, 0)
    assert all((a == b).all() for a, b in zip(made.columns, again.columns, strict=True))
    assert np.bincount(subjects(1000, 5, np.random.default_rng(0))).max() <= 5


def test_the_census_stand_in_has_the_papers_columns():
    """Li et al. 2021b, Table 2: 12 of the 98 columns with their numbers of values."""
    domain = load_schema(SCHEMAS / "pums1940.yaml").domain
    assert len(domain) == 98
    paper = {"SPLIT": 2, "SEX": 2, "CITIZEN": 6, "EMPSTATD": 15, "AGEMONTH": 15, "AGE": 130, "RACED": 238}
    paper |= {"DURUNEMP": 100, "EDUCD": 44, "METAREAD": 378, "CITY": 1162}
    assert {name: domain[name].size for name in paper} == paper


@pytest.mark.slow  # a process for each experiment
def test_one_that_failed_is_named_the_others_are_made_and_what_is_finished_is_not_made_again(folder, capsys):
    (folder / "adult.csv").write_text("age,shoe\n30,42\n")  # no table of adults
    one = ["experiment=all", "smoke=true", "experiment.only=[anita_tradeoff,dpsyn_figure2]", "hydra.run.dir=out"]
    one.append("experiment.files.adult=adult.csv")
    said = reply(capsys, "run", *one, code=1).err
    assert "1 of 2 experiments failed: anita_tradeoff" in said and "Traceback" not in said
    assert "of a processor" not in said, "it depends on rows, as scores do"
    assert "1 of 2  anita_tradeoff      failed" in said and "2 of 2  dpsyn_figure2       done" in said
    inside = Path("out/internal")
    first = json.loads((inside / "outcomes.json").read_text())
    page = (inside / "summary.md").read_text()
    assert "It failed: error: " in page and "crossing in panel A" in page and "Figure 2 (A)" in page
    figure = Path("out/dpsyn_figure2/internal/experiment.json")
    made = figure.stat().st_mtime_ns
    assert command("run", *one) == 1 and "resume=true" in capsys.readouterr().err
    said = reply(capsys, "run", *one, "resume=true", code=1).err
    assert "dpsyn_figure2       finished before" in said
    assert figure.stat().st_mtime_ns == made
    again = json.loads((inside / "outcomes.json").read_text())
    assert again["dpsyn_figure2"] == first["dpsyn_figure2"] and again["anita_tradeoff"]["status"] == "failed"


def test_published_numbers_have_a_place_and_stand_beside_the_row_that_they_are_of():
    one = {"metric": "a", "epsilon": 1, "value": 2, "place": "Table 1", "dataset": "x"}
    numbers = published_of([one, {"metric": "a", "epsilon": 10, "value": 3, "place": "Table 1"}])
    assert numbers[0] == Published("a", 2, "Table 1", 1, "x")
    assert reported(numbers, "a", 1, "y") == reported(numbers, "b", 1, "x") == {"reported": None, "place": ""}
    assert reported(numbers, "a", 10.0, "y") == {"reported": 3, "place": "Table 1"}
    row = {"metric": "a", "dataset": "x", "epsilon": 1, "score": 1.5, "reported": 2, "place": "Table 1"}
    found = beside_rows([row, row | {"reported": None}])
    assert [f["difference"] for f in found] == [-0.5, None] and found[0]["place"] == "Table 1"
    for wrong in ({"metric": "a", "value": 1}, {"metric": "a", "value": "1", "place": "x"}, {"metric": "", "value": 1}):
        with pytest.raises(UserError, match=r"experiment\.published"):
            published_of([wrong])
    with pytest.raises(UserError, match="did you mean 'place'"):
        published_of([{"metric": "a", "value": 1, "plcae": "x"}])


def published_in(name: str) -> tuple[Published, ...]:
    options = load_config([f"experiment={name}"]).experiment.options
    return ExperimentSource(published=options.get("published", [])).printed


def test_the_printed_scores_of_sprint_1_follow_from_table_1():
    """Li et al. 2021a, Table 1: Inv Pie is 1 − S / 3336 over 278 places and 12 months."""
    numbers = published_in("nist2021_sprint1")
    assert len(numbers) == 6
    for number in numbers:
        row = PAPER[f"{number.dataset}-{number.epsilon:g}"]
        assert number.value == round(278 * 12 * (1 - row["inverse_pie"])), number


def test_the_printed_total_of_table_2_is_the_weighted_sum_of_its_losses():
    """N-CRiPT 2021, section 3.1.2: total = BP + Σ ω · loss with ω = (0.3, 0.15, 0.15, 0.15, 0.15)."""
    values = {n.metric: n.value for n in published_in("ncript_table2")}
    assert set(values) == {"JSD", "BP", "JD", "HH", "HC", "VC", "total"}
    weights = {"JSD": 0.3, "JD": 0.15, "HH": 0.15, "HC": 0.15, "VC": 0.15}
    assert sum(w * values[k] for k, w in weights.items()) + values["BP"] == pytest.approx(values["total"], abs=1e-3)


@pytest.mark.slow
def test_the_gallery_has_the_printed_numbers_and_a_small_picture_of_each_experiment_in_it():
    docs = CONF.parent / "docs"
    page = (docs / "experiments.md").read_text(encoding="utf-8")
    shown = re.findall(r"^## (\w+)$", page, flags=re.MULTILINE)
    assert len(shown) >= 9 and set(shown) <= set(names_of_all())
    for name in shown:
        part = page.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        assert f"experiment={name}" in part and f"(figures/experiments/{name}.svg)" in part
        picture = docs / "figures" / "experiments" / f"{name}.svg"
        assert b"<svg" in picture.read_bytes() and picture.stat().st_size < 150_000
        for number in published_in(name):
            assert number.place in part, f"{name}: python docs/make_experiments.py makes the page again"


TWO = ["experiment.only=[industry,family]", "experiment.sets.industry=[PUMA,RAC1P]"]
TWO.append("experiment.sets.family=[AGEP,SEX,NPF,NOC]")
SMALL = [*TWO, "experiment.epsilons=[1]", "experiment.repeats=1", "experiment.floors=false", "synthesis=independent"]


CYCLE = ["experiment=nist_crc", "data.path=national2019.csv", *SMALL]


@pytest.fixture
def excerpt(folder):
    """300 people in the dictionary's values, in the place of NIST's file."""
    national, rng = load_schema(SCHEMAS / "national2019.yaml"), np.random.default_rng(0)
    texts = {n: rng.choice(np.array(national[n].values), 300) for n in ("PUMA", "RAC1P", "SEX")}
    family = rng.integers(2, 6, 300)
    texts |= {"NPF": np.where(rng.random(300) < 0.3, "N", family.astype(str)), "AGEP": rng.integers(0, 96, 300)}
    pd.DataFrame(texts | {"NOC": rng.integers(0, 2, 300)}).to_csv("national2019.csv", index=False)
    return folder


def made(*further: str) -> tuple[str, list[dict], Path]:
    assert command("run", *CYCLE, *further, "hydra.run.dir=out") == 0
    folder = Path("out/submission/deid_data/dp-synthesis-pipeline_auto/national")
    labels = [json.loads(p.read_text())["labels"] for p in sorted(folder.glob("*.json"))]
    return Path("out/submission/abstract.md").read_text(), labels, folder


@pytest.mark.slow
def test_each_set_is_scored_by_itself_and_handed_in_with_its_labels(excerpt):
    abstract, labels, folder = made()
    facts = json.loads(Path("out/internal/experiment.json").read_text())
    assert [(r["dataset"], r["epsilon"]) for r in facts["rows"]] == [("industry", 1), ("family", 1)]
    tiny, family = facts["rows"]
    assert tiny["score"] is None and "no pairs" in tiny["reason"]
    assert 0 < family["score"] < 1000 and family["reported"] == 804, "beside the archive's entry of the same set"
    assert not any(WHERE in note for note in facts["notes"])
    of_family, of_tiny = labels
    assert of_tiny["features list"] == "PUMA, RAC1P" and of_tiny["feature set name"] == "industry-focused"
    assert of_family["feature set name"] == "family-focused" and of_family["target dataset"] == "national2019"
    assert (of_family["epsilon"], of_family["delta"], of_family["privacy category"]) == ("1", "2.2e-07", "dp")
    assert [_exact(e) for e in (1.0, 2.0000009, 1e-9)] == ["1", "2.0000009", "1e-09"], "no smaller number is claimed"
    data = (folder / "auto_e_1_family_1.csv").read_text()
    assert of_family["deid data id"] == hashlib.sha1(data.encode()).hexdigest()
    rows = list(csv.DictReader(data.splitlines()))
    assert {r["NPF"] for r in rows} > {"N"} and not any("" in r.values() for r in rows), "N is what is missing"
    told = [r for r in rows if "N" not in (r["NPF"], r["NOC"])]
    assert all(int(r["NOC"]) < int(r["NPF"]) for r in told), "a rule of the schema"
    assert "ε = 1, δ = 2.2e-07" in abstract and "NOT private" not in abstract
    assert str(family["score"])[:5] not in abstract, "scores saw the rows"


@pytest.mark.slow
def test_the_report_of_two_files_has_sdnists_tables(excerpt, capsys):
    files = ["real=national2019.csv", "synthetic=national2019.csv", "schema=national2019", "report=report.html"]
    assert command("score", *files, "metrics=[sdnist_kmarginal]", "evaluation.area=PUMA") == 0
    assert json.loads(capsys.readouterr().out)["metrics"]["sdnist_kmarginal"]["score"] == 1000
    page = Path("report.html").read_text()
    section = page[page.index('id="sdnist"') :]
    for text in ("10% of the real rows", "Areas that lose most", "are unique in both by SEX"):
        assert text in section
    assert command("score", *files, "metrics=[tvd]") == 0
    assert 'id="sdnist"' not in Path("report.html").read_text()


@pytest.mark.slow
def test_a_fixed_seed_is_labelled_as_not_private_and_the_abstract_names_the_unit_that_the_releases_protect(excerpt):
    abstract, labels, _ = made("seed=3", "privacy.unit=PUMA", "privacy.max_records=2")
    assert {each["privacy category"] for each in labels} == {"non_dp"}
    assert all("NOT private: the noise seed is fixed" in each["privacy label detail"] for each in labels)
    assert "**NOT private: 2 of 2 tables.**" in abstract
    assert "each protects all records with the same value of 'PUMA' at" in abstract and "one record" not in abstract


@pytest.mark.slow
def test_without_the_table_the_experiment_says_where_it_is_published(folder, capsys):
    assert command("run", "experiment=nist_crc", "smoke=true", *SMALL, "experiment.rows=300", "hydra.run.dir=out") == 0
    assert WHERE in capsys.readouterr().out
    facts = json.loads(Path("out/internal/experiment.json").read_text())
    assert any(WHERE in note for note in facts["notes"])
    labels = [json.loads(p.read_text())["labels"] for p in Path("out/submission").rglob("*.json")]
    assert {each["target dataset"] for each in labels} == {"generated rows, not national2019"}


def test_a_budget_too_small_for_all_sets_and_tables_that_a_submission_cannot_hold_are_refused_first(excerpt, capsys):
    shared = ["budget.ledger=people.json", "budget.limit={epsilon: 1.2, delta: 1e-6}", "budget.table=national"]
    assert "release.format" in reply(capsys, "run", *CYCLE, "release.format=parquet", "hydra.run.dir=out", code=1).err
    assert not Path("out").exists()
    assert "2 releases of ε = 2 in all" in reply(capsys, "run", *CYCLE, *shared, "hydra.run.dir=out", code=1).err
    assert not list(Path("out").glob("*/epsilon-1"))


def test_a_set_asks_for_no_column_that_it_lacks():
    parts = dict(parts_of(load_config(["experiment=nist_crc"])))
    assert list(parts) == ["demographic", "industry", "family", "simple", "all"]
    assert parts["demographic"].selection.options["important"] == []
    weights = {n: parts[n].selection.options["important_weight"] for n in ("industry", "family", "simple", "all")}
    assert weights == {"industry": 7, "family": 9, "simple": 19, "all": 22}, "in so many triples is a pair of the area"
    assert all(parts[n].selection.options["important"] == ["PUMA"] for n in weights)
    own = dict(parts_of(load_config(["experiment=nist_crc", "selection.important=[AGEP,SEX]"])))
    assert own["industry"].selection.options["important"] == ["SEX"]
    assert parts["demographic"].experiment.options["roles"] == {}
    assert parts["all"].experiment.options["roles"] == {"area": "PUMA"}
    assert {len(p.experiment.options["columns"]) for p in parts.values()} == {10, 9, 11, 21, 24}


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("experiment.only=[famly]", "did you mean 'family'"),
        ("experiment.sets.family=[PUMMA]", "did you mean 'PUMA'"),
        ("+experiment.submission.tema=us", "no such word 'tema'"),
    ],
)
def test_a_wrong_setting_is_named_with_a_way_out(override, said, excerpt, capsys):
    assert said in reply(capsys, "run", *CYCLE, override, "hydra.run.dir=out", code=1).err
