"""What stands beside one ordinary run: shared budgets, sweeps, plugins, ids of any type, and drafts."""

import datetime
import itertools
import json
import os
import secrets
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from scipy import sparse

from mechanisms.accounting.accountants.registered import accountant_class
from mechanisms.accounting.bookings import load_book
from mechanisms.accounting.events import Gaussian
from mechanisms.public.arrays import Ints
from mechanisms.public.errors import UserError
from mechanisms.public.queries.cell_sums import MergedQuery
from mechanisms.public.queries.query_matrices import Identity, SparseQuery
from mechanisms.public.release import NoisyMarginal
from mechanisms.public.tables.scan import open_table
from mechanisms.public.units import Delta, Neighbouring, Norm
from mechanisms.sensitive.exact_answers import ExactAnswers
from pipeline import stages
from pipeline.budget import admission
from pipeline.error_messages import explained
from pipeline.measuring.selection_context import AdaptiveRun
from pipeline.release_folder import read_release
from pipeline.settings import build
from pipeline.settings.config import Config
from pipeline.settings.specs import build_specs
from pipeline.statement.verify import verify
from tests.audit.cases import Case, config_of, plan_of
from tests.audit.hooks import Broken, current
from tests.audit.protocol import Cut, cut_at
from tests.audit.reading import check_reading
from tests.audit.tape import Tape, compared, recording
from tests.audit.worlds import HEAD, RECORDS, UNITS, Settings, fresh, make_world, write_table
from tests.pipeline.test_contradictions import forged


def _case(settings: Settings = RECORDS, schema: str = "plain", selection: str = "pairs") -> Case:
    return Case(selection, "gaussian", "gdp", settings, schema, 8.0, 5)


def _budgeted(folder: Path, **changes: Any) -> Config:
    home = folder / "beside"
    table = write_table(home / "t.csv", make_world(RECORDS, 3).table)
    config = config_of(_case(), folder, table)
    limit = {"epsilon": 100.0, "delta": 1e-3}
    shared = replace(config.budget, ledger=str(home / "shared.json"), limit=limit, accountant="basic")
    return replace(config, budget=shared, **changes)


class Budget:
    """Runs that share a ledger: whatever is drawn for the same charge again has been booked again."""

    def __init__(self, folder: Path) -> None:
        self.home = fresh(folder)
        self.config = _budgeted(folder)
        self.drawn, self.seeds = Counter[str](), itertools.count(1)

    def run(self, name: str, cut: int | None = None, **changes: Any) -> None:
        """A run, or one that is cut off right before that draw; one that is refused draws nothing more."""
        tape, names = Tape(), mock.patch.object(secrets, "token_hex", lambda n=32: os.urandom(n).hex())
        failing = nullcontext() if cut is None else cut_at(cut)
        with recording(tape, seed=next(self.seeds)), names, suppress(Cut, UserError), failing:
            stages.run(replace(self.config, **changes), self.home / name, quiet=True)
        self.drawn.update(tape.draws.keys() if cut is None else set(list(tape.draws)[:cut]))

    def lose(self, name: str, *parts: str) -> None:
        """Parts of the run's folder are tidied away."""
        for part in parts:
            place = self.home / name / part
            shutil.rmtree(place) if place.is_dir() else place.unlink(missing_ok=True)

    def check(self, what: str) -> None:
        """No charge was drawn more often than it was booked."""
        book = load_book(self.home / "shared.json")
        booked, most = 0 if book is None else len(book.bookings), max(self.drawn.values(), default=0)
        if most > booked or not most:
            raise Broken(f"{what}: drawn {most} times, booked {booked} times")


def _lost(*parts: str, cut: int | None = None, resume: bool = False) -> Callable[[Budget], None]:
    """A run, or one that is cut off; parts of its folder are tidied away, and it is run again, or resumed."""

    def story(budget: Budget) -> None:
        budget.run("r", cut=cut)
        budget.lose("r", *parts)
        budget.run("r", resume=resume)

    return story


def _cut_off(budget: Budget) -> None:
    for cut in (0, 2):
        budget.run("r", cut=cut, resume=cut > 0)
    budget.run("r", resume=True)


def _rolled_back(budget: Budget) -> None:
    """A backup of the run's own record, from before its charges, is put back."""
    budget.run("r")
    budget.lose("r", "release", "internal/answers")
    record = budget.home / "r" / "internal" / "ledger.jsonl"
    record.write_bytes(record.read_bytes().split(b"\n")[0] + b"\n")
    budget.run("r", resume=True)


