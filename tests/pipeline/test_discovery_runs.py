"""Runs on a schema with open ends: one budget, one ledger, and a release whose schema is concrete."""

import json
import shutil

import pytest
import yaml

from mechanisms.public.schema.table_schema import load_schema
from pipeline.settings.build import build_discovery, build_plan, build_schema, build_workload
from pipeline.settings.config import load_config
from pipeline.settings.specs import build_specs
from pipeline.statement.verify import verify
from tests.pipeline.conftest import PAIRS, TOWN, command, done_once, people, rebound, statement_of, worded

OPEN = """
name: town
source: invented for the tests
confirmed_public: true
columns:
  age: {kind: integer, bounds: discover, within: [0, 1000], bins: {discover: 6}, missing: false}
  sex: {kind: categorical, values: [f, m], missing: false}
  job: {kind: categorical, values: discover}
leave_out: [note, person]
"""
SETTINGS = ["privacy.unit=person", "privacy.max_records=3", "privacy.epsilon=30", "privacy.delta=1e-6"]
RUN = [*TOWN, *PAIRS, *SETTINGS, "evaluation.enabled=false", "hydra.run.dir=out"]


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    """One run, with a person whose job nobody else has."""
    folder = tmp_path_factory.mktemp("open")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.pipeline.conftest.SCHEMA", OPEN)
        patch.setattr("tests.pipeline.conftest.people", with_a_king)
        done_once(folder, "run", *RUN)
    return folder


def with_a_king(rows, seed=1):
    table = people(rows, seed)
    table.loc[0, ["person", "job"]] = ["the king", "king of the town"]
    table.loc[1, "age"] = 999
    return table


