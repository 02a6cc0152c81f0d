"""Answers to any linear query in consistency, against dense least squares; overlaps, projections, softening."""

import itertools
import tracemalloc
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import linalg

from mechanisms.public.domain import Attribute, Domain, subsets
from mechanisms.public.errors import UserError
from mechanisms.public.noise_kinds import KINDS, NOISE_KINDS
from mechanisms.public.queries.adaptive_grid import grid_query
from mechanisms.public.queries.cell_sums import MergedQuery, ResidualQuery
from mechanisms.public.queries.query_matrices import Identity, SparseQuery
from mechanisms.public.release import Measurements, NoisyMarginal
from pipeline.release_query import estimate_count, estimate_marginal
from synthesis.consistency.agree import consistent, estimated, overlaps_of, unbiased
from synthesis.consistency.evidence import FLOOR, gathered, lifted
from synthesis.consistency.merged_values import compressed, merged_values
from synthesis.consistency.projection import fit, norm_sub, product, raked, soften, soften_alike
from synthesis.consistency.residual_parts import ResidualParts, completed, noise_left, rebuilt_of
from synthesis.consistency.shrinkage import neighbours, with_likely_columns
from synthesis.gum.gum_settings import GumSpec
from synthesis.marginal_tables import marginal_tables
from synthesis.pgm.graphical_model import ModelSettings, fit_model
from tests.conftest import few

ABC = Domain((Attribute("a", 3), Attribute("b", 2), Attribute("c", 4), Attribute("one", 1)))
SHAPE = ABC.shape(ABC.names)
RNG = np.random.default_rng(0)
MERGED = MergedQuery((np.array([0, 1, 1]), np.array([0, 1, 2, 2])))
ROUGH = SparseQuery.of(np.round(RNG.random((4, 6)), 2))
SETS = {
    "merged": [(("a",), Identity(3), 1.0), (("a", "b"), Identity(6), 2.0), (("a", "c"), MERGED, 3.0)],
    "sparse": [(("a", "b"), ROUGH, 1.0), (("b", "c"), Identity(8), 2.0), (("a", "c"), MERGED, 1.5)],
    "both": [(("a", "b"), Identity(6), 1.0), (("a", "b"), ROUGH, 0.5), (("b",), Identity(2), 2.0)],
    "one part": [(("a",), SparseQuery.of(np.array([[1.0, 1.0, 0.0]])), 1.0)],
}
WHOLE = {
    "chain": [("a", "b"), ("b", "c")],
    "cycle": [("a", "b"), ("b", "c"), ("a", "c")],
    "nested": [("a",), ("a", "b"), ("a", "b", "c")],
    "shared pair": [("a", "b", "c"), ("a", "b"), ("b", "c")],
    "apart": [("a",), ("b", "c")],
    "one code": [("a", "one"), ("one",), ("a",)],
}
SETS |= {n: [(c, Identity(ABC.cells(c)), 1.0 + i) for i, c in enumerate(cliques)] for n, cliques in WHOLE.items()}


def sums(joint, clique):
    names = zip(range(joint.ndim), ABC.names, strict=False)
    return joint.sum(axis=tuple(i for i, n in names if n not in clique)).ravel()


def answers(asked, joint, rng=None, *, domain=ABC, told_total=True):
    """Answers with the noise that they say, or without any."""
    made = []
    for clique, query, sigma in asked:
        exact = query.answer(sums(joint, clique))
        noise = 0.0 if rng is None else rng.normal(0, sigma, exact.size)
        made.append(NoisyMarginal(clique, query, exact + noise, "gaussian", sigma, "0"))
    return Measurements(domain, tuple(made), int(joint.sum()) if told_total else None)


def disagreement(targets) -> float:
    """The largest difference of two targets on what they share."""
    worst = 0.0
    for one, two in itertools.combinations(targets, 2):
        shared = tuple(n for n in one.clique if n in two.clique)
        worst = max(worst, float(np.abs(one.sums(shared) - two.sums(shared)).max()))
    return worst


def step(measurements):
    evidence = gathered(ABC, measurements.answers)
    return estimated(evidence, float(measurements.public_total), overlaps_of(ABC, [e.clique for e in evidence]))


