"""`plan`: what a run would measure."""

from __future__ import annotations

import json

from pipeline.report.plan_tables import as_text, describe
from pipeline.settings.build import build_plan, build_schema, build_workload
from pipeline.settings.config import Config
from pipeline.settings.scoring import check_scores
from pipeline.settings.specs import build_specs


def show_plan(config: Config) -> int:
    """Print the plan, as text or JSON."""
    specs = build_specs(config)
    schema = build_schema(specs)
    workload = build_workload(specs, schema)
    plan = build_plan(specs, workload, schema)
    check_scores(config, schema)
    facts = describe(specs, schema, workload, plan)
    in_json = config.plan.format == "json"
    print(json.dumps(facts, indent=1, allow_nan=False) if in_json else as_text(facts, config.plan.details))
    return 0
