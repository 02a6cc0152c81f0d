"""Whether a test is red by chance: each test that draws fresh noise, and each of hypothesis, again and again.

`python -m tests.flaky --times 30`, by `make flaky`. In the tests' own process noise comes by a test's name
(`conftest.py`), so fresh noise is that of the processes which tests start. One run of all tests finds those that draw
it, in the test itself or in a fixture. These alone are repeated, with fresh noise and fresh examples, each time in a
new session, so that fixtures of a session draw anew too. With `--fresh-noise` all tests draw fresh noise.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

PLACE = Path(".pytest_cache/flaky")
PYTEST = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "worksteal", "-p", "tests.flaky"]
#: Its `sitecustomize.py` notes draws, in the tests' processes and in those that they start.
NOTING = Path(__file__).parent / "draws"

_blind = 0
_fixtures: set[str] = set()


def _started(event: str, arguments: tuple[Any, ...]) -> None:
    """Count a process that was started without the environment in which draws are noted: it may draw."""
    global _blind
    if event == "subprocess.Popen" and (environment := arguments[3]) is not None:
        paths = environment.get("PYTHONPATH", "").split(os.pathsep)
        _blind += "FLAKY_DRAWN" not in environment or str(NOTING) not in paths


if "FLAKY_FOUND" in os.environ:
    os.environ["FLAKY_DRAWN"] = f"{os.environ['FLAKY_FOUND']}.{os.getpid()}"
    sys.addaudithook(_started)


def _drawn() -> int:
    """How much was drawn so far by this process and those that it started."""
    place = Path(os.environ.get("FLAKY_DRAWN", os.devnull))
    return (place.stat().st_size if place.is_file() else 0) + _blind


@pytest.hookimpl(hookwrapper=True)
def pytest_fixture_setup(fixturedef: Any) -> Any:
    """Remember a fixture whose making draws."""
    before = _drawn()
    yield
    if _drawn() > before:
        _fixtures.add(fixturedef.argname)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: Any) -> Any:
    """Write down a test that draws, by itself or by a fixture, or that hypothesis gives examples to."""
    before = _drawn()
    yield
    if (found := os.environ.get("FLAKY_FOUND")) is None:
        return
    if _drawn() > before or _fixtures & set(item.fixturenames) or getattr(item.obj, "is_hypothesis_test", False):
        with Path(found).open("a") as file:
            file.write(item.nodeid + "\n")


def _session(arguments: list[str], found: Path | None = None) -> tuple[list[str], str]:
    """The tests that were red in one session, and its last line."""
    environment = {k: v for k, v in os.environ.items() if k != "CI"}  # where it is set, examples are the same each time
    environment["PYTHONDONTWRITEBYTECODE"] = ""
    if found:
        paths = [str(NOTING), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment |= {"FLAKY_FOUND": str(found), "FLAKY_DRAWN": str(found), "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run([*PYTEST, "-rfE", *arguments], capture_output=True, text=True, env=environment)
    lines = done.stdout.splitlines()
    red = [line.split(" ", 1)[1].split(" - ")[0] for line in lines if line.startswith(("FAILED ", "ERROR "))]
    if done.returncode and not red:
        sys.exit(done.stdout + done.stderr)
    return red, lines[-1]


def main(arguments: list[str]) -> int:
    """Run them, and say which were red how often; 1 if any was."""
    parser = argparse.ArgumentParser(prog="python -m tests.flaky", description=__doc__)
    parser.add_argument("--times", type=int, default=30, help="how often each test runs (30)")
    parser.add_argument("--fresh-noise", action="store_true", help="the tests' own process draws fresh noise too")
    parser.add_argument("paths", nargs="*", help="tests or folders (all)")
    asked = parser.parse_args(arguments)
    fresh = ["--fresh-noise"] if asked.fresh_noise else []
    PLACE.mkdir(parents=True, exist_ok=True)
    found, names = (PLACE / "found").resolve(), PLACE / "names"
    found.write_text("")
    begun = time.monotonic()
    red = Counter(_session([*fresh, *asked.paths], found)[0])
    drawing = sorted(set(found.read_text().splitlines()))
    names.write_text("\n".join(drawing) + "\n")
    print(f"{len(drawing)} tests draw; first run {time.monotonic() - begun:.0f} s", flush=True)
    for turn in range(1, asked.times):
        again, line = _session([*fresh, f"@{names}"])
        red += Counter(again)
        print(f"{turn + 1:3} of {asked.times}  {line}  {' '.join(again)}", flush=True)
    print(json.dumps({"times": asked.times, "tests": len(drawing), "red": red}, indent=1))
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
