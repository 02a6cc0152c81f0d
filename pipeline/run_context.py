"""What the stages of a run share: what is fixed before any row is read, and what they found so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias, TypeVar

from evaluation.score import Scorecard
from mechanisms.accounting.running_total import RunningTotal
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.json_values import Json
from mechanisms.public.release import PrivacyStatement
from mechanisms.public.tables.losses import ColumnLoss
from mechanisms.public.tables.scan import Source
from mechanisms.sensitive.engines.engine import Engine
from mechanisms.sensitive.private_table import PrivateTable
from pipeline.budget.admission import PlannedRelease
from pipeline.folders import RunFolder
from pipeline.measuring.acceptance import Taken
from pipeline.measuring.attempts import Work
from pipeline.measuring.discovered import Discovered
from pipeline.settings.config import Config
from pipeline.settings.design import Design
from pipeline.stage_bars import Stages
from pipeline.statement.publication import WhoPublishes
from pipeline.statement.signing import Signer
from pipeline.statement.start_table import Start

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class RunContext:
    """What is fixed before any row is read.

    Attributes:
        config: the settings as they were given.
        start: the public table whose rows are the first ones; None: none.
        who: who publishes the release; `signer` signs it.
        booked: what the run books in a shared budget.
        folder: locked while the run lasts; `engine` reads the rows.
        shared: a closed folder where the jobs of a sweep keep the encoded table.
        kept: whether the folder stays.
        hydra_files: name → content.
    """

    config: Config
    start: Start | None
    who: WhoPublishes
    signer: Signer | None
    booked: tuple[PlannedRelease, ...]
    folder: RunFolder
    engine: Engine
    show: Stages
    shared: Path | None = None
    kept: bool = True
    hydra_files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class State:
    """What the stages found so far; None before the stage that finds it.

    Attributes:
        design: what is measured; once what the schema left open is discovered, that of the rest.
        source: the table's file; `facts` are those of the run's manifest.
        private: the encoded and clipped rows: left of the wall.
        losses: columns with values that the schema does not place (NOT private), the worst first.
        total: what the shared budget held right after the run's booking; `note` notes each charge in it.
        discovered: what was asked before the plan of the rest; None: nothing was asked.
        work: what every try shares; `taken` is the one that is released.
        statement: of the release; `table` its file, `synthetic` the rows in it, and `persons` how many hold them.
    """

    design: Design
    source: Source | None = None
    facts: Json = field(default_factory=dict)
    private: PrivateTable | None = None
    losses: tuple[ColumnLoss, ...] = ()
    total: RunningTotal | None = None
    note: Callable[[bytes], None] | None = None
    discovered: Discovered | None = None
    work: Work | None = None
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


#: One step of a run.
Stage: TypeAlias = Callable[[RunContext, State], State]


def present(value: T | None) -> T:
    """What an earlier stage found."""
    assert value is not None, "the stages are out of order"
    return value
