"""Selections that choose, and rows that start from those of a public table: published figures, refusals before all."""

import io
import itertools
import json
import math
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mechanisms.accounting.budget import Budget
from mechanisms.public.errors import UserError
from mechanisms.public.queries.cell_sums import MergedQuery
from mechanisms.public.release_files import load_measurements
from mechanisms.public.schema.table_schema import parse_schema
from mechanisms.public.units import Neighbouring
from mechanisms.selection.base import Facts
from mechanisms.selection.papers.priview import PRECISE, PriViewSettings, strength
from mechanisms.selection.papers.public_table import unit_noise, unit_stddev
from pipeline import api, load
from pipeline.measuring.public_tables import started
from pipeline.settings.build import build_schema
from pipeline.settings.config import SynthesisConfig, load_config
from pipeline.settings.methods import build_synthesizer
from pipeline.settings.specs import build_specs
from pipeline.statement.restated import restated
from pipeline.statement.statement import start_in
from pipeline.statement.words import ABOUT, all_words
from synthesis.synthesizers import SYNTHESIZERS
from tests.pipeline.conftest import TOWN, command, people, reply, statement_of, worded

BASKETS = "name: baskets\nsource: invented for the tests\nconfirmed_public: true\ncolumns:\n"
ITEMS = [f"i{k:02d}" for k in range(14)]
OUT = ["evaluation.enabled=false", "hydra.run.dir=out"]
SHOP = ["data=table", "data.path=shop.csv", "data.schema=shop.yaml", *OUT]


@pytest.fixture
def shop(folder):
    """4,000 baskets of 14 items: three often come together, two others too, the rest are rare."""
    rng = np.random.default_rng(3)
    bought = rng.random((4000, 14)) < 0.02
    bought[:, :3] |= (rng.random(4000) < 0.5)[:, None]
    bought[:, 3:5] |= (rng.random(4000) < 0.4)[:, None]
    text = pd.DataFrame(np.where(bought, "yes", "no"), columns=ITEMS)
    text.to_csv("shop.csv", index=False)
    lines = "".join(f'  {i}: {{kind: flag, true: ["yes"], false: ["no"], missing: false}}\n' for i in ITEMS)
    (folder / "shop.yaml").write_text(BASKETS + lines, encoding="utf-8")
    return bought


def frequent(bought, least, names=ITEMS):
    """The truth: itemsets of up to five items in at least so many rows."""
    sets = [s for k in range(1, 6) for s in itertools.combinations(range(len(names)), k)]
    return {tuple(names[i] for i in s) for s in sets if bought[:, list(s)].all(1).mean() >= least}


@pytest.mark.parametrize("neighbouring", ["add_remove", "replace"])
def test_privbasis_finds_the_frequent_itemsets_at_high_epsilon(shop, tmp_path, neighbouring):
    settings = ["selection=privbasis", "selection.items=5", "selection.pairs=4", "privacy.epsilon=50"]
    assert command("run", *SHOP, *settings, f"privacy.neighbouring={neighbouring}") == 0
    found = api.itemsets(tmp_path / "out" / "release", 0.3)
    assert {tuple(i) for i in found["items"]} == frequent(shop, 0.3)
    truth = [shop[:, [ITEMS.index(n) for n in i]].all(1).sum() for i in found["items"]]
    assert np.abs(found["count"] - truth).max() < 5 * found["stddev"].max()
    made = pd.read_csv(tmp_path / "out" / "release" / "synthetic.csv")
    assert (made[ITEMS[:3]] == "yes").all(axis=1).mean() == pytest.approx(shop[:, :3].all(1).mean(), abs=0.02)


def test_privbasis_under_pure_epsilon(shop, tmp_path):
    settings = ["selection=privbasis", "privacy.accountant=basic", "privacy.delta=0", "privacy.epsilon=30"]
    assert command("run", *SHOP, *settings, "selection.items=5", "selection.pairs=4") == 0
    said = statement_of(tmp_path / "out")
    assert 29 < said["spent"]["epsilon"] <= 30
    assert said["spent"]["delta"] == 0
    assert {tuple(i) for i in api.itemsets(tmp_path / "out" / "release", 0.3)["items"]} >= frequent(shop, 0.42)


@pytest.mark.parametrize("epsilon", [5, 0.001])
def test_indif_keeps_the_dependence_and_spends_all_where_no_pair_is_worth_its_noise(town, epsilon):
    assert command("run", *TOWN, *OUT, "selection=indif", f"privacy.epsilon={epsilon}") == 0
    said = statement_of(town / "out")
    assert 0.99 * epsilon < said["spent"]["epsilon"] <= epsilon, "one-way marginals are measured again"
    measured = {tuple(e["clique"]) for e in said["events"] if e["clique"] and len(e["clique"]) > 1}
    assert any({"age", "job"} <= set(c) for c in measured) or epsilon < 1


