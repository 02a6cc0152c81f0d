"""A peer's own virtual environment, from the pinned requirements beside this file."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

REQUIREMENTS = Path(__file__).parent / "requirements"
#: An installation that takes longer is given up.
MINUTES = 30


class InstallationFailed(Exception):
    """An environment could not be built; says why."""


def environment(name: str, root: Path) -> Path:
    """The Python of the peer's environment; built if it is not there or its requirements changed.

    Raises:
        InstallationFailed: with the last thing that pip said.
    """
    wanted = (REQUIREMENTS / f"{name}.txt").read_text(encoding="utf-8")
    folder = root / name
    python, mark = folder / "bin" / "python", folder / "installed.txt"
    if mark.is_file() and mark.read_text(encoding="utf-8") == wanted:
        return python
    if folder.exists():
        shutil.rmtree(folder)
    _run([sys.executable, "-m", "venv", str(folder)], name)
    _run([str(python), "-m", "pip", "install", "--quiet", "--requirement", str(REQUIREMENTS / f"{name}.txt")], name)
    mark.write_text(wanted, encoding="utf-8")
    return python


def _run(command: list[str], name: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=MINUTES * 60, check=False)
    except subprocess.TimeoutExpired as error:
        raise InstallationFailed(f"{name}: not installed within {MINUTES} minutes") from error
    if done.returncode:
        lines = [x for x in (done.stderr or done.stdout).splitlines() if x.strip() and "notice" not in x]
        errors = [x for x in lines if "ERROR" in x] or lines or [f"exit code {done.returncode}"]
        raise InstallationFailed(f"{name}: {errors[-1].strip()}")
