"""GUM's schedules, layout, record and structural zeros; min-cost flow; PriView's answers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.marginals import count_cliques
from mechanisms.public.release import Measurements
from synthesis.consistency.agree import ConsistentTargets, Target, consistent
from synthesis.gum.gradual_update import UpdateWork, shrink_factor
from synthesis.gum.gum_settings import GumSpec
from synthesis.gum.layout import components, lay_out
from synthesis.impossible import mended
from synthesis.papers.maxent import MaxentSpec, ViewModel
from synthesis.papers.mcf import McfSpec, fewest_changes

WORLD = Domain(tuple(Attribute(n, k) for n, k in zip("abcde", (4, 3, 5, 2, 3), strict=True)))
SHAPE = (4, 3, 5, 2, 3)


def joint_of(seed=5, rows=20_000, shape=0.2):
    return np.random.default_rng(seed).dirichlet(np.full(360, shape)).reshape(SHAPE) * rows


def targets_of(joint, cliques, zeros=()):
    own = tuple(Target(tuple(c), sums(joint, c), 1.0) for c in cliques)
    return ConsistentTargets(WORLD, float(joint.sum()), own, tuple(zeros))


def sums(joint, clique):
    return joint.sum(axis=tuple(i for i, n in enumerate(WORLD.names) if n not in clique))


def off(table, targets):
    counted = zip(targets.marginals, count_cliques(table, [t.clique for t in targets.marginals]), strict=True)
    return max(0.5 * np.abs(n / table.rows - t.values.ravel() / targets.total).sum() for t, n in counted)


def made(targets, spec, rows=20_000, seed=0):
    return spec.follow(targets, rows=rows, rng=np.random.default_rng(seed))


def test_duplicates_keep_the_correlation_that_replacement_alone_destroys():
    """Figure 4 at scale: gender decides age; (income, gender) has to move; (gender, age) is no target."""
    domain = Domain((Attribute("income", 2), Attribute("gender", 2), Attribute("age", 2)))
    rng = np.random.default_rng(0)
    gender = (rng.random(10_000) < 0.2).astype(np.uint8)
    table = CodedTable(domain, (rng.integers(0, 2, 10_000).astype(np.uint8), gender, gender.copy()))
    target = Target(("income", "gender"), np.array([[500.0, 3500.0], [500.0, 5500.0]]), 1.0)
    agree = {}
    for replace in (0.0, 0.5, 1.0):
        work = UpdateWork.start(table, np.random.default_rng(1))
        for t in range(30):
            work.update(target, alpha=GumSpec().growth(t), replace=replace)
        assert work.update(target, alpha=0.5, replace=replace)[1] < 0.001
        agree[replace] = np.mean(work.columns[1] == work.columns[2])
    assert agree[0.0] == 1.0
    assert agree[0.0] > agree[0.5] > agree[1.0]
    assert agree[1.0] < 0.5


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), share=st.floats(0.01, 1))
def test_beta_keeps_the_number_of_rows(seed, share):
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 50, 12)
    excess = np.minimum(np.maximum(rng.normal(0, 20, 12), 0), counts)
    beta = shrink_factor(excess, counts, share * excess.sum())
    assert 0 <= beta <= 1 + 1e-9
    assert np.minimum(excess, beta * counts).sum() == pytest.approx(share * excess.sum())


@pytest.mark.parametrize(
    "cliques", [["ab", "bc", "cd", "de"], ["ab", "bc", "ac", "cd"], ["abc", "bcd", "de", "a"]], ids=str
)
@pytest.mark.parametrize(
    "change", [{}, {"schedule": "sqrt"}, {"updates": "paper"}, {"start": "oneway", "lone": "once"}], ids=str
)
def test_exact_targets_are_met_on_trees_and_cycles(cliques, change):
    targets = targets_of(joint_of(), cliques)
    found = made(targets, GumSpec(**change))
    assert off(found.table, targets) < 0.006
    assert found.record is not None
    assert max(found.record.final.values()) == pytest.approx(off(found.table, targets))


def test_a_tree_is_appended_whole_and_parts_are_made_apart():
    tree = lay_out(targets_of(joint_of(), ["ab", "bc", "cd", "de"]))
    assert not tree.groups
    assert sorted(n for a in tree.appended for n in a.lone) == list("abcde")
    assert tree.appended[0].given == ()
    cycle = lay_out(targets_of(joint_of(), ["ab", "bc", "ac", "cd", "e"]))
    assert [names for names, _ in cycle.groups] == [("a", "b", "c")]
    assert [(a.given, a.lone) for a in cycle.appended] == [(("c",), ("d",))]
    apart = targets_of(joint_of(), ["ab", "de"])
    assert not lay_out(apart).groups
    pinned = targets_of(joint_of(), ["ab", "de"], [(("b", "d"), np.eye(3, 2, dtype=bool))])
    assert [n for n, _ in lay_out(pinned).groups] == [("b", "d")]
    assert components("abc", [("a", "c"), ("x",)]) == [{"a", "c"}, {"b"}]


def test_two_columns_appended_to_one_anchor_and_joined_parts_are_independent():
    joint = np.ones(SHAPE) * 50
    table = made(targets_of(joint, ["ab", "ac", "de"]), GumSpec(), rows=18_000).table
    for pair in ("bc", "bd", "ce", "ad"):
        n = count_cliques(table, [tuple(pair)])[0]
        expected = table.rows / n.size
        assert ((n - expected) ** 2 / expected).sum() < n.size + 6 * (2 * n.size) ** 0.5


def test_the_record_tells_every_pass_and_stops_when_stalled():
    targets = targets_of(joint_of(), ["ab", "bc", "ac"])
    record = made(targets, GumSpec(start="oneway")).record
    assert record is not None
    assert record.cliques == (("a", "b"), ("b", "c"), ("a", "c"))
    assert record.errors.shape[1] == 3
    assert record.errors[-1].mean() < 0.1 * record.errors[0].mean()
    against = ConsistentTargets(
        WORLD,
        1000.0,
        (*targets_of(joint_of(1, 1000), ["ab", "bc"]).marginals, *targets_of(joint_of(2, 1000), ["ac"]).marginals),
    )
    stalled = made(against, GumSpec(iterations=500, decay=1.0), rows=1000).record
    assert stalled is not None
    assert stalled.reasons == ("stall",)
    assert len(stalled.errors) < 200


def test_rows_are_mended_from_nothing_and_zeros_without_any_row_are_refused():
    domain = Domain((Attribute("a", 2), Attribute("b", 2), Attribute("c", 2)))
    table = CodedTable(domain, (np.zeros(5, np.uint8),) * 3)
    differ = np.eye(2, dtype=bool)
    zeros = [(("a", "b"), differ), (("b", "c"), differ)]
    found = mended(table, zeros, np.random.default_rng(0))
    assert not any(cells[tuple(found.column(n) for n in clique)].any() for clique, cells in zeros)
    with pytest.raises(UserError, match="no synthetic row satisfies"):
        mended(table, [*zeros, (("a", "c"), differ)], np.random.default_rng(0))


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_min_cost_flow_changes_the_fewest_codes(seed):
    """Against the plain transport programme over all pairs of cells."""
    rng = np.random.default_rng(seed)
    shape = (3, 2, 2)
    counts, wanted = (rng.multinomial(40, rng.dirichlet(np.full(12, 0.5))).astype(np.int64) for _ in range(2))
    sources, sinks, amounts = fewest_changes(counts, wanted, shape)
    moved = counts.copy()
    np.subtract.at(moved, sources, amounts)
    np.add.at(moved, sinks, amounts)
    assert list(moved) == list(wanted)
    places = np.stack(np.unravel_index(np.arange(12), shape))
    cost = (places[:, :, None] != places[:, None, :]).sum(axis=0)
    rows = np.kron(np.eye(12), np.ones(12))
    columns = np.kron(np.ones(12), np.eye(12))
    best = linprog(cost.ravel(), A_eq=np.vstack([rows, columns]), b_eq=np.concatenate([counts, wanted])).fun
    assert (cost[sources, sinks] * amounts).sum() == pytest.approx(best)


def test_min_cost_flow_meets_a_marginal_exactly_and_gum_beats_it_on_a_cycle():
    targets = targets_of(joint_of(shape=0.05), ["ab", "bc", "ac", "cd", "ad", "bd"])
    work = UpdateWork.start(made(targets, GumSpec(iterations=1)).table, np.random.default_rng(0))
    McfSpec().update(work, targets.marginals[0], 0)
    assert McfSpec().update(work, targets.marginals[0], 1)[1] < 0.0005
    flow, gum = (off(made(targets, s).table, targets) for s in (McfSpec(), GumSpec(start="oneway", descents=0)))
    assert gum < flow
    once = (GumSpec(start="oneway", iterations=1, descents=sweeps) for sweeps in (0, 4))
    alone, descended = (off(made(targets, spec).table, targets) for spec in once)
    assert descended < alone


def test_a_marginal_of_one_view_is_its_side_and_one_beyond_all_views_has_the_sides_that_are_known():
    joint = joint_of(rows=1000)
    model = ViewModel(targets_of(joint, ["abc", "cd", "bd"]), MaxentSpec())
    assert model.marginal("ba") == pytest.approx(sums(joint, "ab").ravel())
    assert model.marginal("ae").reshape(4, 3).sum(axis=1) == pytest.approx(sums(joint, "a"), abs=0.01)


def test_answers_are_possible_and_limited():
    joint = joint_of(rows=1000)
    zeros = [(("a", "d"), np.eye(4, 2, dtype=bool))]
    model = ViewModel(targets_of(joint, ["ab", "bd"], zeros), MaxentSpec())
    assert (model.marginal("ad").reshape(4, 2)[np.eye(4, 2, dtype=bool)] == 0).all()
    with pytest.raises(UserError, match=r"a × b × c has 60 cells"):
        ViewModel(targets_of(joint, ["ab"]), MaxentSpec(max_cells=50)).marginal("abc")
    empty = ViewModel(consistent(Measurements(WORLD, (), public_total=0)), MaxentSpec())
    assert not empty.marginal("ab").any()
