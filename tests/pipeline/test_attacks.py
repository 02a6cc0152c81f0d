"""What was once a way to a wrong privacy claim, and is none; nobody but a person confirms that a schema is public."""

import fcntl
import json
import os
import shutil
import time
from pathlib import Path

import pandas as pd
import pytest

from mechanisms.public.schema.schema_text import names_the_table
from mechanisms.public.schema.table_schema import load_schema
from pipeline.statement.verify import verify
from tests.pipeline.conftest import TOWN, command, copy_of, done_once, people, rebound, reply, statement_of, worded
from tests.pipeline.test_statement import page

ROOT = Path(__file__).parents[2]
FORMS = {
    "sizes.json": '{"a": 2, "b": 3}',
    "kinds.json": '{"a": {"kind": "integer", "min": 0, "max": 1}, "b": {"kind": "integer", "min": 0, "max": 2}}',
    "kinds.yaml": "a: {kind: integer, min: 0, max: 1}\nb: {kind: integer, min: 0, max: 2}\n",
    "false.yaml": "confirmed_public: false\ncolumns: {a: {kind: categorical, size: 2}}\nleave_out: [b]\n",
}


@pytest.fixture
def codes(folder):
    pd.DataFrame({"a": [0, 1] * 60, "b": [0, 1, 2] * 40}).to_csv("codes.csv", index=False)
    for name, text in FORMS.items():
        (folder / name).write_text(text)
    return folder


def run(name, *further):
    table = ["data=table", "data.path=codes.csv", f"data.schema={name}", "hydra.run.dir=out"]
    return command("run", *table, "synthesis=independent", "evaluation.enabled=false", *further)


@pytest.mark.parametrize("name", FORMS)
def test_a_schema_that_nobody_confirmed_makes_no_private_release_until_the_command_line_confirms_it(name, codes):
    assert not load_schema(codes / name).confirmed_public
    assert run(name) == 0
    said = worded(codes / "out/release")
    assert said["private"] is False
    assert any("confirmed_public" in reason for reason in said["reasons_not_private"])
    assert "confirmed by nobody" in said["public_facts"][0]
    assert run(name, "data.confirmed_public=true", "hydra.run.dir=confirmed") == 0
    said = worded(codes / "confirmed/release")
    assert said["private"] is True
    assert "on the command line (data.confirmed_public=true), not in the schema's file" in said["public_facts"][0]
    assert "confirmed_public: false" in (codes / "confirmed/release/schema.yaml").read_text()  # no person wrote true


OWN = ["a draft from the table itself", "The data themselves.", "codes.csv", "/elsewhere/Codes.csv", "codes"]
OWN += ["min and max of each column", "this file", "ｃｏｄｅｓ．ｃｓｖ", "codes_csv", "codes csv, by hand"]
OWN += ["co\u200bdes.csv", "own data", "the table codes.csv", "values seen in the rows"]
OWN += ["codes.csv, looked through by hand"]


@pytest.mark.parametrize(("source", "how"), [(OWN[0], "in the file"), ("/elsewhere/Codes.csv", "on the command line")])
def test_a_schema_whose_source_is_the_table_itself_cannot_be_confirmed(source, how, codes, capsys):
    own = FORMS["false.yaml"].replace("columns:", f"source: {source}\ncolumns:")
    (codes / "own.yaml").write_text(own)
    assert run("own.yaml", "hydra.run.dir=unconfirmed") == 0
    assert statement_of(codes / "unconfirmed")["private"] is False
    if how == "in the file":
        (codes / "own.yaml").write_text(own.replace("false", "true"))
        checked = ["check", "data.path=codes.csv", "data.schema=own.yaml"]
        assert "is the table itself" in reply(capsys, *checked, code=1).err
    assert run("own.yaml", "data.confirmed_public=true") == 1
    said = capsys.readouterr().err
    assert f"source: {source!r} is the table itself" in said and "min and max of each column, " in said
    assert "a codebook, a form, a law" in said
    assert not (codes / "out").exists(), "nothing was spent"