def test_a_public_table_chooses_free_of_cost(town):
    people(900, seed=7).to_csv("public.csv", index=False)
    for selection in ("public", "groups"):
        settings = [f"selection={selection}", "selection.public=public.csv", "privacy.epsilon=5"]
        assert command("run", *TOWN, *OUT, f"hydra.run.dir={selection}", *settings) == 0
        said = statement_of(town / selection)
        cliques = {tuple(e["clique"]) for e in said["events"]}
        assert any({"age", "job"} <= set(c) for c in cliques)
        assert {"fact": "public_table", "name": "public.csv"} in said["public_facts"]
        assert all(e["mechanism"] != "exponential" for e in said["events"])


@pytest.mark.parametrize("selection", ["indif", "groups", "priview", "pairs"])
def test_plan_holds_the_noise_of_each_candidate_against_the_rows(town, capsys, selection):
    facts = json.loads(reply(capsys, "plan", *TOWN, f"selection={selection}", "plan.rows=600", "plan.format=json").out)
    assert facts["candidates"]
    assert all(0 < c["error_alone"] <= c["error_all"] * (1 + 1e-9) for c in facts["candidates"])
    text = reply(capsys, "plan", *TOWN, f"selection={selection}", "plan.rows=600", "plan.details=true").out
    assert "times the rows" in text
    assert ("distances from independence" in text) == (selection in ("indif", "groups"))


@pytest.mark.parametrize(("mechanism", "factor"), [("gaussian", math.sqrt(math.pi / 2)), ("laplace", math.sqrt(2))])
def test_declared_rows_are_held_against_the_deviation_of_the_noise_itself(mechanism, factor):
    budget = Budget(1.0, 1e-6, "gdp", Neighbouring.ADD_REMOVE, max_records=1)
    facts = Facts(parse_schema({f"c{i}": 2 for i in range(6)}, where="test"), mechanism, budget)
    domain, one = facts.domain, np.ones(1)
    assert unit_stddev(facts, domain) == pytest.approx(factor * float(unit_noise(facts, domain)(one)[0]))
    designs = PriViewSettings(view_cells=8)._designs(domain)
    enough = math.ceil(strength(domain, designs[1], unit_stddev(facts, domain), 1.0) / PRECISE)
    assert PriViewSettings(view_cells=8, rows=enough)._views(facts, domain) == designs[1]
    assert PriViewSettings(view_cells=8, rows=enough - 1)._views(facts, domain) == designs[0]


def test_indif_asks_pairs_over_merged_values_and_gum_leaves_the_rarest_out(town, capsys):
    """Li et al. 2021b, section 5.3: rare jobs stand as one in pairs."""
    own = [*TOWN, "privacy.epsilon=50", "selection=indif", "selection.merge=3", "selection.floor=250", "seed=3"]
    made = ["synthesis=gum", "synthesis.rare=3", "evaluation.enabled=false", "hydra.run.dir=out"]
    assert command("run", *own, *made) == 0
    known = load_measurements(town / "out" / "release" / "measurements")
    merged = [a for a in known.answers if isinstance(a.query, MergedQuery)]
    assert merged and all(len(a.clique) > 1 and a.query.rows < a.query.columns for a in merged)
    assert command("verify", "out/release") == 1  # a fixed seed: everything else holds
    said = capsys.readouterr().out
    assert [line for line in said.splitlines() if line.startswith("NO ")] == [], said
    assert command("plan", *own[:3], "selection=groups", "selection.public=public.csv", "selection.merge=3") == 1


@pytest.mark.slow
def test_the_distances_of_all_pairs_are_a_table(town, capsys):
    """InDif, section 5.2: the L1 distance from the product of the one-way counts, here at a sharp ε."""
    sharp = [*TOWN, "privacy.epsilon=1000000", "privacy.delta=1e-3", "selection=indif", "synthesis=independent"]
    assert command("run", *sharp, "evaluation.enabled=false", "hydra.run.dir=out") == 0
    told = pd.read_csv(io.StringIO(reply(capsys, "query", "from=out/release", "distances=true").out))
    assert set(told["marginal"]) == {"age × sex", "age × job", "sex × job"}
    table = people(600)
    true = pd.crosstab(table["sex"], table["job"]).to_numpy(float)
    alone = np.outer(true.sum(axis=1), true.sum(axis=0)) / true.sum()
    row = told.set_index("marginal").loc["sex × job"]
    assert row["distance"] == pytest.approx(np.abs(true - alone).sum(), abs=3)
    assert row["indif"] == pytest.approx(row["distance"] / 600, rel=0.01)
    assert list(told["distance"]) == sorted(told["distance"], reverse=True)
    assert load("out").distances()["distance"].tolist() == told["distance"].tolist()
    assert command("run", *sharp, "selection=oneway", "evaluation.enabled=false", "hydra.run.dir=ones") == 0
    assert "no distances" in reply(capsys, "query", "from=ones/release", "distances=true", code=1).err


