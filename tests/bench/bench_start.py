"""How long the command line takes to answer: help, mistakes and the plan of the demo; the best of five starts."""

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.bench.clock import timed

ROOT = Path(__file__).parents[2]
STARTS = 5
#: Case → arguments, exit code, and the processor time that is aimed at.
COMMANDS: dict[str, tuple[list[str], int, float]] = {
    "help": (["--help"], 0, 0.5),
    "run_help": (["run", "--help"], 0, 0.5),
    "misspelt": (["run", "privacy.epsilno=1"], 1, 0.5),
    "wrong_path": (["run", "data=table", "data.path=no.csv", "data.schema=adult"], 1, 0.5),
    "plan": (["plan", "data=demo"], 0, 1.2),
}


def start(case: str) -> dict[str, Any]:
    """The wall and processor time of one command in a process of its own."""
    arguments, code, aim = COMMANDS[case]
    command, env = [sys.executable, "-m", "pipeline", *arguments], {**os.environ, "PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryDirectory() as folder:

        def run() -> None:
            done = subprocess.run(command, cwd=folder, env=env, capture_output=True, check=False)
            assert done.returncode == code, done.stderr

        times = [timed(run, who=resource.RUSAGE_CHILDREN) for _ in range(STARTS)]
    said = {"name": f"python -m pipeline {' '.join(arguments)}", "reference": f"aim: {aim} s of processor time"}
    return said | min(times, key=lambda spent: spent["cpu_seconds"])


CASES: dict[str, Callable[[], dict[str, Any]]] = {case: partial(start, case) for case in COMMANDS}
