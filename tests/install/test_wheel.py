"""The wheel, built and installed in an empty environment outside of the checkout, starts and holds what it needs."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("mechanisms", "synthesis", "evaluation", "pipeline")
COMMAND = "dp-synthesis-pipeline"


def ran(*command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command that knows nothing of the checkout."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")} | environment
    return subprocess.run(list(map(str, command)), cwd=cwd, env=env, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of a clean copy of what git knows, and of what is new and not ignored."""
    place = tmp_path_factory.mktemp("wheel")
    known = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(known, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines():
        if (ROOT / name).is_file() and not name.startswith(("tests/", "docs/")):
            (place / "source" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, place / "source" / name)
    build = [sys.executable, "-c", BUILD, place]
    done = ran(*build, cwd=place / "source")
    assert done.returncode == 0, done.stderr
    (built,) = place.glob("*.whl")
    return built


#: What `pip wheel --no-deps --no-build-isolation .` asks of the build backend.
BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel alone; the libraries are those of this one, seen through a path file."""
    home = tmp_path_factory.mktemp("empty") / "env"
    assert ran(sys.executable, "-m", "venv", "--without-pip", home, cwd=home.parent).returncode == 0
    (site,) = home.glob("lib/python*/site-packages")
    ours = {(ROOT / name).resolve() for name in (".", *PACKAGES)}
    libraries = [p for p in sys.path if p.endswith("site-packages") and Path(p).resolve() not in ours]
    (site / "libraries.pth").write_text("\n".join(f"import sys; sys.path.append({p!r})" for p in libraries))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    script = home / "bin" / COMMAND
    script.write_text(
        f"#!{home / 'bin' / 'python'}\nimport sys\nfrom dp_synthesis_pipeline import main\nsys.exit(main())\n"
    )
    script.chmod(0o755)
    return home


def test_the_wheel_holds_settings_types_licence_citation_and_command(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        texts = {n: archive.read(n).decode() for n in names if ".dist-info/" in n}
    settings = {str(p.relative_to(ROOT)) for p in (ROOT / "conf").rglob("*") if p.is_file()}
    assert {f"pipeline/{name}" for name in settings} <= names
    for package in PACKAGES:
        code = {str(p.relative_to(ROOT)) for p in (ROOT / package).rglob("*.py")}
        data = {str(p.relative_to(ROOT)) for p in (ROOT / package).rglob("*.j2")}
        assert code | data | {f"{package}/py.typed"} <= names
    assert {n.split("/")[0] for n in names if ".dist-info" not in n} == {*PACKAGES, "dp_synthesis_pipeline.py"}
    told = {n.partition(".dist-info/")[2]: text for n, text in texts.items()}
    assert "Apache License" in told["licenses/LICENSE"] and "cff-version" in told["licenses/CITATION.cff"]
    assert "License-Expression: Apache-2.0" in told["METADATA"]
    assert (
        "Operating System :: POSIX :: Linux" in told["METADATA"] and "Windows" not in told["METADATA"].split("\n\n")[0]
    )
    assert f"{COMMAND} = dp_synthesis_pipeline:main" in told["entry_points.txt"]


def test_plan_the_demo_and_score_run_from_another_folder(installed: Path, tmp_path: Path):
    python, command = installed / "bin" / "python", installed / "bin" / COMMAND
    plan = ran(python, "-m", "pipeline", "plan", "data=demo", "plan.format=json", cwd=tmp_path)
    assert plan.returncode == 0, plan.stderr
    assert json.loads(plan.stdout)["schema"] == "demo"
    small = ("data.rows=300", "selection=oneway", "synthesis=independent")
    small += ("synthesis.rows=300",)  # the noisy total of so few rows may be 0
    small += ("evaluation.enabled=false",)  # the next command scores
    plain = {"NUMBA_DISABLE_JIT": "1"}  # compiling takes longer than a few hundred rows
    run = ran(command, "run", "hydra.run.dir=out", *small, cwd=tmp_path, **plain)
    assert run.returncode == 0, run.stderr
    made = str(tmp_path / "out" / "release" / "synthetic.csv")
    asked = (f"real={made}", f"synthetic={made}", "schema=demo", "metrics=[mgd]", "evaluation.max_marginals=3")
    score = ran(command, "score", *asked, cwd=tmp_path, **plain)
    assert score.returncode == 0, score.stderr
    assert json.loads(score.stdout)["mgd"]["score"] == 0
    where = ran(python, "-c", "import pipeline; print(pipeline.__file__, pipeline.__version__)", cwd=tmp_path).stdout
    assert where.startswith(str(installed)), "the checkout is not what runs"
    assert ran(command, "--version", cwd=tmp_path).stdout == where.split()[1] + "\n"


@pytest.mark.parametrize("name", PACKAGES)
def test_another_programs_package_of_the_same_name_is_one_clear_message(name: str, installed: Path, tmp_path: Path):
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("raise SystemExit('a stranger runs')")
    for start in ([installed / "bin" / COMMAND], [installed / "bin" / "python", "-P", "-m", "pipeline"]):
        if name == "pipeline" and "-m" in start:
            continue  # nothing of ours runs before it
        done = ran(*start, "--help", cwd=tmp_path, PYTHONPATH=str(tmp_path))
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(f"error: the package {name!r} that Python finds in {tmp_path / name} is another")
        assert "fix:" in done.stderr and "Traceback" not in done.stderr


def test_our_own_packages_from_two_places_are_refused(installed: Path, tmp_path: Path):
    (site,) = installed.glob("lib/python*/site-packages")
    shutil.copytree(site / "evaluation", tmp_path / "evaluation")
    for start in ([installed / "bin" / COMMAND], [installed / "bin" / "python", "-P", "-m", "pipeline"]):
        done = ran(*start, "--help", cwd=tmp_path, PYTHONPATH=str(tmp_path))
        assert done.returncode == 1
        assert f"finds the package 'evaluation' in {tmp_path / 'evaluation'}, not the one in {site}" in done.stderr


def test_a_checkout_runs_without_being_installed(tmp_path: Path):
    libraries = os.pathsep.join(p for p in sys.path if p.endswith("site-packages"))
    done = ran(sys.executable, "-S", "-m", "pipeline", "--version", cwd=ROOT, PYTHONPATH=libraries)
    assert done.returncode == 0, done.stderr