def dense(measurements):
    """Least squares over all joints: each marginal's best estimate where it is told, and its covariance."""
    rows, values, cliques = [], [], {a.clique for a in measurements.answers}
    onto = {c: np.stack([sums(e.reshape(SHAPE), c) for e in np.eye(24)], axis=1) for c in cliques}
    for a in measurements.answers:
        matrix = np.stack([a.query.answer(e) for e in np.eye(a.query.columns)], axis=1)
        rows.append(matrix @ onto[a.clique] / a.stddev)
        values.append(a.values / a.stddev)
    free = linalg.null_space(np.ones((1, 24)))
    uniform = np.full(24, measurements.public_total / 24)
    matrix = np.concatenate(rows) @ free
    gap = np.concatenate(values) - np.concatenate(rows) @ uniform
    joint = uniform + free @ np.linalg.pinv(matrix, 1e-10) @ gap
    null = free @ linalg.null_space(matrix, 1e-10)
    return {c: (onto[c] @ joint, onto[c] @ null) for c in cliques}


@pytest.mark.parametrize("asked", SETS.values(), ids=SETS)
@settings(max_examples=10)
@given(seed=st.integers(0, 10**6))
def test_the_linear_step_is_generalised_least_squares_over_all_answers(asked, seed):
    """What the answers tell is the best linear unbiased estimate (Gauss-Markov), so no expected error can rise."""
    rng = np.random.default_rng(seed)
    known = answers(asked, rng.multinomial(1000, np.full(24, 1 / 24)).reshape(SHAPE).astype(float), rng)
    found = step(known)
    best = dense(known)
    for target in found:
        expected, untold = best[target.clique]
        told = linalg.null_space(untold.T, 1e-9) if untold.size else np.eye(expected.size)
        assert told.T @ target.values.ravel() == pytest.approx(told.T @ expected, abs=1e-3)
        assert target.values.sum() == pytest.approx(1000)
    assert disagreement(found) < 1e-6


@pytest.mark.parametrize("asked", SETS.values(), ids=SETS)
@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), noise=st.sampled_from([0.01, 1.0, 30.0]))
def test_targets_of_any_queries_agree_sum_to_the_total_and_are_not_negative(asked, seed, noise):
    rng = np.random.default_rng(seed)
    joint = rng.multinomial(60, rng.dirichlet(np.full(24, 0.3))).reshape(SHAPE).astype(float)
    found = consistent(answers([(c, q, noise * sigma) for c, q, sigma in asked], joint, rng))
    for target in found.marginals:
        assert target.values.min() >= 0
        assert target.values.sum() == pytest.approx(60)
    three = max(len(c) for c, *_ in asked) > 2
    assert disagreement(found.marginals) <= (0.02 if three else 1e-6) * 60


def test_an_adaptive_grid_knows_its_fine_cells_and_follows_its_parents_elsewhere():
    rng = np.random.default_rng(3)
    joint = rng.dirichlet(np.full(24, 0.2)).reshape(SHAPE) * 20_000
    ones = answers([((n,), Identity(k), 5.0) for n, k in zip("abc", (3, 2, 4), strict=True)], joint, rng).answers
    grid = grid_query(ABC, ("a", "c"), ones, threshold=900.0, norm="l2")
    assert type(grid).__name__ == "GridQuery"
    both = answers([(("a", "c"), grid, 5.0)], joint, rng).answers
    known = Measurements(ABC, (*ones, *both), public_total=20_000)
    target = next(t for t in consistent(known).marginals if len(t.clique) == 2)
    gap = np.abs(target.values.ravel() - sums(joint, ("a", "c")))
    assert gap[grid.fine_cells].max() < 25
    alone = consistent(Measurements(ABC, ones, 20_000))
    independent = np.outer(alone.one_way("a"), alone.one_way("c")).ravel() / 20_000
    assert gap.sum() < 0.7 * np.abs(independent - sums(joint, ("a", "c"))).sum()


def test_impossible_answers_are_named():
    zeros = [(("b", "a"), np.zeros((2, 3), bool))]
    with pytest.raises(UserError, match="impossible combinations of b × a"):
        consistent(Measurements(ABC, ()), zeros=zeros)


