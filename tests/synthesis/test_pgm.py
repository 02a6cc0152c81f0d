"""The graphical model: inference and sampling against brute force; the optimum that an independent solver finds."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import nnls

from mechanisms.public import axis_sums
from mechanisms.public.coded_table import count_cliques
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.queries.adaptive_grid import grid_query
from mechanisms.public.queries.cell_sums import MergedQuery, ResidualQuery
from mechanisms.public.queries.query_matrices import Identity, QueryMatrix, SparseQuery
from mechanisms.public.release import Measurements, NoisyMarginal
from synthesis.consistency.agree import estimate_total
from synthesis.pgm import elimination, graphical_model
from synthesis.pgm.graphical_model import fit_model, model_rows
from synthesis.pgm.inference import JunctionTreeInference, largest_table, model_marginal
from synthesis.pgm.junction_tree import JunctionTree, fit_cliques, junction_tree, model_cells, still_small
from synthesis.pgm.loss import Term, sufficient
from synthesis.pgm.pgm_settings import PgmSpec
from tests.synthesis.pgm_worlds import CLIQUES, NAMES, SHAPES, SIZES, cliques_of, joint, side, sums, told, world


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
    assert engine.least(direction) == pytest.approx(sums(engine, direction)[whole > 0].min(), abs=1e-9)


@pytest.mark.parametrize(("scale", "impossible"), [(0.0, 0.0), (1.0, 0.0), (30.0, 0.0), (1.0, 0.2)])
@pytest.mark.parametrize("shape", SHAPES)
def test_inference_equals_brute_force_and_impossible_cells_are_zero(shape, scale, impossible):
    check_inference((2, 3, 4, 2, 3, 2), SHAPES[shape], 1, scale, impossible)


@settings(max_examples=60)
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
    monkeypatch.setattr("synthesis.pgm.inference.MAX_CELLS", 4)
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


@pytest.mark.parametrize(
    ("shape", "chunk"), [*((s, graphical_model.CHUNK) for s in SHAPES), ("tree of triples", 30_000)]
)
def test_marginals_of_large_samples_are_those_of_the_model_in_chunks_too(shape, chunk, monkeypatch):
    monkeypatch.setattr(graphical_model, "CHUNK", chunk)
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


def test_a_residual_is_compared_in_one_loop_as_its_query_says(monkeypatch):
    query, rng = ResidualQuery((4, 7)), np.random.default_rng(6)
    term, cells, slope = Term(rng.normal(0, 20, 28), 0.25, query), rng.dirichlet(np.ones(28)), np.ones(28)
    gap = 90.0 * query.answer(cells) - term.mean
    wanted, by_cell = 0.125 * float(gap @ gap), 1 + 0.25 * query.transpose(gap)
    monkeypatch.setattr(ResidualQuery, "answer", lambda *_: pytest.fail("arrays in the place of a loop"))
    assert term.evaluate(cells, 90.0, slope) == pytest.approx(wanted, rel=1e-12)
    np.testing.assert_allclose(slope, by_cell, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("gone", [g for n in range(5) for g in itertools.combinations(range(4), n)])
def test_sums_over_axes_and_back_take_one_loop_for_all_neighbours(gone, monkeypatch):
    rng, loops = np.random.default_rng(7), []
    table = rng.integers(0, 90, (2, 3, 2, 4)).astype(float)
    for name in ("_sum_middle", "_add_middle"):
        loop = getattr(axis_sums, name)
        monkeypatch.setattr(axis_sums, name, lambda *a, loop=loop: loops.append(loop) or loop(*a))
    sums = axis_sums.summed_over(table, gone)
    assert len(loops) == sum(axis - 1 not in gone for axis in gone)
    np.testing.assert_array_equal(sums, table.sum(axis=gone) if gone else table)
    back = table.copy()
    axis_sums.add_over(back, sums, gone)
    np.testing.assert_array_equal(back, table + table.sum(axis=gone, keepdims=True) if gone else 2 * table)


SIZES = (2, 3, 2, 2, 3, 2)
EXACT = {"stop": "least", "tolerance": 1e-9, "iterations": 20_000}


def noisy(words, *, sigma: float = 5.0, total: float = 1000.0, seed: int = 0, queries: bool = False) -> Measurements:
    """Noisy answers about a random joint table."""
    domain, rng = world(SIZES), np.random.default_rng(seed)
    table = rng.dirichlet(np.full(domain.cells(domain.names), 0.3)).reshape(SIZES) * total
    about = []
    for word in words:
        marginal = side(table, tuple(word)).ravel()
        query = None
        if queries:
            query = SparseQuery.of(rng.integers(-1, 2, (int(rng.integers(1, 8)), marginal.size)).astype(float))
        exact = marginal if query is None else query.answer(marginal)
        sd = sigma * float(rng.uniform(0.5, 2))
        about.append((word, query, exact + rng.normal(0, sd, exact.size), sd))
    return told(domain, about)


def least_loss(measurements: Measurements, total: float, impossible=()) -> float:
    """The least loss over all distributions, by non-negative least squares over the full joint table."""
    domain = measurements.domain
    shape = domain.shape(domain.names)
    cells = int(np.prod(shape))
    places = np.indices(shape).reshape(len(shape), -1)
    rows, values = [], []

    def summing(clique):
        flat = np.ravel_multi_index([places[domain.index(n)] for n in clique], domain.shape(clique))
        return flat, np.equal.outer(np.arange(domain.cells(clique)), flat).astype(float)

    for answer in measurements.answers:
        matrix = np.stack([answer.query.answer(column) for column in summing(answer.clique)[1].T], axis=1)
        rows.append(matrix / answer.stddev)
        values.append(answer.values / answer.stddev)
    possible = np.ones(cells, bool)
    for clique, banned in impossible:
        possible &= ~banned.ravel()[summing(clique)[0]]
    stacked, wanted = np.concatenate(rows) * total, np.concatenate(values)
    heavy = 1e4 * max(1.0, float(np.abs(stacked).max()))
    system = np.concatenate([stacked, np.full((1, cells), heavy)])[:, possible]
    found = nnls(system, np.append(wanted, heavy), maxiter=20_000)[0]
    found /= found.sum()
    return 0.5 * float(np.sum((stacked[:, possible] @ found - wanted) ** 2))


def check_optimum(measurements: Measurements) -> None:
    model = fit_model(measurements, PgmSpec(**EXACT))
    least = least_loss(measurements, model.total)
    report = model.fit
    assert report.loss == pytest.approx(least, rel=2e-3, abs=2e-3 * max(report.floor, 1.0))
    assert report.loss - report.gap <= least * (1 + 1e-6) + 1e-6
    again = sum(
        0.5 * float(np.sum((a.query.answer(model.marginal(a.clique)) - a.values) ** 2)) / a.stddev**2
        for a in measurements.answers
    )
    assert again == pytest.approx(report.loss, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("shape", [s for s in SHAPES if SHAPES[s]])
def test_whole_marginals_and_linear_queries_reach_the_optimum_of_an_independent_solver(shape):
    check_optimum(noisy(SHAPES[shape]))
    if shape in ("chain", "cycle", "repeated", "nested"):
        check_optimum(noisy([*SHAPES[shape], *SHAPES[shape]], queries=True))
        both = noisy(SHAPES[shape], queries=True).answers + noisy(SHAPES[shape], seed=1).answers
        check_optimum(Measurements(world(SIZES), both))


@settings(max_examples=15)
@given(CLIQUES.filter(bool), st.integers(0, 2**31), st.booleans(), st.sampled_from([1.0, 20.0, 300.0]))
@example(words=["ac"], seed=0, queries=True, sigma=1.0)  # momentum leads the loss up on its way
@example(words=["abcd"], seed=837, queries=True, sigma=1.0)  # one query, of weights that sum to 0
@example(words=["cd", "acd"], seed=33716497, queries=True, sigma=1.0)  # momentum leads away from where it still falls
def test_the_optimum_is_reached_anywhere(words, seed, queries, sigma):
    check_optimum(noisy(words, seed=seed, queries=queries, sigma=sigma))


def test_exact_answers_are_met():
    known = noisy(SHAPES["nested"], sigma=1e-9)
    exact = told(known.domain, [(a.clique, a.query, a.values, 1e-3) for a in known.answers])
    model = fit_model(exact, PgmSpec(stop="floor", iterations=5000))
    for answer in exact.answers:
        np.testing.assert_allclose(model.marginal(answer.clique), answer.values, atol=0.05)


def test_the_estimation_stops_at_the_noise_floor_and_says_so():
    known = noisy(SHAPES["cycle"])
    model = fit_model(known, PgmSpec(stop="floor"))
    assert model.fit.reason == "the loss is at its target"
    assert model.fit.loss <= model.fit.floor == 0.5 * sum(a.values.size for a in known.answers)
    closer = fit_model(known, PgmSpec(**EXACT))
    assert closer.fit.loss < model.fit.loss


def test_held_out_answers_stop_the_fit_between_the_floor_and_the_least_loss():
    known = noisy(SHAPES["complete"] * 3 + SHAPES["nested"], sigma=40.0)
    losses = [fit_model(known, PgmSpec(**{**EXACT, "stop": s})).fit.loss for s in ("least", "holdout", "floor")]
    assert losses[0] <= losses[1] * (1 + 1e-6)
    assert losses[1] <= sum(a.values.size for a in known.answers) / 2


def test_repeated_answers_cost_no_more_and_count_with_their_weights():
    domain = world(SIZES)
    query = SparseQuery.of(np.array([[1.0, 1.0], [0.0, 1.0]]))
    about = [("a", None, [600.0, 400.0], 1.0), ("a", None, [500.0, 500.0], 2.0), ("a", query, [1000.0, 420.0], 1.0)]
    answers = told(domain, about * 50).answers
    (one,) = sufficient(domain, answers)
    assert [t.size for t in one.terms] == [2, 2]
    check_optimum(told(domain, about * 50))
    many = np.random.default_rng(0)
    stacks = [("a", SparseQuery.of(many.normal(size=(3, 2))), many.normal(300, 9, 3), 3.0) for _ in range(40)]
    check_optimum(told(domain, stacks))


def test_a_query_that_was_read_twice_is_one_and_the_same_entries_in_other_units_are_two():
    labels, domain = np.array([0, 0, 1]), world(SIZES)
    merged = [MergedQuery((labels.copy(),)) for _ in range(2)]
    (one,) = sufficient(domain, told(domain, [("b", q, [600.0, 400.0], 2.0) for q in merged]).answers)
    assert len(one.terms) == 1 and one.terms[0].weight == 0.5
    matrix = SparseQuery.of(np.array([[1.0, 0.5]]))
    scaled = [("a", replace(matrix, bits=b), [float(2**9)], 1.0) for b in (matrix.bits, matrix.bits + 1)]
    (one,) = sufficient(domain, told(domain, scaled).answers)
    assert sum(t.size for t in one.terms) == 2


def test_contradictory_answers_end_between_them():
    domain = world(SIZES)
    known = told(domain, [("a", None, [900.0, 100.0], 1.0), ("ab", None, [10, 20, 30, 400, 300, 240], 1.0)])
    check_optimum(known)
    model = fit_model(known, PgmSpec(**EXACT))
    assert 100 < model.marginal(["a"])[0] < 900


def test_without_answers_the_model_is_uniform_and_empty():
    model = fit_model(Measurements(world(), ()))
    assert model.total == 0
    assert model.fit.reason == "the loss is least"
    assert (model.marginal(["a", "c"]) == 0).all()
    known = fit_model(Measurements(world(), (), public_total=120))
    np.testing.assert_allclose(known.marginal(["b", "e"]), 120 / 9)


def test_attributes_in_no_answer_are_uniform():
    model = fit_model(noisy(["ab"]))
    np.testing.assert_allclose(model.marginal(["e"]), model.total / 3)
    np.testing.assert_allclose(model.marginal(["a", "e"]).reshape(2, 3)[:, 0], model.marginal(["a"]) / 3)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_answers_that_are_not_finite_are_named(value):
    with pytest.raises(UserError, match="answers to a × b are not all finite"):
        fit_model(told(world(SIZES), [("ab", None, [1, 2, 3, 4, 5, value], 1.0)]))


def test_answers_that_do_not_fit_are_named():
    domain = world(SIZES)
    for clique, cells, stddev, said in (
        ("x", 2, 1.0, "no column 'x'"),
        ("a", 3, 1.0, "3 answers to 3 × 3 queries about a, of 2 cells"),
        ("a", 2, 0.0, "noise scale of a is 0"),
        ("ba", 6, 1.0, "order of the schema"),
    ):
        with pytest.raises(UserError, match=said):
            fit_model(told(domain, [(clique, Identity(cells), np.zeros(cells), stddev)]))


def test_a_model_larger_than_allowed_is_refused_before_the_work():
    with pytest.raises(UserError, match=r"synthesis\.max_cells"):
        fit_model(noisy(SHAPES["everything"]), PgmSpec(max_cells=100))


def test_impossible_combinations_get_nothing_whatever_the_answers_say():
    known = noisy(SHAPES["chain"])
    banned = np.zeros((2, 3), bool)
    banned[0, 1] = banned[1, 2] = True
    far = np.zeros((2, 2), bool)
    far[1, 0] = True
    impossible = [(("a", "b"), banned), (("a", "f"), far)]
    model = fit_model(known, PgmSpec(**EXACT), impossible=impossible)
    assert (model.marginal(["a", "b"])[banned.ravel()] == 0).all()
    assert (model.marginal(["a", "f"])[far.ravel()] == 0).all()
    assert least_loss(known, model.total, impossible) == pytest.approx(model.fit.loss, rel=2e-3, abs=0.02)
    made = model.rows(20_000, np.random.default_rng(0))
    assert not banned[made.column("a"), made.column("b")].any()
    assert not far[made.column("a"), made.column("f")].any()
    with pytest.raises(UserError, match="do not fit"):
        fit_model(known, impossible=[(("a", "b"), np.zeros(5, bool))])
    with pytest.raises(UserError, match="no combination"):
        fit_model(known, impossible=[(("a",), np.ones(2, bool))])


def test_a_warm_start_saves_steps():
    known = noisy(SHAPES["tree of triples"], sigma=2.0)
    floor = PgmSpec(stop="floor")
    cold = fit_model(known, floor)
    warm = fit_model(known, floor, start=cold)
    assert warm.fit.losses[1:] == ()
    more = Measurements(known.domain, known.answers + noisy(["de"], seed=0, sigma=2.0).answers)
    assert len(fit_model(more, floor, start=cold).fit.losses) < len(fit_model(more, floor).fit.losses)


def test_a_descent_writes_each_step_where_earlier_ones_lay(monkeypatch):
    infer, asked = JunctionTreeInference.infer, []  # arrays that are held here are given to nobody else

    def noted(self, potentials, flat=None):
        asked.append(potentials)
        return infer(self, potentials, flat)

    monkeypatch.setattr(JunctionTreeInference, "infer", noted)
    model = fit_model(noisy(SHAPES["tree of triples"]), PgmSpec(**EXACT))
    assert len(model.fit.losses) > 50
    assert len({id(potentials) for potentials in asked}) <= 12
    assert np.array_equal(infer(model.engine, model.potentials), model._marginals)


def test_the_total_is_estimated_from_any_queries_that_tell_it():
    domain = world(SIZES)
    thin = SparseQuery.of(np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 0.5]]))
    assert estimate_total(told(domain, [("b", thin, [700.0, 150.0], 1.0)])) == pytest.approx(1000.0, rel=1e-6)
    blind = SparseQuery.of(np.array([[1.0, 0.0, 0.0]]))
    assert estimate_total(told(domain, [("b", blind, [200.0], 1.0)])) == pytest.approx(600.0, rel=1e-6)
    both = told(domain, [("b", thin, [700.0, 150.0], 1.0), ("b", blind, [9.0], 1.0)])
    assert estimate_total(both) == pytest.approx(1000.0, rel=1e-6)
    fit_model(told(domain, [("b", blind, [-200.0], 1.0)]))


def test_progress_is_told():
    seen = []
    fit_model(noisy(SHAPES["chain"]), progress=lambda done, total, text: seen.append((done, total, text)))
    steps = [d for d, _, _ in seen]
    assert steps == sorted(set(steps))
    assert {t for _, t, _ in seen} == {2000}
    assert "noise floor" in seen[-1][2]


def test_combinations_of_more_cells_than_a_float_holds_are_refused_with_few_marginals_as_with_many():
    domain = Domain(tuple(Attribute(f"x{i}", 1_000) for i in range(110)))
    for count in (1, 20):
        with pytest.raises(UserError, match="impossible combinations alone"):
            fit_cliques(domain, [("x0", "x1")] * count, [1.0] * count, 10**7, fixed=[domain.names])


@pytest.mark.parametrize("count", [0, 1, 2, 7, 70])
def test_attributes_are_eliminated_in_one_order_by_python_and_by_machine_code(count):
    rng = np.random.default_rng(count)
    cliques = [sum(1 << i for i in {*rng.integers(0, count, 3).tolist()}) for _ in range(count)]
    graph, sizes = elimination.neighbours(count, cliques), rng.integers(1, 6, count).tolist()
    for rule, keep, seed in itertools.product(elimination.HEURISTICS, [0, *cliques[:1]], [None, 1]):
        sources = [None if seed is None else np.random.default_rng(seed) for _ in range(2)]
        orders = [
            elimination.eliminate(graph, sizes, rule, keep=keep, rng=source, work=work)
            for source, work in zip(sources, (0, elimination.LITTLE + 1), strict=True)
        ]
        assert orders[0] == orders[1] and {i for i, _ in orders[0]} == {*range(count)} - {*elimination.members(keep)}
        assert all(any(c & ~joint == 0 for _, joint in orders[0]) for c in cliques if c & ~keep)
