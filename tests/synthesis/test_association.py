"""Ordered columns that go together by one correlation, where cells were asked as one or are hidden by noise."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal, norm

from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.queries.cell_sums import MergedQuery
from mechanisms.public.queries.query_matrices import Identity, SparseQuery
from synthesis.auto_model import AutoSpec
from synthesis.consistency.association import associated
from synthesis.consistency.evidence import Evidence
from synthesis.consistency.projection import product
from synthesis.contract import synthesize
from tests.synthesis.pgm_worlds import told

CODES, RECORDS = 12, 4000.0
THIRDS = MergedQuery((np.arange(CODES) // 4, np.arange(CODES) // 4))
LINE = Domain((Attribute("x", CODES, CODES), Attribute("y", CODES, CODES)))


def normal_cells(correlation: float) -> np.ndarray:
    """Records of two normal scores in twelve equally likely codes each, by integration."""
    ends = np.clip(norm.ppf(np.linspace(0, 1, CODES + 1)), -8, 8)
    pair = multivariate_normal(cov=[[1, correlation], [correlation, 1]])
    below = pair.cdf(np.stack(np.meshgrid(ends, ends, indexing="ij"), axis=-1))
    return np.maximum(np.diff(np.diff(below, axis=0), axis=1), 0.0) * RECORDS


def evidence(cells, query, stddev=1.0, seed=None) -> Evidence:
    noise = 0.0 if seed is None else np.random.default_rng(seed).normal(0, stddev, query.rows)
    return Evidence(("x", "y"), cells.shape, ((query, stddev),), (query.answer(cells.ravel()) + noise,))


def alone(cells):
    return product([cells.sum(1), cells.sum(0)], cells.sum())


def correlation_of(cells) -> float:
    codes = np.arange(len(cells)) - (len(cells) - 1) / 2
    return float(codes @ cells @ codes / np.sqrt((codes**2 @ cells.sum(1)) * (codes**2 @ cells.sum(0))))


@pytest.mark.parametrize("correlation", [-0.8, -0.3, 0.5, 0.9])
@pytest.mark.parametrize("query", [THIRDS, Identity(CODES**2)], ids=["nine cells", "all cells"])
def test_exact_answers_give_back_the_normal_copula_they_are_of(correlation, query):
    """Over nine cells too, within which independent codes misplace many more records."""
    true = normal_cells(correlation)
    cells = associated(evidence(true, query), alone(true), (CODES, CODES))
    assert np.abs(cells - true).sum() / 2 < 0.012 * RECORDS


def shown(correlation: float, stddev: float) -> list[float]:
    """Correlations of codes, of a hundred noisy answers to all cells."""
    true = normal_cells(correlation)
    noisy = [evidence(true, Identity(CODES**2), stddev, seed) for seed in range(100)]
    return [correlation_of(associated(each, alone(true), (CODES, CODES))) for each in noisy]


def test_noise_above_every_cell_leaves_the_correlation_less_what_of_it_may_be_noise():
    stddev, true = 60.0, correlation_of(normal_cells(0.5))
    error = stddev * CODES / RECORDS  # of a sum of products of standardized codes
    assert normal_cells(0.5).max() < 3 * stddev and np.median(normal_cells(0.5)) < stddev / 2
    assert np.mean(shown(0.5, stddev)) == pytest.approx(true - error**2 / true, abs=0.3 * error)
    assert np.std(shown(0.5, stddev)) == pytest.approx(error, rel=0.3)


def test_a_correlation_within_the_standard_error_of_noise_alone_is_none():
    assert np.mean(np.abs(shown(0.0, 60.0)) < 1e-9) == pytest.approx(0.68, abs=0.14)


@settings(max_examples=40)
@given(st.data())
def test_sides_impossible_cells_and_codes_off_the_line_stay_as_they_are(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    base = rng.gamma(0.5, 50.0, (9, 7)) + 1e-3
    base[np.triu_indices(7, 4)] = 0.0
    query = data.draw(st.sampled_from([Identity(63), MergedQuery((np.arange(9) // 3, np.arange(7) // 2))]))
    noisy = Evidence(("x", "y"), (9, 7), ((query, 5.0),), (rng.normal(20, 40, query.rows),))
    cells = associated(noisy, base, (7, 6))
    assert np.isfinite(cells).all() and (cells >= 0).all() and (cells[base == 0] == 0).all()
    assert np.array_equal(cells[7:], base[7:]) and np.array_equal(cells[:, 6], base[:, 6])
    assert np.allclose(cells.sum(axis=0), base.sum(axis=0), rtol=1e-6)
    assert cells.sum() == pytest.approx(base.sum())


def test_only_two_ordered_columns_of_some_codes_and_separate_answers_have_one():
    true = normal_cells(0.5)
    base, overlapping = alone(true), SparseQuery.of(np.ones((2, CODES**2)))
    assert associated(evidence(true, THIRDS), base, (CODES, 0)) is None
    assert associated(evidence(true, THIRDS), base, (CODES, 2)) is None
    assert associated(evidence(true, THIRDS), base, (CODES, CODES, CODES)) is None
    assert associated(evidence(true, overlapping), base, (CODES, CODES)) is None
    assert associated(evidence(true, THIRDS), base * (np.arange(CODES) == 0), (CODES, CODES)) is None


def rows_of(query, stddev, seed):
    """The default's rows of two columns that are known well, and of the pair as it was asked."""
    true, rng = normal_cells(0.6), np.random.default_rng(seed)
    answer = query.answer(true.ravel()) + rng.normal(0, stddev, query.rows)
    sides = [("x", None, true.sum(axis=1), 1.0), ("y", None, true.sum(axis=0), 1.0)]
    table = synthesize(
        told(LINE, [*sides, ("xy", query, answer, stddev)]), AutoSpec(), rows=int(RECORDS), rng=rng
    ).table
    return np.histogram2d(*table.columns, bins=np.arange(CODES + 1) - 0.5)[0]


