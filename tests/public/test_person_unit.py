"""The unit of a schema: saved, apart from rules that it contradicts; sizes of units, counted, and of synthetic ones."""

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.accounting.budget import Budget, Charge, calibrate
from mechanisms.accounting.events import as_noise
from mechanisms.accounting.planning import plan_discovery
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.discovery.discovered_columns import questions_of
from mechanisms.public.discovery.discovery_questions import (
    INVENTED,
    OF_UNITS,
    RECORDS,
    DiscoveryQuestion,
    SizeQuestion,
    union_sensitivity,
)
from mechanisms.public.errors import UserError
from mechanisms.public.persons.person_unit import PersonUnit
from mechanisms.public.queries.query_matrices import sensitivity
from mechanisms.public.rules.engineering import engineer, undo
from mechanisms.public.rules.fine_columns import with_fine_columns
from mechanisms.public.rules.table_rules import RULES
from mechanisms.public.schema.table_schema import TOP, Schema, load_schema, parse_schema, part_of
from mechanisms.public.tables.decode import draw, with_constants
from mechanisms.public.tables.write_table import write_table
from mechanisms.public.units import Neighbouring
from tests.public.table_worlds import decode_table, refusal, uniform

COLUMNS: dict[str, Any] = {
    "sex": {"kind": "categorical", "values": ["f", "m"]},
    "born": {"kind": "integer", "min": 1900, "max": 2020},
    "admitted": {"kind": "date", "min": "2000-01-01", "max": "2019-12-31", "bins": "year"},
    "discharged": {"kind": "date", "min": "2000-01-01", "max": "2019-12-31", "bins": "year"},
    "age": {"kind": "integer", "min": 0, "max": 120, "missing": True},
    "ward": {"kind": "categorical", "values": ["a", "b"]},
}
UNIT: dict[str, Any] = {
    "column": "patient", "constant": ["sex", "born"], "order": "admitted", "records": {"max": 20}
}  # fmt: skip


def facts(columns: dict[str, Any] = COLUMNS, unit: object = UNIT, **rules: Any) -> Schema:
    return parse_schema({"name": "t", "columns": columns, "unit": unit, **rules}, where="t.yaml")


def refused(columns: dict[str, Any] = COLUMNS, unit: object = UNIT, **rules: Any) -> str:
    return refusal({"columns": columns, "unit": unit, **rules}).replace("\n  fix: ", "; ")


def test_the_unit_is_part_of_the_schema_and_is_read_back_from_its_text() -> None:
    schema = facts()
    assert schema.rules.unit == PersonUnit("patient", 20, ("sex", "born"), ("admitted",))
    again = parse_schema(schema.to_fields(), where="t.yaml")
    assert again == schema and again.rules.unit == schema.rules.unit and again.to_yaml() == schema.to_yaml()
    assert "unit" in RULES and "unit" in TOP and facts(unit=None).rules.unit is None


def test_constants_are_not_measured_with_the_records_and_come_back_as_columns() -> None:
    schema = facts()
    assert schema.measured.names == ("admitted", "discharged", "age", "ward")
    rows = uniform(schema.domain, 50, 0)
    measured, conflicts = engineer(rows, schema.engineering)
    assert measured.domain == schema.measured and not any(conflicts.values())
    back = undo(measured, schema.engineering, np.random.default_rng(0))
    assert back.domain == schema.domain and (np.asarray(back.column("born")) == 0).all()
    assert all(np.array_equal(back.column(n), rows.column(n)) for n in schema.measured.names)


