"""Executors that are processes of their own: one that is killed changes nothing, and what a cluster lacks is said."""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.audit.on_spark import why_not
from tests.engines.test_spark import released
from tests.pipeline.conftest import TOWN, command

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
SETTINGS = [*TOWN, "seed=5", "evaluation.enabled=false", "selection=pairs", "synthesis=independent"]
#: The pipeline as a command that waits for executors no longer than a test may.
IMPATIENT = """
import sys
from mechanisms.sensitive.engines import spark_session
from pipeline.cli import main
spark_session.EXECUTOR_SECONDS = 45
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(autouse=True)
def _spark_is_there() -> None:
    if why := why_not():
        pytest.skip(f"left out: {why}")


def started(*arguments: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """A process of its own: a process has one session of Spark."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), **env}
    return subprocess.run(arguments, cwd=cwd, env=env, capture_output=True, text=True, timeout=1800)


def test_an_executor_that_is_killed_while_it_counts_changes_nothing(tmp_path) -> None:
    done = started(sys.executable, "-m", "tests.engines.killed_executor", str(tmp_path), cwd=ROOT)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout.splitlines()[-1])
    assert facts["before"] == 2
    assert len(facts["killed"]) == 1 and facts["left"] == facts["killed"]
    assert facts["same"] and facts["same after"]
    assert not any((tmp_path / "there").glob("engine-*"))


def test_executors_of_a_cluster_give_the_embedded_engines_release(town) -> None:
    assert command("run", *SETTINGS, "hydra.run.dir=one") == 0
    there = [*SETTINGS, "engine=spark", 'engine.master="local-cluster[2,1,1024]"', "hydra.run.dir=other"]
    done = started(sys.executable, "-m", "pipeline", "run", *there, cwd=town)
    assert done.returncode == 0, done.stderr
    assert released(town / "one" / "release") == released(town / "other" / "release")
    assert "INFO" not in done.stderr and not any((town / "other" / "internal" / "tmp").glob("*"))


def test_inside_spark_submit_a_run_takes_its_session(town) -> None:
    import pyspark

    assert command("run", *SETTINGS, "hydra.run.dir=one") == 0
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    python = [f"spark.pyspark.python={sys.executable}", f"spark.pyspark.driver.python={sys.executable}"]
    given = ["--master", "local[2]", *(word for pair in python for word in ("--conf", pair))]
    main = str(ROOT / "pipeline" / "__main__.py")
    done = started(str(submit), *given, main, "run", *SETTINGS, "engine=spark", "hydra.run.dir=other", cwd=town)
    assert done.returncode == 0, done.stderr
    assert released(town / "one" / "release") == released(town / "other" / "release")


@pytest.mark.parametrize(
    ("settings", "python", "says"),
    [
        ("", "bare/bin/python", "an executor's Python has no"),
        ("", "no/python", "an executor cannot start Python"),
        ("spark.executor.memory: 100m", sys.executable, "an executor has too little memory"),
        ("spark.executor.memory: 4g", sys.executable, "an executor has too little memory"),
        ("spark.executor.pyspark.memory: 200m", sys.executable, "an executor has too little memory"),
        ("spark.executor.cores: 8", sys.executable, "the cluster gave no executor in 45 s"),
    ],
)
def test_what_executors_lack_is_said_in_one_line_and_costs_nothing(town, settings, python, says) -> None:
    venv.create(town / "bare", with_pip=False)  # a Python that has nothing but its own library
    there = ["engine=spark", 'engine.master="local-cluster[1,1,1024]"', f"engine.settings={{{settings}}}"]
    run = [sys.executable, "-c", IMPATIENT, "run", *SETTINGS, *there, "hydra.run.dir=out"]
    done = started(*run, cwd=town, PYSPARK_PYTHON=str(town / python))
    assert done.returncode == 1 and says in done.stderr, done.stderr
    assert "Traceback" not in done.stderr + done.stdout and done.stderr.count("error: ") == 1
    assert not (town / "out" / "release").exists()
    assert not (town / "out" / "internal" / "ledger.jsonl").exists()
    assert not any(town.glob("out/internal/tmp/*"))
