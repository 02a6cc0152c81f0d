"""Runs on a schema with open ends, or an open bound on records: one budget, one ledger, a concrete release."""

import json
import math
import re
import shutil
from pathlib import Path

import pytest

import pipeline
from mechanisms.public.schema.table_schema import load_schema
from pipeline.settings.build import build_discovery, build_plan, build_schema, build_workload
from pipeline.settings.config import load_config
from pipeline.settings.specs import build_specs
from pipeline.statement.verify import verify
from tests.pipeline.conftest import PAIRS, TOWN, command, copy_of, done_in, done_once, people, reply, statement_of
from tests.pipeline.forgeries import with_leaf

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
    table = people(600)
    table.loc[0, ["person", "job"]] = ["the king", "king of the town"]
    table.loc[1, "age"] = 999
    table.to_csv(folder / "town.csv", index=False)
    (folder / "town.yaml").write_text(OPEN, encoding="utf-8")
    return done_in(folder, "run", *RUN)


def facts_of(run):
    return " ".join((run / "release" / "statement.html").read_text(encoding="utf-8").split())


@pytest.fixture
def run(once, tmp_path, monkeypatch):
    return copy_of(once, tmp_path, monkeypatch)


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
    assert "job (values), from noisy answers of this run" in facts_of(once / "out")


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
        ("age discovery", {"column": "age", "what": ["values"], "threshold": 1e9}, "was found out in another way"),
    ],
)
def test_each_word_about_what_was_discovered_follows_from_the_schema_and_a_plan_made_anew(run, name, forged, said):
    verdict = with_leaf(run / "out" / "release", *name.split(" "), forged)
    assert [c for c in verdict.checks if c.holds is False and said in c.finding], verdict.as_text()


def test_what_discovered_bounds_cut_off_is_said_to_the_operator_alone(run, capsys):
    for console, told in (("always", True), ("terminal", False)):
        said = reply(capsys, "run", *RUN[:-1], f"hydra.run.dir={console}", f"console={console}")
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
    assert not any(e.get("discovery") for e in statement_of(run / "next")["events"])
    assert "from noisy answers of an earlier release" in facts_of(run / "next")


def test_values_that_are_not_of_the_kind_stop_the_run_before_any_charge(run, capsys):
    people(600).assign(age="n/a").to_csv("town.csv", index=False)
    assert command("run", *RUN[:-1], "hydra.run.dir=next", "console=always") == 1
    assert "column 'age' loses 100.0 % of its values" in capsys.readouterr().err
    assert not (run / "next" / "internal" / "ledger.jsonl").exists()


@pytest.mark.slow
def test_weeks_between_bounds_that_were_found_become_fewer_bins_where_no_marginal_is_small_enough(run, capsys):
    (run / "town.yaml").write_text(
        "confirmed_public: true\ncolumns:\n  age: {kind: integer, min: 0, max: 99, missing: false}\n"
        "  born: {kind: date, bounds: discover, bins: week, missing: false}\n",
        encoding="utf-8",
    )
    people(60).assign(born=[f"{1900 + 3 * i}-01-01" for i in range(60)]).to_csv("town.csv", index=False)
    asked = ["selection=priview", "synthesis=independent", "evaluation.enabled=false", "hydra.run.dir=next"]
    assert "of born are listed, or so many bins made" in " ".join(reply(capsys, "run", *TOWN, *asked).err.split())
    assert verify(run / "next" / "release").sound


@pytest.mark.slow
def test_joint_bins_go_where_bins_between_bounds_become_fewer(run):
    born = "  born: {kind: date, bounds: discover, bins: month, joint_bins: {count: 30}}\n"
    schema = re.sub("  age: .*\n", "  age: {kind: categorical, values: discover}\n" + born, OPEN)
    (run / "town.yaml").write_text(schema, encoding="utf-8")
    people(4000).assign(born=[f"{1950 + i % 50}-05-01" for i in range(4000)]).to_csv("town.csv", index=False)
    asked = ["selection=pairs", "selection.max_cells=44", "evaluation.enabled=false", "privacy.epsilon=100"]
    asked += ["privacy.discovery_share=0.9", "hydra.run.dir=next", "selection.marginals=[[sex,age]]"]
    assert command("run", *TOWN, *asked) == 0


