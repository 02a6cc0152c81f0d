"""Mistakes at random, of all commands, of kinds with too many cases to list; those of other kinds are in refused.py."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

import pipeline
from pipeline.error_messages import explained
from tests.pipeline.conftest import command
from tests.pipeline.wrong_values import (
    BASES,
    DAMAGES,
    HEADERS,
    IN_A_RELEASE,
    LISTS,
    NAMES,
    OF_RUNS,
    SCHEMAS,
    WORDS,
)


@dataclass(frozen=True)
class Mistake:
    """What somebody does wrong.

    Attributes:
        kind: in a few words.
        files: what the files in the folder are made before.
        arguments: the command line.
        call: the same in Python; None for a command.
    """

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


def random_mistake(rng: random.Random) -> Mistake:
    """One mistake of a random kind, in a random command that may have it."""
    return rng.choice(KINDS)(rng)


def no_setting(rng: random.Random) -> Mistake:
    """What is not of the form key=value, or stands for something that is not there."""
    base = rng.choice(list(BASES))
    wrong = rng.choice(["=5", "==", "privacy.epsilon", "a=[", "a={", "a='", "~data", "+new=1", "x=${nope}", "a,b=1"])
    return Mistake(f"no setting of {base}", nothing, (*BASES[base], wrong))


def wrong_word(rng: random.Random) -> Mistake:
    """A word that is none of the allowed ones."""
    base, name = rng.choice(OF_RUNS), rng.choice(WORDS)
    word = rng.choice(["nonsense", "", "[a]", "{a: 1}", "Ω", "'a b'", "x" * 200, "${nope}"])
    return Mistake(f"{name} of {base}", nothing, (*BASES[base], f"{name}={word}"))


def wrong_list(rng: random.Random) -> Mistake:
    """A list or mapping of the wrong form or with names that are not there."""
    base, name = rng.choice(OF_RUNS), rng.choice(list(LISTS))
    base = "run" if name.startswith("budget") else base  # a rehearsal books nothing
    return Mistake(f"{name} of {base}", nothing, (*BASES[base], f"{name}={rng.choice(LISTS[name])}"))


def wrong_path(rng: random.Random) -> Mistake:
    """A file that is not there, or a folder, or a name that cannot be one."""
    place = {
        "run": ("data.path", "data.schema", "statement.key", "hydra.run.dir", "budget.ledger"),
        "plan": ("data.schema",),
        "sweep": ("data.path", "data.schema", "budget.ledger"),
        "rehearse": ("data.schema", "data.path"),
        "check": ("data.path", "data.schema"),
        "synth": ("from", "statement.key"),
        "query": ("from",),
        "score": ("real", "synthetic", "schema", "holdout"),
        "verify": ("from", "key"),
        "report": ("run",),
        "budget": ("file",),
        "schema": ("table",),
    }
    base = rng.choice(list(place))
    name, path = rng.choice(place[base]), rng.choice(NAMES)
    if name == "hydra.run.dir":
        path = rng.choice(["", "town.csv", "town.csv/x", "R/release/x", "/proc/nope", "R"])
    elif path == "R" and name == "run":
        path = "R/internal"
    arguments = [a for a in BASES[base] if "=" in a or base not in ("verify", "report", "budget", "schema")]
    arguments = [base, *arguments] if arguments[:1] != [BASES[base][0]] else arguments
    return Mistake(f"{name} of {base}", nothing, (*arguments, f"{name}={path}"))


def damaged_table(rng: random.Random) -> Mistake:
    """The table is damaged as a whole, or in its header."""
    base = rng.choice(["run", "sweep", "check", "schema", "score"])
    kind = rng.choice([*DAMAGES, *HEADERS])
    if base == "schema" and kind in {
        "a name is absent",
        "cut off",
        "something else",
        "null",
        "Latin-1",
        "a cell too many",
    }:
        base = "run"
    if kind in {"cut off", "no header at all"}:
        kind = "empty"

    def files(folder: Path) -> None:
        table = (folder / "town.csv").read_bytes()
        changed = DAMAGES[kind](rng, table) if kind in DAMAGES else table.replace(*HEADERS[kind])
        (folder / "town.csv").write_bytes(changed)

    return Mistake(f"table: {kind}, {base}", files, tuple(BASES[base]))


def damaged_schema(rng: random.Random) -> Mistake:
    """The schema is damaged as a whole, or in one of its fields."""
    base, kind = rng.choice([*OF_RUNS, "check", "score"]), rng.choice([*DAMAGES, *SCHEMAS])
    kind = "binary" if kind in {"Latin-1", "a line of one megabyte"} else kind

    def files(folder: Path) -> None:
        schema = (folder / "town.yaml").read_bytes()
        changed = (
            DAMAGES[kind](rng, schema) if kind in DAMAGES else schema.replace(*(t.encode() for t in SCHEMAS[kind]))
        )
        (folder / "town.yaml").write_bytes(changed)

    return Mistake(f"schema: {kind}, {base}", files, tuple(BASES[base]))


def damaged_release(rng: random.Random) -> Mistake:
    """A file of the release is damaged, foreign or gone."""
    base, name, kind = (
        rng.choice(["synth", "query"]),
        rng.choice(IN_A_RELEASE),
        rng.choice([*DAMAGES, "gone", "a folder"]),
    )

    def files(folder: Path) -> None:
        path = folder / "R" / "release" / name
        content = path.read_bytes()
        path.unlink()
        if kind == "a folder":
            path.mkdir()
        elif kind != "gone":
            path.write_bytes(DAMAGES[kind](rng, content))

    return Mistake(f"release: {name} {kind}, {base}", files, tuple(BASES[base]))


def damaged_run(rng: random.Random) -> Mistake:
    """A file that a run or a budget keeps is damaged."""
    path, arguments = rng.choice(
        [
            ("R/internal/scores.json", BASES["report"]),
            ("R/internal/figures.json", BASES["report"]),
            ("town.json", BASES["budget"]),
            ("town.json", BASES["run"]),
            ("town.json", BASES["sweep"]),
        ]
    )
    kind = rng.choice(
        [k for k in DAMAGES if k != "Latin-1"] if path == "town.json" else ["empty", "binary", "cut off", "null"]
    )

    def files(folder: Path) -> None:
        (folder / path).write_bytes(DAMAGES[kind](rng, (folder / path).read_bytes()))

    return Mistake(f"{path} {kind}, {arguments[0]}", files, tuple(arguments))


def overspent(rng: random.Random) -> Mistake:
    """More than the shared budget has left, or another table's."""
    base = rng.choice(["run", "sweep"])
    wrong = rng.choice(
        [["privacy.epsilon=50"], ["privacy.delta=0.5"], ["budget.table=another"], ["privacy.neighbouring=replace"]]
    )
    return Mistake(f"budget of {base}", nothing, (*BASES[base], *wrong))


