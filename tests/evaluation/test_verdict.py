"""The verdict on privacy: exact tests on tiny worlds, copies, near copies, honest tables, drift, units, bad input."""

import json
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import binomtest, hypergeom

from evaluation.verdict.drift import equal_pairs
from evaluation.verdict.near_rows import APART, affordable_rows, affordable_search, nearest_rows, places
from evaluation.verdict.random_split import DRAWS, clopper_pearson, excess, split_p, wilson
from evaluation.verdict.rare_matches import Pool, match_test, neighbours
from evaluation.verdict.verdict import verdict
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute, Domain

#: Hardly a row repeats in it.
FINE = Domain((Attribute("age", 60, 60), Attribute("job", 40), Attribute("wage", 400, 398), Attribute("town", 50)))
#: Rows repeat by nature.
COARSE = Domain((Attribute("age", 5, 5), Attribute("sex", 2), Attribute("job", 6)))


def people(rows: int, seed: int, domain: Domain = FINE) -> CodedTable:
    """Skewed columns that depend on the first one."""
    rng = np.random.default_rng(seed)
    first = rng.random(rows)
    shares = [(0.5 * first + 0.5 * rng.random(rows)) ** 1.5 for _ in domain.attributes]
    return CodedTable(
        domain, tuple((u * a.size).astype(np.uint16) for u, a in zip(shares, domain.attributes, strict=True))
    )


def joined(*tables: CodedTable) -> CodedTable:
    return CodedTable(
        tables[0].domain, tuple(np.concatenate(c) for c in zip(*(t.columns for t in tables), strict=True))
    )


def thirds(rows: int, seed: int, domain: Domain = FINE) -> list[CodedTable]:
    whole = people(3 * rows, seed, domain)
    return [whole.at(slice(i * rows, (i + 1) * rows)) for i in range(3)]


def rows_of(table: CodedTable) -> list[tuple[int, ...]]:
    return list(zip(*(c.tolist() for c in table.columns), strict=True))


def copied(training: CodedTable, synthetic: CodedTable, share: float, seed: int) -> CodedTable:
    """The synthetic table with a share of its rows replaced by random training rows."""
    count = round(share * synthetic.rows)
    chosen = np.random.default_rng(seed).choice(training.rows, count, replace=False)
    return joined(training.at(chosen), synthetic.at(slice(count, None)))


@pytest.mark.parametrize(("sizes", "hits"), [((30, 30), (7, 1)), ((400, 100), (20, 1)), ((50, 200), (3, 4))])
def test_the_test_of_matches_is_the_exact_one_where_all_weigh_alike(sizes, hits):
    sides = [np.repeat([1, 0], [hit, size - hit]) for size, hit in zip(sizes, hits, strict=True)]
    exact = hypergeom.sf(hits[0] - 1, sum(sizes), sum(hits), sizes[0])
    assert split_p(*sides, np.random.default_rng(1)) == pytest.approx(exact, abs=4 * np.sqrt(exact / DRAWS) + 1 / DRAWS)


def test_intervals_are_clopper_and_pearsons_and_wilsons():
    for count, of in ((0, 9), (3, 40), (40, 40)):
        share = clopper_pearson(count, of)
        ci = binomtest(count, of).proportion_ci(method="exact")
        assert (share.low, share.high) == pytest.approx((ci.low, ci.high), abs=1e-9)
        ci = binomtest(count, of).proportion_ci(method="wilson")
        centre, width = wilson(count / of, of)
        assert (centre - width, centre + width) == pytest.approx((ci.low, ci.high), abs=1e-9)


def test_the_variance_of_an_excess_is_that_of_all_random_splits():
    rng = np.random.default_rng(0)
    weights = np.sort(rng.random(60))
    splits = np.array([rng.permutation(weights)[:20].sum() for _ in range(20_000)])
    chosen = np.concatenate([weights[15:35], weights[:15], weights[35:]])
    spread = (chosen[:20].sum() - splits.mean()) / -ndtri(excess(chosen[:20], chosen[20:]).p)
    assert spread == pytest.approx(splits.std(), rel=0.03)
    assert excess(np.ones(5), np.ones(9)).p == 1 and excess(np.zeros(5), np.zeros(3)) is None


def test_nearest_rows_and_ties_are_brute_force():
    asked, pool = people(40, 1, COARSE), people(1100, 2, COARSE)
    whole = places([asked, pool])
    asked_places, pool_places = whole.only(np.arange(40)), whole.only(np.arange(40, whole.rows))
    found = nearest_rows(asked_places, pool_places)
    given, standing_out = np.zeros(pool.rows), np.zeros(pool.rows)
    for i in range(40):
        apart = np.abs(asked_places.ordered[:, i].astype(int)[:, None] - pool_places.ordered).sum(axis=0)
        apart += APART * (asked_places.others[:, i][:, None] != pool_places.others).sum(axis=0)
        two = np.sort(apart)[:2]
        assert (found.first[i], found.second[i], found.ties[i]) == (*two, (apart == two[0]).sum())
        nearest = (apart == two[0]) / (apart == two[0]).sum()
        given += nearest
        standing_out += nearest * (2 * two[0] <= two[1] and two[1] > 0)
    assert found.nearest_of == pytest.approx(given) and found.outstanding_of == pytest.approx(standing_out)
    alone = nearest_rows(pool_places, pool_places, same=True)
    assert (alone.index != np.arange(pool.rows)).all()


