"""Estimation: the optimum that an independent solver finds, from any linear measurements, good or bad."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from mechanisms.public.errors import UserError
from mechanisms.public.queries.merged_cells import MergedQuery
from mechanisms.public.queries.query_matrices import Identity, SparseQuery
from mechanisms.public.release import Measurements
from synthesis.consistency.total import estimate_total
from synthesis.pgm.graphical_model import OPTIMIZERS, fit_model
from synthesis.pgm.pgm_settings import PgmSpec
from synthesis.pgm.terms import sufficient
from tests.synthesis.pgm_worlds import CLIQUES, SHAPES, side, told, world

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


def check_optimum(measurements: Measurements, optimizer: str) -> None:
    model = fit_model(measurements, PgmSpec(optimizer=optimizer, **EXACT))
    least = least_loss(measurements, model.total)
    report = model.fit
    assert report.loss == pytest.approx(least, rel=2e-3, abs=2e-3 * max(report.floor, 1.0))
    assert report.loss - report.gap <= least * (1 + 1e-6) + 1e-6
    again = sum(
        0.5 * float(np.sum((a.query.answer(model.marginal(a.clique)) - a.values) ** 2)) / a.stddev**2
        for a in measurements.answers
    )
    assert again == pytest.approx(report.loss, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("shape", [s for s in SHAPES if SHAPES[s]])
def test_whole_marginals_and_linear_queries_reach_the_optimum_of_an_independent_solver(shape, optimizer):
    check_optimum(noisy(SHAPES[shape]), optimizer)
    if shape in ("chain", "cycle", "repeated", "nested"):
        check_optimum(noisy([*SHAPES[shape], *SHAPES[shape]], queries=True), optimizer)
        both = noisy(SHAPES[shape], queries=True).answers + noisy(SHAPES[shape], seed=1).answers
        check_optimum(Measurements(world(SIZES), both), optimizer)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(CLIQUES.filter(bool), st.integers(0, 2**31), st.booleans(), st.sampled_from([1.0, 20.0, 300.0]))
@example(words=["ac"], seed=0, queries=True, sigma=1.0)  # momentum leads the loss up on its way
@example(words=["abcd"], seed=837, queries=True, sigma=1.0)  # one query, of weights that sum to 0
@example(words=["cd", "acd"], seed=33716497, queries=True, sigma=1.0)  # momentum leads away from where it still falls
def test_the_optimum_is_reached_anywhere(words, seed, queries, sigma):
    check_optimum(noisy(words, seed=seed, queries=queries, sigma=sigma), "mirror")


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
    check_optimum(told(domain, about * 50), "mirror")
    many = np.random.default_rng(0)
    stacks = [("a", SparseQuery.of(many.normal(size=(3, 2))), many.normal(300, 9, 3), 3.0) for _ in range(40)]
    check_optimum(told(domain, stacks), "mirror")


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
    check_optimum(known, "mirror")
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
