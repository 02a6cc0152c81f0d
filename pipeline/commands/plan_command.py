"""`plan`: what a run would measure."""

from __future__ import annotations

import json

from pipeline.report.plan_tables import as_text, planned
from pipeline.settings.config import Config


def show_plan(config: Config) -> int:
    """Print the plan, as text or JSON."""
    facts = planned(config)
    in_json = "json" in (config.plan.format, config.format)
    print(json.dumps(facts, indent=1, allow_nan=False) if in_json else as_text(facts, config.plan.details))
    return 0
