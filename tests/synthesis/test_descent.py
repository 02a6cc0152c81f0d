"""The closing descent of GUM, against a brute-force error."""

import numpy as np
import pytest

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.marginals import count_cliques
from synthesis.consistency.agree import ConsistentTargets, Target
from synthesis.gum.descent import descend
from synthesis.gum.gum_settings import GumSpec
from synthesis.gum.passes import gum_rows

WORLD = Domain((Attribute("a", 4), Attribute("b", 3), Attribute("c", 5), Attribute("free", 2)))


def rows_of(seed: int, rows: int, twist: bool) -> CodedTable:
    rng = np.random.default_rng(seed)
    a, b, c, free = (rng.integers(0, attribute.size, rows) for attribute in WORLD.attributes)
    return CodedTable(WORLD, tuple(x.astype(np.uint8) for x in (a, (a + b // 2) % 3 if twist else b, c, free)))


def targets_of(table: CodedTable, stddev=1.0) -> list[Target]:
    cliques = [("a",), ("a", "b"), ("b", "c"), ("a", "b", "c")]
    counts = count_cliques(table, cliques)
    return [Target(c, n.reshape(WORLD.shape(c)).astype(float), stddev) for c, n in zip(cliques, counts, strict=True)]


def squared_error(table: CodedTable, targets: list[Target]) -> float:
    counts = count_cliques(table, [t.clique for t in targets])
    return sum(
        float(((n - t.values.ravel() * table.rows / t.values.sum()) ** 2).sum() / t.stddev**2)
        for n, t in zip(counts, targets, strict=True)
    )


def test_the_error_falls_with_every_sweep_and_rows_stay_in_number_and_domain():
    targets = targets_of(rows_of(0, 3000, twist=True))
    start = rows_of(1, 3000, twist=False)
    errors = [
        squared_error(descend(start, targets, sweeps=k, rng=np.random.default_rng(2))[0], targets) for k in range(5)
    ]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.01 * errors[0]
    made, _ = descend(start, targets, sweeps=3, rng=np.random.default_rng(2))
    assert made.rows == 3000
    assert all(c.max() < a.size for c, a in zip(made.columns, WORLD.attributes, strict=True))


def test_an_attribute_without_a_marginal_and_the_given_table_are_left_alone():
    start = rows_of(1, 500, twist=False)
    before = [c.copy() for c in start.columns]
    made, _ = descend(start, targets_of(rows_of(0, 500, twist=True)), sweeps=2, rng=np.random.default_rng(0))
    assert np.array_equal(made.column("free"), before[3])
    assert all(np.array_equal(x, y) for x, y in zip(before, start.columns, strict=True))


def test_where_targets_contradict_each_other_the_more_precise_one_is_met():
    sure = Target(("a",), np.array([700.0, 100.0, 100.0, 100.0]), 1.0)
    vague = Target(("a", "b"), np.full((4, 3), 1000 / 12), 50.0)
    made, _ = descend(rows_of(3, 1000, twist=False), [sure, vague], sweeps=10, rng=np.random.default_rng(0))
    assert np.abs(np.bincount(made.column("a"), minlength=4) - sure.values).max() <= 3


def test_rows_that_fit_already_are_not_touched():
    table = rows_of(0, 400, twist=True)
    made, changed = descend(table, targets_of(table), sweeps=3, rng=np.random.default_rng(0))
    assert changed == [0]
    assert all(np.array_equal(x, y) for x, y in zip(made.columns, table.columns, strict=True))


@pytest.mark.parametrize("rows", [0, 1])
def test_no_rows_and_one_row_are_allowed(rows):
    made, _ = descend(
        rows_of(0, rows, twist=False), targets_of(rows_of(0, 50, twist=True)), sweeps=2, rng=np.random.default_rng(0)
    )
    assert made.rows == rows


@pytest.mark.parametrize(
    "cliques", [[("a", "b"), ("b", "c")], [("a", "b"), ("b", "c"), ("a", "c")]], ids=["tree", "cycle"]
)
@pytest.mark.parametrize(("start", "lone"), [("oneway", "once"), ("tree", "append")])
def test_gum_meets_exact_targets_on_trees_and_cycles(cliques, start, lone):
    rng = np.random.default_rng(5)
    joint = rng.dirichlet(np.full(60, 0.4)).reshape(4, 3, 5) * 20_000
    axes = {"a": 0, "b": 1, "c": 2}
    targets = [Target(c, joint.sum(axis=tuple(set(range(3)) - {axes[n] for n in c})), 1.0) for c in cliques]
    made = gum_rows(
        ConsistentTargets(WORLD, 20_000.0, tuple(targets)),
        GumSpec(start=start, lone=lone),
        rows=20_000,
        rng=np.random.default_rng(0),
    ).table
    for target, n in zip(targets, count_cliques(made, cliques), strict=True):
        assert 0.5 * np.abs(n - target.values.ravel()).sum() / 20_000 < 0.005


def test_the_descent_can_be_turned_off_and_is_seeded():
    pairs = [("a", "b"), ("b", "c"), ("a", "c")]  # a cycle: no column is appended
    counts = zip(pairs, count_cliques(rows_of(0, 2000, twist=True), pairs), strict=True)
    marginals = tuple(Target(c, n.reshape(WORLD.shape(c)).astype(float), 1.0) for c, n in counts)
    targets = ConsistentTargets(WORLD, 2000.0, marginals)
    made = [
        gum_rows(targets, spec, rows=2000, rng=np.random.default_rng(7)).table
        for spec in [GumSpec(iterations=1, descents=k, start="oneway") for k in (0, 4, 4)]
    ]
    assert all(np.array_equal(x, y) for x, y in zip(made[1].columns, made[2].columns, strict=True))
    errors = [squared_error(m, list(targets.marginals)) for m in made[:2]]
    assert errors[1] < errors[0]
