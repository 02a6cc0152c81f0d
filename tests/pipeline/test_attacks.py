"""What was once a way to a wrong privacy claim, and is none: each test failed before it was mended."""

import fcntl
import json
import os
import shutil

import pandas as pd
import pytest

from tests.pipeline.conftest import TOWN, command, copy_of, done_once, people, reply, statement_of
from tests.pipeline.test_statement import page

#: Its marginals are named: what the default measures follows from noise, and so would the number of answers.
UNIT = [*TOWN, "selection=pairs", "privacy.unit=person", "privacy.max_records=2", "synthesis=independent"]
UNIT.append("evaluation.enabled=false")


@pytest.fixture(scope="module")
def ran_once(tmp_path_factory):
    return done_once(tmp_path_factory.mktemp("ran"), "run", *UNIT, "hydra.run.dir=out")


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
        assert command("run", *UNIT, "hydra.run.dir=out", "resume=true") == 1
        assert f"not as this run wrote it: {name}" in capsys.readouterr().err
        path.write_text(whole)
    shutil.rmtree(ran / "out" / "release")
    assert command("run", *UNIT, "hydra.run.dir=out", "resume=true") == 0


def test_a_run_goes_on_with_the_version_that_measured(town, capsys, monkeypatch):
    """Its statement names one version, by which advisories are looked up: another one's answers are not its own."""
    with monkeypatch.context() as older:
        for module in ("pipeline.load_stage", "pipeline.statement.papers"):
            older.setattr(f"{module}.__version__", "0.1.0")
        assert command("run", *UNIT, "hydra.run.dir=out") == 0
    shutil.rmtree(town / "out" / "release")
    assert command("run", *UNIT, "hydra.run.dir=out", "resume=true") == 1
    assert "changed since the run began: pipeline" in capsys.readouterr().err
    assert not (town / "out" / "release").exists()


def test_answers_without_a_charge_are_never_released(ran, capsys):
    for loss in ("absent", "empty"):
        shutil.copytree("out", loss)
        shutil.rmtree(ran / loss / "release")
        ledger = ran / loss / "internal" / "ledger.jsonl"
        ledger.unlink() if loss == "absent" else os.truncate(ledger, 0)
        assert command("run", *UNIT, f"hydra.run.dir={loss}", "resume=true") == 1
        assert "the ledger was charged for, or does not follow" in capsys.readouterr().err
        assert not (ran / loss / "release").exists()


def test_a_charge_without_an_answer_is_said_and_nothing_is_released_without_any(ran, capsys):
    shutil.rmtree(ran / "out" / "release")
    first, *rest, last = sorted((ran / "out" / "internal" / "answers").iterdir())
    first.unlink()
    last.unlink()
    assert command("run", *UNIT, "hydra.run.dir=out", "resume=true") == 0
    assert "2 of 6 measurements are spent without an answer" in " ".join(capsys.readouterr().err.split())
    assert statement_of("out")["events"][0]["answered"] is False and command("verify", "out/release") == 0
    text = page(ran / "out" / "release").text
    assert "6 charges, each with all its numbers in privacy.json; 2 of them charged and lost" in text
    assert "noisy counts of 3 columns, and of 2 combinations of them" in text
    shutil.rmtree(ran / "out" / "release")
    for path in rest:
        path.unlink()
    assert command("run", *UNIT, "hydra.run.dir=out", "resume=true") == 1
    assert "6 of 6 measurements are spent" in capsys.readouterr().err
    assert not (ran / "out" / "release").exists()


def test_a_damaged_file_of_a_run_is_named_and_nothing_is_measured_again(ran, capsys):
    for file in ("manifest.json", "ledger.jsonl", "answers/00001.npz"):
        path = ran / "out" / "internal" / file
        whole = path.read_bytes()
        path.write_text("{\n")
        error = reply(capsys, "run", *UNIT, "hydra.run.dir=out", "resume=true", code=1).err
        assert "damaged" in error and path.name in error
        path.write_bytes(whole)


def test_a_second_process_touches_nothing_of_a_run_at_work(town, capsys):
    (town / "out" / "internal" / "tmp").mkdir(parents=True)
    part = town / "out" / "internal" / "tmp" / "part"
    part.write_text("half of a release")
    with (town / "out" / "internal" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert command("run", *UNIT, "hydra.run.dir=out") == 1
    assert "another process is at work" in capsys.readouterr().err
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
    ):
        assert "lies in the release folder" in reply(capsys, *arguments, code=1).err
        assert sorted((ran / "out" / "release").rglob("*")) == before, arguments
    assert command("score", *tables, "output=scores.json") == 0
    assert (ran / "scores.json").stat().st_mode & 0o777 == 0o600


def test_a_sweep_over_tables_makes_a_folder_for_each(town):
    people(300).to_csv(town / "village.csv", index=False)
    assert command("run", "-m", *UNIT, f"data.path={town}/town.csv,{town}/village.csv") == 0
    assert len(list(town.glob("multirun/*/*/*/release/privacy.json"))) == 2


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_a_huge_budget_is_not_spent_beyond_what_floats_can_account(town, capsys, mechanism):
    """e^700 is the last float: a pure ε beyond it once cost no more, and its noise vanished."""
    assert command("plan", *TOWN, "privacy.epsilon=1e18", f"mechanism={mechanism}", "plan.format=json") == 0
    for planned in json.loads(capsys.readouterr().out)["measurements"]:
        assert planned["scale"] >= planned["sensitivity"] / 1000


def test_a_pipe_is_no_table(town, capsys):
    os.mkfifo(town / "pipe.csv")
    assert "no regular file" in reply(capsys, "run", *TOWN, "data.path=pipe.csv", code=1).err
