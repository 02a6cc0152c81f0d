"""Counting is a sum over rows; the sparse and the dense count are the same count."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.marginals import STEP, count_cliques, count_sparse

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
