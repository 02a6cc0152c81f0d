"""Without an optional library, or the papers' rooms, all else goes on; what commands load, and folders of one's own."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from mechanisms.public.members import EXTRAS
from pipeline.cli import main
from pipeline.settings.config import load_config

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


@pytest.mark.slow
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


#: Libraries that take a tenth of a second and more to load, or hold rows.
WATCHED = (
    *("autodp", "duckdb", "hydra", "joblib", "matplotlib", "numba", "numpy", "ortools", "pandas", "pyarrow", "rich"),
    *("scipy", "scipy.optimize", "scipy.stats", "sklearn"),
)

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


#: Commands one after the other in one process: after each, its exit code and the libraries that are loaded by then.
IN_TURN = f"""
import json, sys
from pipeline.cli import main
for arguments in json.loads(sys.argv[1]):
    code = main(arguments)
    print("ENDED", code, *(name for name in {WATCHED!r} if name in sys.modules), flush=True)
"""


def endings(done: subprocess.CompletedProcess[str]) -> list[tuple[int, set[str]]]:
    words = [line.split() for line in done.stdout.splitlines() if line.startswith("ENDED")]
    return [(int(code), set(names)) for _, code, *names in words]


def ended(done: subprocess.CompletedProcess[str]) -> list[int]:
    return [code for code, _ in endings(done)]


def done(core, *words):
    environment = {**os.environ, "PYTHONPATH": str(core), "COLUMNS": "120"}
    return subprocess.run([sys.executable, *words], cwd=core, env=environment, capture_output=True, text=True)


def test_without_them_help_is_written_the_demo_runs_and_its_release_is_verified(core):
    asked = [["--help"], ["run", "--help"], ["score", "--help"]]
    asked += [["run", *SMALL, "hydra.run.dir=out"], ["verify", "out/release"]]
    run = done(core, "-c", IN_TURN, json.dumps(asked))
    assert ended(run) == [0] * len(asked), run.stderr + run.stdout
    assert "evaluation.ncript=" not in run.stdout, "no setting of a metric that is not there"
    assert (core / "out/release/synthetic.csv").is_file() and (core / "out/internal/report.html").is_file()


@pytest.mark.slow
def test_a_method_of_the_papers_says_where_it_belongs_before_anything_is_spent(core):
    methods = {"indif": "selection=indif", "maxent": "synthesis=maxent", "ncript": "evaluation.metrics=[ncript]"}
    methods["maps"] = "experiment=mgd_table1"
    runs = [["run", *SMALL, setting, f"hydra.run.dir=refused-{name}"] for name, setting in methods.items()]
    run = done(core, "-c", IN_TURN, json.dumps(runs))
    assert ended(run) == [1] * len(runs), run.stderr + run.stdout
    for name in methods:
        assert f"{name!r} belongs to the rooms of the papers" in run.stderr, run.stderr
        assert not (core / f"refused-{name}" / "release").exists()


@pytest.mark.slow
def test_the_contract_tests_of_the_core_pass_without_them(core):
    tested = done(core, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "-x", *CONTRACTS)
    assert tested.returncode == 0, tested.stdout[-4000:]


def loaded(*commands: list[str], cwd: Path) -> list[tuple[int, set[str]]]:
    """The exit code of each command, and the libraries that it and those before it loaded."""
    program = [sys.executable, "-c", IN_TURN, json.dumps(commands)]
    env = {"PYTHONPATH": str(ROOT)}
    return endings(subprocess.run(program, cwd=cwd, env=env, capture_output=True, text=True, check=True))


SETTINGS, PLANNED = {"hydra"}, {"duckdb", "hydra", "numpy", "rich"}
INDEPENDENT = "synthesis=independent"
#: What each command may load, in order: what one loads is there for those after it.
LIGHT = [
    (["--help"], 0, set()),
    (["run", "--help"], 0, set()),
    (["run", "--help", "selection=aim"], 0, set()),
    (["score", "--help"], 0, set()),
    (["--version"], 0, set()),
    (["ru"], 1, set()),
    (["run", "privacy.epsilno=1"], 1, SETTINGS),
    (["run", "privacy.epsilon=much"], 1, SETTINGS),
    (["run", "selection=ami"], 1, SETTINGS),
    (["run", "data=table", "data.path=no.csv", "data.schema=adult"], 1, SETTINGS),
    (["run", "data=table", "data.path=a.csv", "data.schema=no.yaml"], 1, SETTINGS),
    (["plan", "data.schema=no.yaml"], 1, SETTINGS),
    (["synth", "from=no/release"], 1, SETTINGS),
    (["score", "real=no.csv", "synthetic=no.csv", "schema=adult"], 1, SETTINGS),
    (["report", "no"], 1, SETTINGS),
    (["query", "from=no/release", "marginal=[sex]"], 1, SETTINGS),
    (["schema", "no.csv"], 1, SETTINGS),
    (["plan", "data=demo"], 0, PLANNED),
    (
        ["plan", "data=demo", "selection=oneway", "mechanism=laplace", "privacy.accountant=basic", INDEPENDENT],
        0,
        PLANNED,
    ),
    (["plan", "data=demo", "selection=mst", "synthesis=pgm", "privacy.accountant=zcdp"], 0, PLANNED),
]


def test_help_loads_no_library_a_mistake_that_of_settings_and_a_plan_no_scientific_one_and_no_data_frames(tmp_path):
    found = loaded(*(arguments for arguments, _, _ in LIGHT), cwd=tmp_path)
    for (arguments, code, most), (ended_with, names) in zip(LIGHT, found, strict=True):
        assert ended_with == code and names <= most, arguments


def test_scores_load_no_statistics_library(tmp_path: Path):
    """It is slow to load, and a rank needs none of it."""
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text("x,y\n" + "".join(f"{i % 7},{i % 3}\n" for i in range(300)))
    [(code, names)] = loaded(["score", "real=a.csv", "synthetic=b.csv"], cwd=tmp_path)
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
