"""Target marginals: the paper's defaults, presets and levels; what does not fit is named."""

import math
from fractions import Fraction

import numpy as np
import pytest
import yaml

from evaluation.mgd.levels import at_levels, axes_at, cell_labels
from evaluation.mgd.marginal_difference import mgd
from evaluation.mgd.mgd_metric import MgdSettings
from evaluation.mgd.presets import chosen_targets
from evaluation.mgd.targets import Targets, read_targets, target
from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.errors import UserError
from mechanisms.public.schema.table_schema import Schema, parse_schema
from tests.evaluation.worlds import distances_of

TOWN = parse_schema(
    yaml.safe_load("""
columns:
  month: {kind: integer, min: 1, max: 12, missing: false}
  city:
    kind: categorical
    values: [boston, worcester, hartford, bridgeport]
    other: elsewhere
    hierarchy: {MA: [boston, worcester], CT: [hartford, bridgeport]}
  sex: {kind: categorical, values: [f, m], missing: false}
  income: {kind: integer, min: 0, max: 9, missing: true}
"""),
    where="town.yaml",
)


def table(schema: Schema, rows: int, seed: int) -> CodedTable:
    rng = np.random.default_rng(seed)
    columns = tuple(rng.integers(0, a.size, rows).astype(code_dtype(a.size)) for a in schema.domain.attributes)
    return CodedTable(schema.domain, columns)


def test_by_default_categorical_attributes_weigh_infinity_and_ordinal_ones_share_1():
    assert target(TOWN, ["month", "city", "income"]).weights == (Fraction(1, 2), None, Fraction(1, 2))
    assert target(TOWN, ["city", "sex"]).weights == (None, None)


def test_where_some_weights_are_given_the_others_are_infinite():
    assert target(TOWN, ["month", "city"], weights={"city": 1}).weights == (None, Fraction(1))
    thirds = target(TOWN, ["month", "city"], weights={"month": "1/3", "city": "2/3"}).weights
    assert thirds == (Fraction(1, 3), Fraction(2, 3))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"attributes": ["month", "city"], "weights": {"month": 0.5}}, "sum to 0.5"),
        ({"attributes": ["month"], "weights": {"month": 1.5}}, r"weight of 'month'"),
        ({"attributes": ["month"], "weights": {"month": True}}, r"weight of 'month'"),
        ({"attributes": ["month"], "weights": {"moth": 1}}, "did you mean 'month'"),
        ({"attributes": ["mnth"]}, "did you mean 'month'"),
        ({"attributes": ["month", "month"]}, "twice"),
        ({"attributes": [{"city": "county"}]}, "no level 'county'"),
        ({"attributes": []}, "a list of columns"),
        ({"attributes": "month"}, "a list of columns"),
        ({"attribute": ["month"]}, "did you mean 'attributes'"),
        ({"attributes": ["month"], "delta": -1}, "delta -1"),
        ({"attributes": ["month"], "weight": 0}, "weight 0"),
        ({"attributes": ["month"], "weight": "much"}, "weight 'much'"),
    ],
)
def test_what_does_not_fit_is_named_with_its_entry(entry, message):
    with pytest.raises(UserError, match=message):
        read_targets(TOWN, [{"attributes": ["sex"]}, entry], delta=2.0)


def test_a_list_of_names_is_a_target_marginal():
    assert read_targets(TOWN, [["month", "sex"]], delta=3.0).marginals == (target(TOWN, ["month", "sex"], delta=3.0),)


def test_a_level_of_the_hierarchy_merges_its_leaves_and_keeps_other_and_missing_apart():
    states = target(TOWN, [{"city": 1}, "sex"])
    rows = CodedTable(TOWN.domain, tuple(np.array(c, np.uint8) for c in ([0] * 6, range(6), [0] * 6, [0] * 6)))
    coarse = at_levels(rows, TOWN, [states])
    name = states.columns(TOWN)[0]
    assert coarse.column(name).tolist() == [0, 0, 1, 1, 2, 3]
    assert cell_labels(TOWN, "city", 1) == ("MA", "CT", "elsewhere", "missing")
    assert states.label(TOWN) == "city at 1 × sex"


