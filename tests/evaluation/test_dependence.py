"""Dependence that is kept, and outliers that are covered."""

import importlib.util
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

import pipeline
from evaluation.core_metrics import DEPENDENCE
from evaluation.coverage.outlier_coverage import LEAST, TOGETHER, rare_regions
from evaluation.dependence import change, dependence_of, pair_dependence
from evaluation.metric import Inputs, Options
from evaluation.products import inner, times
from evaluation.tvd import distances
from mechanisms.public.coded_table import CodedTable, CountedTable, count_cliques
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.schema.table_schema import Schema, parse_schema
from pipeline.report.table_sections import dependence_section
from tests.bench.grid.errors import kept as kept_by_hand
from tests.bench.grid.errors import kept_of_pair
from tests.evaluation.worlds import coded_files, result_of
from tests.public.table_worlds import coded

DOCS = Path(__file__).parents[2] / "docs"


def table(sizes: list[int], *columns: np.ndarray) -> CodedTable:
    domain = Domain(tuple(Attribute(f"c{i}", s) for i, s in enumerate(sizes)))
    return coded(domain, columns)


def mixture(strength: float, seed: int, rows: int = 5000, reverse: bool = False) -> CodedTable:
    rng = np.random.default_rng(seed)
    a, noise = rng.integers(0, 5, rows), rng.integers(0, 5, rows)
    follows = rng.random(rows) < strength
    return table([5, 5, 3], a, np.where(follows, 4 - a if reverse else a, noise), rng.integers(0, 3, rows))


def dependence_kept(real, synthetic, **options):
    return result_of("dependence", real, synthetic, **options)


