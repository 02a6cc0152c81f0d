"""N-CRiPT (N-CRiPT 2021): the printed examples, brute force on small maps, and the edge cases."""

import math

import numpy as np
import pytest

from evaluation.cube import cubes_from_arrays, map_cubes
from evaluation.papers.ncript.combined_loss import ncript, order_agreement, prepared
from evaluation.papers.ncript.ncript_rows import (
    NcriptSpec,
    bias_penalty,
    heavy_hitters,
    horizontal_losses,
    jaccard_distance,
    jsd,
    vertical_losses,
)
from evaluation.papers.paper_metrics import NcriptSettings
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.errors import UserError
from mechanisms.public.schema.table_schema import parse_schema

# Section 2.2.3: 1000 records; E1 … E5 and an absent type.
TRUE = np.array([400, 150, 150, 150, 150, 0])
ONLY_E1 = np.array([1000, 0, 0, 0, 0, 0])
NO_E1 = np.array([0, 250, 250, 250, 250, 0])
# Table 1: shares of two incidents in five months, in one neighbourhood.
H = np.array([[[30, 70]], [[30, 70]], [[30, 70]], [[40, 60]], [[30, 70]]])
H_HAT = np.array([[[15, 85]], [[15, 85]], [[15, 85]], [[25, 75]], [[15, 85]]])
H_TILDE = np.array([[[40, 60]], [[20, 80]], [[40, 60]], [[40, 60]], [[40, 60]]])