def _copied(budget: Budget) -> None:
    budget.run("r", cut=0)
    shutil.copytree(budget.home / "r", budget.home / "copy")
    budget.run("r", resume=True)
    budget.run("copy", resume=True)


def _cut_to_one(budget: Budget) -> None:
    """Lines are cut off the run's own record: one charge and its answer are left."""
    budget.run("r")
    record = budget.home / "r" / "internal" / "ledger.jsonl"
    lines = record.read_bytes().splitlines(keepends=True)
    record.write_bytes(b"".join(lines[:2]))
    for answer in sorted((budget.home / "r" / "internal" / "answers").iterdir())[1:]:
        answer.unlink()
    budget.lose("r", "release")
    budget.run("r", resume=True)


def _copied_in_the_middle(budget: Budget) -> None:
    """A copy of a run that was cut off goes on once the run itself is done and gone."""
    budget.run("r", cut=1)
    shutil.copytree(budget.home / "r", budget.home / "copy")
    budget.run("r", resume=True)
    shutil.rmtree(budget.home / "r")
    budget.run("copy", resume=True)


def _swept(budget: Budget) -> None:
    """As `run -m` does: all jobs are booked, then each is run, with one table between them."""
    jobs = {f"many/{k}": replace(budget.config, synthesis=replace(budget.config.synthesis, seed=k)) for k in (1, 2)}
    planned: list[Any] = []
    for name, config in jobs.items():
        specs = build_specs(config)
        planned += admission.planned_release(specs, build.build_schema(specs), plan_of(config), budget.home / name)
    admission.book(planned)
    for name, config in jobs.items():
        budget.run(name, synthesis=config.synthesis)


#: What a run knows of its own charges.
OWN = ("internal/answers", "internal/ledger.jsonl")
STORIES: dict[str, Callable[[Budget], None]] = {
    "two jobs of a sweep": _swept,
    "a run whose folder was tidied, run again": _lost("release", *OWN),
    "a run whose folder was tidied, resumed": _lost("release", *OWN, resume=True),
    "a run whose answers were lost, resumed": _lost("release", "internal/answers", resume=True),
    "a run that was cut off twice": _cut_off,
    "a run that was cut off, and its folder tidied": _lost(*OWN, cut=3),
    "a run whose own record was rolled back, resumed": _rolled_back,
    "a copy of a run that was cut off": _copied,
    "a run whose own record was cut, resumed": _cut_to_one,
    "a copy from the middle of a run that is gone": _copied_in_the_middle,
}


def check_budgets(folder: Path) -> int:
    """Runs that share a ledger, tidied, resumed, copied, swept: see `Budget.check`; how many stories."""
    for what, story in STORIES.items():
        story(budget := Budget(folder))
        budget.check(what)
    _settings_gone(budget := Budget(folder))
    if (budget.home / "r" / "release").exists():
        raise Broken("answers of one table, whose record is gone, were released as another table's")
    return len(STORIES) + 1


def _settings_gone(budget: Budget) -> None:
    """A run is cut off, the record of its settings is tidied away, and its folder is taken for another table."""
    budget.run("r", cut=2)
    budget.lose("r", "internal/manifest.json")
    other = write_table(budget.home / "other.csv", make_world(RECORDS, 4).table)
    budget.run("r", data=replace(budget.config.data, path=str(other)))


def check_shared_tables(folder: Path) -> int:
    """Jobs that share an encoded table and its counts answer as each of them does alone; how many jobs."""
    home = fresh(folder)
    many = replace(UNITS, bound=1)
    kinds = [(RECORDS, "plain"), (UNITS, "plain"), (many, "plain"), (replace(UNITS, clip="truncate"), "plain")]
    kinds += [(replace(UNITS, missing="own"), "plain"), (replace(UNITS, holdout=True), "plain"), (UNITS, "histogram")]
    kinds += [(RECORDS, "rules"), (replace(many, clip="truncate", missing="own"), "plain"), (UNITS, "records")]
    rows = make_world(UNITS, 4).table
    table, alone = write_table(home / "t.csv", rows), []
    configs = [config_of(_case(settings, schema), folder, table) for settings, schema in kinds]
    for shared, config in itertools.product((None, home / "shared"), configs):
        tape = Tape()
        with recording(tape, seed=1):
            shutil.rmtree(home / "run", ignore_errors=True)
            done = stages.run(config, home / "run", quiet=True, shared=shared)
        facts = (tape.steps, {name: draw.exact for name, draw in tape.draws.items()}, done.losses)
        if shared is None:
            alone.append(facts)
        elif facts != alone.pop(0):
            raise Broken(f"{config.privacy}: other answers from a table that jobs share")
    return len(configs)


