"""Columns that ascend in every row, each with bins of its own."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.drafts.order_guess import in_groups
from mechanisms.public.errors import UserError
from mechanisms.public.rules.ordered import drawn_ends, shared_out
from mechanisms.public.rules.structural_zeros import broken
from mechanisms.public.schema.table_schema import parse_schema
from mechanisms.public.tables.decode import draw_table, with_units


def number_columns() -> st.SearchStrategy[dict[str, Any]]:
    """Columns of one kind whose bounds, bins and steps are their own."""
    whole = st.builds(
        lambda low, width, bins, step: {"kind": "integer", "min": low, "max": low + width} | bins | step,
        st.integers(-20, 20),
        st.integers(5, 60),
        st.sampled_from([{}, {"bins": {"count": 1}}, {"bins": {"count": 3}}]),
        st.sampled_from([{}, {}, {"multiple_of": 5}]),
    )
    real = st.builds(
        lambda low, width, bins, step: (
            {"kind": "float", "min": low, "max": low + width, "bins": {"count": bins}} | step
        ),
        st.integers(-20, 20),
        st.integers(5, 60),
        st.integers(1, 7),
        st.sampled_from([{}, {"decimals": 1}, {"multiple_of": 0.5}]),
    )
    return st.one_of(*(st.lists(each, min_size=2, max_size=4) for each in (whole, real)))


@settings(max_examples=60, deadline=None)
@given(declared=number_columns(), apart=st.booleans(), seed=st.integers(0, 99))
def test_ordered_columns_of_other_bins_ascend_and_stay_in_their_bins(declared: Any, apart: bool, seed: int) -> None:
    """Rows of codes that may be, decoded; that no values of a pair of bins ascend is counted by hand."""
    columns = {f"c{i}": each | {"missing": True} for i, each in enumerate(declared)}
    pairs = [[a, b] for a, b in itertools.combinations(columns, 2)]
    rule = pairs if apart else [list(columns)]
    schema = parse_schema({"columns": columns, "ordered": rule}, where="t.yaml")
    codes = np.random.default_rng(seed).integers(0, [c.size for c in schema.columns], (500, len(declared)))
    ends = {c.name: drawn_ends(c) for c in schema.columns}
    for (i, a), (j, b) in itertools.combinations(enumerate(columns), 2):
        both = (codes[:, i] < schema[a].value_codes) & (codes[:, j] < schema[b].value_codes)
        least = ends[a][0][np.minimum(codes[:, i], schema[a].value_codes - 1)]
        largest = ends[b][1][np.minimum(codes[:, j], schema[b].value_codes - 1)]
        codes = codes[~both | (least <= largest)]
    assert not broken({n: codes[:, i] for i, n in enumerate(columns)}, schema.domain, schema.rules.zeros).any()
    coded = CodedTable(schema.domain, tuple(codes[:, i].astype(np.uint8) for i in range(len(columns))))
    rng = np.random.default_rng(seed)
    drawn = draw_table(with_units(coded, schema, rng), schema, rng, 0, len(codes))
    before = np.full(len(codes), -np.inf)
    for i, (column, own) in enumerate(zip(schema.columns, drawn, strict=True)):
        held = codes[:, i] < column.value_codes
        low, high = (e[np.minimum(codes[:, i], column.value_codes - 1)] for e in ends[column.name])
        assert (~held | ((own.values >= low) & (own.values <= high))).all(), column
        assert (~held | (own.values >= before)).all(), column
        before = np.where(held, own.values, before)


@given(
    needs=st.lists(st.integers(-1, 5), min_size=1, max_size=6),
    pool=st.lists(st.integers(0, 5), min_size=6, max_size=6),
    seed=st.integers(0, 9),
)
def test_as_many_rows_as_can_be_get_a_value_of_their_bin_that_is_not_below_their_need(needs, pool, seed):
    needs, pool = sorted(needs, reverse=True), sorted(pool[: len(needs)], reverse=True)
    chances = np.random.default_rng(seed).random(len(needs))
    given_ = shared_out(np.array([0, len(needs)]), np.array(needs, float), np.array(pool, float), chances)
    assert sorted(given_) == list(range(len(needs))), "each value goes to one row"
    held = sum(pool[place] >= need for place, need in zip(given_, needs, strict=True))
    ways = (sum(v >= need for v, need in zip(way, needs, strict=True)) for way in itertools.permutations(pool))
    assert held == max(ways)


def test_all_ways_to_share_the_values_of_a_bin_are_as_likely() -> None:
    rng, ways = np.random.default_rng(5), Counter[tuple[int, ...]]()
    for _ in range(4_000):
        given_ = shared_out(np.array([0, 3]), np.array([2.0, 0.0, -np.inf]), np.array([3.0, 2.0, 1.0]), rng.random(3))
        ways[tuple(given_.tolist())] += 1
    assert set(ways) == {w for w in itertools.permutations(range(3)) if w[0] != 2}
    assert all(abs(n - 1_000) < 5 * 28 for n in ways.values()), ways


def test_columns_in_order_keep_their_distribution_inside_their_bins() -> None:
    """Hits are at most a third of the times at bat: sorted in each row, both had other means than as measured."""
    rng = np.random.default_rng(1)
    shape = {"kind": "integer", "missing": False}
    columns = {
        "hits": {**shape, "min": 0, "max": 99, "bins": {"count": 5}},
        "bats": {**shape, "min": 0, "max": 299, "bins": {"count": 6}},
    }
    schema = parse_schema({"columns": columns, "ordered": [["hits", "bats"]]}, where="t.yaml")
    bats = (rng.beta(0.5, 2, 20_000) * 300).astype(int)
    codes = tuple((v // w).astype(np.uint8) for v, w in ((rng.binomial(bats, 0.3).clip(0, 99), 20), (bats, 50)))
    coded = CodedTable(schema.domain, codes)
    free = parse_schema({"columns": columns}, where="t.yaml")
    hits, apart = (draw_table(with_units(coded, s, rng), s, rng, 0, len(bats)) for s in (schema, free))
    assert (hits[0].values <= hits[1].values).all() and (apart[0].values > apart[1].values).mean() > 0.05
    for ruled, unruled in zip(hits, apart, strict=True):
        assert abs(ruled.values.mean() - unruled.values.mean()) < 0.02 * unruled.values.mean()


def test_pairs_in_order_are_proposed_as_few_groups_of_which_each_two_are_a_pair() -> None:
    times = ("received", "sent", "there", "hospital")
    pairs = [*itertools.combinations(times, 2), ("sent", "free"), ("received", "free")]
    groups = in_groups([(a, b, 9 if b == "free" else 10, 10) for a, b in pairs])
    assert sorted(groups) == [(["received", "sent", "free"], 9, 10), (list(times), 10, 10)]


def test_ordered_values_go_up_to_a_step_where_they_cannot_go_down_and_stay_out_of_the_next_bin() -> None:
    """Multiples of ten behind numbers of any digits, one by one; and a bin that holds no whole number."""
    columns = {
        "low": {"kind": "float", "min": 0, "max": 20, "bins": {"count": 2}, "missing": False},
        "ten": {"kind": "float", "min": 0, "max": 30, "bins": {"count": 1}, "multiple_of": 10, "missing": False},
        "whole": {"kind": "float", "min": 5, "max": 31, "bins": {"edges": [5, 30.2, 30.9, 31]}, "decimals": 0},
    }
    schema = parse_schema({"columns": columns, "ordered": [["low", "ten"]]}, where="t.yaml")
    codes = np.array([[1, 0, 0], [0, 0, 1]] * 200).T.astype(np.uint8)
    rng = np.random.default_rng(0)
    owned = with_units(CodedTable(schema.domain, tuple(codes)), schema, rng)
    low, ten, _ = (d.values for d in draw_table(owned, schema, rng, 0, 400))
    assert (low <= ten).all() and (ten % 10 == 0).all() and not np.signbit(ten).any()
    assert drawn_ends(schema["whole"])[1][1] < 30.9


@pytest.mark.parametrize("groups", [[["a", "b"], ["b", "a"]], [["a", "b"], ["b", "c"], ["c", "a"]]])
def test_groups_in_a_circle_are_refused(groups: list[list[str]]) -> None:
    own = {"kind": "integer", "min": 0, "max": 29, "bins": {"count": 3}}
    with pytest.raises(UserError, match="ordered: b before "):
        parse_schema({"columns": dict.fromkeys("abc", own), "ordered": groups}, where="t.yaml")
