"""Marginals from answers to residuals: least squares over all answers, with the exact law of their noise."""

from dataclasses import replace

import numpy as np
import pytest

from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.queries.merged_cells import MergedQuery
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.queries.residual_query import ResidualQuery
from mechanisms.public.release import Measurements, NoisyMarginal
from pipeline.release_query import estimate_count, estimate_marginal
from synthesis.consistency.agree import consistent
from synthesis.consistency.merged_values import compressed, merged_values
from synthesis.consistency.residual_parts import ResidualParts, completed, rebuilt_of
from synthesis.gum.gum_settings import GumSpec
from synthesis.marginal_tables import marginal_tables
from synthesis.pgm.graphical_model import fit_model
from synthesis.pgm.model_settings import ModelSettings

ABC = Domain((Attribute("a", 4), Attribute("b", 3), Attribute("c", 5)))
TRUTH = np.random.default_rng(3).multinomial(6_000, np.random.default_rng(4).dirichlet(np.full(60, 0.6)))
TRUTH = TRUTH.reshape(4, 3, 5).astype(float)
AB, AC = ("a", "b"), ("a", "c")
#: One-way marginals, one of them twice; a residual, asked twice; another one; and the whole of a third pair.
ASKED = [
    *((("a",), Identity(4), 3.0), (("b",), Identity(3), 2.0), (("c",), Identity(5), 4.0), (("a",), Identity(4), 5.0)),
    *((AB, ResidualQuery((4, 3)), 2.0), (AB, ResidualQuery((4, 3)), 3.0), (AC, ResidualQuery((4, 5)), 6.0)),
    (("b", "c"), Identity(15), 7.0),
]


def sums(joint, clique):
    return joint.sum(axis=tuple(i for i, n in enumerate("abc") if n not in clique)).ravel()


def release(asked=ASKED, seed=None, truth=TRUTH):
    rng, made = np.random.default_rng(seed), []
    for clique, query, sigma in asked:
        exact = query.answer(sums(truth, clique))
        noise = 0.0 if seed is None else rng.normal(0, sigma, exact.size)
        made.append(NoisyMarginal(clique, query, exact + noise, "gaussian", sigma, "0"))
    return Measurements(ABC, tuple(made))


def stacked(asked=ASKED):
    """All queries over the whole table (answers × 60 cells), each row over its noise."""
    joints = np.eye(60).reshape(60, 4, 3, 5)
    return np.concatenate([np.stack([q.answer(sums(j, c)) for j in joints], axis=1) / s for c, q, s in asked])


@pytest.mark.parametrize("clique", [AB, AC, ("b", "c")])
def test_a_rebuilt_marginal_is_least_squares_over_all_answers_and_knows_its_noise(clique):
    known, matrix = release(seed=5), stacked()
    onto = np.stack([sums(j, clique) for j in np.eye(60).reshape(60, 4, 3, 5)], axis=1)
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
    count = estimate_count(known, weights)
    cell = np.outer(weights["a"], weights["b"]).ravel()
    assert count.values[0] == pytest.approx(cell @ cells.values)
    assert count.errors[0] == pytest.approx(np.linalg.norm(by_parts.noise.times(cell.reshape(1, -1))))
    off = [(estimate_count(release(seed=s), weights).values[0] - sums(TRUTH, AB) @ cell) for s in range(400)]
    assert np.std(off) == pytest.approx(count.errors[0], rel=0.12) and abs(np.mean(off)) < 0.2 * count.errors[0]


def test_without_noise_every_way_to_take_the_answers_gives_the_truth():
    known = release()
    whole = completed(known)
    assert [a.clique for a in whole.answers].count(AB) == 1
    assert all(isinstance(a.query, Identity) for a in whole.answers)
    for answer in whole.answers:
        assert answer.values == pytest.approx(sums(TRUTH, answer.clique), abs=1e-9)
    for target in consistent(known).marginals:
        assert target.values.ravel() == pytest.approx(sums(TRUTH, target.clique), abs=1e-6)
    assert {t.clique for t in marginal_tables(known, draws=2)} == {a.clique for a in known.answers}
    model = fit_model(known, ModelSettings(iterations=2_000))
    assert model.marginal(AB) == pytest.approx(sums(TRUTH, AB), abs=3.0)


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