@pytest.mark.parametrize("how", ["in the file", "on the command line"])
def test_a_draft_under_a_schema_with_another_source_cannot_be_confirmed_either(how, codes, capsys):
    confirmed = f"confirmed_public: {'true' if how == 'in the file' else 'false'}\n"
    (codes / "draft.yaml").write_text(FORMS["false.yaml"][24:] + f"source: {OWN[0]}\n{confirmed}")
    (codes / "own.yaml").write_text(f"base: draft.yaml\nsource: a codebook\n{confirmed}")
    assert run("own.yaml", *([] if how == "in the file" else ["data.confirmed_public=true"])) == 1
    assert f"source: {OWN[0]!r} is the table itself" in capsys.readouterr().err and not (codes / "out").exists()


def test_a_source_is_the_table_itself_where_it_names_its_file_or_nothing_else():
    names = ("town", "/data/Town.csv.gz")
    own = [*OWN[:2], "Our own data.", "this table", "THE 'TOWN' TABLE", "town.csv", "./town.csv.gz"]
    own += ["file:///x/town.csv", "min and max of the columns", "town.csv's rows, and the clinic's form"]
    own += ["taken  from\nthe  raw file"]
    assert [s for s in own if not names_the_table(s, *names)] == []
    assert [s for s in OWN if not names_the_table(s, "codes", "codes.csv")] == []
    others = ["the town's register", "census data", "the data dictionary", "a codebook", "https://x.org/town.csv", ""]
    others += ["each town's register", "the Town-Hall's list", "the published domain of the data"]
    others += ["mytown.csv of the office", "open data portal", "values of the ICD-10"]
    shipped = [load_schema(path) for path in (ROOT / "conf" / "schemas").glob("*.yaml")]
    assert len(shipped) > 10 and [s.name for s in shipped if names_the_table(s.source, s.name, f"{s.name}.csv")] == []
    assert [s for s in others if names_the_table(s, *names)] == []
    names = ("town", "data/town_2020.csv.gz")  # marks between the words of its name are as good as any others
    own = ["town 2020", "Town-2020.csv", "town_2020 csv gz", "TOWN2020", "the file town.2020", "ＴＯＷＮ＿2020"]
    assert [s for s in [*own, "ﬁle town 2020"] if not names_the_table(s, *names)] == []
    others = ["town 20201", "the towns of 2020", "register of town 2020", "statistics office: 2020, town by town"]
    assert [s for s in others if names_the_table(s, *names)] == []


def test_a_release_that_claims_a_confirmed_draft_of_the_table_is_not_sound(codes):
    (codes / "kinds.yaml").write_text("source: a codebook\nconfirmed_public: true\n" + FORMS["false.yaml"][24:])
    assert run("kinds.yaml") == 0 and verify(codes / "out/release").sound
    assert "confirmed as public in the schema's file" in worded(codes / "out/release")["public_facts"][0]
    for path in (codes / "out/release").glob("*"):
        if path.suffix in {".json", ".yaml", ".html", ".csv"}:
            path.write_text(path.read_text().replace("a codebook", OWN[0]))
    rebound(codes / "out/release")
    verdict = verify(codes / "out/release")
    assert not verdict.sound and "private is True, and follows as False" in "\n".join(c.finding for c in verdict.checks)


def test_a_hostile_source_or_name_is_read_in_time_that_grows_with_its_length():
    begun = time.process_time()
    assert not names_the_table("a+" * 100_000 + "://", "p")
    assert not names_the_table("x " * 2_000, "a." * 10_000)
    assert time.process_time() - begun < 5


#: Its marginals are named: what the default measures follows from noise, and so would the number of answers.
UNIT = [*TOWN, "selection=pairs", "privacy.unit=person", "privacy.max_records=2", "synthesis=independent"]
UNIT.append("evaluation.enabled=false")
RUN = ["run", *UNIT, "hydra.run.dir=out"]
AGAIN = [*RUN, "resume=true"]