def test_impossible_cells_get_nothing_in_every_marginal_that_can_tell():
    rng = np.random.default_rng(1)
    cells = np.zeros((3, 2), bool)
    cells[2, :] = True
    cells[0, 1] = True
    known = answers([(("a", "b"), Identity(6), 9.0), (("a", "c"), Identity(12), 9.0)], np.full(SHAPE, 40.0), rng)
    targets = consistent(known, zeros=[(("a", "b"), cells), (("c",), np.zeros(4, bool))])
    assert [clique for clique, _ in targets.zeros] == [("a", "b")]
    assert (targets.marginals[0].values[cells] == 0).all()
    assert (targets.marginals[1].values[2] == 0).all()
    for target in targets.marginals:
        assert target.values.sum() == pytest.approx(960)


@pytest.mark.parametrize("seed", range(5))
def test_sums_that_do_not_meet_are_lifted_to_the_nearest_marginal_that_has_them(seed):
    """In closed form, as the pseudo-inverse of the weighted queries solves them."""
    rng = np.random.default_rng(seed)
    labels = (np.array([0, 0, 1, 1, 2]), np.array([0, 1, 1, 0]))
    domain = Domain((Attribute("a", 5), Attribute("b", 4)))
    query = MergedQuery(labels)
    (evidence,) = gathered(domain, [NoisyMarginal(("a", "b"), query, rng.random(6) * 50, "gaussian", 3.0, "1")])
    base = rng.random((5, 4)) * 10
    matrix = np.stack([query.answer(row) for row in np.eye(20)]).T / 3.0
    weights = np.sqrt(np.maximum(base, FLOOR * base.mean())).ravel()
    gap = evidence.standardized - matrix @ base.ravel()
    nearest = base.ravel() + weights * (linalg.pinv(matrix * weights) @ gap)
    assert evidence.disjoint
    np.testing.assert_allclose(lifted(evidence, evidence.standardized, base).ravel(), nearest, rtol=1e-9)


CODES, ROWS = np.arange(40), 4_000.0
COLUMNS = {
    "bell": np.exp(-(((CODES - 15) / 6) ** 2)),
    "even": np.ones(40),
    "decay": 0.8**CODES,
    "one code": np.where(CODES == 7, 1.0, 0.0),
    "a few codes": np.where(CODES % 9 == 0, 1.0, 0.0),
}


def told(shape, stddev, seed, ordered=40):
    """Noisy answers about one column of that shape; and the truth."""
    truth = ROWS * COLUMNS[shape] / COLUMNS[shape].sum()
    values = truth + np.random.default_rng(seed).normal(0, stddev, 40)
    answer = NoisyMarginal(("a",), Identity(40), values, "gaussian", stddev, "e")
    return Measurements(Domain((Attribute("a", 40, ordered),)), (answer,), ROWS), truth


def off(shape, stddev, ordered=40):
    """Total variation distance to the truth: of what is likely, and of the answers without negative counts."""
    found = []
    for seed in range(20):
        known, truth = told(shape, stddev, seed, ordered)
        likely, plain = with_likely_columns(known).answers[0].values, norm_sub(known.answers[0].values, ROWS)
        assert likely.min() >= 0 and likely.sum() == pytest.approx(ROWS)
        found.append([np.abs(v - truth).sum() / 2 / ROWS for v in (likely, plain)])
    return np.mean(found, axis=0)


@pytest.mark.parametrize("stddev", [50.0, 200.0])
@pytest.mark.parametrize("shape", COLUMNS)
def test_what_is_likely_is_nearer_than_answers_and_never_much_farther(shape, stddev):
    likely, plain = off(shape, stddev)
    assert likely < (0.85 if shape in ("bell", "even", "decay") else 1.05) * plain


def test_an_order_that_is_declared_tells_more_of_a_smooth_column():
    assert off("bell", 200.0)[0] < 0.8 * off("bell", 200.0, ordered=0)[0]


def test_precise_answers_stay_as_they_are_and_keep_their_noise():
    known, _ = told("bell", 0.5, 1)
    (answer,) = with_likely_columns(known).answers
    assert np.abs(answer.values - known.answers[0].values).max() < 3 and 0.3 < answer.stddev / 0.5 <= 1


