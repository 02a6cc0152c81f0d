"""Settings of all tests: no limits of time, since a first call may compile; no waiting for the disk; seeded noise."""

import gc
import os
import random
import secrets
import sys
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from absl import logging as absl_logging
from hypothesis import HealthCheck, settings

from mechanisms.sensitive import noise
from pipeline.plugins.plugin_discovery import load_module
from tests import composed_once, started_once  # noqa: F401 - in place of what each command does anew

settings.register_profile("pipeline", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("pipeline")

#: How many times as many examples the laws of `few` draw by `make slow`.
_more = 1


def few(examples: int) -> Callable[[Any], Any]:
    """A law whose examples are dear draws few; by `make slow` it runs too, and draws five times as many."""
    return lambda law: pytest.mark.few(settings(max_examples=_more * examples)(law))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a family with the mark `some(n)` each n-th case runs always; the others are slow."""
    cases = Counter[str]()
    for item in items:
        mark, family = item.get_closest_marker("some"), item.nodeid.partition("[")[0]
        if mark and cases[family] % mark.args[0]:
            item.add_marker(pytest.mark.slow)
        cases[family] += 1


def _left_to_the_system(handle: int) -> None:
    """In place of `os.fsync`: tests kill processes, never the machine, and a file outlives its process without it."""


os.fsync = _left_to_the_system  # each call waits 5 ms, and one run makes 70

# dp_accounting loads absl, whose handler keeps the stream that pytest captures with when it is loaded, and closes it
# when a command sets up its own logging. It never closes this one.
absl_logging.get_absl_handler().python_handler.stream = sys.__stderr__


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--plugin", action="append", default=[], help="a module whose things the contract tests examine too"
    )
    parser.addoption("--fresh-noise", action="store_true", help="noise of the system's source, not by a test's name")


def pytest_collection_finish(session: pytest.Session) -> None:
    """What is loaded stays: nobody looks for garbage in it again."""
    gc.collect()
    gc.freeze()


def pytest_configure(config: pytest.Config) -> None:
    global _more
    if config.option.markexpr in {"slow", "slow or few"}:  # the second is how the first comes to workers
        config.option.markexpr, _more = "slow or few", 5
    if not config.getoption("--fresh-noise"):
        noise.os = SimpleNamespace(urandom=_bytes)  # type: ignore[attr-defined]
        secrets.token_bytes = _bytes  # type: ignore[assignment]
    for name in config.getoption("--plugin"):
        load_module(name)


#: Where the noise of the running test, and of the fixture that is being made, comes from: the last one serves.
_sources: list[random.Random] = []
_PROCESS = os.getpid()


def _bytes(size: int = 32) -> bytes:
    """In place of the system's source, in this process alone: what was green once is green until its code changes."""
    return _sources[-1].randbytes(size) if _sources and os.getpid() == _PROCESS else os.urandom(size)


def _drawing_by(name: str) -> Any:
    _sources.append(random.Random(name))
    yield
    _sources.pop()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Any:
    yield from _drawing_by(item.nodeid)


@pytest.hookimpl(hookwrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> Any:
    """Whichever test asks first for a fixture that several share, it is the same."""
    if fixturedef.scope == "function":
        yield
    else:
        yield from _drawing_by(f"{fixturedef.argname} {getattr(request, 'param', '')}")