#: The end of time as databases write it, and others that no clock shows: every one is a unit of its own.
END = datetime.datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=datetime.UTC)
FAR = (int(END.timestamp()) * 1_000_000 + 999_999, 2**63 - 2**40, 2**63 - 1, 1 - 2**63)
IDS: dict[str, tuple[Any, Sequence[Any]]] = {
    "times in UTC": (pa.timestamp("us", "UTC"), FAR),
    "times": (pa.timestamp("us"), FAR),
    "bytes": (pa.binary(), (b"\x00", b"\x01\x02", b"\xff")),
    "bytes of a frame": (None, (b"\x00", b" ")),
    "fractions": (pa.decimal128(38, 38), (Decimal(0), Decimal("1e-38"))),
    "numbers": (pa.float64(), (float("inf"), -float("inf"), 0.0)),
}


#: Two ids each that lie close together: two persons.
APART: dict[str, tuple[Any, Sequence[Any]]] = {
    "bytes": (pa.binary(), (b"\xff\x80", b"\xff\x81")),
    "bytes of a frame": (None, (b"\xff\x80", b"\xff\x81")),
    "whole numbers": (pa.int64(), (2**53, 2**53 + 1)),
    "numbers": (pa.float64(), (1e16, 1e16 + 2)),
    "decimals": (pa.decimal128(38, 0), (Decimal(10**37), Decimal(10**37 + 1))),
    "long decimals": (pa.decimal256(50, 0), (Decimal(10**45 + 1), Decimal(10**45 + 2))),
}


def check_ids(folder: Path) -> int:
    """Records of one id, of any type, come and go together and count C in all; how many ids."""
    count = 0
    for missing, (name, (kind, ids)) in itertools.product(("drop", "own"), IDS.items()):
        for one in ids:
            words = f"{name}, missing_unit={missing}, {one!r}"
            _check_id(folder, missing, kind, [one] * 12, [None] * 5, words)
            count += 1
    for name, (kind, (one, other)) in APART.items():
        with suppress(UserError):  # refused as ids
            _check_id(folder, "drop", kind, [one] * 12, [other], f"{name}, {one!r} beside {other!r}")
        count += 1
    return count


def _check_id(folder: Path, missing: str, kind: Any, own: list[Any], others: list[Any], words: str) -> None:
    """A table with and without the rows of one id."""
    home, tapes = fresh(folder), list[Tape]()
    config = config_of(_case(replace(UNITS, missing=missing, bound=1), selection="oneway"), folder, home / "t.parquet")
    for values in (own + others, others):
        held = current("texts of objects")(values, None) if kind is None else pa.array(values, kind)
        cells = [("3", "y", "9", "yes", "1")] * (len(values) - len(others)) + [("0", "x", "0", "no", "0")] * len(others)
        columns = (pa.array(column) for column in zip(*cells, strict=True))
        pq.write_table(pa.table([held, *columns], names=list(HEAD)), home / "t.parquet")
        shutil.rmtree(home / "run", ignore_errors=True)
        tape = Tape()
        with recording(tape, tapes[0] if tapes else None, seed=3):
            stages.run(config, home / "run", quiet=True)
        tapes.append(tape)
    try:
        compared(*tapes)
    except Broken as error:
        raise Broken(f"{words}: {error}") from error


class Bold(Identity):
    """A plugin's query: it says that it hardly moves, answers 100 for one, and to a whole table something else."""

    def largest_column_norm(self, norm: Norm) -> float:
        return 0.01

    def largest_column_distance(self, norm: Norm) -> float:
        return 0.01

    def answer_exact(self, marginal: Ints) -> Ints:
        return 100 * marginal if marginal.sum() == 1 else marginal * 0 + 7