@pytest.fixture
def run(once, tmp_path, monkeypatch):
    """A copy of it, in which the test stands."""
    shutil.copytree(once, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_released_schema_is_concrete_and_says_what_was_discovered(once):
    schema = load_schema(once / "out" / "release" / "schema.yaml")
    assert not schema.to_discover
    assert schema["age"].discovered == ("bounds", "bins") and schema["job"].discovered == ("values",)
    assert schema["job"].values == ("baker", "clerk", "smith") and schema["sex"].discovered == ()
    assert 0 <= schema["age"].low < 20 and 80 < schema["age"].high < 400
    everything = b"".join(p.read_bytes() for p in (once / "out" / "release").rglob("*") if p.is_file())
    assert b"king" not in everything


def test_one_ledger_holds_both_plans_and_the_statement_says_what_was_discovered(once):
    lines = [json.loads(line) for line in (once / "out" / "internal" / "ledger.jsonl").read_text().splitlines()]
    plans = [i for i, line in enumerate(lines) if "plan" in line]
    assert plans == [0, 3] and [line["event"]["id"] for line in lines[1:3]] == ["discovery:age", "discovery:job"]
    statement = statement_of(once / "out")
    first = [e for e in statement["events"] if e.get("discovery")]
    assert [e["discovery"]["column"] for e in first] == ["age", "job"] and all(e["answered"] for e in first)
    assert sum(e["share"] for e in first) == pytest.approx(0.1)
    assert first[1]["failure"] == pytest.approx(1e-7) and first[1]["discovery"]["values_per_unit"] == 3
    assert statement["private"] and statement["spent"]["delta"] <= 1e-6 and statement["original"] == {}
    assert verify(once / "out" / "release").sound
    assert any(
        "job (values), from noisy answers of this run" in fact
        for fact in worded(once / "out" / "release")["public_facts"]
    )


def with_leaf(release, event, path, value):
    """The release with another value in one place of a receipt, or of its statement; its manifest made anew."""
    statement = json.loads((release / "privacy.json").read_text())
    place = next((e for e in statement["events"] if e["id"] == f"discovery:{event}"), statement)
    *outer, last = path.split(".")
    for key in outer:
        place = place[key]
    place[last] = value(place[last]) if callable(value) else value
    (release / "privacy.json").write_text(json.dumps(statement))
    rebound(release)
    return verify(release)


@pytest.mark.parametrize(
    ("name", "forged", "said"),
    [
        ("job discovery.threshold", 1.5, "a threshold of 1.5, safe is"),
        ("job discovery.threshold", 1e6, "follows as"),
        ("job discovery.values_per_unit", 1, "follows as 3"),
        ("job sensitivity", 0.5, "moves by 1 when one unit changes"),
        ("job failure", 1e-12, "safe is"),
        ("job failure", 2e-6, "leave nothing of δ"),
        ("age discovery.what", ["bounds x"], "discovery.what"),
        ("age discovery.what", ["bounds"], "discovery.what"),
        ("age discovery.column", "sex", "discovery"),
        ("age discovery.leaves", 1002, "follows as"),
        ("age discovery.leaves", 10**9, "leaves of a column"),
        ("age discovery.specials", 1, "discovery.specials is 1, and follows as 0"),
        ("age answered", False, "age was found out, and its charge is said to be lost"),
        ("job answered", False, "job was found out, and its charge is said to be lost"),
        ("job discovery.what", ["bounds"], "discovery.what"),
        ("job share", 0.06, "follows as"),
    ],
)
def test_each_word_about_what_was_discovered_follows_from_the_schema_and_a_plan_made_anew(run, name, forged, said):
    verdict = with_leaf(run / "out" / "release", *name.split(" "), forged)
    assert [c for c in verdict.checks if c.holds is False and said in c.finding], verdict.as_text()


def test_what_discovered_bounds_cut_off_is_said_to_the_operator_alone(run, capsys):
    for console, told in (("always", True), ("terminal", False)):
        assert command("run", *RUN[:-1], f"hydra.run.dir={console}", f"console={console}") == 0
        said = capsys.readouterr()
        line = "they count as the nearest bound"  # the one of 999 years, and whom noisy bounds cut off beside
        assert (line in " ".join((said.out + said.err).split())) is told
        assert (" column 'age' loses " in said.out) is told
        assert line not in (run / console / "release/privacy.json").read_text()


def test_a_run_goes_on_from_kept_answers_and_a_new_table_needs_no_rows(run):
    before = (run / "out" / "release" / "schema.yaml").read_text()
    shutil.rmtree(run / "out" / "release")
    assert command("run", *RUN, "resume=true") == 0
    assert (run / "out" / "release" / "schema.yaml").read_text() == before
    (run / "town.csv").unlink()
    assert command("synth", "from=out/release", "output=again") == 0
    assert command("query", "from=out/release", "marginal=[age,job]") == 0


def test_a_released_schema_serves_as_it_is_and_is_said_to_be_an_earlier_ones(run):
    shutil.copy(run / "out" / "release" / "schema.yaml", run / "town.yaml")
    assert command("run", *RUN[:-1], "hydra.run.dir=next") == 0
    statement = statement_of(run / "next")
    assert not any(e.get("discovery") for e in statement["events"])
    assert any(
        "from noisy answers of an earlier release" in fact for fact in worded(run / "next" / "release")["public_facts"]
    )


def test_values_that_are_not_of_the_kind_stop_the_run_before_any_charge(run, capsys):
    people(600).assign(age="n/a").to_csv("town.csv", index=False)
    assert command("run", *RUN[:-1], "hydra.run.dir=next", "console=always") == 1
    assert "column 'age' loses 100.0 % of its values" in capsys.readouterr().err
    assert not (run / "next" / "internal" / "ledger.jsonl").exists()


def test_marginals_that_what_was_found_makes_impossible_give_way_and_are_not_refused_after_the_charge(run, capsys):
    """Ages are more values than fit, and nobody's own id is found."""
    schema = OPEN.replace(
        "  age: {kind: integer, bounds: discover, within: [0, 1000], bins: {discover: 6}, missing: false}\n", ""
    )
    schema = schema.replace("leave_out: [note", "  age: {kind: categorical, values: discover}\nleave_out: [note")
    schema = schema.replace(
        "leave_out: [note, person]", "  person: {kind: categorical, values: discover}\nleave_out: [note]"
    )
    (run / "town.yaml").write_text(schema, encoding="utf-8")
    people(4000).assign(person=[f"p{i}" for i in range(4000)]).to_csv("town.csv", index=False)
    asked = ["selection=pairs", "selection.max_cells=44", "evaluation.enabled=false", "privacy.epsilon=100"]
    asked += ["privacy.delta=1e-6", "privacy.discovery_share=0.9", "hydra.run.dir=next"]
    assert command("run", *TOWN, *asked, "selection.marginals=[[sex,age],[person,sex],[person]]") == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "no value of person was found beyond the noise" in said and "values of age are listed" in said
    assert verify(run / "next" / "release").sound
    assert 1 < len(load_schema(run / "next" / "release" / "schema.yaml")["age"].values) <= 20
    measured = statement_of(run / "next")["events"]
    assert {tuple(e["clique"]) for e in measured if e.get("clique")} == {("sex", "age"), ("sex",)}
    assert command("run", *TOWN, *asked[:-1], "hydra.run.dir=none", "selection.marginals=[[person]]") == 1
    assert "is found, which noise decides" in capsys.readouterr().err
    assert not (run / "none" / "internal" / "ledger.jsonl").exists()


def test_a_plan_shows_what_is_asked_first(run, capsys):
    assert command("plan", *RUN) == 0
    text = capsys.readouterr().out
    assert "bounds and bins of age" in text and "discovered first, for 10 % of the budget" in text
    assert "for δ′ = 1e-07" in text and "the plan spends: ε = 30" in text


@pytest.mark.parametrize("accountant", ["gdp", "zcdp", "basic", "auto"])
@pytest.mark.parametrize("selection", ["auto", "pairs", "mst", "adagrid"])
def test_every_way_to_measure_shares_one_budget_with_what_is_discovered(run, selection, accountant):
    config = load_config([*RUN[:-1], f"selection={selection}", f"privacy.accountant={accountant}"])
    specs = build_specs(config)
    schema = build_schema(specs)
    plan = build_plan(specs, build_workload(specs, schema), schema)
    first = build_discovery(specs, schema)
    assert plan.discovery == first and 29.99 < plan.loss.epsilon <= 30 and plan.loss.delta <= 1e-6
    concrete = load_schema(run / "out" / "release" / "schema.yaml")
    rest = build_plan(specs, build_workload(specs, concrete), concrete, first)
    assert (rest.discovery == first and rest.composed[:2] != plan.composed[:2]) or rest.events[:0] == ()
    assert 29.99 < rest.loss.epsilon <= 30 and rest.loss.delta <= 1e-6


def test_check_says_what_a_run_will_discover(run, capsys):
    assert command("check", "data.path=town.csv", "data.schema=town.yaml") == 0
    text = capsys.readouterr().out
    assert "values: a run discovers them with noise" in text
    assert yaml.safe_load((run / "town.yaml").read_text())["columns"]["job"]["values"] == "discover"


@pytest.mark.parametrize("settings", [["mechanism=laplace", "selection=auto"], ["privacy.accountant=basic"]])
def test_what_anybody_can_check_holds_for_laplace_noise_and_units_that_are_replaced(run, settings):
    assert command("run", *RUN[:-1], *settings, "privacy.neighbouring=replace", "hydra.run.dir=next") == 0
    verdict = verify(run / "next" / "release")
    assert verdict.sound, verdict.as_text()
