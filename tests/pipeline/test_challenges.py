"""Every published experiment in its small version, beside the source's figures; NIST's cycle with its labels."""

import csv
import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mechanisms.public.errors import UserError
from mechanisms.public.schema.table_schema import load_schema
from pipeline.conf_folder import CONF, SCHEMAS
from pipeline.experiments.challenge_settings import stand_in, subjects
from pipeline.experiments.dpsyn_figure2 import PANELS, SMOKE_KS, crossing, panel
from pipeline.experiments.experiment_settings import ExperimentSource, settings_of
from pipeline.experiments.gallery.all_experiments import AllSettings, names_of_all
from pipeline.experiments.gallery.published import Published, beside_rows, published_of, reported
from pipeline.experiments.nist_crc import WHERE, _exact, parts_of
from pipeline.experiments.table1 import PAPER
from pipeline.folders import claimed
from pipeline.settings.config import load_config
from pipeline.settings.experiment_list import described
from tests.pipeline.conftest import TOWN, command, reply, statement_of

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


#: Ten seconds each; each shares its code with its neighbour in the list (`ncript_table2` with `nist2021_sprint1`), or
#: has a test of its own (`nist_crc`).
LONG = ("nist_crc", "anita_tradeoff", "ncript_table2", "nist2018_pums", "mgd_pums", "nist2021_sprint3")
LONG += ("dpsyn_appendix_a", "dpsyn_fire", "dpsyn_acs")


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


def test_a_fixed_seed_is_labelled_as_not_private(excerpt):
    abstract, labels, _ = made("seed=3")
    assert {each["privacy category"] for each in labels} == {"non_dp"}
    assert all("NOT private: the noise seed is fixed" in each["privacy label detail"] for each in labels)
    assert "**NOT private: 2 of 2 tables.**" in abstract


def test_without_the_table_the_experiment_says_where_it_is_published(folder, capsys):
    assert command("run", "experiment=nist_crc", "smoke=true", *SMALL, "experiment.rows=300", "hydra.run.dir=out") == 0
    assert WHERE in capsys.readouterr().out
    facts = json.loads(Path("out/internal/experiment.json").read_text())
    assert any(WHERE in note for note in facts["notes"])
    labels = [json.loads(p.read_text())["labels"] for p in Path("out/submission").rglob("*.json")]
    assert {each["target dataset"] for each in labels} == {"generated rows, not national2019"}


def test_one_budget_holds_the_releases_of_all_sets_before_the_first_is_made(excerpt, capsys):
    shared = ["budget.ledger=people.json", "budget.limit={epsilon: 1.2, delta: 1e-6}", "budget.table=national"]
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


def test_the_abstract_names_the_unit_that_the_releases_protect(excerpt):
    abstract, _, _ = made("privacy.unit=PUMA", "privacy.max_records=2")
    assert "each protects all records with the same value of 'PUMA' at" in abstract and "one record" not in abstract


def test_tables_that_the_submission_cannot_hold_are_refused_before_anything_is_spent(excerpt, capsys):
    assert "release.format" in reply(capsys, "run", *CYCLE, "release.format=parquet", "hydra.run.dir=out", code=1).err
    assert not Path("out").exists()
