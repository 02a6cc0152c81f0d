"""The default synthesizer: its model, its triples, its changed codes; and mbi's in its place."""

import importlib.util
from functools import partial

import numpy as np
import pytest

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.marginals import count_cliques
from mechanisms.public.queries.merged_cells import MergedQuery
from mechanisms.public.queries.query_matrices import Identity, SparseQuery
from mechanisms.public.release import Measurements, NoisyMarginal
from synthesis.auto_model import AutoSpec, with_likely_columns
from synthesis.consistency.agree import Target
from synthesis.consistency.evidence import gathered
from synthesis.independent import IndependentSpec, independent_marginals
from synthesis.papers.mbi_extra import MbiSpec
from synthesis.pgm.usefulness import _shown
from synthesis.synthesize import synthesize
from synthesis.unmeasured import unmeasured
from tests.bench.grid.errors import distance as off
from tests.synthesis.pgm_worlds import noisy_counts

WORLD = Domain(tuple(Attribute(n, 6) for n in "abcd"))
PAIRS = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")]
ONES = [(n,) for n in "abcd"]
answers = partial(noisy_counts, seed=1)


def ring(rows=20_000, seed=0) -> CodedTable:
    """Each column follows the one before, and the last the first: no tree holds it."""
    rng = np.random.default_rng(seed)
    a, c = rng.integers(0, 6, rows), rng.integers(0, 6, rows)
    b = np.where(rng.random(rows) < 0.5, a, c)
    d = np.where(rng.random(rows) < 0.5, c, 5 - a)
    return CodedTable(WORLD, tuple(x.astype(np.uint8) for x in (a, b, c, d)))


def made(measurements, seed=2, rows=20_000, **settings):
    return synthesize(measurements, AutoSpec(**settings), rows=rows, rng=np.random.default_rng(seed)).table


def test_without_joint_answers_rows_are_independent_columns_as_they_are_likely():
    known = Measurements(WORLD, answers(ring(), ONES, 5.0))
    draw = {"rows": 500, "rng": np.random.default_rng(2)}
    table, independent = made(known, rows=500), synthesize(with_likely_columns(known), IndependentSpec(), **draw).table
    assert all(np.array_equal(x, y) for x, y in zip(table.columns, independent.columns, strict=True))


def test_precise_answers_are_met_by_the_model_and_by_changed_codes_alike_and_lost_without_either():
    real = ring()
    known = Measurements(WORLD, answers(real, ONES + PAIRS, 2.0))

    def worst(cells, **settings):
        return max(off(made(known, max_cells=cells, **settings), real, p) for p in PAIRS)

    two_pairs = 24 + 2 * 36
    assert worst(500_000) < 0.02 and worst(two_pairs) < 0.02 and worst(two_pairs, descents=0) > 0.1
    assert all(worst(cells, descents=16) < 0.05 for cells in (1, 2)), "fewer than its columns have"