@pytest.mark.parametrize("rows", [0, 1, 60])
def test_a_constant_is_one_value_of_its_bin_per_unit(rows: int) -> None:
    wide = COLUMNS | {n: {"kind": "integer", "min": 0, "max": 999, "bins": {"count": 2}} for n in ("born", "age")}
    schema, rng, ids = facts(wide), np.random.default_rng(0), np.arange(rows) // 3
    codes = {a.name: rng.integers(0, min(a.size, 2), rows).astype(np.uint8) for a in schema.domain.attributes}
    codes["born"] = (ids % 2).astype(np.uint8)
    drawn = [draw(codes[c.name], c, rng) for c in schema.columns]
    made = dict(zip(schema.domain.names, with_constants(drawn, schema, ids), strict=True))
    before = dict(zip(schema.domain.names, drawn, strict=True))
    assert np.array_equal(made["born"].values, before["born"].values[ids * 3] if rows else before["born"].values)
    assert np.array_equal(made["born"].values >= 500, ids % 2 == 1)
    assert all(np.array_equal(made[n].values, before[n].values) for n in ("age", "admitted", "ward"))
    assert rows < 60 or len(np.unique(made["born"].values)) > 10


def test_constants_get_no_fine_cells_and_orders_keep_their_bins() -> None:
    wide = COLUMNS | {
        n: {"kind": "integer", "min": 0, "max": 10**6, "bins": {"count": 20}} for n in ("born", "admitted", "age")
    }
    schema = with_fine_columns(facts(wide), 100)
    assert set(schema.fine) == {"admitted", "age", "discharged"}
    assert schema["admitted"].bins == facts(wide)["admitted"].bins and schema["age"].bins != facts(wide)["age"].bins


def test_an_expression_may_read_a_constant() -> None:
    schema = facts(derive={"age": {"expression": "year(admitted) - born"}})
    assert schema.measured.names == ("admitted", "discharged", "ward")
    assert facts(ordered=[["admitted", "discharged"]]).rules.ordered[0].columns == ("admitted", "discharged")


def test_a_part_of_the_columns_keeps_the_unit_that_is_protected() -> None:
    unit = part_of(facts(), ["sex", "ward"], where="experiment.columns").rules.unit
    assert unit == PersonUnit("patient", 20, ("sex",), ())


def test_one_constant_stands_alone_as_text_and_all_else_may_be_left_out() -> None:
    unit = {"column": "p", "constant": "sex", "records": {"max": 1}}
    assert facts(unit=unit).rules.unit == PersonUnit("p", 1, ("sex",), ())


NOT_WITH_RECORDS = "'sex' is constant in each unit, and not measured with the records"


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ({"unit_id": {"name": "x", "records": {1: 1}}}, "unit and unit_id; unit alone"),
        ({"derive": {"ward": {"from": "sex", "map": {"f": "a", "m": "b"}}}}, f"derive 'ward': {NOT_WITH_RECORDS}"),
        ({"derive": {"sex": {"from": "ward", "map": {"a": "f", "b": "m"}}}}, f"derive 'sex': {NOT_WITH_RECORDS}"),
        ({"derive": {"born": {"expression": "year(admitted) - age"}}}, "derive 'born': 'born' is constant"),
        ({"unit": UNIT | {"order": "age"}, "derive": {"age": {"expression": "year(admitted) - born"}}},
         "unit: 'age' is computed from other columns"),
        ({"mapped": {"ward": {"from": "sex"}}}, f"mapped: {NOT_WITH_RECORDS}"),
        ({"recode": {"both": {"columns": ["sex", "ward"]}}}, f"recode 'both': {NOT_WITH_RECORDS}"),
        ({"availability": {"there": {"columns": ["sex", "sex2"]}}}, f"availability 'there': {NOT_WITH_RECORDS}"),
    ],
)  # fmt: skip
def test_a_rule_over_constants_is_refused_with_its_name(rules: dict[str, Any], said: str) -> None:
    more = {"sex2": COLUMNS["sex"], "age2": COLUMNS["born"]}
    assert said in refused(COLUMNS | more, **rules)


@pytest.mark.parametrize("field", [{"fine": 50}, {"joint_bins": {"count": 3}}, {"one_way_only": True}])
def test_a_constant_says_nothing_of_marginals_of_records(field: dict[str, Any]) -> None:
    text = refused(COLUMNS | {"born": COLUMNS["born"] | field})
    assert f"column 'born': {next(iter(field))}: 'born' is constant in each unit" in text


