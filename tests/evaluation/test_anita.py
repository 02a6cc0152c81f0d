"""ANITA's accuracy and privacy (Platzer 2020): brute force on small tables, buckets, sequences, edge cases."""

import itertools
import json
import math
from functools import partial

import numpy as np
import pandas as pd
import pytest

from evaluation.accuracy.anita_accuracy import bucket_tables, draw_sets, expected_tvd, n_way, quantile_edges
from evaluation.papers.anita.anita_compare import compare
from evaluation.papers.anita.anita_privacy import matches, nearest
from evaluation.papers.anita.anita_sequences import flat_pairs
from evaluation.verdict.near_rows import TILE
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute, Domain
from tests.evaluation.worlds import frame_of, result_of, skewed
from tests.public.table_worlds import coded

TOWN = Domain((Attribute("age", 12, 10), Attribute("sex", 2), Attribute("job", 300), Attribute("year", 5, 5)))
people = partial(skewed, domain=TOWN)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_n_way_distances_are_those_of_the_cross_tabulations(n):
    real, synthetic = people(400, 1), people(300, 2)
    result = n_way(*bucket_tables(real, [synthetic], m=4), n)
    left, right = (frame_of(t) for t in bucket_tables(real, [synthetic], m=4))
    assert result.possible == len(result.frame) == math.comb(4, n)
    assert result.to_json()["worst"][0]["tvd"] == result.frame["tvd"].max()
    for row in result.frame.itertuples():
        p, q = (f.groupby(list(row.attributes)).size() / len(f) for f in (left, right))
        both = pd.concat([p, q], axis=1).fillna(0).to_numpy()
        assert row.l1d == pytest.approx(np.abs(both[:, 0] - both[:, 1]).sum())
        assert row.tvd == pytest.approx(row.l1d / 2)
        hellinger = np.sqrt(((np.sqrt(both[:, 0]) - np.sqrt(both[:, 1])) ** 2).sum() / 2)
        assert row.hellinger == pytest.approx(hellinger)
        assert row.cells == len(both)


def test_identical_and_disjoint_tables():
    real = people(200, 1)
    assert n_way(*bucket_tables(real, [real]), 2).accuracy == 1
    domain = Domain((Attribute("a", 2), Attribute("b", 2)))
    zeros, ones = (coded(domain, [[v] * 5] * 2) for v in (0, 1))
    apart = n_way(*bucket_tables(zeros, [ones]), 2)
    assert apart.frame.loc[0, ["l1d", "tvd", "hellinger"]].tolist() == [2, 1, 1]
    assert apart.accuracy == 0


def test_buckets_of_an_ordinal_attribute_are_quantiles_and_its_missing_stays_apart():
    domain = Domain((Attribute("age", 101, 100),))
    real = coded(domain, [range(100)])
    gap = coded(domain, [[100, 0, 99]])
    one, two = bucket_tables(real, [gap], m=5)
    assert np.bincount(one.columns[0]).tolist() == [25] * 4
    assert two.columns[0].tolist() == [4, 0, 3]
    assert bucket_tables(real, [], m=10)[0].domain["age"].size == 10


def test_a_frequent_value_does_not_make_empty_buckets():
    assert quantile_edges(np.arange(5), np.array([80, 5, 5, 5, 5]), 10).tolist() == [1, 3]
    edges = quantile_edges(np.arange(5), np.array([0, 80, 5, 10, 5]), 10)
    assert 0 not in edges and 1 not in edges
    assert quantile_edges(np.arange(3), np.zeros(3), 10).size == 0


def test_buckets_of_categories_are_the_most_frequent_and_other():
    domain = Domain((Attribute("job", 6),))
    real = coded(domain, [np.repeat(np.arange(5), [1, 9, 5, 7, 1])])
    fresh = coded(domain, [[5, 4, 1]])
    one, two = bucket_tables(real, [fresh], m=4)
    assert one.domain["job"].size == 4
    assert np.bincount(one.columns[0]).tolist() == [9, 5, 7, 2]
    assert two.columns[0].tolist() == [3, 3, 0]
    assert bucket_tables(real, [fresh], m=6)[0].domain["job"].size == 6


def test_a_seeded_subset_of_many_sets():
    names = [f"c{i}" for i in range(40)]
    some = draw_sets(names, 5, limit=50, seed=1)
    assert len(set(some)) == 50 and some == draw_sets(names, 5, limit=50, seed=1)
    assert len(set(draw_sets(names, 8, limit=20, seed=1))) == 20
    assert draw_sets(names[:3], 2, limit=50, seed=1) == list(itertools.combinations(names[:3], 2))


def test_the_floor_is_what_two_samples_score():
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.ones(12))
    pairs = [[rng.multinomial(n, shares) / n for n in (2000, 3000)] for _ in range(300)]
    measured = np.mean([np.abs(a - b).sum() / 2 for a, b in pairs])
    assert expected_tvd(shares, 2000, 3000) == pytest.approx(measured, rel=0.05)


