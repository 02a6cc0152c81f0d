"""The default synthesizer; rows under a condition, and rows that no rule forbids."""

import importlib.util
from functools import lru_cache, partial, reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.public.coded_table import CodedTable, count_cliques
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.queries.cell_sums import MergedQuery
from mechanisms.public.queries.query_matrices import Identity, SparseQuery
from mechanisms.public.release import Measurements, NoisyMarginal
from synthesis.auto_model import AutoSpec, unmeasured
from synthesis.consistency.agree import Target, consistent
from synthesis.consistency.evidence import gathered
from synthesis.consistency.shrinkage import with_likely_columns
from synthesis.contract import synthesize
from synthesis.given_rows import Wish, rows_given
from synthesis.gum.gum_settings import GumSpec
from synthesis.independent import IndependentSpec, independent_marginals
from synthesis.papers.mbi_extra import MbiSpec
from synthesis.pgm.graphical_model import GraphicalModel, ModelSettings, fit_model
from synthesis.pgm.grouped_model import AlikeCodes, GroupedModel, fit_grouped
from synthesis.pgm.pgm_settings import PgmSpec, _shown
from tests.bench.grid.errors import distance as off
from tests.synthesis.pgm_worlds import joint, noisy_counts, told

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


@pytest.mark.slow
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


def test_the_predicted_memory_knows_the_largest_forest_up_to_sixteen_times_the_models_cells():
    def cells(*sizes):
        domain = Domain(tuple(Attribute(f"c{i}", n) for i, n in enumerate(sizes)))
        spec = AutoSpec(max_cells=1_000)
        return (spec.predicted_bytes(domain, [], 0) - AutoSpec(max_cells=1).predicted_bytes(domain, [], 0)) // 112 + 16

    small, middle, large = cells(5, 5, 5), cells(50, 20, 10), cells(500, 500)
    assert small == pytest.approx(1_000, abs=10)
    assert middle == pytest.approx(1.5 * (80 + 50 * 30), abs=10)
    assert large == pytest.approx(16_000, abs=10)


def test_the_model_has_room_for_rules_too_up_to_sixteen_times_its_cells():
    """Without it rows are changed until no rule is broken, and whole groups of them may be gone."""
    known = Measurements(WORLD, answers(ring(), [*ONES, ("a", "b")], 2.0))
    zeros = [(pair, np.eye(6, dtype=bool)) for pair in (("a", "b"), ("b", "c"), ("a", "c"))]  # 222 cells
    assert AutoSpec(max_cells=100).model(known, zeros=zeros) is not None
    assert AutoSpec(max_cells=10).model(known, zeros=zeros) is None


def test_columns_that_were_measured_alone_keep_their_counts_under_a_rule_between_them():
    """Of a question that one half is asked, `c` = 0 for the rest: mended row by row, that half would grow."""
    half, draw = np.repeat([0, 1], 10_000), np.random.default_rng(3)
    columns = [half, *(np.where(half, draw.integers(1, 6, half.size), 0) for _ in range(3))]
    real = CodedTable(WORLD, tuple(x.astype(np.uint8) for x in columns))
    zero = np.zeros((6, 6), bool)
    zero[0, 1:] = True
    table = synthesize(
        Measurements(WORLD, answers(real, ONES, 5.0)),
        AutoSpec(),
        rows=20_000,
        rng=np.random.default_rng(2),
        zeros=[(("a", n), zero) for n in "bcd"],
    ).table
    assert max(off(table, real, one) for one in ONES) < 0.02


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


def one_answer() -> Measurements:
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
        MbiSpec().make(one_answer(), rows=10, rng=np.random.default_rng(0))


@pytest.mark.skipif(not THERE, reason="needs the optional library mbi")
def test_its_rows_have_the_measured_marginals_and_follow_the_seed():
    made = [MbiSpec(500).make(one_answer(), rows=1000, rng=np.random.default_rng(3)).table for _ in range(2)]
    counts = np.zeros((2, 3))
    np.add.at(counts, tuple(made[0].columns), 0.1)
    assert np.abs(counts - TRUTH).max() < 1
    assert all(np.array_equal(x, y) for x, y in zip(made[0].columns, made[1].columns, strict=True))


DOMAIN = Domain((Attribute("a", 3), Attribute("b", 2), Attribute("c", 4, 4), Attribute("d", 2)))
CHAIN = (("a", "b"), ("b", "c"), ("c", "d"))


def known(seed: int = 1, cliques=CHAIN, sigma: float = 1.0) -> Measurements:
    rng = np.random.default_rng(seed)
    return told(DOMAIN, [(c, None, 200 * rng.random(DOMAIN.cells(c)) + 5, sigma) for c in cliques])


