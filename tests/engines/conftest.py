"""One session of Spark for all tests of a process; without Java or PySpark they are skipped, and say so."""

from collections.abc import Iterator

import pytest

from tests.audit.on_spark import SMALL, why_not
from tests.pipeline.conftest import town

__all__ = ["town"]  # the fixture


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