@pytest.mark.parametrize(
    ("unit", "said"),
    [
        ("patient", "unit: got 'patient'; unit: {column:"),
        ({"constant": ["sex"]}, "unit: got"),
        (UNIT | {"orders": "admitted"}, "unknown field 'orders'"),
        (UNIT | {"column": "ward"}, "'ward' is a column of the schema; take 'ward' out of columns"),
        (UNIT | {"constant": ["sexes"]}, "sexes"),
        (UNIT | {"constant": ["sex", "sex"]}, "'sex' cannot stand here"),
        (UNIT | {"order": "born"}, "'born' is constant and orders"),
        (UNIT | {"order": "ward"}, "the values of 'ward' have no order that is known"),
        (UNIT | {"constant": ["nothing"]}, "unmeasured"),
        (UNIT | {"constant": ["same"]}, "none that is constant in the whole table"),
        (UNIT | {"records": 20}, "unit: records: got 20; records: {max: C}, a whole number from 1 to 10,000"),
        *((UNIT | {"records": {"max": n}}, f"got {{'max': {n!r}}}") for n in (0, True, "20", None, 10_001)),
        (UNIT | {"order": "dya"}, "no column 'dya'"),
        ({k: v for k, v in UNIT.items() if k != "records"}, "unit: records: got None"),
        (UNIT | {"constant": [n for n in COLUMNS if n != "admitted"] + ["nothing", "same"], "order": None}, "cannot"),
    ],
)
def test_a_unit_that_cannot_be_is_refused(unit: object, said: str) -> None:
    more = {"nothing": COLUMNS["ward"] | {"unmeasured": True}, "same": {"kind": "constant", "value": 1}}
    assert said in refused(COLUMNS | more, unit)


def test_a_table_of_constants_alone_is_refused() -> None:
    unit = UNIT | {"order": None, "constant": ["sex", "born"]}
    assert "no column is left to measure" in refused({n: COLUMNS[n] for n in ("sex", "born")}, unit)
    alone = {n: COLUMNS[n] for n in ("sex", "born")} | {"ward": COLUMNS["ward"] | {"unmeasured": True}}
    assert "no column is left to measure" in refused(alone, unit)


def test_fewer_records_may_count_than_a_unit_has_and_no_more() -> None:
    schema = facts(unit=UNIT | {"records": {"max": 20, "counted": 4}})
    unit = schema.rules.unit
    assert unit is not None and (unit.max_records, unit.bound) == (20, 4)
    again = parse_schema(schema.to_fields(), where="t.yaml")
    assert again.rules.unit == unit and "counted: 4" in again.to_yaml()
    assert "counted" not in facts(unit=UNIT | {"records": {"max": 20, "counted": 20}}).to_yaml()
    for wrong in (21, 0, True):
        words = refused(unit=UNIT | {"records": {"max": 20, "counted": wrong}})
        assert f"counted: got {wrong}; counted: a whole number from 1 to 20" in words
    for records in ({"counted": 4}, {"max": 20, "least": 1}):
        assert "records: {max: C}" in refused(unit=UNIT | {"records": records})


def test_columns_of_the_block_may_be_open_but_for_an_order_that_nobody_knows() -> None:
    wide = COLUMNS | {
        "born": {"kind": "integer", "bounds": "discover", "within": [1800, 2100]},
        "sex": {"kind": "categorical", "values": "discover"},
        "admitted": {"kind": "date", "bounds": "discover"},
    }
    schema = facts(wide)
    assert [c.name for c in schema.to_discover] == ["sex", "born", "admitted"]
    asked = {w.column: w for w in questions_of(schema)}
    assert [asked[n].once for n in ("sex", "born", "admitted")] == [True, True, False]
    relation = Neighbouring.ADD_REMOVE
    for name, counted in (("sex", 1), ("born", 1), ("admitted", 20)):
        query, named = asked[name].query, {"norm": "l1", "neighbouring": relation}
        alone = 1.0 if query is None else sensitivity(query, **named, max_records=counted)
        assert asked[name].sensitivity(**named, max_records=20) == alone
    wide["ward"] = {"kind": "categorical", "values": "discover"}
    assert "the values of 'ward' have no order that is known" in refused(wide, UNIT | {"order": "ward"})