TAXI = ["data=chicago_taxi", "selection=taxi", "mechanism=gaussian", "privacy.delta=2.5e-5", "plan.format=json"]


@pytest.mark.parametrize(
    ("accountant", "epsilon", "bound", "sigma"),
    [("zcdp", 1, 150, 5739.36), ("gdp", 1, 150, 4290.24), ("zcdp", 10, 200, 895.42), ("gdp", 10, 200, 784.12)],
)
def test_plan_prints_the_scales_of_paper_003(capsys, accountant, epsilon, bound, sigma):
    """66 marginals, the copies as the weight of one: its noise is that of the mean of 8."""
    settings = [f"privacy.epsilon={epsilon}", f"privacy.max_records={bound}", f"privacy.accountant={accountant}"]
    facts = json.loads(reply(capsys, "plan", *TAXI, *settings).out)
    scales = [m["scale"] for m in facts["measurements"]]
    assert len(scales) == 59
    copied = facts["measurements"][scales.index(min(scales))]
    assert copied["clique"] == ["pickup_community_area", "dropoff_community_area"]
    assert min(scales) == pytest.approx(sigma / 8**0.5, abs=0.01)
    assert sorted(scales)[1:] == pytest.approx([sigma] * 58, abs=0.005)
    orders = [len(m["clique"]) for m in facts["measurements"]]
    assert orders == sorted(orders)
    assert sum(1 / s**2 for s in scales) == pytest.approx(66 / sigma**2, rel=1e-5)


@pytest.mark.parametrize("selection", ["mst", "mwem", "aim", "adagrid"])
def test_plan_names_choices_and_what_is_chosen_later(town, capsys, selection):
    text = reply(capsys, "plan", *TOWN, f"selection={selection}").out
    assert ("rounds, in all" if selection == "aim" else "a private choice") in text
    assert "ε = 1" in text


def test_targets_stand_in_every_marginal(town):
    settings = ["synthesis=pgm", "hydra.run.dir=out", "selection.targets=[job]", "privacy.epsilon=20"]
    assert command("run", *TOWN, "selection=adagrid", *settings) == 0
    said = statement_of(town / "out")
    cliques = {tuple(e["clique"]) for e in said["events"] if e["mechanism"] != "exponential"}
    assert {("age", "job"), ("sex", "job"), ("age", "sex", "job")} <= cliques


START = ["synthesis=gum", "synthesis.public=known.csv"]
FEW = [*TOWN, "evaluation.enabled=false", "selection=oneway", "privacy.epsilon=9", "synthesis.seed=3"]
HELD = "from whose rows the synthetic ones were changed"


@pytest.fixture
def known(town: Path) -> Path:
    """A town whose neighbouring town is public: there smiths are old and bakers are young, as here."""
    people(500, seed=7).to_csv(town / "known.csv", index=False)
    return town


def public_facts(folder: Path) -> list[str]:
    return [fact for fact in worded(folder / "release")["public_facts"] if HELD in fact]


def test_what_no_answer_tells_stays_as_in_the_public_table_and_what_one_tells_does_not(known, capsys):
    """Li et al. 2021b, section 7: public data improve a private release. Only one-way marginals are measured here."""
    table = pd.read_csv(known / "known.csv")
    table["sex"] = "f"  # what is public is wrong here, and one noisy answer mends it
    table.to_csv(known / "known.csv", index=False)
    assert command("run", *FEW, "synthesis=gum", "hydra.run.dir=plain") == 0
    assert command("run", *FEW, *START, "hydra.run.dir=out") == 0
    real, (plain, made) = pd.read_csv("town.csv"), (pd.read_csv(f"{n}/release/synthetic.csv") for n in ("plain", "out"))
    truth, without, started = (float(((t["age"] < 30) & (t["job"] == "baker")).mean()) for t in (real, plain, made))
    assert abs(started - truth) < 0.05 < abs(without - truth)
    assert abs((made["sex"] == "f").mean() - (real["sex"] == "f").mean()) < 0.02
    assert not public_facts(known / "plain")
    said = " ".join(capsys.readouterr().out.split())
    _, plainly, started_with = said.split("warning no pair of columns was measured")
    assert "no more than the schema says" in plainly and "public table" not in plainly
    assert "the synthetic table shows what the public table 'known.csv' shows" in started_with