def test_the_noise_that_is_left_is_how_far_they_are_off():
    known = [told("bell", 100.0, seed) for seed in range(20)]
    likely = [with_likely_columns(k).answers[0] for k, _ in known]
    actual = np.sqrt(np.mean([np.mean((a.values - t) ** 2) for a, (_, t) in zip(likely, known, strict=True)]))
    assert 0.7 < np.mean([a.stddev for a in likely]) / actual < 1.3


def test_several_answers_about_a_column_are_one():
    known, _ = told("decay", 100.0, 1)
    again, _ = told("decay", 50.0, 2)
    both = with_likely_columns(Measurements(known.domain, (*known.answers, *again.answers), ROWS)).answers
    assert np.array_equal(both[0].values, both[1].values)
    assert both[0].stddev / 100 == pytest.approx(both[1].stddev / 50), "the second one still weighs four times as much"


def test_answers_that_leave_no_record_stay():
    known, _ = told("even", 1.0, 1)
    nothing = Measurements(known.domain, known.answers, 0.0)
    assert with_likely_columns(nothing) is nothing


def test_a_column_of_many_codes_has_neighbours_in_little_memory():
    tracemalloc.start()
    near = neighbours(np.arange(6000.0), (5990,), 3.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.allclose(near[150:5850], np.arange(150.0, 5850.0)) and not near[5990:].any()
    assert peak < 2e7, f"{peak:,} bytes: all pairs of 6,000 codes take 288,000,000"


def test_the_mean_of_neighbours_loses_what_their_noise_adds_to_it():
    """By brute force: the others' weights, and the variance of the mean that they make of independent noise."""
    cells, line, width, stddev = np.random.default_rng(7).normal(2.0, 3.0, (4, 9)), 8, 1.5, 3.0
    made = neighbours(cells, (4, line), width, stddev)
    for row, column in np.ndindex(4, 9):
        far = np.abs(np.arange(9) - column).astype(float)
        far[(np.arange(9) >= line) != (column >= line)] = np.inf
        if column >= line:
            far[np.arange(9) != column] = np.inf
        weights = np.exp(-0.5 * (np.hypot(*np.meshgrid(np.abs(np.arange(4) - row), far, indexing="ij")) / width) ** 2)
        weights[row, column] = 0.0
        mean = float((weights * cells).sum() / weights.sum())
        noise = stddev**2 * (weights**2).sum() / weights.sum() ** 2
        assert made[row, column] == pytest.approx(mean * max(1 - noise / mean**2, 0.0) if mean > 0 else 0.0, abs=1e-9)
    assert 0 < (made == 0).mean() < 1


BOX = Domain((Attribute("a", 4), Attribute("b", 3), Attribute("c", 5)))
TRUTH = np.random.default_rng(3).multinomial(6_000, np.random.default_rng(4).dirichlet(np.full(60, 0.6)))
TRUTH = TRUTH.reshape(4, 3, 5).astype(float)
AB, AC = ("a", "b"), ("a", "c")
#: One-way marginals, one of them twice; a residual, asked twice; another one; and the whole of a third pair.
ASKED = [
    *((("a",), Identity(4), 3.0), (("b",), Identity(3), 2.0), (("c",), Identity(5), 4.0), (("a",), Identity(4), 5.0)),
    *((AB, ResidualQuery((4, 3)), 2.0), (AB, ResidualQuery((4, 3)), 3.0), (AC, ResidualQuery((4, 5)), 6.0)),
    (("b", "c"), Identity(15), 7.0),
]


def release(asked=ASKED, seed=None):
    rng = None if seed is None else np.random.default_rng(seed)
    return answers(asked, TRUTH, rng, domain=BOX, told_total=False)


@pytest.mark.parametrize("clique", [AB, AC, ("b", "c")])
def test_a_rebuilt_marginal_is_least_squares_over_all_answers_and_knows_its_noise(clique):
    known, joints = release(seed=5), np.eye(60).reshape(60, 4, 3, 5)
    matrix = np.concatenate([np.stack([q.answer(sums(j, c)) for j in joints], axis=1) / s for c, q, s in ASKED])
    onto = np.stack([sums(j, clique) for j in joints], axis=1)
    best = onto @ np.linalg.pinv(matrix)  # what it makes of the answers, in units of their noise
    values = np.concatenate([a.values / a.stddev for a in known.answers])
    found = ResidualParts(known).rebuilt(clique)
    assert found.values.ravel() == pytest.approx(best @ values, abs=1e-6)
    cells = found.values.size
    assert found.noise.times(found.noise.times(np.eye(cells))) == pytest.approx(best @ best.T, abs=1e-9)
    assert found.noise.error**2 == pytest.approx(np.trace(best @ best.T) / cells)
    assert found.noise.squares == pytest.approx(((best @ best.T) ** 2).sum())


def test_a_pair_and_what_is_asked_of_it_are_estimated_with_that_error():
    known = release(seed=6)
    cells, by_parts = estimate_marginal(known, AB), rebuilt_of(known, AB)
    assert cells.values == pytest.approx(by_parts.values.ravel()) and AB in cells.sources
    assert cells.errors == pytest.approx(np.full(12, by_parts.noise.error))
    weights = {"a": np.array([1.0, 1, 0, 0]), "b": np.array([0.0, 1, 0])}
    count, error, _ = estimate_count(known, weights)
    cell = np.outer(weights["a"], weights["b"]).ravel()
    assert count == pytest.approx(cell @ cells.values)
    assert error == pytest.approx(np.linalg.norm(by_parts.noise.times(cell.reshape(1, -1))))
    off = [(estimate_count(release(seed=s), weights)[0] - sums(TRUTH, AB) @ cell) for s in range(400)]
    assert np.std(off) == pytest.approx(error, rel=0.12) and abs(np.mean(off)) < 0.2 * error


def test_without_noise_every_way_to_take_the_answers_gives_the_truth():
    known = release()
    whole = completed(known)
    assert [a.clique for a in whole.answers].count(AB) == 1
    assert all(isinstance(a.query, Identity) for a in whole.answers)
    for answer in whole.answers:
        assert answer.values == pytest.approx(sums(TRUTH, answer.clique), abs=1e-9)
    for target in consistent(known).marginals:
        assert target.values.ravel() == pytest.approx(sums(TRUTH, target.clique), abs=1e-6)
    assert {t.clique for t in marginal_tables(known)} == {a.clique for a in known.answers}
    model = fit_model(known, ModelSettings(iterations=2_000))
    assert model.marginal(AB) == pytest.approx(sums(TRUTH, AB), abs=3.0)


@st.composite
def several_answers(draw):
    """Whole marginals and residuals of up to three columns, under two laws of noise, some of them twice."""
    cliques = [c for c in subsets(("a", "b", "c", "one")) if len(c) < 4]
    made = []
    for clique in [*draw(st.lists(st.sampled_from(cliques), max_size=5)), *draw(st.sampled_from([[], [("a",)]]))]:
        shape, noise = ABC.shape(clique), draw(st.sampled_from(["gaussian", "gaussian", "laplace"]))
        residual = noise == "gaussian" and min(shape) > 1 and draw(st.booleans())
        query = ResidualQuery(shape) if residual else Identity(ABC.cells(clique))
        scale = draw(st.sampled_from([0.5, 1.0, 3.0]))
        made.append(NoisyMarginal(clique, query, np.zeros(query.rows), noise, scale, "0"))
    assume(any(isinstance(a.query, Identity) for a in made))
    return Measurements(ABC, tuple(made), draw(st.sampled_from([None, 10**6])))


@few(25)
@given(several_answers())
def test_the_noise_that_the_linear_step_leaves_is_that_of_its_matrix(measurements):
    """Brute force: each answer is moved by one, one after the other, and the marginals are looked at."""
    centre = np.full(SHAPE, 100.0)
    exact = [replace(a, values=a.query.answer(sums(centre, a.clique))) for a in measurements.answers]

    def after(answers):
        return {t.clique: t.values for t in unbiased(replace(measurements, answers=tuple(answers)))}

    base, variances = after(exact), defaultdict(float)
    for i, answer in enumerate(exact):
        for unit in np.eye(answer.query.rows):
            moved = after([*exact[:i], replace(answer, values=answer.values + unit), *exact[i + 1 :]])
            for clique, values in moved.items():
                variances[clique] += answer.stddev**2 * float(np.mean((values - base[clique]) ** 2))
    left = noise_left(measurements)
    assert left.keys() == base.keys() and left == pytest.approx({c: variances[c] for c in left}, rel=1e-6, abs=1e-9)


def test_consistent_pairs_have_the_columns_that_all_answers_tell():
    settled = consistent(release(seed=7))
    sides = {t.clique: t.values for t in settled.marginals}
    for pair in (AB, AC):
        for axis, name in enumerate(pair):
            assert sides[pair].sum(axis=1 - axis) == pytest.approx(sides[name,], abs=1e-6)
    off = {c: np.abs(v.ravel() - sums(TRUTH, c)).mean() for c, v in sides.items()}
    assert off[AB] < 6 and off[AC] < 12


def test_a_residual_beside_merged_values_is_taken_over_the_same_groups():
    labels = (np.array([0, 1, 1, 1]), np.array([0, 1, 2]))
    known = release([*ASKED, (AB, MergedQuery(labels), 1.0)], seed=8)
    groups = merged_values(known)
    reduced = compressed(completed(known), groups)
    assert {a.values.size for a in reduced.answers if a.clique == AC} == {10}
    made = GumSpec(iterations=3).make(known, rows=500, rng=np.random.default_rng(0))
    assert made.table.rows == 500


def test_a_residual_without_its_columns_tells_no_marginal_but_a_model_still_follows_it():
    alone = release([(AB, ResidualQuery((4, 3)), 1.0), (("a",), Identity(4), 1.0)])
    assert rebuilt_of(alone, AB) is None
    assert [a.clique for a in completed(alone).answers] == [("a",)]
    tied = release([(AB, ResidualQuery((4, 3)), 1.0), *ASKED[:2]])
    fitted = fit_model(tied, ModelSettings(iterations=2_000)).marginal(AB)
    assert fitted == pytest.approx(sums(TRUTH, AB), abs=3.0)


def test_with_a_public_total_the_number_of_records_has_no_noise():
    known = replace(release(seed=9), public_total=6_000)
    assert rebuilt_of(known, AB).noise.strengths[()] == 0
    assert rebuilt_of(known, AB).values.sum() == pytest.approx(6_000)


def test_overlaps_are_the_intersections_in_the_order_of_inclusion():
    cliques = [("a", "b", "c"), ("a", "b"), ("b", "c"), ("c", "one")]
    assert overlaps_of(ABC, cliques) == {("b",): [0, 1, 2], ("c",): [0, 2, 3], ("a", "b"): [0, 1], ("b", "c"): [0, 2]}
    assert overlaps_of(ABC, [("a", "one"), ("b", "one")]) == {}


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), total=st.floats(0, 100))
def test_norm_sub_is_the_closest_point_never_further_from_a_truth_of_that_total(seed, total):
    rng = np.random.default_rng(seed)
    values = rng.normal(total / 6, 20, (2, 3))
    found = norm_sub(values, total)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(total, abs=1e-9)
    assert found.shape == (2, 3)
    truth = rng.dirichlet(np.ones(6)).reshape(2, 3) * total
    assert ((found - truth) ** 2).sum() <= ((values - truth) ** 2).sum() + 1e-9
    assert ((found - values) ** 2).sum() <= ((truth - values) ** 2).sum() + 1e-9
    assert norm_sub(found, total) == pytest.approx(found, abs=1e-9)