def brute_force(model: GraphicalModel, weights: dict[str, np.ndarray]) -> np.ndarray:
    """The joint distribution, cell by cell, from the factors alone, times the weights."""
    ones = [weights.get(a.name, np.ones(a.size)) for a in DOMAIN.attributes]
    return joint(model.engine, model.potentials)[0] * reduce(np.multiply.outer, ones)


def shares(table: CodedTable) -> np.ndarray:
    counts = count_cliques(table, [table.domain.names])[0]
    return counts.reshape(table.domain.shape(table.domain.names)) / table.rows


@pytest.fixture(scope="module")
def model() -> GraphicalModel:
    return fit_model(known())


WEIGHTS = st.sampled_from([0.0, 0.25, 0.5, 1.0])


@settings(max_examples=40)
@given(asked=st.fixed_dictionaries({}, optional={a.name: st.lists(WEIGHTS, min_size=a.size, max_size=a.size)
                                                 for a in DOMAIN.attributes}))  # fmt: skip
def test_the_conditioned_model_is_the_one_of_brute_force(model, asked):
    weights = {n: np.array(w) for n, w in asked.items()}
    wanted, whole = brute_force(model, weights), brute_force(model, {})
    if wanted.sum() == 0:
        with pytest.raises(UserError, match="no row satisfies"):
            model.given(weights)
        return
    conditioned = model.given(weights)
    assert conditioned.marginal(DOMAIN.names) / conditioned.total == pytest.approx(
        (wanted / wanted.sum()).ravel(), abs=1e-9
    )
    assert conditioned.total == pytest.approx(model.total * wanted.sum() / whole.sum(), rel=1e-9)


LINES = {"c": np.array([0, 0, 1, 1]), "a": np.array([0, 1, 0])}


@lru_cache
def over_groups() -> tuple[Measurements, GroupedModel]:
    """Exact answers of a table: whole columns, and pairs that do not tell codes of `LINES` apart; and their model."""
    rng = np.random.default_rng(4)
    table = CodedTable(DOMAIN, tuple(rng.integers(0, a.size, 400).astype(np.uint8) for a in DOMAIN.attributes))
    labels = {a.name: LINES.get(a.name, np.arange(a.size)) for a in DOMAIN.attributes}
    queries = {(n,): Identity(DOMAIN[n].size) for n in DOMAIN.names}
    queries |= {pair: MergedQuery(tuple(labels[n] for n in pair)) for pair in CHAIN}
    counts = count_cliques(table, list(queries))
    asked = [(c, q, q.answer(v.astype(float)), 1e-3) for (c, q), v in zip(queries.items(), counts, strict=True)]
    known = told(DOMAIN, asked)
    alike = AlikeCodes.of(known, apart=())
    model = fit_grouped(alike.merged(known), alike, ModelSettings(iterations=3000), impossible=(), progress=None)
    return known, model


@pytest.mark.parametrize("coarse", [[0, 0, 0, 1], [0, 0, 1, 1], [0, 1, 1, 2], [0, 0, 0, 0]], ids=str)
def test_pairs_that_merge_more_codes_of_a_column_than_others_say_over_groups_what_they_said_over_codes(coarse):
    codes = {"a": np.arange(3), "c": np.array([0, 0, 1, 2])}, {"c": np.array(coarse), "d": np.array([0, 0])}
    queries = {tuple(own): MergedQuery(tuple(own.values())) for own in codes}
    rng = np.random.default_rng(2)
    cells = {pair: rng.random(query.columns) for pair, query in queries.items()}
    alike = AlikeCodes.of(told(DOMAIN, [(c, q, q.answer(cells[c]), 1.0) for c, q in queries.items()]), apart=())
    merged = alike.merged(told(DOMAIN, [(c, q, q.answer(cells[c]), 1.0) for c, q in queries.items()]))
    for answer in merged.answers:
        groups = [alike.groups.get(n, np.arange(DOMAIN[n].size)) for n in answer.clique]
        over_groups_alone = MergedQuery(tuple(groups)).answer(cells[answer.clique])
        assert answer.values == pytest.approx(answer.query.answer(over_groups_alone))


