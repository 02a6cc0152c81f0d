"""Declared steps, and columns that ascend in every row: what is measured instead, and that decoding undoes it."""

import itertools
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.public.coded_table import count_cliques
from mechanisms.public.drafts.order_guess import in_groups
from mechanisms.public.errors import UserError
from mechanisms.public.rules.engineering import build_engineering, engineer, undo
from mechanisms.public.rules.ordered import shared_out
from mechanisms.public.rules.structural_zeros import broken, mend
from mechanisms.public.rules.transforms import Recode
from mechanisms.public.schema.code_labels import codes_meant, drawn_ends
from mechanisms.public.schema.table_schema import Schema, load_schema, parse_schema
from mechanisms.public.tables.decode import draw_table, with_units
from tests.public.table_worlds import coded, decode_table, refusal, uniform

GROUP = {"kind": "categorical", "values": ["fire", "medical"], "other": "else"}
TYPE = {"kind": "categorical", "values": ["alarm", "smoke", "heart"], "other": "else"}
TWO = {"kind": "categorical", "values": ["a", "b"], "missing": False}
THREE = {"kind": "categorical", "values": ["x", "y", "z"], "missing": False}
AGE = {"kind": "integer", "min": 0, "max": 19}
MAP = {"alarm": "fire", "smoke": "fire", "heart": "medical"}
TIME = {"kind": "date", "min": "2020-01-01", "max": "2020-01-10"}


def facts(columns: dict[str, Any], folder: Path = Path(), **rules: Any) -> Schema:
    return parse_schema({"name": "t", "columns": columns, **rules}, where="t.yaml", folder=folder)


def saved_again(schema: Schema, folder: Path) -> Schema:
    (folder / "schema.yaml").write_text(schema.to_yaml())
    return load_schema(folder / "schema.yaml")


def test_a_derived_column_is_not_measured_and_follows_from_the_other_on_decoding() -> None:
    schema = facts({"group": GROUP, "type": TYPE}, derive={"group": {"from": "type", "map": MAP}})
    assert schema.measured.names == ("type",)
    made = undo(coded(schema.measured, [[0, 1, 2, 3, 4]]), schema.engineering, np.random.default_rng(0))
    decoded = decode_table(made, schema, np.random.default_rng(0))
    assert decoded.group.fillna("gap").tolist() == ["fire", "fire", "medical", "else", "gap"]


def test_the_mapping_wins_over_contradicting_rows_and_they_are_counted() -> None:
    schema = facts({"group": GROUP, "type": TYPE}, derive={"group": {"from": "type", "map": MAP}})
    measured, conflicts = engineer(coded(schema.domain, [[0, 1, 1], [0, 0, 2]]), schema.engineering)
    assert measured.column("type").tolist() == [0, 0, 2]
    assert conflicts == {"derive 'group'": 1}


def test_a_rule_may_refuse_contradicting_rows_and_quotes_none() -> None:
    rule = {"from": "type", "map": MAP, "conflict": "refuse"}
    schema = facts({"group": GROUP, "type": TYPE}, derive={"group": rule})
    assert [s.rule for s in schema.rules.steps if s.conflict == "refuse"] == ["derive 'group'"]
    with pytest.raises(UserError, match="derive 'group': a row contradicts the rule") as caught:
        engineer(coded(schema.domain, [[1], [0]]), schema.engineering)
    assert "alarm" not in str(caught.value) and "medical" not in str(caught.value)


def test_derivations_may_follow_from_derived_columns_and_from_two_columns() -> None:
    rules = {
        "c": {"from": "b", "map": {"a": "b", "b": "a"}},
        "b": {"from": ["a", "d"], "map": [["a", "x", "b"]], "otherwise": "a"},
    }
    schema = facts({"a": TWO, "b": TWO, "c": TWO, "d": THREE}, derive=rules)
    assert schema.measured.names == ("a", "d")
    made = undo(coded(schema.measured, [[0, 0, 1], [0, 1, 0]]), schema.engineering, np.random.default_rng(0))
    assert [c.tolist() for c in made.columns] == [[0, 0, 1], [1, 0, 0], [0, 1, 1], [0, 1, 0]]
    assert engineer(made, schema.engineering)[1] == {"derive 'c'": 0, "derive 'b'": 0}


