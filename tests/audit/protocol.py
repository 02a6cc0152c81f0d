"""What a run does when it is cut off, cheated on, or asked for too much, and what it says of itself."""

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mechanisms.accounting.events import as_choice, as_noise
from mechanisms.accounting.ledger import BudgetExceeded, Ledger
from mechanisms.public.arrays import Floats
from mechanisms.public.discovery.discovery_questions import DISCOVERY, OF_UNITS
from mechanisms.public.errors import UserError
from mechanisms.public.tables.scan import open_table
from mechanisms.sensitive.contribution import PrivacyUnit
from pipeline import stages
from pipeline.settings.config import Config
from tests.audit.cases import Case, config_of, plan_of
from tests.audit.hooks import Broken, current, swapped
from tests.audit.tape import Tape, recording
from tests.audit.worlds import RECORDS, make_world, write_table

#: The last of the bounds that C may be, in the schema `records`, is its cap.
BOUNDS = (1, 2, 4)
UNITS_OWN = PrivacyUnit("uid", 1, missing="own")


class Cut(BaseException):
    """The power fails."""


@contextmanager
def cut_at(draw: int) -> Iterator[None]:
    """The power fails between a charge and its draw."""
    count = iter(range(draw + 1))

    def noisy(original: Any) -> Any:
        def drawn(*args: Any) -> Any:
            if next(count) == draw:
                raise Cut
            return original(*args)

        return drawn

    with swapped("noisy", noisy):
        yield


def _config(folder: Path, selection: str) -> Config:
    case = Case(selection, "gaussian", "gdp", RECORDS, "plain", 40.0, 3)
    return config_of(case, folder, write_table(folder / "protocol" / "t.csv", make_world(RECORDS, 3).table))


def _cut_run(folder: Path, selection: str, draw: int) -> tuple[Config, Path, Tape]:
    """A run that was cut off, with what it charged and drew."""
    config, root, tape = _config(folder, selection), folder / "protocol" / "run", Tape()
    shutil.rmtree(root, ignore_errors=True)
    try:
        with cut_at(draw), recording(tape, seed=1):
            stages.run(config, root, quiet=True)
    except Cut:
        return replace(config, resume=True), root, tape
    raise Broken(f"{selection}: the run was not cut off")


def check_cut_off(folder: Path) -> int:
    """A run that goes on charges nothing twice and draws nothing that is charged; the cuts."""
    cuts = [("pairs", 0), ("pairs", 4), ("mst", 7), ("aim", 6), ("indif", 2), ("adagrid tree", 6)]
    for selection, draw in cuts:
        config, root, before = _cut_run(folder, selection, draw)
        after = Tape()
        with recording(after, seed=1):
            stages.run(config, root, quiet=True)
        if twice := before.charged.keys() & after.charged.keys():
            raise Broken(f"{selection}: charged twice: {', '.join(sorted(twice))}")
        if twice := before.charged.keys() & (after.draws.keys() | after.choices.keys()):
            raise Broken(f"{selection}: drawn again: {', '.join(sorted(twice))}")
    return len(cuts)


def check_swapped_answers(folder: Path) -> int:
    """Kept answers that are put in each other's place are refused; how many swaps."""
    swaps = [("pairs", (3, 4)), ("pairs", (1, 2))]  # of equal size, and of other sizes
    for selection, places in swaps:
        config, root, _ = _cut_run(folder, selection, 6)
        answers = root / "internal" / "answers"
        files, part = [answers / f"{i:05d}.npz" for i in places], answers / "part"
        files[0].rename(part)
        files[1].rename(files[0])
        part.rename(files[1])
        try:
            stages.run(config, root, quiet=True)
        except UserError as error:
            refused = str(error)
        else:
            refused = "nothing: the run went on"
        if "not what the ledger was charged for" not in refused:
            raise Broken(f"{selection}: answers in each other's place; refused was {refused}")
    return len(swaps)


