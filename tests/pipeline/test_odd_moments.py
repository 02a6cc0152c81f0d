"""Commands at odd moments, and side by side."""

from __future__ import annotations

import logging
import subprocess
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from mechanisms.public.errors import UserError
from pipeline import folders
from pipeline.folders import claimed, logged
from pipeline.sweeps.sweep import _opened
from tests.pipeline.conftest import TOWN, command, reply

INTERRUPTED_WHILE_LOADING = """
import os, runpy, signal, sys

signal.signal(signal.SIGINT, signal.default_int_handler)  # where the tests run behind, Ctrl-C is ignored

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == NAME:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
sys.argv = ["pipeline", "run", "data.rows=100"]
runpy.run_module("pipeline", run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize("name", ["pipeline.cli", "hydra", "duckdb"])
def test_ctrl_c_while_libraries_load_ends_with_130_and_no_traceback(name: str, tmp_path: Path) -> None:
    line = [sys.executable, "-c", f"NAME = {name!r}\n{INTERRUPTED_WHILE_LOADING}"]
    own = {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(line, cwd=tmp_path, env=own, capture_output=True, text=True)
    assert done.returncode == 130 and "Traceback" not in done.stderr
    assert not list(tmp_path.rglob("release"))


def test_ctrl_c_of_which_duckdb_tells_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def work(arguments: list[str]) -> None:
        raise RuntimeError("Query interrupted")

    monkeypatch.setattr("pipeline.commands.asked_commands.check", work)
    assert command("check") == 130


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device here")
def test_a_log_on_a_full_disk_loses_lines_and_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with logged(Path("/dev/full")):
        logging.getLogger("pipeline").info("a line")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "setting", ["evaluation.metrics=[nonsense]", "evaluation.groups=[nowhere]", "evaluation.order=nowhere"]
)
def test_plan_refuses_settings_of_the_scores_that_run_refuses(town, setting, capsys):
    said = [reply(capsys, name, *TOWN, setting, code=1).err for name in ("plan", "run")]
    assert said[0] == said[1] and setting.split("=")[0] in said[0]
    assert command("plan", *TOWN, setting, "evaluation.enabled=false") == int("metrics" in setting)


def test_a_release_of_no_rows_can_be_read_verified_and_made_again(town, capsys):
    asked = ["run", *TOWN, "selection=oneway", "synthesis=independent", "seed=7", "privacy.epsilon=0.0001"]
    assert command(*asked, "synthesis.rows=0", "hydra.run.dir=out") == 1
    assert "synthesis.rows: got 0" in capsys.readouterr().err and not (town / "out").exists(), "nothing is spent on it"
    for resume in ("false", "true"):
        assert command(*asked, "hydra.run.dir=out", f"resume={resume}") == 0
        assert "the synthetic table has no rows" in " ".join("".join(capsys.readouterr()).split())
    for asked in (
        ["verify", "out/release"],
        ["query", "from=out/release", "marginal=[sex]"],
        ["synth", "from=out/release", "output=more", "synthesis.rows=20"],
        ["synth", "from=out/release", "output=none", "rows=0"],
        ["score", "real=town.csv", "synthetic=out/release/synthetic.csv", "schema=town.yaml"],
        ["report", "out"],
    ):
        code, (said, error) = command(*asked), capsys.readouterr()
        assert code in (0, 1) and "Traceback" not in error and "a fault of" not in error, (asked, error)
        seeded = asked[0] == "verify" and said.count("  NO  ") == 1 and "the noise seed is fixed" in said
        assert code == 0 or "fix: " in error or seeded, (asked, said, error)
    assert (town / "none/release/synthetic.csv").read_text().count("\n") == 1
    assert (town / "more/release/synthetic.csv").read_text().count("\n") > 1


def test_a_delta_of_a_half_is_planned_with_a_warning(town: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "with that probability nothing is promised" in reply(capsys, "plan", *TOWN, "privacy.delta=0.5").out


#: The beginnings of a run, and of a sweep.
BEGUN = [partial(claimed, resume=False), _opened]


@pytest.mark.parametrize("begun", BEGUN)
def test_a_command_that_is_refused_takes_nothing_away_from_the_one_at_work(begun, tmp_path, monkeypatch):
    """The second one looks into the folder, the first one begins, and only then the second one asks for the lock."""
    with ExitStack() as first:
        opened = folders._opened

        def late(path: Path, *args: int):
            if path.parent not in begins:
                begins.append(path.parent)
                first.enter_context(begun(tmp_path / "out"))
                (tmp_path / "out" / "internal" / "manifest.json").write_text("{}")
                held.update(p.name for p in path.parent.iterdir())
            return opened(path, *args)

        begins: list[Path] = []
        held: set[str] = set()
        monkeypatch.setattr(folders, "_opened", late)
        for _ in range(2):  # the lock is still there for the third one
            with pytest.raises(UserError, match="at work"), begun(tmp_path / "out"):
                pass
            assert {p.name for p in (tmp_path / "out" / "internal").iterdir()} == held
    assert {"lock", "manifest.json"} <= held


@pytest.mark.parametrize("begun", BEGUN)
def test_the_lock_of_a_command_that_ended_by_a_mistake_is_nobody_s_lock(begun, tmp_path, monkeypatch):
    """It takes its lock away with the rest: who opened that file before and locks it after holds nothing."""
    opened = folders._opened

    def early(path: Path, *args: int):
        lock = opened(path, *args)
        path.unlink()
        return lock

    monkeypatch.setattr(folders, "_opened", early)
    with pytest.raises(UserError, match="at work"), begun(tmp_path / "out"):
        pass
    monkeypatch.setattr(folders, "_opened", opened)
    with begun(tmp_path / "out"):
        pass


@pytest.mark.parametrize("begun", BEGUN)
def test_a_mistake_leaves_nothing_of_a_command_in_a_new_folder(begun, tmp_path):
    with pytest.raises(UserError, match="mine"), begun(tmp_path / "a" / "out"):
        raise UserError("mine", where="x", fix="y")
    assert list(tmp_path.iterdir()) == []
