"""Commands, their help and mistakes, and what they print: a log gets nothing of the rows, JSON is one line."""

import json
import os
import pty
import re
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pandas as pd
import pytest
import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser

import pipeline
from evaluation.metrics import declared_settings
from mechanisms.public.errors import UserError, check_head
from mechanisms.public.schema.table_schema import load_schema
from pipeline.commands import asked_commands
from pipeline.conf_folder import CONF
from pipeline.console import LINES, WIDTH, at_most, folded
from pipeline.help import COMMANDS, help_text
from pipeline.settings.compose import compose_config
from pipeline.settings.config import QueryConfig, typed
from pipeline.settings.overrides import readable, spelled
from pipeline.version import __version__
from tests.pipeline.conftest import PAIRS, TOWN, command, edit, people, reply, statement_of

RUN = ["run", *TOWN, "synthesis=independent", "hydra.run.dir=out"]
#: What only somebody who saw the rows can say, in words that a run once printed.
SEEN = ("real", "accuracy", "MGD", "distance 0", "good", "weak", "loses", "values are")


@pytest.fixture
def lossy(town: Path) -> Path:
    table = people(600)
    table.loc[:59, "sex"] = "?"
    table.to_csv(town / "town.csv", index=False)
    return town


def on_a_terminal(*arguments: str) -> str:
    master, slave = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "COLUMNS": "200"}
    line, streams = [sys.executable, "-m", "pipeline", *arguments], dict.fromkeys(("stdin", "stdout", "stderr"), slave)
    child = subprocess.Popen(line, env=environment, **streams)
    os.close(slave)
    said = b""
    while True:
        try:
            part = os.read(master, 65_536)
        except OSError:  # Linux says so at the end
            break
        if not part:
            break
        said += part
    os.close(master)
    assert child.wait() == 0, said.decode()
    return said.decode().replace("\r\n", "\n")


def test_a_log_gets_nothing_that_saw_rows_and_few_lines(lossy, capsys):
    said = reply(capsys, *RUN)
    mean = f"{pd.read_csv('town.csv')['age'].mean():.4g}"
    assert not [word for word in (*SEEN, mean) if word in said.out + said.err], said
    assert '"numbers"' in Path("out/internal/scores.json").read_text(encoding="utf-8")
    lines = said.out.splitlines()
    assert len(lines) <= LINES and max(map(len, lines)) <= max(WIDTH, len(str(lossy)) + 60)
    assert "publish" in said.out and "keep      internal/report.html (NOT private)" in said.out


def test_a_warning_of_a_library_that_two_odd_rows_bring_stands_in_the_runs_own_log_alone(town):
    """Two ages of ±1e308 brought "RuntimeWarning: overflow encountered" to the standard error of a job."""
    table = people(600).astype({"age": object})
    table.loc[:1, "age"] = ["1e308", "-1e308"]
    table.to_csv("town.csv", index=False)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    line = [sys.executable, "-m", "pipeline", *RUN, "evaluation.enabled=false"]
    done = subprocess.run(line, env=environment, capture_output=True, text=True, check=True)
    assert "RuntimeWarning" not in done.stderr + done.stdout
    assert "RuntimeWarning: overflow" in Path("out/internal/run.log").read_text(encoding="utf-8")


def test_asked_for_it_is_printed_everywhere_and_forbidden_nowhere(lossy, capsys):
    said = reply(capsys, *RUN, "console=always")
    assert "column 'sex': 60 of 600" in " ".join(said.err.split()) and "accuracy (sampling baseline): pairs" in said.out
    assert len(said.out.strip().splitlines()) <= LINES
    assert "sex: 60" in Path("out/internal/run.log").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("console", "told"), [("terminal", True), pytest.param("never", False, marks=pytest.mark.slow)]
)
def test_a_terminal_is_told_unless_it_is_forbidden(console, told, lossy):
    said = on_a_terminal(*RUN, f"console={console}")
    assert ("accuracy (sampling baseline): pairs" in said) is told and ("values are outside" in said) is told
    assert "publish" in said