def other_limit(rng: random.Random) -> Mistake:
    """A limit that cannot be, or without a reason."""
    limit = rng.choice(["{epsilon: -1, delta: 0}", "3", "{epsilon: 9, delta: 1e-6}", "{epsilon: nan, delta: 0}", "{}"])
    reason = [] if limit.startswith("{epsilon: 9") else rng.choice([[], ["reason=because"]])
    return Mistake("limit of budget", nothing, ("budget", "town.json", f"limit={limit}", *reason))


def in_python(rng: random.Random) -> Mistake:
    """A mistake of the Python interface."""
    frame = pd.DataFrame({"age": [1, 2], "sex": ["f", "m"], "job": ["baker", "clerk"]})
    schema: object = "town.yaml"
    calls: Sequence[Callable[[], object]] = [
        lambda: pipeline.fit(frame, schema, epsilon=rng.choice([0, -1, float("nan"), float("inf")]), quiet=True),
        lambda: pipeline.fit(frame, schema, delta=rng.choice([1, -1, 7]), quiet=True),
        lambda: pipeline.fit(frame, schema, unit="nobody", max_records=2, quiet=True),
        lambda: pipeline.fit(frame, schema, max_records=rng.choice([0, -1]), unit="job", quiet=True),
        lambda: pipeline.fit(frame.drop(columns=rng.choice(["age", "sex"])), schema, quiet=True),
        lambda: pipeline.fit(frame, rng.choice(["nope.yaml", "town.csv", {}, {"columns": 3}, None, 7]), quiet=True),
        lambda: pipeline.fit(rng.choice([None, 3, "town.csv", [1], {}]), schema, quiet=True),
        lambda: pipeline.fit(frame, schema, folder="town.csv", quiet=True),
        lambda: pipeline.fit(frame, schema, nonsense=3, quiet=True),
        lambda: pipeline.fit(frame, schema, selection=rng.choice(["nope", 3, {"kind": "nope"}]), quiet=True),
        lambda: pipeline.load(rng.choice(["nope", "town.csv", "R/internal", "/"])),
        lambda: pipeline.load("R/release").sample(rng.choice([-1, 2.5, "many"])),
        lambda: pipeline.load("R/release").sample(5, where=rng.choice([{"nobody": 1}, {"age": [9, 1]}, {"sex": "x"}])),
        lambda: pipeline.load("R/release").save(rng.choice(["town.csv", "R", "town.csv/x"])),
        lambda: pipeline.load("R/release").marginal(rng.choice([["nobody"], []])),
        lambda: pipeline.query("R/release", marginal=rng.choice([["nobody"], []])),
        lambda: pipeline.estimate("R/release", rng.choice(["mode", "mean"]), rng.choice(["nobody", None])),
        lambda: pipeline.score(frame, rng.choice([None, 3, "nope.csv"]), schema),
        lambda: pipeline.score(frame, frame, rng.choice(["nope", 3, "town.csv"])),
        lambda: pipeline.synthesize("R/release", rng.choice(["town.csv", "R"])),
        lambda: pipeline.synthesize("R/release", "again", rng.choice(["synthesis.rows=-1", "synthesi=gum", "rows=x"])),
        lambda: pipeline.run(pipeline.load_config(["data=table"]), "out", quiet=True),
        lambda: pipeline.load_config([rng.choice(["privacy.epsilon=x", "nonsense=1", "data=nope", "=", "a=["])]),
    ]
    place = rng.randrange(len(calls))
    return Mistake(f"Python call {place}", nothing, call=calls[place])


KINDS: tuple[Callable[[random.Random], Mistake], ...] = (
    no_setting,
    wrong_word,
    wrong_list,
    wrong_path,
    wrong_path,
    damaged_table,
    damaged_schema,
    damaged_schema,
    damaged_release,
    damaged_run,
    overspent,
    other_limit,
    in_python,
    in_python,
)
