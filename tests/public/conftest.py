"""Tables of a file of tests share an engine, as those of a command do."""

from collections.abc import Iterator

import pytest

from mechanisms.public.tables.engine_instances import shared_engine


@pytest.fixture(autouse=True, scope="module")
def one_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """To start an engine takes longer than most of what is asked of it."""
    with shared_engine(tmp_path_factory.mktemp("engine")):
        yield
