"""Tables of a file of tests share an engine, as those of a command do."""

from tests.public.conftest import one_engine

__all__ = ["one_engine"]
