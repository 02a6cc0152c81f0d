"""A unit in the schema: every command sees it, settings may repeat it, and contradictions are refused before all."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from mechanisms.public.errors import UserError
from mechanisms.public.schema.table_schema import parse_schema
from pipeline.frames.fit import columns_beside
from pipeline.look.rehearse import write_rows
from pipeline.look.table_look import check
from pipeline.settings.build import build_schema
from pipeline.settings.compose import compose_config
from pipeline.settings.config import CheckConfig, load_config, typed
from pipeline.settings.specs import build_specs, settled
from tests.pipeline.conftest import reply

UNIT = "unit: {column: patient, constant: [sex, born], order: admitted, records: {max: 3}}\n"
SCHEMA = """
name: stays
source: invented for the tests
confirmed_public: true
columns:
  sex: {kind: categorical, values: [f, m], missing: false}
  born: {kind: integer, min: 1900, max: 2020, bins: {count: 12}}
  admitted: {kind: date, min: 2020-01-01, max: 2023-12-31, bins: year}
  ward: {kind: categorical, values: [a, b, c], missing: false}
"""
OWN = ["data=table", "data.path=stays.csv", "data.schema=stays.yaml"]


def stays() -> pd.DataFrame:
    """Patients with two stays on one day, a stay without a day, two sexes, five stays, and one alone."""
    rows = [
        ("p1", "f", 1950, "2020-03-01", "a"),
        ("p2", "m", 1980, "2021-01-01", "b"),
        ("p1", "f", 1950, "2020-03-01", "b"),
        ("p1", "f", 1950, "2022-01-01", "c"),
        ("p2", "m", 1980, "", "b"),
        ("p3", "f", 1960, "2021-05-05", "a"),
        ("p3", "m", 1960, "2021-06-05", "a"),
        *(("p4", "m", 1999, f"2023-01-0{i}", "c") for i in range(1, 6)),
        ("p5", "f", 2001, "2020-07-07", "a"),
    ]
    return pd.DataFrame(rows, columns=["patient", "sex", "born", "admitted", "ward"])


@pytest.fixture
def clinic(folder: Path) -> Path:
    stays().to_csv("stays.csv", index=False)
    Path("stays.yaml").write_text(SCHEMA + UNIT)
    return folder


def refusal(*settings: str) -> str:
    with pytest.raises(UserError) as error:
        build_specs(load_config([*OWN, *settings]))
    return f"{error.value.where}: {error.value.what}; {error.value.fix}"


def looked(*settings: str) -> tuple[list[str], list[str]]:
    """The hints and warnings of `check` about whole persons."""
    look = check(typed(compose_config("check", [*OWN, *settings]), CheckConfig))
    return [h for h in look.hints if h.startswith("unit: ")], [w for w in look.warnings if w.startswith("unit: ")]


@pytest.mark.parametrize(
    "settings", [[], ["privacy.unit=patient"], ["privacy.max_records=3"], ["data.unit=patient", "data.max_records=3"]]
)
def test_the_block_alone_is_enough_and_the_settings_may_repeat_it(clinic, settings):
    specs = build_specs(load_config([*OWN, *settings]))
    assert (specs.unit.column, specs.unit.max_records, specs.budget.max_records) == ("patient", 3, 3)
    assert (specs.config.privacy.unit, specs.config.privacy.max_records) == ("patient", 3)
    assert settled(specs.config) == specs.config
    schema = build_schema(specs)
    assert schema.rules.unit == specs.declared.rules.unit and schema.measured.names[:1] == ("admitted",)
    assert columns_beside(specs.config, schema)["patient"] == "privacy.unit", "of a frame it is read too"


def test_fewer_records_may_count_than_a_person_has_and_the_schema_of_the_run_says_so(clinic):
    specs = build_specs(load_config([*OWN, "privacy.max_records=2"]))
    unit = build_schema(specs).rules.unit
    assert (specs.unit.max_records, specs.budget.max_records, unit.max_records, unit.bound) == (2, 2, 3, 2)
    saved = yaml.safe_load(build_schema(specs).to_yaml())
    assert saved["unit"]["records"] == {"max": 3, "counted": 2}
    assert parse_schema(saved, where="saved").rules.unit == unit
    Path("stays.yaml").write_text(SCHEMA + UNIT.replace("max: 3", "max: 3, counted: 2"))
    assert build_specs(load_config(OWN)).unit.max_records == 2
    assert "but the schema says unit: {records: {max: 3, counted: 2}}" in refusal("privacy.max_records=3")
    for wrong in ("0", "4", "true", "two"):
        Path("stays.yaml").write_text(SCHEMA + UNIT.replace("max: 3", f"max: 3, counted: {wrong}"))
        assert "unit: records: counted: got" in refusal() and "from 1 to 3" in refusal()


def test_without_a_unit_in_the_schema_settings_mean_what_they_meant(clinic):
    Path("stays.yaml").write_text(SCHEMA)
    alone = build_specs(load_config(OWN))
    assert (alone.unit.column, alone.unit.max_records, alone.config.privacy.unit) == (None, 1, "record")
    by_data = build_specs(load_config([*OWN, "data.unit=patient", "data.max_records=7"]))
    assert (by_data.unit.column, by_data.unit.max_records) == ("patient", 7)
    assert build_specs(load_config([*OWN, "data.unit=patient", "privacy.unit=record"])).unit.column is None


@pytest.mark.parametrize(
    ("setting", "own"),
    [
        *((setting, "{column: patient}") for setting in ("privacy.unit=record", "privacy.unit=who", "data.unit=who")),
        *((f"{group}.max_records=4", "{records: {max: 3}}") for group in ("privacy", "data")),
    ],
)
def test_a_contradiction_is_refused_by_every_command_before_any_charge_and_names_both_places(
    clinic, capsys, setting, own
):
    name, _, value = setting.partition("=")
    said = f"{name}: got {value if value == '4' else repr(value)}, but the schema says unit: {own}"
    for asked in (["plan", *OWN], ["run", *OWN, "hydra.run.dir=out"], ["rehearse", *OWN[2:]], ["check", *OWN]):
        if asked[0] != "check" or name.startswith("privacy"):
            assert said in reply(capsys, *asked, setting, code=1).err, asked
    assert not list(Path().glob("**/ledger*"))
    if name.endswith("max_records"):
        sweep = ["run", "-m", *OWN, f"{name}=3,4", "hydra.sweep.dir=sweep"]
        assert said in reply(capsys, *sweep, code=1).err and not list(Path("sweep").glob("**/privacy.json"))


def test_a_column_that_is_called_as_one_row_is_no_unit(clinic):
    Path("stays.yaml").write_text(SCHEMA + UNIT.replace("patient", "record"))
    for settings in ([], ["privacy.unit=record"]):
        assert "privacy.unit: the schema says unit: {column: record}, which means one row" in refusal(*settings)


def test_a_plan_names_the_unit_and_tells_of_half_as_many_records(clinic, capsys):
    facts = json.loads(reply(capsys, "plan", *OWN, "plan.format=json", "plan.rows=1000").out)
    named = [line["with"] for line in facts["expected"]["what_would_help"]]
    assert facts["unit"] == "patient" and "privacy.max_records=2 (units with more lose the rest)" in named
    noise, largest = [m["stddev"] for m in facts["persons"]], max(facts["persons"], key=lambda m: m["cells"])
    said = " ".join(reply(capsys, "plan", *OWN).out.split())
    assert f"noise ± {min(noise):.3g} to {max(noise):.3g} units a cell" in said and min(noise) < max(noise)
    assert f"the largest of {largest['cells']:,} cells ({' × '.join(largest['clique'])})" in said


def test_a_plan_names_the_pairs_with_a_constant_that_no_question_holds(clinic, capsys):
    """A constant of more than 200 codes stands beside nothing: who plans it is told of each pair."""
    wide = SCHEMA.replace("columns:\n", "columns:\n  canton: {kind: categorical, size: 201}\n")
    Path("wide.yaml").write_text(wide + UNIT.replace("[sex", "[canton, sex"))
    plans = [reply(capsys, "plan", *OWN[:2], f"data.schema={name}.yaml").out for name in ("stays", "wide")]
    said = [" ".join(text.split()) for text in plans]
    few = "(constants of persons beside columns of records): canton × sex, canton × born, canton × admitted and 1 more"
    assert f"never asked, and as unrelated {few}" in said[1] and "never asked" not in said[0]


def test_a_rehearsed_table_has_constant_constants_and_no_more_records_than_declared(clinic):
    schema = build_schema(build_specs(load_config(OWN)))
    write_rows(Path("rows.csv"), schema, 400, column="patient", most=3, rng=np.random.default_rng(0))
    frame = pd.read_csv("rows.csv", keep_default_na=False)
    by_person = frame.groupby("patient")
    assert len(frame) == 400 and by_person.size().max() == 3 and frame.sex.nunique() == 2
    assert (by_person.sex.nunique() == 1).all() and list(frame)[-1] == "patient"


def test_check_tells_of_constants_ties_gaps_and_bounds(clinic, capsys):
    hints, warnings = looked()
    assert hints == [
        "unit: records: persons with more than 3 records: 1; each of their records weighs less, and no synthetic "
        "person has more",
        "unit: constant: 'sex' has several values in 1 of the 4 persons with several records; one of them is taken, by "
        "a keyed hash",
        "unit: order: 7.7 % of the rows (1) have no value of 'admitted', and stand behind the others of their person",
        "unit: order: rows with the same place as the one before, by admitted: 1; the order of the file decides, or a "
        "further column",
    ]
    assert warnings == []
    assert "as many of their records count, by chance" in looked("privacy.clip=truncate")[0][0]
    assert "in neither columns nor leave_out" not in reply(capsys, "check", *OWN, "format=json").out, "of the ids"


def test_check_tells_of_rows_without_an_id_as_well_where_each_is_a_unit_of_its_own(clinic):
    stays().assign(patient="", born=1950).to_csv("stays.csv", index=False)
    assert looked()[1] == looked("privacy.missing_unit=own")[1] != []


def test_check_orders_by_codes_where_the_order_is_ordinal_and_by_the_file_where_there_is_none(clinic):
    ordinal = SCHEMA.replace("values: [a, b, c]", "values: [a, b, c], ordinal: true")
    Path("stays.yaml").write_text(ordinal + UNIT.replace("order: admitted", "order: [admitted, ward]"))
    assert not [h for h in looked()[0] if "same place" in h]
    Path("stays.yaml").write_text(ordinal + UNIT.replace("order: admitted", "order: ward"))
    assert [h for h in looked()[0] if "same place as the one before, by ward: 6;" in h]
    Path("stays.yaml").write_text(SCHEMA + UNIT.replace("order: admitted, ", ""))
    assert "unit: no order: the records of each person stand in the order of the file" in looked()[0]