@pytest.mark.some(2)
@pytest.mark.parametrize("shape", [(4, 5, 2), (400, 300)], ids=["small", "a hundred thousand cells"])
@settings(max_examples=20)
@given(seed=st.integers(0, 10**6))
def test_a_fitted_marginal_has_exactly_its_sides_and_no_negative_cell(shape, seed):
    rng = np.random.default_rng(seed)
    sides = [rng.dirichlet(np.full(k, 0.3)) * 50 for k in shape]
    found = fit(rng.normal(2, 9, shape), 50.0, {(axis,): side for axis, side in enumerate(sides)})
    assert found.min() >= 0
    for axis, side in enumerate(sides):
        assert found.sum(axis=tuple({*range(len(shape))} - {axis})) == pytest.approx(side, abs=1e-8)


@pytest.mark.filterwarnings("error")
def test_a_line_of_next_to_nothing_is_none_and_makes_no_cell_infinite():
    values, off = raked(np.array([[1e-317, 0.0], [1.0, 3.0]]), (0,), np.array([0.5, 8.0]))
    assert values.tolist() == [[0.0, 0.0], [2.0, 6.0]] and off == 4.0


def test_softening_removes_pure_noise_keeps_strong_signal_and_lowers_the_error_between():
    rng = np.random.default_rng(1)
    base = product([np.full(20, 50.0), np.full(30, 1000 / 30)], 1000.0)
    noise = rng.normal(0, 5, base.shape)
    assert np.abs(soften(base + noise, base, 5.0) - base).mean() < 0.2 * np.abs(noise).mean()
    signal = rng.normal(0, 500, base.shape)
    strong = soften(base + signal + noise, base, 5.0)
    assert np.abs(strong - (base + signal + noise)).max() < 5
    rare = np.where(rng.random(base.shape) < 0.05, 60.0, 0.0)
    kept = soften(base + rare + noise, base, 5.0)
    assert ((kept - base - rare) ** 2).sum() < 0.5 * (noise**2).sum()