def test_files_beside_the_schema_are_saved_in_it(tmp_path: Path) -> None:
    (tmp_path / "types.csv").write_text("type,group\nalarm,fire\nsmoke,fire\nheart,medical\n")
    (tmp_path / "pairs.csv").write_text("b,a\nx,a\ny,b\n")
    rules: dict[str, Any] = {
        "derive": {"group": {"from": "type", "map": "types.csv"}},
        "recode": {"both": {"columns": ["a", "b"], "combinations": "pairs.csv"}},
    }
    schema = facts({"group": GROUP, "type": TYPE, "a": TWO, "b": THREE}, tmp_path, **rules)
    alone = tmp_path / "alone"
    alone.mkdir()
    again = saved_again(schema, alone)
    assert again.to_yaml() == schema.to_yaml() and again.measured == schema.measured
    assert schema.measured["both"].size == 2


@given(st.lists(st.booleans(), min_size=6, max_size=6).filter(any), st.integers(0, 2**31))
def test_recoding_is_undone_for_every_possible_combination(possible: list[bool], seed: int) -> None:
    step = Recode.of("ab", ("a", "b"), (2, 3), np.array(possible))
    domain = facts({"a": TWO, "b": THREE}).domain
    plan = build_engineering(domain, [step])
    made = uniform(plan.measured, 20, seed)
    back = undo(made, plan, np.random.default_rng(seed))
    assert engineer(back, plan)[0].columns[0].tolist() == made.columns[0].tolist()
    assert engineer(back, plan)[1] == {"recode 'ab'": 0}


def test_an_unlisted_combination_counts_as_the_listed_one_that_agrees_most() -> None:
    rule = {"columns": ["a", "b"], "combinations": [["a", "x"], ["b", "z"]]}
    schema = facts({"a": TWO, "b": THREE}, recode={"ab": rule})
    measured, conflicts = engineer(coded(schema.domain, [[0, 0, 1, 1], [0, 2, 2, 1]]), schema.engineering)
    assert measured.column("ab").tolist() == [0, 0, 1, 1] and conflicts == {"recode 'ab'": 2}


def test_a_recoding_leaves_out_what_the_schema_declares_impossible() -> None:
    rule = {"columns": ["b", "a"], "combinations": "all"}
    schema = facts({"a": TWO, "b": THREE}, recode={"ab": rule}, impossible=[{"a": "a", "b": ["x", "y"]}])
    assert schema.measured["ab"].size == 4 and schema.zeros == ()


def test_one_value_stands_for_several_times_with_flags_for_the_missing_ones() -> None:
    rule = {"columns": ["sent", "seen"], "shared": "when"}
    schema = facts({"sent": TIME, "seen": TIME, "a": TWO}, availability={"there": rule})
    gap = schema.domain["sent"].size - 1
    rows = [[3, 3, gap, gap], [3, gap, 4, gap], [0, 0, 1, 1]]
    measured, conflicts = engineer(coded(schema.domain, rows), schema.engineering)
    assert measured.column("there").tolist() == [3, 2, 1, 0]
    assert measured.column("when").tolist() == [3, 3, 4, gap]
    assert conflicts == {"availability 'there'": 0}
    back = undo(measured, schema.engineering, np.random.default_rng(0))
    assert [c.tolist() for c in back.columns] == rows
    clique, cells = schema.zeros[0]
    assert clique == ("there", "when") and int(cells.sum()) == 3 + gap


def test_coarse_bins_are_measured_and_the_fine_marginal_is_restored() -> None:
    schema = facts({"age": AGE | {"joint_bins": {"starts": [0, 10]}}, "a": TWO})
    assert [(a.name, a.size) for a in schema.measured.attributes] == [("age", 3), ("age (fine)", 21), ("a", 2)]
    assert schema.engineering.alone == {"age (fine)"}
    rng = np.random.default_rng(0)
    fine = np.repeat(np.arange(20, dtype=np.uint8), np.arange(1, 21) * 10)
    coarse = (fine >= 10).astype(np.uint8)
    rng.shuffle(fine)
    back = undo(coded(schema.measured, [coarse, fine, coarse > 0]), schema.engineering, rng)
    assert np.bincount(back.column("age")).tolist() == (np.arange(1, 21) * 10).tolist()
    assert ((back.column("age") >= 10) == (back.column("a") == 1)).all()