def check_ledger(folder: Path) -> int:
    """A ledger refuses what is dearer than its slot, charged before, or beyond the budget; how many refusals."""
    plan = plan_of(_config(folder, "aim"))
    path = folder / "protocol" / "ledger.jsonl"
    path.unlink(missing_ok=True)
    ledger, first = Ledger.open(path, plan), as_noise(plan.slots[0].event)
    dearer = type(first)(first.id, first.sensitivity * 2, first.scale)
    _refused(ledger, dearer, "dearer than its slot")
    for slot in plan.slots:
        ledger.charge(slot.event)
    _refused(ledger, first, "charged before")
    for part in range(3):
        event = plan.choice_event(f"{part}", 0.3) if part % 2 else plan.measurement_event(f"{part}", 0.3)
        ledger.charge(event)
    _refused(ledger, as_choice(plan.choice_event("more", 1.0)), "beyond the budget")
    _refused(ledger, as_noise(plan.measurement_event("much", 1.0)), "beyond the budget")
    return 4


def _refused(ledger: Ledger, event: Any, why: str) -> None:
    try:
        ledger.charge(event)
    except BudgetExceeded:
        return
    raise Broken(f"the ledger takes an event that is {why}: {event}")


def check_statements(folder: Path) -> int:
    """A release says that it is private where it is, and only there; how many statements."""
    config = _config(folder, "oneway")
    seeded = replace(config, privacy=replace(config.privacy, noise_seed=3))
    draft = folder / "protocol" / "draft.yaml"
    text = (folder / "plain.yaml").read_text(encoding="utf-8")
    draft.write_text(text.replace("confirmed_public: true\n", ""), encoding="utf-8")
    drafted = replace(config, data=replace(config.data, schema=str(draft)))
    said = [("an ordinary run", config, True), ("a fixed seed", seeded, False), ("a drafted schema", drafted, False)]
    for what, settings, private in said:
        root = folder / "protocol" / "run"
        shutil.rmtree(root, ignore_errors=True)
        stages.run(settings, root, quiet=True)
        found = json.loads((root / "release" / "privacy.json").read_text(encoding="utf-8"))
        if found["private"] is not private:
            raise Broken(f"{what}: the statement says private: {found['private']}")
        if found["budget"] != {"epsilon": config.privacy.epsilon, "delta": config.privacy.delta}:
            raise Broken(f"{what}: the statement says {found['budget']}")
    return len(said)


def check_refusals(folder: Path, worlds: int = 12) -> tuple[int, int]:
    """With `data.max_unplaced` below 1 a run is refused before any charge, or its release differs in one sentence.

    Each table is run without the stop, then with the same answers and the stop at 0.2; how many went on, how many not.
    """
    went, refused = 0, 0
    for seed in range(worlds):
        table = write_table(folder / "protocol" / "t.csv", make_world(RECORDS, seed).table)
        total = config_of(Case("pairs", "gaussian", "gdp", RECORDS, "plain", 40.0, seed), folder, table)
        stops, first = replace(total, data=replace(total.data, max_unplaced=0.2)), Tape()
        left = _released(total, folder, first, None, seed)
        tape = Tape()
        try:
            right = _released(stops, folder, tape, first, seed)
        except UserError as error:
            root = folder / "protocol" / "run"
            kept = [n for n in ("release", "internal/ledger.jsonl", "internal/answers") if (root / n).exists()]
            if kept or tape.steps or tape.charged or error.where != "data.max_unplaced=0.2":
                raise Broken(f"world {seed}: refused ({error}) with {kept} and {len(tape.steps)} steps") from error
            refused += 1
            continue
        if tape.steps != first.steps or left != right:
            raise Broken(f"world {seed}: the stop changes a release that it lets through")
        went += 1
    if not (went and refused):
        raise Broken(f"{went} runs went on, {refused} were refused: the worlds do not show both")
    return went, refused


