"""The unit of a schema: saved and read back, out of the measured domain, and apart from rules that it contradicts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.discovery.found_columns import questions_of
from mechanisms.public.errors import UserError
from mechanisms.public.persons.person_unit import PersonUnit
from mechanisms.public.queries.query_matrices import sensitivity
from mechanisms.public.rules.engineering import engineer, undo
from mechanisms.public.rules.fine_columns import with_fine_columns
from mechanisms.public.rules.table_rules import RULES
from mechanisms.public.schema.schema_part import part_of
from mechanisms.public.schema.table_schema import TOP, Schema, parse_schema
from mechanisms.public.tables.decode import draw, with_constants
from mechanisms.public.units import Neighbouring

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


def refusal(*given: Any, **rules: Any) -> str:
    with pytest.raises(UserError) as error:
        facts(*given, **rules)
    return f"{error.value.where}: {error.value.what}; {error.value.fix}"


def test_the_unit_is_part_of_the_schema_and_is_read_back_from_its_text() -> None:
    schema = facts()
    assert schema.rules.unit == PersonUnit("patient", 20, ("sex", "born"), ("admitted",))
    again = parse_schema(schema.to_fields(), where="t.yaml")
    assert again == schema and again.rules.unit == schema.rules.unit and again.to_yaml() == schema.to_yaml()
    assert "unit" in RULES and "unit" in TOP and facts(unit=None).rules.unit is None


def test_constants_are_not_measured_with_the_records_and_come_back_as_columns() -> None:
    schema = facts()
    assert schema.measured.names == ("admitted", "discharged", "age", "ward")
    rng = np.random.default_rng(0)
    rows = CodedTable(
        schema.domain, tuple(rng.integers(0, a.size, 50).astype(np.uint8) for a in schema.domain.attributes)
    )
    measured, conflicts = engineer(rows, schema.engineering)
    assert measured.domain == schema.measured and not any(conflicts.values())
    back = undo(measured, schema.engineering, rng)
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
    assert said in refusal(COLUMNS | more, **rules)


@pytest.mark.parametrize("field", [{"fine": 50}, {"joint_bins": {"count": 3}}, {"one_way_only": True}])
def test_a_constant_says_nothing_of_marginals_of_records(field: dict[str, Any]) -> None:
    text = refusal(COLUMNS | {"born": COLUMNS["born"] | field})
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
    assert said in refusal(COLUMNS | more, unit)


def test_a_table_of_constants_alone_is_refused() -> None:
    unit = UNIT | {"order": None, "constant": ["sex", "born"]}
    assert "no column is left to measure" in refusal({n: COLUMNS[n] for n in ("sex", "born")}, unit)
    alone = {n: COLUMNS[n] for n in ("sex", "born")} | {"ward": COLUMNS["ward"] | {"unmeasured": True}}
    assert "no column is left to measure" in refusal(alone, unit)


def test_fewer_records_may_count_than_a_unit_has_and_no_more() -> None:
    schema = facts(unit=UNIT | {"records": {"max": 20, "counted": 4}})
    unit = schema.rules.unit
    assert unit is not None and (unit.max_records, unit.bound) == (20, 4)
    again = parse_schema(schema.to_fields(), where="t.yaml")
    assert again.rules.unit == unit and "counted: 4" in again.to_yaml()
    assert "counted" not in facts(unit=UNIT | {"records": {"max": 20, "counted": 20}}).to_yaml()
    for wrong in (21, 0, True):
        assert f"counted: got {wrong}; counted: a whole number from 1 to 20" in refusal(
            unit=UNIT | {"records": {"max": 20, "counted": wrong}}
        )
    for records in ({"counted": 4}, {"max": 20, "least": 1}):
        assert "records: {max: C}" in refusal(unit=UNIT | {"records": records})


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
    assert "the values of 'ward' have no order that is known" in refusal(wide, UNIT | {"order": "ward"})


def test_a_discovered_c_is_marked_in_the_schema_also_where_it_is_the_largest_number_of_records():
    given = {"columns": {"sex": {"kind": "categorical", "values": ["f", "m"], "missing": False}}}
    given |= {"unit": {"column": "id", "records": {"max": 5}}, "confirmed_public": True}
    rules = parse_schema(given, where="t").rules
    assert rules.counting(5) is rules
    found = rules.counting(5, found=True)
    again = parse_schema(given | {"unit": found.declared["unit"]}, where="t").rules
    assert again.unit == found.unit and again.unit.found and again.unit.bound == 5
    with pytest.raises(UserError, match="discovered without counted"):
        parse_schema(given | {"unit": {"column": "id", "records": {"max": 5, "discovered": True}}}, where="t")
