"""What commands load, and a folder of one's own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.cli import main
from pipeline.settings.config import load_config

ROOT = Path(__file__).parents[2]
#: Libraries that take a tenth of a second and more to load, or hold rows.
WATCHED = (
    *("autodp", "duckdb", "hydra", "joblib", "matplotlib", "numba", "numpy", "ortools", "pandas", "pyarrow", "rich"),
    *("scipy", "scipy.optimize", "scipy.stats", "sklearn"),
)
PROGRAM = f"""
import sys
from pipeline.cli import main
code = main(sys.argv[1:])
print("LOADED", code, *(name for name in {WATCHED!r} if name in sys.modules))
"""


def loaded(*arguments: str, cwd: Path) -> tuple[int, set[str]]:
    """The exit code of a command, and the libraries that it loaded."""
    program = [sys.executable, "-c", PROGRAM, *arguments]
    done = subprocess.run(program, cwd=cwd, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True)
    last = next(line for line in reversed(done.stdout.splitlines()) if line.startswith("LOADED"))
    _, code, *names = last.split()
    return int(code), set(names)


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["run", "--help"], ["run", "--help", "selection=aim"], ["score", "--help"], ["--version"], ["ru"]],
)
def test_help_loads_no_library_at_all(arguments: list[str], tmp_path: Path):
    assert loaded(*arguments, cwd=tmp_path) == (int(arguments == ["ru"]), set())


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "privacy.epsilno=1"],
        ["run", "privacy.epsilon=much"],
        ["run", "selection=ami"],
        ["run", "data=table", "data.path=no.csv", "data.schema=adult"],
        ["run", "data=table", "data.path=a.csv", "data.schema=no.yaml"],
        ["plan", "data.schema=no.yaml"],
        ["synth", "from=no/release"],
        ["score", "real=no.csv", "synthetic=no.csv", "schema=adult"],
        ["report", "no"],
        ["query", "from=no/release", "marginal=[sex]"],
        ["schema", "no.csv"],
    ],
)
def test_a_mistake_is_answered_with_the_settings_library_alone(arguments: list[str], tmp_path: Path):
    code, names = loaded(*arguments, cwd=tmp_path)
    assert code == 1
    assert names <= {"hydra"}, "a large library is loaded before the mistake is seen"


@pytest.mark.parametrize(
    "settings",
    [
        ["data=demo"],
        ["data=demo", "selection=oneway", "mechanism=laplace", "privacy.accountant=basic", "synthesis=independent"],
        ["data=demo", "selection=mst", "synthesis=pgm", "privacy.accountant=zcdp"],
    ],
)
def test_a_plan_loads_no_compiler_no_scientific_library_and_no_data_frames(settings: list[str], tmp_path: Path):
    code, names = loaded("plan", *settings, cwd=tmp_path)
    assert code == 0
    assert names <= {"duckdb", "hydra", "numpy", "rich"}


def test_scores_load_no_statistics_library(tmp_path: Path):
    """It is slow to load, and a rank needs none of it."""
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text("x,y\n" + "".join(f"{i % 7},{i % 3}\n" for i in range(300)))
    code, names = loaded("score", "real=a.csv", "synthetic=b.csv", cwd=tmp_path)
    assert code == 0 and "scipy.stats" not in names


def test_import_pipeline_loads_no_library_and_knows_its_functions(tmp_path: Path):
    program = f"""
import sys
import pipeline
assert {{"fit", "load", "Release", "score"}} <= set(dir(pipeline))
print(*(name for name in {WATCHED!r} if name in sys.modules))
"""
    given = {"cwd": tmp_path, "env": {"PYTHONPATH": str(ROOT)}, "capture_output": True, "text": True, "check": True}
    assert subprocess.run([sys.executable, "-c", program], **given).stdout.split() == []  # type: ignore[call-overload]


@pytest.mark.parametrize("given", [{}, {"OPENBLAS_NUM_THREADS": "3"}])
def test_a_command_sets_the_threads_of_matrix_products_before_numpy_is_loaded(given: dict[str, str], tmp_path: Path):
    program = (
        "import os, sys; from pipeline.cli import main; assert 'numpy' not in sys.modules; main(['--version']); "
        "print(os.environ['OPENBLAS_NUM_THREADS'])"
    )
    env = {"PYTHONPATH": str(ROOT)} | given
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1:] == [given.get("OPENBLAS_NUM_THREADS", "1")], done.stderr


MINE = "# @package data\nname: mine\npath: null\nschema: demo\nunit: caller_id\nmax_records: 3\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "own settings" / "data").mkdir(parents=True)
    (tmp_path / "own settings" / "data" / "mine.yaml").write_text(MINE)
    return tmp_path / "own settings"


@pytest.mark.parametrize("joined", [True, False])
def test_a_choice_of_the_own_folder_is_planned_beside_ours(folder, capsys, joined):
    flag = [f"--config-dir={folder}"] if joined else ["--config-dir", str(folder)]
    assert main(["plan", *flag, "data=mine", "privacy.unit=caller_id", "selection=oneway", "plan.format=json"]) == 0
    assert '"max_records": 3' in capsys.readouterr().out
    assert load_config([f'hydra.searchpath=["file://{folder}"]', "data=mine"]).data.name == "mine"


def test_a_misspelt_choice_or_setting_is_still_named(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["plan", "--config-dir", str(folder), "data=mines"]) == 1
    assert "did you mean 'mine'" in capsys.readouterr().err
    assert main(["plan", "--config-dir", str(folder), "data=mine", "privacy.epsilno=1"]) == 1
    assert "override 'privacy.epsilno=1': no such setting" in capsys.readouterr().err


def test_a_folder_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["plan", "--config-dir", str(tmp_path / "no")]) == 1
    assert main(["plan", "--config-dir"]) == 1
    assert capsys.readouterr().err.count("--config-dir: no folder") == 2