@pytest.fixture(scope="module")
def ran_once(tmp_path_factory):
    return done_once(tmp_path_factory.mktemp("ran"), *RUN)


@pytest.fixture
def ran(ran_once, tmp_path, monkeypatch):
    return copy_of(ran_once, tmp_path, monkeypatch)


def test_a_folder_named_like_a_column_changes_no_unit_and_no_value(town):
    """Engines read key=value folders as columns: the ids of all units would become one."""
    for name in ("unit=x", "sex=f"):
        (town / name).mkdir()
        people(600).to_parquet(town / name / "t.parquet")
        assert command("run", *UNIT, f"data.path='{name}/t.parquet'", f"hydra.run.dir='{name}/out'") == 0
        made = pd.read_csv(town / name / "out" / "release" / "synthetic.csv")
        assert 250 < len(made) < 550  # 200 persons, at most two records each
        assert set(made["sex"]) == {"f", "m"}


def test_a_release_that_came_from_elsewhere_is_never_taken_for_the_runs_own(town, capsys):
    assert command("run", *UNIT, "seed=1", "hydra.run.dir=seeded") == 0
    assert command("synth", "from=seeded/release", "output=mixed") == 0
    assert "a release of something else" in reply(capsys, "run", *UNIT, "hydra.run.dir=mixed", code=1).err


def test_a_resumed_run_refuses_a_release_that_was_changed(ran, capsys):
    for name in ("privacy.json", "marginals/index.csv"):
        path = ran / "out" / "release" / name
        path.write_text((whole := path.read_text()).replace("1", "2"))
        assert f"not as this run wrote it: {name}" in reply(capsys, *AGAIN, code=1).err
        path.write_text(whole)
    shutil.rmtree(ran / "out" / "release")
    assert command(*AGAIN) == 0


def test_a_run_goes_on_with_the_version_that_measured(town, capsys, monkeypatch):
    """Its statement names one version, by which advisories are looked up: another one's answers are not its own."""
    with monkeypatch.context() as older:
        for module in ("pipeline.load_stage", "pipeline.statement.papers"):
            older.setattr(f"{module}.__version__", "0.1.0")
        assert command(*RUN) == 0
    shutil.rmtree(town / "out" / "release")
    assert "changed since the run began: pipeline" in reply(capsys, *AGAIN, code=1).err
    assert not (town / "out" / "release").exists()


def test_answers_without_a_charge_are_never_released(ran, capsys):
    for loss in ("absent", "empty"):
        shutil.copytree("out", loss)
        shutil.rmtree(ran / loss / "release")
        ledger = ran / loss / "internal" / "ledger.jsonl"
        ledger.unlink() if loss == "absent" else os.truncate(ledger, 0)
        error = reply(capsys, *AGAIN, f"hydra.run.dir={loss}", code=1).err
        assert "the ledger was charged for, or does not follow" in error
        assert not (ran / loss / "release").exists()


def test_a_charge_without_an_answer_is_said_and_nothing_is_released_without_any(ran, capsys):
    shutil.rmtree(ran / "out" / "release")
    first, *rest, last = sorted((ran / "out" / "internal" / "answers").iterdir())
    first.unlink()
    last.unlink()
    assert "2 of 6 measurements are spent without an answer" in " ".join(reply(capsys, *AGAIN).err.split())
    assert statement_of("out")["events"][0]["answered"] is False and command("verify", "out/release") == 0
    text = page(ran / "out" / "release").text
    assert "6 charges, each with all its numbers in privacy.json; 2 of them charged and lost" in text
    assert "noisy counts of 3 columns, and of 2 combinations of them" in text
    shutil.rmtree(ran / "out" / "release")
    for path in rest:
        path.unlink()
    assert "6 of 6 measurements are spent" in reply(capsys, *AGAIN, code=1).err
    assert not (ran / "out" / "release").exists()


def test_a_damaged_file_of_a_run_is_named_and_nothing_is_measured_again(ran, capsys):
    for file in ("manifest.json", "ledger.jsonl", "answers/00001.npz"):
        path = ran / "out" / "internal" / file
        whole = path.read_bytes()
        path.write_text("{\n")
        error = reply(capsys, *AGAIN, code=1).err
        assert "damaged" in error and path.name in error
        path.write_bytes(whole)