def test_a_refusal_in_a_log_names_the_column_and_no_figure(town, capsys):
    people(600).assign(sex="?").to_csv(town / "town.csv", index=False)
    said = reply(capsys, *RUN, code=1).err
    assert "column 'sex'" in said and "600" not in said and "python -m pipeline check" in said


@pytest.mark.parametrize(
    ("names", "expected", "taken"),
    [
        ("pid age x0 x1 x2 x3 x4", "age u0 u1 u2 u3 pid", True),  # the others stand in a table of units
        ("age", "age", True),
        ("age x0", "age u0", True),
        ("P0007 83 f 49.99 age", "pid age sex price u0", False),
        ("P0007 83", "pid age", False),
        ("a b", "", True),  # of a command that shows rows
    ],
)
def test_a_head_is_known_by_two_of_its_names_or_half(names, expected, taken):
    with nullcontext() if taken else pytest.raises(UserError) as refused:
        check_head(names.split(), expected.split(), where="t.csv", look="`check`")
    assert taken or "P0007" not in str(refused.value)


@pytest.mark.parametrize("twice", ["x", "f"])
def test_a_record_in_the_place_of_a_header_is_quoted_by_commands_that_show_rows_alone(twice, town, capsys):
    table = people(600)
    table.loc[0] = ["P7-Jane-Doe", 83, "f", "HIV+", twice]
    table.to_csv("town.csv", index=False, header=False)
    for asked in (RUN, ["run", "-m", *TOWN, "privacy.epsilon=1,2", "hydra.sweep.dir=grid"]):
        said = reply(capsys, *asked, "console=never", code=1).err
        assert "town.csv: few or none of the names in its head" in said and "check" in said, said
        assert not [word for word in ("Jane", "83", "'f'", "HIV") if word in said], said
    with pytest.raises(UserError, match="frame: few or none"):
        pipeline.fit(table.rename(columns=dict(zip(table.columns, map(str, table.loc[0]), strict=True))), "town.yaml")
    assert ("HIV" if twice == "x" else "'f'") in reply(capsys, "check", *TOWN[1:], code=1).err


@pytest.mark.slow
def test_a_sweep_in_a_log_names_its_files_and_no_score(town, capsys):
    sweep = ["run", "-m", *TOWN, "privacy.epsilon=1,2", "synthesis=independent", "evaluation.metrics=[tvd]"]
    sweep += ["selection=oneway", "hydra.sweep.dir=grid"]
    said = reply(capsys, *sweep).out
    assert not [word for word in ("TVD", "peak memory", "processor") if word in said]
    assert "console=always" in said and "results.csv" in said
    assert "2-way TVD" in reply(capsys, *sweep, "resume=true", "console=always").out


def test_a_log_does_not_tell_how_many_tries_there_were(town, capsys):
    tries = ["accept=[{metric: l1, marginals: 1}]", "accept_tries=4", "seed=2", "evaluation.enabled=false"]
    assert "measure " not in reply(capsys, *RUN, *tries).err
    assert reply(capsys, *RUN[:-1], *tries, "hydra.run.dir=again", "console=always").err.count("measure ") >= 1


def test_lines_are_folded_and_cut_with_a_word_on_the_rest_and_no_sentence_is_cut():
    """'noise drowns 'neighbourhood', …, with' and then '3 more lines': a run ended in the midst of a sentence."""
    assert max(map(len, folded("warning", "many words " * 40))) <= WIDTH
    cut = at_most([[f"line {i}"] for i in range(20)], "report.html")
    assert len(cut) == LINES and cut[-1].strip() == f"{21 - LINES} more lines: report.html"
    sentences = [["a"] * (LINES - 4), ["one", "two"], ["begins", "goes on", "ends"], ["last"]]
    cut = at_most(sentences, "report.html")
    assert cut[:-1] == ["a"] * (LINES - 4) + ["one", "two"] and cut[-1].strip() == "4 more lines: report.html"
    assert at_most(sentences[:2], "report.html") == ["a"] * (LINES - 4) + ["one", "two"]