def chained(rows=30_000, size=12, seed=3) -> tuple[CodedTable, Domain]:
    """Three columns that nearly repeat each other, and a fourth that follows the third a little."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, size, rows)
    b, c = (np.where(rng.random(rows) < 0.9, a, rng.integers(0, size, rows)) for _ in "bc")
    d = np.where(rng.random(rows) < 0.4, c, rng.integers(0, size, rows))
    domain = Domain(tuple(Attribute(n, size) for n in "abcd"))
    return CodedTable(domain, tuple(x.astype(np.uint8) for x in (a, b, c, d))), domain


def test_near_copies_are_seen_whole_and_kept_where_noise_hides_what_their_empty_cells_miss():
    """A hundred codes that nearly repeat: each of 9,900 cells misses less than its noise, and all of them a half."""
    rng = np.random.default_rng(4)
    a, c = rng.integers(0, 100, 100_000), rng.integers(0, 3, 100_000)
    b = np.where(rng.random(a.size) < 0.95, a, rng.integers(0, 100, a.size))
    domain = Domain((Attribute("a", 100), Attribute("b", 100), Attribute("c", 3)))
    real = CodedTable(domain, tuple(x.astype(np.uint8) for x in (a, b, c)))
    known = Measurements(domain, answers(real, [("a",), ("b",), ("c",), ("a", "b")], 30.0))
    (pair,) = [e for e in gathered(domain, known.answers) if len(e.clique) == 2]
    independent = independent_marginals(known)(pair.clique)
    true = np.abs(count_cliques(real, [("a", "b")])[0] - independent.ravel()).sum()
    assert _shown(pair, independent) == pytest.approx(true, rel=0.05), "by what rises above noise alone it is a half"
    outside = made(known, rows=100_000, max_cells=1)
    assert off(outside, real, ("a", "b")) < 0.1, "targets that halve their peaks leave .2 and more"


@pytest.mark.parametrize("cells", [1_800, 100])  # a triple and nothing else; not even one pair
def test_a_forest_of_pairs_is_in_the_model_before_a_triple_and_beyond_its_cells(cells):
    real, domain = chained()
    known = Measurements(domain, answers(real, [*ONES, ("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")], 2.0))
    table = made(known, rows=30_000, max_cells=cells, descents=0)
    assert max(off(table, real, p) for p in [("c", "d"), ("a", "b")]) < 0.03


def test_the_predicted_memory_knows_the_largest_forest_up_to_eight_times_the_models_cells():
    def cells(*sizes):
        domain = Domain(tuple(Attribute(f"c{i}", n) for i, n in enumerate(sizes)))
        spec = AutoSpec(max_cells=1_000)
        return (spec.predicted_bytes(domain, [], 0) - AutoSpec(max_cells=1).predicted_bytes(domain, [], 0)) // 112

    small, middle, large = cells(5, 5, 5), cells(50, 20, 10), cells(500, 500)
    assert small == pytest.approx(1_000, abs=10)
    assert middle == pytest.approx(1.5 * (80 + 50 * 30), abs=10)
    assert large == pytest.approx(8_000, abs=10)


def test_answers_that_are_noise_change_nothing():
    """A pair that the model has no room for, asked with noise far above its counts: rows are the model's own."""
    real = ring()
    precise = answers(real, [*ONES, ("a", "b")], 2.0)
    drowned = answers(real, [("c", "d")], 20_000.0, seed=5)
    with_noise = made(Measurements(WORLD, precise + drowned), max_cells=24 + 36, descents=8)
    independent = np.multiply.outer(*(count_cliques(real, [(n,)])[0] / real.rows for n in "cd")).ravel()
    shown = count_cliques(with_noise, [("c", "d")])[0] / with_noise.rows
    assert 0.5 * np.abs(shown - independent).sum() < 0.05


@pytest.mark.filterwarnings("error")
def test_a_pair_whose_answers_are_all_below_zero_tells_nothing():
    columns, (pair,) = answers(ring(), ONES, 5.0), answers(ring(), [("a", "c")], 300.0)
    ring_pair = answers(ring(), [("a", "b")], 5.0)
    lost = NoisyMarginal(pair.clique, pair.query, np.full(36, -40_000.0), "gaussian", 3_000.0, "e")
    table = made(Measurements(WORLD, (*columns, *ring_pair, lost)))
    assert off(table, ring(), ("a", "b")) < 0.05 and off(table, ring(), ("c",)) < 0.05


def test_answers_over_merged_values_are_taken():
    real = ring()
    labels = np.array([0, 0, 1, 1, 2, 2])
    query = MergedQuery((labels, labels))
    counts = query.answer(count_cliques(real, [("a", "d")])[0].astype(float))
    merged = NoisyMarginal(("a", "d"), query, counts, "gaussian", 1.0, "e")
    known = Measurements(WORLD, (*answers(real, ONES, 2.0), merged))
    for cells in (500_000, 24):
        table = made(known, max_cells=cells)
        ours = query.answer(count_cliques(table, [("a", "d")])[0].astype(float))
        assert np.abs(ours - counts).sum() / 2 / real.rows < 0.02


def test_a_pair_over_merged_values_shows_no_more_because_it_was_asked_in_parts():
    """Four answers of twice the noise tell as much as one."""
    real, rng = ring(), np.random.default_rng(4)
    labels = np.array([0, 0, 1, 1, 2, 2])
    counts = MergedQuery((labels, labels)).answer(count_cliques(real, [("a", "d")])[0].astype(float))

    def shown(parts):
        stddev = 20.0 * parts**0.5
        asked = [(MergedQuery((labels.copy(), labels.copy())), rng.normal(counts, stddev)) for _ in range(parts)]
        merged = [NoisyMarginal(("a", "d"), q, values, "gaussian", stddev, "e") for q, values in asked]
        known = Measurements(WORLD, (*answers(real, ONES, 2.0), *merged))
        (pair,) = (e for e in gathered(WORLD, known.answers) if len(e.clique) == 2)
        return _shown(pair, independent_marginals(known)(("a", "d")))

    assert shown(4) == pytest.approx(shown(1), rel=0.05)