def test_a_discovered_c_is_marked_in_the_schema_also_where_it_is_the_largest_number_of_records():
    given = {"columns": {"sex": {"kind": "categorical", "values": ["f", "m"], "missing": False}}}
    given |= {"unit": {"column": "id", "records": {"max": 5}}, "confirmed_public": True}
    rules = parse_schema(given, where="t").rules
    assert rules.counting(5) is rules
    found = rules.counting(5, discovered=True)
    again = parse_schema(given | {"unit": found.declared["unit"]}, where="t").rules
    assert again.unit == found.unit and again.unit.discovered and again.unit.bound == 5
    unit = {"column": "id", "records": {"max": 5, "discovered": True}}
    assert "discovered without counted" in refused(given["columns"], unit)


def histogram(sizes: list[int], cap: int) -> np.ndarray:
    """Units with 1 … cap records, as a table counts them."""
    return np.bincount([min(s, cap) for s in sizes if s], minlength=cap + 1)[1:].astype(np.int64)


@given(cap=st.integers(2, 5000))
def test_buckets_double_up_to_the_cap(cap: int) -> None:
    bounds = SizeQuestion(cap).bounds
    assert bounds[0] == 1 and bounds[-1] == cap and all(a < b <= 2 * a for a, b in itertools.pairwise(bounds))


@given(sizes=st.lists(st.integers(0, 40), max_size=12), cap=st.integers(2, 20))
def test_a_unit_stands_in_one_bucket_with_weight_one_and_large_ones_in_the_last(sizes: list[int], cap: int) -> None:
    asked = SizeQuestion(cap)
    counts = asked.bucketed(histogram(sizes, cap))
    lower = (0, *asked.bounds[:-1])
    expected = [sum(a < min(s, cap) <= b for s in sizes) for a, b in zip(lower, asked.bounds, strict=True)]
    assert counts.tolist() == expected and counts.sum() == sum(s > 0 for s in sizes)


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("relation", list(Neighbouring))
def test_the_sensitivity_is_the_largest_move_however_many_records_a_unit_has(norm, relation) -> None:
    asked, others = SizeQuestion(6), [3, 1]
    sizes = range(20)  # 0: the unit is absent
    pairs = itertools.permutations(sizes if relation is Neighbouring.ADD_REMOVE else sizes[1:], 2)
    if relation is Neighbouring.ADD_REMOVE:
        pairs = ((a, b) for a, b in pairs if 0 in (a, b))
    moves = [
        np.linalg.norm(
            asked.bucketed(histogram([*others, a], 6)) - asked.bucketed(histogram([*others, b], 6)),
            1 if norm == "l1" else 2,
        )
        for a, b in pairs
    ]
    assert max(moves) == pytest.approx(union_sensitivity(norm, relation))


@settings(max_examples=200)
@given(sizes=st.lists(st.integers(1, 64), min_size=1, max_size=60), noise=st.floats(0, 40))
def test_without_noise_the_choice_costs_no_more_than_any_other_bound(sizes: list[int], noise: float) -> None:
    asked = SizeQuestion(64)
    chosen = asked.chosen(asked.bucketed(histogram(sizes, 64)).tolist(), stddev=0.0, noise=noise)

    def error(bound: int) -> float:
        return sum(max(s - bound, 0) for s in sizes) + noise * bound

    above = sum(s > chosen for s in sizes)
    assert above <= noise and (
        chosen == 1 or sum(s > asked.bounds[asked.bounds.index(chosen) - 1] for s in sizes) > noise
    )
    best = min(range(1, 65), key=error)
    assert best <= chosen <= max(2 * best, 1) or error(chosen) <= error(best) * (1 + 1e-9)