def test_a_model_over_groups_of_codes_is_the_one_over_all_codes_where_no_answer_tells_them_apart():
    known, model = over_groups()
    assert {n: g.tolist() for n, g in model.alike.groups.items()} == {n: g.tolist() for n, g in LINES.items()}
    whole = fit_model(known, ModelSettings(iterations=3000))
    assert model.coarse.engine.tree.cells < whole.engine.tree.cells
    for clique in [("a",), ("c", "d"), ("a", "c"), DOMAIN.names]:
        assert model.marginal(clique) == pytest.approx(whole.marginal(clique), abs=0.3), "records of 400"
    made = model.rows(4000, np.random.default_rng(1))
    assert count_cliques(made, [("c",)])[0] == pytest.approx(10 * model.marginal(("c",)), abs=2)


def test_a_fit_starts_from_independent_columns_and_leaves_no_code_impossible():
    columns = {"a": [70.0, 30, 0], "b": [90.0, 10], "c": [25.0, 50, 20, 5], "d": [1.0, 99]}
    pairs = [(c, None, 200 * np.random.default_rng(1).random(DOMAIN.cells(c)), 50.0) for c in CHAIN]
    known = told(DOMAIN, [*(((n,), None, v, 1.0) for n, v in columns.items()), *pairs])
    start, end = (fit_grouped(known, AlikeCodes(DOMAIN, {}, {}), ModelSettings(iterations=i), impossible=(),
                              progress=None) for i in (0, 400))  # fmt: skip
    for pair in CHAIN:
        independent = np.multiply.outer(*(columns[n] for n in pair)).ravel()
        assert start.marginal(pair) / start.total == pytest.approx(independent / independent.sum(), abs=0.006)
    assert start.marginal(("a",))[2] > 0 and end.fit.loss < start.fit.loss


@settings(max_examples=40)
@given(asked=st.fixed_dictionaries({}, optional={a.name: st.lists(WEIGHTS, min_size=a.size, max_size=a.size)
                                                 for a in DOMAIN.attributes}))  # fmt: skip
def test_a_model_over_groups_is_conditioned_exactly_by_weights_of_codes(asked):
    _, model = over_groups()
    weights = {n: np.array(w) for n, w in asked.items()}
    ones = [weights.get(a.name, np.ones(a.size)) for a in DOMAIN.attributes]
    wanted = model.marginal(DOMAIN.names) * reduce(np.multiply.outer, ones).ravel()
    if wanted.sum() == 0:
        with pytest.raises(UserError, match="no row satisfies"):
            model.given(weights)
        return
    conditioned = model.given(weights)
    assert conditioned.total == pytest.approx(wanted.sum(), rel=1e-9)
    assert conditioned.marginal(DOMAIN.names) == pytest.approx(wanted, abs=1e-9 * model.total)


def drawn(
    spec, weights, rows=4000, finish=lambda t: t, measured=("a", "b", "c", "d"), measurements=None, rare=print, **more
):
    answers = known() if measurements is None else measurements
    model = spec.model(answers, **more)
    rng = np.random.default_rng(3)
    return rows_given(answers, spec, model, Wish(weights, measured, finish, rows, rare=rare), rng=rng, **more)


@pytest.mark.parametrize("spec", [PgmSpec(), GumSpec()])
def test_a_condition_that_a_rule_forbids_is_refused_by_its_rule_before_any_row_is_made(spec):
    forbidden = np.zeros(DOMAIN.shape(("a", "c")), bool)
    forbidden[0, 1:] = True
    zeros = ((("a", "c"), forbidden.ravel()),)
    first, later = np.array([1.0, 0, 0]), np.array([0, 0.3, 1, 0])
    with pytest.raises(UserError, match=r"no row satisfies .* a rule of the schema .* a × c"):
        drawn(spec, {"a": first, "c": later}, rows=10, zeros=zeros, rare=pytest.fail)
    assert drawn(spec, {"a": first, "c": np.array([1.0, 0, 1, 0])}, rows=10, zeros=zeros).table.rows == 10


def test_rows_of_the_model_are_exactly_so_many_and_follow_the_conditional_distribution(model):
    weights = {"c": np.array([0, 0.3, 1, 0]), "a": np.array([1.0, 1, 0])}
    made = drawn(PgmSpec(), weights)
    wanted = brute_force(model, weights)
    assert made.exact and made.table.rows == made.effective == 4000
    assert np.abs(shares(made.table) - wanted / wanted.sum()).sum() < 0.03
    assert shares(made.table)[wanted == 0].sum() == 0


def test_impossible_combinations_stay_impossible_under_a_condition():
    zeros = [(("a", "b"), np.array([[1, 0], [0, 0], [0, 0]], bool))]
    weights = {"d": np.array([0.0, 1]), "a": np.array([1.0, 0, 0])}
    made = drawn(PgmSpec(), weights, rows=500, zeros=zeros)
    assert (made.table.column("b") == 1).all() and (made.table.column("a") == 0).all()
    with pytest.raises(UserError, match="no row satisfies"):
        drawn(PgmSpec(), {"a": np.array([1.0, 0, 0]), "b": np.array([1.0, 0])}, zeros=zeros)


