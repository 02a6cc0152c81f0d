"""Specs are built once from settings: what is discovered makes other specs, and the settings stay as they were."""

from __future__ import annotations

import copy
from dataclasses import asdict
from pathlib import Path

import pytest

from pipeline.run_context import present
from pipeline.settings.build import build_schema
from pipeline.settings.config import load_config
from pipeline.settings.design import design_of
from pipeline.settings.specs import build_specs, settled
from pipeline.stages import STAGES
from tests.pipeline.conftest import TOWN

UNIT = ["privacy.unit=person"]
NAMED = "selection.marginals=[[age,sex],[sex,job],[job]]"
WEIGHTS = "selection.weights=[{marginal: [sex, job], weight: 2}, {marginal: [job], weight: 3}]"


def test_a_bound_that_was_discovered_gives_the_plan_of_one_that_is_declared(town: Path) -> None:
    config = load_config([*TOWN, *UNIT, "privacy.max_records=discover", "privacy.max_records_cap=8"])
    before = copy.deepcopy(asdict(config))
    open_specs = build_specs(config)
    schema = build_schema(open_specs)
    assert open_specs.discovers_bound and design_of(open_specs, schema).plan.discovery is not None
    found = open_specs.with_bound(3)
    declared = build_specs(load_config([*TOWN, *UNIT, "privacy.max_records=3"]))
    assert found.unit == declared.unit and not found.discovers_bound
    assert design_of(found, schema).plan.to_json() == design_of(declared, schema).plan.to_json()
    assert asdict(config) == before and found.config is open_specs.config == settled(config)


def test_columns_without_values_leave_the_selection_as_if_nobody_had_named_them(town: Path) -> None:
    config = load_config([*TOWN, NAMED, WEIGHTS])
    before = copy.deepcopy(asdict(config))
    left = "selection.weights=[{marginal: [job], weight: 2}, {marginal: [job], weight: 3}]"
    fewer = build_specs(load_config([*TOWN, "selection.marginals=[[age],[job]]", left]))
    assert build_specs(config).without_columns(["sex"]).selection == fewer.selection
    assert build_specs(config).without_columns([]).selection == build_specs(config).selection
    assert asdict(config) == before


def test_the_stages_stand_in_the_order_of_the_wall() -> None:
    """Nothing is charged before the booking, nor booked before the rows were looked at; scores come last."""
    names = [stage.__name__ for stage in STAGES]
    assert names == ["load", "book", "discover", "measure", "state_promise", "release", "score", "share"]
    with pytest.raises(AssertionError, match="out of order"):
        present(None)
