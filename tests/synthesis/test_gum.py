"""GUM's schedules, layout, zeros, descents and merged values; min-cost flow; PriView's answers."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from mechanisms.public.coded_table import CodedTable, count_cliques
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.queries.cell_sums import MergedQuery, merged_query, rare_groups
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements, NoisyMarginal
from synthesis.consistency.agree import ConsistentTargets, Target, consistent
from synthesis.consistency.merged_values import compressed, expanded, merged_values, one_way_counts
from synthesis.contract import synthesize
from synthesis.gum.gradual_update import UpdateWork, descend, shrink_factor
from synthesis.gum.gum_settings import GumSpec
from synthesis.gum.layout import components, lay_out
from synthesis.impossible import mended
from synthesis.independent import IndependentSpec
from synthesis.papers.maxent import MaxentSpec, ViewModel
from synthesis.papers.mcf import McfSpec, fewest_changes
from synthesis.synthesizers import SYNTHESIZERS

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
    assert record.cliques == (("a", "b"), ("b", "c"), ("a", "c"))
    assert record.errors.shape[1] == 3
    assert record.errors[-1].mean() < 0.1 * record.errors[0].mean()
    against = ConsistentTargets(
        WORLD,
        1000.0,
        (*targets_of(joint_of(1, 1000), ["ab", "bc"]).marginals, *targets_of(joint_of(2, 1000), ["ac"]).marginals),
    )
    stalled = made(against, GumSpec(iterations=500, decay=1.0), rows=1000).record
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


@settings(max_examples=25)
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


BOX = Domain((Attribute("a", 6, 6), Attribute("b", 2)))
COUNTS = np.array([500.0, 300.0, 20.0, 0.0, -6.0, 10.0])
JOINT = np.array([[500, 0], [0, 300], [0, 20], [0, 0], [0, 0], [0, 10]])


def answer(clique, values, query=None):
    query = query or Identity(len(values))
    return NoisyMarginal(clique, query, np.asarray(values, float), "gaussian", 5.0, "e" + "".join(clique))


def known(floor=0.0):
    ones = (answer(("a",), COUNTS), answer(("b",), JOINT.sum(axis=0)))
    query = merged_query(BOX, ("a", "b"), rare_groups(BOX, ones, 4.5, floor))
    return Measurements(BOX, (*ones, answer(("a", "b"), query.answer(JOINT.ravel().astype(float)), query)))


def test_the_threshold_is_the_larger_of_the_multiple_of_sigma_and_the_floor():
    one = [answer(("a",), COUNTS)]
    groups = rare_groups(BOX, one, 4.5)
    assert groups["a"].tolist() == [0, 1, 2, 2, 2, 2] and groups["b"].tolist() == [0, 1], "not measured: all apart"
    assert rare_groups(BOX, one, 3.0)["a"].tolist() == [0, 1, 2, 3, 3, 3]
    assert rare_groups(BOX, one, 3.0, floor=400)["a"].tolist() == [0, 1, 1, 1, 1, 1]
    alone = rare_groups(Domain((Attribute("a", 3),)), [answer(("a",), [3.0, 900.0, 400.0])], 4.5)
    assert alone["a"].tolist() == [0, 1, 2], "one rare value alone keeps its place"


def test_answers_over_merged_codes_are_whole_marginals_and_sums_of_the_fine_ones():
    measurements = known()
    plain = compressed(measurements, merged_values(measurements))
    assert [a.size for a in plain.domain.attributes] == [3, 2]
    assert all(isinstance(a.query, Identity) and a.values.size == plain.domain.cells(a.clique) for a in plain.answers)
    assert plain.answers[0].values.tolist() == [500, 300, 24]
    assert plain.answers[0].scale == pytest.approx(5 * 2**0.5)
    assert plain.answers[1] is measurements.answers[1]


def test_a_rule_about_one_column_does_not_keep_the_others_from_being_merged():
    """A column that a rule names keeps its values; answers over the others stay as small as they were asked."""
    domain = Domain((Attribute("a", 6, 6), Attribute("b", 3)))
    joint = np.array([[500.0, 0, 0], [0, 300, 0], [0, 20, 0], [0, 0, 0], [0, 0, 0], [0, 10, 0]])
    ones = (answer(("a",), joint.sum(axis=1)), answer(("b",), joint.sum(axis=0)))
    query = MergedQuery((np.array([0, 1, 2, 2, 2, 2]), np.array([0, 1, 1])))
    measured = Measurements(domain, (*ones, answer(("a", "b"), query.answer(joint.ravel()), query)))
    groups = merged_values(measured, apart={"b"})
    small = compressed(measured, groups)
    assert groups["a"].tolist() == [0, 1, 2, 2, 2, 2] and [a.size for a in small.domain.attributes] == [3, 3]
    pair = small.answers[-1]
    assert pair.values.tolist() == [500, 0, 0, 300, 0, 30] and pair.scale == 5.0
    assert [own.tolist() for own in pair.query.labels] == [[0, 1, 2], [0, 1, 1]]
    never = [(("b",), np.array([False, False, True]))]
    made = synthesize(measured, GumSpec(), rows=830, rng=np.random.default_rng(0), zeros=never).table
    assert not (made.column("b") == 2).any() and ((made.column("a") > 0) == (made.column("b") == 1)).mean() > 0.97


@pytest.mark.parametrize("spec", [kind() for name, kind in SYNTHESIZERS.items() if name != "mbi"])
def test_every_synthesizer_brings_the_merged_values_back(spec):
    made = synthesize(known(), spec, rows=8_300, rng=np.random.default_rng(0)).table
    counts = np.bincount(made.column("a"), minlength=6)
    assert made.domain == BOX and made.rows == 8_300
    assert counts[:2] == pytest.approx([5000, 3000], abs=250)
    if not isinstance(spec, IndependentSpec):
        assert ((made.column("a") > 0) == (made.column("b") == 1)).mean() > 0.97


def test_merged_rows_follow_the_noisy_counts_of_the_values_and_never_the_negative_ones():
    measurements = known()
    rows = synthesize(measurements, GumSpec(), rows=8_300, rng=np.random.default_rng(1)).table
    counts = np.bincount(rows.column("a"), minlength=6)
    assert counts[3] == counts[4] == 0
    assert counts[2] == pytest.approx(2 * counts[5], abs=2)


def test_when_every_value_is_merged_the_values_come_from_the_one_way_marginal():
    measurements = known(floor=1e9)
    assert merged_values(measurements)["a"].tolist() == [0] * 6
    rows = synthesize(measurements, GumSpec(), rows=830, rng=np.random.default_rng(1)).table
    assert np.bincount(rows.column("a"), minlength=6).tolist() == [500, 300, 20, 0, 0, 10]


def test_merged_values_that_were_all_noise_come_back_evenly():
    labels = (np.array([0, 0, 0]), np.arange(2))
    domain = Domain((Attribute("a", 3), Attribute("b", 2)))
    pair = answer(("a", "b"), [4.0, 5.0], MergedQuery(labels))
    measurements = Measurements(domain, (answer(("a",), [-1.0, -2.0, -3.0]), pair))
    groups = merged_values(measurements)
    made = synthesize(measurements, GumSpec(), rows=9, rng=np.random.default_rng(0)).table
    assert np.bincount(made.column("a")).tolist() == [3, 3, 3]
    nobody = synthesize(compressed(measurements, groups), GumSpec(), rows=0, rng=np.random.default_rng(0)).table
    counts = one_way_counts(measurements, groups)
    assert expanded(nobody, domain, groups, counts, np.random.default_rng(0)).rows == 0


def test_where_answers_merge_one_attribute_in_two_ways_what_either_merges_is_one_group():
    """Whole columns beside merged ones, nested groups and crossing ones: all counts are met over the common groups."""
    domain = Domain((Attribute("a", 6), Attribute("b", 2), Attribute("c", 1)))
    counts = np.array([[5, 1], [2, 7], [3, 3], [8, 0], [1, 4], [6, 2]], float)
    whole, nested = np.arange(6), np.array([2, 2, 0, 0, 0, 1])
    answers = [answer(("a", "c"), counts.sum(axis=1), MergedQuery((whole, np.zeros(1, np.int64))))]
    for own in (np.array([0, 0, 1, 1, 2, 3]), nested):
        query = MergedQuery((own, np.arange(2)))
        answers.append(answer(("a", "b"), query.answer(counts.ravel()), query))
    measurements = Measurements(domain, tuple(answers))
    groups = merged_values(measurements)
    assert groups.keys() == {"a"} and groups["a"].tolist() == [0, 0, 1, 1, 1, 2]
    for each in compressed(measurements, groups).answers:
        expected = MergedQuery((groups["a"], np.arange(domain[each.clique[1]].size)))
        exact = counts.ravel() if each.clique == ("a", "b") else counts.sum(axis=1)
        assert each.values.tolist() == expected.answer(exact).tolist()
    made = synthesize(measurements, GumSpec(), rows=42, rng=np.random.default_rng(0)).table
    assert np.bincount(groups["a"][made.column("a")]).tolist() == [15, 19, 8]


def test_answers_that_number_the_values_in_another_order_are_read_in_theirs():
    joint = np.array([[0.0, 3.0], [900.0, 0.0], [0.0, 400.0]])
    query = MergedQuery((np.array([2, 0, 1]), np.array([0, 1])))
    domain = Domain((Attribute("a", 3), Attribute("b", 2)))
    answers = (answer(("a",), joint.sum(axis=1)), answer(("a", "b"), query.answer(joint.ravel()), query))
    made = synthesize(Measurements(domain, answers), GumSpec(), rows=1303, rng=np.random.default_rng(0)).table
    counts = np.bincount(made.column("a") * 2 + made.column("b"), minlength=6).reshape(3, 2)
    assert np.abs(counts - joint).max() <= 10


FREE = Domain((Attribute("a", 4), Attribute("b", 3), Attribute("c", 5), Attribute("free", 2)))


def rows_of(seed: int, rows: int, twist: bool) -> CodedTable:
    rng = np.random.default_rng(seed)
    a, b, c, free = (rng.integers(0, attribute.size, rows) for attribute in FREE.attributes)
    return CodedTable(FREE, tuple(x.astype(np.uint8) for x in (a, (a + b // 2) % 3 if twist else b, c, free)))


def wanted_of(table: CodedTable, stddev=1.0) -> list[Target]:
    cliques = [("a",), ("a", "b"), ("b", "c"), ("a", "b", "c")]
    counts = count_cliques(table, cliques)
    return [Target(c, n.reshape(FREE.shape(c)).astype(float), stddev) for c, n in zip(cliques, counts, strict=True)]


def squared_error(table: CodedTable, targets: list[Target]) -> float:
    counts = count_cliques(table, [t.clique for t in targets])
    return sum(
        float(((n - t.values.ravel() * table.rows / t.values.sum()) ** 2).sum() / t.stddev**2)
        for n, t in zip(counts, targets, strict=True)
    )


def test_the_error_falls_with_every_sweep_and_rows_stay_in_number_and_domain():
    targets = wanted_of(rows_of(0, 3000, twist=True))
    start = rows_of(1, 3000, twist=False)
    errors = [
        squared_error(descend(start, targets, sweeps=k, rng=np.random.default_rng(2))[0], targets) for k in range(5)
    ]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.01 * errors[0]
    made, _ = descend(start, targets, sweeps=3, rng=np.random.default_rng(2))
    assert made.rows == 3000
    assert all(c.max() < a.size for c, a in zip(made.columns, FREE.attributes, strict=True))


def test_an_attribute_without_a_marginal_and_the_given_table_are_left_alone():
    start = rows_of(1, 500, twist=False)
    before = [c.copy() for c in start.columns]
    made, _ = descend(start, wanted_of(rows_of(0, 500, twist=True)), sweeps=2, rng=np.random.default_rng(0))
    assert np.array_equal(made.column("free"), before[3])
    assert all(np.array_equal(x, y) for x, y in zip(before, start.columns, strict=True))


def test_sweeps_end_where_a_further_one_gains_next_to_nothing_beside_the_noise():
    start, wanted = rows_of(1, 3000, twist=False), wanted_of(rows_of(0, 3000, twist=True))

    def swept(noise: float) -> int:
        targets = [dataclasses.replace(t, stddev=noise) for t in wanted]
        return len(descend(start, targets, sweeps=10, rng=np.random.default_rng(0))[1])

    assert swept(1e6) == 1 and swept(100.0) < swept(0.1), "the same misfit, of which more is noise"


def test_sweeps_do_not_end_while_they_take_rows_out_of_impossible_cells():
    start, wanted = rows_of(1, 3000, twist=False), wanted_of(rows_of(0, 3000, twist=True))
    targets = [dataclasses.replace(t, stddev=1e6) for t in wanted]
    never = np.random.default_rng(0).random(FREE.shape(("a", "b"))) < 0.4

    def impossible(sweeps: int) -> int:
        table, _ = descend(start, targets, sweeps=sweeps, rng=np.random.default_rng(0), zeros=[(("a", "b"), never)])
        return int(never[table.column("a"), table.column("b")].sum())

    assert impossible(24) < 0.05 * impossible(1)


def test_where_targets_contradict_each_other_the_more_precise_one_is_met():
    sure = Target(("a",), np.array([700.0, 100.0, 100.0, 100.0]), 1.0)
    vague = Target(("a", "b"), np.full((4, 3), 1000 / 12), 50.0)
    made, _ = descend(rows_of(3, 1000, twist=False), [sure, vague], sweeps=10, rng=np.random.default_rng(0))
    assert np.abs(np.bincount(made.column("a"), minlength=4) - sure.values).max() <= 3


@pytest.mark.parametrize(("rows", "share"), [(1000, 12), (6, 6)], ids=["in all cells", "in as many as rows"])
def test_noise_of_few_answers_lies_in_all_cells_of_their_target(rows, share):
    """Of two targets that contradict each other, the one is met whose answers together have less noise."""
    shape, clique = FREE.shape(("a", "b")), ("a", "b")
    one, other = np.zeros(shape), np.zeros(shape)
    one[:2], other[2:] = rows / 6, rows / 6

    def met(noise: float) -> bool:
        both = [Target(clique, one, noise, answers=2), Target(clique, other, 1.0)]
        made, _ = descend(rows_of(3, rows, twist=False), both, sweeps=10, rng=np.random.default_rng(0))
        return int((made.column("a") < 2).sum()) > rows / 2

    even = (share / 2) ** 0.5
    assert met(0.8 * even) and not met(1.25 * even)


def test_rows_that_fit_already_are_not_touched():
    table = rows_of(0, 400, twist=True)
    made, changed = descend(table, wanted_of(table), sweeps=3, rng=np.random.default_rng(0))
    assert changed == [0]
    assert all(np.array_equal(x, y) for x, y in zip(made.columns, table.columns, strict=True))