@pytest.mark.parametrize("rows", [1, 3000])
def test_rows_that_lie_elsewhere_score_what_they_score_at_hand(rows):
    """Counts over codes are summed over the same buckets; a sample of the rows says the interval alone."""
    rng = np.random.default_rng(7)
    kind = rng.integers(0, 4, rows)
    columns = [(kind * s // 4 + rng.geometric(0.3, rows)) % s for s in (2, 90, 3, 400)]
    domain = Domain(tuple(Attribute(f"c{i}", s, s - 1 if s > 50 else 0) for i, s in enumerate((2, 90, 3, 400))))
    real = coded(domain, columns)
    synthetic = coded(domain, (rng.permutation(c)[: rows // 2 + 1] for c in real.columns))
    sample = real.at(slice(0, rows // 3))
    elsewhere = CountedTable(domain, rows, False, lambda cliques: count_cliques(real, cliques))
    here, there = dependence_kept(real, synthetic), dependence_kept(sample, synthetic, whole=elsewhere)
    assert there.frame.equals(here.frame) and there.to_json() == here.to_json()
    assert rows < 3000 or (len(here.frame) == 5 and here.ends.low < there.ends.high)


@pytest.mark.parametrize("rho", [0.3, 0.6, -0.9])
def test_of_a_normal_distribution_strength_is_about_its_correlation(rho):
    rng = np.random.default_rng(1)
    x = rng.normal(size=40_000)
    y = rho * x + math.sqrt(1 - rho**2) * rng.normal(size=40_000)
    codes = [np.clip((v + 3) / 6 * 30, 0, 29).astype(int) for v in (x, y)]
    (pair,) = dependence_kept(table([30, 30], *codes), table([30, 30], *codes)).frame.itertuples()
    assert abs(rho) - 0.1 < pair.real < abs(rho) + 0.03


def test_what_is_kept_follows_the_strength_and_the_sign():
    real = mixture(0.6, 0)
    scores = {s: dependence_kept(real, mixture(s, 1)).score for s in (0.6, 0.3, 0.0)}
    assert scores[0.6] == pytest.approx(1, abs=0.05)
    assert scores[0.3] == pytest.approx(0.5, abs=0.05)
    assert scores[0.0] == pytest.approx(0, abs=0.05)
    assert dependence_kept(real, mixture(0.9, 1)).score == 1
    assert dependence_kept(real, mixture(0.6, 1, reverse=True)).score == 0
    assert dependence_kept(real, real).score == 1


def test_chance_is_no_dependence_and_nothing_can_be_lost():
    strengths = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        a, b = (np.minimum(rng.geometric(0.2, 500) - 1, 29) for _ in range(2))
        counts = np.zeros((30, 30))
        np.add.at(counts, (a, b), 1)
        strengths.append(pair_dependence(counts, counts)[0])
    assert sum(s > 0 for s in strengths) <= 4
    real = mixture(0.0, 3)
    assert dependence_kept(real, mixture(0.6, 1)).score == 1 and dependence_kept(real, mixture(0.6, 1)).frame.empty


@pytest.mark.parametrize("sizes", [(2, 2), (2, 10), (4, 30)])
@pytest.mark.parametrize("rows", [300, 30_000])
def test_of_two_unrelated_columns_hardly_any_are_called_dependent(sizes, rows):
    """Three deviations of a normal distribution: 1.3 in a thousand. Of two flags one pair in thirteen was, once."""
    rng = np.random.default_rng(5)
    shares = np.outer(*(1 / s * np.ones(s) for s in sizes)).ravel()
    drawn = rng.multinomial(rows, shares, size=2000).reshape(-1, *sizes).astype(float)
    assert sum(pair_dependence(counts, counts)[0] > 0 for counts in drawn) <= 10


def test_of_many_independent_columns_the_strongest_pair_is_chance_and_of_related_ones_it_is_not():
    """Of eleven unrelated columns some pair stood out in most tables, and "0% is kept: weak" was said of it."""
    sizes, depends = [2, 2, 3, 2, 8, 20, 3, 2, 12, 5, 2], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        columns = [rng.integers(0, s, 2000) for s in sizes]
        depends.append(dependence_kept(table(sizes, *columns), table(sizes, *map(rng.permutation, columns))).score < 1)
    assert sum(depends) <= 3
    columns[1] = np.where(rng.random(2000) < 0.15, columns[0], columns[1])
    related = dependence_kept(table(sizes, *columns), table(sizes, *map(rng.permutation, columns)))
    assert related.score < 0.6 and ("c0", "c1") in zip(related.frame["a"], related.frame["b"], strict=True)


def test_values_of_single_records_do_not_decide():
    common = np.diag([3000.0, 3000.0, 0, 0, 0]) + 500
    alone = np.pad(common, (0, 5))
    alone[range(5, 10), range(5, 10)] = 1
    with_them, without = pair_dependence(alone, alone), pair_dependence(common, common)
    forgotten = pair_dependence(alone, np.pad(common, (0, 5)))
    assert with_them[0] == pytest.approx(without[0], abs=0.05)
    assert forgotten[2] > 0.97


def test_the_grid_counts_the_same_by_itself():
    rng = np.random.default_rng(5)
    tables = [mixture(0.6, 0), mixture(0.2, 1)]
    pairs = [("c0", "c1"), ("c0", "c2"), ("c1", "c2")]
    assert dependence_kept(*tables).score == pytest.approx(kept_by_hand(*tables, pairs))
    sizes = [rng.integers(0, 20, 3000) for _ in range(2)]
    linked = table([20, 20], sizes[0], np.where(rng.random(3000) < 0.4, sizes[0], sizes[1]))
    other = table([20, 20], sizes[1], np.where(rng.random(3000) < 0.1, sizes[1], sizes[0]))
    assert dependence_kept(linked, other).score == pytest.approx(kept_by_hand(linked, other, [("c0", "c1")]))
    for one, two in (tables, (linked, other)):
        for pair in dependence_kept(one, two).frame.itertuples():
            assert (pair.real, pair.kept) == pytest.approx(kept_of_pair(one, two, (pair.a, pair.b)))


def test_tables_that_have_no_dependence_to_speak_of_have_a_reason():
    assert "fewer than two" in dependence_kept(table([2], np.arange(2)), table([2], np.arange(2))).reason
    constant = table([2, 2], np.zeros(50, int), np.arange(50) % 2)
    assert dependence_kept(constant, constant).score == 1


SCHEMA = parse_schema(
    {
        "columns": {
            "ward": {"kind": "categorical", "values": ["medicine", "icu"], "missing": True},
            "place": {"kind": "categorical", "values": ["a", "b", "c"], "missing": False},
            "urgent": {"kind": "flag", "missing": False},
            "cost": {"kind": "float", "bins": {"edges": [0, 10, 30]}, "missing": True},
            "days": {"kind": "integer", "bins": {"edges": [1, 2, 4]}, "missing": False},
        }
    },
    where="a test",
)


def changed(first: str, second: str, real: list[list[float]], synthetic: list[list[float]]):
    """What changed most, in words, and in the real and in the synthetic table."""
    return change((SCHEMA[first], SCHEMA[second]), np.array(real), np.array(synthetic)).values()


def test_what_changed_is_told_in_the_figure_that_fits_the_columns():
    label, own, other = changed("ward", "cost", [[9, 1, 5], [2, 8, 0], [1, 1, 0]], [[9, 1, 5], [9, 1, 0], [1, 1, 0]])
    assert label == "mean cost where ward = icu"
    assert own == pytest.approx(0.2 * 5 + 0.8 * 20)
    assert other == pytest.approx(0.9 * 5 + 0.1 * 20)
    odds = changed("urgent", "ward", [[9.5, 0.5], [0.5, 9.5]], [[4.5, 4.5], [4.5, 4.5]])
    assert tuple(odds) == ("odds ratio of urgent = true and ward = icu", 100, 1)
    label, own, other = changed("cost", "days", [[5, 0], [0, 5], [3, 3]], [[0, 5], [5, 0], [0, 0]])
    assert (label, own) == ("correlation of cost and days", pytest.approx(1))
    assert other == pytest.approx(-1)
    label, own, _ = changed("place", "ward", [[8, 2, 0], [5, 5, 0], [5, 5, 0]], [[5, 5, 0], [5, 5, 0], [5, 5, 0]])
    assert label.endswith("where place = a")
    assert sorted([own, 1 - own]) == [pytest.approx(0.2), pytest.approx(0.8)]
    label, _, other = changed("ward", "cost", [[9, 1, 0], [2, 8, 0], [0, 0, 0]], [[9, 1, 0], [0, 0, 0], [0, 0, 0]])
    assert other is None or label == "mean cost where ward = medicine"
    skipped = [[60, 0, 0], [0, 60, 0], [0, 0, 880]], [[100, 20, 0], [20, 100, 0], [0, 0, 760]]
    label, own, other = changed("place", "ward", *skipped)
    assert "where place = a" in label and own == 1 and other == pytest.approx(5 / 6), "of c all are missing in both"


@pytest.fixture(scope="module")
def admissions(tmp_path_factory) -> tuple[CodedTable, Schema]:
    """The made-up register of the guide, by the schema of the guide."""
    place = importlib.util.spec_from_file_location("make_admissions", DOCS / "make_admissions.py")
    maker = importlib.util.module_from_spec(place)
    place.loader.exec_module(maker)
    page = (DOCS / "bring-your-own-table.md").read_text(encoding="utf-8")
    content = re.search(r"file: admissions.yaml -->\n```yaml\n(.*?)```", page, re.DOTALL).group(1)
    schema = parse_schema(yaml.safe_load(content), where="admissions.yaml")
    path = tmp_path_factory.mktemp("admissions") / "admissions.csv"
    maker.register(np.random.default_rng(7)).to_csv(path, index=False)
    return coded_files(schema, path)[0], schema


def with_column(table: CodedTable, name: str, codes: np.ndarray) -> CodedTable:
    at = table.domain.index(name)
    return coded(table.domain, [*table.columns[:at], codes, *table.columns[at + 1 :]])


def test_wards_that_lost_their_costs_score_lower_though_mean_tvd_likes_them_better(admissions):
    real, schema = admissions
    rng = np.random.default_rng(0)
    labels = schema["ward"].labels
    odd = np.isin(real.column("ward"), [labels.index("icu"), labels.index("maternity")])
    cost = real.column("cost").copy()
    cost[odd] = rng.permutation(real.column("cost"))[odd]
    lost = with_column(real, "cost", cost)
    # Every relation is kept here, but January has half of its admissions and the fifth triage is twice as frequent.
    often = np.where(real.column("admitted") == 0, 1, 2) * np.where(real.column("triage") == 4, 2, 1)
    rows = rng.choice(real.rows, real.rows, p=often / often.sum())
    kept = real.at(rows)
    assert distances(real, lost).score < 0.5 * distances(real, kept).score
    poor, good = dependence_kept(real, lost, schema=schema), dependence_kept(real, kept, schema=schema)
    assert poor.score < 0.95 < good.score
    assert (poor.frame["a"][0], poor.frame["b"][0]) == ("ward", "cost")
    assert poor.frame["kept"][0] < 0.1
    first = poor.details["lost"][0]["change"]
    assert first["what"] == "mean cost where ward = icu" and first["real"] > 8000 > 5000 > first["synthetic"]
    section = dependence_section(poor.to_json()).shown
    assert section["lost"].rows[0][0] == "ward × cost"
    assert "mean cost where ward = icu" in section["lost"].rows[0]
    assert not dependence_section(good.to_json()).shown["lost"].rows


@pytest.mark.parametrize("shape", [(7, 3, 2), (900, 40, 30), (50, 300, 200), (0, 2, 2), (4, 0, 3)])
def test_products_in_steps_are_those_of_whole_matrices(shape):
    rows, a, b = shape
    rng = np.random.default_rng(0)
    one, two, other = rng.normal(size=(rows, a)), rng.normal(size=(rows, b)), rng.normal(size=(a, b))
    np.testing.assert_allclose(inner(one, two), one.T @ two, atol=1e-9)
    np.testing.assert_allclose(times(one, other), one @ other, atol=1e-9)


def test_records_of_one_person_are_no_evidence_of_their_own():
    """Twenty copies of each of 100 persons' records: what chance makes of 100 persons depends on nothing."""
    rng = np.random.default_rng(5)
    drawn = [rng.integers(0, 4, 100), rng.integers(0, 4, 100)]
    persons, records = table([4, 4], *drawn), table([4, 4], *(np.repeat(codes, 20) for codes in drawn))
    assert dependence_kept(persons, persons).frame.empty
    assert not dependence_kept(records, records).frame.empty
    held = Inputs(DEPENDENCE, records, records, None, Options(unit=np.repeat(np.arange(100), 20)))
    assert dependence_of(held).frame.empty
    related = table([4, 4], *(np.repeat(drawn[0], 20) for _ in range(2)))
    assert dependence_of(replace(held, real=related, synthetic=related)).score == 1


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


@pytest.mark.slow
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
            codes = np.concatenate(regions) if regions else np.empty(0, int)
            assert len(set(codes.tolist())) == codes.size
            assert all(counts[r].sum() >= LEAST for r in regions)
            assert counts[codes].sum() <= 2 * TOGETHER * counts.sum()


def test_a_mostly_zero_column_has_its_largest_values_as_outliers():
    rng = np.random.default_rng(0)
    gain = np.where(rng.random(4000) < 0.08, rng.integers(100, 9000, 4000), 0)
    real = pd.DataFrame({"gain": gain, "other": rng.integers(0, 5, 4000)})
    zeros = real.assign(gain=np.where(gain > 5000, 0, gain))
    assert 0.3 < scored(real, zeros).score < 0.8
    assert scored(real, real.assign(gain=0)).score == 0