def city(seed: int, shape: tuple[int, int, int] = (6, 4, 5), scale: float = 3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    counts = rng.poisson(scale * rng.pareto(1.0, shape[1:]), shape)
    counts[:, 0, 0] = 7
    counts[:, 1, 1] = 0
    return counts


def test_the_distances_of_the_example_and_of_table_1():
    assert jsd(TRUE, ONLY_E1) == pytest.approx(0.6291, abs=1e-4)
    assert jsd(TRUE, NO_E1) == pytest.approx(0.4863, abs=1e-4)
    assert float(jsd(TRUE, NO_E1)) ** 2 * math.log(2) == pytest.approx(0.16, abs=0.005)
    assert jsd(H, H_HAT).sum() == pytest.approx(0.75, abs=0.005)
    assert jsd(H, H_TILDE).sum() == pytest.approx(0.37, abs=0.05)


def test_vertical_correlation_of_table_1():
    assert vertical_losses(H, H_HAT).mean(axis=1) == pytest.approx([0], abs=1e-12)
    assert vertical_losses(H, H_TILDE).mean(axis=1) == pytest.approx([1.875], abs=1e-12)


@pytest.mark.parametrize(("synthetic", "loss"), [(52, 0.0), (52.5, 0.0), (53, 1.5), (55, 1.5), (56, 3.0)])
def test_vertical_correlation_where_a_series_is_constant(synthetic, loss):
    """Shares 0.5 against 0.52 …, FT = 0.05: 0 up to FT/2, M/2 up to FT, M beyond (2.2.5); both incidents alike."""
    real = np.full((3, 1, 2), 50.0)
    other = np.stack([np.full((3, 1), synthetic), np.full((3, 1), 100 - synthetic)], axis=-1)
    assert vertical_losses(real, other).mean(axis=1) == pytest.approx([loss])


@pytest.mark.parametrize("segments", [4, 40], ids=["one tile", "more series than a tile"])
def test_horizontal_correlation_is_that_of_equation_3(segments):
    q, p = (city(seed, (5, segments, 30)).astype(float) for seed in (1, 2))
    p[:, 2, 2] = 4
    flat = q.reshape(5, -1)
    varies = flat.max(axis=0) > flat.min(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        r, s = np.corrcoef(flat.T), np.nan_to_num(np.corrcoef(p.reshape(5, -1).T))
    strong = (np.abs(np.nan_to_num(r)) > 0.9 + 1e-12) & varies & varies[:, None]
    change = np.where(strong, np.abs(np.nan_to_num(r) - s), 0).sum(axis=1) / np.maximum(strong.sum(axis=1), 1)
    assert horizontal_losses(q, p) == pytest.approx(5 / 2 * change.reshape(segments, 30), abs=1e-9)


def test_a_constant_synthetic_series_loses_its_own_correlation():
    q = np.arange(4.0).reshape(4, 1, 1)
    assert horizontal_losses(q, np.ones((4, 1, 1))).mean(axis=1) == pytest.approx([2.0])
    assert horizontal_losses(q, 5 * q).mean(axis=1) == pytest.approx([0.0])
    assert horizontal_losses(np.ones((4, 1, 1)), q).mean(axis=1) == pytest.approx([0.0])


@pytest.mark.parametrize(
    ("real", "synthetic", "distance"),
    [((0, 0), (0, 0), 0), ((3, 0), (0, 0), 1), ((0, 0), (0, 1), 1), ((1, 0), (9, 1), 0.5), ((1, 2), (3, 4), 0)],
)
def test_jaccard_distance(real, synthetic, distance):
    assert jaccard_distance(np.array(real), np.array(synthetic)) == distance


def test_rows_without_significant_types():
    nothing, one, thin = np.zeros(30), np.eye(30)[0] * 9, np.ones(30)
    assert jsd(nothing, nothing) == 0
    assert jsd(nothing, thin) == 0
    assert jsd(one, nothing) == jsd(nothing, one) == 1


def test_the_bias_cutoff_is_strict():
    assert bias_penalty(np.array([[600], [600]]), np.array([[100], [99]])).tolist() == [0.0, 0.1]


def test_identical_tables_lose_nothing_and_everything_stays_between_0_and_1():
    q = city(3)
    assert ncript(cubes_from_arrays(q, q)).loss == pytest.approx(0, abs=1e-9)
    result = ncript(cubes_from_arrays(q, city(4) * 30))
    assert 0 < result.total.min() <= result.total.max() <= 1
    assert result.snapshot()["Total"].sum() == pytest.approx(result.loss)


def test_merged_regions_add_up():
    cubes = cubes_from_arrays(city(1), city(2)).merged(["north", "south", "north", "south"])
    assert cubes.segments == ("north", "south")
    assert (cubes.real[:, 0] == city(1)[:, 0] + city(1)[:, 2]).all()


def test_cubes_of_coded_tables_keep_a_cell_for_missing_only_where_it_occurs():
    kinds = {"type": {"values": ["a", "b"]}, "place": {"values": ["n", "s"], "missing": False}}
    declared = {name: {"kind": "categorical", **own} for name, own in kinds.items()}
    declared = {"type": declared["type"], "month": {"kind": "integer", "min": 1, "max": 3}, "place": declared["place"]}
    schema = parse_schema({"columns": declared}, where="map.yaml")
    domain = schema.domain
    columns = tuple(np.array(c, np.uint8) for c in ([0, 1, 1], [0, 0, 2], [0, 1, 1]))
    table = CodedTable(domain, columns)
    cubes = map_cubes(table, table, schema, ("month", "place", "type"))
    assert cubes.real.shape == (3, 2, 2)
    gap = CodedTable(domain, (columns[0], np.array([0, 3, 3], np.uint8), columns[2]))
    assert map_cubes(table, gap, schema, ("month", "place", "type")).real.shape == (4, 2, 2)
    assert cubes.times == (1, 2, 3)
    assert cubes.real[0, 1, 1] == cubes.real[2, 1, 1] == 1


def test_maps_without_rows_and_other_weights():
    nothing = ncript(cubes_from_arrays(np.zeros((0, 3, 2)), np.zeros((0, 3, 2))))
    assert nothing.score is None
    assert "reason" in nothing.to_json()
    only_jsd = ncript(cubes_from_arrays(city(1), city(2)), NcriptSpec(weights=(1, 0, 0, 0, 0), bias_penalty=0))
    assert only_jsd.total.tolist() == only_jsd.parts["jsd"].tolist()


def test_the_losses_of_the_types_add_up_to_the_losses_of_the_map():
    q, p = city(1), city(2)
    spec = NcriptSpec(weights=(0.4, 0.3, 0.2, 0.1, 0.05), h=0.3)
    result = ncript(cubes_from_arrays(q, p), spec)
    types = result.types
    for name in ("jsd", "jd", "hh"):
        assert types[name.upper()].sum() == pytest.approx(result.parts[name].sum(), abs=1e-12)
    for name in ("hc", "vc"):
        assert types[name.upper()].sum() == pytest.approx(result.parts[name].sum(), abs=1e-9)
    assert types["Total"].sum() + result.parts["bp"].sum() == pytest.approx(result.loss, abs=1e-9)
    assert types["Total"].is_monotonic_decreasing and set(types["type"]) == set(range(5))
    by_type = types.set_index("type")
    assert by_type["real"].to_dict() == dict(enumerate(q.sum(axis=(0, 1)).astype(float)))
    assert by_type["rank"].to_dict() == {x: 1 + int((q.sum(axis=(0, 1)) > q[..., x].sum()).sum()) for x in range(5)}


def test_the_type_that_was_changed_causes_the_loss():
    q = 50 + city(7)
    p = q.copy()
    p[:, :, 3] = p[::-1, :, 3] * 3
    assert ncript(cubes_from_arrays(q, p)).types["type"][0] == 3


@pytest.mark.parametrize(
    ("synthetic", "share"), [((60, 30, 10), 1), ((30, 60, 10), 2 / 3), ((10, 30, 60), 0), ((30, 30, 10), 5 / 6)]
)
def test_the_order_of_the_frequent_types(synthetic, share, monkeypatch):
    """3.2.2 names it as what is not captured: three frequent types, and a fourth that does not count."""
    real, other = np.array([[60, 30, 10, 1]]), np.array([[*synthetic, 99]])
    monkeypatch.setattr("evaluation.papers.ncript.combined_loss.TOP", 3)
    assert order_agreement(real, other) == pytest.approx([share])
    assert np.isnan(order_agreement(np.array([[9, 0, 0, 0]]), other)[0]), "one type has no order"


def test_all_four_pairs_of_a_time_and_a_place_have_heavy_hitters():
    """2.2.3: the i-th month or the whole year, a neighbourhood or the whole area."""
    q, p = city(1), city(2)
    result = ncript(cubes_from_arrays(q, p), NcriptSpec(h=0.3))
    assert result.parts["hh"][2, 3] == heavy_hitters(q[2, 3], p[2, 3], h=0.3)
    assert result.heavy_year[3] == heavy_hitters(q[:, 3].sum(axis=0), p[:, 3].sum(axis=0), h=0.3)
    assert result.heavy_map[2] == heavy_hitters(q[2].sum(axis=0), p[2].sum(axis=0), h=0.3)
    assert result.heavy_whole == heavy_hitters(q.sum(axis=(0, 1)), p.sum(axis=(0, 1)), h=0.3)
    assert result.to_json()["heavy_hitters"]["whole_map_all_times"] == result.heavy_whole


def test_the_courses_of_the_worst_or_the_named_places():
    q, p = city(1), city(2)
    result = ncript(cubes_from_arrays(q, p))
    worst = result.snapshot()["segment"].tolist()
    assert [c["segment"] for c in result.courses()] == list(map(str, worst))
    asked = ncript(cubes_from_arrays(q, p), NcriptSpec(places=("2",))).courses()
    assert [c["segment"] for c in asked] == ["2"]
    assert [*asked[0]] == ["segment", "JSD", "BP", "JD", "HH", "HC", "VC", "Total"]
    assert asked[0]["Total"] == result.total[:, 2].tolist() and asked[0]["JSD"] == result.parts["jsd"][:, 2].tolist()
    assert len({*asked[0]["HC"]}) == len({*asked[0]["VC"]}) == 1
    with pytest.raises(UserError, match="no segment 'x'"):
        ncript(cubes_from_arrays(q, p), NcriptSpec(places=("x",)))


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ({"weights": [1, 0, 0, 0, 0]}, "total"),
        ({"delta": 0.4}, "hh"),
        ({"k": 0.4}, "hh"),
        ({"h": 0.5}, "hh"),
        ({"frequency_threshold": 0.3}, "jsd"),
        ({"bias_penalty": 0.2, "bias_cutoff": 1}, "bp"),
        ({"strong": 0.5}, "hc"),
    ],
)
def test_every_parameter_of_2_3_2_is_a_setting_that_changes_its_loss(given, part):
    cubes = cubes_from_arrays(city(1, scale=9), city(2, scale=9))
    usual, other = (ncript(cubes, prepared(NcriptSettings(ncript=x), None, 0).spec) for x in (None, given))
    one, two = ((x.total if part == "total" else x.parts[part]) for x in (usual, other))
    assert not np.allclose(one, two)


@pytest.mark.parametrize("given", [{"weights": 3}, {"weights": ["a"] * 5}, {"delta": [1]}, {"omega": 1}, {"h": -1}])
def test_parameters_that_cannot_be(given):
    with pytest.raises(UserError):
        prepared(NcriptSettings(ncript=given), None, 0)