def test_units_that_noise_explains_do_not_raise_the_bound() -> None:
    asked, rng = SizeQuestion(1024), np.random.default_rng(0)
    counts = asked.bucketed(histogram([1, 2] * 500, 1024))
    chosen = [asked.chosen(counts + rng.normal(0, 30, counts.size), stddev=30, noise=5) for _ in range(300)]
    assert np.mean(np.array(chosen) <= 2) > 0.9
    few = [asked.chosen(counts + rng.normal(0, 30, counts.size), stddev=30, noise=5) for _ in range(3000)]
    assert np.mean(np.array(few) >= 32) < 0.004, "0.0003; 0.01 with two deviations"
    true = asked.bucketed(histogram([1] * 500 + [100] * 400, 1024))
    chosen = [asked.chosen(true + rng.normal(0, 30, true.size), stddev=30, noise=20) for _ in range(300)]
    assert np.mean(np.array(chosen) == 128) > 0.97, (
        "what is far above is seen through the noise of the empty buckets between"
    )


@pytest.mark.parametrize("cap", [1, 0, True, 2.5, 2**21, "9"])
def test_an_impossible_cap_is_refused(cap) -> None:
    with pytest.raises(UserError, match=r"privacy\.max_records_cap"):
        SizeQuestion(cap)


@pytest.mark.parametrize(("accountant", "mean"), [("gdp", math.sqrt(2 / math.pi)), ("zcdp", None), ("basic", 1.0)])
@pytest.mark.parametrize("relation", list(Neighbouring))
def test_what_a_record_of_c_costs_is_the_noise_of_columns_that_share_the_rest(accountant, mean, relation) -> None:
    pure = accountant == "basic"
    delta = 0.0 if pure else 1e-6
    wanted = [DiscoveryQuestion(OF_UNITS, (RECORDS,), sizes=SizeQuestion(16))]
    budget = Budget(2.0, delta, accountant, relation, max_records=1)
    plan = plan_discovery(wanted, budget, share=0.2, mechanism="auto", cells=(2, 4, 9))
    (slot,) = plan.charges
    kind = plan.noise
    one = union_sensitivity(plan.norm, relation)
    charges = [Charge("c", kind, one, 0.2), *(Charge(f"{i}", kind, one, 0.8 / 3) for i in range(3))]
    first, *rest = (as_noise(e) for e in calibrate(charges, budget))
    assert slot.event.sensitivity == one and slot.event.scale == pytest.approx(first.scale, rel=1e-6)
    expected = rest[0].scale * (mean or math.sqrt(2 / math.pi)) * 5
    assert slot.discovery_question.noise == pytest.approx(expected, rel=1e-6)
    assert (
        plan.cap == 16
        and slot.to_json(plan.accountant)["discovery"]["noise_per_record"] == slot.discovery_question.noise
    )
    (paired,) = plan_discovery(wanted, budget, share=0.2, mechanism="auto", cells=(20, 40, 90), pairs=True).charges
    (alone,) = (as_noise(e) for e in calibrate([charges[0], Charge("r", kind, one, 0.8)], budget)[1:])
    assert paired.event == slot.event, "whether pairs are measured moves no charge"
    assert paired.discovery_question.noise == pytest.approx(
        alone.scale * (mean or math.sqrt(2 / math.pi)) * 20 * 90, rel=1e-6
    )


def test_where_lost_records_are_made_up_for_in_number_c_is_smaller() -> None:
    """Baseball players at ε = 1: 4,244 have more than 8 seasons, and a record of C costs 2,514 in noise."""
    noisy = [4621.0, 2563, 3018, 3271, 3493, 751]
    whole, half = (SizeQuestion(20, lost).chosen(noisy, stddev=17.4, noise=2514) for lost in (1.0, INVENTED))
    assert (whole, half) == (16, 8)


