"""Ctrl-C while libraries load, a log on a full disk, a plan whose scores cannot be, a table of no rows."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.folders import logged
from tests.pipeline.conftest import TOWN, command, town

__all__ = ["town"]  # the fixture
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
    program = f"NAME = {name!r}\n{INTERRUPTED_WHILE_LOADING}"
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env={"PYTHONPATH": str(root)}, capture_output=True, text=True
    )
    assert done.returncode == 130 and "Traceback" not in done.stderr
    assert not list(tmp_path.rglob("release"))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device here")
def test_a_log_on_a_full_disk_loses_lines_and_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with logged(Path("/dev/full")):
        logging.getLogger("pipeline").info("a line")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "setting",
    [
        "evaluation.metrics=[nonsense]",
        "evaluation.groups=[nowhere]",
        "evaluation.order=nowhere",
    ],
)
def test_plan_refuses_settings_of_the_scores_that_run_refuses(town, setting, capsys):
    said = []
    for name in ("plan", "run"):
        assert command(name, *TOWN, setting) == 1
        said.append(capsys.readouterr().err)
    assert said[0] == said[1] and setting.split("=")[0] in said[0]
    assert command("plan", *TOWN, setting, "evaluation.enabled=false") == int("holdout" in setting)


def test_a_release_of_no_rows_can_be_read_verified_and_made_again(town, capsys):
    asked = ["run", *TOWN, "selection=oneway", "synthesis=independent", "seed=7", "privacy.epsilon=0.0001"]
    assert command(*asked, "synthesis.rows=0", "hydra.run.dir=out") == 1
    assert "synthesis.rows: got 0" in capsys.readouterr().err and not (town / "out").exists(), "nothing is spent on it"
    assert command(*asked, "hydra.run.dir=out") == 0
    assert "no rows" in "".join(capsys.readouterr())
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
    assert command("plan", *TOWN, "privacy.delta=0.5") == 0
    assert "with that probability nothing is promised" in capsys.readouterr().out