def test_one_line_of_json_is_all_of_a_quiet_run_and_its_log_has_the_rest(lossy, capsys):
    said = reply(capsys, *RUN, "format=json", "quiet=true", "privacy.epsilon=20")
    assert said.err == "" and said.out.count("\n") == 1
    facts = json.loads(said.out)
    assert facts["private"] and facts["guarantee"]["epsilon"] <= 20 and "scores" not in facts
    assert Path(facts["table"]).parent == Path(facts["folder"]) / "release" and Path(facts["report"]).is_file()
    assert facts["rows"] == len(pd.read_csv(facts["table"])) and any("ε" in w for w in facts["warnings"])
    plain = json.dumps(facts | {"warnings": []})
    assert not [word for word in SEEN if word in plain]
    log = Path("out/internal/run.log").read_text(encoding="utf-8").splitlines()
    assert f"version {__version__}, Python" in log[0] and "'privacy.epsilon=20'" in log[1] and "ε" in log[2]
    assert "INFO load: " in "\n".join(log) and "the run ended: " in log[-1]
    verdict = json.loads(reply(capsys, "verify", "out/release", "format=json").out)
    assert verdict["sound"] and verdict["exit_code"] == 0 and verdict["checks"][0]["holds"] is True
    made = reply(capsys, "synth", "from=out/release", "rows=40", "where={age: [20, 40]}", "output=again", "format=json")
    again = json.loads(made.out)
    assert made.out.count("\n") == 1 and again["rows"] == 40 == len(pd.read_csv(again["table"]))
    assert again["given"]["where"] == {"age": [20, 40]}
    asked = ["score", "real=town.csv", "synthetic=out/release/synthetic.csv", "metrics=[tvd]", "output=scores.json"]
    told = reply(capsys, *asked, "format=json").out
    assert told.count("\n") == 1 and json.loads(told)["tvd"]["2-way"]["mean"] > 0
    assert json.loads(told) == json.loads(Path("scores.json").read_text(encoding="utf-8"))


@pytest.mark.slow
def test_json_holds_scores_only_where_they_are_asked_for_and_a_sweep_is_one_line(town, capsys):
    assert command(*RUN, "format=json", "console=always", "evaluation.metrics=[tvd]") == 0
    assert json.loads(capsys.readouterr().out)["scores"]["tvd"] > 0
    sweep = ["run", "-m", *TOWN, "synthesis=independent", "evaluation.enabled=false", "selection=oneway"]
    said = reply(capsys, *sweep, "privacy.epsilon=1,2", "hydra.sweep.dir=grid", "format=json", "quiet=true")
    assert said.err == "" and set(json.loads(said.out)["jobs"].values()) == {"done"}
    assert command("plan", *TOWN, "format=json") == 0 and json.loads(capsys.readouterr().out)["schema"]


@pytest.mark.parametrize(
    ("given", "where"),
    [
        (["plan", *TOWN, "privacy.epsilon=-1"], "privacy.epsilon"),
        (["plan", *TOWN, "privacy.epsilo=1"], "override 'privacy.epsilo=1'"),
        (["check", "data.path=nope.csv", "data.schema=town.yaml"], "nope.csv"),
        (["plann"], "python -m pipeline"),
    ],
)
def test_an_error_is_json_where_that_is_asked_for(given, where, town, capsys):
    said = reply(capsys, *given, "format=json", code=1)
    told = json.loads(said.err)
    assert not said.out and said.err.count("\n") == 1
    assert told["where"] == where and told["error"] and told["fix"]


