"""Li et al. 2021b, section 5: what the experiments on the contests' tables do at each ε, against the text."""

import json
import math
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.errors import UserError
from mechanisms.public.rules.engineering import engineer, undo
from mechanisms.public.schema.table_schema import Schema, load_schema, parse_schema
from pipeline.conf_folder import SCHEMAS
from pipeline.experiments.challenge import smaller
from pipeline.experiments.challenge_settings import ChallengeSettings, rounds, schema_at
from pipeline.experiments.experiment_settings import settings_of
from pipeline.experiments.gallery.all_experiments import names_of_all
from pipeline.experiments.maps import smaller as smaller_map
from pipeline.settings import build
from pipeline.settings.config import Config, load_config
from pipeline.settings.specs import build_specs

LNG, LAT = "Location - Lng", "Location - Lat"


def settings(name: str) -> Config:
    return load_config([f"experiment={name}"])


def fire(epsilon: float) -> Schema:
    name = schema_at(settings_of(settings("dpsyn_fire"), ChallengeSettings), epsilon)
    assert name is not None
    return load_schema(SCHEMAS / name)


def test_at_low_epsilon_coordinates_have_one_way_marginals_alone():
    """Section 5.3: "we just obtain one-way marginals for them"."""
    schema = fire(0.1)
    assert {LNG, LAT} <= schema.engineering.alone
    assert schema.measured[LNG].size == schema.measured[LAT].size == 100


def test_at_mid_range_epsilon_coordinates_are_in_joint_marginals_with_their_rare_values_merged():
    """Section 5.3: "recode them into attributes X and Y by removing values that have low count"."""
    schema, own = fire(1), settings("dpsyn_fire").selection.options
    assert not {LNG, LAT} & schema.engineering.alone and {LNG, LAT} <= set(schema.measured.names)
    assert own["merge"] == 4.5 and own["floor"] == 800, "θ = max(4.5 σ, 800)"


def test_at_high_epsilon_a_marginal_of_100_by_100_is_one_column_that_joins_boxes():
    """Section 5.3: "a 100 × 100 2-way marginal between them, and recode it into a new attribute"."""
    schema, own = fire(10), settings("dpsyn_fire").selection.options
    assert 10 in settings_of(settings("dpsyn_fire"), ChallengeSettings).epsilons, (
        "the highest of the source's ε, 0.1 to 10"
    )
    assert schema.measured["Coordinates"].size == 100 * 100
    assert not {LNG, LAT} & set(schema.measured.names)
    assert not {"Coordinates", "Box"} & schema.engineering.alone
    assert schema.measured.cells(("Coordinates", "Box")) <= own["max_cells"], "the pair is a candidate"


@pytest.mark.parametrize("epsilon", [0.1, 1])
def test_without_budget_boxes_are_random(epsilon):
    """Section 5.3: "we simply assign random values to this attribute"."""
    schema = fire(epsilon)
    assert "Box" not in schema.measured and schema.domain["Box"].size == 2089
    rng = np.random.default_rng(0)
    rows = CodedTable(schema.measured, tuple(np.zeros(20_000, np.uint16) for _ in schema.measured.attributes))
    boxes = undo(rows, schema.engineering, rng).column("Box")
    counts = np.bincount(boxes, minlength=2089)
    assert ((counts - 20_000 / 2089) ** 2 / (20_000 / 2089)).sum() == pytest.approx(2088, abs=6 * math.sqrt(2 * 2088))


def test_without_budget_addresses_are_random_where_their_list_is_given(tmp_path):
    """Section 5.3: "we simply assign random values to this attribute"; the published list has 17,704 of them."""
    places = {"kind": "categorical", "values": [f"{n}00 Block" for n in range(17_704)], "missing": False}
    line = f"columns:\n  Address: {json.dumps(places | {'unmeasured': True})}\n"
    text = (SCHEMAS / "dpsyn_fire_low.yaml").read_text(encoding="utf-8")
    text = "leave_out: []\n" + re.sub("columns:.*\n", line, text, count=1)
    (tmp_path / "low.yaml").write_text(text, encoding="utf-8")
    shutil.copy(SCHEMAS / "fire_calls.yaml", tmp_path)
    schema = load_schema(tmp_path / "low.yaml")
    assert "Address" not in schema.measured and schema.domain["Address"].size == 17_704
    assert "Box" not in schema.measured and "Unit_Info" in schema.measured


def test_a_random_column_is_written_to_the_schema_read_back_and_never_counted(tmp_path):
    columns = {
        "box": {"kind": "categorical", "size": 50, "unmeasured": True},
        "kind": {"kind": "categorical", "values": ["a", "b"], "missing": False},
    }
    schema = parse_schema({"name": "t", "columns": columns}, where="t.yaml", folder=tmp_path)
    assert schema.measured.names == ("kind",)
    (tmp_path / "t.yaml").write_text(schema.to_yaml())
    assert load_schema(tmp_path / "t.yaml").measured == schema.measured
    rows = CodedTable(schema.domain, (np.array([3, 4], np.uint8), np.array([0, 1], np.uint8)))
    measured, conflicts = engineer(rows, schema.engineering)
    assert measured.domain.names == ("kind",) and not sum(conflicts.values())