def test_marginals_that_what_was_found_makes_impossible_give_way_and_are_not_refused_after_the_charge(run, capsys):
    """Ages are more values than fit, and nobody's own id is found."""
    texts = "kind: categorical, values: discover"
    schema = re.sub("  age: .*\n", f"  age: {{{texts}}}\n  person: {{{texts}}}\n", OPEN)
    (run / "town.yaml").write_text(schema.replace("[note, person]", "[note]"), encoding="utf-8")
    people(4000).assign(person=[f"p{i}" for i in range(4000)]).to_csv("town.csv", index=False)
    asked = ["selection=pairs", "selection.max_cells=44", "evaluation.enabled=false", "privacy.epsilon=100"]
    asked += ["privacy.delta=1e-6", "privacy.discovery_share=0.9", "hydra.run.dir=next"]
    assert command("run", *TOWN, *asked, "selection.marginals=[[sex,age],[person,sex],[person]]") == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "no value of person was found beyond the noise" in said and "values of age are listed" in said
    assert verify(run / "next" / "release").sound
    assert 1 < len(load_schema(run / "next" / "release" / "schema.yaml")["age"].values) <= 20
    measured = statement_of(run / "next")["events"]
    assert {tuple(e["clique"]) for e in measured if e.get("clique")} == {("age", "sex"), ("sex",)}
    assert command("run", *TOWN, *asked[:-1], "hydra.run.dir=none", "selection.marginals=[[person]]") == 1
    assert "is found, which noise decides" in capsys.readouterr().err
    assert not (run / "none" / "internal" / "ledger.jsonl").exists()


def test_a_plan_shows_what_is_asked_first(run, capsys):
    text = reply(capsys, "plan", *RUN).out
    assert "bounds and bins of age" in text and "discovered first, for 10 % of the budget" in text
    assert "for δ′ = 1e-07" in text and "the plan spends: ε = 30" in text


@pytest.mark.parametrize("accountant", ["gdp", "zcdp", "basic", "auto"])
@pytest.mark.parametrize("selection", ["auto", "pairs", "mst", "adagrid"])
def test_every_way_to_measure_shares_one_budget_with_what_is_discovered(once, monkeypatch, selection, accountant):
    monkeypatch.chdir(once)
    config = load_config([*RUN[:-1], f"selection={selection}", f"privacy.accountant={accountant}"])
    specs = build_specs(config)
    schema = build_schema(specs)
    plan = build_plan(specs, build_workload(specs, schema), schema)
    first = build_discovery(specs, schema)
    assert plan.discovery == first and 29.99 < plan.loss.epsilon <= 30 and plan.loss.delta <= 1e-6
    concrete = load_schema(once / "out" / "release" / "schema.yaml")
    rest = build_plan(specs, build_workload(specs, concrete), concrete, first)
    assert rest.discovery == first
    assert 29.99 < rest.loss.epsilon <= 30 and rest.loss.delta <= 1e-6


@pytest.mark.parametrize("settings", [["mechanism=laplace", "selection=auto"], ["privacy.accountant=basic"]])
def test_what_anybody_can_check_holds_for_laplace_noise_and_units_that_are_replaced(run, settings):
    assert command("run", *RUN[:-1], *settings, "privacy.neighbouring=replace", "hydra.run.dir=next") == 0
    verdict = verify(run / "next" / "release")
    assert verdict.sound, verdict.as_text()


UNIT_SETTINGS = ["privacy.unit=person", "privacy.max_records=discover", "privacy.max_records_cap=20"]
UNIT_SETTINGS.append("privacy.epsilon=20")
UNIT_RUN = [*TOWN, *PAIRS, *UNIT_SETTINGS, "evaluation.enabled=false"]


@pytest.fixture(scope="module")
def once_by_unit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return done_once(tmp_path_factory.mktemp("c"), "run", *UNIT_RUN, "hydra.run.dir=out")


