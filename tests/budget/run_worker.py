"""What the tests start as a real process: whole runs that are killed at a chosen moment, or that start together."""

import json
import os
import re
import signal
import sys
from typing import Any

from pipeline.cli import main
from pipeline.sweeps import job_process, warm_start  # loaded once, before the children are

#: Moment → what the process is about to do when it is killed: an audit event, how its arguments look, and which
#: of these it is.
MOMENTS = {
    "before the name of the booking": ("open", r"\.booking\.json\.", 1),
    "after the name, before the booking": ("open", r"people\.json\.lock', 'a'", 2),
    "with the new ledger written, not yet in its place": ("os.rename", r"people\.json", 1),
    "after the booking, before the run's own ledger": ("open", r"/ledger\.jsonl", 1),
    "after the charges, before the release": ("open", r"privacy\.json", 1),
}
CHARGING = {
    "before the first charge": ("open", r"/ledger\.jsonl', 'a'", 2),
    "after the first charge, before its note": ("open", r"people\.json\.lock', 'a'", 3),
    "with that note written, not yet in its place": ("os.rename", r"people\.json", 2),
    "after the note of the first charge, before its answer": ("open", r"internal/answers/", 1),
    "after the last charge, before its note": ("open", r"people\.json\.lock', 'a'", 5),
}


def run(arguments: list[str], moment: tuple[str, str, int] | None) -> int:
    """A child that does the command; its exit code, negative where it was killed."""
    if child := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    if not os.environ.get("LOUD"):
        os.dup2(quiet, 2)
    if moment is not None:
        event, look, left = moment

        def kill(name: str, args: tuple[Any, ...]) -> None:
            nonlocal left
            if name == event and re.search(look, repr(args)):
                left -= 1
                if not left:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(kill)
    os._exit(main(["run", *arguments]))


def booked() -> list[float]:
    try:
        with open("people.json") as file:  # noqa: PTH123
            return [b["epsilon"] for b in json.load(file)["bookings"]]
    except FileNotFoundError:
        return []


def killed(common: list[str], moments: dict[str, tuple[str, str, int]]) -> dict[str, Any]:
    """Each moment with a run of its own: killed, then resumed (or started again where there is nothing to resume)."""
    assert job_process and warm_start
    found = {}
    for place, moment in enumerate(moments):
        root = f"run-{place}"
        mine = [*common, f"hydra.run.dir={root}", "budget.ledger=people.json"]
        before = len(booked())
        first = run(mine, moments[moment])
        left, charged = len(booked()) - before, os.path.exists(f"{root}/internal/ledger.jsonl")  # noqa: PTH110
        again = run([*mine, "resume=true"], None)
        once = run([*mine, "resume=true"], None) if moments is not CHARGING else 0
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
    moments = {"killed": MOMENTS | CHARGING, "killed-charging": CHARGING}
    print(json.dumps(killed(common, moments[do]) if do in moments else together(common, 3)))
