"""What a mistake must end in: exit code 1, one message with what, where and a cure, and every file as it was."""

import hashlib
import io
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from tests.pipeline.conftest import command


@dataclass(frozen=True)
class Ending:
    """How a command ended; the files and folders that it changed, but for logs of a run that is there."""

    code: int
    out: str
    err: str
    changed: tuple[str, ...]


def files_of(folder: Path) -> dict[str, str]:
    return {
        str(p.relative_to(folder)): hashlib.blake2b(p.read_bytes()).hexdigest() if p.is_file() else "folder"
        for p in folder.rglob("*")
        if not p.is_symlink()
    }


def ending(folder: Path, action: Callable[[], int]) -> Ending:
    before, out, err = files_of(folder), io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = action()
    after = files_of(folder)
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    return Ending(code, out.getvalue(), err.getvalue(), tuple(c for c in changed if not c.endswith("run.log")))


def mistake(folder: Path, *arguments: str) -> Ending:
    return ending(folder, lambda: command(*arguments))


def faults(end: Ending) -> list[str]:
    """What is wrong with the way in which a mistake was answered; empty for a good answer."""
    wrong = []
    if end.code != 1:
        wrong.append(f"exit code {end.code}")
    if end.err.count("error: ") != 1:
        wrong.append(f"{end.err.count('error: ')} messages")
    if "Traceback" in end.err or "fault of the pipeline" in end.err:
        wrong.append("a traceback, or a fault of the pipeline that is the user's")
    if "\n  fix: " not in end.err or end.err.rstrip().endswith("fix:"):
        wrong.append("no cure")
    if end.changed:
        wrong.append(f"changed: {', '.join(end.changed[:5])}")
    return wrong