def check_plugins() -> int:
    """A plugin's word about its queries is not taken, and no answer comes in that nobody paid for; how many cases."""
    bold, counts = Bold(3), np.array([5, 0, 2], np.int64)
    cases = list(itertools.product(("l1", "l2"), Neighbouring))
    for norm, relation in cases:
        least = 100.0 if relation is Neighbouring.ADD_REMOVE else 100 * (2.0 if norm == "l1" else 2**0.5)
        moved = current("sensitivity")(bold, norm=norm, neighbouring=relation, max_records=1)
        if not least <= moved <= least * 1.001:
            raise Broken(f"a plugin's query that moves by {least:g} is charged {moved:g} ({norm}, {relation})")
    if ExactAnswers.of(bold, counts).whole.tolist() != [500, 0, 200]:
        raise Broken("a plugin's query answers to whole tables otherwise than its columns say")
    for query, cells in ((Identity(1), 3), (MergedQuery((np.zeros(50, np.int64),)), 1)):
        with suppress(UserError):
            ExactAnswers.of(query, np.ones(cells, np.int64))
            raise Broken(f"a matrix of {query.columns} columns answers to {cells} cells, further than it says")
    answer = NoisyMarginal(("a",), Identity(3), np.array([-1.0, 5, 2]), "gaussian", 1.0, "0")
    with suppress(ValueError):
        np.maximum(answer.values, 0, out=answer.values)
        raise Broken("a plugin may change a noisy answer after its draw")
    if "Anna" in explained(current("words of an error")(KeyError("Anna of Bern"))):
        raise Broken("an error of a plugin that quotes a row is printed in a log")
    saved = {"data": [-128], "indices": [0], "indptr": [0, 1], "shape": [1, 1], "bits": [0]}
    narrow = current("query of a file")("SparseQuery", {k: np.array(v, np.int8) for k, v in saved.items()})
    if narrow.largest_column_norm("l1") != 128:
        raise Broken("a saved matrix of one entry of -128 in bytes moves by nothing")
    made = SparseQuery(sparse.csr_array(np.array([[1, -128]], np.int8)), 0)
    if made.largest_column_norm("l1") != 128:
        raise Broken("a matrix that a plugin makes of bytes moves by 1, and its answer by 128")
    gaussian = [Gaussian("a", 1.0, 9.0)]
    total = accountant_class("zcdp").of(Delta(1e-9), 0)
    with suppress(ArithmeticError):
        current("second opinion")(total, gaussian, replace(total.loss(gaussian), delta=0.0))
        raise Broken("an accountant of a plugin may say that Gaussian noise costs no delta")
    if hasattr(AdaptiveRun(None, None, None, None, None).answers_so_far, "append"):  # type: ignore[arg-type]
        raise Broken("a selection may put in answers that nobody paid for")
    return len(cases) + 9


def check_drafts(folder: Path) -> int:
    """A drafted schema lists no text that a few rows alone hold; how many such texts the tables had."""
    home, count = fresh(folder), 0
    for few in (1, 2, 5):
        rare = [f"Ann O'Nym {k}" for k in range(4)]
        wards = [name for name in ("east", "west", "north") for _ in range(60)] + [r for r in rare for _ in range(few)]
        for each in (1, 12):  # rows of a person
            persons = [who for who in range(len(wards)) for _ in range(each)]
            columns = {"ward": [ward for ward in wards for _ in range(each)]} | ({"pid": persons} if each > 1 else {})
            pq.write_table(pa.table(columns), home / "t.parquet")
            source = open_table(home / "t.parquet", workdir=home / "scan", memory_limit_bytes=1 << 28, threads=1)
            listed = yaml.safe_load(current("draft")(source, name="t"))["columns"]["ward"]
            if shown := [r for r in rare if r in json.dumps(listed)] or "east" not in listed.get("values", ()):
                raise Broken(f"of texts that {few} units hold, with {each} rows each, the draft lists {shown}")
            count += len(rare)
    return count


def check_clipped(folder: Path) -> int:
    """Amounts that are all beyond their bounds stop a run before it charges; how many runs."""
    for column, more in (("a", "00"), ("c", ""), ("c", "00")):
        home = fresh(folder)
        place = HEAD.index(column)
        rows = [("", "1", "x", "7", "no", "0")] * 30
        wide = tuple((*row[:place], f"-{row[place]}{more}", *row[place + 1 :]) for row in rows)
        config = config_of(_case(), folder, write_table(home / "t.csv", wide))
        with suppress(UserError):
            stages.run(replace(config, data=replace(config.data, max_unplaced=0.2)), home / "run", quiet=True)
            raise Broken(f"column {column}: every value is clipped at a bound, and the run goes on")
        if (home / "run" / "internal" / "ledger.jsonl").exists():
            raise Broken(f"column {column}: every value is clipped at a bound, and the run charged before it said so")
    return 3