def test_few_strong_cells_among_many_noisy_ones_are_told_from_noise():
    """With Stein's threshold alone as much noise passes as the signal has; with √(2 ln n) hardly any."""
    base, signal = np.full(3600, 10.0), np.zeros(3600)
    signal[:3] = 60.0  # six times the noise; the squares of all cells together tell little
    plain, sparse, kept = [], [], []
    for seed in range(40):
        noise = np.random.default_rng(seed).normal(0, 10.0, 3600)
        free, cut = (soften(base + signal + noise, base, 10.0, sparse=s) - base for s in (False, True))
        plain.append(np.abs(free[3:]).sum())
        sparse.append(np.abs(cut[3:]).sum())
        kept.append(cut[:3].sum() / signal.sum())
    assert np.mean(plain) > 0.5 * signal.sum() and np.mean(sparse) < 0.02 * signal.sum()
    assert np.mean(kept) > 0.25
    signal[:3] = 90.0  # nine times the noise: all of it counts
    whole = soften(base + signal + np.random.default_rng(1).normal(0, 10.0, 3600), base, 10.0, sparse=True) - base
    assert whole[:3].mean() == pytest.approx(90.0, abs=20.0)
    dense = np.where(np.arange(3600) % 2, 25.0, -25.0)
    same = [soften(base + dense + noise, base, 10.0, sparse=s) for s in (False, True)]
    assert np.array_equal(*same)  # where squares tell of signal, nothing changes


