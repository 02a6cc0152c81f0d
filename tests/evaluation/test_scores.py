"""MGD and TVD of whole tables: identical tables score 0, and names and order do not matter."""

import json
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from evaluation import counts
from evaluation.counts import Cells
from evaluation.metrics import ScoreSpec
from evaluation.mgd.geometry import Axis
from evaluation.mgd.levels import axes_at
from evaluation.mgd.marginal_difference import mgd
from evaluation.mgd.mgd_metric import MgdSettings
from evaluation.mgd.presets import MAX_FLOW_NODES, MOST_WORK, chosen_targets, predicted_work
from evaluation.mgd.targets import GROUPS, Targets
from evaluation.score import score_tables
from evaluation.tvd import distances
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.marginals import count_cliques
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.table_schema import Schema
from tests.evaluation.worlds import equation_1, skewed

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


def test_metrics_that_ask_for_the_same_marginal_count_it_once_while_there_is_room(monkeypatch):
    table, counted = people(50, 1), []

    def count(given, cliques):
        counted.extend(cliques)
        return count_cliques(table, cliques)

    monkeypatch.setattr(counts, "REMEMBERED_CELLS", 14)
    known = counts.remembered(table)
    asked = [("age",), ("age",), ("age", "sex"), ("job",)]
    for _ in range(2):
        told = known.known(known, asked, count)
        assert [c.tolist() for c in told] == [c.tolist() for c in count_cliques(table, asked)]
    assert counted == [("age",), ("age", "sex"), ("job",), ("age", "sex")], "6 and 4 cells have room, 12 have not"
