"""Runs on neighbouring tables with the same frozen answers: steps, files and bytes are equal, differences are paid."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mechanisms.public.errors import UserError
from pipeline import stages
from tests.audit.cases import Case, config_of, every_case, plan_of, ran
from tests.audit.hooks import Broken, swapped
from tests.audit.tape import Tape, check_seen, compared, recording
from tests.audit.worlds import World, write_table


@dataclass
class Tally:
    """What the replays saw.

    Attributes:
        pairs: of neighbouring tables.
        answers, choices: compared, over all pairs.
        largest: true difference as a share of what was charged for it.
        refused: cases whose run was refused on every table alike.
        ran: what ran, in the words of the code's registries.
    """

    cases: int = 0
    pairs: int = 0
    answers: int = 0
    choices: int = 0
    largest: float = 0.0
    refused: int = 0
    ran: dict[str, set[str]] = field(default_factory=dict)

    def add(self, other: Tally) -> None:
        self.cases, self.pairs = self.cases + other.cases, self.pairs + other.pairs
        self.answers, self.choices = self.answers + other.answers, self.choices + other.choices
        self.largest, self.refused = max(self.largest, other.largest), self.refused + other.refused
        for what, names in other.ran.items():
            self.ran.setdefault(what, set()).update(names)


@contextmanager
def loaded_once() -> Iterator[None]:
    """A table that was encoded and clipped is not read again with the same settings."""
    kept: dict[Any, Any] = {}

    def once(original: Any) -> Any:
        def load(source: Any, schema: Any, unit: Any, **named: Any) -> Any:
            facts = (source.path.read_bytes(), schema.to_yaml(), unit, source.relation.partition("(")[0])
            name = (*facts, named["key"], named.get("holdout"), named.get("histogram"))
            if name not in kept:
                kept[name] = original(source, schema, unit, **named)
            return kept[name]

        return load

    with swapped("load", once):
        yield


def released(folder: Path) -> dict[str, tuple[str, int]]:
    """Each file of a release: its digest and its mode."""
    files = sorted(p for p in folder.rglob("*"))
    return {
        str(p.relative_to(folder)): (
            hashlib.sha256(p.read_bytes()).hexdigest() if p.is_file() else "",
            p.stat().st_mode,
        )
        for p in files
    }


def outcome(case: Case, folder: Path, table: Path, frozen: Tape | None) -> tuple[Tape, Any]:
    """The tape of one run, and its release, or the refusal's text."""
    tape, root = Tape(), table.parent / "run"
    shutil.rmtree(root, ignore_errors=True)
    try:
        with recording(tape, frozen, seed=case.seed):
            stages.run(config_of(case, folder, table), root, quiet=True)
    except UserError as error:
        return tape, str(error).replace(str(table.parent), "")
    check_seen(tape)
    return tape, released(root / "release")


def replayed(case: Case, world: World, folder: Path, *, few: bool = False) -> Tally:
    """One case: recorded on its table, replayed on each neighbour, or on one of them.

    Raises:
        Broken: a step, a file or a byte differs, or a difference is above what was charged for it.
    """
    tally = Tally(cases=1)
    try:
        home = folder / "pairs"
        first, left = outcome(case, folder, write_table(home / "d" / "t.csv", world.table), None)
        tally.refused = int(isinstance(left, str))
        if not tally.refused:
            tally.ran = ran(case, plan_of(config_of(case, folder, home))) | {"question": first.questions}
        chosen = slice(case.seed % 2, case.seed % 2 + 1) if few else slice(None)
        for neighbour in world.neighbours[chosen]:
            second, right = outcome(case, folder, write_table(home / "e" / "t.csv", neighbour), first)
            tally.largest = max(tally.largest, compared(first, second))
            if left != right:
                raise Broken(f"the release differs: {_difference(left, right)}")
            tally.pairs += 1
            tally.answers += len(first.draws)
            tally.choices += len(first.choices)
    except Broken as error:
        raise Broken(f"{case.name}: {error}") from error
    return tally


def _difference(left: Any, right: Any) -> str:
    if isinstance(left, str) or isinstance(right, str):
        return f"{left if isinstance(left, str) else 'released'} / {right if isinstance(right, str) else 'released'}"
    return ", ".join(sorted(k for k in left.keys() | right.keys() if left.get(k) != right.get(k)))


def replay(
    folder: Path,
    *,
    most: int | None = None,
    seed: int = 1,
    part: tuple[int, int] = (0, 1),
    words: Collection[str] = (),
) -> Tally:
    """All cases; or `most` of them, each on one pair; see `every_case`.

    Raises:
        Broken: one does not hold.
    """
    tally = Tally()
    with loaded_once():
        for case, world in every_case(folder, most=most, seed=seed, part=part, words=words):
            tally.add(replayed(case, world, folder, few=most is not None))
    return tally
