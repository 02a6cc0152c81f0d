"""`plan`: what a run would measure."""

from __future__ import annotations

import json

from pipeline.report.plan_tables import as_text, describe
from pipeline.settings.build import build_plan, build_schema, build_workload
from pipeline.settings.config import Config
from pipeline.settings.scoring import check_scores


def show_plan(config: Config) -> int:
    """Print the plan, as text or JSON."""
    schema = build_schema(config)
    workload = build_workload(config, schema)
    plan = build_plan(config, workload, schema)
    check_scores(config, schema)
    facts = describe(config, schema, workload, plan)
    in_json = config.plan.format == "json"
    print(json.dumps(facts, indent=1, allow_nan=False) if in_json else as_text(facts, config.plan.details))
    return 0
