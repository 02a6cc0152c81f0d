"""A session of Spark: the one that runs, or one of our own that shows nothing, logs nothing, and is stopped again."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mechanisms.public.errors import UserError
from mechanisms.public.members import need_extra

#: The oldest Java that Spark 4 runs on.
JAVA = 17
SETTING, MASTER, SCRATCH = "engine", "engine.master", "engine.scratch"
#: What a session of our own is given, unless engine.settings says otherwise.
QUIET = {
    "spark.ui.enabled": "false",
    "spark.eventLog.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.sql.session.timeZone": "UTC",
    "spark.hadoop.fs.permissions.umask-mode": "077",
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    "spark.python.worker.reuse": "true",
    "spark.driver.memory": "2g",
}
#: What our queries need of any session while they run: batches that fit in memory, and every row of every file. A unit
#: of which some rows are skipped while its records are counted would weigh more than C once they are read.
NEEDED = {
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(1 << 16),
    "spark.sql.execution.arrow.maxBytesPerBatch": str(1 << 26),
    "spark.sql.adaptive.enabled": "true",
}
#: Nothing is logged: what Spark logs of a failed task may quote a row.
LOG = """status = OFF
rootLogger.level = OFF
rootLogger.appenderRef.none.ref = none
appender.none.type = Null
appender.none.name = none
"""
SECONDS = 10
#: How long a cluster may take for its first executor.
EXECUTOR_SECONDS = 300


def check_java() -> None:
    """A Java that Spark runs on is there.

    Raises:
        UserError: none, or one that is too old.
    """
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    fix = f"install Java {JAVA} or newer, or set JAVA_HOME to it; or engine=duckdb, which needs none"
    if java is None:
        where = "JAVA_HOME" if home else SETTING
        raise UserError("Spark needs Java, and there is none", where=where, fix=fix)
    output = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    version = re.search(r'version "(\d+)(?:\.(\d+))?', output.stderr + output.stdout)
    number = 0 if version is None else int(version[2] or 0) if version[1] == "1" else int(version[1])
    if number < JAVA:
        version_text = f"Java {number}" if number else "something else"
        raise UserError(f"Spark needs Java {JAVA} or newer, and {java} is {version_text}", where=SETTING, fix=fix)


def check_master(master: str) -> None:
    """The address of a master is one, and somebody answers there.

    Raises:
        UserError: it is none, or nobody does.
    """
    forms = r"local(\[(\*|\d+)(,\d+)?\])?|local-cluster\[\d+,\d+,\d+\]|yarn|k8s://.+|spark://[^/]+"
    if not re.fullmatch(forms, master):
        fix = "local[2], spark://HOST:PORT, yarn or k8s://…; null takes the session that runs, or all cores"
        raise UserError(f"got {master!r}", where=MASTER, fix=fix)
    if not master.startswith("spark://"):
        return
    if not any(_answers(address, master) for address in master.removeprefix("spark://").split(",")):
        fix = "check the address, and that the master runs; or engine.master=local[2]"
        raise UserError(f"no master answers at {master}", where=MASTER, fix=fix)


def _answers(address: str, master: str) -> bool:
    host, _, port = address.rpartition(":")
    if not (host and port.isdigit()):
        raise UserError(f"got {master!r}", where=MASTER, fix="spark://HOST:PORT")
    try:
        socket.create_connection((host.strip("[]"), int(port)), SECONDS).close()
    except OSError:
        return False
    return True


@contextmanager
def spark_session(master: str | None, settings: Mapping[str, str], workdir: Path) -> Iterator[Any]:
    """The session that runs (where no master is named), or one of our own, which is stopped at the end.

    Args:
        settings: Spark's own, for a session of ours.
        workdir: where it keeps what it spills; a folder with mode 0700.
    Raises:
        UserError: no PySpark, no Java, no master.
    """
    need_extra("pyspark", SETTING)
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession() if master is None else None
    own = session is None
    if session is None:
        if SparkContext._active_spark_context is not None and master is not None:
            fix = "leave engine.master away to use it, or stop it first"
            raise UserError("a session of Spark runs already", where=MASTER, fix=fix)
        if "PYSPARK_GATEWAY_PORT" not in os.environ:  # spark-submit has started Java, and knows its master
            check_java()
            master = master or "local[*]"
            check_master(master)
        session = _started(SparkSession, SparkConf(), master, settings, workdir)
        try:
            _await_executor(session)
        except UserError:
            session.stop()
            raise
    before = {name: session.conf.get(name, None) for name in NEEDED}
    try:
        for name, value in NEEDED.items():
            session.conf.set(name, value)
        yield session
    finally:
        with lost_java():
            if own:
                session.stop()
            else:
                for name, value in before.items():
                    session.conf.unset(name) if value is None else session.conf.set(name, value)


@contextmanager
def lost_java() -> Iterator[None]:
    """What is tidied at the end fails where Java ended before: why it did is the error, not this."""
    from py4j.protocol import Py4JError, Py4JJavaError

    try:
        yield
    except Py4JJavaError:  # Java is there, and says why: copies of rows may be left
        raise
    except (Py4JError, OSError):
        return


def _started(builder: Any, conf: Any, master: str | None, settings: Mapping[str, str], workdir: Path) -> Any:
    """A session of our own; what its start prints is kept from the terminal."""
    log = workdir / "log4j2.properties"
    log.write_text(LOG, encoding="utf-8")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # executors get the driver's interpreter
    given = QUIET | {"spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log.resolve().as_uri()}"}
    if master is not None:
        conf = conf.setMaster(master)
        if master.startswith("local"):
            given |= {"spark.local.dir": str(workdir / "spark"), "spark.driver.host": "127.0.0.1"}
            given |= {
                "spark.driver.bindAddress": "127.0.0.1",
                "spark.sql.shuffle.partitions": str(4 * (os.cpu_count() or 1)),
            }
    for name, value in (given | dict(settings)).items():
        conf = conf.set(name, str(value))
    try:
        with _silent(workdir / "spark.log"):
            return builder.builder.appName("dp-synthesis-pipeline").config(conf=conf).getOrCreate()
    except Exception as error:
        explanation = explained(str(error))
        if isinstance(explanation, UserError):
            raise explanation from None
        fix = "check engine.master, engine.settings and JAVA_HOME"
        raise UserError(f"no session could be started ({type(error).__name__})", where=MASTER, fix=fix) from None


def _await_executor(session: Any) -> None:
    """An executor has come: Spark itself would wait for one for ever.

    Raises:
        UserError: the cluster gives none.
    """
    context = session.sparkContext
    inside = re.fullmatch(r"local(\[.*\])?", context.master) is not None
    if inside or context.getConf().get("spark.dynamicAllocation.enabled", "false") == "true":
        return
    tracker, end = context._jsc.sc().statusTracker(), time.monotonic() + EXECUTOR_SECONDS
    while len(tracker.getExecutorInfos()) < 2:  # the driver is one of them
        if time.monotonic() > end:
            fix = "ask for less: engine.settings={spark.executor.memory: 1g}; or look whether the cluster is busy"
            raise UserError(f"the cluster gave no executor in {EXECUTOR_SECONDS} s", where=MASTER, fix=fix)
        time.sleep(0.2)


@contextmanager
def _silent(log: Path) -> Iterator[None]:
    """What is started meanwhile writes its errors to a private file, for as long as it lives."""
    terminal = os.dup(2)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.dup2(file, 2)
        yield
    finally:
        os.dup2(terminal, 2)
        os.close(terminal)
        os.close(file)


#: Fragments of Spark's messages, with their meaning for the user.
CAUSES = (
    (
        r"ModuleNotFoundError: No module named '(?P<name>mechanisms|numpy|pandas|pyarrow|duckdb|numba|pyspark)",
        "an executor's Python has no {name}",
        "install the package where the executors run, with the driver's versions (docs/scale.md)",
    ),
    (
        r"PYTHON_VERSION_MISMATCH|Python in worker has different version",
        "an executor's Python is of another version than the driver's",
        "set PYSPARK_PYTHON to the same Python everywhere (docs/scale.md)",
    ),
    (
        r"OutOfMemoryError|MemoryError|Container killed|code 137|GC overhead|memory \d+ must be at least|MiB/worker|"
        r"failed to map segment|annot allocate memory",
        "an executor has too little memory",
        "engine.settings={spark.executor.memory: 8g}, or spark.driver.memory where the master is local",
    ),
    (
        r"No space left on device|DiskErrorException",
        "a disk of an executor is full",
        "free some space there, or another engine.scratch",
    ),
    (
        r"FileNotFound(Exception|Error)|PATH_NOT_FOUND|NoSuchFile",
        "a part of the table, or of the folder for private copies, is gone",
        "leave both alone while it runs, on a file system that all executors see",
    ),
    (
        r"Permission denied|AccessControlException|Mkdirs failed|Unable to clear output",
        "the folder for private copies cannot be written",
        "engine.scratch=FOLDER, one that all executors can write in",
    ),
    (
        r"Cannot run program",
        "an executor cannot start Python",
        "set PYSPARK_PYTHON to an interpreter that is there on every machine",
    ),
)


@contextmanager
def spark_errors() -> Iterator[None]:
    """Spark's complaints in the user's words; never with a value in them.

    Raises:
        UserError: whatever the cluster or its disks lack.
        RuntimeError: a fault of ours, with the kind of error and its place alone.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        with warnings.catch_warnings():  # of pandas, which batches of Arrow never meet
            warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
            yield
    except (Py4JError, PySparkException, ConnectionError) as error:
        raise explained(str(error)) from None


def explained(message: str) -> Exception:
    """What Spark's message means."""
    for sign, problem, fix in CAUSES:
        if (seen := re.search(sign, message)) is not None:
            return UserError(problem.format(**seen.groupdict()), where=SETTING, fix=fix)
    failed = re.search(r"a task failed with \w+(?: at [\w.]+:\d+)?", message)
    kind = re.search(r"\b(\w+(?:Error|Exception))\b", message)
    return RuntimeError(failed[0] if failed else f"Spark stopped: {kind[1] if kind else 'without a reason'}")
