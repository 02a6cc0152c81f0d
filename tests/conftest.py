"""Settings of all tests: no deadlines, since a first call may compile; no waiting for the disk."""

import os
import sys

import pytest
from absl import logging as absl_logging
from hypothesis import settings

from pipeline.plugins.plugin_discovery import load_module

settings.register_profile("pipeline", deadline=None)
settings.load_profile("pipeline")


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


def pytest_configure(config: pytest.Config) -> None:
    for name in config.getoption("--plugin"):
        load_module(name)
