"""Marginals and query matrices: counts, sensitivities, what answers hold; workloads; matrices that merge cells."""

import itertools
import math
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from mechanisms.public.coded_table import STEP, CodedTable, code_dtype, count_cliques, count_sparse
from mechanisms.public.designs.pair_view import forest_edges, joining, pairs
from mechanisms.public.domain import Attribute, Domain, subsets
from mechanisms.public.errors import UserError
from mechanisms.public.queries.adaptive_grid import GridQuery, grid_query
from mechanisms.public.queries.cell_sums import MergedQuery, ResidualQuery, merged_query, query_of, rare_groups
from mechanisms.public.queries.query_matrices import Identity, SparseQuery, ask_alike, sensitivity
from mechanisms.public.release import NoisyMarginal
from mechanisms.public.units import Neighbouring
from mechanisms.public.workload import all_k_way, closure, explicit, reweighted
from tests.conftest import few

SIGNED = np.array([[1.0, -1.0, 0.0], [0.5, 0.5, -2.0]])
QUERIES = {"identity": Identity(3), "one cell": Identity(1)}  # a unit may have no record, under replace too
QUERIES |= {n: SparseQuery.of(m) for n, m in (("signed", SIGNED), ("equal", np.ones((2, 3))), ("prefix", np.tri(3)))}
QUERIES |= {f"residual {shape}": ResidualQuery(shape) for shape in [(2,), (5,), (2, 2), (2, 3), (4, 3), (2, 2, 3)]}


def contributions(cells: int, bound: int) -> list[np.ndarray]:
    """Everything that one unit may add: R records in some cells, each weighing min(1, C/R)."""
    found = []
    for records in range(bound + 2):
        for places in itertools.combinations_with_replacement(range(cells), records):
            weight = min(1.0, bound / records) if records else 0.0
            found.append(np.bincount(places, minlength=cells) * weight if records else np.zeros(cells))
    return found


def largest_change(matrix: np.ndarray, norm: int, neighbouring: Neighbouring, bound: int) -> float:
    """Brute force over all pairs of neighbouring tables: only the contribution of the one unit differs."""
    moved = np.array(contributions(matrix.shape[1], bound)) @ matrix.T
    others = moved if neighbouring is Neighbouring.REPLACE else [0 * moved[0]]
    return max(float(np.linalg.norm(moved - other, norm, axis=1).max()) for other in others)


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("neighbouring", list(Neighbouring))
@pytest.mark.parametrize("bound", [1, 2])
def test_sensitivity_is_the_largest_change_over_all_neighbouring_tables(name, norm, neighbouring, bound):
    query = QUERIES[name]
    claimed = sensitivity(query, norm=norm, neighbouring=neighbouring, max_records=bound)
    matrix = np.stack([query.answer(cell) for cell in np.eye(query.columns)], axis=1)
    exact = largest_change(matrix, 1 if norm == "l1" else 2, neighbouring, bound)
    assert exact * (1 - 1e-12) <= claimed <= exact * (1 + 1e-9)


def test_a_marginal_has_the_sensitivities_of_paper_002_section_23():
    def of(norm, neighbouring):
        return sensitivity(Identity(4), norm=norm, neighbouring=neighbouring, max_records=1)

    assert of("l1", Neighbouring.ADD_REMOVE) == of("l2", Neighbouring.ADD_REMOVE) == 1
    assert of("l1", Neighbouring.REPLACE) == 2
    assert of("l2", Neighbouring.REPLACE) == pytest.approx(math.sqrt(2))


def test_beyond_the_exact_size_the_distance_is_bounded_from_above(monkeypatch):
    query = SparseQuery.of(SIGNED)
    exact = query.largest_column_distance("l2")
    monkeypatch.setattr("mechanisms.public.queries.query_matrices.MAX_DENSE", 0)
    assert query.largest_column_distance("l2") >= exact


@settings(max_examples=50)
@given(st.lists(st.floats(-4, 4), min_size=6, max_size=6), st.lists(st.integers(0, 2**30), min_size=3, max_size=3))
def test_answers_are_whole_lattice_numbers_and_transpose_is_the_adjoint(entries, counts):
    query = SparseQuery.of(np.array(entries).reshape(2, 3))
    x, y = np.array(counts), np.array([1.0, -2.0])
    exact = query.answer_exact(x)
    assert exact.dtype == np.int64
    assert np.allclose(exact * 2.0**-query.bits, query.answer(x.astype(float)), rtol=1e-12, atol=1e-6)
    assert query.answer(x.astype(float)) @ y == pytest.approx(x @ query.transpose(y), rel=1e-9, abs=1e-6)