@pytest.mark.parametrize(
    ("query", "stddev", "share"), [(THIRDS, 10.0, 0.95), (Identity(CODES**2), 30.0, 0.7)], ids=["coarse", "noisy"]
)
def test_the_defaults_rows_keep_a_correlation_of_large_cells_and_most_of_one_of_noisy_cells(query, stddev, share):
    """Even within the nine cells, or softened cell by cell, rows keep .45 and .15 of a correlation of .58."""
    kept = np.mean([correlation_of(rows_of(query, stddev, seed)) for seed in range(8)])
    assert kept > share * correlation_of(normal_cells(0.6))


def test_a_near_copy_that_was_asked_in_few_cells_stands_beside_many_pairs_that_nobody_measured():
    """A cell weighs by its part of the noise of all answers: as one answer, the pair gives way to those."""
    rng, rows, codes = np.random.default_rng(1), 3000, 40
    names, quarters = "xyabcdef", MergedQuery((np.arange(codes) // 10,) * 2)
    first = rng.integers(0, codes, rows)
    columns = {"x": first, "y": np.clip(first + rng.integers(-1, 2, rows), 0, codes - 1)}
    columns |= {name: rng.integers(0, codes, rows) for name in names[2:]}
    sides = [(n, None, np.bincount(columns[n], minlength=codes), 8.0) for n in names]
    pair = np.histogram2d(columns["x"], columns["y"], bins=np.arange(codes + 1) - 0.5)[0]
    asked = [*sides, ("xy", quarters, quarters.answer(pair.ravel()) + rng.normal(0, 45, 16), 45.0)]
    table = synthesize(
        told(Domain(tuple(Attribute(n, codes, codes) for n in names)), asked), AutoSpec(), rows=rows, rng=rng
    ).table
    assert np.corrcoef(table.column("x"), table.column("y"))[0, 1] > 0.75


def test_codes_that_go_together_in_no_order_keep_what_answers_say_of_them():
    """Middle codes of one with the ends of the other: a correlation of none, and answers far from it."""
    true = np.ones((CODES, CODES))
    true[4:8, 4:8] = 0.0
    true *= RECORDS / true.sum()
    asked = told(LINE, [("x", None, true.sum(1), 1.0), ("y", None, true.sum(0), 1.0), ("xy", None, true, 3.0)])
    table = synthesize(asked, AutoSpec(), rows=int(RECORDS), rng=np.random.default_rng(0)).table
    drawn = np.histogram2d(*table.columns, bins=np.arange(CODES + 1) - 0.5)[0]
    assert np.abs(drawn - true).sum() / 2 < 0.02 * RECORDS


def test_what_other_answers_tell_of_the_inside_of_large_cells_is_kept():
    """A country, its code and its year: rows had neither of two columns that a third one tells of each other."""
    x = np.repeat(np.arange(CODES), int(RECORDS) // CODES)
    columns = {"x": x, "y": x // 4 * 4 + 3 - x % 4, "z": x * 5 % CODES}
    pairs = {
        a + b: np.histogram2d(columns[a], columns[b], bins=np.arange(CODES + 1) - 0.5)[0] for a, b in ("xy", "xz", "yz")
    }
    asked = [(n, None, np.bincount(columns[n]), 1.0) for n in columns]
    asked += [("xz", None, pairs["xz"], 3.0), ("yz", None, pairs["yz"], 3.0)]
    asked.append(("xy", THIRDS, THIRDS.answer(pairs["xy"].ravel()), 3.0))
    domain = Domain((*LINE.attributes, Attribute("z", CODES)))
    table = synthesize(told(domain, asked), AutoSpec(), rows=len(x), rng=np.random.default_rng(0)).table
    drawn = np.histogram2d(table.column("x"), table.column("y"), bins=np.arange(CODES + 1) - 0.5)[0]
    assert np.abs(drawn - pairs["xy"]).sum() / 2 < 0.03 * RECORDS