def test_semantic_distances_follow_the_level():
    """Cities in one state are 1/2 apart, in two states 1, and states 1 (Li et al. 2021a, Figure 1b)."""
    leaves = distances_of(axes_at(TOWN, target(TOWN, ["city"], weights={"city": 1}))[0])
    assert (leaves[0, 1], leaves[0, 2]) == (0.5, 1.0)
    assert np.isinf(leaves[0, 4])
    assert np.isinf(leaves[0, 5])
    states = distances_of(axes_at(TOWN, target(TOWN, [{"city": 1}], weights={"city": 1}))[0])
    assert states[0, 1] == 1.0


def test_thirds_weigh_a_ninth_a_ninth_and_a_third():
    chosen = chosen_targets(MgdSettings("thirds", ("month", "city", "sex")), TOWN, 0)
    weights = [t.weight for t in chosen.marginals]
    assert weights == pytest.approx([1 / 9] * 6 + [1 / 3])
    assert sum(weights) == pytest.approx(1)


def test_located_marginals_hold_a_temporal_or_spatial_attribute():
    chosen = chosen_targets(MgdSettings("located", ("month", "city")), TOWN, 0)
    assert all({"month", "city"} & set(t.attributes) for t in chosen.marginals)
    assert len(chosen.marginals) == 2 + 5 + 4


def test_pie_moves_no_mass_and_is_one_marginal():
    (one,) = chosen_targets(MgdSettings("pie", ("month", "city", "sex")), TOWN, 0).marginals
    assert one.weights == (None, None, None)
    assert one.delta == 2


def test_pums_weighs_the_income_marginal_as_much_as_all_others():
    chosen = chosen_targets(MgdSettings("pums", ("city", "sex", "income")), TOWN, 0)
    heavy, *rest = chosen.marginals
    assert heavy.attributes == ("city", "sex", "income")
    assert heavy.weight == sum(t.weight for t in rest) == 3


@pytest.mark.parametrize("anchors", [(), ("c7", "c900")], ids=["any", "located"])
def test_marginals_of_a_wide_table_are_drawn_without_listing_them_all(anchors):
    column = {"kind": "categorical", "values": ["no", "yes"], "missing": False}
    wide = parse_schema({"columns": {f"c{i}": column for i in range(1000)}}, where="wide")
    spec = MgdSettings("located" if anchors else "kway", anchors, k=(3,), max_marginals=3)
    chosen = chosen_targets(spec, wide, 0)
    drawn = [t.attributes for t in chosen.marginals]
    assert len(set(drawn)) == 3 and all(len(set(t)) == 3 for t in drawn)
    assert all(not anchors or set(anchors) & set(t) for t in drawn)
    possible = math.comb(1000, 3) - (math.comb(998, 3) if anchors else 0)
    assert f"3 of {possible} marginals" in chosen.note[0]
    assert chosen_targets(spec, wide, 0) == chosen


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (("third", ()), "did you mean 'thirds'"),
        (("thirds", ("month", "city")), "three columns"),
        (("located", ()), "temporal and spatial"),
        (("pie", ()), "columns of the marginal"),
        (("pums", ("city", "income", "sex")), "'sex' is not ordinal"),
        (("pie", ("mnth",)), "did you mean 'month'"),
    ],
)
def test_a_preset_that_cannot_be_says_why(spec, message):
    with pytest.raises(UserError, match=message):
        chosen_targets(MgdSettings(*spec), TOWN, 0)


def test_mgd_is_the_weighted_mean_of_its_marginals():
    real, synthetic = table(TOWN, 400, 1), table(TOWN, 300, 2)
    targets = Targets((target(TOWN, ["month"], weight=3.0), target(TOWN, ["sex"], weight=1.0)))
    result = mgd(real, synthetic, TOWN, targets)
    month, sex = (m.aemc.value for m in result.marginals)
    assert result.score == pytest.approx((3 * month + sex) / 4)
    frame = result.frame()
    assert frame["share"].sum() == pytest.approx(1)
    assert frame["share"].is_monotonic_decreasing


def test_a_table_of_another_schema_is_refused():
    other = parse_schema({"columns": {"sex": {"kind": "categorical", "values": ["f", "m"]}}}, where="x")
    with pytest.raises(UserError, match="the real table does not have the schema's columns"):
        mgd(table(other, 5, 1), table(TOWN, 5, 1), TOWN, Targets((target(TOWN, ["sex"]),)))
