"""Mistakes of all commands, of kinds with too many cases to make each; those of other kinds are in refused.py."""

import random
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

import pipeline
from pipeline.error_messages import explained
from tests.pipeline import wrong_values as wrong
from tests.pipeline.conftest import command
from tests.pipeline.wrong_values import BASES, DAMAGES, OF_RUNS


@dataclass(frozen=True)
class Mistake:
    """What somebody does wrong: what becomes of the files before, and a command line or a Python call."""

    kind: str
    files: Callable[[Path], None]
    arguments: tuple[str, ...] = ()
    call: Callable[[], object] | None = None

    def made(self) -> int:
        """The exit code, or that of the Python call's error."""
        if self.call is None:
            return command(*self.arguments)
        try:
            self.call()
        except Exception as error:
            print(f"error: {explained(error)}", file=sys.stderr)
            return 1
        return 0


def nothing(folder: Path) -> None:
    """The files stay as they are."""


def said(bases: Iterable[str], *settings: str) -> list[Mistake]:
    return [Mistake(f"{settings} of {base}", nothing, (*BASES[base], *settings)) for base in bases]


def damaged(path: str, bases: Iterable[str], changes: dict[str, Callable[[bytes], bytes]]) -> Iterator[Mistake]:
    """Each change of a file before each of the commands."""

    def files(change: Callable[[bytes], bytes], folder: Path) -> None:
        (folder / path).write_bytes(change((folder / path).read_bytes()))

    for base in bases:
        for kind, change in changes.items():
            yield Mistake(f"{path}: {kind}, {base}", partial(files, change), tuple(BASES[base]))


def replaced(*texts: bytes) -> Callable[[bytes], bytes]:
    return lambda content: content.replace(*texts)


def but(kinds: Collection[str]) -> dict[str, Callable[[bytes], bytes]]:
    """All damages but some: what they leave of the file is a good one, or another's business."""
    return {kind: change for kind, change in DAMAGES.items() if kind not in kinds}


def wrong_paths() -> Iterator[Mistake]:
    """A file that is not there, or a folder, or a name that cannot be one."""
    for base, places in wrong.PLACES.items():
        for place in places:
            names = ["R/internal" if name == "R" and place == "run" else name for name in wrong.NAMES]
            if place == "hydra.run.dir":
                names = ["", "town.csv", "town.csv/x", "R/release/x", "/proc/nope", "R"]
            for name in names:
                arguments = (*wrong.ALONE.get(base, BASES[base]), f"{place}={name}")
                yield Mistake(f"{place} of {base}", nothing, arguments)


def damaged_tables() -> Iterator[Mistake]:
    headers = {kind: replaced(*texts) for kind, texts in wrong.HEADERS.items()}
    yield from damaged("town.csv", ["run", "sweep", "check"], but(["cut off"]) | headers)
    del headers["another delimiter"], headers["a name is absent"]  # `score` finds the one, and tells of the other
    yield from damaged("town.csv", ["score"], but(["cut off", "UTF-16", "Latin-1"]) | headers)
    taken = ["something else", "null", "Latin-1", "cut off", "UTF-16"]
    headers = {kind: headers[kind] for kind in ("a name twice", "an open quote")}
    yield from damaged("town.csv", ["schema"], but(taken) | headers)


def damaged_releases() -> Iterator[Mistake]:

    def gone(path: str, folder: Path, *, again: bool) -> None:
        (folder / path).unlink()
        if again:
            (folder / path).mkdir()

    for name in wrong.IN_A_RELEASE:
        path = f"R/release/{name}"
        yield from damaged(path, ["synth", "query"], DAMAGES)
        for base in ("synth", "query"):
            for again in (False, True):
                yield Mistake(f"{path} gone, {base}", partial(gone, path, again=again), tuple(BASES[base]))


def damaged_runs() -> Iterator[Mistake]:
    for name in ("scores", "figures"):
        kinds = {kind: DAMAGES[kind] for kind in ("empty", "binary", "cut off", "null")}
        yield from damaged(f"R/internal/{name}.json", ["report"], kinds)
    yield from damaged("town.json", ["budget", "run", "sweep"], but(["Latin-1"]))


FRAME = pd.DataFrame({"age": [1, 2], "sex": ["f", "m"], "job": ["baker", "clerk"]})


def fitted(frame: object = FRAME, schema: object = "town.yaml", **settings: object) -> object:
    return pipeline.fit(frame, schema, quiet=True, **settings)  # type: ignore[arg-type]