def test_bins_of_a_level_follow_the_hierarchy() -> None:
    tree = {"levels": ["region", "city"], "tree": {"n": ["x", "z"], "s": ["y"]}}
    schema = facts({"b": THREE | {"hierarchy": tree, "joint_bins": {"level": "region"}}, "a": TWO})
    step = schema.engineering.steps[0]
    found, _ = step.forward({"b": np.array([0, 1, 2], np.uint8)})
    assert found["b"].tolist() == [0, 1, 0]


COLUMNS = {"age": AGE | {"joint_bins": {"count": 5}}, "a": TWO, "b": THREE, "c": THREE, "group": GROUP, "type": TYPE}
ALL: dict[str, Any] = {
    "derive": {"group": {"from": "type", "map": MAP}},
    "recode": {"bc": {"columns": ["b", "c"], "combinations": [["x", "x"], ["x", "y"], ["z", "z"], ["y", "z"]]}},
    "impossible": [
        {"age": {"max": 7}, "a": "b"},
        {"columns": ["group", "a"], "possible": [["fire", "a"], ["medical", "b"], ["fire", "b"], ["else", "a"]]},
        {"b": "z", "a": "b"},
    ],
}


@settings(max_examples=40)
@given(st.integers(0, 2**31), st.integers(0, 200))
def test_no_row_breaks_a_rule_after_all_steps_are_undone(seed: int, rows: int) -> None:
    times = {"sent": TIME, "seen": TIME, "first": AGE, "last": AGE}
    more = {"availability": {"there": {"columns": ["sent", "seen"], "shared": "when"}}, "ordered": [["first", "last"]]}
    schema = facts(COLUMNS | times, **ALL, **more)
    made = undo(uniform(schema.measured, rows, seed), schema.engineering, np.random.default_rng(seed))
    assert made.rows == rows and made.domain == schema.domain
    measured, conflicts = engineer(made, schema.engineering)
    assert not any(conflicts.values())
    counts = count_cliques(measured, [clique for clique, _ in schema.zeros])
    assert not any(n[cells.ravel()].any() for n, (_, cells) in zip(counts, schema.zeros, strict=True))
    group, a, age, b = (made.column(n) for n in ("group", "a", "age", "b"))
    assert not ((age <= 7) & (a == 1)).any() and not ((b == 2) & (a == 1)).any()
    assert set(zip(group.tolist(), a.tolist(), strict=True)) <= {(0, 0), (1, 1), (0, 1), (2, 0)}


def test_zeros_of_the_measured_domain_are_those_whose_rows_break_a_rule() -> None:
    schema = facts(COLUMNS, **ALL)
    cliques = dict(schema.zeros)
    assert cliques[("age", "a")].reshape(6, 2)[:2, 1].all() and int(cliques[("age", "a")].sum()) == 2
    recoded = cliques[("a", "bc")].reshape(2, 4)
    assert recoded.tolist() == [[False] * 4, [False, False, False, True]]
    assert ("a", "type") in cliques  # group is derived: the zeros are told of what it follows from
    empty = {"kind": "categorical", "values": ["x", ""], "missing": ["NA"]}
    skipped = facts({"a": TWO, "b": empty}, impossible=[{"a": "a", "b": {}}]).zeros[0][1]
    assert skipped.tolist() == [True, False, False, False, False, False]  # neither an empty text nor a gap is a value


def test_rules_survive_saving(tmp_path: Path) -> None:
    rules = ALL | {"unit_id": {"name": "id", "records": {1: 0.25, 4: 0.75}, "same": "a", "order_by": ["age"]}}
    schema = facts(COLUMNS, **rules)
    again = saved_again(schema, tmp_path)
    assert again == schema and again.to_yaml() == schema.to_yaml()
    assert [c for c, _ in again.zeros] == [c for c, _ in schema.zeros]
    assert all((x == y).all() for (_, x), (_, y) in zip(again.zeros, schema.zeros, strict=True))


def test_a_moved_row_changes_one_column_where_that_is_enough() -> None:
    schema = facts({"a": TWO, "b": THREE, "c": THREE}, impossible=[{"a": "a", "b": "x", "c": "x"}])
    codes = {"a": np.zeros(5, np.uint8), "b": np.zeros(5, np.uint8), "c": np.zeros(5, np.uint8)}
    mend(codes, schema.domain, schema.zeros, np.random.default_rng(0))
    assert all(sum(int(codes[n][i] != 0) for n in "abc") == 1 for i in range(5))


