"""What the stages of a run share: what is fixed before any row is read, and what they found so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias, TypeVar

import numpy as np

from evaluation.score import Scorecard
from mechanisms.accounting.ledger import Ledger
from mechanisms.accounting.plan import Plan
from mechanisms.accounting.running_total import RunningTotal
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.files import Json
from mechanisms.public.release import PrivacyStatement
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.losses import ColumnLoss
from mechanisms.public.tables.scan import Source
from mechanisms.sensitive.engines.engine import Engine
from mechanisms.sensitive.private_table import PrivateTable
from pipeline.budget.admission import PlannedRelease
from pipeline.folders import Below, RunFolder
from pipeline.settings.config import Config
from pipeline.settings.design import Design
from pipeline.stage_bars import Stages
from pipeline.statement.signing import Signer, WhoPublishes
from pipeline.statement.statement import Bought, Start
from pipeline.statement.words import sentence

T = TypeVar("T")


@dataclass(frozen=True)
class Attempt:
    """One try: where it keeps its ledger, its answers, its table and its scores; NOT private.

    Attributes:
        root: internal/, or a folder of its own where there may be several.
        number: from 1; None where there is only one.
    """

    root: Path
    number: int | None = None

    ledger = Below("ledger.jsonl")
    answers = Below("answers")
    table = Below("candidate.npz")
    scores = Below("scored.json")

    def seed(self, given: int | None) -> int | None:
        """A noise seed of its own, where one is given; such a release is not private."""
        if given is None or self.number is None:
            return given
        return int(np.random.SeedSequence([given, self.number]).generate_state(1, np.uint64)[0])


@dataclass(frozen=True)
class Discovered:
    """What was found out before the plan of the rest.

    Attributes:
        schema: without open ends; it follows from noisy answers and public facts alone.
        plan: the charges that it was asked under.
        answered: ids of the charges that were not lost.
        bound: what a statement says of C beside what was asked, where it was asked for (see `discovered_bound`).
    """

    schema: Schema
    plan: Plan
    answered: frozenset[str]
    bound: Json | None = None


@dataclass(frozen=True, eq=False)
class Taken(Bought):
    """The try that is released; `chosen` and `bound` are known once it is stated.

    Attributes:
        attempt: where it is kept.
    """

    attempt: Attempt = field(kw_only=True)


@dataclass(frozen=True, eq=False)
class State:
    """What is fixed before any row is read, and what the stages found so far; None before the stage that finds it.

    Attributes:
        config: the settings as they were given.
        start: the public table whose rows are the first ones; None: none.
        who: who publishes the release; `signer` signs it.
        booked: what the run books in a shared budget.
        folder: locked while the run lasts; `engine` reads the rows.
        shared: a closed folder where the jobs of a sweep keep the encoded table.
        has_folder: whether the folder stays.
        hydra_files: name → content.
        design: what is measured; once what the schema left open is discovered, that of the rest.
        source: the table's file; `facts` are those of the run's manifest.
        private: the encoded and clipped rows: left of the wall.
        losses: columns with values that the schema does not place (NOT private), the worst first.
        total: what the shared budget held right after the run's booking; `note` notes each charge in it.
        discovered: what was asked before the plan of the rest; None: nothing was asked.
        taken: the try that is released.
        statement: of the release; `table` its file, `synthetic` the rows in it, and `persons` how many hold them.
    """

    config: Config
    start: Start | None
    who: WhoPublishes
    signer: Signer | None
    booked: tuple[PlannedRelease, ...]
    folder: RunFolder
    engine: Engine
    show: Stages
    design: Design
    shared: Path | None = None
    has_folder: bool = True
    hydra_files: Mapping[str, str] = field(default_factory=dict)
    source: Source | None = None
    facts: Json = field(default_factory=dict)
    private: PrivateTable | None = None
    losses: tuple[ColumnLoss, ...] = ()
    total: RunningTotal | None = None
    note: Callable[[bytes], None] | None = None
    discovered: Discovered | None = None
    taken: Taken | None = None
    statement: PrivacyStatement | None = None
    table: Path | None = None
    synthetic: CodedTable | None = None
    persons: int | None = None
    scores: Scorecard | None = None

    @property
    def key(self) -> bytes:
        """What the coins of clipping and of a holdout follow from."""
        return bytes.fromhex(self.facts["once"]["key"])

    def opened_ledger(self, path: Path, plan: Plan) -> Ledger:
        """A ledger of the run: its first line states the holdout beside the plan."""
        holdout = self.config.evaluation.holdout
        facts = {} if holdout is None else {"holdout": sentence("holdout", holdout)}
        return Ledger.open(path, plan, facts, note=self.note)

    @property
    def plan(self) -> Plan:
        return self.design.plan

    @property
    def schema(self) -> Schema:
        return self.design.schema


#: One step of a run.
Stage: TypeAlias = Callable[[State], State]


def present(value: T | None) -> T:
    """What an earlier stage found."""
    assert value is not None, "the stages are out of order"
    return value
