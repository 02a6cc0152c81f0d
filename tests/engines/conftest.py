"""One session of Spark for all tests of a process; without Java or PySpark they are skipped, and say so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mechanisms.public.errors import UserError
from mechanisms.public.extras import need_extra
from mechanisms.sensitive.engines.spark_session import check_java
from tests.pipeline.conftest import write_town

#: For tables of some rows: few tasks, and plans that are not compiled.
SMALL = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@pytest.fixture
def town(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a tiny table, which is the current one."""
    monkeypatch.chdir(write_town(tmp_path))
    return tmp_path


def why_not() -> str | None:
    """Why Spark cannot run here."""
    try:
        need_extra("pyspark", "engine")
        check_java()
    except UserError as error:
        return error.what
    return None


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """Spark on two cores of this machine."""
    if why := why_not():
        pytest.skip(f"left out: {why}")
    from mechanisms.sensitive.engines.spark_engine import SparkSettings

    with pytest.MonkeyPatch.context() as patch:  # less compiling, in a session that lives for seconds
        patch.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        with SparkSettings("local[2]", settings=SMALL).opened(tmp_path_factory.mktemp("spark")) as engine:
            yield engine
