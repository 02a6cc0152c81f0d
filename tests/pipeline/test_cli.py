"""Commands, help, plan, and what a user's mistakes look like: one clear message, exit code 1, nothing half-written."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from evaluation.metrics import declared_settings
from mechanisms.public.schema.table_schema import load_schema
from pipeline.commands import asked_commands
from pipeline.conf_folder import CONF
from pipeline.help import COMMANDS
from tests.pipeline.conftest import PAIRS, TOWN, command, edit, people, reply, statement_of

#: A run of a moment: no scores, one column at a time.
QUICK = ["selection=oneway", "synthesis=independent", "evaluation.enabled=false"]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_settings_and_examples(name, capsys):
    text = reply(capsys, name, "--help").out
    assert callable(getattr(asked_commands, name))
    assert all(words in text for words in ("settings:", "examples:", f"python -m pipeline {name}"))


def test_the_help_of_run_begins_with_what_most_people_set_and_says_how_to_see_the_rest(capsys):
    texts = [reply(capsys, "run", "--help", *words).out for words in ([], ["all"])]
    groups = {path.name for path in CONF.iterdir()}
    first, every = ({*re.findall(r"^  ([a-z_.]+)=", text, flags=re.MULTILINE)} - groups for text in texts)
    assert len(first) <= 30 and first < every
    assert {"privacy.epsilon", "privacy.unit", "synthesis.rows", "resume", "data.path", "plugins"} <= first
    assert not {"selection.max_cells", "experiment.rows"} & first, "what only some choices have"
    assert "--help selection=aim" in texts[0] and "mgd_table1|" in texts[0]
    assert f"{len(every - first)} more settings: python -m pipeline run --help all" in texts[0]


@pytest.mark.parametrize("group", ["selection", "synthesis", "mechanism", "experiment"])
def test_the_help_of_a_choice_is_what_its_file_says(group, capsys):
    for path in sorted((CONF / group).glob("*.yaml")):
        text = reply(capsys, "run", "--help", f"{group}={path.stem}").out
        assert text.startswith(f"{group}={path.stem}\n") and "settings:" in text
        content = path.read_text(encoding="utf-8")
        assert next(x[1:].strip() for x in content.splitlines() if x.startswith("#") and "@package" not in x) in text
        own = re.findall(r"^([a-z_]+): [^#\n]*# ", content, flags=re.MULTILINE)
        assert all(f"  {group}.{name}=" in text for name in own if name != "kind")
        assert "privacy.unit=" not in text or group == "experiment"


@pytest.mark.parametrize(("name", "file"), [("run", "config"), ("synth", "synth"), ("score", "score")])
def test_every_setting_stands_in_the_help_under_its_whole_name(name, file, capsys):
    assert command(name, "--help", "all") == 0
    listed = {line.split("=")[0].strip() for line in capsys.readouterr().out.splitlines() if "=" in line}
    settings = yaml.safe_load((CONF / f"{file}.yaml").read_text()) | {
        group: yaml.safe_load((CONF / group / f"{choice}.yaml").read_text())
        for group, choice in (("privacy", "default"), ("budget", "default"), ("evaluation", "default"))
        if name == "run" or (name, group) == ("score", "evaluation")
    }
    names = [
        f"{group}.{key}" if key else group
        for group, value in settings.items()
        if group not in {"defaults", "hydra"}
        for key in (value if isinstance(value, dict) else [None])
        if key != "defaults"
    ]
    if "evaluation" in settings:
        names += [f"evaluation.{setting}" for setting in declared_settings()]
    assert len(names) > 3
    assert not set(names) - listed
    assert not {"publisher", "key"} & listed


def test_plan_shows_every_measurement_of_the_run_without_opening_the_data(town, one_run, capsys):
    (town / "town.csv").unlink()
    assert command("plan", *TOWN, *PAIRS, "privacy.unit=person", "privacy.max_records=4", "plan.format=json") == 0
    plan = json.loads(capsys.readouterr().out)
    assert [m["scale"] for m in plan["measurements"]] == [e["scale"] for e in statement_of(one_run)["events"]]
    assert len(plan["measurements"]) == 6
    assert sum(m["share"] for m in plan["measurements"]) == pytest.approx(1)
    assert plan["total"]["epsilon"] <= 1
    assert plan["predicted_memory_bytes"] > 0
    text = reply(capsys, "plan", *TOWN, *PAIRS).out
    assert "age × sex" in text
    assert "the plan spends" in text


def test_wild_values_never_make_a_run_fail(town):
    wild = "age,sex,job\nabc,f,baker\nNaN,m,smith\ninf,x,\n-inf,,astronaut\n1e400,f,clerk\n12.7,f,baker\n"
    (town / "town.csv").write_text(wild)
    assert command("run", *TOWN, "hydra.run.dir=out", "data.max_unplaced=1") == 0


def test_an_opt_in_refusal_quotes_no_value_and_leaves_no_release(town, capsys):
    edit(town / "town.yaml", "values: [f, m]", "values: [f, m], outside: refuse")
    (town / "town.csv").write_text("age,sex,job\n1,secretvalue,baker\n")
    error = reply(capsys, "run", *TOWN, "hydra.run.dir=out", code=1).err
    assert "sex" in error
    assert "secretvalue" not in error
    assert not (town / "out" / "release").exists()


def test_the_exit_code_is_1_without_a_traceback_and_the_traceback_can_be_asked_for(town):
    arguments = [sys.executable, "-m", "pipeline", "run", *TOWN, "privacy.epsilo=1"]
    for environment in ({}, {"HYDRA_FULL_ERROR": "1"}):
        done = subprocess.run(arguments, cwd=town, capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == 1 and ("Traceback" in done.stderr) == bool(environment)


@pytest.mark.parametrize(("code", "told"), [(0, 1), (None, 1), (3, 3), ("words", 1)])
def test_a_part_of_others_that_ends_the_process_is_no_success(code, told, monkeypatch, capsys):
    monkeypatch.setattr(asked_commands, "verify", lambda rest: lambda: sys.exit(code))
    assert ("SystemExit" in reply(capsys, "verify", "somewhere", code=told).err) is not bool(code)


def test_a_semicolon_is_taken_as_the_shell_hands_it_over(town, capsys):
    people(50).to_csv("semi.csv", sep=";", index=False)
    assert command("schema", "semi.csv", "delimiter=;", "output=semi.yaml") == 0
    semi = ["run", *TOWN, *QUICK, "data.path=semi.csv", "data.delimiter=;", "hydra.run.dir=out"]
    assert command(*semi) == command(*semi, "resume=true") == 0
    people(50).to_csv("tab.csv", sep="\t", index=False)
    assert command("run", *TOWN, *QUICK, "data.path=tab.csv", "data.delimiter=tab", "hydra.run.dir=out2") == 0


def test_a_draft_may_hold_a_hierarchy_built_by_clustering(town, capsys):
    Path("jobs.csv").write_text("sex,place\nf,1\nm,2\nother,9\n")
    asked = "cluster={sex: {coordinates: jobs.csv, levels: [2], names: [side, sex]}}"
    assert command("schema", "town.csv", asked, "output=drafted.yaml") == 0
    tree = load_schema(Path("drafted.yaml"))["sex"].hierarchy
    assert tree.leaves == ("f", "m", "other") and tree.level("side").nodes == ("f (2)", "other (1)")
    capsys.readouterr()
    assert command("schema", "town.csv", "cluster=2") == 1
    assert "cluster={place: {coordinates: places.csv, levels: [5, 25]}}" in capsys.readouterr().err


def test_a_release_holds_the_hierarchy_and_needs_no_file_beside_it(town, capsys):
    Path("sexes.csv").write_text("sex,all\nf,everyone\nm,everyone\n")
    edit(Path("town.yaml"), "values: [f, m]", "values: [f, m], hierarchy: sexes.csv")
    assert command("run", *TOWN, *QUICK, "hydra.run.dir=out") == 0
    Path("sexes.csv").unlink()
    tree = load_schema(Path("out/release/schema.yaml"))["sex"].hierarchy
    assert [level.nodes for level in tree.levels] == [("everyone",), ("f", "m")]
    assert command("synth", "from=out/release", "output=again", "synthesis=independent") == 0


def test_the_version_is_told(capsys):
    assert reply(capsys, "--version").out[0].isdigit()


def test_score_dives_into_mgd_and_takes_an_own_list_of_marginals(town, capsys):
    people(500, seed=2).to_csv("made.csv", index=False)
    tables = ["real=town.csv", "synthetic=made.csv", "schema=town.yaml", "output=scores.json", "metrics=mgd"]
    details = {"marginals": "the worst first", "attributes": "moving along", "slices": "value", "bins": "moved_out"}
    for detail, said in (details | {"all": "movements"}).items():
        asked = ["evaluation.delta=0", f"detail={detail}", "worst=2", "top=5"]
        assert said in reply(capsys, "score", *tables, *asked).out
        found = json.loads((town / "scores.json").read_text())
        assert len(found.get("deep_dive", [])) == (0 if detail == "marginals" else 2)
    (town / "targets.yaml").write_text("- {attributes: [age, job], weights: {age: 1}, delta: 0}\n- [sex]\n")
    assert command("score", *tables, "evaluation.targets=targets.yaml") == 0
    first, second = json.loads((town / "scores.json").read_text())["mgd"]["marginals"]
    assert (first["attributes"], first["weights"], first["delta"]) == (["age", "job"], {"age": 1.0, "job": "inf"}, 0)
    assert second["attributes"] == ["sex"]


def test_a_model_that_is_too_large_names_marginals_and_fit_drops_the_least_useful(town, capsys):
    model = [*TOWN, "selection=pairs", "synthesis=pgm", "synthesis.max_cells=70"]
    error = reply(capsys, "plan", *model, "selection.fit=false", code=1).err
    assert "synthesis.max_cells" in error
    assert "selection.fit=true" in error
    weights = "selection.weights=[{marginal: [age, job], weight: 9}]"
    plan = json.loads(reply(capsys, "plan", *model, weights, "plan.format=json").out)
    assert ["age", "job"] in [m["clique"] for m in plan["measurements"]]
    assert ["age", "sex"] in plan["no_room"]
    assert plan["model_cells"] <= 70
    named = "selection.marginals=[[age,sex],[age,job],[sex,job]]"
    assert command("plan", *model, named) == 1  # what a person names is never dropped unasked
    assert "selection.fit=true" in capsys.readouterr().err
    assert "selection.fit" in reply(capsys, "plan", *TOWN, "selection.fit=true", code=1).err