#: A matrix with one entry that is its own absolute value in numbers of its width, and the entry in records.
LOWEST = {"indices": np.array([0]), "indptr": np.array([0, 1]), "shape": np.array([1, 2]), "bits": np.array([4])}


@pytest.mark.parametrize("bits", [-1, 32, 40])
def test_a_matrix_of_entries_too_fine_for_its_norms_is_refused(bits):
    """The squares of 2^32 ran over: a plugin's grid moved by nothing, and its answers out of a reserve were free."""
    grid = GridQuery((4,), {(0,): np.arange(4)}, "l2", bits)
    with pytest.raises(UserError, match="bits from 0 to 16"):
        sensitivity(grid, norm="l2", neighbouring=Neighbouring.ADD_REMOVE, max_records=1)


@pytest.mark.parametrize("of", [lambda a: MergedQuery((a,)), lambda a: SparseQuery(sparse.csr_array(np.diag(a)), 0)])
def test_what_was_asked_stands_though_whoever_asked_fills_its_arrays_anew(of):
    """A plugin's next labels were released beside the answers to those before, and `verify` called that sound."""
    given = np.array([1, 0, 0])
    query, other = of(given), of(given.copy())
    given[:] = [0, 1, 1]
    assert ask_alike(query, other)


@pytest.mark.parametrize("width", [np.int8, np.int16, np.int32])
def test_a_matrix_moves_by_its_entries_however_narrow_the_numbers_that_hold_them(width):
    """One that was saved, and one as a plugin may make it: a column of 1 beside another of the lowest number."""
    lowest = np.iinfo(width).min
    made = SparseQuery(sparse.csr_array(np.array([[1, lowest]], width)), bits=0)
    assert sensitivity(made, norm="l1", neighbouring=Neighbouring.ADD_REMOVE, max_records=1) == -int(lowest)
    assert made.answer_exact(np.array([0, 1])).tolist() == [lowest]
    query, entry = query_of("SparseQuery", {**LOWEST, "data": np.array([lowest], width)}), -float(lowest) / 16
    assert sensitivity(query, norm="l1", neighbouring=Neighbouring.ADD_REMOVE, max_records=1) == entry
    assert sensitivity(query, norm="l2", neighbouring=Neighbouring.REPLACE, max_records=1) >= entry


WIDE = np.array([0, 1], np.uint64)
GRID = {"shape": np.array([2]), "settings": np.array([2, 4]), "fine_0": WIDE}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: query_of("Pickle", {}), "no query matrix"),
        # Its answers would be cut to whole numbers, and step by more than its norm says.
        (lambda: SparseQuery(sparse.csr_array(np.array([[1e-9, 1.0]])), bits=0), "no whole multiples"),
        (lambda: query_of("SparseQuery", {**LOWEST, "data": WIDE[1:]}), "rows of whole numbers"),
        (lambda: query_of("GridQuery", GRID), "rows of whole numbers"),
        *(
            (lambda e=entries: SparseQuery(sparse.csr_array(np.array([e], np.int64))), "entries .* are too large")
            for entries in ([-(2**63), 1], [2**52, 2**52])
        ),
    ],
)
def test_what_is_no_matrix_of_whole_numbers_whose_sums_fit_is_refused(make, message):
    with pytest.raises((UserError, ValueError), match=message):
        make()


TOWN = Domain((Attribute("age", 7), Attribute("sex", 2), Attribute("street", 300), Attribute("zip", 70_000)))


def table(rows: int, seed: int = 0, *, weighted: bool = False) -> CodedTable:
    rng = np.random.default_rng(seed)
    columns = tuple(rng.integers(0, a.size, rows).astype(code_dtype(a.size)) for a in TOWN.attributes)
    return CodedTable(TOWN, columns, rng.integers(1, 2**20, rows).astype(np.uint32) if weighted else None)