def _released(config: Config, folder: Path, tape: Tape, frozen: Tape | None, seed: int) -> dict[str, bytes]:
    """The files of a release without what says that a stop was there, or binds that."""
    root = folder / "protocol" / "run"
    shutil.rmtree(root, ignore_errors=True)
    with recording(tape, frozen, seed=seed):
        stages.run(config, root, quiet=True)
    release = root / "release"
    statement = json.loads((release / "privacy.json").read_text(encoding="utf-8"))
    said = [s for s in statement["outside"] if "max_unplaced" in s]
    stopped = [s for s in said if s["max_unplaced"] < 1]
    if len(said) != 1 or len(stopped) != (config.data.max_unplaced < 1):
        raise Broken(f"the statement says of the stop: {said}")
    statement["outside"] = [s for s in statement["outside"] if s not in said]
    binding = ("privacy.json", "manifest.json", "statement.html", "croissant.json", "deployment.yaml")
    files = {str(p.relative_to(release)): p for p in release.rglob("*") if p.is_file()}
    rest = {name: path.read_bytes() for name, path in files.items() if name not in binding}
    return {**rest, "privacy.json": json.dumps(statement).encode()}


def check_bound(folder: Path) -> int:
    """Where C is discovered, it and the charges after it follow from the noisy counts of units, whatever the rows are.

    The counts are exchanged for others of which it is plain what C they speak for, on one table; how many.
    """
    settings = replace(RECORDS, column=True, bound=3)
    root, table = folder / "protocol" / "run", folder / "protocol" / "t.csv"
    case = Case("oneway", "gaussian", "gdp", settings, "records", 40.0, 3)
    config = config_of(case, folder, write_table(table, make_world(settings, 3).table))
    for place, bound in enumerate(BOUNDS):
        counts = np.where(np.arange(len(BOUNDS)) == place, 2.0**20, 0.0)
        shutil.rmtree(root, ignore_errors=True)
        with swapped("noisy", partial(_with_counts, counts)):
            stages.run(config, root, quiet=True)
        found = json.loads((root / "release" / "privacy.json").read_text(encoding="utf-8"))
        moved = {e["sensitivity"] for e in found["events"] if not e.get("discovery")}
        if found["unit"]["max_records"] != bound or moved != {float(bound)}:
            what = f"C = {found['unit']['max_records']}, and marginals move by {sorted(moved)}"
            raise Broken(f"noisy counts of units speak for C = {bound}; the run has {what}")
    return len(BOUNDS)


def _with_counts(counts: Floats, original: Any) -> Any:
    """Noise as it is, but for the counts of units, which are these."""

    def drawn(exact: Any, event: Any, source: Any) -> Any:
        answer = original(exact, event, source)
        return counts if event.id == f"{DISCOVERY}{OF_UNITS}" else answer

    return drawn


def check_aside(rows: int = 60) -> int:
    """A row more, wherever it stands, changes no other row's coin: of its equals one more is set aside, or none."""
    rng, before, contents = np.random.default_rng(3), Counter[str](), list[str]()
    with tempfile.TemporaryDirectory() as place:
        table = write_table(Path(place) / "t.csv", ())
        source = open_table(table, workdir=Path(place), memory_limit_bytes=1 << 28, threads=1)
        for count in range(1, rows + 1):
            new = str(rng.integers(0, 12))
            contents.insert(int(rng.integers(0, count)), new)
            units = pa.table({"unit": pa.nulls(count, pa.string()), "content": contents})
            pq.write_table(units, Path(place) / "units.parquet")
            held = current("rows aside")(Path(place) / "units.parquet", source, count, b"k" * 32, 0.3)
            if held.shape != (count,):
                raise Broken(f"coins of {held.shape} rows, of {count}")
            now = Counter(c for c, coin in zip(contents, held, strict=True) if coin)
            if now - before not in (Counter(), Counter([new])) or before - now:
                raise Broken(f"row {count} changes which of the other rows are set aside")
            before = now
        _check_secret(Path(place), source, contents)
    return rows


def _check_secret(place: Path, source: Any, contents: list[str]) -> None:
    """Another key, other coins: of records, and of units."""
    for ids in (pa.nulls(len(contents), pa.string()), pa.array(map(str, range(len(contents))))):
        pq.write_table(pa.table({"unit": ids, "content": contents}), place / "units.parquet")
        coins = [
            current("units aside")(place / "units.parquet", source, UNITS_OWN, len(contents), key, 0.3)
            for key in (b"k" * 32, b"l" * 32)
        ]
        if np.array_equal(*coins):
            raise Broken("coins of a holdout are the same under another key: they are no secret")
