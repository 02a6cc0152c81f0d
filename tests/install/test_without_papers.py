"""The core without the rooms of the papers: a copy of the tree in which they are missing."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Rooms of the papers: nothing of the core needs them.
PAPERS = ("mechanisms/selection/papers", "synthesis/papers", "evaluation/papers", "pipeline/experiments")
#: Tests of the core that run in the copy: the contract tests of registries, which must list what is there alone.
CONTRACTS = ("tests/selection/test_selections.py", "tests/accounting/test_accountants.py")
#: Where the project is installed in place, its finder would give the rooms that the copy lacks.
ALONE = "import sys\nsys.meta_path[:] = [f for f in sys.meta_path if 'editable' not in getattr(f, '__module__', '')]\n"
SMALL = ("data.rows=1500", "evaluation.max_marginals=10")


@pytest.fixture(scope="module")
def core(tmp_path_factory):
    """The project without its papers."""
    copy = tmp_path_factory.mktemp("core")
    for room in ("mechanisms", "synthesis", "evaluation", "pipeline", "conf", "tests"):
        shutil.copytree(ROOT / room, copy / room)  # with the compiled loops, which are valid beside the same files
    shutil.copy(ROOT / "pyproject.toml", copy)
    (copy / "sitecustomize.py").write_text(ALONE)
    for room in PAPERS:
        shutil.rmtree(copy / room)
    return copy


def done(core, *words):
    environment = {**os.environ, "PYTHONPATH": str(core), "COLUMNS": "120"}
    return subprocess.run([sys.executable, *words], cwd=core, env=environment, capture_output=True, text=True)


def test_help_is_written_without_them(core):
    for words in (("--help",), ("run", "--help"), ("score", "--help")):
        told = done(core, "-m", "pipeline", *words)
        assert told.returncode == 0, told.stderr
        assert "evaluation.ncript=" not in told.stdout, "no setting of a metric that is not there"


def test_the_demo_runs_without_them_and_its_release_is_verified(core):
    run = done(core, "-m", "pipeline", "run", *SMALL, "hydra.run.dir=out")
    assert run.returncode == 0, run.stderr + run.stdout
    assert (core / "out/release/synthetic.csv").is_file() and (core / "out/internal/report.html").is_file()
    checked = done(core, "-m", "pipeline", "verify", "out/release")
    assert checked.returncode == 0, checked.stderr + checked.stdout


@pytest.mark.parametrize(
    ("setting", "name"),
    [
        ("selection=indif", "indif"),
        ("synthesis=maxent", "maxent"),
        ("evaluation.metrics=[ncript]", "ncript"),
        ("experiment=mgd_table1", "maps"),
    ],
)
def test_a_method_of_the_papers_says_where_it_belongs_before_anything_is_spent(core, setting, name):
    run = done(core, "-m", "pipeline", "run", *SMALL, setting, f"hydra.run.dir=refused-{name}")
    assert run.returncode == 1, run.stderr + run.stdout
    assert f"{name!r} belongs to the rooms of the papers" in run.stderr, run.stderr
    assert not (core / f"refused-{name}" / "release").exists()


@pytest.mark.slow
def test_the_contract_tests_of_the_core_pass_without_them(core):
    tested = done(core, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "-x", *CONTRACTS)
    assert tested.returncode == 0, tested.stdout[-4000:]