def test_a_second_process_touches_nothing_of_a_run_at_work(town, capsys):
    (town / "out" / "internal" / "tmp").mkdir(parents=True)
    part = town / "out" / "internal" / "tmp" / "part"
    part.write_text("half of a release")
    with (town / "out" / "internal" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "another process is at work" in reply(capsys, *RUN, code=1).err
    assert part.exists()


def test_no_command_writes_what_saw_rows_into_a_release(ran, capsys):
    tables = ["real=town.csv", "synthetic=out/release/synthetic.csv", "schema=town.yaml"]
    assert command("run", "-m", *UNIT, "hydra.sweep.dir=sweep", "privacy.epsilon=1,2") == 0
    (ran / "link").symlink_to(ran / "out" / "release")
    before = sorted((ran / "out" / "release").rglob("*"))
    for arguments in (
        ["score", *tables, "output=out/release/scores.json"],
        ["schema", "town.csv", "output=out/release/measurements/draft.yaml"],
        ["run", *UNIT, "hydra.run.dir=out/release"],
        ["run", *UNIT, "hydra.run.dir=out/release/inner"],
        ["run", "-m", *UNIT, "hydra.sweep.dir=sweep", "hydra.sweep.subdir=../out/release/job"],
        ["synth", "from=out/release", "output=out/release/again"],
        ["query", "from=out/release", "marginal=[age]", "output=out/release/ages.csv"],
        ["report", "sweep", "output=out/release/sweep.html"],
        ["report", "sweep", "output=link/sweep.html"],
        ["run", *UNIT, "engine=spark", "engine.scratch=link", "hydra.run.dir=new"],
        ["run", *UNIT, "engine=spark", f"engine.scratch=file://{ran}/new/release/in", "hydra.run.dir=new"],
        ["run", *UNIT, "engine=spark", f"engine.scratch=file:{ran}/out/release", "hydra.run.dir=new"],
        ["run", *UNIT, "engine=spark", "engine.settings={spark.local.dir: 'a,link/b'}", "hydra.run.dir=new"],
    ):
        assert "lies in the release folder" in reply(capsys, *arguments, code=1).err
        assert sorted((ran / "out" / "release").rglob("*")) == before, arguments
    assert command("score", *tables, "output=scores.json") == command("schema", "town.csv", "output=draft.yaml") == 0
    assert all((ran / name).stat().st_mode & 0o777 == 0o600 for name in ("scores.json", "draft.yaml"))


def test_a_sweep_over_tables_makes_a_folder_for_each(town):
    people(300).to_csv(town / "village.csv", index=False)
    assert command("run", "-m", *UNIT, f"data.path={town}/town.csv,{town}/village.csv") == 0
    assert len(list(town.glob("multirun/*/*/*/release/privacy.json"))) == 2


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_a_huge_budget_is_not_spent_beyond_what_floats_can_account(town, capsys, mechanism):
    """e^700 is the last float: a pure ε beyond it once cost no more, and its noise vanished.

    Pure losses add up to ε at most, and ε of Gaussian noise is above half of the squares' sum: μ²/2.
    """
    assert command("plan", *TOWN, "privacy.epsilon=1e9", f"mechanism={mechanism}", "plan.format=json") == 0
    each = [m["sensitivity"] / m["scale"] for m in json.loads(capsys.readouterr().out)["measurements"]]
    assert 0 < (sum(each) if mechanism == "laplace" else sum(e * e for e in each) / 2) <= 1e9
    assert "at most 1e+09" in reply(capsys, "plan", *TOWN, "privacy.epsilon=1e18", code=1).err


def test_a_pipe_is_no_table(town, capsys):
    os.mkfifo(town / "pipe.csv")
    assert "no regular file" in reply(capsys, "run", *TOWN, "data.path=pipe.csv", code=1).err