def by_hand(coded: CodedTable, clique: tuple[str, ...]) -> np.ndarray:
    weights = np.ones(coded.rows, np.int64) if coded.weights is None else coded.weights.astype(np.int64)
    counts = np.zeros(TOWN.shape(clique), np.int64)
    np.add.at(counts, tuple(coded.column(n) for n in clique), weights)
    return counts.ravel()


@settings(max_examples=20)
@given(st.integers(0, 300), st.integers(0, 99), st.booleans())
def test_counts_are_the_sums_over_rows(rows, seed, weighted):
    coded = table(rows, seed, weighted=weighted)
    cliques = [("age",), ("sex",), ("age", "sex"), ("sex", "street"), ("age", "sex", "street")]
    for clique, counts in zip(cliques, count_cliques(coded, cliques), strict=True):
        assert np.array_equal(counts, by_hand(coded, clique))
        ids, some = count_sparse(coded, clique)
        assert np.array_equal(ids, np.flatnonzero(counts))
        assert np.array_equal(some, counts[ids])


def test_more_rows_than_one_step_and_memory_maps_are_counted_whole(tmp_path):
    coded = table(STEP * 2 + 17)
    mapped = []
    for i, column in enumerate(coded.columns):
        column.tofile(tmp_path / str(i))
        mapped.append(np.memmap(tmp_path / str(i), column.dtype, "r"))
    cliques = list(itertools.combinations(("age", "sex", "street"), 2))
    for left, right in zip(
        count_cliques(coded, cliques), count_cliques(CodedTable(TOWN, tuple(mapped)), cliques), strict=True
    ):
        assert np.array_equal(left, right)
        assert left.sum() == coded.rows


def test_cells_beyond_63_bits_are_a_clear_error():
    wide = Domain(tuple(Attribute(f"c{i}", 70_000) for i in range(4)))
    coded = CodedTable(wide, tuple(np.zeros(3, np.uint32) for _ in range(4)))
    with pytest.raises(UserError, match="too many cells"):
        count_sparse(coded, wide.names)


CITY = Domain((Attribute("age", 4, 4), Attribute("sex", 2), Attribute("job", 10), Attribute("street", 100)))


def test_explicit_marginals_are_measured_exactly_and_in_domain_order():
    workload = explicit(CITY, [["sex", "age"], ["job"], ["job"]], max_cells=100)
    assert workload.cliques == (("age", "sex"), ("job",), ("job",))


def test_the_closure_holds_every_subset_once():
    workload = closure(CITY, [["age", "sex", "job"], ["sex", "job"]], max_cells=1000)
    assert len(workload.cliques) == 7
    assert len(set(workload.cliques)) == 7
    assert workload.cliques[:3] == (("age",), ("sex",), ("job",))


def test_paper_003_counts_66_marginals_with_seven_copies():
    """Adaptive Granularity Mechanism, marginal selection: 7 outer marginals, their closure, 7 extra copies: 66."""
    names = [
        *("shift", "company_id", "pickup", "dropoff", "payment_type", "fare", "tips", "trip_total", "trip_seconds"),
        "trip_miles",
    ]
    taxi = Domain(tuple(Attribute(n, 2) for n in names))
    pairs = ["fare trip_total", "trip_total trip_seconds", "dropoff fare", "payment_type trip_total", "fare trip_miles"]
    outer = [*pairs, "company_id", "tips trip_total"]
    workload = closure(taxi, [["shift", "pickup", *o.split()] for o in outer], max_cells=10**6)
    assert len(workload.cliques) + 7 == 66


def test_all_k_way_leaves_out_what_is_too_large_and_says_so():
    workload = all_k_way(CITY, [1, 2], max_cells=100)
    assert len(workload.cliques) + len(workload.left_out) == 4 + math.comb(4, 2)
    assert all(CITY.cells(c) > 100 for c in workload.left_out)
    assert ("street",) in workload.cliques


