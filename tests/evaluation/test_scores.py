"""MGD and TVD of whole tables: names and order do not matter; targets, and the marginals that stand for others."""

import json
import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
import yaml

from evaluation.core_metrics import MgdSettings
from evaluation.counts import Cells
from evaluation.metric import Metric, Options
from evaluation.metrics import ScoreSpec
from evaluation.mgd.aemc_graph import Axis
from evaluation.mgd.marginal_difference import mgd
from evaluation.mgd.presets import MAX_FLOW_NODES, MOST_WORK, chosen_targets, predicted_work
from evaluation.mgd.targets import GROUPS, Targets, at_levels, axes_at, cell_labels, read_targets, target
from evaluation.score import score_tables
from evaluation.tvd import distances
from evaluation.values.value_tables import Values
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.table_schema import Schema, parse_schema
from tests.evaluation.worlds import distances_of, equation_1, skewed
from tests.public.table_worlds import uniform

TOWN = Domain((Attribute("age", 6, 5), Attribute("sex", 2), Attribute("job", 4), Attribute("year", 9, 9)))
people = partial(skewed, domain=TOWN)


def schema_of(domain: Domain) -> Schema:
    """Whole-number codes; where an attribute has one more code than lie on its line, that is *missing*."""

    def column(a: Attribute) -> Column:
        missing = a.ordered == a.size - 1
        return Column(a.name, "categorical", codes=a.ordered or a.size, ordinal=a.ordered > 0, missing=missing)

    return Schema("town", tuple(map(column, domain.attributes)))


def targets_of(domain: Domain, *, seed: int = 0, **settings) -> Targets:
    return chosen_targets(MgdSettings(**settings), schema_of(domain), seed)


def score(real: CodedTable, synthetic: CodedTable) -> dict:
    schema = schema_of(real.domain)
    assert schema.domain == real.domain
    return score_tables(real, synthetic, schema, ScoreSpec()).to_json()


def test_scores_do_not_depend_on_the_order_of_rows_nor_on_the_names_of_categories():
    real, synthetic = people(500, 1), people(700, 2)
    order = np.random.default_rng(0).permutation(500)
    shuffled = real.at(order)
    renamed = []
    for table in (real, synthetic):
        job = np.array([2, 0, 3, 1], np.uint8)[table.column("job")]
        renamed.append(CodedTable(TOWN, (table.columns[0], table.columns[1], job, table.columns[3])))
    first = score(real, synthetic)
    for other in (score(shuffled, synthetic), score(*renamed)):
        assert other["mgd"]["score"] == pytest.approx(first["mgd"]["score"], abs=1e-12)
        assert other["tvd"]["2-way"]["mean"] == pytest.approx(first["tvd"]["2-way"]["mean"], abs=1e-12)


def test_tvd_is_half_the_l1_distance_of_the_normalised_marginals():
    real, synthetic = people(300, 1), people(500, 2)
    columns = zip(real.columns, synthetic.columns, TOWN.attributes, strict=True)
    shares = [[np.bincount(c, minlength=a.size) / len(c) for c in (p, q)] for p, q, a in columns]
    apart = [0.5 * np.abs(p - q).sum() for p, q in shares]
    one = distances(real, synthetic).to_json()["1-way"]
    assert (one["marginals"], one["max"], one["mean"]) == pytest.approx((4, max(apart), np.mean(apart)))


def test_weights_count_as_records():
    real = people(300, 1)
    half = CodedTable(TOWN, real.columns, np.full(300, 2**19, np.uint32))
    assert score(real, half)["tvd"]["1-way"]["max"] == 0
    assert score(real, half)["mgd"]["score"] > 0


def test_a_sample_of_marginals_is_seeded_and_said():
    wide = Domain(tuple(Attribute(f"c{i}", 2) for i in range(12)))
    one, two = (targets_of(wide, max_marginals=20, seed=s) for s in (0, 0))
    assert one == two
    assert len(one.marginals) == 12 + 20 + 20
    assert "20 of 220" in one.note[2]
    assert targets_of(wide, max_marginals=20, seed=1) != one