def test_a_column_that_was_not_measured_is_met_by_drawing_again(model):
    """`b` is made from `a` and `d` by a rule: the rows are still those of brute force."""

    def finish(table: CodedTable) -> CodedTable:
        b = ((table.column("a") == 2) & (table.column("d") == 1)).astype(np.uint8)
        return CodedTable(table.domain, tuple(b if n == "b" else table.column(n) for n in DOMAIN.names))

    weights = {"b": np.array([0.0, 1]), "c": np.array([1.0, 0.5, 0, 0])}
    made = drawn(PgmSpec(), weights, finish=finish, measured=("c",), rows=2000)
    wanted = brute_force(model, {"c": weights["c"]}).sum(axis=1)[2, :, 1]
    assert made.exact and made.table.rows == 2000
    assert (made.table.column("a") == 2).all() and (made.table.column("d") == 1).all()
    counts = np.bincount(made.table.column("c"), minlength=4) / 2000
    assert counts == pytest.approx(wanted / wanted.sum(), abs=0.03)


def test_without_a_number_there_are_as_many_rows_as_the_model_expects(model):
    weights = {"b": np.array([0.0, 1])}
    assert drawn(PgmSpec(), weights, rows=None).table.rows == round(model.given(weights).total)
    pool = drawn(GumSpec(), weights, rows=None).table
    assert pool.rows == pytest.approx(model.given(weights).total, rel=0.02) and (pool.column("b") == 1).all()


def test_weighed_rows_say_of_how_many_independent_ones_they_tell_as_much(model):
    """No more rows are made than POOL; of few that satisfy, the effective number is that of these few."""
    weights = {"a": np.array([0.0, 0, 1]), "c": np.array([0, 0.5, 1, 0])}
    wanted = brute_force(model, weights)
    pools: list[int] = []
    many = drawn(GumSpec(), weights, rows=3000, rare=pools.append)
    assert pools and all(pool > 3000 for pool in pools)  # said before they are made
    assert not many.exact and many.table.rows == 3000 and 2500 < many.effective <= 3000
    assert np.abs(shares(many.table) - wanted / wanted.sum()).sum() < 0.12
    assert shares(many.table)[wanted == 0].sum() == 0


def test_few_rows_that_serve_often_count_as_few(monkeypatch):
    monkeypatch.setattr("synthesis.given_rows.POOL", 100)
    made = drawn(GumSpec(), {"a": np.array([0.0, 0, 1])}, rows=1000)
    assert made.table.rows == 1000 and made.effective < 100
    with pytest.raises(UserError, match="none of 100 made rows"):
        drawn(GumSpec(), {"a": np.zeros(3)}, rows=10)


def test_independent_columns_are_conditioned_exactly_and_mended_rows_are_weighed():
    columns = known(cliques=(("a",), ("b",), ("c",), ("d",)))
    made = drawn(IndependentSpec(), {"c": np.array([0, 1, 0.5, 0])}, measurements=columns, rows=3000)
    ratio = consistent(columns).one_way("c") * [0, 1, 0.5, 0]
    assert made.exact
    assert np.bincount(made.table.column("c"), minlength=4) / 3000 == pytest.approx(ratio / ratio.sum(), abs=1e-3)
    with pytest.raises(UserError, match="condition on 'c'"):
        drawn(IndependentSpec(), {"c": np.zeros(4)}, measurements=columns)
    assert IndependentSpec().model(columns, zeros=[(("a", "b"), np.eye(3, 2, dtype=bool))]) is None
    pairs = known(cliques=(*CHAIN, ("a", "d")), sigma=0.01)
    assert AutoSpec(max_cells=14).model(pairs).given({"a": np.ones(3)}) is None
    assert not drawn(AutoSpec(max_cells=14), {"a": np.array([1.0, 0, 0])}, measurements=pairs, rows=50).exact
    assert drawn(AutoSpec(), {"a": np.array([1.0, 0, 0])}, measurements=columns, rows=50).exact


@pytest.mark.parametrize("spec", [PgmSpec(), AutoSpec(), IndependentSpec()])
def test_the_rows_of_a_model_are_those_that_make_makes(spec):
    answers = known()
    made = spec.make(answers, rows=300, rng=np.random.default_rng(5)).table
    again = spec.model(answers).rows(300, np.random.default_rng(5))
    assert all(np.array_equal(a, b) for a, b in zip(made.columns, again.columns, strict=True))