def test_weights_apply_to_every_copy():
    workload = explicit(CITY, [["sex"], ["sex"], ["age"]], max_cells=100)
    assert reweighted(CITY, workload, [(["sex"], 3.0)]).weights == (3.0, 3.0, 1.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: explicit(CITY, [["agee"]], max_cells=9), "did you mean 'age'"),
        (lambda: explicit(CITY, [["age", "age"]], max_cells=9), "stands twice"),
        (lambda: explicit(CITY, [["job", "street"]], max_cells=9), "selection.max_cells"),
        (lambda: explicit(CITY, ["age"], max_cells=9), "list of lists"),
        (lambda: explicit(CITY, [[]], max_cells=9), "list of lists"),
        (lambda: all_k_way(CITY, [5], max_cells=9), "1 to 4"),
        (lambda: all_k_way(CITY, [2], max_cells=1), "no marginal has at most 1 cells"),
        (lambda: reweighted(CITY, explicit(CITY, [["sex"]], max_cells=9), [(["age"], 2.0)]), "not among the selected"),
        (lambda: reweighted(CITY, explicit(CITY, [["sex"]], max_cells=9), [(["sex"], 0.0)]), "above 0"),
    ],
)
def test_a_mistake_names_the_setting_and_the_way_out(make, message):
    with pytest.raises(UserError, match=message):
        make()


BOX = Domain(tuple(Attribute(n, s) for n, s in zip("abcd", (3, 2, 4, 2), strict=True)))


def measured(seed: int, cliques, norm="l2", threshold=1.0, bits=16, level=2.0):
    """Answers drawn at random, round by round: about half of the cells pass."""
    rng = np.random.default_rng(seed)
    known: list[NoisyMarginal] = []
    for order in sorted({len(c) for c in cliques}):
        found = []
        for i in (i for i, c in enumerate(cliques) if len(c) == order):
            query = grid_query(BOX, cliques[i], known, threshold=threshold, norm=norm)
            query = replace(query, bits=bits) if isinstance(query, GridQuery) else query
            values = rng.exponential(level, query.rows)
            found.append(NoisyMarginal(cliques[i], query, values, "gaussian", 1.0, str(i)))
        known += found
    return known


def dense(query) -> np.ndarray:
    return np.column_stack([query.answer(column) for column in np.eye(query.columns)])


@few(10)
@given(st.integers(0, 10**6), st.sampled_from(["l1", "l2"]), st.sampled_from([6, 10, 16]), st.floats(0.1, 6))
def test_every_column_has_norm_1_and_products_are_those_of_the_matrix(seed, norm, bits, level):
    rng = np.random.default_rng(seed)
    for answer in measured(seed, subsets(("a", "b", "c", "d")), norm=norm, bits=bits, level=level):
        query, matrix = answer.query, dense(answer.query)
        norms = np.linalg.norm(matrix, 2 if norm == "l2" else 1, axis=0)
        assert norms.max() <= 1 + 1e-12
        assert norms.min() >= 1 - 24 * 2.0**-bits
        assert (np.abs(matrix).sum(axis=1) > 0).all(), "no row without a cell"
        for which, order in (("l1", 1), ("l2", 2)):
            exact = np.linalg.norm(matrix, order, axis=0).max()
            assert exact <= query.largest_column_norm(which) <= exact * (1 + 1e-9)
            distances = np.linalg.norm(matrix[:, :, None] - matrix[:, None], order, axis=0)
            assert distances.max() <= query.largest_column_distance(which) * (1 + 1e-12)
        counts, answers = rng.integers(0, 2**30, query.columns), rng.normal(size=query.rows)
        assert query.answer_exact(counts) * 2.0**-query.bits == pytest.approx(matrix @ counts)
        assert query.transpose(answers) == pytest.approx(matrix.T @ answers)
        again = query_of(type(query).__name__, query.arrays())
        assert np.array_equal(again.answer_exact(counts), query.answer_exact(counts))


def test_a_threshold_that_keeps_nothing_measures_the_parents_again_and_one_of_all_or_no_parents_is_the_identity():
    *_, whole = measured(1, subsets(("a", "b")), threshold=math.inf)
    assert isinstance(whole.query, GridQuery)
    assert whole.query.fine_cells.size == 0
    assert whole.query.rows == 3 + 2
    assert sensitivity(whole.query, norm="l2", neighbouring=Neighbouring.ADD_REMOVE, max_records=1) <= 1
    *_, whole = measured(1, subsets(("a", "b")), threshold=-math.inf)
    assert whole.query == grid_query(BOX, ("a", "b"), [], threshold=5, norm="l2") == Identity(6)


def test_a_lost_parent_leaves_the_others():
    known = [a for a in measured(3, [("a",), ("b",)]) if a.clique == ("a",)]
    query = grid_query(BOX, ("a", "b"), known, threshold=1.5, norm="l2")
    assert isinstance(query, GridQuery)
    assert query.largest_column_norm("l2") == 1.0
    assert dense(query).max() == 1.0