@pytest.mark.parametrize(
    ("step", "largest"), [({"multiple_of": 7.5}, (0, 3, 7.4999)), ({"decimals": 2}, (7.49, 7.495))]
)
def test_a_bin_of_numbers_ends_for_a_rule_with_the_largest_value_that_is_written(step, largest) -> None:
    """No `max` reached the end of a bin of floats, and of a fee of 7.50 the message named the next bin instead."""
    fee = facts({"fee": {"kind": "float", "bins": {"edges": [0, 7.5, 15, 16]}, "missing": False, **step}})["fee"]
    for most in largest:
        assert codes_meant(fee, {"max": most}, rule="r", where="w").tolist() == [True, False, False]
    if "decimals" in step:
        with pytest.raises(UserError, match=r"edges of the bins: 7\.5 to 14\.99"):
            codes_meant(fee, {"max": 7.5}, rule="r", where="w")


def test_rules_that_leave_no_row_are_an_error() -> None:
    rules = [{"a": "a", "b": ["x", "y", "z"]}, {"a": "b", "c": ["x", "y", "z"]}]
    schema = facts({"a": TWO, "b": THREE, "c": THREE}, impossible=rules)
    with pytest.raises(UserError, match="no synthetic row satisfies the structural zeros"):
        undo(uniform(schema.measured, 9, 0), schema.engineering, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("first", "second", "fix"),
    [
        (
            {"kind": "date", "min": "2024-01-01", "max": "2024-12-31", "bins": "month"},
            {"kind": "date", "min": "2024-03-01", "max": "2025-03-31", "bins": "month"},
            "{min: 2024-01-01, max: 2025-03-31, bins: {calendar: month}}",
        ),
        (
            {"kind": "integer", "bins": {"edges": [0, 18, 65, 100]}},
            {"kind": "integer", "min": 10, "max": 110, "bins": {"count": 2}},
            "{bins: {edges: [0, 18, 65, 111]}}",
        ),
        (
            {"kind": "float", "min": 0, "max": 10, "bins": {"count": 5}},
            {"kind": "float", "min": 0, "max": 20, "bins": {"count": 8}},
            "{min: 0.0, max: 20.0, bins: {count: 8}}",
        ),
        ({"kind": "integer", "min": 0, "max": 9}, {"kind": "integer", "min": 2, "max": 30}, "{min: 0, max: 30}"),
    ],
)
def test_a_constant_of_persons_and_columns_ordered_with_it_are_told_bins_that_fit(
    first: Any, second: Any, fix: str
) -> None:
    unit = {"column": "id", "constant": ["a"], "records": {"max": 2}}
    with pytest.raises(UserError, match="'a' is constant in a person, and other columns have other bins") as caught:
        facts({"a": first, "b": second}, ordered=[["a", "b"]], unit=unit)
    assert f"the same bins in all of them: {fix} fits" in str(caught.value)
    bounds = {"min", "max", "bins"}
    same = [{k: v for k, v in each.items() if k not in bounds} | yaml.safe_load(fix) for each in (first, second)]
    same = [{k: str(v) if isinstance(v, date) else v for k, v in each.items()} for each in same]
    assert facts({"a": same[0], "b": same[1]}, ordered=[["a", "b"]], unit=unit).rules.ordered


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"derive": {"grup": {"from": "type", "map": MAP}}}, "derive 'grup': no column 'grup'"),
    ({"derive": {"group": {"from": "tipe", "map": MAP}}}, "did you mean 'type'?"),
    (
        {"derive": {"group": {"from": "type", "map": {"alarm": "fire"}}}},
        "derive 'group': the map says nothing for 'smoke'",
    ),
    ({"derive": {"group": {"from": "type", "map": MAP | {"heart": "medic"}}}}, "column 'group' has no value 'medic'"),
    ({"derive": {"group": {"from": "type", "map": [["alarm", "fire"], ["alarm", "medical"]]}}}, "mapped to two values"),
    ({"derive": {"group": {"from": "group", "map": {}}}}, "derive 'group': from: got 'group'"),
    ({"derive": {"group": {"from": "type", "map": MAP, "conflict": "data"}}}, "derive 'group': conflict: got 'data'"),
    ({"derive": {"group": {"from": "type", "mapp": MAP}}}, "unknown field 'mapp'"),
    ({"derive": {"group": {"from": "type", "map": [["alarm"]]}}}, "derive 'group': map: got [['alarm']]"),
    ({"recode": {"r": {"columns": ["a"]}}}, "recode 'r': columns: got ['a']"),
    ({"recode": {"r": {"columns": ["a", "b"], "combinations": [["a", "w"]]}}}, "'r': column 'b' has no value 'w'"),
    ({"recode": {"r": {"columns": ["a", "b"]}, "s": {"columns": ["b", "c"]}}}, "recode 's': column 'b' is taken"),
    ({"recode": {"c": {"columns": ["a", "b"]}}}, "recode 'c': 'c' is the name of a column"),
    ({"impossible": [{"a": "a"}, {"a": "b"}]}, "impossible: a: every combination is impossible"),
    ({"impossible": [{"a": "a", "bb": "x"}]}, "impossible: rule 1: no column 'bb'"),
    ({"impossible": [{"a": None, "b": "x"}]}, "impossible: rule 1: column 'a' is never missing"),
    ({"impossible": [{"a": {}, "b": "x"}]}, "impossible: rule 1: column 'a' is never missing"),
    ({"impossible": [{"a": {"min": 3}}]}, "impossible: rule 1: column 'a': got {'min': 3}"),
    ({"impossible": {"a": "a"}}, "impossible: got {'a': 'a'}"),
    ({"availability": {"f": {"columns": ["a", "b"]}}}, "availability 'f': column 'a' is never missing"),
    ({"availability": {"f": {"columns": ["group", "type"]}}}, "column 'type' has other values than 'group'"),
    ({"ordered": [["age", "a"]]}, "ordered: column 'a' has no order"),
    ({"unit_id": {"name": "id"}}, "unit_id: needs either records or units"),
    ({"unit_id": {"name": "a", "records": {1: 1}}}, "unit_id: 'a' is a column of the schema"),
    ({"unit_id": {"name": "id", "records": {1: 0.5}}}, "sum to 0.5"),
    ({"unit_id": {"name": "id", "records": {0: 1}}}, "of at least 1"),
    ({"unit_id": {"name": "id", "records": {1: 1}, "same": ["aa"]}}, "unit_id: same: no column 'aa'"),
    ({"derived": {}}, "did you mean 'derive'?"),
]


