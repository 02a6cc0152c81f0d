"""Settings and a schema → the charges for what the schema leaves to be discovered."""

from __future__ import annotations

from mechanisms.accounting.planned_discovery import DiscoveryPlan, plan_discovery
from mechanisms.public.discovery.scouting import questions_of
from mechanisms.public.discovery.unit_sizes import OF_UNITS, RECORDS, SizeQuestion
from mechanisms.public.discovery.wanted import Wanted
from mechanisms.public.errors import UserError
from mechanisms.public.schema.table_schema import Schema
from pipeline.settings.specs import Specs

#: The part of the budget, where something is discovered and nobody says how much of it.
SHARE = 0.1
SETTING = "privacy.discovery_share"


def build_discovery(specs: Specs, schema: Schema) -> DiscoveryPlan | None:
    """What is charged before all else; None where the schema leaves nothing open.

    Raises:
        UserError: a part of the budget for nothing; tries, of which each would have to discover anew; settings that
            cannot pay for it.
    """
    config, privacy = specs.config, specs.config.privacy
    share = privacy.discovery_share
    sizes = unit_sizes(specs, schema)
    wanted = (*(() if sizes is None else (Wanted(OF_UNITS, (RECORDS,), sizes=sizes),)), *questions_of(schema))
    if not wanted:
        if share:
            fix = "leave it out; or a schema with bounds: discover, bins: discover or values: discover; or "
            fix += "privacy.max_records=discover"
            raise UserError(f"got {share}, but the schema leaves nothing to be discovered", where=SETTING, fix=fix)
        return None
    if config.accept and config.accept_tries > 1:
        fix = "accept_tries=1; or the schema of an earlier release, which is concrete"
        raise UserError("several tries would each have to discover anew", where="accept_tries", fix=fix)
    return plan_discovery(
        wanted,
        share=SHARE if share is None else share,
        mechanism=specs.mechanism,
        accountant=specs.accountant,
        epsilon=privacy.epsilon,
        delta=privacy.delta,
        neighbouring=specs.neighbouring,
        max_records=specs.unit.max_records,
        cells=[a.size for a in schema.synthesized.attributes] if sizes else (),
        pairs=config.selection.kind != "oneway",
    )


def unit_sizes(specs: Specs, schema: Schema) -> SizeQuestion | None:
    """What is asked about records per unit, where C is to be discovered.

    Raises:
        UserError: a cap out of range; a column of the schema with the name that stands for the question.
    """
    config = specs.config
    if not specs.discovers_bound:
        return None
    if OF_UNITS in schema.domain:
        fix = "another name for the column"
        raise UserError(f"a column is called {OF_UNITS!r}, as what is discovered", where="privacy.max_records", fix=fix)
    return SizeQuestion(config.privacy.max_records_cap)