TAXIS = {"company": {"kind": "categorical", "size": 5}, "hour": {"kind": "categorical", "size": 24, "ordinal": True}}


def taxis(**unit: Any) -> dict[str, Any]:
    return {"name": "t", "columns": TAXIS, "leave_out": ["taxi"], "unit_id": {"name": "taxi", **unit}}


def of_taxis(folder: Path = Path(), **unit: Any) -> Schema:
    return parse_schema(taxis(**unit), where="t.yaml", folder=folder)


def rows(schema: Schema, count: int) -> CodedTable:
    return uniform(schema.domain, count, 3)


def test_units_have_the_declared_numbers_of_records() -> None:
    schema = of_taxis(records={1: 0.5, 4: 0.5})
    frame = decode_table(rows(schema, 10_000), schema, np.random.default_rng(0))
    sizes = frame.taxi.value_counts().value_counts(normalize=True)
    assert len(frame) == 10_000 and abs(sizes[1] - 0.5) < 0.01 and abs(sizes[4] - 0.5) < 0.01


def test_records_of_a_unit_share_its_columns_and_stand_together_in_order() -> None:
    schema = of_taxis(records={3: 0.5, 7: 0.5}, same=["company"], order_by=["hour"])
    frame = decode_table(rows(schema, 2_000), schema, np.random.default_rng(0))
    assert (frame.groupby("taxi").company.nunique() == 1).all()
    assert (frame.taxi.diff().fillna(0) >= 0).all()
    assert frame.groupby("taxi").hour.apply(lambda hours: hours.is_monotonic_increasing).all()


def test_ids_come_from_a_public_list_by_its_columns_and_weights(tmp_path: Path) -> None:
    lines = [f"T{c}{i},{c},{i}" for c in range(4) for i in (1, 3)]  # company 4 is in no line
    (tmp_path / "taxis.csv").write_text("taxi,company,records\n" + "\n".join(lines) + "\n")
    schema = of_taxis(tmp_path, units="taxis.csv", same=["company"])
    frame = decode_table(rows(schema, 8_000), schema, np.random.default_rng(0))
    known = frame[frame.company < 4]
    assert (known.taxi.str[1].astype(int) == known.company).all()
    assert abs((known.taxi.str[2] == "3").mean() - 0.75) < 0.01
    assert frame.taxi.notna().all()
    (tmp_path / "s.yaml").write_text(schema.to_yaml())
    (tmp_path / "taxis.csv").unlink()
    assert load_schema(tmp_path / "s.yaml") == schema


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.parquet"])
@pytest.mark.parametrize("count", [0, 1, 500])
def test_written_tables_have_the_ids_as_their_last_column(name: str, count: int, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("mechanisms.public.tables.write_table.CHUNK_ROWS", 64)
    schema = of_taxis(records={2: 1.0}, same=["company"])
    write_table(tmp_path / name, rows(schema, count), schema, np.random.default_rng(0))
    read = pd.read_parquet if name.endswith("parquet") else pd.read_csv
    frame = read(tmp_path / name)
    assert list(frame.columns) == ["company", "hour", "taxi"] and len(frame) == count
    assert frame.taxi.value_counts().max() <= 2 if count else True
    assert (frame.groupby("taxi").company.nunique() == 1).all()


@pytest.mark.parametrize(
    ("unit", "says"),
    [
        ({"units": "none.csv"}, "cannot read"),
        ({"units": [["T1", 0.0]]}, "a weight above 0"),
        ({"units": [["T1", "9", 1]], "same": ["company"]}, "column 'company' has no value '9'"),
        ({"record": {1: 1}}, "unknown field 'record'"),
    ],
)
def test_a_mistake_is_named(unit: dict[str, Any], says: str) -> None:
    assert "unit_id" in (words := refusal(taxis(**unit))) and says in words