@pytest.fixture
def run_by_unit(once_by_unit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return copy_of(once_by_unit, tmp_path, monkeypatch)


def test_c_is_what_noisy_counts_say_and_all_else_is_calibrated_to_it(once_by_unit: Path) -> None:
    statement = statement_of(once_by_unit / "out")
    first, *rest = statement["events"]
    asked = first["discovery"]
    assert first["id"] == "discovery:(records per unit)" and first["sensitivity"] == 1 and asked["cap"] == 20
    assert len(asked["noisy"]) == 6 and asked["chosen"] == statement["unit"]["max_records"] in (2, 4, 8, 16)
    assert {e["sensitivity"] for e in rest} == {statement["unit"]["max_records"]}
    assert statement["private"] and first["share"] == pytest.approx(0.1)
    assert re.search("C = .*noisy counts of this run", facts_of(once_by_unit / "out"))
    lines = [json.loads(line) for line in (once_by_unit / "out" / "internal" / "ledger.jsonl").read_text().splitlines()]
    assert [i for i, line in enumerate(lines) if "plan" in line] == [0, 2]
    verdict = verify(once_by_unit / "out" / "release")
    assert verdict.sound, verdict.as_text()


def test_a_larger_share_of_large_units_gives_a_larger_c(run_by_unit: Path) -> None:
    table = people(600)
    table["person"] = [f"p{i // 15}" for i in range(len(table))]
    table.to_csv("town.csv", index=False)
    assert command("run", *UNIT_RUN, "hydra.run.dir=many") == 0
    few, many = (statement_of(name)["unit"]["max_records"] for name in ("out", "many"))
    assert many in (16, 20) and few < 16


@pytest.mark.parametrize(
    ("name", "forged", "said"),
    [
        ("unit.max_records", 1, "the noisy counts of units say"),
        ("discovery.chosen", 16, "follows as"),
        ("discovery.noisy", [0.0, 0.0, 0.0, 0.0, 0.0, 900.0], "the noisy counts of units say 20"),
        ("discovery.noisy", None, "shows the opposite"),
        ("discovery.cap", 4, "counts for"),
        ("sensitivity", 0.5, "moves by 1 when one unit changes"),
        ("discovery.noise_per_record", 1e9, "the noisy counts of units say 1"),
        ("discovery.noise_per_record", 1.0, "discovery.noise_per_record is 1.0, and follows as"),
        ("discovery.noisy", "moved", "counts of units that are not on the lattice"),
        ("discovery.what", ["bounds"], "discovery.what"),
    ],
)
def test_a_c_that_does_not_follow_is_told(run_by_unit: Path, name: str, forged: object, said: str) -> None:
    event, path = ("", name) if name.startswith("unit") else ("(records per unit)", name)
    moved = (lambda noisy: [n + 1e-9 for n in noisy]) if forged == "moved" else forged
    verdict = with_leaf(run_by_unit / "out" / "release", event, path, moved)
    assert not verdict.sound and said in verdict.as_text(), verdict.as_text()


def test_a_run_goes_on_with_the_same_c(run_by_unit: Path) -> None:
    before = statement_of(run_by_unit / "out")
    shutil.rmtree(run_by_unit / "out" / "release")
    assert command("run", *UNIT_RUN, "hydra.run.dir=out", "resume=true") == 0
    assert statement_of(run_by_unit / "out") == before


@pytest.mark.slow
def test_columns_and_c_are_discovered_together_the_columns_at_one_record_per_unit(run_by_unit: Path) -> None:
    (run_by_unit / "town.yaml").write_text(OPEN, encoding="utf-8")
    settings = [*UNIT_RUN[:-2], "privacy.epsilon=60", "privacy.delta=1e-6", "evaluation.enabled=false"]
    for further in ([], ["mechanism=laplace", "privacy.neighbouring=replace", "privacy.clip=truncate"]):
        out = f"open{len(further)}"
        assert command("run", *settings, *further, f"hydra.run.dir={out}") == 0
        first = [e for e in statement_of(run_by_unit / out)["events"] if e.get("discovery")]
        assert [e["sensitivity"] for e in first] == pytest.approx([1, math.sqrt(2), 1] if not further else [2, 4, 2])
        assert first[2]["discovery"]["values_per_unit"] == 1 and sum(e["share"] for e in first) == pytest.approx(0.1)
        verdict = verify(run_by_unit / out / "release")
        assert verdict.sound, verdict.as_text()


@pytest.mark.slow
def test_a_plan_a_look_a_rehearsal_and_a_frame_know_it(run_by_unit: Path, capsys) -> None:
    said = reply(capsys, "plan", *UNIT_RUN).out
    assert "C records to be discovered, at most 20" in said and "one more record of C costs" in said
    assert command("check", "data.path=town.csv", "data.schema=town.yaml", *UNIT_SETTINGS[:3]) == 0
    assert "have more than privacy.max_records" not in capsys.readouterr().out
    assert command("rehearse", TOWN[0], TOWN[2], *UNIT_RUN[3:], "plan.rows=80", "hydra.run.dir=again") == 0
    facts = {"schema": "town.yaml", "unit": "person", "max_records": "discover", "epsilon": 20, "selection": "pairs"}
    release = pipeline.fit(people(600), **facts, **{"privacy.max_records_cap": 20}, quiet=True)
    assert release.statement["unit"]["max_records"] in (2, 4, 8, 16)  # 20 only if noise is 5 of its standard deviations
