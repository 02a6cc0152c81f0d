"""Optional libraries: without one, what needs it says so before any work, and everything else goes on."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from mechanisms.public.extras import EXTRAS

ROOT = Path(__file__).parents[2]
#: Hides libraries as if they were not installed.
HIDE = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {hidden!r}:
            raise ModuleNotFoundError(name)
hidden = Hidden()
import importlib.util
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in {hidden!r} else real(name, package)
sys.meta_path.insert(0, hidden)
from pipeline.cli import main
sys.exit(main(sys.argv[1:]))
"""


def without(libraries: list[str], *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A command in a world without these libraries."""
    program = [sys.executable, "-c", HIDE.format(hidden=libraries), *arguments]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(program, cwd=cwd, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("library", "arguments"),
    [
        ("adbc_driver_postgresql", ["schema", "postgresql:///clinic#admissions"]),
        pytest.param("matplotlib", ["run", "experiment=dpsyn_figure2"], marks=pytest.mark.slow),
        ("sklearn", ["run", "evaluation.metrics=[tstr]"]),
        pytest.param("mbi", ["run", "synthesis=mbi"], marks=pytest.mark.slow),
    ],
)
def test_what_needs_an_absent_library_names_the_extra_before_any_work(library, arguments, tmp_path):
    done = without([library], *arguments, cwd=tmp_path)
    assert done.returncode == 1
    assert f"(the extra `{EXTRAS[library]}` of this package)" in done.stderr and "pip install " in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.rglob("ledger.jsonl")), "nothing is spent"


def test_a_run_with_scores_and_a_report_needs_no_optional_library(tmp_path: Path):
    arguments = ("run", "data.rows=300", "hydra.run.dir=out", "evaluation.max_marginals=3", "selection=oneway")
    done = without(list(EXTRAS), *arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "internal" / "report.html").is_file()


def test_every_extra_is_declared_and_no_plain_dependency():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    plain = " ".join(project["dependencies"])
    for library, extra in EXTRAS.items():
        name = {"sklearn": "scikit-learn"}.get(library, library).replace("_", "-")
        assert any(name in requirement for requirement in project["optional-dependencies"][extra])
        assert name not in plain
    for library in ("numpy", "pandas", "autodp", "scipy", "ortools", "hydra-core"):
        assert library in plain


def test_a_system_without_locks_of_files_is_told_about_wsl_in_one_line(tmp_path):
    program = HIDE.replace("from pipeline.cli import main\nsys.exit(main(sys.argv[1:]))", "{then}")
    command = "import runpy; sys.argv = ['pipeline', '--version']; runpy.run_module('pipeline', run_name='__main__')"
    for then in (command, "import pipeline; pipeline.fit", "from dp_synthesis_pipeline import main; sys.exit(main())"):
        words = program.format(hidden=["fcntl", "resource"], then=then)
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run([sys.executable, "-c", words], cwd=tmp_path, env=env, capture_output=True, text=True)
        assert done.returncode == 1 and "this system has no fcntl" in done.stderr and "WSL" in done.stderr, done.stderr


@pytest.mark.slow
def test_no_warning_of_autodp_reaches_a_user_and_no_run_loads_its_matplotlib(tmp_path):
    """Python 3.12 warns of its escapes wherever it compiles its texts: here as an error, on a copy without bytecode."""
    spec = importlib.util.find_spec("autodp")
    assert spec is not None and spec.origin is not None
    shutil.copytree(Path(spec.origin).parent, tmp_path / "autodp", ignore=shutil.ignore_patterns("__pycache__"))
    program = (
        "import sys; import pipeline.sweeps.warm_start, autodp; print(autodp.__file__, 'matplotlib' in sys.modules)"
    )
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    env = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error::SyntaxWarning", "-W", "error::DeprecationWarning:autodp", "-c", program],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == [str(tmp_path / "autodp/__init__.py"), "False"], done.stderr
