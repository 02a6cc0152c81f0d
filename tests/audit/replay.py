"""Runs on neighbouring tables with the same frozen answers: steps, files and bytes are equal, differences are paid."""

import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scipy.stats import kstest

from mechanisms.public.errors import UserError
from pipeline import stages
from tests.audit.cases import Case, config_of, every_case, ran
from tests.audit.hooks import Broken, Summed, numbers, swapped
from tests.audit.sampling import RARE, laws
from tests.audit.tape import Tape, check_seen, compared, noise_of, recording
from tests.audit.worlds import World, write_table


@dataclass
class Tally(Summed):
    """What the replays saw, over all pairs of neighbouring tables.

    Attributes:
        largest: true difference as a share of what was charged for it, by the class that left.
        noise: probabilities of the stated law up to the noise that left, by the class that left and the noise's kind.
        accepts: pairs whose release was accepted by noisy distances.
        refused: cases whose run was refused on every table alike.
        ran: what ran, in the words of the code's registries.
    """

    cases: int = 0
    pairs: int = 0
    answers: int = 0
    choices: int = 0
    largest: dict[str, float] = field(default_factory=dict)
    noise: dict[str, list[float]] = field(default_factory=dict)
    accepts: int = 0
    refused: int = 0
    ran: dict[str, set[str]] = field(default_factory=dict)


@contextmanager
def loaded_once() -> Iterator[None]:
    """A table that was encoded and clipped is not read again with the same settings, and these are parsed once."""
    kept: dict[Any, Any] = {}

    def once(original: Any) -> Any:
        def load(source: Any, schema: Any, unit: Any, **named: Any) -> Any:
            facts = (source.path.read_bytes(), schema.to_yaml(), unit, source.relation.partition("(")[0])
            name = (*facts, named["key"], named.get("holdout"), named.get("histogram"))
            if name not in kept:
                kept[name] = original(source, schema, unit, **named)
            return kept[name]

        return load

    def settings_once(original: Any) -> Any:
        def selection_of(settings: Any) -> Any:
            if (name := repr(settings)) not in kept:
                kept[name] = original(settings)
            return kept[name]

        return selection_of

    with swapped("load", once), swapped("selection", settings_once):
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


def replayed(case: Case, world: World, plan: Any, folder: Path, *, few: bool = False) -> Tally:
    """One case: recorded on its table, replayed on each neighbour, or on one of them."""
    tally = Tally(cases=1)
    try:
        home = folder / "pairs"
        first, left = outcome(case, folder, write_table(home / "d" / "t.csv", world.table), None)
        tally.refused = int(isinstance(left, str))
        tally.noise = _probabilities(first)
        if not tally.refused:
            tally.ran = ran(case, plan, folder) | {"question": {*first.questions.values()}}
        chosen = slice(case.seed % 2, case.seed % 2 + 1) if few else slice(None)
        for neighbour in world.neighbours[chosen]:
            second, right = outcome(case, folder, write_table(home / "e" / "t.csv", neighbour), first)
            tally.add(Tally(largest=compared(first, second)))
            if left != right:
                raise Broken(f"the release differs: {difference(left, right)}")
            tally.pairs += 1
            tally.accepts += bool(case.accept)
            tally.answers += len(first.draws)
            tally.choices += len(first.choices)
    except Broken as error:
        raise Broken(f"{case.name}: {error}") from error
    return tally


def _probabilities(tape: Tape) -> dict[str, list[float]]:
    """How likely less noise was than what left, by the stated law: uniform between 0 and 1, if that law holds."""
    found: dict[str, list[float]] = {}
    for name, noise in noise_of(tape).items():
        event = tape.draws[name].event
        kind = numbers(event).kind
        law = laws()[kind][1]
        found.setdefault(f"{tape.questions[event.id]}, {kind}", []).extend(law.cdf(noise).tolist())
    return found


def check_noise(tally: Tally) -> float:
    """The noise of whole runs follows its stated law, whatever left with it; the least p-value."""
    least = 1.0
    for kind, found in tally.noise.items():
        value = float(kstest(found, "uniform").pvalue)
        if value < RARE:
            raise Broken(f"{kind}: the noise of {len(found)} answers does not follow its law (p = {value:.2g})")
        least = min(least, value)
    return least


def difference(left: Any, right: Any) -> str:
    """The files in which two releases differ, or the refusal."""
    if isinstance(left, str) or isinstance(right, str):
        return f"{left if isinstance(left, str) else 'released'} / {right if isinstance(right, str) else 'released'}"
    return ", ".join(sorted(k for k in left.keys() | right.keys() if left.get(k) != right.get(k)))


def replay(folder: Path, *, few: bool | None = None, **chosen: Any) -> Tally:
    """All cases, or those that are `chosen` as by `every_case`: `most` of them on one pair each, unless by `words`."""
    tally = Tally()
    few = chosen.get("most") is not None and not chosen.get("words") if few is None else few
    with loaded_once():
        for case, world, plan in every_case(folder, **chosen):
            tally.add(replayed(case, world, plan, folder, few=few))
    check_noise(tally)
    return tally
