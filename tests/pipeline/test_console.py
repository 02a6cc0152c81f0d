"""What commands print, and what they take: a log gets nothing that saw rows, JSON is one line, settings any letters."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pandas as pd
import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

import pipeline
from mechanisms.public.errors import UserError, check_head
from pipeline.console import LINES, WIDTH, at_most, folded
from pipeline.settings.compose import compose_config
from pipeline.settings.config import QueryConfig, typed
from pipeline.settings.overrides import readable, spelled
from pipeline.version import __version__
from tests.pipeline.conftest import TOWN, command, people, reply

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


def test_asked_for_it_is_printed_everywhere_and_forbidden_nowhere(lossy, capsys):
    said = reply(capsys, *RUN, "console=always")
    assert "column 'sex': 60 of 600" in " ".join(said.err.split()) and "accuracy (sampling baseline): pairs" in said.out
    assert len(said.out.splitlines()) <= LINES
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
    assert len(cut) == LINES and cut[-1].strip() == "7 more lines: report.html"
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
    asked = ["score", "real=town.csv", "synthetic=out/release/synthetic.csv", "metrics=[tvd]", "output=scores.json"]
    told = reply(capsys, *asked, "format=json").out
    assert told.count("\n") == 1 and json.loads(told)["tvd"]["2-way"]["mean"] > 0
    assert json.loads(told) == json.loads(Path("scores.json").read_text(encoding="utf-8"))


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
    ],
)
def test_names_of_the_world(override: str, value: object) -> None:
    assert OverridesParser.create().parse_override(spelled(override)).value() == value
    for stays in ("privacy.epsilon=0.5,1", "a=[[x,y]]", "b={c: [1, 2]}", "d='e'"):
        assert readable(stays) and spelled(stays) == stays


def test_where_with_umlauts() -> None:
    config = typed(compose_config("query", ["where={Straße/Bezirk: [Mitte], Alter: [10, 20]}"]), QueryConfig)
    assert config.where == {"Straße/Bezirk": ["Mitte"], "Alter": [10, 20]}


def test_a_release_with_commas_against_a_table_with_semicolons(folder, capsys):
    frame = pd.DataFrame({"Größe": [1, 2, 3] * 20, "b": [0, 1] * 30})
    frame.to_csv("Bücher.csv", sep=";", index=False)
    frame.to_csv("made.csv", index=False)
    assert command("schema", "Bücher.csv", "delimiter=;", "output=s.yaml") == 0
    given = ["real=Bücher.csv", "synthetic=made.csv", "schema=s.yaml", "delimiter=;", "metrics=[tvd]", "output=o.json"]
    assert "(0 to 1): 1-way 0.0000, 2-way 0.0000 " in reply(capsys, "score", *given).out