@pytest.mark.parametrize("kind", KINDS)
def test_noise_alone_seldom_has_a_difference_that_counts_whole_whatever_its_law_is(kind):
    """By the tails of Gaussian noise more than ten of 3,600 cells of Laplace noise counted whole."""
    law, base, whole = NOISE_KINDS[kind], np.zeros(3600), 0
    for seed in range(100):
        noise = law.simulate(np.random.default_rng(seed), 1 / law.stddev, 3600)
        whole += bool((soften(noise, base, 1.0, sparse=True, noise=kind) == noise).any())
    assert whole <= 8, "one marginal of fifty"


def test_evidence_says_whose_tails_its_noise_has():
    domain = Domain((Attribute("a", 2),))
    answers = {k: NoisyMarginal(("a",), Identity(2), np.ones(2), k, 1.0, "e") for k in KINDS}
    assert [gathered(domain, [answers[k]])[0].noise for k in KINDS] == [*KINDS]
    assert gathered(domain, [*answers.values()])[0].noise == "laplace", "the wider ones"


def test_full_cells_keep_their_differences_beside_many_empty_ones():
    base = np.concatenate([np.full(100, 400.0), np.full(2000, 0.01)])
    truth = base + np.concatenate([np.where(np.arange(100) % 2, 5.0, -5.0), np.zeros(2000)])
    errors = []
    for seed in range(20):
        values = truth + np.random.default_rng(seed).normal(size=truth.size)
        errors.append([((v - truth) ** 2).sum() for v in (soften_alike(values, base), soften(values, base, 1.0))])
    alike, alone = np.mean(errors, axis=0)
    assert alike < 0.6 * alone


def test_an_answer_that_is_not_finite_is_refused_by_name():
    broken = NoisyMarginal(("a",), Identity(3), np.array([1.0, np.nan, 2.0]), "gaussian", 1.0, "0")
    with pytest.raises(UserError, match="answers to a are not all finite"):
        consistent(Measurements(ABC, (broken,)))
