"""All that a run looks up before any row is read, so that a mistake costs nothing; a sweep looks at every job so."""

from __future__ import annotations

from pathlib import Path

from mechanisms.accounting.plan import Plan
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.format_trial import released_format
from pipeline.settings.inputs import check_inputs
from pipeline.settings.memory import check_disk
from pipeline.settings.methods import usable_synthesizer
from pipeline.settings.policy import two_tables
from pipeline.settings.specs import Specs, as_released
from pipeline.statement.publication import WhoPublishes, build_publication
from pipeline.statement.signing import Signer, load_signer
from pipeline.statement.start_table import Start, start_in


def ready(specs: Specs, schema: Schema, plan: Plan, root: Path) -> tuple[Start | None, WhoPublishes, Signer | None]:
    """What the settings ask for beside the plan, looked up and checked; as `RunContext` has it.

    Args:
        root: the run's folder, which need not exist.
    Raises:
        UserError: an impossible setting, a library or a key that is not there, or rows that the disk cannot hold.
    """
    config = specs.config
    check_inputs(config)  # before a log holds an address
    released_format(config.release.format)
    as_released(config.release, schema)
    two_tables(config.release, schema)
    usable_synthesizer(config.synthesis, specs.synthesizer)
    check_disk(specs, schema, root)
    start = start_in(config.synthesis, discovering=plan.discovery is not None)
    return start, build_publication(config.statement), load_signer(config.statement.key)