#: (A call of the Python interface, what it is given).
IN_PYTHON: list[tuple[Callable[[Any], object], list[Any]]] = [
    (lambda v: fitted(epsilon=v), [0, -1, float("nan"), float("inf")]),
    (lambda v: fitted(delta=v), [1, -1, 7]),
    (lambda v: fitted(unit="nobody", max_records=v), [2]),
    (lambda v: fitted(unit="job", max_records=v), [0, -1]),
    (lambda v: fitted(FRAME.drop(columns=v)), ["age", "sex"]),
    (lambda v: fitted(schema=v), ["nope.yaml", "town.csv", {}, {"columns": 3}, None, 7]),
    (fitted, [None, 3, "town.csv", [1], {}]),
    (lambda v: fitted(folder=v), ["town.csv"]),
    (lambda v: fitted(nonsense=v), [3]),
    (lambda v: fitted(selection=v), ["nope", 3, {"kind": "nope"}]),
    (lambda v: pipeline.load(v), ["nope", "town.csv", "R/internal", "/"]),
    (lambda v: pipeline.load("R/release").sample(v), [-1, 2.5, "many"]),
    (lambda v: pipeline.load("R/release").sample(5, where=v), [{"nobody": 1}, {"age": [9, 1]}, {"sex": "x"}]),
    (lambda v: pipeline.load("R/release").save(v), ["town.csv", "R", "town.csv/x"]),
    (lambda v: pipeline.load("R/release").marginal(v), [["nobody"], []]),
    (lambda v: pipeline.query("R/release", marginal=v), [["nobody"], []]),
    (lambda v: pipeline.estimate("R/release", *v), [("mode", "nobody"), ("mode", None), ("mean", "nobody")]),
    (lambda v: pipeline.score(FRAME, v, "town.yaml"), [None, 3, "nope.csv"]),
    (lambda v: pipeline.score(FRAME, FRAME, v), ["nope", 3, "town.csv"]),
    (lambda v: pipeline.synthesize("R/release", v), ["town.csv", "R"]),
    (lambda v: pipeline.synthesize("R/release", "again", v), ["synthesis.rows=-1", "synthesi=gum", "rows=x"]),
    (lambda v: pipeline.run(pipeline.load_config(v), "out", quiet=True), [["data=table"]]),
    (pipeline.load_config, [5, None, "data=adult", {"data": "adult"}.items()]),
    (lambda v: pipeline.itemsets("R/release", v), [None, "x", 2]),
    (lambda v: pipeline.load_config([v]), [5, "privacy.epsilon=x", "nonsense=1", "data=nope", "=", "a=["]),
]
#: More than the shared budget has left, or another table's; a limit that cannot be, or without a reason.
OVERSPENT = ["privacy.epsilon=50", "privacy.delta=0.5", "budget.table=another", "privacy.neighbouring=replace"]
LIMITS = ["{epsilon: -1, delta: 0}", "3", "{epsilon: nan, delta: 0}", "{}"]

KINDS: dict[str, list[Mistake]] = {
    "no setting": [m for text in wrong.NO_SETTINGS for m in said(BASES, text)],
    "a word": [m for name in wrong.WORDS for word in wrong.NO_WORDS for m in said(OF_RUNS, f"{name}={word}")],
    "a list": [
        m
        for name, values in wrong.LISTS.items()
        for value in values
        for m in said(["run"] if name.startswith("budget") else OF_RUNS, f"{name}={value}")
    ],  # a rehearsal books nothing
    "a path": list(wrong_paths()),
    "a table": list(damaged_tables()),
    "a schema": [
        *damaged("town.yaml", [*OF_RUNS, "check", "score"], but(["Latin-1", "a line of one megabyte"])),
        *damaged(
            "town.yaml",
            [*OF_RUNS, "check", "score"],
            {kind: replaced(*(t.encode() for t in texts)) for kind, texts in wrong.SCHEMAS.items()},
        ),
    ],
    "a release": list(damaged_releases()),
    "a run": list(damaged_runs()),
    "a budget": [m for setting in OVERSPENT for m in said(["run", "sweep"], setting)],
    "a limit": [
        *said(["budget"], "limit={epsilon: 9, delta: 1e-6}"),
        *(
            m
            for limit in LIMITS
            for more in ([], ["reason=because"])
            for m in said(["budget"], f"limit={limit}", *more)
        ),
    ],
    "Python": [Mistake(f"Python {v!r}", nothing, call=partial(call, v)) for call, given in IN_PYTHON for v in given],
}


def random_mistake(rng: random.Random) -> Mistake:
    return rng.choice(rng.choice(list(KINDS.values())))