def grown(rows=4_000, seed=5) -> CodedTable:
    """Three columns that each follow a fourth, and nothing else."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 6, rows)
    b, c, d = (np.where(rng.random(rows) < 0.5, a, rng.integers(0, 6, rows)) for _ in "bcd")
    return CodedTable(WORLD, tuple(x.astype(np.uint8) for x in (a, b, c, d)))


def test_rows_follow_the_model_in_pairs_and_triples_that_nobody_measured(monkeypatch):
    known = Measurements(WORLD, answers(grown(), [*ONES, ("a", "b"), ("a", "c"), ("a", "d")], 1.0))
    model = AutoSpec().model(known)
    apart = [("b", "c"), ("c", "d"), ("b", "c", "d"), ("a", "b", "c")]

    def far(table):
        return [
            np.abs(count_cliques(table, [c])[0] - model.model.marginal(c) * table.rows / model.total).sum() / table.rows
            for c in apart
        ]

    drawn = far(made(known, rows=4_000))
    monkeypatch.setattr("synthesis.auto_model.unmeasured", lambda model, targets: ())
    alone = far(made(known, rows=4_000))
    shares = np.array(drawn) / np.array(alone)
    assert shares.max() < 0.75 and shares.mean() < 0.6, shares


def test_a_triple_whose_targets_leave_no_cell_is_not_followed():
    known = Measurements(WORLD, answers(grown(), [*ONES, ("a", "b"), ("b", "c")], 1.0))
    model = AutoSpec().model(known).model

    def held(clique, axis, code):
        values = np.zeros(WORLD.shape(clique))
        values[(slice(None),) * axis + (code,)] = 1.0
        return Target(clique, values * model.total / values.sum(), 1.0)

    apart = [held(("a", "b"), 1, 0), held(("b", "c"), 0, 1)]
    found = unmeasured(model, apart)
    assert found and ("a", "b", "c") not in [t.clique for t in found]
    assert all(np.isfinite(t.values).all() and t.values.sum() > 0 for t in found)


def test_a_pair_of_far_more_cells_than_records_is_not_followed():
    known = Measurements(WORLD, answers(grown(rows=8), [*ONES, ("a", "b")], 0.1))
    targets = AutoSpec().model(known).targets
    assert all(WORLD.cells(t.clique) <= 36 for t in targets)


def test_rows_that_differ_from_the_model_by_chance_alone_are_conditioned_exactly():
    known = Measurements(WORLD, answers(grown(), [*ONES, ("a", "b"), ("a", "c")], 1.0))
    model = AutoSpec().model(known)
    assert model.targets and model.given({"a": np.array([1.0, 0, 0, 0, 0, 0])}) is not None


THERE = importlib.util.find_spec("mbi") is not None
TOWN = Domain((Attribute("a", 2), Attribute("b", 3)))
TRUTH = np.array([[40.0, 10.0, 0.0], [0.0, 10.0, 40.0]])


def known() -> Measurements:
    halves = SparseQuery.of(np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]))
    return Measurements(
        TOWN,
        (
            NoisyMarginal(("a", "b"), Identity(6), TRUTH.ravel(), "gaussian", 1.0, "0"),
            NoisyMarginal(("b",), halves, halves.answer(TRUTH.sum(axis=0)), "gaussian", 1.0, "1"),
        ),
    )


@pytest.mark.skipif(THERE, reason="the library is installed")
def test_without_the_library_the_error_says_how_to_get_it():
    with pytest.raises(UserError, match="pip install mbi"):
        MbiSpec().make(known(), rows=10, rng=np.random.default_rng(0))


@pytest.mark.skipif(not THERE, reason="needs the optional library mbi")
def test_its_rows_have_the_measured_marginals_and_follow_the_seed():
    made = [MbiSpec(500).make(known(), rows=1000, rng=np.random.default_rng(3)).table for _ in range(2)]
    counts = np.zeros((2, 3))
    np.add.at(counts, tuple(made[0].columns), 0.1)
    assert np.abs(counts - TRUTH).max() < 1
    assert all(np.array_equal(x, y) for x, y in zip(made[0].columns, made[1].columns, strict=True))