def test_marginals_whose_flow_would_take_long_are_taken_in_groups_and_said():
    fine = Domain((Attribute("x", 100, 100), Attribute("y", 100, 100), Attribute("z", 3)))
    assert MAX_FLOW_NODES < 100 * 100
    targets = targets_of(fine)
    levels = {t.attributes: t.levels for t in targets.marginals}
    assert levels[("x", "y")] == (GROUPS, GROUPS)
    assert levels[("x", "z")] == (1, 1)
    assert "in groups of neighbours" in targets.note[1]
    assert all(predicted_work(axes_at(schema_of(fine), t))[0] <= MOST_WORK for t in targets.marginals)


def test_marginals_that_take_long_even_in_groups_are_left_out_and_said():
    huge = Domain((Attribute("x", 100, 100), Attribute("y", 100, 100), Attribute("z", 100_000)))
    targets = targets_of(huge)
    assert ("x", "y", "z") not in [t.attributes for t in targets.marginals]
    assert "1 left out" in targets.note[2]


def test_in_groups_means_the_score_of_the_merged_codes():
    fine = Domain((Attribute("x", 100, 100), Attribute("y", 80, 80)))
    tables = [skewed(400, 1, fine), skewed(500, 2, fine)]
    (pair,) = [t for t in targets_of(fine, delta=0.0).marginals if len(t.attributes) == 2]
    got = mgd(*tables, schema_of(fine), Targets((pair,))).score
    merged = []
    for table in tables:
        counts = np.zeros((8, 8))
        np.add.at(counts, (table.column("x").astype(int) * 8 // 100, table.column("y").astype(int) * 8 // 80), 1)
        merged.append(counts)
    grouped = equation_1(Cells.dense(merged[1], merged[0]), [Axis.path(8, 8, Fraction(1, 2))] * 2, 0.0, 1.0)
    assert got == pytest.approx(grouped, abs=1e-9)


def test_large_marginals_are_counted_sparsely_and_give_the_same_score():
    big = Domain((Attribute("a", 3000), Attribute("b", 3000), Attribute("c", 2)))
    real, synthetic = skewed(400, 1, big), skewed(400, 2, big)
    result = mgd(real, synthetic, schema_of(big), targets_of(big, delta=0.0))
    by_clique = {m.target.attributes: m.aemc.value for m in result.marginals}
    left, right = ({(int(a), int(b)) for a, b in zip(*t.columns[:2], strict=True)} for t in (real, synthetic))
    assert not left & right
    assert by_clique[("a", "b")] == pytest.approx(2.0)


@pytest.mark.parametrize(("real", "synthetic"), [(0, 10), (10, 0), (0, 0)])
def test_tables_without_rows_give_reasons_and_valid_json(real, synthetic):
    card = score(people(real, 1), people(synthetic, 2))
    assert "reason" in card["tvd"] and "NOT private" in card["not_private"]
    if real == 0:
        assert card["mgd"]["score"] is None
        assert "empty" in card["mgd"]["reason"]
    json.dumps(card, allow_nan=False)


def test_a_metric_cannot_change_the_rows_that_the_others_score(monkeypatch):
    """One that counted in place made the distances of all others 0.7 for 0.01, without a word."""
    table, seen = people(50, 1), []
    values = Values((), {"real": table, "synthetic": table, "holdout": table})

    def run(inputs):
        of_values, known = inputs.options.values.tables.values(), inputs.real
        seen.extend(c for t in (known, inputs.synthetic, inputs.options.holdout, *of_values) for c in t.columns)
        raise UserError("nothing to score")

    facts = {"name": "changer", "title": "Changer", "goal": "low", "reference": "", "source": "here"}
    metric = Metric(**facts, perfect=0, run=run)
    monkeypatch.setattr("evaluation.score.METRICS", {"tvd": metric})
    options = Options(values=values, holdout=table)
    score_tables(table, table, schema_of(TOWN), ScoreSpec(metrics=("tvd",), options=options))
    assert len(seen) == 6 * 4
    for shared in seen:
        with pytest.raises(ValueError, match="read-only"):
            shared[:] = 0
    assert all(own.flags.writeable for own in table.columns)


STATES = parse_schema(
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


def test_by_default_categorical_attributes_weigh_infinity_and_ordinal_ones_share_1():
    assert target(STATES, ["month", "city", "income"]).weights == (Fraction(1, 2), None, Fraction(1, 2))
    assert target(STATES, ["city", "sex"]).weights == (None, None)


def test_where_some_weights_are_given_the_others_are_infinite():
    assert target(STATES, ["month", "city"], weights={"city": 1}).weights == (None, Fraction(1))
    thirds = target(STATES, ["month", "city"], weights={"month": "1/3", "city": "2/3"}).weights
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
        read_targets(STATES, [{"attributes": ["sex"]}, entry], delta=2.0)


def test_a_list_of_names_is_a_target_marginal():
    assert read_targets(STATES, [["month", "sex"]], delta=3.0).marginals == (
        target(STATES, ["month", "sex"], delta=3.0),
    )


def test_a_level_of_the_hierarchy_merges_its_leaves_and_keeps_other_and_missing_apart():
    states = target(STATES, [{"city": 1}, "sex"])
    rows = CodedTable(STATES.domain, tuple(np.array(c, np.uint8) for c in ([0] * 6, range(6), [0] * 6, [0] * 6)))
    coarse = at_levels(rows, STATES, [states])
    name = states.columns(STATES)[0]
    assert coarse.column(name).tolist() == [0, 0, 1, 1, 2, 3]
    assert cell_labels(STATES, "city", 1) == ("MA", "CT", "elsewhere", "missing")
    assert states.label(STATES) == "city at 1 × sex"


def test_semantic_distances_follow_the_level():
    """Cities in one state are 1/2 apart, in two states 1, and states 1 (Li et al. 2021a, Figure 1b)."""
    leaves = distances_of(axes_at(STATES, target(STATES, ["city"], weights={"city": 1}))[0])
    assert (leaves[0, 1], leaves[0, 2]) == (0.5, 1.0)
    assert np.isinf(leaves[0, 4])
    assert np.isinf(leaves[0, 5])
    states = distances_of(axes_at(STATES, target(STATES, [{"city": 1}], weights={"city": 1}))[0])
    assert states[0, 1] == 1.0


def test_each_preset_has_its_marginals_and_their_weights():
    """Thirds: a ninth twice, a third; located: with time or place; pie: no mass moves; pums: income as all others."""

    def preset(name, *attributes):
        return chosen_targets(MgdSettings(name, attributes), STATES, 0).marginals

    weights = [t.weight for t in preset("thirds", "month", "city", "sex")]
    assert weights == pytest.approx([1 / 9] * 6 + [1 / 3])
    assert sum(weights) == pytest.approx(1)
    located = preset("located", "month", "city")
    assert all({"month", "city"} & set(t.attributes) for t in located) and len(located) == 2 + 5 + 4
    (one,) = preset("pie", "month", "city", "sex")
    assert one.weights == (None, None, None) and one.delta == 2
    heavy, *rest = preset("pums", "city", "sex", "income")
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
        chosen_targets(MgdSettings(*spec), STATES, 0)


def test_mgd_is_the_weighted_mean_of_its_marginals():
    real, synthetic = (uniform(STATES.domain, rows, seed) for rows, seed in ((400, 1), (300, 2)))
    targets = Targets((target(STATES, ["month"], weight=3.0), target(STATES, ["sex"], weight=1.0)))
    result = mgd(real, synthetic, STATES, targets)
    month, sex = (m.aemc.value for m in result.marginals)
    assert result.score == pytest.approx((3 * month + sex) / 4)
    frame = result.frame()
    assert frame["share"].sum() == pytest.approx(1)
    assert frame["share"].is_monotonic_decreasing


def test_a_table_of_another_schema_is_refused():
    other = parse_schema({"columns": {"sex": {"kind": "categorical", "values": ["f", "m"]}}}, where="x")
    with pytest.raises(UserError, match="the real table does not have the schema's columns"):
        mgd(*(uniform(s.domain, 5, 1) for s in (other, STATES)), STATES, Targets((target(STATES, ["sex"]),)))
