"""What the tests of the file start as real processes: many that book at once, and one that is killed at each step."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from mechanisms.accounting.bookings import Booking, LedgerTerms, Refused, Scope, book_runs, load_book
from mechanisms.accounting.filters import Limit, spend_of_pair

SCOPE = Scope("town", {"column": None}, "add_remove")


def wanted(path: Path) -> LedgerTerms:
    return LedgerTerms(path, SCOPE, limit=Limit(3.0, 1e-6))


def booking(name: str, epsilon: float) -> Booking:
    return Booking(name, f"outputs/{name}", spend_of_pair(epsilon, 0.0), True)


def said_by(worker: str, *arguments: str) -> Any:
    """What a worker of this folder says, as a process of its own."""
    command, root = [sys.executable, "-m", f"tests.budget.{worker}", *arguments], str(Path(__file__).parents[2])
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": root}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def many(path: Path, processes: int) -> None:
    """Children that all try at the same time; each says on its exit code whether it was let in."""
    gate, opened = os.pipe()
    children = []
    for i in range(processes):
        if (child := os.fork()) == 0:
            os.close(opened)
            os.read(gate, 1)  # returns for all when the parent closes its end
            try:
                book_runs(wanted(path), [booking(f"run-{i}", 0.5)])
            except Refused:
                os._exit(3)
            os._exit(0)
        children.append(child)
    os.close(opened)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    print(json.dumps(codes))


def killed(path: Path) -> None:
    """For each step at which the file system is touched: a child that is killed there, and then one that goes on."""
    outcomes = []
    for step in range(1, 100):
        ended = _child(path, step)
        before = load_book(path)
        again = _child(path, None)
        after = load_book(path)
        assert after is not None
        names = [[b.id for b in book.bookings] if book else [] for book in (before, after)]
        outcomes.append({"killed": ended == -signal.SIGKILL, "before": names[0], "after": names[1], "again": again})
        if ended == 0:
            break
        path.unlink()
    print(json.dumps(outcomes))


def _child(path: Path, step: int | None) -> int:
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if step is not None:
        _kill_at(step)
    book_runs(wanted(path), [booking("first", 1.0), booking("second", 1.0)])
    os._exit(0)


def _kill_at(step: int) -> None:
    """SIGKILL to this process before its n-th call that leaves something on disk or takes the lock."""
    left = step

    def before(event: str, args: tuple[Any, ...]) -> None:
        nonlocal left
        names = ("open", "os.rename", "os.chmod", "os.remove", "os.mkdir", "fcntl.flock")
        if event in names and not (event == "open" and str(args[0]).endswith((".py", ".pyc", "passwd"))):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sync = os.fsync

    def synced(handle: int) -> None:
        before("fcntl.flock", ())
        sync(handle)

    os.fsync = synced
    sys.addaudithook(before)


if __name__ == "__main__":
    if sys.argv[1] == "many":
        many(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        killed(Path(sys.argv[2]))