@pytest.mark.parametrize(("cells", "rows", "other"), [(300, 300, 300), (3000, 1500, 1500), (30_000, 1500, 6000)])
def test_the_floor_counts_cells_that_the_table_has_no_record_of(cells, rows, other):
    """Of 1,500 rows over 3,000 cells it was 0.45 where a second sample has 0.58: honest tables read as weak."""
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.ones(cells))
    pairs = [[rng.multinomial(n, shares) / n for n in (rows, other)] for _ in range(20)]
    measured = np.mean([np.abs(a - b).sum() / 2 for a, b in pairs])
    formula = np.mean([expected_tvd(a, rows, other) for a, _ in pairs])
    assert formula == pytest.approx(measured, rel=0.07)


@pytest.mark.parametrize(("rows", "other"), [(0, 5), (5, 0)])
def test_empty_tables_have_a_reason(rows, other):
    out = n_way(*bucket_tables(people(rows, 1), [people(other, 2)]), 2).to_json()
    assert out["accuracy"] is None and "without records" in out["reason"]
    assert n_way(*bucket_tables(people(9, 1), [people(9, 2)]), 5).to_json()["accuracy"] is None


def test_large_marginals_are_counted_by_sorting():
    big = Domain((Attribute("a", 3000), Attribute("b", 3000)))
    rng = np.random.default_rng(0)
    tables = [coded(big, rng.integers(0, 3000, (2, 50))) for _ in range(2)]
    assert n_way(*tables, 2).frame["tvd"].iloc[0] == pytest.approx(1)


def test_pairs_are_subsequent_events_of_one_subject():
    domain = Domain((Attribute("step", 10, 10), Attribute("sex", 2)))
    subject = np.array([0, 1, 0, 0, 2, 1])
    step = np.array([3, 7, 1, 2, 9, 8], np.uint8)
    events = coded(domain, [step, subject == 1])
    flat, single = flat_pairs(events, subject, step, ["sex"], seed=0)
    assert flat.domain.names == ("step", "step (next)", "sex")
    assert (flat.rows, single) == (2, 1)
    assert (flat.columns[1] - flat.columns[0]).tolist() == [1, 1]
    assert flat.column("sex").tolist() == [0, 1]


def test_sequential_accuracy_sees_what_follows_what():
    rng = np.random.default_rng(0)
    domain = Domain((Attribute("state", 3),))
    subject = np.repeat(np.arange(2000), 4)
    start = np.repeat(rng.integers(0, 3, 2000), 4)
    cyclic = (start + np.tile(np.arange(4), 2000)) % 3
    shuffled = cyclic.reshape(2000, 4)[:, rng.permutation(4)].ravel()
    mixed = rng.integers(0, 3, 8000)
    tables = [coded(domain, [c]) for c in (cyclic, shuffled, mixed)]
    same = result_of("anita_sequences", tables[0], tables[0], subject=(subject, subject))
    assert same.score == 1
    fake = result_of("anita_sequences", tables[0], tables[2], subject=(subject, subject))
    one, two = (part["accuracy"] for part in fake.details["n_way"])
    assert one > 0.95 > 0.4 > two
    alone = coded(domain, [cyclic[:5]])
    none = result_of("anita_sequences", alone, alone, subject=(np.arange(5), np.arange(5)))
    assert none.score is None and none.details["subjects_with_one_event"] == {"real": 5, "synthetic": 5}
    assert "reason" in none.to_json()


def gap(attribute: Attribute, a: int, b: int, kind: str) -> float:
    if a == b:
        return 0.0
    k = attribute.ordered
    return abs(a - b) / (k - 1) if kind == "mixed" and max(a, b) < k else 1.0


@pytest.mark.some(2)
@pytest.mark.parametrize("kind", ["hamming", "mixed"])
def test_nearest_is_brute_force(kind):
    asked, known = people(60, 1), people(TILE + 80, 2)
    found = nearest(asked, known, kind=kind)
    for i in range(asked.rows):
        each = [
            sum(
                gap(a, int(x[i]), int(y[j]), kind)
                for a, x, y in zip(TOWN.attributes, asked.columns, known.columns, strict=True)
            )
            for j in range(known.rows)
        ]
        two = sorted(each)[:2]
        assert (found.first[i], found.second[i]) == pytest.approx(tuple(two), abs=1e-5)
        assert each[found.index[i]] == pytest.approx(two[0], abs=1e-5)


