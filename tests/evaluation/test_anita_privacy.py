"""ANITA's distances (Platzer 2020, section 3): brute force, zero distances, ties, verdicts, matches."""

import json

import numpy as np
import pytest

from evaluation.papers.anita.anita_compare import compare
from evaluation.papers.anita.anita_distances import TILE, matches, nearest
from evaluation.papers.anita.anita_privacy import privacy
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute, Domain

TOWN = Domain((Attribute("age", 12, 10), Attribute("sex", 2), Attribute("job", 300), Attribute("year", 5, 5)))


def people(rows: int, seed: int, domain: Domain = TOWN) -> CodedTable:
    rng = np.random.default_rng(seed)
    return CodedTable(domain, tuple((rng.random(rows) ** 2 * a.size).astype(np.uint16) for a in domain.attributes))


def gap(attribute: Attribute, a: int, b: int, kind: str) -> float:
    if a == b:
        return 0.0
    k = attribute.ordered
    return abs(a - b) / (k - 1) if kind == "mixed" and max(a, b) < k else 1.0


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


def test_ratios_at_zero_distances_and_with_a_single_reference():
    domain = Domain((Attribute("a", 3), Attribute("b", 3)))
    known = CodedTable(domain, tuple(np.array(c, np.uint8) for c in ([0, 0, 1], [0, 0, 1])))
    asked = CodedTable(domain, tuple(np.array(c, np.uint8) for c in ([0, 1, 2, 0], [0, 1, 2, 2])))
    found = nearest(asked, known)
    assert found.first.tolist() == [0, 0, 2, 1]
    assert found.ratio.tolist() == [1, 0, 1, 1]
    one = CodedTable(domain, tuple(c[:1] for c in known.columns))
    assert np.isnan(nearest(asked, one).ratio).all()
    none = CodedTable(domain, tuple(c[:0] for c in known.columns))
    assert np.isinf(nearest(asked, none).first).all()


def test_matches_are_distances_of_zero_and_one():
    asked, known = people(400, 1), people(500, 2)
    found, counted = nearest(asked, known), matches(asked, known)
    assert (counted.exact, counted.all_but_one) == ((found.first == 0).sum(), (found.first == 1).sum())
    assert counted.exact > 0
    single = Domain((Attribute("a", 4),))
    assert matches(people(5, 1, single), people(3, 2, single)).all_but_one == 0


def test_a_copy_of_training_is_caught_and_fresh_records_pass():
    real = people(1500, 0)
    training, holdout, fresh = (
        CodedTable(TOWN, tuple(c[i * 500 : (i + 1) * 500] for c in real.columns)) for i in range(3)
    )
    copied = privacy(training, training, holdout)
    assert copied.passed is False
    assert copied.closer.share.p < 1e-6
    assert copied.synthetic_matches.exact == 500
    honest = privacy(training, fresh, holdout)
    assert honest.passed is True
    assert honest.closer.share.low < 0.5 < honest.closer.share.high
    assert honest.closer.training + honest.closer.tie + honest.closer.holdout == pytest.approx(1)
    json.dumps(honest.to_json(), allow_nan=False)
    json.dumps(copied.to_json(), allow_nan=False)


def test_fresh_records_are_rejected_rarely():
    rejected = 0
    for seed in range(60):
        real = people(300, seed)
        parts = [CodedTable(TOWN, tuple(c[i::3] for c in real.columns)) for i in range(3)]
        rejected += privacy(*parts).passed is False
    assert rejected <= 6


def test_noisy_outliers_pass_dcr_and_fail_nndr():
    """Section 3: outliers with an average level of noise keep an average DCR; the ratio gives them away."""
    rng = np.random.default_rng(0)
    domain = Domain(tuple(Attribute(f"c{i}", 30) for i in range(12)))
    training, holdout = (CodedTable(domain, tuple(rng.integers(0, 30, (12, 400)).astype(np.uint8))) for _ in range(2))
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
    nothing = privacy(people(50, 1), people(0, 2), people(9, 3))
    assert nothing.passed is None and "without records" in nothing.to_json()["reason"]


def test_an_overlapping_holdout_is_warned_of():
    fine = Domain(tuple(Attribute(f"c{i}", 50) for i in range(6)))
    training = people(600, 1, fine)
    part = CodedTable(fine, tuple(np.concatenate([c[:200], c[:200] * 0 + 1]) for c in training.columns))
    found = privacy(training, people(300, 2, fine), part)
    assert "overlap" in found.warnings[0] and found.passed is None
    assert privacy(training, people(300, 2, fine), people(300, 3, fine)).warnings == ()


def test_columns_samples_and_buckets_are_said():
    tables = [people(300, i) for i in range(3)]
    some = privacy(*tables, columns=["year", "sex"], max_rows=100)
    assert some.columns == ("sex", "year")
    assert some.rows == {"training": 100, "synthetic": 100, "holdout": 100}
    near = privacy(*tables, max_rows=100, distance_rows=40)
    assert near.rows == some.rows and near.measured == dict.fromkeys(near.rows, 40)
    assert near.dcr.synthetic.size == 40 and near.synthetic_matches.rows == 100
    assert privacy(*tables, m=3).dcr.synthetic.max() <= 4
    assert len(privacy(*tables).dcr.curve()) == 101