def test_missing_values_lie_apart_from_all_others():
    domain = Domain((Attribute("a", 4, 3),))
    table = CodedTable(domain, (np.array([0, 1, 2, 3], np.uint8),))
    found = nearest_rows(places([table]), places([table]), same=True)
    assert (found.first[:3] < APART).all() and found.first[3] >= APART


def test_neighbours_and_equal_pairs_are_brute_force():
    training, holdout = people(60, 1, COARSE), people(50, 2, COARSE)
    pool = Pool.of(training, holdout)
    rows = rows_of(training) + rows_of(holdout)
    asked = np.array([0, 7, 80, 109])
    counted = [sum(sum(x != y for x, y in zip(rows[i], row, strict=True)) == 1 for row in rows) for i in asked]
    assert neighbours(pool, asked).tolist() == counted
    twice = {row for row in rows if rows.count(row) == 2}
    across = sum(row in rows[:60] and row in rows[60:] for row in twice)
    assert equal_pairs(pool, None) == (across, len(twice) - across)


def test_one_per_cent_of_copies_is_flagged_in_19_of_20_draws():
    flagged = 0
    for seed in range(20):
        training, synthetic, holdout = thirds(1500, seed)
        found = verdict(training, copied(training, synthetic, 0.01, seed), holdout)
        assert found.repeats.value < 0.01
        flagged += found.lines[0].startswith("privacy: failed (copies of training rows)")
    assert flagged >= 19


def test_few_copies_pass_and_are_said():
    training, synthetic, holdout = thirds(5000, 2)
    found = verdict(training, copied(training, synthetic, 0.004, 2), holdout)
    assert found.result == "passed" and "more often than the holdout's" in found.lines[0]
    assert "more often" not in verdict(training, synthetic, holdout).lines[0]


def test_exchangeable_tables_pass():
    results = [verdict(*thirds(2500, seed)).result for seed in range(10)]
    assert "failed" not in results and results.count("passed") >= 9


@pytest.mark.slow
@pytest.mark.parametrize(("domain", "sizes"), [(FINE, (1500, 1500, 1500)), (COARSE, (900, 300, 200))])
def test_at_most_two_of_400_exchangeable_tables_are_flagged(domain, sizes):
    flagged = 0
    for seed in range(400):
        whole, ends = people(sum(sizes), seed, domain), np.cumsum([0, *sizes])
        parts = [whole.at(slice(a, b)) for a, b in pairwise(ends)]
        flagged += verdict(*parts, seed=seed).result == "failed"
    assert flagged <= 2


def test_a_holdout_of_another_size_is_no_disadvantage_to_anybody():
    whole = people(4000, 5)
    training, holdout = whole.at(slice(0, 2600)), whole.at(slice(2600, 3000))
    fresh = whole.at(slice(3000, 4000))
    honest = verdict(training, fresh, holdout)
    assert honest.result != "failed"
    assert honest.nearer.expected == pytest.approx(2600 / 3000)
    assert honest.nearer.low < honest.nearer.expected < honest.nearer.high
    assert verdict(training, copied(training, fresh, 0.1, 1), holdout).result == "failed"


def test_where_rows_repeat_by_nature_nothing_is_judged_but_a_whole_copy():
    training, synthetic, holdout = thirds(500, 1, COARSE)
    found = verdict(training, synthetic, holdout)
    assert found.result == "not judged" and "repeat by nature" in found.why
    fine, _, aside = thirds(500, 1)
    assert verdict(fine, fine, aside).result == "failed"


def test_a_small_holdout_says_what_it_would_have_noticed():
    training, synthetic, holdout = thirds(500, 2)
    found = verdict(training, synthetic, holdout.at(slice(0, 25)))
    assert found.result == "not judged" and "too few rows" in found.why
    assert found.noticed is None or found.noticed > 0.01


def test_a_drifting_holdout_is_noticed_and_copies_are_flagged_all_the_same():
    whole = people(3000, 4)
    order = np.argsort(whole.columns[2], kind="stable")
    training, synthetic, holdout = (whole.at(order[i * 1000 : (i + 1) * 1000]) for i in range(3))
    found = verdict(training, synthetic, holdout)
    assert found.result == "not judged" and "drifts" in found.why and "wage" in found.why
    assert verdict(training, training, holdout).result == "failed"


