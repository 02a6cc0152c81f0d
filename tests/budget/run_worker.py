"""What the tests start as a real process: whole runs that are killed at a chosen moment, or that start together."""

import json
import os
import signal
import sys
from typing import Any

from pipeline.cli import main
from pipeline.sweeps import job_process, warm_start  # loaded once, before the children are

#: Moment → what the process is about to do when it is killed: an audit event and a part of its first arguments.
MOMENTS = {
    "before the name of the booking": ("open", ".booking.json."),
    "after the name, before the booking": ("open", "people.json.lock"),
    "with the new ledger written, not yet in its place": ("os.rename", "people.json"),
    "after the booking, before the run's own ledger": ("open", "ledger.jsonl"),
    "after the charges, before the release": ("open", "privacy.json"),
}


def run(arguments: list[str], moment: str | None) -> int:
    """A child that does the command; its exit code, negative where it was killed."""
    if child := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    if not os.environ.get("LOUD"):
        os.dup2(quiet, 2)
    if moment is not None:
        event, word = MOMENTS[moment]

        def kill(name: str, args: tuple[Any, ...]) -> None:
            if name == event and any(word in str(a) for a in args):
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(kill)
    os._exit(main(["run", *arguments]))


def booked() -> list[float]:
    try:
        with open("people.json") as file:  # noqa: PTH123
            return [b["epsilon"] for b in json.load(file)["bookings"]]
    except FileNotFoundError:
        return []


def killed(common: list[str]) -> dict[str, Any]:
    """Each moment with a run of its own: killed, then resumed (or started again where there is nothing to resume)."""
    assert job_process and warm_start
    found = {}
    for place, moment in enumerate(MOMENTS):
        root = f"run-{place}"
        mine = [*common, f"hydra.run.dir={root}", "budget.ledger=people.json"]
        before = len(booked())
        first = run(mine, moment)
        left, charged = len(booked()) - before, os.path.exists(f"{root}/internal/ledger.jsonl")  # noqa: PTH110
        again = run([*mine, "resume=true"], None)
        once = run([*mine, "resume=true"], None)
        released = os.path.exists(f"{root}/release/privacy.json")  # noqa: PTH110
        found[moment] = [first, left, charged, again, once, len(booked()) - before, released]
    return found


def together(common: list[str], runs: int) -> list[int]:
    """Runs that start at the same time, each in its own folder."""
    children = []
    for place in range(runs):
        if (child := os.fork()) == 0:
            os._exit(run([*common, f"hydra.run.dir=together-{place}", "budget.ledger=people.json"], None))
        children.append(child)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


if __name__ == "__main__":
    do, common = sys.argv[1], sys.argv[2:]
    print(json.dumps(killed(common) if do == "killed" else together(common, 3)))