@pytest.mark.slow
def test_ratios_at_zero_distances_and_with_a_single_reference():
    domain = Domain((Attribute("a", 3), Attribute("b", 3)))
    known = coded(domain, [[0, 0, 1], [0, 0, 1]])
    asked = coded(domain, [[0, 1, 2, 0], [0, 1, 2, 2]])
    found = nearest(asked, known)
    assert found.first.tolist() == [0, 0, 2, 1]
    assert found.ratio.tolist() == [1, 0, 1, 1]
    one = known.at(slice(0, 1))
    assert np.isnan(nearest(asked, one).ratio).all()
    none = known.at(slice(0, 0))
    assert np.isinf(nearest(asked, none).first).all()


def test_matches_are_distances_of_zero_and_one():
    asked, known = people(400, 1), people(500, 2)
    found, counted = nearest(asked, known), matches(asked, known)
    assert (counted["exact"], counted["all_but_one"]) == ((found.first == 0).sum(), (found.first == 1).sum())
    assert counted["exact"] > 0
    single = Domain((Attribute("a", 4),))
    assert matches(skewed(5, 1, single), skewed(3, 2, single))["all_but_one"] == 0


def privacy(training, synthetic, holdout=None, **settings):
    return result_of("anita_privacy", training, synthetic, settings, holdout=holdout)


def test_a_copy_of_training_is_caught_and_fresh_records_pass():
    real = people(1500, 0)
    training, holdout, fresh = (real.at(slice(i * 500, (i + 1) * 500)) for i in range(3))
    copied = privacy(training, training, holdout)
    assert copied.passed is False
    assert copied.closer.share.p < 1e-6
    assert copied.synthetic_matches["exact"] == 500
    honest = privacy(training, fresh, holdout)
    assert honest.passed is True
    assert honest.closer.share.low < 0.5 < honest.closer.share.high
    near = honest.closer
    assert near.closer_to_training + near.tie + near.closer_to_holdout == pytest.approx(1)


def test_fresh_records_are_rejected_rarely():
    rejected = 0
    for seed in range(60):
        real = people(300, seed)
        parts = [real.at(slice(i, None, 3)) for i in range(3)]
        rejected += privacy(*parts).passed is False
    assert rejected <= 6


def test_noisy_outliers_pass_dcr_and_fail_nndr():
    """Section 3: outliers with an average level of noise keep an average DCR; the ratio gives them away."""
    rng = np.random.default_rng(0)
    domain = Domain(tuple(Attribute(f"c{i}", 30) for i in range(12)))
    training, holdout = (coded(domain, rng.integers(0, 30, (12, 400))) for _ in range(2))
    noisy = [np.where(np.arange(12)[:, None] < 8, np.stack(training.columns), 0)[i] for i in range(12)]
    result = privacy(training, CodedTable(domain, tuple(noisy)), holdout)
    assert result.nndr.passed is False
    assert result.nndr.smaller.value > 0.9


def test_ties_count_half():
    values = np.array([1.0, 1, 2])
    assert compare(values, values).smaller.value == pytest.approx(0.5)
    assert compare(values, np.full(3, 1.0)).ties == pytest.approx(2 / 3)
    same = compare(np.zeros(5), np.zeros(5))
    assert same.smaller.p is None and same.passed is True
    assert compare(values, np.array([np.nan])).passed is None


def test_without_holdout_and_without_rows_there_is_no_verdict():
    alone = privacy(people(50, 1), people(50, 2))
    assert alone.passed is None and "no holdout" in alone.to_json()["dcr"]["reason"]
    json.dumps(alone.to_json(), allow_nan=False)
    nothing = privacy(people(50, 1), people(9, 2), people(0, 3))
    assert nothing.passed is None and "without records" in nothing.to_json()["reason"]


def test_an_overlapping_holdout_is_warned_of():
    fine = Domain(tuple(Attribute(f"c{i}", 50) for i in range(6)))
    training = skewed(600, 1, fine)
    part = CodedTable(fine, tuple(np.concatenate([c[:200], c[:200] * 0 + 1]) for c in training.columns))
    found = privacy(training, skewed(300, 2, fine), part)
    assert "overlap" in found.warnings[0] and found.passed is None
    assert privacy(training, skewed(300, 2, fine), skewed(300, 3, fine)).warnings == ()


def test_columns_samples_and_buckets_are_said():
    tables = [people(300, i) for i in range(3)]
    some = privacy(*tables, distance_columns=["year", "sex"], max_rows=100)
    assert some.columns == ("sex", "year")
    assert some.rows == {"training": 100, "synthetic": 100, "holdout": 100}
    near = privacy(*tables, max_rows=100, distance_rows=40)
    assert near.rows == some.rows and near.measured == dict.fromkeys(near.rows, 40)
    assert near.dcr.synthetic.size == 40 and near.synthetic_matches["rows"] == 100
    assert privacy(*tables, distance_buckets=3).dcr.synthetic.max() <= 4
    assert len(privacy(*tables).dcr.curve()) == 101
