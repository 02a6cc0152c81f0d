"""What follows from the settings and a schema before any row is read: the plan, and what is looked up in the schema."""

from __future__ import annotations

from dataclasses import dataclass

from evaluation.metrics import ScoreSpec
from mechanisms.accounting.autodp_check import check_with_autodp
from mechanisms.accounting.plan import Plan
from mechanisms.accounting.plugin_costs import check_costs
from mechanisms.public.errors import UserError
from mechanisms.public.schema.table_schema import Schema
from pipeline.settings import build
from pipeline.settings.config import Config
from pipeline.settings.discovering_settings import asks_for_records, with_bound, with_columns, without_columns
from pipeline.settings.scoring import build_places, build_scores


@dataclass(frozen=True, eq=False)
class Prepared:
    """What follows from the settings and a schema, checked before anything is charged.

    Attributes:
        left_out: as of `Run`.
    """

    schema: Schema
    plan: Plan
    scoring: ScoreSpec | None
    places: tuple[str, str] | None
    left_out: tuple[str, ...]


def prepared(config: Config, schema: Schema, discovery: Plan | None = None) -> Prepared:
    """The plan and all that is looked up in the schema.

    Args:
        discovery: as of `build_plan`.
    Raises:
        UserError: any mistake of the settings or the schema.
    """
    plan = build.build_plan(config, workload := build.build_workload(config, schema), schema, discovery)
    check_costs(plan.accountant, plan.composed, plan.loss)
    check_with_autodp(plan.accountant, plan.composed, plan.loss)
    if plan.discovery is not None and asks_for_records(config.privacy):
        # what C may become is refused here, not after its charge
        prepared(with_bound(config, config.privacy.max_records_cap), schema, plan.discovery)
    if plan.discovery is not None and discovery is None:
        _check_least(config, schema, plan.discovery)
    scoring = build_scores(config.evaluation, schema, config.data.roles) if config.evaluation.enabled else None
    places = build_places(config.evaluation, config.data.roles, schema)
    build.check_memory(config, schema, plan)
    return Prepared(schema, plan, scoring, places, tuple(build.said_left_out(config, schema, workload)))


def _check_least(config: Config, schema: Schema, discovery: Plan) -> None:
    """Refuse, before anything is charged, what is impossible where no value at all is found in any open column.

    With more values there is always a way (`settled`): columns of which values are found then have one or more.

    Raises:
        UserError: the settings ask for nothing but such columns, or cannot be met without them.
    """
    names = [c.name for c in schema.to_discover if c.discover is not None and c.discover.values]
    rest = [c for c in schema.columns if c.name not in names and not c.constant]
    if not names or not rest:
        return
    least = with_columns(schema, {n: {"kind": "constant", "value": ""} for n in names})
    try:
        prepared(without_columns(config, names), least, discovery)
    except UserError as fault:
        what = f"{fault.what} (where no value of {', '.join(names)} is found, which noise decides)"
        raise UserError(what, where=fault.where, fix=fault.fix) from fault
