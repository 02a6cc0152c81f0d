"""Settings and a schema → the charges for what the schema leaves to be discovered."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mechanisms.accounting.accountants.basic import Basic
from mechanisms.accounting.planned_discovery import DiscoveryPlan, plan_discovery
from mechanisms.public.discovery.scouting import questions_of
from mechanisms.public.discovery.unit_sizes import OF_UNITS, RECORDS, SizeQuestion
from mechanisms.public.discovery.wanted import Wanted
from mechanisms.public.errors import UserError
from mechanisms.public.schema.discover_fields import WORD
from mechanisms.public.schema.table_schema import Schema, parse_schema
from mechanisms.public.units import Neighbouring
from pipeline.settings.config import Config, PrivacyConfig, SelectionConfig
from pipeline.settings.selecting import asked_accountant

#: The part of the budget, where something is discovered and nobody says how much of it.
SHARE = 0.1
SETTING = "privacy.discovery_share"
#: Settings of selections that hold lists of marginals, or of columns.
MARGINALS, COLUMNS = ("marginals", "closure", "weights"), ("important",)


def build_discovery(config: Config, schema: Schema, *, max_records: int) -> DiscoveryPlan | None:
    """What is charged before all else; None where the schema leaves nothing open.

    Args:
        max_records: C.
    Raises:
        UserError: a part of the budget for nothing; tries, of which each would have to discover anew; settings that
            cannot pay for it.
    """
    share, privacy = config.privacy.discovery_share, config.privacy
    sizes = unit_sizes(config, schema)
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
        mechanism=config.mechanism.kind,
        accountant=asked_accountant(config),
        epsilon=privacy.epsilon,
        delta=privacy.delta,
        neighbouring=Neighbouring(privacy.neighbouring),
        max_records=max_records,
        cells=[a.size for a in schema.synthesized.attributes] if sizes else (),
        pairs=config.selection.kind != "oneway",
    )


def asks_for_records(privacy: PrivacyConfig) -> bool:
    """Whether C is to be discovered."""
    return privacy.max_records == WORD


def unit_sizes(config: Config, schema: Schema) -> SizeQuestion | None:
    """What is asked about records per unit, where C is to be discovered.

    Raises:
        UserError: a column of the schema with the name that stands for the question.
    """
    if not asks_for_records(config.privacy):
        return None
    if OF_UNITS in schema.domain:
        fix = "another name for the column"
        raise UserError(f"a column is called {OF_UNITS!r}, as what is discovered", where="privacy.max_records", fix=fix)
    return SizeQuestion(config.privacy.max_records_cap)


def with_bound(config: Config, max_records: int) -> Config:
    """The settings with C as it was discovered."""
    return replace(config, privacy=replace(config.privacy, max_records=max_records))


def of_the_rest(config: Config, discovery: DiscoveryPlan | None) -> Config:
    """The settings of the plan of the rest: its accountant is that of what was discovered, and so is pure noise."""
    if discovery is None:
        return config
    kind = discovery.accountant.kind
    mechanism = discovery.noise if kind == Basic.kind else config.mechanism.kind
    return replace(
        config,
        privacy=replace(config.privacy, accountant=kind),
        mechanism=replace(config.mechanism, kind=mechanism),
    )


def without_columns(config: Config, names: Collection[str]) -> Config:
    """The settings whose selection names none of these columns; a marginal of such columns alone is left out."""
    if not names:
        return config
    options = dict(config.selection.options)
    for setting in MARGINALS:
        if options.get(setting):
            options[setting] = _without(options[setting], names)
    for setting in COLUMNS:
        if options.get(setting):
            options[setting] = [n for n in options[setting] if n not in names]
    return replace(config, selection=SelectionConfig(config.selection.kind, options))


def _without(marginals: Sequence[Any], names: Collection[str]) -> list[Any]:
    """Marginals, or mappings that hold one, without these columns; each once."""
    left: list[Any] = []
    for one in marginals:
        given = one["marginal"] if isinstance(one, Mapping) else one
        columns = [n for n in given if n not in names]
        new = {**one, "marginal": columns} if isinstance(one, Mapping) else columns
        if columns and new not in left:
            left.append(new)
    return left


def with_columns(schema: Schema, declarations: Mapping[str, Mapping[str, Any]]) -> Schema:
    """The schema with these declarations in the place of its own, read anew."""
    content = schema.to_fields()
    for name, declaration in declarations.items():
        content["columns"][name] = dict(declaration)
    return parse_schema(content, where=f"{schema.name}, as discovered") if declarations else schema
