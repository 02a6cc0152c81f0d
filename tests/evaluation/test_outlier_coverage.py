"""Outlier coverage: tails and rare values of single columns, and what the synthetic table has of them."""

import numpy as np
import pandas as pd
import pytest

import pipeline
from evaluation.coverage.outlier_coverage import LEAST, TOGETHER, rare_regions


def scored(real, synthetic):
    return pipeline.score(real, synthetic, None, "metrics=[outlier_coverage]").outcomes["outlier_coverage"]


def wages(rows, seed):
    """Lognormal wages with a long upper tail, and some rare jobs."""
    rng = np.random.default_rng(seed)
    jobs = rng.choice([f"job {i}" for i in range(30)], rows, p=np.r_[[0.24] * 4, [0.04 / 26] * 26])
    return pd.DataFrame({"wage": np.round(rng.lognormal(3, 0.8, rows), 1), "job": jobs})


def test_a_table_without_tails_and_rare_values_covers_nothing():
    real = wages(20_000, 1)
    kept = real[(real["wage"] < real["wage"].quantile(0.9)) & real["job"].isin(["job 0", "job 1", "job 2", "job 3"])]
    found = scored(real, kept.sample(20_000, replace=True, random_state=0))
    assert found.score == 0
    assert found.reading.label == "weak"


def test_a_second_sample_covers_what_is_said_it_would():
    honest = [scored(wages(20_000, 2 * i), wages(20_000, 2 * i + 1)) for i in range(8)]
    assert {o.reading.label for o in honest} == {"good"}
    mean = np.mean([o.score for o in honest])
    assert mean == pytest.approx(np.mean([o.reading.ends.honest for o in honest]), abs=0.02)
    assert 0.7 < mean < 0.99


def test_half_the_outliers_are_half_covered_and_more_than_all_is_no_merit():
    body = (np.arange(960) / 10).tolist()
    real = pd.DataFrame({"x": body + [10_000] * 20, "y": ["a", "b"] * 490})
    half = pd.DataFrame({"x": body + [10_000] * 10 + body[:10], "y": ["a", "b"] * 490})
    twice = pd.DataFrame({"x": body + [10_000] * 20 + [20_000] * 20, "y": ["a", "b"] * 500})
    assert scored(real, half).score == pytest.approx(0.5)
    assert scored(real, twice).score == 1
    four = pd.DataFrame({"x": body + [10_000] * (LEAST - 1), "y": ["a", "b"] * ((960 + LEAST - 1) // 2)})
    assert "no column has rare values" in scored(four, four).reason


def test_regions_are_disjoint_small_and_never_those_of_few_records():
    rng = np.random.default_rng(3)
    for _ in range(50):
        counts = rng.integers(0, 40, 60) * (rng.random(60) < 0.5)
        numbers = np.sort(rng.standard_cauchy(60))
        for regions in (rare_regions(counts), rare_regions(counts, numbers)):
            codes = np.concatenate([r.codes for r in regions]) if regions else np.empty(0, int)
            assert len(set(codes.tolist())) == codes.size
            assert all(counts[r.codes].sum() >= LEAST for r in regions)
            assert counts[codes].sum() <= 2 * TOGETHER * counts.sum()


def test_a_mostly_zero_column_has_its_largest_values_as_outliers():
    rng = np.random.default_rng(0)
    gain = np.where(rng.random(4000) < 0.08, rng.integers(100, 9000, 4000), 0)
    real = pd.DataFrame({"gain": gain, "other": rng.integers(0, 5, 4000)})
    zeros = real.assign(gain=np.where(gain > 5000, 0, gain))
    assert 0.3 < scored(real, zeros).score < 0.8
    assert scored(real, real.assign(gain=0)).score == 0
