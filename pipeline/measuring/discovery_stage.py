"""Before the plan of the rest: what the schema leaves open is asked with noise, and the schema becomes concrete."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from mechanisms.accounting.ledger import Ledger
from mechanisms.accounting.planned_discovery import DiscoveryPlan
from mechanisms.public.discovery.found_columns import discovered_schema
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.scan import Source
from mechanisms.sensitive.discovering import discover
from mechanisms.sensitive.engines.engine import Engine
from mechanisms.sensitive.noise import noise_source
from mechanisms.sensitive.private_table import PrivateTable
from mechanisms.sensitive.value_weights import ValueWeights, value_weights
from pipeline.folders import RunFolder
from pipeline.stage_bars import Stages
from pipeline.statement.statement import held_out

#: Under internal/: the answers, one file each.
ANSWERS = "discovery"


@dataclass(frozen=True)
class Discovered:
    """What was found out.

    Attributes:
        schema: without open ends; it follows from noisy answers and public facts alone.
        answered: ids of the charges that were not lost.
    """

    schema: Schema
    answered: frozenset[str]


def discovered(
    schema: Schema,
    plan: DiscoveryPlan,
    private: PrivateTable,
    source: Source,
    engine: Engine,
    folder: RunFolder,
    show: Stages,
    *,
    key: bytes,
    holdout: float | None,
    noise_seed: int | None,
) -> Discovered:
    """Ask what the schema leaves open, answers that are kept as they are.

    Guarantee: that of the plan.
    Args:
        private: read by the scouting schema.
        engine: who reads the rows.
        key, holdout: as of `load_private`.
    """

    @cache
    def weights() -> dict[str, ValueWeights]:
        columns = [schema[s.wanted.column] for s in plan.slots if s.wanted.tree is None]
        work, norm = folder.temporary / ANSWERS, plan.noise_norm
        return value_weights(
            source, columns, private.unit, key=key, norm=norm, holdout=holdout, workdir=work, engine=engine
        )

    facts = ledger_facts(holdout)
    with show.stage("discover") as report:
        ledger = Ledger.open(folder.ledger, plan, facts)
        answers = discover(
            private,
            weights,
            plan,
            ledger,
            noise_source(noise_seed),
            answers_dir=folder.internal / ANSWERS,
            progress=report,
        )
        scales = {s.wanted.column: s.event.scale for s in plan.slots}
        concrete = discovered_schema(schema, answers, kind=plan.noise, scales=scales)
    if lost := [name for name, answer in answers.items() if answer is None]:
        what = f"what was asked about {', '.join(lost)} is spent without an answer"
        show.warn([f"{what} (a crash between charge and draw)"])
    return Discovered(concrete, frozenset(s.event.id for s in plan.slots if answers[s.wanted.column] is not None))


def ledger_facts(holdout: float | None) -> dict[str, str]:
    """What the first line of a run's ledger states beside the plan."""
    return {} if holdout is None else {"holdout": held_out(holdout)}
