"""Settings of all tests: no deadlines, since a first call may compile."""

import sys

import pytest
from absl import logging as absl_logging
from hypothesis import settings

from pipeline.plugins.plugin_discovery import load_module

settings.register_profile("pipeline", deadline=None)
settings.load_profile("pipeline")

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