def test_the_statement_names_the_table_or_is_found_out_and_synth_takes_it_alone_and_makes_the_same_rows(known, capsys):
    assert command("run", *FEW, *START, "hydra.run.dir=out") == 0
    (sentence,) = public_facts(known / "out")
    assert sentence.startswith("the table 'known.csv' (synthesis.public)") and "SHA-256" in sentence
    said = worded(known / "out" / "release")
    assert "a public table with the very rows of the private one refuses the run" in said["outside"]
    assert command("verify", "from=out/release") == 0
    assert command("synth", "from=out/release", *START, "synthesis.seed=3", "output=again") == 0
    first, again = (known / f / "release" / "synthetic.csv" for f in ("out", "again"))
    assert first.read_bytes() == again.read_bytes()
    release = known / "out" / "release"
    said, index = (json.loads((release / n).read_text()) for n in ("privacy.json", "measurements/index.json"))
    assert restated(release, said, index)[0]
    silent = {**said, "public_facts": [f for f in said["public_facts"] if f["fact"] != "public_start"]}
    assert restated(release, silent, index) == (False, "outside has 2 entries, not 1"), "outside names a public table"
    assert command("run", *FEW, "synthesis=gum", "hydra.run.dir=plain") == 0
    people(400, seed=8).to_csv("known.csv", index=False)
    for run in ("plain", "out"):
        error = reply(capsys, "synth", f"from={run}/release", *START, f"output=new-{run}", code=1).err
        assert "was not made from this public table" in error and "synthesis.public" in error
        assert not Path(f"new-{run}").exists()


def test_rows_that_start_from_no_public_table_are_not_said_to_and_those_made_from_it_again_are(known):
    assert command("run", *FEW, *START, "hydra.run.dir=out") == 0
    assert command("synth", "from=out/release", "synthesis=independent", "output=plain") == 0
    assert command("synth", "from=plain/release", *START, "output=again") == 0
    told = {}
    for folder in ("out", "plain", "again"):
        assert command("verify", f"from={folder}/release") == 0
        said = all_words(json.loads((known / folder / "release" / "privacy.json").read_text()))
        assert "a public table with the very rows of the private one refuses the run" in said["outside"], "the run's"
        told[folder] = " ".join([*said["public_facts"], *(said[k] for k in ABOUT)])
        pages = [(known / folder / "release" / n).read_text() for n in ("croissant.json", "deployment.yaml")]
        assert [("the schema and the public table" in page) for page in pages] == [folder != "plain"] * 2
    assert told["out"] == told["again"] != told["plain"]
    assert "from whose rows the run's own table started; the rows of this release do not start from it" in told["plain"]
    assert "handed the noisy answers and the schema alone" in told["plain"]


@pytest.mark.parametrize("kind", [k for k, spec in SYNTHESIZERS.items() if "public" not in spec.__dataclass_fields__])
def test_a_synthesizer_without_a_public_start_says_which_has_one(kind, known, capsys):
    for way in (["plan", *TOWN], ["run", *TOWN, "hydra.run.dir=out"]):
        error = reply(capsys, *way, f"synthesis={kind}", "synthesis.public=known.csv", code=1).err
        assert "a public start is for synthesis=gum alone" in error and "synthesis.public=known.csv" in error
        assert "synthesis=gum (or gum_paper) synthesis.public=FILE, or leave it out" in error
        assert not Path("out").exists()
    with pytest.raises(UserError, match="a public start is for synthesis=gum alone"):
        build_synthesizer(SynthesisConfig(kind, options={"public": "known.csv"}))


def test_merged_values_and_a_resumed_run_keep_the_start(known, capsys):
    own = [*TOWN, "evaluation.enabled=false", "selection=indif", "selection.merge=4.5", "hydra.run.dir=out"]
    assert command("run", *own, *START) == 0
    people(400, seed=8).to_csv("known.csv", index=False)
    shutil.rmtree("out/release")
    assert "changed since the run began: start" in reply(capsys, "run", *own, *START, "resume=true", code=1).err


def test_a_public_table_that_changed_since_its_digest_was_taken_is_refused(known):
    config = load_config([*TOWN, *START])
    spec, schema = build_synthesizer(config.synthesis), build_schema(build_specs(config))
    digest = start_in(config.synthesis)
    assert started(spec, config.synthesis, schema, digest) is not spec
    people(400, seed=8).to_csv("known.csv", index=False)
    with pytest.raises(UserError, match="changed while it was read"):
        started(spec, config.synthesis, schema, digest)
