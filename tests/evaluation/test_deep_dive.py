"""The deep dive adds up to the score, and says in words where the error is."""

import json

import numpy as np
import pytest
import yaml

from evaluation.mgd.deep_dive import deep_dive, dive_worst
from evaluation.mgd.marginal_difference import mgd
from evaluation.mgd.targets import Targets, target
from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.schema.table_schema import Schema, parse_schema

TOWN = """
columns:
  month: {kind: integer, min: 1, max: 12, missing: false}
  city: {kind: categorical, values: [a, b, c], other: elsewhere, hierarchy: {n: [a, b], s: [c]}}
  sex: {kind: categorical, values: [f, m], missing: false}
"""


@pytest.fixture(scope="module")
def town() -> Schema:
    return parse_schema(yaml.safe_load(TOWN), where="town.yaml")


def table(schema: Schema, rows: int, seed: int) -> CodedTable:
    rng = np.random.default_rng(seed)
    columns = tuple((rng.random(rows) ** 2 * a.size).astype(code_dtype(a.size)) for a in schema.domain.attributes)
    return CodedTable(schema.domain, columns)


WEIGHTS = ({"month": 1}, {"city": 1}, {"month": "1/2", "city": "1/2"}, {})


@pytest.mark.parametrize("weights", WEIGHTS)
def test_every_frame_adds_up_to_the_aemc(town, weights):
    real, synthetic = table(town, 900, 1), table(town, 700, 2)
    wanted = target(town, ["month", "city", "sex"], weights=weights, delta=1.0)
    value = mgd(real, synthetic, town, Targets((wanted,))).score
    dive = deep_dive(real, synthetic, town, wanted, top=1000)
    assert dive.aemc == pytest.approx(value, abs=1e-9)
    assert dive.attributes["cost"].sum() == pytest.approx(value, abs=1e-9)
    assert dive.bins["cost"].sum() == pytest.approx(value, abs=1e-9)
    for _, rows in dive.slices.groupby("attribute"):
        assert rows["cost"].sum() == pytest.approx(value, abs=1e-9)
        assert (rows["real"].sum(), rows["synthetic"].sum()) == (900, 700)
    assert dive.slices["value"].tolist()[12:17] == ["a", "b", "c", "elsewhere", "missing"]


def test_a_shifted_month_is_seen_as_movement_along_month(town):
    rows = 100
    jan, mar = np.zeros(rows, np.uint8), np.full(rows, 2, np.uint8)
    rest = (np.zeros(rows, np.uint8), np.zeros(rows, np.uint8))
    real, synthetic = CodedTable(town.domain, (jan, *rest)), CodedTable(town.domain, (mar, *rest))
    dive = deep_dive(real, synthetic, town, target(town, ["month", "city"], delta=0.0))
    assert dive.aemc == pytest.approx(2 / 11)
    shares = dive.attributes.set_index("part")["share"]
    assert shares["moving along month"] == pytest.approx(1)
    (moved,) = dive.movements.to_dict("records")
    assert (moved["from month"], moved["to month"], moved["records"]) == ("3", "1", 100)
    assert moved["from city"] == moved["to city"] == "a"
    first = dive.bins.iloc[0]
    assert {first["real"], first["synthetic"]} == {0, 100}


def test_only_the_worst_marginals_are_dived_into(town):
    real, synthetic = table(town, 900, 1), table(town, 700, 2)
    targets = Targets(tuple(target(town, [n], delta=0.0) for n in ("month", "city", "sex")))
    result = mgd(real, synthetic, town, targets)
    dives = dive_worst(result, real, synthetic, town, worst=2)
    assert [d.label for d in dives] == result.frame()["marginal"].tolist()[:2]
    json.dumps([d.to_json() for d in dives], allow_nan=False)


def test_an_empty_truth_has_no_dive(town):
    dive = deep_dive(table(town, 0, 1), table(town, 5, 2), town, target(town, ["sex"]))
    assert dive.aemc is None
    assert dive.bins.empty