def test_a_drift_of_pairs_alone_is_noticed_by_neighbours():
    rng = np.random.default_rng(0)
    domain = Domain((Attribute("a", 50, 50), Attribute("b", 50, 50)))
    a, flat = rng.integers(0, 50, (2, 2000)).astype(np.uint8)
    bound = CodedTable(domain, (a, (a + rng.integers(0, 3, 2000)).astype(np.uint8) % 50))
    loose = CodedTable(domain, (a[:1000], flat[:1000]))
    found = verdict(bound, bound, loose)
    assert found.drift.columns == () and "same side" in found.drift.reason


def test_a_holdout_that_overlaps_the_training_table_is_noticed():
    training, synthetic, holdout = thirds(600, 6)
    overlapping = joined(training.at(slice(0, 100)), holdout.at(slice(0, 500)))
    assert "overlaps" in verdict(training, synthetic, overlapping).why


def persons(seed: int, count: int = 150, records: int = 8) -> tuple[CodedTable, np.ndarray]:
    """Records of persons: those of one person are nearly alike."""
    base = people(count, seed)
    unit = np.repeat(np.arange(count), records)
    rng = np.random.default_rng(seed)
    wage = np.minimum(base.columns[2][unit] + rng.integers(0, 3, unit.size), 397)
    return CodedTable(
        FINE, tuple(wage.astype(np.uint16) if i == 2 else c[unit] for i, c in enumerate(base.columns))
    ), unit


def test_where_persons_have_several_records_whole_persons_are_split():
    flagged = 0
    for seed in range(6):
        (training, ids), (holdout, others) = persons(seed), persons(seed + 100)
        made = persons(seed + 200)[0]
        found = verdict(training, made, holdout, units=(ids, others + 10_000))
        assert found.drift.reason == ""
        flagged += found.result == "failed"
    assert flagged == 0
    assert verdict(training, training, holdout, units=(ids, others + 10_000)).result == "failed"
    assert verdict(training, made, holdout).drift.clusters < 1e-6
    assert "units have rows" in verdict(training, made, holdout, units=(ids, others)).why


def odd_tables(rows: int) -> dict[str, tuple[CodedTable, ...]]:
    """Three tables of which hardly anything can be told, by what is odd."""
    training, synthetic, holdout = thirds(rows, 1)
    constant = CodedTable(FINE, tuple(np.zeros(rows, np.uint16) for _ in FINE.attributes))
    return {
        "empty": (training, synthetic.at(slice(0, 0)), holdout),
        "one row": tuple(t.at([0]) for t in (training, synthetic, holdout)),
        "constant": (constant, constant, constant),
        "all alike": (joined(training, training), constant, constant),
        "no columns": (CodedTable(Domain(()), ()),) * 3,
        "tiny holdout": (training, synthetic, holdout.at(slice(0, 3))),
    }


@pytest.mark.parametrize("odd", ["empty", "one row", "constant", "all alike", "no columns"])
def test_bad_input_is_not_judged_and_says_why(odd):
    found = verdict(*odd_tables(300)[odd])
    assert found.result == "not judged" and found.why
    json.dumps(found.to_json(), allow_nan=False)


def test_the_order_of_rows_does_not_matter():
    training, synthetic, holdout = thirds(400, 8)
    turned = [t.at(np.random.default_rng(1).permutation(400)) for t in (training, synthetic, holdout)]
    first, second = verdict(training, synthetic, holdout), verdict(*turned)
    assert (first.result, first.matches, first.nearer.share) == (second.result, second.matches, second.nearer.share)


def test_weights_do_not_depend_on_who_trained():
    training, synthetic, holdout = thirds(400, 9)
    hits = []
    for a, b in ((training, holdout), (holdout, training)):
        found = match_test(Pool.of(a, b), synthetic, np.random.default_rng(0))
        weights = zip(rows_of(a) + rows_of(b), found.weights[found.pool.value], strict=True)
        hits.append({row: weight for row, weight in weights if weight})
    both = hits[0].keys() & hits[1].keys()
    assert both and sum(abs(hits[0][r] - hits[1][r]) <= 2 for r in both) >= 0.9 * len(both)


def test_rows_of_large_tables_are_searched_among_all_real_rows(monkeypatch):
    """Of 6,000 rows of each table only 600 could be compared with each other: nine of ten sources would be missing."""
    assert affordable_search(4_000_000, 35) == (2_000_000, 300)
    assert affordable_search(1_000, 35) == (1_000, affordable_rows(35))
    monkeypatch.setattr("evaluation.verdict.near_rows.COMPARISONS", 4 * len(FINE) * 600**2)
    training, other, holdout = thirds(6_000, 3)
    rng = np.random.default_rng(3)
    mixed = [np.where(rng.random(training.rows) < 0.3, rng.permutation(c), c) for c in training.columns]
    found = verdict(training, CodedTable(FINE, tuple(mixed)), holdout)
    assert found.compared == {"training": 6000, "synthetic": 300, "holdout": 6000}
    assert (found.result, found.drift.reason) == ("failed", "")
    assert verdict(training, other, holdout).result == "passed"
