"""All that a run looks up before any row is read, so that a mistake costs nothing; a sweep looks at every job so."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mechanisms.accounting.plan import Plan
from mechanisms.public.errors import one_of
from mechanisms.public.schema.table_schema import Schema
from pipeline.settings import build, disk_space
from pipeline.settings.config import Config
from pipeline.statement.publication import Publication, build_publication
from pipeline.statement.signing import Signer, load_signer
from pipeline.statement.start_table import Start, start_in
from synthesis.contract import Synthesizer


@dataclass(frozen=True, eq=False)
class Ready:
    """What a run needs beside its plan.

    Attributes:
        spec: the synthesizer, whose library is there.
        aside: the probability with which units are set aside; None: none are.
        start: the public table whose rows are the first ones; None: none.
        who: who publishes the release; `signer` signs it.
    """

    spec: Synthesizer
    aside: float | None
    start: Start | None
    who: Publication
    signer: Signer | None


def ready(config: Config, schema: Schema, plan: Plan, root: Path) -> Ready:
    """What the settings ask for beside the plan, looked up and checked.

    Args:
        root: the run's folder, which need not exist.
    Raises:
        UserError: an impossible setting, a library or a key that is not there, or rows that the disk cannot hold.
    """
    one_of(config.release.format, ("csv", "parquet"), "release.format")
    spec, aside = build.usable_synthesizer(config.synthesis), config.evaluation.holdout
    disk_space.check_rows(config, schema, root)
    start = start_in(config.synthesis, discovering=plan.discovery is not None)
    return Ready(spec, aside, start, build_publication(config.statement), load_signer(config.statement.key))
