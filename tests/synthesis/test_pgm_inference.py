"""Inference and sampling in a junction tree: against brute force, at its ends, and beyond memory."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.marginals import count_cliques
from mechanisms.public.queries.adaptive_grid import grid_query
from mechanisms.public.queries.merged_cells import MergedQuery
from mechanisms.public.queries.query_matrices import Identity, QueryMatrix, SparseQuery
from mechanisms.public.release import Measurements, NoisyMarginal
from synthesis.pgm import sampling
from synthesis.pgm.graphical_model import fit_model
from synthesis.pgm.inference import JunctionTreeInference
from synthesis.pgm.junction_tree import JunctionTree, fit_cliques, junction_tree, model_cells, still_small
from synthesis.pgm.observed import largest_table, model_marginal
from synthesis.pgm.pgm_settings import PgmSpec
from synthesis.pgm.sampling import model_rows
from synthesis.pgm.terms import Term
from tests.synthesis.pgm_worlds import CLIQUES, NAMES, SHAPES, SIZES, cliques_of, joint, side, sums, world


def check_tree(tree: JunctionTree, cliques) -> None:
    """Every clique has a home, parents come first, and the cliques of an attribute hang together."""
    assert all(tree.home(c) is not None for c in cliques)
    assert {n for c in tree.cliques for n in c} == set(tree.domain.names)
    for node, (clique, parent, separator) in enumerate(zip(tree.cliques, tree.parents, tree.separators, strict=True)):
        assert parent < node
        assert clique[: len(separator)] == separator
        assert set(separator) == (set(clique) & set(tree.cliques[parent]) if parent >= 0 else set())
    for name in tree.domain.names:
        tops = [i for i, c in enumerate(tree.cliques) if name in c and name not in tree.separators[i]]
        assert len(tops) == 1


def check_inference(sizes, words, seed: int, scale: float, impossible: float = 0.0) -> None:
    domain = world(sizes)
    tree = junction_tree(domain, cliques_of(words))
    check_tree(tree, cliques_of(words))
    rng = np.random.default_rng(seed)
    potentials = rng.normal(0, scale, tree.cells)
    banned = rng.random(tree.cells) < impossible
    engine = JunctionTreeInference(tree, np.where(banned, -np.inf, 0.0) if impossible else None)
    try:
        found = engine.infer(potentials)
    except UserError as error:
        assert "no combination" in str(error)
        return
    whole, log_z = joint(engine, potentials)
    assert engine.conditionals(potentials)[1] == pytest.approx(log_z, rel=1e-9, abs=1e-9)
    for clique, table in zip(tree.cliques, engine.views(found), strict=True):
        np.testing.assert_allclose(table, side(whole, clique), atol=1e-9, rtol=1e-9)
    for size in (1, 2, 3):
        for clique in itertools.combinations(NAMES, size):
            np.testing.assert_allclose(
                model_marginal(engine, found, clique), side(whole, clique).ravel(), atol=1e-9, rtol=1e-9
            )
    direction = rng.normal(size=tree.cells)
    moved = engine.covariance(found, direction)
    step = 1e-5
    up, down = (joint(engine, potentials + s * direction)[0] for s in (step, -step))
    for clique, table in zip(tree.cliques, engine.views(moved), strict=True):
        np.testing.assert_allclose(table, side((up - down) / (2 * step), clique), atol=1e-7, rtol=1e-5)
    assert engine.least(direction) == pytest.approx(sums(engine, direction)[whole > 0].min(), abs=1e-9)


@pytest.mark.parametrize(("scale", "impossible"), [(0.0, 0.0), (1.0, 0.0), (30.0, 0.0), (1.0, 0.2)])
@pytest.mark.parametrize("shape", SHAPES)
def test_inference_equals_brute_force_and_impossible_cells_are_zero(shape, scale, impossible):
    check_inference((2, 3, 4, 2, 3, 2), SHAPES[shape], 1, scale, impossible)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SIZES, CLIQUES, st.integers(0, 2**31), st.sampled_from([0.0, 0.3]))
def test_inference_equals_brute_force_anywhere(sizes, words, seed, impossible):
    check_inference(sizes, words, seed, 2.0, impossible)


def test_potentials_beyond_the_exponential_do_not_overflow():
    tree = junction_tree(world(), cliques_of(SHAPES["chain"]))
    engine = JunctionTreeInference(tree)
    potentials = np.random.default_rng(0).normal(0, 1, tree.cells)
    near, far = engine.infer(potentials), engine.infer(potentials + 1e6)
    np.testing.assert_allclose(near, far, atol=1e-8)
    steep = engine.infer(potentials * 1e5)
    assert np.isfinite(steep).all()
    assert steep[: tree.sizes[0]].sum() == pytest.approx(1.0)


def test_a_tree_shaped_set_needs_no_more_than_its_cliques():
    assert model_cells(world(), cliques_of(SHAPES["chain"])) == 6 + 12 + 8 + 6 + 6
    assert model_cells(world(), []) == 2 + 3 + 4 + 2 + 3 + 2
    assert model_cells(world(), cliques_of(SHAPES["complete"])) == 2 * 3 * 4 * 2 + 3 + 2


def test_an_unknown_attribute_is_named():
    with pytest.raises(UserError, match="no column 'x'"):
        junction_tree(world(), [("a", "x")])


def test_too_large_a_model_says_which_marginals_to_drop():
    domain = Domain(tuple(Attribute(f"c{i}", 100) for i in range(6)))
    ring = [(f"c{i}", f"c{i + 1}") for i in range(5)] + [("c0", "c5")]
    assert model_cells(domain, ring) == 4 * 100**3
    with pytest.raises(
        UserError, match=r"synthesis\.max_cells.*4,000,000 cells, more than 100,000(.|\n)*leave out c"
    ) as error:
        junction_tree(domain, ring, max_cells=100_000)
    dropped = str(error.value).split("leave out ")[1].split(" (")[0]
    left = [c for c in ring if " × ".join(c) not in dropped.split(", ")]
    assert model_cells(domain, left) <= 100_000


def test_the_predicted_size_is_exact_beyond_all_memory():
    domain = Domain(tuple(Attribute(f"c{i}", 1000) for i in range(40)))
    pairs = list(itertools.combinations(domain.names, 2))
    assert model_cells(domain, pairs) == 1000**40
    with pytest.raises(UserError, match="graphical model"):
        junction_tree(domain, pairs, max_cells=10**7)


def test_fitting_drops_the_least_useful():
    domain = Domain(tuple(Attribute(f"c{i}", 100) for i in range(4)))
    ring = [("c0", "c1"), ("c1", "c2"), ("c2", "c3"), ("c0", "c3"), ("c1",)]
    kept, dropped = fit_cliques(domain, ring, [4.0, 1.0, 3.0, 2.0, 0.0], 40_000)
    assert dropped == (("c1", "c2"),)
    assert kept == (ring[0], ring[2], ring[3], ring[4])
    with pytest.raises(UserError, match="columns alone"):
        fit_cliques(domain, ring, [1.0] * 5, 100)


def test_a_marginal_across_the_model_that_is_too_large_is_refused(monkeypatch):
    tree = junction_tree(world(), cliques_of(SHAPES["chain"]))
    engine = JunctionTreeInference(tree)
    monkeypatch.setattr("synthesis.pgm.observed.MAX_CELLS", 4)
    with pytest.raises(UserError, match="needs a table"):
        model_marginal(engine, engine.infer(np.zeros(tree.cells)), ("a", "d", "f"))
    assert largest_table(tree, ("a", "d", "f")) > 4
    assert largest_table(tree, tree.cliques[0]) == tree.sizes[0]


@given(st.integers(0, 10**6))
def test_the_compiled_prediction_of_sizes_agrees_with_the_plain_one(seed):
    rng = np.random.default_rng(seed)
    domain = Domain(tuple(Attribute(f"c{i}", int(s)) for i, s in enumerate(rng.integers(2, 9, 9))))
    sets = [tuple(rng.choice(domain.names, k, replace=False)) for k in rng.integers(1, 4, 12)]
    cliques = [domain.canonical(s) for s in sets]
    exact = [model_cells(domain, [*cliques[:8], c]) for c in cliques[8:]]
    limit = int(np.median(exact))
    found = still_small(domain, cliques[:8], cliques[8:], limit)
    for small, cells in zip(found, exact, strict=True):
        assert small or cells > 0.5 * limit  # another heuristic may win by a little
        assert not small or cells <= 1.5 * limit
    chordal = [("c0", "c1"), ("c1", "c2"), ("c1", "c3"), ("c5",)]
    sizes = [model_cells(domain, [*chordal, ("c2", "c4")]), model_cells(domain, [*chordal, ("c0", "c5", "c6")])]
    assert still_small(domain, chordal, [("c2", "c4")], sizes[0]).tolist() == [True]
    assert still_small(domain, chordal, [("c2", "c4")], sizes[0] - 1).tolist() == [False]
    assert still_small(domain, chordal, [("c0", "c5", "c6")], sizes[1]).tolist() == [True]
    assert still_small(domain, chordal, [("c0", "c5", "c6")], sizes[1] - 1).tolist() == [False]


def random_model(shape: str, scale: float = 1.5, seed: int = 0):
    tree = junction_tree(world(), cliques_of(SHAPES[shape]))
    return JunctionTreeInference(tree), np.random.default_rng(seed).normal(0, scale, tree.cells)


def rows_of(engine, potentials, rows: int, seed: int = 0):
    conditionals, _ = engine.conditionals(potentials)
    return model_rows(engine, conditionals, rows=rows, rng=np.random.default_rng(seed))


@pytest.mark.parametrize(("shape", "chunk"), [*((s, sampling.CHUNK) for s in SHAPES), ("tree of triples", 30_000)])
def test_marginals_of_large_samples_are_those_of_the_model_in_chunks_too(shape, chunk, monkeypatch):
    monkeypatch.setattr(sampling, "CHUNK", chunk)
    engine, potentials = random_model(shape)
    whole, _ = joint(engine, potentials)
    made = rows_of(engine, potentials, 400_500)
    assert made.rows == 400_500
    for clique in engine.tree.cliques:
        counts = count_cliques(made, [clique])[0] / made.rows
        assert np.abs(counts - side(whole, clique).ravel()).max() < 1e-3
    every = count_cliques(made, [engine.tree.domain.names])[0] / made.rows
    assert 0.5 * np.abs(every - whole.ravel()).sum() < 0.015


def test_roundings_are_smaller_than_those_of_independent_rows():
    engine, potentials = random_model("chain")
    whole, _ = joint(engine, potentials)
    rows = 20_000
    for clique in engine.tree.cliques:
        expected = side(whole, clique).ravel() * rows
        errors = [count_cliques(rows_of(engine, potentials, rows, s), [clique])[0] - expected for s in range(20)]
        independent = expected * (1 - expected / rows)
        assert np.mean(np.square(errors)) < 0.05 * np.mean(independent)


def test_roundings_are_fair():
    engine, potentials = random_model("chain")
    whole, _ = joint(engine, potentials)
    names, runs, rows = engine.tree.domain.names, 3000, 7
    counts = sum(count_cliques(rows_of(engine, potentials, rows, s), [names])[0] for s in range(runs))
    expected = whole.ravel() * rows * runs
    likely = expected > 5
    assert np.abs((counts[likely] - expected[likely]) / np.sqrt(expected[likely])).max() < 5


def test_attributes_of_different_trees_are_independent_and_rows_in_random_order():
    engine, potentials = random_model("disconnected")
    made = rows_of(engine, potentials, 100_000)
    pair = count_cliques(made, [("a", "d")])[0].reshape(2, 2) / made.rows
    assert np.abs(pair - np.outer(pair.sum(1), pair.sum(0))).max() < 0.005
    for column in made.columns:
        assert abs(np.corrcoef(column.astype(float), np.arange(made.rows))[0, 1]) < 0.015


CLIQUE = ("b", "c")
SPEC = PgmSpec(stop="least", iterations=3000, tolerance=1e-12)


def written_out(query: QueryMatrix) -> SparseQuery:
    """The same matrix, entry by entry."""
    matrix = np.stack([query.answer(cell) for cell in np.eye(query.columns)], axis=1)
    return SparseQuery.of(sparse.csr_array(matrix), bits=query.bits)


def queries() -> list[QueryMatrix]:
    merged = MergedQuery((np.array([0, 1, 1]), np.array([0, 1, 2, 2])))
    known = [answer(merged, c, np.array(v)) for c, v in ((("b",), [90.0, 2, 1]), (("c",), [60.0, 30, 2, 1]))]
    whole = [NoisyMarginal(a.clique, Identity(a.values.size), a.values, "gaussian", 1.0, a.event) for a in known]
    return [merged, replace(grid_query(world(), CLIQUE, whole, threshold=5.0, norm="l2"), bits=12)]


def answer(query: QueryMatrix, clique: tuple[str, ...], values: np.ndarray) -> NoisyMarginal:
    return NoisyMarginal(clique, query, values, "gaussian", 3.0, "x")


@pytest.mark.parametrize("number", [0, 1])
def test_a_model_of_structured_queries_is_that_of_the_matrix_written_out(number):
    query, rng = queries()[number], np.random.default_rng(3)
    values = query.answer(rng.uniform(0, 60, 12)) + rng.normal(0, 3, query.rows)
    first = NoisyMarginal(("a",), Identity(2), np.array([150.0, 200.0]), "gaussian", 3.0, "a")
    known = answer(query, CLIQUE, values)
    plain = answer(written_out(query), CLIQUE, values)
    found = [fit_model(Measurements(world(), (first, a)), SPEC) for a in (known, plain)]
    assert found[0].fit.loss == pytest.approx(found[1].fit.loss, abs=1e-3)
    both = [query.answer(m.marginal(CLIQUE)) for m in found]
    assert np.abs(both[0] - both[1]).max() < 0.5


def test_its_slope_is_that_of_its_value_and_its_halves_have_the_noise_that_they_say():
    query, rng = queries()[0], np.random.default_rng(5)
    term = Term(rng.uniform(0, 60, query.rows), 0.25, query)
    cells, step = rng.dirichlet(np.ones(query.columns)), 1e-6
    slope = np.zeros(query.columns)
    term.evaluate(cells, 100.0, slope)
    for cell in range(query.columns):
        moved = [cells + sign * step * np.eye(query.columns)[cell] for sign in (1, -1)]
        up, down = (term.evaluate(m, 100.0, np.zeros(query.columns)) for m in moved)
        assert (up - down) / (2 * step * 100) == pytest.approx(slope[cell], rel=1e-4)
    assert term.size == query.rows
    halves = [term.split(0.5, rng) for _ in range(3000)]
    more, less = (np.stack([h[i].mean for h in halves]) - term.mean for i in (0, 1))
    assert more.std() == pytest.approx(0.5 * 2.0, rel=0.05) and less.std() == pytest.approx(2.0 / 0.5, rel=0.05)
    assert np.allclose(more / 0.5, -less * 0.5)