def check_foreign(folder: Path) -> int:
    """A release of somebody else: no link and no pipe in it is opened, and no word about what was discovered is taken
    as it stands; how many such releases.
    """
    home = fresh(folder)
    table = write_table(home / "t.csv", make_world(RECORDS, 3).table)
    stages.run(config_of(_case(schema="discover", selection="oneway"), folder, table), home / "run", quiet=True)
    release, work = home / "run" / "release", home / "work"
    if not verify(release).sound:
        raise Broken(f"a release that nobody changed is not sound: {verify(release).as_text()}")
    count = 0
    for odd, name in itertools.product((_linked, _piped), ("schema.yaml", "statement.html", "marginals")):
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(release, work)
        odd(work / name, home / "elsewhere")
        if verify(work).sound:
            raise Broken(f"a release whose {name} leads elsewhere is called sound")
        with suppress(UserError):
            read_release(work)
            raise Broken(f"a release whose {name} leads elsewhere is read")
        count += 1
    said, index = (json.loads((release / f).read_text()) for f in ("privacy.json", "measurements/index.json"))
    for place, event in enumerate(said["events"]):
        for key, value in (event.get("discovery") or {}).items():
            new = (
                f"{value}x" if isinstance(value, str) else [f"{v}x" for v in value] if isinstance(value, list) else None
            )
            events = [dict(e) for e in said["events"]]
            events[place] |= {"discovery": {**event["discovery"], key: 2 * value + 1 if new is None else new}}
            shutil.rmtree(work)
            shutil.copytree(release, work)
            with suppress(Exception):  # papers that nobody can write are those that were there
                forged(work, {**said, "events": events}, index)
            if verify(work).sound:
                raise Broken(f"forged, and called sound: {key} of {event['id']}")
            count += 1
    return count + _forged_totals(folder)


def _forged_totals(folder: Path) -> int:
    """What all runs of a ledger cost, said to be less than this one costs alone; how many such words."""
    config, home = _budgeted(folder), folder / "beside"
    stages.run(config, home / "booked", quiet=True)
    release, work = home / "booked" / "release", home / "work"
    said, index = (json.loads((release / f).read_text()) for f in ("privacy.json", "measurements/index.json"))
    words: tuple[dict[str, Any], ...] = ({"epsilon_composed": 0.0}, {"runs": 0}, {"not_private": -1})
    for changed in ({}, *words):
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(release, work)
        forged(work, {**said, "running_total": {**said["running_total"], **changed}}, index)
        if verify(work).sound is bool(changed):
            raise Broken(f"a running total with {changed or 'nothing'} changed: {verify(work).as_text()}")
    return len(words)


def _linked(path: Path, elsewhere: Path) -> None:
    shutil.rmtree(elsewhere, ignore_errors=True)
    elsewhere.mkdir()
    path.rename(elsewhere / path.name)
    path.symlink_to(elsewhere / path.name)


def _piped(path: Path, elsewhere: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    os.mkfifo(path)


#: By name, what is checked, and what holds.
BESIDE: dict[str, tuple[Callable[[Path], int], str, str]] = {
    "budgets": (check_budgets, "stories of runs that share a budget, tidied, cut off, copied, rolled back, swept",
                "no charge is drawn more often than it is booked"),
    "tables": (check_shared_tables, "jobs that share an encoded table", "each answers as it does alone"),
    "ids": (check_ids, "ids of every type, far times, bytes and long decimals among them",
            "all records of one count C in all, and no two are one"),
    "foreign": (check_foreign, "releases of somebody else with links, pipes, or forged words on discovery and ledgers",
                "none is read, or called sound"),
    "plugins": (lambda _: check_plugins(), "claims of a plugin that are false", "none is taken on its word"),
    "reading": (check_reading, "rows with odd values in them", "the rows of others are read as they are without them"),
    "clipped": (check_clipped, "tables with a column that lies beyond its bounds", "refused before any charge"),
    "drafts": (check_drafts, "texts that few units hold, in tables of which a schema is drafted", "none is listed"),
}  # fmt: skip


def check_beside(folder: Path, names: Collection[str] = ()) -> list[tuple[str, str, str]]:
    asked = [BESIDE[name] for name in names or BESIDE]
    return [(what, f"{check(folder)}", holds) for check, what, holds in asked]