@pytest.mark.parametrize(("rules", "says"), MISTAKES)
def test_a_mistake_in_a_rule_names_the_rule_and_the_column(rules: dict[str, Any], says: str) -> None:
    assert says in refusal({"columns": COLUMNS, **rules})


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


@settings(max_examples=60)
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
    rng = np.random.default_rng(seed)
    drawn = draw_table(with_units(coded(schema, codes.T), schema, rng), schema, rng, 0, len(codes))
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
    rows = coded(schema, [rng.binomial(bats, 0.3).clip(0, 99) // 20, bats // 50])
    free = parse_schema({"columns": columns}, where="t.yaml")
    hits, apart = (draw_table(with_units(rows, s, rng), s, rng, 0, len(bats)) for s in (schema, free))
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
    rng = np.random.default_rng(0)
    owned = with_units(coded(schema, [[1, 0] * 200, [0, 0] * 200, [0, 1] * 200]), schema, rng)
    low, ten, _ = (d.values for d in draw_table(owned, schema, rng, 0, 400))
    assert (low <= ten).all() and (ten % 10 == 0).all() and not np.signbit(ten).any()
    assert drawn_ends(schema["whole"])[1][1] < 30.9


@pytest.mark.parametrize("groups", [[["a", "b"], ["b", "a"]], [["a", "b"], ["b", "c"], ["c", "a"]]])
def test_groups_in_a_circle_are_refused(groups: list[list[str]]) -> None:
    own = {"kind": "integer", "min": 0, "max": 29, "bins": {"count": 3}}
    with pytest.raises(UserError, match="ordered: b before "):
        parse_schema({"columns": dict.fromkeys("abc", own), "ordered": groups}, where="t.yaml")