def test_repeated_answers_of_a_parent_count_together():
    weak = NoisyMarginal(("a",), Identity(3), np.array([4.0, 0.0, 9.0]), "gaussian", 1.0, "0")
    copies = [weak, NoisyMarginal(("a",), Identity(3), weak.values, "gaussian", 1.0, "1")]
    one = grid_query(BOX, ("a", "b"), [weak], threshold=5.0, norm="l2")
    two = grid_query(BOX, ("a", "b"), copies, threshold=5.0, norm="l2")
    assert one.fine_cells.tolist() == [4, 5]
    assert two.fine_cells.tolist() == [0, 1, 4, 5]


@pytest.mark.parametrize(("columns", "said"), [(8, ""), (9, "more ways down")])
def test_a_grid_whose_products_do_not_end_is_refused_by_its_sets_alone(columns, said):
    """A file of some kilobytes kept whoever read it busy for days: each way down from all of its sets was gone."""
    sets = subsets(tuple(range(columns)))
    arrays = {f"fine_{'_'.join(map(str, s))}": np.arange(2 if len(s) == 1 else 0) for s in sets}
    arrays |= {"shape": np.full(columns, 2), "settings": np.array([2, 16])}
    with pytest.raises(ValueError, match=said) if said else nullcontext():
        query_of("GridQuery", arrays)


def test_a_broken_file_is_refused():
    *_, whole = measured(1, subsets(("a", "b")))
    arrays = whole.query.arrays()
    with pytest.raises(ValueError, match="outside"):
        query_of("GridQuery", {**arrays, "fine_0_1": np.array([7])})
    with pytest.raises(ValueError, match="no set"):
        query_of("GridQuery", {**arrays, "fine_0_2": np.array([7])})


CUBE = Domain((Attribute("a", 4), Attribute("b", 3), Attribute("c", 2)))
COUNTS = NoisyMarginal(("a",), Identity(4), np.array([50.0, 2.0, 40.0, -7.0]), "gaussian", 2.0, "0")


def test_products_are_those_of_the_matrix_and_every_column_has_one_1():
    query = merged_query(CUBE, ("a", "b"), rare_groups(CUBE, [COUNTS], 3.0))
    assert isinstance(query, MergedQuery)
    matrix = np.column_stack([query.answer(column) for column in np.eye(12)])
    assert matrix.shape == (9, 12)
    assert (matrix.sum(axis=0) == 1).all()
    assert (matrix.sum(axis=1) > 0).all()
    x, y = np.arange(12) * 7 + 1, np.arange(9.0) - 4
    assert query.answer_exact(x).tolist() == (matrix @ x).tolist()
    assert query.transpose(y) == pytest.approx(matrix.T @ y)
    again = query_of("MergedQuery", query.arrays())
    assert again.answer_exact(x).tolist() == query.answer_exact(x).tolist()
    for norm, apart in (("l1", 2), ("l2", 2**0.5)):
        assert sensitivity(query, norm=norm, neighbouring=Neighbouring.ADD_REMOVE, max_records=3) == 3
        assert sensitivity(query, norm=norm, neighbouring=Neighbouring.REPLACE, max_records=3) == pytest.approx(
            3 * apart
        )


def test_nothing_merged_is_the_identity_and_a_broken_file_is_refused():
    assert merged_query(CUBE, ("b", "c"), rare_groups(CUBE, [COUNTS], 3.0)) == Identity(6)
    with pytest.raises(ValueError, match="no merged"):
        query_of("MergedQuery", {"labels_0": np.array([0, 2])})


def test_a_forest_has_the_same_number_of_edges_whatever_is_chosen():
    every = pairs(CUBE, CUBE.names, 100)
    assert forest_edges(every) == 2
    assert forest_edges([("a", "b")]) == 1
    assert forest_edges([]) == 0
    assert joining(every, [("a", "b")]) == [("a", "c"), ("b", "c")]
    assert joining(every, [("a", "b"), ("b", "c")]) == []
    assert pairs(CUBE, CUBE.names, 6) == (("b", "c"),)
    assert pairs(CUBE, ("a", "b"), 12, ("c",)) == ()