@pytest.mark.parametrize(
    ("box", "rules", "said"),
    [
        ({"one_way_only": True}, {}, "measured in part"),
        ({"kind": "integer", "min": 0, "max": 9}, {}, "the column is integer"),
        ({}, {"mapped": {"box": "kind"}}, "box"),
        ({}, {"recode": {"both": {"columns": ["box", "kind"], "combinations": "all"}}}, "box"),
    ],
)
def test_rules_about_a_random_column_are_refused(box, rules, said, tmp_path):
    columns = {
        "box": {"kind": "categorical", "values": ["1", "2"], "unmeasured": True} | box,
        "kind": {"kind": "categorical", "values": ["a", "b"], "missing": False},
    }
    if "min" in box:
        del columns["box"]["values"]
    with pytest.raises(UserError, match=said):
        _ = parse_schema({"name": "t", "columns": columns, **rules}, where="t.yaml", folder=tmp_path).measured


@pytest.mark.parametrize(
    ("name", "records"),
    [("nist2018_fire", 305_119), ("dpsyn_fire", 305_119), ("nist2018_pums", 661_967), ("dpsyn_acs", 170_254)],
)
def test_delta_is_at_most_one_over_the_square_of_the_records(name, records):
    """Section 5.1: δ ≤ 1/N²."""
    delta = settings(name).privacy.delta
    assert 0.5 / records**2 < delta <= 1 / records**2


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("nist2018_fire", {"round 1": ["density"], "round 2": ["density", "range_2018"]}),
        ("nist2018_pums", {"round 3": ["density", "range_2018", "gini"]}),
    ],
)
def test_the_metrics_of_a_round_have_equal_weights(name, wanted):
    """Section 5.1: one metric, two and three in the three rounds, "treated as having equal weights"."""
    assert settings_of(settings(name), ChallengeSettings).rounds == wanted
    scores = {"density": 900_000.0, "range_2018": 600_000.0, "gini": 300_000.0}
    rows = [{"metric": m, "score": s, "floor": None} for m, s in scores.items()]
    made = {r["metric"]: r["score"] for r in rounds(wanted, rows, {})}
    assert made == {r: sum(scores[m] for m in metrics) / len(metrics) for r, metrics in wanted.items()}


def test_wages_have_fewer_bins_at_low_epsilon():
    """Section 5.4: "apply different bucketizing scheme for different privacy budget"."""
    config = settings("nist2018_pums")
    own = settings_of(config, ChallengeSettings)
    low = load_schema(SCHEMAS / str(schema_at(own, 0.3))).measured["INCWAGE"].size
    assert schema_at(own, 1) is None and schema_at(own, 8) is None
    assert 1 < low < build.build_schema(build_specs(config)).measured["INCWAGE"].size


def test_recoded_groups_and_flags_are_those_of_the_text():
    """Section 5.3: Unit_Info, Call_Type_Info, Priority_Info; which of the eight synchronous times are missing."""
    measured = fire(1).measured
    sizes = {"Unit_Info": 2 * 10, "Call_Type_Info": 5 * 32, "Priority_Info": 2 * 8 * 8, "Time_Availability": 2**8}
    assert {name: measured[name].size for name in sizes} == sizes
    assert {"Watch Date", "Call Date"} <= set(measured.names)


def test_companies_and_bins_of_taxi_trips_are_those_of_the_text():
    """McKenna 2021, Preprocessing: the sizes of its table."""
    domain = load_schema(SCHEMAS / "chicago_taxi.yaml").domain
    printed = {"company_id": 57, "fare": 11, "tips": 11, "trip_total": 11, "trip_seconds": 11, "trip_miles": 11}
    printed |= {"pickup_community_area": 78, "dropoff_community_area": 78, "shift": 21}
    assert {name: domain[name].size for name in printed} == printed


@pytest.mark.parametrize("name", sorted(set(names_of_all()) - {"dpsyn_figure2", "nist_crc"}))
def test_the_small_version_keeps_the_method(name):
    """Fewer rows, releases, runs, samples, pairs and floors: choice, noise, passes of the synthesis, metrics stay."""
    config = load_config([f"experiment={name}", "smoke=true"])
    challenge = config.experiment.kind == "challenge"
    small = smaller(config) if challenge else smaller_map(config)
    assert small.synthesis == replace(config.synthesis, rows=small.synthesis.rows)
    assert small.mechanism == config.mechanism and small.privacy == config.privacy
    assert small.evaluation == config.evaluation
    options = [{n: v for n, v in c.selection.options.items() if n != "max_cells"} for c in (config, small)]
    assert small.selection.kind == config.selection.kind and options[0] == options[1]
    if not challenge:
        lists = {"dpsyn", "laplace", "samples", "repeats"}
        own, less = ({n: v for n, v in c.experiment.options.items() if n not in lists} for c in (config, small))
        assert own == less and (small.data.rows or 0) < (config.data.rows or 0)
        return
    own, less = settings_of(config, ChallengeSettings), settings_of(small, ChallengeSettings)
    kept = {n: getattr(own, n) for n in ("epsilons", "variants", "samples", "anonymous", "repeats", "rows", "floors")}
    assert less.rows < own.rows and replace(less, **kept) == own


def test_an_epsilon_of_schemas_that_is_no_number_is_one_clear_message():
    config = load_config(["experiment=dpsyn_fire", "++experiment.schemas={low: dpsyn_fire_low.yaml}"])
    with pytest.raises(UserError, match=r"experiment\.schemas"):
        schema_at(settings_of(config, ChallengeSettings), 1.0)
    assert build.build_schema(build_specs(config)).name == "dpsyn_fire"
