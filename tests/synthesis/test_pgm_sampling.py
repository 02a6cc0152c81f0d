"""Rows from a graphical model: marginals of large samples are the model's, roundings are fair and small."""

import numpy as np
import pytest

from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.marginals import count_cliques
from synthesis.pgm import sampling
from synthesis.pgm.inference import JunctionTreeInference
from synthesis.pgm.junction_tree import junction_tree
from synthesis.pgm.sampling import model_rows
from tests.synthesis.pgm_worlds import SHAPES, cliques_of, joint, side, world


def random_model(shape: str, scale: float = 1.5, seed: int = 0):
    tree = junction_tree(world(), cliques_of(SHAPES[shape]))
    return JunctionTreeInference(tree), np.random.default_rng(seed).normal(0, scale, tree.cells)


def rows_of(engine, potentials, rows: int, seed: int = 0):
    conditionals, _ = engine.conditionals(potentials)
    return model_rows(engine, conditionals, rows=rows, rng=np.random.default_rng(seed))


@pytest.mark.parametrize("shape", SHAPES)
def test_marginals_of_large_samples_are_those_of_the_model(shape):
    engine, potentials = random_model(shape)
    whole, _ = joint(engine, potentials)
    made = rows_of(engine, potentials, 400_000)
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


@pytest.mark.parametrize("rows", [0, 1, 2, 17])
def test_any_number_of_rows(rows):
    engine, potentials = random_model("cycle")
    made = rows_of(engine, potentials, rows)
    assert made.rows == rows


def test_chunks_make_one_table(monkeypatch):
    monkeypatch.setattr(sampling, "CHUNK", 1000)
    engine, potentials = random_model("tree of triples")
    whole, _ = joint(engine, potentials)
    made = rows_of(engine, potentials, 50_500)
    assert made.rows == 50_500
    for clique in engine.tree.cliques:
        counts = count_cliques(made, [clique])[0] / made.rows
        assert np.abs(counts - side(whole, clique).ravel()).max() < 2e-3


def test_cells_of_probability_zero_are_never_drawn():
    domain = Domain((Attribute("a", 3), Attribute("b", 3)))
    tree = junction_tree(domain, [("a", "b")])
    allowed = np.where(np.eye(3).ravel() > 0, 0.0, -np.inf)
    engine = JunctionTreeInference(tree, allowed)
    made = rows_of(engine, np.zeros(9), 1001)
    assert np.array_equal(made.column("a"), made.column("b"))
    assert np.ptp(np.bincount(made.column("a"))) <= 1
