"""ANITA's accuracy (Platzer 2020): brute force on small tables, buckets, sequences, edge cases."""

import itertools
import json
import math

import numpy as np
import pandas as pd
import pytest

from evaluation.accuracy.anita_accuracy import draw_sets, expected_tvd, n_way
from evaluation.accuracy.anita_buckets import bucket_tables, quantile_edges
from evaluation.papers.anita.anita_sequences import Sequences, flat_pairs, sequential_accuracy
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute, Domain

TOWN = Domain((Attribute("age", 12, 10), Attribute("sex", 2), Attribute("job", 15)))


def people(rows: int, seed: int, domain: Domain = TOWN) -> CodedTable:
    rng = np.random.default_rng(seed)
    return CodedTable(domain, tuple((rng.random(rows) ** 2 * a.size).astype(np.uint8) for a in domain.attributes))


def frame(table: CodedTable) -> pd.DataFrame:
    return pd.DataFrame(dict(zip(table.domain.names, table.columns, strict=True)))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_n_way_distances_are_those_of_the_cross_tabulations(n):
    real, synthetic = people(400, 1), people(300, 2)
    result = n_way(real, synthetic, n, m=4)
    left, right = (frame(t) for t in bucket_tables(real, [synthetic], m=4))
    assert result.possible == len(result.frame) == math.comb(3, n)
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
    assert n_way(real, real, 2).accuracy == 1
    domain = Domain((Attribute("a", 2), Attribute("b", 2)))
    zeros, ones = (CodedTable(domain, (np.full(5, v, np.uint8),) * 2) for v in (0, 1))
    apart = n_way(zeros, ones, 2)
    assert apart.frame.loc[0, ["l1d", "tvd", "hellinger"]].tolist() == [2, 1, 1]
    assert apart.accuracy == 0


def test_buckets_of_an_ordinal_attribute_are_quantiles_and_its_missing_stays_apart():
    domain = Domain((Attribute("age", 101, 100),))
    real = CodedTable(domain, (np.arange(100, dtype=np.uint8),))
    gap = CodedTable(domain, (np.array([100, 0, 99], np.uint8),))
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
    real = CodedTable(domain, (np.repeat(np.arange(5), [1, 9, 5, 7, 1]).astype(np.uint8),))
    fresh = CodedTable(domain, (np.array([5, 4, 1], np.uint8),))
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


def test_matrix_worst_and_json():
    result = n_way(people(300, 1), people(300, 2), 2)
    matrix = result.matrix()
    assert matrix.loc["age", "sex"] == matrix.loc["sex", "age"]
    assert np.isnan(matrix.loc["age", "age"])
    assert result.worst(1)["tvd"].iloc[0] == result.frame["tvd"].max()
    json.dumps(result.to_json(), allow_nan=False)


@pytest.mark.parametrize(("rows", "other"), [(0, 5), (5, 0)])
def test_empty_tables_have_a_reason(rows, other):
    out = n_way(people(rows, 1), people(other, 2), 2).to_json()
    assert out["accuracy"] is None and "without records" in out["reason"]
    assert n_way(people(9, 1), people(9, 2), 4).to_json()["accuracy"] is None


def test_large_marginals_are_counted_by_sorting():
    big = Domain((Attribute("a", 3000), Attribute("b", 3000)))
    rng = np.random.default_rng(0)
    tables = [CodedTable(big, tuple(rng.integers(0, 3000, 50).astype(np.uint16) for _ in "ab")) for _ in range(2)]
    assert n_way(*tables, 2, m=None).frame["tvd"].iloc[0] == pytest.approx(1)


def test_pairs_are_subsequent_events_of_one_subject():
    domain = Domain((Attribute("step", 10, 10), Attribute("sex", 2)))
    subject = np.array([0, 1, 0, 0, 2, 1])
    step = np.array([3, 7, 1, 2, 9, 8], np.uint8)
    events = CodedTable(domain, (step, (subject == 1).astype(np.uint8)))
    people_ = CodedTable(Domain((Attribute("home", 3),)), (np.array([2, 0, 1], np.uint8),))
    flat, single = flat_pairs(Sequences(events, subject, order=step, fixed=["sex"], subjects=people_))
    assert flat.domain.names == ("step", "step (next)", "sex", "home")
    assert (flat.rows, single) == (2, 1)
    assert (flat.columns[1] - flat.columns[0]).tolist() == [1, 1]
    assert flat.column("sex").tolist() == [0, 1] and flat.column("home").tolist() == [2, 0]


def test_sequential_accuracy_sees_what_follows_what():
    rng = np.random.default_rng(0)
    domain = Domain((Attribute("state", 3),))
    subject = np.repeat(np.arange(2000), 4)
    start = np.repeat(rng.integers(0, 3, 2000), 4)
    cyclic = ((start + np.tile(np.arange(4), 2000)) % 3).astype(np.uint8)
    shuffled = cyclic.reshape(2000, 4)[:, rng.permutation(4)].ravel()
    mixed = rng.integers(0, 3, 8000).astype(np.uint8)
    tables = [Sequences(CodedTable(domain, (c,)), subject) for c in (cyclic, shuffled, mixed)]
    same = sequential_accuracy(tables[0], tables[0])
    assert same.score == 1
    fake = sequential_accuracy(tables[0], tables[2])
    assert fake.parts[0].accuracy > 0.95 > 0.4 > fake.parts[1].accuracy
    json.dumps(fake.to_json(), allow_nan=False)
    alone = Sequences(CodedTable(domain, (cyclic[:5],)), np.arange(5))
    none = sequential_accuracy(alone, alone)
    assert none.score is None and none.single == (5, 5)
    assert "reason" in none.to_json()