@pytest.mark.parametrize(
    "given",
    [
        ["selection.marginals=[[agee,sx]]"],
        ["data.roles={time: agee, kind: sx}"],
        ["selection.important=[agee,sx]"],
        ["evaluation.groups=[agee,sx]"],
        ["evaluation.pairs=[[agee,sx]]"],
        ["evaluation.attributes=[agee,sx]", "evaluation.preset=located"],
    ],
)
def test_all_misspelt_columns_are_told(given: list[str], town: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = reply(capsys, "run", *TOWN, *given, code=1).err
    assert all(word in said for word in ("'agee'", "'sx'", "did you mean 'age'?", "did you mean 'sex'?")), said
    assert given[0].partition("=")[0] in said


def test_all_absent_columns_of_a_table_are_told(town: Path) -> None:
    Path("few.csv").write_text("person,note\np,x\n")
    with pytest.raises(UserError, match=r"no columns 'age', 'sex', 'job' in few.csv"):
        pipeline.check("few.csv", "town.yaml")


@pytest.mark.parametrize(
    ("override", "value"),
    [
        ("data.path=Bücher.csv", "Bücher.csv"),
        ("data.path=out (1).csv", "out (1).csv"),
        ("marginal=[Rückgabe am,Größe]", ["Rückgabe am", "Größe"]),
        ("selection.marginals=[[Straße,Note],[a (b)]]", [["Straße", "Note"], ["a (b)"]]),
        ("delimiter=;", ";"),
        ("real=sqlite:///t.db#SELECT a, b FROM t", "sqlite:///t.db#SELECT a, b FROM t"),
    ],
)
def test_names_of_the_world(override: str, value: object) -> None:
    assert OverridesParser.create().parse_override(spelled(override)).value() == value
    for stays in ("privacy.epsilon=0.5,1", "a=[[x,y]]", "b={c: [1, 2]}", "d='e'"):
        assert readable(stays) and spelled(stays) == stays


def test_where_with_umlauts() -> None:
    config = typed(compose_config("query", ["where={Straße/Bezirk: [Mitte], Alter: [10, 20]}"]), QueryConfig)
    assert config.where == {"Straße/Bezirk": ["Mitte"], "Alter": [10, 20]}


def test_columns_that_are_called_as_numbers_or_flags_can_be_asked_about() -> None:
    for override in ('where={2020: [1, 3], true: "yes"}', 'where={"2020": [1, 3], "true": "yes"}'):
        config = typed(compose_config("query", [override]), QueryConfig)
        assert config.where == {"2020": [1, 3], "true": "yes"}


def test_a_release_with_commas_against_a_table_with_semicolons(folder, capsys):
    frame = pd.DataFrame({"Größe": [1, 2, 3] * 20, "b": [0, 1] * 30})
    frame.to_csv("Bücher.csv", sep=";", index=False)
    frame.to_csv("made.csv", index=False)
    assert command("schema", "Bücher.csv", "delimiter=;", "output=s.yaml") == 0
    given = ["real=Bücher.csv", "synthetic=made.csv", "schema=s.yaml", "delimiter=;", "metrics=[tvd]", "output=o.json"]
    assert "(0 to 1): 1-way 0.0000, 2-way 0.0000 " in reply(capsys, "score", *given).out


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


def paths_of(content: object, before: str = "") -> set[str]:
    """The whole names of all settings in a file, mappings and what stands in them."""
    own = content.items() if isinstance(content, dict) else ()
    return {before + str(key) for key, _ in own}.union(*(paths_of(value, f"{before}{key}.") for key, value in own))


def test_no_help_of_a_choice_names_a_setting_that_is_none():
    """`experiment.acs` was `experiment.files.acs`, and names with digits were left out."""
    shown: set[str] = set()
    for path in (p for p in sorted(CONF.glob("*/*.yaml")) if p.parent.name != "schemas"):
        content, group = yaml.safe_load(path.read_text(encoding="utf-8")), path.parent.name
        text = help_text("run", [f"{group}={path.stem}"])
        named = set(re.findall("^  ([a-z_0-9.]+)=.*", text.partition("settings:")[2], re.MULTILINE))
        assert named <= paths_of(content) | paths_of(content, f"{group}."), path
        shown |= named
    assert {"experiment.files.national2019", "experiment.table2", "experiment.methods.basic"} <= shown


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
    error = reply(capsys, "verify", "somewhere", code=told).err
    assert error.startswith("error: a plugin ended the command (SystemExit)") and "words" not in error


@pytest.mark.slow
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


@pytest.mark.slow
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
